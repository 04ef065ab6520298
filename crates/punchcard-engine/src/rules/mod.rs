//! Grammars of rules.
//!
//! [`lower`] makes nodes of grammar expressions ([`beginnings`] puts many alternatives together) and [`recursion`] removes
//! left recursion, [`longest`] makes terminals as long as they can be; [`stack`] holds what may follow, [`live`] knows with
//! which bytes,
//! [`machine`] reads bytes and tokens, [`mask`] lifts that to the vocabulary with what [`terminal_mask`] knows of it,
//! [`counts`] holds what is left of limits on tokens, [`completion`] finds an end from anywhere, and [`events`] tells what
//! begins and ends where.

mod beginnings;
mod carry;
mod chain;
pub(crate) mod completion;
pub(crate) mod counts;
pub mod events;
pub(crate) mod live;
pub(crate) mod longest;
pub(crate) mod lower;
pub(crate) mod machine;
pub(crate) mod mask;
mod members;
pub(crate) mod nodes;
pub(crate) mod recursion;
pub(crate) mod stack;
pub(crate) mod terminal_mask;

pub(crate) use carry::Carried;
pub(crate) use completion::Spot;
pub use machine::Machine;
