//! Lazy automata: sets of readings, interned, and the steps that are known between them.
//!
//! A configuration is what has been read so far, up to equivalence: the set of all ways to read it. Equal pasts are equal
//! ids, and the configuration after each byte is remembered, so what is visited again costs one look-up.

use crate::row::Row;
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use std::hash::Hash;

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
    sets: Vec<Box<[R]>>,
    ids: HashMap<Box<[R]>, ConfigId, FxBuildHasher>,
    rows: Vec<Row>,
}

impl<R: Copy + Ord + Hash> Configs<R> {
    /// With the one configuration that has no readings, `ConfigId::DEAD`.
    pub(crate) fn new() -> Self {
        let mut configs = Configs { sets: Vec::new(), ids: HashMap::default(), rows: Vec::new() };
        configs.intern(&mut Vec::new());
        configs
    }

    /// The configuration of a set of readings.
    pub(crate) fn intern(&mut self, readings: &mut Vec<R>) -> ConfigId {
        if readings.len() > 1 {
            readings.sort_unstable();
            readings.dedup();
        }
        if let Some(&id) = self.ids.get(readings.as_slice()) {
            return id;
        }
        let id = ConfigId(self.sets.len() as u32);
        let readings: Box<[R]> = readings.as_slice().into();
        self.sets.push(readings.clone());
        self.ids.insert(readings, id);
        self.rows.push(Row::default());
        id
    }

    pub(crate) fn readings(&self, config: ConfigId) -> &[R] {
        &self.sets[config.0 as usize]
    }

    pub(crate) fn known_step(&self, config: ConfigId, byte: u8) -> Option<ConfigId> {
        self.rows[config.0 as usize].get(byte).map(ConfigId)
    }

    pub(crate) fn remember_step(&mut self, config: ConfigId, byte: u8, next: ConfigId) {
        self.rows[config.0 as usize].set(byte, next.0);
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.sets.len()
    }

    /// An estimate of the bytes on the heap.
    pub(crate) fn memory_size(&self) -> usize {
        let rows: usize = self.rows.iter().map(Row::memory_size).sum();
        let sets: usize = self.sets.iter().map(|set| 2 * (size_of::<R>() * set.len() + 32)).sum();
        rows + sets
    }
}
