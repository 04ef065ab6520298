//! What can go wrong with a model file or its use. Nothing in this crate panics on a bad file or a bad argument.

use std::fmt;
use std::path::PathBuf;

/// A failure to read or to run a model.
#[derive(Debug)]
pub enum Error {
    /// The operating system refused to open or to read the file.
    Io {
        /// The model file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is not GGUF, is cut short, or contradicts itself.
    Malformed {
        /// The model file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The file is sound, but holds a model of a kind that this crate does not run.
    Unsupported {
        /// The model file.
        path: PathBuf,
        /// The kind that was met.
        what: String,
    },
    /// The tokens would not fit into the model's context.
    ContextLength {
        /// Tokens that the context would have to hold.
        tokens: usize,
        /// Tokens that it can hold.
        context_length: usize,
    },
    /// A token id that the vocabulary does not have.
    Token {
        /// The id.
        id: u32,
        /// Ids run from 0 to this, exclusive.
        vocab_size: usize,
    },
    /// A forward pass over no tokens.
    Empty,
    /// A rewind to a position that lies ahead, or a copy of more tokens than there are.
    Position {
        /// The position asked for.
        requested: usize,
        /// Tokens in the cache.
        position: usize,
    },
    /// A sequence that another model made.
    OtherModel,
    /// A failure that one sequence of a batch is to blame for.
    Batch {
        /// Which of the batch, from 0.
        index: usize,
        /// What is wrong with it.
        source: Box<Error>,
    },
    /// The tensor library failed; a defect of this crate, not of its user.
    Compute(candle_core::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { path, source } => write!(f, "cannot read the model file {}: {source}", path.display()),
            Self::Malformed { path, reason } => write!(f, "{} is not a usable GGUF file: {reason}", path.display()),
            Self::Unsupported { path, what } => write!(f, "cannot run the model in {}: {what}", path.display()),
            Self::ContextLength { tokens, context_length } => {
                write!(f, "{tokens} tokens do not fit the model's context of {context_length}")
            }
            Self::Token { id, vocab_size } => write!(f, "token {id} is out of range: the vocabulary has {vocab_size}"),
            Self::Empty => write!(f, "a forward pass needs at least one token"),
            Self::Position { requested, position } => {
                write!(f, "there is no position {requested}: only {position} tokens are in the cache")
            }
            Self::OtherModel => write!(f, "the sequence belongs to another model"),
            Self::Batch { index, source } => write!(f, "{source} (sequence {index} of the batch)"),
            Self::Compute(error) => write!(f, "the computation failed: {error}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            Self::Compute(error) => Some(error),
            Self::Batch { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl From<candle_core::Error> for Error {
    fn from(error: candle_core::Error) -> Self {
        Self::Compute(error)
    }
}

/// The result of this crate's functions.
pub type Result<T> = std::result::Result<T, Error>;
