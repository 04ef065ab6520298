//! What the formats are put together from.

use crate::charset::CharSet;
use crate::languages::{Language, Languages};

/// A set of characters as it is written in brackets: `"a-z0-9_"`. A minus stands first or last.
pub(super) fn chars(spec: &str) -> CharSet {
    let spec: Vec<char> = spec.chars().collect();
    let mut ranges = Vec::new();
    let mut at = 0;
    while let Some(&lo) = spec.get(at) {
        let hi = match spec.get(at + 1..at + 3) {
            Some(&['-', hi]) => hi,
            _ => lo,
        };
        at += if hi == lo { 1 } else { 3 };
        ranges.push((lo as u32, hi as u32));
    }
    CharSet::new(ranges)
}

/// The parts of a format, by the short names that its grammar has for them.
impl Languages {
    /// One character out of [`chars`].
    pub(super) fn one_of(&mut self, spec: &str) -> Language {
        self.set(chars(spec))
    }

    pub(super) fn digit(&mut self) -> Language {
        self.one_of("0-9")
    }

    pub(super) fn some_digits(&mut self) -> Language {
        let digit = self.digit();
        self.plus(digit)
    }

    pub(super) fn hex_digit(&mut self) -> Language {
        self.one_of("0-9A-Fa-f")
    }

    /// The numbers from `low` to `high` (at most 99), always in two digits.
    pub(super) fn two_digits(&mut self, low: u32, high: u32) -> Language {
        let digit = |d: u32| '0' as u32 + d;
        let rows: Vec<Language> = (low / 10..=high / 10)
            .map(|tens| {
                let first = if tens == low / 10 { low % 10 } else { 0 };
                let last = if tens == high / 10 { high % 10 } else { 9 };
                let tens = self.set(CharSet::new([(digit(tens), digit(tens))]));
                let units = self.set(CharSet::new([(digit(first), digit(last))]));
                self.concat(tens, units)
            })
            .collect();
        self.union(rows)
    }

    /// One or more.
    pub(super) fn plus(&mut self, a: Language) -> Language {
        self.repeat(a, 1, crate::languages::UNBOUNDED)
    }

    /// One or more of `a` with `separator` between them.
    pub(super) fn separated(&mut self, a: Language, separator: Language) -> Language {
        let more = self.concat(separator, a);
        let more = self.star(more);
        self.concat(a, more)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bracket_notation() {
        assert_eq!(chars("a-c-").ranges(), &[(45, 45), (97, 99)]);
        assert_eq!(chars("-_a").ranges(), &[(45, 45), (95, 95), (97, 97)]);
    }

    #[test]
    fn numbers_in_two_digits() {
        let mut l = Languages::new();
        let range = l.two_digits(7, 31);
        for n in 0..100 {
            assert_eq!(l.matches(range, &format!("{n:02}")), (7..=31).contains(&n), "{n}");
        }
    }
}
