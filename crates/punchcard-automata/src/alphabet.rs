//! Alphabets: the characters in classes, as a [`Machine`](crate::Machine) tells them apart.
//!
//! Invariant: `starts` is sorted and begins with 0; the characters from one start up to the next are of one class.

use crate::charset::{CharSet, MAX};
use rustc_hash::FxHashMap;

/// All characters, divided into classes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alphabet {
    starts: Box<[u32]>,
    classes: Box<[u32]>,
}

impl Alphabet {
    /// The coarsest classes by which each of the sets is a union of some.
    pub fn new(sets: &[CharSet]) -> Self {
        // Every edge of a range turns the membership in one set on or off.
        let edges = sets.iter().zip(0..).flat_map(|(set, i): (&CharSet, usize)| {
            set.ranges().iter().flat_map(move |&(low, high)| [(low, i), (high + 1, i)])
        });
        let mut edges: Vec<(u32, usize)> = edges.filter(|&(at, _)| at <= MAX).collect();
        edges.sort_unstable();
        let mut within = vec![0u64; sets.len().div_ceil(64)];
        let mut known = FxHashMap::default();
        known.insert(within.clone(), 0);
        let (mut starts, mut classes) = (vec![0], vec![0]);
        let mut edges = edges.into_iter().peekable();
        while let Some(&(at, _)) = edges.peek() {
            while let Some((_, i)) = edges.next_if(|edge| edge.0 == at) {
                within[i / 64] ^= 1 << (i % 64);
            }
            let next = known.len() as u32;
            let class = known.get(&within).copied().unwrap_or(next);
            if class == next {
                known.insert(within.clone(), next);
            }
            if at == 0 {
                classes[0] = class;
            } else {
                starts.push(at);
                classes.push(class);
            }
        }
        Alphabet { starts: starts.into(), classes: classes.into() }
    }

    /// Where the class of the characters changes; begins with 0.
    pub fn starts(&self) -> &[u32] {
        &self.starts
    }

    /// The class from each start on.
    pub fn classes(&self) -> &[u32] {
        &self.classes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_tell_the_sets_apart() {
        let sets = [CharSet::new([(0, 9), (20, 29)]), CharSet::new([(5, 24)]), CharSet::new([(40, MAX)])];
        let alphabet = Alphabet::new(&sets);
        let class = |c: u32| alphabet.classes()[alphabet.starts().partition_point(|&start| start <= c) - 1];
        for a in 0..50 {
            for b in 0..50 {
                let alike = sets.iter().all(|set| set.contains(a) == set.contains(b));
                assert_eq!(class(a) == class(b), alike, "{a} {b}");
            }
        }
    }
}
