//! `$ref`, `$dynamicRef`, `$recursiveRef`.

use crate::algebra::Algebra;
use crate::compile::At;
use crate::error::SchemaError;
use crate::formula::Formula;
use crate::json::{Value, ValueId};

impl Algebra {
    /// The schema that a reference leads to.
    pub(crate) fn target_of(&self, at: At) -> Result<ValueId, SchemaError> {
        let Value::String(text) = self.json.get(at.value) else {
            return Err(self.invalid(at, "a URI reference in a string"));
        };
        match at.keyword {
            "$recursiveRef" if &**text != "#" => Err(self.invalid(at, "\"#\"")),
            "$ref" => self.resolve_reference(at, text),
            _ => self.resolve_dynamic(at, text),
        }
    }
}

pub(crate) fn reference(a: &mut Algebra, at: At) -> Result<Formula, SchemaError> {
    let target = a.target_of(at)?;
    Ok(a.subschema(target, at.scope_of_part(at.value)))
}
