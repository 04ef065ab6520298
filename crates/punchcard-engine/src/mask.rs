//! Rows of a token bitmask: bit `id % 32` of word `id / 32` stands for token `id`.

use std::sync::Arc;

pub(crate) fn set(words: &mut [u32], id: u32) {
    words[id as usize / 32] |= 1 << (id % 32);
}

pub(crate) fn clear(words: &mut [u32], id: u32) {
    words[id as usize / 32] &= !(1 << (id % 32));
}

/// A finished mask, in the form that is cheaper to keep.
#[derive(Clone, Debug)]
pub(crate) enum Mask {
    Few(Arc<[u32]>),
    Dense(Arc<[u32]>),
}

impl Mask {
    /// Keeps a finished row.
    pub(crate) fn of(words: &[u32]) -> Mask {
        const FEW: usize = 512;
        let count: usize = words.iter().map(|w| w.count_ones() as usize).sum();
        if count > FEW {
            return Mask::Dense(words.into());
        }
        let mut ids = Vec::with_capacity(count);
        for (i, &word) in words.iter().enumerate() {
            let mut rest = word;
            while rest != 0 {
                ids.push(i as u32 * 32 + rest.trailing_zeros());
                rest &= rest - 1;
            }
        }
        Mask::Few(ids.into())
    }

    /// Writes it over a row.
    pub(crate) fn write(&self, words: &mut [u32]) {
        match self {
            Mask::Few(ids) => {
                words.fill(0);
                ids.iter().for_each(|&id| set(words, id));
            }
            Mask::Dense(row) => words.copy_from_slice(row),
        }
    }

    /// Adds it to a row.
    pub(crate) fn add_to(&self, words: &mut [u32]) {
        match self {
            Mask::Few(ids) => ids.iter().for_each(|&id| set(words, id)),
            Mask::Dense(row) => row.iter().zip(words).for_each(|(from, to)| *to |= from),
        }
    }

    pub(crate) fn memory_size(&self) -> usize {
        match self {
            Mask::Few(row) | Mask::Dense(row) => 4 * row.len() + 32,
        }
    }
}
