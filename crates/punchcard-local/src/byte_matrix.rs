//! Weights of eight bits, multiplied with activations that stay floats.
//!
//! Candle's kernels round the activations to eight bits too, with one scale for up to 256 of them. That is what makes them fast,
//! and a large model does not mind; a small one does: single activations of SmolLM2 are a thousand times the others, and
//! rounding costs it about a hundredth of a nat per token. Its weights are few, so they can afford a product without that.
//!
//! For up to [`FEW`] tokens, weights are turned into floats within the registers, by the kernels of [`crate::tiles`]; for more, a
//! panel of rows is turned into floats within the processor's cache and a matrix product of floats goes over it. Either way the
//! memory is read once, at eight bits and a scale for each 32 of them, which is finer than any of the formats that this takes in.

use crate::kernels;
use crate::matrix::Matrix;
use crate::parallel;
use crate::product::{Onto, Right, Strided, multiply};
use crate::tiles::{COLUMNS, Kernels, ROWS, Tile};
use candle_core::quantized::{GgmlDType, QStorage, QTensor};
use candle_core::{Device, Result};
use std::borrow::Cow;
use std::sync::{Mutex, PoisonError};

/// Elements of a row with a common scale.
pub const BLOCK: usize = COLUMNS;
/// Rows of tiles that one task multiplies.
const TASK: usize = 4;
/// Tokens up to which the weights are converted in the registers. Within that a token's products are the same to the last bit,
/// whichever others there are.
pub const FEW: usize = 64;
/// Tokens of one product of floats, at most.
const TOKENS: usize = 128;
/// Weights of one product of floats: as many as the second-level cache holds easily.
const PANEL: usize = 1 << 17;

/// A matrix of `rows` × `columns` weights.
#[derive(Debug, Clone)]
pub struct ByteMatrix {
    rows: usize,
    columns: usize,
    /// `[rows / 16, columns / 32]`, filled up with zeros.
    tiles: Vec<Tile>,
}

