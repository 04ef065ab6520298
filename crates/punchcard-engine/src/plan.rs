//! Plans: the tokens that complete a text.
//!
//! What completes a text is found piece by piece: the rest of a string, a member, the closing brace. Texts that differ in the
//! first pieces have the later ones in common, so a plan is a chain of pieces, and the chain from each place on is kept.
//! That makes the plans along a whole text cost about what one of them costs.

use crate::Piece;
use crate::machine::{Machine, Spot};
use crate::vocabulary::Vocabulary;
use hashbrown::HashMap;
use punchcard_schema::SchemaError;
use rustc_hash::FxBuildHasher;
use std::sync::Arc;

/// Most bytes of a completion.
const MOST_BYTES: usize = 16 << 20;

/// Most bytes of chains that a grammar keeps.
const KEPT_BYTES: usize = 32 << 20;

/// A way on from one byte: how many tokens are needed to the end, and the first of them, with its length in bytes.
#[derive(Clone, Copy, Debug)]
struct Way {
    need: u32,
    length: u32,
    id: u32,
}

/// No tokens spell the text.
const NONE: Way = Way { need: u32::MAX, length: 0, id: 0 };

/// A piece of what completes a text, and the pieces behind it. Never without ways.
#[derive(Debug)]
struct Link {
    /// Of a token that is no text, nothing.
    bytes: Box<[u8]>,
    /// From each byte on; of a token one.
    ways: Box<[Way]>,
    next: Option<Arc<Link>>,
}

impl Link {
    fn is_text(&self) -> bool {
        !self.bytes.is_empty()
    }
}

impl Drop for Link {
    /// A long chain is dropped in a loop.
    fn drop(&mut self) {
        let mut at = self.next.take();
        while let Some(link) = at {
            match Arc::try_unwrap(link) {
                Ok(mut link) => at = link.next.take(),
                Err(_) => break,
            }
        }
    }
}

/// Tokens that complete a text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plan {
    link: Option<Arc<Link>>,
    at: usize,
}

impl Plan {
    fn way(&self) -> Option<Way> {
        self.link.as_ref().map(|link| link.ways[self.at])
    }

    /// How many tokens there are.
    pub(crate) fn len(&self) -> u32 {
        self.way().map_or(0, |way| way.need)
    }

    /// The first token.
    pub(crate) fn first(&self) -> Option<u32> {
        self.way().map(|way| way.id)
    }

    /// The tokens behind the first.
    pub(crate) fn behind_first(&self) -> Plan {
        let Some(way) = self.way() else { return Plan::default() };
        let (mut link, mut at) = (self.link.clone(), self.at + way.length as usize);
        while let Some(here) = link.as_ref().filter(|link| at >= link.ways.len()) {
            at -= here.ways.len();
            link = here.next.clone();
        }
        Plan { link, at }
    }

    /// All of them.
    pub(crate) fn tokens(&self) -> Vec<u32> {
        let (mut plan, mut out) = (self.clone(), Vec::new());
        while let Some(id) = plan.first() {
            out.push(id);
            plan = plan.behind_first();
        }
        out
    }
}

/// The chains that are known, by where they begin; `None` where no example of a part was found within the limits.
#[derive(Debug, Default)]
pub(crate) struct Plans {
    known: HashMap<Spot, Option<Option<Arc<Link>>>, FxBuildHasher>,
    bytes: usize,
}

impl Plans {
    pub(crate) fn memory_size(&self) -> usize {
        self.bytes
    }

    /// The plan from a spot on; `None` if none was found, or if no tokens spell it.
    pub(crate) fn from(
        &mut self,
        machine: &mut Machine,
        vocabulary: &Vocabulary,
        start: Spot,
    ) -> Result<Option<Plan>, SchemaError> {
        if self.bytes > KEPT_BYTES {
            *self = Plans::default();
        }
        let (mut way, mut length) = (Vec::new(), 0);
        let mut at = Some(start);
        let mut link = loop {
            let Some(spot) = at else { break Some(None) };
            if let Some(known) = self.known.get(&spot) {
                break known.clone();
            }
            let Some((pieces, next)) = machine.completion_step(spot)?.filter(|_| length <= MOST_BYTES) else {
                way.push((spot, Vec::new()));
                break None;
            };
            length += pieces.iter().map(Piece::len).sum::<usize>();
            way.push((spot, pieces));
            at = next;
        };
        for (spot, pieces) in way.into_iter().rev() {
            self.bytes += 64;
            for piece in pieces.into_iter().rev().filter(|piece| *piece != Piece::Bytes(Vec::new())) {
                link = link.map(|next| Some(Arc::new(self.link(vocabulary, piece, next))));
            }
            self.known.insert(spot, link.clone());
        }
        let plan = link.map(|link| Plan { link, at: 0 });
        Ok(plan.filter(|plan| plan.len() != NONE.need))
    }

    fn link(&mut self, vocabulary: &Vocabulary, piece: Piece, next: Option<Arc<Link>>) -> Link {
        let (bytes, ways) = match piece {
            Piece::Token(id) => {
                let need = Plan { link: next.clone(), at: 0 }.len();
                (Vec::new(), vec![Way { need: need.saturating_add(1), length: 1, id }])
            }
            Piece::Bytes(bytes) => {
                let ways = ways(vocabulary, &bytes, next.as_deref());
                (bytes, ways)
            }
        };
        self.bytes += 64 + bytes.len() + size_of_val(&*ways);
        Link { bytes: bytes.into(), ways: ways.into(), next }
    }
}

/// From each byte on, a way with the fewest tokens, of these the one with the longest first token.
fn ways(vocabulary: &Vocabulary, bytes: &[u8], next: Option<&Link>) -> Vec<Way> {
    // A token may go beyond the piece, as far as text follows.
    let reach = vocabulary.longest_token();
    let mut text = bytes.to_vec();
    let mut needs = vec![NONE.need; bytes.len()];
    let mut after = next;
    while let Some(link) = after.filter(|link| link.is_text() && text.len() < bytes.len() + reach) {
        text.extend_from_slice(&link.bytes);
        needs.extend(link.ways.iter().map(|way| way.need));
        after = link.next.as_deref();
    }
    needs.push(after.map_or(0, |link| link.ways[0].need));
    let mut ways = vec![NONE; bytes.len()];
    for start in (0..bytes.len()).rev() {
        let end = text.len().min(start + reach);
        for (length, id) in vocabulary.beginnings(&text[start..end]).0 {
            let need = needs[start + length].saturating_add(1);
            // Of equals the last, which is the longest.
            if need <= ways[start].need && need != NONE.need {
                ways[start] = Way { need, length: length as u32, id };
            }
        }
        needs[start] = ways[start].need;
    }
    ways
}
