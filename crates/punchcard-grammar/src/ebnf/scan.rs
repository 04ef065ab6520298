//! The cursor of the parser: white space, comments, names and numbers.

use super::{Parser, Result};
use crate::error::GrammarError;
use std::collections::HashSet;

/// Whether a character can be in the name of a rule.
pub(crate) fn is_name_char(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// How many bytes of the beginning of `text` are the name of a rule. A `-` or `.` belongs to the name where more of the
/// name comes after it: `a-b` is a name, `a - b` and `a-"b"` are differences, and `a.*` is a name before any character.
pub(crate) fn name_len(text: &str) -> usize {
    let mut len = 0;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let joins = |c: char| matches!(c, '-' | '.') && at > 0;
        if is_name_char(c) {
            len = at + c.len_utf8();
        } else if c == '-' && at > 0 {
            // Several may follow each other: `a--b`.
        } else if !joins(c) || !chars.peek().is_some_and(|&(_, next)| is_name_char(next)) {
            break;
        }
    }
    len
}

/// How many bytes of the beginning of `text` are letters of a name and hyphens, wherever these stand.
fn run_len(text: &str) -> usize {
    text.find(|c: char| !is_name_char(c) && c != '-').unwrap_or(text.len())
}

/// The names with a hyphen as their first or last character, such as llama.cpp's converter of schemas makes (`number-`,
/// `-kv`), that rules at the beginning of lines have. Anywhere else such a hyphen is a difference.
pub(super) fn hyphenated(text: &str) -> HashSet<&str> {
    let lines = text.lines().map(|line| line.trim_start_matches([' ', '\t']));
    let names = lines.filter_map(|line| {
        let (name, rest) = line.split_at(run_len(line));
        let at_edge = name.starts_with('-') || name.ends_with('-');
        let is_rule = at_edge && name.contains(is_name_char) && rest.trim_start().starts_with("::=");
        is_rule.then_some(name)
    });
    names.collect()
}

impl<'a> Parser<'a> {
    /// The text from here on.
    pub(super) fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let c = self.peek();
        self.at += c.map_or(0, char::len_utf8);
        c
    }

    pub(super) fn eat(&mut self, text: &str) -> bool {
        let found = self.rest().starts_with(text);
        self.at += if found { text.len() } else { 0 };
        found
    }

    pub(super) fn error(&self, at: usize, message: impl Into<String>) -> GrammarError {
        GrammarError::at(self.text, at, message)
    }

    pub(super) fn fail<T>(&self, at: usize, message: impl Into<String>, hint: impl Into<String>) -> Result<T> {
        Err(self.error(at, message).with_hint(hint))
    }

    /// Skips white space and comments.
    pub(super) fn skip(&mut self) -> Result<()> {
        loop {
            let rest = self.rest();
            let Some(c) = rest.chars().next() else { return Ok(()) };
            if c.is_whitespace() || c == '\u{FEFF}' {
                self.at += c.len_utf8();
            } else if c == '#' && (self.first_rule.is_none() || code_point_len(rest).is_none()) {
                self.at += rest.find(['\n', '\r']).unwrap_or(rest.len());
            } else if let Some(end) = block_comment_end(rest) {
                match rest[2..].find(end) {
                    Some(inside) => self.at += 2 + inside + end.len(),
                    None => return self.fail(self.at, "The comment is not closed", format!("It ends with {end}")),
                }
            } else {
                return Ok(());
            }
        }
    }

    /// The name of a rule, if there is one here.
    pub(super) fn name(&mut self) -> Option<&'a str> {
        let rest = self.rest();
        let name = self.hyphenated_name().unwrap_or(&rest[..name_len(rest)]);
        self.at += name.len();
        (!name.is_empty()).then_some(name)
    }

    /// The name with a hyphen at an edge that stands here, if there is one.
    pub(super) fn hyphenated_name(&self) -> Option<&'a str> {
        let rest = self.rest();
        self.hyphenated.get(&rest[..run_len(rest)]).copied()
    }

    /// A decimal number, if there is one here.
    pub(super) fn number(&mut self) -> Result<Option<u32>> {
        let start = self.at;
        let rest = self.rest();
        let digits = &rest[..rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len())];
        if digits.is_empty() {
            return Ok(None);
        }
        self.at += digits.len();
        match digits.parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => self.fail(start, "The number is too large", format!("The largest is {}", u32::MAX)),
        }
    }
}

/// How a comment that begins here ends. (`(*` can be nothing else: there is nothing to repeat.)
fn block_comment_end(rest: &str) -> Option<&'static str> {
    if rest.starts_with("/*") {
        Some("*/")
    } else if rest.starts_with("(*") {
        Some("*)")
    } else {
        None
    }
}

/// How many bytes `#x41` takes, if this is one and no comment.
pub(super) fn code_point_len(rest: &str) -> Option<usize> {
    let digits = rest.strip_prefix("#x")?;
    let len = digits.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(digits.len());
    let ends = !digits[len..].chars().next().is_some_and(is_name_char);
    (len > 0 && ends).then_some(2 + len)
}
