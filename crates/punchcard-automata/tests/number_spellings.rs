//! Every spelling of the numbers in a set, against the arithmetic of decimals.

use proptest::prelude::*;
use punchcard_automata::{Decimal, Language, Languages, LimitExceeded, NumberDigits, NumberSet};

/// What a schema can say of a number.
#[derive(Clone, Debug)]
enum Formula {
    Above(Decimal),
    Below(Decimal),
    Equal(Decimal),
    Multiple(Decimal),
    Not(Box<Formula>),
    And(Vec<Formula>),
    Or(Vec<Formula>),
}

use Formula::*;

impl Formula {
    fn set(&self) -> Result<NumberSet, LimitExceeded> {
        let sets = |parts: &[Formula]| parts.iter().map(Formula::set).collect::<Result<Vec<_>, _>>();
        match self {
            Above(bound) => Ok(NumberSet::above(bound)),
            Below(bound) => Ok(NumberSet::below(bound)),
            Equal(value) => Ok(NumberSet::equal(value)),
            Multiple(unit) => Ok(NumberSet::multiples_of(unit)),
            Not(inner) => inner.set()?.complement(),
            And(parts) => NumberSet::intersection(sets(parts)?),
            Or(parts) => NumberSet::union(sets(parts)?),
        }
    }

    fn has(&self, value: &Decimal) -> bool {
        match self {
            Above(bound) => value > bound,
            Below(bound) => value < bound,
            Equal(other) => value == other,
            Multiple(unit) => value.is_multiple_of(unit),
            Not(inner) => !inner.has(value),
            And(parts) => parts.iter().all(|part| part.has(value)),
            Or(parts) => parts.iter().any(|part| part.has(value)),
        }
    }
}

fn d(text: &str) -> Decimal {
    Decimal::parse(text).unwrap()
}

fn not(inner: Formula) -> Formula {
    Not(Box::new(inner))
}

fn multiple(unit: &str) -> Formula {
    Multiple(d(unit))
}

/// `minimum` and `maximum`.
fn between(low: &str, high: &str) -> Formula {
    And(vec![not(Below(d(low))), not(Above(d(high)))])
}

fn language(l: &mut Languages, formula: &Formula) -> Language {
    l.numbers_in(&formula.set().unwrap()).unwrap()
}

/// What is left after a prefix; `EMPTY` exactly if the prefix is dead.
fn after(l: &mut Languages, language: Language, prefix: &str) -> Language {
    prefix.chars().fold(language, |at, c| l.step(at, c as u32))
}

#[test]
fn spellings_by_value() {
    let integer = multiple("1");
    let some = Or(vec![Equal(d("5")), Equal(d("-0.25")), Equal(d("1e3"))]);
    let odd = And(vec![integer.clone(), not(multiple("2"))]);
    let price = And(vec![multiple("0.01"), between("0", "9.99")]);
    let parts = Or(vec![And(vec![integer.clone(), between("0", "10")]), between("100.5", "100.75")]);
    let table: [(&Formula, &[&str], &[&str]); 9] = [
        (
            &integer,
            &["1e3", "1.5e1", "100e-2", "0e-5", "-0.0e7", "7", "-7.00", "15E+0", "0e99999999999999999999", "1e0000003"],
            &["15e-1", "1.5", "1e-1", "1e-99999999999999999999", "0.5e0", "1.25e1", "1e", "1e+", "01", "1.", "-", ""],
        ),
        (
            &between("1", "10"),
            &["1e0", "0.1e1", "1000e-3", "10E-00", "1", "10.0", "9.99"],
            &["0.9", "11e0", "1e2", "-1"],
        ),
        (
            &not(Below(d("0"))),
            &["1e99999999999999999999", "1e-99999999999999", "-0", "-0e5", "0.0", "12.5E7"],
            &["-1e-99999999999999999999", "-1"],
        ),
        (&some, &["5", "500e-2", "0.05e2", "-2.5e-1", "-0.25", "1e3", "1000", "1E+003"], &["0.25", "-5", "1e4", "51"]),
        (&not(some.clone()), &["0.25", "-5", "1e4", "51", "0"], &["5", "500e-2", "-2.5e-1", "1000", "1E+003"]),
        (&odd, &["3", "-1.1e1", "30e-1"], &["2", "3e1", "0", "1.5"]),
        (&price, &["0", "0.07", "7e-2", "999e-2", "0.1e1"], &["10", "0.001", "1e-3", "1e1"]),
        (&parts, &["10", "1e1", "3", "100.5", "1005e-1", "100.6125"], &["11", "0.5", "100.8", "1e2"]),
        (
            &And(vec![multiple("1e-300"), not(Above(d("1e300")))]),
            &["1e300", "1e-300", "-1e301", "3", "0"],
            &["1e301", "1e-301", "2e300"],
        ),
    ];
    let mut l = Languages::new();
    for (formula, yes, no) in table {
        let numbers = language(&mut l, formula);
        yes.iter().for_each(|text| assert!(l.matches(numbers, text), "{formula:?} {text}"));
        no.iter().for_each(|text| assert!(!l.matches(numbers, text), "{formula:?} {text}"));
    }
}

