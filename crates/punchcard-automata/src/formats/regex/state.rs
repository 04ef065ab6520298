//! What must be known of a pattern that was read so far, and as bytes.

use super::class::{Class, Previous};
use super::escape::{Escape, Place};

/// A pattern that was read so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Pattern {
    /// The open groups, and whether each may have a quantifier when it is closed.
    pub open: Vec<bool>,
    /// How many capturing groups there are.
    pub groups: u8,
    /// The highest back-reference, if there are not yet so many groups.
    pub wanted: u8,
    /// The names of groups, sorted.
    pub names: Vec<Name>,
    /// The names that were referred to before their group, sorted.
    pub wanted_names: Vec<Name>,
    pub mode: Mode,
    pub spot: Spot,
}

/// A group's name, as far as it is remembered: one letter as it is, of a longer name one of 1024 digests.
///
/// Names with different digests are different, which is all that groups need of each other. If names were remembered
/// whole, every beginning of one would be a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Name(u16);

impl Name {
    /// A name of one letter.
    pub(super) fn first(c: char) -> Option<Name> {
        (c.is_ascii_alphabetic() || c == '_' || c == '$').then_some(Name(c as u16))
    }

    /// The name with one more character.
    pub(super) fn then(self, c: char) -> Option<Name> {
        let fits = c.is_ascii_alphanumeric() || c == '_' || c == '$';
        let digest = u32::from(self.0 & 0x3FF) * 77 + c as u32 * 9 + 5;
        fits.then_some(Name(0x400 | (digest & 0x3FF) as u16))
    }
}

/// In which mode of ECMA-262 the pattern is valid so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Mode {
    #[default]
    Either,
    Unicode,
    Plain,
}

impl Mode {
    /// Something comes that only this mode has.
    pub(super) fn require(&mut self, mode: Mode) -> Option<()> {
        if *self == Mode::Either {
            *self = mode;
        }
        (*self == mode).then_some(())
    }
}

/// Where in the grammar the text ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Spot {
    /// A term may begin; a quantifier too, if the last term takes one.
    Term {
        quantifiable: bool,
    },
    /// As `Term`, and `?` makes the quantifier lazy.
    AfterQuantifier,
    /// In `{n`: the number, if there is one.
    Least(Option<u64>),
    /// In `{n,m`.
    Most(u64, Option<u64>),
    /// After `(`.
    GroupOpen,
    /// After `(?`.
    GroupKind,
    /// After `(?<`.
    GroupAngle,
    /// In `(?<name`.
    GroupName(Name),
    /// In `\12`.
    Reference(u8),
    /// After `\k`.
    NamedReference,
    /// After `\k<`, and after `\k<n`.
    ReferenceOpen,
    ReferenceName(Name),
    /// After `[`.
    ClassOpen,
    Class(Class),
    Escape(Place, Escape),
}

impl Default for Spot {
    fn default() -> Self {
        Spot::Term { quantifiable: false }
    }
}

impl Pattern {
    /// Equal patterns as equal bytes.
    pub(super) fn pack(&self) -> Box<[u8]> {
        let mut out = Writer(Vec::with_capacity(48));
        out.0.extend([self.mode as u8, self.groups, self.wanted, self.open.len() as u8]);
        out.0.extend(self.open.iter().map(|&quantifiable| u8::from(quantifiable)));
        out.names(&self.names);
        out.names(&self.wanted_names);
        match &self.spot {
            Spot::Term { quantifiable } => out.0.push(u8::from(*quantifiable)),
            Spot::AfterQuantifier => out.0.push(2),
            Spot::Least(digits) => out.tagged(3, &[digits.map_or(u64::MAX, |n| n)]),
            Spot::Most(least, digits) => out.tagged(4, &[*least, digits.map_or(u64::MAX, |n| n)]),
            Spot::GroupOpen => out.0.push(5),
            Spot::GroupKind => out.0.push(6),
            Spot::GroupAngle => out.0.push(7),
            Spot::GroupName(Name(name)) => out.tagged(8, &[(*name).into()]),
            Spot::Reference(number) => out.tagged(9, &[(*number).into()]),
            Spot::NamedReference => out.0.push(10),
            Spot::ReferenceName(Name(name)) => out.tagged(11, &[(*name).into()]),
            Spot::ClassOpen => out.0.push(12),
            Spot::ReferenceOpen => out.0.push(16),
            Spot::Class(class) => {
                out.0.push(13);
                out.class(class);
            }
            Spot::Escape(place, escape) => {
                match place {
                    Place::Pattern => out.0.push(14),
                    Place::Class(class) => {
                        out.0.push(15);
                        out.class(class);
                    }
                }
                match escape {
                    Escape::Start => out.0.push(0),
                    Escape::Control => out.0.push(1),
                    Escape::Nul => out.0.push(2),
                    Escape::Unicode => out.0.push(3),
                    Escape::Hex { unicode, left, value } => {
                        out.tagged(4, &[u64::from(*unicode), u64::from(*left), u64::from(*value)]);
                    }
                    Escape::Braced(value) => out.tagged(5, &[value.map_or(u64::MAX, u64::from)]),
                    Escape::Property => out.0.push(6),
                    Escape::PropertyName(name) => out.text(7, name),
                }
            }
        }
        out.0.into()
    }

