//! The byte machine of JSON: what has been read so far, up to equivalence, as a lazy automaton.
//!
//! A configuration is a set of readings; a reading is a frame on top of a stack of frames. Stacks and configurations are
//! interned, so equal pasts are equal ids; the frame on top changes with nearly every byte, so it is not. Where a token leads
//! is remembered (`step_token`), and a byte, for those who read byte by byte (`step`): inside of strings, in loops over items
//! and in equal objects the machine comes back to known ids, and a step is one look-up.
//!
//! A frame exists only if what is left of it can be finished, so every configuration can be completed.

use super::mask::Walk;
use super::names::{TypedId, TypedTexts};
use super::walked::{Start, Walked};
use crate::automaton::{ConfigId, Configs};
use crate::bytes::ByteSet;
use crate::leaf::{Encoding, LeafId, Leaves};
use hashbrown::HashMap;
use punchcard_automata::{Language, Languages, work};
use punchcard_schema::object::Move;
use punchcard_schema::{Algebra, ArrayState, Formula, ObjectState, SchemaError};
use rustc_hash::FxBuildHasher;
use std::sync::Arc;

pub(super) type FxMap<K, V> = HashMap<K, V, FxBuildHasher>;

/// A stack: a frame on top of another stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct StackId(u32);

impl StackId {
    /// No frames.
    pub(super) const BOTTOM: StackId = StackId(u32::MAX);
}

/// One way to read the text so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Reading {
    /// What is being read.
    pub(crate) frame: Frame,
    /// What is around it.
    pub(crate) parent: StackId,
    /// Within an item that must be compared with others: its text, without white space between tokens. Of arrays within
    /// each other this is the item of the outermost.
    pub(super) noted: TypedId,
}

impl Reading {
    /// Whether what is read matters beyond the frames of the stack.
    pub(crate) fn is_noted(self) -> bool {
        self.noted != TypedId::NONE
    }
}

/// Where in an array or object the machine stands, between its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// After the opening bracket.
    Start,
    /// After a value: a comma or the closing bracket.
    After,
    /// After a comma.
    Next,
}

/// What is being read. `space` is what is left of the white space that may stand here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Frame {
    /// Nothing but white space until the end of the text.
    End {
        space: Language,
    },
    /// Before a value.
    Value {
        formula: Formula,
        space: Language,
    },
    /// In a number or a word; ends where its parent can go on.
    Scalar {
        leaf: LeafId,
    },
    /// In a string.
    Text {
        leaf: LeafId,
    },
    Object {
        state: ObjectState,
        phase: Phase,
        space: Language,
    },
    /// In a member name.
    Key {
        state: ObjectState,
        leaf: LeafId,
        typed: TypedId,
    },
    /// Between a name and its value.
    Colon {
        next: ObjectState,
        value: Formula,
        space: Language,
    },
    /// `item` is where in the noted text the item begins that is being read, if it must be compared with others.
    Array {
        state: ArrayState,
        phase: Phase,
        space: Language,
        item: Option<u32>,
    },
}

impl Frame {
    /// The frame without what it asks of the rest of a value; `None` if it asks nothing.
    fn without_demands(mut self) -> Option<Frame> {
        match &mut self {
            Frame::Value { formula, .. } | Frame::Colon { value: formula, .. } => *formula = Formula::FALSE,
            Frame::Object { state, .. } => *state = state.without_residual(),
            Frame::Array { state, item: None, .. } => *state = state.without_residual(),
            _ => return None,
        }
        Some(self)
    }

    /// What is left of the white space that may stand here.
    pub(super) fn space(&self) -> Language {
        match *self {
            Frame::End { space }
            | Frame::Value { space, .. }
            | Frame::Object { space, .. }
            | Frame::Colon { space, .. }
            | Frame::Array { space, .. } => space,
            Frame::Text { .. } | Frame::Key { .. } | Frame::Scalar { .. } => Language::EPSILON,
        }
    }

    /// The same frame after white space.
    fn with_space(self, rest: Language) -> Frame {
        let mut frame = self;
        match &mut frame {
            Frame::End { space }
            | Frame::Value { space, .. }
            | Frame::Object { space, .. }
            | Frame::Colon { space, .. }
            | Frame::Array { space, .. } => *space = rest,
            Frame::Text { .. } | Frame::Key { .. } | Frame::Scalar { .. } => {}
        }
        frame
    }
}

