//! Stacks: what may follow.
//!
//! A stack set is a set of sequences of nodes, each of which may be what is still to come, as a tree that shares equal tops
//! and, interned, equal rests. Stacks with the same top are thus one, and what is read next is read once for all of them
//! (as in the graph-structured stack of Tomita, 1985). No positions are in it, so equal futures are equal ids.

use super::counts::Counting;
use super::machine::Place;
use super::nodes::{Node, NodeId, Nodes, PartId, TokensId};
use crate::bytes::ByteSet;
use crate::limit_error;
use hashbrown::{HashMap, HashSet, HashTable};
use punchcard_automata::{Language, work};
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

/// What is read next from a set of stacks.
#[derive(Debug)]
pub(crate) struct Exit {
    pub(crate) next: Next,
    pub(crate) counting: Counting,
    /// Where its reading begins, and the bytes that it may begin with.
    pub(crate) place: Place,
    pub(crate) live: ByteSet,
    /// Where it comes from: places in what is opened of nodes on top of stacks.
    pub(super) sources: Vec<Source>,
    /// The stacks below it, once they were asked for: most exits are never taken.
    below: Option<StackId>,
}

/// A place in what is opened of a node, and the stacks below the node.
pub(super) type Source = (NodeId, u32, StackId);

/// What can be read from a set of stacks, and whether the text may end here.
#[derive(Debug, Default)]
pub(crate) struct Exits {
    pub(crate) next: Vec<Exit>,
    /// The bytes that any of them may begin with.
    pub(crate) live: ByteSet,
    /// The text may end without leaving a limit, or by leaving it.
    pub(crate) may_end: bool,
}

/// What can be read from a set of stacks, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ExitsId(u32);

/// What is pushed below a place, and the place that it stands on.
type Edge = (NodeId, u32);

/// What can be read first of a node, whatever is below it. A node that is opened on the way has a place; its edges say what
/// is pushed below it, and on which place that stands.
#[derive(Debug, Default)]
struct Opening {
    first: Vec<(Next, Counting, u32)>,
    edges: Vec<Vec<Edge>>,
    /// If the node may be empty: what leaving it does.
    empty: Option<Counting>,
}

/// Not a place of an opening, but what is below the node.
pub(super) const BELOW: u32 = u32::MAX;

/// The store of stacks.
#[derive(Debug)]
pub(crate) struct Stacks {
    /// The tops of all sets, one set after the other, and where each begins and ends.
    tops: Vec<(NodeId, StackId)>,
    spans: Vec<(u32, u32)>,
    ids: HashTable<StackId>,
    unions: FxMap<(StackId, StackId), StackId>,
    exits: Vec<Exits>,
    exits_of: FxMap<StackId, ExitsId>,
    openings: FxMap<NodeId, Arc<Opening>>,
    /// The stacks below the places of what is opened of a node on top of stacks, as far as they are known.
    below: FxMap<(NodeId, StackId), Box<[Option<StackId>]>>,
    /// How much the sets take, as states: one each, and more for large ones.
    weight: usize,
    /// Tops that unions have looked at.
    work: u64,
    max_states: usize,
    /// Bytes of exits, openings and what is below them.
    heap: usize,
    /// Length of the shortest text, in bytes.
    pub(super) costs: FxMap<StackId, u64>,
}

fn slice<'a>(tops: &'a [(NodeId, StackId)], spans: &[(u32, u32)], stack: StackId) -> &'a [(NodeId, StackId)] {
    let (start, end) = spans[stack.0 as usize];
    &tops[start as usize..end as usize]
}

