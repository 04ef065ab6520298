//! Walks of a leaf over a trie of tokens.

use crate::bytes::ByteSet;
use crate::leaf::{LeafId, Leaves};
use crate::trie::Trie;
use punchcard_automata::{Languages, LimitExceeded};
use std::ops::Range;

/// A node on the path of a walk.
struct Level {
    leaf: LeafId,
    /// Characters that were completed.
    chars: u32,
    children: Range<usize>,
    live: ByteSet,
}

/// Visits the nodes below a node that a leaf can come to, with the leaf there and the characters that were completed on the
/// way. Does not go on below a node where it is told `false`.
pub(crate) fn visit(
    trie: &Trie,
    languages: &mut Languages,
    leaves: &mut Leaves,
    leaf: LeafId,
    node: usize,
    mut each: impl FnMut(&mut Languages, &mut Leaves, usize, LeafId, u32) -> Result<bool, LimitExceeded>,
) -> Result<(), LimitExceeded> {
    // With fewer children it costs more to ask which bytes may come than to try them.
    const FEW: usize = 4;
    let level = |languages: &mut Languages, leaves: &mut Leaves, leaf, chars, node| {
        let children = trie.children(node);
        let live = if children.len() > FEW { leaves.live(languages, leaf)? } else { ByteSet::ALL };
        Ok::<_, LimitExceeded>(Level { leaf, chars, children, live })
    };
    let mut levels = vec![level(languages, leaves, leaf, 0, node)?];
    while let Some(at) = levels.last_mut() {
        let Some(place) = trie.next_child(&mut at.children, &at.live) else {
            levels.pop();
            continue;
        };
        let byte = trie.child_byte(place);
        let (before, mut chars) = (at.leaf, at.chars);
        let next = leaves.step(languages, before, byte)?;
        if next == LeafId::DEAD {
            continue;
        }
        chars += u32::from(next != LeafId::CLOSED && leaves.language(next).is_some());
        let node = trie.child_node(place);
        let goes_on = each(languages, leaves, node, next, chars)?;
        if goes_on && next != LeafId::CLOSED && !trie.children(node).is_empty() {
            levels.push(level(languages, leaves, next, chars, node)?);
        }
    }
    Ok(())
}
