//! What a step through the spellings of numbers costs: for some sets, the time for the first walk along texts of digits, and
//! how many states it makes.
//!
//!     cargo run --release -p punchcard-automata --example number_costs

use punchcard_automata::{Decimal, Language, Languages, NumberSet};
use std::time::Instant;

fn main() {
    let d = |text: &str| Decimal::parse(text).expect("a number");
    let within = |low: &str, high: &str| {
        NumberSet::intersection(vec![NumberSet::above(&d(low)), NumberSet::below(&d(high))]).expect("small")
    };
    let both = |a: NumberSet, b: NumberSet| NumberSet::intersection(vec![a, b]).expect("small");
    let multiple = |unit: &str| NumberSet::multiples_of(&d(unit));
    let values: Vec<NumberSet> = (1..2000).map(|i| NumberSet::equal(&d(&format!("{}", i * 7919)))).collect();
    let values = NumberSet::union(values).expect("small");
    let sets = [
        ("integer", multiple("1")),
        ("above 0", NumberSet::above(&d("0"))),
        ("between 0 and 100", within("0", "100")),
        ("integer between 0 and 1000", both(multiple("1"), within("0", "1000"))),
        ("cents below 1e6", both(multiple("0.01"), within("0", "1e6"))),
        ("multiples of 123456789", multiple("123456789")),
        ("multiples of 1e-300 below 1e300", both(multiple("1e-300"), within("0", "1e300"))),
        (
            "the same, not of 3",
            both(both(multiple("1e-300"), within("0", "1e300")), multiple("3").complement().unwrap()),
        ),
        ("2000 values", values.clone()),
        ("all but 2000 values", values.complement().expect("small")),
    ];
    for (name, set) in sets {
        let began = Instant::now();
        let mut l = Languages::new();
        let numbers = l.numbers_in(&set).expect("small");
        let built = began.elapsed();
        let (mut steps, mut alive, before) = (0u32, 0u32, l.len());
        let began = Instant::now();
        for prefix in ["", "0.", "5", "12.", "7.25", "1e", "3e-", "123456"] {
            let start = prefix.chars().fold(numbers, |at, c| l.next(at, c as u32));
            // All tokens of up to three digits.
            for i in 0..1110u32 {
                let token = if i < 10 {
                    format!("{i}")
                } else if i < 110 {
                    format!("{:02}", i - 10)
                } else {
                    format!("{:03}", i - 110)
                };
                let mut at = start;
                for c in token.chars() {
                    at = l.next(at, c as u32);
                    steps += 1;
                }
                alive += u32::from(at != Language::EMPTY);
            }
        }
        let each = began.elapsed().as_secs_f64() * 1e6 / f64::from(steps);
        let all = began.elapsed().as_secs_f64() * 1e3 / 8.0;
        println!(
            "{name}: built {built:.1?}, a mask {all:.2} ms, {each:.2} µs a step of {steps} ({alive} alive), {} states",
            l.len() - before
        );
    }
}
