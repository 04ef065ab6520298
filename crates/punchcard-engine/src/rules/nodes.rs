//! Rules as hash-consed nodes, with constructors that simplify.
//!
//! What is regular becomes one language: neighbouring terminals are joined, and so are terminal alternatives. That is what
//! keeps the number of readings of a text small, as a language is read by one automaton however ambiguous it is.

use super::counts::Counts;
use hashbrown::{HashMap, HashSet};
use punchcard_automata::languages::UNBOUNDED;
use punchcard_automata::{Language, Languages, work};
use rustc_hash::FxBuildHasher;

pub(crate) type FxMap<K, V> = HashMap<K, V, FxBuildHasher>;

/// A node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct NodeId(u32);

/// A rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct RuleId(pub(crate) u32);

/// A JSON value under a schema: an index into the machine's parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct PartId(pub(crate) u32);

/// A set of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct TokensId(pub(crate) u32);

/// A name that the events of a text report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct NameId(pub(crate) u32);

/// A set of texts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Node {
    Terminal(Language),
    /// A terminal that is as long as it can be, without the empty text; rewritten before anything is read.
    Longest(Language),
    Json(PartId),
    Token(TokensId),
    /// Right-nested: the left part is never a sequence.
    Sequence(NodeId, NodeId),
    /// Sorted, at least two, at most one of them a terminal.
    Choice(Box<[NodeId]>),
    /// The body is not nullable; `UNBOUNDED` is no upper bound.
    Repeat(NodeId, u32, u32),
    Rule(RuleId),
    /// The body, in at most so many tokens.
    Limit(NodeId, u32),
    /// The end of the body of a `Limit`; only on stacks.
    LimitEnd,
    /// Where something named begins or ends; only in nodes for events.
    Begin(NameId),
    End(NameId),
}

#[derive(Clone, Copy, Debug)]
struct RuleInfo {
    body: NodeId,
    nullable: bool,
    /// Of a rule made for left recursion: (group, from, to). Such a rule followed by the one that leads from `to` to `to`
    /// in the same group is itself.
    climb: Option<(u32, u32, u32)>,
    /// The rule without the empty text, once it was asked for.
    without_empty: Option<NodeId>,
}

/// The store of nodes and rules.
#[derive(Debug)]
pub(crate) struct Nodes {
    pub(crate) languages: Languages,
    /// Limits on tokens, as far as they are used up.
    pub(crate) counts: Counts,
    nodes: Vec<Node>,
    ids: FxMap<Node, NodeId>,
    rules: Vec<RuleInfo>,
    /// Rules without the empty text whose bodies are still to be made.
    pending: Vec<(RuleId, RuleId)>,
    /// Bytes of the lists of choices.
    heap: usize,
}

impl NodeId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }

    /// No text.
    pub(crate) const NOTHING: NodeId = NodeId(0);
    /// The empty text.
    pub(crate) const EMPTY: NodeId = NodeId(1);
}

impl Nodes {
    pub(crate) fn new(languages: Languages) -> Nodes {
        let mut nodes = Nodes {
            languages,
            counts: Counts::new(),
            nodes: Vec::new(),
            ids: FxMap::default(),
            rules: Vec::new(),
            pending: Vec::new(),
            heap: 0,
        };
        nodes.intern(Node::Terminal(Language::EMPTY));
        nodes.intern(Node::Terminal(Language::EPSILON));
        nodes
    }

    fn intern(&mut self, node: Node) -> NodeId {
        if let Some(&id) = self.ids.get(&node) {
            return id;
        }
        if let Node::Choice(items) = &node {
            self.heap += 2 * size_of_val(&**items);
        }
        work::count(1);
        let id = NodeId(self.nodes.len() as u32);
        self.nodes.push(node.clone());
        self.ids.insert(node, id);
        id
    }

    pub(crate) fn get(&self, id: NodeId) -> &Node {
        &self.nodes[id.0 as usize]
    }

