//! Files that are cut short, altered or hostile: always an error that says what is wrong, never a panic.
#![allow(missing_docs)]

mod common;

use common::{File, Random, Shape, Temporary, Value, model};
use punchcard_local::{Error, Runtime};

const SHAPE: Shape =
    Shape { architecture: "llama", blocks: 1, width: 16, hidden: 16, heads: 2, kv_heads: 1, vocab: 270, context: 64 };

fn failure(name: &str, bytes: &[u8]) -> Error {
    let temporary = Temporary::new(name, bytes);
    Runtime::open(&temporary.0).err().unwrap_or_else(|| panic!("{name} was opened"))
}

fn altered(change: impl FnOnce(&mut File)) -> Vec<u8> {
    let mut file = model(&SHAPE, true);
    change(&mut file);
    file.bytes()
}

#[test]
fn a_sound_file_opens() {
    let temporary = Temporary::new("sound", &model(&SHAPE, true).bytes());
    let runtime = Runtime::open(&temporary.0).unwrap();
    assert_eq!(runtime.model().vocab_size(), 270);
    assert_eq!(runtime.chat_template(), Some("{{ messages }}"));
    assert_eq!((runtime.bos_token_id(), runtime.eos_token_ids()), (Some(262), &[263][..]));
}

#[test]
fn a_file_cut_anywhere_is_malformed() {
    let bytes = model(&SHAPE, true).bytes();
    for len in (0..2000).chain((2000..bytes.len()).step_by(97)).chain([bytes.len() - 1]) {
        let error = failure("cut", &bytes[..len]);
        assert!(matches!(error, Error::Malformed { .. }), "cut at {len}: {error}");
    }
}

#[test]
fn a_truncated_file_says_so() {
    let bytes = model(&SHAPE, true).bytes();
    let error = failure("truncated", &bytes[..bytes.len() - 40]).to_string();
    assert!(error.contains("cut short") && error.contains("but the file has"), "{error}");
}

#[test]
fn what_is_no_gguf_says_so() {
    for bytes in [&b""[..], b"GGUF", b"PK\x03\x04 this is an archive and not a model", &[0; 100]] {
        let error = failure("other", bytes).to_string();
        assert!(error.contains("GGUF"), "{error}");
    }
    assert!(matches!(Runtime::open("/nonexistent/model.gguf".as_ref()), Err(Error::Io { .. })));
    assert!(matches!(Runtime::open(&std::env::temp_dir()), Err(Error::Malformed { .. } | Error::Io { .. })));
}

#[test]
fn counts_beyond_the_file_take_no_memory() {
    let head = |tensors: u64, entries: u64| {
        let mut bytes = b"GGUF\x03\0\0\0".to_vec();
        bytes.extend(tensors.to_le_bytes());
        bytes.extend(entries.to_le_bytes());
        bytes
    };
    let mut long_text = head(0, 1);
    long_text.extend(u64::MAX.to_le_bytes());
    let mut long_array = head(0, 1);
    long_array.extend(1u64.to_le_bytes());
    long_array.extend(b"k\x09\0\0\0\x08\0\0\0");
    long_array.extend((u64::MAX / 8).to_le_bytes());
    let mut nested = head(0, 1);
    nested.extend(1u64.to_le_bytes());
    nested.extend(b"k\x09\0\0\0\x09\0\0\0");
    nested.extend(1u64.to_le_bytes());
    nested.extend([0; 64]);
    for bytes in [head(u64::MAX, 0), head(0, u64::MAX), head(1, 1), long_text, long_array, nested] {
        let error = failure("counts", &bytes);
        assert!(matches!(error, Error::Malformed { .. }), "{error}");
    }
}

#[test]
fn impossible_metadata_is_refused() {
    let number = |key: &'static str, value: u32| altered(move |file| file.set(key, Value::U32(value)));
    for (name, bytes) in [
        ("alignment", number("general.alignment", 0)),
        ("no heads", number("llama.attention.head_count", 0)),
        ("heads", number("llama.attention.head_count_kv", 3)),
        ("blocks", number("llama.block_count", 2)),
        ("many blocks", number("llama.block_count", u32::MAX)),
        ("width", number("llama.embedding_length", 32)),
        ("context", number("llama.context_length", u32::MAX)),
        ("rope", number("llama.rope.dimension_count", 4096)),
        ("key length", number("llama.attention.key_length", 0)),
        ("no tokens", altered(|file| file.set("tokenizer.ggml.tokens", Value::Texts(vec![])))),
        ("too many tokens", altered(|file| common::vocabulary(file, 300))),
        ("tokens of another type", altered(|file| file.set("tokenizer.ggml.tokens", Value::U32(1)))),
        ("no tensor", altered(|file| drop(file.tensors.pop()))),
        ("rank", altered(|file| file.tensors[0].shape = vec![270])),
        ("extent", altered(|file| file.tensors[0].shape = vec![usize::MAX / 2, 16])),
        ("product", altered(|file| file.tensors[0].shape = vec![1 << 40, 1 << 40])),
        ("quantisation", altered(|file| file.tensors[0].kind = 99)),
        ("block", altered(|file| file.tensors[0].kind = 12)),
    ] {
        let error = failure("metadata", &bytes);
        assert!(matches!(error, Error::Malformed { .. }), "{name}: {error}");
    }
}

#[test]
fn other_kinds_of_model_are_unsupported() {
    for (name, bytes) in [
        ("mamba", altered(|file| file.set("general.architecture", Value::Text("mamba".into())))),
        ("experts", altered(|file| file.set("llama.expert_count", Value::U32(8)))),
        ("tokenizer", altered(|file| file.set("tokenizer.ggml.model", Value::Text("bert".into())))),
        ("pre-tokenizer", altered(|file| file.set("tokenizer.ggml.pre", Value::Text("poro".into())))),
        ("yarn", altered(|file| file.set("llama.rope.scaling.type", Value::Text("yarn".into())))),
    ] {
        let error = failure("kinds", &bytes);
        assert!(matches!(error, Error::Unsupported { .. }), "{name}: {error}");
    }
}

#[test]
fn altered_headers_never_panic() {
    let file = model(&SHAPE, true);
    let sound = file.bytes();
    let header = sound.len() - file.tensors.iter().map(|tensor| tensor.bytes.len() + 32).sum::<usize>();
    let mut random = Random(11);
    let mut opened = 0;
    for round in 0..3000 {
        let mut bytes = sound.clone();
        for _ in 0..1 + random.next() % 3 {
            let at = random.next() as usize % header;
            bytes[at] =
                if round % 2 == 0 { random.next() as u8 } else { [0, 1, 0x7f, 0xff][random.next() as usize % 4] };
        }
        let temporary = Temporary::new("altered", &bytes);
        // What opens must also run.
        if let Ok(runtime) = Runtime::open(&temporary.0) {
            opened += 1;
            let ids = runtime.tokenizer().encode("the abc <|im_end|> ü", true);
            let _ = runtime.model().forward(&mut runtime.model().sequence(), &ids, false);
        }
    }
    assert!(opened > 0 && opened < 3000, "{opened} opened");
}
