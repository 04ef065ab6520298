//! `date`, `time` and `date-time`: RFC 3339, section 5.6, exactly.
//!
//! Days follow their month and leap years, in the proleptic Gregorian calendar from year 0000 to 9999. A leap second is
//! 23:59:60 in UTC, so its local time and its offset must fit each other; in a `date-time` it is moreover the last
//! second of a month in UTC, the only place where one may be inserted.

use super::parts::chars;
use crate::alphabet::Alphabet;
use crate::charset::CharSet;
use crate::languages::{Language, Languages};
use crate::machine::Machine;
use std::sync::{Arc, LazyLock};

/// `date`: a full-date.
pub(super) fn date(l: &mut Languages) -> Language {
    let year = year(l, Year::Any);
    let leap = year_of(l, Year::Leap, "-02-29");
    let long = ["01", "03", "05", "07", "08", "10", "12"];
    let days = [(l.texts(long), 31), (l.texts(["04", "06", "09", "11"]), 30), (l.texts(["02"]), 28)];
    let hyphen = l.literal("-");
    let months: Vec<Language> = days
        .into_iter()
        .map(|(month, last)| {
            let day = l.two_digits(1, last);
            l.sequence([month, hyphen, day])
        })
        .collect();
    let month = l.union(months);
    let plain = l.sequence([year, hyphen, month]);
    l.union([plain, leap])
}

/// `time`: a full-time.
pub(super) fn time(l: &mut Languages) -> Language {
    let plain = plain_time(l);
    let leap = [Offset::ZeroOrWest, Offset::East].map(|offset| l.machine(Arc::new(LeapSecond(offset))));
    l.union([plain, leap[0], leap[1]])
}

/// `date-time`: a full-date, `T` and a full-time.
pub(super) fn date_time(l: &mut Languages) -> Language {
    let (date, time, t) = (date(l), plain_time(l), l.one_of("Tt"));
    let plain = l.sequence([date, t, time]);
    // East of Greenwich the last minute of a UTC month is on the first of the next month.
    let (first, last) = (first_days(l), last_days(l));
    let west = l.machine(Arc::new(LeapSecond(Offset::ZeroOrWest)));
    let east = l.machine(Arc::new(LeapSecond(Offset::East)));
    let west = l.sequence([last, t, west]);
    let east = l.sequence([first, t, east]);
    l.union([plain, west, east])
}

enum Year {
    Any,
    Leap,
    Common,
}

/// Four digits: a multiple of 400, or of 4 and not of 100, is a leap year.
fn year(l: &mut Languages, kind: Year) -> Language {
    let two = |l: &mut Languages, keep: fn(u32) -> bool| {
        let texts: Vec<String> = (0..100).filter(|&n| keep(n)).map(|n| format!("{n:02}")).collect();
        l.texts(texts.iter().map(String::as_str))
    };
    let (any, zero) = (l.two_digits(0, 99), l.literal("00"));
    let (low, high) = match kind {
        Year::Any => return l.concat(any, any),
        Year::Leap => (two(l, |n| n % 4 == 0 && n != 0), two(l, |n| n % 4 == 0)),
        Year::Common => (two(l, |n| n % 4 != 0), two(l, |n| n % 4 != 0)),
    };
    let within = l.concat(any, low);
    let centuries = l.concat(high, zero);
    l.union([within, centuries])
}

fn year_of(l: &mut Languages, kind: Year, rest: &str) -> Language {
    let (year, rest) = (year(l, kind), l.literal(rest));
    l.concat(year, rest)
}

fn first_days(l: &mut Languages) -> Language {
    let (year, hyphen, month, first) = (year(l, Year::Any), l.literal("-"), l.two_digits(1, 12), l.literal("-01"));
    l.sequence([year, hyphen, month, first])
}

fn last_days(l: &mut Languages) -> Language {
    let year = year(l, Year::Any);
    let ends = ["01-31", "03-31", "04-30", "05-31", "06-30", "07-31", "08-31", "09-30", "10-31", "11-30", "12-31"];
    let (hyphen, ends) = (l.literal("-"), l.texts(ends));
    let usual = l.sequence([year, hyphen, ends]);
    let leap = year_of(l, Year::Leap, "-02-29");
    let common = year_of(l, Year::Common, "-02-28");
    l.union([usual, leap, common])
}

