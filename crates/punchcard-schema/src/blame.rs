//! Which part of a schema is to blame if no value satisfies the whole.
//!
//! A part is, if the whole has a value once that part is taken to admit everything. Of several the innermost is named.

use crate::algebra::Algebra;
use crate::error::{SchemaError, SchemaErrorKind};
use crate::formula::Formula;
use crate::json::ValueId;

/// So many parts are tried, the innermost first; each costs a compilation.
const MOST_PARTS: usize = 16;

impl Algebra {
    /// The error for a schema without values; `build` compiles it under an assumption.
    pub(crate) fn unsatisfiable(
        &mut self,
        build: impl Fn(Option<ValueId>) -> Result<(Algebra, Formula), SchemaError>,
    ) -> SchemaError {
        let pointer = self.culprit(build).map(|part| self.json.pointer(part)).unwrap_or_default();
        let message = match pointer.as_str() {
            "" => "No value satisfies the schema".to_string(),
            _ => format!("No value satisfies the schema, as none satisfies its part at '{pointer}'"),
        };
        let hint = "Look for keywords that contradict each other, or a reference that needs itself without end";
        SchemaError { kind: SchemaErrorKind::Unsatisfiable, message, pointer, keyword: "".into(), hint: hint.into() }
    }

    fn culprit(
        &mut self,
        build: impl Fn(Option<ValueId>) -> Result<(Algebra, Formula), SchemaError>,
    ) -> Option<ValueId> {
        let compiled: Vec<(ValueId, Formula)> = self.compiled.iter().map(|(&(at, _), &f)| (at, f)).collect();
        let mut empty: Vec<(usize, ValueId)> = Vec::new();
        for (part, formula) in compiled {
            if self.is_satisfiable(formula) == Ok(false) {
                empty.push((self.json.path(part).len(), part));
            }
        }
        empty.sort_unstable_by_key(|&(depth, part)| (std::cmp::Reverse(depth), part));
        empty.dedup();
        empty
            .into_iter()
            .map(|(_, part)| part)
            .take(MOST_PARTS)
            .find(|&part| build(Some(part)).is_ok_and(|(mut algebra, root)| algebra.is_satisfiable(root) == Ok(true)))
    }
}
