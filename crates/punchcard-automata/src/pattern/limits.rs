//! The limits of patterns, whoever's they are.

use super::PatternError;
use super::syntax::{NodeId, Tree};

/// The most nodes that an expression may take.
const MAX_WEIGHT: u64 = 1_000_000;
/// The most levels of a tree: groups take up to three each, and word boundaries nest what is before them.
const MAX_DEPTH: u32 = 1_000;
/// The longest text that a pattern may demand, in characters.
pub(super) const MAX_MIN_LEN: u64 = 1 << 30;
/// How often a part that may be empty or not, depending on an assertion, may be demanded.
const MAX_WRITTEN_OUT: u32 = 1_000;

/// The characters of a pattern, if they are not too many.
pub(super) fn characters(source: &str, most: usize) -> Result<Vec<char>, PatternError> {
    let chars: Vec<char> = source.chars().collect();
    if chars.len() > most {
        let message = format!("the pattern has {} characters; the limit is {most}", chars.len());
        return Err(PatternError::new(most, message));
    }
    Ok(chars)
}

/// The node, if it keeps within the limits.
pub(super) fn bounded(tree: &Tree, at: usize, node: NodeId) -> Result<NodeId, PatternError> {
    let facts = tree.facts(node);
    let message = if facts.weight > MAX_WEIGHT {
        format!("the pattern is too large: it takes more than {MAX_WEIGHT} nodes")
    } else if facts.depth > MAX_DEPTH {
        format!("the pattern nests too deep: it has more than {MAX_DEPTH} levels")
    } else if facts.min_len > MAX_MIN_LEN && facts.min_len != u64::MAX {
        format!("the pattern demands a text of more than {MAX_MIN_LEN} characters")
    } else {
        return Ok(node);
    };
    Err(PatternError::new(at, message))
}

/// `node` from `min` to `max` times, if that keeps within the limits.
pub(super) fn repeat(tree: &mut Tree, at: usize, node: NodeId, min: u32, max: u32) -> Result<NodeId, PatternError> {
    let facts = tree.facts(node);
    if facts.looks && facts.can_be_empty && min > MAX_WRITTEN_OUT {
        let message =
            format!("a part that may be empty or not by an assertion is repeated more than {MAX_WRITTEN_OUT} times");
        return Err(PatternError::new(at, message));
    }
    let node = tree.repeat(node, min, max);
    bounded(tree, at, node)
}
