//! Text to ids and back.
#![allow(missing_docs)]

mod common;

use common::{File, Temporary, Value, vocabulary};
use punchcard_local::Error;
use punchcard_local::gguf::Gguf;
use punchcard_local::tokenizer::Tokenizer;

fn tokenizer(name: &str, change: impl FnOnce(&mut File)) -> Tokenizer {
    let mut file = File::default();
    vocabulary(&mut file, 270);
    change(&mut file);
    let temporary = Temporary::new(name, &file.bytes());
    Tokenizer::from_gguf(&Gguf::open(&temporary.0).unwrap()).unwrap()
}

#[test]
fn merges_are_taken_in_their_order() {
    let tokenizer = tokenizer("merges", |_| {});
    // From 256 on: ab, bc, abc, Ġt, he, Ġthe.
    let byte = |character: char| u32::from(character);
    let table: &[(&str, &[u32])] = &[
        ("abc", &[258]),
        ("abbc", &[256, 257]),
        ("bcb", &[257, byte('b')]),
        ("ababc", &[256, 258]),
        ("the the", &[byte('t'), 260, 261]),
        ("a\nb", &[byte('a'), byte('\n'), byte('b')]),
        ("é", &[0xc3, 0xa9]),
        ("", &[]),
    ];
    for (text, ids) in table {
        assert_eq!(&tokenizer.encode(text, false), ids, "{text:?}");
    }
}

#[test]
fn special_tokens_are_parsed_on_demand() {
    let tokenizer = tokenizer("special", |_| {});
    let text = "<|im_start|>abc<|im_end|><|im_end";
    let parsed = tokenizer.encode(text, true);
    assert_eq!(&parsed[..3], [262, 258, 263]);
    assert_eq!(tokenizer.decode(&parsed, true).unwrap(), text.as_bytes());
    assert_eq!(tokenizer.decode(&parsed, false).unwrap(), b"abc<|im_end");
    let plain = tokenizer.encode(text, false);
    assert!(plain.iter().all(|&id| id < 262));
    assert_eq!(tokenizer.decode(&plain, false).unwrap(), text.as_bytes());
}

#[test]
fn every_text_comes_back() {
    let tokenizer = tokenizer("back", |_| {});
    let every_byte_pattern: String = (0..0x3000).filter_map(char::from_u32).collect();
    for text in ["\0\u{7f}", "日本語 \u{1f600}\r\n", &every_byte_pattern, &"ab".repeat(50_000), &" ".repeat(50_000)]
    {
        let ids = tokenizer.encode(text, true);
        assert_eq!(tokenizer.decode(&ids, false).unwrap(), text.as_bytes());
    }
}

#[test]
fn a_byte_without_a_token_is_left_out() {
    let tokenizer = tokenizer("missing", |file| {
        for (_, value) in &mut file.entries {
            if let Value::Texts(texts) = value
                && texts.len() > 256
            {
                texts[4] = "zzzz".into();
            }
        }
    });
    assert_eq!(tokenizer.encode("a\u{4}bc", false), [u32::from('a'), 257]);
}

#[test]
fn padding_decodes_to_nothing_and_what_is_beyond_is_an_error() {
    let tokenizer = tokenizer("padding", |_| {});
    assert_eq!(tokenizer.decode(&[269], true).unwrap(), b"");
    assert!(matches!(tokenizer.decode(&[270], true), Err(Error::Token { id: 270, vocab_size: 270 })));
}
