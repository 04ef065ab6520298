//! What stands for characters: literals, classes, escapes and `#xN`.

use super::scan::code_point_len;
use super::{Parser, Result};
use crate::build;
use crate::expr::Expr;
use punchcard_automata::CharSet;

const DIGITS: &[(u32, u32)] = &[(0x30, 0x39)];
const WORD: &[(u32, u32)] = &[(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)];
const SPACE: &[(u32, u32)] = &[(0x09, 0x0D), (0x20, 0x20)];

/// A member of a class.
enum Member {
    Char(char),
    Set(CharSet),
}

impl Parser<'_> {
    /// The text of a literal. In double quotes a backslash escapes; in single quotes it is a character like any other.
    pub(super) fn literal(&mut self) -> Result<String> {
        let start = self.at;
        let quote = self.next();
        let mut text = String::new();
        loop {
            let at = self.at;
            match self.next() {
                Some('\\') if quote == Some('"') => text.push(self.escape(at)?),
                Some(c) if Some(c) == quote => break,
                None | Some('\n' | '\r') => {
                    let hint = match quote {
                        Some('"') => "A line break is written \\n, and a backslash \\\\",
                        _ => "It ends with a single quote; a line break is written \"\\n\", in double quotes",
                    };
                    return self.fail(start, "The literal is not closed on its line", hint);
                }
                Some(c) => text.push(c),
            }
        }
        if quote == Some('\'') {
            self.is_w3c = true;
        }
        Ok(text)
    }

    /// `[...]`, at its bracket.
    pub(super) fn class(&mut self) -> Result<Expr> {
        let start = self.at;
        self.at += 1;
        let negated = self.eat("^");
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        if self.rest().starts_with(']') {
            return self.fail(start, "The class is empty", "A literal bracket is written \\]");
        }
        loop {
            let at = self.at;
            match self.peek() {
                None | Some('\n' | '\r') => {
                    let hint = "It ends with ]; in a class a backslash is written \\\\ and a line break \\n";
                    return self.fail(start, "The class is not closed on its line", hint);
                }
                Some(']') => break,
                _ => {}
            }
            let first = self.member()?;
            let is_range = self.rest().starts_with('-') && !self.rest().starts_with("-]");
            if !is_range || matches!(self.rest().as_bytes(), [b'-'] | [b'-', b'\n' | b'\r', ..]) {
                match first {
                    Member::Char(c) => ranges.push((c as u32, c as u32)),
                    Member::Set(set) => ranges.extend_from_slice(set.ranges()),
                }
                continue;
            }
            self.at += 1;
            let last = self.member()?;
            match (first, last) {
                (Member::Char(first), Member::Char(last)) if first <= last => {
                    ranges.push((first as u32, last as u32));
                }
                (Member::Char(_), Member::Char(_)) => {
                    let range = &self.text[at..self.at];
                    return self.fail(
                        at,
                        format!("The range {range} is out of order"),
                        "A literal hyphen stands first or last in a class, or is written \\-",
                    );
                }
                _ => {
                    return self.fail(
                        at,
                        "A range goes from a character to a character",
                        "A literal hyphen stands first or last in a class, or is written \\-",
                    );
                }
            }
        }
        self.at += 1;
        let set = CharSet::new(ranges);
        Ok(build::chars(&if negated { set.complement() } else { set }))
    }

    fn member(&mut self) -> Result<Member> {
        let at = self.at;
        if code_point_start(self.rest()) {
            return Ok(Member::Char(self.code_point()?));
        }
        if !self.eat("\\") {
            // The caller has seen that there is a character.
            return Ok(Member::Char(self.next().unwrap_or_default()));
        }
        let ranges = match self.peek() {
            Some('d' | 'D') => DIGITS,
            Some('w' | 'W') => WORD,
            Some('s' | 'S') => SPACE,
            Some('"' | '\'') => {
                self.quote_escaped_at.get_or_insert(at);
                return Ok(Member::Char(self.escape(at)?));
            }
            _ => return Ok(Member::Char(self.escape(at)?)),
        };
        let set: CharSet = ranges.iter().copied().collect();
        let negated = self.next().is_some_and(char::is_uppercase);
        Ok(Member::Set(if negated { set.complement() } else { set }))
    }

    /// `#x41`, at its `#`.
    pub(super) fn code_point(&mut self) -> Result<char> {
        let start = self.at;
        self.at += 2;
        let rest = self.rest();
        let digits = rest.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(rest.len());
        self.is_w3c = true;
        self.hex(start, digits, false)
    }

    /// The character that the backslash at `start`, already read, and what comes after it stand for.
    fn escape(&mut self, start: usize) -> Result<char> {
        let Some(c) = self.next() else {
            return self.fail(start, "A backslash at the end", "A literal one is written \\\\");
        };
        Ok(match c {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'f' => '\u{C}',
            'v' => '\u{B}',
            'a' => '\u{7}',
            'b' => '\u{8}',
            'e' => '\u{1B}',
            '0' if !self.peek().is_some_and(|c| c.is_ascii_digit()) => '\0',
            c if c.is_ascii_punctuation() || c == ' ' => c,
            'x' => return self.hex(start, 2, false),
            'u' => return self.hex(start, 4, true),
            'U' => return self.hex(start, 8, false),
            '\n' | '\r' => {
                return self.fail(start, "A backslash at the end of the line", "A literal one is written \\\\");
            }
            _ => {
                let hint = match c {
                    'd' | 'D' | 's' | 'S' | 'w' | 'W' => "It stands in a class: [\\d]",
                    _ => "A literal backslash is written \\\\, and any character \\u and four hexadecimal digits",
                };
                return self.fail(start, format!("There is no escape \\{c}"), hint);
            }
        })
    }

    /// The character whose number the next digits are; `paired`: two surrogates in a row stand for one.
    fn hex(&mut self, start: usize, digits: usize, paired: bool) -> Result<char> {
        let rest = self.rest().as_bytes();
        let Some(text) = rest.get(..digits).filter(|text| text.iter().all(u8::is_ascii_hexdigit)) else {
            let needed = format!("{digits} hexadecimal digits");
            return self.fail(start, format!("The escape needs {needed}"), "A literal backslash is written \\\\");
        };
        // Of many digits the first may be zeros; more than fit are no code point anyway.
        let number = text
            .iter()
            .fold(0u32, |number, &digit| (number << 4 | (digit as char).to_digit(16).unwrap_or(0)).min(0xFF_FFFF));
        self.at += digits;
        if paired && (0xD800..0xDC00).contains(&number) && self.eat("\\u") {
            let low = self.rest().get(..4).and_then(|low| u32::from_str_radix(low, 16).ok());
            if let Some(low @ 0xDC00..0xE000) = low {
                self.at += 4;
                let number = 0x10000 + ((number - 0xD800) << 10) + (low - 0xDC00);
                return Ok(char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
        }
        match char::from_u32(number) {
            Some(c) => Ok(c),
            None if (0xD800..0xE000).contains(&number) => {
                let message = format!("{number:X} is one half of a surrogate pair, and no character");
                self.fail(start, message, "Write \\U and the eight digits of the character")
            }
            None => self.fail(start, "There is no such character", "The last one is 10FFFF"),
        }
    }
}

/// Whether `#x41` stands here. In a class there are no comments, so it may go on with any character.
fn code_point_start(rest: &str) -> bool {
    code_point_len(rest).is_some()
        || rest.strip_prefix("#x").is_some_and(|digits| digits.starts_with(|c: char| c.is_ascii_hexdigit()))
}
