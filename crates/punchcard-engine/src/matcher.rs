//! A matcher: one sequence, and where it stands in its grammar.

use crate::automaton::ConfigId;
use crate::error::CompileError;
use crate::grammar::{CompiledGrammar, Locked, Source};
use crate::mask::set;
use crate::plan::Plan;
use crate::rules::events::{Event, Telling};
use crate::tables::{Tables, again};
use crate::vocabulary::Vocabulary;
use crate::{Piece, limit_error};
use punchcard_automata::work;
use punchcard_schema::SchemaError;
use std::sync::Arc;

/// What a step took.
#[derive(Clone, Debug)]
enum Taken {
    /// Nothing: the beginning of the text.
    Nothing,
    Token(u32),
    Bytes(Box<[u8]>),
}

/// Where a sequence stands after a step.
#[derive(Clone, Debug)]
struct Step {
    /// What led here: with it the configuration is found again in another epoch of the grammar's tables.
    taken: Taken,
    config: ConfigId,
    /// An end token was taken.
    ended: bool,
    /// Tokens taken so far.
    spent: u32,
    /// Under a budget: the tokens that complete the text in time, where no better way is known.
    plan: Option<Plan>,
    /// Events, if they are told.
    telling: Option<Telling>,
}

/// Follows one sequence of tokens. Cheap to fork; rolling back costs as much as is rolled back.
#[derive(Clone, Debug)]
pub struct Matcher {
    grammar: CompiledGrammar,
    sequence: Sequence,
    budget: Option<u32>,
}

/// The steps that were taken.
#[derive(Clone, Debug)]
struct Sequence {
    /// The epoch of the tables that configurations belong to, and the first step whose configuration does.
    epoch: u64,
    first: usize,
    /// One more than steps were taken.
    history: Vec<Step>,
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

impl Sequence {
    fn here(&self) -> &Step {
        // The history is never empty: rolling back and resetting leave its first step.
        &self.history[self.history.len() - 1]
    }

    /// Makes the configuration one of the tables, if they are of a later epoch.
    fn settle(&mut self, source: &Source, tables: &mut Tables) -> Result<(), SchemaError> {
        tables.renew_if_full(source)?;
        let last = self.history.len() - 1;
        let is_current = self.epoch == tables.epoch();
        if is_current && self.first <= last {
            return Ok(());
        }
        // What events are told of has tables of its own, which are not carried over.
        if !is_current
            && self.first <= last
            && self.history[last].telling.is_none()
            && let Some(config) = tables.carry(self.epoch, self.history[last].config, source)?
        {
            self.history[last].config = config;
            (self.epoch, self.first) = (tables.epoch(), last);
            return Ok(());
        }
        // It takes no more than was taken before, however much that is.
        work::within(u64::MAX, || self.reread(source, tables))
    }

    /// Reads the text again, from its beginning, through as many epochs as that takes.
    fn reread(&mut self, source: &Source, tables: &mut Tables) -> Result<(), SchemaError> {
        let vocabulary = &*source.vocabulary;
        let tells = self.history[0].telling.is_some();
        let mut telling = if tells { Some(tables.start_telling(source).map_err(again)?) } else { None };
        let mut config = tables.start();
        let (size, mut first) = (tables.size(), 0);
        for at in 0..self.history.len() {
            let (id, bytes) = match &self.history[at].taken {
                Taken::Nothing => (None, None),
                Taken::Token(id) => (Some(*id), vocabulary.text_token(*id)),
                Taken::Bytes(bytes) => (None, Some(&**bytes)),
            };
            let next = match (id, bytes) {
                (Some(id), _) => tables.advance_token(vocabulary, config, id)?,
                (None, Some(bytes)) => tables.advance(config, bytes)?,
                (None, None) => None,
            };
            // An end token that the grammar does not ask for leads nowhere.
            let stops = next.is_none() && at > 0;
            config = next.unwrap_or(config);
            if let Some(told) = &mut telling {
                if !stops && at > 0 {
                    *told = tables.tell(told, id, bytes)?;
                }
                if self.history[at].ended {
                    *told = tables.tell_end(told)?;
                }
            }
            if !tells && tables.is_full() {
                let epoch = tables.epoch();
                tables.renew_if_full(source)?;
                // Without it the configuration would be one of tables that are gone.
                let Some(carried) = tables.carry(epoch, config, source)? else {
                    let hint = "Raise the limit: the text has to be read in one piece";
                    return Err(limit_error("max_memory", source.limits.max_memory, hint));
                };
                (config, first) = (carried, at);
            }
            let step = &mut self.history[at];
            (step.config, step.telling) = (config, telling.clone());
        }
        (self.epoch, self.first) = (tables.epoch(), first);
        if tells { tables.note_brought(size, source) } else { Ok(()) }
    }
}

/// A sequence and the tables of its grammar, for one operation.
struct Session<'a> {
    source: &'a Source,
    tables: Locked<'a>,
    sequence: &'a mut Sequence,
    budget: Option<u32>,
}

