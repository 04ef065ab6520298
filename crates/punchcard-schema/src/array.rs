//! Arrays: what a formula says of the items read so far, and of those to come.
//!
//! As for objects, reading an item steps the residual formula to its partial derivatives. Positions in the formula are
//! absolute; the index saturates where no range begins or ends any more, so that long arrays come back to the same state.

use crate::algebra::Algebra;
use crate::error::SchemaError;
use crate::formula::{Formula, FxMap, NO_END, Node, Type};

/// An array that is being read, between two items.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ArrayState {
    pub(crate) residual: Formula,
    pub(crate) index: u32,
}

/// What was found out about arrays.
#[derive(Debug, Default)]
pub struct Memory {
    bounds: FxMap<Formula, u32>,
    moves: FxMap<ArrayState, Vec<(Formula, ArrayState)>>,
    /// Whether formulas speak of equal items.
    pub(crate) compares: FxMap<Formula, bool>,
    /// Bytes of what the tables point to.
    heap: usize,
}

impl Memory {
    /// An estimate of the bytes on the heap.
    pub(crate) fn memory_size(&self) -> usize {
        let tables = self.bounds.allocation_size() + self.moves.allocation_size() + self.compares.allocation_size();
        tables + self.heap
    }
}

/// Past the last bound, with nothing but universal statements, counts and wanted items, every item is like every other.
pub(crate) struct Steady {
    /// What every item satisfies.
    pub(crate) every: Formula,
    /// Items that are wanted, and how many.
    pub(crate) wanted: Vec<(Formula, u32)>,
    pub(crate) least: u32,
    pub(crate) most: u32,
}

impl Steady {
    /// How many items are wanted, each taken for itself.
    pub(crate) fn sum(&self) -> u32 {
        self.wanted.iter().fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }

    /// Items that make the array complete, each wish met by an item of its own; `None` if there is no room for that.
    pub(crate) fn to_come(&self) -> Option<Vec<(Formula, u32)>> {
        if self.sum().max(self.least) > self.most {
            return None;
        }
        let mut items = self.wanted.clone();
        let more = self.least.saturating_sub(self.sum());
        items.extend((more > 0).then_some((self.every, more)));
        Some(items)
    }
}

impl ArrayState {
    /// The state, but for its residual.
    pub fn without_residual(self) -> ArrayState {
        ArrayState { residual: Formula::FALSE, ..self }
    }
}

impl Algebra {
    /// What may follow in one of two states that differ in nothing but their residuals.
    pub fn join_arrays(&mut self, a: ArrayState, b: ArrayState) -> ArrayState {
        ArrayState { residual: self.formulas.or([a.residual, b.residual]), ..a }
    }

    /// Whether the array may end here.
    pub fn array_may_end(&self, state: ArrayState) -> bool {
        self.formulas.holds_at_end(state.residual)
    }

    /// The last position at which a range of the formula begins or ends.
    fn last_bound(&mut self, f: Formula) -> u32 {
        if let Some(&known) = self.arrays.bounds.get(&f) {
            return known;
        }
        let bound = match self.formulas.node(f) {
            Node::Item { from, to, .. } => (*from).max(if *to == NO_END { 0 } else { *to }),
            Node::Not(inner) => {
                let inner = *inner;
                self.last_bound(inner)
            }
            Node::And(items) | Node::Or(items) => {
                let items = items.clone();
                items.iter().map(|&i| self.last_bound(i)).max().unwrap_or(0)
            }
            _ => 0,
        };
        self.arrays.bounds.insert(f, bound);
        bound
    }

    pub(crate) fn array_steps(&mut self, state: ArrayState) -> Result<Vec<(Formula, ArrayState)>, SchemaError> {
        let steps = self.step_item(state.residual, state.index)?;
        Ok(steps
            .into_iter()
            .map(|(value, residual)| {
                let index = (state.index + 1).min(self.last_bound(residual));
                (value, ArrayState { residual, index })
            })
            .collect())
    }

