//! The numbers of one sign in a set, and which of them begin with given digits.
//!
//! Where an exponent may follow, the digits of a number say nothing of its magnitude: a prefix of digits is alive if some
//! number of the set has these digits at its front, wherever its point is. Of the digits only what still matters is kept:
//! how they compare to those of each point of the set, where the point of the spelling is, and for multiples a remainder.

use crate::decimal::Decimal;
use crate::exponents::Spans;
use crate::languages::LimitExceeded;
use crate::lattice::{Rule, Term, Unit};
use crate::number_set::NumberSet;
use num_bigint::BigUint;
use num_integer::Integer;
use std::ops::Range;

/// What matters of the digits before and after a point, for one side of a set. As a number they are `0.d1d2d3... ·
/// 10^shift`, where `d1` is the first that is not zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Digits {
    /// Whether any digit is not zero.
    pub some: bool,
    /// The points, in the order of their digits, whose digits begin like this; all before are less, all behind are more.
    pub like: Range<usize>,
    /// How many digits from the first that is not zero, as far as some point is like them.
    pub shared: usize,
    pub shift: i64,
    /// How many digits there are after the point.
    pub places: i64,
    /// How many zeros there are at the end, once there is another digit.
    pub zeros: i64,
    /// What the digits before those zeros leave when they are divided by the side's modulus.
    pub rest: BigUint,
    /// How many digits there are before those zeros, as long as a multiple between bounds may begin like this and nothing
    /// else is sure to.
    pub length: Option<usize>,
}

/// A point of the set: `0.digits · 10^top`.
#[derive(Debug)]
struct Point {
    value: Decimal,
    top: i64,
    /// Its place in the order of digits.
    rank: usize,
    has: bool,
}

/// The numbers between two points, or from zero on, or without end.
#[derive(Debug)]
struct Gap {
    low: Option<usize>,
    high: Option<usize>,
    rule: Rule,
}

/// The magnitudes of the numbers above zero, or of those below, in a set.
#[derive(Debug)]
pub(crate) struct Side {
    /// No exponent follows, so the digits say where the point is.
    plain: bool,
    zero: bool,
    /// From the least to the greatest.
    points: Vec<Point>,
    /// The points in the order of their digits.
    order: Vec<usize>,
    /// Those that have numbers.
    gaps: Vec<Gap>,
    /// Whether any digits are those of some number.
    always: bool,
    /// How many twos and fives, beyond those of a power of ten, any unit has.
    twos: u64,
    fives: i64,
    /// With these and the other factors of all units, or if it is `bounded` a multiple of all; zero if there are none.
    modulus: BigUint,
    /// Whether multiples must be looked for between bounds.
    bounded: bool,
    /// How many places after the point multiples have.
    places: u32,
    /// The other factors, if all numbers are multiples of some unit and they are small.
    odds: Vec<u64>,
}

/// All powers of ten.
const ANYWHERE: (i64, i64) = (i64::MIN, i64::MAX);

/// What the digits of a point are to the digits read.
#[derive(Clone, Copy, PartialEq)]
enum Found {
    Less,
    /// They begin like them, and perhaps are them.
    Like(bool),
    More,
}

