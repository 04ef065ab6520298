//! Sets of exponents, and which of them begin with given digits.
//!
//! No bound here is beyond the digits of a schema and of a text, so 64 bits hold them; exponents themselves may be longer,
//! and are then beyond all bounds.

/// Sorted spans of whole numbers, with both ends, that do not touch. `i64::MIN` and `i64::MAX` are no end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spans(pub Vec<(i64, i64)>);

impl Spans {
    pub fn all() -> Spans {
        Spans(vec![(i64::MIN, i64::MAX)])
    }

    /// Every number from zero.
    pub fn natural() -> Spans {
        Spans(vec![(0, i64::MAX)])
    }

    pub fn new(mut spans: Vec<(i64, i64)>) -> Spans {
        spans.retain(|&(low, high)| low <= high);
        spans.sort_unstable();
        let mut merged: Vec<(i64, i64)> = Vec::with_capacity(spans.len());
        for (low, high) in spans {
            match merged.last_mut() {
                Some(last) if low <= last.1.saturating_add(1) => last.1 = last.1.max(high),
                _ => merged.push((low, high)),
            }
        }
        Spans(merged)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn contains(&self, value: i64) -> bool {
        self.0.iter().any(|&(low, high)| low <= value && value <= high)
    }

    /// The magnitudes of those that may follow a plus or a minus.
    pub fn after_sign(&self, minus: bool) -> Spans {
        let turn = |at: i64| if minus { 0i64.saturating_sub(at) } else { at };
        let magnitudes = self.0.iter().map(|&(low, high)| {
            let (low, high) = (turn(low), turn(high));
            (low.min(high).max(0), low.max(high))
        });
        Spans::new(magnitudes.collect())
    }

    /// Of magnitudes, those that have `digits` at their front, and the digits as far as they matter for them. Any number
    /// of zeros may come before.
    pub fn after_digits(mut self, digits: Option<i64>) -> Option<(Spans, i64)> {
        let digits = match digits {
            Some(digits) if !self.0.iter().any(|&(low, high)| high == i64::MAX && low <= digits) => digits,
            // Beyond all bounds, also with more digits.
            _ => return (self.0.last()?.1 == i64::MAX).then(|| (Spans::natural(), 0)),
        };
        self.0.retain(|&(low, high)| {
            // With more digits it is `digits0 ..= digits9`, then `digits00 ..= digits99`, and so on.
            let (mut first, mut last) = (digits, digits);
            while digits > 0 && last < low {
                (first, last) = (first.saturating_mul(10), last.saturating_mul(10).saturating_add(9));
            }
            digits == 0 || first <= high
        });
        (!self.is_empty()).then_some((self, digits))
    }
}
