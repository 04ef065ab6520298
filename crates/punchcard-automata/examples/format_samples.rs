//! Random texts of the formats, one JSON array `[format, text]` a line, for other validators to judge.
//!
//!     cargo run --release -p punchcard-automata --example format_samples -- 200 [SEED [FORMAT...]]
//!
//! A walk takes transitions at random until it may end. Of the characters that lead to one state it takes any, with a
//! liking for the ends of their ranges.

use punchcard_automata::{Language, Languages, formats};

/// A small generator of random numbers (xorshift), so that a seed gives the same texts everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % n
    }
}

fn walk(languages: &mut Languages, start: Language, random: &mut Random) -> String {
    let (mut at, mut text) = (start, String::new());
    let length = [4, 12, 30, 80, 300][random.below(5)];
    // Mostly ASCII, or mostly anything.
    let ascii = random.below(3) > 0;
    loop {
        let arcs = languages.transitions(at);
        let arcs: Vec<_> = arcs
            .over(0, 0x10_FFFF)
            .filter(|&(.., target)| languages.is_viable(target).expect("formats are small"))
            .collect();
        let end = languages.is_nullable(at) && (text.chars().count() >= length || random.below(12) == 0);
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

fn main() {
    let mut arguments = std::env::args().skip(1);
    let count = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(100);
    let seed = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(1u64);
    let chosen: Vec<String> = arguments.collect();
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    for format in formats::names().filter(|name| chosen.is_empty() || chosen.iter().any(|c| c == name)) {
        let mut languages = Languages::new();
        let start = formats::language(format, &mut languages).expect("it is on the list");
        for _ in 0..count {
            let text = walk(&mut languages, start, &mut random);
            assert!(languages.matches(start, &text), "{text:?}");
            println!("{}", serde_json::json!([format, text]));
        }
    }
}
