//! Grammars as expressions, and the notations that they are written in.
//!
//! Every notation becomes an [`Expr`]; a [`Grammar`] is an expression with the rules that it names. So anything goes
//! inside of anything: a JSON Schema in a rule of Lark, a grammar of its own in a structural tag. What an expression means
//! is said at each variant; how it is run is the engine's business.
//!
//! * [`expr`]: the expressions.
//! * [`lark`]: grammars of Lark.
//! * [`error`]: what can be wrong with a text, and where.

pub mod error;
pub mod expr;
pub mod lark;

pub use error::GrammarError;
pub use expr::{Expr, Grammar, RegexSyntax};
