//! Exact decimal numbers, as JSON spells them: no float ever comes between a schema's bound and its digits.

use num_bigint::{BigInt, BigUint, Sign};
use num_integer::Integer;
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

/// The largest power of ten that a number in a schema may have; beyond it, its digits would not fit in memory.
pub const MAX_EXPONENT: i64 = 10_000;

/// `± digits · 10^exponent`. Invariant: no leading and no trailing zero digit; zero is no digits, positive, exponent 0.
/// So equal values are equal structs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Decimal {
    negative: bool,
    digits: Vec<u8>,
    exponent: i64,
}

impl Decimal {
    /// Zero.
    pub const ZERO: Decimal = Decimal { negative: false, digits: Vec::new(), exponent: 0 };

    /// Reads a JSON number. `None` if the text is no number, or its magnitude is beyond `MAX_EXPONENT`.
    pub fn parse(text: &str) -> Option<Decimal> {
        let (negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
            Some((m, e)) => (m, Some(e)),
            None => (rest, None),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        if whole.is_empty() || !whole.bytes().chain(fraction.bytes()).all(|b| b.is_ascii_digit()) {
            return None;
        }
        let digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).map(|b| b - b'0').collect();
        if digits.iter().all(|&d| d == 0) {
            return Some(Decimal::new(false, Vec::new(), 0));
        }
        let exponent = match exponent {
            Some(e) => {
                let digits = e.strip_prefix(['+', '-']).unwrap_or(e);
                if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
                    return None;
                }
                // More than 18 digits is beyond any limit, whatever they are.
                let significant = digits.trim_start_matches('0');
                let value: i64 = if significant.is_empty() {
                    0
                } else {
                    significant.get(..19).map_or_else(|| significant.parse().ok(), |_| None)?
                };
                if e.starts_with('-') { -value } else { value }
            }
            None => 0,
        };
        let value = Decimal::new(negative, digits, exponent.checked_sub(fraction.len() as i64)?);
        let top = value.exponent.checked_add(value.digits.len() as i64)?;
        (value.exponent >= -MAX_EXPONENT && top <= MAX_EXPONENT).then_some(value)
    }

    /// Normalises.
    pub fn new(negative: bool, mut digits: Vec<u8>, mut exponent: i64) -> Decimal {
        while digits.last() == Some(&0) {
            digits.pop();
            exponent += 1;
        }
        let zeros = digits.iter().take_while(|&&d| d == 0).count();
        digits.drain(..zeros);
        let zero = digits.is_empty();
        Decimal { negative: negative && !zero, digits, exponent: if zero { 0 } else { exponent } }
    }

    /// Whether the value is below zero.
    pub fn is_negative(&self) -> bool {
        self.negative
    }

    /// Whether the value is zero.
    pub fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    /// The digits of the magnitude, from the first to the last that is not zero.
    pub fn digits(&self) -> &[u8] {
        &self.digits
    }

    /// The power of ten of the last digit.
    pub fn exponent(&self) -> i64 {
        self.exponent
    }

    /// The magnitude is below this power of ten, and not below the one before (of zero: 0).
    pub fn top(&self) -> i64 {
        self.exponent + self.digits.len() as i64
    }

    /// The value without its sign.
    pub fn magnitude(&self) -> Decimal {
        Decimal { negative: false, ..self.clone() }
    }

    /// `10^exponent`.
    pub fn power_of_ten(exponent: i64) -> Decimal {
        Decimal { negative: false, digits: vec![1], exponent }
    }

    /// Whether the magnitude is a power of ten.
    pub fn is_power_of_ten(&self) -> bool {
        self.digits == [1]
    }

    /// The value with the other sign.
    pub fn negated(&self) -> Decimal {
        Decimal { negative: !self.negative && !self.is_zero(), ..self.clone() }
    }

    /// The greatest number of at most 17 digits that, read as a double, is below this one read as a double. `None` where
    /// doubles end, and at zero.
    pub fn below_as_double(&self) -> Option<Decimal> {
        self.beside_as_double(f64::next_down).into_iter().max()
    }

    /// The least such number above this one.
    pub fn above_as_double(&self) -> Option<Decimal> {
        self.beside_as_double(f64::next_up).into_iter().min()
    }

    fn beside_as_double(&self, next: fn(f64) -> f64) -> Vec<Decimal> {
        let digits: String = self.digits.iter().map(|d| (b'0' + d) as char).collect();
        let sign = if self.negative { "-" } else { "" };
        let text = format!("{sign}0{digits}e{}", self.exponent);
        let Some(double) = text.parse().ok().filter(|&double: &f64| double != 0.0 && double.is_finite()) else {
            return Vec::new();
        };
        // The shortest spelling and the closest one; either may be farther away.
        let next = next(double);
        [format!("{next:e}"), format!("{next:.16e}")].iter().filter_map(|text| Decimal::parse(text)).collect()
    }

    /// Whether the value is a whole number.
    pub fn is_integer(&self) -> bool {
        self.exponent >= 0
    }

    /// The magnitude as digits before the point (at least one) and after it (no trailing zero).
    pub fn parts(&self) -> (String, String) {
        let mut text: String = self.digits.iter().map(|d| (b'0' + d) as char).collect();
        if self.exponent >= 0 {
            text.extend(std::iter::repeat_n('0', self.exponent as usize));
            return (if text.is_empty() { "0".into() } else { text }, String::new());
        }
        let places = (-self.exponent) as usize;
        if text.len() <= places {
            text.insert_str(0, &"0".repeat(places + 1 - text.len()));
        }
        let fraction = text.split_off(text.len() - places);
        (text, fraction)
    }

    /// Number of decimal places (0 for whole numbers).
    pub fn places(&self) -> u32 {
        self.exponent.min(0).unsigned_abs() as u32
    }

    /// The magnitude times `10^places`, as a whole number; `places` must be at least `self.places()`.
    pub fn scaled(&self, places: u32) -> BigUint {
        let digits = BigUint::from_radix_be(&self.digits, 10).unwrap_or_default();
        digits * BigUint::from(10u32).pow((self.exponent + i64::from(places)).max(0) as u32)
    }

    /// Whether this is a whole multiple of `other` (zero is a multiple of everything).
    pub fn is_multiple_of(&self, other: &Decimal) -> bool {
        if self.is_zero() || other.is_zero() {
            return self.is_zero();
        }
        let places = self.places().max(other.places());
        self.scaled(places) % other.scaled(places) == BigUint::ZERO
    }

    /// The least common multiple of two numbers above zero.
    pub fn common_multiple(&self, other: &Decimal) -> Decimal {
        let places = self.places().max(other.places());
        let both = self.scaled(places).lcm(&other.scaled(places));
        Decimal::new(false, both.to_radix_be(10), -i64::from(places))
    }

    /// The largest whole number that is not above this.
    pub fn floor(&self) -> Decimal {
        if self.is_integer() {
            return self.clone();
        }
        let toward_zero = self.truncated();
        if self.negative { toward_zero.minus_one() } else { toward_zero }
    }

    /// The smallest whole number that is not below this.
    pub fn ceiling(&self) -> Decimal {
        if self.is_integer() {
            return self.clone();
        }
        let toward_zero = self.truncated();
        if self.negative { toward_zero } else { toward_zero.plus_one() }
    }

    fn truncated(&self) -> Decimal {
        let digits = self.parts().0.bytes().map(|b| b - b'0').collect();
        Decimal::new(self.negative, digits, 0)
    }

    /// The next whole number up; this must be a whole number.
    pub fn plus_one(&self) -> Decimal {
        Decimal::from_integer(self.to_integer() + 1)
    }

    /// The next whole number down; this must be a whole number.
    pub fn minus_one(&self) -> Decimal {
        Decimal::from_integer(self.to_integer() - 1)
    }

    fn to_integer(&self) -> BigInt {
        let sign = if self.negative { Sign::Minus } else { Sign::Plus };
        BigInt::from_biguint(sign, self.scaled(0))
    }

    fn from_integer(value: BigInt) -> Decimal {
        let (sign, digits) = value.to_radix_be(10);
        Decimal::new(sign == Sign::Minus, digits, 0)
    }

    fn cmp_magnitude(&self, other: &Decimal) -> Ordering {
        let top = |d: &Decimal| (!d.is_zero()).then(|| d.top());
        // Without leading zeros the position of the first digit decides, then the digits from the front.
        top(self).cmp(&top(other)).then_with(|| self.digits.cmp(&other.digits))
    }
}

