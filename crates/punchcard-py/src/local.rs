//! `LocalRuntime`: a GGUF model on the CPU, and `LocalSequence`, a text that it reads and writes.

use crate::errors::{Raise, exception};
use crate::guard::{self, Fault};
use numpy::{PyArray1, PyArray2, PyArrayMethods};
use punchcard_local::sequence::Sequence;
use punchcard_local::{Error, Runtime};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A model with its tokenizer.
#[pyclass(frozen, module = "punchcard._core")]
pub struct LocalRuntime {
    shared: Arc<Shared>,
}

struct Shared {
    runtime: Runtime,
    /// Whoever locks several sequences, or computes, holds this: so nobody waits for a sequence of somebody who waits for him,
    /// and two passes do not fight for the same processors. To be locked without the GIL.
    turn: Mutex<()>,
}

/// What a model has seen of one text.
#[pyclass(frozen, module = "punchcard._core")]
pub struct LocalSequence {
    shared: Arc<Shared>,
    /// `None` once it is closed. To be locked without the GIL, since a forward pass holds it.
    state: Mutex<Option<Sequence>>,
}

/// Whose turn it is holds nothing that a panic could damage.
fn turn(mutex: &Mutex<()>) -> MutexGuard<'_, ()> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a sequence has seen may be damaged, if a panic has come in between.
fn lock(mutex: &Mutex<Option<Sequence>>) -> Result<MutexGuard<'_, Option<Sequence>>, Failure> {
    mutex.lock().map_err(|_| Failure::Damaged)
}

/// Why something cannot be done with sequences.
enum Failure {
    Model(Error),
    Closed,
    Damaged,
    Twice { index: usize },
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Model(error)
    }
}

impl LocalSequence {
    /// Works on the sequence without the GIL.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Sequence) -> Result<T, Failure> + Send,
    ) -> PyResult<T> {
        guard::run(py, "Using a sequence", || work(lock(&self.state)?.as_mut().ok_or(Failure::Closed)?))
    }
}

#[pymethods]
impl LocalSequence {
    #[getter]
    fn position(&self, py: Python<'_>) -> PyResult<usize> {
        self.with(py, |sequence| Ok(sequence.position()))
    }

    /// Forgets the tokens from `position` on.
    fn rewind(&self, py: Python<'_>, position: usize) -> PyResult<()> {
        self.with(py, |sequence| Ok(sequence.rewind(position)?))
    }

    /// Becomes the first `length` tokens of `other`.
    fn copy_from(&self, py: Python<'_>, other: &Self, length: usize) -> PyResult<()> {
        if std::ptr::eq(self, other) {
            return self.rewind(py, length);
        }
        guard::run(py, "Copying a sequence", || {
            // Of two models, the turn of one would not keep others from locking the same pair the other way round.
            if !Arc::ptr_eq(&self.shared, &other.shared) {
                return Err(Failure::Model(Error::OtherModel));
            }
            let _turn = turn(&self.shared.turn);
            let source = lock(&other.state)?;
            let source = source.as_ref().ok_or(Failure::Closed)?;
            Ok(lock(&self.state)?.as_mut().ok_or(Failure::Closed)?.copy_from(source, length)?)
        })
    }

    /// Gives its memory back.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.state.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    #[getter]
    fn closed(&self, py: Python<'_>) -> bool {
        py.detach(|| self.state.lock().unwrap_or_else(PoisonError::into_inner).is_none())
    }
}

