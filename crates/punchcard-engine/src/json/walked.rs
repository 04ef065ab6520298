//! Walks that were taken before.
//!
//! What stands behind a value is the same for many values: for each string that can follow one name, for each number, in the
//! middle of each name of a dictionary. So what a walk found is kept under where it began. Between the members of an object
//! it depends on the object only in whether it may end, and whether it may go on; which names may come is tried anew, below
//! the few nodes of the trie where a name can begin.

use super::machine::{Frame, Machine, Phase, Reading, StackId};
use super::mask::Found;
use crate::mask::{Draft, Mask};
use crate::trie::Trie;
use crate::vocabulary::Vocabulary;
use punchcard_automata::Language;
use punchcard_schema::{ObjectState, SchemaError};
use std::sync::Arc;

/// Where a walk over a trie begins.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Start {
    One(Reading),
    Several(Box<[Reading]>),
    /// Between two members of an object.
    Members {
        parent: StackId,
        space: Language,
        ends: bool,
        goes_on: bool,
    },
}

/// What a walk found.
#[derive(Debug)]
pub(crate) struct Walked {
    ids: Box<[u32]>,
    masks: Box<[Mask]>,
    /// Nodes where a name of the object begins, below which nothing was sought.
    names: Box<[usize]>,
}

/// Most bytes of walks that a machine keeps.
const MOST_BYTES: usize = 2 << 20;

/// Where the names of an object begin, in a walk that leaves them out.
pub(super) struct Names {
    pub(super) state: ObjectState,
    pub(super) parent: StackId,
    pub(super) nodes: Vec<usize>,
}

impl Names {
    /// Whether a name of the object begins here.
    pub(super) fn begin_with(&self, reading: &Reading) -> bool {
        matches!(reading.frame, Frame::Key { state, .. } if state == self.state) && reading.parent == self.parent
    }
}

impl Machine {
    /// Finds the strings in the trie that the machine can read; what was found before is known.
    pub(super) fn walk_known(
        &mut self,
        vocabulary: &Vocabulary,
        trie: &Trie,
        from: &[Reading],
        found: &mut Found<'_>,
    ) -> Result<(), SchemaError> {
        if from.is_empty() || trie.nodes().is_empty() {
            return Ok(());
        }
        // Exits and noted texts are asked for rarely.
        if found.exits.is_some() || from.iter().any(|reading| reading.is_noted()) {
            return self.walk(vocabulary, trie, from, found);
        }
        let mut names = None;
        let start = match *from {
            [Reading { frame: Frame::Object { state, phase: Phase::After, space }, parent, .. }] => {
                names = Some(Names { state, parent, nodes: Vec::new() });
                let (ends, goes_on) = (self.algebra.object_may_end(state), self.names_of(state)? != Language::EMPTY);
                Start::Members { parent, space, ends, goes_on }
            }
            [reading] => Start::One(reading),
            _ => Start::Several(from.into()),
        };
        let key = (trie.id(), start);
        let walked = match self.walked.get(&key) {
            Some(known) => known.clone(),
            None => {
                let mut log = Found { mask: Draft::log(), exits: None };
                self.walk_below(vocabulary, trie, trie.root(), from, names.as_mut(), &mut log)?;
                let (mut ids, masks) = log.mask.logged();
                ids.sort_unstable();
                ids.dedup();
                let nodes = names.as_mut().map(|names| std::mem::take(&mut names.nodes)).unwrap_or_default();
                let walked = Arc::new(Walked { ids: ids.into(), masks: masks.into(), names: nodes.into() });
                if self.walked_bytes > MOST_BYTES {
                    self.walked.clear();
                    self.walked_bytes = 0;
                }
                self.walked_bytes += 4 * walked.ids.len() + 8 * walked.names.len() + 128;
                self.walked.insert(key, walked.clone());
                walked
            }
        };
        found.mask.allow(&walked.ids);
        walked.masks.iter().for_each(|mask| found.mask.add(mask));
        if let Some(Names { state, parent, .. }) = names {
            let name = self.begin_name(state, parent)?;
            for &node in &walked.names {
                let mut level = Vec::new();
                self.enter(vocabulary, trie, node, name, found, &mut level)?;
                self.walk_below(vocabulary, trie, node, &level, None, found)?;
            }
        }
        Ok(())
    }
}
