//! Token masks inside of strings and member names.
//!
//! Where a string may be nearly anything, nearly all tokens may come. What stays inside of it, and what is left of tokens
//! behind its closing quote, depends on its language alone ([`LeafMask`](super::leaf_mask::LeafMask), shared by all grammars of the vocabulary). Where
//! the language differs from that of all texts along a few paths only, and where names matter by themselves (the schema
//! speaks of them, or the object has them already), the tokens on those paths are corrected.

use super::leaf_mask::LeafMask;
use super::machine::{Frame, Machine, Reading};
use super::mask::Found;
use super::names::TypedId;
use crate::bytes::ByteSet;
use crate::leaf::LeafId;
use crate::mask::Draft;
use crate::trie::Trie;
use crate::vocabulary::Vocabulary;
use punchcard_automata::Language;
use punchcard_schema::{ObjectState, SchemaError};

/// Names with more characters than this are no list of names.
const MOST_CHARS_OF_NAMES: u32 = 64;

/// What follows a string.
enum After {
    /// The same, whatever the string is (but for the names that matter).
    Same(Vec<Reading>),
    /// The same as far as no further string of the same array or object is read, which must differ from this one.
    Near(Vec<Reading>),
    /// It depends on the string.
    Differs,
}

impl Machine {
    /// Whether a language is so wide that a walk over the whole vocabulary would meet most tokens.
    pub(super) fn is_wide(&mut self, leaf: LeafId) -> bool {
        match self.leaves.language(leaf) {
            Some((language, _)) => self.algebra.languages.length_bounds(language).1 > MOST_CHARS_OF_NAMES,
            None => false,
        }
    }

    /// Finds the tokens below a node of the trie by what is known of the string that is being read there.
    pub(super) fn string_mask(
        &mut self,
        vocabulary: &Vocabulary,
        reading: Reading,
        node: usize,
        found: &mut Found<'_>,
    ) -> Result<(), SchemaError> {
        let (Frame::Text { leaf } | Frame::Key { leaf, .. }) = reading.frame else { return Ok(()) };
        let anything = self.leads_anywhere(leaf)?;
        let mask = self.leaf_mask(vocabulary, anything.unwrap_or(leaf), node)?;
        let after = self.after_string(reading)?;
        let matters = matches!(reading.frame, Frame::Key { .. });
        if let (After::Same(after), false, true) = (&after, matters, anything.is_none_or(|anything| anything == leaf)) {
            found.mask.add(&mask.inside);
            return self.walk_rests(vocabulary, &mask.rests, after, found);
        }
        // Corrections take bits back, but those of other readings must stay.
        if found.mask.is_empty() {
            return self.corrected_mask(vocabulary, reading, node, &mask, anything, after, found);
        }
        let mut row = vec![0; vocabulary.mask_words()];
        let exits = found.exits.as_ref().map(|_| Vec::new());
        let mut own = Found { mask: Draft::new(&mut row), exits };
        self.corrected_mask(vocabulary, reading, node, &mask, anything, after, &mut own)?;
        if let (Some(to), Some(from)) = (&mut found.exits, own.exits) {
            to.extend(from);
        }
        found.mask.add_row(&row);
        Ok(())
    }

    #[expect(clippy::too_many_arguments)]
    fn corrected_mask(
        &mut self,
        vocabulary: &Vocabulary,
        reading: Reading,
        node: usize,
        mask: &LeafMask,
        anything: Option<LeafId>,
        after: After,
        found: &mut Found<'_>,
    ) -> Result<(), SchemaError> {
        found.mask.add(&mask.inside);
        if let After::Same(after) | After::Near(after) = &after {
            self.walk_rests(vocabulary, &mask.rests, after, found)?;
        }
        let matters = matches!(reading.frame, Frame::Key { .. });
        // The exits that were found so far are of tokens that may yet be refused.
        let doubtful = found.exits.as_mut().map(std::mem::take);
        let cross = !matches!(after, After::Differs);
        let mut refused = self.correct(vocabulary, reading, node, anything, cross, found)?;
        match after {
            After::Same(_) => {}
            After::Near(_) => {
                let far = if matters { &mask.far_names } else { &mask.far };
                found.mask.refuse(far.tokens());
                refused.extend(far.tokens());
                self.walk(vocabulary, far, &[reading], found)?;
            }
            After::Differs if !reading.is_noted() && matters => {
                self.walk_names(vocabulary, mask.crossing(vocabulary, node), reading, found)?;
            }
            After::Differs => self.walk(vocabulary, mask.crossing(vocabulary, node), &[reading], found)?,
        }
        if let (Some(exits), Some(mut doubtful)) = (&mut found.exits, doubtful) {
            doubtful.retain(|(id, _)| !refused.contains(id));
            exits.extend(doubtful);
        }
        Ok(())
    }

