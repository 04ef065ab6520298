//! The parser's part for what matches one character: classes and escapes.

use super::PatternError;
use super::class;
use super::parser::{Parser, Result};
use super::unicode;
use crate::charset::{CharSet, MAX};

/// What an escape or a member of a class stands for. A code point may be a surrogate, which no text holds.
pub(super) enum Atom {
    Char(u32),
    Set(CharSet),
}

impl Atom {
    fn add_to(&self, ranges: &mut Vec<(u32, u32)>) {
        match self {
            Atom::Char(c) => ranges.push((*c, *c)),
            Atom::Set(set) => ranges.extend_from_slice(set.ranges()),
        }
    }
}

impl Parser<'_> {
    pub fn class(&mut self, start: usize) -> Result<CharSet> {
        let negated = self.eat("^");
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        loop {
            let at = self.at;
            match self.peek() {
                None => {
                    return self.refuse(start, "the class is not closed", "a literal bracket is written \\[");
                }
                Some(']') => {
                    self.at += 1;
                    break;
                }
                _ => {}
            }
            let first = self.class_atom()?;
            let is_range = self.peek() == Some('-') && self.chars.get(self.at + 1).is_some_and(|&c| c != ']');
            if !is_range {
                first.add_to(&mut ranges);
                continue;
            }
            self.at += 1;
            let last = self.class_atom()?;
            match (&first, &last) {
                (&Atom::Char(lo), &Atom::Char(hi)) => {
                    if lo > hi {
                        let range: String = self.chars[at..self.at].iter().collect();
                        return self.refuse(
                            at,
                            format!("the range {range} is out of order"),
                            "a literal hyphen is written \\-",
                        );
                    }
                    ranges.push((lo, hi));
                }
                _ => {
                    self.lenient(at, "a range from or to a class escape")?;
                    ranges.push(('-' as u32, '-' as u32));
                    first.add_to(&mut ranges);
                    last.add_to(&mut ranges);
                }
            }
        }
        let mut set = CharSet::new(ranges);
        if self.flags.ignore_case {
            set = class::close_over_case(&set);
        }
        Ok(if negated { set.complement() } else { set })
    }

    fn class_atom(&mut self) -> Result<Atom> {
        let start = self.at;
        match self.next() {
            Some('\\') => self.escape(start, true),
            Some(c) => Ok(Atom::Char(c as u32)),
            None => self.fail(start, "the class is not closed"),
        }
    }

    // ---- escapes ----

    /// What a backslash at `start`, already read, begins.
    pub fn escape(&mut self, start: usize, in_class: bool) -> Result<Atom> {
        let Some(c) = self.next() else {
            return self.refuse(start, "a backslash at the end of the pattern", "a literal one is written \\\\");
        };
        Ok(match c {
            'd' => Atom::Set(class::ascii_digit()),
            'D' => Atom::Set(class::ascii_digit().complement()),
            's' => Atom::Set(class::white_space()),
            'S' => Atom::Set(class::white_space().complement()),
            'w' => Atom::Set(self.word(self.flags.ignore_case)),
            'W' => Atom::Set(self.word(self.flags.ignore_case).complement()),
            'p' | 'P' => Atom::Set(self.property(start, c == 'P')?),
            't' => Atom::Char(0x09),
            'n' => Atom::Char(0x0A),
            'v' => Atom::Char(0x0B),
            'f' => Atom::Char(0x0C),
            'r' => Atom::Char(0x0D),
            'b' if in_class => Atom::Char(0x08),
            '0' if !self.peek().is_some_and(|c| c.is_ascii_digit()) => Atom::Char(0),
            '1'..='9' if !in_class => return self.back_reference(start),
            '0'..='9' => {
                return self.refuse(start, "an octal escape is not allowed in Unicode mode", "write \\xHH");
            }
            'k' => return self.back_reference(start),
            'c' => match self.next() {
                Some(letter) if letter.is_ascii_alphabetic() => Atom::Char(letter as u32 % 32),
                _ => return self.refuse(start, "\\c needs a letter", "a control character may be written \\xHH"),
            },
            'x' => match self.hex(2) {
                Some(c) => Atom::Char(c),
                None => return self.refuse(start, "\\x needs two hexadecimal digits", "or write \\u{...}"),
            },
            'u' => Atom::Char(self.unicode_escape(start)?),
            '^' | '$' | '\\' | '.' | '*' | '+' | '?' | '(' | ')' | '[' | ']' | '{' | '}' | '|' | '/' => {
                Atom::Char(c as u32)
            }
            '-' if in_class => Atom::Char(c as u32),
            _ if !c.is_ascii_alphanumeric() => {
                self.lenient(start, &format!("the escape \\{c}"))?;
                Atom::Char(c as u32)
            }
            _ => {
                let hint = match c {
                    'Z' => "write $ for the end of the text",
                    'A' | 'z' => "in a class it is no anchor",
                    'G' | 'K' => "there is no such assertion in ECMA-262",
                    'a' => "write \\x07 for the bell",
                    'e' => "write \\x1B for the escape character",
                    'h' => "write [ \\t] for horizontal white space",
                    'H' => "write [^ \\t] for other than horizontal white space",
                    'R' => "write (?:\\r\\n|[\\n\\r\\u2028\\u2029]) for a line break",
                    'N' => "write [^\\n] for other than a line feed, or \\u{...} for a named character",
                    'X' => "write . for a character",
                    'Q' | 'E' => "escape each special character instead",
                    'U' => "write \\u{...}",
                    'B' => "in a class it is no assertion",
                    _ => "write the letter without the backslash if it is meant literally",
                };
                return self.refuse(start, format!("the escape \\{c} is not ECMA-262"), hint);
            }
        })
    }

    fn hex(&mut self, digits: usize) -> Option<u32> {
        let text = self.chars.get(self.at..self.at + digits)?;
        let value = text.iter().try_fold(0, |value, c| Some(value * 16 + c.to_digit(16)?))?;
        self.at += digits;
        Some(value)
    }

    /// What comes after `\u`.
    fn unicode_escape(&mut self, start: usize) -> Result<u32> {
        if self.eat("{") {
            let mut value = None;
            while let Some(digit) = self.peek().and_then(|c| c.to_digit(16)) {
                value = Some((value.unwrap_or(0u32) * 16 + digit).min(MAX + 1));
                self.at += 1;
            }
            return match value {
                Some(c) if c <= MAX && self.eat("}") => Ok(c),
                _ => self.fail(start, "\\u{...} needs the hexadecimal number of a code point, up to 10FFFF"),
            };
        }
        let Some(unit) = self.hex(4) else {
            return self.refuse(start, "\\u needs four hexadecimal digits", "or write \\u{...}");
        };
        if (0xD800..0xDC00).contains(&unit) {
            let at = self.at;
            if self.eat("\\u")
                && let Some(low @ 0xDC00..0xE000) = self.hex(4)
            {
                return Ok(0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00));
            }
            self.at = at;
        }
        Ok(unit)
    }

    /// What comes after `\p` or `\P`.
    fn property(&mut self, start: usize, negated: bool) -> Result<CharSet> {
        let p = if negated { 'P' } else { 'p' };
        if !self.eat("{") {
            return self.refuse(start, format!("\\{p} needs a property in braces"), format!("write \\{p}{{Letter}}"));
        }
        let from = self.at;
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '=' | '^' | ' ' | '-' | '&' | ':' | '.');
        while self.peek().is_some_and(is_name) {
            self.at += 1;
        }
        let text: String = self.chars[from..self.at].iter().collect();
        if !self.eat("}") {
            return self.fail(start, "the property is not closed by a brace");
        }
        let set = match self.properties.get(&text) {
            Some(set) => set.clone(),
            None => {
                let (name, value) = text.split_once('=').map_or((text.as_str(), None), |(n, v)| (n, Some(v)));
                let plain = |s: &str| !s.is_empty() && s.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
                if !plain(name) || !value.is_none_or(plain) {
                    return self.fail(start, format!("{text:?} is no Unicode property of ECMA-262"));
                }
                let set = unicode::property(name, value, self.options.strict).map_err(|e| PatternError {
                    message: e.message,
                    offset: start,
                    hint: e.hint,
                })?;
                self.properties.insert(text, set.clone());
                set
            }
        };
        let set = if negated { set.complement() } else { set };
        Ok(set)
    }
}
