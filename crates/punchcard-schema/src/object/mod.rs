//! Objects: what a formula says of the members read so far, and of those to come.
//!
//! A formula restricted to objects is split once ([`ObjectSpec`]) into what holds of every member, found by name, and the
//! residual: what must still happen or must not happen (required members, counts, alternatives). Reading a member steps the
//! residual to its partial derivatives (as Antimirov's for regular expressions, 1996): pairs of a formula for the member's
//! value and the residual that is left. Alternatives become several pairs, so complements of values arise only where the
//! schema itself negates.

mod discriminate;
mod listed;
mod names;
mod search;
mod spec;
mod step;

use crate::algebra::Algebra;
use crate::error::SchemaError;
use crate::formula::{Formula, FxMap, Name};
use crate::options::PropertyOrder;
use listed::Listed;
use punchcard_automata::Language;
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
    /// Names that may not come again (the id of a sorted list).
    seen: u32,
}

/// Partial derivatives: formulas for a value, and what is left.
type Steps = Arc<[(Formula, Formula)]>;

/// One way to treat a member: a formula for its value, and what comes after it.
pub type Move = (Formula, ObjectState);

/// What was found out about objects.
#[derive(Debug)]
pub struct Memory {
    seen: Vec<Arc<[Name]>>,
    seen_ids: FxMap<Arc<[Name]>, u32>,
    values: FxMap<(u32, Name), Formula>,
    moves: FxMap<(ObjectState, Name), Arc<[Move]>>,
    names: FxMap<ObjectState, Language>,
    listed: FxMap<u32, Listed>,
    /// Of usual residuals: the place of the first declared name that must come.
    first_wanted: FxMap<(u32, Formula), Option<Option<u32>>>,
    special: FxMap<(u32, u32), Language>,
    open: FxMap<ObjectState, bool>,
    steps: FxMap<(Formula, Name), Steps>,
    touches: FxMap<(Formula, Name), bool>,
    /// The names that wide formulas speak of; `None` if these are not single names.
    spoken: FxMap<Formula, Option<Arc<FxMap<Name, ()>>>>,
    /// Objects that can be finished because all that they still want can come: up to which place of the declared names.
    /// The place of the key is 0.
    complete: FxMap<ObjectState, u32>,
    /// In how many cases the step that is being taken lies already.
    cases: usize,
}

impl Default for Memory {
    fn default() -> Self {
        let none: Arc<[Name]> = Arc::new([]);
        Memory {
            seen: vec![none.clone()],
            seen_ids: [(none, 0)].into_iter().collect(),
            values: FxMap::default(),
            moves: FxMap::default(),
            names: FxMap::default(),
            listed: FxMap::default(),
            first_wanted: FxMap::default(),
            special: FxMap::default(),
            open: FxMap::default(),
            steps: FxMap::default(),
            touches: FxMap::default(),
            spoken: FxMap::default(),
            complete: FxMap::default(),
            cases: 1,
        }
    }
}

impl Memory {
    pub(crate) fn memory_size(&self) -> usize {
        // Each entry with what the table needs for it.
        const SMALL: usize = 48;
        const LARGE: usize = 96;
        let small = self.values.len() + self.names.len() + self.special.len() + self.open.len() + self.touches.len();
        let large = self.moves.len() + self.steps.len() + self.complete.len();
        let seen: usize = self.seen.iter().map(|seen| 2 * (4 * seen.len() + 32)).sum();
        let moves: usize = self.moves.values().map(|moves| size_of_val(&**moves)).sum();
        let steps: usize = self.steps.values().map(|steps| size_of_val(&**steps)).sum();
        seen + moves + steps + SMALL * small + LARGE * large
    }

    fn with(&mut self, seen: u32, name: Name) -> u32 {
        let mut list = self.seen[seen as usize].to_vec();
        if let Err(at) = list.binary_search(&name) {
            list.insert(at, name);
        }
        let list: Arc<[Name]> = list.into();
        if let Some(&id) = self.seen_ids.get(&list) {
            return id;
        }
        let id = self.seen.len() as u32;
        self.seen.push(list.clone());
        self.seen_ids.insert(list, id);
        id
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
        let gone = self.objects.seen[seen as usize].binary_search(&name).is_ok();
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
            seen = self.objects.with(seen, name);
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
            self.objects.moves.insert((state, name), moves.clone());
        }
        Ok(moves)
    }
}
