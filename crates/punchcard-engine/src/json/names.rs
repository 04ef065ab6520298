//! Member names: what was typed of one, and which names are treated alike.

use super::machine::{Frame, FxMap, Machine, Reading, StackId};
use crate::automaton::ConfigId;
use hashbrown::hash_map::Entry;
use punchcard_schema::example::escaped;
use punchcard_schema::object::Move;
use punchcard_schema::{ObjectState, SchemaError};
use std::sync::Arc;

/// A text as far as it was typed: the id of a chain of characters or bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct TypedId(u32);

impl TypedId {
    pub(super) const EMPTY: TypedId = TypedId(0);
    /// Nothing is being noted.
    pub(super) const NONE: TypedId = TypedId(u32::MAX);
}

/// All of a typed text but the last character, that character, and how many there are.
#[derive(Clone, Copy, Debug)]
struct Typed {
    before: TypedId,
    last: u32,
    length: u32,
}

/// The texts that were typed.
#[derive(Debug)]
pub(super) struct TypedTexts {
    texts: Vec<Typed>,
    ids: FxMap<(TypedId, u32), TypedId>,
}

impl Default for TypedTexts {
    fn default() -> Self {
        let empty = Typed { before: TypedId::EMPTY, last: 0, length: 0 };
        TypedTexts { texts: vec![empty], ids: FxMap::default() }
    }
}

impl TypedTexts {
    /// The text with one more character.
    pub(super) fn push(&mut self, typed: TypedId, c: u32) -> TypedId {
        match self.ids.entry((typed, c)) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(place) => {
                let id = TypedId(self.texts.len() as u32);
                let length = self.texts[typed.0 as usize].length + 1;
                self.texts.push(Typed { before: typed, last: c, length });
                *place.insert(id)
            }
        }
    }

    /// All of a text but its last character, and that one.
    pub(super) fn last(&self, typed: TypedId) -> (TypedId, u32) {
        let Typed { before, last, .. } = self.texts[typed.0 as usize];
        (before, last)
    }

    /// How many characters there are.
    pub(super) fn length(&self, typed: TypedId) -> u32 {
        self.texts[typed.0 as usize].length
    }

    /// How many texts there are.
    pub(super) fn len(&self) -> usize {
        self.texts.len()
    }

    pub(super) fn memory_size(&self) -> usize {
        self.texts.capacity() * size_of::<Typed>() + self.ids.allocation_size()
    }

    /// A name.
    pub(super) fn name(&self, typed: TypedId) -> String {
        let mut chars = self.from(typed, 0);
        chars.reverse();
        chars.into_iter().filter_map(char::from_u32).collect()
    }

    /// A noted text from an offset on.
    pub(super) fn bytes(&self, noted: TypedId, start: u32) -> String {
        let mut bytes: Vec<u8> = self.from(noted, start).into_iter().map(|b| b as u8).collect();
        bytes.reverse();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The characters behind the first `start`, the last one first.
    fn from(&self, typed: TypedId, start: u32) -> Vec<u32> {
        let (mut at, mut out) = (typed, Vec::new());
        while at != TypedId::EMPTY && self.length(at) > start {
            let Typed { before, last, .. } = self.texts[at.0 as usize];
            out.push(last);
            at = before;
        }
        out
    }
}

impl Machine {
    /// What follows the closing quote of a member name; all names of a class lead to the same, without being noted as seen.
    /// For walks along one token only.
    pub(super) fn after_name(
        &mut self,
        state: ObjectState,
        name: &str,
        parent: StackId,
        out: &mut Vec<Reading>,
    ) -> Result<(), SchemaError> {
        if let Some(class) = self.algebra.name_class(state, name) {
            return self.after_class(state, class, parent, out);
        }
        let name = self.algebra.name(name);
        let moves = self.algebra.object_moves(state, name)?;
        self.before_value(&moves, parent, out);
        Ok(())
    }

    /// What follows the closing quote of a member name of a class, in which all names are treated alike.
    pub(super) fn after_class(
        &mut self,
        state: ObjectState,
        class: u32,
        parent: StackId,
        out: &mut Vec<Reading>,
    ) -> Result<(), SchemaError> {
        let moves: Arc<[Move]> = match self.class_moves.get(&(state, class)) {
            Some(known) => known.clone(),
            None => {
                let moves: Arc<[Move]> = self.algebra.class_moves(state, class)?.into();
                self.heap += 16 + size_of_val(&*moves);
                self.class_moves.insert((state, class), moves.clone());
                moves
            }
        };
        self.before_value(&moves, parent, out);
        Ok(())
    }

