//! The engine: from a grammar to the tokens that may come next.
//!
//! [`json`] and [`rules`] are the two machines that read bytes, JSON under a schema and grammars of rules, in which JSON
//! may be a part; each is a lazy [`automaton`] and lifts itself to the tokens of a [`vocabulary`]. A [`grammar`] holds one with
//! its finished masks, and a [`matcher`] follows one sequence. Nothing in the algebra of schemas and in the notations of
//! grammars knows of tokens.

pub mod automaton;
pub mod batch;
mod budget;
mod bytes;
pub mod check;
pub mod error;
pub mod grammar;
pub mod json;
mod kinds;
pub mod leaf;
mod leaf_walk;
mod machine;
pub mod mask;
pub mod matcher;
pub mod options;
mod plan;
mod row;
pub mod rules;
mod serial;
mod tables;
pub mod trie;
pub mod vocabulary;

pub use automaton::ConfigId;
pub use error::CompileError;
pub use grammar::CompiledGrammar;
pub use matcher::{BudgetError, Matcher};
pub use options::{JsonOptions, Limits, WhiteSpace};
pub use rules::events::Event;
pub use vocabulary::{Tokens, Vocabulary, VocabularyError};

use punchcard_schema::SchemaError;

/// A part of a text that mixes bytes and tokens which are no text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Text.
    Bytes(Vec<u8>),
    /// A token, by id.
    Token(u32),
}

impl Piece {
    /// How many bytes of text it has.
    fn len(&self) -> usize {
        match self {
            Piece::Bytes(bytes) => bytes.len(),
            Piece::Token(_) => 0,
        }
    }
}

/// A limit was passed that has no place in a text.
pub(crate) fn limit_error(limit: &'static str, value: usize, hint: &str) -> SchemaError {
    SchemaError::limit(limit, value, "", hint)
}
