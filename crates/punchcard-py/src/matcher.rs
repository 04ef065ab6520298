//! Matchers: one sequence each, for one thread at a time.

use crate::bitmask::{rows_of, writable};
use crate::engine::{PyCancelToken, PyCompiledGrammar};
use crate::errors::{Raise, exception};
use crate::guard::{self, Fault, guarded};
use crate::numbers::{Items, TokenId, Whole};
use punchcard_automata::work::{self, CancelToken};
use punchcard_engine::{BudgetError, CompileError, CompiledGrammar, Matcher, Piece};
use punchcard_schema::SchemaError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use std::sync::{Mutex, TryLockError};

/// Follows one sequence of tokens through a grammar.
///
/// Calls from several threads are done one after the other. A matcher is locked before its grammar, never after it, and
/// one at a time; and whoever waits for a lock has let go of Python's.
#[pyclass(name = "GrammarMatcher", module = "punchcard._core", frozen)]
pub struct PyMatcher {
    pub grammar: CompiledGrammar,
    state: Mutex<Matcher>,
    max_rollback_tokens: Option<usize>,
    cancel: Option<CancelToken>,
}

/// Why a call on a matcher failed.
pub enum Failed {
    Engine(SchemaError),
    /// The class of the error, what it says, and the hint.
    Use(&'static str, String, Option<&'static str>),
    Inside(Fault),
}

impl From<SchemaError> for Failed {
    fn from(error: SchemaError) -> Self {
        Failed::Engine(error)
    }
}

impl Raise for Failed {
    fn raise(&self, py: Python<'_>) -> PyErr {
        match self {
            Failed::Engine(error) => error.raise(py),
            Failed::Inside(fault) => fault.raise(py),
            Failed::Use(class, message, hint) => {
                let hint: Vec<_> = hint.iter().map(|hint| ("hint", hint.to_string())).collect();
                exception(py, class, message, &hint)
            }
        }
    }
}

/// Texts of tokens up to so many bytes are read with Python's lock held: letting go of it can take longer than the work.
const SHORT: usize = 64;

impl PyMatcher {
    /// Does work within the limit of one operation.
    fn bounded<T>(&self, work: impl FnOnce() -> T) -> T {
        work::cancellable(self.cancel.as_ref(), || work::within(self.grammar.limits().max_work, work))
    }

    /// Works on the matcher, in a call that is guarded.
    fn locked<T>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&mut Matcher) -> Result<T, Failed>,
    ) -> Result<T, Failed> {
        let mut state = self.state.lock().map_err(|_| Failed::Inside(Fault::poisoned(operation)))?;
        self.bounded(|| work(&mut state))
    }

    /// Works on the matcher without Python's lock.
    fn long<T: Send>(
        &self,
        py: Python<'_>,
        operation: &'static str,
        work: impl FnOnce(&mut Matcher) -> Result<T, Failed> + Send,
    ) -> PyResult<T> {
        guard::run(py, operation, || self.locked(operation, work))
    }

    /// Works on the matcher; without Python's lock if somebody else is at work on it, or on its grammar.
    fn short<T: Send>(
        &self,
        py: Python<'_>,
        operation: &'static str,
        work: impl FnOnce(&mut Matcher) -> Result<T, Failed> + Send,
    ) -> PyResult<T> {
        match self.state.try_lock() {
            Ok(mut state) if !self.grammar.is_busy() => {
                guard::raised(py, guarded(operation, move || self.bounded(|| work(&mut state))))
            }
            Err(TryLockError::Poisoned(_)) => Err(Fault::poisoned(operation).raise(py)),
            busy => {
                drop(busy);
                self.long(py, operation, work)
            }
        }
    }

    /// Fills a row, in a call that is guarded. Whether it forbids any token.
    pub fn fill_locked(&self, operation: &'static str, row: &mut [u32]) -> Result<bool, Failed> {
        // On another thread a panic would pass through everybody's rows.
        guarded(operation, || self.locked(operation, |matcher| Ok(matcher.fill_mask(row)?)))
            .map_err(Failed::Inside)
            .flatten()?;
        Ok(self.forbids(row))
    }

    /// Whether a filled row forbids any token.
    fn forbids(&self, row: &[u32]) -> bool {
        // Nearly always one of the first words says so.
        let size = self.grammar.vocabulary().size();
        let (whole, rest) = row.split_at(size / 32);
        whole.iter().any(|&word| word != u32::MAX) || rest.iter().any(|word| word.count_ones() as usize != size % 32)
    }

    /// Words in a row of the bitmask.
    pub fn words(&self) -> usize {
        self.grammar.vocabulary().mask_words()
    }

    /// Panics with the matcher locked, to test what is done about that.
    pub fn fail(&self, py: Python<'_>, operation: &'static str) -> PyResult<()> {
        self.long(py, operation, |_| panic!("asked to"))
    }
}

