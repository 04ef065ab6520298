//! Token masks of JSON: which tokens may come next in a configuration.
//!
//! A mask is computed by walking the vocabulary's trie with the machine, along the bytes with which something can go on.
//! Nothing is interned on the way: readings live on a stack beside the path. Inside of strings and numbers the answer depends
//! on their language alone ([`leaf_mask`](super::leaf_mask)): tokens that stay inside come as a ready set, which all grammars of the vocabulary
//! share, and of tokens that go on behind the end only the different rests are tried.

use super::machine::{Frame, Machine, Reading};
use super::walked::Names;
use crate::automaton::ConfigId;
use crate::bytes::ByteSet;
use crate::mask::{Draft, Mask};
use crate::trie::Trie;
use crate::vocabulary::Vocabulary;
use punchcard_schema::SchemaError;
use std::ops::Range;

/// Tokens that go on behind the end of the whole value: the token, and how many of its bytes are left there.
pub(crate) type Exits = Vec<(u32, u16)>;

/// What is found out of tokens: a mask, and exits if they are wanted.
pub(super) struct Found<'a> {
    pub(super) mask: Draft<'a>,
    pub(super) exits: Option<Exits>,
}

impl Found<'_> {
    /// The value may end at a node of the trie: all tokens below it go on from there.
    fn ends_at(&mut self, trie: &Trie, node: usize) {
        let Some(exits) = &mut self.exits else { return };
        let nodes = trie.nodes();
        let (first, end, depth) = match nodes.get(node) {
            Some(at) => (node + 1, at.end as usize, at.depth),
            None => (0, nodes.len(), 0),
        };
        for (below, node) in nodes.iter().enumerate().take(end).skip(first) {
            exits.extend(trie.tokens_at(below).iter().map(|&id| (id, node.depth - depth)));
        }
    }
}

/// A node on the path of a walk: the readings there, the children that were not visited yet, and the bytes that may come.
#[derive(Debug)]
struct Level {
    readings: Range<usize>,
    children: Range<usize>,
    live: ByteSet,
}

/// What a walk has on its path. The memory is used again.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    /// The readings along the path, those of the last node last.
    readings: Vec<Reading>,
    levels: Vec<Level>,
}

/// With fewer children it costs more to ask which bytes may come than to try them.
const FEW_CHILDREN: usize = 4;
/// With fewer nodes below, a walk costs less than looking for what is known of them.
const FEW_NODES: usize = 16;

impl Machine {
    /// Writes which tokens may come next over a row: text, and the end tokens if the text may end. Returns the mask to be kept.
    pub(crate) fn fill_mask(
        &mut self,
        vocabulary: &Vocabulary,
        config: ConfigId,
        words: &mut [u32],
    ) -> Result<Mask, SchemaError> {
        let mut found = Found { mask: Draft::new(words), exits: None };
        self.find_tokens(vocabulary, config, &mut found)?;
        if self.is_accepting(config) {
            found.mask.allow(vocabulary.eos());
        }
        Ok(found.mask.finish())
    }

    /// The text tokens that may come next, and those that go on behind the end of the value.
    pub(crate) fn mask_with_exits(
        &mut self,
        vocabulary: &Vocabulary,
        config: ConfigId,
    ) -> Result<(Mask, Exits), SchemaError> {
        let mut words = vec![0; vocabulary.mask_words()];
        let mut found = Found { mask: Draft::new(&mut words), exits: Some(Vec::new()) };
        self.find_tokens(vocabulary, config, &mut found)?;
        let exits = found.exits.take().unwrap_or_default();
        Ok((found.mask.finish(), exits))
    }

    fn find_tokens(
        &mut self,
        vocabulary: &Vocabulary,
        config: ConfigId,
        found: &mut Found<'_>,
    ) -> Result<(), SchemaError> {
        let mut level = Vec::new();
        for i in 0..self.readings_of(config).len() {
            let reading = self.readings_of(config)[i];
            self.find_at(vocabulary, reading, vocabulary.trie.root(), found, &mut level)?;
        }
        level.sort_unstable();
        level.dedup();
        match *level {
            // A configuration has one mask, but what follows a value follows others, too.
            [Reading { frame: Frame::Object { .. } | Frame::Array { .. }, .. }] => {
                self.walk_known(vocabulary, &vocabulary.trie, &level, found)
            }
            _ => self.walk(vocabulary, &vocabulary.trie, &level, found),
        }
    }

    /// Finds the tokens below a node of the trie where a reading has come to. What is left to be walked is added to `level`.
    pub(super) fn enter(
        &mut self,
        vocabulary: &Vocabulary,
        trie: &Trie,
        node: usize,
        reading: Reading,
        found: &mut Found<'_>,
        level: &mut Vec<Reading>,
    ) -> Result<(), SchemaError> {
        if trie.nodes_below(node) >= FEW_NODES && std::ptr::eq(trie, &vocabulary.trie) {
            return self.find_at(vocabulary, reading, node, found, level);
        }
        level.push(reading);
        Ok(())
    }

