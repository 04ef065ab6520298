//! Token masks of rules.
//!
//! What a terminal says of tokens depends on its language alone ([`terminal_mask`](super::terminal_mask)): those that stay
//! within it come as a ready set, and of those that go on behind its end only the different rests are tried, on top of
//! what may follow. Where a token goes on with another terminal and many tokens begin alike, that one's ready set is
//! taken from there on. Of a JSON value the mask is that of its own machine, and only the rests of the tokens that go
//! on behind its end are tried. Everything else is a walk over a trie, along the bytes with which something can go on.
//! Nothing is interned on the way: readings live on a stack beside the path.

use super::machine::{Machine, Passing, Place};
use super::nodes::PartId;
use super::terminal_mask::Crossing;
use crate::automaton::ConfigId;
use crate::bytes::ByteSet;
use crate::leaf::LeafId;
use crate::mask::{Mask, is_set, set};
use crate::trie::Trie;
use crate::vocabulary::Vocabulary;
use hashbrown::HashMap;
use punchcard_schema::SchemaError;
use rustc_hash::FxBuildHasher;
use std::ops::Range;
use std::sync::Arc;

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
        self.bytes + self.masks.allocation_size()
    }
}

/// A node on the path of a walk: the readings there, and the children that were not visited yet.
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
    readings: Vec<Passing>,
    levels: Vec<Level>,
}

