//! The byte machine of rules, as a lazy automaton.
//!
//! A reading is what is being read, in a terminal or in a JSON value or between them, on top of the stacks that may follow.
//! Readings of the same thing are one reading on top of all their stacks.

use super::counts::{Counting, Tokens};
use super::lower::Lowered;
use super::nodes::{NodeId, Nodes, PartId};
use super::stack::{Exit, ExitsId, Next, StackId, Stacks};
use crate::automaton::{ConfigId, Configs};
use crate::bytes::ByteSet;
use crate::error::CompileError;
use crate::json::machine::MachineLimits;
use crate::leaf::{Encoding, LeafId, Leaves};
use crate::{json, limit_error};
use hashbrown::HashMap;
use punchcard_automata::work;
use punchcard_grammar::GrammarError;
use punchcard_schema::SchemaError;
use rustc_hash::FxBuildHasher;

/// What is being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Place {
    /// Between two parts.
    Between,
    /// Within a terminal.
    Leaf(LeafId),
    /// Within a JSON value.
    Json(PartId, ConfigId),
}

/// One way to read the text so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Reading {
    pub(crate) place: Place,
    pub(crate) tokens: Tokens,
    pub(crate) stack: StackId,
}

/// What is behind a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rest {
    Stack(StackId),
    /// The stacks below an exit, which are found out only if they are needed.
    Exit(ExitsId, u32),
}

/// A reading between configurations. It is not interned: most are gone after a byte or two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Passing {
    pub(super) place: Place,
    pub(super) tokens: Tokens,
    pub(super) rest: Rest,
    /// What begins next is among the readings as if it had begun, so the place is not left.
    pub(super) is_opened: bool,
}

impl From<Reading> for Passing {
    fn from(Reading { place, tokens, stack }: Reading) -> Passing {
        Passing { place, tokens, rest: Rest::Stack(stack), is_opened: false }
    }
}

/// The machine of one grammar.
#[derive(Debug)]
pub struct Machine {
    pub(crate) nodes: Nodes,
    /// The node of the whole text.
    pub(super) root: NodeId,
    pub(crate) stacks: Stacks,
    pub(crate) leaves: Leaves,
    pub(crate) parts: Vec<json::Machine>,
    pub(crate) part_masks: super::mask::PartMasks,
    /// Token ids of each set, sorted.
    pub(crate) token_sets: Vec<Box<[u32]>>,
    pub(crate) costs: super::completion::Costs,
    pub(super) lives: super::live::Lives,
    limits: MachineLimits,
    /// How many nodes compiling made.
    pub(super) compiled_nodes: usize,
    configs: Configs<Reading>,
    token_set_bytes: usize,
    token_steps: HashMap<(ConfigId, u32), ConfigId, FxBuildHasher>,
    start: ConfigId,
    /// Memory for readings between configurations, used again and again.
    passing: Vec<Passing>,
    pub(super) walks: Vec<super::mask::Walk>,
}

impl Machine {
    pub(crate) fn new(lowered: Lowered, limits: MachineLimits) -> Result<Machine, CompileError> {
        let Lowered { nodes, start, parts, tokens, names: _ } = lowered;
        let mut machine = Machine {
            nodes,
            root: start,
            stacks: Stacks::new(limits.max_states),
            leaves: Leaves::default(),
            parts,
            part_masks: Default::default(),
            token_set_bytes: tokens.iter().map(|set| size_of_val(&**set)).sum(),
            token_sets: tokens,
            costs: Default::default(),
            lives: Default::default(),
            limits,
            compiled_nodes: 0,
            configs: Configs::new(),
            token_steps: HashMap::default(),
            start: ConfigId::DEAD,
            passing: Vec::new(),
            walks: Vec::new(),
        };
        let stack = machine.stacks.push(&machine.nodes, start, StackId::END);
        let reading = Reading { place: Place::Between, tokens: Tokens::UNLIMITED, stack };
        machine.start = machine.config(&mut vec![reading]);
        machine.check_limits()?;
        machine.compiled_nodes = machine.nodes.len();
        Ok(machine)
    }