    /// The ways to treat the next item that can be finished: a formula for it, and what comes after it.
    pub fn array_moves(&mut self, state: ArrayState) -> Result<Vec<(Formula, ArrayState)>, SchemaError> {
        if let Some(known) = self.arrays.moves.get(&state) {
            return Ok(known.clone());
        }
        let mut moves = Vec::new();
        for (mut value, next) in self.array_steps(state)? {
            let viable = if self.compares_items(next.residual) {
                let allowed = self.items_that_leave_a_way(next)?;
                value = self.formulas.and([value, allowed]);
                true
            } else {
                self.array_is_viable(next)?
            };
            if viable && self.is_satisfiable(value)? {
                moves.push((value, next));
            }
        }
        if !self.search.is_running() {
            self.arrays.heap += moves.capacity() * size_of::<(Formula, ArrayState)>();
            self.arrays.moves.insert(state, moves.clone());
        }
        Ok(moves)
    }

    /// Partial derivatives of a residual by an item at `index`.
    fn step_item(&mut self, f: Formula, index: u32) -> Result<Vec<(Formula, Formula)>, SchemaError> {
        match *self.formulas.node(f) {
            Node::Item { from, to, value, count } => {
                if index >= to {
                    return Ok(Vec::new());
                }
                if index < from {
                    return Ok(vec![(Formula::TRUE, f)]);
                }
                let less = if count == 1 { Formula::TRUE } else { self.formulas.item(from, to, value, count - 1) };
                let mut out = vec![(value, less)];
                if value != Formula::TRUE {
                    out.push((self.others(value), f));
                }
                Ok(out)
            }
            Node::Among(_, ref list) => {
                let list = list.clone();
                Ok(self.step_constants(Type::Array, &list, |c, of| c.first_item(of)).0)
            }
            // A fresh item stays unequal to those before; what it is itself is noted when it has been read.
            Node::Repeats(ref list) => {
                let list = list.clone();
                let known = self.equal_to(&list);
                let fresh = self.formulas.not(known);
                Ok(self.merge_steps(vec![(known, Formula::TRUE), (fresh, f)]))
            }
            Node::Not(inner) => match *self.formulas.node(inner) {
                Node::Among(_, ref list) => {
                    let list = list.clone();
                    let steps = self.step_constants(Type::Array, &list, |c, of| c.first_item(of));
                    Ok(self.unlike(steps))
                }
                Node::Repeats(ref list) => {
                    let list = list.clone();
                    let known = self.equal_to(&list);
                    Ok(vec![(self.formulas.not(known), f)])
                }
                Node::Item { from, to, value, count } => {
                    if index >= to {
                        return Ok(vec![(Formula::TRUE, Formula::TRUE)]);
                    }
                    if index < from {
                        return Ok(vec![(Formula::TRUE, f)]);
                    }
                    let outside = self.formulas.not(value);
                    let mut out = vec![(outside, f)];
                    if count > 1 {
                        let less = self.formulas.item(from, to, value, count - 1);
                        let any = self.flat(value).unwrap_or(Formula::TRUE);
                        out.push((any, self.formulas.not(less)));
                    }
                    Ok(self.merge_steps(out))
                }
                _ => Ok(vec![(Formula::TRUE, f)]),
            },
            Node::And(ref items) => {
                let items = items.clone();
                // What has one step only is put together at once: a thousand positions would make a thousand conjunctions.
                let (mut values, mut rests, mut choices) = (Vec::new(), Vec::new(), Vec::new());
                for &item in items.iter() {
                    let steps = self.step_item(item, index)?;
                    match *steps.as_slice() {
                        [(value, rest)] => {
                            values.push(value);
                            rests.push(rest);
                        }
                        _ => choices.push(steps),
                    }
                }
                let (value, rest) = (self.formulas.and(values), self.formulas.and(rests));
                let mut product = self.merge_steps(vec![(value, rest)]);
                for steps in choices {
                    product = self.cross(product, &steps)?;
                }
                Ok(product)
            }
            Node::Or(ref items) => {
                let items = items.clone();
                let mut out = Vec::new();
                for &item in items.iter() {
                    out.extend(self.step_item(item, index)?);
                }
                Ok(self.alternatives(out))
            }
            _ => Ok(vec![(Formula::TRUE, f)]),
        }
    }