impl Side {
    pub fn new(set: &NumberSet, minus: bool, plain: bool) -> Result<Side, LimitExceeded> {
        const MOST_BITS: u64 = 1 << 13;
        let zero = set.points.partition_point(Decimal::is_negative);
        // From zero away, on either side.
        let (at, between): (Vec<usize>, Vec<usize>) = if minus {
            ((0..zero).rev().collect(), (0..=zero).rev().collect())
        } else {
            ((zero + 1..set.points.len()).collect(), (zero + 1..set.gaps.len()).collect())
        };
        let mut order: Vec<usize> = (0..at.len()).collect();
        order.sort_by_key(|&i| set.points[at[i]].digits());
        let mut points: Vec<Point> = at
            .iter()
            .map(|&i| {
                let value = set.points[i].clone();
                Point { top: value.exponent() + value.digits().len() as i64, rank: 0, has: set.has[i], value }
            })
            .collect();
        order.iter().enumerate().for_each(|(rank, &i)| points[i].rank = rank);
        let gaps = between.iter().enumerate().map(|(i, &gap)| Gap {
            low: i.checked_sub(1),
            high: (i < points.len()).then_some(i),
            rule: set.gaps[gap].clone(),
        });
        let gaps: Vec<Gap> = gaps.filter(|gap| !gap.rule.0.is_empty()).collect();
        let terms = || gaps.iter().flat_map(|gap| &gap.rule.0);
        let mut units: Vec<&Unit> = terms().flat_map(|term| term.unit.iter().chain(&term.not)).collect();
        units.sort_unstable();
        units.dedup();
        // Any digits are at the front of numbers as small and of numbers as large as one wants.
        let anywhere = |gap: &Gap| gap.high.is_none() || (gap.low.is_none() && gap.rule.is_dense());
        let always = !plain && gaps.iter().any(anywhere);
        let bounded = !always && terms().any(|term| term.unit.is_some());
        let places = units.iter().map(|unit| unit.places()).max().unwrap_or(0);
        let twos = units.iter().map(|unit| unit.two - unit.five).max().unwrap_or(0).max(0);
        let fives = units.iter().map(|unit| unit.five - unit.two).max().unwrap_or(0).max(0);
        let mut modulus = BigUint::from(u32::from(!units.is_empty()));
        let mut bits = if bounded { 0 } else { twos as u64 + 3 * fives as u64 };
        for unit in units {
            modulus = if bounded { modulus.lcm(&unit.scaled(places)) } else { modulus.lcm(&unit.odd) };
            bits = bits.max(modulus.bits());
            if bits > MOST_BITS {
                return Err(LimitExceeded { limit: "bits of a common multiple", value: MOST_BITS as usize });
            }
        }
        if !bounded {
            modulus = (modulus << twos) * BigUint::from(5u32).pow(fives as u32);
        }
        let odd = |term: &Term| u64::try_from(&term.unit.as_ref()?.odd).ok().filter(|odd| odd.leading_zeros() > 0);
        let mut odds: Vec<u64> = terms().map(odd).collect::<Option<_>>().unwrap_or_default();
        odds.sort_unstable();
        odds.dedup();
        if points.iter().any(|point| point.has) {
            odds.clear();
        }
        Ok(Side {
            plain,
            zero: set.has[zero],
            points,
            order,
            gaps,
            always,
            twos: twos as u64,
            fives,
            modulus,
            bounded,
            places,
            odds,
        })
    }

    /// Before any digit; `None` if the side has no number, not even zero.
    pub fn start(&self) -> Option<Digits> {
        let digits = Digits { like: 0..self.points.len(), length: self.bounded.then_some(0), ..Digits::default() };
        (self.zero || self.has_some()).then_some(digits)
    }

    /// Whether there are numbers other than zero.
    pub fn has_some(&self) -> bool {
        !self.gaps.is_empty() || self.points.iter().any(|point| point.has)
    }

    /// The digits with one more, which must be of some number (of plain ones that is asked apart: `begins`).
    pub fn push(&self, mut digits: Digits, digit: u8, after_point: bool) -> Option<Digits> {
        let units = self.modulus != BigUint::ZERO;
        let shifts = self.plain || !self.points.is_empty();
        digits.places += i64::from(after_point && units);
        if !digits.some && digit == 0 {
            digits.shift -= i64::from(after_point && shifts);
            return (self.zero || self.has_some()).then_some(digits);
        }
        digits.some = true;
        digits.shift += i64::from(!after_point && shifts);
        self.compare(&mut digits, digit);
        if units && digit == 0 {
            digits.zeros += 1;
        } else if units {
            let ten = BigUint::from(10u32);
            let raised = match digits.zeros {
                0 => ten,
                more => ten.modpow(&BigUint::from(more as u64 + 1), &self.modulus),
            };
            digits.rest = (digits.rest * raised + digit) % &self.modulus;
            if let Some(length) = &mut digits.length {
                *length += digits.zeros as usize + 1;
            }
            digits.zeros = 0;
        }
        if self.plain {
            return Some(digits);
        }
        if digits.length.is_some() && !self.has_multiples_like(&digits, ANYWHERE) {
            digits.length = None;
        }
        let alive = self.always || digits.length.is_some() || self.has_some_like(&digits, ANYWHERE);
        alive.then_some(digits)
    }

    /// Whether some plain number begins with the digits: one with `powers` digits before the point.
    pub fn begins(&self, digits: &Digits, powers: (i64, i64)) -> bool {
        if !digits.some {
            return self.zero || self.has_below(digits.shift);
        }
        self.has_some_like(digits, powers) || self.has_multiples_like(digits, powers)
    }

    /// No number has fewer digits before the point (a lower bound), and where there is no last gap, none has more.
    pub fn tops(&self) -> (i64, i64) {
        let points = self.points.iter().filter(|point| point.has).map(|point| point.top);
        let gaps = self.gaps.iter().flat_map(|gap| {
            let low = gap.low.map_or(i64::MIN, |low| self.points[low].top);
            gap.rule.0.iter().map(move |term| term.unit.as_ref().map_or(low, |unit| low.max(unit.magnitude().0)))
        });
        let last = |gap: &Gap| gap.high.map_or(i64::MAX, |high| self.points[high].top);
        let most = points.clone().chain(self.gaps.iter().map(last)).max();
        (points.chain(gaps).min().unwrap_or(0), most.unwrap_or(0))
    }

