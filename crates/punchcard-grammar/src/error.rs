//! What can be wrong with a grammar, and where.

use std::fmt;

/// Why a grammar was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrammarError {
    /// One sentence, without the full stop.
    pub message: String,
    /// What to write instead, or nothing.
    pub hint: String,
    /// Where in the text it is, if it is at one spot of a text.
    pub spot: Option<Spot>,
}

/// A place in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spot {
    /// The line, from 1.
    pub line: usize,
    /// The character of the line, from 1.
    pub column: usize,
    /// The line itself, or the part of it around the place.
    pub excerpt: String,
}

impl Spot {
    /// The place of the byte at `offset` in a text (or its end, if that is shorter).
    pub fn at(text: &str, offset: usize) -> Spot {
        const MOST: usize = 60;
        let offset = (0..=offset.min(text.len())).rev().find(|&i| text.is_char_boundary(i)).unwrap_or(0);
        let before = &text[..offset];
        let start = before.rfind('\n').map_or(0, |i| i + 1);
        let column = before[start..].chars().count() + 1;
        let line_text = text[start..].lines().next().unwrap_or_default();
        let skipped = column.saturating_sub(MOST / 2 + 1);
        let excerpt: String = line_text.chars().skip(skipped).take(MOST).collect();
        Spot { line: before.matches('\n').count() + 1, column, excerpt: excerpt.trim_end().to_string() }
    }
}

impl GrammarError {
    /// An error without a place.
    pub fn new(message: impl Into<String>) -> GrammarError {
        GrammarError { message: message.into(), hint: String::new(), spot: None }
    }

    /// An error at a byte of a text.
    pub fn at(text: &str, offset: usize, message: impl Into<String>) -> GrammarError {
        GrammarError { spot: Some(Spot::at(text, offset)), ..GrammarError::new(message) }
    }

    /// The same, with a remedy.
    pub fn with_hint(mut self, hint: impl Into<String>) -> GrammarError {
        self.hint = hint.into();
        self
    }
}

impl fmt::Display for GrammarError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(spot) = &self.spot {
            write!(f, "line {}, column {}: ", spot.line, spot.column)?;
        }
        f.write_str(&self.message)?;
        if self.hint.is_empty() { Ok(()) } else { write!(f, ". {}", self.hint) }
    }
}

impl std::error::Error for GrammarError {}
