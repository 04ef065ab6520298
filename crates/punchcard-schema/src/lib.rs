//! JSON Schema as an algebra of sets of JSON values.
//!
//! A schema becomes a [`formula`]: a Boolean combination of small facts about a value. Nothing is expanded ahead: a
//! subschema is compiled when a value is about to be read that it speaks of ([`compile`]). At a value position the formula
//! is restricted to each JSON type ([`algebra`]); for strings and numbers that gives a regular language, for objects
//! ([`object`]) and arrays ([`array`]) a residual formula that is stepped member by member, item by item, like a regular
//! expression by its partial derivatives. [`satisfy`] decides which of all these still have a value, so that nothing is
//! ever entered that cannot be finished.

pub mod algebra;
pub mod array;
mod blame;
mod carry;
pub mod compile;
mod constant;
mod dialect;
pub mod draft;
mod dynamic;
pub mod error;
pub mod example;
mod exclusive;
pub mod formula;
pub mod json;
mod keywords;
mod metaschemas;
pub mod number;
pub mod object;
pub mod options;
mod order;
pub mod report;
mod rewrite;
mod satisfy;
mod steps;
mod unique;
mod wide;

pub use algebra::{Algebra, ValueShape};
pub use array::ArrayState;
pub use carry::Carried;
pub use error::{SchemaError, SchemaErrorKind};
pub use formula::{Formula, Name, Type};
pub use json::{Json, JsonLimits, ValueId};
pub use object::ObjectState;
pub use options::{NumberSpelling, Options, PropertyOrder};
pub use report::{Report, ReportEntry, Status};
