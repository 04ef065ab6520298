//! Every spelling of the numbers in a set (RFC 8259, section 6), with and without exponents, as a machine.
//!
//! Up to an `e`, a state is what matters of the digits; behind it, the exponents that are left. Both are kept in a form in
//! which equal futures mostly are equal, and a state is made only if some number goes on like this.

use crate::alphabet::Alphabet;
use crate::charset::CharSet;
use crate::exponents::Spans;
use crate::languages::{Language, Languages, LimitExceeded};
use crate::machine::Machine;
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
        let machine = Spellings::new(&set)?;
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
}

impl Spellings {
    fn new(set: &NumberSet) -> Result<Spellings, LimitExceeded> {
        let classes = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", ".", "eE", "+", "-"];
        let classes = classes.map(|class| CharSet::new(class.chars().map(|c| (c as u32, c as u32))));
        Ok(Spellings {
            name: format!("numbers {set}"),
            sides: [Side::new(set, false)?, Side::new(set, true)?],
            alphabet: Alphabet::new(&classes),
        })
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
            (Zero | Whole, '.', _) => Point,
            (Point | Fraction, _, Some(digit)) => {
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
        (state.place < E || !state.spans.is_empty()).then_some(state)
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
        State { place: Place::Start, minus: false, digits: Digits::default(), spans: nothing, exponent: 0 }.write()
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
            out.extend(rest.to_bytes_le());
        }
        out.into()
    }

    fn read(bytes: &[u8]) -> State {
        let (first, mut rest) = (bytes[0], &bytes[1..]);
        let (place, minus) = (PLACES[usize::from(first & 15)], first & 16 > 0);
        let mut digits = Digits { some: first & 32 > 0, ..Digits::default() };
        let (mut spans, mut exponent) = (Vec::new(), 0);
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
            digits.rest = BigUint::from_bytes_le(rest);
        }
        State { place, minus, digits, spans: Spans(spans), exponent }
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
