//! Keys and values of the tokens that a sequence has seen, in one transformer block.
//!
//! They lie in pages of [`PAGE`] positions, so that a sequence takes memory as it grows and nothing is ever moved. A copy of a
//! sequence shares its pages, and a page that is shared is copied when one of its owners writes to it: requests that begin
//! alike hold their common beginning once.

use crate::config::Config;
use std::sync::Arc;

/// Positions of a page. Attention takes one matrix product for each, so they should not be short; a sequence holds up to one
/// page more than it fills, so they should not be long.
pub const PAGE: usize = 128;

/// `[kv_heads, PAGE, head_dim]` each.
#[derive(Debug, Clone)]
struct Page {
    keys: Vec<f32>,
    values: Vec<f32>,
}

/// The keys and values of a block. What lies behind the position of the sequence is of no meaning.
#[derive(Debug, Clone, Default)]
pub struct KvCache {
    pages: Vec<Arc<Page>>,
}

/// What one page holds for one head: keys and values of `len` positions from `first` on, `[len, head_dim]` each.
#[derive(Debug, Clone, Copy)]
pub struct Stretch<'a> {
    /// The first position.
    pub first: usize,
    /// The number of positions.
    pub len: usize,
    /// Their keys.
    pub keys: &'a [f32],
    /// Their values.
    pub values: &'a [f32],
}

impl KvCache {
    /// A cache of the first `len` positions, which shares their pages.
    pub fn prefix(&self, len: usize) -> Self {
        Self { pages: self.pages[..len.div_ceil(PAGE).min(self.pages.len())].to_vec() }
    }

    /// Gives back the pages that hold none of the first `len` positions.
    pub fn truncate(&mut self, len: usize) {
        self.pages.truncate(len.div_ceil(PAGE));
    }

    /// Stores the keys and values of one position, `[kv_heads * head_dim]` each. Positions come one after the other.
    pub fn store(&mut self, config: &Config, position: usize, keys: &[f32], values: &[f32]) {
        let dim = config.head_dim;
        if position / PAGE == self.pages.len() {
            let zeros = || vec![0.0; config.kv_heads * PAGE * dim];
            self.pages.push(Arc::new(Page { keys: zeros(), values: zeros() }));
        }
        let page = Arc::make_mut(&mut self.pages[position / PAGE]);
        for (buffer, source) in [(&mut page.keys, keys), (&mut page.values, values)] {
            for (head, vector) in source.chunks_exact(dim).enumerate() {
                let at = (head * PAGE + position % PAGE) * dim;
                buffer[at..at + dim].copy_from_slice(vector);
            }
        }
    }

    /// The first `len` positions of a head, page after page.
    pub fn stretches(&self, config: &Config, head: usize, len: usize) -> impl Iterator<Item = Stretch<'_>> {
        let from = head * PAGE * config.head_dim;
        let dim = config.head_dim;
        self.pages.iter().zip((0..len).step_by(PAGE)).map(move |(page, first)| {
            let count = PAGE.min(len - first);
            let range = from..from + count * dim;
            Stretch { first, len: count, keys: &page.keys[range.clone()], values: &page.values[range] }
        })
    }
}
