//! `uri-template`: RFC 6570, section 2, to level 4.
//!
//! The operators that the RFC keeps for the future (`= , ! @ |`) have no meaning yet and are not admitted. A literal may
//! hold an apostrophe (erratum 6937).

use super::parts::chars;
use super::uri::{iprivate, percent_encoded, ucschar};
use crate::languages::{Language, Languages};

pub(super) fn uri_template(l: &mut Languages) -> Language {
    let encoded = percent_encoded(l);
    let plain = chars("!#$&'()*+,-./0-9:;=?@A-Z[]_a-z~").union(&ucschar()).union(&iprivate());
    let plain = l.set(plain);
    let expression = expression(l, encoded);
    let part = l.union([plain, encoded, expression]);
    l.star(part)
}

fn expression(l: &mut Languages, encoded: Language) -> Language {
    let character = l.one_of("A-Za-z0-9_");
    let character = l.union([character, encoded]);
    let (dot, comma) = (l.literal("."), l.literal(","));
    let word = l.plus(character);
    let name = l.separated(word, dot);

    let (first, digit, colon) = (l.one_of("1-9"), l.digit(), l.literal(":"));
    let digits = l.repeat(digit, 0, 3);
    let prefix = l.sequence([colon, first, digits]);
    let explode = l.literal("*");
    let modifier = l.union([prefix, explode, Language::EPSILON]);
    let variable = l.concat(name, modifier);

    let operator = l.one_of("+#./;?&");
    let operator = l.optional(operator);
    let (open, close, list) = (l.literal("{"), l.literal("}"), l.separated(variable, comma));
    l.sequence([open, operator, list, close])
}
