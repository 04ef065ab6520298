//! Events: which named parts of a grammar, and which members of JSON objects, begin and end where.
//!
//! Masks come from a machine in which what is regular is one language and readings are joined, so names are lost there. What
//! was taken is read a second time, by a machine with names in it whose readings are kept apart: threads. An event is
//! certain as soon as all threads tell it; of ambiguous texts, threads that come to the same place are one, and the first
//! tells the story.

use super::chain::Chain;
use super::counts::Tokens;
use super::lower::{self, Lowered};
use super::machine::{Machine, Place};
use super::members::{self, MemberEvent, Members};
use super::nodes::{Node, NodeId};
use super::stack::StackId;
use crate::automaton::ConfigId;
use crate::error::CompileError;
use crate::leaf::{Encoding, LeafId};
use crate::limit_error;
use crate::options::Limits;
use crate::vocabulary::Vocabulary;
use hashbrown::HashSet;
use punchcard_grammar::Expr;
use punchcard_schema::SchemaError;
use std::sync::Arc;

/// Something begins or ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// What it is: "rule", "tag", "trigger", "call", ... as the grammar names it, or "property".
    pub kind: Arc<str>,
    /// Its name; of a property the JSON pointer from the value that it is in.
    pub name: Arc<str>,
    /// It ends.
    pub is_end: bool,
    /// The byte of the text, not counting tokens that are no text.
    pub position: usize,
}

/// An event as it is kept: the pointer to a member is as long as the member lies deep, so it is spelled when it is asked for.
#[derive(Debug)]
enum Told {
    /// A part that the grammar names.
    Named {
        name: u32,
        is_end: bool,
        position: usize,
    },
    Member(MemberEvent),
}

/// Events so far.
type Log = Chain<Told>;

/// One way to read the text so far.
#[derive(Clone, Debug)]
struct Thread {
    place: Place,
    stack: StackId,
    members: Option<Arc<Members>>,
    log: Log,
}

/// Where all threads of a text stand.
#[derive(Clone, Debug)]
pub struct Telling {
    threads: Arc<[Thread]>,
    position: usize,
    names: Names,
}

/// Kind and name of what a grammar names.
type Names = Arc<[(Arc<str>, Arc<str>)]>;

/// The machine that tells events.
#[derive(Debug)]
pub(crate) struct Teller {
    machine: Machine,
    names: Names,
    /// Members deeper than this are not told.
    max_depth: usize,
}

/// A text may be read in so many ways at once: without one of them the events would not be true of all.
const MOST_THREADS: usize = 256;
/// Ways on from one place of a thread.
const MOST_WAYS: usize = 100_000;

impl Teller {
    /// An estimate of the bytes on the heap.
    pub(crate) fn memory_size(&self) -> usize {
        self.machine.memory_size()
    }

    pub(crate) fn new(expr: &Expr, vocabulary: &Vocabulary, limits: &Limits) -> Result<Teller, CompileError> {
        let mut lowered: Lowered = lower::lower(expr, vocabulary, limits, true)?;
        let names = std::mem::take(&mut lowered.names).into_iter();
        let names = names.map(|(kind, name)| (Arc::from(kind), Arc::from(name))).collect();
        Ok(Teller { machine: Machine::new(lowered, limits.machine())?, names, max_depth: limits.max_depth })
    }

    /// Before the first byte.
    pub(crate) fn start(&mut self) -> Result<Telling, SchemaError> {
        let stack = self.machine.start_stack();
        let thread = Thread { place: Place::Between, stack, members: None, log: Log::default() };
        let mut out = Vec::new();
        self.settle(thread, 0, &mut out);
        Ok(Telling { threads: out.into(), position: 0, names: self.names.clone() })
    }

    /// After a token; `bytes` is what it spells, if it is text.
    pub(crate) fn take(
        &mut self,
        telling: &Telling,
        id: Option<u32>,
        bytes: Option<&[u8]>,
    ) -> Result<Telling, SchemaError> {
        let mut out = Vec::new();
        if let Some(id) = id {
            for thread in &*telling.threads {
                self.take_token(thread, id, telling.position, &mut out)?;
            }
        }
        let mut position = telling.position;
        if let Some(bytes) = bytes {
            let mut threads: Vec<Thread> = telling.threads.to_vec();
            for &byte in bytes {
                let mut next = Vec::new();
                for thread in &threads {
                    self.take_byte(thread, byte, position, &mut next)?;
                }
                position += 1;
                threads = distinct(next)?;
            }
            out.extend(threads);
        }
        Ok(Telling { threads: distinct(out)?.into(), position, names: self.names.clone() })
    }

    /// The events of a text that ends here.
    pub(crate) fn finish(&mut self, telling: &Telling) -> Result<Telling, SchemaError> {
        let mut out = Vec::new();
        for thread in &*telling.threads {
            let Some(left) = self.leave(thread, telling.position) else { continue };
            for (node, stack, log) in self.ways_on(&left, telling.position)? {
                if node == NodeId::EMPTY && stack == StackId::NEVER {
                    out.push(Thread { place: Place::Between, stack: StackId::END, members: None, log });
                }
            }
        }
        Ok(Telling { threads: distinct(out)?.into(), ..telling.clone() })
    }

