//! Text to token ids and back: byte-level BPE with the vocabulary and the merges of a GGUF file.
//!
//! A token's text in the file is written in GPT-2's alphabet, in which each of the 256 bytes is one printable character. Two
//! neighbouring tokens are merged while the file's list of merges has their pair, the earliest entry first. A heap of
//! candidate pairs over a linked list keeps that at O(n log n), so that one long run of letters is no trap.

use crate::error::{Error, Result};
use crate::gguf::{Gguf, Value};
use crate::pretokenizer::PreTokenizer;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// No token.
const NONE: u32 = u32::MAX;
/// Token types of GGUF that never arise from text.
const CONTROL: i64 = 3;
const USER_DEFINED: i64 = 4;

/// A tokenizer.
#[derive(Debug)]
pub struct Tokenizer {
    pre_tokenizer: PreTokenizer,
    /// What each id stands for; empty for padding.
    bytes: Vec<Box<[u8]>>,
    /// The id of each single byte, or `NONE`.
    byte_ids: [u32; 256],
    /// From a pair of ids to the rank of its merge and the id that it gives.
    merges: FxHashMap<(u32, u32), (u32, u32)>,
    /// Whole pieces that are tokens are taken as they are, without merging (Llama 3).
    whole_pieces: Option<FxHashMap<Box<[u8]>, u32>>,
    /// Special tokens by their text, longest first.
    specials: Vec<(Box<str>, u32)>,
    /// Marks the ids in `specials`.
    is_special: Vec<bool>,
    add_bos: Option<u32>,
}

impl Tokenizer {
    /// The tokenizer that a GGUF file describes.
    pub fn from_gguf(gguf: &Gguf) -> Result<Self> {
        match gguf.text("tokenizer.ggml.model") {
            Some("gpt2") => {}
            Some(model) => {
                return Err(gguf.unsupported(format!("its tokenizer is of the kind {model:?}, not \"gpt2\"")));
            }
            None => return Err(gguf.malformed("it describes no tokenizer")),
        }
        let pre = gguf.text("tokenizer.ggml.pre").unwrap_or("gpt-2");
        let Some(pre_tokenizer) = PreTokenizer::named(pre) else {
            return Err(gguf.unsupported(format!("its pre-tokenizer {pre:?} is not known")));
        };
        let tokens = texts(gguf, "tokenizer.ggml.tokens")?;
        let merge_list = texts(gguf, "tokenizer.ggml.merges")?;
        let kinds: &[i64] = match gguf.value("tokenizer.ggml.token_type") {
            Some(Value::Integers(kinds)) => kinds,
            _ => &[],
        };
        if tokens.is_empty() || tokens.len() > u32::MAX as usize {
            return Err(gguf.malformed("its vocabulary is empty"));
        }

        let alphabet = Alphabet::new();
        let mut ids: FxHashMap<&str, u32> = FxHashMap::default();
        let mut bytes = Vec::with_capacity(tokens.len());
        let mut specials = Vec::new();
        let mut is_special = vec![false; tokens.len()];
        for (id, token) in tokens.iter().enumerate() {
            match kinds.get(id) {
                Some(&(CONTROL | USER_DEFINED)) => {
                    bytes.push(token.as_bytes().into());
                    if !token.is_empty() {
                        specials.push((token.as_str().into(), id as u32));
                    }
                    is_special[id] = true;
                }
                Some(&1) | None => {
                    bytes.push(alphabet.decode(token));
                    ids.entry(token).or_insert(id as u32);
                }
                // Padding and unknown.
                Some(_) => bytes.push(Box::default()),
            }
        }
        specials.sort_by_key(|(text, _): &(Box<str>, u32)| Reverse(text.len()));

        let mut byte_ids = [NONE; 256];
        for (byte, id) in byte_ids.iter_mut().enumerate() {
            let mut buffer = [0; 4];
            let text: &str = alphabet.characters[byte].encode_utf8(&mut buffer);
            *id = ids.get(text).copied().unwrap_or(NONE);
        }

        let mut merges = FxHashMap::default();
        merges.reserve(merge_list.len());
        let mut joined = String::new();
        for (rank, merge) in merge_list.iter().enumerate() {
            let Some((left, right)) = merge.split_once(' ') else { continue };
            joined.clear();
            joined.push_str(left);
            joined.push_str(right);
            // A merge of or into a token that the vocabulary lacks can never happen.
            if let (Some(&a), Some(&b), Some(&c)) = (ids.get(left), ids.get(right), ids.get(joined.as_str())) {
                merges.entry((a, b)).or_insert((rank as u32, c));
            }
        }

        let whole_pieces = matches!(pre, "llama3" | "llama-v3" | "llama-bpe")
            .then(|| ids.values().map(|&id| (bytes[id as usize].clone(), id)).collect());
        let bos = gguf.size("tokenizer.ggml.bos_token_id").filter(|&id| id < tokens.len());
        let add_bos = bos.filter(|_| gguf.flag("tokenizer.ggml.add_bos_token") == Some(true)).map(|id| id as u32);
        Ok(Self { pre_tokenizer, bytes, byte_ids, merges, whole_pieces, specials, is_special, add_bos })
    }

