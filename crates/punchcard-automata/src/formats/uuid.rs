//! `uuid`: RFC 4122 (now RFC 9562), section 3: 8-4-4-4-12 hexadecimal digits of either case, any version and variant.

use crate::languages::{Language, Languages};

pub(super) fn uuid(l: &mut Languages) -> Language {
    let (hex, hyphen) = (l.hex_digit(), l.literal("-"));
    let parts: Vec<Language> = [8, 4, 4, 4, 12].iter().map(|&n| l.repeat(hex, n, n)).collect();
    l.sequence([parts[0], hyphen, parts[1], hyphen, parts[2], hyphen, parts[3], hyphen, parts[4]])
}
