//! Objects: what a formula says of the members read so far, and of those to come.
//!
//! A formula restricted to objects is split once ([`ObjectSpec`]) into what holds of every member, found by name, and the
//! residual: what must still happen or must not happen (required members, counts, alternatives). Reading a member steps the
//! residual to its partial derivatives (as Antimirov's for regular expressions, 1996): pairs of a formula for the member's
//! value and the residual that is left. Alternatives become several pairs, so complements of values arise only where the
//! schema itself negates.

mod carry;
mod discriminate;
mod listed;
mod names;
mod propose;
mod search;
mod seen;
mod spec;
mod step;

use crate::algebra::Algebra;
use crate::error::SchemaError;
use crate::formula::{Formula, FxMap, Name};
use crate::options::PropertyOrder;
use listed::Listed;
use punchcard_automata::Language;
use seen::{SeenId, SeenSets};
use spec::NameClass;
pub use spec::ObjectSpec;
use std::sync::Arc;

/// An object that is being read, between two members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectState {
    spec: u32,
    residual: Formula,
    /// Declared names before this place are done with.
    place: u32,
    /// Names that may not come again.
    seen: SeenId,
}

/// Partial derivatives: formulas for a value, and what is left.
type Steps = Arc<[(Formula, Formula)]>;

/// One way to treat a member: a formula for its value, and what comes after it.
pub type Move = (Formula, ObjectState);

/// What was found out about objects.
#[derive(Debug, Default)]
pub struct Memory {
    seen: SeenSets,
    values: FxMap<(u32, Name), Formula>,
    moves: FxMap<(ObjectState, Name), Arc<[Move]>>,
    names: FxMap<ObjectState, Language>,
    listed: FxMap<u32, Listed>,
    /// Of usual residuals: the place of the first declared name that must come.
    first_wanted: FxMap<(u32, Formula), Option<Option<u32>>>,
    /// The names that are spoken of one by one.
    spoken_names: FxMap<u32, Language>,
    made_up: FxMap<(u32, u32), MadeUp>,
    open: FxMap<ObjectState, bool>,
    steps: FxMap<(Formula, Name), Steps>,
    touches: FxMap<(Formula, Name), bool>,
    /// The names that wide formulas speak of; `None` if these are not single names.
    spoken: FxMap<Formula, Option<Arc<FxMap<Name, ()>>>>,
    /// Objects that can be finished because all that they still want can come: up to which place of the declared names.
    /// The place of the key is 0.
    complete: FxMap<ObjectState, u32>,
    /// In how many cases the step that is being taken lies already; 0 for one.
    cases: usize,
    /// Bytes of what the tables point to.
    heap: usize,
}

/// Names of a class that were made up so far.
#[derive(Clone, Debug)]
struct MadeUp {
    names: Arc<[Name]>,
    /// The class has no others.
    is_all: bool,
    /// Where to look for a fresh one first.
    next: usize,
}

impl Memory {
    /// An estimate of the bytes on the heap.
    pub(crate) fn memory_size(&self) -> usize {
        let tables = self.values.allocation_size()
            + self.moves.allocation_size()
            + self.names.allocation_size()
            + self.listed.allocation_size()
            + self.first_wanted.allocation_size()
            + self.spoken_names.allocation_size()
            + self.made_up.allocation_size()
            + self.open.allocation_size()
            + self.steps.allocation_size()
            + self.touches.allocation_size()
            + self.spoken.allocation_size()
            + self.complete.allocation_size();
        tables + self.seen.memory_size() + self.heap
    }
}

impl ObjectState {
    /// The state, but for its residual.
    pub fn without_residual(self) -> ObjectState {
        self.with_residual(Formula::FALSE)
    }

    pub(crate) fn with_residual(self, residual: Formula) -> ObjectState {
        ObjectState { residual, ..self }
    }

    pub(crate) fn residual(self) -> Formula {
        self.residual
    }
}