    /// Whether there is a number between zero and a power of ten that is not above one.
    fn has_below(&self, power: i64) -> bool {
        let (zero, end) = (Decimal::ZERO, Decimal::power_of_ten(power));
        let is_below = |point: Option<usize>| point.is_none_or(|point| self.points[point].top <= power);
        self.points.iter().any(|point| point.has && point.top <= power)
            || self.gaps.iter().filter(|gap| is_below(gap.low)).any(|gap| {
                let low = gap.low.map_or(&zero, |low| &self.points[low].value);
                let high =
                    gap.high.map(|high| &self.points[high].value).filter(|high| high.top() <= power).unwrap_or(&end);
                let meets = |term: &Term| {
                    term.unit.as_ref().is_none_or(|unit| {
                        let places = self.places.max(low.places()).max(high.places());
                        term.meets(unit, &(low.scaled(places) + 1u32), &high.scaled(places), places)
                    })
                };
                gap.rule.0.iter().any(meets)
            })
    }

    /// Narrows the points that are like the digits.
    fn compare(&self, digits: &mut Digits, digit: u8) {
        let nth = |&i: &usize| self.points[i].value.digits().get(digits.shared).copied().unwrap_or(0);
        let like = &self.order[digits.like.clone()];
        let (less, upto) = (like.partition_point(|i| nth(i) < digit), like.partition_point(|i| nth(i) <= digit));
        digits.like = digits.like.start + less..digits.like.start + upto;
        // Beyond the longest of them there are only zeros.
        let longest = self.order[digits.like.clone()].iter().map(|&i| self.points[i].value.digits().len()).max();
        digits.shared = longest.map_or(0, |longest| longest.min(digits.shared + 1));
    }

    fn find(&self, point: &Point, digits: &Digits) -> Found {
        match point.rank {
            rank if rank < digits.like.start => Found::Less,
            rank if rank >= digits.like.end => Found::More,
            _ => Found::Like(point.value.digits().len() <= digits.shared),
        }
    }

    /// The powers of ten that move `0.digits` into a gap. As numbers `begin` so, any of them counts.
    fn powers(&self, gap: &Gap, digits: &Digits, begin: bool) -> (i64, i64) {
        let low = gap.low.map_or(i64::MIN, |low| {
            let point = &self.points[low];
            match self.find(point, digits) {
                Found::Less => point.top,
                Found::Like(_) if begin => point.top,
                _ => point.top + 1,
            }
        });
        let high = gap.high.map_or(i64::MAX, |high| {
            let point = &self.points[high];
            match self.find(point, digits) {
                Found::Less | Found::Like(true) => point.top - 1,
                Found::Like(false) | Found::More => point.top,
            }
        });
        (low, high)
    }

    /// Whether a point, or a number of a gap that has nearly all, begins with these digits and has the power of ten.
    fn has_some_like(&self, digits: &Digits, (least, most): (i64, i64)) -> bool {
        let like = self.order[digits.like.clone()].iter().map(|&i| &self.points[i]);
        like.into_iter().any(|point| point.has && (least..=most).contains(&point.top))
            || self.gaps.iter().filter(|gap| gap.rule.is_dense()).any(|gap| {
                let (low, high) = self.powers(gap, digits, true);
                low.max(least) <= high.min(most)
            })
    }

    /// Whether a multiple between bounds begins with these digits and has the power of ten.
    fn has_multiples_like(&self, digits: &Digits, powers: (i64, i64)) -> bool {
        self.gaps.iter().any(|gap| {
            let of_unit = |term: &Term| {
                term.unit.as_ref().is_some_and(|unit| self.has_term_like(gap, term, unit, digits, powers))
            };
            gap.rule.0.iter().any(of_unit)
        })
    }

