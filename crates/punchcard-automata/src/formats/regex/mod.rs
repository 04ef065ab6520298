//! `regex`: a pattern that is valid in ECMA-262 with the `u` flag, as JSON Schema would have it, or without.
//!
//! Without the flag, any punctuation may be escaped (`\-`, `\"`), and real patterns do so; other than that, what the flag
//! forbids (a lone brace, `\a`) belongs to Annex B, which is for web browsers, and is not admitted.
//!
//! Brackets nest, so no regular expression says this; the [`Machine`] here reads a pattern as a parser does, with a stack
//! of open groups, and also keeps the early errors: a range or a quantifier out of order, a group name used twice, a
//! reference to a group that does not exist.
//!
//! Stricter than the standard, to keep states few:
//! * at most 200 groups are open at once, and a back-reference is at most `\200`;
//! * a quantifier has at most 9 digits before the comma and 10 after it;
//! * group names are ASCII, and each stands for one group (ES2025 lets alternatives share one); two names longer than a
//!   letter may be taken for the same (by one chance in 1024), and only names of one letter can be referred to;
//! * of a range whose ends are written as characters beyond ASCII, it must be seen from their blocks that they are in
//!   order (`[а-я]` and `[一-龥]` are, `[à-ç]` is not; written with `\u`, all are).
//!
//! Flags in groups (`(?i:...)`, ES2025) are not admitted either.

mod class;
mod escape;
mod properties;
mod state;

use crate::alphabet::Alphabet;
use crate::charset::CharSet;
use crate::languages::{Language, Languages};
use crate::machine::Machine;
use class::Class;
use escape::{Escape, Place};
use state::{Name, Pattern, Spot};
use std::sync::{Arc, LazyLock};

/// The most groups that are open at once, and the highest back-reference.
const MAX_GROUPS: usize = 200;
/// The most named groups: fewer than there are names, so that one can always be found.
const MAX_NAMES: usize = 100;
const MAX_LEAST: u64 = 999_999_999;
const MAX_MOST: u64 = 9_999_999_999;

/// `regex`.
pub(super) fn regex(l: &mut Languages) -> Language {
    l.machine(Arc::new(Regex))
}

#[derive(Debug)]
struct Regex;

impl Machine for Regex {
    fn name(&self) -> &'static str {
        "ECMA-262 patterns"
    }

    fn alphabet(&self, state: &[u8]) -> &Alphabet {
        /// The characters that mean something outside of classes, names and escapes.
        static SYNTAX: LazyLock<Alphabet> = LazyLock::new(|| each("^$\\.*+?()[]{}|,:=!<0123456789".chars()));
        static PRINTABLE: LazyLock<Alphabet> = LazyLock::new(|| each(' '..='~'));
        let Some(pattern) = Pattern::unpack(state) else { return &PRINTABLE };
        match pattern.spot {
            Spot::ClassOpen | Spot::Class(_) | Spot::Escape(_, Escape::Nul) => &class::ALPHABET,
            Spot::GroupAngle | Spot::GroupName(_) | Spot::ReferenceOpen | Spot::ReferenceName(_) | Spot::Escape(..) => {
                &PRINTABLE
            }
            _ => &SYNTAX,
        }
    }

    fn start(&self) -> Box<[u8]> {
        Pattern::default().pack()
    }

    fn step(&self, state: &[u8], c: char) -> Option<Box<[u8]>> {
        let mut pattern = Pattern::unpack(state)?;
        pattern.spot = pattern.next(c)?;
        Some(pattern.pack())
    }

    fn accepts(&self, state: &[u8]) -> bool {
        Pattern::unpack(state).is_some_and(|pattern| pattern.is_complete())
    }

    fn least(&self, state: &[u8]) -> u32 {
        Pattern::unpack(state).map_or(0, |pattern| pattern.least())
    }
}

