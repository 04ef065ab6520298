//! A compiled grammar: a machine, the vocabulary, and the finished masks, shared by all matchers.

use crate::automaton::ConfigId;
use crate::budget::Budgets;
use crate::bytes::ByteSet;
use crate::error::CompileError;
use crate::mask::{Mask, set};
use crate::options::{JsonOptions, Limits};
use crate::rules::events::{Teller, Telling};
use crate::vocabulary::Vocabulary;
use crate::{Piece, json, rules};
use hashbrown::HashMap;
use punchcard_grammar::Expr;
use punchcard_schema::SchemaError;
use rustc_hash::FxBuildHasher;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What reads the text.
#[derive(Debug)]
pub(crate) enum Machine {
    Json(Box<json::Machine>),
    Rules(Box<rules::Machine>),
}

impl Machine {
    pub(crate) fn step(&mut self, config: ConfigId, byte: u8) -> Result<ConfigId, SchemaError> {
        match self {
            Machine::Json(machine) => machine.step(config, byte),
            Machine::Rules(machine) => machine.step(config, byte),
        }
    }

    pub(crate) fn is_accepting(&mut self, config: ConfigId) -> Result<bool, SchemaError> {
        match self {
            Machine::Json(machine) => Ok(machine.is_accepting(config)),
            Machine::Rules(machine) => machine.is_accepting(config),
        }
    }

    /// The configuration after a token: `bytes` is what it spells, if it is text.
    pub(crate) fn step_token(
        &mut self,
        config: ConfigId,
        id: u32,
        bytes: Option<&[u8]>,
    ) -> Result<ConfigId, SchemaError> {
        match self {
            Machine::Rules(machine) => machine.step_token(config, id, bytes),
            Machine::Json(machine) => bytes.map_or(Ok(ConfigId::DEAD), |bytes| machine.step_token(config, id, bytes)),
        }
    }

    /// The configuration at the end of a token that is text.
    pub(crate) fn after_token(&mut self, config: ConfigId) -> Result<ConfigId, SchemaError> {
        match self {
            Machine::Rules(machine) => machine.after_token(config),
            Machine::Json(_) => Ok(config),
        }
    }

    /// Tokens that the grammar asks for by id, sorted.
    pub(crate) fn asked_for(&mut self, config: ConfigId) -> Result<Vec<u32>, SchemaError> {
        match self {
            Machine::Rules(machine) => machine.asked_for(config),
            Machine::Json(_) => Ok(Vec::new()),
        }
    }

    /// A configuration with an equal completion: member names that are treated alike are one.
    pub(crate) fn representative(&mut self, config: ConfigId) -> Result<ConfigId, SchemaError> {
        match self {
            Machine::Rules(machine) => machine.representative(config),
            Machine::Json(machine) => machine.representative(config),
        }
    }

    /// The same, also where what completes the text has the name in question in it.
    pub(crate) fn stand_in(&mut self, config: ConfigId) -> Result<ConfigId, SchemaError> {
        match self {
            Machine::Rules(machine) => machine.stand_in(config),
            Machine::Json(machine) => machine.stand_in(config),
        }
    }

    /// Whether a member name is being read, and nothing else.
    pub(crate) fn is_in_name(&self, config: ConfigId) -> bool {
        match self {
            Machine::Rules(machine) => machine.is_in_name(config),
            Machine::Json(machine) => machine.is_in_name(config),
        }
    }

    /// What completes `other`, from all places on that are, in a string, behind the member name being read in `config`.
    pub(crate) fn strings_after(&mut self, config: ConfigId, other: ConfigId) -> Result<Vec<Vec<u8>>, SchemaError> {
        match self {
            Machine::Rules(machine) => machine.strings_after(config, other),
            Machine::Json(machine) => machine.strings_after(config, other),
        }
    }

    pub(crate) fn fill_mask(
        &mut self,
        vocabulary: &Vocabulary,
        config: ConfigId,
        words: &mut [u32],
    ) -> Result<Mask, SchemaError> {
        match self {
            Machine::Json(machine) => machine.fill_mask(vocabulary, config, words),
            Machine::Rules(machine) => {
                words.fill(0);
                machine.fill_mask(vocabulary, config, words)?;
                if machine.is_accepting(config)? {
                    vocabulary.eos().iter().for_each(|&id| set(words, id));
                }
                Ok(Mask::of(words))
            }
        }
    }

    /// Adds the bytes that may come next, and perhaps some that may not.
    fn possible_bytes(&mut self, config: ConfigId, out: &mut ByteSet) -> Result<(), SchemaError> {
        match self {
            Machine::Json(machine) => machine.possible_bytes(config, out),
            Machine::Rules(machine) => machine.possible_bytes(config, out),
        }
    }

