//! Sorted lists of texts, and selections of their texts.
//!
//! A language of texts is a slice of a list, so nothing about a slice may take time in proportion to it: each character of
//! a text has a slice of its own. The names that may come next in a large object are a selection of the same list at each
//! place, a bit for each text.

use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

/// How many texts share a summary.
const BLOCK: usize = 64;

/// Slices with no more texts than this are known by what they hold, longer ones by their list.
pub(crate) const SHORT: usize = 64;

#[derive(Debug)]
pub(crate) struct List {
    texts: Arc<[Box<str>]>,
    /// The least and the most characters among the texts of each block.
    lengths: Arc<[(u32, u32)]>,
    /// The texts that are selected, as bits; `None` for all.
    selected: Option<Arc<[u64]>>,
    print: u64,
}

impl List {
    pub(crate) fn new(texts: Arc<[Box<str>]>) -> List {
        let mut lengths = Vec::new();
        let mut print = 0;
        if texts.len() > BLOCK {
            for block in texts.chunks(BLOCK) {
                lengths.push(bounds(block.iter().map(|text| &**text)));
            }
            let mut hasher = rustc_hash::FxHasher::default();
            texts.hash(&mut hasher);
            print = hasher.finish();
        }
        List { texts, lengths: lengths.into(), selected: None, print }
    }

    /// Those of the texts whose bits are set.
    pub(crate) fn select(&self, bits: Arc<[u64]>) -> List {
        let mut hasher = rustc_hash::FxHasher::default();
        (self.print, &bits).hash(&mut hasher);
        let print = hasher.finish();
        List { texts: self.texts.clone(), lengths: self.lengths.clone(), selected: Some(bits), print }
    }

    pub(crate) fn len(&self) -> usize {
        self.texts.len()
    }

    /// All texts, also those that are not selected.
    pub(crate) fn texts(&self) -> Arc<[Box<str>]> {
        self.texts.clone()
    }

    pub(crate) fn is_selection(&self) -> bool {
        self.selected.is_some()
    }

    /// Texts of a slice, also those that are not selected.
    pub(crate) fn slice(&self, lo: u32, hi: u32) -> &[Box<str>] {
        &self.texts[lo as usize..hi as usize]
    }

    /// The places of the texts of a slice that are selected.
    fn places(&self, slice: Range<usize>) -> impl Iterator<Item = usize> {
        let mut next = slice.start;
        std::iter::from_fn(move || {
            let at = self.first(next..slice.end)?;
            next = at + 1;
            Some(at)
        })
    }

    /// The first text of a slice that is selected.
    fn first(&self, slice: Range<usize>) -> Option<usize> {
        let Some(bits) = &self.selected else { return Some(slice.start).filter(|_| !slice.is_empty()) };
        let mut at = slice.start;
        while at < slice.end {
            let rest = bits[at / 64] >> (at % 64);
            if rest != 0 {
                return Some(at + rest.trailing_zeros() as usize).filter(|&found| found < slice.end);
            }
            at = (at / 64 + 1) * 64;
        }
        None
    }

    fn last(&self, slice: Range<usize>) -> Option<usize> {
        let Some(bits) = &self.selected else { return slice.end.checked_sub(1).filter(|_| !slice.is_empty()) };
        let mut end = slice.end;
        while end > slice.start {
            let rest = bits[(end - 1) / 64] << (63 - (end - 1) % 64);
            if rest != 0 {
                return Some(end - 1 - rest.leading_zeros() as usize).filter(|&found| found >= slice.start);
            }
            end = (end - 1) / 64 * 64;
        }
        None
    }

    /// The slice without texts at its ends that are not selected; empty if none are.
    pub(crate) fn shrink(&self, lo: u32, hi: u32) -> (u32, u32) {
        let slice = lo as usize..hi as usize;
        match (self.first(slice.clone()), self.last(slice)) {
            (Some(first), Some(last)) => (first as u32, last as u32 + 1),
            _ => (lo, lo),
        }
    }

    /// The rests of the selected texts of a slice.
    pub(crate) fn rests(&self, lo: u32, hi: u32, depth: u32) -> impl Iterator<Item = &str> {
        self.places(lo as usize..hi as usize).map(move |at| &self.texts[at][depth as usize..])
    }

    /// Whether a text is among the rests of a slice.
    pub(crate) fn has(&self, lo: u32, hi: u32, depth: u32, text: &str) -> bool {
        let found = self.slice(lo, hi).binary_search_by(|other| other[depth as usize..].cmp(text));
        found.is_ok_and(|at| self.first(lo as usize + at..lo as usize + at + 1).is_some())
    }

    /// Bounds on the number of characters of the rests: those of all texts of the slice if it is long.
    pub(crate) fn bounds(&self, lo: u32, hi: u32, depth: u32) -> (u32, u32) {
        let (lo, hi) = (lo as usize, hi as usize);
        if hi - lo <= 2 * BLOCK || self.lengths.is_empty() {
            return bounds(self.texts[lo..hi].iter().map(|text| &text[depth as usize..]));
        }
        let gone = self.texts[lo][..depth as usize].chars().count() as u32;
        let blocks = &self.lengths[lo / BLOCK..hi.div_ceil(BLOCK)];
        let (least, most) = blocks.iter().fold((u32::MAX, 0), |(a, b), &(c, d)| (a.min(c), b.max(d)));
        // The blocks at the ends hold texts of other slices, too.
        (least.saturating_sub(gone), most - gone)
    }

    /// A hash of a slice, the same in every store.
    pub(crate) fn hash(&self, lo: u32, hi: u32, depth: u32, to: &mut impl Hasher) {
        if (hi - lo) as usize <= SHORT {
            self.rests(lo, hi, depth).for_each(|text| text.as_bytes().hash(to));
        } else {
            (self.print, lo, hi, depth).hash(to);
        }
    }

    pub(crate) fn memory_size(&self) -> usize {
        self.selected
            .as_ref()
            .map_or_else(|| self.texts.iter().map(|text| 16 + text.len()).sum(), |bits| 8 * bits.len())
    }
}

fn bounds<'a>(texts: impl Iterator<Item = &'a str>) -> (u32, u32) {
    texts.map(|text| text.chars().count() as u32).fold((u32::MAX, 0), |(a, b), n| (a.min(n), b.max(n)))
}
