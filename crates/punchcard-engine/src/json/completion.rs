//! Completions: bytes that bring a text to an end, whatever it has come to.
//!
//! One reading of the text is followed, frame by frame from the innermost outward: the rest of the string, of the number,
//! of the object and so on. That there always is one is what "no dead ends" means, so this is its witness, too.

use super::machine::{Frame, Machine, Phase, Reading};
use crate::automaton::ConfigId;
use crate::leaf::{Encoding, LeafId};
use punchcard_schema::example::escaped;
use punchcard_schema::{ObjectState, SchemaError};

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
        loop {
            let piece = match reading.frame {
                Frame::End { .. } => return Ok(Some(out)),
                Frame::Text { leaf } => self.rest_of_string(leaf, None)?,
                Frame::Key { state, leaf, typed } => {
                    let typed = self.typed.name(typed);
                    self.rest_of_string(leaf, Some((state, &typed)))?
                }
                Frame::Scalar { leaf } => self.rest_of_scalar(leaf)?,
                Frame::Value { formula, .. } => self.algebra.example(formula)?.map(String::into_bytes),
                Frame::Colon { value, .. } => {
                    self.algebra.example(value)?.map(|value| [b":", value.as_bytes()].concat())
                }
                Frame::Object { state, phase, .. } => match phase {
                    Phase::Next => self.algebra.next_member(state)?.map(String::into_bytes),
                    _ => self.algebra.object_rest(state)?.map(|rest| continued(rest, phase, "}")),
                },
                Frame::Array { state, phase, .. } => match phase {
                    Phase::Next => self.algebra.next_item(state)?.map(String::into_bytes),
                    _ => self.algebra.array_rest(state)?.map(|rest| continued(rest, phase, "]")),
                },
            };
            let Some(piece) = piece.map(|piece| self.spaced(reading.frame, piece)) else { return Ok(None) };
            let Some(next) = self.follow(reading, &piece)? else { return Ok(None) };
            out.extend(piece);
            reading = next;
        }
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

    /// The reading after a piece that completes its innermost frame; of several, one with the least left to do.
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
fn continued(rest: String, phase: Phase, end: &str) -> Vec<u8> {
    let comma = if phase == Phase::After && rest != end { "," } else { "" };
    [comma.as_bytes(), rest.as_bytes()].concat()
}
