//! What is said of tokens by the language of a string or number alone.

use super::machine::Machine;
use crate::kinds::{self, Crossing, Spelled};
use crate::leaf::{Encoding, LeafId, Leaves, within_a_token};
use crate::leaf_walk::visit;
use crate::mask::{Mask, clear, set};
use crate::trie::Trie;
use crate::vocabulary::Vocabulary;
use punchcard_automata::languages::UNBOUNDED;
use punchcard_automata::{Languages, LimitExceeded};
use punchcard_schema::SchemaError;
use std::sync::{Arc, OnceLock};

/// What the language of a string or number says of the tokens that have a node of the trie on their path, from there on,
/// whatever stands around the value.
#[derive(Debug)]
pub struct LeafMask {
    /// Tokens that stay inside or end with the value.
    pub(super) inside: Mask,
    /// What is left, behind the end of the value, of the tokens that go on.
    pub(super) rests: Arc<Trie>,
    /// What is left, behind the node, of those of them that hold another whole string behind the end of this one, as items of
    /// an array and as names of an object.
    pub(super) far: Arc<Trie>,
    pub(super) far_names: Arc<Trie>,
    /// What is left, behind the node, of all of them.
    crossing: OnceLock<Trie>,
    /// Of a number or word: what is left of all tokens behind its end, also of those that JSON does not go on with. Such a
    /// token follows only where the value is a part of another grammar.
    any_rests: OnceLock<Trie>,
    unusual: Box<[Crossing]>,
}

impl LeafMask {
    fn new(inside: &[u32], Rests { all: rests, far, far_names }: Rests, unusual: Box<[Crossing]>) -> LeafMask {
        let (crossing, any_rests) = (OnceLock::new(), OnceLock::new());
        LeafMask { inside: Mask::of(inside), rests, far, far_names, crossing, any_rests, unusual }
    }

    /// What is left of all tokens that go on behind the end of the value, whatever follows.
    pub(super) fn any_rests(&self, vocabulary: &Vocabulary) -> &Trie {
        if self.unusual.is_empty() {
            return &self.rests;
        }
        self.any_rests.get_or_init(|| {
            let usual = (0..self.rests.nodes().len()).flat_map(|node| {
                let depth = self.rests.depth(node);
                self.rests.tokens_at(node).iter().map(move |&id| (id, depth))
            });
            let usual = usual.filter_map(|(id, length)| {
                let bytes = vocabulary.token(id)?;
                Some((&bytes[bytes.len() - length..], id))
            });
            let unusual = self.unusual.iter();
            let unusual =
                unusual.filter_map(|token| Some((&vocabulary.token(token.id)?[token.start as usize..], token.id)));
            Trie::new(usual.chain(unusual))
        })
    }

    /// What is left, behind the node, of the tokens that go on behind the end of the value.
    pub(super) fn crossing(&self, vocabulary: &Vocabulary, node: usize) -> &Trie {
        self.crossing.get_or_init(|| {
            let depth = vocabulary.trie.depth(node);
            let ids = self.rests.tokens().iter();
            Trie::new(ids.filter_map(|&id| Some((&vocabulary.token(id)?[depth..], id))))
        })
    }

    pub(crate) fn memory_size(&self) -> usize {
        // The strings that cross are asked for in few languages.
        self.inside.memory_size() + self.rests.memory_size() + size_of_val(&*self.unusual)
    }
}

/// What is said of tokens by all strings of some characters, however many: the masks of those with bounds on their length
/// follow from it.
#[derive(Debug)]
pub struct RunMask {
    found: Spelled,
    rests: Rests,
}

/// What is left of tokens that go on, and of those with a further string.
#[derive(Clone, Debug)]
struct Rests {
    all: Arc<Trie>,
    far: Arc<Trie>,
    far_names: Arc<Trie>,
}