#[test]
fn prefixes_are_alive_only_if_some_number_begins_so() {
    let sevens = And(vec![multiple("7"), between("1", "30")]);
    let odd = And(vec![multiple("1"), not(multiple("10")), between("1", "500")]);
    let table: [(&Formula, &[&str], &[&str]); 7] = [
        (
            &Equal(d("5")),
            &["5", "0.5", "0.05", "50", "500", "0.5e", "5.", "5e-0", "500e-", "0.0", "0"],
            &["7", "51", "5e1", "5.1", "0.5e2", "500e+", "-", "0.06", "0e", "500e-3"],
        ),
        (&between("4", "5"), &["40", "45", "50", "4.9", "500", "0.4"], &["3", "6", "51", "50.1", "501", "-", "4e1"]),
        (
            &sevens,
            &["7", "14", "2", "28", "0.0021e", "7000e-", "2.8e1", "2.8e0"],
            &["3", "8", "22", "15", "29", "7e1", "2.8e00e", "70e0"],
        ),
        (&odd, &["3000e-3", "300e-2", "499", "30", "30e", "49.9e"], &["0e", "3e1", "30e0", "500e0", "501", "49.99"]),
        (&Above(d("0")), &["0", "0.00", "1e-", "1e99"], &["-", "0e", "0.0e"]),
        (&Equal(d("0")), &["0", "-", "-0.0e1234"], &["1", "0.01", "-1"]),
        (&Equal(d("1e40")), &["1e4", "1e004", "1e+40", "10e3", "10e39", "1000e37"], &["1e5", "1e-", "1e41", "10e4"]),
    ];
    let mut l = Languages::new();
    for (formula, alive, dead) in table {
        let numbers = language(&mut l, formula);
        for prefix in alive {
            assert_ne!(after(&mut l, numbers, prefix), Language::EMPTY, "{formula:?} {prefix}");
        }
        for prefix in dead {
            assert_eq!(after(&mut l, numbers, prefix), Language::EMPTY, "{formula:?} {prefix}");
        }
    }
}

#[test]
fn empty_and_full_sets() {
    let mut l = Languages::new();
    for empty in [
        And(vec![multiple("7"), Above(d("7")), Below(d("14"))]),
        And(vec![multiple("0.5"), not(multiple("0.25"))]),
        And(vec![Equal(d("3")), multiple("2")]),
        And(vec![multiple("2"), not(Equal(d("2"))), Above(d("0")), Below(d("4"))]),
    ] {
        assert!(empty.set().unwrap().is_empty(), "{empty:?}");
        assert_eq!(language(&mut l, &empty), Language::EMPTY, "{empty:?}");
    }
    for full in [Or(vec![multiple("3"), not(multiple("3"))]), Or(vec![Above(d("1")), Below(d("2"))])] {
        assert!(full.set().unwrap().is_all(), "{full:?}");
    }
}

#[test]
fn digits_that_do_not_matter_make_no_states() {
    let mut l = Languages::new();
    let integers = language(&mut l, &multiple("1"));
    let positive = language(&mut l, &Above(d("0")));
    let percent = language(&mut l, &between("0", "100"));
    for (numbers, text) in [
        (integers, "123456789".repeat(100)),
        (positive, format!("7.{}", "314159".repeat(100))),
        (percent, format!("7.{}", "314159".repeat(100))),
        (percent, format!("7e-{}", "0123456789".repeat(100))),
        (integers, format!("7e{}", "0".repeat(1000))),
    ] {
        let before = l.len();
        after(&mut l, numbers, &text);
        assert!(l.len() < before + 20, "{} {text}", l.len() - before);
    }
}

