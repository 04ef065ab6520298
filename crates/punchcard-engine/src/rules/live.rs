//! The bytes that may come next, found without finding out what follows: most readings go on with none of the bytes that are
//! asked about.

use super::machine::{Machine, Rest};
use super::nodes::{FxMap, Node, NodeId};
use super::stack::{BELOW, ExitsId, Source, StackId};
use crate::bytes::ByteSet;
use crate::leaf::Encoding;
use punchcard_schema::SchemaError;

/// Bytes that are known, perhaps with some that may not come.
#[derive(Debug, Default)]
pub(crate) struct Lives {
    nodes: FxMap<NodeId, ByteSet>,
    /// Behind a place of what is opened of a node: the bytes, and whether what is below the node may be next.
    places: FxMap<(NodeId, u32), (ByteSet, bool)>,
    stacks: FxMap<StackId, ByteSet>,
    exits: FxMap<(ExitsId, u32), ByteSet>,
}

impl Lives {
    pub(crate) fn memory_size(&self) -> usize {
        self.nodes.allocation_size()
            + self.places.allocation_size()
            + self.stacks.allocation_size()
            + self.exits.allocation_size()
    }
}

fn deeper<R>(go: impl FnOnce() -> R) -> R {
    stacker::maybe_grow(64 << 10, 1 << 20, go)
}

impl Machine {
    /// The bytes that may come behind a place.
    pub(super) fn live_behind(&mut self, rest: Rest) -> Result<ByteSet, SchemaError> {
        let (id, exit) = match rest {
            Rest::Stack(stack) => return self.live_of_stack(stack),
            Rest::Exit(id, exit) => (id, exit),
        };
        if let Some(&known) = self.lives.exits.get(&(id, exit)) {
            return Ok(known);
        }
        let mut out = ByteSet::default();
        for i in 0..self.stacks.exits(id).next[exit as usize].sources.len() {
            let source = self.stacks.exits(id).next[exit as usize].sources[i];
            out.extend(&self.live_of_source(source)?);
        }
        self.lives.exits.insert((id, exit), out);
        Ok(out)
    }

    fn live_of_source(&mut self, (node, place, below): Source) -> Result<ByteSet, SchemaError> {
        let (mut out, is_open) = self.live_of_place(node, place)?;
        if is_open {
            out.extend(&self.live_of_stack(below)?);
        }
        Ok(out)
    }

    fn live_of_place(&mut self, node: NodeId, place: u32) -> Result<(ByteSet, bool), SchemaError> {
        if place == BELOW {
            return Ok((ByteSet::default(), true));
        }
        if let Some(&known) = self.lives.places.get(&(node, place)) {
            return Ok(known);
        }
        let mut out = (ByteSet::default(), false);
        for i in 0..self.stacks.edges(node, place).len() {
            let (tail, parent) = self.stacks.edges(node, place)[i];
            out.0.extend(&self.live_of_node(tail)?);
            if self.nodes.is_nullable(tail) {
                let (bytes, is_open) = deeper(|| self.live_of_place(node, parent))?;
                out.0.extend(&bytes);
                out.1 |= is_open;
            }
        }
        self.lives.places.insert((node, place), out);
        Ok(out)
    }

    fn live_of_stack(&mut self, stack: StackId) -> Result<ByteSet, SchemaError> {
        if let Some(&known) = self.lives.stacks.get(&stack) {
            return Ok(known);
        }
        let mut out = ByteSet::default();
        for i in 0..self.stacks.tops(stack).len() {
            let (node, below) = self.stacks.tops(stack)[i];
            if below == StackId::NEVER {
                continue;
            }
            out.extend(&self.live_of_node(node)?);
            if self.nodes.is_nullable(node) {
                out.extend(&deeper(|| self.live_of_stack(below))?);
            }
        }
        self.lives.stacks.insert(stack, out);
        Ok(out)
    }

    /// No rule begins with itself, so this comes to an end.
    fn live_of_node(&mut self, node: NodeId) -> Result<ByteSet, SchemaError> {
        if let Some(&known) = self.lives.nodes.get(&node) {
            return Ok(known);
        }
        let mut out = ByteSet::default();
        match self.nodes.get(node).clone() {
            Node::Terminal(language) | Node::Longest(language) => {
                let leaf = self.leaves.start(language, Encoding::Raw);
                out = self.leaves.live(&mut self.nodes.languages, leaf)?;
            }
            Node::Json(part) => {
                let machine = &mut self.parts[part.0 as usize];
                machine.possible_bytes(machine.start(), &mut out)?;
            }
            Node::Sequence(head, tail) => {
                out = deeper(|| self.live_of_node(head))?;
                if self.nodes.is_nullable(head) {
                    out.extend(&deeper(|| self.live_of_node(tail))?);
                }
            }
            Node::Choice(items) => {
                for &item in &items {
                    out.extend(&deeper(|| self.live_of_node(item))?);
                }
            }
            Node::Repeat(body, ..) | Node::Limit(body, _) => out = deeper(|| self.live_of_node(body))?,
            Node::Rule(rule) => out = deeper(|| self.live_of_node(self.nodes.body(rule)))?,
            Node::Token(_) | Node::LimitEnd | Node::Begin(_) | Node::End(_) => {}
        }
        self.lives.nodes.insert(node, out);
        Ok(out)
    }
}
