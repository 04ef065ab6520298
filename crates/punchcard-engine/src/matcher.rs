//! A matcher: one sequence, and where it stands in its grammar.

use crate::Piece;
use crate::automaton::ConfigId;
use crate::error::CompileError;
use crate::grammar::CompiledGrammar;
use crate::mask::set;
use crate::rules::events::{Event, Telling};
use punchcard_schema::SchemaError;
use std::sync::Arc;

/// Where a sequence stands after a step.
#[derive(Clone, Debug)]
struct Step {
    config: ConfigId,
    /// An end token was taken.
    ended: bool,
    /// Tokens taken so far.
    spent: u32,
    /// Under a budget: the tokens that complete the text in time, where no better way is known.
    plan: Option<Arc<[u32]>>,
    /// Events, if they are told.
    telling: Option<Telling>,
}

/// Follows one sequence of tokens. Cheap to fork; rolling back costs as much as is rolled back.
#[derive(Clone, Debug)]
pub struct Matcher {
    grammar: CompiledGrammar,
    /// One more than steps were taken.
    history: Vec<Step>,
    budget: Option<u32>,
}

/// Why a matcher cannot be made, or cannot go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BudgetError {
    /// The budget is smaller than the shortest answer that is known.
    TooSmall {
        /// Tokens of that answer.
        minimum: u32,
    },
    /// No answer is known, so none can be promised.
    Unknown,
    /// A limit was passed.
    Limit(SchemaError),
}

impl From<SchemaError> for BudgetError {
    fn from(error: SchemaError) -> Self {
        BudgetError::Limit(error)
    }
}

impl Matcher {
    /// A matcher at the beginning of a text. With a budget, every answer is complete within so many tokens, not counting
    /// the end token.
    pub fn new(grammar: CompiledGrammar, budget: Option<u32>) -> Result<Matcher, BudgetError> {
        let start = Step { config: grammar.start(), ended: false, spent: 0, plan: None, telling: None };
        if let Some(budget) = budget {
            let plan = grammar.plan(start.config)?.ok_or(BudgetError::Unknown)?;
            let minimum = plan.len() as u32;
            if minimum > budget {
                return Err(BudgetError::TooSmall { minimum });
            }
        }
        Ok(Matcher { grammar, history: vec![start], budget })
    }

    /// Tells events from the beginning on.
    pub fn tell_events(&mut self) -> Result<(), CompileError> {
        self.history.truncate(1);
        self.history[0].telling = Some(self.grammar.start_telling()?);
        Ok(())
    }

    /// The events of the text so far that are certain, from the `first` on; `None` if they are not told.
    pub fn events(&self, first: usize) -> Option<Vec<Event>> {
        self.here().telling.as_ref().map(|telling| telling.events(first))
    }

    fn here(&self) -> &Step {
        // The history is never empty: rolling back and resetting leave its first step.
        &self.history[self.history.len() - 1]
    }

    /// The grammar.
    pub fn grammar(&self) -> &CompiledGrammar {
        &self.grammar
    }

    /// Tokens that may still be taken, under a budget.
    pub fn budget_left(&self) -> Option<u32> {
        self.budget.map(|budget| budget.saturating_sub(self.here().spent))
    }

    /// Writes the mask of the next token over a row of `vocabulary.mask_words()` words. After the end only end tokens are
    /// set.
    pub fn fill_mask(&self, words: &mut [u32]) -> Result<(), SchemaError> {
        self.mask_at(self.here(), words)
    }

    fn mask_at(&self, step: &Step, words: &mut [u32]) -> Result<(), SchemaError> {
        if step.ended {
            words.fill(0);
            self.grammar.vocabulary().eos().iter().for_each(|&id| set(words, id));
            return Ok(());
        }
        match self.budget {
            None => self.grammar.fill_mask(step.config, words),
            Some(budget) => {
                self.grammar.fill_mask_within(step.config, budget.saturating_sub(step.spent), words)?;
                if let Some(&next) = self.plan_of(step)?.and_then(|plan| plan.first().copied()).as_ref() {
                    set(words, next);
                }
                Ok(())
            }
        }
    }

    /// The tokens that complete the text, as far as they are known.
    fn plan_of(&self, step: &Step) -> Result<Option<Arc<[u32]>>, SchemaError> {
        match &step.plan {
            Some(plan) => Ok(Some(plan.clone())),
            None => self.grammar.plan(step.config),
        }
    }

