//! The one place where a Rust error becomes a Python exception of `punchcard.errors`.

use punchcard_engine::{CompileError, VocabularyError};
use punchcard_grammar::GrammarError;
use punchcard_schema::{SchemaError, SchemaErrorKind};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::convert::Infallible;

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

/// What becomes an exception of Python.
pub trait Raise {
    /// The exception.
    fn raise(&self, py: Python<'_>) -> PyErr;
}

impl Raise for Infallible {
    fn raise(&self, _: Python<'_>) -> PyErr {
        match *self {}
    }
}

impl Raise for VocabularyError {
    fn raise(&self, py: Python<'_>) -> PyErr {
        exception(py, "TokenizerError", &self.0, &[])
    }
}

impl Raise for SchemaError {
    fn raise(&self, py: Python<'_>) -> PyErr {
        let class = match self.kind {
            SchemaErrorKind::Invalid => "InvalidSchemaError",
            SchemaErrorKind::Unsupported => "UnsupportedSchemaError",
            SchemaErrorKind::Unsatisfiable => "UnsatisfiableSchemaError",
            SchemaErrorKind::Limit { .. } => "LimitError",
            SchemaErrorKind::Cancelled => "CancelledError",
        };
        if self.kind == SchemaErrorKind::Cancelled {
            return exception(py, class, &self.message, &[]);
        }
        let mut fields = vec![("hint", self.hint.to_string()), ("pointer", self.pointer.clone())];
        match self.kind {
            SchemaErrorKind::Limit { limit, value } => {
                fields.push(("limit", limit.to_string()));
                fields.push(("value", value.to_string()));
            }
            _ => fields.push(("keyword", self.keyword.to_string())),
        }
        exception(py, class, &self.message, &fields)
    }
}
impl Raise for CompileError {
    fn raise(&self, py: Python<'_>) -> PyErr {
        match self {
            CompileError::Schema(error) => error.raise(py),
            CompileError::Grammar(error) => error.raise(py),
        }
    }
}

impl Raise for GrammarError {
    fn raise(&self, py: Python<'_>) -> PyErr {
        let mut message = self.message.clone();
        let mut fields = Vec::new();
        if !self.hint.is_empty() {
            fields.push(("hint", self.hint.clone()));
        }
        if let Some(spot) = &self.spot {
            message = format!("Line {}, column {}: {message}", spot.line, spot.column);
            fields.push(("line", spot.line.to_string()));
            fields.push(("column", spot.column.to_string()));
            fields.push(("excerpt", spot.excerpt.clone()));
        }
        exception(py, "GrammarError", &message, &fields)
    }
}
