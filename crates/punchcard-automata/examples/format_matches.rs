//! Reads JSON arrays `[format, text]`, one a line, and says of each whether the text is in the format.
//!
//!     cargo run --release -p punchcard-automata --example format_matches < texts.jsonl

use punchcard_automata::{Languages, formats};
use std::io::BufRead;

fn main() {
    let mut languages = Languages::new();
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("standard input is text");
        let (format, text): (String, String) = serde_json::from_str(&line).expect("a line is [format, text]");
        let language = formats::language(&format, &mut languages).expect("the format is known");
        println!("{}", languages.matches(language, &text));
    }
}