    /// Before the colon of a member.
    fn before_value(&self, moves: &[Move], parent: StackId, out: &mut Vec<Reading>) {
        let space = self.spelling.space;
        let colons = moves.iter().map(|&(value, next)| Frame::Colon { next, value, space });
        out.extend(colons.map(|frame| Reading { frame, parent, noted: TypedId::NONE }));
    }

    /// Whether a member name is being read, and nothing else.
    pub(crate) fn is_in_name(&self, config: ConfigId) -> bool {
        let readings = self.readings_of(config);
        !readings.is_empty() && readings.iter().all(|reading| matches!(reading.frame, Frame::Key { .. }))
    }

    /// The configuration in which member names that are like any other are taken for one: what completes the text after one
    /// completes it after all of them.
    pub(crate) fn representative(&mut self, config: ConfigId) -> Result<ConfigId, SchemaError> {
        self.with_stand_ins(config, true)
    }

    /// The same, also where what completes the text has the name in question in it (see `strings_after`).
    pub(crate) fn stand_in(&mut self, config: ConfigId) -> Result<ConfigId, SchemaError> {
        self.with_stand_ins(config, false)
    }

    fn with_stand_ins(&mut self, config: ConfigId, is_checked: bool) -> Result<ConfigId, SchemaError> {
        let is_key = |reading: &Reading| matches!(reading.frame, Frame::Key { .. });
        if !self.readings_of(config).iter().any(is_key) {
            return Ok(config);
        }
        let mut readings = self.readings_of(config).to_vec();
        for reading in &mut readings {
            let Frame::Key { state, leaf, typed } = reading.frame else { continue };
            let name = self.typed.name(typed);
            if reading.is_noted() {
                continue;
            }
            let Some(kind) = self.algebra.kind_of_names(state, &name) else { continue };
            self.heap += 8 * kind.len();
            let stand_in = *self.name_kinds.entry((state, kind)).or_insert(typed);
            if stand_in == typed {
                continue;
            }
            let other = Reading { frame: Frame::Key { state, leaf, typed: stand_in }, ..*reading };
            // Further members that complete the text must not have this name.
            if is_checked && self.completes_with(other, &name)? {
                continue;
            }
            *reading = other;
        }
        Ok(self.config(&mut readings))
    }

    /// Whether what completes a reading has a string that begins like this (or there is nothing that does).
    fn completes_with(&mut self, reading: Reading, beginning: &str) -> Result<bool, SchemaError> {
        let Some(completion) = self.known_completion(reading)? else { return Ok(true) };
        let string = ["\"", &escaped(beginning)].concat();
        Ok(completion.windows(string.len()).any(|window| window == string.as_bytes()))
    }

    fn known_completion(&mut self, reading: Reading) -> Result<Option<Arc<[u8]>>, SchemaError> {
        if let Some(known) = self.completions.get(&reading) {
            return Ok(known.clone());
        }
        let found = self.completion_of(reading)?.map(Arc::from);
        self.heap += found.as_ref().map_or(0, |bytes: &Arc<[u8]>| 16 + bytes.len());
        self.completions.insert(reading, found.clone());
        Ok(found)
    }

    /// What completes `other`, from all places on that are, in a string, behind the member name being read in `config`.
    pub(crate) fn strings_after(&mut self, config: ConfigId, other: ConfigId) -> Result<Vec<Vec<u8>>, SchemaError> {
        const LONGEST: usize = 256;
        let (here, there) = (self.readings_of(config).to_vec(), self.readings_of(other).to_vec());
        let mut out = Vec::new();
        for reading in there {
            let Some(completion) = self.known_completion(reading)? else { continue };
            for reading in &here {
                let Frame::Key { typed, .. } = reading.frame else { continue };
                let string = ["\"", &escaped(&self.typed.name(typed))].concat();
                let places = completion.windows(string.len()).enumerate();
                for (at, _) in places.filter(|(_, window)| *window == string.as_bytes()) {
                    let behind = &completion[at + string.len()..];
                    out.push(behind[..behind.len().min(LONGEST)].to_vec());
                }
            }
        }
        Ok(out)
    }
}
