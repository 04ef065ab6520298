//! The character classes of ECMA-262: `.`, `\d`, `\s`, `\w`, and what case-insensitivity does to a class.

use crate::charset::CharSet;
use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

/// LF, CR, LINE SEPARATOR and PARAGRAPH SEPARATOR: what `.` does not match and what ends a line.
pub(super) fn line_ends() -> CharSet {
    CharSet::new([(0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029)])
}

/// `\d`.
pub(super) fn ascii_digit() -> CharSet {
    CharSet::new([(0x30, 0x39)])
}

/// `\w`.
pub(super) fn ascii_word() -> CharSet {
    CharSet::new([(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)])
}

/// `\s`: WhiteSpace (the byte order mark and every Space_Separator are among it) and LineTerminator. The first two ranges are
/// ASCII.
pub const WHITE_SPACE: [(u32, u32); 10] = [
    (0x09, 0x0D),
    (0x20, 0x20),
    (0xA0, 0xA0),
    (0x1680, 0x1680),
    (0x2000, 0x200A),
    (0x2028, 0x2029),
    (0x202F, 0x202F),
    (0x205F, 0x205F),
    (0x3000, 0x3000),
    (0xFEFF, 0xFEFF),
];

pub(super) fn white_space() -> CharSet {
    CharSet::new(WHITE_SPACE)
}

/// All characters with the same simple case folding as one of the set.
pub(super) fn close_over_case(set: &CharSet) -> CharSet {
    let ranges = set.ranges().iter();
    let mut class = ClassUnicode::new(
        ranges.filter_map(|&(lo, hi)| Some(ClassUnicodeRange::new(char::from_u32(lo)?, char::from_u32(hi)?))),
    );
    // Fails only if the tables were left out of the build.
    match class.try_case_fold_simple() {
        Ok(()) => class.ranges().iter().map(|r| (r.start() as u32, r.end() as u32)).collect(),
        Err(_) => set.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn space_and_word_are_those_of_ecmascript() {
        for c in "\u{9}\u{B}\u{C}\u{A0}\u{FEFF}\u{2003}\u{3000}\n\r\u{2028}\u{2029}".chars() {
            assert!(white_space().contains(c as u32), "{c:?}");
        }
        for c in "\u{85}\u{180E}\u{200B}a_".chars() {
            assert!(!white_space().contains(c as u32), "{c:?}");
        }
        assert!(!ascii_word().contains('é' as u32) && !ascii_digit().contains('٣' as u32));
    }

    #[test]
    fn case_folding_is_simple_and_closes_in_both_directions() {
        let k = close_over_case(&CharSet::single('k'));
        assert_eq!(k, CharSet::new([(0x4B, 0x4B), (0x6B, 0x6B), (0x212A, 0x212A)]));
        let s = close_over_case(&CharSet::single('ſ'));
        assert!(s.contains('s' as u32) && s.contains('S' as u32));
        // ß folds to two letters in full, not in simple folding; only ẞ is its like.
        assert_eq!(close_over_case(&CharSet::single('ß')), CharSet::new([(0xDF, 0xDF), (0x1E9E, 0x1E9E)]));
        assert_eq!(close_over_case(&CharSet::single('i')), CharSet::new([(0x49, 0x49), (0x69, 0x69)]));
        assert_eq!(close_over_case(&CharSet::any()), CharSet::any());
    }
}
