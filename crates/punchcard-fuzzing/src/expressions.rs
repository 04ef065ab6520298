//! Grammar expressions: random ones in every combination against a slow recogniser, and what was serialised, whole and
//! damaged, as it comes from a disk or a network.

use crate::follow::{Text, follow, limited, limits};
use crate::patterns::refused;
use crate::random_pattern::quick_pattern;
use crate::random_schema::schema;
use crate::recogniser::{Verdict, recognise};
use crate::{Choices, RANDOM, vocabularies};
use punchcard_engine::{CompiledGrammar, Matcher};
use punchcard_grammar::{Expr, Grammar, RegexSyntax, ebnf, print};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

const RULES: [&str; 4] = ["r", "s", "t", "u"];
const TEXTS: [&str; 8] = ["a", "b", "ab", "ba", "", "é", "aa", "c"];
/// Texts that are tried on each grammar, and characters of each.
const TRIED: usize = 16;
const MOST_LETTERS: usize = 6;

pub(crate) fn check(data: &[u8]) {
    let mut choices = Choices::endless(data);
    if let Some((&RANDOM, rest)) = data.split_first() {
        let grammar = grammar(&mut Choices::new(rest));
        prints_and_reads_back(&grammar);
        check_grammar(&grammar, &mut choices);
        let expr = Expr::Grammar(Box::new(grammar));
        assert!(Expr::from_json(&expr.to_json()).as_ref() == Ok(&expr), "the JSON form reads back as another");
        return;
    }
    let vocabulary = vocabularies::all_bytes();
    // As it is, which rarely has the right checksum; as the body after a right one; and as the expression in a right body.
    let mut texts = vec![data.to_vec()];
    texts.push(sealed(data));
    if let Ok(expr) = std::str::from_utf8(data) {
        let body =
            serde_json::json!({"vocabulary": vocabulary.fingerprint(), "limits": limits(&mut choices), "expr": expr});
        texts.push(sealed(body.to_string().as_bytes()));
    }
    for text in texts {
        match CompiledGrammar::deserialize(vocabulary.clone(), &text) {
            Ok(grammar) => {
                let again = CompiledGrammar::deserialize(vocabulary.clone(), &grammar.serialize());
                let again = again.expect("what was just serialised can be read");
                assert!(again.expr() == grammar.expr() && again.limits() == grammar.limits());
                follow(&grammar, &mut choices, &mut |_| {});
            }
            Err(error) => refused(&error),
        }
    }
}

/// A serialised grammar with this body.
fn sealed(body: &[u8]) -> Vec<u8> {
    let sum: String = Sha256::digest(body).iter().map(|byte| format!("{byte:02x}")).collect();
    [format!("punchcard-grammar 1 {sum}\n").as_bytes(), body].concat()
}

/// What is printed reads back, and is printed the same.
pub(crate) fn prints_and_reads_back(grammar: &Grammar) {
    let printed = print(grammar);
    match ebnf::parse(&printed, None) {
        Ok(read) => assert!(print(&read) == printed, "printed and read back, it is another grammar:\n{printed}"),
        Err(error) => panic!("{error}, in what was printed:\n{printed}"),
    }
}

/// Compiles a grammar; texts that it lets through are of it, and texts that are of it are let through.
pub(crate) fn check_grammar(grammar: &Grammar, choices: &mut Choices<'_>) {
    let tried: Vec<String> = (0..TRIED)
        .map(|_| choices.list(0, MOST_LETTERS, |choices| choices.pick(&["a", "b", "a", "b", "c", "é"])).concat())
        .collect();
    let expr = Expr::Grammar(Box::new(grammar.clone()));
    let compiled = match CompiledGrammar::new(vocabularies::all_bytes().clone(), expr, &limits(choices)) {
        Ok(compiled) => compiled,
        Err(error) => {
            refused(&error);
            if error.to_string().contains("No text matches") {
                let member = tried.iter().find(|text| recognise(grammar, text) == Verdict::Member);
                assert!(member.is_none(), "said to have no text, but for {member:?}:\n{}", print(grammar));
            }
            return;
        }
    };
    follow(&compiled, choices, &mut |text: &Text| {
        let (true, Ok(text)) = (text.is_plain, std::str::from_utf8(&text.bytes)) else { return };
        // Long texts take the recogniser too long.
        if text.len() < 60 {
            assert!(recognise(grammar, text) != Verdict::Stranger, "lets through {text:?}:\n{}", print(grammar));
        }
    });
    for text in &tried {
        let expected = match recognise(grammar, text) {
            Verdict::Member => true,
            Verdict::Stranger => false,
            Verdict::Perhaps | Verdict::Unknown => continue,
        };
        let mut matcher = Matcher::new(compiled.clone(), None).expect("without a budget there is nothing to refuse");
        let found = (|| Ok(matcher.accept_bytes(text.as_bytes())? && matcher.is_accepting()?))();
        let Some(found) = limited(found) else { return };
        assert!(found == expected, "{text:?} is {found}, and should be {expected}:\n{}", print(grammar));
    }
}

