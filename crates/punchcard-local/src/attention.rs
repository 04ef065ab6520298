//! Grouped-query attention over a cache of keys and values.
//!
//! A block of queries of one key head is one matrix product with all cached keys, a softmax over each row's past, and one
//! product with the values: all query heads of the group share it, so that nothing is repeated for them. Blocks keep the
//! matrix of scores small whatever the context, and skip what lies ahead of their last query.

use crate::config::{Config, Pairing};
use crate::kernels;
use crate::matrix::Matrix;
use crate::parallel;

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

    /// Stores the rows of `keys` and `values`, `[tokens, kv_heads * head_dim]`, from position `start` on.
    fn store(&mut self, config: &Config, start: usize, keys: &Matrix, values: &Matrix) {
        let dim = config.head_dim;
        for (buffer, source) in [(&mut self.keys, keys), (&mut self.values, values)] {
            for (i, row) in source.data().chunks_exact(config.kv_heads * dim).enumerate() {
                for (head, vector) in row.chunks_exact(dim).enumerate() {
                    let at = (head * self.capacity + start + i) * dim;
                    buffer[at..at + dim].copy_from_slice(vector);
                }
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

    /// Rotates each head's vector of each row.
    fn apply(&self, matrix: &mut Matrix, heads: usize, dim: usize) {
        for (i, row) in matrix.data_mut().chunks_exact_mut(heads * dim).enumerate() {
            let turns = &self.turns[i * self.pairs..(i + 1) * self.pairs];
            for vector in row.chunks_exact_mut(dim) {
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
}

/// Attention of the tokens at positions `start..`, whose keys and values are appended to the cache. Returns
/// `[tokens, heads * head_dim]`.
pub fn attend(
    config: &Config,
    cache: &mut KvCache,
    rotation: &Rotation,
    start: usize,
    mut queries: Matrix,
    mut keys: Matrix,
    values: Matrix,
) -> Matrix {
    let (dim, tokens, group) = (config.head_dim, queries.rows(), config.heads / config.kv_heads);
    rotation.apply(&mut queries, config.heads, dim);
    rotation.apply(&mut keys, config.kv_heads, dim);
    cache.reserve(config, start, start + tokens);
    cache.store(config, start, &keys, &values);

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
            .flat_map(|i| &queries.data()[i * config.heads * dim + head * unit..][..unit])
            .map(|value| value / (dim as f32).sqrt())
            .collect();
        let mut scores = vec![0.0; count * group * past];
        multiply(&mut scores, &block, keys, (count * group, past, dim), Right::Transposed);
        for (row, scores) in scores.chunks_exact_mut(past).enumerate() {
            let (seen, ahead) = scores.split_at_mut(start + first + row / group + 1);
            kernels::softmax(seen);
            ahead.fill(0.0);
        }
        multiply(out, &scores, values, (count * group, dim, past), Right::Plain);
    });

    let mut output = Matrix::zeros(tokens, config.heads * dim);
    for (head, rows) in grouped.chunks_exact(tokens * unit).enumerate() {
        for (row, out) in rows.chunks_exact(unit).zip(output.data_mut().chunks_exact_mut(config.heads * dim)) {
            out[head * unit..(head + 1) * unit].copy_from_slice(row);
        }
    }
    output
}

/// How the right factor of a product lies in memory.
enum Right {
    /// `[inner, columns]`.
    Plain,
    /// `[columns, inner]`.
    Transposed,
}

/// `out = left × right` on this thread; `out` is `[rows, columns]`, `left` is `[rows, inner]`.
fn multiply(
    out: &mut [f32],
    left: &[f32],
    right: &[f32],
    (rows, columns, inner): (usize, usize, usize),
    layout: Right,
) {
    assert!(out.len() == rows * columns && left.len() == rows * inner && right.len() == inner * columns);
    let (right_column, right_row) = match layout {
        Right::Plain => (1, columns as isize),
        Right::Transposed => (inner as isize, 1),
    };
    // SAFETY: the three slices have exactly the extents that the strides walk over, as asserted; `out` is borrowed
    // exclusively and so overlaps neither factor; every element is an initialised float.
    unsafe {
        gemm::gemm(
            rows,
            columns,
            inner,
            out.as_mut_ptr(),
            1,
            columns as isize,
            false,
            left.as_ptr(),
            1,
            inner as isize,
            right.as_ptr(),
            right_column,
            right_row,
            0.0f32,
            1.0f32,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}
