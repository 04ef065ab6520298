//! Tokens by the kinds of their characters.
//!
//! Most languages treat all small letters alike, all capitals, all digits, and most other characters of Unicode. So tokens
//! are put in a trie by kinds of characters instead of bytes: the 128,000 tokens of Llama 3 have about 12,000 different
//! spellings in kinds, and a language is led through these at once. Where it tells characters of a kind apart, the tokens in
//! question are read one by one.

use crate::leaf::{Encoding, LeafId, Leaves};
use crate::mask::{clear, set};
use crate::trie::Trie;
use crate::vocabulary::Vocabulary;
use hashbrown::HashMap;
use punchcard_automata::{Language, Languages, LimitExceeded};
use rustc_hash::FxBuildHasher;

/// A kind of characters.
type Kind = u8;

const SMALL: Kind = 0;
const CAPITAL: Kind = 1;
const DIGIT: Kind = 2;
/// White space beyond ASCII.
const SPACE: Kind = 3;
/// Other characters beyond ASCII.
const OTHER: Kind = 4;
/// Of the other ASCII characters each is a kind of its own.
const FIRST_ASCII: Kind = 5;
const KINDS: usize = FIRST_ASCII as usize + 128;

/// ECMA-262's white space beyond ASCII, in ranges.
const SPACES: [(u32, u32); 7] = [
    (0xA0, 0xA0),
    (0x1680, 0x1680),
    (0x2000, 0x200A),
    (0x2028, 0x2029),
    (0x202F, 0x202F),
    (0x205F, 0x205F),
    (0x3000, 0x3000),
];
const BYTE_ORDER_MARK: u32 = 0xFEFF;

fn is_space(c: u32) -> bool {
    c == BYTE_ORDER_MARK || SPACES.iter().any(|&(lo, hi)| lo <= c && c <= hi)
}

fn kind_of(c: char) -> Kind {
    match c {
        'a'..='z' => SMALL,
        'A'..='Z' => CAPITAL,
        '0'..='9' => DIGIT,
        '\0'..='\x7F' => FIRST_ASCII + c as u8,
        _ if is_space(c as u32) => SPACE,
        _ => OTHER,
    }
}

/// A set of kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct KindSet([u64; 3]);

impl KindSet {
    fn insert(&mut self, kind: Kind) {
        self.0[usize::from(kind / 64)] |= 1 << (kind % 64);
    }

    fn extend(&mut self, other: KindSet) {
        self.0.iter_mut().zip(other.0).for_each(|(to, from)| *to |= from);
    }

    fn is_within(&self, other: &KindSet) -> bool {
        self.0.iter().zip(other.0).all(|(a, b)| a & !b == 0)
    }
}

/// A node, in depth-first order.
#[derive(Clone, Copy, Debug)]
struct Node {
    kind: Kind,
    depth: u16,
    /// The first node behind the subtree.
    end: u32,
    /// The first token of the subtree; those of the node itself come first.
    first: u32,
    /// The kinds in the subtree, without that of the node.
    below: KindSet,
}

/// The tokens below a node of the vocabulary's trie, by the kinds of the characters that are left of them.
#[derive(Debug)]
pub(crate) struct KindTrie {
    nodes: Vec<Node>,
    tokens: Vec<u32>,
    max_depth: usize,
    /// Tokens that begin or end within a character, or hold bytes that are none.
    odd: Vec<u32>,
    /// The other tokens, as a row of a bitmask.
    all: Box<[u32]>,
}

/// A node while the trie is built.
#[derive(Default)]
struct Growing {
    kind: Kind,
    depth: u16,
    children: Vec<u32>,
    tokens: Vec<u32>,
}

impl KindTrie {
    /// Puts the tokens below a node in a trie by kinds.
    pub(crate) fn new(trie: &Trie, node: usize, words: usize) -> KindTrie {
        let above = trie.depth(node);
        let nodes = trie.nodes();
        let (first, end) = nodes.get(node).map_or((0, nodes.len()), |at| (node + 1, at.end as usize));
        let mut grown = vec![Growing::default()];
        let mut ids: HashMap<(u32, Kind), u32, FxBuildHasher> = HashMap::default();
        let mut odd = Vec::new();
        // For each length: the node that was come to, and how many bytes of a further character there are.
        let mut path = vec![(0u32, 0usize); trie.max_depth() + 1];
        let mut bytes = vec![0u8; trie.max_depth()];
        let mut i = first;
        while i < end {
            let depth = usize::from(nodes[i].depth) - above;
            bytes[depth - 1] = nodes[i].byte;
            let (before, begun) = path[depth - 1];
            let character = &bytes[depth - 1 - begun..depth];
            let kind = match std::str::from_utf8(character) {
                Ok(text) => text.chars().next().map(kind_of),
                Err(error) if error.error_len().is_none() => None,
                Err(_) => {
                    odd.extend_from_slice(trie.tokens_under(i));
                    i = nodes[i].end as usize;
                    continue;
                }
            };
            path[depth] = match kind {
                None => (before, begun + 1),
                Some(kind) => {
                    let next = *ids.entry((before, kind)).or_insert_with(|| {
                        let (id, depth) = (grown.len() as u32, grown[before as usize].depth + 1);
                        grown.push(Growing { kind, depth, ..Growing::default() });
                        grown[before as usize].children.push(id);
                        id
                    });
                    grown[next as usize].tokens.extend_from_slice(trie.tokens_at(i));
                    (next, 0)
                }
            };
            if kind.is_none() {
                odd.extend_from_slice(trie.tokens_at(i));
            }
            i += 1;
        }
        let mut all = vec![0; words].into_boxed_slice();
        grown.iter().flat_map(|node| &node.tokens).for_each(|&id| set(&mut all, id));
        let mut out = KindTrie { nodes: Vec::with_capacity(grown.len()), tokens: Vec::new(), max_depth: 0, odd, all };
        out.lay_out(&grown);
        out
    }