    /// Limits on tokens must leave room for some text of what they limit.
    fn check_limits(&mut self) -> Result<(), CompileError> {
        let limits: Vec<_> =
            self.nodes.reachable(self.root).into_iter().filter_map(|node| self.nodes.as_limit(node)).collect();
        for (body, tokens) in limits {
            let least = self.cost_in_bytes(body)?;
            if least > u64::from(tokens) {
                let message = format!("A limit of {tokens} tokens is too small: up to {least} may be needed");
                return Err(GrammarError::new(message).with_hint("Raise the limit").into());
            }
        }
        Ok(())
    }

    /// The configuration before the first byte.
    pub(crate) fn start(&self) -> ConfigId {
        self.start
    }

    pub(crate) fn readings_of(&self, config: ConfigId) -> &[Reading] {
        self.configs.readings(config)
    }

    /// Whether it, or a part, has used up a limit on what it may build.
    pub(crate) fn is_exhausted(&self) -> bool {
        let built = self.configs.len() + self.stacks.len() + self.nodes.len();
        built > self.limits.max_states
            || self.stacks.is_full()
            || self.nodes.languages.check_limit().is_err()
            || self.parts.iter().any(json::Machine::is_exhausted)
    }

    /// An estimate of the bytes on the heap.
    pub(crate) fn memory_size(&self) -> usize {
        self.nodes.memory_size()
            + self.stacks.memory_size()
            + self.leaves.memory_size()
            + self.configs.memory_size()
            + self.token_steps.allocation_size()
            + self.costs.memory_size()
            + self.lives.memory_size()
            + self.part_masks.memory_size()
            + self.parts.iter().map(json::Machine::memory_size).sum::<usize>()
            + self.token_set_bytes
    }

    /// The configuration of readings, of which those of the same place become one.
    pub(crate) fn config(&mut self, readings: &mut Vec<Reading>) -> ConfigId {
        if readings.len() > 1 {
            readings.sort_unstable();
            let mut joined: Vec<Reading> = Vec::with_capacity(readings.len());
            for &reading in readings.iter() {
                match joined.last_mut() {
                    Some(last) if (last.place, last.tokens) == (reading.place, reading.tokens) => {
                        last.stack = self.stacks.union(last.stack, reading.stack);
                    }
                    _ => joined.push(reading),
                }
            }
            *readings = joined;
        }
        self.configs.intern(readings)
    }

    /// The configuration after one more byte.
    pub(crate) fn step(&mut self, config: ConfigId, byte: u8) -> Result<ConfigId, SchemaError> {
        if let Some(next) = self.configs.known_step(config, byte) {
            return Ok(next);
        }
        let next = self.step_bytes(config, &[byte])?;
        self.configs.remember_step(config, byte, next);
        Ok(next)
    }

    /// The configuration after more bytes. Those in between are passed through without being noted.
    fn step_bytes(&mut self, config: ConfigId, bytes: &[u8]) -> Result<ConfigId, SchemaError> {
        let states = self.configs.len() + self.stacks.len() + self.nodes.len() + self.nodes.counts.len();
        if states > self.limits.max_states {
            let hint = "Compile the grammar anew for further texts, or raise the limit";
            return Err(limit_error("max_states", self.limits.max_states, hint));
        }
        let mut readings = std::mem::take(&mut self.passing);
        readings.clear();
        readings.extend(self.configs.readings(config).iter().map(|&reading| Passing::from(reading)));
        let mut first = 0;
        for &byte in bytes {
            self.open(&mut readings, first, &ByteSet::of(&[byte]))?;
            let end = readings.len();
            for i in first..end {
                self.pass(readings[i], byte, &mut readings)?;
            }
            first = end;
            self.join_from(first, &mut readings)?;
            if readings.len() == first {
                break;
            }
        }
        let mut out = Vec::with_capacity(readings.len() - first);
        for &reading in &readings[first..] {
            out.push(self.settle(reading)?);
        }
        self.passing = readings;
        Ok(self.config(&mut out))
    }