/// How strings and white space may be written.
#[derive(Clone, Copy, Debug)]
pub struct Spelling {
    /// How strings are escaped.
    pub encoding: Encoding,
    /// White space between tokens.
    pub space: Language,
    /// White space after a comma or colon.
    pub after_separator: Language,
    /// White space before and after the whole text.
    pub outer_space: Language,
}

#[derive(Clone, Copy, Debug)]
struct Stack {
    frame: Frame,
    parent: StackId,
    /// How many frames there are.
    depth: u32,
}

/// The machine of one schema.
#[derive(Debug)]
pub struct Machine {
    pub(crate) algebra: Algebra,
    pub(crate) leaves: Leaves,
    pub(super) spelling: Spelling,
    limits: MachineLimits,
    stacks: Vec<Stack>,
    stack_ids: FxMap<(Frame, StackId), StackId>,
    configs: Configs<Reading>,
    pub(super) typed: TypedTexts,
    /// Where names lead that are like many others.
    pub(super) class_moves: FxMap<(ObjectState, u32), Arc<[Move]>>,
    /// The first beginning of each kind of names.
    pub(super) name_kinds: FxMap<(ObjectState, Vec<Language>), TypedId>,
    /// What completes those.
    pub(super) completions: FxMap<Reading, Option<Arc<[u8]>>>,
    /// How many bytes complete readings.
    pub(super) lengths: FxMap<Reading, Option<usize>>,
    start: ConfigId,
    /// Where tokens lead.
    taken: FxMap<(ConfigId, u32), ConfigId>,
    /// Memory for readings between configurations, used again and again.
    passing: Vec<Reading>,
    pub(super) walks: Vec<Walk>,
    /// What walks found, by the trie and where they began.
    pub(super) walked: FxMap<(u64, Start), Arc<Walked>>,
    pub(super) walked_bytes: usize,
    /// Bytes that the tables of names and completions point to.
    pub(super) heap: usize,
}

/// Limits on what texts build up; those that visit fewer states never notice.
#[derive(Clone, Copy, Debug)]
pub struct MachineLimits {
    /// States that one grammar may build (8 million are some 2 GB of memory).
    pub max_states: usize,
    /// Ways in which one text may be read at once.
    pub max_readings: usize,
}

impl Default for MachineLimits {
    fn default() -> Self {
        MachineLimits { max_states: 8_000_000, max_readings: 10_000 }
    }
}

impl Machine {
    /// The machine for one value of a formula.
    pub fn new(
        mut algebra: Algebra,
        formula: Formula,
        limits: MachineLimits,
        spelling: impl FnOnce(&mut Languages) -> Spelling,
    ) -> Machine {
        let spelling = spelling(&mut algebra.languages);
        let mut machine = Machine {
            algebra,
            leaves: Leaves::default(),
            spelling,
            limits,
            stacks: Vec::new(),
            stack_ids: FxMap::default(),
            configs: Configs::new(),
            typed: TypedTexts::default(),
            class_moves: FxMap::default(),
            name_kinds: FxMap::default(),
            completions: FxMap::default(),
            lengths: FxMap::default(),
            start: ConfigId::DEAD,
            taken: FxMap::default(),
            passing: Vec::new(),
            walks: Vec::new(),
            walked: FxMap::default(),
            walked_bytes: 0,
            heap: 0,
        };
        let parent = machine.push(Frame::End { space: spelling.outer_space }, StackId::BOTTOM);
        let frame = Frame::Value { formula, space: spelling.outer_space };
        machine.start = machine.config(&mut vec![Reading { frame, parent, noted: TypedId::NONE }]);
        machine
    }

    /// The configuration before the first byte.
    pub fn start(&self) -> ConfigId {
        self.start
    }

    /// How many states it holds.
    pub(crate) fn states(&self) -> usize {
        self.stacks.len() + self.configs.len() + self.typed.len()
    }

    /// An estimate of the bytes on the heap.
    pub fn memory_size(&self) -> usize {
        self.algebra.memory_size()
            + self.leaves.memory_size()
            + self.configs.memory_size()
            + self.walked_bytes
            + self.walked.allocation_size()
            + self.taken.allocation_size()
            + self.stacks.capacity() * size_of::<Stack>()
            + self.stack_ids.allocation_size()
            + self.typed.memory_size()
            + self.class_moves.allocation_size()
            + self.name_kinds.allocation_size()
            + self.completions.allocation_size()
            + self.heap
    }