/// Most stacks that are looked at for the ways on from one place.
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
            exits: Vec::new(),
            exits_of: FxMap::default(),
            openings: FxMap::default(),
            below: FxMap::default(),
            weight: 0,
            work: 0,
            max_states,
            heap: 0,
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
        let sets = self.tops.capacity() * size_of::<(NodeId, StackId)>() + 8 * self.spans.capacity();
        let tables = self.ids.allocation_size()
            + self.unions.allocation_size()
            + self.exits_of.allocation_size()
            + self.openings.allocation_size()
            + self.below.allocation_size()
            + self.costs.allocation_size();
        sets + tables + self.exits.capacity() * size_of::<Exits>() + self.heap
    }

    /// A node on top of stacks.
    pub(crate) fn push(&mut self, nodes: &Nodes, node: NodeId, below: StackId) -> StackId {
        if node == NodeId::EMPTY || below == StackId::NEVER {
            return below;
        }
        let below = self.without_rounds(nodes, node, below);
        self.intern(&[(node, below)])
    }

    /// What a repetition is followed by may be another round of the same: the stacks without it.
    fn without_rounds(&mut self, nodes: &Nodes, node: NodeId, below: StackId) -> StackId {
        let Some(at) = self.tops(below).iter().position(|&(top, _)| nodes.absorbs(node, top)) else { return below };
        let mut others = self.tops(below).to_vec();
        let (_, rest) = others.remove(at);
        let others = self.intern(&others);
        self.union(others, rest)
    }

    /// The set of some tops, in any order; those of the same node become one.
    pub(super) fn gather(&mut self, mut tops: Vec<(NodeId, StackId)>) -> StackId {
        self.work += tops.len() as u64;
        work::count(tops.len() as u64);
        if tops.len() > 1 {
            tops.sort_unstable();
            tops.dedup();
            let mut kept = 0;
            for i in 1..tops.len() {
                if tops[i].0 == tops[kept].0 {
                    tops[kept].1 = self.union(tops[kept].1, tops[i].1);
                } else {
                    kept += 1;
                    tops[kept] = tops[i];
                }
            }
            tops.truncate(kept + 1);
        }
        self.intern(&tops)
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
        work::count(merged.len() as u64);
        let id = self.intern(&merged);
        self.unions.insert(key, id);
        id
    }

    /// What can be read next, if it is known.
    pub(crate) fn known_exits(&self, stack: StackId) -> Option<ExitsId> {
        self.exits_of.get(&stack).copied()
    }

    pub(crate) fn keep_exits(&mut self, stack: StackId, exits: Exits) -> ExitsId {
        let id = ExitsId(self.exits.len() as u32);
        self.weight += 1 + exits.next.len() / 4;
        let sources: usize = exits.next.iter().map(|exit| exit.sources.capacity()).sum();
        self.heap += exits.next.capacity() * size_of::<Exit>() + sources * size_of::<Source>();
        self.exits.push(exits);
        self.exits_of.insert(stack, id);
        id
    }

    pub(crate) fn exits(&self, id: ExitsId) -> &Exits {
        &self.exits[id.0 as usize]
    }

    /// Finds what can be read next. Where its reading begins is left open.
    pub(crate) fn find_exits(&mut self, nodes: &mut Nodes, stack: StackId) -> Result<Exits, SchemaError> {
        let mut found: FxMap<(Next, Counting), Vec<Source>> = FxMap::default();
        let (mut may_end, mut looked_at) = (false, 0);
        let mut open = vec![(stack, Counting::KEEPS)];
        let mut seen = HashSet::with_hasher(FxBuildHasher);
        while let Some((stack, counting)) = open.pop() {
            if !seen.insert((stack, counting)) {
                continue;
            }
            for i in 0..self.tops(stack).len() {
                let (node, below) = self.tops(stack)[i];
                looked_at += 1;
                if looked_at > MOST_EXITS {
                    let hint = "Fewer rules that may be empty, one after the other, help";
                    return Err(limit_error("max_exits", MOST_EXITS, hint));
                }
                // The end of the text is an empty node above no stack.
                if below == StackId::NEVER {
                    may_end = true;
                    continue;
                }
                let opening = self.opening(nodes, node);
                for &(next, then, place) in &opening.first {
                    let counting = counting.then(then);
                    found.entry((next, counting)).or_default().push((node, place, below));
                }
                if let Some(then) = opening.empty {
                    open.push((below, counting.then(then)));
                }
            }
        }
        let exit = |((next, counting), mut sources): ((Next, Counting), Vec<Source>)| {
            sources.sort_unstable();
            sources.dedup();
            Exit { next, counting, place: Place::Between, live: ByteSet::default(), sources, below: None }
        };
        let mut next: Vec<Exit> = found.into_iter().map(exit).collect();
        next.sort_unstable_by_key(|exit| (exit.next, exit.counting));
        Ok(Exits { next, live: ByteSet::default(), may_end })
    }

    /// What is opened of a node. As no rule begins with itself, it comes to an end, and no place is below itself.
    fn opening(&mut self, nodes: &mut Nodes, node: NodeId) -> &Opening {
        if !self.openings.contains_key(&node) {
            let opening = find_opening(nodes, node);
            self.heap += 24 * opening.first.len() + 64 * opening.edges.len();
            self.openings.insert(node, Arc::new(opening));
        }
        &self.openings[&node]
    }

    /// Whether the sets take more than they may.
    pub(crate) fn is_full(&self) -> bool {
        self.weight > self.max_states
    }

    /// The stacks below an exit.
    pub(crate) fn below(&mut self, nodes: &Nodes, id: ExitsId, exit: usize) -> Result<StackId, SchemaError> {
        let known = &self.exits[id.0 as usize].next[exit];
        if let Some(below) = known.below {
            return Ok(below);
        }
        let (mut tops, begun) = (Vec::new(), self.work);
        for source in known.sources.clone() {
            let below = self.below_place(nodes, source);
            tops.extend_from_slice(self.tops(below));
            self.work += self.tops(below).len() as u64;
            work::count(self.tops(below).len() as u64);
            if self.is_full() {
                let hint = "Fewer rules that may be empty, one after the other, help";
                return Err(limit_error("max_states", self.max_states, hint));
            }
            if self.work - begun > MOST_WORK {
                return Err(limit_error("max_exits", MOST_EXITS, "Fewer alternatives in the rules help"));
            }
        }
        let all = self.gather(tops);
        self.exits[id.0 as usize].next[exit].below = Some(all);
        Ok(all)
    }

    /// The edges of a place of what was opened of a node.
    pub(super) fn edges(&self, node: NodeId, place: u32) -> &[Edge] {
        &self.openings[&node].edges[place as usize]
    }

    fn below_place(&mut self, nodes: &Nodes, (node, place, stack): Source) -> StackId {
        let opening = self.openings[&node].clone();
        let mut known = self.below.remove(&(node, stack)).unwrap_or_else(|| {
            self.heap += 16 + 8 * opening.edges.len();
            vec![None; opening.edges.len()].into()
        });
        let below = self.find_below_place(nodes, &opening, &mut known, place, stack);
        self.below.insert((node, stack), known);
        below
    }

    fn find_below_place(
        &mut self,
        nodes: &Nodes,
        opening: &Opening,
        known: &mut [Option<StackId>],
        place: u32,
        stack: StackId,
    ) -> StackId {
        if place == BELOW {
            return stack;
        }
        if let Some(known) = known[place as usize] {
            return known;
        }
        let mut tops = Vec::new();
        for &(tail, parent) in &opening.edges[place as usize] {
            let mut deeper = || self.find_below_place(nodes, opening, known, parent, stack);
            let below = stacker::maybe_grow(64 << 10, 1 << 20, &mut deeper);
            if tail == NodeId::EMPTY {
                tops.extend_from_slice(self.tops(below));
            } else {
                tops.push((tail, self.without_rounds(nodes, tail, below)));
            }
        }
        let all = self.gather(tops);
        known[place as usize] = Some(all);
        all
    }
}

