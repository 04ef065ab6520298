//! Token budgets: which tokens leave enough of the budget to finish.
//!
//! What completes a text is known from every configuration (its completion), and so is a number of tokens that is enough,
//! its *need*. A token may be taken if the need behind it is within what is left of the budget. A completion is a short way,
//! not always the shortest, so behind its first token the need may be found greater than it was; a matcher therefore
//! also follows the completion itself, its *plan*, and there is always a next token.

use crate::automaton::ConfigId;
use crate::grammar::Machine;
use crate::mask::{clear, set};
use crate::vocabulary::Vocabulary;
use crate::{Piece, json};
use hashbrown::HashMap;
use punchcard_schema::SchemaError;
use rustc_hash::FxBuildHasher;
use std::sync::Arc;

type FxMap<K, V> = HashMap<K, V, FxBuildHasher>;

/// What is known of completions.
#[derive(Debug, Default)]
pub(crate) struct Budgets {
    plans: FxMap<ConfigId, Option<Arc<[u32]>>>,
    plan_bytes: usize,
    rows: FxMap<ConfigId, Arc<[Level]>>,
    row_bytes: usize,
}

/// Tokens behind which so many further tokens are enough.
#[derive(Debug)]
struct Level {
    need: u32,
    ids: Box<[u32]>,
}

const MOST_BYTES: usize = 16 << 20;

impl Budgets {
    /// Tokens that complete the text.
    pub(crate) fn plan(
        &mut self,
        machine: &mut Machine,
        vocabulary: &Vocabulary,
        config: ConfigId,
    ) -> Result<Option<Arc<[u32]>>, SchemaError> {
        let config = representative(machine, config)?;
        if let Some(known) = self.plans.get(&config) {
            return Ok(known.clone());
        }
        let pieces = machine.completion(config)?;
        let plan = pieces.and_then(|pieces| spell(vocabulary, &pieces)).map(Arc::from);
        if self.plan_bytes > MOST_BYTES {
            self.plans.clear();
            self.plan_bytes = 0;
        }
        self.plan_bytes += 64 + plan.as_ref().map_or(0, |plan: &Arc<[u32]>| 4 * plan.len());
        self.plans.insert(config, plan.clone());
        Ok(plan)
    }

    /// An estimate of the bytes on the heap.
    pub(crate) fn memory_size(&self) -> usize {
        self.plan_bytes + self.row_bytes
    }

    /// Whether so many tokens complete the text.
    pub(crate) fn needs_at_most(
        &mut self,
        machine: &mut Machine,
        vocabulary: &Vocabulary,
        config: ConfigId,
        tokens: u32,
    ) -> Result<bool, SchemaError> {
        let plan = self.plan(machine, vocabulary, config)?;
        Ok(plan.is_some_and(|plan| plan.len() <= tokens as usize))
    }

    /// Clears the bits of tokens behind which what is left of the budget is not enough.
    pub(crate) fn restrict(
        &mut self,
        machine: &mut Machine,
        vocabulary: &Vocabulary,
        config: ConfigId,
        tokens: u32,
        words: &mut [u32],
    ) -> Result<(), SchemaError> {
        let levels = self.levels(machine, vocabulary, config, words)?;
        for level in levels.iter().filter(|level| level.need >= tokens) {
            level.ids.iter().for_each(|&id| clear(words, id));
        }
        // Clearing an end token that the text may end with would be wrong, whatever else it is.
        if machine.is_accepting(config)? {
            vocabulary.eos().iter().for_each(|&id| set(words, id));
        }
        Ok(())
    }

    /// The allowed tokens by the need behind them.
    fn levels(
        &mut self,
        machine: &mut Machine,
        vocabulary: &Vocabulary,
        config: ConfigId,
        allowed: &[u32],
    ) -> Result<Arc<[Level]>, SchemaError> {
        if let Some(known) = self.rows.get(&config) {
            return Ok(known.clone());
        }
        let mut behind: FxMap<ConfigId, Vec<u32>> = FxMap::default();
        for (i, &word) in allowed.iter().enumerate() {
            let mut rest = word;
            while rest != 0 {
                let id = i as u32 * 32 + rest.trailing_zeros();
                rest &= rest - 1;
                if vocabulary.token(id).is_none() {
                    continue;
                }
                let next = machine.step_token(config, id, vocabulary.text_token(id))?;
                if next != ConfigId::DEAD {
                    behind.entry(representative(machine, next)?).or_default().push(id);
                }
            }
        }
        let mut needs: FxMap<u32, Vec<u32>> = FxMap::default();
        for (next, ids) in behind {
            let plan = self.plan(machine, vocabulary, next)?;
            let need = plan.map_or(u32::MAX, |plan| plan.len() as u32);
            needs.entry(need).or_default().extend(ids);
        }
        let levels: Arc<[Level]> = needs.into_iter().map(|(need, ids)| Level { need, ids: ids.into() }).collect();
        if self.row_bytes > MOST_BYTES {
            self.rows.clear();
            self.row_bytes = 0;
        }
        self.row_bytes += levels.iter().map(|level| 32 + 4 * level.ids.len()).sum::<usize>();
        self.rows.insert(config, levels.clone());
        Ok(levels)
    }
}

/// A configuration with an equal completion: member names that are treated alike are one.
fn representative(machine: &mut Machine, config: ConfigId) -> Result<ConfigId, SchemaError> {
    match machine {
        Machine::Json(machine) => json::Machine::representative(machine, config),
        Machine::Rules(_) => Ok(config),
    }
}

/// The fewest tokens for each piece.
fn spell(vocabulary: &Vocabulary, pieces: &[Piece]) -> Option<Vec<u32>> {
    let mut out = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Bytes(bytes) => out.extend(vocabulary.fewest_tokens(bytes)?),
            Piece::Token(id) => out.push(*id),
        }
    }
    Some(out)
}
