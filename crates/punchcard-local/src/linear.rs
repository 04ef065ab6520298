//! Linear maps with quantised weights.
//!
//! There are two kinds of products. Candle's has packed kernels for `Q4_K` and `Q6_K`: sixteen rows of weights interleaved, so that
//! one instruction serves all of them. These formats are those of larger models, for whose products it is the fastest by far,
//! so their weights stay as they are. Everything else becomes a [`ByteMatrix`]. Floats of 32 bits stay floats.

use crate::byte_matrix::{self, ByteMatrix};
use crate::error::{Error, Result};
use crate::gguf::Gguf;
use crate::kernels;
use crate::matrix::Matrix;
use candle_core::quantized::{GgmlDType, QStorage, QTensor};
use candle_core::{CpuStorage, CustomOp1, Device, Layout, Shape, Tensor};
use std::borrow::Cow;

/// One linear map, or several over the same input whose outputs stand side by side.
#[derive(Debug)]
pub struct Linear {
    /// Weights of the same kind are stacked, so that one product serves them.
    stacks: Vec<Weights>,
    bias: Option<Vec<f32>>,
    inputs: usize,
    outputs: usize,
}

impl Linear {
    /// Reads the map `{name}.weight`, with `{name}.bias` where the file has one.
    pub fn read(gguf: &mut Gguf, name: &str, inputs: usize, outputs: usize) -> Result<Self> {
        Self::read_all(gguf, &[(name, outputs)], inputs)
    }

    /// Reads several maps over the same input: their names and how many outputs each has.
    pub fn read_all(gguf: &mut Gguf, maps: &[(&str, usize)], inputs: usize) -> Result<Self> {
        let outputs = maps.iter().map(|map| map.1).sum();
        let mut stacks: Vec<Weights> = Vec::new();
        let mut bias = Vec::new();
        for &(name, rows) in maps {
            let (dtype, bytes) = gguf.bytes(&format!("{name}.weight"), &[rows, inputs])?;
            let weights = Weights::new(dtype, rows, inputs, bytes)?;
            let left = match stacks.last_mut() {
                Some(above) => above.append(weights)?,
                None => Some(weights),
            };
            stacks.extend(left);
            let name = format!("{name}.bias");
            match gguf.info(&name) {
                Some(_) => bias.extend(gguf.vector(&name, rows)?),
                None => bias.resize(bias.len() + rows, 0.0),
            }
        }
        let bias = bias.iter().any(|&value| value != 0.0).then_some(bias);
        Ok(Self { stacks, bias, inputs, outputs })
    }

    /// Rows of the weights as floats, one for each id: its embedding.
    pub fn select(&self, ids: &[u32]) -> Result<Matrix> {
        match &self.stacks[..] {
            [Weights::Bytes(weights)] => Ok(weights.select(ids)),
            [Weights::Candle(weights)] => {
                let rows = weights.embedding(&Tensor::new(ids, &Device::Cpu)?)?;
                Ok(Matrix::new(ids.len(), self.inputs, rows.flatten_all()?.to_vec1()?))
            }
            _ => Err(Error::Compute(candle_core::Error::Msg("an embedding is one matrix".into()))),
        }
    }

    /// The product with each row of `input`.
    pub fn apply(&self, input: &Matrix) -> Result<Matrix> {
        let mut output = match &self.stacks[..] {
            [stack] => stack.product(input)?,
            stacks => {
                let mut output = Matrix::zeros(input.rows(), self.outputs);
                let mut first = 0;
                for stack in stacks {
                    let part = stack.product(input)?;
                    let rows = part.data().chunks_exact(part.columns());
                    for (row, out) in rows.zip(output.data_mut().chunks_exact_mut(self.outputs)) {
                        out[first..first + row.len()].copy_from_slice(row);
                    }
                    first += part.columns();
                }
                output
            }
        };
        if let Some(bias) = &self.bias {
            for row in output.data_mut().chunks_exact_mut(self.outputs) {
                kernels::add(row, bias);
            }
        }
        Ok(output)
    }
}

/// Weights, one row per output.
#[derive(Debug)]
enum Weights {
    Candle(QTensor),
    Bytes(ByteMatrix),
}

impl Weights {
    fn new(dtype: GgmlDType, rows: usize, columns: usize, bytes: Vec<u8>) -> Result<Self> {
        let as_they_are = matches!(dtype, GgmlDType::F32 | GgmlDType::Q4K | GgmlDType::Q6K);
        Ok(if as_they_are || !columns.is_multiple_of(byte_matrix::BLOCK) {
            Self::Candle(tensor(dtype, rows, columns, bytes)?)
        } else {
            Self::Bytes(ByteMatrix::from_quantised(dtype, rows, columns, &bytes)?)
        })
    }

    /// Appends the rows of `below`, or gives it back where it is of another kind.
    fn append(&mut self, below: Self) -> Result<Option<Self>> {
        match (self, below) {
            (Self::Bytes(above), Self::Bytes(below)) => above.append(below),
            (Self::Candle(above), Self::Candle(below)) if above.dtype() == below.dtype() => {
                let ((upper, columns), (lower, _)) = (above.shape().dims2()?, below.shape().dims2()?);
                let bytes = [above.data()?, below.data()?].concat();
                *above = tensor(above.dtype(), upper + lower, columns, bytes)?;
            }
            (_, below) => return Ok(Some(below)),
        }
        Ok(None)
    }

    fn product(&self, input: &Matrix) -> Result<Matrix> {
        let weights = match self {
            Self::Bytes(weights) => return Ok(weights.product(input)),
            Self::Candle(weights) => weights,
        };
        let layout = Layout::contiguous(Shape::from((input.rows(), input.columns())));
        match weights.cpu_fwd(input.storage(), &layout)?.0 {
            CpuStorage::F32(product) => Ok(Matrix::new(input.rows(), weights.shape().dims2()?.0, product)),
            _ => Err(Error::Compute(candle_core::Error::Msg("a product of floats is not of floats".into()))),
        }
    }
}

fn tensor(dtype: GgmlDType, rows: usize, columns: usize, bytes: Vec<u8>) -> Result<QTensor> {
    let storage = QStorage::from_data(Cow::Owned(bytes), &Device::Cpu, dtype)?;
    Ok(QTensor::new(storage, (rows, columns))?)
}
