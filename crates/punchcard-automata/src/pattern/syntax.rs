//! The syntax tree of a pattern, and the simplifications that need no context.
//!
//! Flags are resolved while the tree is built (`.` and letters under `i` are sets, `^` under `m` is an assertion), groups
//! leave no trace, and greed does not change a language, so few kinds of node are left. Nodes live in one vector and point
//! at earlier ones: building, walking and dropping a tree never recurses deeper than the pattern nests, and a part that
//! occurs twice is stored once.

use crate::charset::CharSet;
use crate::languages::UNBOUNDED;
use hashbrown::HashMap;

pub(super) type NodeId = usize;

#[derive(Clone, Debug)]
pub(super) enum Node {
    /// One character of a set.
    Set(CharSet),
    /// Exactly this text.
    Text(String),
    /// Any text at all: what an unanchored search has on both sides.
    Anything,
    /// No assertion that looks behind is a part, except as the last of exactly two (so that all that comes before it is
    /// one node), and no concatenation.
    Concat(Vec<NodeId>),
    Alternation(Vec<NodeId>),
    Repeat(NodeId, u32, u32),
    /// The beginning of the text.
    Start,
    /// The end of the text.
    End,
    /// An assertion about the text from its beginning up to here, or from here to its end: all of that text.
    Look {
        behind: bool,
        negated: bool,
        inner: NodeId,
    },
}

/// What the first or last character of a part is, if it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Edge {
    /// The part has no characters.
    None,
    Word,
    Other,
    Either,
}

impl Edge {
    fn or(self, other: Edge) -> Edge {
        match (self, other) {
            (Edge::None, x) | (x, Edge::None) => x,
            (x, y) if x == y => x,
            _ => Edge::Either,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    /// Matches nothing else than the empty text, if it matches at all.
    pub zero_width: bool,
    /// May match the empty text, perhaps only where an assertion holds.
    pub can_be_empty: bool,
    /// Whether it matters to the assertions at its left edge that the text begins there; the same at its right edge.
    pub left_sensitive: bool,
    pub right_sensitive: bool,
    /// Holds an assertion of any kind.
    pub asserts: bool,
    /// Holds an assertion other than `Start` and `End`.
    pub looks: bool,
    /// No text is shorter.
    pub min_len: u64,
    /// How many nodes the expression takes when it is built.
    pub weight: u64,
    /// How deep the nodes nest.
    pub depth: u32,
    pub first: Edge,
    pub last: Edge,
}

#[derive(Debug, Default)]
pub(super) struct Tree {
    nodes: Vec<Node>,
    facts: Vec<Facts>,
    sets: HashMap<CharSet, NodeId>,
}

impl Tree {
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id]
    }

    pub fn facts(&self, id: NodeId) -> Facts {
        self.facts[id]
    }

