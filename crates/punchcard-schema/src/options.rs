//! What a caller may choose about the texts that are admitted.

use crate::draft::Draft;
use punchcard_automata::NumberDigits;

/// In which order an object's members may come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PropertyOrder {
    /// Declared properties in the order of the schema, then all others in any order.
    Declared,
    /// Any order.
    Any,
}

/// How numbers may be spelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NumberSpelling {
    /// Without exponent; whole numbers, where only those are allowed, without a point.
    Plain,
    /// Every spelling of RFC 8259.
    Any,
}

/// Limits against hostile schemas; real ones stay far below the defaults.
#[derive(Clone, Copy, Debug)]
pub struct SchemaLimits {
    /// Alternatives that one member or item may be split into.
    pub max_alternatives: usize,
    /// States visited while it is decided whether a schema can be satisfied.
    pub max_search: usize,
    /// Contexts in which schemas are compiled again: bindings of `$dynamicRef`, and parts of what `strict` closes.
    pub max_contexts: usize,
    /// States of regular languages.
    pub max_automaton_states: usize,
    /// Steps of one search in regular languages.
    pub max_automaton_work: u64,
}

impl Default for SchemaLimits {
    fn default() -> Self {
        SchemaLimits {
            max_alternatives: 1_024,
            max_search: 100_000,
            max_contexts: 100_000,
            max_automaton_states: 1_000_000,
            max_automaton_work: 5_000_000,
        }
    }
}

/// Options of a compilation.
#[derive(Clone, Debug)]
pub struct Options {
    /// The dialect where `$schema` is silent.
    pub draft: Draft,
    /// Where an object is described, only members that are declared may come.
    pub strict: bool,
    /// `format` is asserted.
    pub assert_formats: bool,
    /// The order of members.
    pub property_order: PropertyOrder,
    /// The spelling of numbers.
    pub number_spelling: NumberSpelling,
    /// How many digits plain numbers may have, unless their schema needs more; then none differs from a bound of the schema
    /// by less than doubles tell apart.
    pub number_digits: Option<NumberDigits>,
    /// A keyword that cannot be enforced is left out and noted, instead of being an error.
    pub leave_out_unsupported: bool,
    /// Limits.
    pub limits: SchemaLimits,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            draft: Draft::V2020,
            strict: false,
            assert_formats: true,
            property_order: PropertyOrder::Declared,
            number_spelling: NumberSpelling::Plain,
            number_digits: Some(NumberDigits::DEFAULT),
            leave_out_unsupported: false,
            limits: SchemaLimits::default(),
        }
    }
}
