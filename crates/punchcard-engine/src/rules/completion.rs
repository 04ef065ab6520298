//! Completions: a short text that ends a text, from anywhere.
//!
//! The cost of a node is the length of its shortest text, and of stacks that of the cheapest way to their end. Steps from
//! rule to rule cost a little, too, so that the way of the least cost never goes in a circle.

use super::counts::Tokens;
use super::machine::{Machine, Place, Reading};
use super::nodes::{Node, NodeId, RuleId};
use super::recursion::{spread, users};
use super::stack::StackId;
use crate::Piece;
use crate::automaton::ConfigId;
use crate::json;
use crate::leaf::LeafId;
use hashbrown::HashMap;
use punchcard_automata::Language;
use punchcard_schema::SchemaError;
use rustc_hash::FxBuildHasher;
use std::collections::HashSet;

type FxMap<K, V> = HashMap<K, V, FxBuildHasher>;

/// What a byte costs, in steps from rule to rule.
const BYTE: u64 = 1 << 16;
const ENDLESS: u64 = u64::MAX;

/// Most bytes of a completion.
const MOST_BYTES: u64 = 16 << 20;

/// Where a text stands on a way to its end: a place, and what follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Spot {
    place: Place,
    stack: StackId,
}

impl Spot {
    pub(crate) fn is_end(self) -> bool {
        self.place == Place::Between && self.stack == StackId::END
    }
}

/// Costs that are known.
#[derive(Debug, Default)]
pub(crate) struct Costs {
    rules: Vec<u64>,
    terminals: FxMap<Language, u64>,
    /// The bytes that end a terminal that is being read.
    leaves: FxMap<LeafId, Option<u64>>,
    /// The bytes that end a terminal from any of its states; `None` where there are many states.
    from_anywhere: FxMap<Language, Option<u64>>,
    parts: Vec<Option<u64>>,
    to_limit: FxMap<StackId, u64>,
    slack: FxMap<(StackId, Tokens), Option<u64>>,
}

impl Costs {
    /// An estimate of the bytes on the heap.
    pub(crate) fn memory_size(&self) -> usize {
        let lists = 8 * self.rules.capacity() + 16 * self.parts.capacity();
        lists + self.terminals.allocation_size() + self.to_limit.allocation_size()
    }
}

/// Recursion with a stack that grows.
fn deeper<R>(go: impl FnOnce() -> R) -> R {
    stacker::maybe_grow(64 << 10, 1 << 20, go)
}

impl Machine {
    /// What completes the text; `None` if no example of a missing part was found within the limits.
    pub(crate) fn completion(&mut self, config: ConfigId) -> Result<Option<Vec<Piece>>, SchemaError> {
        if self.is_accepting(config)? {
            return Ok(Some(Vec::new()));
        }
        let Some(mut spot) = self.completing(config)? else { return Ok(None) };
        let (mut out, mut length) = (Vec::new(), 0);
        while !spot.is_end() {
            let Some((pieces, next)) = self.completion_step(spot)?.filter(|_| length as u64 <= MOST_BYTES) else {
                return Ok(None);
            };
            length += pieces.iter().map(Piece::len).sum::<usize>();
            for piece in pieces {
                match piece {
                    Piece::Bytes(bytes) => spell(bytes, &mut out),
                    token @ Piece::Token(_) => out.push(token),
                }
            }
            spot = next;
        }
        Ok(Some(out))
    }

    /// Where the shortest way to complete the text begins.
    pub(crate) fn completing(&mut self, config: ConfigId) -> Result<Option<Spot>, SchemaError> {
        let mut best: Option<(u64, Spot)> = None;
        for i in 0..self.readings_of(config).len() {
            let Reading { place, stack, .. } = self.readings_of(config)[i];
            let Some(rest) = self.rest_estimate(place)? else { continue };
            let cost = rest.saturating_mul(BYTE).saturating_add(self.cost_of_stack(stack)?);
            if best.is_none_or(|(least, _)| cost < least) && cost < ENDLESS {
                best = Some((cost, Spot { place, stack }));
            }
        }
        // What is longer is no example, and may not fit into memory.
        Ok(best.filter(|(cost, _)| cost / BYTE <= MOST_BYTES).map(|(_, spot)| spot))
    }

