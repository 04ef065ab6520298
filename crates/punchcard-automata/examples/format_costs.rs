//! What each format costs: the time to build it and to take the first 20 transitions, and the states that a text meets.
//!
//!     cargo run --release -p punchcard-automata --example format_costs

use punchcard_automata::{Languages, formats};
use std::time::Instant;

const TYPICAL: [(&str, &str); 19] = [
    ("date", "2024-02-29"),
    ("date-time", "1998-12-31T15:59:60.123-08:00"),
    ("duration", "P3Y6M4DT12H30M5S"),
    ("email", "maria.sanchez+lists@mail.example.com"),
    ("hostname", "services-01.eu-west.example.com"),
    ("idn-email", "δοκιμή@παράδειγμα.gr"),
    ("idn-hostname", "straße.münchen.example.de"),
    ("ipv4", "192.168.100.254"),
    ("ipv6", "2001:db8:85a3::8a2e:370:7334"),
    ("iri", "https://例え.jp/パス?キー=値#節"),
    ("iri-reference", "../パス?キー=値#節"),
    ("json-pointer", "/paths/~1users~1{id}/get/0"),
    ("regex", r"^(?<area>[A-Z]{2,3})-\d+(?:\.\d*)?$"),
    ("relative-json-pointer", "2/items/0/name"),
    ("time", "08:30:06.283185+05:30"),
    ("uri", "https://user@www.example.com:8080/a/b%20c?x=1&y=2#top"),
    ("uri-reference", "/a/b%20c?x=1&y=2#top"),
    ("uri-template", "http://example.com/{version}/users{/id}{?fields*,limit:3}"),
    ("uuid", "123e4567-e89b-12d3-a456-426614174000"),
];

struct Costs {
    build: f64,
    first: f64,
    all: f64,
    again: f64,
    states: usize,
    expressions: usize,
    memory: usize,
}

fn measure(format: &str, text: &str) -> Costs {
    let micros = |since: Instant| since.elapsed().as_nanos() as f64 / 1000.0;
    let mut languages = Languages::new();
    let began = Instant::now();
    let start = formats::language(format, &mut languages).expect("it is on the list");
    let build = micros(began);

    let began = Instant::now();
    let (mut states, mut first, mut at) = (vec![start], None, start);
    for (i, c) in text.chars().enumerate() {
        at = languages.transitions(at).target(c as u32);
        assert!(languages.is_viable(at).expect("no limit is near"), "{format} {text}");
        states.push(at);
        if i == 19 {
            first = Some(micros(began));
        }
    }
    let all = micros(began);
    assert!(languages.is_nullable(at), "{format} {text}");

    let began = Instant::now();
    let again = text.chars().fold(start, |at, c| languages.transitions(at).target(c as u32));
    let warm = micros(began);
    assert_eq!(again, at);

    states.sort_unstable();
    states.dedup();
    let (expressions, memory) = (languages.len(), languages.memory_size());
    Costs { build, first: first.unwrap_or(all), all, again: warm, states: states.len(), expressions, memory }
}

fn main() {
    println!("| format | build, µs | first 20 transitions, µs | all, µs | again, µs | states | expressions | KB |");
    println!("|---|---:|---:|---:|---:|---:|---:|---:|");
    for (format, text) in TYPICAL {
        // The best of some runs, each with a new store; what a process does once is not in it.
        let runs: Vec<Costs> = (0..25).map(|_| measure(format, text)).collect();
        let least = |figure: fn(&Costs) -> f64| runs.iter().map(figure).fold(f64::INFINITY, f64::min);
        println!(
            "| {format} | {:.0} | {:.0} | {:.0} | {:.1} | {} | {} | {} |",
            least(|run| run.build),
            least(|run| run.first),
            least(|run| run.all),
            least(|run| run.again),
            runs[0].states,
            runs[0].expressions,
            runs[0].memory / 1024,
        );
    }
}