    /// Where a token leads; `None` if it cannot come next.
    fn after(&self, step: &Step, id: u32) -> Result<Option<Step>, SchemaError> {
        if step.ended {
            return Ok(None);
        }
        let is_end = self.grammar.vocabulary().eos().binary_search(&id).is_ok();
        let next = if self.grammar.vocabulary().token(id).is_none() {
            None
        } else {
            self.grammar.advance_token(step.config, id)?
        };
        let Some(config) = next else {
            let ended = is_end && self.grammar.is_accepting(step.config)?;
            return Ok(ended.then(|| Step { ended, ..step.clone() }));
        };
        // An end token that the grammar asks for ends the text if the text may end there.
        let ended = is_end && self.grammar.is_accepting(config)?;
        let mut after = Step { config, ended, spent: step.spent + 1, plan: None, telling: None };
        if let Some(budget) = self.budget {
            let Some(left) = budget.checked_sub(after.spent) else { return Ok(None) };
            let in_time = self.grammar.needs_at_most(config, left)?;
            if !in_time {
                let plan = self.plan_of(step)?;
                let Some(plan) = plan.filter(|plan| plan.first() == Some(&id)) else { return Ok(None) };
                after.plan = Some(plan[1..].into());
            }
        }
        Ok(Some(after))
    }

    /// Takes a token; `false` if it cannot come next, and then nothing has changed.
    pub fn accept_token(&mut self, id: u32) -> Result<bool, SchemaError> {
        let mut next = self.after(self.here(), id)?;
        if let (Some(next), Some(telling)) = (&mut next, &self.here().telling) {
            let text = self.grammar.vocabulary().text_token(id);
            let stopped = next.ended && next.spent == self.here().spent;
            let mut told = if stopped { telling.clone() } else { self.grammar.tell(telling, Some(id), text)? };
            if next.ended {
                told = self.grammar.tell_end(&told)?;
            }
            next.telling = Some(told);
        }
        let accepted = next.is_some();
        self.history.extend(next);
        Ok(accepted)
    }

    /// Takes text, as one step; `false` if it cannot come next, and then nothing has changed. Under a budget it counts as
    /// the fewest tokens that spell it.
    pub fn accept_bytes(&mut self, bytes: &[u8]) -> Result<bool, SchemaError> {
        let here = self.here();
        if here.ended {
            if bytes.is_empty() {
                self.history.push(here.clone());
            }
            return Ok(bytes.is_empty());
        }
        let Some(config) = self.grammar.advance(here.config, bytes)? else { return Ok(false) };
        let mut next = Step { config, ended: false, spent: here.spent, plan: None, telling: None };
        if let Some(budget) = self.budget {
            let Some(tokens) = self.grammar.vocabulary().fewest_tokens(bytes) else { return Ok(false) };
            next.spent += tokens.len() as u32;
            let in_time = match budget.checked_sub(next.spent) {
                Some(left) => self.grammar.needs_at_most(config, left)?,
                None => false,
            };
            if !in_time {
                let plan = self.plan_of(here)?;
                let Some((count, rest)) = plan.and_then(|plan| self.planned(&plan, bytes)) else { return Ok(false) };
                (next.spent, next.plan) = (here.spent + count, Some(rest));
            }
        }
        if let Some(telling) = &self.here().telling {
            next.telling = Some(self.grammar.tell(telling, None, Some(bytes))?);
        }
        self.history.push(next);
        Ok(true)
    }

    /// How many tokens of a plan spell these bytes, and the tokens behind them.
    fn planned(&self, plan: &[u32], bytes: &[u8]) -> Option<(u32, Arc<[u32]>)> {
        let (mut count, mut rest) = (0, bytes);
        while !rest.is_empty() {
            let text = self.grammar.vocabulary().text_token(*plan.get(count)?)?;
            rest = rest.strip_prefix(text)?;
            count += 1;
        }
        Some((count as u32, plan[count..].into()))
    }

    /// How many of the tokens, from the first on, could be taken one after the other. Nothing changes.
    pub fn validate_tokens(&self, ids: &[u32]) -> Result<usize, SchemaError> {
        let mut at = self.here().clone();
        for (count, &id) in ids.iter().enumerate() {
            match self.after(&at, id)? {
                Some(next) => at = next,
                None => return Ok(count),
            }
        }
        Ok(ids.len())
    }

