//! `LocalRuntime`: a GGUF model on the CPU.

use crate::errors::exception;
use numpy::PyArray1;
use punchcard_local::{Error, Runtime};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A model with its tokenizer and its cache. One forward pass at a time; the GIL is free meanwhile.
#[pyclass(frozen, module = "punchcard._core")]
pub struct LocalRuntime {
    runtime: Mutex<Runtime>,
}

impl LocalRuntime {
    /// To be called without the GIL, which another thread's forward pass may be waiting for.
    fn lock(&self) -> MutexGuard<'_, Runtime> {
        self.runtime.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut Runtime) -> T + Send) -> T {
        py.detach(|| work(&mut self.lock()))
    }
}

#[pymethods]
impl LocalRuntime {
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let runtime = py.detach(|| Runtime::open(&path)).map_err(|error| convert(py, &error))?;
        Ok(Self { runtime: Mutex::new(runtime) })
    }

    #[getter]
    fn architecture(&self, py: Python<'_>) -> String {
        self.with(py, |runtime| runtime.model().config().architecture.clone())
    }

    #[getter]
    fn vocab_size(&self, py: Python<'_>) -> usize {
        self.with(py, |runtime| runtime.model().vocab_size())
    }

    #[getter]
    fn context_length(&self, py: Python<'_>) -> usize {
        self.with(py, |runtime| runtime.model().config().context_length)
    }

    #[getter]
    fn chat_template(&self, py: Python<'_>) -> Option<String> {
        self.with(py, |runtime| runtime.chat_template().map(str::to_owned))
    }

    #[getter]
    fn bos_token_id(&self, py: Python<'_>) -> Option<u32> {
        self.with(py, |runtime| runtime.bos_token_id())
    }

    #[getter]
    fn eos_token_ids(&self, py: Python<'_>) -> Vec<u32> {
        self.with(py, |runtime| runtime.eos_token_ids().to_vec())
    }

    #[getter]
    fn position(&self, py: Python<'_>) -> usize {
        self.with(py, |runtime| runtime.model().position())
    }

    /// Forgets the tokens from `position` on.
    fn rewind(&self, py: Python<'_>, position: usize) -> PyResult<()> {
        self.with(py, |runtime| runtime.model_mut().rewind(position)).map_err(|error| convert(py, &error))
    }

    /// The ids of `text`; special tokens are recognised where `parse_special`.
    fn tokenize(&self, py: Python<'_>, text: &str, parse_special: bool) -> Vec<u32> {
        self.with(py, |runtime| runtime.tokenizer().encode(text, parse_special))
    }

    /// The bytes of `ids`; special tokens are left out unless `special`.
    fn detokenize<'py>(&self, py: Python<'py>, ids: Vec<u32>, special: bool) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.with(py, |runtime| runtime.tokenizer().decode(&ids, special));
        Ok(PyBytes::new(py, &bytes.map_err(|error| convert(py, &error))?))
    }

    /// Logits after the last of `ids`, `[vocab_size]`, or after each, `[len(ids) * vocab_size]`.
    fn forward<'py>(&self, py: Python<'py>, ids: Vec<u32>, all_positions: bool) -> PyResult<Bound<'py, PyArray1<f32>>> {
        let logits = self.with(py, |runtime| runtime.model_mut().forward(&ids, all_positions));
        Ok(PyArray1::from_vec(py, logits.map_err(|error| convert(py, &error))?))
    }
}

fn convert(py: Python<'_>, error: &Error) -> PyErr {
    let (class, hint) = match error {
        Error::Malformed { .. } => ("ModelError", Some("Was the download complete? The file can be fetched anew")),
        Error::ContextLength { .. } => ("ContextLengthError", Some("Shorten the text, or rewind the model first")),
        _ => ("ModelError", None),
    };
    let fields: Vec<_> = hint.map(|hint| ("hint", hint.to_owned())).into_iter().collect();
    exception(py, class, &error.to_string(), &fields)
}