/// What stands for the value of a JSON number that is too long, or too far from one, for a [`Decimal`]: equal for equal
/// values, and for no others that anyone will ever see (128 bits).
pub fn digest(text: &str) -> u128 {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let (negative, whole) = whole.strip_prefix('-').map_or((false, whole), |whole| (true, whole));
    let digits = || whole.bytes().chain(fraction.bytes());
    let zeros = digits().rev().take_while(|&digit| digit == b'0').count();
    let length = whole.len() + fraction.len() - zeros;
    let zero = BigInt::default();
    let exponent: BigInt = exponent.strip_prefix('+').unwrap_or(exponent).parse().unwrap_or(zero);
    let last = exponent + zeros - fraction.len();
    let half = |seed: u64| {
        let mut hasher = rustc_hash::FxHasher::default();
        (seed, negative).hash(&mut hasher);
        // Two rounds with different factors, so that both halves depend on every digit in their own way.
        let significant = digits().take(length).skip_while(|&digit| digit == b'0');
        let mixed = significant.fold(seed, |mixed, digit| {
            (mixed.rotate_left(7) ^ u64::from(digit)).wrapping_mul(seed | 1).wrapping_add(mixed >> 29)
        });
        mixed.hash(&mut hasher);
        last.hash(&mut hasher);
        u128::from(hasher.finish())
    };
    half(0x9E37_79B9_7F4A_7C15) << 64 | half(0xD1B5_4A32_D192_ED03)
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.negative, other.negative) {
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
            (false, false) => self.cmp_magnitude(other),
            (true, true) => other.cmp_magnitude(self),
        }
    }
}

