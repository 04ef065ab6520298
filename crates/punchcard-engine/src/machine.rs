//! The machine of a grammar, whichever of the two kinds it is.

use crate::automaton::ConfigId;
use crate::bytes::ByteSet;
use crate::error::CompileError;
use crate::mask::{Mask, set};
use crate::options::{JsonOptions, Limits};
use crate::vocabulary::Vocabulary;
use crate::{Piece, json, rules};
use punchcard_grammar::Expr;
use punchcard_schema::SchemaError;

/// What was carried over from another machine so far.
#[derive(Debug, Default)]
pub(crate) struct Carried {
    json: json::Carried,
    rules: rules::Carried,
}

impl Carried {
    /// An estimate of the bytes on the heap.
    pub(crate) fn memory_size(&self) -> usize {
        self.json.memory_size() + self.rules.memory_size()
    }
}

/// Where a text stands on a way to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Spot {
    Json(json::Reading),
    Rules(rules::Spot),
}

/// Pieces of what completes a text, and where it stands behind them, unless that is the end.
type CompletionStep = (Vec<Piece>, Option<Spot>);

/// What reads the text.
#[derive(Debug)]
pub(crate) enum Machine {
    Json(Box<json::Machine>),
    Rules(Box<rules::Machine>),
}

impl Machine {
    /// Compiles a grammar expression.
    pub(crate) fn new(vocabulary: &Vocabulary, expr: &Expr, limits: &Limits) -> Result<Machine, CompileError> {
        match expr {
            Expr::JsonSchema { schema, options } => {
                let options = JsonOptions::from_map(options, limits)?;
                Ok(Machine::Json(Box::new(options.machine(schema, vocabulary)?)))
            }
            _ => {
                let lowered = rules::lower::lower(expr, vocabulary, limits, false)?;
                Ok(Machine::Rules(Box::new(rules::Machine::new(lowered, limits.machine())?)))
            }
        }
    }

    /// The configuration before the first byte.
    pub(crate) fn start(&self) -> ConfigId {
        match self {
            Machine::Json(machine) => machine.start(),
            Machine::Rules(machine) => machine.start(),
        }
    }

    /// Carries a configuration of another machine over, which was made from the same grammar; `None` if that cannot be.
    pub(crate) fn carry(&mut self, from: &Machine, config: ConfigId, carried: &mut Carried) -> Option<ConfigId> {
        match (self, from) {
            (Machine::Json(machine), Machine::Json(from)) => Some(machine.carry(from, config, &mut carried.json)),
            (Machine::Rules(machine), Machine::Rules(from)) => machine.carry(from, config, &mut carried.rules),
            _ => None,
        }
    }

    /// How many machines of JSON are parts of it.
    pub(crate) fn parts(&self) -> usize {
        match self {
            Machine::Json(_) => 0,
            Machine::Rules(machine) => machine.parts.len(),
        }
    }

    /// Whether it has used up a limit, so that there is hardly a text that it could still read.
    pub(crate) fn is_exhausted(&self) -> bool {
        match self {
            Machine::Json(machine) => machine.is_exhausted(),
            Machine::Rules(machine) => machine.is_exhausted(),
        }
    }

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

    /// The configuration after a token, if it was asked for lately.
    pub(crate) fn known_token(&self, config: ConfigId, id: u32) -> Option<ConfigId> {
        match self {
            Machine::Rules(machine) => machine.known_token(config, id),
            Machine::Json(machine) => machine.known_token(config, id),
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
    pub(crate) fn possible_bytes(&mut self, config: ConfigId, out: &mut ByteSet) -> Result<(), SchemaError> {
        match self {
            Machine::Json(machine) => machine.possible_bytes(config, out),
            Machine::Rules(machine) => machine.possible_bytes(config, out),
        }
    }

    /// Whether a backslash that comes next is a detour in JSON.
    pub(crate) fn needs_no_escape(&mut self, config: ConfigId) -> Result<bool, SchemaError> {
        match self {
            Machine::Json(machine) => machine.needs_no_escape(config),
            Machine::Rules(machine) => machine.needs_no_escape(config),
        }
    }

    /// Whether tokens may come next that are no text.
    pub(crate) fn asks_for_tokens(&mut self, config: ConfigId) -> Result<bool, SchemaError> {
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

    /// Where the ways to complete the text begin, the best first.
    pub(crate) fn spots(&mut self, config: ConfigId) -> Result<Vec<Spot>, SchemaError> {
        match self {
            Machine::Json(machine) => Ok(machine.readings_of(config).iter().copied().map(Spot::Json).collect()),
            Machine::Rules(machine) => Ok(machine.completing(config)?.map(Spot::Rules).into_iter().collect()),
        }
    }

    /// The first pieces of what completes the text from a spot on, and the spot behind them, unless that is the end; `None`
    /// if no example of a part was found within the limits.
    pub(crate) fn completion_step(&mut self, spot: Spot) -> Result<Option<CompletionStep>, SchemaError> {
        match (self, spot) {
            (Machine::Json(machine), Spot::Json(reading)) => {
                let Some((bytes, next)) = machine.completion_step(reading)? else { return Ok(None) };
                let next = (!json::Machine::is_at_end(next)).then_some(Spot::Json(next));
                Ok(Some((vec![Piece::Bytes(bytes)], next)))
            }
            (Machine::Rules(machine), Spot::Rules(spot)) => {
                let Some((pieces, next)) = machine.completion_step(spot)? else { return Ok(None) };
                Ok(Some((pieces, (!next.is_end()).then_some(Spot::Rules(next)))))
            }
            _ => Ok(None),
        }
    }

    pub(crate) fn readings(&self, config: ConfigId) -> usize {
        match self {
            Machine::Json(machine) => machine.readings_of(config).len(),
            Machine::Rules(machine) => machine.readings_of(config).len(),
        }
    }

    pub(crate) fn memory_size(&self) -> usize {
        match self {
            Machine::Json(machine) => machine.memory_size(),
            Machine::Rules(machine) => machine.memory_size(),
        }
    }
}
