//! The decoder: weights and the forward pass.
//!
//! A pass takes the new tokens of any number of sequences at once. Where a model reads its weights from memory, that is nearly
//! all of its time, and a pass reads them once, whatever the number of its tokens: rows of a matrix, whosever they are. Only
//! attention asks which sequence a row belongs to.

use crate::attention::{self, Rotation, Run};
use crate::config::Config;
use crate::error::{Error, Result};
use crate::gguf::Gguf;
use crate::kernels;
use crate::linear::Linear;
use crate::matrix::{Matrix, RmsNorm};
use crate::parallel;
use crate::sequence::Sequence;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// Tokens that pass through the layers together, at most; more would only take memory.
const CHUNK: usize = 512;

/// One transformer block.
#[derive(Debug)]
struct Block {
    attention_norm: RmsNorm,
    /// Queries, keys and values side by side.
    projections: Linear,
    output: Linear,
    feed_forward_norm: RmsNorm,
    /// The gate and what it gates side by side.
    gate_up: Linear,
    down: Linear,
}

impl Block {
    fn read(gguf: &mut Gguf, config: &Config, index: usize) -> Result<Self> {
        let name = |part: &str| format!("blk.{index}.{part}");
        let (width, hidden, epsilon) = (config.width, config.hidden, config.epsilon);
        let (query_width, kv_width) = (config.heads * config.head_dim, config.kv_heads * config.head_dim);
        Ok(Self {
            attention_norm: RmsNorm::read(gguf, &name("attn_norm.weight"), width, epsilon)?,
            projections: Linear::read_all(
                gguf,
                &[(&name("attn_q"), query_width), (&name("attn_k"), kv_width), (&name("attn_v"), kv_width)],
                width,
            )?,
            output: Linear::read(gguf, &name("attn_output"), query_width, width)?,
            feed_forward_norm: RmsNorm::read(gguf, &name("ffn_norm.weight"), width, epsilon)?,
            gate_up: Linear::read_all(gguf, &[(&name("ffn_gate"), hidden), (&name("ffn_up"), hidden)], width)?,
            down: Linear::read(gguf, &name("ffn_down"), hidden, width)?,
        })
    }

    fn forward(&self, config: &Config, runs: &mut [Run<'_>], rotation: &Rotation, stream: &mut Matrix) -> Result<()> {
        let projected = self.projections.apply(&self.attention_norm.apply(stream))?;
        let attended = attention::attend(config, runs, rotation, projected);
        stream.add(&self.output.apply(&attended)?);

        let gate_up = self.gate_up.apply(&self.feed_forward_norm.apply(stream))?;
        let mut activation = Matrix::zeros(stream.rows(), config.hidden);
        let rows = gate_up.data().chunks_exact(2 * config.hidden);
        for (row, out) in rows.zip(activation.data_mut().chunks_exact_mut(config.hidden)) {
            let (gate, up) = row.split_at(config.hidden);
            kernels::swiglu(gate, up, out);
        }
        stream.add(&self.down.apply(&activation)?);
        Ok(())
    }
}

/// A decoder. It is not changed by what it computes: that is in its sequences.
#[derive(Debug)]
pub struct Model {
    /// Which model of the process it is.
    id: u64,
    config: Config,
    vocab_size: usize,
    embedding: Linear,
    blocks: Vec<Block>,
    output_norm: RmsNorm,
    /// `None` where the embedding serves as the output too.
    output: Option<Linear>,
}

/// New tokens of one sequence of a batch.
pub type Entry<'s, 'i> = (&'s mut Sequence, &'i [u32]);

/// Tokens of one sequence within a pass: which sequence of the batch, and which of its new tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Piece {
    index: usize,
    tokens: Range<usize>,
}

impl Model {
    /// Reads all weights of a model.
    pub fn read(gguf: &mut Gguf) -> Result<Self> {
        let config = Config::from_gguf(gguf)?;
        let vocab_size = match gguf.info("token_embd.weight").map(|info| info.shape.as_slice()) {
            Some(&[rows, columns]) if columns == config.width => rows,
            _ => return Err(gguf.malformed("it has no usable tensor \"token_embd.weight\"")),
        };
        let embedding = Linear::read(gguf, "token_embd", config.width, vocab_size)?;
        let blocks: Result<Vec<_>> = (0..config.blocks).map(|index| Block::read(gguf, &config, index)).collect();
        let output = match gguf.info("output.weight") {
            Some(_) => Some(Linear::read(gguf, "output", config.width, vocab_size)?),
            None => None,
        };
        let output_norm = RmsNorm::read(gguf, "output_norm.weight", config.width, config.epsilon)?;
        static MODELS: AtomicU64 = AtomicU64::new(0);
        let id = MODELS.fetch_add(1, Ordering::Relaxed);
        Ok(Self { id, vocab_size, embedding, blocks: blocks?, output_norm, output, config })
    }

    /// The model's shape.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Logits of a position: ids, padding included.
    pub fn vocab_size(&self) -> usize {
        self.vocab_size
    }

    /// A sequence without any tokens.
    pub fn sequence(&self) -> Sequence {
        Sequence::new(self.id, self.blocks.len())
    }

    /// Appends `ids` to the sequence, and returns the logits after the last of them, or after each of them
    /// (`[ids.len(), vocab_size]`, row after row). After an error the sequence is as before.
    pub fn forward(&self, sequence: &mut Sequence, ids: &[u32], all_positions: bool) -> Result<Vec<f32>> {
        self.check(sequence, ids)?;
        self.passes(&mut [(sequence, ids)], all_positions)
    }

