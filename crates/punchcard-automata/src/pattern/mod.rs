//! Patterns: regular expressions of ECMA-262 in Unicode mode, or of Python's `re`, as languages.
//!
//! JSON Schema's `pattern` is a regular expression of ECMA-262 with the `u` flag that is searched for in the decoded
//! string. [`parse`] reads one; [`Pattern::search`] is the language of all texts in which it is found, [`Pattern::full`] of
//! those that it matches as a whole:
//!
//! ```
//! use punchcard_automata::{Languages, pattern};
//!
//! let mut languages = Languages::new();
//! let word = pattern::parse(r"\bcat\b", &pattern::Options::default()).unwrap();
//! let found = word.search(&mut languages).unwrap();
//! assert!(languages.matches(found, "a cat!") && !languages.matches(found, "concat"));
//! let whole = word.full(&mut languages).unwrap();
//! assert!(languages.matches(whole, "cat") && !languages.matches(whole, "a cat!"));
//! ```
//!
//! Everything that describes a regular language is covered: classes, Unicode properties, counted and lazy repetition, anchors,
//! word boundaries, look-ahead and look-behind (also of each other), and the flags i, m and s. What a back-reference
//! describes is not regular; it is refused. Older spellings that Unicode mode does not allow are read where their meaning is beyond doubt; see
//! [`Options::strict`].
//!
//! [`Dialect::Python`] reads what Python's `re` compiles, with the meaning that it has there for `str`; see `python/mod.rs`.
//!
//! A pattern of n characters takes O(n) to read and to lower; counted repetitions are not written out. What it costs to run
//! is up to the derivatives (`derivative.rs`). Anchors where real patterns have them cost nothing, and a pattern
//! without assertions elsewhere gives an expression without complements and intersections, whose emptiness is known at
//! sight. The limits ([`Options::max_length`], [`Options::max_nesting`], and a size of a million nodes) are errors, never a panic.

mod atoms;
mod class;
mod limits;
mod lower;
mod parser;
mod python;
mod syntax;
pub(crate) mod unicode;

pub use class::WHITE_SPACE;

use crate::languages::{Language, Languages};
use std::fmt;
use syntax::{Node, NodeId, Tree};

/// Whose regular expressions a pattern is written in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Dialect {
    /// ECMA-262 with the `u` flag.
    #[default]
    Ecma,
    /// Python's `re`, for `str`.
    Python,
}

/// How a pattern is read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Options {
    /// Whose regular expressions these are.
    pub dialect: Dialect,
    /// The flag i: letters match both cases, by simple case folding.
    pub ignore_case: bool,
    /// The flag m: `^` and `$` match at the edges of lines too.
    pub multiline: bool,
    /// The flag s: `.` matches line ends too.
    pub dot_all: bool,
    /// The flag x of other languages: white space and `#` comments outside of classes mean nothing.
    pub verbose: bool,
    /// The flag a of Python: `\w`, `\d`, `\s`, `\b` and the flag i know only the letters of ASCII.
    pub ascii: bool,
    /// Take only what ECMA-262 allows in Unicode mode. Otherwise also what older engines and other languages write, where
    /// all that take it agree: needless escapes such as `\-` and `\@`, a lone `{`, `}` or `]`, `[\w-.]`, a quantified
    /// look-ahead, a leading `(?i)`, `(?P<name>...)`, `\A`, `\z`, `\p{Greek}`.
    pub strict: bool,
    /// The longest pattern, in characters.
    pub max_length: usize,
    /// How deep groups may nest.
    pub max_nesting: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            dialect: Dialect::Ecma,
            ignore_case: false,
            multiline: false,
            dot_all: false,
            verbose: false,
            ascii: false,
            strict: false,
            max_length: 100_000,
            max_nesting: 250,
        }
    }
}

impl Options {
    /// The default options with flags, given by their letters: i, m, s and x, and in Python also a and u.
    ///
    /// Fails if there is no such flag.
    pub fn with_flags(dialect: Dialect, flags: &str) -> Result<Options, PatternError> {
        let mut options = Options { dialect, ..Options::default() };
        for flag in flags.chars() {
            match flag {
                'i' => options.ignore_case = true,
                'm' => options.multiline = true,
                's' => options.dot_all = true,
                'x' => options.verbose = true,
                'a' if dialect == Dialect::Python && !flags.contains('u') => options.ascii = true,
                // What a pattern is without further ado.
                'u' if !flags.contains('a') => {}
                _ => return Err(PatternError::new(0, format!("the flag {flag:?} is not supported here"))),
            }
        }
        Ok(options)
    }
}

/// Why a pattern was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternError {
    /// What is wrong.
    pub message: String,
    /// Where it is, in characters from the beginning of the pattern.
    pub offset: usize,
    /// What to write instead, if there is something to say.
    pub hint: Option<String>,
}

impl PatternError {
    /// An error at a character (from 0).
    pub fn new(offset: usize, message: impl Into<String>) -> Self {
        PatternError { message: message.into(), offset, hint: None }
    }

    fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (at character {})", self.message, self.offset)?;
        match &self.hint {
            Some(hint) => write!(f, "; {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for PatternError {}

/// A pattern that was read.
#[derive(Debug)]
pub struct Pattern {
    tree: Tree,
    root: NodeId,
    search: NodeId,
}

/// Reads a pattern.
///
/// Fails if the pattern is not valid, uses what is not regular (a back-reference), means different things to different
/// engines, or passes a limit of the options.
pub fn parse(source: &str, options: &Options) -> Result<Pattern, PatternError> {
    let (mut tree, root) = match options.dialect {
        Dialect::Ecma => parser::parse(source, options)?,
        Dialect::Python => python::parse(source, options)?,
    };
    // A search tries each alternative on its own, so that an anchor of one is no concern of the others.
    let alternatives = match tree.node(root) {
        Node::Alternation(items) => items.clone(),
        _ => vec![root],
    };
    let anything = tree.anything();
    let searches = alternatives.into_iter().map(|part| tree.concat(vec![anything, part, anything])).collect();
    let search = tree.alternation(searches);
    Ok(Pattern { tree, root, search })
}

impl Pattern {
    /// All texts in which the pattern is found, as JSON Schema has it.
    ///
    /// Fails if the store passes its limit.
    pub fn search(&self, languages: &mut Languages) -> Result<Language, PatternError> {
        self.lower(self.search, languages)
    }

    /// All texts that the pattern matches from the beginning to the end.
    ///
    /// Fails if the store passes its limit.
    pub fn full(&self, languages: &mut Languages) -> Result<Language, PatternError> {
        self.lower(self.root, languages)
    }

    fn lower(&self, root: NodeId, languages: &mut Languages) -> Result<Language, PatternError> {
        let language = lower::lower(&self.tree, root, languages);
        languages.check_limit().map_err(|limit| {
            PatternError::new(0, format!("the pattern takes more than {} {}", limit.value, limit.limit))
        })?;
        Ok(language)
    }
}