    /// Finds the tokens below a node of the trie by what is known of the string or number that is being read there. What is
    /// left to be walked is added to `level`.
    fn find_at(
        &mut self,
        vocabulary: &Vocabulary,
        reading: Reading,
        node: usize,
        found: &mut Found<'_>,
        level: &mut Vec<Reading>,
    ) -> Result<(), SchemaError> {
        match reading.frame {
            Frame::Text { leaf } if self.leaves.language(leaf).is_some() => {
                self.string_mask(vocabulary, reading, node, found)?;
            }
            Frame::Key { leaf, .. } if self.is_wide(leaf) => self.string_mask(vocabulary, reading, node, found)?,
            Frame::Scalar { leaf } if self.leaves.language(leaf).is_some() => {
                let mask = self.leaf_mask(vocabulary, leaf, node)?;
                found.mask.add(&mask.inside);
                if reading.is_noted() {
                    // The text of the value matters to what follows it, so what goes on behind its end is read as a whole.
                    self.walk(vocabulary, mask.crossing(vocabulary, node), &[reading], found)?;
                    if self.is_complete(leaf) {
                        level.extend(self.leave(reading)?);
                    }
                    return Ok(());
                }
                let Some(after) = self.leave(reading)? else { return Ok(()) };
                let rests = if found.exits.is_some() { mask.any_rests(vocabulary) } else { &mask.rests };
                self.walk_rests(vocabulary, rests, &[after], found)?;
                if self.is_complete(leaf) && node == vocabulary.trie.root() {
                    self.walk_known(vocabulary, &vocabulary.trie, &[after], found)?;
                } else if self.is_complete(leaf) {
                    level.push(after);
                }
            }
            _ => level.push(reading),
        }
        Ok(())
    }

    /// Finds the rests of tokens in the trie that the machine can read.
    pub(super) fn walk_rests(
        &mut self,
        vocabulary: &Vocabulary,
        rests: &Trie,
        from: &[Reading],
        found: &mut Found<'_>,
    ) -> Result<(), SchemaError> {
        if found.exits.is_some() && from.iter().any(|&reading| self.may_end(reading)) {
            found.ends_at(rests, rests.root());
        }
        self.walk_known(vocabulary, rests, from, found)
    }

    /// Finds the strings in the trie that the machine can read.
    pub(super) fn walk(
        &mut self,
        vocabulary: &Vocabulary,
        trie: &Trie,
        from: &[Reading],
        found: &mut Found<'_>,
    ) -> Result<(), SchemaError> {
        self.walk_below(vocabulary, trie, trie.root(), from, None, found)
    }

    /// The same for the strings that have a node of the trie on their path, from there on. Nothing is sought below the nodes
    /// where one of the `names` begins.
    pub(super) fn walk_below(
        &mut self,
        vocabulary: &Vocabulary,
        trie: &Trie,
        node: usize,
        from: &[Reading],
        names: Option<&mut Names>,
        found: &mut Found<'_>,
    ) -> Result<(), SchemaError> {
        if from.is_empty() {
            return Ok(());
        }
        let mut walk = self.walks.pop().unwrap_or_default();
        let result = self.walk_with(&mut walk, vocabulary, trie, node, from, names, found);
        self.walks.push(walk);
        result
    }

    #[expect(clippy::too_many_arguments)]
    fn walk_with(
        &mut self,
        walk: &mut Walk,
        vocabulary: &Vocabulary,
        trie: &Trie,
        node: usize,
        from: &[Reading],
        mut names: Option<&mut Names>,
        found: &mut Found<'_>,
    ) -> Result<(), SchemaError> {
        let Walk { readings, levels } = walk;
        readings.clear();
        readings.extend_from_slice(from);
        levels.clear();
        levels.push(self.level(trie.children(node), 0..readings.len(), readings)?);
        while let Some(level) = levels.last_mut() {
            let Some(place) = trie.next_child(&mut level.children, &level.live) else {
                levels.pop();
                continue;
            };
            let byte = trie.child_byte(place);
            let before = level.readings.clone();
            readings.truncate(before.end);
            for i in before.clone() {
                self.step_reading(readings[i], byte, readings)?;
            }
            self.join_from(before.end, readings)?;
            if readings.len() == before.end {
                continue;
            }
            let node = trie.child_node(place);
            found.mask.allow(trie.tokens_at(node));
            if found.exits.is_some() && readings[before.end..].iter().any(|&reading| self.may_end(reading)) {
                found.ends_at(trie, node);
            }
            let children = trie.children(node);
            if children.is_empty() {
                continue;
            }
            if let Some(names) = &mut names
                && let Some(at) = readings[before.end..].iter().position(|reading| names.begin_with(reading))
            {
                names.nodes.push(node);
                readings.remove(before.end + at);
            }
            if trie.nodes_below(node) >= FEW_NODES && std::ptr::eq(trie, &vocabulary.trie) {
                let here: Vec<Reading> = readings.drain(before.end..).collect();
                for reading in here {
                    self.find_at(vocabulary, reading, node, found, readings)?;
                }
            }
            if readings.len() > before.end {
                levels.push(self.level(children, before.end..readings.len(), readings)?);
            }
        }
        Ok(())
    }

    fn level(&mut self, children: Range<usize>, readings: Range<usize>, all: &[Reading]) -> Result<Level, SchemaError> {
        let mut live = ByteSet::ALL;
        if children.len() > FEW_CHILDREN {
            live = ByteSet::default();
            for &reading in &all[readings.clone()] {
                self.live(reading, &mut live)?;
            }
        }
        Ok(Level { readings, children, live })
    }
}
