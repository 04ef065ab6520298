//! Tries random inputs of a target for some seconds, and shrinks what fails; or shrinks one input that fails.
//!
//!     cargo run -p punchcard-fuzzing --example hunt -- TARGET SECONDS [FOLDER]
//!     cargo run -p punchcard-fuzzing --example hunt -- TARGET FILE
//!
//! It needs no tools but cargo, and is no fuzzer: what an input led to is not looked at. Each kind of failure is written
//! to FOLDER once. Memory is for the caller to limit (`ulimit -v 4000000`).

use punchcard_fuzzing::{Choices, RANDOM, show, target};
use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime};

/// Where the last panic was, and what it said.
static LAST: Mutex<(String, String)> = Mutex::new((String::new(), String::new()));

fn failure(check: fn(&[u8]), data: &[u8]) -> Option<(String, String)> {
    catch_unwind(AssertUnwindSafe(|| check(data))).err()?;
    LAST.lock().ok().map(|last| last.clone())
}

/// How long this thread has been running, without what others took from it.
fn running() -> Duration {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    told.split(' ').next().and_then(|nanos| nanos.parse().ok()).map_or(Duration::ZERO, Duration::from_nanos)
}

/// The input without what it can fail without.
fn shrunk(check: fn(&[u8]), data: &[u8], place: &str) -> Vec<u8> {
    let end = Instant::now() + Duration::from_secs(20);
    let fails = |data: &[u8]| failure(check, data).is_some_and(|(at, _)| at == place);
    let mut data = data.to_vec();
    let mut size = data.len() / 2;
    while size > 0 && Instant::now() < end {
        let mut at = usize::from(data.first() == Some(&RANDOM));
        while at + size <= data.len() && Instant::now() < end {
            let shorter = [&data[..at], &data[at + size..]].concat();
            if fails(&shorter) {
                data = shorter;
            } else {
                at += size;
            }
        }
        size /= 2;
    }
    data
}

fn report(name: &str, data: &[u8], place: &str, folder: Option<&String>) {
    let data = shrunk(target(name).check, data, place);
    let message = failure(target(name).check, &data).map(|(_, message)| message).unwrap_or_default();
    println!("\n=== {name} at {place}\n{message}\n--- bytes: {}\n{}", data.escape_ascii(), show(name, &data));
    if let Some(folder) = folder {
        let file: String = place.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        std::fs::write(format!("{folder}/{file}"), &data).expect("a folder that can be written");
    }
}

fn main() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let payload = panic.payload();
        let text = payload.downcast_ref::<&str>().map(ToString::to_string);
        let message = text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default();
        if let Ok(mut last) = LAST.lock() {
            *last = (place, message);
        }
    }));
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, what, folder @ ..] = arguments.as_slice() else { panic!("hunt TARGET SECONDS|FILE [FOLDER]") };
    let check = target(name).check;
    let Ok(seconds) = what.parse() else {
        let data = std::fs::read(what).expect("a readable file");
        println!("{}", show(name, &data));
        match failure(check, &data) {
            Some((place, _)) => report(name, &data, &place, folder.first()),
            None => println!("is as it should be, after {:?}", running()),
        }
        return;
    };
    let end = Instant::now() + Duration::from_secs(seconds);
    let seed = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_nanos());
    let mut seen = HashSet::new();
    let (mut count, mut slowest) = (0u64, (Duration::ZERO, Vec::new()));
    while Instant::now() < end {
        let mut choices = Choices::endless(format!("{seed} {count}").as_bytes());
        let length = 8 + choices.below(200);
        let data: Vec<u8> = [RANDOM].into_iter().chain((0..length).map(|_| choices.byte())).collect();
        if let Some(folder) = folder.first() {
            // Should it never end, it is known what did not.
            std::fs::write(format!("{folder}/last-{name}"), &data).expect("a folder that can be written");
        }
        let start = running();
        if let Some((place, _)) = failure(check, &data)
            && seen.insert(place.clone())
        {
            report(name, &data, &place, folder.first());
        }
        count += 1;
        let took = running() - start;
        if took > slowest.0 {
            slowest = (took, data);
        }
    }
    println!(
        "\n{name}: {count} inputs in {:?}; the slowest took {:?}:\n{}",
        running(),
        slowest.0,
        show(name, &slowest.1)
    );
}
