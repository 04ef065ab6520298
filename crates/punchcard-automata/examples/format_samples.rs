//! Random texts of the formats, one JSON array `[format, text]` a line, for other validators to judge.
//!
//!     cargo run --release -p punchcard-automata --example format_samples -- 200 [SEED [FORMAT...]]

#[path = "../tests/walk/mod.rs"]
mod walk;

use punchcard_automata::{Languages, formats};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let count = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(100);
    let seed = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(1);
    let chosen: Vec<String> = arguments.collect();
    let mut random = walk::Random::new(seed);
    for format in formats::names().filter(|name| chosen.is_empty() || chosen.iter().any(|c| c == name)) {
        let mut languages = Languages::new();
        let start = formats::language(format, &mut languages).expect("it is on the list");
        for _ in 0..count {
            let text = walk::walk(&mut languages, start, "", &mut random);
            println!("{}", serde_json::json!([format, text]));
        }
    }
}
