//! What a compiled grammar builds while texts are read: its machine, its masks and all that it remembers.
//!
//! All of it can be built again from the grammar's source. So when texts have added half of the grammar's `max_memory`, a new
//! *epoch* begins with new tables, and the tables of the epoch before the last one are freed. Configurations mean nothing in
//! another epoch. A [`Matcher`](crate::Matcher) notes the epoch of its configurations. At its first step in a new epoch its
//! present state is carried over from the tables of the last one, which takes as long as that state is large. Where these
//! are gone, or where steps of an earlier epoch are rolled back to, it reads its text again.

use crate::Piece;
use crate::automaton::ConfigId;
use crate::budget::Budgets;
use crate::bytes::ByteSet;
use crate::error::CompileError;
use crate::grammar::{FREED_APART, Source, free_apart, on_a_large_stack};
use crate::limit_error;
use crate::machine::{Carried, Machine};
use crate::mask::Mask;
use crate::options::Limits;
use crate::plan::Plan;
use crate::rules::events::{Teller, Telling};
use crate::vocabulary::Vocabulary;
use hashbrown::HashMap;
use punchcard_automata::work;
use punchcard_schema::SchemaError;
use rustc_hash::FxBuildHasher;

/// Most bytes of finished masks that a grammar keeps.
const MASK_CACHE_BYTES: usize = 16 << 20;

/// The states of a grammar in one epoch.
#[derive(Debug)]
pub(crate) struct Tables {
    machine: Machine,
    start: ConfigId,
    masks: HashMap<ConfigId, Mask, FxBuildHasher>,
    mask_bytes: usize,
    budgets: Budgets,
    /// Made when events are asked for.
    teller: Option<Teller>,
    epoch: u64,
    /// The machine of the last epoch, and what was carried over from it.
    last: Option<Last>,
    /// Bytes that compiling took.
    compiled: usize,
    /// Bytes that were added by texts of earlier epochs.
    brought: usize,
    /// Bytes that the tables hold, when last measured.
    size: usize,
    /// Operations since then.
    unmeasured: usize,
    /// Bytes that texts of this epoch may add.
    room: usize,
    /// Texts have added as much, or have used up a limit, so that no other text could be read either.
    is_full: bool,
    /// An operation broke off in the middle, so nothing here can be trusted.
    is_broken: bool,
}

#[derive(Debug)]
struct Last {
    machine: Machine,
    size: usize,
    carried: Carried,
}

impl Tables {
    pub(crate) fn new(machine: Machine, epoch: u64, limits: &Limits) -> Tables {
        let mut tables = Tables {
            start: machine.start(),
            machine,
            masks: HashMap::default(),
            mask_bytes: 0,
            budgets: Budgets::default(),
            teller: None,
            epoch,
            last: None,
            compiled: 0,
            brought: 0,
            size: 0,
            unmeasured: 0,
            room: limits.max_memory / 2,
            is_full: false,
            is_broken: false,
        };
        tables.measure();
        tables.compiled = tables.size;
        tables.measure();
        tables
    }

    /// The configuration before the first byte.
    pub(crate) fn start(&self) -> ConfigId {
        self.start
    }

    /// The number of the epoch.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// An estimate of the bytes on the heap, as of the last operation that added states.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// Marks the tables as unusable: the next matcher begins a new epoch.
    pub(crate) fn mark_broken(&mut self) {
        self.is_broken = true;
    }

    fn measure(&mut self) {
        self.unmeasured = 0;
        let teller = self.teller.as_ref().map_or(0, Teller::memory_size);
        let last = self.last.as_ref().map_or(0, |last| last.size + last.carried.memory_size());
        self.size = self.machine.memory_size() + self.mask_bytes + self.budgets.memory_size() + teller + last;
        self.is_full = self.added() > self.room || self.machine.is_exhausted();
    }

    /// Measures where an operation broke off, as a limit may be used up.
    fn checked<T>(&mut self, result: Result<T, SchemaError>) -> Result<T, SchemaError> {
        if result.is_err() {
            self.measure();
        }
        result
    }

    /// Measures after an operation that may have added states; where that takes long, only now and then.
    fn notice(&mut self) {
        self.unmeasured += 1;
        if self.unmeasured > self.machine.parts() / 16 {
            self.measure();
        }
    }

