//! Tokens by the kinds of their characters.
//!
//! Most languages treat all small letters alike, all capitals, all digits, and most other characters of Unicode. So tokens
//! are put in a trie by kinds of characters instead of bytes: the 128,000 tokens of Llama 3 have about 12,000 different
//! spellings in kinds, and a language is led through these at once. Where it tells characters of a kind apart, the tokens in
//! question are read one by one: those that hold one of the characters that are told apart.

use crate::bytes::ByteSet;
use crate::leaf::{Encoding, LeafId, Leaves};
use crate::mask::{clear, set};
use crate::trie::Trie;
use crate::vocabulary::Vocabulary;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use punchcard_automata::pattern::WHITE_SPACE;
use punchcard_automata::{Languages, LimitExceeded};
use rustc_hash::FxBuildHasher;
use std::sync::{Arc, OnceLock};

/// A kind of characters.
type Kind = u8;

const SMALL: Kind = 0;
const CAPITAL: Kind = 1;
const DIGIT: Kind = 2;
/// White space beyond ASCII.
const SPACE: Kind = 3;
/// Other characters beyond ASCII.
const OTHER: Kind = 4;
/// A character beyond ASCII of which bytes are missing at the end of a token.
const BEGUN: Kind = 5;
/// Of the other ASCII characters each is a kind of its own.
const FIRST_ASCII: Kind = 6;
const KINDS: usize = FIRST_ASCII as usize + 128;

/// ECMA-262's white space beyond ASCII, in ranges.
const SPACES: &[(u32, u32)] = WHITE_SPACE.split_at(2).1;

fn is_space(c: u32) -> bool {
    SPACES.iter().any(|&(lo, hi)| lo <= c && c <= hi)
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
    /// The tokens, as a row of a bitmask. Those that begin within a character, or hold bytes that are none, are left out.
    all: Box<[u32]>,
    /// The tokens with the most characters first, and for each number of characters how many tokens have more.
    by_length: Vec<u32>,
    longer: Vec<usize>,
    /// The tokens that hold a letter or digit, found when they are asked for.
    holders: Vec<OnceLock<Box<[u32]>>>,
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
                    i = nodes[i].end as usize;
                    continue;
                }
            };
            path[depth] = (before, begun + 1);
            if kind.is_some() || !trie.tokens_at(i).is_empty() {
                let next = *ids.entry((before, kind.unwrap_or(BEGUN))).or_insert_with_key(|&(_, kind)| {
                    let (id, depth) = (grown.len() as u32, grown[before as usize].depth + 1);
                    grown.push(Growing { kind, depth, ..Growing::default() });
                    grown[before as usize].children.push(id);
                    id
                });
                grown[next as usize].tokens.extend_from_slice(trie.tokens_at(i));
                if kind.is_some() {
                    path[depth] = (next, 0);
                }
            }
            i += 1;
        }
        let mut all = vec![0; words].into_boxed_slice();
        grown.iter().flat_map(|node| &node.tokens).for_each(|&id| set(&mut all, id));
        let nodes = Vec::with_capacity(grown.len());
        let tokens = Vec::with_capacity(trie.tokens_below(node).len());
        let mut out = KindTrie {
            nodes,
            tokens,
            max_depth: 0,
            all,
            by_length: Vec::new(),
            longer: Vec::new(),
            holders: Vec::new(),
        };
        out.holders.resize_with(128, OnceLock::new);
        out.lay_out(&grown);
        let mut by_length: Vec<&Growing> = grown.iter().filter(|node| !node.tokens.is_empty()).collect();
        by_length.sort_by_key(|node| std::cmp::Reverse(node.depth));
        out.longer = vec![0; out.max_depth + 1];
        for node in by_length {
            out.by_length.extend_from_slice(&node.tokens);
            out.longer[..usize::from(node.depth)].fill(out.by_length.len());
        }
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

    /// The tokens with more characters than so many; all, if there is no room for any.
    pub(crate) fn longer_than(&self, chars: Option<u32>) -> &[u32] {
        match chars {
            Some(chars) => &self.by_length[..self.longer.get(chars as usize).copied().unwrap_or(0)],
            None => &self.by_length,
        }
    }

    /// The tokens that hold an ASCII character behind the bytes that were read already.
    fn holders(&self, vocabulary: &Vocabulary, byte: u8, above: usize) -> &[u32] {
        let Some(holders) = self.holders.get(usize::from(byte)) else { return &[] };
        holders.get_or_init(|| {
            let holds = |&id: &u32| vocabulary.token(id).is_some_and(|bytes| bytes[above..].contains(&byte));
            self.tokens.iter().copied().filter(holds).collect()
        })
    }

    fn first_token(&self, node: usize) -> usize {
        self.nodes.get(node).map_or(self.tokens.len(), |node| node.first as usize)
    }

    /// Bytes on the heap.
    pub(crate) fn memory_size(&self) -> usize {
        let holders: usize = self.holders.iter().filter_map(OnceLock::get).map(|tokens| tokens.len()).sum();
        self.nodes.len() * size_of::<Node>() + 4 * (2 * self.tokens.len() + self.all.len() + holders)
    }
}