    /// A thread behind the part that it is in, if that is complete.
    fn leave(&self, thread: &Thread, position: usize) -> Option<Thread> {
        if !self.machine.is_complete(thread.place) {
            return None;
        }
        let mut left = Thread { place: Place::Between, members: None, ..thread.clone() };
        if let Some(members) = &thread.members {
            let mut members = (**members).clone();
            left.log = members.finish(position).into_iter().map(Told::Member).fold(left.log, Log::with);
        }
        Some(left)
    }

    fn take_byte(
        &mut self,
        thread: &Thread,
        byte: u8,
        position: usize,
        out: &mut Vec<Thread>,
    ) -> Result<(), SchemaError> {
        match thread.place {
            Place::Between => {}
            Place::Leaf(leaf) => {
                let languages = &mut self.machine.nodes.languages;
                let next = self.machine.leaves.step(languages, leaf, byte)?;
                self.in_leaf(next, thread.clone(), position + 1, out)?;
            }
            Place::Json(part, config) => {
                let next = self.machine.parts[part.0 as usize].step(config, byte)?;
                if next != ConfigId::DEAD {
                    let members = thread.members.clone().unwrap_or_default();
                    let mut next = Thread { place: Place::Json(part, next), ..thread.clone() };
                    self.feed(&mut next, members, byte, position)?;
                    self.settle(next, position + 1, out);
                }
            }
        }
        let Some(left) = self.leave(thread, position) else { return Ok(()) };
        for (node, stack, log) in self.ways_on(&left, position)? {
            let next = Thread { place: Place::Between, stack, members: None, log };
            match *self.machine.nodes.get(node) {
                // That no longer text follows is known of a text that was taken; the longest is read first.
                Node::Terminal(language) | Node::Longest(language) => {
                    let leaf = self.machine.leaves.start(language, Encoding::Raw);
                    let languages = &mut self.machine.nodes.languages;
                    let leaf = self.machine.leaves.step(languages, leaf, byte)?;
                    self.in_leaf(leaf, next, position + 1, out)?;
                }
                Node::Json(part) => {
                    let machine = &mut self.machine.parts[part.0 as usize];
                    let config = machine.step(machine.start(), byte)?;
                    if config != ConfigId::DEAD {
                        let mut next = Thread { place: Place::Json(part, config), ..next };
                        self.feed(&mut next, Arc::default(), byte, position)?;
                        self.settle(next, position + 1, out);
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn take_token(
        &mut self,
        thread: &Thread,
        id: u32,
        position: usize,
        out: &mut Vec<Thread>,
    ) -> Result<(), SchemaError> {
        let Some(left) = self.leave(thread, position) else { return Ok(()) };
        for (node, stack, log) in self.ways_on(&left, position)? {
            if let Node::Token(set) = *self.machine.nodes.get(node)
                && self.machine.token_sets[set.0 as usize].binary_search(&id).is_ok()
            {
                self.settle(Thread { place: Place::Between, stack, members: None, log }, position, out);
            }
        }
        Ok(())
    }

    fn in_leaf(
        &mut self,
        leaf: LeafId,
        thread: Thread,
        position: usize,
        out: &mut Vec<Thread>,
    ) -> Result<(), SchemaError> {
        if leaf != LeafId::DEAD {
            let place = self.machine.place_of(leaf)?;
            self.settle(Thread { place, ..thread }, position, out);
        }
        Ok(())
    }

    /// Tells what certainly begins and ends where a thread stands, and adds the thread.
    fn settle(&mut self, mut thread: Thread, position: usize, out: &mut Vec<Thread>) {
        if let Place::Json(part, config) = thread.place
            && self.machine.parts[part.0 as usize].is_final(config)
            && let Some(left) = self.leave(&thread, position)
        {
            thread = left;
        }
        while thread.place == Place::Between {
            let &[(node, below)] = self.machine.stacks.tops(thread.stack) else { break };
            match *self.machine.nodes.get(node) {
                Node::Begin(name) | Node::End(name) => {
                    let is_end = matches!(self.machine.nodes.get(node), Node::End(_));
                    thread.log = thread.log.with(Told::Named { name: name.0, is_end, position });
                    thread.stack = below;
                }
                Node::Sequence(head, tail) => {
                    let below = self.machine.stacks.push(&self.machine.nodes, tail, below);
                    thread.stack = self.machine.stacks.push(&self.machine.nodes, head, below);
                }
                Node::Rule(rule) => {
                    let body = self.machine.nodes.body(rule);
                    thread.stack = self.machine.stacks.push(&self.machine.nodes, body, below);
                }
                Node::LimitEnd => thread.stack = below,
                Node::Limit(body, _) => thread.stack = self.machine.stacks.push(&self.machine.nodes, body, below),
                _ => break,
            }
        }
        out.push(thread);
    }

    /// The members of a JSON text learn of one more byte.
    fn feed(&self, thread: &mut Thread, members: Arc<Members>, byte: u8, position: usize) -> Result<(), SchemaError> {
        let mut members = Arc::unwrap_or_clone(members);
        let events = members.take(byte, position);
        if members.depth() > self.max_depth {
            let hint = "Each member is told with the pointer to it; do without events, or raise the limit";
            return Err(limit_error("max_depth", self.max_depth, hint));
        }
        let log = std::mem::take(&mut thread.log);
        thread.log = events.into_iter().map(Told::Member).fold(log, Log::with);
        thread.members = Some(Arc::new(members));
        Ok(())
    }

    /// What can be read next from the place between two parts, with the stack below it and the events on the way.
    fn ways_on(&mut self, thread: &Thread, position: usize) -> Result<Vec<(NodeId, StackId, Log)>, SchemaError> {
        let mut out = Vec::new();
        let mut seen = HashSet::new();
        let mut open: Vec<(NodeId, StackId, Log)> = Vec::new();
        let descend = |machine: &Machine, stack: StackId, log: &Log, open: &mut Vec<_>| {
            open.extend(machine.stacks.tops(stack).iter().rev().map(|&(node, below)| (node, below, log.clone())));
        };
        descend(&self.machine, thread.stack, &thread.log, &mut open);
        while let Some((node, below, log)) = open.pop() {
            if !seen.insert((node, below)) {
                continue;
            }
            if seen.len() > MOST_WAYS {
                let hint = "The rules begin alike in too many ways to tell which of them begins; do without events";
                return Err(limit_error("max_ways", MOST_WAYS, hint));
            }
            if below == StackId::NEVER {
                out.push((node, below, log));
                continue;
            }
            let machine = &mut self.machine;
            match machine.nodes.get(node).clone() {
                Node::Terminal(language) | Node::Longest(language) => {
                    if machine.nodes.languages.is_nullable(language) {
                        descend(machine, below, &log, &mut open);
                    }
                    out.push((node, below, log));
                }
                Node::Json(_) | Node::Token(_) => out.push((node, below, log)),
                Node::Sequence(head, tail) => {
                    let below = machine.stacks.push(&machine.nodes, tail, below);
                    open.push((head, below, log));
                }
                Node::Choice(items) => open.extend(items.iter().rev().map(|&item| (item, below, log.clone()))),
                Node::Repeat(body, min, max) => {
                    if min == 0 {
                        descend(machine, below, &log, &mut open);
                    }
                    let again = machine.nodes.repeat(body, min.saturating_sub(1), super::nodes::fewer(max));
                    let below = machine.stacks.push(&machine.nodes, again, below);
                    open.push((body, below, log));
                }
                Node::Rule(rule) => open.push((machine.nodes.body(rule), below, log)),
                Node::Limit(body, _) => open.push((body, below, log)),
                Node::LimitEnd => descend(machine, below, &log, &mut open),
                Node::Begin(name) | Node::End(name) => {
                    let is_end = matches!(machine.nodes.get(node), Node::End(_));
                    let log = log.with(Told::Named { name: name.0, is_end, position });
                    descend(&self.machine, below, &log, &mut open);
                }
            }
        }
        Ok(out)
    }
}

impl Telling {
    /// The events that all threads tell, from the `first` on.
    pub fn events(&self, first: usize) -> Vec<Event> {
        let mut logs = self.threads.iter().map(|thread| thread.log.clone());
        let Some(mut common) = logs.next() else { return Vec::new() };
        for mut log in logs {
            // Back to the same event: logs share what they have in common.
            while !common.is_same(&log) {
                let (a, b) = (common.len(), log.len());
                if a >= b {
                    common = common.without_last();
                }
                if b >= a {
                    log = log.without_last();
                }
            }
        }
        common.from(first).into_iter().map(|told| self.event(told)).collect()
    }

    fn event(&self, told: &Told) -> Event {
        match told {
            &Told::Named { name, is_end, position } => {
                let (kind, name) = self.names[name as usize].clone();
                Event { kind, name, is_end, position }
            }
            Told::Member(MemberEvent { path, is_end, position }) => {
                let name = members::pointer(path).into();
                Event { kind: Arc::from("property"), name, is_end: *is_end, position: *position }
            }
        }
    }
}

/// One thread for each place.
fn distinct(mut threads: Vec<Thread>) -> Result<Vec<Thread>, SchemaError> {
    let mut seen = HashSet::new();
    threads.retain(|thread| seen.insert((thread.place, thread.stack)));
    if threads.len() > MOST_THREADS {
        let hint = "The text can be read in too many ways to tell what begins and ends; do without events";
        return Err(limit_error("max_threads", MOST_THREADS, hint));
    }
    Ok(threads)
}

impl Machine {
    /// The stack before the first byte.
    fn start_stack(&self) -> StackId {
        self.readings_of(self.start()).first().map_or(StackId::NEVER, |reading| {
            debug_assert_eq!(reading.tokens, Tokens::UNLIMITED);
            reading.stack
        })
    }
}
