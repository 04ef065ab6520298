//! `email` (RFC 5321, section 4.1.2: `Mailbox`) and `idn-email` (RFC 6531, section 3.3).
//!
//! A local part of at most 64 octets, as words with dots or as a quoted string, and a domain as in [`super::hostname`] or
//! an address in brackets; 254 characters in all (section 4.5.3.1.3, less the angle brackets). Of address literals, IPv4
//! and IPv6 are the ones that exist; others would need a tag that was never registered.
//!
//! The local part is written out as one expression for every number of octets that are left, which is a few hundred
//! small ones. That costs less than an intersection with a length, and each may say how long the domain may get.

use super::hostname::mail_domain;
use super::ip;
use super::parts::chars;
use crate::charset::{CharSet, MAX};
use crate::languages::{Language, Languages};

const MAX_LOCAL: usize = 64;
const MAX_ADDRESS: u32 = 254;

/// `email` or `idn-email`.
pub(super) fn email(l: &mut Languages, international: bool) -> Language {
    let plain = by_octets(l, chars("A-Za-z0-9!#$%&'*+/=?^_`{|}~-"), international);
    let quoted = by_octets(l, chars(" -!#-[]-~"), international);
    let escaped = l.one_of(" -~");
    let (quote, backslash, dot) = (l.literal("\""), l.literal("\\"), l.literal("."));
    let literal = address_literal(l);

    // Index: how many octets are left. `word`: a word must come; `more`: one goes on; `text`: inside of the quotes.
    let mut word = vec![Language::EMPTY; MAX_LOCAL + 1];
    let mut more = vec![Language::EMPTY; MAX_LOCAL + 1];
    let mut text = vec![Language::EMPTY; MAX_LOCAL + 1];
    for left in 0..=MAX_LOCAL {
        let at = at_domain(l, literal, international, (MAX_LOCAL - left) as u32);
        let before = |rest: &[Language], octets: usize| left.checked_sub(octets).map_or(Language::EMPTY, |n| rest[n]);
        let mut next = Vec::new();
        let mut inside = Vec::new();
        for (octets, (&plain, &quoted)) in (1..).zip(plain.iter().zip(&quoted)) {
            next.push(l.concat(plain, before(&more, octets)));
            inside.push(l.concat(quoted, before(&text, octets)));
        }
        word[left] = l.union(next);
        let dotted = l.concat(dot, before(&word, 1));
        more[left] = l.union([word[left], dotted, at]);
        inside.push(l.sequence([backslash, escaped, before(&text, 2)]));
        if let Some(left) = left.checked_sub(1) {
            let at = at_domain(l, literal, international, (MAX_LOCAL - left) as u32);
            inside.push(l.concat(quote, at));
        }
        text[left] = l.union(inside);
    }
    let quoted = l.concat(quote, text[MAX_LOCAL - 1]);
    l.union([word[MAX_LOCAL], quoted])
}

/// One character of a set, by how many octets it takes in UTF-8; beyond ASCII any, if international.
fn by_octets(l: &mut Languages, ascii: CharSet, international: bool) -> Vec<Language> {
    let wide = [(0x80, 0x7FF), (0x800, 0xFFFF), (0x1_0000, MAX)];
    let wide = if international { &wide[..] } else { &[] };
    let mut sets = vec![l.set(ascii)];
    sets.extend(wide.iter().map(|&range| l.set(CharSet::new([range]))));
    sets
}

/// What follows a local part of so many octets.
fn at_domain(l: &mut Languages, literal: Language, international: bool, used: u32) -> Language {
    let name = mail_domain(l, international, MAX_ADDRESS - 1 - used);
    let (at, domain) = (l.literal("@"), l.union([name, literal]));
    l.concat(at, domain)
}

fn address_literal(l: &mut Languages) -> Language {
    let (ipv4, ipv6) = (ip::ipv4(l), ip::ipv6_eliding(l, 2));
    let tag: Vec<Language> = ["Ii", "Pp", "Vv"].iter().map(|set| l.one_of(set)).collect();
    let six = l.literal("6:");
    let ipv6 = l.sequence([tag[0], tag[1], tag[2], six, ipv6]);
    let (open, close, address) = (l.literal("["), l.literal("]"), l.union([ipv4, ipv6]));
    l.sequence([open, address, close])
}
