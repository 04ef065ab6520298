//! Stacks: what may follow.
//!
//! A stack set is a set of sequences of nodes, each of which may be what is still to come, as a tree that shares equal tops
//! and, interned, equal rests. Stacks with the same top are thus one, and what is read next is read once for all of them
//! (as in the graph-structured stack of Tomita, 1985). No positions are in it, so equal futures are equal ids.

use super::nodes::{Node, NodeId, Nodes, PartId, TokensId};
use crate::limit_error;
use hashbrown::{HashMap, HashTable};
use punchcard_automata::Language;
use punchcard_schema::SchemaError;
use rustc_hash::FxBuildHasher;
use std::hash::BuildHasher;
use std::sync::Arc;

type FxMap<K, V> = HashMap<K, V, FxBuildHasher>;

/// A set of stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct StackId(u32);

impl StackId {
    /// No stack: no way on.
    pub(crate) const NEVER: StackId = StackId(0);
    /// The empty stack: the end of the text.
    pub(crate) const END: StackId = StackId(1);
}

/// What can be read next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Next {
    Terminal(Language),
    Json(PartId),
    Token(TokensId),
}

/// What a step does to the count of tokens of the limit that it is within.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Counting {
    /// It stays within the same limit, or within none.
    Keeps,
    /// It leaves the limit.
    Leaves,
    /// It enters a limit of so many tokens.
    Enters(u32),
}

/// What can be read from a set of stacks, and whether the text may end here.
#[derive(Debug, Default)]
pub(crate) struct Exits {
    /// What is read, what it does to the count of tokens, and the stacks below it.
    pub(crate) next: Vec<(Next, Counting, StackId)>,
    /// The text may end without leaving a limit, or by leaving it.
    pub(crate) may_end: bool,
}

/// The store of stacks.
#[derive(Debug)]
pub(crate) struct Stacks {
    /// The tops of all sets, one set after the other, and where each begins and ends.
    tops: Vec<(NodeId, StackId)>,
    spans: Vec<(u32, u32)>,
    ids: HashTable<StackId>,
    unions: FxMap<(StackId, StackId), StackId>,
    exits: FxMap<StackId, Arc<Exits>>,
    /// How much the sets take, as states: one each, and more for large ones.
    weight: usize,
    /// Tops that unions have looked at.
    work: u64,
    max_states: usize,
    /// Length of the shortest text, in bytes.
    pub(super) costs: FxMap<StackId, u64>,
}

fn slice<'a>(tops: &'a [(NodeId, StackId)], spans: &[(u32, u32)], stack: StackId) -> &'a [(NodeId, StackId)] {
    let (start, end) = spans[stack.0 as usize];
    &tops[start as usize..end as usize]
}

/// A node on top of stacks, while it is found out what can be read next.
#[derive(Clone, Copy, Debug)]
struct Opened {
    node: NodeId,
    counting: Counting,
    below: StackId,
    is_changed: bool,
}

#[derive(Default)]
struct Found {
    places: Vec<Opened>,
    ids: FxMap<(NodeId, Counting, bool), usize>,
    /// Places to open, or to open again.
    changed: Vec<usize>,
}

impl Found {
    fn add(&mut self, stacks: &mut Stacks, node: NodeId, below: StackId, counting: Counting) {
        // The end of the text is no node that may be joined with others.
        let key = (node, counting, below == StackId::NEVER);
        let Some(&place) = self.ids.get(&key) else {
            self.ids.insert(key, self.places.len());
            self.changed.push(self.places.len());
            self.places.push(Opened { node, counting, below, is_changed: true });
            return;
        };
        let both = stacks.union(self.places[place].below, below);
        let known = &mut self.places[place];
        if known.below != both {
            known.below = both;
            if !std::mem::replace(&mut known.is_changed, true) {
                self.changed.push(place);
            }
        }
    }

