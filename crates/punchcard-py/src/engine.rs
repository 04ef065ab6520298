//! Vocabularies, compiled grammars and matchers.

use crate::errors::{compile_error, exception, schema_error};
use numpy::{PyArrayMethods, PyReadwriteArray2};
use punchcard_engine::options::options_from_json;
use punchcard_engine::{
    BudgetError, CompileError, CompiledGrammar, JsonOptions, Limits, Matcher, Piece, Tokens, Vocabulary, batch,
};
use punchcard_grammar::{Expr, GrammarError};
use punchcard_schema::{Algebra, Status};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::sync::{Arc, Mutex};

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
        let mut table = Tokens::with_capacity(tokens.len()?);
        for token in tokens.try_iter()? {
            let token = token?;
            let pushed = table.push(token.cast::<PyBytes>()?.as_bytes());
            pushed.map_err(|error| exception(py, "TokenizerError", &error.0, &[]))?;
        }
        let built = py.detach(|| Vocabulary::from_tokens(table, &eos_token_ids, &special_token_ids, vocab_size));
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
    fn memory_size_bytes(&self) -> usize {
        self.0.memory_size()
    }

    #[getter]
    fn vocab_size(&self) -> usize {
        self.0.vocabulary().size()
    }

    /// The grammar as bytes, for `deserialize`.
    fn serialize<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &py.detach(|| self.0.serialize()))
    }

    /// A compiled grammar from what `serialize` made, for the same vocabulary: a `TokenizerInfo`.
    #[staticmethod]
    fn deserialize(py: Python<'_>, data: &[u8], tokenizer_info: &Bound<'_, PyAny>) -> PyResult<Self> {
        let vocabulary = tokenizer_info.getattr("vocabulary")?;
        let vocabulary = vocabulary.cast::<PyVocabulary>()?.get().0.clone();
        let compiled = py.detach(|| CompiledGrammar::deserialize(vocabulary, data));
        compiled.map(PyCompiledGrammar).map_err(|error| compile_error(py, &error))
    }

    /// The JSON form of the grammar expression.
    fn expr_json(&self, py: Python<'_>) -> String {
        py.detach(|| self.0.expr().to_json())
    }
}

/// Compiles a grammar expression, given in its JSON form, for a vocabulary.
#[pyfunction]
pub fn compile_grammar(
    py: Python<'_>,
    vocabulary: &PyVocabulary,
    expr: &str,
    limits: &str,
) -> PyResult<PyCompiledGrammar> {
    let compiled = py.detach(|| {
        let limits = read_limits(limits)?;
        CompiledGrammar::new(vocabulary.0.clone(), Expr::from_json(expr)?, &limits)
    });
    compiled.map(PyCompiledGrammar).map_err(|error| compile_error(py, &error))
}

/// Compiles a JSON Schema, given with its options as JSON text: as `compile_grammar` with the expression that holds them.
#[pyfunction]
pub fn compile_json_schema(
    py: Python<'_>,
    vocabulary: &PyVocabulary,
    schema: String,
    options: &str,
    limits: &str,
) -> PyResult<PyCompiledGrammar> {
    let compiled = py.detach(|| {
        let limits = read_limits(limits)?;
        let expr = Expr::JsonSchema { schema, options: options_from_json(options)? };
        CompiledGrammar::new(vocabulary.0.clone(), expr, &limits)
    });
    compiled.map(PyCompiledGrammar).map_err(|error| compile_error(py, &error))
}

fn read_limits(limits: &str) -> Result<Limits, CompileError> {
    let read = serde_json::from_str(limits);
    read.map_err(|error| GrammarError::new(format!("A limit is wrong: {error}")).into())
}

/// Raises an error if the options of a JSON Schema, given as JSON text, are not all right.
#[pyfunction]
pub fn check_json_options(py: Python<'_>, options: &str) -> PyResult<()> {
    read_options(options).map(|_| ()).map_err(|error| compile_error(py, &error))
}

fn read_options(options: &str) -> Result<JsonOptions, CompileError> {
    Ok(JsonOptions::from_map(&options_from_json(options)?, &Limits::default())?)
}

/// What a JSON Schema becomes, without a vocabulary; see `punchcard.report.Report`.
#[pyfunction]
pub fn report_json_schema<'py>(py: Python<'py>, schema: &str, options: &str) -> PyResult<Bound<'py, PyDict>> {
    let report = py.detach(|| {
        let options = read_options(options)?;
        let (mut algebra, root) =
            Algebra::new(schema, &options.resources, options.schema.clone(), options.limits.json(), None)?;
        Ok(algebra.report(root)?)
    });
    let report = report.map_err(|error| compile_error(py, &error))?;
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