impl ByteMatrix {
    /// Converts weights in any quantisation; `columns` must be a multiple of [`BLOCK`].
    pub fn from_quantised(dtype: GgmlDType, rows: usize, columns: usize, bytes: &[u8]) -> Result<Self> {
        let row_bytes = columns / dtype.block_size() * dtype.type_size();
        let across = columns / COLUMNS;
        let down = rows.div_ceil(ROWS);
        let mut tiles = vec![Tile::ZERO; down * across];
        let failure = Mutex::new(None);
        // Rows go through floats a few at a time, so that these stay in the processor's cache.
        parallel::for_each_range(&mut tiles, &parallel::chunks(down, 1, across), |task, tiles| {
            let part = &bytes[task * ROWS * row_bytes..rows.min((task + 1) * ROWS) * row_bytes];
            match dequantised(dtype, part.len() / row_bytes * columns, part.to_vec()) {
                Ok(floats) => {
                    floats.chunks_exact(columns).enumerate().for_each(|(row, floats)| quantise(floats, row, tiles));
                }
                Err(error) => {
                    failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                }
            }
        });
        match failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(error) => Err(error),
            None => Ok(Self { rows, columns, tiles }),
        }
    }

    /// The number of rows: outputs of the map.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Appends the rows of another matrix with as many columns, or gives it back where they would begin within a tile.
    pub fn append(&mut self, below: Self) -> Option<Self> {
        debug_assert_eq!(self.columns, below.columns);
        if !self.rows.is_multiple_of(ROWS) {
            return Some(below);
        }
        self.rows += below.rows;
        self.tiles.extend(below.tiles);
        None
    }

    /// Rows as floats, one for each index.
    pub fn select(&self, indices: &[u32]) -> Matrix {
        let mut output = Matrix::zeros(indices.len(), self.columns);
        let across = self.columns / COLUMNS;
        for (&index, out) in indices.iter().zip(output.data_mut().chunks_exact_mut(self.columns)) {
            let (tiles, row) = (&self.tiles[index as usize / ROWS * across..], index as usize % ROWS);
            for (tile, out) in tiles.iter().zip(out.chunks_exact_mut(COLUMNS)) {
                for (quants, out) in tile.quants.iter().zip(out) {
                    *out = f32::from(quants[row]) * tile.scales[row];
                }
            }
        }
        output
    }

    /// The product with each row of `input`.
    pub fn product(&self, input: &Matrix) -> Matrix {
        if input.rows() <= FEW { self.product_of_few(input) } else { self.product_of_many(input) }
    }

    fn product_of_few(&self, input: &Matrix) -> Matrix {
        let (tokens, across) = (input.rows(), self.columns / COLUMNS);
        let kernels = Kernels::best();
        let bundles = kernels.bundles(input.data(), self.columns);
        // Rows of tiles, and for each of them the products with each token.
        let mut products = vec![[0.0; ROWS]; self.tiles.len() / across * tokens];
        let ranges = parallel::chunks(self.tiles.len() / across, TASK, tokens);
        parallel::for_each_range(&mut products, &ranges, |task, out| {
            let tiles = &self.tiles[task * TASK * across..][..out.len() / tokens * across];
            kernels.multiply(tiles, across, &bundles, out);
        });
        let mut output = Matrix::zeros(tokens, self.rows);
        let ranges = parallel::chunks(tokens, 1, self.rows);
        parallel::for_each_range(output.data_mut(), &ranges, |token, out| {
            for (products, out) in products[token..].iter().step_by(tokens).zip(out.chunks_mut(ROWS)) {
                out.copy_from_slice(&products[..out.len()]);
            }
        });
        output
    }

    fn product_of_many(&self, input: &Matrix) -> Matrix {
        let mut output = Matrix::zeros(input.rows(), self.rows);
        let across = self.columns / COLUMNS;
        // Every task converts all weights for its tokens: a few hundredths of its time, for writing to rows of its own.
        let tokens = input.rows().div_ceil(parallel::threads()).min(TOKENS);
        let ranges = parallel::chunks(input.rows(), tokens, self.rows);
        let down = (PANEL / self.columns / ROWS).max(1);
        parallel::for_each_range(output.data_mut(), &ranges, |task, out| {
            let count = out.len() / self.rows;
            let input = Strided { data: &input.data()[task * tokens * self.columns..], stride: self.columns };
            // `[columns, rows]` of some rows of tiles.
            let mut panel = vec![0.0; down * ROWS * self.columns];
            for (index, tiles) in self.tiles.chunks(down * across).enumerate() {
                let width = tiles.len() / across * ROWS;
                let panel = &mut panel[..width * self.columns];
                for (index, tile) in tiles.iter().enumerate() {
                    let (row, column) = (index / across * ROWS, index % across * COLUMNS);
                    tile.dequantise(&mut panel[column * width + row..], width);
                }
                let first = index * down * ROWS;
                let extents = (count, width.min(self.rows - first), self.columns);
                let panel = Strided { data: &*panel, stride: width };
                // The columns of `out` from `first` on.
                let out = Strided { data: &mut out[first..], stride: self.rows };
                multiply(Onto::Nothing, out, input, panel, extents, Right::Plain);
            }
        });
        output
    }
}

/// Writes one row of weights to its tiles.
fn quantise(floats: &[f32], row: usize, tiles: &mut [Tile]) {
    let mut scales = vec![0.0; tiles.len()];
    let mut quants = vec![0; floats.len()];
    kernels::block_scales(floats, &mut scales);
    kernels::quantise(floats, &scales, &mut quants);
    for ((tile, scale), quants) in tiles.iter_mut().zip(scales).zip(quants.chunks_exact(COLUMNS)) {
        tile.scales[row] = scale;
        for (column, &quant) in tile.quants.iter_mut().zip(quants) {
            column[row] = quant;
        }
    }
}

fn dequantised(dtype: GgmlDType, elements: usize, bytes: Vec<u8>) -> Result<Vec<f32>> {
    let storage = QStorage::from_data(Cow::Owned(bytes), &Device::Cpu, dtype)?;
    QTensor::new(storage, elements)?.dequantize(&Device::Cpu)?.to_vec1()
}