    fn after_string(&mut self, reading: Reading) -> Result<After, SchemaError> {
        match reading.frame {
            Frame::Key { state, typed, .. } if !reading.is_noted() => {
                let Some(class) = self.algebra.only_class(state, || self.typed.name(typed))? else {
                    return Ok(After::Differs);
                };
                let mut after = Vec::new();
                self.after_class(state, class, reading.parent, &mut after)?;
                Ok(After::Near(after))
            }
            Frame::Text { .. } if !reading.is_noted() => Ok(After::Same(self.leave(reading)?.into_iter().collect())),
            Frame::Text { .. } => {
                Ok(self.after_any_item(reading)?.map_or(After::Differs, |after| After::Near(vec![after])))
            }
            _ => Ok(After::Differs),
        }
    }

    /// Corrects the tokens along names that matter by themselves, and where the language differs from `anything`, which the
    /// mask was taken of. They `cross` if what follows the string was taken for what follows any. Returns the tokens that
    /// were refused.
    fn correct(
        &mut self,
        vocabulary: &Vocabulary,
        reading: Reading,
        node: usize,
        anything: Option<LeafId>,
        cross: bool,
        found: &mut Found<'_>,
    ) -> Result<Vec<u32>, SchemaError> {
        let mut refused = Vec::new();
        let (leaf, special, typed) = match reading.frame {
            Frame::Text { leaf } => (leaf, LeafId::DEAD, TypedId::EMPTY),
            Frame::Key { state, leaf, typed } => (leaf, self.special_names(state, typed, leaf), typed),
            _ => return Ok(refused),
        };
        if let Frame::Key { state, .. } = reading.frame {
            self.refuse_seen(vocabulary, node, state, leaf, typed, found, &mut refused)?;
        }
        let trie = &vocabulary.trie;
        let first = Path { leaf, special, typed, bytes: self.correctable(leaf, special, anything)? };
        let mut path = vec![(first, trie.children(node))];
        while let Some((at, children)) = path.last_mut() {
            let Some(place) = trie.next_child(children, &at.bytes) else {
                path.pop();
                continue;
            };
            let byte = trie.child_byte(place);
            let (leaf, special, typed) = (at.leaf, at.special, at.typed);
            let node = trie.child_node(place);
            let mut refuse = |ids: &[u32]| {
                found.mask.refuse(ids);
                refused.extend_from_slice(ids);
            };
            let languages = &mut self.algebra.languages;
            let next = self.leaves.step(languages, leaf, byte)?;
            let next_special = self.leaves.step(languages, special, byte)?;
            if next == LeafId::DEAD {
                refuse(trie.tokens_under(node));
            } else if next == LeafId::CLOSED {
                let (Frame::Key { state, .. }, LeafId::CLOSED) = (reading.frame, next_special) else { continue };
                let mut after = Vec::new();
                self.after_name(state, &self.typed.name(typed), reading.parent, &mut after)?;
                if after.is_empty() {
                    refuse(trie.tokens_under(node));
                } else if cross {
                    refuse(trie.tokens_below(node));
                    self.walk_below(vocabulary, trie, node, &after, None, found)?;
                }
            } else if anything != Some(next) || next_special != LeafId::DEAD {
                found.mask.allow(trie.tokens_at(node));
                let typed = match (reading.frame, self.leaves.completed(leaf, byte)) {
                    (Frame::Key { .. }, Some(c)) => self.typed.push(typed, c),
                    _ => typed,
                };
                let bytes = self.correctable(next, next_special, anything)?;
                path.push((Path { leaf: next, special: next_special, typed, bytes }, trie.children(node)));
            }
        }
        Ok(refused)
    }

