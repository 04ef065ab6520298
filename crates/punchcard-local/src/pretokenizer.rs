//! Cutting text into the pieces within which byte-level BPE merges.
//!
//! A model's vocabulary was trained on pieces cut by a certain pattern, and its merges never cross a cut. GGUF names the
//! pattern in `tokenizer.ggml.pre`; a text cut by another one still decodes to the same bytes, but in tokens that the model
//! has hardly seen.

use fancy_regex::Regex;
use std::ops::Range;

/// The pieces of GPT-2: contractions, then words, numbers and marks with a space before, then white space.
const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
/// As `GPT2`, save that each digit stands alone and takes no space with it.
const SMOLLM: &str = r"\p{N}|'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?[^\s\p{L}\p{N}]+|\s+(?=\p{N})|\s+(?!\S)|\s+";
/// Contractions of either case, words with any one mark before them, single digits, marks with the line breaks after.
const QWEN2: &str =
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
/// As `QWEN2`, with up to three digits together.
const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// Cuts text into pieces.
#[derive(Debug)]
pub struct PreTokenizer {
    pattern: Regex,
}

impl PreTokenizer {
    /// The pre-tokenizer that GGUF calls `name`, or `None` where it is not known.
    pub fn named(name: &str) -> Option<Self> {
        let pattern = match name {
            "gpt-2" | "gpt2" => GPT2,
            "smollm" => SMOLLM,
            "qwen2" => QWEN2,
            "llama3" | "llama-v3" | "llama-bpe" => LLAMA3,
            _ => return None,
        };
        Regex::new(pattern).ok().map(|pattern| Self { pattern })
    }

    /// The pieces of `text` as byte ranges: in order, none empty, and leaving nothing out.
    pub fn pieces(&self, text: &str) -> Vec<Range<usize>> {
        let mut pieces = Vec::new();
        let mut end = 0;
        // A match can only fail to be found by the engine's limits; what is left is then one piece, which loses nothing.
        for found in self.pattern.find_iter(text).map_while(Result::ok) {
            if found.start() > end {
                pieces.push(end..found.start());
            }
            if !found.as_str().is_empty() {
                pieces.push(found.range());
            }
            end = found.end();
        }
        if end < text.len() {
            pieces.push(end..text.len());
        }
        pieces
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut<'t>(name: &str, text: &'t str) -> Vec<&'t str> {
        PreTokenizer::named(name).unwrap().pieces(text).into_iter().map(|piece| &text[piece]).collect()
    }

    #[test]
    fn pieces_by_pattern() {
        let table: &[(&str, &str, &[&str])] = &[
            ("gpt-2", "it's  2024 ok", &["it", "'s", " ", " 2024", " ok"]),
            ("smollm", "in 2024, a  b\n\n c", &["in", " ", "2", "0", "2", "4", ",", " a", " ", " b", "\n\n", " c"]),
            ("smollm", "x   12", &["x", "   ", "1", "2"]),
            (
                "qwen2",
                "I'LL add 12\n\n{\"a\":1}",
                &["I", "'LL", " add", " ", "1", "2", "\n\n", "{\"", "a", "\":", "1", "}"],
            ),
            ("qwen2", "a  \n  b", &["a", "  \n", " ", " b"]),
            ("llama-bpe", "12345", &["123", "45"]),
            ("qwen2", "日本語、ok", &["日本語", "、ok"]),
        ];
        for (name, text, pieces) in table {
            assert_eq!(&cut(name, text), pieces, "{name}: {text:?}");
        }
    }

    #[test]
    fn nothing_is_left_out() {
        for name in ["gpt-2", "smollm", "qwen2", "llama3"] {
            let text = "\u{0}mixed \u{a0}\u{300} \t ½Ⅷ٣ 😀\r\n\r\n'd x'D  ";
            assert_eq!(cut(name, text).concat(), text, "{name}");
        }
    }

    #[test]
    fn unknown_names_are_refused() {
        assert!(PreTokenizer::named("poro").is_none());
    }
}
