//! Weights of eight bits, multiplied with activations that stay floats.
//!
//! Candle's kernels round the activations to eight bits too, with one scale for up to 256 of them. That is what makes them fast,
//! and a large model does not mind; a small one does: single activations of SmolLM2 are a thousand times the others, and
//! rounding costs it about a hundredth of a nat per token. Its weights are few, so they can afford a product without that.
//!
//! For a few tokens, weights are turned into floats within the registers and every byte is read once; for many, a panel of rows
//! is turned into floats within the processor's cache and a matrix product of floats goes over it. Either way the memory is
//! read at eight bits and a scale for each 32 of them, which is finer than any of the formats that this takes in.

use crate::kernels;
use crate::matrix::Matrix;
use crate::parallel;
use crate::product::{Onto, Right, Strided, multiply};
#[cfg(target_arch = "x86_64")]
use crate::rows;
use candle_core::quantized::{GgmlDType, QStorage, QTensor};
use candle_core::{Device, Result};
use std::borrow::Cow;
use std::sync::{Mutex, PoisonError};

/// Elements with a common scale.
pub const BLOCK: usize = 32;
/// Rows of weights that one task multiplies with few tokens, or converts at load.
const TASK: usize = 32;
/// Tokens up to which the weights are converted in the registers: twice as many as one call of the kernel takes, or, without
/// it, of the slower ones.
const FEW: usize = 16;
const FEW_WITHOUT_AVX2: usize = 8;
/// Tokens of one product of floats, at least.
const TOKENS_LEAST: usize = 8;
/// Tokens of one product of floats, at most.
const TOKENS: usize = 128;
/// Weights of one product of floats: as many as the second-level cache holds easily.
const PANEL: usize = 1 << 17;

/// A matrix of `rows` × `columns` weights.
#[derive(Debug, Clone)]
pub struct ByteMatrix {
    rows: usize,
    columns: usize,
    quants: Vec<i8>,
    scales: Vec<f32>,
}

