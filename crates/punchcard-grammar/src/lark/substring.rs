//! `%regex {"substring_chunks": ["a", "b"]}`: texts made of chunks that stand next to each other in a list, or of none.
//!
//! A list of n chunks has some n²/2 runs. They are not written out: a run lies in the left half, or in the right half, or is
//! an end of the left half with a beginning of the right half. That makes expressions of size O(n log² n), O(log n) deep.

use crate::build::{choice, sequence, text};
use crate::error::GrammarError;
use crate::expr::Expr;
use serde_json::Value;

/// Chunks that the parts may be cut into; a longer text is better searched for with a tool.
const MOST_CHUNKS: usize = 2_000;

/// The language of the structured regular expression `source`, a JSON object at `at` of the text.
pub(super) fn structured(grammar: &str, at: usize, source: &str) -> Result<Expr, GrammarError> {
    let error = |message: String| {
        GrammarError::at(grammar, at, message).with_hint(
            "Write one of \"substring_chunks\": [\"...\"], \"substring_words\": \"...\", \"substring_chars\": \"...\"",
        )
    };
    let object: serde_json::Map<String, Value> =
        serde_json::from_str(source).map_err(|cause| error(format!("This %regex cannot be read: {cause}")))?;
    let mut members = object.iter();
    let (Some((key, value)), None) = (members.next(), members.next()) else {
        return Err(error(format!("%regex has one member, not {}", object.len())));
    };
    let chunks: Option<Vec<String>> = match (key.as_str(), value) {
        ("substring_chunks", Value::Array(items)) => {
            items.iter().map(|item| item.as_str().map(str::to_string)).collect()
        }
        ("substring_words", Value::String(text)) => Some(words(text)),
        ("substring_chars", Value::String(text)) => Some(text.chars().map(String::from).collect()),
        ("substring_chunks" | "substring_words" | "substring_chars", _) => None,
        _ => return Err(error(format!("%regex does not know {key:?}"))),
    };
    let Some(chunks) = chunks else { return Err(error(format!("The value of {key:?} is of another type"))) };
    if chunks.len() > MOST_CHUNKS {
        let message = format!("A %regex of {} chunks is too large; {MOST_CHUNKS} are the most", chunks.len());
        return Err(GrammarError::at(grammar, at, message).with_hint("Cut the text into larger chunks"));
    }
    Ok(choice([Expr::EMPTY, runs(&chunks)]))
}

/// Longest parts that are all word characters, all white space, or all neither.
fn words(text: &str) -> Vec<String> {
    let class = |c: char| (c.is_whitespace(), c.is_alphanumeric() || c == '_');
    let mut words: Vec<String> = Vec::new();
    let mut last = None;
    for c in text.chars() {
        match words.last_mut() {
            Some(word) if last == Some(class(c)) => word.push(c),
            _ => words.push(c.to_string()),
        }
        last = Some(class(c));
    }
    words
}

/// Any run of at least one chunk.
fn runs(chunks: &[String]) -> Expr {
    halves(chunks, |left, right| choice([runs(left), runs(right), sequence([ends(left), beginnings(right)])]))
}

/// Runs from the first chunk on.
fn beginnings(chunks: &[String]) -> Expr {
    halves(chunks, |left, right| choice([beginnings(left), sequence([text(left.concat()), beginnings(right)])]))
}

/// Runs up to the last chunk.
fn ends(chunks: &[String]) -> Expr {
    halves(chunks, |left, right| choice([ends(right), sequence([ends(left), text(right.concat())])]))
}

/// The one chunk, or what `join` makes of the two halves.
fn halves(chunks: &[String], join: impl FnOnce(&[String], &[String]) -> Expr) -> Expr {
    match chunks {
        [] => Expr::Nothing,
        [only] => text(only.clone()),
        _ => {
            let (left, right) = chunks.split_at(chunks.len() / 2);
            join(left, right)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_runs_of_one_kind() {
        assert_eq!(words("foo bar.. baz_1"), ["foo", " ", "bar", "..", " ", "baz_1"]);
        assert_eq!(words(""), [""; 0]);
    }
}
