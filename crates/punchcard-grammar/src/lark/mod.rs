//! Lark grammars.
//!
//! [`parse`] reads what the `lark` package for Python reads, with the additions that users of llguidance know, and gives a
//! [`Grammar`]. `docs/lark.md` is the page for users.
//!
//! ```
//! use punchcard_grammar::lark::{Lexer, parse};
//! use punchcard_grammar::print;
//!
//! let source = "start: NAME (\",\" NAME)*\nNAME: /[a-z]+/ & ~\"if\"\n%ignore \" \"";
//! let grammar = parse(source, None, Lexer::default()).unwrap();
//! assert!(print(&grammar).contains("NAME"));
//! let error = parse("start: NAEM\nNAME: /[a-z]+/", None, Lexer::default()).unwrap_err();
//! assert_eq!(error.to_string(), "line 1, column 8: The terminal \"NAEM\" is not defined. Did you mean \"NAME\"?");
//! ```
//!
//! # What is matched
//!
//! By default ([`Lexer::Dynamic`], lark's own default) a text is in the language if it can be cut into terminals each of
//! which goes as far as it can: a name is never cut into two. With [`Lexer::DynamicComplete`] any cut will do. Either way it
//! is the grammar that says which terminals may come, so priorities, of rules and of terminals, decide nothing. Names of
//! alternatives (`-> name`) and the marks `?rule`, `!rule` and `_rule` are about trees, and are read and dropped.
//!
//! * A terminal is a regular language. It is followed by nothing that could go on with some text of it ([`Expr::Longest`]),
//!   which is a little stricter than lark: behind `NUMBER`, `.5` may not follow, whatever the number. (Lark takes what
//!   Python's `re` prefers, which for alternatives such as `/a|ab/` is not always the longest.) A terminal with a lazy
//!   repetition (`.*?`) ends as soon as it can; so does one that is written `NAME[lazy]: ...`.
//! * Look-around sees nothing outside of the terminal.
//! * Strings and regular expressions in rules are terminals, and so are `&` and `~` with what is in them, inline JSON, special
//!   tokens and nested grammars.
//! * Ignored terminals may stand before the first, between any two, and after the last terminal, any number of them, but
//!   never inside of one.
//! * A terminal may match the empty text, which lark refuses; anything may follow that.
//! * `[x]` is `x?`.
//!
//! # How it goes
//!
//! text → `lexer` → `parser` (entries of `syntax`) → `scope` (what names stand for) → `lower` (expressions) → `priority`
//! (lazy terminals come first). Each is linear in the size of the text, but for templates, whose instances are limited,
//! and for the terminals that may begin beside lazy ones, which are compared in pairs.

mod common;
mod guidance;
mod lexer;
mod lower;
mod parser;
mod priority;
mod scope;
mod special;
mod substring;
mod syntax;

#[cfg(test)]
mod tests;

use crate::error::GrammarError;
#[cfg(doc)]
use crate::expr::Expr;
use crate::expr::{Grammar, STACK_BYTES};

/// How a text is cut into terminals; the names are lark's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lexer {
    /// Each terminal goes as far as it can.
    #[default]
    Dynamic,
    /// Each terminal may be any text of it.
    DynamicComplete,
}

/// Reads a grammar that begins with the rule (or terminal) `start`; by default, with the rule that is called `start`.
///
/// Every error says where in the text it is, and what to do.
pub fn parse(text: &str, start: Option<&str>, lexer: Lexer) -> Result<Grammar, GrammarError> {
    // Parsing and lowering are recursive; how deep is limited, but not to what a small stack takes.
    stacker::grow(STACK_BYTES, || {
        let lexemes = lexer::tokenize(text)?;
        let items = parser::parse(text, &lexemes)?;
        lower::grammar(text, &items, start.unwrap_or("start"), 0, lexer)
    })
}
