//! `allOf`, `anyOf`, `oneOf`, `not`, `if` / `then` / `else`.

use crate::algebra::Algebra;
use crate::compile::At;
use crate::error::SchemaError;
use crate::formula::Formula;

fn branches(a: &mut Algebra, at: At) -> Result<Vec<Formula>, SchemaError> {
    let schemas = a.list_of(at, "a list of schemas")?.to_vec();
    if schemas.is_empty() {
        return Err(a.invalid(at, "a list with at least one schema"));
    }
    Ok(schemas.into_iter().map(|schema| a.subschema(schema, at.scope)).collect())
}

pub(crate) fn all_of(a: &mut Algebra, at: At) -> Result<Formula, SchemaError> {
    let parts = branches(a, at)?;
    Ok(a.formulas.and(parts))
}

pub(crate) fn any_of(a: &mut Algebra, at: At) -> Result<Formula, SchemaError> {
    let parts = branches(a, at)?;
    Ok(a.formulas.or(parts))
}

pub(crate) fn one_of(a: &mut Algebra, at: At) -> Result<Formula, SchemaError> {
    let parts = branches(a, at)?;
    Ok(a.formulas.one(parts))
}

pub(crate) fn not(a: &mut Algebra, at: At) -> Result<Formula, SchemaError> {
    let inner = a.subschema(at.value, at.scope);
    Ok(a.formulas.not(inner))
}

/// `(if and then) or (not if and else)`.
pub(crate) fn if_then_else(a: &mut Algebra, at: At) -> Result<Formula, SchemaError> {
    let condition = a.subschema(at.value, at.scope);
    let otherwise = a.formulas.not(condition);
    let mut sides = [condition, otherwise];
    for (side, keyword) in sides.iter_mut().zip(["then", "else"]) {
        if let Some(schema) = a.json.member(at.schema, keyword) {
            let consequence = a.subschema(schema, at.scope);
            *side = a.formulas.and([*side, consequence]);
        }
    }
    Ok(a.formulas.or(sides))
}
