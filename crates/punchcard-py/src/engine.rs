//! Vocabularies, compiled grammars and matchers for Python.

use crate::errors::{exception, schema_error};
use numpy::{PyArrayMethods, PyReadwriteArray2};
use punchcard_engine::{CompiledGrammar, JsonOptions, MachineLimits, Matcher, Vocabulary, WhiteSpace};
use punchcard_schema::draft::Draft;
use punchcard_schema::options::SchemaLimits;
use punchcard_schema::{Algebra, JsonLimits, NumberSpelling, Options, PropertyOrder, Status};
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
        tokens: Vec<Bound<'_, PyBytes>>,
        eos_token_ids: Vec<u32>,
        special_token_ids: Vec<u32>,
        vocab_size: Option<usize>,
    ) -> PyResult<Self> {
        let tokens: Vec<Box<[u8]>> = tokens.iter().map(|t| t.as_bytes().into()).collect();
        let built = py.detach(|| Vocabulary::new(tokens, &eos_token_ids, &special_token_ids, vocab_size));
        match built {
            Ok(vocabulary) => Ok(PyVocabulary(Arc::new(vocabulary))),
            Err(error) => Err(exception(py, "TokenizerError", &error.0, &[])),
        }
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
pub struct PyCompiledGrammar(CompiledGrammar);

#[pymethods]
impl PyCompiledGrammar {
    /// An estimate of the bytes that the grammar and its caches hold.
    #[getter]
    fn memory_size_bytes(&self, py: Python<'_>) -> usize {
        py.detach(|| self.0.memory_size())
    }

    #[getter]
    fn vocab_size(&self) -> usize {
        self.0.vocabulary().size()
    }
}

fn text_option<T: Copy>(py: Python<'_>, name: &str, value: &str, known: &[(&str, T)]) -> PyResult<T> {
    known.iter().find(|(text, _)| *text == value).map(|(_, option)| *option).ok_or_else(|| {
        let expected: Vec<&str> = known.iter().map(|(text, _)| *text).collect();
        let message = format!("{name}={value:?} is no option");
        let hint = format!("Expected one of {}", expected.join(", "));
        exception(py, "PunchcardError", &message, &[("hint", hint)])
    })
}

/// The options of `punchcard.Grammar.from_json_schema`, as a dict.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct PyJsonOptions {
    strict: bool,
    draft: String,
    resources: Vec<(String, String)>,
    property_order: String,
    whitespace: Option<u32>,
    outer_whitespace: bool,
    number_spelling: String,
    string_escapes: String,
    assert_formats: bool,
    on_unsupported: String,
    limits: PyLimits,
}

/// `punchcard.Limits`, as a dict.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct PyLimits {
    max_bytes: usize,
    max_depth: usize,
    max_alternatives: usize,
    max_search: usize,
    max_automaton_states: usize,
    max_automaton_work: u64,
    max_states: usize,
    max_readings: usize,
}

impl PyJsonOptions {
    fn read(self, py: Python<'_>) -> PyResult<JsonOptions> {
        let draft = Draft::from_name(&self.draft).ok_or_else(|| {
            let hint = "Expected 4, 6, 7, 2019-09, 2020-12 or the URI of one of them".to_string();
            exception(py, "PunchcardError", &format!("draft={:?} is not known", self.draft), &[("hint", hint)])
        })?;
        let orders = [("declared", PropertyOrder::Declared), ("any", PropertyOrder::Any)];
        let spellings = [("plain", NumberSpelling::Plain), ("any", NumberSpelling::Any)];
        Ok(JsonOptions {
            schema: Options {
                draft,
                strict: self.strict,
                assert_formats: self.assert_formats,
                property_order: text_option(py, "property_order", &self.property_order, &orders)?,
                number_spelling: text_option(py, "number_spelling", &self.number_spelling, &spellings)?,
                leave_out_unsupported: text_option(
                    py,
                    "on_unsupported",
                    &self.on_unsupported,
                    &[("error", false), ("report", true)],
                )?,
                limits: SchemaLimits {
                    max_alternatives: self.limits.max_alternatives,
                    max_search: self.limits.max_search,
                    max_automaton_states: self.limits.max_automaton_states,
                    max_automaton_work: self.limits.max_automaton_work,
                },
            },
            white_space: match self.whitespace {
                None => WhiteSpace::Any,
                Some(0) => WhiteSpace::None,
                Some(most) => WhiteSpace::Bounded(most - 1),
            },
            outer_white_space: self.outer_whitespace,
            any_escapes: text_option(py, "string_escapes", &self.string_escapes, &[("minimal", false), ("any", true)])?,
            resources: self.resources,
            json_limits: JsonLimits { max_depth: self.limits.max_depth, max_bytes: self.limits.max_bytes },
            machine_limits: MachineLimits {
                max_states: self.limits.max_states,
                max_readings: self.limits.max_readings,
            },
        })
    }
}

