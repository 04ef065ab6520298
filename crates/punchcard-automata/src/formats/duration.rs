//! `duration`: ISO 8601 as in RFC 3339, appendix A, exactly.
//!
//! Whole numbers only, units from large to small without a gap (`P1Y2D` is none), weeks by themselves.

use crate::languages::{Language, Languages};

pub(super) fn duration(l: &mut Languages) -> Language {
    let second = component(l, "S", None);
    let minute = component(l, "M", Some(second));
    let hour = component(l, "H", Some(minute));
    let (t, clock) = (l.literal("T"), l.union([hour, minute, second]));
    let time = l.concat(t, clock);

    let day = component(l, "D", None);
    let month = component(l, "M", Some(day));
    let year = component(l, "Y", Some(month));
    let (calendar, clock) = (l.union([year, month, day]), l.optional(time));
    let date = l.concat(calendar, clock);

    let week = component(l, "W", None);
    let (p, rest) = (l.literal("P"), l.union([date, time, week]));
    l.concat(p, rest)
}

/// Digits, a unit, and perhaps the next smaller unit.
fn component(l: &mut Languages, unit: &str, smaller: Option<Language>) -> Language {
    let (digits, unit) = (l.some_digits(), l.literal(unit));
    let smaller = match smaller {
        Some(smaller) => l.optional(smaller),
        None => Language::EPSILON,
    };
    l.sequence([digits, unit, smaller])
}