impl Session<'_> {
    fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.source.vocabulary
    }

    fn here(&self) -> &Step {
        self.sequence.here()
    }

    /// Writes the mask behind a step over a row.
    fn mask_at(&mut self, step: &Step, words: &mut [u32]) -> Result<(), SchemaError> {
        let vocabulary = &self.source.vocabulary;
        if step.ended {
            words.fill(0);
            vocabulary.eos().iter().for_each(|&id| set(words, id));
            return Ok(());
        }
        let Some(budget) = self.budget else { return self.tables.fill_mask(vocabulary, step.config, words) };
        self.tables.fill_mask_within(vocabulary, step.config, budget.saturating_sub(step.spent), words)?;
        if let Some(next) = self.plan_of(step)?.and_then(|plan| plan.first()) {
            set(words, next);
        }
        Ok(())
    }

    /// The tokens that complete the text, as far as they are known.
    fn plan_of(&mut self, step: &Step) -> Result<Option<Plan>, SchemaError> {
        match &step.plan {
            Some(plan) => Ok(Some(plan.clone())),
            None => self.tables.plan(&self.source.vocabulary, step.config),
        }
    }

    /// Where a token leads; `None` if it cannot come next.
    fn after(&mut self, step: &Step, id: u32) -> Result<Option<Step>, SchemaError> {
        if step.ended {
            return Ok(None);
        }
        let vocabulary = &self.source.vocabulary;
        let is_end = vocabulary.eos().binary_search(&id).is_ok();
        let next = match vocabulary.token(id) {
            None => None,
            Some(_) => self.tables.advance_token(vocabulary, step.config, id)?,
        };
        let taken = Taken::Token(id);
        let Some(config) = next else {
            let ended = is_end && self.tables.is_accepting(step.config)?;
            return Ok(ended.then(|| Step { taken, ended, ..step.clone() }));
        };
        // An end token that the grammar asks for ends the text if the text may end there.
        let ended = is_end && self.tables.is_accepting(config)?;
        let mut after = Step { taken, config, ended, spent: step.spent.saturating_add(1), plan: None, telling: None };
        if let Some(budget) = self.budget {
            let Some(left) = budget.checked_sub(after.spent) else { return Ok(None) };
            let in_time = self.tables.needs_at_most(vocabulary, config, left)?;
            if !in_time {
                let plan = self.plan_of(step)?;
                let Some(plan) = plan.filter(|plan| plan.first() == Some(id)) else { return Ok(None) };
                after.plan = Some(plan.behind_first());
            }
        }
        Ok(Some(after))
    }

    fn accept_token(&mut self, id: u32) -> Result<bool, SchemaError> {
        // Nearly always there is nothing to find out but where the token leads.
        if let Step { config, spent, ended: false, telling: None, .. } = *self.here()
            && self.budget.is_none()
            && self.source.vocabulary.text_token(id).is_some()
        {
            let Some(config) = self.tables.advance_token(&self.source.vocabulary, config, id)? else {
                return Ok(false);
            };
            let taken = Taken::Token(id);
            let spent = spent.saturating_add(1);
            self.sequence.history.push(Step { taken, config, ended: false, spent, plan: None, telling: None });
            return Ok(true);
        }
        let here = self.here().clone();
        let mut next = self.after(&here, id)?;
        if let (Some(next), Some(telling)) = (&mut next, &here.telling) {
            let text = self.source.vocabulary.text_token(id);
            let stopped = next.ended && next.spent == here.spent;
            let mut told = if stopped { telling.clone() } else { self.tables.tell(telling, Some(id), text)? };
            if next.ended {
                told = self.tables.tell_end(&told)?;
            }
            next.telling = Some(told);
        }
        let accepted = next.is_some();
        self.sequence.history.extend(next);
        Ok(accepted)
    }

    fn accept_bytes(&mut self, bytes: &[u8]) -> Result<bool, SchemaError> {
        let here = self.here().clone();
        let taken = Taken::Bytes(bytes.into());
        if here.ended {
            if bytes.is_empty() {
                self.sequence.history.push(Step { taken, ..here });
            }
            return Ok(bytes.is_empty());
        }
        let Some(config) = self.tables.advance(here.config, bytes)? else { return Ok(false) };
        let mut next = Step { taken, config, ended: false, spent: here.spent, plan: None, telling: None };
        if let Some(budget) = self.budget {
            let Some(tokens) = self.vocabulary().fewest_tokens(bytes) else { return Ok(false) };
            next.spent = next.spent.saturating_add(tokens.len() as u32);
            let in_time = match budget.checked_sub(next.spent) {
                Some(left) => self.tables.needs_at_most(&self.source.vocabulary, config, left)?,
                None => false,
            };
            if !in_time {
                let plan = self.plan_of(&here)?;
                let Some((count, rest)) = plan.and_then(|plan| self.planned(plan, bytes)) else { return Ok(false) };
                (next.spent, next.plan) = (here.spent + count, Some(rest));
            }
        }
        if let Some(telling) = &here.telling {
            next.telling = Some(self.tables.tell(telling, None, Some(bytes))?);
        }
        self.sequence.history.push(next);
        Ok(true)
    }

    /// How many tokens of a plan spell these bytes, and the tokens behind them.
    fn planned(&self, mut plan: Plan, bytes: &[u8]) -> Option<(u32, Plan)> {
        let (mut count, mut rest) = (0, bytes);
        while !rest.is_empty() {
            let text = self.vocabulary().text_token(plan.first()?)?;
            rest = rest.strip_prefix(text)?;
            plan = plan.behind_first();
            count += 1;
        }
        Some((count, plan))
    }

    /// What tokens are: text, or tokens that are none.
    fn pieces(&self, tokens: &[u32]) -> Vec<Piece> {
        let mut out: Vec<Piece> = Vec::new();
        for &id in tokens {
            match (self.vocabulary().text_token(id), out.last_mut()) {
                (Some(text), Some(Piece::Bytes(bytes))) => bytes.extend(text),
                (Some(text), _) => out.push(Piece::Bytes(text.to_vec())),
                (None, _) => out.push(Piece::Token(id)),
            }
        }
        out
    }
}