    /// The place of a reading after one more byte, if there is one.
    pub(super) fn pass(&mut self, reading: Passing, byte: u8, out: &mut Vec<Passing>) -> Result<(), SchemaError> {
        if self.nodes.counts.after(reading.tokens, Counting::KEEPS).is_none() {
            return Ok(());
        }
        let place = match reading.place {
            Place::Between => return Ok(()),
            Place::Leaf(leaf) => match self.leaves.step(&mut self.nodes.languages, leaf, byte)? {
                LeafId::DEAD => return Ok(()),
                next => Place::Leaf(next),
            },
            Place::Json(part, config) => match self.parts[part.0 as usize].step(config, byte)? {
                ConfigId::DEAD => return Ok(()),
                next => Place::Json(part, next),
            },
        };
        out.push(Passing { place, is_opened: false, ..reading });
        Ok(())
    }

    /// Adds what may begin next to the readings from the `first` on, as far as it may begin with one of some bytes.
    pub(super) fn open(
        &mut self,
        readings: &mut Vec<Passing>,
        first: usize,
        wanted: &ByteSet,
    ) -> Result<(), SchemaError> {
        let end = readings.len();
        let mut i = first;
        while i < end {
            let Passing { place, tokens, rest, is_opened } = readings[i];
            i += 1;
            if is_opened || !self.is_complete(place) || self.live_behind(rest)?.and(wanted).is_empty() {
                continue;
            }
            // What begins next is read once for all that is complete here.
            let mut stack = self.stack_of(rest)?;
            let others = i..end;
            for other in others {
                let Passing { place, tokens: counted, rest, is_opened } = readings[other];
                if !is_opened
                    && counted == tokens
                    && self.is_complete(place)
                    && !self.live_behind(rest)?.and(wanted).is_empty()
                {
                    readings[other].is_opened = true;
                    let more = self.stack_of(rest)?;
                    stack = self.stacks.union(stack, more);
                }
            }
            let id = self.exits(stack)?;
            let exits = self.stacks.exits(id);
            if exits.live.and(wanted).is_empty() {
                continue;
            }
            for (number, exit) in exits.next.iter().enumerate() {
                if exit.live.and(wanted).is_empty() {
                    continue;
                }
                if let Some(tokens) = self.nodes.counts.after(tokens, exit.counting) {
                    let rest = Rest::Exit(id, number as u32);
                    readings.push(Passing { place: exit.place, tokens, rest, is_opened: true });
                }
            }
        }
        Ok(())
    }

    /// Makes one of those readings, from the `first` on, that are at the same place.
    pub(super) fn join_from(&mut self, first: usize, readings: &mut Vec<Passing>) -> Result<(), SchemaError> {
        work::spend(1 + (readings.len() - first) as u64)?;
        if readings.len() > first + 1 {
            readings[first..].sort_unstable();
            let mut kept = first;
            for i in first + 1..readings.len() {
                let (last, next) = (readings[kept], readings[i]);
                if (last.place, last.tokens) != (next.place, next.tokens) {
                    kept += 1;
                    readings[kept] = next;
                } else if last.rest != next.rest {
                    let (a, b) = (self.stack_of(last.rest)?, self.stack_of(next.rest)?);
                    readings[kept].rest = Rest::Stack(self.stacks.union(a, b));
                }
            }
            readings.truncate(kept + 1);
        }
        if readings.len() - first > self.limits.max_readings {
            let hint = "Tell the alternatives of the rules apart earlier, or raise the limit";
            return Err(limit_error("max_readings", self.limits.max_readings, hint));
        }
        Ok(self.nodes.languages.check_limit()?)
    }

