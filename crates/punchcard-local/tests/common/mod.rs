//! A writer of small GGUF files, and the models that the tests put into them.
#![allow(dead_code, missing_docs)]

use std::path::PathBuf;

#[derive(Clone)]
pub enum Value {
    U32(u32),
    F32(f32),
    Bool(bool),
    Text(String),
    Texts(Vec<String>),
    I32s(Vec<i32>),
}

#[derive(Clone)]
pub struct Tensor {
    pub name: String,
    /// Slowest first.
    pub shape: Vec<usize>,
    pub kind: u32,
    pub bytes: Vec<u8>,
}

#[derive(Clone, Default)]
pub struct File {
    pub entries: Vec<(String, Value)>,
    pub tensors: Vec<Tensor>,
}

impl File {
    pub fn set(&mut self, key: &str, value: Value) {
        self.entries.retain(|(old, _)| old != key);
        self.entries.push((key.into(), value));
    }

    pub fn floats(&mut self, name: &str, shape: &[usize], values: &[f32]) {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.tensors.push(Tensor { name: name.into(), shape: shape.to_vec(), kind: 0, bytes });
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut out = b"GGUF".to_vec();
        out.extend(3u32.to_le_bytes());
        out.extend((self.tensors.len() as u64).to_le_bytes());
        out.extend((self.entries.len() as u64).to_le_bytes());
        for (key, value) in &self.entries {
            text(&mut out, key);
            match value {
                Value::U32(value) => number(&mut out, 4, &value.to_le_bytes()),
                Value::F32(value) => number(&mut out, 6, &value.to_le_bytes()),
                Value::Bool(value) => number(&mut out, 7, &[u8::from(*value)]),
                Value::Text(value) => {
                    out.extend(8u32.to_le_bytes());
                    text(&mut out, value);
                }
                Value::Texts(values) => {
                    number(&mut out, 9, &8u32.to_le_bytes());
                    out.extend((values.len() as u64).to_le_bytes());
                    values.iter().for_each(|value| text(&mut out, value));
                }
                Value::I32s(values) => {
                    number(&mut out, 9, &5u32.to_le_bytes());
                    out.extend((values.len() as u64).to_le_bytes());
                    values.iter().for_each(|value| out.extend(value.to_le_bytes()));
                }
            }
        }
        let mut offset = 0;
        for tensor in &self.tensors {
            text(&mut out, &tensor.name);
            out.extend((tensor.shape.len() as u32).to_le_bytes());
            tensor.shape.iter().rev().for_each(|&extent| out.extend((extent as u64).to_le_bytes()));
            out.extend(tensor.kind.to_le_bytes());
            out.extend((offset as u64).to_le_bytes());
            offset += tensor.bytes.len().next_multiple_of(32);
        }
        for tensor in &self.tensors {
            out.resize(out.len().next_multiple_of(32), 0);
            out.extend(&tensor.bytes);
        }
        out
    }
}

fn text(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.as_bytes());
}

fn number(out: &mut Vec<u8>, kind: u32, bytes: &[u8]) {
    out.extend(kind.to_le_bytes());
    out.extend(bytes);
}

/// A file in the system's folder for such, removed at the end.
pub struct Temporary(pub PathBuf);