    /// Bytes that texts of this epoch have added.
    fn added(&self) -> usize {
        let last = self.last.as_ref().map_or(0, |last| last.size);
        self.size.saturating_sub(last).saturating_sub(self.compiled).saturating_sub(self.brought)
    }

    /// Whether the epoch has to end.
    pub(crate) fn is_full(&self) -> bool {
        self.is_full || self.is_broken
    }

    /// Begins a new epoch if this one is full.
    pub(crate) fn renew_if_full(&mut self, source: &Source) -> Result<(), SchemaError> {
        if !self.is_full() {
            return Ok(());
        }
        let compile = || Machine::new(&source.vocabulary, &source.expr, &source.limits);
        let machine = work::within(source.limits.max_work, || on_a_large_stack(compile)).map_err(again)?;
        let mut old = std::mem::replace(self, Tables::new(machine, self.epoch + 1, &source.limits));
        if !old.is_broken {
            let machine = old.machine;
            self.last = Some(Last { size: machine.memory_size(), machine, carried: Carried::default() });
            self.measure();
        }
        if let Some(last) = old.last.take().filter(|last| last.size > FREED_APART) {
            free_apart(last);
        }
        Ok(())
    }

    /// Carries a configuration of an earlier epoch over; `None` if its tables are gone.
    pub(crate) fn carry(
        &mut self,
        epoch: u64,
        config: ConfigId,
        source: &Source,
    ) -> Result<Option<ConfigId>, SchemaError> {
        let Some(last) = self.last.as_mut().filter(|_| epoch + 1 == self.epoch) else { return Ok(None) };
        let carried = self.machine.carry(&last.machine, config, &mut last.carried);
        self.note_brought(self.size, source)?;
        Ok(carried)
    }

    /// Notes that what was added since the tables had a size comes from one text of an earlier epoch, so that it does not
    /// fill this one.
    pub(crate) fn note_brought(&mut self, before: usize, source: &Source) -> Result<(), SchemaError> {
        self.measure();
        let brought = self.size.saturating_sub(before);
        self.brought += brought;
        self.measure();
        if brought > source.limits.max_memory {
            let hint = "One text takes more than this: shorten it, or raise the limit";
            return Err(limit_error("max_memory", source.limits.max_memory, hint));
        }
        Ok(())
    }

    /// Writes the mask of a configuration over a row.
    pub(crate) fn fill_mask(
        &mut self,
        vocabulary: &Vocabulary,
        config: ConfigId,
        words: &mut [u32],
    ) -> Result<(), SchemaError> {
        if let Some(mask) = self.masks.get(&config) {
            mask.write(words);
            return Ok(());
        }
        let mask = self.machine.fill_mask(vocabulary, config, words);
        let mask = self.checked(mask)?;
        if self.mask_bytes > MASK_CACHE_BYTES {
            self.masks.clear();
            self.mask_bytes = 0;
        }
        self.mask_bytes += mask.memory_size() + size_of::<(ConfigId, Mask)>();
        self.masks.insert(config, mask);
        self.notice();
        Ok(())
    }

    /// The configuration after more bytes; `None` if they cannot follow.
    pub(crate) fn advance(&mut self, config: ConfigId, bytes: &[u8]) -> Result<Option<ConfigId>, SchemaError> {
        let mut at = config;
        for &byte in bytes {
            let next = self.machine.step(at, byte);
            at = self.checked(next)?;
            if at == ConfigId::DEAD {
                break;
            }
        }
        self.notice();
        Ok((at != ConfigId::DEAD).then_some(at))
    }

    /// The configuration after a token that is text, or that the grammar asks for by id; `None` if it cannot follow.
    pub(crate) fn advance_token(
        &mut self,
        vocabulary: &Vocabulary,
        config: ConfigId,
        id: u32,
    ) -> Result<Option<ConfigId>, SchemaError> {
        if let Some(next) = self.machine.known_token(config, id) {
            return Ok((next != ConfigId::DEAD).then_some(next));
        }
        let next = self.machine.step_token(config, id, vocabulary.text_token(id));
        let next = self.checked(next)?;
        self.notice();
        Ok((next != ConfigId::DEAD).then_some(next))
    }

    /// In how many ways the text so far can be read: the readings of the configuration.
    pub(crate) fn readings(&self, config: ConfigId) -> usize {
        self.machine.readings(config)
    }

