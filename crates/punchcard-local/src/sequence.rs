//! One text that a model reads or writes.

use crate::cache::KvCache;
use crate::error::{Error, Result};

/// How far a model has come in a text: the number of its tokens, and their keys and values in each transformer block.
///
/// It takes memory as it grows, [`Config::cache_bytes_per_token`](crate::config::Config::cache_bytes_per_token) for each token
/// and up to a page ([`PAGE`](crate::cache::PAGE) tokens) more, and gives it back when it is rewound or dropped.
#[derive(Debug)]
pub struct Sequence {
    /// Of the model that made it.
    model: u64,
    pub(crate) caches: Vec<KvCache>,
    pub(crate) position: usize,
}

impl Sequence {
    /// An empty sequence for the model with this id.
    pub(crate) fn new(model: u64, blocks: usize) -> Self {
        Self { model, caches: vec![KvCache::default(); blocks], position: 0 }
    }

    /// The id of its model.
    pub(crate) fn model(&self) -> u64 {
        self.model
    }

    /// Tokens in the cache.
    pub fn position(&self) -> usize {
        self.position
    }

    /// Forgets all tokens from `position` on.
    pub fn rewind(&mut self, position: usize) -> Result<()> {
        if position > self.position {
            return Err(Error::Position { requested: position, position: self.position });
        }
        self.position = position;
        self.caches.iter_mut().for_each(|cache| cache.truncate(position));
        Ok(())
    }

    /// Becomes the first `length` tokens of another sequence of the same model, whatever it was before. Both share the memory
    /// of these tokens, and neither sees what the other does afterwards.
    pub fn copy_from(&mut self, other: &Self, length: usize) -> Result<()> {
        if other.model != self.model {
            return Err(Error::OtherModel);
        }
        if length > other.position {
            return Err(Error::Position { requested: length, position: other.position });
        }
        self.caches = other.caches.iter().map(|cache| cache.prefix(length)).collect();
        self.position = length;
        Ok(())
    }
}