    /// Refuses tokens that end a name which the object already has.
    #[expect(clippy::too_many_arguments)]
    fn refuse_seen(
        &mut self,
        vocabulary: &Vocabulary,
        node: usize,
        state: ObjectState,
        leaf: LeafId,
        typed: TypedId,
        found: &mut Found<'_>,
        refused: &mut Vec<u32>,
    ) -> Result<(), SchemaError> {
        // With more names the few tokens that close a string are walked instead of all.
        const MANY: usize = 64;
        let mut name = self.typed.name(typed);
        let bytes = self.bytes_to_seen(state, &name);
        if bytes.is_empty() {
            return Ok(());
        }
        let closing;
        let (trie, node) = if self.algebra.seen_count(state) > MANY {
            closing = vocabulary.closing_below(node);
            (&*closing, closing.root())
        } else {
            (&vocabulary.trie, node)
        };
        // The leaf, how long the name is, the bytes that lead on to a seen name, and the children that were not visited.
        let mut path = vec![(leaf, name.len(), bytes, trie.children(node))];
        while let Some((leaf, length, bytes, children)) = path.last_mut() {
            let Some(place) = trie.next_child(children, bytes) else {
                path.pop();
                continue;
            };
            name.truncate(*length);
            let (byte, leaf, node) = (trie.child_byte(place), *leaf, trie.child_node(place));
            match self.leaves.step(&mut self.algebra.languages, leaf, byte)? {
                LeafId::DEAD => {}
                LeafId::CLOSED => {
                    if self.algebra.has_seen(state, &name) {
                        found.mask.refuse(trie.tokens_under(node));
                        refused.extend_from_slice(trie.tokens_under(node));
                    }
                }
                next => {
                    let bytes = match self.leaves.completed(leaf, byte).and_then(char::from_u32) {
                        Some(c) => {
                            name.push(c);
                            self.bytes_to_seen(state, &name)
                        }
                        None => ByteSet::ALL,
                    };
                    path.push((next, name.len(), bytes, trie.children(node)));
                }
            }
        }
        Ok(())
    }

    /// The bytes with which a name may go on to one that the object already has; none if it cannot.
    fn bytes_to_seen(&self, state: ObjectState, name: &str) -> ByteSet {
        let mut bytes = ByteSet::default();
        self.algebra.seen_next_bytes(state, name, |byte| {
            bytes.insert(byte.unwrap_or(b'"'));
            // Any character may be escaped.
            bytes.insert(b'\\');
        });
        bytes
    }

    /// The bytes behind which there may be something to correct.
    fn correctable(&mut self, leaf: LeafId, special: LeafId, anything: Option<LeafId>) -> Result<ByteSet, SchemaError> {
        let mut bytes = self.leaves.live(&mut self.algebra.languages, special)?;
        if anything.is_some_and(|anything| anything != leaf) {
            bytes.extend(&self.leaves.exceptions(&mut self.algebra.languages, leaf));
        }
        Ok(bytes)
    }

    /// The names that matter by themselves, as far as they go on like this.
    fn special_names(&mut self, state: ObjectState, typed: TypedId, leaf: LeafId) -> LeafId {
        let mut names = self.algebra.spoken_names(state);
        for c in self.typed.name(typed).chars() {
            if names == Language::EMPTY {
                break;
            }
            names = self.algebra.languages.next(names, c as u32);
        }
        self.leaves.start(names, self.leaves.encoding(leaf))
    }

    /// Sets the bits of the strings in the trie that complete the member name being read and can go on behind it. They
    /// hold no further name, so that names need not be told apart within a class.
    fn walk_names(
        &mut self,
        vocabulary: &Vocabulary,
        trie: &Trie,
        reading: Reading,
        found: &mut Found<'_>,
    ) -> Result<(), SchemaError> {
        let Frame::Key { state, leaf, typed } = reading.frame else { return Ok(()) };
        let nodes = trie.nodes();
        let mut name = self.typed.name(typed);
        // The leaf, and how long the name is.
        let mut path = vec![(leaf, name.len()); trie.max_depth() + 1];
        let mut after = Vec::new();
        let mut i = 0;
        while let Some(node) = nodes.get(i) {
            let depth = usize::from(node.depth);
            let (leaf, length) = path[depth - 1];
            name.truncate(length);
            match self.leaves.step(&mut self.algebra.languages, leaf, node.byte)? {
                LeafId::DEAD => i = node.end as usize,
                LeafId::CLOSED => {
                    after.clear();
                    self.after_name(state, &name, reading.parent, &mut after)?;
                    self.walk_below(vocabulary, trie, i, &after, None, found)?;
                    i = node.end as usize;
                }
                next => {
                    name.extend(self.leaves.completed(leaf, node.byte).and_then(char::from_u32));
                    path[depth] = (next, name.len());
                    i += 1;
                }
            }
        }
        Ok(())
    }

    /// The leaf of all texts, if most characters lead to it: then nearly all tokens are allowed, and exceptions are sought
    /// instead.
    fn leads_anywhere(&mut self, leaf: LeafId) -> Result<Option<LeafId>, SchemaError> {
        let Some((language, encoding)) = self.leaves.language(leaf) else { return Ok(None) };
        let transitions = self.algebra.languages.transitions(language);
        let anywhere = transitions.over(0, 0x10_FFFF).filter(|(.., target)| *target == Language::ALL);
        let leads = anywhere.map(|(lo, hi, _)| hi - lo + 1).sum::<u32>() > 0x10_0000;
        Ok(leads.then(|| self.leaves.start(Language::ALL, encoding)))
    }
}

/// A node on the path along names that matter.
struct Path {
    leaf: LeafId,
    special: LeafId,
    typed: TypedId,
    bytes: ByteSet,
}
