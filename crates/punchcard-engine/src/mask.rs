//! Token masks: which tokens may come next in a configuration.
//!
//! A mask is computed by walking the vocabulary's trie with the machine, skipping subtrees at the first dead byte. Inside of
//! strings that would visit nearly all tokens, but there most of the answer depends on the language of the string alone
//! ([`LeafMask`]): tokens that stay inside, or end with the closing quote, come as a ready bitmask. Of tokens that go on
//! behind the quote only the different rests are tried, in a trie of their own.

use crate::leaf::{Encoding, LeafId};
use crate::machine::{ConfigId, Frame, Machine, Reading};
use crate::trie::Trie;
use crate::vocabulary::Vocabulary;
use punchcard_automata::Language;
use punchcard_automata::languages::UNBOUNDED;
use punchcard_schema::SchemaError;
use std::sync::Arc;

/// What a language of strings says of all tokens, whatever stands around the string.
#[derive(Debug)]
pub struct LeafMask {
    /// Tokens that stay inside the string or end with its closing quote.
    inside: Box<[u32]>,
    /// What is left, behind the closing quote, of the tokens that go on.
    rests: Trie,
    /// The same tokens in full, for strings whose text matters to what follows.
    crossing: Trie,
    /// Those of them that may hold another name of the same object, all others, and the rests of all others.
    crossing_far: Trie,
    crossing_near: Trie,
    near_rests: Trie,
}

/// A finished mask, in the form that is cheaper to keep.
#[derive(Clone, Debug)]
pub(crate) enum Mask {
    Few(Arc<[u32]>),
    Dense(Arc<[u32]>),
}

/// Names with more characters than this are no list of names.
const MOST_CHARS_OF_NAMES: u32 = 1000;

pub(crate) fn set(words: &mut [u32], id: u32) {
    words[id as usize / 32] |= 1 << (id % 32);
}

fn clear(words: &mut [u32], id: u32) {
    words[id as usize / 32] &= !(1 << (id % 32));
}

