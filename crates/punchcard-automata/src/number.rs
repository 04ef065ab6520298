//! Numbers by value, as languages of their spellings.
//!
//! A *plain* number is `-?` digits, optionally a point and digits: no exponent, no leading zero, no trailing zero after
//! the point except in `.0`, and no `-0` (`-0.0` is one). Every bound, multiple and single value is the exact set of plain
//! numbers with that property, so Boolean operations on values are Boolean operations on these languages (complement is
//! taken within [`Languages::numbers`]). For all spellings see `number_machine`.

use crate::charset::CharSet;
use crate::decimal::Decimal;
use crate::languages::{Language, Languages, UNBOUNDED};
use num_bigint::BigUint;

impl Languages {
    fn digits(&mut self, lo: u8, hi: u8) -> Language {
        self.set(CharSet::new([(u32::from(lo), u32::from(hi))]))
    }

    fn any_digits(&mut self, min: usize, max: Option<usize>) -> Language {
        let digit = self.digits(b'0', b'9');
        self.repeat(digit, min as u32, max.map_or(UNBOUNDED, |m| m as u32))
    }

    /// Digits of a fraction that are not all zero, and do not end in zero.
    fn fraction_tail(&mut self) -> Language {
        let any = self.any_digits(0, None);
        let last = self.digits(b'1', b'9');
        self.concat(any, last)
    }

    /// Nothing, or a point and `0`, or digits that do not end in zero.
    fn fraction(&mut self) -> Language {
        let tail = self.fraction_tail();
        let zero = self.literal("0");
        let digits = self.union([tail, zero]);
        let point = self.literal(".");
        let some = self.concat(point, digits);
        self.optional(some)
    }

    fn with_minus(&mut self, magnitude: Language) -> Language {
        let minus = self.literal("-");
        self.concat(minus, magnitude)
    }

    /// Positive whole numbers of `min` to `max` digits.
    fn positive_integers(&mut self, min: usize, max: Option<usize>) -> Language {
        let first = self.digits(b'1', b'9');
        let rest = self.any_digits(min - 1, max.map(|m| m - 1));
        self.concat(first, rest)
    }

    /// All plain spellings of whole numbers that have no point.
    pub fn plain_integers(&mut self) -> Language {
        let positive = self.positive_integers(1, None);
        let negative = self.with_minus(positive);
        let zero = self.literal("0");
        self.union([zero, positive, negative])
    }

    /// All plain numbers.
    pub fn numbers(&mut self) -> Language {
        let zero = self.numbers_equal(&Decimal::ZERO);
        let positive = self.magnitude_above(&Decimal::ZERO);
        let negative = self.with_minus(positive);
        self.union([zero, positive, negative])
    }

    /// Every spelling of every number (RFC 8259, section 6).
    pub fn all_numbers(&mut self) -> Language {
        let zero = self.literal("0");
        let positive = self.positive_integers(1, None);
        let whole = self.union([zero, positive]);
        let digits = self.any_digits(1, None);
        let point = self.literal(".");
        let fraction = self.concat(point, digits);
        let fraction = self.optional(fraction);
        let e = self.texts(["e", "E"]);
        let sign = self.texts(["", "+", "-"]);
        let exponent = self.sequence([e, sign, digits]);
        let exponent = self.optional(exponent);
        let minus = self.literal("-");
        let minus = self.optional(minus);
        self.sequence([minus, whole, fraction, exponent])
    }

    /// Magnitudes above that of `bound`.
    fn magnitude_above(&mut self, bound: &Decimal) -> Language {
        let (whole, places) = bound.parts();
        let n = whole.len();
        let fraction = self.fraction();
        let longer = self.positive_integers(n + 1, None);
        let mut out = vec![self.concat(longer, fraction)];
        for (i, digit) in whole.bytes().enumerate() {
            if digit < b'9' {
                let same = self.literal(&whole[..i]);
                let more = self.digits(digit + 1, b'9');
                let rest = self.any_digits(n - i - 1, Some(n - i - 1));
                out.push(self.sequence([same, more, rest, fraction]));
            }
        }
        let tail = self.fraction_tail();
        let more_digits = self.optional(tail);
        for (j, digit) in places.bytes().enumerate() {
            if digit < b'9' {
                let same = self.literal(&format!("{whole}.{}", &places[..j]));
                let more = self.digits(digit + 1, b'9');
                out.push(self.sequence([same, more, more_digits]));
            }
        }
        let same = self.literal(&format!("{whole}.{places}"));
        out.push(self.concat(same, tail));
        self.union(out)
    }

