//! Multiples of units: which numbers a Boolean combination of `multipleOf`s admits.
//!
//! A number of a decimal spelling is `2^i · 5^j · odd`, with whole exponents of either sign. It is a multiple of a unit if
//! it has at least the unit's exponents and its odd part is divided by the unit's. So a power of ten, which is all that the
//! exponent of a spelling changes, only moves `i` and `j`.

use crate::decimal::Decimal;
use crate::languages::LimitExceeded;
use crate::languages::UNBOUNDED;
use crate::number_room::Room;
use num_bigint::BigUint;
use num_integer::Integer;

/// The multiples of `2^two · 5^five · odd`, where `odd` has neither factor.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Unit {
    pub two: i64,
    pub five: i64,
    pub odd: BigUint,
}

impl Unit {
    /// `value` must not be zero; its sign does not matter.
    pub fn of(value: &Decimal) -> Unit {
        let mut odd = BigUint::from_radix_be(value.digits(), 10).unwrap_or_default();
        let twos = odd.trailing_zeros().unwrap_or(0);
        odd >>= twos;
        let (mut fives, five) = (0, BigUint::from(5u32));
        loop {
            let (quotient, rest) = odd.div_rem(&five);
            if rest != BigUint::ZERO {
                break;
            }
            (odd, fives) = (quotient, fives + 1);
        }
        Unit { two: twos as i64 + value.exponent(), five: fives + value.exponent(), odd }
    }

    /// Whether its multiples are the whole numbers.
    pub fn is_one(&self) -> bool {
        self.two == 0 && self.five == 0 && self.odd == BigUint::from(1u32)
    }

    /// Whether all multiples of `other` are multiples of this.
    pub fn divides(&self, other: &Unit) -> bool {
        self.two <= other.two && self.five <= other.five && other.odd.is_multiple_of(&self.odd)
    }

    fn common_multiple(&self, other: &Unit) -> Unit {
        Unit { two: self.two.max(other.two), five: self.five.max(other.five), odd: self.odd.lcm(&other.odd) }
    }

    /// How many places after the point its multiples have at most.
    pub fn places(&self) -> u32 {
        self.two.min(self.five).min(0).unsigned_abs() as u32
    }

    /// The unit in steps of `10^-places`, which must be at least its own.
    pub fn scaled(&self, places: u32) -> BigUint {
        let raised = |base: u32, to: i64| BigUint::from(base).pow((to + i64::from(places)) as u32);
        raised(2, self.two) * raised(5, self.five) * &self.odd
    }

    /// Powers of ten below and above it, not far away.
    pub fn magnitude(&self) -> (i64, i64) {
        let twos = (self.two as f64, self.odd.bits() as f64);
        let log = |twos: f64| twos * 2f64.log10() + self.five as f64 * 5f64.log10();
        // One off, for what is lost in floating point.
        (log(twos.0 + twos.1 - 1.0).floor() as i64 - 1, log(twos.0 + twos.1).ceil() as i64 + 1)
    }

    fn has(&self, value: &Decimal) -> bool {
        value.is_zero() || self.divides(&Unit::of(value))
    }
}

/// Multiples of a unit, or all numbers, without the multiples of others. The others are sorted multiples of the unit
/// themselves, and none of them divides another; so a term always has numbers.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Term {
    pub unit: Option<Unit>,
    pub not: Vec<Unit>,
}

impl Term {
    fn new(unit: Option<Unit>, mut not: Vec<Unit>) -> Result<Option<Term>, LimitExceeded> {
        // What is asked of windows of numbers (below) doubles with each of these.
        const MOST_EXCLUDED: usize = 10;
        const MOST_BITS: u64 = 1 << 12;
        if let Some(unit) = &unit {
            not.iter_mut().for_each(|other| *other = other.common_multiple(unit));
            if not.contains(unit) {
                return Ok(None);
            }
        }
        not.sort_unstable();
        not.dedup();
        let all = not.clone();
        not.retain(|one| !all.iter().any(|other| other != one && other.divides(one)));
        if not.len() > MOST_EXCLUDED {
            return Err(LimitExceeded { limit: "excluded multiples of a number", value: MOST_EXCLUDED });
        }
        if unit.iter().chain(&not).any(|unit| unit.odd.bits() > MOST_BITS) {
            return Err(LimitExceeded { limit: "bits of a common multiple", value: MOST_BITS as usize });
        }
        Ok(Some(Term { unit, not }))
    }

    fn and(&self, other: &Term) -> Result<Option<Term>, LimitExceeded> {
        let unit = match (&self.unit, &other.unit) {
            (Some(a), Some(b)) => Some(a.common_multiple(b)),
            (a, b) => a.as_ref().or(b.as_ref()).cloned(),
        };
        Term::new(unit, self.not.iter().chain(&other.not).cloned().collect())
    }

    fn has(&self, value: &Decimal) -> bool {
        self.unit.as_ref().is_none_or(|unit| unit.has(value)) && !self.not.iter().any(|unit| unit.has(value))
    }

    /// Whether the other term has all the numbers of this one (not always found out).
    fn is_within(&self, other: &Term) -> bool {
        let divides = |a: &Unit, b: &Unit| match &self.unit {
            Some(unit) => a.divides(&b.common_multiple(unit)),
            None => a.divides(b),
        };
        other.unit.as_ref().is_none_or(|theirs| self.unit.as_ref().is_some_and(|ours| theirs.divides(ours)))
            && other.not.iter().all(|theirs| self.not.iter().any(|ours| divides(ours, theirs)))
    }