/// A token id as Python has it: any int, or what can stand for one.
struct TokenId(u32);

impl<'a, 'py> FromPyObject<'a, 'py> for TokenId {
    type Error = PyErr;

    fn extract(object: pyo3::Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        match object.extract::<u32>() {
            Ok(id) => Ok(TokenId(id)),
            // A number that no vocabulary has is never legal, however large; what is no number is an error.
            Err(error) if error.is_instance_of::<pyo3::exceptions::PyOverflowError>(object.py()) => {
                Ok(TokenId(u32::MAX))
            }
            Err(error) => Err(error),
        }
    }
}

/// Follows one sequence of tokens through a grammar. Threads that share one take turns.
#[pyclass(name = "GrammarMatcher", module = "punchcard._core", frozen)]
pub struct PyMatcher {
    matcher: Mutex<Matcher>,
    grammar: CompiledGrammar,
    max_rollback_tokens: Option<usize>,
}

/// A row of a bitmask as the words that the engine writes.
fn row_of<'a>(
    py: Python<'_>,
    view: &'a mut numpy::ndarray::ArrayViewMut2<'_, i32>,
    index: usize,
    words: usize,
) -> PyResult<&'a mut [u32]> {
    if index >= view.nrows() || view.ncols() != words {
        let message = format!(
            "The bitmask has the shape [{}, {}]; row {index} of [batch, {words}] is needed",
            view.nrows(),
            view.ncols()
        );
        let hint = "Use punchcard.allocate_token_bitmask(batch, vocab_size)".to_string();
        return Err(exception(py, "MatcherError", &message, &[("hint", hint)]));
    }
    let (columns, start) = (view.ncols(), index * view.ncols());
    let Some(all) = view.as_slice_mut() else {
        return Err(exception(py, "MatcherError", "The rows of the bitmask are not contiguous", &[]));
    };
    // A bitmask is bits: the sign of a word means nothing.
    Ok(bytemuck::cast_slice_mut(&mut all[start..start + columns]))
}

impl PyMatcher {
    /// Whether a filled row forbids any token.
    fn forbids(&self, row: &[u32]) -> bool {
        // Nearly always one of the first words says so.
        let size = self.grammar.vocabulary().size();
        let (whole, rest) = row.split_at(size / 32);
        whole.iter().any(|&word| word != u32::MAX) || rest.iter().any(|word| word.count_ones() as usize != size % 32)
    }

    fn words(&self) -> usize {
        self.grammar.vocabulary().mask_words()
    }

    /// Runs an operation without the interpreter's lock, as another thread may be at work with the matcher or its grammar.
    fn run<T: Send>(&self, py: Python<'_>, operation: impl FnOnce(&mut Matcher) -> T + Send) -> T {
        py.detach(|| operation(&mut batch::lock(&self.matcher)))
    }

    /// Runs an operation that takes no time and needs no grammar.
    fn look<T: Send>(&self, py: Python<'_>, operation: impl FnOnce(&mut Matcher) -> T + Send) -> T {
        match self.matcher.try_lock() {
            Ok(mut matcher) => operation(&mut matcher),
            Err(_) => self.run(py, operation),
        }
    }
}

#[pymethods]
impl PyMatcher {
    #[new]
    #[pyo3(signature = (compiled_grammar, *, max_rollback_tokens = -1, token_budget = None, events = false))]
    fn new(
        py: Python<'_>,
        compiled_grammar: &PyCompiledGrammar,
        max_rollback_tokens: i64,
        token_budget: Option<&Bound<'_, PyAny>>,
        events: bool,
    ) -> PyResult<Self> {
        let token_budget = match token_budget {
            Some(budget) if budget.lt(0)? => {
                return Err(exception(py, "BudgetError", &format!("token_budget={budget} is negative"), &[]));
            }
            // What cannot be counted is as good as endless.
            Some(budget) if budget.gt(u32::MAX)? => Some(u32::MAX),
            Some(budget) => Some(budget.extract::<u32>()?),
            None => None,
        };
        let made = py.detach(|| Matcher::new(compiled_grammar.0.clone(), token_budget));
        let mut matcher = made.map_err(|error| match error {
            BudgetError::Limit(error) => schema_error(py, &error),
            BudgetError::TooSmall { minimum } => {
                let budget = token_budget.unwrap_or(0);
                let message = format!(
                    "token_budget={budget} is too small: the shortest answer that is known takes {minimum} tokens"
                );
                let fields = [("hint", format!("Allow at least {minimum}")), ("minimum", minimum.to_string())];
                exception(py, "BudgetError", &message, &fields)
            }
            BudgetError::Unknown => {
                let hint = "Leave out token_budget, or simplify the grammar".to_string();
                exception(py, "BudgetError", "No complete answer is known, so none can be promised", &[("hint", hint)])
            }
        })?;
        if events {
            py.detach(|| matcher.tell_events()).map_err(|error| compile_error(py, &error))?;
        }
        let max_rollback_tokens = usize::try_from(max_rollback_tokens).ok();
        Ok(PyMatcher { matcher: Mutex::new(matcher), grammar: compiled_grammar.0.clone(), max_rollback_tokens })
    }