    fn lay_out(&mut self, grown: &[Growing]) {
        // What is still to be laid out, the next one last.
        let mut open: Vec<u32> = grown[0].children.iter().rev().copied().collect();
        let mut path: Vec<usize> = Vec::new();
        while let Some(id) = open.pop() {
            let Growing { kind, depth, ref children, ref tokens } = grown[id as usize];
            self.close(&mut path, usize::from(depth) - 1);
            path.push(self.nodes.len());
            self.max_depth = self.max_depth.max(usize::from(depth));
            let first = self.tokens.len() as u32;
            self.nodes.push(Node { kind, depth, end: 0, first, below: KindSet::default() });
            self.tokens.extend_from_slice(tokens);
            open.extend(children.iter().rev());
        }
        self.close(&mut path, 0);
    }

    fn close(&mut self, path: &mut Vec<usize>, depth: usize) {
        while path.len() > depth {
            let Some(closed) = path.pop() else { return };
            self.nodes[closed].end = self.nodes.len() as u32;
            let Node { kind, mut below, .. } = self.nodes[closed];
            below.insert(kind);
            if let Some(&parent) = path.last() {
                self.nodes[parent].below.extend(below);
            }
        }
    }

    fn first_token(&self, node: usize) -> usize {
        self.nodes.get(node).map_or(self.tokens.len(), |node| node.first as usize)
    }

    /// Bytes on the heap.
    pub(crate) fn memory_size(&self) -> usize {
        self.nodes.len() * size_of::<Node>() + 4 * (self.tokens.len() + self.odd.len() + self.all.len())
    }
}

/// Where a state comes to by a character of a kind.
#[derive(Clone, Copy, Debug)]
enum Target {
    Dead,
    To(LeafId),
    /// It depends on the character.
    Mixed,
}

/// Where a state comes to by each kind.
#[derive(Debug)]
struct Targets {
    by_kind: [Target; KINDS],
    /// The kinds by which it comes back to itself.
    loops: KindSet,
}

fn targets(languages: &mut Languages, leaves: &mut Leaves, leaf: LeafId) -> Result<Box<Targets>, LimitExceeded> {
    let mut out = Box::new(Targets { by_kind: [Target::Dead; KINDS], loops: KindSet::default() });
    let Some((language, encoding)) = leaves.language(leaf) else {
        out.by_kind = [Target::Mixed; KINDS];
        return Ok(out);
    };
    let transitions = languages.transitions(language);
    // All characters of some ranges, without the surrogates, which are none.
    let mut common = |ranges: &[(u32, u32)], is_in: fn(u32, u32) -> bool| {
        let mut only: Option<Language> = None;
        for &(lo, hi) in ranges {
            for (from, to, target) in transitions.over(lo, hi) {
                let is_surrogate = 0xD800 <= from && to <= 0xDFFF;
                if is_surrogate || !is_in(from, to) {
                    continue;
                }
                if only.is_some_and(|only| only != target) {
                    return Ok(Target::Mixed);
                }
                only = Some(target);
            }
        }
        let target = only.unwrap_or(Language::EMPTY);
        Ok(if languages.is_viable(target)? { Target::To(leaves.start(target, encoding)) } else { Target::Dead })
    };
    let any = |_, _| true;
    out.by_kind[usize::from(SMALL)] = common(&[(0x61, 0x7A)], any)?;
    out.by_kind[usize::from(CAPITAL)] = common(&[(0x41, 0x5A)], any)?;
    out.by_kind[usize::from(DIGIT)] = common(&[(0x30, 0x39)], any)?;
    out.by_kind[usize::from(SPACE)] =
        common(&[SPACES.as_slice(), &[(BYTE_ORDER_MARK, BYTE_ORDER_MARK)]].concat(), any)?;
    // A range that holds nothing but white space says nothing of the others.
    out.by_kind[usize::from(OTHER)] =
        common(&[(0x80, 0x10_FFFF)], |from, to| !(from..=to.min(from + 16)).all(is_space) || to > from + 16)?;
    for c in (0..0x80u8).filter(|c| !c.is_ascii_alphanumeric()) {
        let kind = usize::from(FIRST_ASCII + c);
        out.by_kind[kind] = match c {
            b'\\' | b'"' if encoding != Encoding::Raw => Target::Mixed,
            0..0x20 if encoding != Encoding::Raw => Target::Dead,
            _ => common(&[(u32::from(c), u32::from(c))], any)?,
        };
    }
    for (kind, target) in out.by_kind.iter().enumerate() {
        if matches!(target, Target::To(next) if *next == leaf) {
            out.loops.insert(kind as Kind);
        }
    }
    Ok(out)
}

