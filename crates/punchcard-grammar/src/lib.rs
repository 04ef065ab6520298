//! Grammars as expressions, and the notations that they are written in.
//!
//! Every notation becomes an [`Expr`]; a [`Grammar`] is an expression with the rules that it names. So anything goes
//! inside of anything: a JSON Schema in a rule of Lark, a grammar of its own in a structural tag. What an expression means
//! is said at each variant; how it is run is the engine's business.
//!
//! * [`expr`]: the expressions.
//! * [`ebnf`]: GBNF, XGrammar's EBNF and that of the W3C, read by one parser.
//! * [`lark`]: Lark's grammars, with llguidance's additions.
//! * [`print()`]: any grammar as EBNF that reads back.
//! * [`error`]: what can be wrong with a text, and where.

mod build;
pub mod ebnf;
pub mod error;
pub mod expr;
pub mod lark;
pub mod print;
mod similar;

pub use error::GrammarError;
pub use expr::{Expr, Grammar, RegexSyntax};
pub use print::{normal_form, print};