    /// Writes which tokens may come next into row `index` of `bitmask`.
    #[pyo3(signature = (bitmask, index = 0))]
    fn fill_next_token_bitmask(&self, py: Python<'_>, bitmask: &Bound<'_, PyAny>, index: usize) -> PyResult<bool> {
        let mut array = writable(py, bitmask)?;
        let mut view = array.as_array_mut();
        let row = row_of(py, &mut view, index, self.words())?;
        self.run(py, |matcher| matcher.fill_mask(row)).map_err(|error| schema_error(py, &error))?;
        Ok(self.forbids(row))
    }

    /// Masks of a chain or tree of drafted tokens.
    #[pyo3(signature = (bitmask, token_ids, parents = None, index = 0))]
    fn fill_draft_bitmask(
        &self,
        py: Python<'_>,
        bitmask: &Bound<'_, PyAny>,
        token_ids: Vec<TokenId>,
        parents: Option<Vec<i64>>,
        index: usize,
    ) -> PyResult<Vec<bool>> {
        let parents = parents.unwrap_or_else(|| (-1..token_ids.len() as i64 - 1).collect());
        let wrong = |message: String| exception(py, "MatcherError", &message, &[]);
        if parents.len() != token_ids.len() {
            return Err(wrong(format!("{} parents do not fit {} tokens", parents.len(), token_ids.len())));
        }
        let mut drafted = Vec::with_capacity(token_ids.len());
        for (i, (id, &parent)) in token_ids.iter().zip(&parents).enumerate() {
            let earlier = usize::try_from(parent).ok();
            if parent < -1 || earlier.is_some_and(|parent| parent >= i) {
                return Err(wrong(format!("The parent of token {i} is {parent}; it must be an earlier token, or -1")));
            }
            drafted.push((id.0, earlier));
        }
        let mut array = writable(py, bitmask)?;
        let mut view = array.as_array_mut();
        let words = self.words();
        row_of(py, &mut view, index + token_ids.len(), words)?;
        let Some(all) = view.as_slice_mut() else { return Err(wrong("The rows are not contiguous".into())) };
        let all: &mut [u32] = bytemuck::cast_slice_mut(&mut all[index * words..]);
        let mut rows = all.chunks_exact_mut(words);
        let filled = self.run(py, |matcher| matcher.fill_draft_masks(&drafted, &mut rows));
        filled.map_err(|error| schema_error(py, &error))
    }

    /// Takes a token. False if it cannot come next; then nothing has changed.
    fn accept_token(&self, py: Python<'_>, token_id: TokenId) -> PyResult<bool> {
        self.run(py, |matcher| matcher.accept_token(token_id.0)).map_err(|error| schema_error(py, &error))
    }

    /// Takes text (str or bytes) as one step. False if it cannot come next; then nothing has changed.
    fn accept_string(&self, py: Python<'_>, text: &Bound<'_, PyAny>) -> PyResult<bool> {
        let result = match text.extract::<&[u8]>() {
            Ok(bytes) => self.run(py, |matcher| matcher.accept_bytes(bytes)),
            Err(_) => {
                let text = text.extract::<String>()?;
                self.run(py, |matcher| matcher.accept_bytes(text.as_bytes()))
            }
        };
        result.map_err(|error| schema_error(py, &error))
    }

