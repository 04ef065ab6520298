//! Sets of numbers by value: Boolean combinations of bounds, single values and multiples, in one normal form.
//!
//! The bounds and values that a set speaks of divide the line. At each of these points and in each gap between two of them
//! the set is described apart: a point is in or out, and in a gap only multiples still matter. Zero always is such a point,
//! so a gap holds numbers of one sign.

use crate::decimal::Decimal;
use crate::languages::LimitExceeded;
use crate::lattice::{Rule, Term, Unit};
use crate::number_room::{NumberDigits, Room};
use num_bigint::BigUint;
use std::fmt::{Display, Formatter, Write};

/// A set of decimal numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumberSet {
    /// Sorted, with zero.
    pub(crate) points: Vec<Decimal>,
    /// Whether each point is in the set.
    pub(crate) has: Vec<bool>,
    /// The gap before each point, and the one behind the last.
    pub(crate) gaps: Vec<Rule>,
}

impl NumberSet {
    fn everywhere(rule: Rule, zero: bool) -> NumberSet {
        NumberSet { points: vec![Decimal::ZERO], has: vec![zero], gaps: vec![rule.clone(), rule] }
    }

    /// No number.
    pub fn none() -> NumberSet {
        NumberSet::everywhere(Rule::never(), false)
    }

    /// Every number.
    pub fn all() -> NumberSet {
        NumberSet::everywhere(Rule::always(), true)
    }

    /// The whole multiples of `unit`, which must not be zero.
    pub fn multiples_of(unit: &Decimal) -> NumberSet {
        NumberSet::everywhere(Rule::multiples_of(Unit::of(unit)), true)
    }

    /// Nothing but `value`.
    pub fn equal(value: &Decimal) -> NumberSet {
        NumberSet::around(value, false, true, false)
    }

    /// The whole numbers.
    pub fn integers() -> NumberSet {
        NumberSet::multiples_of(&Decimal::power_of_ten(0))
    }

    /// Numbers from `bound` on.
    pub fn at_least(bound: &Decimal) -> NumberSet {
        NumberSet::around(bound, false, true, true)
    }

    /// Numbers up to `bound`.
    pub fn at_most(bound: &Decimal) -> NumberSet {
        NumberSet::around(bound, true, true, false)
    }

    /// Numbers above `bound`.
    pub fn above(bound: &Decimal) -> NumberSet {
        NumberSet::around(bound, false, false, true)
    }

    /// Numbers below `bound`.
    pub fn below(bound: &Decimal) -> NumberSet {
        NumberSet::around(bound, true, false, false)
    }

    fn around(point: &Decimal, below: bool, at: bool, above: bool) -> NumberSet {
        let mut set = NumberSet { points: Vec::new(), has: Vec::new(), gaps: Vec::new() };
        let rule = |holds| if holds { Rule::always() } else { Rule::never() };
        let zero = Decimal::ZERO;
        if zero < *point {
            set.push(rule(below), zero.clone(), below);
        }
        set.push(rule(below), point.clone(), at);
        if *point < zero {
            set.push(rule(above), zero, above);
        }
        set.gaps.push(rule(above));
        set
    }

    fn push(&mut self, gap: Rule, point: Decimal, has: bool) {
        self.gaps.push(gap);
        self.points.push(point);
        self.has.push(has);
    }

    /// Numbers that are not in the set.
    pub fn complement(&self) -> Result<NumberSet, LimitExceeded> {
        let gaps = self.gaps.iter().map(Rule::not).collect::<Result<_, _>>()?;
        Ok(NumberSet { points: self.points.clone(), has: self.has.iter().map(|has| !has).collect(), gaps })
    }

    /// Numbers in any of the sets.
    pub fn union(sets: Vec<NumberSet>) -> Result<NumberSet, LimitExceeded> {
        NumberSet::fold(sets, NumberSet::none(), |a, b| a || b, Rule::or)
    }

    /// Numbers in all of the sets.
    pub fn intersection(sets: Vec<NumberSet>) -> Result<NumberSet, LimitExceeded> {
        NumberSet::fold(sets, NumberSet::all(), |a, b| a && b, Rule::and)
    }

    /// In pairs, and the results in pairs again, so that a long list of values costs no more than to sort it.
    fn fold(
        mut sets: Vec<NumberSet>,
        neutral: NumberSet,
        point: fn(bool, bool) -> bool,
        gap: fn(&Rule, &Rule) -> Result<Rule, LimitExceeded>,
    ) -> Result<NumberSet, LimitExceeded> {
        while sets.len() > 1 {
            let pairs = sets.chunks(2).map(|pair| match pair {
                [a, b] => a.combine(b, point, gap),
                _ => Ok(pair[0].clone()),
            });
            sets = pairs.collect::<Result<_, _>>()?;
        }
        Ok(sets.pop().unwrap_or(neutral))
    }