/// Compiles a JSON Schema, given as JSON text, for a vocabulary.
#[pyfunction]
pub fn compile_json_schema(
    py: Python<'_>,
    vocabulary: &PyVocabulary,
    schema: &str,
    options: PyJsonOptions,
) -> PyResult<PyCompiledGrammar> {
    let options = options.read(py)?;
    let compiled = py.detach(|| CompiledGrammar::json_schema(vocabulary.0.clone(), schema, &options));
    compiled.map(PyCompiledGrammar).map_err(|error| schema_error(py, &error))
}

/// Compiles a regular expression for a vocabulary.
#[pyfunction]
pub fn compile_regex(
    py: Python<'_>,
    vocabulary: &PyVocabulary,
    pattern: &str,
    options: PyJsonOptions,
) -> PyResult<PyCompiledGrammar> {
    let options = options.read(py)?;
    let compiled = py.detach(|| CompiledGrammar::regex(vocabulary.0.clone(), pattern, &options));
    compiled.map(PyCompiledGrammar).map_err(|error| {
        let message = format!("The regular expression {pattern:?} cannot be used: {}", error.message);
        let mut fields = vec![("column", (error.offset + 1).to_string()), ("excerpt", pattern.to_string())];
        fields.extend(error.hint.map(|hint| ("hint", hint.to_string())));
        exception(py, "GrammarError", &message, &fields)
    })
}

/// What a JSON Schema becomes, without a vocabulary; see `punchcard.report.Report`.
#[pyfunction]
pub fn report_json_schema<'py>(py: Python<'py>, schema: &str, options: PyJsonOptions) -> PyResult<Bound<'py, PyDict>> {
    let options = options.read(py)?;
    let report = py.detach(|| {
        let (mut algebra, root) =
            Algebra::new(schema, &options.resources, options.schema.clone(), options.json_limits, None)?;
        algebra.report(root)
    });
    let report = report.map_err(|error| schema_error(py, &error))?;
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

/// Follows one sequence of tokens through a grammar.
#[pyclass(name = "GrammarMatcher", module = "punchcard._core")]
pub struct PyMatcher(Matcher);

#[pymethods]
impl PyMatcher {
    #[new]
    fn new(grammar: &PyCompiledGrammar) -> Self {
        PyMatcher(Matcher::new(grammar.0.clone()))
    }

    /// Writes which tokens may come next into row `index` of `bitmask` (int32 [batch, ceil(vocab_size / 32)]; bit `id % 32`
    /// of word `id // 32` stands for token `id`). Returns whether the mask needs to be applied: False if every token is
    /// allowed.
    #[pyo3(signature = (bitmask, index = 0))]
    fn fill_next_token_bitmask(&self, py: Python<'_>, bitmask: &Bound<'_, PyAny>, index: usize) -> PyResult<bool> {
        let mut array = writable(py, bitmask)?;
        let mut view = array.as_array_mut();
        let words = self.0.grammar().vocabulary().mask_words();
        if index >= view.nrows() || view.ncols() != words {
            let message = format!(
                "The bitmask has the shape [{}, {}]; row {index} of [batch, {words}] is needed",
                view.nrows(),
                view.ncols()
            );
            let hint = "Use punchcard.allocate_token_bitmask(batch, vocab_size)".to_string();
            return Err(exception(py, "MatcherError", &message, &[("hint", hint)]));
        }
        let mut row = view.row_mut(index);
        let Some(row) = row.as_slice_mut() else {
            return Err(exception(py, "MatcherError", "The rows of the bitmask are not contiguous", &[]));
        };
        // A bitmask is bits: the sign of a word means nothing.
        let row: &mut [u32] = bytemuck::cast_slice_mut(row);
        let size = self.0.grammar().vocabulary().size();
        py.detach(|| self.0.fill_mask(row)).map_err(|error| schema_error(py, &error))?;
        Ok(row.iter().map(|w| w.count_ones() as usize).sum::<usize>() < size)
    }