    /// Magnitudes below that of `bound`.
    fn magnitude_below(&mut self, bound: &Decimal) -> Language {
        let (whole, places) = bound.parts();
        let n = whole.len();
        let fraction = self.fraction();
        let mut out = Vec::new();
        if n > 1 {
            let shorter = self.positive_integers(1, Some(n - 1));
            let zero = self.literal("0");
            let shorter = self.union([zero, shorter]);
            out.push(self.concat(shorter, fraction));
        }
        for (i, digit) in whole.bytes().enumerate() {
            let least = if i == 0 && n > 1 { b'1' } else { b'0' };
            if digit > least {
                let same = self.literal(&whole[..i]);
                let less = self.digits(least, digit - 1);
                let rest = self.any_digits(n - i - 1, Some(n - i - 1));
                out.push(self.sequence([same, less, rest, fraction]));
            }
        }
        if !places.is_empty() {
            out.push(self.texts([whole.as_str(), &format!("{whole}.0")]));
        }
        let tail = self.fraction_tail();
        let more_digits = self.optional(tail);
        // After a zero where the bound has more, anything may follow, but not nothing.
        for (j, digit) in places.bytes().enumerate() {
            let same = self.literal(&format!("{whole}.{}", &places[..j]));
            if digit > b'0' {
                let zero = self.literal("0");
                out.push(self.sequence([same, zero, tail]));
            }
            if digit > b'1' {
                let less = self.digits(b'1', digit - 1);
                out.push(self.sequence([same, less, more_digits]));
            }
            if j > 0 && places.as_bytes()[j - 1] != b'0' {
                out.push(same);
            }
        }
        self.union(out)
    }

    /// The plain spellings of `value`.
    pub fn numbers_equal(&mut self, value: &Decimal) -> Language {
        let text = value.to_string();
        let whole = self.literal(&text);
        if !value.is_integer() {
            return whole;
        }
        let zeros = self.literal(".0");
        let point = self.concat(whole, zeros);
        let mut out = vec![whole, point];
        if value.is_zero() {
            out.push(self.with_minus(point));
        }
        self.union(out)
    }

    /// Numbers above `bound`.
    pub fn numbers_above(&mut self, bound: &Decimal) -> Language {
        if !bound.is_negative() {
            return self.magnitude_above(bound);
        }
        let zero = self.numbers_equal(&Decimal::ZERO);
        let positive = self.magnitude_above(&Decimal::ZERO);
        let below = self.magnitude_below(bound);
        let below = self.and([below, positive]);
        let negative = self.with_minus(below);
        self.union([zero, positive, negative])
    }

    /// Numbers below `bound`.
    pub fn numbers_below(&mut self, bound: &Decimal) -> Language {
        if bound.is_negative() || bound.is_zero() {
            let above = self.magnitude_above(bound);
            return self.with_minus(above);
        }
        let below = self.magnitude_below(bound);
        let zero = self.numbers_equal(&Decimal::ZERO);
        let positive = self.magnitude_above(&Decimal::ZERO);
        let negative = self.with_minus(positive);
        self.union([below, negative, zero])
    }

    /// Plain whole numbers (no point) within inclusive bounds, as a plain expression. The bounds must be integers.
    pub fn integers_between(&mut self, low: Option<&Decimal>, high: Option<&Decimal>) -> Language {
        let mut out = Vec::new();
        if low.is_none_or(|l| l.is_negative()) {
            // The magnitudes of the negative numbers run the other way.
            let least = high.filter(|h| h.is_negative()).map_or_else(|| "1".to_string(), |h| h.parts().0);
            let most = low.map(|l| l.parts().0);
            let magnitudes = self.digits_between(&least, most.as_deref());
            out.push(self.with_minus(magnitudes));
        }
        if high.is_none_or(|h| !h.is_negative()) {
            let least = low.filter(|l| !l.is_negative()).map_or_else(|| "0".to_string(), |l| l.parts().0);
            let most = high.map(|h| h.parts().0);
            if least == "0" {
                out.push(self.literal("0"));
            }
            let least = if least == "0" { "1" } else { &least };
            out.push(self.digits_between(least, most.as_deref()));
        }
        self.union(out)
    }

    /// Positive whole numbers between two of them, both given by their digits.
    fn digits_between(&mut self, low: &str, high: Option<&str>) -> Language {
        let n = low.len();
        match high {
            None => {
                let same = self.at_least_digits(low.as_bytes());
                let longer = self.positive_integers(n + 1, None);
                self.union([same, longer])
            }
            Some(high) if (high.len(), high) < (n, low) => Language::EMPTY,
            Some(high) if high.len() == n => self.same_length_between(low.as_bytes(), high.as_bytes()),
            Some(high) => {
                let m = high.len();
                let same = self.at_least_digits(low.as_bytes());
                let first = format!("1{}", "0".repeat(m - 1));
                let last = self.same_length_between(first.as_bytes(), high.as_bytes());
                let between = if m - n > 1 { self.positive_integers(n + 1, Some(m - 1)) } else { Language::EMPTY };
                self.union([same, between, last])
            }
        }
    }