/// A grammar of few rules that name each other.
pub(crate) fn grammar(choices: &mut Choices<'_>) -> Grammar {
    let rules = &RULES[..1 + choices.below(RULES.len())];
    let mut made = BTreeMap::new();
    let start = expr(choices, rules, 3);
    for rule in rules {
        let body = if choices.once_in(2) { expr(choices, rules, 3) } else { production(choices, rules) };
        made.insert(rule.to_string(), body);
    }
    Grammar { start, rules: made }
}

/// Alternatives of letters and rules, as people write them.
fn production(choices: &mut Choices<'_>, rules: &[&str]) -> Expr {
    let symbol = |choices: &mut Choices<'_>| match choices.once_in(2) {
        true => Expr::Rule(choices.pick(rules).into()),
        false => Expr::Text(choices.pick(&TEXTS).into()),
    };
    Expr::Choice(choices.list(1, 3, |choices| Expr::Sequence(choices.list(0, 3, symbol))))
}

fn expr(choices: &mut Choices<'_>, rules: &[&str], depth: usize) -> Expr {
    if depth == 0 {
        return leaf(choices, rules);
    }
    let one = |choices: &mut Choices<'_>| Box::new(expr(choices, rules, depth - 1));
    let some = |choices: &mut Choices<'_>| choices.list(0, 3, |choices| expr(choices, rules, depth - 1));
    match choices.below(20) {
        0..4 => leaf(choices, rules),
        4..7 => Expr::Sequence(some(choices)),
        7..10 => Expr::Choice(some(choices)),
        10..13 => {
            let body = one(choices);
            repeated(choices, body)
        }
        13 => Expr::And(some(choices)),
        14 => Expr::Not(one(choices)),
        15 => Expr::Shortest(one(choices)),
        16 => Expr::Longest(one(choices)),
        17 => Expr::MaxTokens { tokens: choices.below(4) as u32, body: one(choices) },
        18 => Expr::Named { kind: "rule".into(), name: choices.pick(&["x", "y\"", ""]).into(), body: one(choices) },
        _ => {
            let inner = &["r", "x"];
            let rules = inner.iter().map(|rule| (rule.to_string(), expr(choices, inner, depth - 1))).collect();
            Expr::Grammar(Box::new(Grammar { start: expr(choices, inner, depth - 1), rules }))
        }
    }
}

fn repeated(choices: &mut Choices<'_>, body: Box<Expr>) -> Expr {
    let large = choices.once_in(8);
    let bound = |choices: &mut Choices<'_>| match large {
        true => [50, 1_000, 70_000, u32::MAX - 1, u32::MAX][choices.below(5)],
        false => choices.below(4) as u32,
    };
    let min = if choices.once_in(3) { bound(choices) } else { choices.below(2) as u32 };
    // A bound below the other is refused.
    let max = choices.once_in(2).then(|| bound(choices).saturating_add(if choices.once_in(9) { 0 } else { min }));
    Expr::Repeat { body, min, max }
}

fn leaf(choices: &mut Choices<'_>, rules: &[&str]) -> Expr {
    match choices.below(20) {
        0..6 => Expr::Text(choices.pick(&TEXTS).into()),
        6..12 => Expr::Rule(choices.pick(rules).into()),
        12 => Expr::Chars(vec![(97, 98)]),
        13 => Expr::Chars([vec![(0, 0x10FFFF)], vec![(0x80, 0x10FFFF), (97, 97)], vec![]][choices.below(3)].clone()),
        14 => Expr::TextWithout(choices.list(0, 2, |choices| choices.pick(&TEXTS).into())),
        15 => Expr::Regex { pattern: quick_pattern(choices), flags: String::new(), syntax: RegexSyntax::default() },
        16 => {
            let names = choices.list(0, 1, |choices| choices.pick(&["<think>", "<|tool|>", "<end>"]).into());
            Expr::Token { ids: choices.list(0, 2, |c| c.below(20) as u32), names, except: choices.once_in(3) }
        }
        17 => Expr::JsonSchema { schema: schema(choices).to_string(), options: Default::default() },
        18 => {
            let without = choices.list(0, 1, |choices| choices.pick(&TEXTS).into());
            Expr::SchemaString { schema: schema(choices).to_string(), options: Default::default(), without }
        }
        _ => Expr::Nothing,
    }
}
