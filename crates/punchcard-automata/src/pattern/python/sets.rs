//! `\d`, `\s` and `\w` as CPython has them for `str`.
//!
//! Characters that came after Unicode 14 are left out, as CPython 3.11 does not know them: to it they are no letters.

use super::super::class;
use super::super::unicode::table;
use crate::charset::CharSet;
use std::sync::LazyLock;

/// The characters that CPython knows.
static KNOWN: LazyLock<CharSet> = LazyLock::new(|| table("age=14.0").unwrap_or_default());

static DIGIT: LazyLock<CharSet> = LazyLock::new(|| known("Nd"));

/// The characters of a property that CPython knows.
pub(super) fn known(property: &str) -> CharSet {
    table(property).unwrap_or_default().intersection(&KNOWN)
}

/// Of all characters, those with a numeric value are letters or have a number category.
static WORD: LazyLock<CharSet> = LazyLock::new(|| known("L").union(&known("N")).union(&CharSet::single('_')));

/// `\d`: a decimal digit of any script.
pub(super) fn digit(ascii: bool) -> CharSet {
    if ascii { class::ascii_digit() } else { DIGIT.clone() }
}

/// `\w`: what `str.isalnum` says, and the underscore.
pub(super) fn word(ascii: bool) -> CharSet {
    if ascii { class::ascii_word() } else { WORD.clone() }
}

/// `\s`: what `str.isspace` says. Other than in ECMA-262, separators of ASCII are among it and the byte order mark is not.
pub(super) fn space(ascii: bool) -> CharSet {
    if ascii {
        return CharSet::new([(0x09, 0x0D), (0x20, 0x20)]);
    }
    CharSet::new([
        (0x09, 0x0D),
        (0x1C, 0x20),
        (0x85, 0x85),
        (0xA0, 0xA0),
        (0x1680, 0x1680),
        (0x2000, 0x200A),
        (0x2028, 0x2029),
        (0x202F, 0x202F),
        (0x205F, 0x205F),
        (0x3000, 0x3000),
    ])
}