    /// The number of ids, padding included.
    pub fn vocab_size(&self) -> usize {
        self.bytes.len()
    }

    /// The token that the file wants before a text, if any; `encode` does not add it.
    pub fn add_bos(&self) -> Option<u32> {
        self.add_bos
    }

    /// The id of the special token with this text.
    pub fn special(&self, text: &str) -> Option<u32> {
        self.specials.iter().find(|(special, _)| &**special == text).map(|&(_, id)| id)
    }

    /// Encodes `text`. Special tokens are recognised by their text where `parse_special` says so; otherwise they are text
    /// like any other, so that what a user wrote cannot pass for the end of a turn. A byte that the vocabulary has no token for
    /// (SmolLM2 lacks some control characters) is left out: the model could not have seen it.
    pub fn encode(&self, text: &str, parse_special: bool) -> Vec<u32> {
        let mut ids = Vec::with_capacity(text.len() / 3);
        let mut plain = 0;
        let mut at = 0;
        while parse_special && at < text.len() {
            let rest = &text.as_bytes()[at..];
            match self.specials.iter().find(|(special, _)| rest.starts_with(special.as_bytes())) {
                Some((special, id)) => {
                    self.encode_plain(&text[plain..at], &mut ids);
                    ids.push(*id);
                    at += special.len();
                    plain = at;
                }
                None => at += 1,
            }
        }
        self.encode_plain(&text[plain..], &mut ids);
        ids
    }

    /// The bytes that `ids` stand for; special tokens are left out unless `special` asks for them.
    pub fn decode(&self, ids: &[u32], special: bool) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        for &id in ids {
            match self.bytes.get(id as usize) {
                Some(piece) if special || !self.is_special[id as usize] => bytes.extend_from_slice(piece),
                Some(_) => {}
                None => return Err(Error::Token { id, vocab_size: self.bytes.len() }),
            }
        }
        Ok(bytes)
    }

    fn encode_plain(&self, text: &str, ids: &mut Vec<u32>) {
        for piece in self.pre_tokenizer.pieces(text) {
            let piece = text[piece].as_bytes();
            match self.whole_pieces.as_ref().and_then(|whole| whole.get(piece)) {
                Some(&id) => ids.push(id),
                None => self.merge(piece, ids),
            }
        }
    }

    /// Appends the tokens of one piece.
    fn merge(&self, piece: &[u8], ids: &mut Vec<u32>) {
        // A list over the piece's bytes: symbol i is followed by symbol next[i]; NONE in `symbols` marks one merged away.
        let mut symbols: Vec<u32> = piece.iter().map(|&byte| self.byte_ids[byte as usize]).collect();
        symbols.retain(|&symbol| symbol != NONE);
        let len = symbols.len();
        let mut next: Vec<usize> = (1..=len).collect();
        let mut previous: Vec<usize> = (0..len).map(|i| i.wrapping_sub(1)).collect();

        let mut heap = BinaryHeap::new();
        let candidate = |symbols: &[u32], left: usize, right: usize| {
            let pair = (symbols[left], symbols[right]);
            self.merges.get(&pair).map(|&(rank, merged)| Reverse((rank, left, right, pair, merged)))
        };
        heap.extend((1..len).filter_map(|right| candidate(&symbols, right - 1, right)));
        while let Some(Reverse((_, left, right, pair, merged))) = heap.pop() {
            // Stale if either side was merged since.
            if (symbols[left], symbols[right]) != pair || next[left] != right {
                continue;
            }
            symbols[left] = merged;
            symbols[right] = NONE;
            next[left] = next[right];
            if next[left] < len {
                previous[next[left]] = left;
                heap.extend(candidate(&symbols, left, next[left]));
            }
            if left > 0 {
                heap.extend(candidate(&symbols, previous[left], left));
            }
        }
        ids.extend(symbols.into_iter().filter(|&symbol| symbol != NONE));
    }
}

/// GPT-2's printable character for each byte.
struct Alphabet {
    characters: [char; 256],
    bytes: FxHashMap<char, u8>,
}

impl Alphabet {
    fn new() -> Self {
        let mut characters = ['\0'; 256];
        let mut bytes = FxHashMap::default();
        // Bytes that are no printable Latin-1 character get the characters from U+0100, in order.
        let mut spare = 0x100..;
        for byte in 0..=255u8 {
            let printable = matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff);
            let code = if printable { u32::from(byte) } else { spare.next().unwrap_or(0) };
            let character = char::from_u32(code).unwrap_or('\0');
            characters[byte as usize] = character;
            bytes.insert(character, byte);
        }
        Self { characters, bytes }
    }

    /// The bytes of a token's text; a character outside the alphabet stands for its own UTF-8.
    fn decode(&self, text: &str) -> Box<[u8]> {
        let mut decoded = Vec::with_capacity(text.len());
        for character in text.chars() {
            match self.bytes.get(&character) {
                Some(&byte) => decoded.push(byte),
                None => decoded.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        decoded.into()
    }
}

fn texts<'g>(gguf: &'g Gguf, key: &str) -> Result<&'g [String]> {
    match gguf.value(key) {
        Some(Value::Texts(texts)) => Ok(texts),
        _ => Err(gguf.malformed(format!("its metadata has no usable {key:?}"))),
    }
}
