//! Weights in a quantisation of GGUF's, multiplied by candle.
//!
//! A matrix is cut into a slab of rows for each thread. A few tokens are multiplied with the slabs in parallel, so that every
//! weight is read once; of many, each thread takes some and multiplies them with all slabs, one after the other, so that
//! products need not be moved. Each product begins by rounding the activations to eight bits, so there should be few slabs. Candle's own threads stay out of it where `CANDLE_NUM_THREADS`
//! is 1 (why that is better, [`crate::parallel`] tells); otherwise they share each product among themselves.

use crate::error::{Error, Result};
use crate::matrix::Matrix;
use crate::parallel;
use candle_core::quantized::{GgmlDType, QStorage, QTensor};
use candle_core::{CpuStorage, CustomOp1, Device, Layout, Shape, Tensor};
use std::borrow::Cow;
use std::sync::{Mutex, PoisonError};

/// Slabs of a matrix, at most: more threads would wait for the memory.
const SLABS: usize = 4;
/// Rows that candle interleaves.
const INTERLEAVED: usize = 16;
/// Rows of a slab, at least.
const ROWS: usize = 256;
/// Tokens that all threads multiply together, each with its slabs.
const FEW: usize = 64;
/// Tokens that a thread takes, at most.
const TOKENS: usize = 128;

/// A matrix of weights.
#[derive(Debug)]
pub struct Slabs {
    slabs: Vec<Slab>,
    rows: usize,
    columns: usize,
}

/// The rows from `first` on.
#[derive(Debug)]
struct Slab {
    first: usize,
    rows: usize,
    weights: QTensor,
}

impl Slabs {
    /// A matrix of the given bytes.
    pub fn new(dtype: GgmlDType, rows: usize, columns: usize, bytes: &[u8]) -> Result<Self> {
        let row_bytes = columns / dtype.block_size() * dtype.type_size();
        let height = rows.div_ceil(SLABS.min(parallel::threads())).max(ROWS).next_multiple_of(INTERLEAVED);
        let mut slabs = Vec::new();
        for first in (0..rows).step_by(height) {
            let rows = height.min(rows - first);
            let part = Cow::Borrowed(&bytes[first * row_bytes..][..rows * row_bytes]);
            let storage = QStorage::from_data(part, &Device::Cpu, dtype)?;
            slabs.push(Slab { first, rows, weights: QTensor::new(storage, (rows, columns))? });
        }
        Ok(Self { slabs, rows, columns })
    }

    /// Appends the rows of another matrix with as many columns.
    pub fn append(&mut self, below: Self) {
        debug_assert_eq!(self.columns, below.columns);
        self.slabs.extend(below.slabs.into_iter().map(|slab| Slab { first: self.rows + slab.first, ..slab }));
        self.rows += below.rows;
    }

    /// Rows as floats, one for each index.
    pub fn select(&self, indices: &[u32]) -> Result<Matrix> {
        let mut output = Matrix::zeros(indices.len(), self.columns);
        for (&index, out) in indices.iter().zip(output.data_mut().chunks_exact_mut(self.columns)) {
            let after = self.slabs.partition_point(|slab| slab.first <= index as usize);
            let Some(slab) = self.slabs[..after].last() else { continue };
            let row = slab.weights.embedding(&Tensor::new(&[index - slab.first as u32], &Device::Cpu)?)?;
            out.copy_from_slice(&row.flatten_all()?.to_vec1::<f32>()?);
        }
        Ok(output)
    }

    /// The product with each row of `input`.
    pub fn product(&self, input: &Matrix) -> Result<Matrix> {
        let tokens = input.rows();
        let mut output = Matrix::zeros(tokens, self.rows);
        let failure = Mutex::new(None);
        let keep = |result: Result<()>| {
            if let Err(error) = result {
                failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            }
        };
        if candle_core::utils::barrier_pool().n_workers() > 0 {
            keep(self.product_into(input, output.data_mut()));
        } else if tokens == 1 {
            let ranges: Vec<_> = self.slabs.iter().map(|slab| slab.first..slab.first + slab.rows).collect();
            parallel::for_each_range(output.data_mut(), &ranges, |index, out| {
                keep(self.slabs[index].product(input).map(|product| out.copy_from_slice(&product)));
            });
        } else if tokens <= FEW {
            let mut products = vec![Vec::new(); self.slabs.len()];
            let ranges = parallel::chunks(self.slabs.len(), 1, 1);
            parallel::for_each_range(&mut products, &ranges, |index, out| {
                keep(self.slabs[index].product(input).map(|product| out[0] = product));
            });
            for (slab, product) in self.slabs.iter().zip(&products) {
                slab.put(product, output.data_mut(), self.rows);
            }
        } else {
            let count = tokens.div_ceil(parallel::threads()).min(TOKENS);
            let ranges = parallel::chunks(tokens, count, self.rows);
            parallel::for_each_range(output.data_mut(), &ranges, |index, out| {
                let rows = out.len() / self.rows;
                let part = input.data()[index * count * self.columns..][..rows * self.columns].to_vec();
                keep(self.product_into(&Matrix::new(rows, self.columns, part), out));
            });
        }
        match failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(error) => Err(error),
            None => Ok(output),
        }
    }

    /// Writes the product with each row of `input`, one slab after the other.
    fn product_into(&self, input: &Matrix, out: &mut [f32]) -> Result<()> {
        for slab in &self.slabs {
            slab.put(&slab.product(input)?, out, self.rows);
        }
        Ok(())
    }
}

impl Slab {
    /// Writes a product with some tokens to the slab's columns of a matrix that has so many.
    fn put(&self, product: &[f32], out: &mut [f32], columns: usize) {
        for (row, out) in product.chunks_exact(self.rows).zip(out.chunks_exact_mut(columns)) {
            out[self.first..self.first + self.rows].copy_from_slice(row);
        }
    }

    fn product(&self, input: &Matrix) -> Result<Vec<f32>> {
        let layout = Layout::contiguous(Shape::from((input.rows(), input.columns())));
        match self.weights.cpu_fwd(input.storage(), &layout)?.0 {
            CpuStorage::F32(product) => Ok(product),
            _ => Err(Error::Compute(candle_core::Error::Msg("a product of floats is not of floats".into()))),
        }
    }
}