/// Where a state comes to by a character of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Dead,
    To(LeafId),
    /// It depends on the character.
    Mixed,
    /// A quote, which ends the string.
    Closed,
}

/// Where a state comes to by each kind.
#[derive(Debug)]
struct Targets {
    by_kind: [Target; KINDS],
    /// The kinds by which it comes back to itself.
    loops: KindSet,
    /// ASCII letters and digits that are treated unlike most of their kind.
    unlike: [ByteSet; 3],
    /// Whether the text may end here without anything that ends it.
    may_end: bool,
}

impl Targets {
    fn new(languages: &mut Languages, leaves: &mut Leaves, leaf: LeafId) -> Result<Box<Targets>, LimitExceeded> {
        let by_kind = [Target::Mixed; KINDS];
        let unlike = [ByteSet::default(); 3];
        let mut out =
            Box::new(Targets { by_kind, loops: KindSet::default(), unlike, may_end: leaves.may_end(languages, leaf) });
        let Some((language, encoding)) = leaves.language(leaf) else { return Ok(out) };
        let mut ascii = [LeafId::DEAD; 128];
        let (mut spaces, mut others) = (Common::Nothing, Common::Nothing);
        for (lo, hi, target) in languages.transitions(language).over(0, 0x10_FFFF) {
            let next = if languages.is_viable(target)? { leaves.start(target, encoding) } else { LeafId::DEAD };
            if let Some(slots) = ascii.get_mut(lo as usize..128.min(hi as usize + 1)) {
                slots.fill(next);
            }
            let lo = lo.max(0x80);
            if lo <= hi && !(0xD800 <= lo && hi <= 0xDFFF) {
                if SPACES.iter().any(|&(first, last)| first <= hi && lo <= last) {
                    spaces.add(next);
                }
                // A range that holds nothing but white space says nothing of the others.
                if hi - lo > 16 || !(lo..=hi).all(is_space) {
                    others.add(next);
                }
            }
        }
        let by_kind = &mut out.by_kind;
        by_kind[usize::from(SPACE)] = spaces.target();
        by_kind[usize::from(OTHER)] = others.target();
        // One of the characters that can still come leads on, if all of them do.
        by_kind[usize::from(BEGUN)] = match (spaces.target(), others.target()) {
            (Target::Dead, Target::Dead) => Target::Dead,
            (Target::To(_), Target::To(next)) => Target::To(next),
            _ => Target::Mixed,
        };
        for (kind, first, last) in [(SMALL, b'a', b'z'), (CAPITAL, b'A', b'Z'), (DIGIT, b'0', b'9')] {
            let most = most_common(&ascii[usize::from(first)..=usize::from(last)]);
            by_kind[usize::from(kind)] = if most == LeafId::DEAD { Target::Dead } else { Target::To(most) };
            (first..=last)
                .filter(|&c| ascii[usize::from(c)] != most)
                .for_each(|c| out.unlike[usize::from(kind)].insert(c));
        }
        for c in (0..0x80u8).filter(|c| !c.is_ascii_alphanumeric()) {
            by_kind[usize::from(FIRST_ASCII + c)] = match (c, ascii[usize::from(c)]) {
                (b'"', _) if encoding != Encoding::Raw => {
                    if languages.is_nullable(language) {
                        Target::Closed
                    } else {
                        Target::Dead
                    }
                }
                (b'\\', _) if encoding != Encoding::Raw => Target::Mixed,
                (0..0x20, _) if encoding != Encoding::Raw => Target::Dead,
                (_, LeafId::DEAD) => Target::Dead,
                (_, next) => Target::To(next),
            };
        }
        for (kind, target) in out.by_kind.iter().enumerate() {
            if *target == Target::To(leaf) {
                out.loops.insert(kind as Kind);
            }
        }
        Ok(out)
    }
}

/// Where all of some characters lead to.
#[derive(Clone, Copy)]
enum Common {
    Nothing,
    One(LeafId),
    Several,
}

impl Common {
    fn add(&mut self, next: LeafId) {
        *self = match *self {
            Common::Nothing => Common::One(next),
            Common::One(known) if known == next => Common::One(next),
            _ => Common::Several,
        };
    }

    fn target(self) -> Target {
        match self {
            Common::Nothing | Common::One(LeafId::DEAD) => Target::Dead,
            Common::One(next) => Target::To(next),
            Common::Several => Target::Mixed,
        }
    }
}

