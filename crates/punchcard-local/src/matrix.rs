//! Matrices of activations, and their normalisation.

use crate::error::Result;
use crate::gguf::Gguf;
use crate::kernels;
use candle_core::CpuStorage;

/// A matrix of `f32`, row after row, one row per token. It is held as candle holds it, so that a product copies nothing.
#[derive(Debug, Clone)]
pub struct Matrix {
    rows: usize,
    columns: usize,
    storage: CpuStorage,
}

impl Matrix {
    /// A matrix of the given elements, of which there must be `rows * columns`.
    pub fn new(rows: usize, columns: usize, data: Vec<f32>) -> Self {
        debug_assert_eq!(data.len(), rows * columns);
        Self { rows, columns, storage: CpuStorage::F32(data) }
    }

    /// A matrix of zeros.
    pub fn zeros(rows: usize, columns: usize) -> Self {
        Self::new(rows, columns, vec![0.0; rows * columns])
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The elements as candle holds them.
    pub(crate) fn storage(&self) -> &CpuStorage {
        &self.storage
    }

    /// The elements.
    pub fn data(&self) -> &[f32] {
        match &self.storage {
            CpuStorage::F32(data) => data,
            _ => &[],
        }
    }

    /// The elements, to be changed.
    pub fn data_mut(&mut self) -> &mut [f32] {
        match &mut self.storage {
            CpuStorage::F32(data) => data,
            _ => &mut [],
        }
    }

    /// The elements, without the matrix.
    pub fn into_data(self) -> Vec<f32> {
        match self.storage {
            CpuStorage::F32(data) => data,
            _ => Vec::new(),
        }
    }

    /// Some of the rows.
    pub fn select(&self, rows: &[usize]) -> Self {
        let data = rows.iter().flat_map(|row| &self.data()[row * self.columns..][..self.columns]).copied().collect();
        Self::new(rows.len(), self.columns, data)
    }

    /// Adds another matrix of the same shape.
    pub fn add(&mut self, other: &Self) {
        kernels::add(self.data_mut(), other.data());
    }
}

/// Root-mean-square normalisation with learnt weights.
#[derive(Debug)]
pub struct RmsNorm {
    weights: Vec<f32>,
    epsilon: f32,
}

impl RmsNorm {
    /// Reads the weights.
    pub fn read(gguf: &mut Gguf, name: &str, width: usize, epsilon: f32) -> Result<Self> {
        Ok(Self { weights: gguf.vector(name, width)?, epsilon })
    }

    /// Normalises each row.
    pub fn apply(&self, input: &Matrix) -> Matrix {
        let mut output = Matrix::zeros(input.rows, input.columns);
        let rows = input.data().chunks_exact(input.columns);
        for (row, out) in rows.zip(output.data_mut().chunks_exact_mut(input.columns)) {
            let mean = kernels::sum_of_squares(row) / input.columns as f32;
            kernels::scale(row, 1.0 / (mean + self.epsilon).sqrt(), &self.weights, out);
        }
        output
    }
}
