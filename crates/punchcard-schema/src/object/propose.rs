//! One way to finish an object, found without a search.
//!
//! Members are proposed as unit propagation proposes values: what must come comes, a condition on a name that does not come
//! holds by itself, and of other alternatives the first possible one is taken. No choice is taken back, so that the way takes
//! time in proportion to the residual. As long as there was no choice, what is proposed is the least that must come: if that
//! is impossible, so is every way. Else the search has to find out.

use super::ObjectState;
use super::search::Member;
use crate::algebra::Algebra;
use crate::error::SchemaError;
use crate::formula::{Formula, FxMap, Keys, Name, Node};
use punchcard_automata::work;

/// Alternatives within alternatives are followed so deep.
const MOST_DEPTH: u32 = 64;

/// What a proposal came to.
pub(super) enum Proposed {
    /// Members with which the object can end, in an order that is allowed.
    Members(Vec<Member>),
    /// There is no way to end it.
    Nothing,
    Unknown,
}

/// Whether a part of the residual was made true.
#[derive(Clone, Copy, PartialEq)]
enum Settled {
    Yes,
    /// It cannot be, with what is proposed.
    Never,
    Unknown,
}

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
    /// One of several alternatives was taken.
    has_chosen: bool,
}

impl Proposal {
    /// What follows if the proposal comes to nothing.
    fn failed(&self) -> Proposed {
        if self.has_chosen { Proposed::Unknown } else { Proposed::Nothing }
    }
}

impl Algebra {
    /// Members with which the object can end, if it is easy to see which.
    pub(super) fn proposed_members(&mut self, state: ObjectState) -> Result<Option<Vec<Member>>, SchemaError> {
        Ok(match self.propose(state)? {
            Proposed::Members(members) => Some(members),
            Proposed::Nothing | Proposed::Unknown => None,
        })
    }

    /// Looks for members with which the object can end.
    pub(super) fn propose(&mut self, state: ObjectState) -> Result<Proposed, SchemaError> {
        let mut proposal = Proposal { open: vec![state.residual], most: u32::MAX, ..Proposal::default() };
        while let Some(part) = proposal.open.pop() {
            work::spend(1)?;
            match self.settle(state, part, &mut proposal, 0)? {
                Settled::Yes => {}
                Settled::Never => return Ok(proposal.failed()),
                Settled::Unknown => return Ok(Proposed::Unknown),
            }
        }
        let count = proposal.members.len() as u32;
        if count > proposal.most {
            return Ok(proposal.failed());
        }
        let mut members = Vec::with_capacity(proposal.members.len());
        for (&name, values) in &proposal.members {
            let every = self.member_value(state.spec, name);
            let value = self.formulas.and(values.iter().copied().chain([every]));
            if !self.is_satisfiable(value)? {
                return Ok(proposal.failed());
            }
            members.push((name, value));
        }
        if count < proposal.least {
            return Ok(Proposed::Unknown);
        }
        let spec = &self.specs[state.spec as usize];
        members.sort_by_key(|&(name, _)| (spec.place.get(&name).copied().unwrap_or(u32::MAX), name));
        Ok(Proposed::Members(members))
    }

    /// Makes a part of the residual true.
    fn settle(&mut self, state: ObjectState, f: Formula, p: &mut Proposal, depth: u32) -> Result<Settled, SchemaError> {
        match *self.formulas.node(f) {
            Node::True | Node::Declared(_) => {}
            Node::Members(n) => p.least = p.least.max(n),
            Node::Member { keys: Keys::One(name), value } => {
                if self.is_gone(state, name) {
                    return Ok(Settled::Never);
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
                _ => return Ok(Settled::Unknown),
            },
            Node::And(ref items) => {
                let items = items.clone();
                work::spend(items.len() as u64)?;
                p.open.extend(items);
            }
            Node::Or(ref items) if depth < MOST_DEPTH => {
                let items = items.clone();
                work::spend(items.len() as u64)?;
                return self.settle_one_of(state, f, &items, p, depth);
            }
            _ => return Ok(Settled::Unknown),
        }
        Ok(Settled::Yes)
    }

    /// Makes one of some alternatives true.
    fn settle_one_of(
        &mut self,
        state: ObjectState,
        all: Formula,
        items: &[Formula],
        p: &mut Proposal,
        depth: u32,
    ) -> Result<Settled, SchemaError> {
        if items.iter().any(|&part| self.holds_without(all, part, p)) {
            return Ok(Settled::Yes);
        }
        let mut first = None;
        for &part in items {
            if !self.is_possible(state, part, p)? {
                continue;
            }
            if first.is_some() {
                p.has_chosen = true;
                break;
            }
            first = Some(part);
        }
        match first {
            Some(part) => self.settle(state, part, p, depth + 1),
            None => Ok(Settled::Never),
        }
    }

    /// Whether an alternative can hold beside what is proposed. `false` is certain.
    fn is_possible(&mut self, state: ObjectState, part: Formula, p: &mut Proposal) -> Result<bool, SchemaError> {
        if let Node::Not(inner) = *self.formulas.node(part)
            && let Node::Member { keys: Keys::One(name), value } = *self.formulas.node(inner)
            && let Some(values) = p.members.get(&name)
        {
            let values = values.clone();
            let (every, other) = (self.member_value(state.spec, name), self.formulas.not(value));
            let value = self.formulas.and(values.into_iter().chain([every, other]));
            return self.is_satisfiable(value);
        }
        self.is_hopeful(state, part, &mut p.hopeful)
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
