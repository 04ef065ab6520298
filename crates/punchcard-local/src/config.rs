//! The shape of a model, from a file's metadata.

use crate::error::Result;
use crate::gguf::Gguf;

/// Which elements of a head's vector turn together under the rotary embedding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pairing {
    /// Element 2i with 2i + 1 (llama files, whose query and key rows were permuted to this end).
    Adjacent,
    /// Element i with i + half (qwen2).
    Halves,
}

/// The shape of a decoder.
#[derive(Debug, Clone)]
pub struct Config {
    /// `llama` or `qwen2`.
    pub architecture: String,
    /// Transformer blocks.
    pub blocks: usize,
    /// Width of the residual stream.
    pub width: usize,
    /// Width within the feed-forward part.
    pub hidden: usize,
    /// Heads of the queries.
    pub heads: usize,
    /// Heads of the keys and values; divides `heads`.
    pub kv_heads: usize,
    /// Elements of a head's vector.
    pub head_dim: usize,
    /// Positions that the model was trained for.
    pub context_length: usize,
    /// Added to the mean square before its root.
    pub epsilon: f32,
    /// Turns per position of each rotated pair, in radians.
    pub frequencies: Vec<f64>,
    /// What is rotated with what.
    pub pairing: Pairing,
}

impl Config {
    /// Reads the shape, and checks that it makes sense.
    pub fn from_gguf(gguf: &mut Gguf) -> Result<Self> {
        let Some(architecture) = gguf.text("general.architecture").map(str::to_owned) else {
            return Err(gguf.malformed("its metadata does not say which architecture it is for"));
        };
        let pairing = match architecture.as_str() {
            "llama" => Pairing::Adjacent,
            "qwen2" => Pairing::Halves,
            _ => {
                let what = format!("its architecture is {architecture:?}; \"llama\" and \"qwen2\" are supported");
                return Err(gguf.unsupported(what));
            }
        };
        let key = |name: &str| format!("{architecture}.{name}");
        let blocks = gguf.required_size(&key("block_count"))?;
        let width = gguf.required_size(&key("embedding_length"))?;
        let hidden = gguf.required_size(&key("feed_forward_length"))?;
        let heads = gguf.required_size(&key("attention.head_count"))?;
        let kv_heads = gguf.size(&key("attention.head_count_kv")).unwrap_or(heads);
        let context_length = gguf.required_size(&key("context_length"))?;
        let within = |value: usize, limit: usize| (1..=limit).contains(&value);
        let sound = [
            within(blocks, 1 << 10),
            within(width, 1 << 16),
            within(hidden, 1 << 20),
            within(heads, 1 << 10),
            within(kv_heads, heads) && heads.is_multiple_of(kv_heads),
            within(context_length, 1 << 24),
        ];
        if sound.contains(&false) {
            return Err(gguf.malformed("its metadata describes an impossible shape"));
        }
        if gguf.size(&key("expert_count")).is_some_and(|count| count > 0) {
            return Err(gguf.unsupported("it is a mixture of experts"));
        }
        let head_dim = gguf.size(&key("attention.key_length")).unwrap_or(width / heads);
        let value_dim = gguf.size(&key("attention.value_length")).unwrap_or(head_dim);
        let rotated = gguf.size(&key("rope.dimension_count")).unwrap_or(head_dim);
        if !within(head_dim, 1 << 12) || value_dim != head_dim || !rotated.is_multiple_of(2) || rotated > head_dim {
            return Err(gguf.malformed("its attention heads have an impossible shape"));
        }
        let epsilon = gguf.float(&key("attention.layer_norm_rms_epsilon")).unwrap_or(1e-5);
        let frequencies = frequencies(gguf, &architecture, rotated)?;
        Ok(Self {
            architecture,
            blocks,
            width,
            hidden,
            heads,
            kv_heads,
            head_dim,
            context_length,
            epsilon: epsilon as f32,
            frequencies,
            pairing,
        })
    }

    /// What a token in a cache takes: a key and a value in each block.
    pub fn cache_bytes_per_token(&self) -> usize {
        2 * self.blocks * self.kv_heads * self.head_dim * size_of::<f32>()
    }
}

/// `base^(-2i/rotated)`, divided by what the file wants for contexts longer than it was first trained for.
fn frequencies(gguf: &mut Gguf, architecture: &str, rotated: usize) -> Result<Vec<f64>> {
    let key = |name: &str| format!("{architecture}.{name}");
    let base = gguf.float(&key("rope.freq_base")).unwrap_or(10_000.0);
    if !(base.is_finite() && base > 0.0) {
        return Err(gguf.malformed("its \"rope.freq_base\" is out of range"));
    }
    let factor = match gguf.text(&key("rope.scaling.type")) {
        None | Some("none") => 1.0,
        Some("linear") => gguf.float(&key("rope.scaling.factor")).filter(|&factor| factor > 0.0).unwrap_or(1.0),
        Some(other) => return Err(gguf.unsupported(format!("its rotary embedding is scaled in the way {other:?}"))),
    };
    let mut frequencies: Vec<f64> =
        (0..rotated / 2).map(|i| base.powf(-2.0 * i as f64 / rotated as f64) / factor).collect();
    if gguf.info("rope_freqs.weight").is_some() {
        for (frequency, factor) in frequencies.iter_mut().zip(gguf.vector("rope_freqs.weight", rotated / 2)?) {
            *frequency /= f64::from(factor);
        }
    }
    Ok(frequencies)
}
