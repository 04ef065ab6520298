//! `minimum`, `maximum`, `exclusiveMinimum`, `exclusiveMaximum`, `multipleOf`.

use crate::algebra::Algebra;
use crate::compile::At;
use crate::draft::Draft;
use crate::error::SchemaError;
use crate::formula::{Formula, NumberAtom, Type};
use crate::json::Value;
use punchcard_automata::Decimal;

fn bound(a: &Algebra, at: At) -> Result<Decimal, SchemaError> {
    match a.json.get(at.value) {
        Value::Number(n) => Ok(n.clone()),
        _ => Err(a.invalid(at, "a number")),
    }
}

/// In draft 4 the exclusive keywords are booleans that sharpen the bound beside them.
fn sharpened(a: &Algebra, at: At, keyword: &str) -> bool {
    at.draft == Draft::V4 && matches!(a.json.member(at.schema, keyword).map(|v| a.json.get(v)), Some(Value::Bool(true)))
}

fn limit(a: &mut Algebra, atom: NumberAtom, holds_beyond: bool) -> Formula {
    let beyond = a.formulas.number(atom);
    let f = if holds_beyond { beyond } else { a.formulas.not(beyond) };
    a.formulas.if_type(Type::Number, f)
}

pub(crate) fn minimum(a: &mut Algebra, at: At) -> Result<Formula, SchemaError> {
    let bound = bound(a, at)?;
    if sharpened(a, at, "exclusiveMinimum") {
        return Ok(limit(a, NumberAtom::Above(bound), true));
    }
    Ok(limit(a, NumberAtom::Below(bound), false))
}

pub(crate) fn maximum(a: &mut Algebra, at: At) -> Result<Formula, SchemaError> {
    let bound = bound(a, at)?;
    if sharpened(a, at, "exclusiveMaximum") {
        return Ok(limit(a, NumberAtom::Below(bound), true));
    }
    Ok(limit(a, NumberAtom::Above(bound), false))
}

pub(crate) fn exclusive_minimum(a: &mut Algebra, at: At) -> Result<Formula, SchemaError> {
    let bound = bound(a, at)?;
    Ok(limit(a, NumberAtom::Above(bound), true))
}

pub(crate) fn exclusive_maximum(a: &mut Algebra, at: At) -> Result<Formula, SchemaError> {
    let bound = bound(a, at)?;
    Ok(limit(a, NumberAtom::Below(bound), true))
}

pub(crate) fn multiple_of(a: &mut Algebra, at: At) -> Result<Formula, SchemaError> {
    let unit = bound(a, at)?;
    if unit.is_negative() || unit.is_zero() {
        return Err(a.invalid(at, "a number above zero"));
    }
    Ok(limit(a, NumberAtom::Multiple(unit), true))
}
