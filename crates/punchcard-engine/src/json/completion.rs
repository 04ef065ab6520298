//! Completions: bytes that bring a text to an end, whatever it has come to.
//!
//! One reading of the text is followed, frame by frame from the innermost outward: the rest of the string, of the number,
//! of the object and so on. That there always is one is what "no dead ends" means, so this is its witness, too.

use super::machine::{Frame, Machine, Phase, Reading};
use crate::automaton::ConfigId;
use crate::leaf::{Encoding, LeafId};
use punchcard_automata::Language;
use punchcard_schema::example::escaped;
use punchcard_schema::{Formula, ObjectState, SchemaError};

/// Most bytes of a completion.
const MOST_BYTES: usize = 16 << 20;

impl Machine {
    /// Bytes after which the text may end; `None` if the search for an example finds none within the limits.
    pub fn completion(&mut self, config: ConfigId) -> Result<Option<Vec<u8>>, SchemaError> {
        if self.is_accepting(config) {
            return Ok(Some(Vec::new()));
        }
        for i in 0..self.readings_of(config).len() {
            let reading = self.readings_of(config)[i];
            if let Some(bytes) = self.completion_of(reading)? {
                return Ok(Some(bytes));
            }
        }
        Ok(None)
    }

    pub(super) fn completion_of(&mut self, start: Reading) -> Result<Option<Vec<u8>>, SchemaError> {
        let (mut reading, mut out) = (start, Vec::new());
        while !Self::is_at_end(reading) {
            let Some((piece, next)) = self.completion_step(reading)?.filter(|_| out.len() <= MOST_BYTES) else {
                return Ok(None);
            };
            out.extend(piece);
            reading = next;
        }
        Ok(Some(out))
    }

    /// How many bytes complete the text; `None` if no example is found within the limits.
    pub(crate) fn completion_length(&mut self, config: ConfigId) -> Result<Option<usize>, SchemaError> {
        if self.is_accepting(config) {
            return Ok(Some(0));
        }
        Ok(self.completing(config)?.and_then(|reading| self.lengths[&reading]))
    }

    /// The reading that is followed to complete the text.
    pub(crate) fn completing(&mut self, config: ConfigId) -> Result<Option<Reading>, SchemaError> {
        for i in 0..self.readings_of(config).len() {
            let reading = self.readings_of(config)[i];
            if self.length_of(reading)?.is_some() {
                return Ok(Some(reading));
            }
        }
        Ok(None)
    }

    /// How many bytes complete a reading. What is known of one is known of all readings on its way.
    fn length_of(&mut self, start: Reading) -> Result<Option<usize>, SchemaError> {
        let (mut at, mut way, mut bytes) = (start, Vec::new(), 0);
        let rest = loop {
            if let Some(&known) = self.lengths.get(&at) {
                break known;
            }
            if Self::is_at_end(at) {
                way.push((at, 0));
                break Some(0);
            }
            let Some((piece, next)) = self.completion_step(at)?.filter(|_| bytes <= MOST_BYTES) else {
                way.push((at, 0));
                break None;
            };
            bytes += piece.len();
            way.push((at, piece.len()));
            at = next;
        };
        let mut length = rest;
        for (at, more) in way.into_iter().rev() {
            length = length.map(|length| length + more);
            self.lengths.insert(at, length);
        }
        Ok(length)
    }

    pub(crate) fn is_at_end(reading: Reading) -> bool {
        matches!(reading.frame, Frame::End { .. })
    }

    /// The first piece of what completes a reading, and the reading after it.
    pub(crate) fn completion_step(&mut self, reading: Reading) -> Result<Option<(Vec<u8>, Reading)>, SchemaError> {
        let piece = match reading.frame {
            Frame::End { .. } => return Ok(None),
            Frame::Text { leaf } => match self.part_of_string(leaf)? {
                Some((bytes, Some(leaf))) if !reading.is_noted() => {
                    return Ok(Some((bytes, Reading { frame: Frame::Text { leaf }, ..reading })));
                }
                _ => self.rest_of_string(leaf, None)?,
            },
            Frame::Key { state, leaf, typed } => {
                let typed = self.typed.name(typed);
                self.rest_of_string(leaf, Some((state, &typed)))?
            }
            Frame::Scalar { leaf } => self.rest_of_scalar(leaf)?,
            Frame::Value { formula, .. } => self.beginning_of_value(formula)?,
            Frame::Colon { value, .. } => self.beginning_of_value(value)?.map(|value| [b":", &*value].concat()),
            Frame::Object { state, phase: Phase::Next, .. } => self.algebra.next_member(state)?.map(String::into_bytes),
            Frame::Object { state, phase, .. } => match self.algebra.name_on_the_way(state)? {
                Some(name) => Some(continued(name.into_bytes(), phase, "}")),
                None => self.algebra.object_rest(state)?.map(|rest| continued(rest.into_bytes(), phase, "}")),
            },
            Frame::Array { state, phase: Phase::Next, .. } => self.algebra.next_item(state)?.map(String::into_bytes),
            Frame::Array { state, phase, .. } => match self.algebra.item_on_the_way(state)? {
                Some(item) => self.beginning_of_value(item)?.map(|item| continued(item, phase, "]")),
                None => self.algebra.array_rest(state)?.map(|rest| continued(rest.into_bytes(), phase, "]")),
            },
        };
        let Some(piece) = piece.map(|piece| self.spaced(reading.frame, piece)) else { return Ok(None) };
        Ok(self.follow(reading, &piece)?.map(|next| (piece, next)))
    }

