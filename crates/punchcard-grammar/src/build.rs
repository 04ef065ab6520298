//! Expressions put together in their normal form.
//!
//! A sequence holds no sequence and not exactly one part; a choice likewise. Whoever builds with these functions gets equal
//! expressions for texts that differ only in needless parentheses, and passes over them go no deeper than they must.

use crate::expr::Expr;
use punchcard_automata::CharSet;

/// The parts one after the other.
pub(crate) fn sequence(parts: impl IntoIterator<Item = Expr>) -> Expr {
    let mut flat = Vec::new();
    for part in parts {
        match part {
            Expr::Sequence(inner) => flat.extend(inner),
            part => flat.push(part),
        }
    }
    if flat.len() == 1 { flat.remove(0) } else { Expr::Sequence(flat) }
}

/// Any of the parts.
pub(crate) fn choice(parts: impl IntoIterator<Item = Expr>) -> Expr {
    let mut flat = Vec::new();
    for part in parts {
        match part {
            Expr::Choice(inner) => flat.extend(inner),
            part => flat.push(part),
        }
    }
    match flat.len() {
        0 => Expr::Nothing,
        1 => flat.remove(0),
        _ => Expr::Choice(flat),
    }
}

/// This text; the empty one is the empty sequence.
pub(crate) fn text(text: String) -> Expr {
    if text.is_empty() { Expr::EMPTY } else { Expr::Text(text) }
}

/// One character of a set.
pub(crate) fn chars(set: &CharSet) -> Expr {
    if set.is_empty() { Expr::Nothing } else { Expr::Chars(set.ranges().to_vec()) }
}

/// `body` so many times.
pub(crate) fn repeat(body: Expr, min: u32, max: Option<u32>) -> Expr {
    if max.is_some_and(|max| max < min) { Expr::Nothing } else { Expr::Repeat { body: Box::new(body), min, max } }
}
