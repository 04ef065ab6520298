//! GGUF files: of a tiny model with entries, counts and tensors altered, and whatever else is fed to the reader. What opens
//! must also cut texts, and run.

use crate::{Choices, RANDOM};
use punchcard_local::Runtime;
use std::path::PathBuf;

#[path = "../../punchcard-local/tests/common/mod.rs"]
mod writer;

use writer::{File, Shape, Value, model};

const SHAPE: Shape =
    Shape { architecture: "llama", blocks: 1, width: 32, hidden: 32, heads: 2, kv_heads: 1, vocab: 268, context: 64 };

/// More bytes are no test of the reader, but of the disk.
const MOST_BYTES: usize = 1 << 20;

pub(crate) fn check(data: &[u8]) {
    let bytes = match data.split_first() {
        Some((&RANDOM, rest)) => altered(&mut Choices::new(rest)),
        _ => data[..data.len().min(MOST_BYTES)].to_vec(),
    };
    let file = Temporary::new(&bytes);
    let runtime = match Runtime::open(&file.0) {
        Ok(runtime) => runtime,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let tokenizer = runtime.tokenizer();
    for text in ["the abc <|im_end|> ü", "", "\0\u{10FFFF}  \n\n 123 'll", "ababababcabc"] {
        for special in [false, true] {
            let ids = tokenizer.encode(text, special);
            assert!(ids.iter().all(|&id| (id as usize) < tokenizer.vocab_size()), "an id beyond the vocabulary");
            assert!(tokenizer.decode(&ids, true).is_ok(), "ids of a text that stand for nothing");
            // An error, such as a context that is too small, is an answer as well.
            let _ = runtime.model().forward(&mut runtime.model().sequence(), &ids, false);
        }
    }
    assert!(tokenizer.decode(&[u32::MAX], true).is_err());
    assert!(runtime.eos_token_ids().iter().all(|&id| (id as usize) < runtime.model().vocab_size()));
}

/// The model's file with some things changed.
pub(crate) fn altered(choices: &mut Choices<'_>) -> Vec<u8> {
    let mut file = model(&SHAPE, choices.once_in(2));
    for _ in 0..choices.below(4) {
        alter(&mut file, choices);
    }
    let mut bytes = file.bytes();
    for _ in 0..choices.below(3) {
        let at = choices.below(1 << 16) % bytes.len();
        match choices.below(4) {
            0 => bytes[at] = choices.byte(),
            1 => bytes[at..].iter_mut().take(8).for_each(|byte| *byte = 0xFF),
            2 => bytes.truncate(at),
            _ => drop(bytes.splice(at..at, [0; 4])),
        }
    }
    bytes
}

fn alter(file: &mut File, choices: &mut Choices<'_>) {
    const NUMBERS: [u32; 10] = [0, 1, 2, 3, 16, 64, 270, 1 << 20, i32::MAX as u32, u32::MAX];
    const KEYS: [&str; 26] = [
        "general.architecture",
        "general.alignment",
        "llama.block_count",
        "llama.embedding_length",
        "llama.feed_forward_length",
        "llama.attention.head_count",
        "llama.attention.head_count_kv",
        "llama.context_length",
        "llama.attention.key_length",
        "llama.attention.value_length",
        "llama.attention.layer_norm_rms_epsilon",
        "llama.rope.freq_base",
        "llama.rope.dimension_count",
        "llama.rope.scaling.type",
        "llama.rope.scaling.factor",
        "llama.expert_count",
        "tokenizer.ggml.model",
        "tokenizer.ggml.pre",
        "tokenizer.ggml.tokens",
        "tokenizer.ggml.token_type",
        "tokenizer.ggml.merges",
        "tokenizer.ggml.bos_token_id",
        "tokenizer.ggml.eos_token_id",
        "tokenizer.ggml.add_bos_token",
        "tokenizer.chat_template",
        "",
    ];
    const TEXTS: [&str; 12] =
        ["", "a", "llama", "qwen2", "gpt2", "smollm", "llama-bpe", "linear", "Ġ", "a b", " ", "é"];
    let number = |choices: &mut Choices<'_>| NUMBERS[choices.below(NUMBERS.len())];
    let at = choices.below(file.tensors.len());
    match choices.below(9) {
        0..4 => {
            let value = match choices.below(6) {
                0 => Value::Bool(true),
                1 => Value::Text(choices.pick(&TEXTS).into()),
                2 => Value::F32([0.0, -1.0, f32::NAN, f32::INFINITY, 1e-30, 10_000.0][choices.below(6)]),
                3 => Value::Texts(choices.list(0, 5, |choices| choices.pick(&TEXTS).into())),
                4 => Value::I32s(choices.list(0, 5, |choices| number(choices) as i32)),
                _ => Value::U32(number(choices)),
            };
            file.set(choices.pick(&KEYS), value);
        }
        4 => file.tensors[at].kind = number(choices),
        5 => file.tensors[at].shape = choices.list(0, 5, |choices| number(choices) as usize),
        6 => drop(file.tensors.remove(at)),
        7 => {
            let copy = file.tensors[at].clone();
            file.tensors.push(copy);
        }
        _ => {
            let length = file.tensors[at].bytes.len();
            let bytes = choices.list(4, 4, Choices::byte);
            for chunk in file.tensors[at].bytes[..length.min(256)].chunks_exact_mut(4) {
                chunk.copy_from_slice(&bytes);
            }
        }
    }
}

/// A file of this process, removed at the end.
struct Temporary(PathBuf);

impl Temporary {
    fn new(bytes: &[u8]) -> Temporary {
        // In memory, where the system has a folder for that.
        let folder = Some(PathBuf::from("/dev/shm")).filter(|path| path.is_dir()).unwrap_or_else(std::env::temp_dir);
        let thread = format!("{:?}", std::thread::current().id());
        let path = folder.join(format!("punchcard-fuzzing-{}-{thread}", std::process::id()));
        std::fs::write(&path, bytes).expect("a folder for temporary files that can be written");
        Temporary(path)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