    /// Appends new tokens to each of some sequences, in one pass, and returns the logits after the last token of each
    /// (`[batch.len(), vocab_size]`, row after row). Sequences may get different numbers of tokens. Beyond 512 tokens in total
    /// there are several passes. After an error all sequences are as before.
    pub fn forward_batch(&self, batch: &mut [Entry<'_, '_>]) -> Result<Vec<f32>> {
        for (index, (sequence, ids)) in batch.iter().enumerate() {
            self.check(sequence, ids).map_err(|error| Error::Batch { index, source: Box::new(error) })?;
        }
        self.passes(batch, false)
    }

    fn check(&self, sequence: &Sequence, ids: &[u32]) -> Result<()> {
        if sequence.model() != self.id {
            return Err(Error::OtherModel);
        }
        if ids.is_empty() {
            return Err(Error::Empty);
        }
        if let Some(&id) = ids.iter().find(|&&id| id as usize >= self.vocab_size) {
            return Err(Error::Token { id, vocab_size: self.vocab_size });
        }
        let tokens = sequence.position() + ids.len();
        if tokens > self.config.context_length {
            return Err(Error::ContextLength { tokens, context_length: self.config.context_length });
        }
        Ok(())
    }

    fn passes(&self, batch: &mut [Entry<'_, '_>], all_positions: bool) -> Result<Vec<f32>> {
        let starts: Vec<usize> = batch.iter().map(|(sequence, _)| sequence.position()).collect();
        let lengths: Vec<usize> = batch.iter().map(|(_, ids)| ids.len()).collect();
        let result = parallel::run(|| {
            let mut logits = Vec::new();
            for pieces in divide(&lengths) {
                self.pass(batch, &pieces, all_positions, &mut logits)?;
            }
            Ok(logits)
        });
        if result.is_err() {
            for ((sequence, _), start) in batch.iter_mut().zip(starts) {
                sequence.rewind(start)?;
            }
        }
        result
    }

    /// One pass over pieces of successive sequences. Appends the logits that are wanted: those of all tokens, or of the last
    /// ones of sequences.
    fn pass(
        &self,
        batch: &mut [Entry<'_, '_>],
        pieces: &[Piece],
        all_positions: bool,
        logits: &mut Vec<f32>,
    ) -> Result<()> {
        let (mut ids, mut positions, mut wanted) = (Vec::new(), Vec::new(), Vec::new());
        for Piece { index, tokens } in pieces {
            let (sequence, new) = &batch[*index];
            let first = ids.len();
            ids.extend_from_slice(&new[tokens.clone()]);
            positions.extend(sequence.position()..sequence.position() + tokens.len());
            match (all_positions, tokens.end == new.len()) {
                (true, _) => wanted.extend(first..ids.len()),
                (false, true) => wanted.push(ids.len() - 1),
                (false, false) => {}
            }
        }
        let rotation = Rotation::new(&self.config, positions);
        let mut stream = self.embedding.select(&ids)?;
        let Some(first) = pieces.first() else { return Ok(()) };
        let batch = &mut batch[first.index..];
        for (number, block) in self.blocks.iter().enumerate() {
            let mut runs: Vec<_> = pieces
                .iter()
                .zip(batch.iter_mut())
                .map(|(piece, (sequence, _))| Run {
                    start: sequence.position,
                    tokens: piece.tokens.len(),
                    cache: &mut sequence.caches[number],
                })
                .collect();
            block.forward(&self.config, &mut runs, &rotation, &mut stream)?;
        }
        for (piece, (sequence, _)) in pieces.iter().zip(batch) {
            sequence.position += piece.tokens.len();
        }
        if !wanted.is_empty() {
            let output = self.output.as_ref().unwrap_or(&self.embedding);
            logits.extend(output.apply(&self.output_norm.apply(&stream.select(&wanted)))?.into_data());
        }
        Ok(())
    }
}

/// The passes that take so many tokens of each sequence: up to [`CHUNK`] each, one sequence after the other.
fn divide(lengths: &[usize]) -> Vec<Vec<Piece>> {
    let mut passes: Vec<Vec<Piece>> = Vec::new();
    let mut room = 0;
    for (index, &length) in lengths.iter().enumerate() {
        let mut begin = 0;
        while begin < length {
            if room == 0 {
                passes.push(Vec::new());
                room = CHUNK;
            }
            let end = length.min(begin + room);
            room -= end - begin;
            if let Some(pass) = passes.last_mut() {
                pass.push(Piece { index, tokens: begin..end });
            }
            begin = end;
        }
    }
    passes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_take_each_token_once_and_in_order() {
        let piece = |index, tokens| Piece { index, tokens };
        assert_eq!(divide(&[]), Vec::<Vec<_>>::new());
        assert_eq!(divide(&[1, 3]), [[piece(0, 0..1), piece(1, 0..3)]]);
        assert_eq!(divide(&[512, 1]), [[piece(0, 0..512)], [piece(1, 0..1)]]);
        assert_eq!(
            divide(&[500, 600, 2]),
            [
                vec![piece(0, 0..500), piece(1, 0..12)],
                vec![piece(1, 12..524)],
                vec![piece(1, 524..600), piece(2, 0..2)]
            ]
        );
    }
}
