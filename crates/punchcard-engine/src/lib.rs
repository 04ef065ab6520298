//! The engine: from a schema to the tokens that may come next.
//!
//! [`machine`] reads bytes; [`mask`] lifts it to the tokens of a [`vocabulary`]; [`grammar`] keeps both with their caches,
//! and a [`matcher`] follows one sequence. Nothing here knows of schemas but through their algebra, and nothing in the
//! algebra knows of tokens.

pub mod completion;
pub mod grammar;
pub mod leaf;
pub mod machine;
pub mod mask;
pub mod matcher;
pub mod trie;
pub mod vocabulary;

pub use grammar::{CompiledGrammar, JsonOptions, WhiteSpace};
pub use machine::{ConfigId, MachineLimits};
pub use matcher::Matcher;
pub use vocabulary::{Vocabulary, VocabularyError};