impl ByteMatrix {
    /// Converts weights in any quantisation; `columns` must be a multiple of [`BLOCK`].
    pub fn from_quantised(dtype: GgmlDType, rows: usize, columns: usize, bytes: &[u8]) -> Result<Self> {
        let row_bytes = columns / dtype.block_size() * dtype.type_size();
        let mut scales = vec![0.0; rows * columns / BLOCK];
        let mut quants = vec![0; rows * columns];
        let failure = Mutex::new(None);
        // Rows go through floats a few at a time, so that these stay in the processor's cache. Scales come first, quants second:
        // a task writes to one vector.
        let floats = |first: usize, count: usize| -> Vec<f32> {
            let part = bytes[first * row_bytes..(first + count) * row_bytes].to_vec();
            dequantised(dtype, count * columns, part).unwrap_or_else(|error| {
                failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                vec![0.0; count * columns]
            })
        };
        let per_row = columns / BLOCK;
        parallel::for_each_range(&mut scales, &parallel::chunks(rows, TASK, per_row), |task, scales| {
            kernels::block_scales(&floats(task * TASK, scales.len() / per_row), scales);
        });
        parallel::for_each_range(&mut quants, &parallel::chunks(rows, TASK, columns), |task, quants| {
            let first = task * TASK;
            let scales = &scales[first * per_row..][..quants.len() / BLOCK];
            kernels::quantise(&floats(first, quants.len() / columns), scales, quants);
        });
        match failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(error) => Err(error),
            None => Ok(Self { rows, columns, quants, scales }),
        }
    }

    /// The number of rows: outputs of the map.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Appends the rows of another matrix with as many columns.
    pub fn append(&mut self, below: Self) {
        debug_assert_eq!(self.columns, below.columns);
        self.rows += below.rows;
        self.quants.extend(below.quants);
        self.scales.extend(below.scales);
    }

    /// Rows as floats, one for each index.
    pub fn select(&self, indices: &[u32]) -> Matrix {
        let mut output = Matrix::zeros(indices.len(), self.columns);
        for (&index, out) in indices.iter().zip(output.data_mut().chunks_exact_mut(self.columns)) {
            let (quants, scales) = self.range(index as usize, 1);
            kernels::dequantise(quants, scales, out);
        }
        output
    }

    /// The product with each row of `input`.
    pub fn product(&self, input: &Matrix) -> Matrix {
        if input.rows() <= few() { self.product_of_few(input) } else { self.product_of_many(input) }
    }

    /// Quants and scales of `count` rows from `first` on.
    fn range(&self, first: usize, count: usize) -> (&[i8], &[f32]) {
        let per_row = self.columns / BLOCK;
        (
            &self.quants[first * self.columns..][..count * self.columns],
            &self.scales[first * per_row..][..count * per_row],
        )
    }

    fn product_of_few(&self, input: &Matrix) -> Matrix {
        let tokens = input.rows();
        if tokens == 1 {
            let mut output = Matrix::zeros(1, self.rows);
            parallel::for_each_range(output.data_mut(), &parallel::chunks(self.rows, TASK, 1), |task, out| {
                let (quants, scales) = self.range(task * TASK, out.len());
                kernels::dot_rows(quants, scales, input.data(), out);
            });
            return output;
        }
        let mut output = Matrix::zeros(tokens, self.rows);
        #[cfg(target_arch = "x86_64")]
        if rows::is_supported() {
            // As even as it goes, so that no token is left alone.
            let group = tokens.div_ceil(tokens.div_ceil(rows::MOST));
            for first in (0..tokens).step_by(group) {
                let group = group.min(tokens - first);
                let product = match group {
                    1 => Self::product_of::<1, 4>,
                    2 => Self::product_of::<2, 2>,
                    3 => Self::product_of::<3, 2>,
                    4 => Self::product_of::<4, 2>,
                    5 => Self::product_of::<5, 2>,
                    6 => Self::product_of::<6, 2>,
                    7 => Self::product_of::<7, 1>,
                    _ => Self::product_of::<8, 1>,
                };
                product(self, input, first, &mut output);
            }
            return output;
        }
        for first in (0..tokens).step_by(4) {
            self.in_turns(input, first, &mut output, kernels::dot_rows_four);
        }
        output
    }

    #[cfg(target_arch = "x86_64")]
    fn product_of<const COUNT: usize, const SETS: usize>(&self, input: &Matrix, first: usize, output: &mut Matrix) {
        self.in_turns(input, first, output, |quants, scales, vectors, out| {
            rows::try_dot_rows_of::<COUNT, SETS>(quants, scales, vectors, out);
        });
    }

    /// The product with `COUNT` tokens from `first` on, by a kernel that takes as many. A task owns the outputs of some rows,
    /// `[rows, COUNT]`, which are turned round afterwards. Where there are fewer tokens, the last one stands in for those that
    /// lack.
    fn in_turns<const COUNT: usize>(
        &self,
        input: &Matrix,
        first: usize,
        output: &mut Matrix,
        kernel: impl Fn(&[i8], &[f32], [&[f32]; COUNT], &mut [[f32; COUNT]]) + Sync,
    ) {
        let last = input.rows() - 1;
        let vectors = std::array::from_fn(|i| &input.data()[(first + i).min(last) * self.columns..][..self.columns]);
        let mut turned = vec![[0.0; COUNT]; self.rows];
        parallel::for_each_range(&mut turned, &parallel::chunks(self.rows, TASK, 1), |task, out| {
            let (quants, scales) = self.range(task * TASK, out.len());
            kernel(quants, scales, vectors, out);
        });
        for (i, out) in output.data_mut().chunks_exact_mut(self.rows).skip(first).take(COUNT).enumerate() {
            for (out, row) in out.iter_mut().zip(&turned) {
                *out = row[i];
            }
        }
    }

    fn product_of_many(&self, input: &Matrix) -> Matrix {
        let mut output = Matrix::zeros(input.rows(), self.rows);
        // Every task converts all weights for its tokens: a few hundredths of its time, for writing to rows of its own.
        let tokens = input.rows().div_ceil(parallel::threads()).clamp(TOKENS_LEAST, TOKENS);
        let ranges = parallel::chunks(input.rows(), tokens, self.rows);
        parallel::for_each_range(output.data_mut(), &ranges, |task, out| {
            let count = out.len() / self.rows;
            let input = Strided { data: &input.data()[task * tokens * self.columns..], stride: self.columns };
            let step = (PANEL / self.columns).clamp(1, self.rows);
            let mut panel = vec![0.0; step * self.columns];
            for first in (0..self.rows).step_by(step) {
                let rows = step.min(self.rows - first);
                let panel = &mut panel[..rows * self.columns];
                let (quants, scales) = self.range(first, rows);
                kernels::dequantise(quants, scales, panel);
                // The columns of `out` from `first` on.
                let out = Strided { data: &mut out[first..], stride: self.rows };
                multiply(Onto::Nothing, out, input, panel, (count, rows, self.columns), Right::Transposed);
            }
        });
        output
    }
}

fn few() -> usize {
    #[cfg(target_arch = "x86_64")]
    if rows::is_supported() {
        return FEW;
    }
    FEW_WITHOUT_AVX2
}

fn dequantised(dtype: GgmlDType, elements: usize, bytes: Vec<u8>) -> Result<Vec<f32>> {
    let storage = QStorage::from_data(Cow::Owned(bytes), &Device::Cpu, dtype)?;
    QTensor::new(storage, elements)?.dequantize(&Device::Cpu)?.to_vec1()
}