#[test]
fn a_set_is_the_same_machine_wherever_it_is_built() {
    let (mut a, mut b) = (Languages::new(), Languages::new());
    let percent = between("0", "100");
    language(&mut b, &multiple("3"));
    let (one, other) = (language(&mut a, &percent), language(&mut b, &percent));
    assert_eq!(a.fingerprint(one), b.fingerprint(other));
    assert_eq!(language(&mut b, &And(vec![percent.clone(), percent])), other);
    let (wider, far) = (language(&mut b, &between("0", "101")), language(&mut b, &between("0", "1e7")));
    assert!(wider != other && far != wider && b.fingerprint(wider) != b.fingerprint(other));
}

#[test]
fn questions_about_the_language() {
    let mut l = Languages::new();
    for (formula, example) in [
        (Equal(d("120")), "120"),
        (And(vec![multiple("123456789"), Above(d("0"))]), "123456789"),
        (And(vec![multiple("1e-300"), Above(d("0")), Below(d("1e-299"))]), "1e-300"),
    ] {
        let numbers = language(&mut l, &formula);
        assert_eq!(l.is_viable(numbers), Ok(true));
        let found = l.example(numbers).unwrap().unwrap();
        assert!(l.matches(numbers, &found) && found.len() <= example.len(), "{found}");
        assert_eq!(l.count_up_to(numbers, 3), Ok(3));
        assert_eq!(l.as_run(numbers), None);
        assert_eq!(l.length_bounds(numbers).1, u32::MAX);
    }
}

#[test]
fn too_much_is_refused() {
    let many = (1..50).map(|i| not(Multiple(d(&format!("{}", i * 2 + 1))))).collect();
    assert!(And(many).set().is_err());
    let long = Multiple(d(&format!("{}1", "7".repeat(5000))));
    let both = long.set().and_then(|set| Languages::new().numbers_in(&set));
    assert!(both.is_err());
}

/// Units whose multiples are far apart, or have many digits, cost a plain spelling no more than any other.
#[test]
fn plain_multiples_of_units_with_many_digits() {
    let table: [(Formula, &[&str], &[&str]); 8] = [
        (
            multiple("0.33333333"),
            &["0", "0.33333333", "0.66666666", "33.333333", "33.3333330"],
            &["1", "0.3", "0.33333334"],
        ),
        (multiple("1e100"), &["0"], &["1", "10"]),
        (multiple("1e308"), &["0"], &["1"]),
        (
            multiple("0.30000000000000004"),
            &["0.30000000000000004", "0.60000000000000008", "7500000000000001", "-0.90000000000000012"],
            &["0.3", "0.30000000000000003", "1"],
        ),
        (
            multiple("3.141592653589793"),
            &["3.141592653589793", "6.283185307179586", "-31.41592653589793"],
            &["3.14", "3"],
        ),
        (
            And(["0.7", "1.1", "1.3", "1.7", "1.9", "2.3"].map(multiple).to_vec()),
            &["0", "7436429", "743642.9", "-743642.90"],
            &["7.7", "74364.29"],
        ),
        (And(vec![multiple("5e-324"), Above(d("0"))]), &[&format!("0.{}5", "0".repeat(323))], &["0"]),
        (And(vec![multiple("7e18"), not(multiple("21"))]), &[&format!("7{}", "0".repeat(18))], &["0", "7"]),
    ];
    for (formula, yes, no) in table {
        let Ok(set) = formula.set() else { continue };
        let mut l = Languages::new();
        l.max_states = 20_000;
        for digits in [Some(NumberDigits::DEFAULT), None] {
            let numbers = l.plain_numbers_in(&set, digits).unwrap();
            // All characters are tried at each place, as a mask does.
            for text in yes.iter().chain(no) {
                let mut at = numbers;
                for c in text.chars() {
                    "0123456789.-e".chars().for_each(|c| _ = l.step(at, c as u32));
                    at = l.step(at, c as u32);
                }
                assert_eq!(l.is_nullable(at), yes.contains(text), "{formula:?} {text}");
            }
            // A number is found without a search.
            let example = l.example(numbers).unwrap().unwrap();
            assert!(formula.has(&d(&example)), "{formula:?} {example}");
            l.check_limit().unwrap();
        }
    }
}