    pub(crate) fn readings_of(&self, config: ConfigId) -> &[Reading] {
        self.configs.readings(config)
    }

    /// The frame on top of a stack is what is being read.
    fn pop(&self, stack: StackId, noted: TypedId) -> Reading {
        let Stack { frame, parent, .. } = self.stacks[stack.0 as usize];
        Reading { frame, parent, noted }
    }

    /// The frame on top of a stack, and the stack below it.
    pub(super) fn top(&self, stack: StackId) -> (Frame, StackId) {
        let Stack { frame, parent, .. } = self.stacks[stack.0 as usize];
        (frame, parent)
    }

    /// The reading without its frame.
    pub(crate) fn behind(&self, reading: Reading) -> Reading {
        self.pop(reading.parent, reading.noted)
    }

    pub(super) fn push(&mut self, frame: Frame, parent: StackId) -> StackId {
        if let Some(&id) = self.stack_ids.get(&(frame, parent)) {
            return id;
        }
        let id = StackId(self.stacks.len() as u32);
        let depth = if parent == StackId::BOTTOM { 1 } else { self.stacks[parent.0 as usize].depth + 1 };
        self.stacks.push(Stack { frame, parent, depth });
        self.stack_ids.insert((frame, parent), id);
        id
    }

    pub(crate) fn config(&mut self, readings: &mut Vec<Reading>) -> ConfigId {
        self.configs.intern(readings)
    }

