//! `minLength`, `maxLength`, `pattern`, `format`.

use crate::algebra::Algebra;
use crate::compile::At;
use crate::error::SchemaError;
use crate::formula::{Formula, Type};
use crate::json::Value;
use punchcard_automata::Language;
use punchcard_automata::languages::UNBOUNDED;

fn string_in(a: &mut Algebra, language: Language) -> Formula {
    let text = a.formulas.text(language);
    a.formulas.if_type(Type::String, text)
}

pub(crate) fn min_length(a: &mut Algebra, at: At) -> Result<Formula, SchemaError> {
    let count = a.count(at)?;
    let language = a.languages.length(count, UNBOUNDED);
    Ok(string_in(a, language))
}

pub(crate) fn max_length(a: &mut Algebra, at: At) -> Result<Formula, SchemaError> {
    let count = a.count(at)?;
    let language = a.languages.length(0, count);
    Ok(string_in(a, language))
}

pub(crate) fn pattern(a: &mut Algebra, at: At) -> Result<Formula, SchemaError> {
    let Value::String(_) = a.json.get(at.value) else { return Err(a.invalid(at, "a regular expression in a string")) };
    Err(a.unsupported(at, "Use enum, minLength or maxLength"))
}

pub(crate) fn format(a: &mut Algebra, at: At) -> Result<Formula, SchemaError> {
    let Value::String(_) = a.json.get(at.value) else { return Err(a.invalid(at, "the name of a format")) };
    Err(a.unsupported(at, "Leave the format out"))
}