    fn add_all(&mut self, stacks: &mut Stacks, below: StackId, counting: Counting) {
        for i in 0..stacks.tops(below).len() {
            let (node, rest) = stacks.tops(below)[i];
            self.add(stacks, node, rest, counting);
        }
    }
}

/// Most ways on from one place.
const MOST_EXITS: usize = 1_000_000;
/// Most tops of stacks that finding them may look at.
const MOST_WORK: u64 = 50_000_000;

impl Stacks {
    /// With a limit on how much they may take.
    pub(crate) fn new(max_states: usize) -> Stacks {
        let mut stacks = Stacks {
            tops: Vec::new(),
            spans: Vec::new(),
            ids: HashTable::new(),
            unions: FxMap::default(),
            exits: FxMap::default(),
            weight: 0,
            work: 0,
            max_states,
            costs: FxMap::default(),
        };
        stacks.intern(&[]);
        stacks.intern(&[(NodeId::EMPTY, StackId::NEVER)]);
        stacks
    }

    fn intern(&mut self, set: &[(NodeId, StackId)]) -> StackId {
        let hash = |set: &[(NodeId, StackId)]| FxBuildHasher.hash_one(set);
        if let Some(&id) = self.ids.find(hash(set), |&id| self.tops(id) == set) {
            return id;
        }
        let id = StackId(self.spans.len() as u32);
        self.weight += 1 + set.len() / 8;
        let start = self.tops.len() as u32;
        self.tops.extend_from_slice(set);
        self.spans.push((start, self.tops.len() as u32));
        let (tops, spans) = (&self.tops, &self.spans);
        self.ids.insert_unique(hash(set), id, |&id| hash(slice(tops, spans, id)));
        id
    }

    /// The tops, each with the stacks below it; the empty stack is an empty node above no stack.
    pub(crate) fn tops(&self, stack: StackId) -> &[(NodeId, StackId)] {
        slice(&self.tops, &self.spans, stack)
    }

    /// How many there are; large ones count as several.
    pub(crate) fn len(&self) -> usize {
        self.weight
    }

    pub(crate) fn memory_size(&self) -> usize {
        let sets = 8 * self.tops.capacity() + 14 * self.spans.capacity();
        let exits: usize = self.exits.values().map(|exits| 64 + 20 * exits.next.len()).sum();
        sets + exits + 24 * self.unions.len() + 24 * self.costs.len()
    }

    /// A node on top of stacks.
    pub(crate) fn push(&mut self, nodes: &Nodes, node: NodeId, below: StackId) -> StackId {
        if node == NodeId::EMPTY || below == StackId::NEVER {
            return below;
        }
        let mut below = below;
        // What a repetition is followed by may be another round of the same.
        if let Some(at) = self.tops(below).iter().position(|&(top, _)| nodes.absorbs(node, top)) {
            let mut others = self.tops(below).to_vec();
            let (_, rest) = others.remove(at);
            let others = self.intern(&others);
            below = self.union(others, rest);
        }
        self.intern(&[(node, below)])
    }

    /// All stacks of both sets.
    pub(crate) fn union(&mut self, a: StackId, b: StackId) -> StackId {
        if a == b || b == StackId::NEVER {
            return a;
        }
        if a == StackId::NEVER {
            return b;
        }
        let key = (a.min(b), a.max(b));
        if let Some(&known) = self.unions.get(&key) {
            return known;
        }
        let mut merged = Vec::with_capacity(self.tops(a).len() + self.tops(b).len());
        let (mut i, mut j) = (0, 0);
        loop {
            match (self.tops(a).get(i).copied(), self.tops(b).get(j).copied()) {
                (Some(x), Some(y)) if x.0 == y.0 => {
                    // Stacks may be deep, and differ at the bottom.
                    let below = stacker::maybe_grow(64 << 10, 1 << 20, || self.union(x.1, y.1));
                    merged.push((x.0, below));
                    (i, j) = (i + 1, j + 1);
                }
                (Some(x), y) if y.is_none_or(|y| x.0 < y.0) => {
                    merged.push(x);
                    i += 1;
                }
                (_, Some(y)) => {
                    merged.push(y);
                    j += 1;
                }
                (_, None) => break,
            }
        }
        self.work += merged.len() as u64;
        let id = self.intern(&merged);
        self.unions.insert(key, id);
        id
    }

