//! A model's vocabulary: the bytes of each token, as a trie, and which ids are special.

use crate::bytes::ByteSet;
use crate::json::leaf_mask::{LeafMask, RunMask};
use crate::kinds::KindTrie;
use crate::rules::terminal_mask::{Crossing, TerminalKey, TerminalMask};
use crate::trie::Trie;
use hashbrown::HashMap;
use punchcard_automata::CharSet;
use rustc_hash::FxBuildHasher;
use std::convert::Infallible;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

/// Why a vocabulary was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VocabularyError(pub String);

impl std::fmt::Display for VocabularyError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for VocabularyError {}

/// The bytes of each token, in one piece: a token costs its bytes and four more.
#[derive(Clone, Debug)]
pub struct Tokens {
    bytes: Vec<u8>,
    /// Where each token begins, and behind them the end of the last one: never empty.
    starts: Vec<u32>,
}

impl Default for Tokens {
    fn default() -> Self {
        Tokens { bytes: Vec::new(), starts: vec![0] }
    }
}

impl Tokens {
    /// No tokens yet, with room for so many.
    pub fn with_capacity(tokens: usize) -> Tokens {
        let mut starts = Vec::with_capacity(tokens + 1);
        starts.push(0);
        // Tokens of most models are six to seven bytes long.
        Tokens { bytes: Vec::with_capacity(7 * tokens), starts }
    }

    /// Adds the token of the next id. An error beyond 4 GB.
    pub fn push(&mut self, token: &[u8]) -> Result<(), VocabularyError> {
        let end = u32::try_from(self.bytes.len() + token.len());
        let end = end.map_err(|_| VocabularyError("the tokens are longer than 4 GB together".into()))?;
        self.bytes.extend_from_slice(token);
        self.starts.push(end);
        Ok(())
    }

    /// How many tokens there are.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of a token; `None` beyond the last.
    pub fn get(&self, id: u32) -> Option<&[u8]> {
        let start = *self.starts.get(id as usize)?;
        let end = *self.starts.get(id as usize + 1)?;
        Some(&self.bytes[start as usize..end as usize])
    }

    /// The tokens in order of id.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.starts.windows(2).map(|ends| &self.bytes[ends[0] as usize..ends[1] as usize])
    }
}

/// The tokens of a model. Immutable, and shared by all grammars that are compiled for it.
#[derive(Debug)]
pub struct Vocabulary {
    tokens: Tokens,
    size: usize,
    eos: Box<[u32]>,
    special: Box<[u32]>,
    pub(crate) trie: Trie,
    /// The tokens below some nodes of the trie, by kinds of characters.
    kinds: Shared<usize, KindTrie>,
    /// The tokens below some nodes of the trie that close a string of JSON.
    closing: Shared<usize, Trie>,
    alphabet: Option<CharSet>,
    /// Masks inside strings and numbers depend on their language alone, so they are shared by all grammars. The key is a
    /// structural hash of the language, how it is written, and the node of the trie where the value begins.
    pub(crate) leaf_masks: Shared<(u64, u8, u32), LeafMask>,
    /// The same for strings of which only the length is bounded.
    pub(crate) run_masks: Shared<(u64, u8, u32), RunMask>,
    /// The same for terminals of grammars.
    pub(crate) terminal_masks: Shared<TerminalKey, TerminalMask>,
    /// Tokens that leave a terminal where it could go on, by the bytes that they go on with.
    pub(crate) early_crossings: Shared<(TerminalKey, ByteSet), Crossing>,
}

impl Vocabulary {
    /// `tokens[id]` are the bytes of a token; empty ones are never allowed. `special` and `eos` ids never match as text.
    /// `size` is the width of the logits, at least the number of tokens.
    pub fn new(
        tokens: Vec<Box<[u8]>>,
        eos: &[u32],
        special: &[u32],
        size: Option<usize>,
    ) -> Result<Vocabulary, VocabularyError> {
        let mut table = Tokens::with_capacity(tokens.len());
        for token in &tokens {
            table.push(token)?;
        }
        Vocabulary::from_tokens(table, eos, special, size)
    }

