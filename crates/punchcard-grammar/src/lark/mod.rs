//! Lark grammars.
//!
//! TODO

mod common;
mod lexer;
mod lower;
mod parser;
mod scope;
mod special;
mod substring;
mod syntax;

use crate::error::GrammarError;
use crate::expr::{Grammar, STACK_BYTES};

/// Reads a grammar that begins with the rule `start`, or with the rule of that name if there is none given.
pub fn parse(text: &str, start: Option<&str>) -> Result<Grammar, GrammarError> {
    // Parsing and lowering are recursive; how deep is limited, but not to what a small stack takes.
    stacker::grow(STACK_BYTES, || {
        let lexemes = lexer::tokenize(text)?;
        let items = parser::parse(text, &lexemes)?;
        lower::grammar(text, &items, start.unwrap_or("start"), 0)
    })
}