    /// The first pieces of what completes the text from a spot on, and the spot behind them.
    pub(crate) fn completion_step(&mut self, spot: Spot) -> Result<Option<(Vec<Piece>, Spot)>, SchemaError> {
        let Spot { place, stack } = spot;
        let (bytes, place) = match place {
            Place::Between => return self.pop_cheapest(stack),
            Place::Leaf(leaf) => {
                let Some((bytes, place)) = self.part_of_leaf(leaf)? else { return Ok(None) };
                (bytes, place)
            }
            Place::Json(part, config) => {
                let machine = &mut self.parts[part.0 as usize];
                if machine.is_accepting(config) {
                    return Ok(Some((Vec::new(), Spot { place: Place::Between, stack })));
                }
                let Some(reading) = machine.completing(config)? else { return Ok(None) };
                let Some((bytes, next)) = machine.completion_step(reading)? else { return Ok(None) };
                let at_end = json::Machine::is_at_end(next);
                let next = if at_end { Place::Between } else { Place::Json(part, machine.config(&mut vec![next])) };
                (bytes, next)
            }
        };
        let pieces = if bytes.is_empty() { Vec::new() } else { vec![Piece::Bytes(bytes)] };
        Ok(Some((pieces, Spot { place, stack })))
    }

    /// The text of the cheapest node on top of a stack, and the spot behind it.
    fn pop_cheapest(&mut self, stack: StackId) -> Result<Option<(Vec<Piece>, Spot)>, SchemaError> {
        let mut best = (ENDLESS, NodeId::EMPTY, StackId::END);
        for (node, below) in self.stacks.tops(stack).to_vec() {
            if node == NodeId::EMPTY {
                best = (0, node, StackId::END);
                break;
            }
            let cost = self.cost(node)?.saturating_add(self.cost_of_stack(below)?);
            if cost < best.0 {
                best = (cost, node, below);
            }
        }
        let (_, node, below) = best;
        let mut out = Vec::new();
        let spelled = self.spell_node(node, &mut out)?;
        Ok(spelled.then_some((out, Spot { place: Place::Between, stack: below })))
    }

    /// Bytes of what ends a terminal, and the place behind them.
    fn part_of_leaf(&mut self, leaf: LeafId) -> Result<Option<(Vec<u8>, Place)>, SchemaError> {
        let languages = &mut self.nodes.languages;
        let (mut bytes, leaf, _) = self.leaves.whole_character(languages, leaf)?;
        let Some((language, encoding)) = self.leaves.language(leaf) else { return Ok(None) };
        let Some((part, rest)) = languages.example_part(language)? else { return Ok(None) };
        bytes.extend(part.into_bytes());
        let place = rest.map_or(Place::Between, |rest| Place::Leaf(self.leaves.start(rest, encoding)));
        Ok(Some((bytes, place)))
    }

    fn rest_of_leaf(&mut self, leaf: LeafId) -> Result<Option<u64>, SchemaError> {
        let languages = &mut self.nodes.languages;
        let (bytes, leaf, _) = self.leaves.whole_character(languages, leaf)?;
        let Some((language, _)) = self.leaves.language(leaf) else { return Ok(None) };
        Ok(languages.example(language)?.map(|rest| (bytes.len() + rest.len()) as u64))
    }

    /// How many bytes end what is being read, or characters if those are easier to count.
    fn rest_estimate(&mut self, place: Place) -> Result<Option<u64>, SchemaError> {
        if let Place::Leaf(leaf) = place
            && let Some((language, _)) = self.leaves.language(leaf)
            && self.nodes.languages.is_plain(language)
        {
            return Ok(Some(u64::from(self.nodes.languages.length_bounds(language).0)));
        }
        self.rest_cost(place)
    }

    /// How many bytes end what is being read.
    pub(crate) fn rest_cost(&mut self, place: Place) -> Result<Option<u64>, SchemaError> {
        if let Place::Leaf(leaf) = place
            && let Some(&known) = self.costs.leaves.get(&leaf)
        {
            return Ok(known);
        }
        let cost = match place {
            Place::Between => Some(0),
            Place::Leaf(leaf) => self.rest_of_leaf(leaf)?,
            Place::Json(part, config) => {
                self.parts[part.0 as usize].completion_length(config)?.map(|length| length as u64)
            }
        };
        if let Place::Leaf(leaf) = place {
            self.costs.leaves.insert(leaf, cost);
        }
        Ok(cost)
    }

    /// How many bytes end a terminal, wherever it is left off: at most so many, or `None` if that takes long to find out.
    pub(super) fn rest_from_anywhere(&mut self, leaf: LeafId) -> Result<Option<u64>, SchemaError> {
        /// States that are looked at.
        const MOST_STATES: usize = 200;
        let Some((language, _)) = self.leaves.language(leaf) else { return Ok(None) };
        if let Some(&known) = self.costs.from_anywhere.get(&language) {
            return Ok(known);
        }
        let (mut open, mut seen, mut most) = (vec![language], HashSet::from([language]), Some(0));
        while let (Some(state), Some(longest)) = (open.pop(), most) {
            let cost = self.cost_of_terminal(state)?;
            most = (seen.len() <= MOST_STATES && cost < ENDLESS).then_some(longest.max(cost / BYTE));
            for &target in self.nodes.languages.transitions(state).targets() {
                if seen.insert(target) && self.nodes.languages.is_viable(target)? {
                    open.push(target);
                }
            }
        }
        // A token may end within a character.
        let most = most.map(|bytes| bytes + 3);
        self.costs.from_anywhere.insert(language, most);
        Ok(most)
    }