    fn add(&mut self, node: Node) -> NodeId {
        self.facts.push(self.derive_facts(&node));
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    fn derive_facts(&self, node: &Node) -> Facts {
        let base = Facts {
            zero_width: false,
            can_be_empty: false,
            left_sensitive: false,
            right_sensitive: false,
            asserts: false,
            looks: false,
            min_len: 0,
            weight: 1,
            depth: 1,
            first: Edge::None,
            last: Edge::None,
        };
        match node {
            Node::Set(set) => {
                let edge = edge_of(set);
                Facts { min_len: 1, first: edge, last: edge, ..base }
            }
            Node::Text(text) => {
                let edge = |c: Option<char>| match c {
                    None => Edge::None,
                    Some(c) if c.is_ascii_alphanumeric() || c == '_' => Edge::Word,
                    Some(_) => Edge::Other,
                };
                Facts {
                    zero_width: text.is_empty(),
                    can_be_empty: text.is_empty(),
                    min_len: text.chars().count() as u64,
                    first: edge(text.chars().next()),
                    last: edge(text.chars().next_back()),
                    ..base
                }
            }
            Node::Anything => Facts { can_be_empty: true, first: Edge::Either, last: Edge::Either, ..base },
            Node::Concat(items) => {
                let mut all = Facts { zero_width: true, can_be_empty: true, weight: 0, ..base };
                for item in items.iter().map(|&i| self.facts(i)) {
                    if all.can_be_empty {
                        all.left_sensitive |= item.left_sensitive;
                        all.first = all.first.or(item.first);
                    }
                    all.right_sensitive = item.right_sensitive || all.right_sensitive && item.can_be_empty;
                    all.last = if item.can_be_empty { all.last.or(item.last) } else { item.last };
                    all.zero_width &= item.zero_width;
                    all.can_be_empty &= item.can_be_empty;
                    all.asserts |= item.asserts;
                    all.looks |= item.looks;
                    all.min_len = all.min_len.saturating_add(item.min_len);
                    all.weight = all.weight.saturating_add(item.weight);
                    all.depth = all.depth.max(item.depth + 1);
                }
                all
            }
            Node::Alternation(items) => {
                let mut all = Facts { zero_width: true, min_len: u64::MAX, ..base };
                for item in items.iter().map(|&i| self.facts(i)) {
                    all.zero_width &= item.zero_width;
                    all.can_be_empty |= item.can_be_empty;
                    all.left_sensitive |= item.left_sensitive;
                    all.right_sensitive |= item.right_sensitive;
                    all.asserts |= item.asserts;
                    all.looks |= item.looks;
                    all.min_len = all.min_len.min(item.min_len);
                    all.weight = all.weight.saturating_add(item.weight);
                    all.depth = all.depth.max(item.depth + 1);
                    all.first = all.first.or(item.first);
                    all.last = all.last.or(item.last);
                }
                all
            }
            &Node::Repeat(inner, min, _) => {
                let inner = self.facts(inner);
                Facts {
                    can_be_empty: inner.can_be_empty || min == 0,
                    min_len: inner.min_len.saturating_mul(min.into()),
                    weight: inner.weight.saturating_add(1),
                    depth: inner.depth + 1,
                    ..inner
                }
            }
            Node::Start => Facts { zero_width: true, can_be_empty: true, left_sensitive: true, asserts: true, ..base },
            Node::End => Facts { zero_width: true, can_be_empty: true, right_sensitive: true, asserts: true, ..base },
            &Node::Look { behind, inner, .. } => {
                let inner = self.facts(inner);
                Facts {
                    zero_width: true,
                    can_be_empty: true,
                    left_sensitive: behind || inner.left_sensitive,
                    right_sensitive: !behind || inner.right_sensitive,
                    asserts: true,
                    looks: true,
                    weight: inner.weight.saturating_add(1),
                    depth: inner.depth + 1,
                    ..base
                }
            }
        }
    }

    pub fn empty(&mut self) -> NodeId {
        self.add(Node::Text(String::new()))
    }

    pub fn set(&mut self, set: CharSet) -> NodeId {
        if let [(lo, hi)] = *set.ranges()
            && lo == hi
            && let Some(c) = char::from_u32(lo)
        {
            return self.add(Node::Text(c.into()));
        }
        if let Some(&id) = self.sets.get(&set) {
            return id;
        }
        let id = self.add(Node::Set(set.clone()));
        self.sets.insert(set, id);
        id
    }

    pub fn anything(&mut self) -> NodeId {
        self.add(Node::Anything)
    }

    pub fn start(&mut self) -> NodeId {
        self.add(Node::Start)
    }

    pub fn end(&mut self) -> NodeId {
        self.add(Node::End)
    }

    /// The parts one after the other.
    pub fn concat(&mut self, parts: Vec<NodeId>) -> NodeId {
        let (mut flat, mut text) = (Vec::with_capacity(parts.len()), String::new());
        for part in parts {
            self.push_part(&mut flat, &mut text, part);
        }
        self.push_text(&mut flat, &mut text);
        // Nothing comes before the beginning of the text or after its end.
        if let Some(at) = flat.iter().rposition(|&i| matches!(self.nodes[i], Node::Start)) {
            self.keep_empty(&mut flat, 0..at);
        }
        if let Some(at) = flat.iter().position(|&i| matches!(self.nodes[i], Node::End)) {
            let len = flat.len();
            self.keep_empty(&mut flat, at + 1..len);
        }
        match *flat.as_slice() {
            [] => self.empty(),
            [one] => one,
            _ => self.add(Node::Concat(flat)),
        }
    }

    /// Leaves out parts of `flat[range]` that are known to match nothing there and hold no assertion.
    fn keep_empty(&self, flat: &mut Vec<NodeId>, range: std::ops::Range<usize>) {
        let mut at = 0;
        flat.retain(|&i| {
            let facts = self.facts(i);
            at += 1;
            !(range.contains(&(at - 1)) && facts.can_be_empty && !facts.asserts)
        });
    }

    /// Appends a part to `flat` and the `text` after it.
    fn push_part(&mut self, flat: &mut Vec<NodeId>, text: &mut String, part: NodeId) {
        match &self.nodes[part] {
            Node::Text(more) => text.push_str(more),
            Node::Concat(items) => {
                for item in items.clone() {
                    self.push_part(flat, text, item);
                }
            }
            node => {
                let (behind, anything) =
                    (matches!(node, Node::Look { behind: true, .. }), matches!(node, Node::Anything));
                self.push_text(flat, text);
                if behind && !flat.is_empty() {
                    let before = if flat.len() == 1 { flat[0] } else { self.add(Node::Concat(flat.clone())) };
                    let both = self.add(Node::Concat(vec![before, part]));
                    *flat = vec![both];
                } else if !anything || !flat.last().is_some_and(|&i| matches!(self.nodes[i], Node::Anything)) {
                    flat.push(part);
                }
            }
        }
    }

    fn push_text(&mut self, flat: &mut Vec<NodeId>, text: &mut String) {
        if !text.is_empty() {
            let text = self.add(Node::Text(std::mem::take(text)));
            flat.push(text);
        }
    }

    /// Any of the parts.
    pub fn alternation(&mut self, parts: Vec<NodeId>) -> NodeId {
        let mut flat = Vec::with_capacity(parts.len());
        for part in parts {
            match &self.nodes[part] {
                Node::Alternation(items) => flat.extend_from_slice(items),
                _ => flat.push(part),
            }
        }
        match *flat.as_slice() {
            [one] => one,
            _ => self.add(Node::Alternation(flat)),
        }
    }

    /// `inner` from `min` to `max` times.
    pub fn repeat(&mut self, inner: NodeId, min: u32, max: u32) -> NodeId {
        let facts = self.facts(inner);
        if max == 0 || (facts.zero_width && (min == 0 || !facts.asserts)) {
            // To match nothing once more changes nothing, and with an assertion that need not hold neither.
            return self.empty();
        }
        if facts.zero_width || (min == 1 && max == 1) {
            return inner;
        }
        if facts.looks && facts.can_be_empty && min > 1 {
            // A round may be empty here, where an assertion holds, and not there: the rounds that must be are written out.
            let rest = self.repeat(inner, 0, if max == UNBOUNDED { max } else { max - min });
            let mut parts = vec![inner; min as usize];
            parts.push(rest);
            return self.concat(parts);
        }
        self.add(Node::Repeat(inner, min, max))
    }

    /// The assertion that `inner` matches next, or just before.
    pub fn look(&mut self, behind: bool, negated: bool, inner: NodeId) -> NodeId {
        let mut negated = negated;
        let inner = match &self.nodes[inner] {
            // Not a character of this set: another character or none. That is simpler than a complement.
            Node::Set(set) if negated => {
                negated = false;
                let other = set.complement();
                let other = self.set(other);
                let edge = if behind { self.start() } else { self.end() };
                self.alternation(vec![edge, other])
            }
            _ => inner,
        };
        let anything = self.anything();
        let inner = self.concat(if behind { vec![anything, inner] } else { vec![inner, anything] });
        self.add(Node::Look { behind, negated, inner })
    }

    /// `\b`, or `\B` if negated, between the parts `before` and `after` it.
    pub fn boundary(&mut self, negated: bool, word: &CharSet, before: &[NodeId], after: &[NodeId]) -> NodeId {
        // Edges tell apart what is in ASCII a word character; another set of them has more.
        let is_ascii = *word == super::class::ascii_word();
        let known = |edge| if edge == Edge::Word || is_ascii { edge } else { Edge::Either };
        let last = known(self.edge(before.iter().rev(), |f| f.last));
        let first = known(self.edge(after.iter(), |f| f.first));
        let mut side = |behind, is_word: bool| {
            let set = self.set(word.clone());
            self.look(behind, !is_word, set)
        };
        match (last, first) {
            (Edge::Word, _) => side(false, negated),
            (Edge::Other, _) => side(false, !negated),
            (_, Edge::Word) => side(true, negated),
            (_, Edge::Other) => side(true, !negated),
            _ => {
                let mut alternatives = Vec::new();
                for before in [true, false] {
                    let parts = vec![side(true, before), side(false, before == negated)];
                    alternatives.push(parts);
                }
                let alternatives = alternatives.into_iter().map(|parts| self.concat(parts)).collect();
                self.alternation(alternatives)
            }
        }
    }

    /// What is certain about the character next to a place, by the parts from there on.
    fn edge<'a>(&self, parts: impl Iterator<Item = &'a NodeId>, side: fn(Facts) -> Edge) -> Edge {
        let mut edge = Edge::None;
        for &part in parts {
            let facts = self.facts(part);
            edge = edge.or(side(facts));
            if !facts.can_be_empty {
                return edge;
            }
        }
        Edge::Either
    }
}

fn edge_of(set: &CharSet) -> Edge {
    let word = super::class::ascii_word();
    let inside = set.intersection(&word);
    if inside.is_empty() {
        Edge::Other
    } else if inside == *set {
        Edge::Word
    } else {
        Edge::Either
    }
}
