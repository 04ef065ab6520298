//! The rules for a U-label (RFC 5890 to 5893), read from left to right with little to remember.
//!
//! A label is made of valid characters, begins with no combining mark, has no hyphen at either end nor in the third and
//! fourth place, is in NFC, keeps the contextual rules, and if it holds right-to-left characters, the Bidi rule.
//! All of that is regular. The length of its A-label is not in any useful sense, as it depends on the order of the code
//! points: here an upper bound on it must be within 63, so that a long label in one script may be refused although it
//! would just fit.

use super::classes::{Bidi, Class, Join, Kind, Script};
use super::punycode::longest;
use super::tables::{BLOCKS, COMPOSES};

/// The longest label.
pub(crate) const MAX_LABEL: u32 = 63;

/// The virama class, after which joiners may stand.
const VIRAMA: u8 = 9;

/// A group of starters that is taken to compose with every mark that composes at all.
const ANY_STARTER: u8 = u8::MAX;

/// What the next character must be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
enum Need {
    #[default]
    Nothing,
    /// An `l`, after a middle dot.
    L,
    /// A Greek character.
    Greek,
    /// A character that joins to its left, perhaps after transparent ones.
    Joining,
}

/// The first character decides the direction of a label.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
enum Direction {
    #[default]
    Unset,
    Ltr,
    Rtl,
    /// It begins with neither a left-to-right nor a right-to-left character.
    Broken,
}

/// What is known of a label that was read so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Label {
    length: u8,
    /// Characters beyond ASCII, and the block that holds them.
    wide: u8,
    block: u8,
    need: Need,
    direction: Direction,
    /// Has a right-to-left character.
    rtl: bool,
    european: bool,
    arabic_number: bool,
    /// The label may end here by the Bidi rule.
    good_end: bool,
    hyphen: bool,
    hyphen_third: bool,
    upper: bool,
    after_l: bool,
    after_hebrew: bool,
    after_virama: bool,
    /// A character that joins to its right went before, perhaps with transparent ones in between.
    joins: bool,
    katakana_dot: bool,
    japanese: bool,
    arabic_digit: bool,
    extended_digit: bool,
    /// The last starter's group, and the combining class of what follows it.
    starter: u8,
    combining: u8,
}

/// How strict to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rules {
    /// The label must be in NFC.
    pub nfc: bool,
    /// The upper bound on the A-label must be within 63 characters, and what tells too many states apart is refused. Not
    /// for a label that comes from an A-label.
    pub bounded: bool,
}

impl Label {
    /// The number of bytes of [`Label::pack`].
    pub(crate) const PACKED: usize = 8;

    /// The label after one more character, or `None` if no label goes on like this.
    pub(crate) fn push(mut self, c: char, rules: Rules) -> Option<Label> {
        let class = Class::of(c)?;
        let first = self.length == 0;
        self.length += 1;
        if self.length as u32 > MAX_LABEL || (first && (class.mark || c == '-')) {
            return None;
        }
        self.push_hyphen(c)?;
        self.push_width(c, class, rules)?;
        if rules.nfc {
            // After an ASCII letter in a name that is being written any mark is refused that composes with some letter:
            // otherwise each letter would be a state of its own.
            let starter = if rules.bounded && c.is_ascii() && class.starter > 0 { ANY_STARTER } else { class.starter };
            self.push_composed(class, starter)?;
        }
        self.push_context(c, class)?;
        self.push_direction(class)?;
        Some(self)
    }

    fn push_hyphen(&mut self, c: char) -> Option<()> {
        self.hyphen = c == '-';
        if self.length == 4 && self.hyphen && self.hyphen_third {
            return None;
        }
        self.hyphen_third = self.length == 3 && self.hyphen;
        Some(())
    }

    /// ASCII in upper case is for labels that are all ASCII.
    fn push_width(&mut self, c: char, class: Class, rules: Rules) -> Option<()> {
        self.upper |= c.is_ascii_uppercase();
        if !c.is_ascii() {
            self.block = if self.wide == 0 { class.block } else { enclosing(self.block, class.block) };
            self.wide += 1;
        }
        let fits = !rules.bounded || self.a_length() <= MAX_LABEL;
        (fits && !(self.upper && self.wide > 0)).then_some(())
    }

    /// In NFC marks are in canonical order, and no mark composes with the starter before it.
    fn push_composed(&mut self, class: Class, starter: u8) -> Option<()> {
        let adjacent = self.combining == 0;
        if class.combining > 0 && self.combining > class.combining {
            return None;
        }
        let blocked = if class.combining == 0 { !adjacent } else { self.combining == class.combining };
        let composes = match (self.starter, class.second) {
            (0, _) | (_, 0) => false,
            (starter, second) => starter == ANY_STARTER || COMPOSES[second as usize - 1].contains(&starter),
        };
        if composes && !blocked {
            return None;
        }
        if class.combining == 0 {
            self.starter = starter;
        }
        self.combining = class.combining;
        Some(())
    }