#[pymethods]
impl LocalRuntime {
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let runtime = guard::run(py, "Opening a model", || Runtime::open(&path).map_err(Failure::Model))?;
        Ok(Self { shared: Arc::new(Shared { runtime, turn: Mutex::new(()) }) })
    }

    #[getter]
    fn architecture(&self) -> &str {
        &self.shared.runtime.model().config().architecture
    }

    #[getter]
    fn vocab_size(&self) -> usize {
        self.shared.runtime.model().vocab_size()
    }

    #[getter]
    fn context_length(&self) -> usize {
        self.shared.runtime.model().config().context_length
    }

    #[getter]
    fn cache_bytes_per_token(&self) -> usize {
        self.shared.runtime.model().config().cache_bytes_per_token()
    }

    #[getter]
    fn chat_template(&self) -> Option<&str> {
        self.shared.runtime.chat_template()
    }

    #[getter]
    fn bos_token_id(&self) -> Option<u32> {
        self.shared.runtime.bos_token_id()
    }

    #[getter]
    fn eos_token_ids(&self) -> Vec<u32> {
        self.shared.runtime.eos_token_ids().to_vec()
    }

    /// The ids of `text`; special tokens are recognised where `parse_special`.
    fn tokenize(&self, py: Python<'_>, text: &str, parse_special: bool) -> PyResult<Vec<u32>> {
        guard::sure(py, "Tokenizing a text", || self.shared.runtime.tokenizer().encode(text, parse_special))
    }

    /// The bytes of `ids`; special tokens are left out unless `special`.
    fn detokenize<'py>(&self, py: Python<'py>, ids: Vec<u32>, special: bool) -> PyResult<Bound<'py, PyBytes>> {
        let decode = || self.shared.runtime.tokenizer().decode(&ids, special).map_err(Failure::Model);
        Ok(PyBytes::new(py, &guard::run(py, "Detokenizing", decode)?))
    }

    /// An empty sequence.
    fn sequence(&self) -> LocalSequence {
        let state = Mutex::new(Some(self.shared.runtime.model().sequence()));
        LocalSequence { shared: Arc::clone(&self.shared), state }
    }

    /// Logits after the last of `ids`, `[vocab_size]`, or after each, `[len(ids) * vocab_size]`.
    fn forward<'py>(
        &self,
        py: Python<'py>,
        sequence: &LocalSequence,
        ids: Vec<u32>,
        all_positions: bool,
    ) -> PyResult<Bound<'py, PyArray1<f32>>> {
        let logits = guard::run(py, "Computing logits", || {
            let _turn = turn(&self.shared.turn);
            let mut state = lock(&sequence.state)?;
            let sequence = state.as_mut().ok_or(Failure::Closed)?;
            Ok::<_, Failure>(self.shared.runtime.model().forward(sequence, &ids, all_positions)?)
        })?;
        Ok(PyArray1::from_vec(py, logits))
    }

    /// Logits after the last new token of each sequence, `[len(batch), vocab_size]`.
    fn forward_batch<'py>(
        &self,
        py: Python<'py>,
        batch: Vec<(PyRef<'py, LocalSequence>, Vec<u32>)>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let batch: Vec<(&LocalSequence, &[u32])> =
            batch.iter().map(|(sequence, ids)| (&**sequence, &ids[..])).collect();
        let logits = guard::run(py, "Computing logits", || self.shared.forward_batch(&batch))?;
        PyArray1::from_vec(py, logits).reshape([batch.len(), self.shared.runtime.model().vocab_size()])
    }
}

impl Shared {
    fn forward_batch(&self, batch: &[(&LocalSequence, &[u32])]) -> Result<Vec<f32>, Failure> {
        let blame = |index, error| Error::Batch { index, source: Box::new(error) };
        for (index, (sequence, _)) in batch.iter().enumerate() {
            // Locking it again would wait for itself.
            if batch[..index].iter().any(|(earlier, _)| std::ptr::eq(*earlier, *sequence)) {
                return Err(Failure::Twice { index });
            }
            if !std::ptr::eq(&*sequence.shared, self) {
                return Err(Failure::Model(blame(index, Error::OtherModel)));
            }
        }
        let _turn = turn(&self.turn);
        let mut states = batch.iter().map(|(sequence, _)| lock(&sequence.state)).collect::<Result<Vec<_>, _>>()?;
        let mut entries = Vec::with_capacity(batch.len());
        for (state, (_, ids)) in states.iter_mut().zip(batch) {
            entries.push((state.as_mut().ok_or(Failure::Closed)?, *ids));
        }
        Ok(self.runtime.model().forward_batch(&mut entries)?)
    }
}

impl Raise for Failure {
    fn raise(&self, py: Python<'_>) -> PyErr {
        let error = match self {
            Self::Model(error) => error,
            Self::Damaged => return Fault::poisoned("Using a sequence").raise(py),
            Self::Closed => {
                let hint = "Take a new one from LocalModel.sequence()";
                return exception(py, "ModelError", "the sequence is closed", &[("hint", hint.into())]);
            }
            Self::Twice { index } => {
                let message = format!("sequence {index} of the batch stands in it twice");
                let fields = [("hint", "Join its tokens into one list".into()), ("index", index.to_string())];
                return exception(py, "ModelError", &message, &fields);
            }
        };
        let (index, cause) = match error {
            Error::Batch { index, source } => (Some(index), &**source),
            alone => (None, alone),
        };
        let (class, mut fields) = match cause {
            Error::Malformed { .. } => {
                ("ModelError", vec![("hint", "Was the download complete? The file can be fetched anew".into())])
            }
            Error::ContextLength { tokens, context_length } => (
                "ContextLengthError",
                vec![
                    ("hint", "Shorten the text, or rewind the sequence first".into()),
                    ("tokens", tokens.to_string()),
                    ("context_length", context_length.to_string()),
                ],
            ),
            Error::OtherModel => {
                ("ModelError", vec![("hint", "Sequences are only for the model that made them".into())])
            }
            _ => ("ModelError", Vec::new()),
        };
        fields.extend(index.map(|index| ("index", index.to_string())));
        exception(py, class, &error.to_string(), &fields)
    }
}