    /// How many bytes lead to the end of the limit on tokens around.
    pub(crate) fn cost_to_limit(&mut self, stack: StackId) -> Result<u64, SchemaError> {
        if let Some(&known) = self.costs.to_limit.get(&stack) {
            return Ok(known);
        }
        let mut least = ENDLESS;
        for (node, below) in self.stacks.tops(stack).to_vec() {
            let cost = match self.nodes.get(node) {
                Node::LimitEnd => 0,
                _ if node == NodeId::EMPTY => 0,
                _ => self.cost(node)?.saturating_div(BYTE).saturating_add(deeper(|| self.cost_to_limit(below))?),
            };
            least = least.min(cost);
        }
        self.costs.to_limit.insert(stack, least);
        Ok(least)
    }

    /// How many bytes may come before all that is on the stacks so that some way out keeps every one of the limits; `None`
    /// if even without any no way does. What keeps one limit may not keep another one, so they are looked at together.
    pub(super) fn slack(&mut self, stack: StackId, tokens: Tokens) -> Result<Option<u64>, SchemaError> {
        const MOST_KNOWN: usize = 100_000;
        let Some((left, outer)) = self.nodes.counts.innermost(tokens) else { return Ok(Some(ENDLESS)) };
        if let Some(&known) = self.costs.slack.get(&(stack, tokens)) {
            return Ok(known);
        }
        let mut most = None;
        for (node, below) in self.stacks.tops(stack).to_vec() {
            let slack = match self.nodes.get(node) {
                Node::LimitEnd => deeper(|| self.slack(below, outer))?.map(|slack| slack.min(u64::from(left))),
                _ if node == NodeId::EMPTY => Some(ENDLESS),
                _ => {
                    let cost = self.cost_in_bytes(node)?;
                    deeper(|| self.slack(below, tokens))?.and_then(|slack| slack.checked_sub(cost))
                }
            };
            most = most.max(slack);
        }
        if self.costs.slack.len() > MOST_KNOWN {
            self.costs.slack.clear();
        }
        self.costs.slack.insert((stack, tokens), most);
        Ok(most)
    }

    fn cost_of_stack(&mut self, stack: StackId) -> Result<u64, SchemaError> {
        if stack == StackId::END {
            return Ok(0);
        }
        if let Some(&known) = self.stacks.costs.get(&stack) {
            return Ok(known);
        }
        let mut least = ENDLESS;
        for (node, below) in self.stacks.tops(stack).to_vec() {
            let cost = if node == NodeId::EMPTY {
                0
            } else {
                self.cost(node)?.saturating_add(deeper(|| self.cost_of_stack(below))?)
            };
            least = least.min(cost);
        }
        self.stacks.costs.insert(stack, least);
        Ok(least)
    }

    /// The cost of a node.
    pub(crate) fn cost(&mut self, node: NodeId) -> Result<u64, SchemaError> {
        if self.costs.rules.len() < self.nodes.rule_count() {
            self.find_rule_costs()?;
        }
        self.cost_with(node)
    }

    /// The bytes of the shortest text of a node (or a few more).
    pub(crate) fn cost_in_bytes(&mut self, node: NodeId) -> Result<u64, SchemaError> {
        Ok(self.cost(node)? / BYTE)
    }

    fn find_rule_costs(&mut self) -> Result<(), SchemaError> {
        let count = self.nodes.rule_count();
        self.costs.rules = vec![ENDLESS; count];
        // Of the many ways that left recursion makes, few are taken. Later rules use earlier ones less often than the other
        // way round.
        let mut rules: Vec<RuleId> =
            self.nodes.reachable(self.root).into_iter().filter_map(|node| self.nodes.as_rule(node)).collect();
        rules.sort_unstable_by(|a, b| b.cmp(a));
        let users = users(&self.nodes, &rules);
        let mut failed = None;
        spread(&rules, &users, |rule| {
            if failed.is_some() {
                return false;
            }
            match self.cost_with(self.nodes.body(rule)) {
                Ok(cost) => {
                    let known = &mut self.costs.rules[rule.0 as usize];
                    let cheaper = cost.saturating_add(1) < *known;
                    *known = cost.saturating_add(1).min(*known);
                    cheaper
                }
                Err(error) => {
                    failed = Some(error);
                    false
                }
            }
        });
        match failed {
            Some(error) => {
                self.costs.rules.clear();
                Err(error)
            }
            None => Ok(()),
        }
    }

