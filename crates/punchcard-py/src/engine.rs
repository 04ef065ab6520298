//! Vocabularies and compiled grammars.

use crate::bitmask::PyBatchExecutor;
use crate::errors::{Raise, exception};
use crate::guard;
use crate::matcher::PyMatcher;
use punchcard_automata::work::{self, CancelToken};
use punchcard_engine::options::options_from_json;
use punchcard_engine::{CompileError, CompiledGrammar, JsonOptions, Limits, Tokens, Vocabulary, check};
use punchcard_grammar::{Expr, GrammarError};
use punchcard_schema::{Algebra, Status};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::sync::Arc;

/// The tokens of a model; see `punchcard.TokenizerInfo`.
#[pyclass(name = "Vocabulary", module = "punchcard._core", frozen)]
pub struct PyVocabulary(pub Arc<Vocabulary>);

#[pymethods]
impl PyVocabulary {
    #[new]
    #[pyo3(signature = (tokens, *, eos_token_ids, special_token_ids = Vec::new(), vocab_size = None))]
    fn new(
        py: Python<'_>,
        tokens: &Bound<'_, PyAny>,
        eos_token_ids: Vec<u32>,
        special_token_ids: Vec<u32>,
        vocab_size: Option<usize>,
    ) -> PyResult<Self> {
        // How long a list says to be is not believed.
        let mut table = Tokens::with_capacity(tokens.len()?.min(1 << 20));
        for token in tokens.try_iter()? {
            let token = token?;
            let pushed = table.push(token.cast::<PyBytes>()?.as_bytes());
            pushed.map_err(|error| error.raise(py))?;
        }
        let built = guard::run(py, "Reading a vocabulary", || {
            Vocabulary::from_tokens(table, &eos_token_ids, &special_token_ids, vocab_size)
        });
        Ok(PyVocabulary(Arc::new(built?)))
    }

    #[getter]
    fn vocab_size(&self) -> usize {
        self.0.size()
    }

    #[getter]
    fn eos_token_ids(&self) -> Vec<u32> {
        self.0.eos().to_vec()
    }

    #[getter]
    fn special_token_ids(&self) -> Vec<u32> {
        self.0.special().to_vec()
    }

    fn token_bytes<'py>(&self, py: Python<'py>, token_id: i64) -> PyResult<Bound<'py, PyBytes>> {
        match u32::try_from(token_id).ok().filter(|&id| (id as usize) < self.0.size()) {
            Some(id) => Ok(PyBytes::new(py, self.0.token(id).unwrap_or_default())),
            None => {
                let message = format!("Token id {token_id} is out of range for a vocabulary of {}", self.0.size());
                Err(exception(py, "TokenizerError", &message, &[]))
            }
        }
    }
}

/// A grammar compiled for a vocabulary. Immutable, and shared by any number of matchers and threads.
#[pyclass(name = "CompiledGrammar", module = "punchcard._core", frozen)]
pub struct PyCompiledGrammar(pub CompiledGrammar);

#[pymethods]
impl PyCompiledGrammar {
    /// An estimate of the bytes that the grammar and its caches hold.
    #[getter]
    fn memory_size_bytes(&self) -> usize {
        self.0.memory_size()
    }

    #[getter]
    fn vocab_size(&self) -> usize {
        self.0.vocabulary().size()
    }

    /// The grammar as bytes, for `deserialize`.
    fn serialize<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &guard::sure(py, "Serializing a grammar", || self.0.serialize())?))
    }

    /// A compiled grammar from what `serialize` made, for the same vocabulary: a `TokenizerInfo`.
    #[staticmethod]
    fn deserialize(py: Python<'_>, data: &[u8], tokenizer_info: &Bound<'_, PyAny>) -> PyResult<Self> {
        let vocabulary = tokenizer_info.getattr("vocabulary")?;
        let vocabulary = vocabulary.cast::<PyVocabulary>()?.get().0.clone();
        let compiled = guard::run(py, "Deserializing a grammar", || CompiledGrammar::deserialize(vocabulary, data));
        Ok(PyCompiledGrammar(compiled?))
    }

    /// The JSON form of the grammar expression.
    fn expr_json(&self, py: Python<'_>) -> PyResult<String> {
        guard::sure(py, "Printing a grammar", || self.0.expr().to_json())
    }
}

/// Ends compilations, and what matchers do, on other threads.
#[pyclass(name = "CancelToken", module = "punchcard._core", frozen)]
pub struct PyCancelToken(pub CancelToken);

#[pymethods]
impl PyCancelToken {
    #[new]
    fn new() -> Self {
        PyCancelToken(CancelToken::default())
    }

    /// Ends everything that has the token, now or later.
    fn cancel(&self) {
        self.0.cancel();
    }

    #[getter]
    fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }
}

/// Compiles a grammar expression, given in its JSON form, for a vocabulary.
#[pyfunction]
#[pyo3(signature = (vocabulary, expr, limits, cancel = None))]
pub fn compile_grammar(
    py: Python<'_>,
    vocabulary: &PyVocabulary,
    expr: &str,
    limits: &str,
    cancel: Option<&PyCancelToken>,
) -> PyResult<PyCompiledGrammar> {
    let cancel = cancel.map(|token| &token.0);
    let compiled = guard::run(py, "Compiling a grammar", || {
        let limits = read_limits(limits)?;
        let expr = Expr::from_json(expr)?;
        work::cancellable(cancel, || CompiledGrammar::new(vocabulary.0.clone(), expr, &limits))
    });
    Ok(PyCompiledGrammar(compiled?))
}