    /// How many of the tokens, from the first on, could be taken.
    fn validate_tokens(&self, py: Python<'_>, token_ids: Vec<TokenId>) -> PyResult<usize> {
        let ids: Vec<u32> = token_ids.iter().map(|id| id.0).collect();
        self.run(py, |matcher| matcher.validate_tokens(&ids)).map_err(|error| schema_error(py, &error))
    }

    /// In how many ways the text so far can be read. Masks cost in proportion to it.
    #[getter]
    fn num_readings(&self, py: Python<'_>) -> PyResult<usize> {
        self.run(py, Matcher::readings).map_err(|error| schema_error(py, &error))
    }

    /// How many steps can be rolled back.
    #[getter]
    fn num_steps(&self, py: Python<'_>) -> usize {
        self.look(py, |matcher| matcher.steps())
    }

    /// Tokens that may still be taken under the token budget; None without one.
    #[getter]
    fn budget_left(&self, py: Python<'_>) -> Option<u32> {
        self.look(py, |matcher| matcher.budget_left())
    }

    /// The events of the text so far that are certain, from the `first` on.
    #[pyo3(signature = (first = 0))]
    fn events<'py>(&self, py: Python<'py>, first: usize) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let Some(events) = self.look(py, |matcher| matcher.events(first)) else {
            let hint = "Make the matcher with events=True".to_string();
            return Err(exception(py, "MatcherError", "This matcher tells no events", &[("hint", hint)]));
        };
        let class = py.import("punchcard.events")?.getattr("Event")?;
        let made = events.iter().map(|event| {
            let what = if event.is_end { "end" } else { "begin" };
            class.call1((&*event.kind, &*event.name, what, event.position))
        });
        made.collect()
    }

    /// Whether the text may end here.
    fn is_accepting(&self, py: Python<'_>) -> PyResult<bool> {
        self.run(py, Matcher::is_accepting).map_err(|error| schema_error(py, &error))
    }

    /// Whether an end token was taken.
    fn is_terminated(&self, py: Python<'_>) -> bool {
        self.look(py, |matcher| matcher.is_terminated())
    }

    /// Takes back the last `num_tokens` steps.
    #[pyo3(signature = (num_tokens = 1))]
    fn rollback(&self, py: Python<'_>, num_tokens: usize) -> PyResult<()> {
        if let Some(most) = self.max_rollback_tokens.filter(|&most| num_tokens > most) {
            let message = format!("Cannot roll back {num_tokens} steps: max_rollback_tokens={most}");
            return Err(exception(py, "MatcherError", &message, &[]));
        }
        let (done, steps) = self.look(py, |matcher| (matcher.rollback(num_tokens), matcher.steps()));
        if done {
            return Ok(());
        }
        let message = format!("Cannot roll back {num_tokens} steps: only {steps} were taken");
        Err(exception(py, "MatcherError", &message, &[]))
    }

    /// An independent matcher at the same place.
    fn fork(&self, py: Python<'_>) -> Self {
        let matcher = Mutex::new(self.look(py, |matcher| matcher.clone()));
        PyMatcher { matcher, grammar: self.grammar.clone(), max_rollback_tokens: self.max_rollback_tokens }
    }

    /// Back to the beginning.
    fn reset(&self, py: Python<'_>) {
        self.look(py, Matcher::reset);
    }

    /// Bytes that complete the text, a short way if not the shortest; empty if it may end here.
    fn find_completion<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let found = self.run(py, |matcher| matcher.completion()).map_err(|error| schema_error(py, &error))?;
        match found.as_deref() {
            Some([]) => Ok(PyBytes::new(py, b"")),
            Some([Piece::Bytes(bytes)]) => Ok(PyBytes::new(py, bytes)),
            Some(_) => {
                let hint = "Use find_completion_tokens()".to_string();
                Err(exception(
                    py,
                    "MatcherError",
                    "The text cannot end without tokens that are no text",
                    &[("hint", hint)],
                ))
            }
            None => Err(no_example(py)),
        }
    }

    /// Tokens that complete the text, a short way if not the shortest; none if it may end here.
    fn find_completion_tokens(&self, py: Python<'_>) -> PyResult<Vec<u32>> {
        let found = self.run(py, |matcher| matcher.completion_tokens()).map_err(|error| schema_error(py, &error))?;
        found.map(|tokens| tokens.to_vec()).ok_or_else(|| no_example(py))
    }

    /// The bytes that every text must go on with; they may end inside a character.
    fn find_jump_forward_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let forced = self.run(py, |matcher| matcher.forced()).map_err(|error| schema_error(py, &error))?;
        Ok(PyBytes::new(py, &forced))
    }

    /// The text that every text must go on with, in whole characters.
    fn find_jump_forward_string(&self, py: Python<'_>) -> PyResult<String> {
        let forced = self.run(py, |matcher| matcher.forced()).map_err(|error| schema_error(py, &error))?;
        let whole = match std::str::from_utf8(&forced) {
            Ok(text) => text,
            Err(error) => std::str::from_utf8(&forced[..error.valid_up_to()]).unwrap_or_default(),
        };
        Ok(whole.to_string())
    }

    /// Tokens of the text that every text must go on with, as far as they are settled.
    fn find_jump_forward_tokens(&self, py: Python<'_>) -> PyResult<Vec<u32>> {
        self.run(py, |matcher| matcher.forced_tokens()).map_err(|error| schema_error(py, &error))
    }
}

