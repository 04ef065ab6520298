//! Spellings of the numbers in a set as a machine: every one (RFC 8259, section 6), or the plain ones, without exponents.
//!
//! Up to an `e`, a state is what matters of the digits; behind it, the exponents that are left. Both are kept in a form in
//! which equal futures mostly are equal, and a state is made only if some number goes on like this.

use crate::alphabet::Alphabet;
use crate::charset::CharSet;
use crate::exponents::Spans;
use crate::languages::{Language, Languages, LimitExceeded};
use crate::machine::Machine;
use crate::number_room::{Left, Room};
use crate::number_set::NumberSet;
use crate::number_side::{Digits, Side};
use num_bigint::BigUint;
use std::sync::Arc;

impl Languages {
    /// Every spelling of the numbers in a set.
    pub fn numbers_in(&mut self, set: &NumberSet) -> Result<Language, LimitExceeded> {
        if set.is_all() {
            return Ok(self.all_numbers());
        }
        let set = set.clone().without_vain_terms();
        self.spellings(Spellings::new(&set, None)?)
    }

    /// The plain spellings of the numbers in a set, for which there is room before the point.
    pub(crate) fn plain_machine(&mut self, set: &NumberSet, room: Room) -> Result<Language, LimitExceeded> {
        let set = set.clone().without_vain_terms();
        let numbers = self.spellings(Spellings::new(&set, Some(room))?)?;
        if self.can_write("0123456789.-") {
            return Ok(numbers);
        }
        let any = self.any_char();
        let writable = self.star(any);
        Ok(self.and([numbers, writable]))
    }

    fn spellings(&mut self, machine: Spellings) -> Result<Language, LimitExceeded> {
        Ok(if machine.sides.iter().all(|side| side.start().is_none()) {
            Language::EMPTY
        } else {
            self.machine(Arc::new(machine))
        })
    }
}

#[derive(Debug)]
struct Spellings {
    name: String,
    /// The numbers from zero up, and those from zero down.
    sides: [Side; 2],
    alphabet: Alphabet,
    /// The room for digits, where there are no exponents.
    plain: Option<Room>,
}

/// Where in a number a text ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
enum Place {
    Start,
    Minus,
    /// After a zero at the front, which no digit follows.
    Zero,
    Whole,
    Point,
    Fraction,
    E,
    Sign,
    Exponent,
}

const PLACES: [Place; 9] = {
    use Place::*;
    [Start, Minus, Zero, Whole, Point, Fraction, E, Sign, Exponent]
};

#[derive(Clone, Debug)]
struct State {
    place: Place,
    minus: bool,
    digits: Digits,
    /// Behind an `e`: which exponents are left, without their sign once it is known.
    spans: Spans,
    /// What was read of the exponent.
    exponent: i64,
    /// Behind the point of a plain number.
    left: Option<Left>,
}

impl Spellings {
    fn new(set: &NumberSet, plain: Option<Room>) -> Result<Spellings, LimitExceeded> {
        let classes = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", ".", "eE", "+", "-"];
        let classes = classes.map(|class| CharSet::new(class.chars().map(|c| (c as u32, c as u32))));
        Ok(Spellings {
            name: match &plain {
                None => format!("numbers {set}"),
                Some(room) => format!("plain numbers {set} {room:?}"),
            },
            sides: [Side::new(set, false, plain.is_some())?, Side::new(set, true, plain.is_some())?],
            alphabet: Alphabet::new(&classes),
            plain,
        })
    }

    /// Whether a plain number can go on like this.
    fn is_alive(&self, room: &Room, state: &State) -> bool {
        let (side, digits) = (self.side(state), &state.digits);
        let here = (digits.shift, digits.shift);
        match (state.place, state.left) {
            (Place::Start, _) => true,
            // A minus before a zero alone is the beginning of nothing else.
            (Place::Minus, _) => side.has_some(),
            (Place::Zero, _) => (room.fraction || !state.minus) && side.begins(digits, here),
            (Place::Whole, _) => side.begins(digits, (digits.shift, i64::MAX)),
            (Place::Point, left) => left != Some(Left::Digits(0)) && side.begins(digits, here),
            (Place::Fraction, Some(Left::Digits(0))) => side.exponents(digits).contains(0),
            (Place::Fraction, _) => side.begins(digits, here),
            _ => false,
        }
    }