    /// At least so many numbers between two magnitudes are in this term and have room, up to `most`.
    pub fn count(&self, low: &Decimal, high: &Decimal, room: &Room, most: u32) -> BigUint {
        let Some(unit) = &self.unit else {
            // Between neighbours in the room at the lower end, of which the multiples of the others are less than half.
            let places = room.places_at(low);
            if places == UNBOUNDED {
                return most.into();
            }
            let from: BigUint =
                low.scaled(places.max(low.places())) / BigUint::from(10u32).pow(low.places().saturating_sub(places));
            let to =
                high.scaled(places.max(high.places())) / BigUint::from(10u32).pow(high.places().saturating_sub(places));
            let between = if to > from { to - from - 1u32 } else { BigUint::ZERO };
            return if self.not.is_empty() { between } else { between / 2u32 };
        };
        let places = unit.places().max(low.places()).max(high.places());
        let (step, end) = (unit.scaled(places), high.scaled(places));
        let (first, last) = (low.scaled(places) / &step + 1u32, end.div_ceil(&step));
        let count = if last > first { &last - &first } else { BigUint::ZERO };
        if self.not.is_empty() || count.bits() > 48 {
            // Of 2^n in a row at least one is not excluded; see `meets`.
            return count >> self.not.len();
        }
        let excluded: Vec<BigUint> = self.not.iter().map(|other| other.scaled(places) / &step).collect();
        let (mut at, mut found) = (first, 0);
        while at < last && found < most {
            found += u32::from(!excluded.iter().any(|every| at.is_multiple_of(every)));
            at += 1u32;
        }
        found.into()
    }

    /// Whether a multiple of `unit` that is in this term is at least `first` and below `end`, in steps of `10^-places`.
    pub fn meets(&self, unit: &Unit, first: &BigUint, end: &BigUint, places: u32) -> bool {
        let step = unit.scaled(places);
        let (from, to) = (first.div_ceil(&step), end.div_ceil(&step));
        // Not all multiples are excluded, so 2^n in a row are not by n exclusions (Crittenden and Vanden Eynden, 1970).
        if to <= from || (&to - &from).bits() > self.not.len() as u64 {
            return to > from;
        }
        let excluded: Vec<BigUint> = self.not.iter().map(|other| other.scaled(places) / &step).collect();
        let mut at = from;
        while at < to {
            if !excluded.iter().any(|every| at.is_multiple_of(every)) {
                return true;
            }
            at += 1u32;
        }
        false
    }
}

/// Numbers by what they are multiples of: those of any of the terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rule(pub Vec<Term>);

impl Rule {
    pub fn never() -> Rule {
        Rule(Vec::new())
    }

    pub fn always() -> Rule {
        Rule(vec![Term { unit: None, not: Vec::new() }])
    }

    pub fn multiples_of(unit: Unit) -> Rule {
        Rule(vec![Term { unit: Some(unit), not: Vec::new() }])
    }

    pub fn has(&self, value: &Decimal) -> bool {
        self.0.iter().any(|term| term.has(value))
    }

    /// Whether it has every number.
    pub fn is_always(&self) -> bool {
        matches!(&*self.0, [Term { unit: None, not }] if not.is_empty())
    }

    /// Whether it has just the whole numbers.
    pub fn is_whole(&self) -> bool {
        matches!(&*self.0, [Term { unit: Some(unit), not }] if not.is_empty() && unit.is_one())
    }

    /// Whether there is a number between any two.
    pub fn is_dense(&self) -> bool {
        self.0.iter().any(|term| term.unit.is_none())
    }

    pub fn or(&self, other: &Rule) -> Result<Rule, LimitExceeded> {
        Rule::of(self.0.iter().chain(&other.0).cloned().collect())
    }

    pub fn and(&self, other: &Rule) -> Result<Rule, LimitExceeded> {
        let mut terms = Vec::new();
        for a in &self.0 {
            for b in &other.0 {
                terms.extend(a.and(b)?);
            }
        }
        Rule::of(terms)
    }

    pub fn not(&self) -> Result<Rule, LimitExceeded> {
        let mut all = Rule::always();
        for term in &self.0 {
            let mut outside: Vec<Term> =
                term.not.iter().map(|unit| Term { unit: Some(unit.clone()), not: Vec::new() }).collect();
            outside.extend(term.unit.clone().map(|unit| Term { unit: None, not: vec![unit] }));
            all = all.and(&Rule::of(outside)?)?;
        }
        Ok(all)
    }

    /// Terms within others are dropped, and so are halves of a whole.
    fn of(mut terms: Vec<Term>) -> Result<Rule, LimitExceeded> {
        const MOST_TERMS: usize = 32;
        terms.sort_unstable();
        terms.dedup();
        let mut kept: Vec<Term> = Vec::new();
        for (i, term) in terms.iter().enumerate() {
            let later = &terms[i + 1..];
            if !kept.iter().chain(later).any(|other| term.is_within(other)) {
                kept.push(term.clone());
            }
        }
        let rest_of = |unit: &Unit| kept.iter().any(|t| t.unit.is_none() && t.not.as_slice() == [unit.clone()]);
        if kept.iter().any(|t| t.not.is_empty() && t.unit.as_ref().is_some_and(rest_of)) {
            return Ok(Rule::always());
        }
        if kept.len() > MOST_TERMS {
            return Err(LimitExceeded { limit: "combinations of multiples", value: MOST_TERMS });
        }
        Ok(Rule(kept))
    }
}