    /// Takes a token. False if it cannot come next; then nothing has changed.
    fn accept_token(&mut self, py: Python<'_>, token_id: i64) -> PyResult<bool> {
        match u32::try_from(token_id) {
            Ok(id) => self.0.accept_token(id).map_err(|error| schema_error(py, &error)),
            Err(_) => Ok(false),
        }
    }

    /// Takes text (str or bytes) as one step. False if it cannot come next; then nothing has changed.
    fn accept_string(&mut self, py: Python<'_>, text: &Bound<'_, PyAny>) -> PyResult<bool> {
        let result = match text.extract::<&[u8]>() {
            Ok(bytes) => self.0.accept_bytes(bytes),
            Err(_) => self.0.accept_bytes(text.extract::<String>()?.as_bytes()),
        };
        result.map_err(|error| schema_error(py, &error))
    }

    /// In how many ways the text so far can be read. Masks cost in proportion to it.
    #[getter]
    fn num_readings(&self) -> usize {
        self.0.readings()
    }

    /// Whether the text may end here.
    fn is_accepting(&self) -> bool {
        self.0.is_accepting()
    }

    /// Whether an end token was taken.
    fn is_terminated(&self) -> bool {
        self.0.is_terminated()
    }

    /// Takes back the last `num_tokens` steps.
    fn rollback(&mut self, py: Python<'_>, num_tokens: usize) -> PyResult<()> {
        if self.0.rollback(num_tokens) {
            return Ok(());
        }
        let message = format!("Cannot roll back {num_tokens} steps: only {} were taken", self.0.steps());
        Err(exception(py, "MatcherError", &message, &[]))
    }

    /// An independent matcher at the same place.
    fn fork(&self) -> Self {
        PyMatcher(self.0.clone())
    }

    /// Back to the beginning.
    fn reset(&mut self) {
        self.0.reset();
    }

    /// Bytes that complete the text, a short way if not the shortest; empty if it may end here.
    fn find_completion<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let found = py.detach(|| self.0.completion()).map_err(|error| schema_error(py, &error))?;
        match found {
            Some(bytes) => Ok(PyBytes::new(py, &bytes)),
            None => {
                let hint = "Go on token by token".to_string();
                Err(exception(py, "MatcherError", "No example of what is missing was found", &[("hint", hint)]))
            }
        }
    }

    /// The bytes that every text must go on with; they may end inside a character.
    fn find_jump_forward_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let forced = self.0.forced().map_err(|error| schema_error(py, &error))?;
        Ok(PyBytes::new(py, &forced))
    }

    /// The text that every text must go on with, in whole characters.
    fn find_jump_forward_string(&self, py: Python<'_>) -> PyResult<String> {
        let forced = self.0.forced().map_err(|error| schema_error(py, &error))?;
        let whole = match std::str::from_utf8(&forced) {
            Ok(text) => text,
            Err(error) => std::str::from_utf8(&forced[..error.valid_up_to()]).unwrap_or_default(),
        };
        Ok(whole.to_string())
    }
}

/// The int32 array behind a numpy array or a torch tensor on the CPU.
fn writable<'py>(py: Python<'py>, bitmask: &Bound<'py, PyAny>) -> PyResult<PyReadwriteArray2<'py, i32>> {
    let wrong = |what: &str| {
        let hint = "Use punchcard.allocate_token_bitmask(batch, vocab_size)".to_string();
        exception(py, "MatcherError", what, &[("hint", hint)])
    };
    let array = match bitmask.cast::<numpy::PyArray2<i32>>() {
        Ok(array) => array.clone(),
        Err(_) => bitmask
            .call_method0("numpy")
            .ok()
            .and_then(|array| array.cast_into::<numpy::PyArray2<i32>>().ok())
            .ok_or_else(|| wrong("The bitmask is no int32 array with two dimensions"))?,
    };
    array.try_readwrite().map_err(|_| wrong("The bitmask is read-only or in use"))
}

/// Adds the classes and functions of this file to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyVocabulary>()?;
    module.add_class::<PyCompiledGrammar>()?;
    module.add_class::<PyMatcher>()?;
    module.add_function(wrap_pyfunction!(compile_json_schema, module)?)?;
    module.add_function(wrap_pyfunction!(compile_regex, module)?)?;
    module.add_function(wrap_pyfunction!(report_json_schema, module)?)?;
    Ok(())
}
