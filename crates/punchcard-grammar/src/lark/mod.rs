//! Lark grammars.
//!
//! [`parse`] reads what the `lark` package for Python reads, with the additions that users of llguidance know, and gives a
//! [`Grammar`]. `docs/lark.md` is the page for users.
//!
//! ```
//! use punchcard_grammar::{lark, print};
//!
//! let grammar = lark::parse("start: NAME (\",\" NAME)*\nNAME: /[a-z]+/ & ~\"if\"\n%ignore \" \"", None).unwrap();
//! assert!(print(&grammar).contains("NAME"));
//! let error = lark::parse("start: NAEM\nNAME: /[a-z]+/", None).unwrap_err();
//! assert_eq!(error.to_string(), "line 1, column 8: The terminal \"NAEM\" is not defined. Did you mean \"NAME\"?");
//! ```
//!
//! # What is matched
//!
//! A grammar describes characters, and the cut into terminals is only a means: a text is in the language if it can be cut into
//! terminals in *some* way. Lark calls that `parser="earley", lexer="dynamic_complete"`. So priorities, of rules and of
//! terminals, decide nothing, nor does it matter which terminal is longer. Names of alternatives (`-> name`) and the marks
//! `?rule`, `!rule` and `_rule` are about trees, and are read and dropped.
//!
//! * A terminal is a regular language, and matches any text of it. In particular a lazy repetition (`.*?`) matches the same
//!   texts as a greedy one, and look-around sees nothing outside of the terminal. (Lark takes what Python's `re` prefers, and
//!   beginnings of that.) A terminal that ends as soon as it can is written `NAME[lazy]: ...`.
//! * Strings and regular expressions in rules are terminals, and so are `&` and `~` with what is in them, inline JSON, special
//!   tokens and nested grammars.
//! * Ignored terminals may stand before the first, between any two, and after the last terminal, any number of them, but
//!   never inside of one. They alone are as long as they can be ([`Expr::Longest`](crate::Expr::Longest)), as in lark, so that
//!   a comment goes up to the end of its line.
//! * A terminal may match the empty text, which lark refuses.
//! * `[x]` is `x?`.
//!
//! # How it goes
//!
//! text → `lexer` → `parser` (entries of `syntax`) → `scope` (what names stand for) → `lower` (expressions). Each is
//! linear in the size of the text, but for templates, whose instances are limited.

mod common;
mod lexer;
mod lower;
mod parser;
mod scope;
mod special;
mod substring;
mod syntax;

#[cfg(test)]
mod tests;

use crate::error::GrammarError;
use crate::expr::{Grammar, STACK_BYTES};

/// Reads a grammar that begins with the rule (or terminal) `start`; by default, with the rule that is called `start`.
///
/// Every error says where in the text it is, and what to do.
pub fn parse(text: &str, start: Option<&str>) -> Result<Grammar, GrammarError> {
    // Parsing and lowering are recursive; how deep is limited, but not to what a small stack takes.
    stacker::grow(STACK_BYTES, || {
        let lexemes = lexer::tokenize(text)?;
        let items = parser::parse(text, &lexemes)?;
        lower::grammar(text, &items, start.unwrap_or("start"), 0)
    })
}
