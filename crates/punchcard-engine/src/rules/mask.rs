//! Token masks of rules.
//!
//! Where a terminal is so wide that most tokens stay within it (free text, a string, a comment), the tokens that stay come
//! as a ready bitmask that depends on the terminal alone, and only those that leave it are tried in full. Of a JSON
//! value the mask is that of its own machine, and only the different rests of the tokens that go on behind its end are tried.
//! Everything else is a walk over the vocabulary's trie that skips a subtree at the first dead byte.

use super::machine::{Machine, Place, Reading};
use super::nodes::PartId;
use super::stack::Next;
use crate::automaton::ConfigId;
use crate::leaf::{Encoding, LeafId, Leaves, within_a_token};
use crate::mask::{Mask, set};
use crate::trie::Trie;
use crate::vocabulary::Vocabulary;
use hashbrown::HashMap;
use punchcard_automata::Languages;
use punchcard_schema::SchemaError;
use rustc_hash::FxBuildHasher;
use std::sync::Arc;

/// What a terminal says of all tokens, whatever stands around it.
#[derive(Debug)]
pub(crate) struct TerminalMask {
    /// Tokens that stay within it.
    inside: Box<[u32]>,
    /// Tokens of which some beginning (not an empty one) is complete, and that then leave it.
    leaving: Trie,
}

impl TerminalMask {
    pub(crate) fn memory_size(&self) -> usize {
        4 * self.inside.len() + self.leaving.memory_size()
    }
}

/// What a JSON value says of all tokens.
#[derive(Debug)]
struct PartMask {
    inside: Mask,
    /// What is left, behind the end of the value, of the tokens that go on.
    rests: Trie,
}

/// Masks of JSON values that are known.
#[derive(Debug, Default)]
pub(crate) struct PartMasks {
    masks: HashMap<(PartId, ConfigId), Arc<PartMask>, FxBuildHasher>,
    bytes: usize,
}

/// Most bytes of masks of JSON values that a grammar keeps.
const PART_MASK_BYTES: usize = 16 << 20;

impl PartMasks {
    pub(crate) fn memory_size(&self) -> usize {
        self.bytes
    }
}

/// Terminals with more characters than this are worth a mask of their own.
const MOST_CHARS_TO_WALK: u32 = 64;

impl Machine {
    /// Sets the bits of all tokens that may come next; `words` must be zero.
    pub(crate) fn fill_mask(
        &mut self,
        vocabulary: &Vocabulary,
        config: ConfigId,
        words: &mut [u32],
    ) -> Result<(), SchemaError> {
        for (tokens, reading) in self.token_exits(config)? {
            let behind = self.config(&mut vec![reading]);
            if self.after_token(behind)? != ConfigId::DEAD {
                self.token_sets[tokens].iter().for_each(|&id| set(words, id));
            }
        }
        let mut narrow = Vec::new();
        for reading in self.opened(config)? {
            match reading.place {
                Place::Leaf(leaf) if !reading.tokens.is_limited() && self.is_wide(leaf) => {
                    let mask = self.terminal_mask(vocabulary, leaf)?;
                    mask.inside.iter().zip(words.iter_mut()).for_each(|(from, to)| *to |= from);
                    let from = self.config(&mut vec![reading]);
                    self.walk(&mask.leaving, from, words)?;
                }
                Place::Json(part, at) if !reading.tokens.is_limited() => {
                    let mask = self.part_mask(vocabulary, part, at)?;
                    mask.inside.add_to(words);
                    let behind = self.config(&mut vec![Reading { place: Place::Between, ..reading }]);
                    self.walk(&mask.rests, behind, words)?;
                }
                _ => narrow.push(reading),
            }
        }
        if !narrow.is_empty() {
            let from = self.config(&mut narrow);
            self.walk(&vocabulary.trie, from, words)?;
        }
        Ok(())
    }

    /// The readings of a configuration, with what begins next as if it had begun: no reading stands between two parts.
    pub(crate) fn opened(&mut self, config: ConfigId) -> Result<Vec<Reading>, SchemaError> {
        let mut out = Vec::new();
        for i in 0..self.readings_of(config).len() {
            let reading = self.readings_of(config)[i];
            if reading.place != Place::Between {
                out.push(reading);
            }
            if !self.is_complete(reading.place) {
                continue;
            }
            for &(next, counting, stack) in &self.exits(reading.stack)?.next {
                let Some(tokens) = reading.tokens.after(counting) else { continue };
                let place = match next {
                    Next::Terminal(language) => Place::Leaf(self.leaves.start(language, Encoding::Raw)),
                    Next::Json(part) => Place::Json(part, self.parts[part.0 as usize].start()),
                    Next::Token(_) => continue,
                };
                out.push(Reading { place, tokens, stack });
            }
        }
        // What is complete where it begins is followed at once by what was found behind it, too: read it once.
        out.sort_unstable();
        out.dedup();
        Ok(out)
    }

