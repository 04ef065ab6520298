//! A matcher: one sequence, and where it stands in its grammar.

use crate::grammar::CompiledGrammar;
use crate::machine::ConfigId;
use punchcard_schema::SchemaError;

/// Follows one sequence of tokens. Cheap to fork; rolling back costs as much as is rolled back.
#[derive(Clone, Debug)]
pub struct Matcher {
    grammar: CompiledGrammar,
    /// The configuration after each accepted token, the first one before any.
    history: Vec<ConfigId>,
    terminated: bool,
}

impl Matcher {
    /// A matcher at the beginning of a text.
    pub fn new(grammar: CompiledGrammar) -> Matcher {
        let start = grammar.start();
        Matcher { grammar, history: vec![start], terminated: false }
    }

    fn here(&self) -> ConfigId {
        self.history.last().copied().unwrap_or(ConfigId::DEAD)
    }

    /// The grammar.
    pub fn grammar(&self) -> &CompiledGrammar {
        &self.grammar
    }

    /// Writes the mask of the next token over a row of `vocabulary.mask_words()` words. After the end only end tokens are
    /// set.
    pub fn fill_mask(&self, words: &mut [u32]) -> Result<(), SchemaError> {
        if self.terminated {
            words.fill(0);
            self.grammar.vocabulary().eos().iter().for_each(|&id| crate::mask::set(words, id));
            return Ok(());
        }
        self.grammar.fill_mask(self.here(), words)
    }

    /// Takes a token; `false` if it cannot come next, and then nothing has changed.
    pub fn accept_token(&mut self, id: u32) -> Result<bool, SchemaError> {
        if self.terminated {
            return Ok(false);
        }
        let vocabulary = self.grammar.vocabulary();
        if vocabulary.eos().binary_search(&id).is_ok() {
            self.terminated = self.grammar.is_accepting(self.here());
            return Ok(self.terminated);
        }
        let Some(bytes) = vocabulary.text_token(id) else { return Ok(false) };
        let next = self.grammar.advance(self.here(), bytes)?;
        self.history.extend(next);
        Ok(next.is_some())
    }

    /// Takes text, as one step; `false` if it cannot come next, and then nothing has changed.
    pub fn accept_bytes(&mut self, bytes: &[u8]) -> Result<bool, SchemaError> {
        if self.terminated {
            return Ok(bytes.is_empty());
        }
        let next = self.grammar.advance(self.here(), bytes)?;
        self.history.extend(next);
        Ok(next.is_some())
    }

    /// Bytes that complete the text; nothing if it may end here, `None` if no example was found within the limits.
    pub fn completion(&self) -> Result<Option<Vec<u8>>, SchemaError> {
        if self.terminated { Ok(Some(Vec::new())) } else { self.grammar.completion(self.here()) }
    }

    /// In how many ways the text so far can be read. Masks cost in proportion to it.
    pub fn readings(&self) -> usize {
        self.grammar.readings(self.here())
    }

    /// Whether the text may end here.
    pub fn is_accepting(&self) -> bool {
        self.grammar.is_accepting(self.here())
    }

    /// Whether an end token was taken.
    pub fn is_terminated(&self) -> bool {
        self.terminated
    }

    /// How many steps can be rolled back.
    pub fn steps(&self) -> usize {
        self.history.len() - 1 + usize::from(self.terminated)
    }

    /// Takes back the last `count` steps; `false` if there are fewer, and then nothing has changed.
    pub fn rollback(&mut self, count: usize) -> bool {
        if count > self.steps() {
            return false;
        }
        let texts = count - usize::from(self.terminated && count > 0);
        if count > 0 {
            self.terminated = false;
        }
        self.history.truncate(self.history.len() - texts);
        true
    }

    /// Back to the beginning.
    pub fn reset(&mut self) {
        self.history.truncate(1);
        self.terminated = false;
    }

    /// The bytes that every text must go on with.
    pub fn forced(&self) -> Result<Vec<u8>, SchemaError> {
        const MOST: usize = 1 << 16;
        if self.terminated { Ok(Vec::new()) } else { self.grammar.forced(self.here(), MOST) }
    }
}
