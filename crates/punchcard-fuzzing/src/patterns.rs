//! Regular expressions of both dialects: against another engine, and against each other where they agree.

use crate::follow::{Text, follow, limits};
use crate::random_pattern::{LETTERS, pattern};
use crate::validator::is_quick;
use crate::{Choices, RANDOM, vocabularies};
use punchcard_automata::pattern::{self, Dialect, Options};
use punchcard_automata::{Language, Languages};
use punchcard_engine::{CompileError, CompiledGrammar};
use punchcard_grammar::{Expr, RegexSyntax};

/// Texts that are tried, and characters of each.
const TEXTS: usize = 12;
const MOST_LETTERS: usize = 6;

pub(crate) fn check_ecma(data: &[u8]) {
    check(data, Dialect::Ecma);
}

pub(crate) fn check_python(data: &[u8]) {
    check(data, Dialect::Python);
}

fn check(data: &[u8], dialect: Dialect) {
    let mut choices = Choices::endless(data);
    let (source, is_common, quick) = match data.split_first() {
        Some((&RANDOM, rest)) => {
            let made = pattern(&mut Choices::new(rest));
            (made.source, made.is_common, made.is_quick)
        }
        _ => {
            let Ok(source) = std::str::from_utf8(data) else { return };
            (source.to_string(), false, is_quick(source))
        }
    };
    let letters = match dialect {
        Dialect::Python => ["", "", "", "i", "m", "s", "a", "x"],
        _ => ["", "", "", "i", "m", "s", "ims", "x"],
    };
    let flags = choices.pick(&letters);
    let options = Options { strict: choices.once_in(2), ..Options::with_flags(dialect, flags).expect("known flags") };
    let Some((mut languages, search, full)) = compile(&source, &options) else { return };
    let texts: Vec<String> =
        (0..TEXTS).map(|_| choices.list(0, MOST_LETTERS, |c| c.pick(&LETTERS).to_string()).concat()).collect();

    steps_agree(&mut languages, &[search, full], &texts);
    examples_match(&mut languages, &[search, full], &texts);
    if dialect == Dialect::Ecma && options.strict && quick && !flags.contains('x') {
        agrees_with_regress(&mut languages, search, full, &source, flags, &texts);
    }
    if dialect == Dialect::Python && is_common && !flags.contains(['x', 'a']) {
        let other = Options { strict: false, ..Options::with_flags(Dialect::Ecma, flags).expect("known flags") };
        if let Some((mut others, other_search, other_full)) = compile(&source, &other) {
            for text in &texts {
                for (ours, theirs) in [(search, other_search), (full, other_full)] {
                    let (ours, theirs) = (languages.matches(ours, text), others.matches(theirs, text));
                    assert!(
                        ours == theirs,
                        "{source:?} ({flags}) on {text:?} is {ours} in Python, {theirs} in ECMA-262"
                    );
                }
            }
        }
    }
    follow_grammar(&source, flags, dialect, &mut choices, &mut languages, full);
}

fn compile(source: &str, options: &Options) -> Option<(Languages, Language, Language)> {
    let pattern = match pattern::parse(source, options) {
        Ok(pattern) => pattern,
        Err(error) => {
            assert!(!error.message.is_empty(), "an error without a message");
            assert!(error.offset <= source.chars().count(), "{error} is beyond the pattern {source:?}");
            return None;
        }
    };
    let mut languages = Languages::new();
    let search = pattern.search(&mut languages).ok()?;
    let full = pattern.full(&mut languages).ok()?;
    Some((languages, search, full))
}

/// The transitions, which are computed for all characters at once, agree with single steps.
fn steps_agree(languages: &mut Languages, starts: &[Language], texts: &[String]) {
    for text in texts {
        for &start in starts {
            let (mut by_step, mut by_table) = (start, start);
            for c in text.chars() {
                if languages.check_limit().is_err() {
                    return;
                }
                by_step = languages.step(by_step, c as u32);
                by_table = languages.transitions(by_table).target(c as u32);
            }
            let agree = languages.is_nullable(by_step) == languages.is_nullable(by_table);
            assert!(agree, "steps and transitions differ on {text:?}");
        }
    }
}

/// An example is a match, and what has none matches nothing.
fn examples_match(languages: &mut Languages, starts: &[Language], texts: &[String]) {
    for &start in starts {
        match languages.example(start) {
            Ok(Some(example)) => assert!(languages.matches(start, &example), "the example {example:?} is none"),
            Ok(None) => {
                let matched = texts.iter().find(|text| languages.matches(start, text));
                assert!(matched.is_none(), "said to be empty, but for {matched:?}");
            }
            Err(_) => {}
        }
    }
}

fn agrees_with_regress(
    languages: &mut Languages,
    search: Language,
    full: Language,
    source: &str,
    flags: &str,
    texts: &[String],
) {
    let flags = format!("{flags}u");
    let Ok(other) = regress::Regex::with_flags(source, flags.as_str()) else { return };
    let Ok(whole) = regress::Regex::with_flags(&format!("(?<![^])(?:{source})(?![^])"), flags.as_str()) else { return };
    for text in texts {
        for (ours, theirs) in [(search, &other), (full, &whole)] {
            let (ours, theirs) = (languages.matches(ours, text), theirs.find(text).is_some());
            assert!(ours == theirs, "{source:?} ({flags}) on {text:?} is {ours}, and {theirs} in another engine");
        }
    }
}

fn follow_grammar(
    source: &str,
    flags: &str,
    dialect: Dialect,
    choices: &mut Choices<'_>,
    languages: &mut Languages,
    full: Language,
) {
    let syntax = if dialect == Dialect::Python { RegexSyntax::Python } else { RegexSyntax::Ecma };
    let expr = Expr::Regex { pattern: source.into(), flags: flags.into(), syntax };
    // A pattern that only other engines take is read as a grammar too: strictness is off there.
    match CompiledGrammar::new(vocabularies::all_bytes().clone(), expr, &limits(choices)) {
        Ok(grammar) => follow(&grammar, choices, &mut |text: &Text| {
            let matched = std::str::from_utf8(&text.bytes).is_ok_and(|text| languages.matches(full, text));
            assert!(matched, "{source:?} ({flags}) lets through {:?}", String::from_utf8_lossy(&text.bytes));
        }),
        Err(error) => refused(&error),
    }
}

/// An error says what is wrong.
pub(crate) fn refused(error: &CompileError) {
    let (message, hint) = match error {
        CompileError::Grammar(error) => (error.message.as_str(), error.hint.as_str()),
        CompileError::Schema(error) => (error.message.as_str(), &*error.hint),
    };
    assert!(!message.trim().is_empty(), "an error without a message: {error:?}");
    assert!(hint.is_empty() || hint.trim() == hint, "a hint with white space around it: {error:?}");
    assert!(error.to_string().contains(message.trim()));
}
