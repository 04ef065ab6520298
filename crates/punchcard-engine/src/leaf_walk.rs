//! Walks of a leaf over a trie of tokens.

use crate::bytes::ByteSet;
use crate::leaf::{LeafId, Leaves};
use crate::trie::Trie;
use punchcard_automata::{Languages, LimitExceeded};
use std::ops::Range;

/// A node on the path of a walk.
struct Level {
    leaf: LeafId,
    children: Range<usize>,
    live: ByteSet,
}

/// Visits the nodes below a node that a leaf can come to, with the leaf there. Does not go on below a node where it is told
/// `false`.
pub(crate) fn visit(
    trie: &Trie,
    languages: &mut Languages,
    leaves: &mut Leaves,
    leaf: LeafId,
    node: usize,
    mut each: impl FnMut(&mut Languages, &mut Leaves, usize, LeafId) -> Result<bool, LimitExceeded>,
) -> Result<(), LimitExceeded> {
    // With fewer children it costs more to ask which bytes may come than to try them.
    const FEW: usize = 4;
    let level = |languages: &mut Languages, leaves: &mut Leaves, leaf, node| {
        let children = trie.children(node);
        let live = if children.len() > FEW { leaves.live(languages, leaf)? } else { ByteSet::ALL };
        Ok::<_, LimitExceeded>(Level { leaf, children, live })
    };
    let mut levels = vec![level(languages, leaves, leaf, node)?];
    while let Some(at) = levels.last_mut() {
        let Some(place) = trie.next_child(&mut at.children, &at.live) else {
            levels.pop();
            continue;
        };
        let next = leaves.step(languages, at.leaf, trie.child_byte(place))?;
        if next == LeafId::DEAD {
            continue;
        }
        let node = trie.child_node(place);
        let goes_on = each(languages, leaves, node, next)?;
        if goes_on && !trie.children(node).is_empty() {
            levels.push(level(languages, leaves, next, node)?);
        }
    }
    Ok(())
}