    fn same_length_between(&mut self, low: &[u8], high: &[u8]) -> Language {
        let shared = low.iter().zip(high).take_while(|(a, b)| a == b).count();
        let prefix = self.literal(&String::from_utf8_lossy(&low[..shared]));
        if shared == low.len() {
            return prefix;
        }
        let rest = low.len() - shared - 1;
        let (a, b) = (low[shared], high[shared]);
        let mut out = Vec::new();
        let first = self.digits(a, a);
        let above = self.at_least_digits(&low[shared + 1..]);
        out.push(self.concat(first, above));
        if b - a > 1 {
            let middle = self.digits(a + 1, b - 1);
            let any = self.any_digits(rest, Some(rest));
            out.push(self.concat(middle, any));
        }
        let last = self.digits(b, b);
        let below = self.at_most_digits(&high[shared + 1..]);
        out.push(self.concat(last, below));
        let any_of = self.union(out);
        self.concat(prefix, any_of)
    }

    /// As many digits as `low`, and not less.
    fn at_least_digits(&mut self, low: &[u8]) -> Language {
        self.edge_digits(low, true)
    }

    /// As many digits as `high`, and not more.
    fn at_most_digits(&mut self, high: &[u8]) -> Language {
        self.edge_digits(high, false)
    }

    fn edge_digits(&mut self, edge: &[u8], upwards: bool) -> Language {
        let mut out = vec![self.literal(&String::from_utf8_lossy(edge))];
        for (i, &digit) in edge.iter().enumerate() {
            let beyond = if upwards { (digit + 1, b'9') } else { (b'0', digit.wrapping_sub(1)) };
            if digit == if upwards { b'9' } else { b'0' } {
                continue;
            }
            let same = self.literal(&String::from_utf8_lossy(&edge[..i]));
            let step = self.digits(beyond.0, beyond.1);
            let rest = edge.len() - i - 1;
            let any = self.any_digits(rest, Some(rest));
            out.push(self.sequence([same, step, any]));
        }
        self.union(out)
    }

    /// Numbers that are whole multiples of `unit`, which must be above zero.
    pub fn multiples_of(&mut self, unit: &Decimal) -> Language {
        let places = unit.places();
        let residue = self.residue(unit.scaled(places), BigUint::ZERO, None, places);
        let minus = self.literal("-");
        let minus = self.optional(minus);
        let multiples = self.concat(minus, residue);
        let all = self.numbers();
        self.and([all, multiples])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn d(text: &str) -> Decimal {
        Decimal::parse(text).unwrap()
    }

    #[test]
    fn plain_spellings() {
        let mut l = Languages::new();
        let plain = l.numbers();
        for (text, is_in) in [
            ("0", true),
            ("-0", false),
            ("-0.0", true),
            ("1.0", true),
            ("1.00", false),
            ("1.50", false),
            ("1.5", true),
            ("-12.05", true),
            ("01", false),
            ("1.", false),
            (".5", false),
            ("1e5", false),
            ("-", false),
            ("", false),
            ("100", true),
            ("0.001", true),
            ("-0.5", true),
        ] {
            assert_eq!(l.matches(plain, text), is_in, "{text}");
        }
    }

    fn plain(text: String) -> Option<String> {
        let mut l = Languages::new();
        let all = l.numbers();
        l.matches(all, &text).then_some(text)
    }

    proptest! {
        #[test]
        fn bounds_agree_with_exact_order(bound in "-?(0|[1-9][0-9]{0,2})(\\.[0-9]{1,3})?", text in "-?(0|[1-9][0-9]{0,3})(\\.[0-9]{1,3})?") {
            let mut l = Languages::new();
            let (b, v) = (d(&bound), d(&text));
            let all = l.numbers();
            let is_in = l.matches(all, &text);
            let above = l.numbers_above(&b);
            let below = l.numbers_below(&b);
            let equal = l.numbers_equal(&b);
            prop_assert_eq!(l.matches(above, &text), is_in && v > b, "above");
            prop_assert_eq!(l.matches(below, &text), is_in && v < b, "below");
            prop_assert_eq!(l.matches(equal, &text), is_in && v == b, "equal");
        }

        #[test]
        fn integer_ranges(a in -1500i32..1500, b in -1500i32..1500, x in -2000i32..2000) {
            let mut l = Languages::new();
            let (low, high) = (d(&a.to_string()), d(&b.to_string()));
            let text = x.to_string();
            let between = l.integers_between(Some(&low), Some(&high));
            prop_assert_eq!(l.matches(between, &text), a <= x && x <= b);
            let from = l.integers_between(Some(&low), None);
            prop_assert_eq!(l.matches(from, &text), a <= x);
            let to = l.integers_between(None, Some(&high));
            prop_assert_eq!(l.matches(to, &text), x <= b);
        }

        #[test]
        fn multiples(unit in "([1-9][0-9]{0,2})|(0\\.[0-9]{0,2}[1-9])", text in "-?(0|[1-9][0-9]{0,3})(\\.[0-9]{1,3})?") {
            let mut l = Languages::new();
            if let Some(text) = plain(text) {
                let multiples = l.multiples_of(&d(&unit));
                prop_assert_eq!(l.matches(multiples, &text), d(&text).is_multiple_of(&d(&unit)));
            }
        }
    }
}
