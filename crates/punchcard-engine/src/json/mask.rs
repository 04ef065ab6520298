//! Token masks of JSON: which tokens may come next in a configuration.
//!
//! A mask is computed by walking the vocabulary's trie with the machine, skipping subtrees at the first dead byte. Inside of
//! strings that would visit nearly all tokens, but there most of the answer depends on the language of the string alone
//! ([`LeafMask`]): tokens that stay inside, or end with the closing quote, come as a ready bitmask. Of tokens that go on
//! behind the quote only the different rests are tried, in a trie of their own.

use super::machine::{Frame, Machine, Reading};
use crate::automaton::ConfigId;
use crate::leaf::{Encoding, LeafId};
use crate::mask::{clear, set};
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

/// Names with more characters than this are no list of names.
const MOST_CHARS_OF_NAMES: u32 = 1000;

/// Tokens that go on behind the end of the whole value: the token, and how many of its bytes are left there.
pub(crate) type Exits = Vec<(u32, u16)>;

/// What is found out of tokens: a row of the mask, and exits if they are wanted.
struct Found<'a> {
    words: &'a mut [u32],
    exits: Option<&'a mut Exits>,
}

impl Found<'_> {
    fn allow(&mut self, ids: &[u32]) {
        ids.iter().for_each(|&id| set(self.words, id));
    }

    fn allow_all(&mut self, mask: &[u32]) {
        mask.iter().zip(self.words.iter_mut()).for_each(|(from, to)| *to |= from);
    }

    /// The value may end at a node of the trie (`None`: before the first byte): all tokens below it go on from there.
    fn ends_at(&mut self, trie: &Trie, node: Option<usize>) {
        let Some(exits) = &mut self.exits else { return };
        let nodes = trie.nodes();
        let (first, end, depth) = match node {
            Some(node) => (node + 1, nodes[node].end as usize, nodes[node].depth),
            None => (0, nodes.len(), 0),
        };
        for (below, node) in nodes.iter().enumerate().take(end).skip(first) {
            exits.extend(trie.tokens_at(below).iter().map(|&id| (id, node.depth - depth)));
        }
    }
}

impl Machine {
    /// Sets the bits of all text tokens that may come next; `words` must be zero.
    pub fn fill_mask(
        &mut self,
        vocabulary: &Vocabulary,
        config: ConfigId,
        words: &mut [u32],
    ) -> Result<(), SchemaError> {
        self.find_tokens(vocabulary, config, &mut Found { words, exits: None })
    }

    /// The same, and the tokens that go on behind the end of the value.
    pub(crate) fn fill_mask_with_exits(
        &mut self,
        vocabulary: &Vocabulary,
        config: ConfigId,
        words: &mut [u32],
        exits: &mut Exits,
    ) -> Result<(), SchemaError> {
        self.find_tokens(vocabulary, config, &mut Found { words, exits: Some(exits) })
    }

    fn find_tokens(
        &mut self,
        vocabulary: &Vocabulary,
        config: ConfigId,
        found: &mut Found<'_>,
    ) -> Result<(), SchemaError> {
        let mut others = Vec::new();
        for i in 0..self.readings_of(config).len() {
            let reading = self.readings_of(config)[i];
            match self.frame(reading.stack) {
                Frame::Text { leaf } if self.leaves.language(leaf).is_some() => {
                    let mask = self.text_mask(vocabulary, leaf)?;
                    found.allow_all(&mask.inside);
                    if reading.is_noted() {
                        let from = self.config(&mut vec![reading]);
                        self.walk(&mask.crossing, from, found)?;
                    } else {
                        let after = self.config(&mut vec![reading.behind(self.parent(reading.stack))]);
                        self.walk_rests(&mask.rests, after, found)?;
                    }
                }
                Frame::Key { leaf, .. } if self.is_wide(leaf) => self.key_mask(vocabulary, reading, leaf, found)?,
                _ => others.push(reading),
            }
        }
        if !others.is_empty() {
            let others = self.config(&mut others);
            self.walk(&vocabulary.trie, others, found)?;
        }
        Ok(())
    }

    /// Finds the rests of tokens in the trie that the machine can read.
    fn walk_rests(&mut self, trie: &Trie, from: ConfigId, found: &mut Found<'_>) -> Result<(), SchemaError> {
        if self.is_accepting(from) {
            found.ends_at(trie, None);
        }
        self.walk(trie, from, found)
    }

    /// Finds the strings in the trie that the machine can read.
    fn walk(&mut self, trie: &Trie, from: ConfigId, found: &mut Found<'_>) -> Result<(), SchemaError> {
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
            found.allow(trie.tokens_at(i));
            if found.exits.is_some() && self.is_accepting(next) {
                found.ends_at(trie, Some(i));
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
        found: &mut Found<'_>,
    ) -> Result<(), SchemaError> {
        let mask = if self.leads_anywhere(leaf) {
            self.exceptions_mask(vocabulary, leaf, found)?
        } else {
            let mask = self.text_mask(vocabulary, leaf)?;
            found.allow_all(&mask.inside);
            mask
        };
        self.refuse_seen_names(vocabulary, reading, found.words)?;
        let config = self.config(&mut vec![reading]);
        if reading.is_noted() {
            return self.walk(&mask.crossing, config, found);
        }
        match self.after_any_name(reading)? {
            Some(after) => self.walk_rests(&mask.near_rests, after, found)?,
            None => self.walk_names(&mask.crossing_near, reading, found)?,
        }
        // A further name in the same token must differ from this one.
        self.walk(&mask.crossing_far, config, found)
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
    fn walk_names(&mut self, trie: &Trie, reading: Reading, found: &mut Found<'_>) -> Result<(), SchemaError> {
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
            if let Err(config) = next {
                found.allow(trie.tokens_at(i));
                if found.exits.is_some() && self.is_accepting(config) {
                    found.ends_at(trie, Some(i));
                }
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
        found: &mut Found<'_>,
    ) -> Result<Arc<LeafMask>, SchemaError> {
        let encoding = self.leaves.language(leaf).map_or(Encoding::Minimal, |(_, encoding)| encoding);
        let anything = self.leaves.start(Language::ALL, encoding);
        let base = self.text_mask(vocabulary, anything)?;
        if leaf == anything {
            found.allow_all(&base.inside);
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
        found.allow_all(&own);
        Ok(base)
    }

    fn text_mask(&mut self, vocabulary: &Vocabulary, leaf: LeafId) -> Result<Arc<LeafMask>, SchemaError> {
        let Some((language, encoding)) = self.leaves.language(leaf) else {
            return self.compute_text_mask(vocabulary, leaf).map(Arc::new);
        };
        let (language, leaf) = self.within_a_token(vocabulary, language, leaf, encoding);
        let key = self.algebra.languages.fingerprint(language).wrapping_mul(3).wrapping_add(encoding as u64);
        vocabulary.leaf_masks.get(key, || self.compute_text_mask(vocabulary, leaf))
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