    /// The same of tokens that are in one piece already.
    pub fn from_tokens(
        mut tokens: Tokens,
        eos: &[u32],
        special: &[u32],
        size: Option<usize>,
    ) -> Result<Vocabulary, VocabularyError> {
        tokens.bytes.shrink_to_fit();
        tokens.starts.shrink_to_fit();
        let size = size.unwrap_or(tokens.len());
        if size < tokens.len() {
            return Err(VocabularyError(format!("vocab_size is {size}, but there are {} tokens", tokens.len())));
        }
        if size > 1 << 24 {
            return Err(VocabularyError(format!("vocab_size is {size}; at most {} is possible", 1 << 24)));
        }
        if eos.is_empty() {
            return Err(VocabularyError("there is no end-of-sequence token".into()));
        }
        for &id in eos.iter().chain(special) {
            if id as usize >= size {
                return Err(VocabularyError(format!("the special token id {id} is not below vocab_size, {size}")));
            }
        }
        let sorted = |ids: &[u32]| -> Box<[u32]> {
            let mut ids = ids.to_vec();
            ids.sort_unstable();
            ids.dedup();
            ids.into()
        };
        let (eos, special) = (sorted(eos), sorted(special));
        let mut is_text = vec![true; tokens.len()];
        for &id in eos.iter().chain(&special) {
            if let Some(flag) = is_text.get_mut(id as usize) {
                *flag = false;
            }
        }
        let texts = tokens.iter().enumerate().filter(|(id, _)| is_text[*id]);
        let trie = Trie::new(texts.map(|(id, bytes)| (bytes, id as u32)));
        let alphabet = alphabet(&trie);
        let vocabulary = Vocabulary {
            tokens,
            size,
            eos,
            special,
            trie,
            alphabet,
            kinds: Shared::default(),
            closing: Shared::default(),
            leaf_masks: Shared::default(),
            run_masks: Shared::default(),
            terminal_masks: Shared::default(),
            early_crossings: Shared::default(),
        };
        // Nearly every grammar asks for it.
        vocabulary.kinds_below(vocabulary.trie.root());
        Ok(vocabulary)
    }

    /// The tokens below a node of the trie, by kinds of characters.
    pub(crate) fn kinds_below(&self, node: usize) -> Arc<KindTrie> {
        let build = || Ok::<_, Infallible>(KindTrie::new(&self.trie, node, self.mask_words()));
        let Ok(kinds) = self.kinds.get(node, KindTrie::memory_size, build);
        kinds
    }

    /// What is left of the tokens below a node of the trie, of those in which a string of JSON ends that is being read at
    /// the node.
    pub(crate) fn closing_below(&self, node: usize) -> Arc<Trie> {
        let depth = self.trie.depth(node);
        let rest = |&id: &u32| Some((&self.token(id)?[depth..], id));
        let tokens = self.trie.tokens_below(node).iter();
        let build = || Ok::<_, Infallible>(Trie::new(tokens.filter_map(rest).filter(|(rest, _)| closes(rest))));
        let Ok(closing) = self.closing.get(node, Trie::memory_size, build);
        closing
    }

    /// The width of the logits and of the bitmask, in tokens.
    pub fn size(&self) -> usize {
        self.size
    }

    /// 32-bit words in a row of the bitmask.
    pub fn mask_words(&self) -> usize {
        self.size.div_ceil(32)
    }

    /// The ids that end a text, sorted.
    pub fn eos(&self) -> &[u32] {
        &self.eos
    }

    /// The characters that the tokens can spell wherever they stand; `None` for all. A character beyond ASCII needs a
    /// token for each of its bytes, or one of its own; else a text could come to a point where it is the only way on, and
    /// no token spells it.
    pub fn alphabet(&self) -> Option<CharSet> {
        self.alphabet.clone()
    }

    /// Further ids that never match as text, sorted.
    pub fn special(&self) -> &[u32] {
        &self.special
    }

    /// The bytes of a token, also of a special one; `None` beyond the tokens.
    pub fn token(&self, id: u32) -> Option<&[u8]> {
        self.tokens.get(id)
    }

    /// The bytes of a token that can stand for text: not empty, not special.
    pub fn text_token(&self, id: u32) -> Option<&[u8]> {
        let bytes = self.token(id)?;
        let special = self.eos.binary_search(&id).is_ok() || self.special.binary_search(&id).is_ok();
        (!special && !bytes.is_empty() && bytes.len() <= usize::from(u16::MAX)).then_some(bytes)
    }
}

