//! What is said of tokens by a terminal alone.
//!
//! From a node of the vocabulary's trie on, some tokens stay within a terminal, and others go on behind its end. Both depend
//! on the language of the terminal only, so they are found once for all grammars of the vocabulary.

use super::machine::Machine;
use crate::bytes::ByteSet;
use crate::leaf::{LeafId, Leaves, within_a_token};
use crate::leaf_walk::visit;
use crate::mask::{Mask, set};
use crate::trie::Trie;
use crate::vocabulary::Vocabulary;
use punchcard_automata::{Languages, LimitExceeded};
use std::sync::Arc;

/// What a terminal says of the tokens that have a node of the trie on their path, from there on.
#[derive(Debug)]
pub(crate) struct TerminalMask {
    /// Tokens that stay within it.
    pub(super) inside: Mask,
    /// Tokens that go on behind its end with a byte with which the terminal itself does not go on.
    pub(super) crossing: Crossing,
    /// Bytes with which the terminal goes on where it might end, too.
    pub(super) further: ByteSet,
}

/// Tokens that go on behind the end of a terminal.
#[derive(Debug, Default)]
pub(crate) struct Crossing {
    /// What is left of them there.
    pub(super) rests: Trie,
    /// The bytes that the rests begin with.
    pub(super) bytes: ByteSet,
    /// Nodes of the trie where the terminal may end, and with many tokens below: these are not in `rests`.
    pub(super) ends: Vec<u32>,
}

impl Crossing {
    pub(crate) fn memory_size(&self) -> usize {
        self.rests.memory_size() + 4 * self.ends.len() + size_of::<Crossing>()
    }
}

impl TerminalMask {
    pub(crate) fn memory_size(&self) -> usize {
        self.inside.memory_size() + self.crossing.memory_size()
    }
}

/// What tells terminals apart in all grammars, and where in the trie they are.
pub(crate) type TerminalKey = (u64, u8, u32);

/// With more nodes below the end of a terminal, what follows it is looked up there; else the rests of tokens are walked.
const MANY_NODES: usize = 1000;

impl Machine {
    /// What a terminal says of the tokens below a node; `None` within a character.
    pub(super) fn terminal_mask(
        &mut self,
        vocabulary: &Vocabulary,
        leaf: LeafId,
        node: usize,
    ) -> Result<Option<Arc<TerminalMask>>, LimitExceeded> {
        let (languages, leaves) = (&mut self.nodes.languages, &mut self.leaves);
        if leaves.language(leaf).is_none() {
            return Ok(None);
        }
        let leaf = within_a_token(vocabulary, languages, leaves, leaf);
        let key = leaves.key(languages, leaf, node);
        let build = || compute(vocabulary, languages, leaves, leaf, node);
        vocabulary.terminal_masks.get(key, TerminalMask::memory_size, build).map(Some)
    }

    /// The tokens below a node that leave a terminal although it goes on with the next byte, which is one of some bytes.
    pub(super) fn early_crossing(
        &mut self,
        vocabulary: &Vocabulary,
        leaf: LeafId,
        node: usize,
        bytes: ByteSet,
    ) -> Result<Arc<Crossing>, LimitExceeded> {
        let (languages, leaves) = (&mut self.nodes.languages, &mut self.leaves);
        let leaf = within_a_token(vocabulary, languages, leaves, leaf);
        let key = (leaves.key(languages, leaf, node), bytes);
        let build = || compute_early(vocabulary, languages, leaves, leaf, node, bytes);
        vocabulary.early_crossings.get(key, Crossing::memory_size, build)
    }
}

/// Children of a node at which a terminal is complete: those that it does not go on with, and how many nodes these are with
/// all below; and those that it goes on with.
#[derive(Default)]
struct Sides {
    left: Vec<usize>,
    nodes_left: usize,
    kept: Vec<usize>,
}