impl Pattern {
    fn is_complete(&self) -> bool {
        let wanted = match self.spot {
            Spot::Term { .. } | Spot::AfterQuantifier | Spot::Escape(Place::Pattern, Escape::Nul) => self.wanted,
            Spot::Reference(number) => self.wanted.max(number),
            _ => return false,
        };
        self.open.is_empty() && wanted <= self.groups && self.wanted_names.is_empty()
    }

    /// How many characters the shortest end takes, so that a search for it goes straight ahead. (It may take
    /// a few more than is said here, but never fewer.)
    fn least(&self) -> u32 {
        let wanted = match self.spot {
            Spot::Reference(number) => self.wanted.max(number),
            _ => self.wanted,
        };
        let unnamed = usize::from(wanted.saturating_sub(self.groups)).saturating_sub(self.wanted_names.len());
        let named = "(?<n>)".len() * self.wanted_names.len();
        let groups = 2 * unnamed + named;
        let spot = match &self.spot {
            Spot::Term { .. } | Spot::AfterQuantifier | Spot::Reference(_) => groups,
            Spot::Most(least, Some(most)) if least > most => groups + 2,
            Spot::Least(Some(_)) | Spot::Most(..) | Spot::ClassOpen | Spot::Class(_) => groups + 1,
            Spot::Least(None) => groups + 2,
            Spot::NamedReference => groups + 3,
            Spot::ReferenceOpen => groups + 2,
            Spot::ReferenceName(name) if self.names.contains(name) || self.wanted_names.contains(name) => groups + 1,
            Spot::ReferenceName(_) => groups + 1 + "(?<n>)".len(),
            // A group that is wanted anyway, or else the shortest of any kind.
            Spot::GroupOpen if groups > 0 => groups - 1,
            Spot::GroupOpen => 1,
            Spot::GroupKind if named > 0 => groups - 2,
            Spot::GroupKind => groups + 2,
            Spot::GroupAngle if named > 0 => groups - 3,
            Spot::GroupAngle => groups + if unnamed > 0 { 1 } else { 2 },
            Spot::GroupName(name) if self.wanted_names.contains(name) => groups - "(?<n".len(),
            Spot::GroupName(_) => groups + 2 - 2 * unnamed.min(1),
            Spot::Escape(Place::Pattern, escape) => groups + escape.least(),
            Spot::Escape(Place::Class(_), escape) => groups + escape.least() + 1,
        };
        (self.open.len() + spot) as u32
    }

    /// Where the pattern stands after one more character.
    fn next(&mut self, c: char) -> Option<Spot> {
        let atom = Spot::Term { quantifiable: true };
        match std::mem::take(&mut self.spot) {
            Spot::Term { quantifiable } => self.term(quantifiable, c),
            Spot::AfterQuantifier if c == '?' => Some(Spot::default()),
            Spot::AfterQuantifier => self.term(false, c),
            Spot::Least(digits) => match c {
                '0'..='9' => Some(Spot::Least(Some(append(digits, c, MAX_LEAST)?))),
                ',' => Some(Spot::Most(digits?, None)),
                '}' => digits.map(|_| Spot::AfterQuantifier),
                _ => None,
            },
            Spot::Most(least, digits) => match c {
                '0'..='9' => Some(Spot::Most(least, Some(append(digits, c, MAX_MOST)?))),
                '}' if digits.is_none_or(|most| least <= most) => Some(Spot::AfterQuantifier),
                _ => None,
            },
            Spot::GroupOpen if c == '?' => Some(Spot::GroupKind),
            Spot::GroupOpen => {
                self.open_group(true)?;
                self.count_group();
                self.term(false, c)
            }
            Spot::GroupKind => match c {
                ':' => self.open_group(true),
                '=' | '!' => self.open_group(false),
                '<' => Some(Spot::GroupAngle),
                _ => None,
            },
            Spot::GroupAngle => match c {
                '=' | '!' => self.open_group(false),
                _ => {
                    let name = Name::first(c).filter(|name| self.has_room() || self.wanted_names.contains(name));
                    name.map(Spot::GroupName)
                }
            },
            Spot::GroupName(name) if c == '>' => {
                self.name_group(name)?;
                self.count_group();
                self.open_group(true)
            }
            Spot::GroupName(name) => name.then(c).filter(|_| self.has_room()).map(Spot::GroupName),
            Spot::Reference(number) if c.is_ascii_digit() => {
                let number = append(Some(number.into()), c, MAX_GROUPS as u64)?;
                Some(Spot::Reference(number as u8))
            }
            Spot::Reference(number) => {
                self.wanted = self.wanted.max(number);
                self.forget_wanted();
                self.term(true, c)
            }
            Spot::NamedReference if c == '<' => Some(Spot::ReferenceOpen),
            Spot::NamedReference => None,
            Spot::ReferenceOpen => Name::first(c).filter(|name| self.may_refer_to(name)).map(Spot::ReferenceName),
            Spot::ReferenceName(name) if c == '>' => {
                if !self.names.contains(&name) && !self.wanted_names.contains(&name) {
                    self.wanted_names.push(name);
                    self.wanted_names.sort_unstable();
                }
                Some(atom)
            }
            Spot::ReferenceName(_) => None,
            Spot::ClassOpen if c == '^' => Some(Spot::Class(Class::default())),
            Spot::ClassOpen => class::next(Class::default(), c, &mut self.mode),
            Spot::Class(class) => class::next(class, c, &mut self.mode),
            Spot::Escape(Place::Pattern, Escape::Nul) => {
                if c.is_ascii_digit() {
                    None
                } else {
                    self.term(true, c)
                }
            }
            Spot::Escape(place, escape) => escape::next(place, escape, c, &mut self.mode),
        }
    }