/// With fewer children it costs more to ask which bytes may come than to try them.
const FEW_CHILDREN: usize = 4;
/// With fewer nodes below, a walk costs less than looking for what is known of them.
const FEW_NODES: usize = 64;

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
        let readings = self.readings_of(config).iter().map(|&reading| Passing::from(reading)).collect();
        self.find_below(vocabulary, vocabulary.trie.root(), readings, words)
    }

    /// Finds the tokens below a node of the trie that go on from there like any of the readings.
    fn find_below(
        &mut self,
        vocabulary: &Vocabulary,
        node: usize,
        mut readings: Vec<Passing>,
        words: &mut [u32],
    ) -> Result<(), SchemaError> {
        self.open(&mut readings, 0, &ByteSet::ALL)?;
        self.join_from(0, &mut readings)?;
        let mut narrow = Vec::new();
        for reading in readings {
            match reading.place {
                Place::Leaf(leaf) if self.has_room(reading)? => {
                    if !self.find_in_terminal(vocabulary, node, leaf, reading, words)? {
                        narrow.push(reading);
                    }
                }
                Place::Json(part, at) if !reading.tokens.is_limited() && node == vocabulary.trie.root() => {
                    let mask = self.part_mask(vocabulary, part, at)?;
                    mask.inside.add_to(words);
                    self.walk_behind(vocabulary, &mask.rests, reading, words)?;
                }
                Place::Between => {}
                _ => narrow.push(reading),
            }
        }
        self.walk(vocabulary, &vocabulary.trie, node, &narrow, words)
    }

    /// The same for a reading within a terminal, by what is known of that. What may follow at the node itself is left to
    /// the caller. Within a character nothing is known: `false`.
    fn find_in_terminal(
        &mut self,
        vocabulary: &Vocabulary,
        node: usize,
        leaf: LeafId,
        reading: Passing,
        words: &mut [u32],
    ) -> Result<bool, SchemaError> {
        let Some(mask) = self.terminal_mask(vocabulary, leaf, node)? else { return Ok(false) };
        mask.inside.add_to(words);
        let live = self.live_behind(reading.rest)?;
        let behind = Passing { place: Place::Between, is_opened: false, ..reading };
        let cross = |machine: &mut Machine, crossing: &Crossing, words: &mut [u32]| {
            if !crossing.bytes.and(&live).is_empty() {
                machine.walk_behind(vocabulary, &crossing.rests, behind, words)?;
            }
            for &end in &crossing.ends {
                machine.find_below(vocabulary, end as usize, vec![behind], words)?;
            }
            Ok::<_, SchemaError>(())
        };
        cross(self, &mask.crossing, words)?;
        let early = mask.further.and(&live);
        if !early.is_empty() {
            let crossing = self.early_crossing(vocabulary, leaf, node, early)?;
            cross(self, &crossing, words)?;
        }
        Ok(true)
    }

    /// Finds the rests of tokens that may follow behind the end of what is being read.
    fn walk_behind(
        &mut self,
        vocabulary: &Vocabulary,
        rests: &Trie,
        reading: Passing,
        words: &mut [u32],
    ) -> Result<(), SchemaError> {
        let behind = Passing { place: Place::Between, is_opened: false, ..reading };
        self.walk(vocabulary, rests, rests.root(), &[behind], words)
    }

    /// Sets the bits of the strings below a node of a trie that the machine can read.
    fn walk(
        &mut self,
        vocabulary: &Vocabulary,
        trie: &Trie,
        node: usize,
        from: &[Passing],
        words: &mut [u32],
    ) -> Result<(), SchemaError> {
        if from.is_empty() || trie.children(node).is_empty() {
            return Ok(());
        }
        let mut walk = self.walks.pop().unwrap_or_default();
        let result = self.walk_with(&mut walk, vocabulary, trie, node, from, words);
        self.walks.push(walk);
        result
    }

    fn walk_with(
        &mut self,
        walk: &mut Walk,
        vocabulary: &Vocabulary,
        trie: &Trie,
        node: usize,
        from: &[Passing],
        words: &mut [u32],
    ) -> Result<(), SchemaError> {
        let Walk { readings, levels } = walk;
        readings.clear();
        readings.extend_from_slice(from);
        levels.clear();
        levels.push(self.level(trie, node, 0, readings)?);
        while let Some(level) = levels.last_mut() {
            let Some(place) = level.children.next() else {
                levels.pop();
                continue;
            };
            let byte = trie.child_byte(place);
            if !level.live.contains(byte) {
                continue;
            }
            let before = level.readings.clone();
            readings.truncate(before.end);
            for i in before.clone() {
                self.pass(readings[i], byte, readings)?;
            }
            if readings.len() == before.end {
                continue;
            }
            self.join_from(before.end, readings)?;
            let node = trie.child_node(place);
            let tokens = trie.tokens_at(node);
            let is_new = tokens.iter().any(|&id| !is_set(words, id));
            if is_new && self.may_end_token(&readings[before.end..])? {
                tokens.iter().for_each(|&id| set(words, id));
            }
            if trie.children(node).is_empty() {
                continue;
            }
            if std::ptr::eq(trie, &vocabulary.trie) && trie.nodes_below(node) >= FEW_NODES {
                let here: Vec<Passing> = readings.drain(before.end..).collect();
                let mut is_known = true;
                for &reading in &here {
                    is_known &= match reading.place {
                        Place::Leaf(_) => self.has_room(reading)?,
                        Place::Between => !reading.tokens.is_limited(),
                        Place::Json(..) => false,
                    };
                }
                if is_known {
                    self.find_below(vocabulary, node, here, words)?;
                    continue;
                }
                readings.extend(here);
            }
            levels.push(self.level(trie, node, before.end, readings)?);
        }
        Ok(())
    }

    /// A node on the path, with the readings from the `first` on.
    fn level(
        &mut self,
        trie: &Trie,
        node: usize,
        first: usize,
        readings: &mut Vec<Passing>,
    ) -> Result<Level, SchemaError> {
        let children = trie.children(node);
        let (mut wanted, mut live) = (ByteSet::default(), ByteSet::default());
        children.clone().for_each(|place| wanted.insert(trie.child_byte(place)));
        self.open(readings, first, &wanted)?;
        if children.len() <= FEW_CHILDREN {
            live = ByteSet::ALL;
        } else {
            for reading in &readings[first..] {
                self.live(reading.place, &mut live)?;
            }
        }
        Ok(Level { readings: first..readings.len(), children, live })
    }

    /// Whether a token may end with some of the readings, within its limit on tokens.
    fn may_end_token(&mut self, readings: &[Passing]) -> Result<bool, SchemaError> {
        if readings.iter().any(|reading| !reading.tokens.is_limited()) {
            return Ok(true);
        }
        for &reading in readings {
            let reading = self.settle(reading)?;
            if self.reading_after_token(reading)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
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