impl Matcher {
    /// A matcher at the beginning of a text. With a budget, every answer is complete within so many tokens, not counting
    /// the end token.
    pub fn new(grammar: CompiledGrammar, budget: Option<u32>) -> Result<Matcher, BudgetError> {
        let start = {
            let mut tables = grammar.lock();
            tables.renew_if_full(grammar.source())?;
            let config = tables.start();
            if let Some(budget) = budget {
                let plan = tables.plan(grammar.vocabulary(), config)?.ok_or(BudgetError::Unknown)?;
                let minimum = plan.len();
                if minimum > budget {
                    return Err(BudgetError::TooSmall { minimum });
                }
            }
            let start = Step { taken: Taken::Nothing, config, ended: false, spent: 0, plan: None, telling: None };
            Sequence { epoch: tables.epoch(), first: 0, history: vec![start] }
        };
        Ok(Matcher { grammar, sequence: start, budget })
    }

    /// Locks the grammar's tables for one operation.
    fn session(&mut self) -> Result<Session<'_>, SchemaError> {
        let Matcher { grammar, sequence, budget } = self;
        let (source, mut tables) = (grammar.source(), grammar.lock());
        sequence.settle(source, &mut tables)?;
        Ok(Session { source, tables, sequence, budget: *budget })
    }

    /// Tells events from the beginning on.
    pub fn tell_events(&mut self) -> Result<(), CompileError> {
        self.sequence.history.truncate(1);
        let mut session = self.session()?;
        let telling = session.tables.start_telling(session.source)?;
        session.sequence.history[0].telling = Some(telling);
        Ok(())
    }

    /// The events of the text so far that are certain, from the `first` on; `None` if they are not told.
    pub fn events(&self, first: usize) -> Option<Vec<Event>> {
        self.sequence.here().telling.as_ref().map(|telling| telling.events(first))
    }

    /// The grammar.
    pub fn grammar(&self) -> &CompiledGrammar {
        &self.grammar
    }

    /// Tokens that may still be taken, under a budget.
    pub fn budget_left(&self) -> Option<u32> {
        self.budget.map(|budget| budget.saturating_sub(self.sequence.here().spent))
    }

    /// Writes the mask of the next token over a row of `vocabulary.mask_words()` words. After the end only end tokens are
    /// set.
    pub fn fill_mask(&mut self, words: &mut [u32]) -> Result<(), SchemaError> {
        let mut session = self.session()?;
        if session.budget.is_none() && !session.here().ended {
            let config = session.here().config;
            return session.tables.fill_mask(&session.source.vocabulary, config, words);
        }
        let here = session.here().clone();
        session.mask_at(&here, words)
    }

    /// Takes a token; `false` if it cannot come next, and then nothing has changed.
    pub fn accept_token(&mut self, id: u32) -> Result<bool, SchemaError> {
        self.session()?.accept_token(id)
    }

    /// Takes text, as one step; `false` if it cannot come next, and then nothing has changed. Under a budget it counts as
    /// the fewest tokens that spell it.
    pub fn accept_bytes(&mut self, bytes: &[u8]) -> Result<bool, SchemaError> {
        self.session()?.accept_bytes(bytes)
    }

    /// How many of the tokens, from the first on, could be taken one after the other. Nothing changes.
    pub fn validate_tokens(&mut self, ids: &[u32]) -> Result<usize, SchemaError> {
        let mut session = self.session()?;
        let mut at = session.here().clone();
        for (count, &id) in ids.iter().enumerate() {
            match session.after(&at, id)? {
                Some(next) => at = next,
                None => return Ok(count),
            }
        }
        Ok(ids.len())
    }

    /// Masks for a tree of drafted tokens: the first row gets that of the place here, and the following rows those after
    /// each token, where the way to it from its parent (an earlier token, or `None` for here) is legal; where it is not,
    /// the row is empty. Returns which tokens are legal. Nothing changes.
    pub fn fill_draft_masks(
        &mut self,
        tokens: &[(u32, Option<usize>)],
        rows: &mut dyn Iterator<Item = &mut [u32]>,
    ) -> Result<Vec<bool>, SchemaError> {
        let mut session = self.session()?;
        let here = session.here().clone();
        rows.next().map_or(Ok(()), |row| session.mask_at(&here, row))?;
        let mut steps: Vec<Option<Step>> = Vec::with_capacity(tokens.len());
        for &(id, parent) in tokens {
            let before = match parent {
                None => Some(&here),
                Some(parent) => steps.get(parent).and_then(Option::as_ref),
            };
            let next = match before {
                Some(before) => session.after(before, id)?,
                None => None,
            };
            match (&next, rows.next()) {
                (Some(step), Some(row)) => session.mask_at(step, row)?,
                (None, Some(row)) => row.fill(0),
                (_, None) => {}
            }
            steps.push(next);
        }
        Ok(steps.iter().map(Option::is_some).collect())
    }

    /// What completes the text; nothing if it may end here, `None` if no example was found within the limits.
    pub fn completion(&mut self) -> Result<Option<Vec<Piece>>, SchemaError> {
        let mut session = self.session()?;
        let here = session.here().clone();
        match (here.ended, session.budget) {
            (true, _) => Ok(Some(Vec::new())),
            (_, None) => session.tables.completion(here.config),
            (_, Some(_)) => Ok(session.plan_of(&here)?.map(|plan| session.pieces(&plan.tokens()))),
        }
    }

    /// Tokens that complete the text, a short way if not the shortest; `None` if none was found within the limits.
    pub fn completion_tokens(&mut self) -> Result<Option<Arc<[u32]>>, SchemaError> {
        let mut session = self.session()?;
        let here = session.here().clone();
        if here.ended {
            return Ok(Some([].into()));
        }
        Ok(session.plan_of(&here)?.map(|plan| plan.tokens().into()))
    }

    /// In how many ways the text so far can be read. Masks cost in proportion to it.
    pub fn readings(&mut self) -> Result<usize, SchemaError> {
        let session = self.session()?;
        Ok(session.tables.readings(session.here().config))
    }

    /// Whether the text may end here.
    pub fn is_accepting(&mut self) -> Result<bool, SchemaError> {
        let mut session = self.session()?;
        let config = session.here().config;
        session.tables.is_accepting(config)
    }

    /// Whether an end token was taken.
    pub fn is_terminated(&self) -> bool {
        self.sequence.here().ended
    }

    /// How many steps can be rolled back.
    pub fn steps(&self) -> usize {
        self.sequence.history.len() - 1
    }

    /// Takes back the last `count` steps; `false` if there are fewer, and then nothing has changed.
    pub fn rollback(&mut self, count: usize) -> bool {
        if count > self.steps() {
            return false;
        }
        let left = self.sequence.history.len() - count;
        self.sequence.history.truncate(left);
        true
    }

    /// Back to the beginning.
    pub fn reset(&mut self) {
        self.sequence.history.truncate(1);
    }

    /// The bytes that every text must go on with, but for escapes that are not needed.
    pub fn forced(&mut self) -> Result<Vec<u8>, SchemaError> {
        const MOST: usize = 1 << 12;
        let mut session = self.session()?;
        let Step { ended, config, .. } = *session.here();
        if ended { Ok(Vec::new()) } else { session.tables.forced(config, MOST) }
    }

    /// Tokens that spell forced text: none of them could be part of a longer token that also fits what may follow, so the
    /// text is the same as without them.
    pub fn forced_tokens(&mut self) -> Result<Vec<u32>, SchemaError> {
        let forced = self.forced()?;
        Ok(self.grammar.vocabulary().settled_tokens(&forced))
    }
}
