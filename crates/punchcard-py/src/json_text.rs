//! The JSON text of plain Python data, as `json.dumps(data, ensure_ascii=False, allow_nan=False)` writes it.
//!
//! A schema is read from its text, and writing that with `json` would take a fifth of the time to the first mask. Only plain
//! data are written here; for everything else (subclasses, keys that are no text, NaN, deep or endless nesting) the answer is
//! "ask `json`", so that its conversions and its errors are the only ones.

use crate::errors::Raise;
use punchcard_schema::SchemaError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use std::collections::HashMap;

/// Deeper data are left to `json`, which knows how deep Python may go.
const MAX_DEPTH: usize = 200;

/// The JSON text of the data, of at most so many bytes; `None` if they are not plain.
#[pyfunction]
pub fn json_text(py: Python<'_>, data: &Bound<'_, PyAny>, most: usize) -> PyResult<Option<String>> {
    let mut out = Out { text: String::new(), most };
    let is_plain = write(data, MAX_DEPTH, &mut out)?;
    if out.is_full() {
        return Err(SchemaError::limit("max_bytes", most, "", "Name what comes again with $defs and $ref").raise(py));
    }
    Ok(is_plain.then_some(out.text))
}

/// Text that is written up to a limit: data in which the same part stands at many places may be endless when written out.
struct Out {
    text: String,
    most: usize,
}

impl Out {
    fn is_full(&self) -> bool {
        self.text.len() > self.most
    }
}

/// How many bytes the JSON text of the data has, more or less; `None` if there is something in them that is no JSON, or
/// they nest more deeply than Python may go. A part that stands at many places is looked at once.
#[pyfunction]
pub fn json_size(data: &Bound<'_, PyAny>) -> PyResult<Option<u64>> {
    const MAX_DEPTH: usize = 1000;
    size(data, MAX_DEPTH, &mut HashMap::new())
}

fn size(data: &Bound<'_, PyAny>, depth: usize, known: &mut HashMap<usize, u64>) -> PyResult<Option<u64>> {
    let parts: Vec<Bound<'_, PyAny>> = if let Ok(text) = data.cast::<PyString>() {
        return Ok(Some(2 + text.len()? as u64));
    } else if let Ok(members) = data.cast::<PyDict>() {
        members.iter().flat_map(|(name, value)| [name, value]).collect()
    } else if let Ok(items) = data.cast::<PyList>() {
        items.iter().collect()
    } else if let Ok(items) = data.cast::<PyTuple>() {
        items.iter().collect()
    } else {
        let is_number = data.is_instance_of::<PyInt>() || data.is_instance_of::<PyFloat>();
        return Ok((is_number || data.is_none()).then_some(4));
    };
    let address = data.as_ptr() as usize;
    if let Some(&size) = known.get(&address) {
        return Ok(Some(size));
    }
    if depth == 0 {
        return Ok(None);
    }
    let mut sum = 2u64;
    for part in parts {
        match size(&part, depth - 1, known)? {
            Some(size) => sum = sum.saturating_add(2).saturating_add(size),
            None => return Ok(None),
        }
    }
    known.insert(address, sum);
    Ok(Some(sum))
}

/// Writes the data; false if they are not plain, or do not fit.
fn write(data: &Bound<'_, PyAny>, depth: usize, to: &mut Out) -> PyResult<bool> {
    if to.is_full() {
        return Ok(false);
    }
    let out = &mut to.text;
    if let Ok(text) = data.cast_exact::<PyString>() {
        return Ok(write_string(text, out));
    }
    if let Ok(members) = data.cast_exact::<PyDict>() {
        if depth == 0 {
            return Ok(false);
        }
        out.push('{');
        for (index, (name, value)) in members.iter().enumerate() {
            let out = &mut to.text;
            if index > 0 {
                out.push_str(", ");
            }
            let Ok(name) = name.cast_exact::<PyString>() else { return Ok(false) };
            if !write_string(name, out) {
                return Ok(false);
            }
            out.push_str(": ");
            if !write(&value, depth - 1, to)? {
                return Ok(false);
            }
        }
        to.text.push('}');
        return Ok(true);
    }
    if let Ok(items) = data.cast_exact::<PyList>() {
        return write_items(items.iter(), depth, to);
    }
    if let Ok(items) = data.cast_exact::<PyTuple>() {
        return write_items(items.iter(), depth, to);
    }
    if let Ok(truth) = data.cast_exact::<PyBool>() {
        out.push_str(if truth.is_true() { "true" } else { "false" });
    } else if data.is_none() {
        out.push_str("null");
    } else if let Ok(number) = data.cast_exact::<PyInt>() {
        // Python refuses to write very long ones.
        let Ok(digits) = number.str() else { return Ok(false) };
        out.push_str(digits.to_str()?);
    } else if let Ok(number) = data.cast_exact::<PyFloat>() {
        if !number.value().is_finite() {
            return Ok(false);
        }
        out.push_str(number.repr()?.to_str()?);
    } else {
        return Ok(false);
    }
    Ok(true)
}

fn write_items<'py>(items: impl Iterator<Item = Bound<'py, PyAny>>, depth: usize, to: &mut Out) -> PyResult<bool> {
    if depth == 0 {
        return Ok(false);
    }
    to.text.push('[');
    for (index, item) in items.enumerate() {
        if index > 0 {
            to.text.push_str(", ");
        }
        if !write(&item, depth - 1, to)? {
            return Ok(false);
        }
    }
    to.text.push(']');
    Ok(true)
}

/// Writes a string in quotes; false if it has halves of surrogate pairs, which are no characters.
fn write_string(text: &Bound<'_, PyString>, out: &mut String) -> bool {
    let Ok(text) = text.to_str() else { return false };
    out.push('"');
    let is_special = |byte: u8| (byte < b' ') | (byte == b'"') | (byte == b'\\');
    // Without a way out, this is a loop over many bytes at once.
    if !text.bytes().fold(false, |found, byte| found | is_special(byte)) {
        out.push_str(text);
        out.push('"');
        return true;
    }
    let mut done = 0;
    for (at, byte) in text.bytes().enumerate().filter(|&(_, byte)| is_special(byte)) {
        out.push_str(&text[done..at]);
        done = at + 1;
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            0x08 => out.push_str("\\b"),
            0x0C => out.push_str("\\f"),
            _ => out.push_str(&format!("\\u{byte:04x}")),
        }
    }
    out.push_str(&text[done..]);
    out.push('"');
    true
}