    fn cost_with(&mut self, node: NodeId) -> Result<u64, SchemaError> {
        Ok(match self.nodes.get(node).clone() {
            Node::Terminal(language) | Node::Longest(language) => self.cost_of_terminal(language)?,
            Node::Json(part) => {
                let index = part.0 as usize;
                if self.costs.parts.len() <= index {
                    self.costs.parts.resize(self.parts.len(), None);
                }
                match self.costs.parts[index] {
                    Some(known) => known,
                    None => {
                        let machine = &mut self.parts[index];
                        let example = machine.completion(machine.start())?;
                        let cost = example.map_or(ENDLESS, |bytes| bytes.len() as u64 * BYTE);
                        self.costs.parts[index] = Some(cost);
                        cost
                    }
                }
            }
            Node::Token(_) => BYTE,
            Node::Sequence(..) => {
                let (mut at, mut sum) = (node, 0u64);
                while let Node::Sequence(head, tail) = *self.nodes.get(at) {
                    sum = sum.saturating_add(deeper(|| self.cost_with(head))?);
                    at = tail;
                }
                sum.saturating_add(deeper(|| self.cost_with(at))?)
            }
            Node::Choice(items) => {
                let mut least = ENDLESS;
                for &item in &items {
                    least = least.min(deeper(|| self.cost_with(item))?);
                }
                least.saturating_add(1)
            }
            Node::Repeat(body, min, _) => deeper(|| self.cost_with(body))?.saturating_mul(u64::from(min)),
            Node::Rule(rule) => self.costs.rules[rule.0 as usize].saturating_add(1),
            Node::Limit(body, _) => deeper(|| self.cost_with(body))?,
            Node::LimitEnd | Node::Begin(_) | Node::End(_) => 0,
        })
    }

    fn cost_of_terminal(&mut self, language: Language) -> Result<u64, SchemaError> {
        if let Some(&known) = self.costs.terminals.get(&language) {
            return Ok(known);
        }
        let example = self.nodes.languages.example(language)?;
        let cost = example.map_or(ENDLESS, |text| text.len() as u64 * BYTE);
        self.costs.terminals.insert(language, cost);
        Ok(cost)
    }

    /// Spells the cheapest text of a node; `false` if none was found.
    fn spell_node(&mut self, node: NodeId, out: &mut Vec<Piece>) -> Result<bool, SchemaError> {
        match self.nodes.get(node).clone() {
            Node::Terminal(language) | Node::Longest(language) => {
                let Some(text) = self.nodes.languages.example(language)? else { return Ok(false) };
                spell(text.into_bytes(), out);
            }
            Node::Json(part) => {
                let machine = &mut self.parts[part.0 as usize];
                let Some(bytes) = machine.completion(machine.start())? else { return Ok(false) };
                spell(bytes, out);
            }
            Node::Token(set) => out.extend(self.token_sets[set.0 as usize].first().map(|&id| Piece::Token(id))),
            Node::Sequence(..) => {
                let mut at = node;
                while let Node::Sequence(head, tail) = *self.nodes.get(at) {
                    if !deeper(|| self.spell_node(head, out))? {
                        return Ok(false);
                    }
                    at = tail;
                }
                return deeper(|| self.spell_node(at, out));
            }
            Node::Choice(items) => {
                let mut best = (ENDLESS, items[0]);
                for &item in &items {
                    best = best.min((self.cost(item)?, item));
                }
                return deeper(|| self.spell_node(best.1, out));
            }
            Node::Repeat(body, min, _) => {
                for _ in 0..min {
                    if !deeper(|| self.spell_node(body, out))? {
                        return Ok(false);
                    }
                }
            }
            Node::Rule(rule) => return deeper(|| self.spell_node(self.nodes.body(rule), out)),
            Node::Limit(body, _) => return deeper(|| self.spell_node(body, out)),
            Node::LimitEnd | Node::Begin(_) | Node::End(_) => {}
        }
        Ok(true)
    }
}

/// Appends bytes to the last piece.
fn spell(bytes: Vec<u8>, out: &mut Vec<Piece>) {
    if bytes.is_empty() {
        return;
    }
    match out.last_mut() {
        Some(Piece::Bytes(last)) => last.extend(bytes),
        _ => out.push(Piece::Bytes(bytes)),
    }
}