/// A full-time without leap second.
fn plain_time(l: &mut Languages) -> Language {
    let (hour, minute, colon) = (l.two_digits(0, 23), l.two_digits(0, 59), l.literal(":"));
    let (point, digits) = (l.literal("."), l.some_digits());
    let fraction = l.concat(point, digits);
    let fraction = l.optional(fraction);
    let (sign, zulu) = (l.one_of("+-"), l.one_of("Zz"));
    let numeric = l.sequence([sign, hour, colon, minute]);
    let offset = l.union([zulu, numeric]);
    l.sequence([hour, colon, minute, colon, minute, fraction, offset])
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Offset {
    ZeroOrWest,
    East,
}

/// Times with second 60 whose offset takes them to 23:59 in UTC.
///
/// As an expression this is a union over all 1440 minutes of a day. Here the state is the text itself up to the second,
/// and from the sign on the one text that the offset may still be.
#[derive(Debug)]
struct LeapSecond(Offset);

/// The part of the text: up to `hh:mm:60`, after a point, in the fraction, and the rest of the offset.
const START: u8 = 0;
const POINT: u8 = 1;
const FRACTION: u8 = 2;
const REST: u8 = 3;

impl LeapSecond {
    /// The offset's `hh:mm` after `sign` that takes the local time to 23:59, if this machine wants it.
    fn offset(&self, local: &[u8], sign: char) -> Option<String> {
        let number = |at: usize| 10 * u32::from(local[at] - b'0') + u32::from(local[at + 1] - b'0');
        let local = 60 * number(0) + number(3);
        let minutes = if sign == '+' { (local + 1) % 1440 } else { 1439 - local };
        let east = sign == '+' && minutes > 0;
        (east == (self.0 == Offset::East)).then(|| format!("{:02}:{:02}", minutes / 60, minutes % 60))
    }

    /// Whether some offset of this machine's kind fits the local time (only 23:59 is at offset zero alone).
    fn fits(&self, local: &[u8]) -> bool {
        local.len() < 5 || ['+', '-'].into_iter().any(|sign| self.offset(local, sign).is_some())
    }
}

impl Machine for LeapSecond {
    fn name(&self) -> &'static str {
        match self.0 {
            Offset::ZeroOrWest => "leap second west of Greenwich",
            Offset::East => "leap second east of Greenwich",
        }
    }

    fn alphabet(&self, _state: &[u8]) -> &Alphabet {
        static ALPHABET: LazyLock<Alphabet> = LazyLock::new(|| {
            let digits = ('0'..='9').map(CharSet::single);
            let marks = [chars(":"), chars("."), chars("+"), chars("-"), chars("Zz")];
            Alphabet::new(&digits.chain(marks).collect::<Vec<_>>())
        });
        &ALPHABET
    }

    fn start(&self) -> Box<[u8]> {
        [START].into()
    }

    fn step(&self, state: &[u8], c: char) -> Option<Box<[u8]>> {
        let (part, text) = (state[0], &state[1..]);
        let with = |part: u8, text: &[u8]| Some([&[part], text].concat().into_boxed_slice());
        match part {
            START if text.len() < 8 => {
                let fits = match text.len() {
                    0 => ('0'..='2').contains(&c),
                    1 => c.is_ascii_digit() && (text[0] < b'2' || c < '4'),
                    3 => ('0'..='5').contains(&c),
                    4 => c.is_ascii_digit(),
                    6 => c == '6',
                    7 => c == '0',
                    _ => c == ':',
                };
                let next = [text, &[c as u8]].concat();
                if fits && self.fits(&next) { with(START, &next) } else { None }
            }
            REST => (text.first().copied().map(char::from) == Some(c)).then(|| [&[REST], &text[1..]].concat().into()),
            _ => match c {
                '0'..='9' if part != START => with(FRACTION, text),
                '.' if part == START => with(POINT, text),
                'Z' | 'z' if part != POINT && text.starts_with(b"23:59") && self.0 == Offset::ZeroOrWest => {
                    with(REST, b"")
                }
                '+' | '-' if part != POINT => with(REST, self.offset(text, c)?.as_bytes()),
                _ => None,
            },
        }
    }

    fn accepts(&self, state: &[u8]) -> bool {
        state == [REST]
    }

    fn least(&self, state: &[u8]) -> u32 {
        let (part, text) = (state[0], &state[1..]);
        let zulu = self.0 == Offset::ZeroOrWest && b"23:59".starts_with(&text[..text.len().min(5)]);
        let offset = if zulu { "Z".len() } else { "+hh:mm".len() };
        let least = match part {
            START => "hh:mm:60".len() - text.len() + offset,
            POINT => 1 + offset,
            FRACTION => offset,
            _ => text.len(),
        };
        least as u32
    }
}