    /// Masks for a tree of drafted tokens: `fill(0, ..)` gets that of the place here, and `fill(i + 1, ..)` that behind the
    /// `i`-th token, where the way to it from its parent (an earlier token, or `None` for here) is legal. Returns which
    /// tokens are legal. Nothing changes.
    pub fn fill_draft_masks(
        &self,
        tokens: &[(u32, Option<usize>)],
        mut fill: impl FnMut(usize, &dyn Fn(&mut [u32]) -> Result<(), SchemaError>) -> Result<(), SchemaError>,
    ) -> Result<Vec<bool>, SchemaError> {
        fill(0, &|words| self.fill_mask(words))?;
        let mut steps: Vec<Option<Step>> = Vec::with_capacity(tokens.len());
        for (i, &(id, parent)) in tokens.iter().enumerate() {
            let before = match parent {
                None => Some(self.here()),
                Some(parent) => steps.get(parent).and_then(Option::as_ref),
            };
            let next = match before {
                Some(before) => self.after(before, id)?,
                None => None,
            };
            match &next {
                Some(step) => fill(i + 1, &|words| self.mask_at(step, words))?,
                None => fill(i + 1, &|words| {
                    words.fill(0);
                    Ok(())
                })?,
            }
            steps.push(next);
        }
        Ok(steps.iter().map(Option::is_some).collect())
    }

    /// What completes the text; nothing if it may end here, `None` if no example was found within the limits.
    pub fn completion(&self) -> Result<Option<Vec<Piece>>, SchemaError> {
        let here = self.here();
        match (here.ended, self.budget) {
            (true, _) => Ok(Some(Vec::new())),
            (_, None) => self.grammar.completion(here.config),
            (_, Some(_)) => Ok(self.plan_of(here)?.map(|plan| self.pieces(&plan))),
        }
    }

    /// What tokens are: text, or tokens that are none.
    fn pieces(&self, tokens: &[u32]) -> Vec<Piece> {
        let mut out: Vec<Piece> = Vec::new();
        for &id in tokens {
            match (self.grammar.vocabulary().text_token(id), out.last_mut()) {
                (Some(text), Some(Piece::Bytes(bytes))) => bytes.extend(text),
                (Some(text), _) => out.push(Piece::Bytes(text.to_vec())),
                (None, _) => out.push(Piece::Token(id)),
            }
        }
        out
    }

    /// Tokens that complete the text, a short way if not the shortest; `None` if none was found within the limits.
    pub fn completion_tokens(&self) -> Result<Option<Arc<[u32]>>, SchemaError> {
        if self.here().ended { Ok(Some([].into())) } else { self.plan_of(self.here()) }
    }

    /// In how many ways the text so far can be read. Masks cost in proportion to it.
    pub fn readings(&self) -> usize {
        self.grammar.readings(self.here().config)
    }

    /// Whether the text may end here.
    pub fn is_accepting(&self) -> Result<bool, SchemaError> {
        self.grammar.is_accepting(self.here().config)
    }

    /// Whether an end token was taken.
    pub fn is_terminated(&self) -> bool {
        self.here().ended
    }

    /// How many steps can be rolled back.
    pub fn steps(&self) -> usize {
        self.history.len() - 1
    }

    /// Takes back the last `count` steps; `false` if there are fewer, and then nothing has changed.
    pub fn rollback(&mut self, count: usize) -> bool {
        if count > self.steps() {
            return false;
        }
        self.history.truncate(self.history.len() - count);
        true
    }

    /// Back to the beginning.
    pub fn reset(&mut self) {
        self.history.truncate(1);
    }

    /// The bytes that every text must go on with.
    pub fn forced(&self) -> Result<Vec<u8>, SchemaError> {
        const MOST: usize = 1 << 16;
        if self.is_terminated() { Ok(Vec::new()) } else { self.grammar.forced(self.here().config, MOST) }
    }

    /// Tokens that spell forced text: none of them could be part of a longer token that also fits what may follow, so the
    /// text is the same as without them.
    pub fn forced_tokens(&self) -> Result<Vec<u32>, SchemaError> {
        let forced = self.forced()?;
        Ok(self.grammar.vocabulary().settled_tokens(&forced))
    }
}