    /// The pattern of [`Pattern::pack`].
    pub(super) fn unpack(bytes: &[u8]) -> Option<Pattern> {
        let mut read = Reader(bytes);
        let mode = [Mode::Either, Mode::Unicode, Mode::Plain].get(usize::from(read.byte()?)).copied()?;
        let (groups, wanted, open) = (read.byte()?, read.byte()?, read.byte()?);
        let open = read.bytes(open.into())?.iter().map(|&byte| byte == 1).collect();
        let (names, wanted_names) = (read.names()?, read.names()?);
        let spot = match read.byte()? {
            kind @ (0 | 1) => Spot::Term { quantifiable: kind == 1 },
            2 => Spot::AfterQuantifier,
            3 => Spot::Least(read.optional()?),
            4 => Spot::Most(read.number()?, read.optional()?),
            5 => Spot::GroupOpen,
            6 => Spot::GroupKind,
            7 => Spot::GroupAngle,
            8 => Spot::GroupName(Name(read.number()? as u16)),
            9 => Spot::Reference(read.number()? as u8),
            10 => Spot::NamedReference,
            11 => Spot::ReferenceName(Name(read.number()? as u16)),
            12 => Spot::ClassOpen,
            16 => Spot::ReferenceOpen,
            13 => Spot::Class(read.class()?),
            kind => {
                let place = if kind == 14 { Place::Pattern } else { Place::Class(read.class()?) };
                let escape = match read.byte()? {
                    0 => Escape::Start,
                    1 => Escape::Control,
                    2 => Escape::Nul,
                    3 => Escape::Unicode,
                    4 => {
                        let (unicode, left, value) = (read.number()? == 1, read.number()? as u8, read.number()? as u32);
                        Escape::Hex { unicode, left, value }
                    }
                    5 => Escape::Braced(read.optional()?.map(|value| value as u32)),
                    6 => Escape::Property,
                    _ => Escape::PropertyName(read.rest()?),
                };
                Spot::Escape(place, escape)
            }
        };
        Some(Pattern { open, groups, wanted, names, wanted_names, mode, spot })
    }
}

struct Writer(Vec<u8>);

impl Writer {
    /// Their number, and each in two bytes.
    fn names(&mut self, names: &[Name]) {
        self.0.push(names.len() as u8);
        names.iter().for_each(|Name(name)| self.0.extend(name.to_le_bytes()));
    }

    fn tagged(&mut self, tag: u8, numbers: &[u64]) {
        self.0.push(tag);
        numbers.iter().for_each(|n| self.0.extend(n.to_le_bytes()));
    }

    fn text(&mut self, tag: u8, text: &str) {
        self.0.push(tag);
        self.0.extend_from_slice(text.as_bytes());
    }

    fn class(&mut self, class: &Class) {
        let (tag, value) = match class.previous {
            Previous::None => (0, 0),
            Previous::Atom(value) => (1, value),
            Previous::Dash(value) => (2, value),
        };
        self.tagged(tag, &[value.into(), class.lead.into()]);
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    fn bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    fn number(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*number))
    }

    fn optional(&mut self) -> Option<Option<u64>> {
        Some(Some(self.number()?).filter(|&n| n != u64::MAX))
    }

    fn rest(&mut self) -> Option<String> {
        let rest = std::mem::take(&mut self.0);
        Some(std::str::from_utf8(rest).ok()?.to_owned())
    }

    fn names(&mut self) -> Option<Vec<Name>> {
        let count = self.byte()?;
        let bytes = self.bytes(2 * usize::from(count))?;
        Some(bytes.chunks_exact(2).map(|name| Name(u16::from_le_bytes([name[0], name[1]]))).collect())
    }

    fn class(&mut self) -> Option<Class> {
        let (tag, value, lead) = (self.byte()?, self.number()? as u32, self.number()? as u32);
        let previous = match tag {
            0 => Previous::None,
            1 => Previous::Atom(value),
            _ => Previous::Dash(value),
        };
        Some(Class { previous, lead })
    }
}
