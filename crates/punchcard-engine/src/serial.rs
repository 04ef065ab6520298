//! Compiled grammars as bytes.
//!
//! What is kept is the grammar itself, with its limits, and which vocabulary it was compiled for: nothing is expanded
//! ahead, so compiling it anew is as fast as reading tables would be. A line with a version and a checksum comes first.

use crate::error::CompileError;
use crate::grammar::CompiledGrammar;
use crate::options::Limits;
use crate::vocabulary::Vocabulary;
use punchcard_grammar::{Expr, GrammarError};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::sync::Arc;

const NAME: &str = "punchcard-grammar";
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct Body {
    vocabulary: String,
    limits: Limits,
    /// The JSON form of the expression, as a text of its own: it may nest deeply.
    expr: String,
}

fn checksum(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut out, byte| {
        // Writing to a string cannot fail.
        let _ = write!(out, "{byte:02x}");
        out
    })
}

impl Vocabulary {
    /// A checksum of all tokens and of which are special: equal exactly for equal vocabularies.
    pub fn fingerprint(&self) -> String {
        let mut hash = Sha256::new();
        let mut number = |n: usize| hash.update((n as u64).to_le_bytes());
        number(self.size());
        for ids in [self.eos(), self.special()] {
            number(ids.len());
            ids.iter().for_each(|&id| number(id as usize));
        }
        for id in 0..self.size() as u32 {
            let bytes = self.token(id).unwrap_or_default();
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        }
        hex(&hash.finalize())
    }
}

impl CompiledGrammar {
    /// The grammar as bytes.
    pub fn serialize(&self) -> Vec<u8> {
        let body =
            Body { vocabulary: self.vocabulary().fingerprint(), limits: *self.limits(), expr: self.expr().to_json() };
        // A structure of texts and numbers can always be written.
        let body = serde_json::to_vec(&body).unwrap_or_default();
        let mut out = format!("{NAME} {VERSION} {}\n", checksum(&body)).into_bytes();
        out.extend(body);
        out
    }

    /// The grammar that was serialized, for the same vocabulary.
    pub fn deserialize(vocabulary: Arc<Vocabulary>, bytes: &[u8]) -> Result<CompiledGrammar, CompileError> {
        let damaged = || GrammarError::new("The compiled grammar is damaged").with_hint("Compile it anew");
        let end = bytes.iter().position(|&byte| byte == b'\n').ok_or_else(damaged)?;
        let head = std::str::from_utf8(&bytes[..end]).map_err(|_| damaged())?;
        let [name, version, sum] = head.split(' ').collect::<Vec<_>>()[..] else { return Err(damaged().into()) };
        if name != NAME {
            return Err(damaged().into());
        }
        if version != VERSION.to_string() {
            let message = format!("The compiled grammar has version {version}; this is version {VERSION}");
            return Err(GrammarError::new(message).with_hint("Compile it anew").into());
        }
        let body = &bytes[end + 1..];
        if checksum(body) != sum {
            return Err(damaged().into());
        }
        let body: Body = serde_json::from_slice(body).map_err(|_| damaged())?;
        if body.vocabulary != vocabulary.fingerprint() {
            let message = "The compiled grammar belongs to another vocabulary";
            return Err(GrammarError::new(message).with_hint("Compile it anew for this tokenizer").into());
        }
        CompiledGrammar::new(vocabulary, Expr::from_json(&body.expr)?, &body.limits)
    }
}
