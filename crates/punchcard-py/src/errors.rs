//! The one place where a Rust error becomes a Python exception of `punchcard.errors`.

use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The exception `punchcard.errors.<class>`, with a message and its keyword fields.
#[allow(dead_code)]
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