impl Sides {
    fn find(
        &mut self,
        trie: &Trie,
        languages: &mut Languages,
        leaves: &mut Leaves,
        leaf: LeafId,
        node: usize,
    ) -> Result<(), LimitExceeded> {
        self.left.clear();
        self.kept.clear();
        self.nodes_left = 0;
        for place in trie.children(node) {
            let child = trie.child_node(place);
            if leaves.step(languages, leaf, trie.child_byte(place))? == LeafId::DEAD {
                self.nodes_left += 1 + trie.nodes_below(child);
                self.left.push(child);
            } else {
                self.kept.push(child);
            }
        }
        Ok(())
    }
}

fn is_complete(languages: &Languages, leaves: &Leaves, leaf: LeafId) -> bool {
    leaves.language(leaf).is_some_and(|(language, _)| languages.is_nullable(language))
}

/// The rests of all tokens below a node, itself included, from its byte on.
fn add_rests<'a>(vocabulary: &'a Vocabulary, node: usize, rests: &mut Vec<(&'a [u8], u32)>) {
    let start = vocabulary.trie.depth(node) - 1;
    let ids = vocabulary.trie.tokens_under(node).iter();
    rests.extend(ids.filter_map(|&id| Some((&vocabulary.token(id)?[start..], id))));
}

fn compute(
    vocabulary: &Vocabulary,
    languages: &mut Languages,
    leaves: &mut Leaves,
    leaf: LeafId,
    node: usize,
) -> Result<TerminalMask, LimitExceeded> {
    let trie = &vocabulary.trie;
    let (mut inside, mut rests, mut sides) = (Vec::new(), Vec::new(), Sides::default());
    let (mut bytes, mut further, mut ends) = (ByteSet::default(), ByteSet::default(), Vec::new());
    visit(trie, languages, leaves, leaf, node, |languages, leaves, node, leaf| {
        inside.extend_from_slice(trie.tokens_at(node));
        if !is_complete(languages, leaves, leaf) || trie.children(node).is_empty() {
            return Ok(true);
        }
        sides.find(trie, languages, leaves, leaf, node)?;
        if sides.nodes_left >= MANY_NODES {
            ends.push(node as u32);
            return Ok(true);
        }
        for &child in &sides.left {
            bytes.insert(trie.nodes()[child].byte);
            add_rests(vocabulary, child, &mut rests);
        }
        sides.kept.iter().for_each(|&child| further.insert(trie.nodes()[child].byte));
        Ok(true)
    })?;
    let crossing = Crossing { rests: Trie::new(rests), bytes, ends };
    Ok(TerminalMask { inside: mask_of(vocabulary, &inside), crossing, further })
}

fn compute_early(
    vocabulary: &Vocabulary,
    languages: &mut Languages,
    leaves: &mut Leaves,
    leaf: LeafId,
    node: usize,
    bytes: ByteSet,
) -> Result<Crossing, LimitExceeded> {
    let trie = &vocabulary.trie;
    let (mut rests, mut sides) = (Vec::new(), Sides::default());
    visit(trie, languages, leaves, leaf, node, |languages, leaves, node, leaf| {
        if !is_complete(languages, leaves, leaf) || trie.children(node).is_empty() {
            return Ok(true);
        }
        sides.find(trie, languages, leaves, leaf, node)?;
        if sides.nodes_left < MANY_NODES {
            let wanted = sides.kept.iter().filter(|&&child| bytes.contains(trie.nodes()[child].byte));
            wanted.for_each(|&child| add_rests(vocabulary, child, &mut rests));
        }
        Ok(true)
    })?;
    Ok(Crossing { rests: Trie::new(rests), bytes, ends: Vec::new() })
}

/// The mask of some tokens.
fn mask_of(vocabulary: &Vocabulary, ids: &[u32]) -> Mask {
    /// With fewer tokens than this no row is made to find out how they are best kept.
    const FEW: usize = 256;
    if ids.len() < FEW {
        return Mask::Few(ids.into());
    }
    let mut row = vec![0; vocabulary.mask_words()];
    ids.iter().for_each(|&id| set(&mut row, id));
    Mask::of(&row)
}
