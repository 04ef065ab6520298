//! Grouped-query attention over a cache of keys and values.
//!
//! A block of queries of one key head is one matrix product with all cached keys, a softmax over each row's past, and one
//! product with the values: all query heads of the group share it, so that nothing is repeated for them. Blocks keep the
//! matrix of scores small whatever the context, and skip what lies ahead of their last query.

use crate::config::{Config, Pairing};
use crate::kernels;
use crate::matrix::Matrix;
use crate::parallel;
use crate::product::{Right, multiply};

/// Queries of a block.
const BLOCK: usize = 64;

/// Keys and values of one transformer block, `[kv_heads, capacity, head_dim]` each.
#[derive(Debug, Default)]
pub struct KvCache {
    keys: Vec<f32>,
    values: Vec<f32>,
    capacity: usize,
}

impl KvCache {
    /// Makes room for `len` positions, keeping the first `kept`.
    fn reserve(&mut self, config: &Config, kept: usize, len: usize) {
        if len <= self.capacity {
            return;
        }
        let capacity = len.next_power_of_two().max(256).min(config.context_length.max(len));
        for buffer in [&mut self.keys, &mut self.values] {
            let mut larger = vec![0.0; config.kv_heads * capacity * config.head_dim];
            for head in 0..config.kv_heads {
                let (from, to) = (head * self.capacity * config.head_dim, head * capacity * config.head_dim);
                let size = kept * config.head_dim;
                larger[to..to + size].copy_from_slice(&buffer[from..from + size]);
            }
            *buffer = larger;
        }
        self.capacity = capacity;
    }

    /// Stores the keys and values of one position, `[kv_heads * head_dim]` each.
    fn store(&mut self, config: &Config, position: usize, keys: &[f32], values: &[f32]) {
        let dim = config.head_dim;
        for (buffer, source) in [(&mut self.keys, keys), (&mut self.values, values)] {
            for (head, vector) in source.chunks_exact(dim).enumerate() {
                let at = (head * self.capacity + position) * dim;
                buffer[at..at + dim].copy_from_slice(vector);
            }
        }
    }
}

/// The rotary embedding of a run of positions: cosines and sines, `[tokens, rotated / 2]`.
#[derive(Debug)]
pub struct Rotation {
    turns: Vec<(f32, f32)>,
    pairs: usize,
    pairing: Pairing,
}

impl Rotation {
    /// The rotation of `len` positions from `start` on.
    pub fn new(config: &Config, start: usize, len: usize) -> Self {
        let turns = (start..start + len)
            .flat_map(|position| config.frequencies.iter().map(move |frequency| position as f64 * frequency))
            .map(|angle| (angle.cos() as f32, angle.sin() as f32))
            .collect();
        Self { turns, pairs: config.frequencies.len(), pairing: config.pairing }
    }

    /// Rotates the vectors of all heads of the run's position `i`.
    fn apply(&self, i: usize, heads: &mut [f32], dim: usize) {
        let turns = &self.turns[i * self.pairs..(i + 1) * self.pairs];
        for vector in heads.chunks_exact_mut(dim) {
            let vector = &mut vector[..2 * self.pairs];
            match self.pairing {
                Pairing::Adjacent => {
                    for (pair, &(cos, sin)) in vector.chunks_exact_mut(2).zip(turns) {
                        (pair[0], pair[1]) = (pair[0] * cos - pair[1] * sin, pair[0] * sin + pair[1] * cos);
                    }
                }
                Pairing::Halves => {
                    let (low, high) = vector.split_at_mut(self.pairs);
                    for ((low, high), &(cos, sin)) in low.iter_mut().zip(high).zip(turns) {
                        (*low, *high) = (*low * cos - *high * sin, *low * sin + *high * cos);
                    }
                }
            }
        }
    }
}

/// Attention of the tokens at positions `start..`, whose keys and values are appended to the cache. A row of `projected` is a
/// token's queries, keys and values, `[(heads + 2 * kv_heads) * head_dim]`. Returns `[tokens, heads * head_dim]`.
pub fn attend(
    config: &Config,
    cache: &mut KvCache,
    rotation: &Rotation,
    start: usize,
    mut projected: Matrix,
) -> Matrix {
    let (dim, tokens, group) = (config.head_dim, projected.rows(), config.heads / config.kv_heads);
    let (width, query_width) = (projected.columns(), config.heads * dim);
    cache.reserve(config, start, start + tokens);
    for (i, row) in projected.data_mut().chunks_exact_mut(width).enumerate() {
        let (rotated, values) = row.split_at_mut(query_width + config.kv_heads * dim);
        rotation.apply(i, rotated, dim);
        cache.store(config, start + i, &rotated[query_width..], values);
    }

    // Blocks of queries write to disjoint ranges of [kv_heads, tokens, group, head_dim].
    let mut blocks = Vec::new();
    for head in 0..config.kv_heads {
        for first in (0..tokens).step_by(BLOCK) {
            blocks.push((head, first, BLOCK.min(tokens - first)));
        }
    }
    let unit = group * dim;
    let ranges: Vec<_> = blocks
        .iter()
        .map(|&(head, first, count)| {
            let begin = (head * tokens + first) * unit;
            begin..begin + count * unit
        })
        .collect();
    let mut grouped = vec![0.0; config.kv_heads * tokens * unit];
    let cache = &*cache;
    parallel::for_each_range(&mut grouped, &ranges, |index, out| {
        let (head, first, count) = blocks[index];
        let from = head * cache.capacity * dim;
        let past = start + first + count;
        let keys = &cache.keys[from..from + past * dim];
        let values = &cache.values[from..from + past * dim];
        let block: Vec<f32> = (first..first + count)
            .flat_map(|i| &projected.data()[i * width + head * unit..][..unit])
            .map(|value| value / (dim as f32).sqrt())
            .collect();
        let mut scores = vec![0.0; count * group * past];
        multiply(&mut scores, past, &block, keys, (count * group, past, dim), Right::Transposed);
        for (row, scores) in scores.chunks_exact_mut(past).enumerate() {
            let (seen, ahead) = scores.split_at_mut(start + first + row / group + 1);
            kernels::softmax(seen);
            ahead.fill(0.0);
        }
        multiply(out, dim, &scores, values, (count * group, dim, past), Right::Plain);
    });

    let mut output = Matrix::zeros(tokens, query_width);
    for (head, rows) in grouped.chunks_exact(tokens * unit).enumerate() {
        for (row, out) in rows.chunks_exact(unit).zip(output.data_mut().chunks_exact_mut(query_width)) {
            out[head * unit..(head + 1) * unit].copy_from_slice(row);
        }
    }
    output
}