impl Vocabulary {
    /// The tokens that are a beginning of `bytes`, as (length, id), the shortest first; and whether there is a longer token
    /// that begins with all of `bytes`.
    pub(crate) fn beginnings(&self, bytes: &[u8]) -> (Vec<(usize, u32)>, bool) {
        let (ways, longer) = self.walk(bytes);
        let first = |(length, node)| self.trie.tokens_at(node).first().map(|&id| (length, id));
        (ways.into_iter().filter_map(first).collect(), longer)
    }

    /// The bytes of the longest token that is text.
    pub(crate) fn longest_token(&self) -> usize {
        self.trie.max_depth()
    }

    /// The nodes of the trie along `bytes`, as (length, node); and whether there is a longer token.
    fn walk(&self, bytes: &[u8]) -> (Vec<(usize, usize)>, bool) {
        let nodes = self.trie.nodes();
        let (mut at, mut end, mut out) = (0, nodes.len(), Vec::new());
        for (i, &byte) in bytes.iter().enumerate() {
            while at < end && nodes[at].byte != byte {
                at = nodes[at].end as usize;
            }
            if at >= end {
                return (out, false);
            }
            out.push((i + 1, at));
            (at, end) = (at + 1, nodes[at].end as usize);
        }
        (out, at < end)
    }

    /// All tokens that are a beginning of `bytes`.
    pub(crate) fn tokens_along(&self, bytes: &[u8]) -> Vec<u32> {
        self.walk(bytes).0.into_iter().flat_map(|(_, node)| self.trie.tokens_at(node)).copied().collect()
    }

    /// The fewest tokens that spell the bytes; `None` if no tokens do.
    pub fn fewest_tokens(&self, bytes: &[u8]) -> Option<Vec<u32>> {
        // From each place on: how many tokens are needed, and the first of them.
        let mut best: Vec<Option<(u32, usize, u32)>> = vec![None; bytes.len() + 1];
        best[bytes.len()] = Some((0, 0, 0));
        let longest = self.trie.max_depth();
        for start in (0..bytes.len()).rev() {
            let reach = bytes.len().min(start + longest);
            let ways = self.beginnings(&bytes[start..reach]).0.into_iter();
            let ways = ways.filter_map(|(length, id)| best[start + length].map(|(count, ..)| (count + 1, length, id)));
            best[start] = ways.min_by_key(|&(count, length, _)| (count, usize::MAX - length));
        }
        let (mut at, mut out) = (0, Vec::new());
        while at < bytes.len() {
            let (_, length, id) = best[at]?;
            out.push(id);
            at += length;
        }
        Some(out)
    }

    /// The longest token at each place, as far as no longer one could begin there that goes beyond the bytes.
    pub fn settled_tokens(&self, bytes: &[u8]) -> Vec<u32> {
        let (mut at, mut out) = (0, Vec::new());
        while at < bytes.len() {
            let (ways, longer) = self.beginnings(&bytes[at..]);
            let Some(&(length, id)) = ways.last() else { break };
            if longer {
                break;
            }
            out.push(id);
            at += length;
        }
        out
    }
}

/// Masks that all grammars of a vocabulary share, by key.
#[derive(Debug)]
pub(crate) struct Shared<K, M>(Mutex<Masks<K, M>>);

#[derive(Debug)]
struct Masks<K, M> {
    by_key: HashMap<K, Arc<M>, FxBuildHasher>,
    bytes: usize,
}

/// Most bytes of masks of one kind that a vocabulary keeps.
const SHARED_BYTES: usize = 16 << 20;

impl<K, M> Default for Shared<K, M> {
    fn default() -> Self {
        Shared(Mutex::new(Masks { by_key: HashMap::default(), bytes: 0 }))
    }
}

