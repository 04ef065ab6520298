//! Grammars of rules.
//!
//! [`lower`] makes nodes of grammar expressions and [`recursion`] removes left recursion; [`stack`] holds what may follow,
//! [`machine`] reads bytes and tokens, [`mask`] lifts that to the vocabulary, and [`completion`] finds an end from anywhere.

pub(crate) mod completion;
pub(crate) mod lower;
pub(crate) mod machine;
pub(crate) mod mask;
pub(crate) mod nodes;
pub(crate) mod recursion;
pub(crate) mod stack;

pub use machine::Machine;
