//! Walks over formulas. A formula is a graph in which parts are shared, so each part is visited once.

use crate::algebra::Algebra;
use crate::formula::{Formula, FxMap, Node};

impl Algebra {
    /// The formula with its atoms changed; those for which `change` returns `None` stay.
    pub(crate) fn rewrite(
        &mut self,
        f: Formula,
        change: &mut dyn FnMut(&mut Self, Formula) -> Option<Formula>,
    ) -> Formula {
        self.rewrite_part(f, change, &mut FxMap::default())
    }

    fn rewrite_part(
        &mut self,
        f: Formula,
        change: &mut dyn FnMut(&mut Self, Formula) -> Option<Formula>,
        known: &mut FxMap<Formula, Formula>,
    ) -> Formula {
        if let Some(&known) = known.get(&f) {
            return known;
        }
        let changed = stacker::maybe_grow(32 << 10, 1 << 20, || match self.formulas.node(f) {
            &Node::Not(inner) => {
                let inner = self.rewrite_part(inner, change, known);
                self.formulas.not(inner)
            }
            Node::And(items) | Node::Or(items) => {
                let all = matches!(self.formulas.node(f), Node::And(_));
                let absorbing = if all { Formula::FALSE } else { Formula::TRUE };
                let items = items.clone();
                let mut parts = Vec::with_capacity(items.len());
                for &item in items.iter() {
                    let part = self.rewrite_part(item, change, known);
                    parts.push(part);
                    if part == absorbing {
                        break;
                    }
                }
                if all { self.formulas.and(parts) } else { self.formulas.or(parts) }
            }
            _ => change(self, f).unwrap_or(f),
        });
        known.insert(f, changed);
        changed
    }

    /// All atoms of a formula, in the order of its parts, and whether they are negated; each once.
    pub(crate) fn atoms(&self, f: Formula) -> Vec<(Formula, bool)> {
        let (mut atoms, mut todo, mut seen) = (Vec::new(), vec![(f, false)], FxMap::default());
        while let Some((f, negated)) = todo.pop() {
            if seen.insert((f, negated), ()).is_some() {
                continue;
            }
            match self.formulas.node(f) {
                Node::And(items) | Node::Or(items) => todo.extend(items.iter().rev().map(|&item| (item, negated))),
                &Node::Not(inner) => todo.push((inner, !negated)),
                _ => atoms.push((f, negated)),
            }
        }
        atoms
    }
}
