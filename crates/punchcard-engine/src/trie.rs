//! A flat trie of byte strings, each with the ids of the tokens that it spells.
//!
//! Nodes are laid out in depth-first order. A node knows where its subtree ends, so skipping it is one assignment, and
//! the tokens of any subtree are one slice, as they are stored in the same order. The bytes of a node's children are a slice,
//! too: where few bytes may follow, the others are passed over without looking at their nodes.

use crate::bytes::ByteSet;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// One node; the root is not stored.
#[derive(Clone, Copy, Debug)]
pub struct TrieNode {
    /// The byte on the edge to this node.
    pub byte: u8,
    /// Length of the string that ends here (1 for children of the root).
    pub depth: u16,
    /// The first node behind the subtree.
    pub end: u32,
    /// Index of the first token of the subtree; the tokens of the node itself come first.
    pub first: u32,
}

/// A string to be sorted, with its first bytes in a number, so that most comparisons do not follow the reference.
struct Entry<'a> {
    /// The first eight bytes, the first one the most significant; zeros behind a shorter string.
    head: u64,
    string: &'a [u8],
    id: u32,
}

/// The strings that a trie can hold in order, and equal ones in the order of their ids.
fn sorted<'a>(strings: impl IntoIterator<Item = (&'a [u8], u32)>) -> Vec<Entry<'a>> {
    let strings = strings.into_iter().filter(|(s, _)| !s.is_empty() && s.len() <= usize::from(u16::MAX));
    let mut entries: Vec<Entry<'a>> = strings.map(|(string, id)| Entry { head: head(string), string, id }).collect();
    // Heads are equal for equal beginnings, and of a string and the same one with zeros behind it.
    entries.sort_unstable_by(|a, b| a.head.cmp(&b.head).then_with(|| (a.string, a.id).cmp(&(b.string, b.id))));
    entries
}

fn head(string: &[u8]) -> u64 {
    match string.first_chunk() {
        Some(&first) => u64::from_be_bytes(first),
        None => {
            let mut padded = [0; 8];
            padded[..string.len()].copy_from_slice(string);
            u64::from_be_bytes(padded)
        }
    }
}

/// A trie over byte strings.
#[derive(Clone, Debug, Default)]
pub struct Trie {
    id: u64,
    nodes: Vec<TrieNode>,
    tokens: Vec<u32>,
    max_depth: usize,
    /// Where the children of each node begin in the lists of children; those of the root come last.
    child_starts: Vec<u32>,
    child_bytes: Vec<u8>,
    child_nodes: Vec<u32>,
}

