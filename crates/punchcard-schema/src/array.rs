//! Arrays: what a formula says of the items read so far, and of those to come.
//!
//! As for objects, reading an item steps the residual formula to its partial derivatives. Positions in the formula are
//! absolute; the index saturates where no range begins or ends any more, so that long arrays come back to the same state.

use crate::algebra::Algebra;
use crate::error::SchemaError;
use crate::formula::{Formula, FxMap, NO_END, Node};

/// An array that is being read, between two items.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ArrayState {
    pub(crate) residual: Formula,
    pub(crate) index: u32,
}

/// What was found out about arrays.
#[derive(Debug, Default)]
pub struct Memory {
    bounds: FxMap<Formula, u32>,
    moves: FxMap<ArrayState, Vec<(Formula, ArrayState)>>,
}

impl Algebra {
    /// Whether the array may end here.
    pub fn array_may_end(&self, state: ArrayState) -> bool {
        self.array_holds(state.residual)
    }

    fn array_holds(&self, f: Formula) -> bool {
        match self.formulas.node(f) {
            Node::True => true,
            Node::And(items) => items.iter().all(|&i| self.array_holds(i)),
            Node::Or(items) => items.iter().any(|&i| self.array_holds(i)),
            Node::Not(inner) => !self.array_holds(*inner),
            _ => false,
        }
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

    fn array_steps(&mut self, state: ArrayState) -> Result<Vec<(Formula, ArrayState)>, SchemaError> {
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
        for (value, next) in self.array_steps(state)? {
            if self.is_satisfiable(value)? && self.array_is_viable(next)? {
                moves.push((value, next));
            }
        }
        if !self.search.is_running() {
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
                    out.push((Formula::TRUE, f));
                }
                Ok(out)
            }
            Node::Not(inner) => match *self.formulas.node(inner) {
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
                        out.push((Formula::TRUE, self.formulas.not(less)));
                    }
                    Ok(self.merge_steps(out))
                }
                _ => Ok(vec![(Formula::TRUE, f)]),
            },
            Node::And(ref items) => {
                let items = items.clone();
                let mut product = vec![(Formula::TRUE, Formula::TRUE)];
                for &item in items.iter() {
                    let steps = self.step_item(item, index)?;
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
                Ok(self.merge_steps(out))
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
        if let Some(answer) = self.steady_items(state)? {
            return Ok(answer);
        }
        Ok(!self.array_moves(state)?.is_empty())
    }

    /// Past the last bound, with nothing but universal statements, counts and wanted items, every item is like every
    /// other, and the answer needs no steps. `None` if the residual is of another kind.
    fn steady_items(&mut self, state: ArrayState) -> Result<Option<bool>, SchemaError> {
        if state.index < self.last_bound(state.residual) {
            return Ok(None);
        }
        let items: Vec<Formula> = match self.formulas.node(state.residual) {
            Node::And(items) => items.to_vec(),
            _ => vec![state.residual],
        };
        let (mut every, mut wanted, mut least, mut most) = (Vec::new(), Vec::new(), 0u32, u32::MAX);
        for item in items {
            match *self.formulas.node(item) {
                Node::True => {}
                Node::Item { to: NO_END, value: Formula::TRUE, count, .. } => least = least.max(count),
                Node::Item { to: NO_END, value, count, .. } => wanted.push((value, count)),
                Node::Not(inner) => match *self.formulas.node(inner) {
                    Node::Item { to: NO_END, value: Formula::TRUE, count, .. } => most = most.min(count - 1),
                    Node::Item { to: NO_END, value, count: 1, .. } => every.push(self.formulas.not(value)),
                    _ => return Ok(None),
                },
                _ => return Ok(None),
            }
        }
        let every = self.formulas.and(every);
        if !self.is_satisfiable(every)? || least > most {
            return Ok(Some(false));
        }
        let mut sum = 0u32;
        for &(value, count) in &wanted {
            let value = self.formulas.and([every, value]);
            if !self.is_satisfiable(value)? {
                return Ok(Some(false));
            }
            sum = sum.saturating_add(count);
        }
        // One item may serve several wishes: only with too little room for one each does that matter.
        Ok(if sum <= most { Some(true) } else { None })
    }
}