/// Whether a string treats all letters and digits of a kind alike, and goes on with most characters.
pub(crate) fn are_alike(languages: &mut Languages, leaves: &mut Leaves, leaf: LeafId) -> Result<bool, LimitExceeded> {
    if leaves.language(leaf).is_none_or(|(_, encoding)| encoding == Encoding::Raw) {
        return Ok(false);
    }
    let targets = targets(languages, leaves, leaf)?;
    let at = |kind| targets.by_kind[usize::from(kind)];
    let common = [SMALL, CAPITAL, DIGIT].map(at);
    Ok(!common.iter().any(|target| matches!(target, Target::Mixed)) && !matches!(at(SMALL), Target::Dead))
}

/// What is found out of tokens.
pub(crate) struct Tokens<'a> {
    /// Those that stay within the text or end with it.
    pub(crate) inside: &'a mut [u32],
    /// Those that go on behind the closing quote, and where their rest begins.
    pub(crate) crossing: &'a mut Vec<(u32, u32)>,
}

/// Finds the tokens of a trie by kinds that a string can begin with; `above` bytes of each were read already.
pub(crate) fn find(
    vocabulary: &Vocabulary,
    trie: &KindTrie,
    languages: &mut Languages,
    leaves: &mut Leaves,
    leaf: LeafId,
    above: usize,
    tokens: &mut Tokens<'_>,
) -> Result<(), LimitExceeded> {
    let mut known: HashMap<LeafId, Box<Targets>, FxBuildHasher> = HashMap::default();
    let mut path = vec![leaf; trie.max_depth + 1];
    // Ranges of tokens that can come, and of those that cannot.
    let (mut alive, mut dead): (Vec<(usize, usize)>, Vec<_>) = (Vec::new(), Vec::new());
    let mut i = 0;
    while let Some(node) = trie.nodes.get(i) {
        let depth = usize::from(node.depth);
        let before = path[depth - 1];
        let at = match known.entry(before) {
            hashbrown::hash_map::Entry::Occupied(at) => at.into_mut(),
            hashbrown::hash_map::Entry::Vacant(place) => place.insert(targets(languages, leaves, before)?),
        };
        let (first, end) = (node.first as usize, trie.first_token(node.end as usize));
        match at.by_kind[usize::from(node.kind)] {
            Target::Dead => {
                dead.push((first, end));
                i = node.end as usize;
            }
            Target::To(next) if next == before && node.below.is_within(&at.loops) => {
                alive.push((first, end));
                i = node.end as usize;
            }
            Target::To(next) => {
                alive.push((first, trie.first_token(i + 1)));
                path[depth] = next;
                i += 1;
            }
            Target::Mixed => {
                dead.push((first, end));
                for &id in &trie.tokens[first..end] {
                    let Some(bytes) = vocabulary.token(id) else { continue };
                    let text = std::str::from_utf8(&bytes[above..]).unwrap_or_default();
                    let start = text.char_indices().nth(depth - 1).map_or(0, |(start, _)| start);
                    read_on(languages, leaves, before, id, bytes, above + start, tokens)?;
                }
                i = node.end as usize;
            }
        }
    }
    let count = |ranges: &[(usize, usize)]| ranges.iter().map(|(first, end)| end - first).sum::<usize>();
    let mut row = Vec::new();
    if count(&alive) <= count(&dead) {
        for (first, end) in alive {
            trie.tokens[first..end].iter().for_each(|&id| set(tokens.inside, id));
        }
    } else {
        row.extend_from_slice(&trie.all);
        for (first, end) in dead {
            trie.tokens[first..end].iter().for_each(|&id| clear(&mut row, id));
        }
        tokens.inside.iter_mut().zip(&row).for_each(|(to, from)| *to |= from);
    }
    for &id in &trie.odd {
        let Some(bytes) = vocabulary.token(id) else { continue };
        read_on(languages, leaves, leaf, id, bytes, above, tokens)?;
    }
    Ok(())
}

/// Reads a token byte by byte.
fn read_on(
    languages: &mut Languages,
    leaves: &mut Leaves,
    leaf: LeafId,
    id: u32,
    bytes: &[u8],
    start: usize,
    tokens: &mut Tokens<'_>,
) -> Result<(), LimitExceeded> {
    let mut at = leaf;
    for (i, &byte) in bytes.iter().enumerate().skip(start) {
        at = leaves.step(languages, at, byte)?;
        if at == LeafId::DEAD {
            return Ok(());
        }
        if at == LeafId::CLOSED && i + 1 < bytes.len() {
            tokens.crossing.push((id, i as u32 + 1));
            return Ok(());
        }
    }
    set(tokens.inside, id);
    Ok(())
}
