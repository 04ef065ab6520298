//! Patterns against what they say: random ones on random texts agree with a matcher that spells out the definitions, and with
//! `regress`, an engine for ECMA-262; classes agree with that one on every character.

use proptest::prelude::*;
use punchcard_automata::pattern::{Options, parse};
use punchcard_automata::{Language, Languages};
use std::collections::BTreeSet;

/// Characters of which patterns and texts are made: few, so that they meet; of each kind that assertions tell apart.
const ALPHABET: &str = "aabA. \n";

fn text() -> impl Strategy<Value = String> {
    let chars: Vec<char> = ALPHABET.chars().collect();
    prop::collection::vec(prop::sample::select(chars), 0..7).prop_map(|chars| chars.into_iter().collect())
}

/// A pattern as it is generated: what it says is plain from its shape, so it can be matched by definition.
#[derive(Clone, Debug)]
enum Tree {
    /// The spelling of one character, and the characters of the alphabet that it matches.
    One(&'static str, &'static str),
    Edge(&'static str),
    Sequence(Vec<Tree>),
    Either(Vec<Tree>),
    Repeat(Box<Tree>, &'static str, usize, usize),
    Look(&'static str, Box<Tree>),
}

impl Tree {
    fn source(&self) -> String {
        let all = |trees: &[Tree], between: &str| trees.iter().map(Tree::source).collect::<Vec<_>>().join(between);
        match self {
            Tree::One(spelling, _) => spelling.to_string(),
            Tree::Edge(spelling) => spelling.to_string(),
            Tree::Sequence(trees) => all(trees, ""),
            Tree::Either(trees) => format!("(?:{})", all(trees, "|")),
            Tree::Repeat(tree, count, ..) => format!("(?:{}){count}", tree.source()),
            Tree::Look(kind, tree) => format!("({kind}{})", tree.source()),
        }
    }

    /// The places where a match that begins at one of `from` may end.
    fn ends(&self, text: &[char], from: &BTreeSet<usize>) -> BTreeSet<usize> {
        let word = |i: usize| text.get(i).is_some_and(|&c| c.is_ascii_alphabetic());
        let boundary = |i: usize| (i > 0 && word(i - 1)) != word(i);
        let here = |holds: &dyn Fn(usize) -> bool| from.iter().copied().filter(|&i| holds(i)).collect();
        match self {
            Tree::One(_, chars) => {
                from.iter().filter(|&&i| text.get(i).is_some_and(|&c| chars.contains(c))).map(|i| i + 1).collect()
            }
            Tree::Edge("^") => here(&|i| i == 0),
            Tree::Edge("$") => here(&|i| i == text.len()),
            Tree::Edge("\\b") => here(&boundary),
            Tree::Edge(_) => here(&|i| !boundary(i)),
            Tree::Sequence(trees) => trees.iter().fold(from.clone(), |at, tree| tree.ends(text, &at)),
            Tree::Either(trees) => trees.iter().flat_map(|tree| tree.ends(text, from)).collect(),
            Tree::Repeat(tree, _, min, max) => {
                let mut at = from.clone();
                for _ in 0..*min {
                    at = tree.ends(text, &at);
                }
                // More rounds than there are places add no place.
                let mut all = at.clone();
                for _ in *min..(*max).min(min + text.len() + 1) {
                    at = tree.ends(text, &at);
                    all.extend(&at);
                }
                all
            }
            Tree::Look(kind, tree) => {
                let wanted = kind.ends_with('=');
                if kind.contains('<') {
                    let reached =
                        |i: usize| (0..=i).any(|start| tree.ends(text, &BTreeSet::from([start])).contains(&i));
                    here(&|i| reached(i) == wanted)
                } else {
                    here(&|i| tree.ends(text, &BTreeSet::from([i])).is_empty() != wanted)
                }
            }
        }
    }

    fn found(&self, text: &str) -> bool {
        let text: Vec<char> = text.chars().collect();
        !self.ends(&text, &(0..=text.len()).collect()).is_empty()
    }

    fn matches(&self, text: &str) -> bool {
        let text: Vec<char> = text.chars().collect();
        self.ends(&text, &BTreeSet::from([0])).contains(&text.len())
    }
}

type Count = (&'static str, usize, usize);
const COUNTS: &[Count] = &[
    ("*", 0, usize::MAX),
    ("+?", 1, usize::MAX),
    ("?", 0, 1),
    ("{2}", 2, 2),
    ("{1,2}", 1, 2),
    ("{0,3}", 0, 3),
    ("{2,}", 2, usize::MAX),
    ("{2,4}?", 2, 4),
];

/// Random patterns, with loops whose rounds may be empty or not.
fn tree(empty_rounds: bool) -> impl Strategy<Value = Tree> {
    let one = prop::sample::select(vec![
        ("a", "a"),
        ("b", "b"),
        (".", "abA. "),
        ("[ab]", "ab"),
        ("[^a]", "bA. \n"),
        ("\\w", "abA"),
        ("\\W", ". \n"),
        ("\\s", " \n"),
        ("[^]", "abA. \n"),
        ("\\n", "\n"),
        ("[]", ""),
    ]);
    let edge = prop::sample::select(vec!["^", "$", "\\b", "\\B"]);
    let leaf = prop_oneof![
        5 => one.prop_map(|(spelling, chars)| Tree::One(spelling, chars)),
        2 => edge.prop_map(Tree::Edge),
        1 => Just(Tree::Sequence(Vec::new())),
    ];
    leaf.prop_recursive(5, 24, 4, move |inner| {
        let several = prop::collection::vec(inner.clone(), 1..4);
        let count = prop::sample::select(COUNTS);
        let look = prop::sample::select(vec!["?=", "?!", "?<=", "?<!"]);
        prop_oneof![
            4 => several.clone().prop_map(Tree::Sequence),
            2 => several.prop_map(Tree::Either),
            3 => (inner.clone(), count).prop_map(move |(t, (count, min, max))| {
                let round = if empty_rounds { t } else { Tree::Sequence(vec![t, Tree::One("[ab]", "ab")]) };
                Tree::Repeat(round.into(), count, min, max)
            }),
            2 => (inner, look).prop_map(|(t, kind)| Tree::Look(kind, t.into())),
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

/// Both languages on each text, and the transitions, which are computed for all characters at once, against single steps.
fn agree(
    mut ours: Ours,
    texts: &[String],
    found: impl Fn(&str) -> bool,
    matches: impl Fn(&str) -> bool,
) -> Result<(), TestCaseError> {
    for text in texts {
        prop_assert_eq!(ours.languages.matches(ours.search, text), found(text), "search in {:?}", text);
        prop_assert_eq!(ours.languages.matches(ours.full, text), matches(text), "match on {:?}", text);
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

/// What patterns are written with, whole and in pieces.
const PIECES: &[&str] = &[
    "a",
    "z",
    "1",
    "é",
    "😀",
    "(",
    ")",
    "(?:",
    "(?=",
    "(?<!",
    "(?<n>",
    "(?P<n>",
    "(?i:",
    "(?i)",
    "(?",
    "[",
    "[^",
    "]",
    "-",
    "|",
    "*",
    "+",
    "?",
    "{",
    "}",
    "{2}",
    "{2,1}",
    "{,3}",
    "{2,",
    ",",
    "^",
    "$",
    ".",
    "\\",
    "\\b",
    "\\B",
    "\\d",
    "\\W",
    "\\1",
    "\\0",
    "\\k<n>",
    "\\cA",
    "\\x41",
    "\\x",
    "\\u0041",
    "\\ud83d",
    "\\ude00",
    "\\u{1F600}",
    "\\u{",
    "\\p{L}",
    "\\p{",
    "\\P{Lu}",
    "\\p{sc=Greek}",
    "\\-",
    "\\/",
    "\\Z",
    "\\A",
    "#",
    " ",
    "\n",
];

/// As many cases as PROPTEST_CASES says, or enough to be likely to meet every construct within another.
fn config() -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(3000);
    ProptestConfig { failure_persistence: None, cases, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn patterns_match_what_they_say(tree in tree(true), texts in prop::collection::vec(text(), 12)) {
        let ours = ours(&tree.source(), &Options { strict: true, ..Options::default() });
        agree(ours, &texts, |text| tree.found(text), |text| tree.matches(text))?;
    }

    /// Flags included. (`regress` 0.12 does not end on some loops with empty rounds.)
    #[test]
    fn patterns_agree_with_another_engine(
        tree in tree(false),
        texts in prop::collection::vec(text(), 8),
        flags in prop::sample::select(vec!["u", "um", "us", "ui", "umsi"]),
    ) {
        let source = tree.source();
        let options = Options {
            strict: true,
            ignore_case: flags.contains('i'),
            multiline: flags.contains('m'),
            dot_all: flags.contains('s'),
            ..Options::default()
        };
        let search = regress::Regex::with_flags(&source, flags).unwrap();
        // The whole text, whether or not `^` and `$` match within it.
        let whole = regress::Regex::with_flags(&format!("(?<![^])(?:{source})(?![^])"), flags).unwrap();
        let ours = ours(&source, &options);
        agree(ours, &texts, |text| search.find(text).is_some(), |text| whole.find(text).is_some())?;
    }

    /// Whatever is written, it is read or refused; and what is read in strict mode, another engine reads too.
    #[test]
    fn no_pattern_is_a_surprise(pieces in prop::collection::vec(prop::sample::select(PIECES), 0..12)) {
        let source = pieces.concat();
        for strict in [true, false] {
            let options = Options { strict, ..Options::default() };
            let Ok(pattern) = parse(&source, &options) else { continue };
            // `regress` wants the other half of a surrogate in four digits.
            if strict && !source.contains(r"\ud83d\u{") {
                prop_assert!(regress::Regex::with_flags(&source, "u").is_ok(), "{:?}", source);
            }
            let mut languages = Languages::new();
            let found = pattern.search(&mut languages).unwrap();
            pattern.full(&mut languages).unwrap();
            languages.transitions(found);
        }
    }

    /// What is said to be empty has no text, and an example is a match.
    #[test]
    fn examples_match(tree in tree(true), texts in prop::collection::vec(text(), 8)) {
        let mut ours = ours(&tree.source(), &Options::default());
        for (language, is_search) in [(ours.search, true), (ours.full, false)] {
            let test = |text: &str| {
                // The alphabet of the definition above is small: other characters are as good as a dot.
                let known = |c: char| match c {
                    _ if c.is_ascii_alphanumeric() || c == '_' => 'A',
                    '\r' | '\u{2028}' | '\u{2029}' => '\n',
                    _ if c.is_whitespace() => ' ',
                    _ => '.',
                };
                let text: String = text.chars().map(|c| if ALPHABET.contains(c) { c } else { known(c) }).collect();
                if is_search { tree.found(&text) } else { tree.matches(&text) }
            };
            match ours.languages.example(language).unwrap() {
                // Other line ends are as good as a line feed for `.` and `$`, but not for `\n`.
                Some(example) if example.contains(['\r', '\u{2028}', '\u{2029}']) => {}
                Some(example) => prop_assert!(test(&example), "{:?}", example),
                None => {
                    for text in &texts {
                        prop_assert!(!test(text), "said to be empty, but for {:?}", text);
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
            // In a class and under i, `\W` is to `regress` another set than outside of one.
            if flags == "ui" && source.contains(r"[^\W") {
                continue;
            }
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
