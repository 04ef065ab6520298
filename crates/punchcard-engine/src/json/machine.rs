//! The byte machine of JSON: what has been read so far, up to equivalence, as a lazy automaton.
//!
//! A configuration is a set of stacks; a stack is a frame on top of another stack. Frames, stacks and configurations are
//! interned, so equal pasts are equal ids, and `step` remembers the configuration after each byte. Inside of strings, in
//! loops over items and in equal objects the machine comes back to known ids, and a step is one look-up.
//!
//! A frame exists only if what is left of it can be finished, so every configuration can be completed.

use crate::automaton::{ConfigId, Configs};
use crate::leaf::{Bytes, Encoding, LeafId, Leaves};
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use punchcard_automata::{Language, Languages};
use punchcard_schema::example::escaped;
use punchcard_schema::{Algebra, ArrayState, Formula, ObjectState, SchemaError};
use rustc_hash::FxBuildHasher;
use std::sync::Arc;

type FxMap<K, V> = HashMap<K, V, FxBuildHasher>;

/// A stack: a frame on top of another stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct StackId(u32);

/// A text as far as it was typed: the id of a chain of characters or bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct TypedId(u32);

impl TypedId {
    const EMPTY: TypedId = TypedId(0);
    /// Nothing is being noted.
    const NONE: TypedId = TypedId(u32::MAX);
}

/// One way to read the text so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Reading {
    pub(crate) stack: StackId,
    /// Within an item that must be compared with others: its text, without white space between tokens. Of arrays within
    /// each other this is the item of the outermost.
    noted: TypedId,
}

impl Reading {
    /// The same text, read up to another frame.
    pub(crate) fn behind(self, stack: StackId) -> Reading {
        Reading { stack, ..self }
    }

    /// Whether what is read matters beyond the frames of the stack.
    pub(crate) fn is_noted(self) -> bool {
        self.noted != TypedId::NONE
    }
}

/// A typed text: all of it but the last character, that character, and how many there are.
#[derive(Clone, Copy, Debug)]
struct Typed {
    before: TypedId,
    last: u32,
    length: u32,
}

/// Where in an array or object the machine stands, between its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Phase {
    /// After the opening bracket.
    Start,
    /// After a value: a comma or the closing bracket.
    After,
    /// After a comma.
    Next,
}

/// What is being read. `space` is what is left of the white space that may stand here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
    spelling: Spelling,
    limits: MachineLimits,
    stacks: Vec<Stack>,
    stack_ids: FxMap<(Frame, StackId), StackId>,
    configs: Configs<Reading>,
    typed: Vec<Typed>,
    typed_ids: FxMap<(TypedId, u32), TypedId>,
    /// Where names lead that are like many others.
    after_classes: FxMap<(ObjectState, u32, StackId), ConfigId>,
    /// The first beginning of each kind of names.
    name_kinds: FxMap<(ObjectState, Vec<Language>), TypedId>,
    /// What completes those.
    completions: FxMap<StackId, Option<Arc<[u8]>>>,
    start: ConfigId,
}

/// Limits on what texts build up; those that visit fewer states never notice.
#[derive(Clone, Copy, Debug)]
pub struct MachineLimits {
    /// Stacks that one grammar may build (8 million are some 2 GB of memory).
    pub max_states: usize,
    /// Ways in which one text may be read at once.
    pub max_readings: usize,
}

impl Default for MachineLimits {
    fn default() -> Self {
        MachineLimits { max_states: 8_000_000, max_readings: 10_000 }
    }
}

