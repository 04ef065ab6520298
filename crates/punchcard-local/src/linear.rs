//! Linear maps with quantised weights.
//!
//! There are two kinds of weights. Candle has packed kernels for `Q4_K` and `Q6_K`: sixteen rows of weights interleaved, so that
//! one instruction serves all of them. These formats are those of larger models, for whose products it is the fastest by far,
//! so their weights stay as they are, as [`Slabs`]. Everything else becomes a [`ByteMatrix`]. Floats of 32 bits stay floats.

use crate::byte_matrix::{self, ByteMatrix};
use crate::error::{Error, Result};
use crate::gguf::Gguf;
use crate::kernels;
use crate::matrix::Matrix;
use crate::slabs::Slabs;
use candle_core::quantized::GgmlDType;

/// One linear map, or several over the same input whose outputs stand side by side.
#[derive(Debug)]
pub struct Linear {
    /// Weights of the same kind are stacked, so that one product serves them.
    stacks: Vec<Weights>,
    bias: Option<Vec<f32>>,
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
            let weights = Weights::new(dtype, rows, inputs, &bytes)?;
            let left = match stacks.last_mut() {
                Some(above) => above.append(weights),
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
        Ok(Self { stacks, bias, outputs })
    }

    /// Rows of the weights as floats, one for each id: its embedding.
    pub fn select(&self, ids: &[u32]) -> Result<Matrix> {
        match &self.stacks[..] {
            [Weights::Bytes(weights)] => Ok(weights.select(ids)),
            [Weights::Slabs(weights)] => weights.select(ids),
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
    Slabs(Slabs),
    Bytes(ByteMatrix),
}

impl Weights {
    fn new(dtype: GgmlDType, rows: usize, columns: usize, bytes: &[u8]) -> Result<Self> {
        let as_they_are = matches!(dtype, GgmlDType::F32 | GgmlDType::Q4K | GgmlDType::Q6K);
        Ok(if as_they_are || !columns.is_multiple_of(byte_matrix::BLOCK) {
            Self::Slabs(Slabs::new(dtype, rows, columns, bytes)?)
        } else {
            Self::Bytes(ByteMatrix::from_quantised(dtype, rows, columns, bytes)?)
        })
    }

    /// Appends the rows of `below`, or gives it back where they cannot lie together.
    fn append(&mut self, below: Self) -> Option<Self> {
        match (self, below) {
            (Self::Bytes(above), Self::Bytes(below)) => above.append(below).map(Self::Bytes),
            (Self::Slabs(above), Self::Slabs(below)) => {
                above.append(below);
                None
            }
            (_, below) => Some(below),
        }
    }

    fn product(&self, input: &Matrix) -> Result<Matrix> {
        match self {
            Self::Bytes(weights) => Ok(weights.product(input)),
            Self::Slabs(weights) => weights.product(input),
        }
    }
}
