//! Plain spellings of numbers, as expressions.
//!
//! A *plain* number is `-?` digits, optionally a point and digits, without a leading zero. Where only whole numbers are
//! meant, there is no point. An exponent may follow where every number of the sign is in the set (`1e-07` is how libraries
//! write small numbers); beside a bound it would be a way to exceed it first and come back. Zeros at the end of a fraction are as good as none: who copies a price writes `18.40`. How
//! many digits there may be says [`Room`].
//!
//! Of a [`NumberSet`] each interval, whole range and single value becomes an expression without complements and
//! intersections. Sets with other multiples are machines (`number_machine`). For spellings with exponents see there, too.

use crate::charset::CharSet;
use crate::decimal::Decimal;
use crate::languages::{FxMap, Language, Languages, LimitExceeded, UNBOUNDED};
use crate::number_room::{Left, NumberDigits, Room};
use crate::number_set::NumberSet;

/// The end of an interval of magnitudes.
#[derive(Clone, Debug)]
struct Edge {
    value: Decimal,
    inclusive: bool,
}

/// An edge as digits of numbers with as many before the point.
struct Digits {
    digits: Vec<u8>,
    /// Behind which there are only zeros.
    end: usize,
    inclusive: bool,
}

impl Digits {
    fn new(edge: &Edge, whole: usize) -> Digits {
        let (mut text, places) = edge.value.parts();
        if whole == 0 {
            text.clear();
        }
        let digits: Vec<u8> = text.bytes().chain(places.bytes()).map(|digit| digit - b'0').collect();
        let end = digits.iter().rposition(|&digit| digit > 0).map_or(0, |last| last + 1);
        Digits { digits, end, inclusive: edge.inclusive }
    }

    fn at(&self, i: usize) -> u8 {
        self.digits.get(i).copied().unwrap_or(0)
    }
}

/// More intervals than this are a machine, and more whole numbers than this are taken out of a range as a list.
const MANY: usize = 16;

impl Languages {
    /// The plain spellings of the numbers in a set.
    pub fn plain_numbers_in(
        &mut self,
        set: &NumberSet,
        digits: Option<NumberDigits>,
    ) -> Result<Language, LimitExceeded> {
        let (room, set) = set.in_room(digits)?;
        if set.gaps.iter().all(|gap| gap.0.is_empty() || gap.is_always() || gap.is_whole()) {
            let sides = [self.plain_side(&set, &room, false), self.plain_side(&set, &room, true)];
            if let [Some(positive), Some(negative)] = sides {
                let minus = self.literal("-");
                let negative = self.concat(minus, negative);
                return Ok(self.union([positive, negative]));
            }
        }
        self.plain_machine(&set, room)
    }

    /// All plain spellings of whole numbers, without bounds.
    pub fn plain_integers(&mut self) -> Language {
        let (positive, zero, minus) = (self.free_whole(1, None, &Room::new(&NumberSet::integers(), None)), "0", "-");
        let (zero, minus) = (self.literal(zero), self.literal(minus));
        let negative = self.concat(minus, positive);
        self.union([zero, positive, negative])
    }

