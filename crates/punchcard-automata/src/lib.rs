//! Regular languages over Unicode text.
//!
//! A language is a hash-consed regular expression with Boolean operations ([`Languages`]); a state of its automaton is
//! again such an expression, and a transition is its derivative. So intersection, complement, look-around and counted
//! repetition are one mechanism, nothing is expanded ahead, and only the states that a text visits are ever built.
//!
//! * [`charset`][]: sets of characters.
//! * [`languages`][]: the expressions and their simplifying constructors.
//! * `derivative`: transitions.
//! * `emptiness`: whether a language has any text at all, and its shortest one.
//! * [`machine`][]: languages that code describes, by the steps of an automaton; [`alphabet`]: what it tells apart.
//! * [`formats`][]: the `format`s of JSON Schema.
//! * [`pattern`][]: regular expressions of ECMA-262.
//! * [`decimal`][]: exact numbers; `number_set`: sets of numbers by value.
//! * `number`: plain spellings of such a set, as expressions; `number_room`: how many digits they may have.
//! * `number_machine`: spellings of any set, plain ones and those with exponents.

pub mod alphabet;
pub mod charset;
mod copy;
pub mod decimal;
mod derivative;
mod emptiness;
mod exponents;
pub mod formats;
pub mod languages;
mod lattice;
mod listing;
pub mod machine;
mod number;
mod number_machine;
mod number_room;
mod number_set;
mod number_side;
pub mod pattern;
mod texts;
pub mod work;

pub use alphabet::Alphabet;
pub use charset::CharSet;
pub use copy::Copies;
pub use decimal::Decimal;
pub use derivative::Transitions;
pub use languages::{Language, Languages, LimitExceeded, Look};
pub use machine::Machine;
pub use number_room::NumberDigits;
pub use number_set::NumberSet;
