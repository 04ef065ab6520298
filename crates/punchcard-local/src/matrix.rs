//! Matrices of activations, and the linear maps over them.

use crate::error::{Error, Result};
use crate::gguf::Gguf;
use crate::kernels;
use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{CpuStorage, CustomOp1, Device, Layout, Shape, Tensor};

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

    /// The last row alone.
    pub fn last_row(&self) -> Self {
        let data = self.data();
        Self::new(1, self.columns, data[data.len() - self.columns..].to_vec())
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

/// A quantised matrix of weights, one row per output, with an optional bias.
#[derive(Debug)]
pub struct Linear {
    weight: QTensor,
    bias: Option<Vec<f32>>,
    inputs: usize,
    outputs: usize,
}

impl Linear {
    /// Reads `{name}.weight`, and `{name}.bias` where the file has one.
    pub fn read(gguf: &mut Gguf, name: &str, inputs: usize, outputs: usize) -> Result<Self> {
        let weight = fast(gguf.tensor(&format!("{name}.weight"), &[outputs, inputs])?)?;
        let bias_name = format!("{name}.bias");
        let bias = match gguf.info(&bias_name) {
            Some(_) => Some(gguf.vector(&bias_name, outputs)?),
            None => None,
        };
        Ok(Self { weight, bias, inputs, outputs })
    }

    /// Rows of the weights, dequantised: the embedding of each id.
    pub fn rows(&self, ids: &[u32]) -> Result<Matrix> {
        let rows = self.weight.embedding(&Tensor::new(ids, &Device::Cpu)?)?;
        Ok(Matrix::new(ids.len(), self.inputs, rows.flatten_all()?.to_vec1()?))
    }

    /// The product with each row of `input`.
    pub fn apply(&self, input: &Matrix) -> Result<Matrix> {
        let layout = Layout::contiguous(Shape::from((input.rows, self.inputs)));
        let CpuStorage::F32(product) = self.weight.cpu_fwd(&input.storage, &layout)?.0 else {
            return Err(Error::Compute(candle_core::Error::Msg("a product of floats is not of floats".into())));
        };
        let mut output = Matrix::new(input.rows, self.outputs, product);
        if let Some(bias) = &self.bias {
            for row in output.data_mut().chunks_exact_mut(self.outputs) {
                kernels::add(row, bias);
            }
        }
        Ok(output)
    }
}

/// The same weights in a form that candle multiplies with vector code. Eight bits with a scale for each 32 hold what four or
/// five bits held, and take half of what sixteen took.
fn fast(weight: QTensor) -> Result<QTensor> {
    match weight.dtype() {
        GgmlDType::Q4_1 | GgmlDType::Q5_0 | GgmlDType::Q5_1 | GgmlDType::F16 | GgmlDType::BF16
            if weight.shape().dims().last().is_some_and(|columns| columns.is_multiple_of(32)) =>
        {
            Ok(QTensor::quantize(&weight.dequantize(&Device::Cpu)?, GgmlDType::Q8_0)?)
        }
        _ => Ok(weight),
    }
}