    /// A reading as it is kept.
    pub(super) fn settle(&mut self, reading: Passing) -> Result<Reading, SchemaError> {
        let place = match reading.place {
            Place::Leaf(leaf) => self.place_of(leaf)?,
            place => place,
        };
        Ok(Reading { place, tokens: reading.tokens, stack: self.stack_of(reading.rest)? })
    }

    /// The stacks behind a place.
    pub(super) fn stack_of(&mut self, rest: Rest) -> Result<StackId, SchemaError> {
        match rest {
            Rest::Stack(stack) => Ok(stack),
            Rest::Exit(id, exit) => self.stacks.below(&self.nodes, id, exit as usize),
        }
    }

    /// In a terminal, which is left at once if nothing more can come of it.
    pub(crate) fn place_of(&mut self, leaf: LeafId) -> Result<Place, SchemaError> {
        let ended = match self.leaves.language(leaf) {
            Some((language, _)) => self.nodes.languages.is_only_empty(language)?,
            None => false,
        };
        Ok(if ended { Place::Between } else { Place::Leaf(leaf) })
    }

    /// Whether a place can be left.
    pub(crate) fn is_complete(&self, place: Place) -> bool {
        match place {
            Place::Between => true,
            Place::Leaf(leaf) => {
                self.leaves.language(leaf).is_some_and(|(language, _)| self.nodes.languages.is_nullable(language))
            }
            Place::Json(part, config) => self.parts[part.0 as usize].is_accepting(config),
        }
    }

    /// Adds the bytes that may come next, and perhaps some that may not.
    pub(crate) fn possible_bytes(&mut self, config: ConfigId, out: &mut ByteSet) -> Result<(), SchemaError> {
        for i in 0..self.readings_of(config).len() {
            let reading = self.readings_of(config)[i];
            self.live(reading.place, out)?;
            if self.is_complete(reading.place) {
                let exits = self.exits(reading.stack)?;
                out.extend(&self.stacks.exits(exits).live);
            }
        }
        Ok(())
    }

