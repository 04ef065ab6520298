//! Lazy automata: sets of readings, interned, and the steps that are known between them.
//!
//! A configuration is what has been read so far, up to equivalence: the set of all ways to read it. Equal pasts are equal
//! ids, and the configuration after each byte is remembered, so what is visited again costs one look-up.

use crate::row::Row;
use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;
use std::hash::{BuildHasher, Hash};

/// A configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConfigId(pub(crate) u32);

impl ConfigId {
    /// No way on.
    pub const DEAD: ConfigId = ConfigId(0);
}

/// Configurations made of readings `R`.
#[derive(Debug)]
pub(crate) struct Configs<R> {
    /// The readings of all configurations, one configuration after the other, and where each ends.
    readings: Vec<R>,
    ends: Vec<usize>,
    ids: HashTable<ConfigId>,
    rows: Vec<Row>,
    /// Bytes that the rows point to.
    row_bytes: usize,
}

fn slice<'a, R>(readings: &'a [R], ends: &[usize], config: ConfigId) -> &'a [R] {
    let at = config.0 as usize;
    let start = if at == 0 { 0 } else { ends[at - 1] };
    &readings[start..ends[at]]
}

impl<R: Copy + Ord + Hash> Configs<R> {
    /// With the one configuration that has no readings, `ConfigId::DEAD`.
    pub(crate) fn new() -> Self {
        let mut configs =
            Configs { readings: Vec::new(), ends: Vec::new(), ids: HashTable::new(), rows: Vec::new(), row_bytes: 0 };
        configs.intern(&mut Vec::new());
        configs
    }

    /// The configuration of a set of readings.
    pub(crate) fn intern(&mut self, set: &mut Vec<R>) -> ConfigId {
        if set.len() > 1 {
            set.sort_unstable();
            set.dedup();
        }
        let hash = |set: &[R]| FxBuildHasher.hash_one(set);
        let Configs { readings, ends, .. } = self;
        if let Some(&id) = self.ids.find(hash(set), |&id| slice(readings, ends, id) == set.as_slice()) {
            return id;
        }
        let id = ConfigId(ends.len() as u32);
        readings.extend_from_slice(set);
        ends.push(readings.len());
        self.ids.insert_unique(hash(set), id, |&id| hash(slice(readings, ends, id)));
        self.rows.push(Row::default());
        id
    }

    pub(crate) fn readings(&self, config: ConfigId) -> &[R] {
        slice(&self.readings, &self.ends, config)
    }

    pub(crate) fn known_step(&self, config: ConfigId, byte: u8) -> Option<ConfigId> {
        self.rows[config.0 as usize].get(byte).map(ConfigId)
    }

    pub(crate) fn remember_step(&mut self, config: ConfigId, byte: u8, next: ConfigId) {
        self.row_bytes += self.rows[config.0 as usize].set(byte, next.0);
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// An estimate of the bytes on the heap.
    pub(crate) fn memory_size(&self) -> usize {
        let each = size_of::<usize>() + size_of::<Row>();
        self.readings.capacity() * size_of::<R>()
            + self.ends.capacity() * each
            + self.ids.allocation_size()
            + self.row_bytes
    }
}
