//! The names that an object already has, as sets that share their parts.
//!
//! Each member adds one name, and every set that a text passes through is kept. So a set is a chain of sorted runs, of
//! which each is longer than the one before it: adding a name merges the short runs at the front, and shares the rest.
//! A set of n names then takes the amortised memory of log n names beyond the sets before it.

use crate::formula::{Formulas, FxMap, Name};
use std::sync::Arc;

/// The id of a set of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct SeenId(u32);

impl SeenId {
    pub(super) const NONE: SeenId = SeenId(0);
}

/// Sets up to this size are one run, so that equal ones are one set whatever the order of their names.
const SMALL: usize = 16;

#[derive(Debug)]
struct Set {
    /// Sorted by text.
    run: Arc<[Name]>,
    /// The names that are not in the run.
    rest: SeenId,
    size: usize,
}

/// The store of sets of names.
#[derive(Debug)]
pub(super) struct SeenSets {
    sets: Vec<Set>,
    small: FxMap<Arc<[Name]>, SeenId>,
    grown: FxMap<(SeenId, Name), SeenId>,
    /// Bytes of all runs.
    run_bytes: usize,
}

impl Default for SeenSets {
    fn default() -> Self {
        let none = Set { run: Arc::new([]), rest: SeenId::NONE, size: 0 };
        SeenSets { sets: vec![none], small: FxMap::default(), grown: FxMap::default(), run_bytes: 0 }
    }
}

impl SeenSets {
    pub(super) fn memory_size(&self) -> usize {
        let sets = self.sets.capacity() * size_of::<Set>();
        sets + self.small.allocation_size() + self.grown.allocation_size() + self.run_bytes
    }

    /// The runs of a set.
    fn runs(&self, id: SeenId) -> impl Iterator<Item = &[Name]> {
        let mut at = id;
        std::iter::from_fn(move || {
            let set = &self.sets[at.0 as usize];
            at = set.rest;
            (set.size > 0).then_some(&*set.run)
        })
    }

    /// All names of a set.
    pub(super) fn names(&self, id: SeenId) -> impl Iterator<Item = Name> {
        self.runs(id).flatten().copied()
    }

    /// The names of a set that begin like this.
    pub(super) fn beginning_with<'a>(
        &'a self,
        formulas: &'a Formulas,
        id: SeenId,
        beginning: &'a str,
    ) -> impl Iterator<Item = &'a str> {
        self.runs(id).flat_map(move |run| {
            let first = run.partition_point(|&name| formulas.text_of(name) < beginning);
            let texts = run[first..].iter().map(|&name| formulas.text_of(name));
            texts.take_while(move |text| text.starts_with(beginning))
        })
    }

    /// The bytes that follow a beginning in the names of a set; `None` where the beginning is a name.
    pub(super) fn next_bytes(
        &self,
        formulas: &Formulas,
        id: SeenId,
        beginning: &str,
        mut found: impl FnMut(Option<u8>),
    ) {
        let next = |name: Name| formulas.text_of(name).as_bytes().get(beginning.len()).copied();
        for mut run in self.runs(id) {
            run = &run[run.partition_point(|&name| formulas.text_of(name) < beginning)..];
            while let Some(&first) = run.first().filter(|&&name| formulas.text_of(name).starts_with(beginning)) {
                let byte = next(first);
                found(byte);
                let same = |&name: &Name| formulas.text_of(name).starts_with(beginning) && next(name) <= byte;
                run = &run[run.partition_point(same)..];
            }
        }
    }

    /// How many names are in a set.
    pub(super) fn size(&self, id: SeenId) -> usize {
        self.sets[id.0 as usize].size
    }

    /// Whether a name is in a set.
    pub(super) fn has(&self, formulas: &Formulas, id: SeenId, name: &str) -> bool {
        self.runs(id).any(|run| run.binary_search_by(|&other| formulas.text_of(other).cmp(name)).is_ok())
    }

    /// A set with one more name.
    pub(super) fn with(&mut self, formulas: &Formulas, id: SeenId, name: Name) -> SeenId {
        if self.has(formulas, id, formulas.text_of(name)) {
            return id;
        }
        if let Some(&known) = self.grown.get(&(id, name)) {
            return known;
        }
        let size = self.sets[id.0 as usize].size + 1;
        let (mut run, mut rest) = (vec![name], id);
        while rest != SeenId::NONE {
            let next = &self.sets[rest.0 as usize];
            if next.run.len() > run.len() && size > SMALL {
                break;
            }
            run.extend_from_slice(&next.run);
            rest = next.rest;
        }
        let grown = self.set(formulas, run, rest, size);
        self.grown.insert((id, name), grown);
        grown
    }

    /// The set of some names, which differ.
    pub(super) fn of(&mut self, formulas: &Formulas, names: Vec<Name>) -> SeenId {
        match names.len() {
            0 => SeenId::NONE,
            size => self.set(formulas, names, SeenId::NONE, size),
        }
    }

    fn set(&mut self, formulas: &Formulas, mut run: Vec<Name>, rest: SeenId, size: usize) -> SeenId {
        run.sort_unstable_by(|&a, &b| formulas.text_of(a).cmp(formulas.text_of(b)));
        let run: Arc<[Name]> = run.into();
        let fresh = SeenId(self.sets.len() as u32);
        let id = if size <= SMALL { *self.small.entry(run.clone()).or_insert(fresh) } else { fresh };
        if id == fresh {
            self.run_bytes += 16 + size_of_val(&*run);
            self.sets.push(Set { run, rest, size });
        }
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_hold_what_was_added_and_share_their_runs() {
        let (mut formulas, mut seen) = (Formulas::default(), SeenSets::default());
        let names: Vec<Name> = (0..5_000).map(|i| formulas.name(&format!("name {}", i * 7919 % 5_000))).collect();
        let mut chain = vec![SeenId::NONE];
        for &name in &names {
            chain.push(seen.with(&formulas, chain[chain.len() - 1], name));
        }
        for (size, &set) in chain.iter().enumerate().step_by(613) {
            assert_eq!(seen.names(set).count(), size);
            for (i, &name) in names.iter().enumerate() {
                assert_eq!(seen.has(&formulas, set, formulas.text_of(name)), i < size);
            }
            let begin = |text: &str| text.starts_with("name 12");
            let expected = names[..size].iter().filter(|&&name| begin(formulas.text_of(name))).count();
            assert_eq!(seen.beginning_with(&formulas, set, "name 12").count(), expected);
        }
        // A list for each set would take 100 MB.
        assert!(seen.memory_size() < 1_000_000, "{}", seen.memory_size());
        assert_eq!(seen.with(&formulas, chain[5_000], names[3]), chain[5_000]);
    }

    #[test]
    fn small_sets_do_not_depend_on_the_order_of_their_names() {
        let (mut formulas, mut seen) = (Formulas::default(), SeenSets::default());
        let names: Vec<Name> = (0..SMALL).map(|i| formulas.name(&format!("{i}"))).collect();
        let add = |seen: &mut SeenSets, set, &name: &Name| seen.with(&formulas, set, name);
        let forward = names.iter().fold(SeenId::NONE, |set, name| add(&mut seen, set, name));
        let backward = names.iter().rev().fold(SeenId::NONE, |set, name| add(&mut seen, set, name));
        assert_eq!(forward, backward);
    }
}
