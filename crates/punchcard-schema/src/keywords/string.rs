//! `minLength`, `maxLength`, `pattern`, `format`.

use crate::algebra::Algebra;
use crate::compile::At;
use crate::error::SchemaError;
use crate::formula::{Formula, Type};
use crate::json::Value;
use punchcard_automata::languages::UNBOUNDED;
use punchcard_automata::{Language, formats, pattern};

fn string_in(a: &mut Algebra, language: Language) -> Formula {
    let text = a.formulas.text(language);
    a.formulas.if_type(Type::String, text)
}

pub(crate) fn min_length(a: &mut Algebra, at: At) -> Result<Formula, SchemaError> {
    let language = match a.count(at)? {
        Some(count) => a.languages.length(count, UNBOUNDED),
        None => Language::EMPTY,
    };
    Ok(string_in(a, language))
}

pub(crate) fn max_length(a: &mut Algebra, at: At) -> Result<Formula, SchemaError> {
    let language = a.count(at)?.map_or(Language::ALL, |count| a.languages.length(0, count));
    Ok(string_in(a, language))
}

impl Algebra {
    /// The strings in which a regular expression is found somewhere.
    pub(crate) fn pattern_language(&mut self, at: At, source: &str) -> Result<Language, SchemaError> {
        if let Some(&known) = self.patterns.get(source) {
            return Ok(known);
        }
        let parsed = pattern::parse(source, &pattern::Options::default());
        let language = parsed.and_then(|pattern| pattern.search(&mut self.languages)).map_err(|error| {
            let mut hint = error.hint.unwrap_or_else(|| "write it without this part".into()).to_string();
            if let Some(first) = hint.get_mut(..1) {
                first.make_ascii_uppercase();
            }
            let mut refusal = self.unsupported(at, &hint);
            refusal.message = format!(
                "The pattern {source:?} at '{}' cannot be used: {} (at character {})",
                refusal.pointer,
                error.message,
                error.offset + 1
            );
            refusal
        })?;
        self.languages.check_limit()?;
        self.patterns.insert(source.into(), language);
        Ok(language)
    }
}

pub(crate) fn pattern(a: &mut Algebra, at: At) -> Result<Formula, SchemaError> {
    let Value::String(source) = a.json.get(at.value) else {
        return Err(a.invalid(at, "a regular expression in a string"));
    };
    let source = source.clone();
    let language = a.pattern_language(at, &source)?;
    Ok(string_in(a, language))
}

/// An unknown format is an annotation, and so is every format if the caller says so.
pub(crate) fn format(a: &mut Algebra, at: At) -> Result<Formula, SchemaError> {
    let Value::String(name) = a.json.get(at.value) else { return Err(a.invalid(at, "the name of a format")) };
    if !a.options.assert_formats {
        return Ok(Formula::TRUE);
    }
    let name = name.clone();
    match formats::language(&name, &mut a.languages) {
        Some(language) => Ok(string_in(a, language)),
        None => Ok(Formula::TRUE),
    }
}
