//! `json-pointer` (RFC 6901, the string representation) and `relative-json-pointer`.
//!
//! Of a relative pointer the parts that all its drafts share: a number of levels up, then `#` or a pointer. The index
//! manipulation of the later drafts (`1-2/a`) is not admitted, as no draft 7 reader knows it.

use crate::charset::CharSet;
use crate::languages::{Language, Languages};

pub(super) fn json_pointer(l: &mut Languages) -> Language {
    let plain = l.set(CharSet::new([('/' as u32, '/' as u32), ('~' as u32, '~' as u32)]).complement());
    let escaped = l.texts(["~0", "~1"]);
    let character = l.union([plain, escaped]);
    let (slash, token) = (l.literal("/"), l.star(character));
    let part = l.concat(slash, token);
    l.star(part)
}

pub(super) fn relative_json_pointer(l: &mut Languages) -> Language {
    let (zero, first, digit) = (l.literal("0"), l.one_of("1-9"), l.digit());
    let more = l.star(digit);
    let positive = l.concat(first, more);
    let levels = l.union([zero, positive]);
    let (hash, pointer) = (l.literal("#"), json_pointer(l));
    let rest = l.union([hash, pointer]);
    l.concat(levels, rest)
}