impl Machine {
    /// Sets the bits of all text tokens that may come next; `words` must be zero.
    pub fn fill_mask(
        &mut self,
        vocabulary: &Vocabulary,
        config: ConfigId,
        words: &mut [u32],
    ) -> Result<(), SchemaError> {
        let mut others = Vec::new();
        for i in 0..self.readings_of(config).len() {
            let reading = self.readings_of(config)[i];
            match self.frame(reading.stack) {
                Frame::Text { leaf } if self.leaves.language(leaf).is_some() => {
                    let mask = self.text_mask(vocabulary, leaf)?;
                    mask.inside.iter().zip(words.iter_mut()).for_each(|(from, to)| *to |= from);
                    if reading.is_noted() {
                        let from = self.config(&mut vec![reading]);
                        self.walk(&mask.crossing, from, words)?;
                    } else {
                        let after = self.config(&mut vec![reading.behind(self.parent(reading.stack))]);
                        self.walk(&mask.rests, after, words)?;
                    }
                }
                Frame::Scalar { leaf } if self.is_last(reading) && self.is_wide(leaf) => {
                    let mask = self.text_mask(vocabulary, leaf)?;
                    mask.inside.iter().zip(words.iter_mut()).for_each(|(from, to)| *to |= from);
                }
                Frame::Key { leaf, .. } if self.is_wide(leaf) => self.key_mask(vocabulary, reading, leaf, words)?,
                _ => others.push(reading),
            }
        }
        if !others.is_empty() {
            let others = self.config(&mut others);
            self.walk(&vocabulary.trie, others, words)?;
        }
        Ok(())
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
            for &id in trie.tokens_at(i) {
                set(words, id);
            }
            i += 1;
        }
        Ok(())
    }

    /// Whether some character leads to the language of all texts: then nearly all tokens are allowed, and exceptions are
    /// sought instead.
    fn leads_anywhere(&mut self, leaf: LeafId) -> bool {
        match self.leaves.language(leaf) {
            Some((language, _)) => self.algebra.languages.transitions(language).targets().contains(&Language::ALL),
            None => false,
        }
    }

    /// Whether a language is so wide that a walk over the whole vocabulary would meet most tokens.
    fn is_wide(&mut self, leaf: LeafId) -> bool {
        match self.leaves.language(leaf) {
            Some((language, _)) => self.algebra.languages.length_bounds(language).1 > MOST_CHARS_OF_NAMES,
            None => false,
        }
    }

    /// In a member name. Tokens that stay inside of it depend on the language of the names alone; what may stand behind
    /// it depends on the name, unless all names that can still come of it are treated alike.
    fn key_mask(
        &mut self,
        vocabulary: &Vocabulary,
        reading: Reading,
        leaf: LeafId,
        words: &mut [u32],
    ) -> Result<(), SchemaError> {
        let mask = if self.leads_anywhere(leaf) {
            self.exceptions_mask(vocabulary, leaf, words)?
        } else {
            let mask = self.text_mask(vocabulary, leaf)?;
            mask.inside.iter().zip(words.iter_mut()).for_each(|(from, to)| *to |= from);
            mask
        };
        self.refuse_seen_names(vocabulary, reading, words)?;
        let config = self.config(&mut vec![reading]);
        if reading.is_noted() {
            return self.walk(&mask.crossing, config, words);
        }
        match self.after_any_name(reading)? {
            Some(after) => self.walk(&mask.near_rests, after, words)?,
            None => self.walk_names(&mask.crossing_near, reading, words)?,
        }
        // A further name in the same token must differ from this one.
        self.walk(&mask.crossing_far, config, words)
    }

    /// Clears the bits of tokens that end a member name which the object already has.
    fn refuse_seen_names(
        &mut self,
        vocabulary: &Vocabulary,
        reading: Reading,
        words: &mut [u32],
    ) -> Result<(), SchemaError> {
        let Frame::Key { state, leaf, typed } = self.frame(reading.stack) else { return Ok(()) };
        let Some((_, encoding)) = self.leaves.language(leaf) else { return Ok(()) };
        let typed = self.typed_name(typed);
        let seen = self.algebra.seen_names(state, &typed);
        if seen.is_empty() {
            return Ok(());
        }
        let rests: Vec<String> = seen.into_iter().map(|name| name[typed.len()..].to_string()).collect();
        let rests = self.algebra.languages.texts(rests.iter().map(String::as_str));
        let leaf = self.leaves.start(rests, encoding);
        let trie = &vocabulary.trie;
        let mut path = vec![leaf; trie.max_depth() + 1];
        let mut i = 0;
        while let Some(node) = trie.nodes().get(i) {
            let depth = usize::from(node.depth);
            let next = self.leaves.step(&mut self.algebra.languages, path[depth - 1], node.byte)?;
            path[depth] = next;
            if next == LeafId::CLOSED {
                trie.tokens_at(i).iter().for_each(|&id| clear(words, id));
            }
            i = if next == LeafId::DEAD || next == LeafId::CLOSED { node.end as usize } else { i + 1 };
        }
        Ok(())
    }

    /// Sets the bits of the strings in the trie that complete the member name being read and can go on behind it. They
    /// hold no further name, so that names need not be told apart within a class.
    fn walk_names(&mut self, trie: &Trie, reading: Reading, words: &mut [u32]) -> Result<(), SchemaError> {
        let Frame::Key { state, leaf, typed } = self.frame(reading.stack) else { return Ok(()) };
        let parent = self.parent(reading.stack);
        let beginning = self.typed_name(typed);
        let nodes = trie.nodes();
        // In the name: the leaf, and how long the name is. Behind it: the configuration.
        let mut path = vec![Ok((leaf, beginning.len())); trie.max_depth() + 1];
        let mut name = beginning;
        let mut i = 0;
        while let Some(node) = nodes.get(i) {
            let depth = usize::from(node.depth);
            let next = match path[depth - 1] {
                Ok((leaf, length)) => {
                    name.truncate(length);
                    match self.leaves.step(&mut self.algebra.languages, leaf, node.byte)? {
                        LeafId::DEAD => Err(ConfigId::DEAD),
                        LeafId::CLOSED => Err(self.after_name(state, &name, parent)?),
                        next => {
                            name.extend(self.leaves.completed(leaf, node.byte).and_then(char::from_u32));
                            Ok((next, name.len()))
                        }
                    }
                }
                Err(config) => Err(self.step(config, node.byte)?),
            };
            if next == Err(ConfigId::DEAD) {
                i = node.end as usize;
                continue;
            }
            path[depth] = next;
            if next.is_err() {
                trie.tokens_at(i).iter().for_each(|&id| set(words, id));
            }
            i += 1;
        }
        Ok(())
    }

    /// A language that is left for that of all texts wherever the text leaves a few paths: the mask is that of any string,
    /// but for the tokens along those paths. Returns the mask of any string.
    fn exceptions_mask(
        &mut self,
        vocabulary: &Vocabulary,
        leaf: LeafId,
        words: &mut [u32],
    ) -> Result<Arc<LeafMask>, SchemaError> {
        let encoding = self.leaves.language(leaf).map_or(Encoding::Minimal, |(_, encoding)| encoding);
        let anything = self.leaves.start(Language::ALL, encoding);
        let base = self.text_mask(vocabulary, anything)?;
        if leaf == anything {
            base.inside.iter().zip(words.iter_mut()).for_each(|(from, to)| *to |= from);
            return Ok(base);
        }
        let mut own: Box<[u32]> = base.inside.clone();
        let trie = &vocabulary.trie;
        let nodes = trie.nodes();
        let mut path = vec![leaf; trie.max_depth() + 1];
        let mut i = 0;
        while let Some(node) = nodes.get(i) {
            let depth = usize::from(node.depth);
            let next = self.leaves.step(&mut self.algebra.languages, path[depth - 1], node.byte)?;
            if next == anything {
                i = node.end as usize;
                continue;
            }
            path[depth] = next;
            if next == LeafId::DEAD || next == LeafId::CLOSED {
                trie.tokens_under(i).iter().for_each(|&id| clear(&mut own, id));
                if next == LeafId::CLOSED {
                    trie.tokens_at(i).iter().for_each(|&id| set(&mut own, id));
                }
                i = node.end as usize;
                continue;
            }
            for &id in trie.tokens_at(i) {
                set(&mut own, id);
            }
            i += 1;
        }
        own.iter().zip(words.iter_mut()).for_each(|(from, to)| *to |= from);
        Ok(base)
    }

    fn text_mask(&mut self, vocabulary: &Vocabulary, leaf: LeafId) -> Result<Arc<LeafMask>, SchemaError> {
        let Some((language, encoding)) = self.leaves.language(leaf) else {
            return self.compute_text_mask(vocabulary, leaf).map(Arc::new);
        };
        let (language, leaf) = self.within_a_token(vocabulary, language, leaf, encoding);
        let key = self.algebra.languages.fingerprint(language).wrapping_mul(3).wrapping_add(encoding as u64);
        vocabulary.leaf_mask(key, || self.compute_text_mask(vocabulary, leaf))
    }

    /// A run of characters whose bounds lie farther away than any token reaches is, to one token, a run without bounds.
    fn within_a_token(
        &mut self,
        vocabulary: &Vocabulary,
        language: Language,
        leaf: LeafId,
        encoding: Encoding,
    ) -> (Language, LeafId) {
        let longest = vocabulary.trie.max_depth() as u32 + 1;
        let Some((set, min, max)) = self.algebra.languages.as_run(language) else { return (language, leaf) };
        if min <= longest && (max <= longest || max == UNBOUNDED) {
            return (language, leaf);
        }
        let set = set.clone();
        let set = self.algebra.languages.set(set);
        let max = if max > longest { UNBOUNDED } else { max };
        let language = self.algebra.languages.repeat(set, min.min(longest), max);
        (language, self.leaves.start(language, encoding))
    }

    fn compute_text_mask(&mut self, vocabulary: &Vocabulary, leaf: LeafId) -> Result<LeafMask, SchemaError> {
        let mut inside = vec![0u32; vocabulary.mask_words()].into_boxed_slice();
        let mut rests: Vec<(&[u8], u32)> = Vec::new();
        let mut crossing = Vec::new();
        let trie = &vocabulary.trie;
        let nodes = trie.nodes();
        let mut path = vec![leaf; trie.max_depth() + 1];
        let mut i = 0;
        while let Some(node) = nodes.get(i) {
            let depth = usize::from(node.depth);
            let next = self.leaves.step(&mut self.algebra.languages, path[depth - 1], node.byte)?;
            if next == LeafId::DEAD {
                i = node.end as usize;
                continue;
            }
            path[depth] = next;
            for &id in trie.tokens_at(i) {
                set(&mut inside, id);
            }
            if next == LeafId::CLOSED {
                for &id in &trie.tokens_under(i)[trie.tokens_at(i).len()..] {
                    if let Some(bytes) = vocabulary.token(id) {
                        rests.push((&bytes[depth..], id));
                        crossing.push((bytes, id));
                    }
                }
                i = node.end as usize;
                continue;
            }
            i += 1;
        }
        let pairs = || rests.iter().zip(&crossing);
        let near: Vec<_> = pairs().filter(|(rest, _)| !has_further_name(rest.0)).collect();
        let far = pairs().filter(|(rest, _)| has_further_name(rest.0)).map(|(_, token)| *token);
        let crossing_far = Trie::new(far);
        Ok(LeafMask {
            near_rests: Trie::new(near.iter().map(|(rest, _)| **rest)),
            crossing_near: Trie::new(near.iter().map(|(_, token)| **token)),
            inside,
            rests: Trie::new(rests),
            crossing: Trie::new(crossing),
            crossing_far,
        })
    }
}