impl RunMask {
    pub(crate) fn memory_size(&self) -> usize {
        let Spelled { inside, staying, ending, crossing, .. } = &self.found;
        let tries = self.rests.all.memory_size();
        4 * inside.len() + 8 * (staying.len() + ending.len()) + 12 * crossing.len() + tries
    }

    /// The mask of the strings with `min` to `max` characters, below a node.
    fn within(&self, vocabulary: &Vocabulary, node: usize, min: u32, max: u32) -> LeafMask {
        let mut inside = self.found.inside.clone();
        for (kinds, before) in &self.found.by_kinds {
            kinds.longer_than(max.checked_sub(*before)).iter().for_each(|&id| clear(&mut inside, id));
        }
        let fits = |chars: u32| min <= chars && chars <= max;
        let mut allow = |id, fits| if fits { set(&mut inside, id) } else { clear(&mut inside, id) };
        self.found.staying.iter().for_each(|&(id, chars)| allow(id, chars <= max));
        self.found.ending.iter().for_each(|&(id, chars)| allow(id, fits(chars)));
        let crossing = &self.found.crossing;
        let mut rests = self.rests.clone();
        if !crossing.iter().all(|crossing| fits(crossing.chars)) {
            rests = Rests::of(vocabulary, node, crossing.iter().filter(|crossing| fits(crossing.chars)));
        }
        LeafMask::new(&inside, rests, Box::default())
    }
}

impl Rests {
    fn of<'a>(vocabulary: &Vocabulary, node: usize, crossing: impl Iterator<Item = &'a Crossing>) -> Rests {
        let depth = vocabulary.trie.depth(node);
        let (mut all, mut far, mut far_names) = (Vec::new(), Vec::new(), Vec::new());
        for &Crossing { id, start, .. } in crossing {
            let Some(bytes) = vocabulary.token(id) else { continue };
            let rest = &bytes[start as usize..];
            all.push((rest, id));
            if has_further_string(rest) {
                let is_name = rest.trim_ascii_start().starts_with(b":");
                if is_name { &mut far_names } else { &mut far }.push((&bytes[depth..], id));
            }
        }
        let trie = |strings| Arc::new(Trie::new(strings));
        Rests { all: trie(all), far: trie(far), far_names: trie(far_names) }
    }
}

/// Whether what follows the closing quote of a string may hold another whole string of the same array or object: a comma,
/// and then a string that is closed.
fn has_further_string(rest: &[u8]) -> bool {
    rest.iter().enumerate().filter(|&(_, &byte)| byte == b',').any(|(comma, _)| {
        let behind = rest[comma + 1..].trim_ascii_start();
        behind.first() == Some(&b'"') && behind[1..].contains(&b'"')
    })
}

impl Machine {
    /// What a leaf says of the tokens below a node.
    pub(super) fn leaf_mask(
        &mut self,
        vocabulary: &Vocabulary,
        leaf: LeafId,
        node: usize,
    ) -> Result<Arc<LeafMask>, SchemaError> {
        let (languages, leaves) = (&mut self.algebra.languages, &mut self.leaves);
        let leaf = within_a_token(vocabulary, languages, leaves, leaf);
        let key = leaves.key(languages, leaf, node);
        let mask = vocabulary.leaf_masks.get(key, LeafMask::memory_size, || {
            let Some((run, min, max)) = as_bounded_run(languages, leaves, leaf) else {
                return compute(vocabulary, languages, leaves, leaf, node);
            };
            let key = leaves.key(languages, run, node);
            let build = || {
                let found = spell(vocabulary, languages, leaves, run, node)?;
                let rests = Rests::of(vocabulary, node, found.crossing.iter());
                Ok::<_, LimitExceeded>(RunMask { found, rests })
            };
            Ok(vocabulary.run_masks.get(key, RunMask::memory_size, build)?.within(vocabulary, node, min, max))
        });
        Ok(mask?)
    }
}