/// Numbers with thousands of digits, and thousands of numbers, are either refused or taken step by step in little time.
#[test]
fn hostile_sets_end_soon() {
    let small = And(vec![multiple("1e-9999"), not(Above(d("1e9999")))]);
    let thirds = And(vec![multiple("1e-400"), not(multiple("3e400")), between("-1e401", "7e401")]);
    let long = And(vec![multiple(&format!("{}1", "3".repeat(900))), Below(d("1e5000"))]);
    let narrow = And(vec![multiple("1"), Above(d("1e9000")), Below(d(&format!("1{}5", "0".repeat(8999))))]);
    let values: Vec<Formula> = (0..5_000).map(|i| Equal(d(&format!("{}e-3", i * 7919)))).collect();
    let twos = And(vec![multiple("1e-2000"), not(multiple("7e-1990")), between("1e-1995", "3e-1994")]);
    let values = Or(values);
    for formula in [small, thirds, long, narrow, twos, not(values.clone()), values] {
        let mut l = Languages::new();
        let Ok(numbers) = formula.set().and_then(|set| l.numbers_in(&set)) else { continue };
        assert_ne!(numbers, Language::EMPTY);
        for text in [format!("1{}", "0".repeat(500)), format!("0.{}", "123".repeat(200)), "9".repeat(700)] {
            let mut at = numbers;
            for c in text.chars() {
                "0123456789.e".chars().for_each(|c| _ = l.step(at, c as u32));
                at = l.step(at, c as u32);
                if at == Language::EMPTY {
                    break;
                }
            }
        }
    }
}

fn value() -> impl Strategy<Value = Decimal> {
    prop_oneof!["-?(0|[1-9][0-9]{0,2})(\\.[0-9]{1,2})?", "-?[1-9]e-?[0-9]", "-?[1-9]{1,2}e-?[0-5]"]
        .prop_map(|text| d(&text))
}

fn formula() -> impl Strategy<Value = Formula> {
    let unit = prop_oneof![
        Just("1".to_string()),
        "[1-9][0-9]?",
        "0\\.[0-9]?[1-9]",
        "[1-9]e-?[0-3]",
        prop_oneof!["16", "125", "0\\.375", "0\\.0625"],
    ];
    let atom = prop_oneof![
        value().prop_map(Above),
        value().prop_map(Below),
        value().prop_map(Equal),
        unit.clone().prop_map(|unit| Multiple(d(&unit))),
        // Multiples between bounds, whose digits must be known exactly.
        (unit.clone(), unit, value(), value()).prop_map(|(unit, other, a, b)| {
            And(vec![multiple(&unit), not(multiple(&other)), Above((&a).min(&b).clone()), Below(a.max(b))])
        }),
    ];
    atom.prop_recursive(3, 12, 3, |part| {
        prop_oneof![
            part.clone().prop_map(not),
            prop::collection::vec(part.clone(), 2..4).prop_map(And),
            prop::collection::vec(part, 2..4).prop_map(Or),
        ]
    })
}

/// A spelling of the number whose exponent is `e`.
fn spelled(value: &Decimal, e: i64, zeros: usize) -> String {
    let digits: Vec<u8> = value.digits().iter().copied().chain(std::iter::repeat_n(0, zeros)).collect();
    let mantissa = Decimal::new(value.is_negative(), digits, value.exponent() - zeros as i64 - e).to_string();
    let padding = if mantissa.contains('.') { "0".repeat(zeros) } else { String::new() };
    format!("{mantissa}{padding}e{e}")
}

const FEW: Option<NumberDigits> = Some(NumberDigits { whole: 2, significant: 2 });

