//! One way to finish an object, found without a search.
//!
//! Members are proposed as unit propagation proposes values: what must come comes, a condition on a name that does not come
//! holds by itself, and of other alternatives the first hopeful one is taken. No choice is taken back, so that the way takes
//! time in proportion to the residual. Where it leads to nothing the search has to find out.

use super::ObjectState;
use super::search::Member;
use crate::algebra::Algebra;
use crate::error::SchemaError;
use crate::formula::{Formula, FxMap, Keys, Name, Node};
use punchcard_automata::work;

/// Alternatives within alternatives are followed so deep.
const MOST_DEPTH: u32 = 64;

/// The members proposed so far.
#[derive(Default)]
struct Proposal {
    /// What is asked of the value of each.
    members: FxMap<Name, Vec<Formula>>,
    /// What holds only because a name does not come.
    relying: FxMap<Name, Vec<Formula>>,
    /// What is still to be made true.
    open: Vec<Formula>,
    /// What was found out about alternatives; see `is_hopeful`.
    hopeful: FxMap<Formula, bool>,
    least: u32,
    most: u32,
}

impl Algebra {
    /// Members with which the object can end, in an order that is allowed, if it is easy to see which.
    pub(super) fn proposed_members(&mut self, state: ObjectState) -> Result<Option<Vec<Member>>, SchemaError> {
        let mut proposal = Proposal { open: vec![state.residual], most: u32::MAX, ..Proposal::default() };
        while let Some(part) = proposal.open.pop() {
            work::spend(1)?;
            if !self.settle(state, part, &mut proposal, 0)? {
                return Ok(None);
            }
        }
        let count = proposal.members.len() as u32;
        if count > proposal.most || count < proposal.least {
            return Ok(None);
        }
        let mut members = Vec::with_capacity(proposal.members.len());
        for (name, values) in proposal.members {
            let every = self.member_value(state.spec, name);
            let value = self.formulas.and(values.into_iter().chain([every]));
            if !self.is_satisfiable(value)? {
                return Ok(None);
            }
            members.push((name, value));
        }
        let spec = &self.specs[state.spec as usize];
        members.sort_by_key(|&(name, _)| (spec.place.get(&name).copied().unwrap_or(u32::MAX), name));
        Ok(Some(members))
    }

    /// Makes a part of the residual true.
    fn settle(&mut self, state: ObjectState, f: Formula, p: &mut Proposal, depth: u32) -> Result<bool, SchemaError> {
        match *self.formulas.node(f) {
            Node::True | Node::Declared(_) => {}
            Node::Members(n) => p.least = p.least.max(n),
            Node::Member { keys: Keys::One(name), value } => {
                if self.is_gone(state, name) {
                    return Ok(false);
                }
                p.members.entry(name).or_default().push(value);
                p.open.extend(p.relying.remove(&name).into_iter().flatten());
            }
            Node::Not(inner) => match *self.formulas.node(inner) {
                Node::Members(n) => p.most = p.most.min(n - 1),
                Node::Member { keys: Keys::One(name), value } => match p.members.get_mut(&name) {
                    Some(values) => values.push(self.formulas.not(value)),
                    None => p.relying.entry(name).or_default().push(f),
                },
                _ => return Ok(false),
            },
            Node::And(ref items) => {
                let items = items.clone();
                work::spend(items.len() as u64)?;
                p.open.extend(items);
            }
            Node::Or(ref items) if depth < MOST_DEPTH => {
                let items = items.clone();
                work::spend(items.len() as u64)?;
                if items.iter().any(|&part| self.holds_without(f, part, p)) {
                    return Ok(true);
                }
                for part in items {
                    if self.is_hopeful(state, part, &mut p.hopeful)? {
                        return self.settle(state, part, p, depth + 1);
                    }
                }
                return Ok(false);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Whether an alternative holds because a name that it forbids is not proposed. If so, all alternatives are looked at
    /// again once it is.
    fn holds_without(&self, all: Formula, part: Formula, p: &mut Proposal) -> bool {
        let Node::Not(inner) = *self.formulas.node(part) else { return false };
        let Node::Member { keys: Keys::One(name), .. } = *self.formulas.node(inner) else { return false };
        let holds = !p.members.contains_key(&name);
        if holds {
            p.relying.entry(name).or_default().push(all);
        }
        holds
    }
}