impl Temporary {
    pub fn new(name: &str, bytes: &[u8]) -> Self {
        let path = std::env::temp_dir().join(format!("punchcard-local-{}-{name}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        Self(path)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Numbers that look random and are the same each time.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        self.0 >> 33
    }

    /// Within ±1.
    pub fn float(&mut self) -> f32 {
        (self.next() % 20001) as f32 / 10000.0 - 1.0
    }
}

/// GPT-2's character for each byte, by its definition: printable Latin-1 stands for itself.
pub fn alphabet() -> Vec<String> {
    let printable =
        |byte: u32| (33..=126).contains(&byte) || (161..=172).contains(&byte) || (174..=255).contains(&byte);
    let mut next = 256;
    (0..256)
        .map(|byte| {
            let code = if printable(byte) {
                byte
            } else {
                next += 1;
                next - 1
            };
            char::from_u32(code).unwrap().to_string()
        })
        .collect()
}

/// The shape of the tests' models.
pub struct Shape {
    pub architecture: &'static str,
    pub blocks: usize,
    pub width: usize,
    pub hidden: usize,
    pub heads: usize,
    pub kv_heads: usize,
    pub vocab: usize,
    pub context: usize,
}

/// A vocabulary of the bytes, a few merges, two special tokens and padding.
pub fn vocabulary(file: &mut File, size: usize) {
    let mut tokens = alphabet();
    let merges = ["a b", "b c", "ab c", "Ġ t", "h e", "Ġt he"];
    tokens.extend(merges.iter().map(|merge| merge.replace(' ', "")));
    let normal = tokens.len();
    tokens.extend(["<|im_start|>".into(), "<|im_end|>".into()]);
    let mut kinds = vec![1; normal];
    kinds.extend([3, 3]);
    while tokens.len() < size {
        tokens.push(format!("[PAD{}]", tokens.len()));
        kinds.push(5);
    }
    file.set("tokenizer.ggml.model", Value::Text("gpt2".into()));
    file.set("tokenizer.ggml.pre", Value::Text("qwen2".into()));
    file.set("tokenizer.ggml.tokens", Value::Texts(tokens));
    file.set("tokenizer.ggml.token_type", Value::I32s(kinds));
    file.set("tokenizer.ggml.merges", Value::Texts(merges.map(String::from).to_vec()));
    file.set("tokenizer.ggml.bos_token_id", Value::U32(normal as u32));
    file.set("tokenizer.ggml.eos_token_id", Value::U32(normal as u32 + 1));
    file.set("tokenizer.chat_template", Value::Text("{{ messages }}".into()));
}

/// A model with weights drawn at random.
pub fn model(shape: &Shape, tied: bool) -> File {
    let mut file = File::default();
    let arch = shape.architecture;
    file.set("general.architecture", Value::Text(arch.into()));
    for (key, value) in [
        ("block_count", shape.blocks),
        ("embedding_length", shape.width),
        ("feed_forward_length", shape.hidden),
        ("attention.head_count", shape.heads),
        ("attention.head_count_kv", shape.kv_heads),
        ("context_length", shape.context),
    ] {
        file.set(&format!("{arch}.{key}"), Value::U32(value as u32));
    }
    file.set(&format!("{arch}.attention.layer_norm_rms_epsilon"), Value::F32(1e-6));
    file.set(&format!("{arch}.rope.freq_base"), Value::F32(5000.0));
    vocabulary(&mut file, shape.vocab);

    let mut random = Random(7);
    let mut draw = |file: &mut File, name: &str, shape: &[usize], scale: f32, base: f32| {
        let values: Vec<f32> = (0..shape.iter().product()).map(|_| base + scale * random.float()).collect();
        file.floats(name, shape, &values);
    };
    let (width, hidden, dim) = (shape.width, shape.hidden, shape.width / shape.heads);
    let kv = shape.kv_heads * dim;
    draw(&mut file, "token_embd.weight", &[shape.vocab, width], 1.0, 0.0);
    draw(&mut file, "output_norm.weight", &[width], 0.3, 1.0);
    if !tied {
        draw(&mut file, "output.weight", &[shape.vocab, width], 0.5, 0.0);
    }
    for block in 0..shape.blocks {
        let mut weight = |part: &str, extents: &[usize], scale: f32, base: f32| {
            draw(&mut file, &format!("blk.{block}.{part}"), extents, scale, base);
        };
        weight("attn_norm.weight", &[width], 0.3, 1.0);
        weight("attn_q.weight", &[width, width], 0.4, 0.0);
        weight("attn_k.weight", &[kv, width], 0.4, 0.0);
        weight("attn_v.weight", &[kv, width], 0.4, 0.0);
        if arch == "qwen2" {
            weight("attn_q.bias", &[width], 0.5, 0.0);
            weight("attn_k.bias", &[kv], 0.5, 0.0);
            weight("attn_v.bias", &[kv], 0.5, 0.0);
        }
        weight("attn_output.weight", &[width, width], 0.4, 0.0);
        weight("ffn_norm.weight", &[width], 0.3, 1.0);
        weight("ffn_gate.weight", &[hidden, width], 0.4, 0.0);
        weight("ffn_up.weight", &[hidden, width], 0.4, 0.0);
        weight("ffn_down.weight", &[width, hidden], 0.4, 0.0);
    }
    file
}