    /// A character where a term may begin, or the quantifier of the one before.
    fn term(&mut self, quantifiable: bool, c: char) -> Option<Spot> {
        let quantifier = |spot: Spot| quantifiable.then_some(spot);
        match c {
            '^' | '$' | '|' => Some(Spot::default()),
            '\\' => Some(Spot::Escape(Place::Pattern, Escape::Start)),
            '(' => (self.open.len() < MAX_GROUPS).then_some(Spot::GroupOpen),
            ')' => self.open.pop().map(|quantifiable| Spot::Term { quantifiable }),
            '[' => Some(Spot::ClassOpen),
            '*' | '+' | '?' => quantifier(Spot::AfterQuantifier),
            '{' => quantifier(Spot::Least(None)),
            '}' | ']' => None,
            _ => Some(Spot::Term { quantifiable: true }),
        }
    }

    /// A group begins. An assertion takes no quantifier after its end.
    fn open_group(&mut self, quantifiable: bool) -> Option<Spot> {
        self.open.push(quantifiable);
        Some(Spot::default())
    }

    fn count_group(&mut self) {
        self.groups = self.groups.saturating_add(1).min(MAX_GROUPS as u8);
        self.forget_wanted();
    }

    fn forget_wanted(&mut self) {
        if self.wanted <= self.groups {
            self.wanted = 0;
        }
    }

    /// Whether there may be a group of one more name.
    fn has_room(&self) -> bool {
        self.names.len() + self.wanted_names.len() < MAX_NAMES
    }

    /// Whether a group of that name exists, or may still come.
    fn may_refer_to(&self, name: &Name) -> bool {
        self.names.contains(name) || self.wanted_names.contains(name) || self.has_room()
    }

    fn name_group(&mut self, name: Name) -> Option<()> {
        self.wanted_names.retain(|&wanted| wanted != name);
        let at = self.names.binary_search(&name).err()?;
        self.names.insert(at, name);
        Some(())
    }
}

/// An alphabet that tells each of the characters apart.
fn each(chars: impl Iterator<Item = char>) -> Alphabet {
    Alphabet::new(&chars.map(CharSet::single).collect::<Vec<_>>())
}

/// A number with one more digit, unless it passes `most`.
fn append(number: Option<u64>, digit: char, most: u64) -> Option<u64> {
    Some(10 * number.unwrap_or(0) + u64::from(digit.to_digit(10)?)).filter(|&number| number <= most)
}
