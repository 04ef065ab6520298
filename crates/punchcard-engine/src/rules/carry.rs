//! Configurations of one machine in another that was made from the same grammar.
//!
//! Compiling does the same each time, so the nodes that it makes have the same ids in both machines, which is checked once.
//! What texts added to them is carried over part by part.

use super::machine::{Machine, Place, Reading};
use super::nodes::{FxMap, Node, NodeId, Nodes, PartId};
use super::stack::StackId;
use crate::automaton::ConfigId;
use crate::json;
use punchcard_automata::{Copies, Language};

/// What was carried over so far.
#[derive(Debug, Default)]
pub(crate) struct Carried {
    languages: Copies,
    nodes: FxMap<NodeId, NodeId>,
    stacks: FxMap<StackId, StackId>,
    parts: FxMap<PartId, json::Carried>,
    /// Whether the nodes that compiling made are the same, once that was checked.
    is_same: Option<bool>,
}

impl Carried {
    pub(crate) fn memory_size(&self) -> usize {
        self.languages.memory_size()
            + self.nodes.allocation_size()
            + self.stacks.allocation_size()
            + self.parts.values().map(json::Carried::memory_size).sum::<usize>()
    }
}

impl Machine {
    /// Carries a configuration over; `None` if the machines do not fit each other.
    pub(crate) fn carry(&mut self, from: &Machine, config: ConfigId, carried: &mut Carried) -> Option<ConfigId> {
        let is_same = *carried.is_same.get_or_insert_with(|| {
            self.compiled_nodes == from.compiled_nodes && self.nodes.begin_like(&from.nodes, self.compiled_nodes)
        });
        if !is_same {
            return None;
        }
        let mut readings = Vec::new();
        for &Reading { place, tokens, stack } in from.readings_of(config) {
            let place = match place {
                Place::Between => place,
                Place::Leaf(leaf) => {
                    let Machine { leaves, nodes, .. } = self;
                    let language = |id| nodes.carry_language(&from.nodes, id, &mut carried.languages);
                    Place::Leaf(leaves.carry(&from.leaves, leaf, language))
                }
                Place::Json(part, config) => {
                    let (to, from) = (self.parts.get_mut(part.0 as usize)?, from.parts.get(part.0 as usize)?);
                    Place::Json(part, to.carry(from, config, carried.parts.entry(part).or_default()))
                }
            };
            let tokens = self.nodes.counts.carry(&from.nodes.counts, tokens);
            readings.push(Reading { place, tokens, stack: self.carry_stack(from, stack, carried) });
        }
        Some(self.config(&mut readings))
    }

    fn carry_stack(&mut self, from: &Machine, stack: StackId, carried: &mut Carried) -> StackId {
        if stack == StackId::NEVER || stack == StackId::END {
            return stack;
        }
        // Stacks may be deep: those below are carried over first.
        let mut open = vec![stack];
        while let Some(&at) = open.last() {
            let is_known = |stack: &StackId| *stack <= StackId::END || carried.stacks.contains_key(stack);
            if is_known(&at) {
                open.pop();
                continue;
            }
            let tops = from.stacks.tops(at);
            let missing: Vec<StackId> = tops.iter().map(|&(_, below)| below).filter(|below| !is_known(below)).collect();
            if !missing.is_empty() {
                open.extend(missing);
                continue;
            }
            let tops = tops.iter().map(|&(node, below)| {
                let below = carried.stacks.get(&below).copied().unwrap_or(below);
                (self.carry_node(from, node, &mut carried.nodes, &mut carried.languages), below)
            });
            let tops = tops.collect();
            let copy = self.stacks.gather(tops);
            carried.stacks.insert(at, copy);
        }
        carried.stacks[&stack]
    }

    fn carry_node(
        &mut self,
        from: &Machine,
        id: NodeId,
        known: &mut FxMap<NodeId, NodeId>,
        languages: &mut Copies,
    ) -> NodeId {
        if id.index() < self.compiled_nodes {
            return id;
        }
        if let Some(&known) = known.get(&id) {
            return known;
        }
        let mut carry = |machine: &mut Self, id| {
            stacker::maybe_grow(64 << 10, 1 << 20, || machine.carry_node(from, id, known, languages))
        };
        let copy = match from.nodes.get(id).clone() {
            Node::Sequence(head, tail) => {
                let (head, tail) = (carry(self, head), carry(self, tail));
                self.nodes.sequence(head, tail)
            }
            Node::Choice(items) => {
                let items: Vec<NodeId> = items.iter().map(|&item| carry(self, item)).collect();
                self.nodes.choice(items)
            }
            Node::Repeat(body, min, max) => {
                let body = carry(self, body);
                self.nodes.repeat(body, min, max)
            }
            Node::Limit(body, tokens) => {
                let body = carry(self, body);
                self.nodes.limit(body, tokens)
            }
            Node::Terminal(language) => {
                let language = self.nodes.carry_language(&from.nodes, language, languages);
                self.nodes.terminal(language)
            }
            Node::Longest(language) => {
                let language = self.nodes.carry_language(&from.nodes, language, languages);
                self.nodes.longest(language)
            }
            Node::Json(part) => self.nodes.json(part),
            Node::Token(tokens) => self.nodes.token(tokens),
            Node::Rule(rule) => self.nodes.rule(rule),
            Node::LimitEnd => self.nodes.limit_end(),
            Node::Begin(name) => self.nodes.begin(name),
            Node::End(name) => self.nodes.end(name),
        };
        known.insert(id, copy);
        copy
    }
}

impl Nodes {
    fn carry_language(&mut self, from: &Nodes, id: Language, copies: &mut Copies) -> Language {
        self.languages.copy_known(&from.languages, id, copies)
    }
}