/// Whether what follows the closing quote of a name may hold another whole name of the same object: a comma, and then a
/// string that is closed.
fn has_further_name(rest: &[u8]) -> bool {
    rest.iter().enumerate().filter(|&(_, &byte)| byte == b',').any(|(comma, _)| {
        let behind = rest[comma + 1..].trim_ascii_start();
        behind.first() == Some(&b'"') && behind[1..].contains(&b'"')
    })
}

impl Mask {
    /// Keeps a finished row.
    pub(crate) fn of(words: &[u32]) -> Mask {
        const FEW: usize = 512;
        let count: usize = words.iter().map(|w| w.count_ones() as usize).sum();
        if count > FEW {
            return Mask::Dense(words.into());
        }
        let mut ids = Vec::with_capacity(count);
        for (i, &word) in words.iter().enumerate() {
            let mut rest = word;
            while rest != 0 {
                ids.push(i as u32 * 32 + rest.trailing_zeros());
                rest &= rest - 1;
            }
        }
        Mask::Few(ids.into())
    }

    /// Writes it over a row.
    pub(crate) fn write(&self, words: &mut [u32]) {
        match self {
            Mask::Few(ids) => {
                words.fill(0);
                ids.iter().for_each(|&id| set(words, id));
            }
            Mask::Dense(row) => words.copy_from_slice(row),
        }
    }

    pub(crate) fn memory_size(&self) -> usize {
        match self {
            Mask::Few(row) | Mask::Dense(row) => 4 * row.len() + 32,
        }
    }
}
