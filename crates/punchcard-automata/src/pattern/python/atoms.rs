//! The parser's part for what matches one character: classes and escapes.

use super::case::{self, Members};
use super::{Parser, Result, sets};
use crate::charset::{CharSet, MAX};

/// What an escape or a member of a class stands for. A code point may be a surrogate, which no text holds.
pub(super) enum Atom {
    Char(u32),
    Set(CharSet),
}

impl Parser<'_> {
    /// The rest of a class after its bracket at `start`.
    pub(super) fn class(&mut self, start: usize) -> Result<CharSet> {
        let negated = self.eat("^");
        let first = self.at;
        let mut members = Members::default();
        loop {
            let at = self.at;
            // A bracket that comes first is a member.
            if self.peek() == Some(']') && at > first {
                self.at += 1;
                break;
            }
            let member = self.member(start)?;
            let is_range = self.peek() == Some('-') && self.chars.get(self.at + 1) != Some(&']');
            if !is_range {
                match member {
                    Atom::Char(c) => members.chars.push((c, c)),
                    Atom::Set(set) => members.categories.extend_from_slice(set.ranges()),
                }
                continue;
            }
            self.at += 1;
            match (member, self.member(start)?) {
                (Atom::Char(lo), Atom::Char(hi)) if lo <= hi => members.chars.push((lo, hi)),
                _ => {
                    let range: String = self.chars[at..self.at].iter().collect();
                    return self.refuse(
                        at,
                        format!("{range} is no range of characters in order"),
                        "a literal hyphen is written \\-",
                    );
                }
            }
        }
        let set = self.folded(members);
        Ok(if negated { set.complement() } else { set })
    }

    /// The characters that match members of a class under the flags that hold here.
    pub(super) fn folded(&self, members: Members) -> CharSet {
        if self.flags.ignore_case {
            return case::fold(members, self.flags.ascii);
        }
        CharSet::new(members.chars.into_iter().chain(members.categories))
    }

    fn member(&mut self, class: usize) -> Result<Atom> {
        let at = self.at;
        match self.next() {
            Some('\\') => self.escape(at, true),
            Some(c) => Ok(Atom::Char(c as u32)),
            None => self.refuse(class, "the class is not closed", "a literal bracket is written \\["),
        }
    }

    /// What a backslash at `start`, already read, begins.
    pub(super) fn escape(&mut self, start: usize, in_class: bool) -> Result<Atom> {
        let Some(c) = self.next() else {
            return self.refuse(start, "a backslash at the end of the pattern", "a literal one is written \\\\");
        };
        let ascii = self.flags.ascii;
        Ok(match c {
            'd' => Atom::Set(sets::digit(ascii)),
            'D' => Atom::Set(sets::digit(ascii).complement()),
            's' => Atom::Set(sets::space(ascii)),
            'S' => Atom::Set(sets::space(ascii).complement()),
            'w' => Atom::Set(sets::word(ascii)),
            'W' => Atom::Set(sets::word(ascii).complement()),
            'a' => Atom::Char(0x07),
            'b' if in_class => Atom::Char(0x08),
            't' => Atom::Char(0x09),
            'n' => Atom::Char(0x0A),
            'v' => Atom::Char(0x0B),
            'f' => Atom::Char(0x0C),
            'r' => Atom::Char(0x0D),
            'x' => Atom::Char(self.hex(start, c, 2)?),
            'u' => Atom::Char(self.hex(start, c, 4)?),
            'U' => Atom::Char(self.hex(start, c, 8)?),
            '0'..='9' => Atom::Char(self.octal(start, c, in_class)?),
            'N' => {
                let hint = "write \\u and the four digits of the character, or \\U and eight";
                return self.refuse(start, "names of characters are not supported", hint);
            }
            _ if c.is_ascii_alphabetic() => {
                let hint = match c {
                    'p' | 'P' => "Python knows no Unicode properties; \\w are letters and digits of all scripts",
                    'z' => "the end of the text is written \\Z",
                    'A' | 'Z' | 'B' => "in a class it is no assertion",
                    _ => "write the letter without the backslash if it is meant literally",
                };
                return self.refuse(start, format!("there is no escape \\{c} in Python"), hint);
            }
            _ => Atom::Char(c as u32),
        })
    }

    fn hex(&mut self, start: usize, kind: char, digits: usize) -> Result<u32> {
        let text = self.chars.get(self.at..self.at + digits);
        let value =
            text.and_then(|text| text.iter().try_fold(0u64, |value, c| Some(value * 16 + u64::from(c.to_digit(16)?))));
        match value {
            Some(value) if value <= u64::from(MAX) => {
                self.at += digits;
                Ok(value as u32)
            }
            Some(_) => self.refuse(start, "there is no such character", "the last one is \\U0010FFFF"),
            None => self.fail(start, format!("\\{kind} needs {digits} hexadecimal digits")),
        }
    }

    /// The rest of `\012` after its first digit. Outside of a class, it is that only with a leading zero or three digits.
    fn octal(&mut self, start: usize, first: char, in_class: bool) -> Result<u32> {
        let digits: String = std::iter::once(first)
            .chain(self.chars[self.at..].iter().copied().take(2).take_while(|c| c.is_digit(8)))
            .collect();
        let is_octal = first.is_digit(8) && (in_class || first == '0' || digits.len() == 3);
        if !is_octal {
            if in_class {
                return self.refuse(start, format!("there is no escape \\{first} in a class"), "write the digit alone");
            }
            return self.back_reference(start);
        }
        self.at += digits.len() - 1;
        match u32::from_str_radix(&digits, 8) {
            Ok(value) if value <= 0o377 => Ok(value),
            _ => self.refuse(start, format!("the octal escape \\{digits} is greater than \\377"), "write \\u"),
        }
    }
}
