//! Random texts of a language.

use punchcard_automata::{Language, Languages};

/// A small generator of random numbers (xorshift), so that a seed gives the same texts everywhere.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % n
    }
}

/// A text of the language that begins with `prefix`.
///
/// A walk takes transitions at random, and from some length on those that lead to an end. Of the characters that lead to
/// one state it takes any, with a liking for the ends of their ranges. Panics at a dead end.
pub fn walk(languages: &mut Languages, start: Language, prefix: &str, random: &mut Random) -> String {
    let mut text = prefix.to_owned();
    let mut at = prefix.chars().fold(start, |at, c| languages.transitions(at).target(c as u32));
    let length = prefix.len() + [4, 12, 30, 80, 300][random.below(5)];
    // Mostly ASCII, or mostly anything.
    let ascii = random.below(3) > 0;
    loop {
        let arcs = languages.transitions(at);
        let mut arcs: Vec<_> = arcs
            .over(0, 0x10_FFFF)
            .filter(|&(.., target)| languages.is_viable(target).expect("no limit is near"))
            .collect();
        let long = text.chars().count() >= length;
        if long {
            let least = |arc: &(u32, u32, Language)| languages.length_bounds(arc.2).0;
            let best = arcs.iter().map(least).min();
            arcs.retain(|arc| Some(least(arc)) == best);
        }
        let end = languages.is_nullable(at) && (long || random.below(12) == 0);
        if end || arcs.is_empty() {
            assert!(languages.is_nullable(at), "a dead end after {text:?}");
            return text;
        }
        let (low, high, target) = loop {
            let arc = arcs[random.below(arcs.len())];
            if arc.0 < 0x80 || !ascii || random.below(20) == 0 || arcs.iter().all(|arc| arc.0 >= 0x80) {
                break arc;
            }
        };
        let c = match random.below(4) {
            0 => low,
            1 => high,
            _ => low + random.below((high - low + 1) as usize) as u32,
        };
        if let Some(c) = char::from_u32(c) {
            text.push(c);
            at = target;
        }
    }
}
