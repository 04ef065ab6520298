//! `uri`, `uri-reference` (RFC 3986, appendix A) and `iri`, `iri-reference` (RFC 3987, section 2.2), exactly.
//!
//! Both have one grammar: an IRI has more characters in the same places. What single schemes ask beyond it (that `http`
//! has a host) and the advice on the direction of scripts in IRIs (RFC 3987, section 4.2) are not part of either.

use super::ip;
use super::parts::chars;
use crate::charset::CharSet;
use crate::languages::{Language, Languages};

/// `uri` or `iri`: with a scheme.
pub(super) fn absolute(l: &mut Languages, international: bool) -> Language {
    Grammar::new(l, international).uri
}

/// `uri-reference` or `iri-reference`: with a scheme, or relative to one.
pub(super) fn reference(l: &mut Languages, international: bool) -> Language {
    let grammar = Grammar::new(l, international);
    l.union([grammar.uri, grammar.relative])
}

/// The characters beyond ASCII that IRIs and URI templates admit (`ucschar`).
pub(super) fn ucschar() -> CharSet {
    let planes = (1..=14).map(|plane| (if plane == 14 { 0xE1000 } else { plane << 16 }, (plane << 16) + 0xFFFD));
    [(0xA0, 0xD7FF), (0xF900, 0xFDCF), (0xFDF0, 0xFFEF)].into_iter().chain(planes).collect()
}

/// The private characters, which IRIs admit in queries only (`iprivate`).
pub(super) fn iprivate() -> CharSet {
    CharSet::new([(0xE000, 0xF8FF), (0xF0000, 0xFFFFD), (0x10_0000, 0x10_FFFD)])
}

/// A percent sign and two hexadecimal digits.
pub(super) fn percent_encoded(l: &mut Languages) -> Language {
    let (percent, hex) = (l.literal("%"), l.hex_digit());
    l.sequence([percent, hex, hex])
}

struct Grammar {
    uri: Language,
    relative: Language,
}

impl Grammar {
    fn new(l: &mut Languages, international: bool) -> Grammar {
        let mut unreserved = chars("A-Za-z0-9._~-");
        let mut private = CharSet::default();
        if international {
            unreserved = unreserved.union(&ucschar());
            private = iprivate();
        }
        let usual = unreserved.union(&chars("!$&'()*+,;="));
        let encoded = percent_encoded(l);
        let some = |l: &mut Languages, more: &CharSet| {
            let set = l.set(usual.union(more));
            l.union([set, encoded])
        };

        let path_char = some(l, &chars(":@"));
        let no_colon = some(l, &chars("@"));
        let user_char = some(l, &chars(":"));
        let name_char = some(l, &CharSet::default());
        let fragment_char = some(l, &chars(":@/?"));
        let query_char = some(l, &chars(":@/?").union(&private));

        let slash = l.literal("/");
        let segment = l.star(path_char);
        let rooted = l.concat(slash, segment);
        let segments = l.star(rooted);
        let first = l.plus(path_char);
        let first_without_colon = l.plus(no_colon);
        let rootless = l.concat(first, segments);
        let no_scheme = l.concat(first_without_colon, segments);
        let below_root = l.optional(rootless);
        let absolute = l.concat(slash, below_root);

        let authority = authority(l, user_char, name_char, &unreserved);
        let slashes = l.literal("//");
        let network = l.sequence([slashes, authority, segments]);
        let hierarchy = l.union([network, absolute, rootless, Language::EPSILON]);
        let relative = l.union([network, absolute, no_scheme, Language::EPSILON]);

        let after = |l: &mut Languages, mark: &str, body: Language| {
            let (mark, body) = (l.literal(mark), l.star(body));
            let part = l.concat(mark, body);
            l.optional(part)
        };
        let query = after(l, "?", query_char);
        let fragment = after(l, "#", fragment_char);

        let (letter, more) = (l.one_of("A-Za-z"), l.one_of("A-Za-z0-9+.-"));
        let (more, colon) = (l.star(more), l.literal(":"));
        Grammar {
            uri: l.sequence([letter, more, colon, hierarchy, query, fragment]),
            relative: l.sequence([relative, query, fragment]),
        }
    }
}

/// `[userinfo@]host[:port]`. An IPv4 address is a registered name by its looks.
fn authority(l: &mut Languages, user_char: Language, name_char: Language, unreserved: &CharSet) -> Language {
    let (at, user) = (l.literal("@"), l.star(user_char));
    let user = l.concat(user, at);
    let user = l.optional(user);

    let ascii = unreserved.intersection(&CharSet::new([(0, 0x7F)]));
    let (v, hex, dot) = (l.one_of("Vv"), l.hex_digit(), l.literal("."));
    let version = l.plus(hex);
    let address = l.set(ascii.union(&chars("!$&'()*+,;=:")));
    let address = l.plus(address);
    let future = l.sequence([v, version, dot, address]);
    let ipv6 = ip::ipv6(l);
    let (open, close, inside) = (l.literal("["), l.literal("]"), l.union([ipv6, future]));
    let literal = l.sequence([open, inside, close]);
    let name = l.star(name_char);
    let host = l.union([literal, name]);

    let (colon, digit) = (l.literal(":"), l.digit());
    let port = l.star(digit);
    let port = l.concat(colon, port);
    let port = l.optional(port);
    l.sequence([user, host, port])
}
