//! Rows of a token bitmask: bit `id % 32` of word `id / 32` stands for token `id`.

use std::sync::Arc;

pub(crate) fn set(words: &mut [u32], id: u32) {
    words[id as usize / 32] |= 1 << (id % 32);
}

pub(crate) fn is_set(words: &[u32], id: u32) -> bool {
    words[id as usize / 32] >> (id % 32) & 1 == 1
}

pub(crate) fn clear(words: &mut [u32], id: u32) {
    words[id as usize / 32] &= !(1 << (id % 32));
}

/// With more tokens than this a mask is kept as a row of bits.
const FEW: usize = 512;

/// With more changes than this a mask is no longer kept as what was changed.
const MANY: usize = 2048;

/// A finished mask, in the form that is cheapest to keep.
#[derive(Clone, Debug)]
pub(crate) enum Mask {
    Few(Arc<[u32]>),
    Dense(Arc<[u32]>),
    /// A row that many masks share, and what was changed, in order.
    Based {
        base: Arc<[u32]>,
        changes: Arc<[Change]>,
    },
}

/// A token that is allowed, or refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Change(u32);

impl Change {
    const REFUSED: u32 = 1 << 31;

    fn apply(self, words: &mut [u32]) {
        let id = self.0 & !Change::REFUSED;
        if self.0 == id { set(words, id) } else { clear(words, id) }
    }
}

impl Mask {
    /// Keeps a finished row.
    pub(crate) fn of(words: &[u32]) -> Mask {
        let mut ids = Vec::new();
        for (i, &word) in words.iter().enumerate() {
            let mut rest = word;
            while rest != 0 {
                ids.push(i as u32 * 32 + rest.trailing_zeros());
                rest &= rest - 1;
            }
            if ids.len() > FEW {
                return Mask::Dense(words.into());
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
            Mask::Based { base, changes } => {
                words.copy_from_slice(base);
                changes.iter().for_each(|change| change.apply(words));
            }
        }
    }

    /// Adds it to a row.
    pub(crate) fn add_to(&self, words: &mut [u32]) {
        match self {
            Mask::Few(ids) => ids.iter().for_each(|&id| set(words, id)),
            Mask::Dense(row) => row.iter().zip(words).for_each(|(from, to)| *to |= from),
            Mask::Based { .. } => {
                let mut row = vec![0; words.len()];
                self.write(&mut row);
                row.iter().zip(words).for_each(|(from, to)| *to |= from);
            }
        }
    }

    pub(crate) fn memory_size(&self) -> usize {
        match self {
            Mask::Few(row) | Mask::Dense(row) => 4 * row.len() + 32,
            Mask::Based { changes, .. } => 4 * changes.len() + 64,
        }
    }
}

/// A mask in the making: a row, and how it came about, as far as that is a shorter way to keep it.
#[derive(Debug)]
pub(crate) struct Draft<'a> {
    words: &'a mut [u32],
    base: Option<Arc<[u32]>>,
    changes: Vec<Change>,
    /// Whether base and changes say it all.
    is_told: bool,
    refuses: bool,
    /// Whether the row holds what was drafted. A row that is copied over as a whole is not cleared before.
    is_written: bool,
    /// If nothing is written to a row: the masks that were added, while the changes are tokens that were allowed.
    log: Option<Vec<Mask>>,
}

impl<'a> Draft<'a> {
    /// A draft with no tokens; whatever the row holds is written over.
    pub(crate) fn new(words: &'a mut [u32]) -> Self {
        Draft { words, base: None, changes: Vec::new(), is_told: true, refuses: false, is_written: false, log: None }
    }

    /// A draft without a row, which only notes what is allowed.
    pub(crate) fn log() -> Draft<'static> {
        Draft { log: Some(Vec::new()), ..Draft::new(&mut []) }
    }

    /// What was noted: tokens, and masks.
    pub(crate) fn logged(self) -> (Vec<u32>, Vec<Mask>) {
        (self.changes.iter().map(|change| change.0).collect(), self.log.unwrap_or_default())
    }

    /// Whether there are no tokens yet, and some may be taken back.
    pub(crate) fn is_empty(&self) -> bool {
        self.log.is_none() && self.is_told && self.base.is_none() && self.changes.is_empty()
    }

    /// Allows tokens.
    pub(crate) fn allow(&mut self, ids: &[u32]) {
        if self.log.is_some() {
            self.changes.extend(ids.iter().map(|&id| Change(id)));
            return;
        }
        self.write();
        for &id in ids {
            set(self.words, id);
        }
        self.tell(ids, 0);
    }

    /// Takes tokens back.
    pub(crate) fn refuse(&mut self, ids: &[u32]) {
        self.write();
        for &id in ids {
            clear(self.words, id);
        }
        self.refuses = true;
        self.tell(ids, Change::REFUSED);
    }

    fn write(&mut self) {
        if !self.is_written {
            self.words.fill(0);
            self.is_written = true;
        }
    }

    fn tell(&mut self, ids: &[u32], kind: u32) {
        self.is_told &= self.changes.len() + ids.len() <= MANY;
        if self.is_told {
            self.changes.extend(ids.iter().map(|id| Change(id | kind)));
        }
    }

    /// Allows the tokens of a mask.
    pub(crate) fn add(&mut self, mask: &Mask) {
        if let (Mask::Dense(_) | Mask::Based { .. }, Some(log)) = (mask, &mut self.log) {
            return log.push(mask.clone());
        }
        match mask {
            Mask::Few(ids) => self.allow(ids),
            Mask::Dense(row) if self.is_empty() => {
                self.words.copy_from_slice(row);
                self.is_written = true;
                self.base = Some(row.clone());
            }
            _ => {
                self.write();
                mask.add_to(self.words);
                self.is_told = false;
            }
        }
    }

    /// Allows the tokens of another draft.
    pub(crate) fn add_row(&mut self, row: &[u32]) {
        if self.log.is_some() {
            return self.add(&Mask::of(row));
        }
        self.write();
        self.words.iter_mut().zip(row).for_each(|(to, from)| *to |= from);
        self.is_told = false;
    }

    /// The mask, to be kept.
    pub(crate) fn finish(mut self) -> Mask {
        self.write();
        match self.base {
            Some(base) if self.is_told => Mask::Based { base, changes: self.changes.into() },
            None if self.is_told && !self.refuses && self.changes.len() <= FEW => {
                Mask::Few(self.changes.iter().map(|change| change.0).collect())
            }
            _ => Mask::of(self.words),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_what_was_drafted() {
        let dense: Arc<[u32]> = vec![0x5555_5555; 100].into();
        for (base, more) in [(true, 3), (true, 5000), (false, 3), (false, 600)] {
            let mut row = vec![0; 100];
            let mut draft = Draft::new(&mut row);
            if base {
                draft.add(&Mask::Dense(dense.clone()));
            }
            let ids: Vec<u32> = (0..more).map(|i| i * 7 % 3200).collect();
            draft.allow(&ids);
            draft.refuse(&[1, 2, 14]);
            draft.allow(&[14, 99]);
            let mask = draft.finish();
            let mut written = vec![7; 100];
            mask.write(&mut written);
            assert_eq!(written, row);
            assert_eq!((row[0] >> 14 & 1, row[0] >> 2 & 1, row[3] >> 3 & 1), (1, 0, 1));
            let mut added = vec![0; 100];
            mask.add_to(&mut added);
            assert_eq!(added, row);
        }
    }
}
