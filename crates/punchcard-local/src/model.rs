//! The decoder: weights, cache and the forward pass.

use crate::attention::{self, KvCache, Rotation};
use crate::config::Config;
use crate::error::{Error, Result};
use crate::gguf::Gguf;
use crate::kernels;
use crate::linear::Linear;
use crate::matrix::{Matrix, RmsNorm};
use crate::parallel;

/// Tokens that pass through the layers together; more would only take memory.
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

    fn forward(
        &self,
        config: &Config,
        cache: &mut KvCache,
        rotation: &Rotation,
        start: usize,
        stream: &mut Matrix,
    ) -> Result<()> {
        let projected = self.projections.apply(&self.attention_norm.apply(stream))?;
        let attended = attention::attend(config, cache, rotation, start, projected);
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

/// A decoder and the keys and values of the tokens that it has seen.
#[derive(Debug)]
pub struct Model {
    config: Config,
    vocab_size: usize,
    embedding: Linear,
    blocks: Vec<Block>,
    output_norm: RmsNorm,
    /// `None` where the embedding serves as the output too.
    output: Option<Linear>,
    caches: Vec<KvCache>,
    position: usize,
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
        let caches = (0..config.blocks).map(|_| KvCache::default()).collect();
        Ok(Self { vocab_size, embedding, blocks: blocks?, output_norm, output, caches, position: 0, config })
    }

    /// The model's shape.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Logits of a position: ids, padding included.
    pub fn vocab_size(&self) -> usize {
        self.vocab_size
    }

    /// Tokens in the cache.
    pub fn position(&self) -> usize {
        self.position
    }

    /// Forgets all tokens from `position` on.
    pub fn rewind(&mut self, position: usize) -> Result<()> {
        if position > self.position {
            return Err(Error::Position { requested: position, position: self.position });
        }
        self.position = position;
        Ok(())
    }

    /// Appends `ids` to the cache, and returns the logits after the last of them, or after each of them
    /// (`[ids.len(), vocab_size]`, row after row). After an error the cache is as before.
    pub fn forward(&mut self, ids: &[u32], all_positions: bool) -> Result<Vec<f32>> {
        if ids.is_empty() {
            return Err(Error::Empty);
        }
        if let Some(&id) = ids.iter().find(|&&id| id as usize >= self.vocab_size) {
            return Err(Error::Token { id, vocab_size: self.vocab_size });
        }
        let tokens = self.position + ids.len();
        if tokens > self.config.context_length {
            return Err(Error::ContextLength { tokens, context_length: self.config.context_length });
        }
        let start = self.position;
        let result = parallel::run(|| self.forward_chunks(ids, all_positions));
        self.position = if result.is_ok() { tokens } else { start };
        result
    }

    fn forward_chunks(&mut self, ids: &[u32], all_positions: bool) -> Result<Vec<f32>> {
        let mut logits = Vec::new();
        let mut left = ids.len();
        for chunk in ids.chunks(CHUNK) {
            left -= chunk.len();
            let rotation = Rotation::new(&self.config, self.position, chunk.len());
            let mut stream = self.embedding.select(chunk)?;
            for (block, cache) in self.blocks.iter().zip(&mut self.caches) {
                block.forward(&self.config, cache, &rotation, self.position, &mut stream)?;
            }
            self.position += chunk.len();
            if all_positions || left == 0 {
                let wanted = if all_positions { stream } else { stream.last_row() };
                let output = self.output.as_ref().unwrap_or(&self.embedding);
                logits.extend(output.apply(&self.output_norm.apply(&wanted))?.into_data());
            }
        }
        Ok(logits)
    }
}
