//! Replays the corpora and regressions of `fuzz/`, and some random inputs for each target.
//!
//! `PUNCHCARD_EXAMPLES` is how many random inputs there are for each; it also gives others each time. `PUNCHCARD_TARGET`
//! names one target.

use punchcard_fuzzing::{Choices, RANDOM, TARGETS, Target, check, show};
use std::path::{Path, PathBuf};

fn files(kind: &str, target: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz").join(kind).join(target);
    let mut files: Vec<PathBuf> = match std::fs::read_dir(&folder) {
        Ok(entries) => entries.map(|entry| entry.expect("a readable folder").path()).collect(),
        Err(_) => Vec::new(),
    };
    files.sort();
    files
}

/// Says which input it was, where a check panics.
struct Named<'a>(&'a str, String);

impl Drop for Named<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("\nthe target {} fails on {}", self.0, self.1);
        }
    }
}

fn described(target: &str, data: &[u8]) -> String {
    format!("{}\n{}", data.escape_ascii(), show(target, data))
}

#[test]
fn inputs_that_were_kept() {
    for Target { name, check, .. } in TARGETS {
        let (corpus, regressions) = (files("corpus", name), files("regressions", name));
        assert!(!corpus.is_empty(), "{name} has no corpus");
        for file in corpus.iter().chain(&regressions) {
            let _named = Named(name, file.display().to_string());
            check(&std::fs::read(file).expect("a readable file"));
        }
    }
}

#[test]
fn random_inputs() {
    let asked = std::env::var("PUNCHCARD_EXAMPLES").ok().and_then(|count| count.parse().ok());
    let time = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a clock after 1970");
    let seed = if asked.is_some() { time.as_nanos() } else { 0 };
    let only = std::env::var("PUNCHCARD_TARGET").ok();
    for Target { name, check, .. } in
        TARGETS.iter().filter(|target| only.as_ref().is_none_or(|only| only == target.name))
    {
        for i in 0..asked.unwrap_or(60) {
            let mut choices = Choices::endless(format!("{seed} {i}").as_bytes());
            let length = 8 + choices.below(200);
            let data: Vec<u8> = [RANDOM].into_iter().chain((0..length).map(|_| choices.byte())).collect();
            let _named = Named(name, described(name, &data));
            check(&data);
        }
    }
}

/// What changes the meaning of what is around it, in most of the notations.
const SIGNS: &[u8] = b"\"\\{}[]()|*+?.,:-09az\xFF";

/// Inputs that were kept, with a few bytes changed.
#[test]
fn damaged_inputs() {
    for Target { name, check, .. } in TARGETS {
        for (i, file) in files("corpus", name).iter().enumerate() {
            let mut data = std::fs::read(file).expect("a readable file");
            let mut choices = Choices::endless(format!("{i}").as_bytes());
            for _ in 0..1 + choices.below(3) {
                let at = choices.below(data.len() + 1);
                match choices.below(3) {
                    0 => data.insert(at, SIGNS[choices.below(SIGNS.len())]),
                    1 if at < data.len() => drop(data.remove(at)),
                    _ if at < data.len() => data[at] = choices.byte(),
                    _ => {}
                }
            }
            let _named = Named(name, described(name, &data));
            check(&data);
        }
    }
}

#[test]
#[should_panic(expected = "no target")]
fn an_unknown_target() {
    check("none", b"");
}
