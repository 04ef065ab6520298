//! A compiled grammar: the machine, the vocabulary, and the finished masks, shared by all matchers.

use crate::leaf::Encoding;
use crate::machine::{ConfigId, Machine, MachineLimits, Spelling};
use crate::mask::{Mask, set};
use crate::vocabulary::Vocabulary;
use hashbrown::HashMap;
use punchcard_automata::pattern::{self, PatternError};
use punchcard_automata::{CharSet, Language, Languages};
use punchcard_schema::{Algebra, JsonLimits, Options, SchemaError};
use rustc_hash::FxBuildHasher;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// White space between the tokens of JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhiteSpace {
    /// None at all.
    None,
    /// At most one space, or one line break and up to so many spaces or tabs.
    Bounded(u32),
    /// Any run.
    Any,
}

/// Everything that a caller may choose about a JSON grammar.
#[derive(Clone, Debug)]
pub struct JsonOptions {
    /// Options of the schema.
    pub schema: Options,
    /// White space between tokens.
    pub white_space: WhiteSpace,
    /// White space may also stand before and after the whole text.
    pub outer_white_space: bool,
    /// Characters may be escaped that need not be.
    pub any_escapes: bool,
    /// Further documents for references, as (URI, JSON text).
    pub resources: Vec<(String, String)>,
    /// Limits on the text of schemas.
    pub json_limits: JsonLimits,
    /// Limits on what texts build up.
    pub machine_limits: MachineLimits,
}

impl Default for JsonOptions {
    fn default() -> Self {
        JsonOptions {
            schema: Options::default(),
            white_space: WhiteSpace::Bounded(64),
            outer_white_space: false,
            any_escapes: false,
            resources: Vec::new(),
            json_limits: JsonLimits::default(),
            machine_limits: MachineLimits::default(),
        }
    }
}

fn white_space(kind: WhiteSpace, l: &mut Languages) -> Language {
    let set = |l: &mut Languages, chars: &str| l.set(CharSet::new(chars.chars().map(|c| (c as u32, c as u32))));
    match kind {
        WhiteSpace::None => Language::EPSILON,
        WhiteSpace::Any => {
            let any = set(l, " \t\n\r");
            l.star(any)
        }
        WhiteSpace::Bounded(most) => {
            let blank = set(l, " \t");
            let indentation = l.repeat(blank, 0, most);
            let line = l.literal("\n");
            let line = l.concat(line, indentation);
            let space = l.literal(" ");
            l.union([Language::EPSILON, space, line])
        }
    }
}

#[derive(Debug)]
struct Inner {
    machine: Machine,
    masks: HashMap<ConfigId, Mask, FxBuildHasher>,
    mask_bytes: usize,
}

/// A grammar compiled for a vocabulary. Cheap to clone; the caches behind it grow as texts visit new states.
#[derive(Clone, Debug)]
pub struct CompiledGrammar {
    vocabulary: Arc<Vocabulary>,
    inner: Arc<Mutex<Inner>>,
    start: ConfigId,
}

/// Groups of a regular expression within each other, and the bytes of stack that reading them takes.
const MOST_GROUPS_WITHIN_EACH_OTHER: usize = 10_000;
const PATTERN_STACK: usize = 256 << 20;

/// Most bytes of finished masks that a grammar keeps.
const MASK_CACHE_BYTES: usize = 16 << 20;

impl CompiledGrammar {
    /// Compiles a JSON Schema given as JSON text.
    pub fn json_schema(vocabulary: Arc<Vocabulary>, schema: &str, options: &JsonOptions) -> Result<Self, SchemaError> {
        let (algebra, formula) = Algebra::new(
            schema,
            &options.resources,
            options.schema.clone(),
            options.json_limits,
            vocabulary.alphabet(),
        )?;
        let machine = Machine::new(algebra, formula, options.machine_limits, |languages| {
            let space = white_space(options.white_space, languages);
            Spelling {
                encoding: if options.any_escapes { Encoding::Escaped } else { Encoding::Minimal },
                space,
                outer_space: if options.outer_white_space { space } else { Language::EPSILON },
            }
        });
        let start = machine.start();
        let inner = Inner { machine, masks: HashMap::default(), mask_bytes: 0 };
        Ok(CompiledGrammar { vocabulary, inner: Arc::new(Mutex::new(inner)), start })
    }

    /// Compiles a regular expression, ECMA-262 in Unicode mode, which the whole text matches.
    pub fn regex(vocabulary: Arc<Vocabulary>, source: &str, options: &JsonOptions) -> Result<Self, PatternError> {
        // Deep nesting is read with a stack of its own.
        stacker::grow(PATTERN_STACK, || Self::regex_within_stack(vocabulary, source, options))
    }

    fn regex_within_stack(
        vocabulary: Arc<Vocabulary>,
        source: &str,
        options: &JsonOptions,
    ) -> Result<Self, PatternError> {
        let reading = pattern::Options { max_nesting: MOST_GROUPS_WITHIN_EACH_OTHER, ..Default::default() };
        let pattern = pattern::parse(source, &reading)?;
        let refused = |error: SchemaError| PatternError::new(0, error.message);
        let (mut algebra, _) =
            Algebra::new("true", &[], options.schema.clone(), options.json_limits, vocabulary.alphabet())
                .map_err(refused)?;
        let language = pattern.full(&mut algebra.languages)?;
        if !algebra.languages.is_viable(language).map_err(|limit| refused(limit.into()))? {
            return Err(PatternError::new(0, "no text matches it".to_string()));
        }
        let machine = Machine::for_texts(algebra, language, options.machine_limits);
        let start = machine.start();
        let inner = Inner { machine, masks: HashMap::default(), mask_bytes: 0 };
        Ok(CompiledGrammar { vocabulary, inner: Arc::new(Mutex::new(inner)), start })
    }

    /// The vocabulary that the grammar was compiled for.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocabulary
    }

    /// The configuration before the first byte.
    pub fn start(&self) -> ConfigId {
        self.start
    }

    /// An estimate of the bytes that the grammar and its caches hold.
    pub fn memory_size(&self) -> usize {
        let inner = self.lock();
        inner.machine.memory_size() + inner.mask_bytes
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
        words.fill(0);
        inner.machine.fill_mask(&self.vocabulary, config, words)?;
        if inner.machine.is_accepting(config) {
            self.vocabulary.eos().iter().for_each(|&id| set(words, id));
        }
        let mask = Mask::of(words);
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

    /// In how many ways the text so far can be read: the readings of the configuration.
    pub fn readings(&self, config: ConfigId) -> usize {
        self.lock().machine.readings_of(config).len()
    }

    /// Whether the text may end in this configuration.
    pub fn is_accepting(&self, config: ConfigId) -> bool {
        self.lock().machine.is_accepting(config)
    }

    /// Bytes after which the text may end; `None` if no example was found within the limits.
    pub fn completion(&self, config: ConfigId) -> Result<Option<Vec<u8>>, SchemaError> {
        self.lock().machine.completion(config)
    }

    /// The bytes that every text must go on with, and where they lead. Stops where the text may end, or where more than
    /// `most` bytes are forced.
    pub fn forced(&self, config: ConfigId, most: usize) -> Result<Vec<u8>, SchemaError> {
        let machine = &mut self.lock().machine;
        let (mut at, mut out) = (config, Vec::new());
        while out.len() < most && !machine.is_accepting(at) {
            let mut only = None;
            for byte in 0..=255u8 {
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
