//! How many digits a plain number may have.
//!
//! Without a bound a model may write digits for ever, and more than a double holds say nothing. A bound never makes a set
//! empty: whatever its points and units need, they have.

use crate::decimal::Decimal;
use crate::languages::UNBOUNDED;
use crate::number_set::NumberSet;

/// A bound on the digits of plain numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NumberDigits {
    /// Digits before the point.
    pub whole: u32,
    /// Digits of a number with a point, from the first that is not zero on. As many zeros may come before that.
    pub significant: u32,
}

impl NumberDigits {
    /// What a 64-bit integer and a double need.
    pub const DEFAULT: NumberDigits = NumberDigits { whole: 19, significant: 17 };
}

/// The room for the digits of the numbers of one set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    /// Digits before the point, in the gaps without end.
    pub whole: u32,
    significant: u32,
    zeros: u32,
    /// Where points have so many digits before the point, there are at least so many places.
    points: (u32, u32),
    /// Multiples have so many places.
    units: u32,
    /// There is a point at all.
    pub fraction: bool,
    /// All numbers above zero, and all below, are in the set; then they may have exponents, which say nothing of bounds.
    pub exponents: [bool; 2],
}

/// The room that is left behind the point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Left {
    /// So many zeros were read, behind a zero.
    Zeros(u32),
    /// For so many digits.
    Digits(u32),
}

impl Room {
    pub fn new(set: &NumberSet, digits: Option<NumberDigits>) -> Room {
        let fraction = !set.is_whole();
        let zero = set.points.partition_point(Decimal::is_negative);
        let all_above = zero + 1 == set.points.len() && set.gaps[zero + 1].is_always();
        let exponents = [all_above, zero == 0 && set.gaps[0].is_always()];
        let Some(NumberDigits { whole, significant }) = digits else {
            let (whole, significant, zeros) = (UNBOUNDED, UNBOUNDED, UNBOUNDED);
            return Room { whole, significant, zeros, points: (0, 0), units: 0, fraction, exponents };
        };
        let mut room = Room { whole, significant, zeros: significant, points: (0, 0), units: 0, fraction, exponents };
        for (i, point) in set.points.iter().enumerate() {
            // Beside a point that is not in the set there are numbers with one digit more.
            let open = !set.has[i] && (set.gaps[i].is_dense() || set.gaps[i + 1].is_dense());
            let more = u32::from(open && !point.is_zero());
            room.points.0 = room.points.0.max(point.top().max(0) as u32);
            room.points.1 = room.points.1.max(point.places() + more);
        }
        for term in set.gaps.iter().flat_map(|gap| &gap.0) {
            let mut places = term.unit.iter().chain(&term.not).map(|unit| unit.places()).max().unwrap_or(0);
            if term.unit.is_none() && !term.not.is_empty() {
                // A number that is no multiple has one place more; with more than 15 digits it may read as one.
                places += 1;
                room.significant = room.significant.min(15);
                room.whole = room.whole.min(15u32.saturating_sub(places).max(1));
            }
            room.units = room.units.max(places);
        }
        for (gap, point) in [(set.gaps.first(), set.points.first()), (set.gaps.last(), set.points.last())] {
            let (Some(gap), Some(point)) = (gap, point) else { continue };
            for term in &gap.0 {
                let units = term.unit.iter().chain(&term.not);
                let unit = units.map(|unit| unit.magnitude().1 + term.not.len() as i64).max().unwrap_or(0);
                let needed = (point.top() + 1).max(unit + 1);
                room.whole = room.whole.max(u32::try_from(needed).unwrap_or(0).min(UNBOUNDED - 1));
            }
        }
        room.zeros = room.zeros.max(room.points.1).max(room.units);
        room
    }

    /// At the point, behind so many digits of which the first is not zero, or behind a zero alone (0).
    pub fn at_point(&self, whole: u32) -> Left {
        match whole {
            _ if !self.fraction => Left::Digits(0),
            0 => Left::Zeros(0),
            _ => Left::Digits(self.places(whole)),
        }
    }

    /// The places of numbers not far above a magnitude.
    pub fn places_at(&self, value: &Decimal) -> u32 {
        match value.top() {
            _ if !self.fraction => 0,
            whole @ 1.. => self.places(whole as u32),
            _ if self.significant == UNBOUNDED => UNBOUNDED,
            zeros => self.behind_zeros(zeros.unsigned_abs() as u32).saturating_add(zeros.unsigned_abs() as u32),
        }
    }

    fn places(&self, whole: u32) -> u32 {
        if self.significant == UNBOUNDED {
            return UNBOUNDED;
        }
        let own = if whole <= self.points.0 { self.points.1 } else { 0 };
        self.significant.saturating_sub(whole).max(own).max(self.units)
    }

    /// Digits from the first that is not zero on, behind a zero, a point and so many zeros.
    pub fn behind_zeros(&self, zeros: u32) -> u32 {
        if self.significant == UNBOUNDED {
            return UNBOUNDED;
        }
        self.significant.max(self.points.1.max(self.units).saturating_sub(zeros))
    }

    /// How many zeros may still come.
    pub fn zeros(&self, left: Left) -> u32 {
        match left {
            Left::Zeros(_) if self.zeros == UNBOUNDED => UNBOUNDED,
            Left::Zeros(read) => self.zeros - read,
            Left::Digits(left) => left,
        }
    }

    /// After one more digit; `None` if there is no room for it.
    pub fn push(&self, left: Left, is_zero: bool) -> Option<Left> {
        let less = |digits| if digits == UNBOUNDED { digits } else { digits - 1 };
        match left {
            Left::Zeros(read) if is_zero => (read < self.zeros).then(|| Left::Zeros(read + 1)),
            Left::Zeros(read) => Some(Left::Digits(less(self.behind_zeros(read)))),
            Left::Digits(0) => None,
            Left::Digits(left) => Some(Left::Digits(less(left))),
        }
    }

    /// Whether the numbers of a gap without end stay below a power of ten.
    pub fn is_bounded(&self) -> bool {
        self.whole != UNBOUNDED
    }
}