const BOTTOM: StackId = StackId(u32::MAX);

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
            typed: vec![Typed { before: TypedId(0), last: 0, length: 0 }],
            typed_ids: FxMap::default(),
            after_classes: FxMap::default(),
            name_kinds: FxMap::default(),
            completions: FxMap::default(),
            start: ConfigId::DEAD,
        };
        let end = machine.push(Frame::End { space: spelling.outer_space }, BOTTOM);
        let value = machine.push(Frame::Value { formula, space: spelling.outer_space }, end);
        machine.start = machine.config(&mut vec![Reading { stack: value, noted: TypedId::NONE }]);
        machine
    }

    /// The configuration before the first byte.
    pub fn start(&self) -> ConfigId {
        self.start
    }

    /// An estimate of the bytes on the heap.
    pub fn memory_size(&self) -> usize {
        self.algebra.memory_size()
            + self.leaves.memory_size()
            + self.configs.memory_size()
            + self.stacks.len() * 128
            + self.typed.len() * 32
    }

    pub(crate) fn readings_of(&self, config: ConfigId) -> &[Reading] {
        self.configs.readings(config)
    }

    pub(crate) fn frame(&self, stack: StackId) -> Frame {
        self.stacks[stack.0 as usize].frame
    }

    pub(crate) fn parent(&self, stack: StackId) -> StackId {
        self.stacks[stack.0 as usize].parent
    }

    fn push(&mut self, frame: Frame, parent: StackId) -> StackId {
        if let Some(&id) = self.stack_ids.get(&(frame, parent)) {
            return id;
        }
        let id = StackId(self.stacks.len() as u32);
        let depth = if parent == BOTTOM { 1 } else { self.stacks[parent.0 as usize].depth + 1 };
        self.stacks.push(Stack { frame, parent, depth });
        self.stack_ids.insert((frame, parent), id);
        id
    }

    pub(crate) fn config(&mut self, readings: &mut Vec<Reading>) -> ConfigId {
        self.configs.intern(readings)
    }

    /// The configuration after one more byte.
    pub fn step(&mut self, config: ConfigId, byte: u8) -> Result<ConfigId, SchemaError> {
        if let Some(next) = self.configs.known_step(config, byte) {
            return Ok(next);
        }
        if self.stacks.len() > self.limits.max_states {
            let hint = "Compile the schema anew for further texts, constrain free member names, or raise the limit";
            return Err(SchemaError::limit("max_states", self.limits.max_states, "", hint));
        }
        let mut out = Vec::new();
        for i in 0..self.readings_of(config).len() {
            let reading = self.readings_of(config)[i];
            self.step_reading(reading, byte, &mut out)?;
        }
        if out.len() > 1 {
            self.join(&mut out);
        }
        if out.len() > self.limits.max_readings {
            let hint = "Tell the alternatives of 'oneOf' and 'anyOf' apart by a required property, or raise the limit";
            return Err(SchemaError::limit("max_readings", self.limits.max_readings, "", hint));
        }
        let next = self.config(&mut out);
        self.configs.remember_step(config, byte, next);
        Ok(next)
    }

    /// Makes one reading of those that differ only in what they ask of the rest of a value.
    fn join(&mut self, readings: &mut Vec<Reading>) {
        let mut places: FxMap<(Frame, StackId, TypedId), usize> = FxMap::default();
        let mut joined: Vec<Reading> = Vec::with_capacity(readings.len());
        for &reading in readings.iter() {
            let (frame, parent) = (self.frame(reading.stack), self.parent(reading.stack));
            let Some(kind) = frame.without_demands() else {
                joined.push(reading);
                continue;
            };
            match places.entry((kind, parent, reading.noted)) {
                Entry::Vacant(place) => {
                    place.insert(joined.len());
                    joined.push(reading);
                }
                Entry::Occupied(place) => {
                    let other = self.frame(joined[*place.get()].stack);
                    let frame = self.either(other, frame);
                    joined[*place.get()].stack = self.push(frame, parent);
                }
            }
        }
        *readings = joined;
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
    pub(crate) fn possible_bytes(&mut self, config: ConfigId, out: &mut Bytes) -> Result<(), SchemaError> {
        for i in 0..self.readings_of(config).len() {
            let leaf = match self.frame(self.readings_of(config)[i].stack) {
                Frame::Text { leaf } | Frame::Key { leaf, .. } => Some((leaf, false)),
                Frame::Scalar { leaf } => Some((leaf, self.is_complete(leaf))),
                _ => None,
            };
            if let Some((leaf, _)) = leaf {
                self.leaves.possible_bytes(&mut self.algebra.languages, leaf, out)?;
            }
            if leaf.is_none_or(|(_, ends)| ends) {
                b" \t\n\r{}[]\":,-0123456789tfn".iter().for_each(|&byte| out[usize::from(byte)] = true);
            }
        }
        Ok(())
    }

    /// Whether the text may end here.
    pub fn is_accepting(&self, config: ConfigId) -> bool {
        self.readings_of(config).iter().any(|reading| self.may_end(reading.stack))
    }

    /// Whether the text must end here.
    pub(crate) fn is_final(&self, config: ConfigId) -> bool {
        let ended =
            |reading: &Reading| matches!(self.frame(reading.stack), Frame::End { space } if space == Language::EPSILON);
        self.readings_of(config).iter().all(ended)
    }

    fn may_end(&self, stack: StackId) -> bool {
        match self.frame(stack) {
            Frame::End { space } => self.algebra.languages.is_nullable(space),
            Frame::Scalar { leaf } => self.is_complete(leaf) && self.may_end(self.parent(stack)),
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
        let rest = self.algebra.languages.step(space, u32::from(byte));
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
        let Reading { stack, noted } = reading;
        let parent = self.parent(stack);
        let space = match self.frame(stack) {
            Frame::End { space }
            | Frame::Value { space, .. }
            | Frame::Object { space, .. }
            | Frame::Colon { space, .. }
            | Frame::Array { space, .. } => space,
            Frame::Text { .. } | Frame::Key { .. } | Frame::Scalar { .. } => Language::EPSILON,
        };
        if let Some(space) = self.space(space, byte) {
            let frame = self.frame(stack).with_space(space);
            out.push(Reading { stack: self.push(frame, parent), noted });
            return Ok(());
        }
        if !self.algebra.languages.is_nullable(space) {
            return Ok(());
        }
        let then = if noted == TypedId::NONE { noted } else { self.type_char(noted, u32::from(byte)) };
        match self.frame(stack) {
            Frame::End { .. } => {}
            Frame::Text { leaf } => match self.leaf_step(leaf, byte)? {
                LeafId::DEAD => {}
                LeafId::CLOSED => out.push(self.leave_value(parent, then)?),
                leaf => out.push(Reading { stack: self.push(Frame::Text { leaf }, parent), noted: then }),
            },
            Frame::Scalar { leaf } => {
                let next = self.leaf_step(leaf, byte)?;
                self.scalar(next, parent, then, out)?;
                if self.is_complete(leaf) {
                    let left = self.leave_value(parent, noted)?;
                    self.step_reading(left, byte, out)?;
                }
            }
            Frame::Value { formula, .. } => self.begin_value(formula, parent, then, byte, out)?,
            Frame::Key { state, leaf, typed } => self.step_key(state, leaf, typed, parent, byte, then, out)?,
            Frame::Object { state, phase, .. } => self.step_object(state, phase, parent, byte, then, out)?,
            Frame::Colon { next, value, .. } if byte == b':' => {
                let Spelling { space, after_separator, .. } = self.spelling;
                let object = self.push(Frame::Object { state: next, phase: Phase::After, space }, parent);
                let value = Frame::Value { formula: value, space: after_separator };
                out.push(Reading { stack: self.push(value, object), noted: then });
            }
            Frame::Colon { .. } => {}
            Frame::Array { state, phase, .. } => self.step_array(state, phase, parent, byte, noted, out)?,
        }
        Ok(())
    }

    /// The reading after the value that it is in.
    pub(crate) fn leave(&mut self, reading: Reading) -> Result<Reading, SchemaError> {
        self.leave_value(self.parent(reading.stack), reading.noted)
    }

    /// How many frames are on the stack.
    pub(crate) fn depth(&self, reading: Reading) -> u32 {
        self.stacks[reading.stack.0 as usize].depth
    }

    /// Back in the frame around a value that was read to its end; an array learns which item it was.
    fn leave_value(&mut self, around: StackId, noted: TypedId) -> Result<Reading, SchemaError> {
        let Frame::Array { state, phase, space, item: Some(start) } = self.frame(around) else {
            return Ok(Reading { stack: around, noted });
        };
        let text = self.typed_text(noted, start);
        let state = self.algebra.array_after_item(state, &text)?;
        let parent = self.parent(around);
        let stack = self.push(Frame::Array { state, phase, space, item: None }, parent);
        // Only the outermost array's item begins with the noted text.
        Ok(Reading { stack, noted: if start == 0 { TypedId::NONE } else { noted } })
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
            out.push(self.leave_value(parent, noted)?);
        } else {
            out.push(Reading { stack: self.push(Frame::Scalar { leaf }, parent), noted });
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
                    out.push(Reading { stack: self.push(Frame::Text { leaf }, parent), noted });
                }
            }
            b'{' => {
                for &state in &shape.objects {
                    let frame = Frame::Object { state, phase: Phase::Start, space };
                    out.push(Reading { stack: self.push(frame, parent), noted });
                }
            }
            b'[' => {
                if let Some(state) = shape.array {
                    let frame = Frame::Array { state, phase: Phase::Start, space, item: None };
                    out.push(Reading { stack: self.push(frame, parent), noted });
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
                out.push(self.leave_value(parent, noted)?);
            }
            (Phase::After, b',') if self.algebra.object_names(state)? != Language::EMPTY => {
                let frame = Frame::Object { state, phase: Phase::Next, space: self.spelling.after_separator };
                out.push(Reading { stack: self.push(frame, parent), noted });
            }
            (Phase::Start | Phase::Next, b'"') => {
                let names = self.algebra.object_names(state)?;
                if names != Language::EMPTY {
                    let leaf = self.leaves.start(names, self.spelling.encoding);
                    let frame = Frame::Key { state, leaf, typed: TypedId::EMPTY };
                    out.push(Reading { stack: self.push(frame, parent), noted });
                }
            }
            _ => {}
        }
        Ok(())
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
                let text = self.typed_name(typed);
                let name = self.algebra.name(&text);
                let space = self.spelling.space;
                for (value, next) in self.algebra.object_moves(state, name)? {
                    out.push(Reading { stack: self.push(Frame::Colon { next, value, space }, parent), noted });
                }
            }
            next => {
                let typed = match self.leaves.completed(leaf, byte) {
                    Some(c) => self.type_char(typed, c),
                    None => typed,
                };
                out.push(Reading { stack: self.push(Frame::Key { state, leaf: next, typed }, parent), noted });
            }
        }
        Ok(())
    }

    /// The configuration after the closing quote of a member name that is like any other; `None` if the name matters.
    /// The name itself is not noted as seen, so this serves only as far as no further name is read.
    pub(crate) fn after_any_name(&mut self, reading: Reading) -> Result<Option<ConfigId>, SchemaError> {
        let Frame::Key { state, leaf, typed } = self.frame(reading.stack) else { return Ok(None) };
        let everything = self.leaves.language(leaf).is_some_and(|(language, _)| language == Language::ALL);
        let most = self.algebra.longest_name(state);
        if !everything || reading.is_noted() || !self.algebra.is_indifferent(state, &self.typed_beginning(typed, most))
        {
            return Ok(None);
        }
        self.after_class(state, 0, self.parent(reading.stack)).map(Some)
    }

    /// The configuration after the closing quote of a member name; all names of a class lead to the same, without being
    /// noted as seen. For walks along one token only.
    pub(crate) fn after_name(
        &mut self,
        state: ObjectState,
        name: &str,
        parent: StackId,
    ) -> Result<ConfigId, SchemaError> {
        if let Some(class) = self.algebra.name_class(state, name) {
            return self.after_class(state, class, parent);
        }
        let name = self.algebra.name(name);
        let moves = self.algebra.object_moves(state, name)?;
        Ok(self.before_value(moves, parent))
    }

    fn after_class(&mut self, state: ObjectState, class: u32, parent: StackId) -> Result<ConfigId, SchemaError> {
        if let Some(&known) = self.after_classes.get(&(state, class, parent)) {
            return Ok(known);
        }
        let moves = self.algebra.class_moves(state, class)?;
        let config = self.before_value(moves, parent);
        self.after_classes.insert((state, class, parent), config);
        Ok(config)
    }

    /// Before the colon of a member.
    fn before_value(&mut self, moves: Vec<(Formula, ObjectState)>, parent: StackId) -> ConfigId {
        let space = self.spelling.space;
        let colons = moves.into_iter().map(|(value, next)| Frame::Colon { next, value, space });
        let mut out: Vec<Reading> =
            colons.map(|frame| Reading { stack: self.push(frame, parent), noted: TypedId::NONE }).collect();
        self.config(&mut out)
    }

    /// Whether a member name is being read, and nothing else.
    pub(crate) fn is_in_name(&self, config: ConfigId) -> bool {
        let readings = self.readings_of(config);
        !readings.is_empty() && readings.iter().all(|reading| matches!(self.frame(reading.stack), Frame::Key { .. }))
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
        let is_key = |reading: &Reading| matches!(self.frame(reading.stack), Frame::Key { .. });
        if !self.readings_of(config).iter().any(is_key) {
            return Ok(config);
        }
        let mut readings = self.readings_of(config).to_vec();
        for reading in &mut readings {
            let Frame::Key { state, leaf, typed } = self.frame(reading.stack) else { continue };
            let name = self.typed_name(typed);
            if reading.is_noted() {
                continue;
            }
            let Some(kind) = self.algebra.kind_of_names(state, &name) else { continue };
            let stand_in = *self.name_kinds.entry((state, kind)).or_insert(typed);
            if stand_in == typed {
                continue;
            }
            let parent = self.parent(reading.stack);
            let other = reading.behind(self.push(Frame::Key { state, leaf, typed: stand_in }, parent));
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
        if let Some(known) = self.completions.get(&reading.stack) {
            return Ok(known.clone());
        }
        let found = self.completion_of(reading)?.map(Arc::from);
        self.completions.insert(reading.stack, found.clone());
        Ok(found)
    }

    /// What completes `other`, from all places on that are, in a string, behind the member name being read in `config`.
    pub(crate) fn strings_after(&mut self, config: ConfigId, other: ConfigId) -> Result<Vec<Vec<u8>>, SchemaError> {
        const LONGEST: usize = 256;
        let (here, there) = (self.readings_of(config).to_vec(), self.readings_of(other).to_vec());
        let mut out = Vec::new();
        for reading in there {
            let Some(completion) = self.known_completion(reading)? else { continue };
            for &reading in &here {
                let Frame::Key { typed, .. } = self.frame(reading.stack) else { continue };
                let string = ["\"", &escaped(&self.typed_name(typed))].concat();
                let places = completion.windows(string.len()).enumerate();
                for (at, _) in places.filter(|(_, window)| *window == string.as_bytes()) {
                    let behind = &completion[at + string.len()..];
                    out.push(behind[..behind.len().min(LONGEST)].to_vec());
                }
            }
        }
        Ok(out)
    }

    fn type_char(&mut self, typed: TypedId, c: u32) -> TypedId {
        if let Some(&id) = self.typed_ids.get(&(typed, c)) {
            return id;
        }
        let id = TypedId(self.typed.len() as u32);
        let length = self.typed[typed.0 as usize].length + 1;
        self.typed.push(Typed { before: typed, last: c, length });
        self.typed_ids.insert((typed, c), id);
        id
    }

    /// The name typed so far, or more than `most` bytes of it.
    fn typed_beginning(&self, typed: TypedId, most: usize) -> String {
        let mut at = typed;
        // Characters at the end that cannot matter are left out.
        while self.typed[at.0 as usize].length as usize > most + 1 {
            at = self.typed[at.0 as usize].before;
        }
        self.typed_name(at)
    }

    pub(crate) fn typed_name(&self, typed: TypedId) -> String {
        let mut chars = self.typed_from(typed, 0);
        chars.reverse();
        chars.into_iter().filter_map(char::from_u32).collect()
    }

    /// A noted text from an offset on.
    fn typed_text(&self, noted: TypedId, start: u32) -> String {
        let mut bytes: Vec<u8> = self.typed_from(noted, start).into_iter().map(|b| b as u8).collect();
        bytes.reverse();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The characters behind the first `start`, the last one first.
    fn typed_from(&self, typed: TypedId, start: u32) -> Vec<u32> {
        let (mut at, mut out) = (typed, Vec::new());
        while at != TypedId::EMPTY && self.typed[at.0 as usize].length > start {
            let typed = self.typed[at.0 as usize];
            out.push(typed.last);
            at = typed.before;
        }
        out
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
            _ => machine.type_char(noted, u32::from(byte)),
        };
        match (phase, byte) {
            (Phase::Start | Phase::After, b']') if self.algebra.array_may_end(state) => {
                let noted = then(self, noted);
                out.push(self.leave_value(parent, noted)?);
            }
            (Phase::After, b',') if !self.algebra.array_moves(state)?.is_empty() => {
                let noted = then(self, noted);
                let space = self.spelling.after_separator;
                let frame = Frame::Array { state, phase: Phase::Next, space, item: None };
                out.push(Reading { stack: self.push(frame, parent), noted });
            }
            (Phase::After, _) | (_, b']') => {}
            (Phase::Start | Phase::Next, _) => {
                for (value, next) in self.algebra.array_moves(state)? {
                    let (noted, item) = if self.algebra.array_notes_item(next) {
                        let noted = if noted == TypedId::NONE { TypedId::EMPTY } else { noted };
                        (noted, Some(self.typed[noted.0 as usize].length))
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