    fn side(&self, state: &State) -> &Side {
        &self.sides[usize::from(state.minus)]
    }

    fn next(&self, mut state: State, c: char) -> Option<State> {
        use Place::*;
        let digit = c.to_digit(10).map(|digit| digit as u8);
        state.place = match (state.place, c, digit) {
            (Start, '-', _) => {
                state.minus = true;
                self.side(&state).start()?;
                Minus
            }
            (Start | Minus, _, Some(digit)) => {
                let start = self.side(&state).start()?;
                state.digits = self.side(&state).push(start, digit, false)?;
                if digit == 0 { Zero } else { Whole }
            }
            (Whole, _, Some(digit)) => {
                state.digits = self.side(&state).push(std::mem::take(&mut state.digits), digit, false)?;
                Whole
            }
            (Zero | Whole, '.', _) => {
                let whole = if state.digits.some { state.digits.shift as u32 } else { 0 };
                state.left = self.plain.as_ref().map(|room| room.at_point(whole));
                Point
            }
            (Point | Fraction, _, Some(digit)) => {
                if let (Some(room), Some(left)) = (&self.plain, state.left) {
                    state.left = Some(room.push(left, digit == 0)?);
                }
                state.digits = self.side(&state).push(std::mem::take(&mut state.digits), digit, true)?;
                Fraction
            }
            (Zero | Whole | Fraction, 'e' | 'E', _) => {
                state.spans = self.side(&state).exponents(&state.digits);
                (state.digits, state.minus) = (Digits::default(), false);
                E
            }
            (E, '+' | '-', _) => {
                state.spans = state.spans.after_sign(c == '-');
                Sign
            }
            (E | Sign | Exponent, _, Some(digit)) => {
                if state.place == E {
                    state.spans = state.spans.after_sign(false);
                }
                let read = state.exponent.checked_mul(10).and_then(|read| read.checked_add(digit.into()));
                (state.spans, state.exponent) = state.spans.after_digits(read)?;
                Exponent
            }
            _ => return None,
        };
        let alive = match &self.plain {
            Some(room) => self.is_alive(room, &state),
            None => state.place < E || !state.spans.is_empty(),
        };
        alive.then_some(state)
    }
}

impl Machine for Spellings {
    fn name(&self) -> &str {
        &self.name
    }

    fn alphabet(&self, _state: &[u8]) -> &Alphabet {
        &self.alphabet
    }

    fn start(&self) -> Box<[u8]> {
        let nothing = Spans::default();
        State { place: Place::Start, minus: false, digits: Digits::default(), spans: nothing, exponent: 0, left: None }
            .write()
    }

    fn step(&self, state: &[u8], c: char) -> Option<Box<[u8]>> {
        self.next(State::read(state), c).map(|next| next.write())
    }

    fn accepts(&self, state: &[u8]) -> bool {
        let state = State::read(state);
        match state.place {
            Place::Zero | Place::Whole | Place::Fraction => self.side(&state).exponents(&state.digits).contains(0),
            Place::Exponent => state.spans.contains(state.exponent),
            _ => false,
        }
    }

    fn reads(&self, _state: &[u8]) -> CharSet {
        CharSet::new("+-.0123456789Ee".chars().map(|c| (c as u32, c as u32)))
    }