/// A string of some characters, of which the number is bounded: the leaf of all such strings, and the bounds.
fn as_bounded_run(languages: &mut Languages, leaves: &mut Leaves, leaf: LeafId) -> Option<(LeafId, u32, u32)> {
    let (language, encoding) = leaves.language(leaf).filter(|(_, encoding)| *encoding != Encoding::Raw)?;
    let (chars, min, max) = languages.as_run(language).filter(|&(_, min, max)| (min, max) != (0, UNBOUNDED))?;
    let chars = chars.clone();
    let chars = languages.set(chars);
    let run = languages.star(chars);
    Some((leaves.start(run, encoding), min, max))
}

fn compute(
    vocabulary: &Vocabulary,
    languages: &mut Languages,
    leaves: &mut Leaves,
    leaf: LeafId,
    node: usize,
) -> Result<LeafMask, LimitExceeded> {
    let found = spell(vocabulary, languages, leaves, leaf, node)?;
    let is_usual = |token: &Crossing| {
        let next = vocabulary.token(token.id).and_then(|bytes| bytes.get(token.start as usize));
        leaves.encoding(leaf) != Encoding::Raw || next.is_some_and(|byte| b" \t\n\r,]}".contains(byte))
    };
    let (usual, unusual): (Vec<Crossing>, Vec<_>) = found.crossing.into_iter().partition(is_usual);
    Ok(LeafMask::new(&found.inside, Rests::of(vocabulary, node, usual.iter()), unusual.into()))
}

/// Finds the tokens below a node that a leaf can begin with.
fn spell(
    vocabulary: &Vocabulary,
    languages: &mut Languages,
    leaves: &mut Leaves,
    leaf: LeafId,
    node: usize,
) -> Result<Spelled, LimitExceeded> {
    let trie = &vocabulary.trie;
    let mut found = Spelled::new(vocabulary.mask_words());
    if by_kinds(vocabulary, languages, leaves, leaf, node, 0, &mut found)? {
        return Ok(found);
    }
    // For each length: how many characters were completed.
    let above = trie.depth(node);
    let mut counts = vec![0u32; trie.max_depth() + 1 - above];
    visit(trie, languages, leaves, leaf, node, |languages, leaves, node, next| {
        let depth = trie.depth(node) - above;
        let completes = next != LeafId::CLOSED && leaves.language(next).is_some();
        let chars = counts[depth - 1] + u32::from(completes);
        counts[depth] = chars;
        trie.tokens_at(node).iter().for_each(|&id| set(&mut found.inside, id));
        let language = leaves.language(next);
        if next == LeafId::CLOSED {
            found.ending.extend(trie.tokens_at(node).iter().map(|&id| (id, chars)));
        } else {
            // A character that has begun needs room, too.
            let chars = chars + u32::from(language.is_none());
            found.staying.extend(trie.tokens_at(node).iter().map(|&id| (id, chars)));
        }
        if next == LeafId::CLOSED || leaves.may_end(languages, next) {
            let start = trie.depth(node) as u32;
            found.crossing.extend(trie.tokens_below(node).iter().map(|&id| Crossing { id, start, chars }));
        }
        Ok(next != LeafId::CLOSED && !by_kinds(vocabulary, languages, leaves, next, node, chars, &mut found)?)
    })?;
    Ok(found)
}

/// With fewer nodes below, tokens are not put together by the kinds of their characters.
const MANY_NODES: usize = 4000;

/// Finds the tokens below a node by kinds of characters, where that is the shorter way.
fn by_kinds(
    vocabulary: &Vocabulary,
    languages: &mut Languages,
    leaves: &mut Leaves,
    leaf: LeafId,
    node: usize,
    chars: u32,
    found: &mut Spelled,
) -> Result<bool, LimitExceeded> {
    let trie = &vocabulary.trie;
    if trie.nodes_below(node) < MANY_NODES || !kinds::are_alike(languages, leaves, leaf)? {
        return Ok(false);
    }
    let kinds = vocabulary.kinds_below(node);
    kinds::find(vocabulary, kinds, languages, leaves, leaf, trie.depth(node), chars, found)?;
    Ok(true)
}
