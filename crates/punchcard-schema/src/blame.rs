//! Which part of a schema is to blame if no value satisfies the whole, and which of its keywords.
//!
//! A part is to blame if the whole has a value once that part is taken to admit everything. Of several the innermost is
//! named. Within it those keywords are named that have no value together, of which none can be left out.

use crate::algebra::Algebra;
use crate::error::{SchemaError, SchemaErrorKind};
use crate::example::escaped;
use crate::formula::Formula;
use crate::json::{Value, ValueId};
use crate::keywords::closed::Scope;

/// So many parts are tried, the innermost first; each costs a compilation.
const MOST_PARTS: usize = 16;

/// Of a schema with more keywords none are named.
const MOST_KEYWORDS: usize = 32;

/// Longer values are not shown.
const MOST_SHOWN: usize = 40;

impl Algebra {
    /// The error for a schema without values; `build` compiles it under an assumption, `root` is its place.
    pub(crate) fn unsatisfiable(
        &mut self,
        root: Option<(ValueId, Scope)>,
        build: impl Fn(Option<ValueId>) -> Result<(Algebra, Formula), SchemaError>,
    ) -> SchemaError {
        let part = self.culprit(build);
        let pointer = part.map(|(part, _)| self.json.pointer(part)).unwrap_or_default();
        let mut message = match pointer.as_str() {
            "" => "No value satisfies the schema".to_string(),
            _ => format!("No value satisfies the schema, as none satisfies its part at '{pointer}'"),
        };
        let mut keyword = "".into();
        let mut hint = "Look for keywords that contradict each other, or a reference that needs itself without end";
        let keywords = part.or(root).map(|(part, scope)| self.contradiction(part, scope)).unwrap_or_default();
        if let Some(last) = keywords.last() {
            let shown: Vec<String> = keywords.iter().map(|keyword| keyword.shown.clone()).collect();
            let others = &shown[..shown.len() - 1];
            message += &match others {
                [] => format!(": nothing satisfies {}", last.shown),
                _ => format!(": {} and {} contradict each other", others.join(", "), last.shown),
            };
            keyword = last.name.clone();
            if keyword.is_empty() {
                hint = "Declare the members that must come, or do without strict";
            } else if !others.is_empty() && keywords.iter().all(|keyword| keyword.is_plain) {
                hint = "Change one of these keywords";
            }
        }
        SchemaError { kind: SchemaErrorKind::Unsatisfiable, message, pointer, keyword, hint: hint.into() }
    }

    fn culprit(
        &mut self,
        build: impl Fn(Option<ValueId>) -> Result<(Algebra, Formula), SchemaError>,
    ) -> Option<(ValueId, Scope)> {
        let compiled: Vec<(ValueId, Scope, Formula)> = self.compiled.iter().map(|(&(at, s), &f)| (at, s, f)).collect();
        let mut empty: Vec<(usize, ValueId, Scope)> = Vec::new();
        for (part, scope, formula) in compiled {
            if self.is_satisfiable(formula) == Ok(false) {
                empty.push((self.json.path(part).len(), part, scope));
            }
        }
        empty.sort_unstable_by_key(|&(depth, part, scope)| (std::cmp::Reverse(depth), part, scope));
        empty.dedup_by_key(|&mut (_, part, _)| part);
        empty.into_iter().map(|(_, part, scope)| (part, scope)).take(MOST_PARTS).find(|&(part, _)| {
            build(Some(part)).is_ok_and(|(mut algebra, root)| algebra.is_satisfiable(root) == Ok(true))
        })
    }

    /// Keywords of a schema that no value satisfies together, and none of which can be left out.
    fn contradiction(&mut self, schema: ValueId, scope: Scope) -> Vec<Named> {
        let Value::Object(members) = self.json.get(schema) else { return Vec::new() };
        let members = members.clone();
        let Ok(parts) = self.compile_keywords(schema, scope) else { return Vec::new() };
        if parts.len() > MOST_KEYWORDS {
            return Vec::new();
        }
        let formulas: Vec<Formula> = parts.iter().map(|&(_, formula)| formula).collect();
        let mut needed = vec![true; parts.len()];
        for i in 0..parts.len() {
            needed[i] = false;
            let rest = formulas.iter().zip(&needed).filter(|(_, needed)| **needed).map(|(&formula, _)| formula);
            let rest = self.formulas.and(rest.collect::<Vec<_>>());
            needed[i] = self.is_satisfiable(rest) != Ok(false);
        }
        let needed = parts.into_iter().zip(needed).filter(|&(_, needed)| needed).map(|((value, _), _)| value);
        let mut named: Vec<Named> = Vec::new();
        let mut is_closed = false;
        for value in needed {
            match value.and_then(|value| members.iter().find(|member| member.1 == value)) {
                Some((name, value)) => named.push(self.named(name, *value)),
                None => is_closed = true,
            }
        }
        if is_closed {
            named.push(Named {
                name: "".into(),
                shown: "strict (no member that is not declared)".into(),
                is_plain: true,
            });
        }
        named
    }

    /// A keyword with its value, if that is short.
    fn named(&self, name: &str, value: ValueId) -> Named {
        let text = self.text_of_value(value);
        let is_plain = text.is_some();
        let shown = match text.filter(|text| text.chars().count() <= MOST_SHOWN) {
            Some(text) => format!("{name:?}: {text}"),
            None => format!("{name:?}"),
        };
        Named { name: name.into(), shown, is_plain }
    }

    /// The JSON text of a value, without objects and arrays of arrays.
    fn text_of_value(&self, value: ValueId) -> Option<String> {
        Some(match self.json.get(value) {
            Value::Null => "null".into(),
            Value::Bool(b) => b.to_string(),
            Value::Number(n) => n.to_string(),
            Value::String(text) => format!("\"{}\"", escaped(text)),
            Value::Array(items) if items.len() <= MOST_SHOWN => {
                let is_flat = |item: ValueId| !matches!(self.json.get(item), Value::Array(_));
                let texts = items.iter().map(|&item| is_flat(item).then(|| self.text_of_value(item))?);
                format!("[{}]", texts.collect::<Option<Vec<String>>>()?.join(", "))
            }
            _ => return None,
        })
    }
}

/// A keyword that is to blame.
struct Named {
    name: Box<str>,
    shown: String,
    /// No schema stands in it.
    is_plain: bool,
}