    /// Whether the first nodes of two stores, and the rules, are the same.
    pub(super) fn begin_like(&self, other: &Nodes, count: usize) -> bool {
        let print = |nodes: &Nodes, language| nodes.languages.fingerprint(language);
        let same = |(a, b): (&Node, &Node)| match (a, b) {
            (Node::Terminal(a), Node::Terminal(b)) | (Node::Longest(a), Node::Longest(b)) => {
                print(self, *a) == print(other, *b)
            }
            _ => a == b,
        };
        let bodies = |nodes: &Nodes| -> Vec<NodeId> { nodes.rules.iter().map(|rule| rule.body).collect() };
        let (these, those) = (self.nodes.get(..count), other.nodes.get(..count));
        bodies(self) == bodies(other)
            && these.zip(those).is_some_and(|(these, those)| these.iter().zip(those).all(same))
    }

    /// How many nodes there are.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(crate) fn memory_size(&self) -> usize {
        let nodes = self.nodes.capacity() * size_of::<Node>() + self.ids.allocation_size() + self.heap;
        let counts = self.counts.len() * 64;
        self.languages.memory_size() + nodes + counts + self.rules.capacity() * size_of::<RuleInfo>()
    }

    // ---- constructors ----

    pub(crate) fn terminal(&mut self, language: Language) -> NodeId {
        self.intern(Node::Terminal(language))
    }

    /// A terminal that is as long as it can be; without the empty text.
    pub(crate) fn longest(&mut self, language: Language) -> NodeId {
        self.intern(Node::Longest(language))
    }

    /// Whether some node has to be as long as it can be.
    pub(crate) fn has_longest(&self) -> bool {
        self.nodes.iter().any(|node| matches!(node, Node::Longest(_)))
    }

    /// The rules that a node uses.
    pub(crate) fn rules_in(&self, id: NodeId) -> Vec<RuleId> {
        let (mut out, mut open, mut seen) = (Vec::new(), vec![id], HashSet::new());
        while let Some(id) = open.pop() {
            if !seen.insert(id) {
                continue;
            }
            match self.get(id) {
                Node::Rule(rule) => out.push(*rule),
                Node::Sequence(head, tail) => open.extend([*head, *tail]),
                Node::Choice(items) => open.extend(items),
                Node::Repeat(body, ..) | Node::Limit(body, _) => open.push(*body),
                _ => {}
            }
        }
        out
    }

    /// A node and all that it is made of, by way of rules too, sorted.
    pub(crate) fn reachable(&self, start: NodeId) -> Vec<NodeId> {
        let (mut open, mut seen) = (vec![start], HashSet::new());
        seen.insert(start);
        while let Some(id) = open.pop() {
            let mut add = |id| {
                if seen.insert(id) {
                    open.push(id);
                }
            };
            match self.get(id) {
                Node::Rule(rule) => add(self.body(*rule)),
                Node::Sequence(head, tail) => [*head, *tail].into_iter().for_each(add),
                Node::Choice(items) => items.iter().copied().for_each(add),
                Node::Repeat(body, ..) | Node::Limit(body, _) => add(*body),
                _ => {}
            }
        }
        let mut out: Vec<NodeId> = seen.into_iter().collect();
        out.sort_unstable();
        out
    }

    pub(crate) fn json(&mut self, part: PartId) -> NodeId {
        self.intern(Node::Json(part))
    }

    pub(crate) fn token(&mut self, tokens: TokensId) -> NodeId {
        self.intern(Node::Token(tokens))
    }

    pub(crate) fn rule(&mut self, rule: RuleId) -> NodeId {
        self.intern(Node::Rule(rule))
    }

    pub(crate) fn limit(&mut self, body: NodeId, tokens: u32) -> NodeId {
        match body {
            NodeId::NOTHING | NodeId::EMPTY => body,
            _ => self.intern(Node::Limit(body, tokens)),
        }
    }

    pub(crate) fn limit_end(&mut self) -> NodeId {
        self.intern(Node::LimitEnd)
    }

    pub(crate) fn begin(&mut self, name: NameId) -> NodeId {
        self.intern(Node::Begin(name))
    }

    pub(crate) fn end(&mut self, name: NameId) -> NodeId {
        self.intern(Node::End(name))
    }

    /// The body of a limit on tokens, and how many it allows.
    pub(crate) fn as_limit(&self, id: NodeId) -> Option<(NodeId, u32)> {
        match self.get(id) {
            Node::Limit(body, tokens) => Some((*body, *tokens)),
            _ => None,
        }
    }

    /// The rule of a node that is nothing else.
    pub(crate) fn as_rule(&self, id: NodeId) -> Option<RuleId> {
        match self.get(id) {
            Node::Rule(rule) => Some(*rule),
            _ => None,
        }
    }

    /// Whether a node is one part, which takes the place of a rule that it is the body of.
    pub(crate) fn is_simple(&self, id: NodeId) -> bool {
        matches!(self.get(id), Node::Terminal(_) | Node::Json(_) | Node::Token(_))
    }

    /// The language of a terminal.
    pub(crate) fn as_terminal(&self, id: NodeId) -> Option<Language> {
        match self.get(id) {
            Node::Terminal(language) => Some(*language),
            _ => None,
        }
    }

    /// The language of a terminal that may be joined with what follows it: assertions would see more than they should.
    fn joinable(&self, id: NodeId) -> Option<Language> {
        self.as_terminal(id).filter(|&language| !self.languages.looks(language))
    }

    /// One after the other.
    pub(crate) fn sequence(&mut self, a: NodeId, b: NodeId) -> NodeId {
        // The spine of `a` is copied in a loop: it may be as long as a grammar.
        let (mut heads, mut at) = (Vec::new(), a);
        while let Node::Sequence(head, tail) = *self.get(at) {
            heads.push(head);
            at = tail;
        }
        heads.push(at);
        heads.into_iter().rev().fold(b, |tail, head| self.cons(head, tail))
    }

    /// A node that is no sequence, and what follows it.
    fn cons(&mut self, head: NodeId, tail: NodeId) -> NodeId {
        if head == NodeId::NOTHING || tail == NodeId::NOTHING {
            return NodeId::NOTHING;
        }
        if head == NodeId::EMPTY {
            return tail;
        }
        if tail == NodeId::EMPTY {
            return head;
        }
        if let Some(first) = self.joinable(head) {
            let (next, rest) = match *self.get(tail) {
                Node::Sequence(next, rest) => (next, rest),
                _ => (tail, NodeId::EMPTY),
            };
            if let Some(second) = self.joinable(next) {
                let both = self.languages.concat(first, second);
                let both = self.terminal(both);
                return if rest == NodeId::EMPTY { both } else { self.intern(Node::Sequence(both, rest)) };
            }
        }
        self.intern(Node::Sequence(head, tail))
    }

    /// All one after the other.
    pub(crate) fn sequence_of(&mut self, items: Vec<NodeId>) -> NodeId {
        items.into_iter().rev().fold(NodeId::EMPTY, |tail, item| self.sequence(item, tail))
    }

    /// Any of them.
    pub(crate) fn choice(&mut self, items: impl IntoIterator<Item = NodeId>) -> NodeId {
        let (mut others, mut languages) = (Vec::new(), Vec::new());
        for item in items {
            match self.get(item) {
                Node::Terminal(language) => languages.push(*language),
                Node::Choice(inner) => {
                    for &item in inner {
                        match self.as_terminal(item) {
                            Some(language) => languages.push(language),
                            None => others.push(item),
                        }
                    }
                }
                _ => others.push(item),
            }
        }
        let language = self.languages.union(languages);
        let terminal = self.terminal(language);
        others.sort_unstable();
        others.dedup();
        // The empty text adds nothing to what already has it, but recursive rules are not known yet.
        if terminal != NodeId::NOTHING {
            others.push(terminal);
            others.sort_unstable();
        }
        match others[..] {
            [] => NodeId::NOTHING,
            [only] => only,
            _ => self.intern(Node::Choice(others.into())),
        }
    }

    /// `min` to `max` times. Nullable bodies are repeated without the empty text, so that no repetition reads nothing.
    pub(crate) fn repeat(&mut self, body: NodeId, min: u32, max: u32) -> NodeId {
        if max == 0 || body == NodeId::EMPTY {
            return NodeId::EMPTY;
        }
        if body == NodeId::NOTHING {
            return if min == 0 { NodeId::EMPTY } else { NodeId::NOTHING };
        }
        if let Some(language) = self.joinable(body) {
            let language = self.languages.repeat(language, min, max);
            return self.terminal(language);
        }
        if self.is_nullable(body) {
            let body = self.without_empty(body);
            return self.repeat(body, 0, max);
        }
        match (self.get(body).clone(), min, max) {
            (_, 1, 1) => body,
            (Node::Repeat(inner, 0, UNBOUNDED), _, UNBOUNDED) => self.repeat(inner, 0, UNBOUNDED),
            (Node::Repeat(inner, 1, UNBOUNDED), _, UNBOUNDED) => self.repeat(inner, min, UNBOUNDED),
            _ => self.intern(Node::Repeat(body, min, max)),
        }
    }

    // ---- rules ----

    pub(crate) fn new_rule(&mut self) -> RuleId {
        self.rules.push(RuleInfo { body: NodeId::NOTHING, nullable: false, climb: None, without_empty: None });
        RuleId(self.rules.len() as u32 - 1)
    }

    pub(crate) fn new_climb(&mut self, group: u32, from: u32, to: u32) -> RuleId {
        let rule = self.new_rule();
        self.rules[rule.0 as usize].climb = Some((group, from, to));
        self.rules[rule.0 as usize].nullable = from == to;
        rule
    }

    pub(crate) fn body(&self, rule: RuleId) -> NodeId {
        self.rules[rule.0 as usize].body
    }

    pub(crate) fn set_body(&mut self, rule: RuleId, body: NodeId) {
        self.rules[rule.0 as usize].body = body;
    }

    pub(crate) fn set_nullable(&mut self, rule: RuleId, nullable: bool) {
        self.rules[rule.0 as usize].nullable = nullable;
    }

    pub(crate) fn is_rule_nullable(&self, rule: RuleId) -> bool {
        self.rules[rule.0 as usize].nullable
    }

    /// Of a rule that was made for left recursion: its group, and from where to where it leads.
    pub(crate) fn climb(&self, rule: RuleId) -> Option<(u32, u32, u32)> {
        self.rules[rule.0 as usize].climb
    }

    /// Whether a rule was made for left recursion.
    pub(crate) fn is_climb(&self, rule: RuleId) -> bool {
        self.rules[rule.0 as usize].climb.is_some()
    }

    pub(crate) fn rule_count(&self) -> usize {
        self.rules.len()
    }

    /// Whether one node followed by another is the first alone.
    pub(crate) fn absorbs(&self, first: NodeId, second: NodeId) -> bool {
        match (self.get(first), self.get(second)) {
            (Node::Repeat(_, 0, UNBOUNDED), _) => first == second,
            (Node::Rule(a), Node::Rule(b)) => match (self.rules[a.0 as usize].climb, self.rules[b.0 as usize].climb) {
                (Some((g, _, to)), Some((h, from, end))) => g == h && to == from && from == end,
                _ => false,
            },
            _ => false,
        }
    }

    /// Whether the empty text is in the node.
    pub(crate) fn is_nullable(&self, id: NodeId) -> bool {
        match self.get(id) {
            Node::Terminal(language) => self.languages.is_nullable(*language),
            Node::Json(_) | Node::Token(_) | Node::Longest(_) => false,
            Node::Sequence(..) => {
                let mut at = id;
                while let Node::Sequence(head, tail) = *self.get(at) {
                    if !self.is_nullable(head) {
                        return false;
                    }
                    at = tail;
                }
                self.is_nullable(at)
            }
            Node::Choice(items) => items.iter().any(|&item| self.is_nullable(item)),
            Node::Repeat(body, min, _) => *min == 0 || self.is_nullable(*body),
            Node::Rule(rule) => self.rules[rule.0 as usize].nullable,
            Node::Limit(body, _) => self.is_nullable(*body),
            Node::LimitEnd | Node::Begin(_) | Node::End(_) => true,
        }
    }

    /// The node without the empty text. Bodies of rules are made by `finish_pending`.
    pub(crate) fn without_empty(&mut self, id: NodeId) -> NodeId {
        if !self.is_nullable(id) {
            return id;
        }
        match self.get(id).clone() {
            Node::Terminal(language) => {
                let language = self.languages.difference(language, Language::EPSILON);
                self.terminal(language)
            }
            Node::Sequence(..) => {
                let (mut heads, mut at) = (Vec::new(), id);
                while let Node::Sequence(head, tail) = *self.get(at) {
                    heads.push(head);
                    at = tail;
                }
                // From the right: either this part has text, or the rest has.
                let mut rest = at;
                let mut out = self.without_empty(at);
                for head in heads.into_iter().rev() {
                    out = if matches!(self.get(head), Node::Begin(_) | Node::End(_)) {
                        self.cons(head, out)
                    } else {
                        let some = self.without_empty(head);
                        let some = self.sequence(some, rest);
                        if self.is_nullable(head) { self.choice([some, out]) } else { some }
                    };
                    rest = self.cons(head, rest);
                }
                out
            }
            Node::Choice(items) => {
                let items: Vec<NodeId> = items.iter().map(|&item| self.without_empty(item)).collect();
                self.choice(items)
            }
            // The body is not nullable, so this is one that may be left out.
            Node::Repeat(body, _, max) => self.repeat(body, 1, max),
            Node::Rule(rule) => {
                if let Some(known) = self.rules[rule.0 as usize].without_empty {
                    return known;
                }
                let other = self.new_rule();
                let node = self.rule(other);
                self.rules[rule.0 as usize].without_empty = Some(node);
                self.rules[other.0 as usize].without_empty = Some(node);
                self.pending.push((rule, other));
                node
            }
            Node::Limit(body, tokens) => {
                let body = self.without_empty(body);
                self.limit(body, tokens)
            }
            Node::Json(_) | Node::Token(_) | Node::Longest(_) | Node::LimitEnd | Node::Begin(_) | Node::End(_) => {
                NodeId::NOTHING
            }
        }
    }

    /// Forgets the rule without the empty text that was made of a rule, as the body is about to be another.
    pub(crate) fn forget_without_empty(&mut self, rule: RuleId) {
        self.rules[rule.0 as usize].without_empty = None;
    }

    /// Takes rules that have no text out of the bodies of `rules`.
    pub(crate) fn remove_rules(&mut self, dead: &HashSet<RuleId>, rules: impl IntoIterator<Item = RuleId>) {
        let mut known = FxMap::default();
        for rule in rules {
            let body = if dead.contains(&rule) {
                self.rules[rule.0 as usize].without_empty = Some(NodeId::NOTHING);
                NodeId::NOTHING
            } else {
                self.without_rules(self.body(rule), dead, &mut known)
            };
            self.set_body(rule, body);
        }
    }

    /// A node in which some rules have no text.
    pub(crate) fn without_rules(
        &mut self,
        id: NodeId,
        dead: &HashSet<RuleId>,
        known: &mut FxMap<NodeId, NodeId>,
    ) -> NodeId {
        if let Some(&result) = known.get(&id) {
            return result;
        }
        let result = match self.get(id).clone() {
            Node::Rule(rule) if dead.contains(&rule) => NodeId::NOTHING,
            Node::Sequence(..) => {
                let (mut items, mut at) = (Vec::new(), id);
                while let Node::Sequence(head, tail) = *self.get(at) {
                    items.push(head);
                    at = tail;
                }
                items.push(at);
                let items = items.into_iter().map(|item| self.without_rules(item, dead, known)).collect();
                self.sequence_of(items)
            }
            Node::Choice(items) => {
                let items: Vec<_> = items.iter().map(|&item| self.without_rules(item, dead, known)).collect();
                self.choice(items)
            }
            Node::Repeat(body, min, max) => {
                let body = self.without_rules(body, dead, known);
                self.repeat(body, min, max)
            }
            Node::Limit(body, tokens) => {
                let body = self.without_rules(body, dead, known);
                self.limit(body, tokens)
            }
            _ => id,
        };
        known.insert(id, result);
        result
    }

    /// Makes the bodies of rules without the empty text.
    pub(crate) fn finish_pending(&mut self) {
        while let Some((rule, other)) = self.pending.pop() {
            let body = self.without_empty(self.body(rule));
            self.set_body(other, body);
        }
    }
}

/// One repetition less.
pub(crate) fn fewer(max: u32) -> u32 {
    if max == UNBOUNDED { max } else { max.saturating_sub(1) }
}