    /// Whether it has used up a limit on what it may build.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.states() > self.limits.max_states || self.algebra.languages.check_limit().is_err()
    }

    fn check_states(&self) -> Result<(), SchemaError> {
        if self.states() > self.limits.max_states {
            let hint = "Compile the schema anew for further texts, constrain free member names, or raise the limit";
            return Err(SchemaError::limit("max_states", self.limits.max_states, "", hint));
        }
        Ok(())
    }

    /// The configuration after one more byte.
    pub fn step(&mut self, config: ConfigId, byte: u8) -> Result<ConfigId, SchemaError> {
        if let Some(next) = self.configs.known_step(config, byte) {
            return Ok(next);
        }
        self.check_states()?;
        let mut out = Vec::new();
        for i in 0..self.readings_of(config).len() {
            let reading = self.readings_of(config)[i];
            self.step_reading(reading, byte, &mut out)?;
        }
        self.join_from(0, &mut out)?;
        let next = self.config(&mut out);
        self.configs.remember_step(config, byte, next);
        Ok(next)
    }

    /// The configuration after a token, if it is remembered.
    pub(crate) fn known_token(&self, config: ConfigId, id: u32) -> Option<ConfigId> {
        self.taken.get(&(config, id)).copied()
    }

    /// The configuration after a token, which is remembered.
    pub(crate) fn step_token(&mut self, config: ConfigId, id: u32, bytes: &[u8]) -> Result<ConfigId, SchemaError> {
        /// Most tokens that are remembered.
        const MOST: usize = 1 << 16;
        if let Some(&known) = self.taken.get(&(config, id)) {
            return Ok(known);
        }
        let next = self.step_bytes(config, bytes)?;
        if self.taken.len() >= MOST {
            self.taken.clear();
        }
        self.taken.insert((config, id), next);
        Ok(next)
    }

    /// The configuration after more bytes. Those in between are passed through without being noted.
    pub(crate) fn step_bytes(&mut self, config: ConfigId, bytes: &[u8]) -> Result<ConfigId, SchemaError> {
        self.check_states()?;
        let mut readings = std::mem::take(&mut self.passing);
        readings.clear();
        readings.extend_from_slice(self.configs.readings(config));
        let mut first = 0;
        for &byte in bytes {
            let end = readings.len();
            for i in first..end {
                self.step_reading(readings[i], byte, &mut readings)?;
            }
            first = end;
            self.join_from(first, &mut readings)?;
            if readings.len() == first {
                break;
            }
        }
        readings.drain(..first);
        let next = self.config(&mut readings);
        self.passing = readings;
        Ok(next)
    }

    /// Makes one of those readings, from the `first` on, that are equal or differ only in what they ask of the rest of a
    /// value.
    pub(super) fn join_from(&mut self, first: usize, readings: &mut Vec<Reading>) -> Result<(), SchemaError> {
        // One by one, unless there are many.
        const FEW: usize = 8;
        let count = readings.len() - first;
        work::spend(1 + count as u64)?;
        let mut places: FxMap<(Frame, StackId, TypedId), usize> = FxMap::default();
        let kind = |reading: &Reading| {
            (reading.frame.without_demands().unwrap_or(reading.frame), reading.parent, reading.noted)
        };
        let mut to = first;
        for i in first..readings.len() {
            let reading = readings[i];
            let place = if count <= FEW {
                readings[first..to].iter().position(|other| kind(other) == kind(&reading)).map(|at| first + at)
            } else {
                places.get(&kind(&reading)).copied()
            };
            match place {
                Some(place) => readings[place].frame = self.either(readings[place].frame, reading.frame),
                None => {
                    readings[to] = reading;
                    if count > FEW {
                        places.insert(kind(&reading), to);
                    }
                    to += 1;
                }
            }
        }
        readings.truncate(to);
        if readings.len() - first > self.limits.max_readings {
            let hint = "Tell the alternatives of 'oneOf' and 'anyOf' apart by a required property, or raise the limit";
            return Err(SchemaError::limit("max_readings", self.limits.max_readings, "", hint));
        }
        Ok(())
    }

    /// One frame for two that differ only in their demands.
    fn either(&mut self, a: Frame, b: Frame) -> Frame {
        match (a, b) {
            (Frame::Value { formula: f, space }, Frame::Value { formula: g, .. }) => {
                Frame::Value { formula: self.algebra.join_values(f, g), space }
            }
            (Frame::Colon { value: f, next, space }, Frame::Colon { value: g, .. }) => {
                Frame::Colon { value: self.algebra.join_values(f, g), next, space }
            }
            (Frame::Object { state: s, phase, space }, Frame::Object { state: t, .. }) => {
                Frame::Object { state: self.algebra.join_objects(s, t), phase, space }
            }
            (Frame::Array { state: s, phase, space, item }, Frame::Array { state: t, .. }) => {
                Frame::Array { state: self.algebra.join_arrays(s, t), phase, space, item }
            }
            _ => a,
        }
    }

    /// Adds the bytes that may come next, and perhaps some that may not.
    pub(crate) fn possible_bytes(&mut self, config: ConfigId, out: &mut ByteSet) -> Result<(), SchemaError> {
        for i in 0..self.readings_of(config).len() {
            let reading = self.readings_of(config)[i];
            self.live(reading, out)?;
        }
        Ok(())
    }

    /// Whether a backslash that comes next is a detour: each character that it can lead to can stand for itself.
    pub(crate) fn needs_no_escape(&mut self, config: ConfigId) -> Result<bool, SchemaError> {
        for i in 0..self.readings_of(config).len() {
            if let Frame::Text { leaf } | Frame::Key { leaf, .. } = self.readings_of(config)[i].frame
                && !self.leaves.needs_no_escape(&mut self.algebra.languages, leaf)?
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Adds the bytes with which a reading may go on, and perhaps some with which it may not.
    pub(super) fn live(&mut self, reading: Reading, out: &mut ByteSet) -> Result<(), SchemaError> {
        let space = reading.frame.space();
        if space != Language::EPSILON {
            out.extend(&const { ByteSet::of(b" \t\n\r") });
            if !self.algebra.languages.is_nullable(space) {
                return Ok(());
            }
        }
        match reading.frame {
            Frame::End { .. } => {}
            Frame::Text { leaf } | Frame::Key { leaf, .. } => self.live_leaf(leaf, out)?,
            Frame::Scalar { leaf } => {
                self.live_leaf(leaf, out)?;
                if self.is_complete(leaf) {
                    self.live(self.behind(reading), out)?;
                }
            }
            Frame::Value { formula, .. } => self.live_value(formula, out)?,
            Frame::Colon { .. } => out.insert(b':'),
            Frame::Object { phase, .. } => out.extend(&match phase {
                Phase::Start => const { ByteSet::of(b"\"}") },
                Phase::After => const { ByteSet::of(b",}") },
                Phase::Next => const { ByteSet::of(b"\"") },
            }),
            Frame::Array { phase: Phase::After, .. } => out.extend(&const { ByteSet::of(b",]") }),
            Frame::Array { state, phase, .. } => {
                if phase == Phase::Start {
                    out.insert(b']');
                }
                for (value, _) in self.algebra.array_moves(state)? {
                    self.live_value(value, out)?;
                }
            }
        }
        Ok(())
    }

    fn live_leaf(&mut self, leaf: LeafId, out: &mut ByteSet) -> Result<(), SchemaError> {
        out.extend(&self.leaves.live(&mut self.algebra.languages, leaf)?);
        Ok(())
    }

    fn live_value(&mut self, formula: Formula, out: &mut ByteSet) -> Result<(), SchemaError> {
        let shape = self.algebra.shape(formula)?;
        if shape.text.is_some() {
            out.insert(b'"');
        }
        if !shape.objects.is_empty() {
            out.insert(b'{');
        }
        if shape.array.is_some() {
            out.insert(b'[');
        }
        let leaf = self.leaves.start(shape.scalar, Encoding::Raw);
        self.live_leaf(leaf, out)
    }

    /// Whether the text may end here.
    pub fn is_accepting(&self, config: ConfigId) -> bool {
        self.readings_of(config).iter().any(|&reading| self.may_end(reading))
    }

    /// Whether the text must end here.
    pub(crate) fn is_final(&self, config: ConfigId) -> bool {
        let ended = |reading: &Reading| matches!(reading.frame, Frame::End { space } if space == Language::EPSILON);
        self.readings_of(config).iter().all(ended)
    }

    pub(super) fn may_end(&self, reading: Reading) -> bool {
        match reading.frame {
            Frame::End { space } => self.algebra.languages.is_nullable(space),
            Frame::Scalar { leaf } => self.is_complete(leaf) && self.may_end(self.behind(reading)),
            _ => false,
        }
    }

    pub(crate) fn is_complete(&self, leaf: LeafId) -> bool {
        self.leaves.language(leaf).is_some_and(|(language, _)| self.algebra.languages.is_nullable(language))
    }

    /// What is left of white space after `byte`; `None` if the byte is no white space that may stand here.
    fn space(&mut self, space: Language, byte: u8) -> Option<Language> {
        if !matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
            return None;
        }
        let rest = self.algebra.languages.next(space, u32::from(byte));
        (rest != Language::EMPTY).then_some(rest)
    }

    fn leaf_step(&mut self, leaf: LeafId, byte: u8) -> Result<LeafId, SchemaError> {
        Ok(self.leaves.step(&mut self.algebra.languages, leaf, byte)?)
    }

    pub(crate) fn step_reading(
        &mut self,
        reading: Reading,
        byte: u8,
        out: &mut Vec<Reading>,
    ) -> Result<(), SchemaError> {
        let Reading { frame, parent, noted } = reading;
        let space = frame.space();
        if space != Language::EPSILON {
            if let Some(rest) = self.space(space, byte) {
                out.push(Reading { frame: frame.with_space(rest), ..reading });
                return Ok(());
            }
            if !self.algebra.languages.is_nullable(space) {
                return Ok(());
            }
        }
        let then = if noted == TypedId::NONE { noted } else { self.typed.push(noted, u32::from(byte)) };
        match frame {
            Frame::End { .. } => {}
            Frame::Text { leaf } => match self.leaf_step(leaf, byte)? {
                LeafId::DEAD => {}
                LeafId::CLOSED => out.extend(self.leave_value(parent, then)?),
                leaf => out.push(Reading { frame: Frame::Text { leaf }, parent, noted: then }),
            },
            Frame::Scalar { leaf } => {
                let next = self.leaf_step(leaf, byte)?;
                self.scalar(next, parent, then, out)?;
                // Nothing else follows a value, so its text need not be looked at.
                if matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b',' | b']' | b'}')
                    && self.is_complete(leaf)
                    && let Some(left) = self.leave_value(parent, noted)?
                {
                    self.step_reading(left, byte, out)?;
                }
            }
            Frame::Value { formula, .. } => self.begin_value(formula, parent, then, byte, out)?,
            Frame::Key { state, leaf, typed } => self.step_key(state, leaf, typed, parent, byte, then, out)?,
            Frame::Object { state, phase, .. } => self.step_object(state, phase, parent, byte, then, out)?,
            Frame::Colon { next, value, .. } if byte == b':' => {
                let Spelling { space, after_separator, .. } = self.spelling;
                let parent = self.push(Frame::Object { state: next, phase: Phase::After, space }, parent);
                let frame = Frame::Value { formula: value, space: after_separator };
                out.push(Reading { frame, parent, noted: then });
            }
            Frame::Colon { .. } => {}
            Frame::Array { state, phase, .. } => self.step_array(state, phase, parent, byte, noted, out)?,
        }
        Ok(())
    }

    /// The reading after the value that it is in; `None` if the value must not end here.
    pub(crate) fn leave(&mut self, reading: Reading) -> Result<Option<Reading>, SchemaError> {
        self.leave_value(reading.parent, reading.noted)
    }

    /// How many frames are on the stack.
    pub(crate) fn depth(&self, reading: Reading) -> u32 {
        if reading.parent == StackId::BOTTOM { 1 } else { self.stacks[reading.parent.0 as usize].depth + 1 }
    }

    /// Back in the frame around a value that was read to its end; an array learns which item it was.
    fn leave_value(&mut self, around: StackId, noted: TypedId) -> Result<Option<Reading>, SchemaError> {
        let left = self.pop(around, noted);
        let Frame::Array { state, phase, space, item: Some(start) } = left.frame else { return Ok(Some(left)) };
        let text = self.typed.bytes(noted, start);
        let Some(state) = self.algebra.array_after_item(state, &text)? else { return Ok(None) };
        let frame = Frame::Array { state, phase, space, item: None };
        // Only the outermost array's item begins with the noted text.
        Ok(Some(Reading { frame, noted: if start == 0 { TypedId::NONE } else { noted }, ..left }))
    }

    /// What follows a string that is an item of an array whose items differ, as far as no further string is read: the same
    /// for all strings, unless it depends on the string whether another can follow.
    pub(super) fn after_any_item(&mut self, reading: Reading) -> Result<Option<Reading>, SchemaError> {
        let around = self.pop(reading.parent, TypedId::NONE);
        let Frame::Array { state, phase, space, item: Some(0) } = around.frame else { return Ok(None) };
        for (value, _) in self.algebra.array_moves(state)? {
            if let Some(text) = self.algebra.shape(value)?.text
                && !self.algebra.languages.is_endless(text)?
            {
                return Ok(None);
            }
        }
        Ok(Some(Reading { frame: Frame::Array { state, phase, space, item: None }, ..around }))
    }

    /// A number or word after one more byte; one that cannot go on is left at once.
    fn scalar(
        &mut self,
        leaf: LeafId,
        parent: StackId,
        noted: TypedId,
        out: &mut Vec<Reading>,
    ) -> Result<(), SchemaError> {
        if leaf == LeafId::DEAD {
            return Ok(());
        }
        if self.leaves.language(leaf).is_some_and(|(language, _)| language == Language::EPSILON) {
            out.extend(self.leave_value(parent, noted)?);
        } else {
            out.push(Reading { frame: Frame::Scalar { leaf }, parent, noted });
        }
        Ok(())
    }

    /// `noted` already holds the byte, if anything is noted.
    fn begin_value(
        &mut self,
        f: Formula,
        parent: StackId,
        noted: TypedId,
        byte: u8,
        out: &mut Vec<Reading>,
    ) -> Result<(), SchemaError> {
        let shape = self.algebra.shape(f)?;
        let space = self.spelling.space;
        match byte {
            b'"' => {
                if let Some(text) = shape.text {
                    let leaf = self.leaves.start(text, self.spelling.encoding);
                    out.push(Reading { frame: Frame::Text { leaf }, parent, noted });
                }
            }
            b'{' => {
                for &state in &shape.objects {
                    let frame = Frame::Object { state, phase: Phase::Start, space };
                    out.push(Reading { frame, parent, noted });
                }
            }
            b'[' => {
                if let Some(state) = shape.array {
                    let frame = Frame::Array { state, phase: Phase::Start, space, item: None };
                    out.push(Reading { frame, parent, noted });
                }
            }
            _ => {
                let leaf = self.leaves.start(shape.scalar, Encoding::Raw);
                let leaf = self.leaf_step(leaf, byte)?;
                self.scalar(leaf, parent, noted, out)?;
            }
        }
        Ok(())
    }

    fn step_object(
        &mut self,
        state: ObjectState,
        phase: Phase,
        parent: StackId,
        byte: u8,
        noted: TypedId,
        out: &mut Vec<Reading>,
    ) -> Result<(), SchemaError> {
        match (phase, byte) {
            (Phase::Start | Phase::After, b'}') if self.algebra.object_may_end(state) => {
                out.extend(self.leave_value(parent, noted)?);
            }
            (Phase::After, b',') if self.names_of(state)? != Language::EMPTY => {
                let frame = Frame::Object { state, phase: Phase::Next, space: self.spelling.after_separator };
                out.push(Reading { frame, parent, noted });
            }
            (Phase::Start | Phase::Next, b'"') if self.names_of(state)? != Language::EMPTY => {
                out.push(Reading { noted, ..self.begin_name(state, parent)? });
            }
            _ => {}
        }
        Ok(())
    }

    /// Behind the opening quote of a member name.
    pub(super) fn begin_name(&mut self, state: ObjectState, parent: StackId) -> Result<Reading, SchemaError> {
        let names = self.names_of(state)?;
        let leaf = self.leaves.start(names, self.spelling.encoding);
        let frame = Frame::Key { state, leaf, typed: TypedId::EMPTY };
        Ok(Reading { frame, parent, noted: TypedId::NONE })
    }

    /// The language in which a member name is read: that of the names that may come, or of all names if nearly all may come;
    /// then those that may not are refused at their end.
    pub(super) fn names_of(&mut self, state: ObjectState) -> Result<Language, SchemaError> {
        if self.algebra.names_are_open(state)? { Ok(Language::ALL) } else { self.algebra.object_names(state) }
    }

    #[expect(clippy::too_many_arguments)]
    fn step_key(
        &mut self,
        state: ObjectState,
        leaf: LeafId,
        typed: TypedId,
        parent: StackId,
        byte: u8,
        noted: TypedId,
        out: &mut Vec<Reading>,
    ) -> Result<(), SchemaError> {
        match self.leaf_step(leaf, byte)? {
            LeafId::DEAD => {}
            LeafId::CLOSED => {
                let text = self.typed.name(typed);
                let name = self.algebra.name(&text);
                let space = self.spelling.space;
                for &(value, next) in self.algebra.object_moves(state, name)?.iter() {
                    out.push(Reading { frame: Frame::Colon { next, value, space }, parent, noted });
                }
            }
            next => {
                let typed = match self.leaves.completed(leaf, byte) {
                    Some(c) => self.typed.push(typed, c),
                    None => typed,
                };
                out.push(Reading { frame: Frame::Key { state, leaf: next, typed }, parent, noted });
            }
        }
        Ok(())
    }

    fn step_array(
        &mut self,
        state: ArrayState,
        phase: Phase,
        parent: StackId,
        byte: u8,
        noted: TypedId,
        out: &mut Vec<Reading>,
    ) -> Result<(), SchemaError> {
        let space = self.spelling.space;
        let then = |machine: &mut Self, noted| match noted {
            TypedId::NONE => noted,
            _ => machine.typed.push(noted, u32::from(byte)),
        };
        match (phase, byte) {
            (Phase::Start | Phase::After, b']') if self.algebra.array_may_end(state) => {
                let noted = then(self, noted);
                out.extend(self.leave_value(parent, noted)?);
            }
            (Phase::After, b',') if !self.algebra.array_moves(state)?.is_empty() => {
                let noted = then(self, noted);
                let space = self.spelling.after_separator;
                let frame = Frame::Array { state, phase: Phase::Next, space, item: None };
                out.push(Reading { frame, parent, noted });
            }
            (Phase::After, _) | (_, b']') => {}
            (Phase::Start | Phase::Next, _) => {
                for (value, next) in self.algebra.array_moves(state)? {
                    let (noted, item) = if self.algebra.array_notes_item(next) {
                        let noted = if noted == TypedId::NONE { TypedId::EMPTY } else { noted };
                        (noted, Some(self.typed.length(noted)))
                    } else {
                        (noted, None)
                    };
                    let frame = Frame::Array { state: next, phase: Phase::After, space, item };
                    let array = self.push(frame, parent);
                    let noted = then(self, noted);
                    self.begin_value(value, array, noted, byte, out)?;
                }
            }
        }
        Ok(())
    }
}
