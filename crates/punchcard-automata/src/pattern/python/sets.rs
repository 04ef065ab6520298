//! `\d`, `\s` and `\w` as CPython has them for `str`.

use super::super::class;
use super::super::unicode::table;
use crate::charset::CharSet;
use std::sync::LazyLock;

static DIGIT: LazyLock<CharSet> = LazyLock::new(|| table("Nd").unwrap_or_default());

/// Of all characters, those with a numeric value are letters or have a number category.
static WORD: LazyLock<CharSet> = LazyLock::new(|| {
    let of = |category| table(category).unwrap_or_default();
    of("L").union(&of("N")).union(&CharSet::single('_'))
});

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