#[pymethods]
impl PyMatcher {
    #[new]
    #[pyo3(signature = (compiled_grammar, *, max_rollback_tokens = Whole(-1), token_budget = None, events = false, cancel = None))]
    fn new(
        py: Python<'_>,
        compiled_grammar: &PyCompiledGrammar,
        max_rollback_tokens: Whole,
        token_budget: Option<Whole>,
        events: bool,
        cancel: Option<&PyCancelToken>,
    ) -> PyResult<Self> {
        let budget = match token_budget {
            Some(Whole(budget)) if budget < 0 => {
                return Err(exception(py, "BudgetError", &format!("token_budget={budget} is negative"), &[]));
            }
            // What cannot be counted is as good as endless.
            Some(Whole(budget)) => Some(u32::try_from(budget).unwrap_or(u32::MAX)),
            None => None,
        };
        let grammar = &compiled_grammar.0;
        let cancel = cancel.map(|token| token.0.clone());
        let make = || {
            let mut matcher = Matcher::new(grammar.clone(), budget).map_err(|error| Unmade::Budget(error, budget))?;
            if events {
                matcher.tell_events().map_err(Unmade::Events)?;
            }
            Ok::<Matcher, Unmade>(matcher)
        };
        let matcher = guard::run(py, "Making a matcher", || {
            work::cancellable(cancel.as_ref(), || work::within(grammar.limits().max_work, make))
        })?;
        let max_rollback_tokens = max_rollback_tokens.index();
        Ok(PyMatcher { grammar: grammar.clone(), state: Mutex::new(matcher), max_rollback_tokens, cancel })
    }

    /// Writes which tokens may come next into row `index` of `bitmask`.
    #[pyo3(signature = (bitmask, index = Whole(0)))]
    fn fill_next_token_bitmask(&self, py: Python<'_>, bitmask: &Bound<'_, PyAny>, index: Whole) -> PyResult<bool> {
        let mut array = writable(py, bitmask)?;
        let row = rows_of(py, &mut array, index, 1, self.words())?;
        self.long(py, "Filling a mask", |matcher| Ok(matcher.fill_mask(row)?))?;
        Ok(self.forbids(row))
    }

    /// Masks of a chain or tree of drafted tokens.
    #[pyo3(signature = (bitmask, token_ids, parents = None, index = Whole(0)))]
    fn fill_draft_bitmask(
        &self,
        py: Python<'_>,
        bitmask: &Bound<'_, PyAny>,
        token_ids: Items<TokenId>,
        parents: Option<Items<Whole>>,
        index: Whole,
    ) -> PyResult<Vec<bool>> {
        let ids = token_ids.0;
        let parents = parents.map_or_else(|| (-1..ids.len() as i64 - 1).map(Whole).collect(), |parents| parents.0);
        let wrong = |message: String| exception(py, "MatcherError", &message, &[]);
        if parents.len() != ids.len() {
            return Err(wrong(format!("{} parents do not fit {} tokens", parents.len(), ids.len())));
        }
        let mut drafted = Vec::with_capacity(ids.len());
        for (i, (id, parent)) in ids.iter().zip(&parents).enumerate() {
            let earlier = parent.index();
            if parent.0 < -1 || earlier.is_some_and(|parent| parent >= i) {
                let parent = parent.0;
                return Err(wrong(format!("The parent of token {i} is {parent}; it must be an earlier token, or -1")));
            }
            drafted.push((id.0, earlier));
        }
        let mut array = writable(py, bitmask)?;
        let words = self.words();
        let all = rows_of(py, &mut array, index, ids.len() + 1, words)?;
        let mut rows = all.chunks_exact_mut(words);
        self.long(py, "Filling masks of drafted tokens", |matcher| Ok(matcher.fill_draft_masks(&drafted, &mut rows)?))
    }