    fn combine(
        &self,
        other: &NumberSet,
        point: fn(bool, bool) -> bool,
        gap: fn(&Rule, &Rule) -> Result<Rule, LimitExceeded>,
    ) -> Result<NumberSet, LimitExceeded> {
        let mut out = NumberSet { points: Vec::new(), has: Vec::new(), gaps: Vec::new() };
        let (mut i, mut j) = (0, 0);
        let mut before = gap(&self.gaps[0], &other.gaps[0])?;
        while let Some(next) = self.points.get(i).into_iter().chain(other.points.get(j)).min() {
            let has = point(self.has_from(i, next), other.has_from(j, next));
            i += usize::from(self.points.get(i) == Some(next));
            j += usize::from(other.points.get(j) == Some(next));
            let after = gap(&self.gaps[i], &other.gaps[j])?;
            // A point that is as the gaps on both sides says nothing.
            if next.is_zero() || before != after || has != before.has(next) {
                out.push(before, next.clone(), has);
            }
            before = after;
        }
        out.gaps.push(before);
        Ok(out)
    }

    /// Whether `value` is in the set, where `at` is the first of its points that is not below it.
    fn has_from(&self, at: usize, value: &Decimal) -> bool {
        if self.points.get(at) == Some(value) { self.has[at] } else { self.gaps[at].has(value) }
    }

    /// Whether the value is in the set.
    pub fn contains(&self, value: &Decimal) -> bool {
        self.has_from(self.points.partition_point(|point| point < value), value)
    }

    /// Whether it has whole numbers only, and that is plain to see.
    pub(crate) fn is_whole(&self) -> bool {
        let points = self.points.iter().zip(&self.has).all(|(point, has)| !has || point.is_integer());
        let is_whole = |term: &Term| term.unit.as_ref().is_some_and(|unit| unit.places() == 0);
        points && self.gaps.iter().all(|gap| gap.0.iter().all(is_whole))
    }

    /// The room for its plain numbers, and those for which there is room before the point.
    pub(crate) fn in_room(&self, digits: Option<NumberDigits>) -> Result<(Room, NumberSet), LimitExceeded> {
        let room = Room::new(self, digits);
        if !room.is_bounded() {
            return Ok((room, self.clone()));
        }
        let end = Decimal::power_of_ten(i64::from(room.whole));
        let mut parts = vec![self.clone()];
        let is_endless = |gap: Option<&Rule>| gap.is_some_and(|gap| !gap.0.is_empty());
        parts.extend(is_endless(self.gaps.first()).then(|| NumberSet::above(&end.negated())));
        parts.extend(is_endless(self.gaps.last()).then(|| NumberSet::below(&end)));
        Ok((room, NumberSet::intersection(parts)?))
    }

    /// At least so many numbers of the set have plain spellings, counted up to `most` + 1; if that is not more than `most`,
    /// there may yet be some more.
    pub fn count_plain(&self, digits: Option<NumberDigits>, most: u32) -> Result<u32, LimitExceeded> {
        let (room, set) = self.in_room(digits)?;
        let most = most.saturating_add(1);
        let mut count = BigUint::from(set.has.iter().filter(|has| **has).count());
        for (i, gap) in set.gaps.iter().enumerate() {
            let ends = i.checked_sub(1).and_then(|before| Some((set.points.get(before)?, set.points.get(i)?)));
            let Some((low, high)) = ends else {
                if gap.0.is_empty() {
                    continue;
                }
                return Ok(most);
            };
            let (low, high) = if low.is_negative() { (high, low) } else { (low, high) };
            let counts = gap.0.iter().map(|term| term.count(low, high, &room, most));
            count += counts.max().unwrap_or_default();
        }
        Ok(u32::try_from(count).unwrap_or(most).min(most))
    }

    /// Whether every number is in the set (a mixture of multiples that leaves nothing out may go unnoticed).
    pub fn is_all(&self) -> bool {
        *self == NumberSet::all()
    }

    /// Whether no number is in the set.
    pub fn is_empty(&self) -> bool {
        !self.has.contains(&true) && self.clone().without_vain_terms().gaps.iter().all(|gap| gap.0.is_empty())
    }

    /// Drops the multiples that lie in none of the gaps for which they are admitted.
    pub(crate) fn without_vain_terms(mut self) -> NumberSet {
        for (i, gap) in self.gaps.iter_mut().enumerate() {
            let ends = i.checked_sub(1).and_then(|before| Some((self.points.get(before)?, self.points.get(i)?)));
            if let Some((low, high)) = ends {
                let (low, high) = if low.is_negative() { (high, low) } else { (low, high) };
                gap.0.retain(|term| {
                    term.unit.as_ref().is_none_or(|unit| {
                        let places = unit.places().max(low.places()).max(high.places());
                        let first: BigUint = low.scaled(places) + 1u32;
                        term.meets(unit, &first, &high.scaled(places), places)
                    })
                });
            }
        }
        self
    }
}

impl Display for NumberSet {
    /// A short text that tells sets apart.
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        for (i, gap) in self.gaps.iter().enumerate() {
            for term in &gap.0 {
                f.write_char('|')?;
                if let Some(unit) = &term.unit {
                    write!(f, "{}*2^{}*5^{}", unit.odd, unit.two, unit.five)?;
                }
                for unit in &term.not {
                    write!(f, "!{}*2^{}*5^{}", unit.odd, unit.two, unit.five)?;
                }
            }
            if let Some(point) = self.points.get(i) {
                f.write_str(if self.has[i] { "[" } else { "(" })?;
                f.write_str(if point.is_negative() { "-" } else { "" })?;
                point.digits().iter().try_for_each(|digit| write!(f, "{digit}"))?;
                write!(f, "e{}]", point.exponent())?;
            }
        }
        Ok(())
    }
}