    /// Of a plain number: a digit that ends it, or one of some number with as few digits before the point as can be.
    fn way(&self, state: &[u8]) -> Option<char> {
        self.plain.as_ref()?;
        let state = State::read(state);
        let digits = || ('0'..='9').filter_map(|c| Some((c, self.next(state.clone(), c)?)));
        let accepts = |next: &State| next.place >= Place::Zero && self.side(next).exponents(&next.digits).contains(0);
        match state.place {
            Place::Start | Place::Minus | Place::Whole => {
                let (least, most) = self.side(&state).tops();
                // A zero at the front ends the whole part.
                let zero = digits().next().filter(|_| state.place < Place::Whole).filter(|(c, _)| *c == '0');
                let mut powers = least.max(state.digits.shift).max(1)..=most;
                let shortest = |power: i64| {
                    if state.digits.shift == power {
                        return Some('.');
                    }
                    let begins = |next: &State| self.side(next).begins(&next.digits, (power, power));
                    digits().find(|(c, next)| (*c != '0' || state.digits.some) && begins(next)).map(|(c, _)| c)
                };
                let begins = |power| !state.digits.some || self.side(&state).begins(&state.digits, (power, power));
                let minus = || self.next(state.clone(), '-').map(|_| '-');
                let found = zero
                    .map(|(c, _)| c)
                    .or_else(|| powers.find_map(|power| begins(power).then(|| shortest(power)).flatten()));
                found.or_else(minus)
            }
            Place::Zero => Some('.'),
            Place::Point | Place::Fraction => {
                digits().find(|(_, next)| accepts(next)).or_else(|| digits().next()).map(|(c, _)| c)
            }
            _ => None,
        }
    }

    fn least(&self, state: &[u8]) -> u32 {
        if self.accepts(state) {
            return 0;
        }
        let state = State::read(state);
        self.side(&state).least(&state.digits).max(1)
    }
}

impl State {
    fn write(&self) -> Box<[u8]> {
        let mut out = Vec::with_capacity(32);
        out.push(self.place as u8 | u8::from(self.minus) << 4 | u8::from(self.digits.some) << 5);
        if self.place >= Place::E {
            put(&mut out, self.exponent);
            self.spans.0.iter().for_each(|&(low, high)| {
                put(&mut out, low);
                put(&mut out, high);
            });
        } else if self.place > Place::Minus {
            let Digits { some: _, like, shared, shift, places, zeros, rest, length } = &self.digits;
            for number in [like.start as i64, like.end as i64, *shared as i64, *shift, *places, *zeros] {
                put(&mut out, number);
            }
            put(&mut out, length.map_or(-1, |length| length as i64));
            // Room without a bound is the greatest number, so zeros are told by their sign.
            put(
                &mut out,
                match self.left {
                    None => 0,
                    Some(Left::Digits(left)) => 1 + i64::from(left),
                    Some(Left::Zeros(read)) => -1 - i64::from(read),
                },
            );
            out.extend(rest.to_bytes_le());
        }
        out.into()
    }

    fn read(bytes: &[u8]) -> State {
        let (first, mut rest) = (bytes[0], &bytes[1..]);
        let (place, minus) = (PLACES[usize::from(first & 15)], first & 16 > 0);
        let mut digits = Digits { some: first & 32 > 0, ..Digits::default() };
        let (mut spans, mut exponent, mut left) = (Vec::new(), 0, None);
        if place >= Place::E {
            exponent = take(&mut rest);
            while !rest.is_empty() {
                spans.push((take(&mut rest), take(&mut rest)));
            }
        } else if place > Place::Minus {
            let [start, end, shared] = [(); 3].map(|()| take(&mut rest) as usize);
            (digits.like, digits.shared) = (start..end, shared);
            [digits.shift, digits.places, digits.zeros] = [(); 3].map(|()| take(&mut rest));
            digits.length = usize::try_from(take(&mut rest)).ok();
            left = match take(&mut rest) {
                0 => None,
                digits @ 1.. => Some(Left::Digits((digits - 1) as u32)),
                zeros => Some(Left::Zeros((-1 - zeros) as u32)),
            };
            digits.rest = BigUint::from_bytes_le(rest);
        }
        State { place, minus, digits, spans: Spans(spans), exponent, left }
    }
}

/// Small numbers of either sign are single bytes.
fn put(out: &mut Vec<u8>, number: i64) {
    let mut left = (number << 1 ^ number >> 63) as u64;
    while left > 127 {
        out.push(left as u8 | 128);
        left >>= 7;
    }
    out.push(left as u8);
}

fn take(bytes: &mut &[u8]) -> i64 {
    let (mut number, mut shift) = (0u64, 0);
    while let Some((&byte, rest)) = bytes.split_first() {
        *bytes = rest;
        number |= u64::from(byte & 127) << shift;
        shift += 7;
        if byte < 128 {
            break;
        }
    }
    (number >> 1) as i64 ^ -((number & 1) as i64)
}
