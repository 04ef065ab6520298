//! Token budgets: which tokens leave enough of the budget to finish.
//!
//! What completes a text is known from every configuration (its completion), and so is a number of tokens that is enough,
//! its *need*. A token may be taken if the need behind it is within what is left of the budget. A completion is a short way,
//! not always the shortest, so behind its first token the need may be found greater than it was; a matcher therefore
//! also follows the completion itself, its *plan*, and there is always a next token.

use crate::automaton::ConfigId;
use crate::machine::Machine;
use crate::mask::{clear, set};
use crate::plan::{Plan, Plans};
use crate::vocabulary::Vocabulary;
use hashbrown::HashMap;
use punchcard_schema::SchemaError;
use rustc_hash::FxBuildHasher;
use std::sync::Arc;

type FxMap<K, V> = HashMap<K, V, FxBuildHasher>;

/// What is known of completions.
#[derive(Debug, Default)]
pub(crate) struct Budgets {
    plans: Plans,
    rows: FxMap<ConfigId, Arc<Ways>>,
    row_bytes: usize,
}

/// Tokens behind which so many further tokens are enough.
#[derive(Debug)]
struct Level {
    need: u32,
    ids: Box<[u32]>,
}

/// Where tokens lead to.
#[derive(Debug)]
struct Ways {
    levels: Box<[Level]>,
    /// Tokens that have to be followed one by one, if they are allowed: those that the grammar asks for by id, and those
    /// that end a member name.
    others: Box<[u32]>,
    /// In a member name, where the tokens lead that stay within it.
    names: Box<[ConfigId]>,
}

impl Ways {
    fn memory_size(&self) -> usize {
        self.levels.iter().map(|level| 32 + 4 * level.ids.len()).sum::<usize>() + 4 * self.others.len()
    }
}

const MOST_BYTES: usize = 16 << 20;

impl Budgets {
    /// Tokens that complete the text.
    pub(crate) fn plan(
        &mut self,
        machine: &mut Machine,
        vocabulary: &Vocabulary,
        config: ConfigId,
    ) -> Result<Option<Plan>, SchemaError> {
        let config = machine.representative(config)?;
        if machine.is_accepting(config)? {
            return Ok(Some(Plan::default()));
        }
        for spot in machine.spots(config)? {
            if let Some(plan) = self.plans.from(machine, vocabulary, spot)? {
                return Ok(Some(plan));
            }
        }
        Ok(None)
    }

    /// An estimate of the bytes on the heap.
    pub(crate) fn memory_size(&self) -> usize {
        self.plans.memory_size() + self.row_bytes
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
        Ok(plan.is_some_and(|plan| plan.len() <= tokens))
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
        let ways = self.ways(machine, vocabulary, config)?;
        let mut others = ways.others.to_vec();
        for &name in &ways.names {
            // What completes a text after many names may hold one of them.
            for string in machine.strings_after(config, name)? {
                others.extend(vocabulary.tokens_along(&string));
            }
        }
        others.retain(|&id| words[id as usize / 32] >> (id % 32) & 1 == 1);
        for level in ways.levels.iter().filter(|level| level.need >= tokens) {
            level.ids.iter().for_each(|&id| clear(words, id));
        }
        for id in others {
            let next = machine.step_token(config, id, vocabulary.text_token(id))?;
            let plan = if next == ConfigId::DEAD { None } else { self.plan(machine, vocabulary, next)? };
            match plan.is_some_and(|plan| plan.len() < tokens) {
                true => set(words, id),
                false => clear(words, id),
            }
        }
        // Clearing an end token that the text may end with would be wrong, whatever else it is.
        if machine.is_accepting(config)? {
            vocabulary.eos().iter().for_each(|&id| set(words, id));
        }
        Ok(())
    }

    /// Where tokens lead to.
    fn ways(
        &mut self,
        machine: &mut Machine,
        vocabulary: &Vocabulary,
        config: ConfigId,
    ) -> Result<Arc<Ways>, SchemaError> {
        let in_name = machine.is_in_name(config);
        let config = if in_name { machine.stand_in(config)? } else { config };
        if let Some(known) = self.rows.get(&config) {
            return Ok(known.clone());
        }
        let mut others = machine.asked_for(config)?;
        let mut behind: FxMap<ConfigId, Vec<u32>> = FxMap::default();
        let nodes = vocabulary.trie.nodes();
        let mut path = vec![config; vocabulary.trie.max_depth() + 1];
        let mut stand_ins: FxMap<ConfigId, ConfigId> = FxMap::default();
        let asked = others.len();
        let mut i = 0;
        while let Some(node) = nodes.get(i) {
            let depth = usize::from(node.depth);
            let mut next = machine.step(path[depth - 1], node.byte)?;
            if in_name && next != ConfigId::DEAD {
                // Names that are treated alike are one all along, as there are as many of them as tokens.
                next = match stand_ins.get(&next) {
                    Some(&known) => known,
                    None => *stand_ins.entry(next).or_insert(machine.stand_in(next)?),
                };
                if !machine.is_in_name(next) {
                    // What may stand behind a name depends on the name.
                    others.extend(vocabulary.trie.tokens_under(i));
                    next = ConfigId::DEAD;
                }
            }
            if next == ConfigId::DEAD {
                i = node.end as usize;
                continue;
            }
            path[depth] = next;
            let ids = vocabulary.trie.tokens_at(i).iter().filter(|id| others[..asked].binary_search(id).is_err());
            let mut ids = ids.peekable();
            if ids.peek().is_some() {
                let next = machine.after_token(next)?;
                behind.entry(next).or_default().extend(ids);
            }
            i += 1;
        }
        let names = if in_name { behind.keys().copied().collect() } else { Box::default() };
        let mut needs: FxMap<u32, Vec<u32>> = FxMap::default();
        for (next, ids) in behind {
            // Tokens that lead nowhere, as a limit on tokens is used up, are not allowed anyway.
            let plan = if next == ConfigId::DEAD { None } else { self.plan(machine, vocabulary, next)? };
            let need = plan.map_or(u32::MAX, |plan| plan.len());
            needs.entry(need).or_default().extend(ids);
        }
        let levels = needs.into_iter().map(|(need, ids)| Level { need, ids: ids.into() }).collect();
        let ways = Arc::new(Ways { levels, others: others.into(), names });
        if self.row_bytes > MOST_BYTES {
            self.rows.clear();
            self.row_bytes = 0;
        }
        self.row_bytes += ways.memory_size();
        self.rows.insert(config, ways.clone());
        Ok(ways)
    }
}