fn no_example(py: Python<'_>) -> PyErr {
    let hint = "Go on token by token".to_string();
    exception(py, "MatcherError", "No example of what is missing was found", &[("hint", hint)])
}

/// Fills rows of one bitmask for many matchers, on threads of its own.
#[pyclass(name = "BatchExecutor", module = "punchcard._core", frozen)]
pub struct PyBatchExecutor(rayon::ThreadPool);

#[pymethods]
impl PyBatchExecutor {
    #[new]
    fn new(py: Python<'_>, threads: usize) -> PyResult<Self> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.max(1)).build();
        pool.map(PyBatchExecutor).map_err(|error| {
            exception(py, "MatcherError", &format!("{threads} threads could not be started: {error}"), &[])
        })
    }

    #[getter]
    fn threads(&self) -> usize {
        self.0.current_num_threads()
    }

    /// Row `rows[i]` gets the mask of `matchers[i]`; a row without a matcher (None) gets all ones.
    fn fill(
        &self,
        py: Python<'_>,
        matchers: Vec<Option<Py<PyMatcher>>>,
        bitmask: &Bound<'_, PyAny>,
        rows: Vec<usize>,
    ) -> PyResult<Vec<bool>> {
        let wrong = |message: String| exception(py, "MatcherError", &message, &[]);
        if matchers.len() != rows.len() {
            return Err(wrong(format!("{} rows do not fit {} matchers", rows.len(), matchers.len())));
        }
        let mut array = writable(py, bitmask)?;
        let mut view = array.as_array_mut();
        let (count, words) = (view.nrows(), view.ncols());
        let mut places: Vec<Option<usize>> = vec![None; count];
        for (i, &row) in rows.iter().enumerate() {
            match places.get_mut(row) {
                Some(place @ None) => *place = Some(i),
                Some(_) => return Err(wrong(format!("Row {row} is given twice"))),
                None => return Err(wrong(format!("Row {row} is not among the {count} rows of the bitmask"))),
            }
            if let Some(matcher) = &matchers[i] {
                row_of(py, &mut view, row, matcher.get().words())?;
            }
        }
        let Some(all) = view.as_slice_mut() else { return Err(wrong("The rows are not contiguous".into())) };
        let all: &mut [u32] = bytemuck::cast_slice_mut(all);
        let mut work = Vec::with_capacity(matchers.len());
        for (row, place) in all.chunks_mut(words.max(1)).zip(&places) {
            match place.map(|i| &matchers[i]) {
                Some(Some(matcher)) => work.push((&matcher.get().matcher, row)),
                Some(None) => row.fill(u32::MAX),
                None => {}
            }
        }
        py.detach(|| batch::fill_masks(work, &self.0)).map_err(|error| schema_error(py, &error))?;
        let forbids = |(matcher, &row): (&Option<Py<PyMatcher>>, &usize)| {
            matcher.as_ref().is_some_and(|matcher| matcher.get().forbids(&all[row * words..(row + 1) * words]))
        };
        Ok(matchers.iter().zip(&rows).map(forbids).collect())
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
    module.add_class::<PyBatchExecutor>()?;
    module.add_function(wrap_pyfunction!(compile_grammar, module)?)?;
    module.add_function(wrap_pyfunction!(compile_json_schema, module)?)?;
    module.add_function(wrap_pyfunction!(crate::json_text::json_text, module)?)?;
    module.add_function(wrap_pyfunction!(check_json_options, module)?)?;
    module.add_function(wrap_pyfunction!(report_json_schema, module)?)?;
    Ok(())
}
