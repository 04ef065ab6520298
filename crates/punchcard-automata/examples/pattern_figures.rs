//! How long patterns take: reads one JSON string a line from standard input, and prints what is refused and why, and the
//! median and worst times to read and lower a pattern, to take its first transitions, and to find an example within bounds
//! on the length.
//!
//! `cargo run --release -p punchcard-automata --example pattern_figures < patterns.jsonl`

use punchcard_automata::languages::UNBOUNDED;
use punchcard_automata::pattern::{Options, parse};
use punchcard_automata::{Language, Languages};
use std::collections::BTreeMap;
use std::io::BufRead;
use std::time::{Duration, Instant};

fn main() {
    let mut times: BTreeMap<&str, Vec<(Duration, String)>> = BTreeMap::new();
    let (mut refused, mut plain, mut looks, mut read) = (0, 0, 0, 0);
    let mut before = None;
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let Ok(source) = serde_json::from_str::<String>(&line) else { continue };
        let mut languages = Languages::new();
        let mut record = |what, start: Instant| times.entry(what).or_default().push((start.elapsed(), source.clone()));
        let start = Instant::now();
        let pattern = match parse(&source, &Options::default()) {
            Ok(pattern) => pattern,
            Err(error) => {
                refused += 1;
                println!("refused: {source:?}: {error}");
                continue;
            }
        };
        read += 1;
        let Ok(language) = pattern.search(&mut languages) else {
            println!("too large: {source:?}");
            continue;
        };
        record("1 read and lower", start);
        plain += usize::from(languages.is_plain(language));
        looks += usize::from(languages.looks(language));
        let start = Instant::now();
        let mut at = vec![language];
        for _ in 0..4 {
            let next: Vec<Language> =
                at.iter().flat_map(|&l| languages.transitions(l).targets().to_vec()).take(20).collect();
            at = next;
            at.sort_unstable();
            at.dedup();
        }
        record("2 first transitions", start);
        let start = Instant::now();
        let example = languages.example(language);
        record("3 an example", start);
        let shortest = match example {
            Ok(Some(text)) => text.chars().count() as u32,
            Ok(None) => {
                println!("matches nothing: {source:?}");
                continue;
            }
            Err(limit) => {
                println!("example: {source:?}: {limit:?}");
                continue;
            }
        };
        for (what, min, max) in [
            ("4 a text of the shortest length", 0, shortest),
            ("5 a text of 20 to 30 characters", 20, 30),
            ("6 a text of 200 characters or more", 200, UNBOUNDED),
        ] {
            let start = Instant::now();
            let length = languages.length(min, max);
            let both = languages.and([language, length]);
            if let Err(limit) = languages.is_viable(both) {
                println!("{what}: {source:?}: {limit:?}");
            }
            record(what, start);
        }
        let start = Instant::now();
        let not = languages.not(language);
        if let Err(limit) = languages.is_viable(not) {
            println!("negated: {source:?}: {limit:?}");
        }
        record("7 a text that it does not match", start);
        let mut at = language;
        let start = Instant::now();
        for c in std::iter::repeat_n("aaaaaaaaaaaaaaa1.-/ Z_:".chars(), 4).flatten() {
            at = languages.step(at, c as u32);
        }
        record("8 92 steps", start);
        if let Some(other) = before.replace(source.clone())
            && let Ok(other) = parse(&other, &Options::default())
            && let Ok(other) = other.search(&mut languages)
        {
            let not_other = languages.not(other);
            for (what, other) in
                [("9 a text of this and the last pattern", other), ("10 of this and not of the last", not_other)]
            {
                let start = Instant::now();
                let both = languages.and([language, other]);
                if let Err(limit) = languages.is_viable(both) {
                    println!("{what}: {source:?}: {limit:?}");
                }
                record(what, start);
            }
        }
        let size = Duration::from_micros(languages.len() as u64);
        times.entry("expressions (as µs)").or_default().push((size, source.clone()));
    }
    println!("{read} read ({plain} plain, {looks} with assertions left), {refused} refused");
    for (what, mut list) in times {
        list.sort();
        let total: Duration = list.iter().map(|(d, _)| *d).sum();
        println!("{what}: median {:?}, all {total:?}; slowest:", list[list.len() / 2].0);
        for (time, source) in list.iter().rev().take(4) {
            println!("    {time:?} {}", source.chars().take(150).collect::<String>());
        }
    }
}