impl std::fmt::Display for Decimal {
    /// The plain spelling: no exponent, no needless digit.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (whole, fraction) = self.parts();
        let sign = if self.negative { "-" } else { "" };
        if fraction.is_empty() { write!(f, "{sign}{whole}") } else { write!(f, "{sign}{whole}.{fraction}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn d(text: &str) -> Decimal {
        Decimal::parse(text).unwrap()
    }

    #[test]
    fn equal_values_are_equal() {
        for (a, b) in [
            ("1", "1.0"),
            ("10e-1", "1"),
            ("0.50", "5E-1"),
            ("-0", "0"),
            ("1e3", "1000"),
            ("0e999999999999999999999", "0"),
        ] {
            assert_eq!(d(a), d(b), "{a} {b}");
        }
        assert_eq!(Decimal::parse("1e99999999999999999999"), None);
        for bad in ["", "-", "1e", "a", ".5", "1e+"] {
            assert_eq!(Decimal::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn digests_are_of_values() {
        let zeros = "0".repeat(20_000);
        let same = [
            [format!("1{zeros}"), "1e20000".into()],
            [format!("-0.{zeros}12"), "-1.2e-20001".into()],
            ["1e99999999999999999999".into(), "0.010E+100000000000000000001".into()],
        ];
        for [a, b] in &same {
            assert_eq!(digest(a), digest(b));
        }
        let other = ["1e20001", "-1e20000", "2e20000", "1e-20000", "1e99999999999999999998", "12e20000", "1.02e20000"];
        let mut all: Vec<u128> = same.iter().map(|[a, _]| digest(a)).chain(other.map(digest)).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 10);
    }

    #[test]
    fn neighbours_as_doubles() {
        for (x, below, above) in [
            ("1", "0.99999999999999989", "1.0000000000000002"),
            ("0.1", "0.099999999999999992", "0.10000000000000002"),
            ("-1", "-1.0000000000000002", "-0.9999999999999999"),
            ("9007199254740992", "9007199254740991", "9007199254740994"),
        ] {
            let (b, a) = (d(x).below_as_double().unwrap(), d(x).above_as_double().unwrap());
            let double = |x: &Decimal| x.to_string().parse::<f64>().unwrap();
            assert!(double(&b) < double(&d(x)) && double(&d(x)) < double(&a));
            assert!(b >= d(below) && a <= d(above), "{x}: {b} {a}");
        }
        assert_eq!(Decimal::ZERO.below_as_double(), None);
        assert_eq!(d("1e400").above_as_double(), None);
    }

    #[test]
    fn order_and_spelling() {
        let sorted = ["-100", "-1.5", "-0.01", "0", "0.009", "0.01", "0.1", "1", "9.99", "10", "10.01", "1e3"];
        for pair in sorted.windows(2) {
            assert!(d(pair[0]) < d(pair[1]), "{pair:?}");
        }
        for (x, floor, ceiling) in [("1.5", "1", "2"), ("-1.5", "-2", "-1"), ("-0.5", "-1", "0"), ("7", "7", "7")] {
            assert_eq!((d(x).floor(), d(x).ceiling()), (d(floor), d(ceiling)), "{x}");
        }
        for (a, b, both) in [("1", "0.25", "1"), ("0.4", "0.6", "1.2"), ("6", "4", "12")] {
            assert_eq!(d(a).common_multiple(&d(b)), d(both), "{a} {b}");
        }
        assert_eq!((d("9").plus_one(), d("-1").plus_one(), d("0").minus_one()), (d("10"), d("0"), d("-1")));
        for text in ["0", "12.5", "-0.003", "700"] {
            assert_eq!(d(text).to_string(), text);
        }
        assert!(d("12.34").is_multiple_of(&d("0.01")) && !d("12.345").is_multiple_of(&d("0.01")));
        assert!(d("0.07").is_multiple_of(&d("0.01")) && d("1e300").is_multiple_of(&d("8")));
    }
}