    /// The numbers that begin with the digits `D` are those from `D · 10^k` up to `(D + 1) · 10^k`, for any `k`. Where a bound
    /// of the gap is in such a window, the digits are those of the bound; elsewhere their remainder says everything.
    fn has_term_like(&self, gap: &Gap, term: &Term, unit: &Unit, digits: &Digits, (least, most): (i64, i64)) -> bool {
        let Some(length) = digits.length else { return false };
        let (low, high) = (gap.low.map(|low| &self.points[low]), gap.high.map(|high| &self.points[high]));
        if high.is_none() && (!self.plain || most == i64::MAX) {
            return self.plain;
        }
        let low_like = low.is_some_and(|low| matches!(self.find(low, digits), Found::Like(_)));
        let high_like = high.is_some_and(|high| self.find(high, digits) == Found::Like(false));
        let (first, last) = self.powers(gap, digits, true);
        let (below, above) = unit.magnitude();
        let mut widest = true;
        for power in (first.max(below).max(least)..=last.min(most)).rev() {
            let k = power - length as i64 - digits.zeros;
            if power == first && low_like || power == last && high_like {
                let zero = Decimal::ZERO;
                let low = low.map_or(&zero, |low| &low.value);
                // Without a high end the low one is like the digits, and any greater power of ten ends the window.
                let beyond = Decimal::power_of_ten(power + 1);
                let high = high.map_or(&beyond, |high| &high.value);
                let places = self.places.max(low.places()).max(high.places());
                let alike = if power == last && high_like { high } else { low };
                let whole = BigUint::from_radix_be(&alike.digits()[..length], 10).unwrap_or_default();
                if let Some((from, to)) = window(whole, digits.zeros, k + i64::from(places)) {
                    let (from, to) = (from.max(low.scaled(places) + 1u32), to.min(high.scaled(places)));
                    if term.meets(unit, &from, &to, places) {
                        return true;
                    }
                }
                continue;
            }
            if k >= above + term.not.len() as i64 {
                return true;
            }
            // Ten times a multiple is one, too: without exclusions, what is in no wider window is in no narrower one.
            if (widest || !term.not.is_empty())
                && let Some((from, to)) = window(digits.rest.clone(), digits.zeros, k + i64::from(self.places))
                && term.meets(unit, &from, &to, self.places)
            {
                return true;
            }
            widest = false;
        }
        false
    }

    /// The exponents with which the digits are a number of the set.
    pub fn exponents(&self, digits: &Digits) -> Spans {
        if !digits.some {
            return if self.zero { Spans::all() } else { Spans::default() };
        }
        let moved = |at: i64| if at == i64::MIN || at == i64::MAX { at } else { at - digits.shift };
        let like = self.order[digits.like.clone()].iter().map(|&i| &self.points[i]);
        let same = like.filter(|point| point.has && point.value.digits().len() <= digits.shared);
        let mut spans: Vec<(i64, i64)> = same.map(|point| (moved(point.top), moved(point.top))).collect();
        for gap in &self.gaps {
            let (low, high) = self.powers(gap, digits, false);
            for term in &gap.rule.0 {
                let (mut low, mut high) = (moved(low), moved(high));
                if low > high {
                    break;
                }
                match term.unit.as_ref().map(|unit| self.multiple_from(unit, digits)) {
                    None => {}
                    Some(Some(from)) => low = low.max(from),
                    Some(None) => continue,
                }
                let excluded = term.not.iter().filter_map(|unit| self.multiple_from(unit, digits)).min();
                high = excluded.map_or(high, |from| high.min(from - 1));
                spans.push((low, high));
            }
        }
        Spans::new(spans)
    }

    /// From which exponent on the digits are a multiple of the unit, if ever.
    fn multiple_from(&self, unit: &Unit, digits: &Digits) -> Option<i64> {
        if !digits.rest.is_multiple_of(&unit.odd) {
            return None;
        }
        // The digits before the zeros at the end are not divided by ten, so either factor matters only in excess.
        let twos = digits.rest.trailing_zeros().map_or(self.twos, |twos| twos.min(self.twos)) as i64;
        let (mut fives, mut left) = (0, digits.rest.clone());
        while fives < self.fives {
            let (quotient, rest) = left.div_rem(&BigUint::from(5u32));
            if rest != BigUint::ZERO {
                break;
            }
            (left, fives) = (quotient, fives + 1);
        }
        Some(digits.places - digits.zeros + (unit.two - twos).max(unit.five - fives))
    }

    /// At least so many digits are missing for a multiple.
    pub fn least(&self, digits: &Digits) -> u32 {
        let missing = |&odd: &u64| {
            // With n more digits, those of all numbers below 10^n can be had.
            let rest = (&digits.rest % odd).iter_u64_digits().next().unwrap_or(0);
            let odd = u128::from(odd);
            let zeros = BigUint::from(10u32).modpow(&BigUint::from(digits.zeros as u64), &odd.into());
            let mut rest = u128::from(rest) * u128::from(zeros.iter_u64_digits().next().unwrap_or(0)) % odd;
            let (mut n, mut span) = (0, 1);
            while (odd - rest) % odd >= span {
                (n, span, rest) = (n + 1, span * 10, rest * 10 % odd);
            }
            n
        };
        if digits.some { self.odds.iter().map(missing).min().unwrap_or(0) } else { 0 }
    }
}

/// The whole numbers from `whole · 10^zeros · 10^k` to below the next multiple of `10^k`. `whole` is no multiple of ten.
fn window(whole: BigUint, zeros: i64, k: i64) -> Option<(BigUint, BigUint)> {
    let ten = |n: i64| BigUint::from(10u32).pow(n as u32);
    let from = (k + zeros >= 0).then(|| whole * ten(k + zeros))?;
    let to = &from + ten(k.max(0));
    Some((from, to))
}