    /// What can be read next.
    pub(crate) fn exits(&mut self, nodes: &mut Nodes, stack: StackId) -> Result<Arc<Exits>, SchemaError> {
        if let Some(known) = self.exits.get(&stack) {
            return Ok(known.clone());
        }
        let exits = Arc::new(self.find_exits(nodes, stack)?);
        self.exits.insert(stack, exits.clone());
        Ok(exits)
    }

    /// Nodes are opened in rounds, each on top of all stacks that it was found on so far: alternatives that begin alike are
    /// one, however many there are.
    fn find_exits(&mut self, nodes: &mut Nodes, stack: StackId) -> Result<Exits, SchemaError> {
        let mut found = Found::default();
        found.add_all(self, stack, Counting::Keeps);
        let (mut may_end, mut opened, begun) = (false, 0, self.work);
        while !found.changed.is_empty() {
            for place in std::mem::take(&mut found.changed) {
                found.places[place].is_changed = false;
                let Opened { node, counting, below, .. } = found.places[place];
                opened += 1;
                if self.weight > self.max_states {
                    let hint = "Fewer rules that may be empty, one after the other, help";
                    return Err(limit_error("max_states", self.max_states, hint));
                }
                if opened > MOST_EXITS || self.work - begun > MOST_WORK {
                    let hint = "Fewer alternatives in the rules help";
                    return Err(limit_error("max_exits", MOST_EXITS, hint));
                }
                if below == StackId::NEVER {
                    may_end = true;
                    continue;
                }
                match nodes.get(node).clone() {
                    Node::Terminal(language) | Node::Longest(language) => {
                        if nodes.languages.is_nullable(language) {
                            found.add_all(self, below, counting);
                        }
                    }
                    Node::Json(_) | Node::Token(_) => {}
                    Node::Sequence(head, tail) => {
                        let below = self.push(nodes, tail, below);
                        found.add(self, head, below, counting);
                    }
                    Node::Choice(items) => items.iter().for_each(|&item| found.add(self, item, below, counting)),
                    Node::Repeat(body, min, max) => {
                        if min == 0 {
                            found.add_all(self, below, counting);
                        }
                        let again = nodes.repeat(body, min.saturating_sub(1), super::nodes::fewer(max));
                        let below = self.push(nodes, again, below);
                        found.add(self, body, below, counting);
                    }
                    Node::Rule(rule) => found.add(self, nodes.body(rule), below, counting),
                    Node::Limit(body, tokens) => {
                        let end = nodes.limit_end();
                        let below = self.push(nodes, end, below);
                        found.add(self, body, below, Counting::Enters(tokens));
                    }
                    Node::LimitEnd => found.add_all(self, below, Counting::Leaves),
                    Node::Begin(_) | Node::End(_) => found.add_all(self, below, counting),
                }
            }
        }
        let mut next: Vec<(Next, Counting, StackId)> = Vec::new();
        let mut by_target: FxMap<(Counting, StackId), Vec<Language>> = FxMap::default();
        for &Opened { node, counting, below, .. } in &found.places {
            match *nodes.get(node) {
                Node::Terminal(language) | Node::Longest(language) if language != Language::EPSILON => {
                    by_target.entry((counting, below)).or_default().push(language);
                }
                Node::Json(part) => next.push((Next::Json(part), counting, below)),
                Node::Token(tokens) => next.push((Next::Token(tokens), counting, below)),
                _ => {}
            }
        }
        // Terminals that lead to the same stacks are one.
        for ((counting, below), languages) in by_target {
            let language = nodes.languages.union(languages);
            next.push((Next::Terminal(language), counting, below));
        }
        next.sort_unstable();
        Ok(Exits { next, may_end })
    }
}
