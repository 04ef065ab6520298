//! Whether a formula has a value: the least fixpoint over everything that a value would need.
//!
//! A schema that needs itself without end has no finite value. So while an answer is sought, a question that is already
//! open is taken to be answered "no". "Yes" found that way is certain, and kept. "No" may rest on such an assumption: the
//! search is repeated until it finds nothing new, and then every "no" of the last round is certain too.

use crate::algebra::Algebra;
use crate::array::ArrayState;
use crate::error::SchemaError;
use crate::formula::{Formula, FxMap, Node, Type};
use crate::object::ObjectState;
use punchcard_automata::work;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Question {
    Value(Formula),
    Object(ObjectState),
    Array(ArrayState),
}

/// The memory of the search.
#[derive(Debug, Default)]
pub(crate) struct Search {
    /// Certain answers: "no", or "yes" and when it was found, later than every answer that it rests on.
    known: FxMap<Question, Option<u32>>,
    found_so_far: u32,
    /// Questions met in this round that are not answered with yes.
    open: FxMap<Question, ()>,
    running: bool,
    found: bool,
}

/// A round of the search that was interrupted by another question.
pub(crate) struct Paused {
    open: FxMap<Question, ()>,
    running: bool,
    found: bool,
}

impl Search {
    pub(crate) fn pause(&mut self) -> Paused {
        Paused {
            open: std::mem::take(&mut self.open),
            running: std::mem::take(&mut self.running),
            found: std::mem::take(&mut self.found),
        }
    }

    pub(crate) fn resume(&mut self, paused: Paused) {
        Paused { open: self.open, running: self.running, found: self.found } = paused;
    }

    /// An estimate of the bytes on the heap.
    pub(crate) fn memory_size(&self) -> usize {
        self.known.allocation_size() + self.open.allocation_size()
    }

    /// How many questions have been answered.
    pub(crate) fn answered(&self) -> usize {
        self.known.len()
    }

    /// When the question was found to be answered with yes.
    pub(crate) fn found(&self, question: Question) -> Option<u32> {
        *self.known.get(&question)?
    }

    pub(crate) fn is_running(&self) -> bool {
        self.running
    }
}

impl Algebra {
    /// Whether some value satisfies the formula.
    pub fn is_satisfiable(&mut self, f: Formula) -> Result<bool, SchemaError> {
        match f {
            Formula::FALSE => Ok(false),
            Formula::TRUE => Ok(true),
            _ => self.answer(Question::Value(f)),
        }
    }

    /// Whether some object that began like this can be finished.
    pub fn object_is_viable(&mut self, state: ObjectState) -> Result<bool, SchemaError> {
        self.answer(Question::Object(state))
    }

    /// Whether some array that began like this can be finished.
    pub fn array_is_viable(&mut self, state: ArrayState) -> Result<bool, SchemaError> {
        self.answer(Question::Array(state))
    }

    fn answer(&mut self, question: Question) -> Result<bool, SchemaError> {
        if let Some(&known) = self.search.known.get(&question) {
            return Ok(known.is_some());
        }
        if self.search.running {
            return self.attempt(question);
        }
        self.search.running = true;
        let result = self.rounds(question);
        self.search.running = false;
        self.search.open.clear();
        result
    }

    fn rounds(&mut self, question: Question) -> Result<bool, SchemaError> {
        loop {
            self.search.open.clear();
            self.search.found = false;
            if self.attempt(question)? {
                return Ok(true);
            }
            if !self.search.found {
                let open = std::mem::take(&mut self.search.open);
                self.search.known.extend(open.into_keys().map(|q| (q, None)));
                return Ok(false);
            }
        }
    }

    fn attempt(&mut self, question: Question) -> Result<bool, SchemaError> {
        if let Some(&known) = self.search.known.get(&question) {
            return Ok(known.is_some());
        }
        work::spend(1)?;
        if self.search.open.insert(question, ()).is_some() {
            return Ok(false);
        }
        if self.search.open.len() > self.options.limits.max_search {
            let limit = self.options.limits.max_search;
            return Err(SchemaError::limit("max_search", limit, "", "Simplify the schema, or raise the limit"));
        }
        let yes = stacker::maybe_grow(128 << 10, 2 << 20, || match question {
            Question::Value(f) => self.search_value(f),
            Question::Object(state) => self.search_object(state),
            Question::Array(state) => self.search_array(state),
        })?;
        if yes {
            self.search.open.remove(&question);
            self.search.found_so_far += 1;
            self.search.known.insert(question, Some(self.search.found_so_far));
            self.search.found = true;
        }
        Ok(yes)
    }

    fn search_value(&mut self, f: Formula) -> Result<bool, SchemaError> {
        // Schemas at many places that say the same are one question.
        if let &Node::Schema { at, scope } = self.formulas.node(f) {
            let body = self.compile_schema(at, scope)?;
            return self.is_satisfiable(body);
        }
        for t in [Type::Null, Type::False, Type::True] {
            if self.restrict(f, t)? != Formula::FALSE {
                return Ok(true);
            }
        }
        let texts = self.texts(f)?;
        if self.languages.is_viable(texts)? {
            return Ok(true);
        }
        let numbers = self.numbers(f)?;
        if self.languages.is_viable(numbers)? {
            return Ok(true);
        }
        let array = self.restrict(f, Type::Array)?;
        if array != Formula::FALSE && self.array_is_viable(ArrayState { residual: array, index: 0 })? {
            return Ok(true);
        }
        for state in self.object_starts(f)? {
            if self.object_is_viable(state)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
