//! `ipv4` (RFC 2673, section 3.2: four decimal octets) and `ipv6` (RFC 4291, section 2.2), exactly.

use crate::languages::{Language, Languages};

/// `ipv4`: octets from 0 to 255 without leading zeros.
pub(super) fn ipv4(l: &mut Languages) -> Language {
    let (octet, dot) = (octet(l), l.literal("."));
    l.sequence([octet, dot, octet, dot, octet, dot, octet])
}

fn octet(l: &mut Languages) -> Language {
    let digit = l.digit();
    let (first, one, two, five) = (l.one_of("1-9"), l.literal("1"), l.literal("2"), l.literal("25"));
    let (low, lower) = (l.one_of("0-4"), l.one_of("0-5"));
    let short = l.concat(first, digit);
    let hundreds = l.sequence([one, digit, digit]);
    let two_hundreds = l.sequence([two, low, digit]);
    let top = l.concat(five, lower);
    l.union([digit, short, hundreds, two_hundreds, top])
}

/// `ipv6`: eight groups, of which one run of at least one may be written `::`, and the last two as an IPv4 address.
pub(super) fn ipv6(l: &mut Languages) -> Language {
    ipv6_eliding(l, 1)
}

/// As `ipv6`, where `::` stands for at least so many groups (in a mail address, for two).
pub(super) fn ipv6_eliding(l: &mut Languages, least: usize) -> Language {
    let hex = l.hex_digit();
    let group = l.repeat(hex, 1, 4);
    let (colon, ipv4) = (l.literal(":"), ipv4(l));

    // `some[n]`: one to n groups; `tail[n]`: at most n groups, after the `::`.
    let (mut some, mut tail) = (vec![Language::EMPTY], vec![Language::EPSILON]);
    for n in 1..8 {
        let more = l.concat(colon, some[n - 1]);
        let more = l.optional(more);
        let grouped = l.concat(group, more);
        let groups = if n >= 2 { l.union([grouped, ipv4]) } else { grouped };
        some.push(groups);
        let all = l.optional(groups);
        tail.push(all);
    }
    // `after`: what may follow the first `groups` groups, from the last backwards.
    let mut after = Language::EPSILON;
    for groups in (1..8usize).rev() {
        let next = l.concat(group, after);
        let next = if groups == 6 { l.union([next, ipv4]) } else { next };
        let rest = match (8usize - groups).checked_sub(least) {
            Some(most) => {
                let elided = l.concat(colon, tail[most]);
                l.union([next, elided])
            }
            None => next,
        };
        after = l.concat(colon, rest);
    }
    let full = l.concat(group, after);
    let (elided, rest) = (l.literal("::"), tail[8 - least]);
    let elided = l.concat(elided, rest);
    l.union([full, elided])
}
