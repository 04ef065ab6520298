//! Grouped-query attention over a cache of keys and values.
//!
//! A block of queries of one key head is one matrix product with each page of cached keys, a softmax over each row's past, and
//! one product with the values of each page: all query heads of the group share it, so that nothing is repeated for them.
//! Blocks keep the matrix of scores small whatever the context, and skip what lies ahead of their last query. Sequences of a
//! batch have blocks of their own, so none of them changes what another one computes.

use crate::cache::KvCache;
use crate::config::{Config, Pairing};
use crate::kernels;
use crate::matrix::Matrix;
use crate::parallel;
use crate::product::{Onto, Right, Strided, multiply};

/// Queries of a block.
const BLOCK: usize = 64;

/// Tokens of one sequence that go through the layers together, with its cache of one transformer block.
#[derive(Debug)]
pub struct Run<'a> {
    /// Keys and values of the sequence. Those of the run are appended.
    pub cache: &'a mut KvCache,
    /// Position of the first token.
    pub start: usize,
    /// The number of tokens.
    pub tokens: usize,
}

/// The rotary embedding of some positions: cosines and sines, `[tokens, rotated / 2]`.
#[derive(Debug)]
pub struct Rotation {
    turns: Vec<(f32, f32)>,
    pairs: usize,
    pairing: Pairing,
}

impl Rotation {
    /// The rotation of each of the `positions`.
    pub fn new(config: &Config, positions: impl IntoIterator<Item = usize>) -> Self {
        let turns = positions
            .into_iter()
            .flat_map(|position| config.frequencies.iter().map(move |frequency| position as f64 * frequency))
            .map(|angle| (angle.cos() as f32, angle.sin() as f32))
            .collect();
        Self { turns, pairs: config.frequencies.len(), pairing: config.pairing }
    }

    /// Rotates the vectors of all heads of the token in row `i`.
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

/// Attention of the tokens of all runs, whose keys and values are appended to the caches. A row of `projected` is a token's
/// queries, keys and values, `[(heads + 2 * kv_heads) * head_dim]`; the rows of the runs follow one another, and the rotation
/// has one for each. Returns `[rows, heads * head_dim]`.
pub fn attend(config: &Config, runs: &mut [Run<'_>], rotation: &Rotation, mut projected: Matrix) -> Matrix {
    let (dim, group, rows) = (config.head_dim, config.heads / config.kv_heads, projected.rows());
    let (width, query_width) = (projected.columns(), config.heads * dim);
    let mut projected_rows = projected.data_mut().chunks_exact_mut(width).enumerate();
    for run in &mut *runs {
        for (position, (i, row)) in (run.start..run.start + run.tokens).zip(&mut projected_rows) {
            let (rotated, values) = row.split_at_mut(query_width + config.kv_heads * dim);
            rotation.apply(i, rotated, dim);
            run.cache.store(config, position, &rotated[query_width..], values);
        }
    }

    // Blocks of queries write to disjoint ranges of [kv_heads, rows, group, head_dim].
    let unit = group * dim;
    let mut blocks = Vec::new();
    for head in 0..config.kv_heads {
        let mut row = 0;
        for run in &*runs {
            for first in (0..run.tokens).step_by(BLOCK) {
                let count = BLOCK.min(run.tokens - first);
                blocks.push(Block { run, head, row, start: run.start + first, count });
                row += count;
            }
        }
    }
    let ranges: Vec<_> = blocks
        .iter()
        .map(|block| {
            let begin = (block.head * rows + block.row) * unit;
            begin..begin + block.count * unit
        })
        .collect();
    let mut grouped = vec![0.0; config.kv_heads * rows * unit];
    parallel::for_each_range(&mut grouped, &ranges, |index, out| blocks[index].attend(config, &projected, out));

    let mut output = Matrix::zeros(rows, query_width);
    for (head, grouped) in grouped.chunks_exact(rows * unit).enumerate() {
        for (row, out) in grouped.chunks_exact(unit).zip(output.data_mut().chunks_exact_mut(query_width)) {
            out[head * unit..(head + 1) * unit].copy_from_slice(row);
        }
    }
    output
}

/// Successive queries of one run and one key head.
struct Block<'a> {
    run: &'a Run<'a>,
    head: usize,
    /// Row of the first query.
    row: usize,
    /// Position of the first query.
    start: usize,
    count: usize,
}

impl Block<'_> {
    /// Adds the result to `out`, `[count, group, head_dim]`, which is zeros.
    fn attend(&self, config: &Config, projected: &Matrix, out: &mut [f32]) {
        let (dim, group) = (config.head_dim, config.heads / config.kv_heads);
        let (unit, rows, past) = (group * dim, self.count * group, self.start + self.count);
        let queries: Vec<f32> = projected
            .data()
            .chunks_exact(projected.columns())
            .skip(self.row)
            .take(self.count)
            .flat_map(|row| &row[self.head * unit..][..unit])
            .map(|value| value / (dim as f32).sqrt())
            .collect();
        let queries = Strided { data: queries.as_slice(), stride: dim };
        let stretches = || self.run.cache.stretches(config, self.head, past);
        let mut scores = vec![0.0; rows * past];
        for stretch in stretches() {
            let out = Strided { data: &mut scores[stretch.first..], stride: past };
            let keys = Strided { data: stretch.keys, stride: dim };
            multiply(Onto::Nothing, out, queries, keys, (rows, stretch.len, dim), Right::Transposed);
        }
        for (row, scores) in scores.chunks_exact_mut(past).enumerate() {
            let (seen, ahead) = scores.split_at_mut(self.start + row / group + 1);
            kernels::softmax(seen);
            ahead.fill(0.0);
        }
        for stretch in stretches() {
            let out = Strided { data: &mut *out, stride: dim };
            let weights = Strided { data: &scores[stretch.first..], stride: past };
            let values = Strided { data: stretch.values, stride: dim };
            multiply(Onto::Sum, out, weights, values, (rows, dim, stretch.len), Right::Plain);
        }
    }
}