fn bound_on_digits() -> impl Strategy<Value = Option<NumberDigits>> {
    prop_oneof![Just(None), Just(Some(NumberDigits::DEFAULT)), Just(FEW)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn membership_is_by_value(
        formula in formula(),
        texts in prop::collection::vec("-?(0|[1-9][0-9]{0,3})(\\.[0-9]{1,4})?([eE][+-]?0?[0-9])?", 20),
        values in prop::collection::vec((value(), -6i64..6, 0usize..4), 20),
    ) {
        let mut l = Languages::new();
        let numbers = language(&mut l, &formula);
        let spelled = values.iter().map(|(value, e, zeros)| spelled(value, *e, *zeros));
        for text in texts.iter().cloned().chain(spelled) {
            prop_assert_eq!(l.matches(numbers, &text), formula.has(&d(&text)), "{}", text);
        }
    }

    #[test]
    fn no_walk_ends_in_a_dead_end(formula in formula(), turns in prop::collection::vec(0usize..1000, 0..12)) {
        let mut l = Languages::new();
        let mut at = language(&mut l, &formula);
        if at == Language::EMPTY {
            return Ok(());
        }
        let mut text = String::new();
        for turn in turns {
            let ways: Vec<char> =
                "0123456789.eE+-".chars().filter(|&c| l.step(at, c as u32) != Language::EMPTY).collect();
            if ways.is_empty() {
                break;
            }
            let c = ways[turn % ways.len()];
            text.push(c);
            at = l.step(at, c as u32);
        }
        let rest = l.example(at).unwrap();
        prop_assert!(rest.is_some(), "dead after {}", text);
        text.push_str(&rest.unwrap());
        // Exponents may have become longer than a decimal's.
        if let Some(value) = Decimal::parse(&text) {
            prop_assert!(formula.has(&value), "{}", text);
        }
    }

    #[test]
    fn plain_spellings_are_by_value(
        formula in formula(),
        texts in prop::collection::vec("-?(0|[1-9][0-9]{0,3})(\\.[0-9]{1,4})?", 30),
        digits in bound_on_digits(),
    ) {
        let mut l = Languages::new();
        let set = formula.set().unwrap();
        let numbers = l.plain_numbers_in(&set, digits).unwrap();
        for text in texts {
            let value = d(&text);
            let (is_in, has) = (l.matches(numbers, &text), formula.has(&value));
            prop_assert!(has || !is_in, "{}", text);
            // A whole number has no point where only whole numbers are meant, and zero has no sign there.
            if has && !(value.is_integer() && text.contains('.')) && text != "-0" && digits != FEW {
                prop_assert!(is_in, "{}", text);
            }
        }
    }

    #[test]
    fn no_plain_walk_ends_in_a_dead_end(
        formula in formula(),
        turns in prop::collection::vec(0usize..1000, 0..24),
        digits in bound_on_digits(),
    ) {
        let mut l = Languages::new();
        let set = formula.set().unwrap();
        let mut at = l.plain_numbers_in(&set, digits).unwrap();
        prop_assert_eq!(at == Language::EMPTY, set.is_empty());
        let mut text = String::new();
        for turn in turns {
            let ways: Vec<char> = "0123456789.-e".chars().filter(|&c| l.step(at, c as u32) != Language::EMPTY).collect();
            if ways.is_empty() {
                break;
            }
            let c = ways[turn % ways.len()];
            text.push(c);
            at = l.step(at, c as u32);
        }
        if at != Language::EMPTY {
            let rest = l.example(at).unwrap();
            prop_assert!(rest.is_some(), "dead after {}", text);
            text.push_str(&rest.unwrap());
            prop_assert!(formula.has(&d(&text)), "{}", text);
            prop_assert!(digits.is_none() || text.parse::<f64>().unwrap().is_finite());
        }
    }

    /// No more numbers are counted than there are.
    #[test]
    fn plain_numbers_are_counted_by_value(formula in formula(), digits in bound_on_digits(), most in 1u32..200) {
        let mut l = Languages::new();
        let set = formula.set().unwrap();
        let count = set.count_plain(digits, most).unwrap();
        let mut values: Vec<Decimal> = Vec::new();
        let mut rest = set;
        while (values.len() as u32) < count.min(20) {
            let numbers = l.plain_numbers_in(&rest, digits).unwrap();
            let Some(text) = l.example(numbers).unwrap() else { break };
            values.push(d(&text));
            rest = NumberSet::intersection(vec![rest, NumberSet::equal(&d(&text)).complement().unwrap()]).unwrap();
        }
        prop_assert!(values.len() as u32 >= count.min(20), "{} of {}", values.len(), count);
    }

    /// What leads to some number that was tried is alive at every place.
    #[test]
    fn every_number_of_the_set_is_reached(formula in formula(), value in value(), e in -30i64..30, zeros in 0usize..9) {
        let mut l = Languages::new();
        let numbers = language(&mut l, &formula);
        prop_assert_eq!(formula.set().unwrap().contains(&value), formula.has(&value));
        prop_assert_eq!(l.matches(numbers, &spelled(&value, e, zeros)), formula.has(&value));
    }
}