    /// RFC 5892, appendix A.
    fn push_context(&mut self, c: char, class: Class) -> Option<()> {
        match self.need {
            Need::L if c != 'l' => return None,
            Need::Greek if class.script != Script::Greek => return None,
            Need::Joining if !matches!(class.join, Join::Transparent | Join::Right | Join::Dual) => return None,
            Need::Joining if class.join == Join::Transparent => {}
            _ => self.need = Need::Nothing,
        }
        match class.kind {
            Kind::Valid => {}
            Kind::MiddleDot if self.after_l => self.need = Need::L,
            Kind::Keraia => self.need = Need::Greek,
            Kind::Geresh if self.after_hebrew => {}
            Kind::KatakanaDot => self.katakana_dot = true,
            Kind::ArabicDigit if !self.extended_digit => self.arabic_digit = true,
            Kind::ExtendedDigit if !self.arabic_digit => self.extended_digit = true,
            Kind::Zwj | Kind::Zwnj if self.after_virama => {}
            Kind::Zwnj if self.joins => self.need = Need::Joining,
            _ => return None,
        }
        self.after_l = c == 'l';
        self.after_hebrew = class.script == Script::Hebrew;
        self.after_virama = class.combining == VIRAMA;
        self.japanese |= class.script == Script::Japanese;
        if class.join != Join::Transparent {
            self.joins = matches!(class.join, Join::Left | Join::Dual);
        }
        Some(())
    }

    /// RFC 5893, section 2.
    fn push_direction(&mut self, class: Class) -> Option<()> {
        if self.direction == Direction::Unset {
            self.direction = match class.bidi {
                Bidi::L => Direction::Ltr,
                Bidi::R => Direction::Rtl,
                _ => Direction::Broken,
            };
        }
        self.rtl |= matches!(class.bidi, Bidi::R | Bidi::An);
        let rtl = self.direction == Direction::Rtl;
        self.european |= rtl && class.bidi == Bidi::En;
        self.arabic_number |= rtl && class.bidi == Bidi::An;
        match class.bidi {
            Bidi::Nsm => {}
            Bidi::Neutral => self.good_end = false,
            Bidi::En => self.good_end = true,
            Bidi::L => self.good_end = !rtl,
            Bidi::R | Bidi::An => self.good_end = rtl,
        }
        let both_numbers = self.european && self.arabic_number;
        let broken = (rtl && class.bidi == Bidi::L) || (self.rtl && !rtl) || both_numbers;
        (!broken).then_some(())
    }

    /// Whether the label may end here.
    pub(crate) fn is_complete(&self) -> bool {
        self.length > 0
            && !self.hyphen
            && self.need == Need::Nothing
            && (self.japanese || !self.katakana_dot)
            && (!self.rtl || self.keeps_bidi_rule())
    }

    /// Has a character from right to left, so that the Bidi rule holds for every label of its domain name.
    pub(crate) fn is_rtl(&self) -> bool {
        self.rtl
    }

    /// Whether the Bidi rule can still be kept.
    pub(crate) fn may_keep_bidi_rule(&self) -> bool {
        self.direction != Direction::Broken
    }

    /// Whether the label, ending here, keeps the Bidi rule.
    pub(crate) fn keeps_bidi_rule(&self) -> bool {
        matches!(self.direction, Direction::Ltr | Direction::Rtl) && self.good_end
    }

    /// Whether all characters are ASCII.
    pub(crate) fn is_ascii(&self) -> bool {
        self.wide == 0
    }

    /// How many characters there are.
    pub(crate) fn len(&self) -> u32 {
        self.length.into()
    }

    /// An upper bound on the length of the A-label.
    pub(crate) fn a_length(&self) -> u32 {
        longest(self.block, self.wide.into(), self.length.into())
    }

    /// Equal labels as equal bytes.
    pub(crate) fn pack(&self) -> [u8; Self::PACKED] {
        let bits = |flags: &[bool]| flags.iter().fold(0u8, |byte, &flag| byte << 1 | u8::from(flag));
        let Label { length, wide, block, need, direction, .. } = *self;
        [
            length,
            wide,
            block << 4 | (need as u8) << 2 | direction as u8,
            bits(&[self.rtl, self.european, self.arabic_number, self.good_end, self.hyphen, self.hyphen_third]),
            bits(&[self.upper, self.after_l, self.after_hebrew, self.after_virama, self.joins]),
            bits(&[self.katakana_dot, self.japanese, self.arabic_digit, self.extended_digit]),
            self.starter,
            self.combining,
        ]
    }

    /// The label of [`Label::pack`].
    pub(crate) fn unpack(bytes: &[u8; Self::PACKED]) -> Label {
        let bit = |byte: usize, n: u32| bytes[byte] >> n & 1 == 1;
        Label {
            length: bytes[0],
            wide: bytes[1],
            block: bytes[2] >> 4,
            need: [Need::Nothing, Need::L, Need::Greek, Need::Joining][(bytes[2] >> 2 & 3) as usize],
            direction: [Direction::Unset, Direction::Ltr, Direction::Rtl, Direction::Broken][(bytes[2] & 3) as usize],
            rtl: bit(3, 5),
            european: bit(3, 4),
            arabic_number: bit(3, 3),
            good_end: bit(3, 2),
            hyphen: bit(3, 1),
            hyphen_third: bit(3, 0),
            upper: bit(4, 4),
            after_l: bit(4, 3),
            after_hebrew: bit(4, 2),
            after_virama: bit(4, 1),
            joins: bit(4, 0),
            katakana_dot: bit(5, 3),
            japanese: bit(5, 2),
            arabic_digit: bit(5, 1),
            extended_digit: bit(5, 0),
            starter: bytes[6],
            combining: bytes[7],
        }
    }
}

/// The smallest block that holds two.
fn enclosing(a: u8, b: u8) -> u8 {
    let (low, high) = (BLOCKS[a as usize], BLOCKS[b as usize]);
    let (low, high) = (low.0.min(high.0), low.1.max(high.1));
    BLOCKS.iter().position(|block| block.0 <= low && high <= block.1).unwrap_or(BLOCKS.len() - 1) as u8
}
