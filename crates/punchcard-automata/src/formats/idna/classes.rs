//! What the rules for labels ask of a code point.

use super::tables::{ASCII_STARTERS, CLASSES, RANGES};
use crate::charset::CharSet;

/// RFC 5892: valid by itself, or under a contextual rule (appendix A).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Valid,
    /// Between two `l`.
    MiddleDot,
    /// Before a Greek character.
    Keraia,
    /// After a Hebrew character.
    Geresh,
    /// In a label with Hiragana, Katakana or Han.
    KatakanaDot,
    /// Not together with extended digits.
    ArabicDigit,
    ExtendedDigit,
    /// After a virama, or between characters that it keeps from joining.
    Zwnj,
    /// After a virama.
    Zwj,
}

/// The classes of RFC 5893 between which the Bidi rule tells a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bidi {
    L,
    /// R or AL.
    R,
    An,
    En,
    Nsm,
    /// ES, CS, ET, ON or BN.
    Neutral,
}

/// The scripts that contextual rules name; Hiragana, Katakana and Han as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Script {
    Greek,
    Hebrew,
    Japanese,
    Other,
}

/// How a character joins its neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Join {
    None,
    Left,
    Right,
    Dual,
    Transparent,
}

/// A class of characters that are alike in every rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Class {
    pub kind: Kind,
    pub bidi: Bidi,
    pub script: Script,
    pub join: Join,
    /// A combining mark, with which no label begins.
    pub mark: bool,
    /// The canonical combining class.
    pub combining: u8,
    /// The group of characters that compose with the same marks; 0 if with none.
    pub starter: u8,
    /// The group of marks that compose with the same characters; 0 if with none.
    pub second: u8,
    /// The smallest block that holds it.
    pub block: u8,
}

impl Class {
    #[allow(clippy::too_many_arguments)]
    pub(super) const fn new(
        kind: Kind,
        bidi: Bidi,
        script: Script,
        join: Join,
        mark: bool,
        combining: u8,
        starter: u8,
        second: u8,
        block: u8,
    ) -> Class {
        Class { kind, bidi, script, join, mark, combining, starter, second, block }
    }

    /// The class of a character, unless it is disallowed or unassigned. Upper-case ASCII is taken as lower-case.
    pub(super) fn of(c: char) -> Option<Class> {
        if c.is_ascii() {
            let c = c.to_ascii_lowercase();
            let (bidi, starter) = match c {
                'a'..='z' => (Bidi::L, ASCII_STARTERS[(c as u8 - b'a') as usize]),
                '0'..='9' => (Bidi::En, 0),
                '-' => (Bidi::Neutral, 0),
                _ => return None,
            };
            return Some(Class::new(Kind::Valid, bidi, Script::Other, Join::None, false, 0, starter, 0, 0));
        }
        let at = RANGES.partition_point(|&(_, end, _)| end < c as u32);
        RANGES.get(at).filter(|&&(start, ..)| start <= c as u32).map(|&(.., class)| CLASSES[class as usize])
    }
}

/// The sets of alike characters beyond ASCII.
pub(super) fn sets() -> Vec<CharSet> {
    let mut ranges = vec![Vec::new(); CLASSES.len()];
    for &(start, end, class) in &RANGES {
        ranges[class as usize].push((start, end));
    }
    ranges.into_iter().map(CharSet::new).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derived_properties() {
        for (c, kind) in [
            ('ß', Some(Kind::Valid)),
            ('é', Some(Kind::Valid)),
            ('中', Some(Kind::Valid)),
            ('א', Some(Kind::Valid)),
            ('·', Some(Kind::MiddleDot)),
            ('\u{200D}', Some(Kind::Zwj)),
            ('٣', Some(Kind::ArabicDigit)),
            ('É', None),
            ('ª', None),
            ('\u{0640}', None),
            ('\u{302E}', None),
            ('\u{1100}', None),
            ('_', None),
            ('\u{10FFFF}', None),
        ] {
            assert_eq!(Class::of(c).map(|class| class.kind), kind, "{c:?}");
        }
    }

    #[test]
    fn classes_are_disjoint() {
        assert!(RANGES.windows(2).all(|pair| pair[0].1 < pair[1].0));
    }
}
