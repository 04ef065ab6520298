//! Character classes: `[...]`, and whether their ranges are in order.

use super::escape::{Escape, Place};
use super::state::{Mode, Spot};
use crate::alphabet::Alphabet;
use crate::charset::CharSet;
use std::sync::LazyLock;

/// The value of `\d` and the like, which is no end of a range.
pub(super) const SET: u32 = u32::MAX;

/// The surrogates that come first in a pair.
pub(super) const LEADS: std::ops::RangeInclusive<u32> = 0xD800..=0xDBFF;

/// A class that was read so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Class {
    pub previous: Previous,
    /// After it, the lead surrogate of an escape that may become half of a pair; 0 if there is none.
    pub lead: u32,
}

/// What a range may be made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Previous {
    #[default]
    None,
    /// A character, by its code point, or a `SET`.
    Atom(u32),
    /// And a minus after it.
    Dash(u32),
}

impl Previous {
    /// With a further character, of which it is known that it lies between `low` and `high`.
    fn with(self, low: u32, high: u32) -> Option<Previous> {
        match self {
            Previous::Dash(start) => (start != SET && low != SET && start <= low).then_some(Previous::None),
            _ => Some(Previous::Atom(high)),
        }
    }

    /// Whether some character from `low` to `high` may come next.
    fn admits(self, high: u32) -> bool {
        !matches!(self, Previous::Dash(start) if start > high)
    }
}

impl Class {
    /// With a character that was written as an escape, or a `SET`.
    pub(super) fn with(self, value: u32) -> Option<Class> {
        if self.lead != 0 && (0xDC00..0xE000).contains(&value) {
            let pair = pair(self.lead, value);
            return Some(Class { previous: self.previous.with(pair, pair)?, lead: 0 });
        }
        let settled = self.settled()?;
        if LEADS.contains(&value) {
            let open = Class { previous: settled, lead: value };
            return (settled.admits(value) || settled.admits(pair(value, 0xDFFF))).then_some(open);
        }
        Some(Class { previous: settled.with(value, value)?, lead: 0 })
    }

    /// As `with`, for an escape that is no `\u`, and so no half of a pair.
    pub(super) fn with_other(self, value: u32) -> Option<Class> {
        Class { previous: self.settled()?, lead: 0 }.with(value)
    }

    /// Without a lead surrogate that waits: it stands for itself.
    fn settled(self) -> Option<Previous> {
        if self.lead == 0 { Some(self.previous) } else { self.previous.with(self.lead, self.lead) }
    }

    /// Whether an escape with a value from `low` to `high` may come next; `unicode` if it is a `\u` of four digits, and
    /// so perhaps half of a pair.
    pub(super) fn admits(self, low: u32, high: u32, unicode: bool) -> bool {
        let overlap = |from: u32, to: u32| (low <= to && high >= from).then_some(high.min(to));
        let trail = |at: u32| self.previous.admits(pair(self.lead, at));
        let lead = |previous: Previous, at: u32| previous.admits(pair(at, 0xDFFF));
        (unicode && self.lead != 0 && overlap(0xDC00, 0xDFFF).is_some_and(trail))
            || self.settled().is_some_and(|previous| {
                previous != Previous::Dash(SET)
                    && (previous.admits(high)
                        || unicode && overlap(0xD800, 0xDBFF).is_some_and(|at| lead(previous, at)))
            })
    }

    /// Whether an escape of any kind may come next.
    pub(super) fn admits_escape(self) -> bool {
        self.admits(0, 0x10_FFFF, true)
    }
}

fn pair(lead: u32, trail: u32) -> u32 {
    0x1_0000 + ((lead - 0xD800) << 10) + (trail - 0xDC00)
}

/// Where a pattern stands after a character in a class.
pub(super) fn next(class: Class, c: char, mode: &mut Mode) -> Option<Spot> {
    if c == '\\' {
        return class.admits_escape().then_some(Spot::Escape(Place::Class(class), Escape::Start));
    }
    if c > '\u{FFFF}' {
        // Without the flag these would be two characters.
        mode.require(Mode::Unicode)?;
    }
    let previous = class.settled()?;
    let previous = match (c, previous) {
        (']', _) => return Some(Spot::Term { quantifiable: true }),
        ('-', Previous::Atom(start)) => Previous::Dash(start),
        _ => {
            let (low, high) = block(c as u32);
            previous.with(low, high)?
        }
    };
    Some(Spot::Class(Class { previous, lead: 0 }))
}

/// Blocks of code points, as (start, width of each block up to the next start). Patterns tell no difference between the
/// characters of one block, so all printable ASCII characters have their own.
const BLOCKS: [(u32, u32); 19] = [
    (0, 0x20),
    (0x20, 1),
    (0x7F, 0x21),
    (0xA0, 0x10),
    (0x100, 0x90),
    (0x370, 0x10),
    (0x700, 0x100),
    (0x900, 0x40),
    (0xA00, 0x200),
    (0xE00, 0x20),
    (0xE80, 0x180),
    (0x1000, 0x800),
    (0x3000, 0x20),
    (0x3100, 0x700),
    (0xFF00, 0x40),
    (0x1_0000, 0x1_0000),
    (0x1F300, 0x40),
    (0x1FB00, 0x500),
    (0x20000, 0x1_0000),
];

/// The block that holds a code point.
fn block(c: u32) -> (u32, u32) {
    let after = BLOCKS.partition_point(|&(start, _)| start <= c);
    let (start, width) = BLOCKS[after - 1];
    let end = BLOCKS.get(after).map_or(0x11_0000, |&(next, _)| next);
    let low = start + (c - start) / width * width;
    (low, (low + width).min(end) - 1)
}

/// The blocks as classes.
pub(super) static ALPHABET: LazyLock<Alphabet> = LazyLock::new(|| {
    let mut sets = Vec::new();
    let mut at = 0;
    while at <= crate::charset::MAX {
        let (low, high) = block(at);
        sets.push(CharSet::new([(low, high)]));
        at = high + 1;
    }
    Alphabet::new(&sets)
});