fn find_opening(nodes: &mut Nodes, node: NodeId) -> Opening {
    let mut opened: Vec<(NodeId, Counting)> = Vec::new();
    let mut edges: Vec<Vec<Edge>> = Vec::new();
    let mut places: FxMap<(NodeId, Counting), u32> = FxMap::default();
    let mut add = |edges: &mut Vec<Vec<_>>, opened: &mut Vec<_>, node, counting, edge| {
        let place = *places.entry((node, counting)).or_insert_with(|| {
            opened.push((node, counting));
            edges.push(Vec::new());
            opened.len() as u32 - 1
        });
        edges[place as usize].push(edge);
    };
    add(&mut edges, &mut opened, node, Counting::KEEPS, (NodeId::EMPTY, BELOW));
    let mut at = 0;
    while let Some(&(node, counting)) = opened.get(at) {
        let here = at as u32;
        let mut add = |node, counting, tail| add(&mut edges, &mut opened, node, counting, (tail, here));
        match nodes.get(node).clone() {
            Node::Sequence(head, tail) => {
                add(head, counting, tail);
                if nodes.is_nullable(head) {
                    add(tail, counting, NodeId::EMPTY);
                }
            }
            Node::Choice(items) => items.iter().for_each(|&item| add(item, counting, NodeId::EMPTY)),
            Node::Repeat(body, min, max) => {
                let again = nodes.repeat(body, min.saturating_sub(1), super::nodes::fewer(max));
                add(body, counting, again);
                if min > 0 && nodes.is_nullable(body) {
                    add(again, counting, NodeId::EMPTY);
                }
            }
            Node::Rule(rule) => add(nodes.body(rule), counting, NodeId::EMPTY),
            Node::Limit(body, tokens) => add(body, nodes.counts.entering(counting, tokens), nodes.limit_end()),
            _ => {}
        }
        at += 1;
    }
    let mut first = Vec::new();
    // Terminals that lead to the same are one.
    let mut edges = without_steps(&edges);
    edges.iter_mut().for_each(|edges| {
        edges.sort_unstable();
        edges.dedup();
    });
    type AtPlace = (u32, Vec<Language>);
    let mut terminals: FxMap<(Counting, &[Edge]), AtPlace> = FxMap::default();
    for (place, &(node, counting)) in opened.iter().enumerate() {
        match *nodes.get(node) {
            Node::Terminal(language) | Node::Longest(language) if language != Language::EPSILON => {
                let to = terminals.entry((counting, &edges[place])).or_insert_with(|| (place as u32, Vec::new()));
                to.1.push(language);
            }
            Node::Json(part) => first.push((Next::Json(part), counting, place as u32)),
            Node::Token(tokens) => first.push((Next::Token(tokens), counting, place as u32)),
            _ => {}
        }
    }
    for ((counting, _), (place, languages)) in terminals {
        first.push((Next::Terminal(nodes.languages.union(languages)), counting, place));
    }
    first.sort_unstable();
    let empty = match nodes.get(node) {
        Node::LimitEnd => Some(Counting::LEAVES),
        _ => nodes.is_nullable(node).then_some(Counting::KEEPS),
    };
    Opening { first, edges, empty }
}

/// The edges of places, without lone ones that push nothing: what they lead to takes their place.
fn without_steps(edges: &[Vec<Edge>]) -> Vec<Vec<Edge>> {
    let follow = |mut edge: (NodeId, u32)| {
        while edge.0 == NodeId::EMPTY && edge.1 != BELOW && edges[edge.1 as usize].len() == 1 {
            edge = edges[edge.1 as usize][0];
        }
        edge
    };
    edges.iter().map(|edges| edges.iter().copied().map(follow).collect()).collect()
}
