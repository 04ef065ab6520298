//! Small language models of the llama and qwen2 families, from GGUF files, on the CPU.
//!
//! The crate does one thing: it turns token ids into logits, and text into ids. What to sample from the logits, and what of
//! them a grammar admits, is decided elsewhere.
//!
//! ```no_run
//! # fn main() -> punchcard_local::Result<()> {
//! let runtime = punchcard_local::Runtime::open("model.gguf".as_ref())?;
//! let ids = runtime.tokenizer().encode("The capital of France is", false);
//! let mut sequence = runtime.model().sequence();
//! let logits = runtime.model().forward(&mut sequence, &ids, false)?;
//! let best = (0..logits.len()).max_by(|&a, &b| logits[a].total_cmp(&logits[b])).unwrap_or(0);
//! println!("{}", String::from_utf8_lossy(&runtime.tokenizer().decode(&[best as u32], false)?));
//! let mut other = runtime.model().sequence();
//! other.copy_from(&sequence, 4)?; // the first four tokens need not be computed again
//! sequence.rewind(0)?; // forget, or go on from any earlier position
//! // Several texts at once cost little more than one.
//! let rows = runtime.model().forward_batch(&mut [(&mut sequence, &[1, 2, 3]), (&mut other, &[4])])?;
//! # Ok(())
//! # }
//! ```
//!
//! The flow is [`gguf`] (the container) → [`config`] (the shape) → [`model`] (weights, forward pass) over
//! [`sequence`] (what was read so far) and [`cache`], with [`linear`], [`byte_matrix`], [`slabs`], [`attention`], [`matrix`],
//! [`product`], [`kernels`], [`tiles`] and [`parallel`] below it, and [`tokenizer`] over [`pretokenizer`] beside it.
//!
//! # Speed
//! Quantised products are candle's: it looks at run time for AVX2, AVX-512 VNNI, NEON and the like, so that one build serves
//! all processors, and the crate's own kernels do the same. Which form weights are kept in, [`linear`] tells. Threads are as many as the physical cores, unless
//! `RAYON_NUM_THREADS` says otherwise when the first model runs; `CANDLE_NUM_THREADS` should be 1 ([`slabs`] tells why).

pub mod attention;
pub mod byte_matrix;
pub mod cache;
pub mod config;
pub mod error;
pub mod gguf;
pub mod kernels;
pub mod linear;
pub mod matrix;
pub mod model;
pub mod parallel;
pub mod pretokenizer;
pub mod product;
pub mod sequence;
pub mod slabs;
pub mod tiles;
pub mod tokenizer;

pub use error::{Error, Result};

use std::path::Path;

/// A model with its tokenizer.
#[derive(Debug)]
pub struct Runtime {
    model: model::Model,
    tokenizer: tokenizer::Tokenizer,
    chat_template: Option<String>,
    bos_token_id: Option<u32>,
    eos_token_ids: Vec<u32>,
}

impl Runtime {
    /// Opens a GGUF file and reads all of it.
    pub fn open(path: &Path) -> Result<Self> {
        let mut gguf = gguf::Gguf::open(path)?;
        // First what is quick to refuse.
        config::Config::from_gguf(&mut gguf)?;
        let tokenizer = tokenizer::Tokenizer::from_gguf(&gguf)?;
        let model = parallel::run(|| model::Model::read(&mut gguf))?;
        if tokenizer.vocab_size() > model.vocab_size() {
            return Err(gguf.malformed("its vocabulary has more tokens than its embedding has rows"));
        }
        let id = |key: &str| gguf.size(key).filter(|&id| id < model.vocab_size()).map(|id| id as u32);
        let mut eos_token_ids: Vec<u32> = ["eos_token_id", "eot_token_id", "eom_token_id"]
            .iter()
            .filter_map(|key| id(&format!("tokenizer.ggml.{key}")))
            .collect();
        // Files often name the end of a text only, or the end of a turn only; a model may emit either.
        eos_token_ids.extend(
            ["<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|eom_id|>", "<|end_of_text|>"]
                .iter()
                .filter_map(|text| tokenizer.special(text)),
        );
        let mut seen = Vec::new();
        eos_token_ids.retain(|id| {
            !seen.contains(id) && {
                seen.push(*id);
                true
            }
        });
        Ok(Self {
            chat_template: gguf.text("tokenizer.chat_template").map(str::to_owned),
            bos_token_id: id("tokenizer.ggml.bos_token_id"),
            eos_token_ids,
            model,
            tokenizer,
        })
    }

    /// The decoder.
    pub fn model(&self) -> &model::Model {
        &self.model
    }

    /// The tokenizer.
    pub fn tokenizer(&self) -> &tokenizer::Tokenizer {
        &self.tokenizer
    }

    /// The Jinja template of a conversation, where the file has one.
    pub fn chat_template(&self) -> Option<&str> {
        self.chat_template.as_deref()
    }

    /// The token that begins a text.
    pub fn bos_token_id(&self) -> Option<u32> {
        self.bos_token_id
    }

    /// The tokens that end a text or a turn; the file's own first.
    pub fn eos_token_ids(&self) -> &[u32] {
        &self.eos_token_ids
    }
}