fn most_common(leaves: &[LeafId]) -> LeafId {
    let count = |leaf: &LeafId| leaves.iter().filter(|other| *other == leaf).count();
    leaves.iter().copied().max_by_key(count).unwrap_or(LeafId::DEAD)
}

/// Whether a text goes on with most letters, or a number with all digits, so that it pays to take them together.
pub(crate) fn are_alike(languages: &mut Languages, leaves: &mut Leaves, leaf: LeafId) -> Result<bool, LimitExceeded> {
    let Some((_, encoding)) = leaves.language(leaf) else { return Ok(false) };
    let targets = Targets::new(languages, leaves, leaf)?;
    let goes_on = |kind: Kind| matches!(targets.by_kind[usize::from(kind)], Target::To(_));
    if encoding == Encoding::Raw && !goes_on(SMALL) {
        // An exponent tells one letter from all others, of which most tokens hold some.
        return Ok(goes_on(DIGIT) && targets.unlike.iter().all(|unlike| *unlike == ByteSet::default()));
    }
    Ok(goes_on(SMALL) && targets.unlike.iter().map(|unlike| unlike.iter().count()).sum::<usize>() <= MOST_UNLIKE)
}

/// Where characters of a kind are told apart, so few tokens are read one by one; else all are that hold one of those.
const FEW_TOKENS: usize = 500;

/// With more letters and digits than this that are told apart, most tokens hold one of them.
const MOST_UNLIKE: usize = 6;

/// The tokens that a text can begin with. Characters are counted as far as they are not just those of the token.
#[derive(Debug)]
pub(crate) struct Spelled {
    /// Those that stay within the text or end with it.
    pub(crate) inside: Box<[u32]>,
    /// Of those that stay, with how many characters there must be room for; without those by kinds.
    pub(crate) staying: Vec<(u32, u32)>,
    /// Tries of tokens that may be among those that stay, with how many characters were read before.
    pub(crate) by_kinds: Vec<(Arc<KindTrie>, u32)>,
    /// Those that end with the closing quote, with how many characters they bring.
    pub(crate) ending: Vec<(u32, u32)>,
    /// Those that go on behind the end of the text.
    pub(crate) crossing: Vec<Crossing>,
}

/// A token that goes on behind the end of a text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crossing {
    pub(crate) id: u32,
    /// Where its rest begins.
    pub(crate) start: u32,
    /// How many characters of the text it brings.
    pub(crate) chars: u32,
}

impl Spelled {
    pub(crate) fn new(words: usize) -> Spelled {
        let inside = vec![0; words].into_boxed_slice();
        Spelled { inside, staying: Vec::new(), by_kinds: Vec::new(), ending: Vec::new(), crossing: Vec::new() }
    }
}