    /// Every spelling of every number (RFC 8259, section 6).
    pub fn all_numbers(&mut self) -> Language {
        let zero = self.literal("0");
        let first = self.digit_from(1, 9);
        let digits = self.any_digits(0, UNBOUNDED);
        let positive = self.concat(first, digits);
        let whole = self.union([zero, positive]);
        let digits = self.any_digits(1, UNBOUNDED);
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

    /// The magnitudes of the numbers from zero up, or of those below zero; `None` if there are very many intervals.
    fn plain_side(&mut self, set: &NumberSet, room: &Room, minus: bool) -> Option<Language> {
        let zero = set.points.partition_point(Decimal::is_negative);
        let places: Vec<usize> = if minus { (0..zero).rev().collect() } else { (zero + 1..set.points.len()).collect() };
        let first_gap = if minus { zero } else { zero + 1 };
        let gap_behind = |point: usize| if minus { point } else { point + 1 };
        let (mut parts, mut values): (Vec<Language>, Vec<Decimal>) = (Vec::new(), Vec::new());
        let (mut intervals, mut ranges): (usize, Vec<(Decimal, Option<Decimal>)>) = (0, Vec::new());
        // What is behind zero, and then behind each point. A point beside an interval is its end.
        let mut low = Edge { value: Decimal::ZERO, inclusive: set.has[zero] };
        let mut gap = &set.gaps[first_gap];
        if set.has[zero] && !minus && !gap.is_always() {
            values.push(Decimal::ZERO);
        }
        for next in places.iter().map(Some).chain([None]) {
            let high = next.map(|&at| Edge { value: set.points[at].magnitude(), inclusive: set.has[at] });
            let behind = next.map(|&at| &set.gaps[gap_behind(at)]);
            if gap.is_always() {
                intervals += 1;
                if intervals > MANY {
                    return None;
                }
                let mut numbers = self.interval(&low, high.as_ref(), room);
                if room.exponents[usize::from(minus)] {
                    let exponent = self.plain_exponent();
                    numbers = self.concat(numbers, exponent);
                }
                parts.push(numbers);
            } else if gap.is_whole() {
                let last = high.as_ref().map(|high| high.value.ceiling().minus_one());
                let first = low.value.floor().plus_one();
                if last.as_ref().is_none_or(|last| first <= *last) {
                    ranges.push((first, last));
                }
            }
            if let (Some(high), Some(behind)) = (high, behind) {
                if high.inclusive && !gap.is_always() && !behind.is_always() {
                    values.push(high.value.clone());
                }
                low = high;
                gap = behind;
            }
        }
        if !room.fraction {
            ranges.extend(values.drain(..).filter(|value| !value.is_zero()).map(|value| (value.clone(), Some(value))));
            if !minus && set.has[zero] {
                parts.push(self.literal("0"));
            }
        }
        parts.push(self.whole_ranges(ranges));
        parts.push(self.values(&values, room));
        Some(self.union(parts))
    }

    /// Nothing, or an exponent with which a number stays one that a double tells from zero and infinity.
    fn plain_exponent(&mut self) -> Language {
        let e = self.texts(["e", "E"]);
        let sign = self.texts(["", "+", "-"]);
        let (low, digit) = (self.digit_from(0, 1), self.digit_from(0, 9));
        let (two, upto, few) = (self.literal("2"), self.digit_from(0, 7), self.any_digits(1, 2));
        let hundreds = [self.sequence([low, digit, digit]), self.sequence([two, upto, digit])];
        let digits = self.union([few, hundreds[0], hundreds[1]]);
        let exponent = self.sequence([e, sign, digits]);
        self.optional(exponent)
    }

    /// Whole numbers above zero, without a point.
    fn whole_ranges(&mut self, mut ranges: Vec<(Decimal, Option<Decimal>)>) -> Language {
        let room = Room::new(&NumberSet::integers(), None);
        ranges.sort_unstable();
        let mut joined: Vec<(Decimal, Option<Decimal>)> = Vec::new();
        for (first, last) in ranges {
            match joined.last_mut() {
                Some((_, end)) if end.as_ref().is_some_and(|end| end.plus_one() == first) => *end = last,
                _ => joined.push((first, last)),
            }
        }
        // The first that is not in the range: most often a power of ten, to which no digits need be compared.
        let behind = |last: Decimal| Edge { value: last.plus_one(), inclusive: false };
        let single = |(first, last): &(Decimal, Option<Decimal>)| last.as_ref() == Some(first);
        let texts: Vec<String> = joined.iter().filter(|range| single(range)).map(|range| range.0.to_string()).collect();
        let wide: Vec<_> = joined.into_iter().filter(|range| !single(range)).collect();
        let texts = self.long_texts(&texts);
        if wide.len() <= MANY {
            let mut parts = vec![texts];
            for (first, last) in wide {
                let low = Edge { value: first, inclusive: true };
                parts.push(self.interval(&low, last.map(behind).as_ref(), &room));
            }
            return self.union(parts);
        }
        // One range, of which a list is taken out.
        let low = Edge { value: wide[0].0.clone(), inclusive: true };
        let high = wide[wide.len() - 1].1.clone().map(behind);
        let all = self.interval(&low, high.as_ref(), &room);
        let (mut holes, mut ranges) = (Vec::new(), Vec::new());
        for pair in wide.windows(2) {
            let Some(end) = &pair[0].1 else { continue };
            let (first, last) = (end.plus_one(), pair[1].0.minus_one());
            if first == last {
                holes.push(first.to_string());
            } else {
                let [low, high] = [first, last].map(|value| Edge { value, inclusive: true });
                ranges.push(self.interval(&low, Some(&high), &room));
            }
        }
        let holes = self.long_texts(&holes);
        ranges.push(holes);
        let holes = self.union(ranges);
        let all = self.difference(all, holes);
        self.union([all, texts])
    }

    /// Texts, of which long ones are sequences of parts.
    fn long_texts(&mut self, texts: &[String]) -> Language {
        const LONG: usize = 400;
        let short = self.texts(texts.iter().filter(|text| text.len() <= LONG).map(String::as_str));
        let mut parts: Vec<Language> =
            texts.iter().filter(|text| text.len() > LONG).map(|text| self.literal(text)).collect();
        parts.push(short);
        self.union(parts)
    }

    /// Single magnitudes, with zeros at the end as far as there is room.
    fn values(&mut self, values: &[Decimal], room: &Room) -> Language {
        let mut groups: FxMap<(bool, u32), Vec<String>> = FxMap::default();
        for value in values {
            let (whole, places) = value.parts();
            let mut left = Some(room.at_point(if whole == "0" { 0 } else { whole.len() as u32 }));
            for digit in places.bytes() {
                left = left.and_then(|left| room.push(left, digit == b'0'));
            }
            let zeros = left.map_or(0, |left| room.zeros(left));
            groups.entry((places.is_empty(), zeros)).or_default().push(value.to_string());
        }
        let mut parts = Vec::new();
        for ((is_whole, zeros), texts) in groups {
            let texts = self.long_texts(&texts);
            let zeros = self.zero_digits(u32::from(is_whole), zeros);
            let end = if is_whole { self.behind_point(zeros) } else { zeros };
            parts.push(self.concat(texts, end));
        }
        parts.sort_unstable();
        self.union(parts)
    }

    // ---- intervals ----

    fn digit_from(&mut self, lo: u8, hi: u8) -> Language {
        if lo > hi {
            return Language::EMPTY;
        }
        self.set(CharSet::new([(u32::from(b'0' + lo), u32::from(b'0' + hi))]))
    }

    fn any_digits(&mut self, min: u32, max: u32) -> Language {
        let digit = self.digit_from(0, 9);
        if max < min { Language::EMPTY } else { self.repeat(digit, min, max) }
    }

    fn zero_digits(&mut self, min: u32, max: u32) -> Language {
        let zero = self.digit_from(0, 0);
        if max < min { Language::EMPTY } else { self.repeat(zero, min, max) }
    }

    /// Nothing, or a point and these digits.
    fn behind_point(&mut self, digits: Language) -> Language {
        let point = self.literal(".");
        let some = self.concat(point, digits);
        self.optional(some)
    }

    /// Magnitudes from `low` to `high`.
    fn interval(&mut self, low: &Edge, high: Option<&Edge>, room: &Room) -> Language {
        let mut parts = Vec::new();
        let top = high.map(|high| high.value.top());
        if room.fraction && low.value.top() <= 0 {
            let high = high.filter(|high| high.value.top() <= 0);
            let zero = self.literal("0");
            let rest = self.between(0, Some(low), high, room);
            parts.push(self.concat(zero, rest));
        }
        // Numbers with as many digits as one of the edges are compared with it.
        let mut first = 1;
        if low.inclusive && low.value.is_power_of_ten() && top.is_none_or(|top| low.value.top() < top) {
            // All that have as many digits.
            first = low.value.top().max(1);
        } else if low.value.top() >= 1 {
            let high = high.filter(|high| high.value.top() == low.value.top());
            parts.push(self.between(low.value.top() as usize, Some(low), high, room));
            first = low.value.top() + 1;
        }
        let last = top.map(|top| top - 1);
        if last.is_none_or(|last| first <= last) {
            parts.push(self.free_whole(first as usize, last.map(|last| last as usize), room));
        }
        if let (Some(high), Some(top)) = (high, top)
            && top >= first
            && (high.inclusive || !high.value.is_power_of_ten())
        {
            parts.push(self.between(top as usize, None, Some(high), room));
        }
        self.union(parts)
    }

    /// All magnitudes with `first` to `last` digits before the point, from one.
    fn free_whole(&mut self, first: usize, last: Option<usize>, room: &Room) -> Language {
        let digit = self.digit_from(0, 9);
        let lead = self.digit_from(1, 9);
        let lead_more = self.any_digits(first as u32 - 1, first as u32 - 1);
        let fraction = |l: &mut Languages, whole: usize| {
            let left = room.at_point(whole as u32);
            l.fraction(left, room)
        };
        let Some(last) = last else {
            // Without a bound the room is the same everywhere.
            let (more, end) = (self.any_digits(0, UNBOUNDED), fraction(self, first));
            return self.sequence([lead, lead_more, more, end]);
        };
        // From the longest down; where there is no room behind the point, they are just digits.
        let bare = (first..=last).rev().take_while(|&whole| room.at_point(whole as u32) == Left::Digits(0)).count();
        let mut at = last - bare + 1;
        let mut rest = if bare > 0 { self.any_digits(0, bare as u32 - 1) } else { Language::EMPTY };
        while at > first {
            at -= 1;
            let (end, more) = (fraction(self, at), self.concat(digit, rest));
            rest = self.union([end, more]);
        }
        self.sequence([lead, lead_more, rest])
    }

    /// From before the point: nothing, or a point and digits.
    fn fraction(&mut self, left: Left, room: &Room) -> Language {
        let some = self.digits_at_point(left, room);
        self.behind_point(some)
    }

    /// All digits for which there is room.
    fn digits_left(&mut self, left: Left, room: &Room) -> Language {
        match left {
            Left::Digits(left) => self.any_digits(0, left),
            Left::Zeros(_) if room.behind_zeros(0) == UNBOUNDED => self.any_digits(0, UNBOUNDED),
            Left::Zeros(read) => {
                let most = read + room.zeros(left);
                let mut at = most;
                // Zeros, of which any number has the same behind it.
                while at > read && room.behind_zeros(at - 1) == room.behind_zeros(most) {
                    at -= 1;
                }
                let end = self.behind_leading_zeros(most, room);
                let (zeros, end) = (self.zero_digits(0, most - at), self.optional(end));
                let mut rest = self.concat(zeros, end);
                while at > read {
                    at -= 1;
                    let (zero, some) = (self.digit_from(0, 0), self.behind_leading_zeros(at, room));
                    let more = self.concat(zero, rest);
                    rest = self.union([Language::EPSILON, some, more]);
                }
                rest
            }
        }
    }

    /// The first digit that is not zero, and all that follow.
    fn behind_leading_zeros(&mut self, zeros: u32, room: &Room) -> Language {
        let more = room.behind_zeros(zeros);
        let (first, more) =
            (self.digit_from(1, 9), self.any_digits(0, if more == UNBOUNDED { more } else { more - 1 }));
        self.concat(first, more)
    }

    /// The same, at least one.
    fn digits_at_point(&mut self, left: Left, room: &Room) -> Language {
        match left {
            Left::Digits(0) => Language::EMPTY,
            Left::Digits(left) => self.any_digits(1, left),
            Left::Zeros(_) if room.behind_zeros(0) == UNBOUNDED => self.any_digits(1, UNBOUNDED),
            Left::Zeros(read) => {
                let some = self.behind_leading_zeros(read, room);
                let Some(next) = room.push(left, true) else { return some };
                let (zero, rest) = (self.digit_from(0, 0), self.digits_left(next, room));
                let more = self.concat(zero, rest);
                self.union([some, more])
            }
        }
    }

    /// Digits that are not all zero.
    fn some_left(&mut self, left: Left, room: &Room) -> Language {
        let (zero, first) = (self.digit_from(0, 0), self.digit_from(1, 9));
        match left {
            Left::Digits(UNBOUNDED) => {
                let (zeros, more) = (self.zero_digits(0, UNBOUNDED), self.any_digits(0, UNBOUNDED));
                self.sequence([zeros, first, more])
            }
            Left::Digits(left) => {
                let mut some = Language::EMPTY;
                for room in 0..left {
                    let (more, later) = (self.any_digits(0, room), self.concat(zero, some));
                    let now = self.concat(first, more);
                    some = self.union([now, later]);
                }
                some
            }
            Left::Zeros(_) if room.behind_zeros(0) == UNBOUNDED => self.some_left(Left::Digits(UNBOUNDED), room),
            Left::Zeros(read) => {
                let most = read + room.zeros(left);
                let mut some = self.behind_leading_zeros(most, room);
                for at in (read..most).rev() {
                    let (now, later) = (self.behind_leading_zeros(at, room), self.concat(zero, some));
                    some = self.union([now, later]);
                }
                some
            }
        }
    }

    /// Magnitudes with `whole` digits before the point (0: those below one, from behind their zero on) from `low` to `high`,
    /// which have as many.
    fn between(&mut self, whole: usize, low: Option<&Edge>, high: Option<&Edge>, room: &Room) -> Language {
        let low = low.map(|edge| Digits::new(edge, whole));
        let high = high.map(|edge| Digits::new(edge, whole));
        match (low, high) {
            (None, None) => self.free_rest(0, whole, room.at_point(whole as u32), room),
            (Some(low), None) => self.not_below(&low, 0, whole, room),
            (None, Some(high)) => self.not_above(&high, 0, whole, room),
            (Some(low), Some(high)) => self.between_edges(&low, &high, whole, room),
        }
    }

    /// What is left behind each beginning of `digits`, from the point on.
    fn lefts(&self, digits: &Digits, whole: usize, upto: usize, room: &Room) -> Vec<Option<Left>> {
        let mut lefts = vec![Some(room.at_point(whole as u32)); whole + 1];
        for i in whole..upto {
            let left = lefts[i].and_then(|left| room.push(left, digits.at(i) == 0));
            lefts.push(left);
        }
        lefts
    }

    /// Behind `i` digits, without edges.
    fn free_rest(&mut self, i: usize, whole: usize, left: Left, room: &Room) -> Language {
        if i > whole {
            return self.digits_left(left, room);
        }
        let missing = (whole - i) as u32;
        let first = if i == 0 && whole > 0 { self.digit_from(1, 9) } else { Language::EPSILON };
        let more = missing - u32::from(i == 0 && whole > 0);
        let (more, end) = (self.any_digits(more, more), self.fraction(left, room));
        self.sequence([first, more, end])
    }

    /// The alternatives for the digit at `i`: each a range of digits, and what follows. At the point, that comes before.
    fn digits_at(&mut self, i: usize, whole: usize, alternatives: &[(u8, u8, Language)]) -> Language {
        let mut parts = Vec::with_capacity(alternatives.len());
        for &(lo, hi, rest) in alternatives {
            let digit = self.digit_from(lo, hi);
            parts.push(self.concat(digit, rest));
        }
        let parts = self.union(parts);
        if i == whole {
            let point = self.literal(".");
            return self.concat(point, parts);
        }
        parts
    }

    /// What follows a digit of the range at `i` that is not the edge's.
    fn apart(
        &mut self,
        i: usize,
        lo: u8,
        hi: u8,
        whole: usize,
        left: Option<Left>,
        room: &Room,
    ) -> [(u8, u8, Language); 2] {
        let mut rest = |lo: u8, hi: u8, zero: bool| {
            if lo > hi {
                return (1, 0, Language::EMPTY);
            }
            let next = if i < whole { left } else { left.and_then(|left| room.push(left, zero)) };
            (lo, hi, next.map_or(Language::EMPTY, |next| self.free_rest(i + 1, whole, next, room)))
        };
        if i >= whole && matches!(left, Some(Left::Zeros(_))) {
            return [rest(lo, 0, true), rest(lo.max(1), hi, false)];
        }
        [rest(lo, hi, false), (1, 0, Language::EMPTY)]
    }

    /// Behind the first `start` digits of `low`: what is not below it.
    fn not_below(&mut self, low: &Digits, start: usize, whole: usize, room: &Room) -> Language {
        let end = low.end.max(start).max(if low.inclusive { 0 } else { whole });
        let lefts = self.lefts(low, whole, end, room);
        let left = |i: usize| lefts[i.max(whole)];
        let mut rest = match left(end) {
            None => Language::EMPTY,
            Some(left) if low.inclusive => self.free_rest(end, whole, left, room),
            Some(left) => {
                let some = self.some_left(left, room);
                let point = if end == whole { self.literal(".") } else { Language::EPSILON };
                self.concat(point, some)
            }
        };
        for i in (start..end).rev() {
            let digit = low.at(i);
            let [a, b] = self.apart(i, digit + 1, 9, whole, left(i), room);
            rest = self.digits_at(i, whole, &[(digit, digit, rest), a, b]);
        }
        rest
    }

    /// Behind the first `start` digits of `high`: what is not above it.
    fn not_above(&mut self, high: &Digits, start: usize, whole: usize, room: &Room) -> Language {
        let end = high.end.max(start);
        let lefts = self.lefts(high, whole, end, room);
        let left = |i: usize| lefts[i.max(whole)];
        let mut rest = match left(end) {
            Some(left) if high.inclusive => self.zeros_to_end(end, whole, left, room),
            _ => Language::EMPTY,
        };
        for i in (start..end).rev() {
            let digit = high.at(i);
            let least = u8::from(i == 0 && whole > 0);
            let below = if digit > least {
                self.apart(i, least, digit - 1, whole, left(i), room)
            } else {
                [(1, 0, Language::EMPTY); 2]
            };
            let [a, b] = below;
            rest = self.digits_at(i, whole, &[(digit, digit, rest), a, b]);
            if i >= whole {
                rest = self.optional(rest);
            }
        }
        rest
    }

    /// Zeros up to the point, and zeros or nothing behind it.
    fn zeros_to_end(&mut self, i: usize, whole: usize, left: Left, room: &Room) -> Language {
        let zeros = room.zeros(left);
        if i > whole {
            return self.zero_digits(0, zeros);
        }
        let missing = (whole - i) as u32;
        let (more, zeros) =
            (self.zero_digits(missing, missing), self.zero_digits(1, if room.fraction { zeros } else { 0 }));
        let end = self.behind_point(zeros);
        self.concat(more, end)
    }

    fn between_edges(&mut self, low: &Digits, high: &Digits, whole: usize, room: &Room) -> Language {
        let longest = low.end.max(high.end);
        let shared = (0..longest).take_while(|&i| low.at(i) == high.at(i)).count();
        let lefts = self.lefts(low, whole, shared, room);
        let Some(left) = lefts[shared.max(whole)] else { return Language::EMPTY };
        let mut rest = if shared == longest {
            if low.inclusive && high.inclusive { self.zeros_to_end(shared, whole, left, room) } else { Language::EMPTY }
        } else if low.at(shared) > high.at(shared) {
            Language::EMPTY
        } else if shared >= low.end && low.inclusive {
            self.not_above(high, shared, whole, room)
        } else {
            let (a, b) = (low.at(shared), high.at(shared));
            let next = if shared < whole { Some(left) } else { room.push(left, a == 0) };
            let from = if next.is_some() { self.not_below(low, shared + 1, whole, room) } else { Language::EMPTY };
            let to = if next.is_some() { self.not_above(high, shared + 1, whole, room) } else { Language::EMPTY };
            let [c, d] = if b - a > 1 {
                self.apart(shared, a + 1, b - 1, whole, Some(left), room)
            } else {
                [(1, 0, Language::EMPTY); 2]
            };
            self.digits_at(shared, whole, &[(a, a, from), (b, b, to), c, d])
        };
        for i in (0..shared).rev() {
            let digit = low.at(i);
            rest = self.digits_at(i, whole, &[(digit, digit, rest)]);
            if i >= whole && i >= low.end && low.inclusive {
                rest = self.optional(rest);
            }
        }
        rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn d(text: &str) -> Decimal {
        Decimal::parse(text).unwrap()
    }

    fn check(set: &NumberSet, yes: &[&str], no: &[&str]) {
        let mut l = Languages::new();
        let numbers = l.plain_numbers_in(set, Some(NumberDigits::DEFAULT)).unwrap();
        yes.iter().for_each(|text| assert!(l.matches(numbers, text), "{set} {text}"));
        no.iter().for_each(|text| assert!(!l.matches(numbers, text), "{set} {text}"));
    }

    #[test]
    fn plain_spellings() {
        let nines = |n| "9".repeat(n);
        check(
            &NumberSet::all(),
            &["0", "-0", "-0.0", "1.0", "1.00", "18.40", "1.5", "-12.05", "100", "0.001", "-0.5", "0.00", &nines(19)],
            &["01", "1.", ".5", "-", "", "00", "-01", &nines(20), "1e", "1e280", "1e-0007", "1.e5"],
        );
        check(
            &NumberSet::all(),
            &["0.30000000000000004", "12345678901234.567"],
            &["0.300000000000000041", "12345678901234.5678"],
        );
        check(
            &NumberSet::all(),
            &["0.00000000000000000123", "1234567890123456789"],
            &["0.000000000000000000123", "12345678901234567.8"],
        );
        check(&NumberSet::all(), &["1e5", "1e-07", "-1.256E-06", "1.0e+25", "0e1", "1e279"], &["e5", "-e5"]);
        check(&NumberSet::at_least(&Decimal::ZERO), &["1e-07", "0", "0.0"], &["-1e-07", "-0"]);
        check(&NumberSet::at_least(&d("1")), &["1", "1.00"], &["1e0", "1e-07"]);
        check(&NumberSet::integers(), &["0", "-7", &nines(19)], &["-0", "5.", "5.0", &nines(20)]);
        check(
            &NumberSet::equal(&d("18.4")),
            &["18.4", "18.40", "18.400000000000000"],
            &["18", "18.", "18.41", "-18.4", "18.4000000000000000"],
        );
        check(&NumberSet::equal(&d("5")), &["5"], &["5.0", "5."]);
        let two = NumberSet::union(vec![NumberSet::equal(&d("5")), NumberSet::equal(&d("-0.25"))]).unwrap();
        check(&two, &["5", "5.0", "5.00", "-0.25", "-0.250"], &["-5", "5.01", "-0.2", "-0.2500000000000000000"]);
    }

    #[test]
    fn nothing_is_begun_that_has_no_end() {
        let mut l = Languages::new();
        let positive = NumberSet::at_least(&Decimal::ZERO);
        let numbers = l.plain_numbers_in(&positive, Some(NumberDigits::DEFAULT)).unwrap();
        // Nothing but a zero could follow a minus.
        assert_eq!(l.step(numbers, u32::from('-')), Language::EMPTY);
        let integers = l.plain_numbers_in(&NumberSet::integers(), Some(NumberDigits::DEFAULT)).unwrap();
        let five = l.step(integers, u32::from('5'));
        assert_eq!(l.step(five, u32::from('.')), Language::EMPTY);
    }

    #[test]
    fn a_bound_on_digits_gives_way_to_the_schema() {
        let far = d("1e30");
        check(&NumberSet::equal(&far), &[&format!("1{}", "0".repeat(30))], &["1"]);
        check(&NumberSet::at_least(&far), &[&format!("2{}", "0".repeat(30))], &["3"]);
        let near = NumberSet::intersection(vec![NumberSet::above(&d("1e-30")), NumberSet::below(&d("2e-30"))]).unwrap();
        check(&near, &[&format!("0.{}15", "0".repeat(29))], &["0", "0.1"]);
        let next = [d("100000000000000000000.25"), d("100000000000000000000.26")];
        let next = NumberSet::intersection(vec![NumberSet::above(&next[0]), NumberSet::below(&next[1])]).unwrap();
        check(&next, &["100000000000000000000.253"], &["100000000000000000000.25", "100000000000000000000.26"]);
        check(&NumberSet::multiples_of(&d("1e100")), &["0", &format!("-3{}", "0".repeat(100))], &["1", "10"]);
    }
}