    /// Whether tokens may come next that are no text.
    fn asks_for_tokens(&mut self, config: ConfigId) -> Result<bool, SchemaError> {
        match self {
            Machine::Json(_) => Ok(false),
            Machine::Rules(machine) => Ok(!machine.token_exits(config)?.is_empty()),
        }
    }

    pub(crate) fn completion(&mut self, config: ConfigId) -> Result<Option<Vec<Piece>>, SchemaError> {
        match self {
            Machine::Json(machine) => {
                let bytes = machine.completion(config)?;
                Ok(bytes.map(|bytes| if bytes.is_empty() { Vec::new() } else { vec![Piece::Bytes(bytes)] }))
            }
            Machine::Rules(machine) => machine.completion(config),
        }
    }

    fn readings(&self, config: ConfigId) -> usize {
        match self {
            Machine::Json(machine) => machine.readings_of(config).len(),
            Machine::Rules(machine) => machine.readings_of(config).len(),
        }
    }

    fn memory_size(&self) -> usize {
        match self {
            Machine::Json(machine) => machine.memory_size(),
            Machine::Rules(machine) => machine.memory_size(),
        }
    }
}

#[derive(Debug)]
struct Inner {
    machine: Machine,
    masks: HashMap<ConfigId, Mask, FxBuildHasher>,
    mask_bytes: usize,
    budgets: Budgets,
    /// Made when events are asked for.
    teller: Option<Teller>,
}

/// A grammar compiled for a vocabulary. Cheap to clone; the caches behind it grow as texts visit new states.
#[derive(Clone, Debug)]
pub struct CompiledGrammar {
    vocabulary: Arc<Vocabulary>,
    source: Arc<(Expr, Limits)>,
    inner: Arc<Mutex<Inner>>,
    start: ConfigId,
}

/// Most bytes of finished masks that a grammar keeps.
const MASK_CACHE_BYTES: usize = 16 << 20;

/// Bytes of stack that compiling may take: expressions and regular expressions nest.
const COMPILE_STACK: usize = 256 << 20;

/// Grammars that hold more bytes are freed on a thread of their own.
const FREED_APART: usize = 1 << 20;

impl Drop for CompiledGrammar {
    /// What many texts built up is a great many small pieces, and giving back a hundred megabytes takes a tenth of a second:
    /// too long for whoever lets go of the last handle, who may hold Python's lock or be about to compile the next grammar.
    fn drop(&mut self) {
        if Arc::strong_count(&self.inner) == 1 && self.memory_size() > FREED_APART {
            let inner = self.inner.clone();
            // Where no thread can be had, the closure is dropped here and now.
            let _ = std::thread::Builder::new().name("punchcard-free".into()).spawn(move || drop(inner));
        }
    }
}

impl CompiledGrammar {
    /// Compiles a grammar expression.
    pub fn new(vocabulary: Arc<Vocabulary>, expr: Expr, limits: &Limits) -> Result<Self, CompileError> {
        let machine = stacker::grow(COMPILE_STACK, || match &expr {
            Expr::JsonSchema { schema, options } => {
                let options = JsonOptions::from_map(options, limits)?;
                Ok::<_, CompileError>(Machine::Json(Box::new(options.machine(schema, &vocabulary)?)))
            }
            _ => {
                let lowered = rules::lower::lower(&expr, &vocabulary, limits, false)?;
                Ok(Machine::Rules(Box::new(rules::Machine::new(lowered, limits.machine())?)))
            }
        })?;
        let start = match &machine {
            Machine::Json(machine) => machine.start(),
            Machine::Rules(machine) => machine.start(),
        };
        let inner =
            Inner { machine, masks: HashMap::default(), mask_bytes: 0, budgets: Budgets::default(), teller: None };
        let source = Arc::new((expr, *limits));
        Ok(CompiledGrammar { vocabulary, source, inner: Arc::new(Mutex::new(inner)), start })
    }

