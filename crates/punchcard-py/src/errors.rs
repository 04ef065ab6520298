//! The one place where a Rust error becomes a Python exception of `punchcard.errors`.

use punchcard_engine::CompileError;
use punchcard_grammar::GrammarError;
use punchcard_schema::{SchemaError, SchemaErrorKind};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Fields that are numbers.
const NUMBERS: [&str; 7] = ["line", "column", "minimum", "value", "tokens", "context_length", "index"];

/// The exception `punchcard.errors.<class>`, with a message and its keyword fields.
pub fn exception(py: Python<'_>, class: &str, message: &str, fields: &[(&str, String)]) -> PyErr {
    let build = || -> PyResult<PyErr> {
        let kwargs = PyDict::new(py);
        for (name, value) in fields {
            match value.parse::<u64>() {
                Ok(number) if NUMBERS.contains(name) => kwargs.set_item(name, number)?,
                _ => kwargs.set_item(name, value)?,
            }
        }
        let class = py.import("punchcard.errors")?.getattr(class)?;
        Ok(PyErr::from_value(class.call((message,), Some(&kwargs))?))
    };
    build().unwrap_or_else(|error| error)
}

/// The exception for a refused schema.
pub fn schema_error(py: Python<'_>, error: &SchemaError) -> PyErr {
    let class = match error.kind {
        SchemaErrorKind::Invalid => "InvalidSchemaError",
        SchemaErrorKind::Unsupported => "UnsupportedSchemaError",
        SchemaErrorKind::Unsatisfiable => "UnsatisfiableSchemaError",
        SchemaErrorKind::Limit { .. } => "LimitError",
    };
    let mut fields = vec![("hint", error.hint.to_string()), ("pointer", error.pointer.clone())];
    match error.kind {
        SchemaErrorKind::Limit { limit, value } => {
            fields.push(("limit", limit.to_string()));
            fields.push(("value", value.to_string()));
        }
        _ => fields.push(("keyword", error.keyword.to_string())),
    }
    exception(py, class, &error.message, &fields)
}

/// The exception of a grammar that cannot be compiled.
pub fn compile_error(py: Python<'_>, error: &CompileError) -> PyErr {
    match error {
        CompileError::Schema(error) => schema_error(py, error),
        CompileError::Grammar(error) => grammar_error(py, error),
    }
}

/// The exception of a grammar that is malformed.
pub fn grammar_error(py: Python<'_>, error: &GrammarError) -> PyErr {
    let mut message = error.message.clone();
    let mut fields = Vec::new();
    if !error.hint.is_empty() {
        fields.push(("hint", error.hint.clone()));
    }
    if let Some(spot) = &error.spot {
        message = format!("Line {}, column {}: {message}", spot.line, spot.column);
        fields.push(("line", spot.line.to_string()));
        fields.push(("column", spot.column.to_string()));
        fields.push(("excerpt", spot.excerpt.clone()));
    }
    exception(py, "GrammarError", &message, &fields)
}
