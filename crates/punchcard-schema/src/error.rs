//! What can be wrong with a schema, as data.

use punchcard_automata::work::CANCELLED;

/// The kind of a [`SchemaError`]; each is an exception class of its own in Python.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchemaErrorKind {
    /// Not JSON, or a keyword with a value that the specification does not allow.
    Invalid,
    /// A valid keyword that cannot be enforced.
    Unsupported,
    /// No value satisfies the schema.
    Unsatisfiable,
    /// A limit was passed.
    Limit {
        /// Its name.
        limit: &'static str,
        /// Its value.
        value: usize,
    },
    /// Whoever asked for it has cancelled the operation.
    Cancelled,
}

/// Why a schema was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaError {
    /// What kind of refusal.
    pub kind: SchemaErrorKind,
    /// One sentence, without the full stop.
    pub message: String,
    /// JSON pointer into the schema.
    pub pointer: String,
    /// The keyword, or nothing.
    pub keyword: Box<str>,
    /// What to do about it.
    pub hint: Box<str>,
}

impl SchemaError {
    /// A limit was passed at `pointer`.
    pub fn limit(limit: &'static str, value: usize, pointer: &str, hint: &str) -> SchemaError {
        let place = if pointer.is_empty() { String::new() } else { format!(" at '{pointer}'") };
        SchemaError {
            kind: SchemaErrorKind::Limit { limit, value },
            message: format!("The limit {limit}={value} was passed{place}"),
            pointer: pointer.into(),
            keyword: "".into(),
            hint: hint.into(),
        }
    }
}

impl From<punchcard_automata::LimitExceeded> for SchemaError {
    fn from(e: punchcard_automata::LimitExceeded) -> Self {
        if e.limit == CANCELLED {
            return SchemaError {
                kind: SchemaErrorKind::Cancelled,
                message: "The operation was cancelled".into(),
                pointer: String::new(),
                keyword: "".into(),
                hint: "".into(),
            };
        }
        SchemaError::limit(e.limit, e.value, "", "Simplify patterns, terminals and bounds, or raise the limit")
    }
}

impl std::fmt::Display for SchemaError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}. {}", self.message, self.hint)
    }
}

impl std::error::Error for SchemaError {}
