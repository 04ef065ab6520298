//! `$ref`, `$dynamicRef`, `$recursiveRef`.

use crate::algebra::Algebra;
use crate::compile::At;
use crate::error::SchemaError;
use crate::formula::Formula;
use crate::json::Value;

fn target_text(a: &Algebra, at: At) -> Result<String, SchemaError> {
    match a.json.get(at.value) {
        Value::String(text) => Ok(text.to_string()),
        _ => Err(a.invalid(at, "a URI reference in a string")),
    }
}

pub(crate) fn reference(a: &mut Algebra, at: At) -> Result<Formula, SchemaError> {
    let text = target_text(a, at)?;
    let target = a.resolve_reference(at, &text)?;
    Ok(a.subschema(target, at.scope))
}

pub(crate) fn dynamic_reference(a: &mut Algebra, at: At) -> Result<Formula, SchemaError> {
    let text = target_text(a, at)?;
    let target = a.resolve_dynamic(at, &text)?;
    Ok(a.subschema(target, at.scope))
}

pub(crate) fn recursive_reference(a: &mut Algebra, at: At) -> Result<Formula, SchemaError> {
    let text = target_text(a, at)?;
    if text != "#" {
        return Err(a.invalid(at, "\"#\""));
    }
    let target = a.resolve_dynamic(at, &text)?;
    Ok(a.subschema(target, at.scope))
}
