//! Grammar expressions.
//!
//! Their form in JSON (one key per variant, in snake case: `{"sequence": [{"text": "a"}, {"rule": "b"}]}`, and `"nothing"`)
//! is what Python builds, what is kept in files, and what compiled grammars are made from.

use crate::error::GrammarError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A set of texts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Expr {
    /// No text at all.
    Nothing,
    /// This text.
    Text(String),
    /// One character of these ranges of code points, both ends included.
    Chars(Vec<(u32, u32)>),
    /// One after the other; the empty sequence is the empty text.
    Sequence(Vec<Expr>),
    /// Any of them.
    Choice(Vec<Expr>),
    /// `body`, `min` to `max` times; without `max`, any number of times from `min` on.
    Repeat {
        /// What is repeated.
        body: Box<Expr>,
        /// Least times.
        min: u32,
        /// Most times.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max: Option<u32>,
    },
    /// A rule of the grammar around it.
    Rule(String),
    /// What a regular expression matches as a whole.
    Regex {
        /// Its source.
        pattern: String,
        /// Letters of the flags that are on: `i`, `m`, `s`, `x`.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        flags: String,
        /// Whose regular expressions these are.
        #[serde(default)]
        syntax: RegexSyntax,
    },
    /// Texts that are in all of them. The operands must be regular (see [`Expr::Not`]).
    And(Vec<Expr>),
    /// Texts that are not in it. The operand must be regular: made without recursive rules, JSON, tokens and limits.
    Not(Box<Expr>),
    /// Texts of it of which no proper beginning is in it: it ends as soon as it can. Regular.
    Shortest(Box<Expr>),
    /// A text of it that could not have been longer: what follows in the whole text does not go on with it. (The texts that
    /// could go on with *any* text of it may not follow.) The empty text, if it is in it, may be followed by anything. The
    /// operand must be regular.
    Longest(Box<Expr>),
    /// Any text in which none of these occurs. Regular.
    TextWithout(Vec<String>),
    /// JSON text under a JSON Schema.
    JsonSchema {
        /// The schema, as JSON text.
        schema: String,
        /// The options of `punchcard.Grammar.from_json_schema` that differ from the default.
        #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
        options: serde_json::Map<String, serde_json::Value>,
    },
    /// The strings that a JSON Schema allows, as they are, without quotes and escapes.
    SchemaString {
        /// The schema, as JSON text.
        schema: String,
        /// Options, as for `JsonSchema`.
        #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
        options: serde_json::Map<String, serde_json::Value>,
        /// Texts that may not occur in it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        without: Vec<String>,
    },
    /// One token of these, by id or by name; `except`: one token that is not of these, whatever its text, but for those
    /// that end the output.
    Token {
        /// Token ids.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ids: Vec<u32>,
        /// Names of special tokens, such as `<|end|>`.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        names: Vec<String>,
        /// Any token but these.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        except: bool,
    },
    /// `body`, in at most so many tokens.
    MaxTokens {
        /// What is limited.
        body: Box<Expr>,
        /// Most tokens.
        tokens: u32,
    },
    /// `body`, of which the matcher reports where it begins and ends.
    Named {
        /// What it is: "rule", "tag", "trigger", "call", ...
        kind: String,
        /// Its name.
        name: String,
        /// What is named.
        body: Box<Expr>,
    },
    /// A grammar with rules of its own.
    Grammar(Box<Grammar>),
}

/// An expression, and the rules that it and they name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grammar {
    /// The whole text.
    pub start: Expr,
    /// Rules by name.
    #[serde(default)]
    pub rules: BTreeMap<String, Expr>,
}

/// Whose regular expressions a pattern is written in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RegexSyntax {
    /// ECMA-262 with the `u` flag.
    #[default]
    Ecma,
    /// Python's `re`.
    Python,
}

/// Expressions within each other; deeper ones are refused, as every pass over them is recursive.
pub const MAX_DEPTH: usize = 1_000;

/// The stack that passes over expressions of this depth may need.
pub const STACK_BYTES: usize = 64 << 20;

impl Expr {
    /// The empty text.
    pub const EMPTY: Expr = Expr::Sequence(Vec::new());

    /// Reads the JSON form.
    pub fn from_json(text: &str) -> Result<Expr, GrammarError> {
        let mut reader = serde_json::Deserializer::from_str(text);
        reader.disable_recursion_limit();
        let depth = nesting(text);
        // An expression within another is up to three brackets deeper.
        if depth > 3 * MAX_DEPTH + 10 {
            return Err(GrammarError::new(format!("The grammar nests {depth} brackets deep"))
                .with_hint("Name its parts as rules"));
        }
        stacker::grow(STACK_BYTES, || Expr::deserialize(&mut reader))
            .map_err(|error| GrammarError::new(format!("This is no grammar expression: {error}")))
    }

    /// The JSON form.
    pub fn to_json(&self) -> String {
        stacker::grow(STACK_BYTES, || serde_json::to_string(self)).unwrap_or_default()
    }
}

/// How deep brackets nest in a JSON text.
fn nesting(text: &str) -> usize {
    let (mut depth, mut most, mut in_string, mut escaped) = (0usize, 0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => {
                depth += 1;
                most = most.max(depth);
            }
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_json_form_reads_back() {
        let body = Box::new(Expr::Rule("a".into()));
        let expr = Expr::Grammar(Box::new(Grammar {
            start: Expr::Choice(vec![
                Expr::Sequence(vec![Expr::Text("x\"[".into()), Expr::Repeat { body, min: 1, max: None }]),
                Expr::Token { ids: vec![3], names: vec![], except: true },
                Expr::Nothing,
            ]),
            rules: BTreeMap::from([("a".to_string(), Expr::Chars(vec![(97, 122)]))]),
        }));
        assert_eq!(Expr::from_json(&expr.to_json()), Ok(expr));
        assert!(Expr::from_json("{\"text\": 1}").is_err());
        let deep = format!("{}\"nothing\"{}", "{\"not\":".repeat(100_000), "}".repeat(100_000));
        assert!(Expr::from_json(&deep).is_err());
    }
}
