//! The names of large objects: of one sorted list each state has a selection.
//!
//! After each member other names may come next. With the usual residual, in which each member that must come stands for
//! itself, these are the declared names from one place up to another that can come at all; so it is found out once for the
//! object which those are, and each state selects from the same list.

use super::{ObjectSpec, ObjectState};
use crate::algebra::Algebra;
use crate::error::SchemaError;
use crate::formula::{Formula, FxMap, Keys, Name, Node};
use crate::options::PropertyOrder;
use punchcard_automata::Language;
use std::sync::Arc;

/// So few names are listed anew.
const FEW: usize = 64;

/// In so many places of an object it is remembered which names may come from there on.
const MARKS: u32 = 64;

/// The names that an object speaks of, as far as they can come at all.
#[derive(Debug)]
pub(super) struct Listed {
    texts: Language,
    /// Where in the sorted list they are.
    ranks: FxMap<Name, u32>,
    /// From some places on: those that may come there or later.
    marks: FxMap<u32, Arc<[u64]>>,
}

fn clear(bits: &mut [u64], rank: u32) {
    bits[rank as usize / 64] &= !(1 << (rank % 64));
}

impl Algebra {
    /// With the usual residual: the place of the first declared name that must come, if one must. `None` if the residual is
    /// of another kind, or bounds the number of members.
    pub(super) fn first_wanted(&mut self, spec: u32, residual: Formula) -> Option<Option<u32>> {
        if residual == Formula::TRUE {
            return Some(None);
        }
        if let Some(&known) = self.objects.first_wanted.get(&(spec, residual)) {
            return known;
        }
        let places = &self.specs[spec as usize].place;
        let items = match self.formulas.node(residual) {
            Node::And(items) => items,
            _ => std::slice::from_ref(&residual),
        };
        let mut first = Some(None);
        for &item in items {
            match *self.formulas.node(item) {
                Node::Declared(_) => {}
                Node::Member { keys: Keys::One(name), .. } => {
                    let place = places.get(&name).copied();
                    first = first.map(|first: Option<u32>| first.into_iter().chain(place).min());
                }
                _ => first = None,
            }
        }
        self.objects.first_wanted.insert((spec, residual), first);
        first
    }

    /// Whether a member of this name can come at all.
    fn may_come(&mut self, spec: u32, name: Name) -> Result<bool, SchemaError> {
        let value = self.member_value(spec, name);
        Ok(self.languages.can_write(self.formulas.text_of(name)) && self.is_satisfiable(value)?)
    }

    /// The names spoken of one by one that may come next in an object that can be finished, up to the declared one at
    /// `wanted`, which must. Only with the usual residual: then whoever takes one of them can finish the object.
    pub(super) fn listed_names(&mut self, state: ObjectState, wanted: Option<u32>) -> Result<Language, SchemaError> {
        let spec = self.specs[state.spec as usize].clone();
        let is_ordered = self.options.property_order == PropertyOrder::Declared;
        let (from, to) = match wanted {
            _ if !is_ordered => (0, spec.order.len()),
            Some(wanted) => (state.place as usize, wanted as usize + 1),
            None => (state.place as usize, spec.order.len()),
        };
        let to = to.max(from);
        let others: &[Name] = if is_ordered && wanted.is_some() { &[] } else { &spec.others };
        if to - from + others.len() <= FEW {
            let mut names = Vec::with_capacity(to - from + others.len());
            for &name in spec.order[from..to].iter().chain(others) {
                if !self.has_seen(state, self.formulas.text_of(name)) && self.may_come(state.spec, name)? {
                    names.push(name);
                }
            }
            let names = names.into_iter().map(|name| self.formulas.text_of(name));
            return Ok(self.languages.texts(names));
        }
        let mut listed = match self.objects.listed.remove(&state.spec) {
            Some(listed) => listed,
            None => self.listed(state.spec, &spec)?,
        };
        let mut bits = listed.from(&spec, from as u32);
        if to < spec.order.len() {
            let later = listed.from(&spec, to as u32);
            bits.iter_mut().zip(later).for_each(|(bits, later)| *bits &= !later);
        }
        let seen = self.objects.seen.names(state.seen);
        seen.filter_map(|name| listed.ranks.get(&name)).for_each(|&rank| clear(&mut bits, rank));
        let names = self.languages.select(listed.texts, bits);
        self.objects.listed.insert(state.spec, listed);
        Ok(names)
    }

    fn listed(&mut self, id: u32, spec: &ObjectSpec) -> Result<Listed, SchemaError> {
        let mut names = Vec::with_capacity(spec.spoken.len());
        for &name in spec.order.iter().chain(&spec.others) {
            if self.may_come(id, name)? {
                names.push(name);
            }
        }
        names.sort_unstable_by(|&a, &b| self.formulas.text_of(a).cmp(self.formulas.text_of(b)));
        let texts = self.languages.texts(names.iter().map(|&name| self.formulas.text_of(name)));
        let mut bits = vec![u64::MAX; names.len().div_ceil(64)];
        if let Some(last) = bits.last_mut().filter(|_| names.len() % 64 != 0) {
            *last = (1 << (names.len() % 64)) - 1;
        }
        let ranks = names.into_iter().zip(0..).collect();
        Ok(Listed { texts, ranks, marks: [(0, bits.into())].into_iter().collect() })
    }
}

impl Listed {
    /// The declared names from a place on, and those that are not declared.
    fn from(&mut self, spec: &ObjectSpec, place: u32) -> Vec<u64> {
        // An object may declare no names, and only require some.
        let step = (spec.order.len() as u32).div_ceil(MARKS).max(1);
        let mark = place / step * step;
        let mut known = mark;
        let mut bits = loop {
            match self.marks.get(&known) {
                Some(bits) => break bits.to_vec(),
                None => known -= step,
            }
        };
        let skip = |from: u32, to: u32, bits: &mut [u64]| {
            let names = &spec.order[from as usize..to as usize];
            names.iter().filter_map(|name| self.ranks.get(name)).for_each(|&rank| clear(bits, rank));
        };
        skip(known, mark, &mut bits);
        if known < mark {
            self.marks.insert(mark, bits.as_slice().into());
        }
        skip(mark, place, &mut bits);
        bits
    }
}