    /// Whether a backslash that comes next is a detour in JSON: each character that it can lead to can stand for itself.
    pub(crate) fn needs_no_escape(&mut self, config: ConfigId) -> Result<bool, SchemaError> {
        for i in 0..self.readings_of(config).len() {
            let Place::Json(part, inner) = self.readings_of(config)[i].place else { return Ok(false) };
            if !self.parts[part.0 as usize].needs_no_escape(inner)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Adds the bytes that may come next within a place, and perhaps some that may not.
    pub(super) fn live(&mut self, place: Place, out: &mut ByteSet) -> Result<(), SchemaError> {
        match place {
            Place::Between => {}
            Place::Leaf(leaf) => out.extend(&self.leaves.live(&mut self.nodes.languages, leaf)?),
            Place::Json(part, config) => self.parts[part.0 as usize].possible_bytes(config, out)?,
        }
        Ok(())
    }

    /// What can be read next from stacks.
    pub(super) fn exits(&mut self, stack: StackId) -> Result<ExitsId, SchemaError> {
        if let Some(known) = self.stacks.known_exits(stack) {
            return Ok(known);
        }
        let mut exits = self.stacks.find_exits(&mut self.nodes, stack)?;
        for exit in &mut exits.next {
            exit.place = match exit.next {
                Next::Terminal(language) => Place::Leaf(self.leaves.start(language, Encoding::Raw)),
                Next::Json(part) => Place::Json(part, self.parts[part.0 as usize].start()),
                Next::Token(_) => continue,
            };
            self.live(exit.place, &mut exit.live)?;
            exits.live.extend(&exit.live);
        }
        Ok(self.stacks.keep_exits(stack, exits))
    }

    /// Whether the text may end here.
    pub(crate) fn is_accepting(&mut self, config: ConfigId) -> Result<bool, SchemaError> {
        for i in 0..self.readings_of(config).len() {
            let reading = self.readings_of(config)[i];
            if self.is_complete(reading.place) {
                let exits = self.exits(reading.stack)?;
                if self.stacks.exits(exits).may_end {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// What the tokens that the grammar asks for by id lead to: each set, and the reading behind it.
    pub(crate) fn token_exits(&mut self, config: ConfigId) -> Result<Vec<(usize, Reading)>, SchemaError> {
        let mut out = Vec::new();
        if self.token_sets.is_empty() {
            return Ok(out);
        }
        for i in 0..self.readings_of(config).len() {
            let reading = self.readings_of(config)[i];
            if !self.is_complete(reading.place) {
                continue;
            }
            let exits = self.exits(reading.stack)?;
            for exit in 0..self.stacks.exits(exits).next.len() {
                let Exit { next, counting, .. } = self.stacks.exits(exits).next[exit];
                if let (Next::Token(set), Some(tokens)) = (next, self.nodes.counts.after(reading.tokens, counting)) {
                    let stack = self.stacks.below(&self.nodes, exits, exit)?;
                    out.push((set.0 as usize, Reading { place: Place::Between, tokens, stack }));
                }
            }
        }
        Ok(out)
    }

    /// The configuration after a token, if it is remembered.
    pub(crate) fn known_token(&self, config: ConfigId, id: u32) -> Option<ConfigId> {
        self.token_steps.get(&(config, id)).copied()
    }

    /// The configuration after a token that the grammar asks for by id, or that spells `bytes`.
    pub(crate) fn step_token(
        &mut self,
        config: ConfigId,
        id: u32,
        bytes: Option<&[u8]>,
    ) -> Result<ConfigId, SchemaError> {
        if let Some(&known) = self.token_steps.get(&(config, id)) {
            return Ok(known);
        }
        let mut at = match bytes {
            Some(bytes) => self.step_bytes(config, bytes)?,
            None => ConfigId::DEAD,
        };
        let mut readings: Vec<Reading> = Vec::new();
        for (set, reading) in self.token_exits(config)? {
            if self.token_sets[set].binary_search(&id).is_ok() {
                readings.push(reading);
            }
        }
        if !readings.is_empty() {
            readings.extend(self.readings_of(at));
            at = self.config(&mut readings);
        }
        /// Most tokens that are remembered.
        const MOST: usize = 1 << 16;
        let next = self.after_token(at)?;
        if self.token_steps.len() >= MOST {
            self.token_steps.clear();
        }
        self.token_steps.insert((config, id), next);
        Ok(next)
    }

    /// Tokens that are asked for by id, sorted.
    pub(crate) fn asked_for(&mut self, config: ConfigId) -> Result<Vec<u32>, SchemaError> {
        let exits = self.token_exits(config)?;
        let mut ids: Vec<u32> = exits.iter().flat_map(|&(set, _)| self.token_sets[set].iter().copied()).collect();
        ids.sort_unstable();
        ids.dedup();
        Ok(ids)
    }

    /// Whether a member name of a JSON object is being read, and nothing else.
    pub(crate) fn is_in_name(&self, config: ConfigId) -> bool {
        let readings = self.readings_of(config);
        let in_name = |reading: &Reading| match reading.place {
            Place::Json(part, config) => self.parts[part.0 as usize].is_in_name(config),
            _ => false,
        };
        !readings.is_empty() && readings.iter().all(in_name)
    }

    /// A configuration with an equal completion: member names that are treated alike are one.
    pub(crate) fn representative(&mut self, config: ConfigId) -> Result<ConfigId, SchemaError> {
        self.in_json(config, json::Machine::representative)
    }

    /// The same, also where what completes the text has the name in question in it (see `strings_after`).
    pub(crate) fn stand_in(&mut self, config: ConfigId) -> Result<ConfigId, SchemaError> {
        self.in_json(config, json::Machine::stand_in)
    }

    fn in_json(
        &mut self,
        config: ConfigId,
        replace: impl Fn(&mut json::Machine, ConfigId) -> Result<ConfigId, SchemaError>,
    ) -> Result<ConfigId, SchemaError> {
        let in_json = |reading: &Reading| matches!(reading.place, Place::Json(..));
        if !self.readings_of(config).iter().any(in_json) {
            return Ok(config);
        }
        let mut readings = self.readings_of(config).to_vec();
        for reading in &mut readings {
            if let Place::Json(part, config) = reading.place {
                reading.place = Place::Json(part, replace(&mut self.parts[part.0 as usize], config)?);
            }
        }
        Ok(self.config(&mut readings))
    }

    /// What completes `other`, from all places on that are, in a string, behind the member name being read in `config`.
    pub(crate) fn strings_after(&mut self, config: ConfigId, other: ConfigId) -> Result<Vec<Vec<u8>>, SchemaError> {
        let in_json = |machine: &Machine, config| -> Vec<_> {
            let places = machine.readings_of(config).iter().filter_map(|reading| match reading.place {
                Place::Json(part, config) => Some((part.0 as usize, config)),
                _ => None,
            });
            places.collect()
        };
        let (here, there) = (in_json(self, config), in_json(self, other));
        let mut out = Vec::new();
        for (part, config) in here {
            for &(_, other) in there.iter().filter(|(other, _)| *other == part) {
                out.extend(self.parts[part].strings_after(config, other)?);
            }
        }
        Ok(out)
    }

    /// Whether some limit counts the tokens of a configuration.
    pub(crate) fn counts_tokens(&self, config: ConfigId) -> bool {
        self.readings_of(config).iter().any(|reading| reading.tokens.is_limited())
    }

    /// The configuration at the end of a token: limits have one token less, and readings that cannot end within theirs
    /// are gone.
    pub(crate) fn after_token(&mut self, config: ConfigId) -> Result<ConfigId, SchemaError> {
        if !self.counts_tokens(config) {
            return Ok(config);
        }
        let mut out = Vec::new();
        for i in 0..self.readings_of(config).len() {
            let reading = self.readings_of(config)[i];
            out.extend(self.reading_after_token(reading)?);
        }
        Ok(self.config(&mut out))
    }

    /// A reading at the end of a token, if it can end within its limit.
    pub(super) fn reading_after_token(&mut self, reading: Reading) -> Result<Option<Reading>, SchemaError> {
        if !reading.tokens.is_limited() {
            return Ok(Some(reading));
        }
        let Some(tokens) = self.nodes.counts.fewer(reading.tokens) else { return Ok(None) };
        let reading = Reading { tokens, ..reading };
        let rest = self.rest_cost(reading.place)?;
        Ok(self.ends_within(rest, tokens, reading.stack)?.then_some(reading))
    }

    /// Whether a limit on tokens leaves room for any token that stays within the terminal of a reading.
    pub(super) fn has_room(&mut self, reading: Passing) -> Result<bool, SchemaError> {
        if !reading.tokens.is_limited() {
            return Ok(true);
        }
        let Place::Leaf(leaf) = reading.place else { return Ok(false) };
        let Some(rest) = self.rest_from_anywhere(leaf)? else { return Ok(false) };
        let stack = self.stack_of(reading.rest)?;
        // After this token.
        let Some(tokens) = self.nodes.counts.fewer(reading.tokens) else { return Ok(false) };
        self.ends_within(Some(rest), tokens, stack)
    }

    /// Limits can be kept if what is left of the body of each takes no more bytes than there are tokens; `rest` is what is
    /// left of the place on top.
    fn ends_within(&mut self, rest: Option<u64>, tokens: Tokens, stack: StackId) -> Result<bool, SchemaError> {
        let Some(rest) = rest else { return Ok(false) };
        match self.nodes.counts.innermost(tokens) {
            None => Ok(true),
            Some((left, Tokens::UNLIMITED)) => Ok(rest.saturating_add(self.cost_to_limit(stack)?) <= u64::from(left)),
            Some(_) => Ok(self.slack(stack, tokens)?.is_some_and(|slack| rest <= slack)),
        }
    }
}
