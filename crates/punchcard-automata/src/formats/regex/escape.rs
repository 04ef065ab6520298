//! Escapes, in a class and outside of one.

use super::class::{Class, LEADS, SET};
use super::properties;
use super::state::{Mode, Spot};
use crate::charset::MAX;

/// Where the escape stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Pattern,
    Class(Class),
}

/// An escape that was read so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Escape {
    /// After the backslash.
    Start,
    /// After `\c`.
    Control,
    /// After `\0`, where no digit may stand.
    Nul,
    /// After `\u`.
    Unicode,
    /// In `\x` or `\u`, with so many digits left.
    Hex { unicode: bool, left: u8, value: u32 },
    /// In `\u{`: the value, if there is a digit.
    Braced(Option<u32>),
    /// After `\p` or `\P`.
    Property,
    /// In `\p{`.
    PropertyName(String),
}

impl Escape {
    /// It takes at least so many characters more.
    pub(super) fn least(&self) -> usize {
        match self {
            Escape::Nul => 0,
            Escape::Start | Escape::Control | Escape::Braced(Some(_)) | Escape::PropertyName(_) => 1,
            Escape::Braced(None) => 2,
            Escape::Unicode | Escape::Property => 3,
            Escape::Hex { left, .. } => usize::from(*left),
        }
    }
}

/// Where a pattern stands after one more character of an escape.
pub(super) fn next(place: Place, escape: Escape, c: char, mode: &mut Mode) -> Option<Spot> {
    match escape {
        Escape::Start => start(place, c, mode),
        Escape::Control => place.other(c.is_ascii_alphabetic().then_some(c as u32 % 32)?),
        Escape::Nul => match place {
            Place::Class(class) if !c.is_ascii_digit() => super::class::next(class, c, mode),
            _ => None,
        },
        Escape::Unicode if c == '{' => {
            mode.require(Mode::Unicode)?;
            place.admits(0, MAX, false).then_some(Spot::Escape(place, Escape::Braced(None)))
        }
        Escape::Unicode => hex(place, true, 4, 0, c, mode),
        Escape::Hex { unicode, left, value } => hex(place, unicode, left, value, c, mode),
        Escape::Braced(Some(value)) if c == '}' => place.other(value),
        Escape::Braced(value) => {
            let value = 16 * value.unwrap_or(0) + c.to_digit(16)?;
            // The largest code point that begins with these digits.
            let (first, max) = (u64::from(value), u64::from(MAX));
            let last = |more: u32| (first << (4 * more) <= max).then(|| max.min(((first + 1) << (4 * more)) - 1));
            let most = (0..=6).filter_map(last).max()? as u32;
            let fits = place.admits(value, most, false);
            fits.then_some(Spot::Escape(place, Escape::Braced(Some(value))))
        }
        Escape::Property if c == '{' => Some(Spot::Escape(place, Escape::PropertyName(String::new()))),
        Escape::Property => None,
        Escape::PropertyName(name) if c == '}' => {
            if properties::is_name(&name) {
                place.other(SET)
            } else {
                None
            }
        }
        Escape::PropertyName(mut name) => {
            name.push(c);
            properties::is_start(&name).then_some(Spot::Escape(place, Escape::PropertyName(name)))
        }
    }
}

/// The character after the backslash.
fn start(place: Place, c: char, mode: &mut Mode) -> Option<Spot> {
    let with = |escape: Escape| Some(Spot::Escape(place, escape));
    match c {
        'd' | 'D' | 's' | 'S' | 'w' | 'W' => place.other(SET),
        'p' | 'P' => {
            mode.require(Mode::Unicode)?;
            place.other(SET).and_then(|_| with(Escape::Property))
        }
        'f' => place.other(0x0C),
        'n' => place.other(0x0A),
        'r' => place.other(0x0D),
        't' => place.other(0x09),
        'v' => place.other(0x0B),
        'c' if place.admits_other(26) => with(Escape::Control),
        'x' if place.admits_other(0xFF) => with(Escape::Hex { unicode: false, left: 2, value: 0 }),
        'u' => with(Escape::Unicode),
        '^' | '$' | '\\' | '.' | '*' | '+' | '?' | '(' | ')' | '[' | ']' | '{' | '}' | '|' | '/' => {
            place.other(c as u32)
        }
        '0' => match place {
            Place::Pattern => with(Escape::Nul),
            Place::Class(class) => Some(Spot::Escape(Place::Class(class.with_other(0)?), Escape::Nul)),
        },
        '-' if place != Place::Pattern => place.other(c as u32),
        ' '..='~' if !c.is_ascii_alphanumeric() && c != '_' => {
            mode.require(Mode::Plain)?;
            place.other(c as u32)
        }
        _ => match (place, c) {
            (Place::Class(_), 'b') => place.other(8),
            (Place::Class(_), _) => None,
            (Place::Pattern, 'b' | 'B') => Some(Spot::default()),
            (Place::Pattern, 'k') => Some(Spot::NamedReference),
            (Place::Pattern, '1'..='9') => Some(Spot::Reference(c as u8 - b'0')),
            (Place::Pattern, _) => None,
        },
    }
}

/// One more digit of `\x` or `\u`.
fn hex(place: Place, unicode: bool, left: u8, value: u32, c: char, mode: &mut Mode) -> Option<Spot> {
    let value = 16 * value + c.to_digit(16)?;
    let left = left - 1;
    if left == 0 {
        return match place {
            Place::Class(class) if unicode => class.with(value).map(Spot::Class),
            _ => place.other(value),
        };
    }
    let (low, high) = (value << (4 * left), ((value + 1) << (4 * left)) - 1);
    if unicode && place != Place::Pattern && LEADS.contains(&low) && LEADS.contains(&high) {
        // It may become half of a pair, which would be two characters without the flag.
        mode.require(Mode::Unicode)?;
    }
    place
        .admits(low, high, unicode && *mode != Mode::Plain)
        .then_some(Spot::Escape(place, Escape::Hex { unicode, left, value }))
}

impl Place {
    /// After an escape for a character or a set that is no half of a pair.
    fn other(self, value: u32) -> Option<Spot> {
        match self {
            Place::Pattern => Some(Spot::Term { quantifiable: true }),
            Place::Class(class) => class.with_other(value).map(Spot::Class),
        }
    }

    /// Whether an escape with a value from `low` to `high` may stand here.
    fn admits(self, low: u32, high: u32, unicode: bool) -> bool {
        match self {
            Place::Pattern => true,
            Place::Class(class) => class.admits(low, high, unicode),
        }
    }

    fn admits_other(self, high: u32) -> bool {
        self.admits(0, high, false)
    }
}
