//! Patterns against an independent engine: random patterns on random texts agree with `regress`, and the sets of Unicode
//! properties with what it matches.

use proptest::prelude::*;
use punchcard_automata::pattern::{Options, parse};
use punchcard_automata::{Language, Languages};

/// Characters of which patterns and texts are made: few, so that they meet; of each kind that assertions tell apart.
const ALPHABET: &str = "aab. \n";

fn text() -> impl Strategy<Value = String> {
    let chars: Vec<char> = ALPHABET.chars().collect();
    prop::collection::vec(prop::sample::select(chars), 0..7).prop_map(|chars| chars.into_iter().collect())
}

/// A pattern, and whether it is an assertion (then it takes no quantifier).
fn pattern() -> impl Strategy<Value = String> {
    let atom = prop::sample::select(vec!["a", "b", "ab", ".", "[ab]", "[^a]", r"\w", r"\W", r"\s", "[^]", r"\n", ""]);
    let edge = prop::sample::select(vec!["^", "$", r"\b", r"\B", "^", "$"]);
    let leaf = prop_oneof![4 => atom.prop_map(String::from), 1 => edge.prop_map(String::from)];
    leaf.prop_recursive(5, 24, 4, |inner| {
        let count = prop::sample::select(vec!["*", "+", "?", "{2}", "{1,2}", "{0,3}", "{2,}", "*?", "{3}"]);
        let look = prop::sample::select(vec!["?=", "?!", "?<=", "?<!"]);
        prop_oneof![
            4 => prop::collection::vec(inner.clone(), 1..4).prop_map(|parts| parts.concat()),
            2 => prop::collection::vec(inner.clone(), 1..4).prop_map(|parts| format!("(?:{})", parts.join("|"))),
            2 => (inner.clone(), count).prop_map(|(part, count)| format!("(?:{part}){count}")),
            2 => (inner, look).prop_map(|(part, look)| format!("({look}{part})")),
        ]
    })
}

struct Ours {
    languages: Languages,
    search: Language,
    full: Language,
}

fn ours(source: &str, options: &Options) -> Ours {
    let mut languages = Languages::new();
    let pattern = parse(source, options).unwrap_or_else(|e| panic!("{source:?}: {e}"));
    let search = pattern.search(&mut languages).unwrap();
    let full = pattern.full(&mut languages).unwrap();
    Ours { languages, search, full }
}

fn theirs(source: &str, flags: &str) -> (regress::Regex, regress::Regex) {
    // The whole text, whether or not `^` and `$` match within it.
    let whole = format!("(?<![^])(?:{source})(?![^])");
    (regress::Regex::with_flags(source, flags).unwrap(), regress::Regex::with_flags(&whole, flags).unwrap())
}

fn agree(source: &str, texts: &[String], flags: &str) -> Result<(), TestCaseError> {
    let options = Options {
        strict: true,
        ignore_case: flags.contains('i'),
        multiline: flags.contains('m'),
        dot_all: flags.contains('s'),
        ..Options::default()
    };
    let mut ours = ours(source, &options);
    let (search, whole) = theirs(source, flags);
    for text in texts {
        let found = ours.languages.matches(ours.search, text);
        prop_assert_eq!(found, search.find(text).is_some(), "search {:?} in {:?} ({})", source, text, flags);
        let matched = ours.languages.matches(ours.full, text);
        prop_assert_eq!(matched, whole.find(text).is_some(), "match {:?} on {:?} ({})", source, text, flags);
        // The transitions, computed for all characters at once, lead where single steps lead.
        for start in [ours.search, ours.full] {
            let (mut by_step, mut by_table) = (start, start);
            for c in text.chars() {
                by_step = ours.languages.step(by_step, c as u32);
                by_table = ours.languages.transitions(by_table).target(c as u32);
            }
            prop_assert_eq!(ours.languages.is_nullable(by_step), ours.languages.is_nullable(by_table));
        }
    }
    Ok(())
}

/// As many cases as PROPTEST_CASES says, or enough to be likely to meet every construct within another.
fn config() -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(3000);
    ProptestConfig { failure_persistence: None, cases, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn random_patterns_agree(source in pattern(), texts in prop::collection::vec(text(), 12)) {
        agree(&source, &texts, "u")?;
    }

    #[test]
    fn random_patterns_agree_under_flags(
        source in pattern(),
        texts in prop::collection::vec(text(), 8),
        flags in prop::sample::select(vec!["um", "us", "ui", "umsi"]),
    ) {
        agree(&source, &texts, flags)?;
    }

    /// What is said to be empty has no text, and an example is a match.
    #[test]
    fn examples_match(source in pattern(), texts in prop::collection::vec(text(), 8)) {
        let mut ours = ours(&source, &Options::default());
        let (search, whole) = theirs(&source, "u");
        for (language, regex) in [(ours.search, search), (ours.full, whole)] {
            match ours.languages.example(language).unwrap() {
                Some(example) => prop_assert!(regex.find(&example).is_some(), "{:?}: {:?}", source, example),
                None => {
                    for text in &texts {
                        prop_assert!(regex.find(text).is_none(), "{:?} was said to be empty: {:?}", source, text);
                    }
                }
            }
        }
    }
}

/// Every character, against each class and property; the tables of the two engines may be of different Unicode
/// versions, so characters that one of them does not know are left out.
#[test]
fn classes_agree_on_every_character() {
    let sources = [
        r"\d",
        r"\D",
        r"\w",
        r"\W",
        r"\s",
        r"\S",
        ".",
        r"\p{L}",
        r"\p{Letter}",
        r"\p{Lu}",
        r"\P{Lu}",
        r"\p{gc=Nd}",
        r"\p{Script=Greek}",
        r"\p{sc=Cyrl}",
        r"\p{scx=Deva}",
        r"\p{Script_Extensions=Greek}",
        r"\p{Alphabetic}",
        r"\p{Emoji}",
        r"\p{ASCII}",
        r"\p{Any}",
        r"\p{ASCII_Hex_Digit}",
        r"\p{White_Space}",
        r"\p{ID_Start}",
        r"\p{Uppercase}",
        r"[^\p{L}\d]",
        r"[\s\S]",
        r"[^\W_]",
    ];
    let mut languages = Languages::new();
    let known = parse(r"\p{Assigned}", &Options::default()).unwrap().full(&mut languages).unwrap();
    let assigned = regress::Regex::with_flags(r"^\p{Assigned}$", "u").unwrap();
    for flags in ["u", "ui"] {
        for source in sources {
            let options = Options { strict: true, ignore_case: flags == "ui", ..Options::default() };
            let full = parse(source, &options).unwrap().full(&mut languages).unwrap();
            let regex = regress::Regex::with_flags(&format!("^(?:{source})$"), flags).unwrap();
            let mut differ = Vec::new();
            // Letters that got another case later than one of the tables would differ: all of them are beyond these.
            let last = if flags == "ui" { '\u{9FFF}' } else { char::MAX };
            for c in '\0'..=last {
                let text = c.to_string();
                let is_in = languages.matches(full, &text);
                if is_in != regex.find(&text).is_some()
                    && languages.matches(known, &text)
                    && assigned.find(&text).is_some()
                {
                    differ.push(c);
                }
            }
            assert!(
                differ.is_empty(),
                "{source} ({flags}): {} characters, {:?}",
                differ.len(),
                &differ[..differ.len().min(20)]
            );
        }
    }
}