    /// The vocabulary that the grammar was compiled for.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocabulary
    }

    /// Equal for clones of one compiled grammar, which share their caches.
    pub fn address(&self) -> usize {
        Arc::as_ptr(&self.inner) as usize
    }

    /// The expression that was compiled.
    pub fn expr(&self) -> &Expr {
        &self.source.0
    }

    /// The limits that it was compiled with.
    pub fn limits(&self) -> &Limits {
        &self.source.1
    }

    /// The configuration before the first byte.
    pub fn start(&self) -> ConfigId {
        self.start
    }

    /// An estimate of the bytes that the grammar and its caches hold.
    pub fn memory_size(&self) -> usize {
        let inner = self.lock();
        inner.machine.memory_size() + inner.mask_bytes + inner.budgets.memory_size()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A panic while the lock was held would leave only caches behind, and those are written last.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the mask of a configuration over a row.
    pub fn fill_mask(&self, config: ConfigId, words: &mut [u32]) -> Result<(), SchemaError> {
        let inner = &mut *self.lock();
        if let Some(mask) = inner.masks.get(&config) {
            mask.write(words);
            return Ok(());
        }
        let mask = inner.machine.fill_mask(&self.vocabulary, config, words)?;
        if inner.mask_bytes > MASK_CACHE_BYTES {
            inner.masks.clear();
            inner.mask_bytes = 0;
        }
        inner.mask_bytes += mask.memory_size();
        inner.masks.insert(config, mask);
        Ok(())
    }

    /// The configuration after more bytes; `None` if they cannot follow.
    pub fn advance(&self, config: ConfigId, bytes: &[u8]) -> Result<Option<ConfigId>, SchemaError> {
        let machine = &mut self.lock().machine;
        let mut at = config;
        for &byte in bytes {
            at = machine.step(at, byte)?;
            if at == ConfigId::DEAD {
                return Ok(None);
            }
        }
        Ok(Some(at))
    }

    /// The configuration after a token that is text, or that the grammar asks for by id; `None` if it cannot follow.
    pub fn advance_token(&self, config: ConfigId, id: u32) -> Result<Option<ConfigId>, SchemaError> {
        let next = self.lock().machine.step_token(config, id, self.vocabulary.text_token(id))?;
        Ok((next != ConfigId::DEAD).then_some(next))
    }

    /// In how many ways the text so far can be read: the readings of the configuration.
    pub fn readings(&self, config: ConfigId) -> usize {
        self.lock().machine.readings(config)
    }

    /// Whether the text may end in this configuration.
    pub fn is_accepting(&self, config: ConfigId) -> Result<bool, SchemaError> {
        self.lock().machine.is_accepting(config)
    }

    /// What has to come until the text may end; `None` if no example was found within the limits.
    pub fn completion(&self, config: ConfigId) -> Result<Option<Vec<Piece>>, SchemaError> {
        self.lock().machine.completion(config)
    }

    /// Tokens that complete the text; `None` if no example was found within the limits.
    pub fn plan(&self, config: ConfigId) -> Result<Option<Arc<[u32]>>, SchemaError> {
        let inner = &mut *self.lock();
        inner.budgets.plan(&mut inner.machine, &self.vocabulary, config)
    }

    /// Whether so many tokens are enough to complete the text.
    pub fn needs_at_most(&self, config: ConfigId, tokens: u32) -> Result<bool, SchemaError> {
        let inner = &mut *self.lock();
        inner.budgets.needs_at_most(&mut inner.machine, &self.vocabulary, config, tokens)
    }

    /// Writes the mask of those tokens after which the text can be completed, `tokens` in all, over a row.
    pub fn fill_mask_within(&self, config: ConfigId, tokens: u32, words: &mut [u32]) -> Result<(), SchemaError> {
        self.fill_mask(config, words)?;
        let inner = &mut *self.lock();
        inner.budgets.restrict(&mut inner.machine, &self.vocabulary, config, tokens, words)
    }

    /// Where events begin to be told.
    pub(crate) fn start_telling(&self) -> Result<Telling, CompileError> {
        let inner = &mut *self.lock();
        let teller = match &mut inner.teller {
            Some(teller) => teller,
            None => {
                let (expr, limits) = &*self.source;
                let teller = stacker::grow(COMPILE_STACK, || Teller::new(expr, &self.vocabulary, limits))?;
                inner.teller.insert(teller)
            }
        };
        Ok(teller.start()?)
    }

    /// What is told after a token, or a text.
    pub(crate) fn tell(
        &self,
        telling: &Telling,
        id: Option<u32>,
        bytes: Option<&[u8]>,
    ) -> Result<Telling, SchemaError> {
        match &mut self.lock().teller {
            Some(teller) => teller.take(telling, id, bytes),
            None => Ok(telling.clone()),
        }
    }

    /// What is told at the end of the text.
    pub(crate) fn tell_end(&self, telling: &Telling) -> Result<Telling, SchemaError> {
        match &mut self.lock().teller {
            Some(teller) => teller.finish(telling),
            None => Ok(telling.clone()),
        }
    }

    /// The bytes that every text must go on with. Stops where the text may end, or where more than `most` bytes are forced.
    pub fn forced(&self, config: ConfigId, most: usize) -> Result<Vec<u8>, SchemaError> {
        let machine = &mut self.lock().machine;
        let (mut at, mut out) = (config, Vec::new());
        while out.len() < most && !machine.is_accepting(at)? && !machine.asks_for_tokens(at)? {
            let mut possible = ByteSet::default();
            machine.possible_bytes(at, &mut possible)?;
            let mut only = None;
            for byte in possible.iter() {
                let next = machine.step(at, byte)?;
                if next != ConfigId::DEAD {
                    if only.is_some() {
                        return Ok(out);
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
