//! Replays texts through grammars, for measurements that need no Python: masks and steps as a model would ask for them.
//!
//!     cargo run --release -p punchcard-engine --example replay -- VOCABULARY CASES [NAME...]
//!
//! VOCABULARY is what `TokenizerInfo.save` writes. CASES has a JSON object a line: its `name`; the grammar, as `expr` (an
//! expression in its JSON form), `ebnf` or `lark` (a text); and `texts`, each a text, which is spelled in the fewest
//! tokens, or a list of token ids. NAMEs choose among them.
//!
//! Each phase is a function that is not inlined, so a profiler tells them apart: `phase_vocabulary`, `phase_compile`,
//! `phase_cold` (a mask before each token, of a grammar that was just compiled) and `phase_warm` (the same again).
//! `scripts/instructions.py` counts their instructions. Printed for each case: tokens taken, tokens that the masks
//! allowed in all, and the bytes that the grammar holds.

use punchcard_engine::{CompiledGrammar, Limits, Matcher, Tokens, Vocabulary};
use punchcard_grammar::{Expr, ebnf, lark};
use serde::Deserialize;
use std::error::Error;
use std::hint::black_box;
use std::sync::Arc;

type Outcome<T> = Result<T, Box<dyn Error>>;

#[derive(Deserialize)]
struct Saved {
    vocab_size: usize,
    eos_token_ids: Vec<u32>,
    special_token_ids: Vec<u32>,
    /// Each character is one byte.
    tokens: Vec<String>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    expr: Option<serde_json::Value>,
    ebnf: Option<String>,
    lark: Option<String>,
    texts: Vec<Text>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Text {
    Spelled(String),
    Tokens(Vec<u32>),
}

#[inline(never)]
fn phase_vocabulary(saved: &Saved, tokens: Tokens) -> Outcome<Vocabulary> {
    let (eos, special) = (&saved.eos_token_ids, &saved.special_token_ids);
    Ok(black_box(Vocabulary::from_tokens(tokens, eos, special, Some(saved.vocab_size))?))
}

#[inline(never)]
fn phase_compile(case: &Case, vocabulary: &Arc<Vocabulary>) -> Outcome<CompiledGrammar> {
    let expr = match case {
        Case { expr: Some(expr), .. } => Expr::from_json(&expr.to_string())?,
        Case { ebnf: Some(text), .. } => Expr::Grammar(Box::new(ebnf::parse(text, None)?)),
        Case { lark: Some(text), .. } => Expr::Grammar(Box::new(lark::parse(text, None, lark::Lexer::Dynamic)?)),
        _ => return Err("no grammar".into()),
    };
    Ok(black_box(CompiledGrammar::new(vocabulary.clone(), expr, &Limits::default())?))
}

#[inline(never)]
fn phase_cold(grammar: &CompiledGrammar, texts: &[Vec<u32>], rows: &mut [Vec<u32>]) -> Outcome<()> {
    black_box("cold"); // else the compiler makes one function of these two
    walk(grammar, texts, rows)
}

#[inline(never)]
fn phase_warm(grammar: &CompiledGrammar, texts: &[Vec<u32>], rows: &mut [Vec<u32>]) -> Outcome<()> {
    black_box("warm");
    walk(grammar, texts, rows)
}

fn walk(grammar: &CompiledGrammar, texts: &[Vec<u32>], rows: &mut [Vec<u32>]) -> Outcome<()> {
    let mut rows = rows.iter_mut();
    for (index, text) in texts.iter().enumerate() {
        let mut matcher = Matcher::new(grammar.clone(), None).map_err(|error| format!("{error:?}"))?;
        for (at, &token) in text.iter().enumerate() {
            let row = rows.next().ok_or("too few rows")?;
            matcher.fill_mask(row)?;
            if row[token as usize / 32] >> (token % 32) & 1 == 0 || !matcher.accept_token(token)? {
                return Err(format!("token {at} of text {index} is refused").into());
            }
        }
        matcher.fill_mask(rows.next().ok_or("too few rows")?)?;
        if !matcher.is_accepting()? {
            return Err(format!("text {index} is not complete").into());
        }
    }
    Ok(())
}

fn run(case: &Case, vocabulary: &Arc<Vocabulary>) -> Outcome<()> {
    let spell = |text: &Text| match text {
        Text::Spelled(text) => vocabulary.fewest_tokens(text.as_bytes()).ok_or("no tokens spell a text"),
        Text::Tokens(tokens) => Ok(tokens.clone()),
    };
    let texts = case.texts.iter().map(spell).collect::<Result<Vec<_>, _>>()?;
    let grammar = phase_compile(case, vocabulary)?;
    // A row for each mask, so that what is counted afterwards is no part of a phase.
    let masks = texts.iter().map(|text| text.len() + 1).sum();
    let mut rows = vec![vec![0; vocabulary.mask_words()]; masks];
    phase_cold(&grammar, &texts, &mut rows)?;
    let allowed: u64 = rows.iter().flatten().map(|word| u64::from(word.count_ones())).sum();
    phase_warm(&grammar, &texts, &mut rows)?;
    let again: u64 = rows.iter().flatten().map(|word| u64::from(word.count_ones())).sum();
    if again != allowed {
        return Err("masks differ the second time".into());
    }
    println!(
        "{}",
        serde_json::json!({
            "name": case.name,
            "tokens": masks - texts.len(),
            "allowed": allowed,
            "memory": grammar.memory_size(),
        })
    );
    Ok(())
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [vocabulary, cases, names @ ..] = arguments.as_slice() else {
        return Err("usage: replay VOCABULARY CASES [NAME...]".into());
    };
    let saved: Saved = serde_json::from_str(&std::fs::read_to_string(vocabulary)?)?;
    let mut tokens = Tokens::with_capacity(saved.tokens.len());
    for token in &saved.tokens {
        let bytes: Result<Vec<u8>, _> = token.chars().map(u8::try_from).collect();
        tokens.push(&bytes?)?;
    }
    let vocabulary = Arc::new(phase_vocabulary(&saved, tokens)?);
    for line in std::fs::read_to_string(cases)?.lines() {
        let case: Case = serde_json::from_str(line)?;
        if names.is_empty() || names.contains(&case.name) {
            run(&case, &vocabulary).map_err(|error| format!("{}: {error}", case.name))?;
        }
    }
    Ok(())
}
