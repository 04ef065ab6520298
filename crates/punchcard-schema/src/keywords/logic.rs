//! `allOf`, `anyOf`, `oneOf`, `not`, `if` / `then` / `else`.

use crate::algebra::Algebra;
use crate::compile::At;
use crate::error::SchemaError;
use crate::formula::Formula;
use crate::json::ValueId;
use crate::keywords::closed::Role;

fn schemas(a: &Algebra, at: At) -> Result<Vec<ValueId>, SchemaError> {
    let schemas = a.list_of(at, "a list of schemas")?.to_vec();
    if schemas.is_empty() {
        return Err(a.invalid(at, "a list with at least one schema"));
    }
    Ok(schemas)
}

/// The branches of `anyOf` and `oneOf`, as descriptions of the value.
fn alternatives(a: &mut Algebra, at: At, schemas: &[ValueId], alone: bool) -> Result<Vec<Formula>, SchemaError> {
    let scopes = match at.closes {
        Some((value, list)) if value == at.value => a.beside_branches(schemas, at.scope, list, alone)?,
        _ => vec![at.scope.part(); schemas.len()],
    };
    Ok(schemas.iter().zip(scopes).map(|(&schema, scope)| a.subschema(schema, scope)).collect())
}

pub(crate) fn all_of(a: &mut Algebra, at: At) -> Result<Formula, SchemaError> {
    let schemas = schemas(a, at)?;
    let parts: Vec<Formula> = schemas.into_iter().map(|schema| a.subschema(schema, at.scope_of_part(schema))).collect();
    Ok(a.formulas.and(parts))
}

pub(crate) fn any_of(a: &mut Algebra, at: At) -> Result<Formula, SchemaError> {
    let schemas = schemas(a, at)?;
    let parts = alternatives(a, at, &schemas, false)?;
    Ok(a.formulas.or(parts))
}

pub(crate) fn one_of(a: &mut Algebra, at: At) -> Result<Formula, SchemaError> {
    let schemas = schemas(a, at)?;
    let parts: Vec<Formula> = schemas.iter().map(|&schema| a.subschema(schema, at.scope.asked())).collect();
    if at.scope.role == Role::Asked {
        return Ok(a.formulas.one(parts));
    }
    // Which branch holds is asked of the schemas as they stand; the one that does describes the value.
    let described = alternatives(a, at, &schemas, true)?;
    Ok(a.formulas.one_of(parts.into_iter().zip(described).collect()))
}

pub(crate) fn not(a: &mut Algebra, at: At) -> Result<Formula, SchemaError> {
    let inner = a.subschema(at.value, at.scope.asked());
    Ok(a.formulas.not(inner))
}

/// `(if and then) or (not if and else)`.
pub(crate) fn if_then_else(a: &mut Algebra, at: At) -> Result<Formula, SchemaError> {
    let condition = a.subschema(at.value, at.scope.asked());
    let otherwise = a.formulas.not(condition);
    let mut sides = [condition, otherwise];
    for (side, keyword) in sides.iter_mut().zip(["then", "else"]) {
        if let Some(schema) = a.json.member(at.schema, keyword) {
            let consequence = a.subschema(schema, at.scope.part());
            *side = a.formulas.and([*side, consequence]);
        }
    }
    Ok(a.formulas.or(sides))
}