    /// Takes a token. False if it cannot come next; then nothing has changed.
    fn accept_token(&self, py: Python<'_>, token_id: TokenId) -> PyResult<bool> {
        let operation = "Taking a token";
        let accept = |matcher: &mut Matcher| Ok(matcher.accept_token(token_id.0)?);
        match self.grammar.vocabulary().token(token_id.0) {
            Some(text) if text.len() > SHORT => self.long(py, operation, accept),
            _ => self.short(py, operation, accept),
        }
    }

    /// Takes text (str or bytes) as one step. False if it cannot come next; then nothing has changed.
    fn accept_string(&self, py: Python<'_>, text: &Bound<'_, PyAny>) -> PyResult<bool> {
        let operation = "Taking a text";
        let bytes = match text.cast::<PyString>() {
            Ok(text) => match text.to_str() {
                Ok(text) => text.as_bytes(),
                // Half of a surrogate pair is no character, so no text has it.
                Err(_) => return Ok(false),
            },
            Err(_) => text.extract::<&[u8]>()?,
        };
        let accept = |matcher: &mut Matcher| Ok(matcher.accept_bytes(bytes)?);
        if bytes.len() > SHORT { self.long(py, operation, accept) } else { self.short(py, operation, accept) }
    }

    /// How many of the tokens, from the first on, could be taken one after the other. Nothing changes.
    fn validate_tokens(&self, py: Python<'_>, token_ids: Items<TokenId>) -> PyResult<usize> {
        let ids: Vec<u32> = token_ids.0.iter().map(|id| id.0).collect();
        self.long(py, "Looking at tokens", |matcher| Ok(matcher.validate_tokens(&ids)?))
    }

    /// In how many ways the text so far can be read. Masks cost in proportion to it.
    #[getter]
    fn num_readings(&self, py: Python<'_>) -> PyResult<usize> {
        self.short(py, "Counting readings", |matcher| Ok(matcher.readings()?))
    }

    /// How many steps can be rolled back.
    #[getter]
    fn num_steps(&self, py: Python<'_>) -> PyResult<usize> {
        self.short(py, "Counting steps", |matcher| Ok(matcher.steps()))
    }

    /// Tokens that may still be taken under the token budget; None without one.
    #[getter]
    fn budget_left(&self, py: Python<'_>) -> PyResult<Option<u32>> {
        self.short(py, "Counting the budget", |matcher| Ok(matcher.budget_left()))
    }