    /// A piece with the white space that the spelling asks for: before it, and behind each comma and colon in it.
    fn spaced(&self, frame: Frame, piece: Vec<u8>) -> Vec<u8> {
        if matches!(frame, Frame::Text { .. } | Frame::Key { .. } | Frame::Scalar { .. }) {
            return piece;
        }
        let piece = self.separated(piece);
        if self.algebra.languages.is_nullable(frame.space()) { piece } else { [b" ".as_slice(), &piece].concat() }
    }

    fn separated(&self, piece: Vec<u8>) -> Vec<u8> {
        if self.algebra.languages.is_nullable(self.spelling.after_separator) {
            return piece;
        }
        let (mut out, mut in_string, mut escaped) = (Vec::with_capacity(piece.len()), false, false);
        for byte in piece {
            out.push(byte);
            match byte {
                _ if escaped => escaped = false,
                b'\\' if in_string => escaped = true,
                b'"' => in_string = !in_string,
                b',' | b':' if !in_string => out.push(b' '),
                _ => {}
            }
        }
        out
    }

    /// The reading after a piece of what completes its innermost frame; of several, one with the least left to do.
    fn follow(&mut self, reading: Reading, piece: &[u8]) -> Result<Option<Reading>, SchemaError> {
        let mut readings = vec![reading];
        for &byte in piece {
            let mut next = Vec::new();
            for reading in readings {
                self.step_reading(reading, byte, &mut next)?;
            }
            readings = next;
        }
        let mut best: Option<(u32, Reading)> = None;
        for mut reading in readings {
            // A number or word that is complete is left, as there is no byte that would end it.
            if let Frame::Scalar { leaf } = reading.frame
                && self.is_complete(leaf)
            {
                let Some(left) = self.leave(reading)? else { continue };
                reading = left;
            }
            let depth = self.depth(reading);
            if best.is_none_or(|(least, _)| depth < least) {
                best = Some((depth, reading));
            }
        }
        Ok(best.map(|(_, reading)| reading))
    }

    /// An example of a value; of a long one how it begins, as what follows is told piece by piece.
    fn beginning_of_value(&mut self, value: Formula) -> Result<Option<Vec<u8>>, SchemaError> {
        const LONG: usize = 256;
        let shape = self.algebra.shape(value)?;
        let least = shape.text.map_or(0, |text| self.algebra.languages.length_bounds(text).0);
        if least as usize > LONG && shape.scalar == Language::EMPTY {
            return Ok(Some(b"\"".to_vec()));
        }
        let mut example = self.algebra.example(value)?.map(String::into_bytes);
        if let Some(bytes) = example.as_mut().filter(|bytes| bytes.len() > LONG) {
            // With one way to begin, what the example does next is what is done there.
            match bytes[0] {
                b'[' => bytes.truncate(1),
                b'{' if shape.objects.len() == 1 => bytes.truncate(1),
                _ => {}
            }
        }
        Ok(example)
    }

    /// A part of the rest of a string, and the leaf behind it, if the rest is long.
    #[expect(clippy::type_complexity)]
    fn part_of_string(&mut self, leaf: LeafId) -> Result<Option<(Vec<u8>, Option<LeafId>)>, SchemaError> {
        let (mut bytes, leaf, _) = self.leaves.whole_character(&mut self.algebra.languages, leaf)?;
        let Some((language, encoding)) = self.leaves.language(leaf) else { return Ok(None) };
        let Some((part, rest)) = self.algebra.languages.example_part(language)? else { return Ok(None) };
        bytes.extend(escaped(&part).into_bytes());
        Ok(Some((bytes, rest.map(|rest| self.leaves.start(rest, encoding)))))
    }

    /// The rest of a string up to its closing quote. Of a member name, one that the object does not have yet.
    fn rest_of_string(
        &mut self,
        leaf: LeafId,
        name: Option<(ObjectState, &str)>,
    ) -> Result<Option<Vec<u8>>, SchemaError> {
        let (mut bytes, leaf, completed) = self.leaves.whole_character(&mut self.algebra.languages, leaf)?;
        let Some((mut language, _)) = self.leaves.language(leaf) else { return Ok(None) };
        if let Some((state, typed)) = name {
            let mut beginning = typed.to_string();
            beginning.extend(completed.and_then(char::from_u32));
            if self.algebra.names_are_open(state)? {
                let names = self.algebra.object_names(state)?;
                language = beginning.chars().fold(names, |rest, c| self.algebra.languages.step(rest, c as u32));
            }
            let seen = self.algebra.seen_names(state, &beginning);
            let rests: Vec<String> = seen.map(|name| name[beginning.len()..].to_string()).collect();
            let seen = self.algebra.languages.texts(rests.iter().map(String::as_str));
            language = self.algebra.languages.difference(language, seen);
        }
        let Some(rest) = self.algebra.languages.example(language)? else { return Ok(None) };
        bytes.extend(escaped(&rest).into_bytes());
        bytes.push(b'"');
        Ok(Some(bytes))
    }

    fn rest_of_scalar(&mut self, leaf: LeafId) -> Result<Option<Vec<u8>>, SchemaError> {
        let Some((language, Encoding::Raw)) = self.leaves.language(leaf) else { return Ok(None) };
        Ok(self.algebra.languages.example(language)?.map(String::into_bytes))
    }
}

/// Further parts of an array or object, with a comma if some went before.
fn continued(rest: Vec<u8>, phase: Phase, end: &str) -> Vec<u8> {
    let comma = if phase == Phase::After && rest != end.as_bytes() { "," } else { "" };
    [comma.as_bytes(), &rest].concat()
}