    /// Sets the bits of the strings in the trie that the machine can read.
    fn walk(&mut self, trie: &Trie, from: ConfigId, words: &mut [u32]) -> Result<(), SchemaError> {
        let nodes = trie.nodes();
        let mut path = vec![from; trie.max_depth() + 1];
        let mut i = 0;
        while let Some(node) = nodes.get(i) {
            let depth = usize::from(node.depth);
            let next = self.step(path[depth - 1], node.byte)?;
            if next == ConfigId::DEAD {
                i = node.end as usize;
                continue;
            }
            path[depth] = next;
            let tokens = trie.tokens_at(i);
            if !tokens.is_empty() && (!self.counts_tokens(next) || self.after_token(next)? != ConfigId::DEAD) {
                tokens.iter().for_each(|&id| set(words, id));
            }
            i += 1;
        }
        Ok(())
    }

    fn is_wide(&self, leaf: LeafId) -> bool {
        self.leaves
            .language(leaf)
            .is_some_and(|(language, _)| self.nodes.languages.length_bounds(language).1 > MOST_CHARS_TO_WALK)
    }

    fn terminal_mask(&mut self, vocabulary: &Vocabulary, leaf: LeafId) -> Result<Arc<TerminalMask>, SchemaError> {
        let (languages, leaves) = (&mut self.nodes.languages, &mut self.leaves);
        let leaf = within_a_token(vocabulary, languages, leaves, leaf);
        let Some((language, _)) = leaves.language(leaf) else {
            return Ok(Arc::new(find_terminal_mask(vocabulary, languages, leaves, leaf)?));
        };
        let key = languages.fingerprint(language);
        vocabulary
            .terminal_masks
            .get(key, TerminalMask::memory_size, || find_terminal_mask(vocabulary, languages, leaves, leaf))
    }

    fn part_mask(
        &mut self,
        vocabulary: &Vocabulary,
        part: PartId,
        config: ConfigId,
    ) -> Result<Arc<PartMask>, SchemaError> {
        if let Some(known) = self.part_masks.masks.get(&(part, config)) {
            return Ok(known.clone());
        }
        let (inside, mut exits) = self.parts[part.0 as usize].mask_with_exits(vocabulary, config)?;
        exits.sort_unstable();
        exits.dedup();
        let rests = exits.iter().filter_map(|&(id, length)| {
            let bytes = vocabulary.token(id)?;
            Some((&bytes[bytes.len() - usize::from(length)..], id))
        });
        let mask = Arc::new(PartMask { rests: Trie::new(rests), inside });
        let masks = &mut self.part_masks;
        if masks.bytes > PART_MASK_BYTES {
            masks.masks.clear();
            masks.bytes = 0;
        }
        masks.bytes += mask.inside.memory_size() + mask.rests.memory_size();
        masks.masks.insert((part, config), mask.clone());
        Ok(mask)
    }
}

fn find_terminal_mask(
    vocabulary: &Vocabulary,
    languages: &mut Languages,
    leaves: &mut Leaves,
    leaf: LeafId,
) -> Result<TerminalMask, SchemaError> {
    let mut inside = vec![0u32; vocabulary.mask_words()].into_boxed_slice();
    let mut leaving = Vec::new();
    let trie = &vocabulary.trie;
    let nodes = trie.nodes();
    // For each length: the leaf, and whether some beginning so far is complete.
    let mut path = vec![(leaf, false); trie.max_depth() + 1];
    let mut i = 0;
    while let Some(node) = nodes.get(i) {
        let depth = usize::from(node.depth);
        let (before, was_complete) = path[depth - 1];
        let next = leaves.step(languages, before, node.byte)?;
        if next == LeafId::DEAD {
            if was_complete {
                let tokens = trie.tokens_under(i).iter();
                leaving.extend(tokens.filter_map(|&id| Some((vocabulary.token(id)?, id))));
            }
            i = node.end as usize;
            continue;
        }
        let complete = leaves.language(next).is_some_and(|(language, _)| languages.is_nullable(language));
        path[depth] = (next, was_complete || complete);
        trie.tokens_at(i).iter().for_each(|&id| set(&mut inside, id));
        i += 1;
    }
    Ok(TerminalMask { inside, leaving: Trie::new(leaving) })
}
