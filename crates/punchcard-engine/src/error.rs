//! Why a grammar could not be compiled.

use punchcard_grammar::GrammarError;
use punchcard_schema::SchemaError;

/// Why a grammar could not be compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompileError {
    /// The grammar, a regular expression or an option is malformed.
    Grammar(GrammarError),
    /// A JSON Schema cannot be compiled, or a limit was passed.
    Schema(SchemaError),
}

impl CompileError {
    /// The same error, met in a rule.
    pub(crate) fn within(self, rule: &str) -> CompileError {
        let told =
            |message: String| if message.starts_with("In ") { message } else { format!("In rule {rule:?}: {message}") };
        match self {
            CompileError::Grammar(error) => {
                CompileError::Grammar(GrammarError { message: told(error.message), ..error })
            }
            CompileError::Schema(error) => CompileError::Schema(SchemaError { message: told(error.message), ..error }),
        }
    }
}

impl From<GrammarError> for CompileError {
    fn from(error: GrammarError) -> Self {
        CompileError::Grammar(error)
    }
}

impl From<SchemaError> for CompileError {
    fn from(error: SchemaError) -> Self {
        CompileError::Schema(error)
    }
}

impl std::fmt::Display for CompileError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CompileError::Grammar(error) => error.fmt(f),
            CompileError::Schema(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CompileError {}