impl Trie {
    /// Builds the trie of the given strings, in any order. Strings longer than 65,535 bytes and empty ones are left out.
    pub fn new<'a>(strings: impl IntoIterator<Item = (&'a [u8], u32)>) -> Trie {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let sorted = sorted(strings);
        let mut trie = Trie {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            nodes: Vec::with_capacity(2 * sorted.len()),
            tokens: Vec::with_capacity(sorted.len()),
            ..Trie::default()
        };
        let mut open: Vec<u32> = Vec::new();
        let mut previous: &[u8] = b"";
        for &Entry { string, id, .. } in &sorted {
            let shared = previous.iter().zip(string).take_while(|(a, b)| a == b).count();
            trie.close(&mut open, shared);
            trie.max_depth = trie.max_depth.max(string.len());
            for (depth, &byte) in string.iter().enumerate().skip(shared) {
                open.push(trie.nodes.len() as u32);
                let first = trie.tokens.len() as u32;
                trie.nodes.push(TrieNode { byte, depth: depth as u16 + 1, end: 0, first });
            }
            trie.tokens.push(id);
            previous = string;
        }
        trie.close(&mut open, 0);
        trie.nodes.shrink_to_fit();
        trie.list_children();
        trie
    }

    fn list_children(&mut self) {
        let root = self.nodes.len();
        let mut starts = vec![0u32; root + 2];
        // A child's place is known once the children of all nodes before its parent are counted.
        let mut path = vec![root; self.max_depth + 1];
        let mut parents = Vec::with_capacity(root);
        for (i, node) in self.nodes.iter().enumerate() {
            let depth = usize::from(node.depth);
            path[depth] = i;
            parents.push(path[depth - 1] as u32);
            starts[path[depth - 1] + 1] += 1;
        }
        for i in 0..=root {
            starts[i + 1] += starts[i];
        }
        let mut next = starts.clone();
        self.child_bytes = vec![0; root];
        self.child_nodes = vec![0; root];
        for (i, &parent) in parents.iter().enumerate() {
            let place = &mut next[parent as usize];
            self.child_bytes[*place as usize] = self.nodes[i].byte;
            self.child_nodes[*place as usize] = i as u32;
            *place += 1;
        }
        self.child_starts = starts;
    }

    /// What stands for the root, which is not stored, where a node is asked for.
    pub fn root(&self) -> usize {
        self.nodes.len()
    }

    /// The children of a node: a range of places in the lists of children.
    pub fn children(&self, node: usize) -> Range<usize> {
        self.child_starts[node] as usize..self.child_starts[node + 1] as usize
    }

    /// The next of some children that begins with one of the bytes.
    #[inline]
    pub(crate) fn next_child(&self, children: &mut Range<usize>, bytes: &ByteSet) -> Option<usize> {
        // Children are sorted: where they are many, the next byte is looked for among them instead.
        const MANY: usize = 24;
        while children.start < children.end {
            let place = children.start;
            let first = self.child_bytes[place];
            children.start += 1;
            if bytes.contains(first) {
                return Some(place);
            }
            if children.len() > MANY {
                let Some(byte) = bytes.next_from(first) else { break };
                children.start += self.child_bytes[children.clone()].partition_point(|&other| other < byte);
            }
        }
        None
    }

    /// The byte on the edge to a child, by its place.
    pub fn child_byte(&self, place: usize) -> u8 {
        self.child_bytes[place]
    }

    /// The node of a child, by its place.
    pub fn child_node(&self, place: usize) -> usize {
        self.child_nodes[place] as usize
    }

    /// How many nodes are in the subtree of a node, without it.
    pub fn nodes_below(&self, node: usize) -> usize {
        self.nodes.get(node).map_or(self.nodes.len(), |at| at.end as usize - node - 1)
    }

    fn close(&mut self, open: &mut Vec<u32>, depth: usize) {
        let end = self.nodes.len() as u32;
        for node in open.drain(depth..) {
            self.nodes[node as usize].end = end;
        }
    }

    /// A number that tells tries with different strings apart.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The nodes, depth first.
    pub fn nodes(&self) -> &[TrieNode] {
        &self.nodes
    }

    /// The tokens of all strings.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// The tokens that end exactly at a node.
    pub fn tokens_at(&self, node: usize) -> &[u32] {
        let end = self.nodes.get(node + 1).map_or(self.tokens.len(), |next| next.first as usize);
        &self.tokens[self.nodes[node].first as usize..end]
    }

    /// The tokens in the subtree of a node, itself included.
    pub fn tokens_under(&self, node: usize) -> &[u32] {
        let end = self.nodes.get(self.nodes[node].end as usize).map_or(self.tokens.len(), |next| next.first as usize);
        &self.tokens[self.nodes[node].first as usize..end]
    }

    /// The tokens in the subtree of a node, without those of the node itself.
    pub fn tokens_below(&self, node: usize) -> &[u32] {
        if node == self.root() { &self.tokens } else { &self.tokens_under(node)[self.tokens_at(node).len()..] }
    }

    /// The length of the string that ends at a node.
    pub fn depth(&self, node: usize) -> usize {
        self.nodes.get(node).map_or(0, |node| usize::from(node.depth))
    }

    /// The length of the longest string.
    pub fn max_depth(&self) -> usize {
        self.max_depth
    }

    /// Bytes on the heap.
    pub fn memory_size(&self) -> usize {
        self.nodes.len() * size_of::<TrieNode>() + self.tokens.len() * 4 + self.child_nodes.len() * 9
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subtrees_and_tokens_are_slices() {
        let strings: [&[u8]; 6] = [b"ab", b"a", b"abc", b"b", b"ab", b""];
        let trie = Trie::new(strings.iter().enumerate().map(|(i, s)| (*s, i as u32)));
        let bytes: Vec<u8> = trie.nodes().iter().map(|n| n.byte).collect();
        assert_eq!(bytes, b"abcb");
        assert_eq!(trie.tokens_at(0), &[1]);
        assert_eq!(trie.tokens_at(1), &[0, 4]);
        assert_eq!(trie.tokens_under(0), &[1, 0, 4, 2]);
        assert_eq!(trie.nodes()[0].end, 3);
        assert_eq!(trie.tokens_under(3), &[3]);
        let children = |node| -> Vec<(u8, usize)> {
            trie.children(node).map(|place| (trie.child_byte(place), trie.child_node(place))).collect()
        };
        assert_eq!(children(trie.root()), [(b'a', 0), (b'b', 3)]);
        assert_eq!(children(1), [(b'c', 2)]);
        assert_eq!(children(3), []);
        assert_eq!((trie.nodes_below(trie.root()), trie.nodes_below(0)), (4, 2));
    }
    #[test]
    fn strings_are_sorted_as_bytes() {
        let strings: [&[u8]; 9] =
            [b"a\0", b"a", b"12345678", b"123456789", b"12345678\0", b"1234567\xff", b"a\0\0", b"a\0", b"\xff"];
        let order: Vec<u32> = sorted(strings.iter().zip(0..).map(|(s, i)| (*s, i))).iter().map(|e| e.id).collect();
        assert_eq!(order, [2, 4, 3, 5, 1, 0, 7, 6, 8]);
        let trie = Trie::new(strings.iter().zip(0..).map(|(s, i)| (*s, i)));
        assert_eq!(trie.max_depth(), 9);
    }
}
