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

/// Bytes of a text between two places where its characters are counted.
const LONG: usize = 256;

/// Slices with no more texts than this are known by what they hold, longer ones by their list.
pub(crate) const SHORT: usize = 64;

#[derive(Debug)]
pub(crate) struct List {
    texts: Arc<[Box<str>]>,
    /// The least and the most characters among the texts of each block.
    lengths: Arc<[(u32, u32)]>,
    /// Of long texts what is before each block of bytes; of others nothing.
    marks: Arc<[Box<[Mark]>]>,
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
        let mut marks: Vec<Box<[Mark]>> = Vec::new();
        if texts.iter().any(|text| text.len() > LONG) {
            marks.extend(texts.iter().map(|text| marked(text.as_bytes())));
        }
        List { texts, lengths: lengths.into(), marks: marks.into(), selected: None, print }
    }

    /// Those of the texts whose bits are set.
    pub(crate) fn select(&self, bits: Arc<[u64]>) -> List {
        let mut hasher = rustc_hash::FxHasher::default();
        (self.print, &bits).hash(&mut hasher);
        let print = hasher.finish();
        let (texts, lengths, marks) = (self.texts.clone(), self.lengths.clone(), self.marks.clone());
        List { texts, lengths, marks, selected: Some(bits), print }
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
            return least_and_most((lo..hi).map(|at| self.chars(at) - self.chars_before(at, depth as usize)));
        }
        let gone = self.chars_before(lo, depth as usize);
        let blocks = &self.lengths[lo / BLOCK..hi.div_ceil(BLOCK)];
        let (least, most) = blocks.iter().fold((u32::MAX, 0), |(a, b), &(c, d)| (a.min(c), b.max(d)));
        // The blocks at the ends hold texts of other slices, too.
        (least.saturating_sub(gone), most - gone)
    }

    /// How many characters a text has.
    fn chars(&self, at: usize) -> u32 {
        self.chars_before(at, self.texts[at].len())
    }

    /// How many characters of a text begin before a byte.
    fn chars_before(&self, at: usize, byte: usize) -> u32 {
        self.before(at, byte).chars
    }

    /// What is before a byte of a text.
    fn before(&self, at: usize, byte: usize) -> Mark {
        let text = self.texts[at].as_bytes();
        let block = byte / LONG;
        let mark = self.marks.get(at).and_then(|marks| marks.get(block)).copied();
        match mark {
            Some(mark) => mark.and(&text[block * LONG..byte]),
            None => Mark::default().and(&text[..byte]),
        }
    }

    /// A hash of the rest of a text, the same for equal rests.
    fn hash_of_rest(&self, at: usize, depth: usize, to: &mut impl Hasher) {
        let text = self.texts[at].as_bytes();
        let length = text.len() - depth;
        if length <= LONG {
            return text[depth..].hash(to);
        }
        let (gone, all) = (self.before(at, depth).hash, self.before(at, text.len()).hash);
        let rest = (all + PRIME - times(gone, power(length))) % PRIME;
        (length, rest).hash(to);
    }

    /// A hash of a slice, the same in every store.
    pub(crate) fn hash(&self, lo: u32, hi: u32, depth: u32, to: &mut impl Hasher) {
        if (hi - lo) as usize <= SHORT {
            self.places(lo as usize..hi as usize).for_each(|at| self.hash_of_rest(at, depth as usize, to));
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
    least_and_most(texts.map(|text| text.chars().count() as u32))
}

fn least_and_most(counts: impl Iterator<Item = u32>) -> (u32, u32) {
    counts.fold((u32::MAX, 0), |(least, most), count| (least.min(count), most.max(count)))
}

/// The beginning of a text: how many characters it has, and its hash, which tells those of rests.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    chars: u32,
    hash: u64,
}

/// Hashes are polynomials of the bytes, modulo this.
const PRIME: u64 = (1 << 61) - 1;
const BASE: u64 = 0x1CE4_E5B9_BF58_476D % PRIME;

impl Mark {
    /// The beginning with more bytes.
    fn and(self, bytes: &[u8]) -> Mark {
        // A character begins with each byte that continues none.
        let chars = self.chars + bytes.iter().filter(|&&byte| byte & 0xC0 != 0x80).count() as u32;
        let hash = bytes.iter().fold(self.hash, |hash, &byte| (times(hash, BASE) + u64::from(byte) + 1) % PRIME);
        Mark { chars, hash }
    }
}

fn times(a: u64, b: u64) -> u64 {
    (u128::from(a) * u128::from(b) % u128::from(PRIME)) as u64
}

/// The base, so many times.
fn power(times_in_all: usize) -> u64 {
    let (mut power, mut square, mut left) = (1, BASE, times_in_all);
    while left > 0 {
        if left % 2 == 1 {
            power = times(power, square);
        }
        square = times(square, square);
        left /= 2;
    }
    power
}

/// What is before each block of a text; nothing of a short one.
fn marked(text: &[u8]) -> Box<[Mark]> {
    let mut marks = Vec::new();
    if text.len() > LONG {
        marks.push(Mark::default());
        for block in text.chunks_exact(LONG) {
            marks.push(marks[marks.len() - 1].and(block));
        }
    }
    marks.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rests_of_long_texts_are_known_from_any_place() {
        let texts = ["a".repeat(LONG), "é".repeat(LONG), "aé".repeat(LONG), "b".into(), "😀".repeat(2 * LONG + 1)];
        let list = List::new(texts.iter().map(|text| text.as_str().into()).collect());
        let hash = |list: &List, at: usize, depth: usize| {
            let mut hasher = rustc_hash::FxHasher::default();
            list.hash(at as u32, at as u32 + 1, depth as u32, &mut hasher);
            hasher.finish()
        };
        for (at, text) in texts.iter().enumerate() {
            for depth in (0..=text.len()).step_by(7).filter(|&depth| text.is_char_boundary(depth)) {
                let expected = text[depth..].chars().count() as u32;
                assert_eq!(list.bounds(at as u32, at as u32 + 1, depth as u32), (expected, expected), "{at} {depth}");
                let rest = List::new([text[depth..].into()].into());
                assert_eq!(hash(&list, at, depth), hash(&rest, 0, 0), "{at} {depth}");
            }
        }
        assert_ne!(hash(&list, 1, 0), hash(&list, 2, LONG));
    }
}