/// Compiles a JSON Schema, given with its options as JSON text: as `compile_grammar` with the expression that holds them.
#[pyfunction]
#[pyo3(signature = (vocabulary, schema, options, limits, cancel = None))]
pub fn compile_json_schema(
    py: Python<'_>,
    vocabulary: &PyVocabulary,
    schema: String,
    options: &str,
    limits: &str,
    cancel: Option<&PyCancelToken>,
) -> PyResult<PyCompiledGrammar> {
    let cancel = cancel.map(|token| &token.0);
    let compiled = guard::run(py, "Compiling a JSON Schema", || {
        let limits = read_limits(limits)?;
        let expr = Expr::JsonSchema { schema, options: options_from_json(options)? };
        work::cancellable(cancel, || CompiledGrammar::new(vocabulary.0.clone(), expr, &limits))
    });
    Ok(PyCompiledGrammar(compiled?))
}

fn read_limits(limits: &str) -> Result<Limits, CompileError> {
    let read = serde_json::from_str(limits);
    read.map_err(|error| GrammarError::new(format!("A limit is wrong: {error}")).into())
}

/// Raises an error if a JSON Schema or its options, given as JSON text, are malformed.
#[pyfunction]
pub fn check_json_schema(py: Python<'_>, schema: &str, options: &str) -> PyResult<()> {
    guard::run(py, "Reading a JSON Schema", || check::check_schema(schema, &options_from_json(options)?))
}

/// Raises an error if something in a grammar expression, given in its JSON form, is malformed.
#[pyfunction]
pub fn check_grammar(py: Python<'_>, expr: &str) -> PyResult<()> {
    guard::run(py, "Reading a grammar", || check::check(&Expr::from_json(expr)?))
}

fn read_options(options: &str) -> Result<JsonOptions, CompileError> {
    Ok(JsonOptions::from_map(&options_from_json(options)?, &Limits::default())?)
}

/// What a JSON Schema becomes, without a vocabulary; see `punchcard.report.Report`.
#[pyfunction]
pub fn report_json_schema<'py>(py: Python<'py>, schema: &str, options: &str) -> PyResult<Bound<'py, PyDict>> {
    let report = guard::run(py, "Reporting on a JSON Schema", || {
        let options = read_options(options)?;
        work::within(options.limits.max_work, || {
            let (mut algebra, root) =
                Algebra::new(schema, &options.resources, options.schema.clone(), options.limits.json(), None)?;
            Ok::<_, CompileError>(algebra.report(root)?)
        })
    })?;
    let entries = report.entries.into_iter().map(|entry| {
        let status = match entry.status {
            Status::Enforced => "enforced",
            Status::Annotation => "annotation",
            Status::NotEnforced => "not enforced",
        };
        (entry.pointer, entry.keyword, status, entry.became)
    });
    let out = PyDict::new(py);
    out.set_item("draft", report.draft.name())?;
    out.set_item("entries", entries.collect::<Vec<_>>())?;
    out.set_item("example", report.example)?;
    out.set_item("formulas", report.formulas)?;
    out.set_item("language_states", report.language_states)?;
    out.set_item("steps", report.steps)?;
    out.set_item("alternatives", report.alternatives)?;
    Ok(out)
}

/// Panics inside, to test what is done about that: with a matcher or a compiled grammar locked, if one is given.
#[pyfunction(name = "_fail")]
#[pyo3(signature = (target = None))]
fn fail(py: Python<'_>, target: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    const OPERATION: &str = "A test";
    let Some(target) = target else { return guard::sure(py, OPERATION, || panic!("asked to")) };
    match target.cast::<PyMatcher>() {
        Ok(matcher) => matcher.get().fail(py, OPERATION),
        Err(_) => {
            let grammar = &target.cast::<PyCompiledGrammar>()?.get().0;
            guard::sure(py, OPERATION, || grammar.fail())
        }
    }
}

/// Adds the classes and functions of this file to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyVocabulary>()?;
    module.add_class::<PyCompiledGrammar>()?;
    module.add_class::<PyCancelToken>()?;
    module.add_class::<PyMatcher>()?;
    module.add_class::<PyBatchExecutor>()?;
    module.add_function(wrap_pyfunction!(fail, module)?)?;
    module.add_function(wrap_pyfunction!(compile_grammar, module)?)?;
    module.add_function(wrap_pyfunction!(compile_json_schema, module)?)?;
    module.add_function(wrap_pyfunction!(crate::json_text::json_text, module)?)?;
    module.add_function(wrap_pyfunction!(crate::json_text::json_size, module)?)?;
    module.add_function(wrap_pyfunction!(check_json_schema, module)?)?;
    module.add_function(wrap_pyfunction!(check_grammar, module)?)?;
    module.add_function(wrap_pyfunction!(report_json_schema, module)?)?;
    Ok(())
}