impl<K: Copy + Eq + Hash, M> Shared<K, M> {
    /// The mask under a key, built if it is not there yet.
    pub(crate) fn get<E>(
        &self,
        key: K,
        memory_size: impl FnOnce(&M) -> usize,
        build: impl FnOnce() -> Result<M, E>,
    ) -> Result<Arc<M>, E> {
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mask) = lock().by_key.get(&key) {
            return Ok(mask.clone());
        }
        let mask = Arc::new(build()?);
        let bytes = memory_size(&mask) + size_of::<(K, M)>();
        let masks = &mut *lock();
        if masks.bytes + bytes > SHARED_BYTES {
            masks.by_key.clear();
            masks.bytes = 0;
        }
        masks.bytes += bytes;
        masks.by_key.insert(key, mask.clone());
        Ok(mask)
    }
}

/// Whether the bytes hold a quote that is not escaped.
fn closes(bytes: &[u8]) -> bool {
    let mut escaped = false;
    bytes.iter().any(|&byte| {
        let closes = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        closes
    })
}

fn alphabet(trie: &Trie) -> Option<CharSet> {
    let nodes = trie.nodes();
    let mut bytes = [false; 256];
    let mut at = 0;
    while let Some(node) = nodes.get(at) {
        bytes[usize::from(node.byte)] = !trie.tokens_at(at).is_empty();
        at = node.end as usize;
    }
    // Nearly every vocabulary has all bytes, and is done here.
    if (0x80..0xC0).chain(0xC2..0xF5).all(|byte: usize| bytes[byte]) {
        return None;
    }
    let mut whole = Vec::new();
    let mut text = Vec::new();
    for (i, node) in nodes.iter().enumerate() {
        text.truncate(usize::from(node.depth) - 1);
        text.push(node.byte);
        if text.len() <= 4
            && !trie.tokens_at(i).is_empty()
            && let Ok(text) = std::str::from_utf8(&text)
            && text.chars().count() == 1
        {
            whole.extend(text.chars().map(|c| (c as u32, c as u32)));
        }
    }
    let spelled = |c: char| c.encode_utf8(&mut [0; 4]).bytes().all(|byte| bytes[usize::from(byte)]);
    let mut ranges = vec![(0, 0x7F)];
    for c in ('\u{80}'..=char::MAX).filter(|&c| spelled(c)) {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == c as u32 => *last = c as u32,
            _ => ranges.push((c as u32, c as u32)),
        }
    }
    Some(CharSet::new(ranges.into_iter().chain(whole)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_no_tokens_spell_are_not_in_the_alphabet() {
        let bytes = |skip: &[u8]| -> Vec<Box<[u8]>> {
            (0..=255u8).filter(|b| !skip.contains(b)).map(|b| [b].into()).chain([[].into()]).collect()
        };
        let vocabulary = |tokens: Vec<Box<[u8]>>| {
            let end = tokens.len() as u32 - 1;
            Vocabulary::new(tokens, &[end], &[], None).unwrap()
        };
        assert_eq!(vocabulary(bytes(&[0xC0, 0xFF])).alphabet(), None);
        let mut tokens = bytes(&[0xF1]);
        tokens.insert(0, "\u{40001}".as_bytes().into());
        let alphabet = vocabulary(tokens).alphabet().unwrap();
        for (c, is_in) in [('a', true), ('é', true), ('😀', true), ('\u{40000}', false), ('\u{40001}', true)] {
            assert_eq!(alphabet.contains(c as u32), is_in, "{c:?}");
        }
    }
    #[test]
    fn tokens_are_kept_by_id() {
        let all: [&[u8]; 4] = [b"ab", b"", b"c", b"</s>"];
        let mut tokens = Tokens::default();
        assert!(tokens.is_empty());
        all.iter().for_each(|token| tokens.push(token).unwrap());
        assert_eq!(tokens.len(), 4);
        assert!(tokens.iter().eq(all));
        let vocabulary = Vocabulary::from_tokens(tokens, &[3], &[], Some(6)).unwrap();
        let found: Vec<Option<&[u8]>> = (0..6).map(|id| vocabulary.token(id)).collect();
        assert_eq!(found, [Some(all[0]), Some(all[1]), Some(all[2]), Some(all[3]), None, None]);
        let found: Vec<Option<&[u8]>> = (0..6).map(|id| vocabulary.text_token(id)).collect();
        assert_eq!(found, [Some(all[0]), None, Some(all[2]), None, None, None]);
    }
}
