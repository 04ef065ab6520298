//! Small vocabularies: every byte, and tokens that go across what parsers tell apart.

use punchcard_engine::Vocabulary;
use std::sync::{Arc, OnceLock};

/// The token that ends a text.
pub(crate) const END: u32 = 0;

/// Tokens that are no text, after `END`.
const SPECIAL: [&str; 4] = ["<think>", "</think>", "<|tool|>", "<t>"];

/// Tokens of several bytes; some are half characters.
const LONG: [&[u8]; 52] = [
    b"ab",
    b"aa",
    b"abc",
    b"ba",
    b" a",
    b"the",
    b"true",
    b"false",
    b"null",
    b"{\"",
    b"{\"a\":",
    b"\":",
    b"\": ",
    b"\",",
    b"\"}",
    b"\"]",
    b"[]",
    b"{}",
    b"[[",
    b"]]",
    b"}}",
    b"\",\"",
    b", ",
    b",\n",
    b"\n  ",
    b"\r\n",
    b"  ",
    b"1.",
    b"0.",
    b".5",
    b"10",
    b"00",
    b"e1",
    b"1e",
    b"-1",
    b"E+",
    b"\\\"",
    b"\\u00",
    b"\\n",
    b"/*",
    b"*/",
    b"</",
    b"<a>",
    b"</a>",
    b"\xC3\xA9",
    b"a\xC3",
    b"\xA9b",
    b"\xF0\x9F",
    b"\x98\x80\"",
    b"\xE2\x80\xA8",
    b"\x01\x02",
    b"\"\"",
];

fn vocabulary(bytes: u8) -> Arc<Vocabulary> {
    let special = SPECIAL.iter().map(|name| name.as_bytes());
    let single: Vec<[u8; 1]> = (0..=bytes).map(|byte| [byte]).collect();
    // Where bytes are missing, no token may end within a character that no other completes.
    let usable = |token: &&[u8]| bytes == 0xFF || std::str::from_utf8(token).is_ok();
    let long = LONG.iter().map(|token| if usable(token) { token } else { b"".as_slice() });
    let tokens = [b"<end>".as_slice()].into_iter().chain(special).chain(long).map(Box::from);
    let tokens: Vec<Box<[u8]>> = tokens.chain(single.iter().map(|byte| Box::from(byte.as_slice()))).collect();
    let special: Vec<u32> = (1..=SPECIAL.len() as u32).collect();
    // Some ids beyond the tokens, as models pad theirs.
    let size = tokens.len() + 7;
    Arc::new(Vocabulary::new(tokens, &[END], &special, Some(size)).expect("the vocabulary is sound"))
}

/// The vocabulary with all bytes.
pub(crate) fn all_bytes() -> &'static Arc<Vocabulary> {
    static ALL: OnceLock<Arc<Vocabulary>> = OnceLock::new();
    ALL.get_or_init(|| vocabulary(0xFF))
}

/// A vocabulary that can write no character beyond ASCII but `é`.
pub(crate) fn ascii() -> &'static Arc<Vocabulary> {
    static ASCII: OnceLock<Arc<Vocabulary>> = OnceLock::new();
    ASCII.get_or_init(|| vocabulary(0x7F))
}

/// The tokens that are worth a look at each place: those of several bytes, the special ones, and the end.
pub(crate) fn telling() -> std::ops::Range<u32> {
    0..(1 + SPECIAL.len() + LONG.len()) as u32
}
