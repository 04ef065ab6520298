//! What the flag i makes of a set of characters in Python.
//!
//! Python folds neither fully nor simply: a character of the text matches one of the pattern if both have the same
//! lower case (its first character, where it has several), or if the lower cases differ but have the same upper case: `ſ`
//! and `s`, `ς` and `σ`, the two `ΐ`. A class is folded only if it holds a character with case; then `\w` and the like in it
//! look at the lower case of the text too.

use super::sets;
use crate::charset::CharSet;
use hashbrown::HashMap;
use std::sync::LazyLock;

/// The members of a class: characters, and what `\w` and the like stand for.
#[derive(Default)]
pub(super) struct Members {
    pub chars: Vec<(u32, u32)>,
    pub categories: Vec<(u32, u32)>,
}

struct Cases {
    /// Characters with another lower case, and that.
    lower: Vec<(u32, u32)>,
    /// The same characters, as a set and by their lower case.
    lowered: CharSet,
    by_lower: Vec<(u32, u32)>,
    /// Those with another lower or upper case.
    cased: CharSet,
    /// The lower cases of other characters with the same upper case.
    twins: HashMap<u32, Vec<u32>>,
}

static CASES: LazyLock<Cases> = LazyLock::new(|| {
    let (lowered, uppered) = (sets::known("Changes_When_Lowercased"), sets::known("Changes_When_Uppercased"));
    let chars = |set: &CharSet| -> Vec<char> {
        set.ranges().iter().flat_map(|&(lo, hi)| lo..=hi).filter_map(char::from_u32).collect()
    };
    let lower: Vec<(u32, u32)> = chars(&lowered).into_iter().map(|c| (c as u32, lower_case(c))).collect();
    let mut by_lower: Vec<(u32, u32)> = lower.iter().map(|&(c, lower)| (lower, c)).collect();
    by_lower.sort_unstable();
    let mut by_upper: HashMap<String, Vec<u32>> = HashMap::new();
    for c in chars(&uppered).into_iter().filter(|&c| lower_case(c) == c as u32) {
        by_upper.entry(c.to_uppercase().collect()).or_default().push(c as u32);
    }
    let mut twins = HashMap::new();
    for group in by_upper.into_values() {
        for &c in &group {
            twins.insert(c, group.iter().copied().filter(|&other| other != c).collect());
        }
    }
    let cased = lowered.union(&uppered);
    Cases { lowered: lower.iter().map(|&(c, _)| (c, c)).collect(), lower, by_lower, cased, twins }
});

/// The first character of the lower case.
fn lower_case(c: char) -> u32 {
    c.to_lowercase().next().unwrap_or(c) as u32
}

/// All characters that match a class under the flag i.
pub(super) fn fold(members: Members, ascii: bool) -> CharSet {
    let chars = CharSet::new(members.chars);
    let categories = CharSet::new(members.categories);
    if ascii {
        let letters = chars.intersection(&CharSet::new([(0x41, 0x5A), (0x61, 0x7A)]));
        let other_case = letters.ranges().iter().flat_map(|&(lo, hi)| lo..=hi).map(|c| (c ^ 0x20, c ^ 0x20)).collect();
        return chars.union(&other_case).union(&categories);
    }
    let cases = &*CASES;
    let cased = chars.intersection(&cases.cased);
    if cased.is_empty() {
        return chars.union(&categories);
    }
    let lower_of = |c: u32| cases.lower.binary_search_by_key(&c, |&(c, _)| c).map_or(c, |i| cases.lower[i].1);
    let mut wanted: Vec<(u32, u32)> = chars.difference(&cased).ranges().to_vec();
    for c in cased.ranges().iter().flat_map(|&(lo, hi)| lo..=hi).map(lower_of) {
        wanted.push((c, c));
        wanted.extend(cases.twins.get(&c).into_iter().flatten().map(|&c| (c, c)));
    }
    lowered_into(&CharSet::new(wanted).union(&categories))
}

/// All characters whose lower case is in the set.
fn lowered_into(set: &CharSet) -> CharSet {
    let others = set.ranges().iter().flat_map(|&(lo, hi)| {
        let first = CASES.by_lower.partition_point(|&(lower, _)| lower < lo);
        CASES.by_lower[first..].iter().take_while(move |&&(lower, _)| lower <= hi).map(|&(_, c)| (c, c))
    });
    set.difference(&CASES.lowered).union(&others.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> String {
        let chars = text.chars().map(|c| (c as u32, c as u32)).collect();
        let set = fold(Members { chars, ..Members::default() }, false);
        set.ranges().iter().flat_map(|&(lo, hi)| lo..=hi).filter_map(char::from_u32).collect()
    }

    #[test]
    fn equivalents_are_those_of_cpython() {
        let cases = [
            ("k", "Kk\u{212A}"),
            ("\u{212A}", "Kk\u{212A}"),
            ("S", "Ssſ"),
            ("i", "Iiİı"),
            ("ı", "Iiİı"),
            ("ß", "ßẞ"),
            ("Σ", "Σςσ"),
            ("µ", "µΜμ"),
            ("\u{1C5}", "\u{1C4}\u{1C5}\u{1C6}"),
            ("\u{390}", "\u{390}\u{1FD3}"),
            ("\u{FB05}", "\u{FB05}\u{FB06}"),
            ("\u{345}", "\u{345}Ιι\u{1FBE}"),
            ("𐐀", "𐐀𐐨"),
            ("1_", "1_"),
        ];
        for (text, expected) in cases {
            assert_eq!(of(text), expected, "{text}");
        }
    }
}