    /// The events of the text so far that are certain, from the `first` on.
    #[pyo3(signature = (first = Whole(0)))]
    fn events<'py>(&self, py: Python<'py>, first: Whole) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let Some(first) = first.index() else {
            return Err(exception(py, "MatcherError", &format!("first={} is negative", first.0), &[]));
        };
        let events = self.long(py, "Telling events", |matcher| {
            let untold = || not_possible("This matcher tells no events", "Make the matcher with events=True");
            matcher.events(first).ok_or_else(untold)
        })?;
        let class = py.import("punchcard.events")?.getattr("Event")?;
        let made = events.iter().map(|event| {
            let what = if event.is_end { "end" } else { "begin" };
            class.call1((&*event.kind, &*event.name, what, event.position))
        });
        made.collect()
    }

    /// Whether the text may end here.
    fn is_accepting(&self, py: Python<'_>) -> PyResult<bool> {
        self.short(py, "Asking whether a text may end", |matcher| Ok(matcher.is_accepting()?))
    }

    /// Whether an end token was taken.
    fn is_terminated(&self, py: Python<'_>) -> PyResult<bool> {
        self.short(py, "Asking whether a text has ended", |matcher| Ok(matcher.is_terminated()))
    }

    /// Takes back the last `num_tokens` steps.
    #[pyo3(signature = (num_tokens = Whole(1)))]
    fn rollback(&self, py: Python<'_>, num_tokens: Whole) -> PyResult<()> {
        let asked = num_tokens.0;
        let refuse = |why: String| Failed::Use("MatcherError", format!("Cannot roll back {asked} steps: {why}"), None);
        self.short(py, "Rolling back", |matcher| {
            let Some(count) = num_tokens.index() else { return Err(refuse("the number is negative".into())) };
            if let Some(most) = self.max_rollback_tokens.filter(|&most| count > most) {
                return Err(refuse(format!("max_rollback_tokens={most}")));
            }
            if !matcher.rollback(count) {
                return Err(refuse(format!("only {} were taken", matcher.steps())));
            }
            Ok(())
        })
    }

    /// An independent matcher at the same place.
    fn fork(&self, py: Python<'_>) -> PyResult<Self> {
        let matcher = self.short(py, "Forking a matcher", |matcher| Ok(matcher.clone()))?;
        Ok(PyMatcher {
            grammar: self.grammar.clone(),
            state: Mutex::new(matcher),
            max_rollback_tokens: self.max_rollback_tokens,
            cancel: self.cancel.clone(),
        })
    }

    /// Back to the beginning.
    fn reset(&self, py: Python<'_>) -> PyResult<()> {
        self.short(py, "Resetting a matcher", |matcher| {
            matcher.reset();
            Ok(())
        })
    }

    /// Bytes that complete the text, a short way if not the shortest; empty if it may end here.
    fn find_completion<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let found = self.long(py, "Finding a completion", |matcher| Ok(matcher.completion()?))?;
        let failed = match found.as_deref() {
            Some([]) => return Ok(PyBytes::new(py, b"")),
            Some([Piece::Bytes(bytes)]) => return Ok(PyBytes::new(py, bytes)),
            Some(_) => {
                let message = "The text cannot end without tokens that are no text";
                not_possible(message, "Use find_completion_tokens()")
            }
            None => no_example(),
        };
        Err(failed.raise(py))
    }

    /// Tokens that complete the text, a short way if not the shortest; none if it may end here.
    fn find_completion_tokens(&self, py: Python<'_>) -> PyResult<Vec<u32>> {
        self.long(py, "Finding a completion", |matcher| {
            let found = matcher.completion_tokens()?;
            found.map(|tokens| tokens.to_vec()).ok_or_else(no_example)
        })
    }

    /// The bytes that every text must go on with; they may end inside a character.
    fn find_jump_forward_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let forced = self.long(py, "Finding forced text", |matcher| Ok(matcher.forced()?))?;
        Ok(PyBytes::new(py, &forced))
    }

    /// The text that every text must go on with, in whole characters.
    fn find_jump_forward_string(&self, py: Python<'_>) -> PyResult<String> {
        self.long(py, "Finding forced text", |matcher| {
            let forced = matcher.forced()?;
            let whole = match std::str::from_utf8(&forced) {
                Ok(text) => text,
                Err(error) => std::str::from_utf8(&forced[..error.valid_up_to()]).unwrap_or_default(),
            };
            Ok(whole.to_string())
        })
    }

    /// Tokens of the text that every text must go on with, as far as they are settled.
    fn find_jump_forward_tokens(&self, py: Python<'_>) -> PyResult<Vec<u32>> {
        self.long(py, "Finding forced text", |matcher| Ok(matcher.forced_tokens()?))
    }
}

fn not_possible(message: &str, hint: &'static str) -> Failed {
    Failed::Use("MatcherError", message.to_string(), Some(hint))
}

fn no_example() -> Failed {
    not_possible("No example of what is missing was found", "Go on token by token")
}

/// Why a matcher could not be made.
enum Unmade {
    /// With the budget that was asked for.
    Budget(BudgetError, Option<u32>),
    Events(CompileError),
}

impl Raise for Unmade {
    fn raise(&self, py: Python<'_>) -> PyErr {
        match self {
            Unmade::Events(error) => error.raise(py),
            Unmade::Budget(BudgetError::Limit(error), _) => error.raise(py),
            Unmade::Budget(BudgetError::TooSmall { minimum }, budget) => {
                let budget = budget.unwrap_or(0);
                let message = format!(
                    "token_budget={budget} is too small: the shortest answer that is known takes {minimum} tokens"
                );
                let fields = [("hint", format!("Allow at least {minimum}")), ("minimum", minimum.to_string())];
                exception(py, "BudgetError", &message, &fields)
            }
            Unmade::Budget(BudgetError::Unknown, _) => {
                let hint = "Leave out token_budget, or simplify the grammar".to_string();
                exception(py, "BudgetError", "No complete answer is known, so none can be promised", &[("hint", hint)])
            }
        }
    }
}