/// Finds the tokens of a trie by kinds that a string can begin with; `above` bytes of each, `chars` characters, were read
/// already.
#[expect(clippy::too_many_arguments)]
pub(crate) fn find(
    vocabulary: &Vocabulary,
    trie: Arc<KindTrie>,
    languages: &mut Languages,
    leaves: &mut Leaves,
    leaf: LeafId,
    above: usize,
    chars: u32,
    found: &mut Spelled,
) -> Result<(), LimitExceeded> {
    let mut known: HashMap<LeafId, Box<Targets>, FxBuildHasher> = HashMap::default();
    let mut path = vec![leaf; trie.max_depth + 1];
    // Ranges of tokens that can come, and of those that cannot; those that are read one by one are not in the row.
    let (mut alive, mut dead): (Vec<(usize, usize)>, Vec<_>) = (Vec::new(), Vec::new());
    let mut row = vec![0; found.inside.len()];
    let mut single: Vec<Begun> = Vec::new();
    let mut unlike = ByteSet::default();
    let (crossed, ended) = (found.crossing.len(), found.ending.len());
    let mut i = 0;
    while let Some(node) = trie.nodes.get(i) {
        let depth = usize::from(node.depth);
        let before = path[depth - 1];
        let at = match known.entry(before) {
            Entry::Occupied(at) => at.into_mut(),
            Entry::Vacant(place) => place.insert(Targets::new(languages, leaves, before)?),
        };
        let (first, end) = (node.first as usize, trie.first_token(node.end as usize));
        let mut target = at.by_kind[usize::from(node.kind)];
        if let Some(others) = at.unlike.get(usize::from(node.kind)).filter(|unlike| **unlike != ByteSet::default()) {
            if end - first <= FEW_TOKENS {
                target = Target::Mixed;
            } else {
                unlike.extend(others);
            }
        }
        match target {
            Target::Dead => {
                dead.push((first, end));
                i = node.end as usize;
            }
            Target::To(next) if next == before && node.below.is_within(&at.loops) && !at.may_end => {
                at.unlike.iter().for_each(|others| unlike.extend(others));
                alive.push((first, end));
                i = node.end as usize;
            }
            Target::To(next) => {
                let below = trie.first_token(i + 1);
                alive.push((first, below));
                if leaves.may_end(languages, next) {
                    let chars = chars + depth as u32;
                    for &id in &trie.tokens[below..end] {
                        let Some(bytes) = vocabulary.token(id) else { continue };
                        let start = char_start(bytes, above, depth) as u32;
                        found.crossing.push(Crossing { id, start, chars });
                    }
                }
                path[depth] = next;
                i += 1;
            }
            Target::Closed => {
                let below = trie.first_token(i + 1);
                alive.push((first, below));
                dead.push((below, end));
                let chars = chars + depth as u32 - 1;
                found.ending.extend(trie.tokens[first..below].iter().map(|&id| (id, chars)));
                for &id in &trie.tokens[below..end] {
                    let Some(bytes) = vocabulary.token(id) else { continue };
                    let start = char_start(bytes, above, depth - 1) as u32 + 1;
                    found.crossing.push(Crossing { id, start, chars });
                }
                i = node.end as usize;
            }
            Target::Mixed => {
                dead.push((first, end));
                for &id in &trie.tokens[first..end] {
                    let Some(bytes) = vocabulary.token(id) else { continue };
                    let start = char_start(bytes, above, depth - 1);
                    single.push(Begun { id, leaf: before, start, chars: chars + depth as u32 - 1 });
                }
                i = node.end as usize;
            }
        }
    }
    let count = |ranges: &[(usize, usize)]| ranges.iter().map(|(first, end)| end - first).sum::<usize>();
    if count(&alive) <= count(&dead) {
        for (first, end) in alive {
            trie.tokens[first..end].iter().for_each(|&id| set(&mut row, id));
        }
    } else {
        row.copy_from_slice(&trie.all);
        for (first, end) in dead {
            trie.tokens[first..end].iter().for_each(|&id| clear(&mut row, id));
        }
    }
    if unlike != ByteSet::default() {
        // What was found of tokens with these characters is not so.
        let holds = |id: u32| {
            vocabulary.token(id).is_some_and(|bytes| bytes[above..].iter().any(|&byte| unlike.contains(byte)))
        };
        let (crossing, ending) = (found.crossing.split_off(crossed), found.ending.split_off(ended));
        found.crossing.extend(crossing.into_iter().filter(|crossing| !holds(crossing.id)));
        found.ending.extend(ending.into_iter().filter(|&(id, _)| !holds(id)));
        single.retain(|begun| !holds(begun.id));
        let mut holders: Vec<u32> = Vec::new();
        for byte in unlike.iter() {
            holders.extend_from_slice(trie.holders(vocabulary, byte, above));
        }
        holders.sort_unstable();
        holders.dedup();
        for id in holders {
            clear(&mut row, id);
            single.push(Begun { id, leaf, start: above, chars });
        }
    }
    found.inside.iter_mut().zip(&row).for_each(|(to, from)| *to |= from);
    found.by_kinds.push((trie, chars));
    for begun in single {
        let Some(bytes) = vocabulary.token(begun.id) else { continue };
        begun.read_on(languages, leaves, bytes, found)?;
    }
    Ok(())
}

/// Where a character of a token begins, counted behind the first bytes.
fn char_start(bytes: &[u8], above: usize, chars: usize) -> usize {
    // Bytes that continue a character are passed over.
    let starts = bytes.iter().enumerate().skip(above).filter(|(_, byte)| **byte & 0xC0 != 0x80);
    starts.map(|(start, _)| start).nth(chars).unwrap_or(bytes.len())
}

/// A token that is read byte by byte, from a place on.
struct Begun {
    id: u32,
    leaf: LeafId,
    start: usize,
    chars: u32,
}

impl Begun {
    fn read_on(
        self,
        languages: &mut Languages,
        leaves: &mut Leaves,
        bytes: &[u8],
        found: &mut Spelled,
    ) -> Result<(), LimitExceeded> {
        let Begun { id, leaf: mut at, start, mut chars } = self;
        for (i, &byte) in bytes.iter().enumerate().skip(start) {
            at = leaves.step(languages, at, byte)?;
            if at == LeafId::DEAD {
                return Ok(());
            }
            if at == LeafId::CLOSED {
                if i + 1 < bytes.len() {
                    found.crossing.push(Crossing { id, start: i as u32 + 1, chars });
                } else {
                    set(&mut found.inside, id);
                    found.ending.push((id, chars));
                }
                return Ok(());
            }
            chars += u32::from(leaves.language(at).is_some());
            if i + 1 < bytes.len() && leaves.may_end(languages, at) {
                found.crossing.push(Crossing { id, start: i as u32 + 1, chars });
            }
        }
        set(&mut found.inside, id);
        found.staying.push((id, chars + u32::from(leaves.language(at).is_none())));
        Ok(())
    }
}