    /// Whether some array that began like this can be finished. Called by the search only.
    pub(crate) fn search_array(&mut self, state: ArrayState) -> Result<bool, SchemaError> {
        if state.residual == Formula::FALSE {
            return Ok(false);
        }
        if self.array_may_end(state) {
            return Ok(true);
        }
        if let Node::Or(items) = self.formulas.node(state.residual) {
            for residual in items.clone() {
                if self.array_is_viable(ArrayState { residual, ..state })? {
                    return Ok(true);
                }
            }
            return Ok(false);
        }
        if self.compares_items(state.residual) {
            return self.search_compared(state);
        }
        if let Some(items) = self.by_position(state) {
            for (value, _) in items {
                if !self.is_satisfiable(value)? {
                    return Ok(false);
                }
            }
            return Ok(true);
        }
        if let Some(steady) = self.steady(state) {
            if !self.is_satisfiable(steady.every)? || steady.least > steady.most {
                return Ok(false);
            }
            for &(value, _) in &steady.wanted {
                if !self.is_satisfiable(value)? {
                    return Ok(false);
                }
            }
            // One item may serve several wishes: only with too little room for one each does that matter.
            if steady.to_come().is_some() {
                return Ok(true);
            }
        }
        Ok(!self.array_moves(state)?.is_empty())
    }

    /// The fewest items that make an array complete of which nothing is asked but what each position satisfies, and how many
    /// there are: runs of items of one formula. `None` if the residual is of another kind.
    pub(crate) fn by_position(&mut self, state: ArrayState) -> Option<Vec<(Formula, u32)>> {
        let items: Vec<Formula> = match self.formulas.node(state.residual) {
            Node::And(items) => items.to_vec(),
            _ => vec![state.residual],
        };
        let (mut least, mut most) = (0, u32::MAX);
        let mut every: Vec<(u32, u32, Formula)> = Vec::new();
        for item in items {
            match *self.formulas.node(item) {
                Node::True => {}
                Node::Item { from, to: NO_END, value: Formula::TRUE, count } if from <= state.index => {
                    least = least.max(count);
                }
                Node::Not(inner) => match *self.formulas.node(inner) {
                    Node::Item { from, to: NO_END, value: Formula::TRUE, count } if from <= state.index => {
                        most = most.min(count - 1);
                    }
                    Node::Item { from, to, value, count: 1 } => every.push((from, to, self.formulas.not(value))),
                    _ => return None,
                },
                _ => return None,
            }
        }
        if least > most {
            return Some(vec![(Formula::FALSE, 1)]);
        }
        let end = state.index.saturating_add(least);
        // Where the conditions change.
        let mut places: Vec<u32> = every.iter().flat_map(|&(from, to, _)| [from, to]).collect();
        places.extend([state.index, end]);
        places.retain(|place| (state.index..=end).contains(place));
        places.sort_unstable();
        places.dedup();
        every.sort_unstable();
        let (mut coming, mut here) = (every.into_iter().peekable(), Vec::new());
        let mut runs = Vec::with_capacity(places.len());
        for pair in places.windows(2) {
            while let Some(condition) = coming.next_if(|&(from, ..)| from <= pair[0]) {
                here.push(condition);
            }
            here.retain(|&(_, to, _)| to > pair[0]);
            let value = self.formulas.and(here.iter().map(|&(.., value)| value));
            runs.push((value, pair[1] - pair[0]));
        }
        Some(runs)
    }

    /// What is left to come where every item is like every other; `None` if the residual is of another kind.
    pub(crate) fn steady(&mut self, state: ArrayState) -> Option<Steady> {
        if state.index < self.last_bound(state.residual) {
            return None;
        }
        let items: Vec<Formula> = match self.formulas.node(state.residual) {
            Node::And(items) => items.to_vec(),
            _ => vec![state.residual],
        };
        let mut steady = Steady { every: Formula::TRUE, wanted: Vec::new(), least: 0, most: u32::MAX };
        let mut every = Vec::new();
        for item in items {
            match *self.formulas.node(item) {
                Node::True => {}
                Node::Item { to: NO_END, value: Formula::TRUE, count, .. } => steady.least = steady.least.max(count),
                Node::Item { to: NO_END, value, count, .. } => steady.wanted.push((value, count)),
                Node::Not(inner) => match *self.formulas.node(inner) {
                    Node::Item { to: NO_END, value: Formula::TRUE, count, .. } => {
                        steady.most = steady.most.min(count - 1);
                    }
                    Node::Item { to: NO_END, value, count: 1, .. } => every.push(self.formulas.not(value)),
                    _ => return None,
                },
                _ => return None,
            }
        }
        steady.every = self.formulas.and(every);
        for (value, _) in &mut steady.wanted {
            *value = self.formulas.and([*value, steady.every]);
        }
        Some(steady)
    }
}
