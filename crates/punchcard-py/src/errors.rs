//! The one place where a Rust error becomes a Python exception of `punchcard.errors`.

use punchcard_schema::{SchemaError, SchemaErrorKind};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The exception `punchcard.errors.<class>`, with a message and its keyword fields.
pub fn exception(py: Python<'_>, class: &str, message: &str, fields: &[(&str, String)]) -> PyErr {
    let build = || -> PyResult<PyErr> {
        let kwargs = PyDict::new(py);
        for (name, value) in fields {
            kwargs.set_item(name, value)?;
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
