//! Sets of Unicode scalar values.
//!
//! Invariant: ranges are inclusive, sorted, neither overlap nor touch, and hold no surrogate (U+D800 to U+DFFF is a hole
//! in the alphabet, not a set of characters). So equal sets are equal values.

/// The largest code point.
pub const MAX: u32 = 0x10FFFF;
const SURROGATES: (u32, u32) = (0xD800, 0xDFFF);

/// A set of Unicode scalar values, as sorted inclusive ranges.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct CharSet(Box<[(u32, u32)]>);

impl CharSet {
    /// The set of the given inclusive ranges, in any order; surrogates are left out.
    pub fn new(ranges: impl IntoIterator<Item = (u32, u32)>) -> Self {
        let mut list: Vec<(u32, u32)> = Vec::new();
        for (lo, hi) in ranges {
            let hi = hi.min(MAX);
            if lo > hi {
                continue;
            }
            if lo < SURROGATES.0 {
                list.push((lo, hi.min(SURROGATES.0 - 1)));
            }
            if hi > SURROGATES.1 {
                list.push((lo.max(SURROGATES.1 + 1), hi));
            }
        }
        list.sort_unstable();
        let mut merged: Vec<(u32, u32)> = Vec::with_capacity(list.len());
        for (lo, hi) in list {
            match merged.last_mut() {
                // Two ranges that meet across the surrogates stay apart; within the alphabet they join.
                Some(last) if lo <= last.1.saturating_add(1) => last.1 = last.1.max(hi),
                _ => merged.push((lo, hi)),
            }
        }
        CharSet(merged.into())
    }

    /// Every scalar value.
    pub fn any() -> Self {
        CharSet::new([(0, MAX)])
    }

    /// One character.
    pub fn single(c: char) -> Self {
        CharSet::new([(c as u32, c as u32)])
    }

    /// The inclusive ranges, sorted.
    pub fn ranges(&self) -> &[(u32, u32)] {
        &self.0
    }

    /// Whether no character is in the set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the code point `c` is in the set.
    pub fn contains(&self, c: u32) -> bool {
        let i = self.0.partition_point(|&(_, hi)| hi < c);
        self.0.get(i).is_some_and(|&(lo, _)| lo <= c)
    }

    /// All characters that are not in the set.
    pub fn complement(&self) -> Self {
        let mut out = Vec::with_capacity(self.0.len() + 1);
        let mut next = 0;
        for &(lo, hi) in self.0.iter() {
            if next < lo {
                out.push((next, lo - 1));
            }
            next = hi + 1;
        }
        if next <= MAX {
            out.push((next, MAX));
        }
        CharSet::new(out)
    }

    /// The characters in either set.
    pub fn union(&self, other: &Self) -> Self {
        CharSet::new(self.0.iter().chain(other.0.iter()).copied())
    }

    /// The characters in both sets.
    pub fn intersection(&self, other: &Self) -> Self {
        let (mut i, mut j, mut out) = (0, 0, Vec::new());
        while let (Some(&a), Some(&b)) = (self.0.get(i), other.0.get(j)) {
            let (lo, hi) = (a.0.max(b.0), a.1.min(b.1));
            if lo <= hi {
                out.push((lo, hi));
            }
            if a.1 < b.1 { i += 1 } else { j += 1 }
        }
        CharSet(out.into())
    }

    /// The characters of this set that are not in `other`.
    pub fn difference(&self, other: &Self) -> Self {
        self.intersection(&other.complement())
    }

    /// How many characters the set holds.
    pub fn len(&self) -> usize {
        self.0.iter().map(|&(lo, hi)| (hi - lo + 1) as usize).sum()
    }
}

impl FromIterator<(u32, u32)> for CharSet {
    fn from_iter<T: IntoIterator<Item = (u32, u32)>>(ranges: T) -> Self {
        CharSet::new(ranges)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_merged_and_surrogates_left_out() {
        assert_eq!(CharSet::new([(5, 9), (1, 3), (4, 4), (7, 12)]).ranges(), &[(1, 12)]);
        assert_eq!(CharSet::any().ranges(), &[(0, 0xD7FF), (0xE000, MAX)]);
        assert!(CharSet::any().complement().is_empty());
    }

    #[test]
    fn boolean_operations_agree_with_membership() {
        let a = CharSet::new([(10, 20), (30, 40)]);
        let b = CharSet::new([(15, 35)]);
        for c in 0..60 {
            assert_eq!(a.union(&b).contains(c), a.contains(c) || b.contains(c));
            assert_eq!(a.intersection(&b).contains(c), a.contains(c) && b.contains(c));
            assert_eq!(a.difference(&b).contains(c), a.contains(c) && !b.contains(c));
            assert_eq!(a.complement().contains(c), !a.contains(c));
        }
        assert_eq!(a.len(), 22);
    }
}