impl Algebra {
    /// Interns a member name.
    pub fn name(&mut self, text: &str) -> Name {
        self.formulas.name(text)
    }

    /// What may follow in one of two states that differ in nothing but their residuals.
    pub fn join_objects(&mut self, a: ObjectState, b: ObjectState) -> ObjectState {
        ObjectState { residual: self.formulas.or([a.residual, b.residual]), ..a }
    }

    /// Whether the object may end here.
    pub fn object_may_end(&self, state: ObjectState) -> bool {
        self.formulas.holds_at_end(state.residual)
    }

    /// What every member of this name must satisfy, whatever the residual.
    fn member_value(&mut self, spec_id: u32, name: Name) -> Formula {
        if let Some(&known) = self.objects.values.get(&(spec_id, name)) {
            return known;
        }
        let spec = self.specs[spec_id as usize].clone();
        let mut parts = spec.by_name.get(&name).cloned().unwrap_or_default();
        let text = self.formulas.text_of(name);
        for pattern in &spec.by_pattern {
            if text.starts_with(&pattern.beginning) && self.languages.matches(pattern.names, text) {
                parts.push(pattern.value);
            }
        }
        let value = self.formulas.and(parts);
        self.objects.values.insert((spec_id, name), value);
        value
    }

    /// The ways to treat a member of this name, also those that cannot be finished.
    pub(crate) fn object_steps(&mut self, state: ObjectState, name: Name) -> Result<Vec<Move>, SchemaError> {
        let spec = self.specs[state.spec as usize].clone();
        let declared = self.options.property_order == PropertyOrder::Declared;
        let place = spec.place.get(&name).copied();
        let (mut residual, mut next, mut seen) = (state.residual, state.place, state.seen);
        let gone = self.has_seen(state, self.formulas.text_of(name));
        if gone || !self.languages.can_write(self.formulas.text_of(name)) {
            return Ok(Vec::new());
        }
        if declared {
            let end = place.unwrap_or(spec.order.len() as u32);
            if end < state.place {
                return Ok(Vec::new());
            }
            residual = self.without(residual, state.spec, state.place..end);
            next = if place.is_some() { end + 1 } else { end };
        }
        if place.is_none() || !declared {
            seen = self.objects.seen.with(&self.formulas, seen, name);
        }
        if residual == Formula::FALSE {
            return Ok(Vec::new());
        }
        let value = self.member_value(state.spec, name);
        if !self.touches(residual, name) {
            let moves =
                (value != Formula::FALSE).then_some((value, ObjectState { residual, place: next, seen, ..state }));
            return Ok(moves.into_iter().collect());
        }
        let mut moves = Vec::new();
        for &(part, residual) in self.step_member(residual, name)?.iter() {
            let value = self.formulas.and([value, part]);
            if value != Formula::FALSE {
                moves.push((value, ObjectState { spec: state.spec, residual, place: next, seen }));
            }
        }
        Ok(moves)
    }

    /// The ways to treat a member of this name that can be finished, in an object that can be.
    pub fn object_moves(&mut self, state: ObjectState, name: Name) -> Result<Arc<[Move]>, SchemaError> {
        if let Some(known) = self.objects.moves.get(&(state, name)) {
            return Ok(known.clone());
        }
        let mut moves = Vec::new();
        // What could be finished without a member that nothing speaks of can be finished with it.
        let touched = self.touches(state.residual, name);
        for (value, next) in self.object_steps(state, name)? {
            let as_before = !touched && next.residual == state.residual && next.place == state.place;
            self.stays_complete(state, next);
            if self.is_satisfiable(value)? && (as_before || self.object_is_viable(next)?) {
                moves.push((value, next));
            }
        }
        let moves: Arc<[Move]> = moves.into();
        if !self.search.is_running() {
            self.objects.heap += 16 + size_of_val(&*moves);
            self.objects.moves.insert((state, name), moves.clone());
        }
        Ok(moves)
    }
}