    /// Whether the text may end in this configuration.
    pub(crate) fn is_accepting(&mut self, config: ConfigId) -> Result<bool, SchemaError> {
        let accepting = self.machine.is_accepting(config);
        self.checked(accepting)
    }

    /// What has to come until the text may end; `None` if no example was found within the limits.
    pub(crate) fn completion(&mut self, config: ConfigId) -> Result<Option<Vec<Piece>>, SchemaError> {
        let completion = self.machine.completion(config);
        self.measure();
        completion
    }

    /// Tokens that complete the text; `None` if no example was found within the limits.
    pub(crate) fn plan(&mut self, vocabulary: &Vocabulary, config: ConfigId) -> Result<Option<Plan>, SchemaError> {
        let plan = self.budgets.plan(&mut self.machine, vocabulary, config);
        self.measure();
        plan
    }

    /// Whether so many tokens are enough to complete the text.
    pub(crate) fn needs_at_most(
        &mut self,
        vocabulary: &Vocabulary,
        config: ConfigId,
        tokens: u32,
    ) -> Result<bool, SchemaError> {
        let enough = self.budgets.needs_at_most(&mut self.machine, vocabulary, config, tokens);
        self.checked(enough)
    }

    /// Writes the mask of those tokens after which the text can be completed, `tokens` in all, over a row.
    pub(crate) fn fill_mask_within(
        &mut self,
        vocabulary: &Vocabulary,
        config: ConfigId,
        tokens: u32,
        words: &mut [u32],
    ) -> Result<(), SchemaError> {
        self.fill_mask(vocabulary, config, words)?;
        let restricted = self.budgets.restrict(&mut self.machine, vocabulary, config, tokens, words);
        self.measure();
        restricted
    }

    /// Where events begin to be told.
    pub(crate) fn start_telling(&mut self, source: &Source) -> Result<Telling, CompileError> {
        let teller = match &mut self.teller {
            Some(teller) => teller,
            None => {
                let make = || Teller::new(&source.expr, &source.vocabulary, &source.limits);
                let teller = self.teller.insert(on_a_large_stack(make)?);
                self.compiled += teller.memory_size();
                teller
            }
        };
        Ok(teller.start()?)
    }

    /// What is told after a token, or a text.
    pub(crate) fn tell(
        &mut self,
        telling: &Telling,
        id: Option<u32>,
        bytes: Option<&[u8]>,
    ) -> Result<Telling, SchemaError> {
        let Some(teller) = &mut self.teller else { return Ok(telling.clone()) };
        let told = teller.take(telling, id, bytes);
        self.measure();
        told
    }

    /// What is told at the end of the text.
    pub(crate) fn tell_end(&mut self, telling: &Telling) -> Result<Telling, SchemaError> {
        match &mut self.teller {
            Some(teller) => teller.finish(telling),
            None => Ok(telling.clone()),
        }
    }

    /// The bytes that every text must go on with, but for escapes that are not needed. Stops where the text may end, or
    /// where more than `most` bytes are forced.
    pub(crate) fn forced(&mut self, config: ConfigId, most: usize) -> Result<Vec<u8>, SchemaError> {
        let forced = self.find_forced(config, most);
        let forced = self.checked(forced)?;
        self.notice();
        Ok(forced)
    }

    fn find_forced(&mut self, config: ConfigId, most: usize) -> Result<Vec<u8>, SchemaError> {
        let machine = &mut self.machine;
        let (mut at, mut out) = (config, Vec::new());
        'bytes: while out.len() < most && !machine.is_accepting(at)? && !machine.asks_for_tokens(at)? {
            let mut possible = ByteSet::default();
            machine.possible_bytes(at, &mut possible)?;
            if possible.contains(b'\\') && machine.needs_no_escape(at)? {
                possible.remove(b'\\');
            }
            let mut only = None;
            for byte in possible.iter() {
                let next = machine.step(at, byte)?;
                if next != ConfigId::DEAD {
                    if only.is_some() {
                        break 'bytes;
                    }
                    only = Some((byte, next));
                }
            }
            let Some((byte, next)) = only else { break };
            out.push(byte);
            at = next;
        }
        Ok(out)
    }
}

/// Compiling what was compiled before cannot fail but for want of time or memory.
pub(crate) fn again(error: CompileError) -> SchemaError {
    match error {
        CompileError::Schema(error) => error,
        CompileError::Grammar(error) => limit_error("max_memory", 0, &error.message),
    }
}
