//! `x-guidance`: llguidance's options of a JSON Schema, which stand in the schema itself.
//!
//! What our own options can say is said with them; anything else is refused by name.

use crate::error::GrammarError;
use serde::Deserialize;
use serde_json::{Map, Value};

const KEY: &str = "x-guidance";
/// Escapes that a string may need.
const ESCAPES: &str = "nrbtf\\\"u";

#[derive(Deserialize)]
struct Top {
    #[serde(rename = "x-guidance")]
    options: Option<Value>,
}

/// The options of a schema that begins at a byte of `text`; none if it has no `x-guidance`.
pub(super) fn options(text: &str, at: usize, schema: &str) -> Result<Map<String, Value>, GrammarError> {
    if !schema.contains(KEY) {
        return Ok(Map::new());
    }
    let mut reader = serde_json::Deserializer::from_str(schema);
    reader.disable_recursion_limit();
    let Ok(Top { options: Some(given) }) = Top::deserialize(&mut reader) else { return Ok(Map::new()) };
    let refused = |message: String, hint: &str| Err(GrammarError::at(text, at, message).with_hint(hint.to_string()));
    let Value::Object(given) = given else {
        return refused(format!("{KEY} is no object"), "Write options in it, such as {\"whitespace_flexible\": false}");
    };
    let mut out = Map::new();
    // By default llguidance allows any white space; ours is a useful part of that.
    let mut flexible = None;
    let (mut item, mut key) = (",", ":");
    for (name, value) in &given {
        let hint = match (name.as_str(), value) {
            ("whitespace_flexible", &Value::Bool(value)) => {
                flexible = flexible.or(Some(value));
                continue;
            }
            // It overrides the other one.
            ("whitespace_pattern", Value::Null) => continue,
            ("whitespace_pattern", Value::String(pattern)) => match pattern.as_str() {
                "" => {
                    flexible = Some(false);
                    continue;
                }
                r"[\x20\x0A\x0D\x09]+" | r"[\x20\x0A\x0D\x09]*" | r"[ \t\n\r]*" | r"[ \t\n\r]+" => {
                    flexible = Some(true);
                    continue;
                }
                _ => "Known is [\\x20\\x0A\\x0D\\x09]+, which is any white space, and the empty text, which is none",
            },
            ("item_separator", Value::String(value)) if matches!(value.as_str(), "," | ", ") => {
                item = value;
                continue;
            }
            ("key_separator", Value::String(value)) if matches!(value.as_str(), ":" | ": ") => {
                key = value;
                continue;
            }
            ("item_separator", _) => "Known are \",\" and \", \"",
            ("key_separator", _) => "Known are \":\" and \": \"",
            // `oneOf` is enforced as it is, which admits no more than `anyOf` does.
            ("coerce_one_of", Value::Bool(_)) => continue,
            ("lenient", &Value::Bool(value)) => {
                if value {
                    out.insert("on_unsupported".to_string(), "report".into());
                }
                continue;
            }
            ("json_allowed_escapes", Value::Null) => continue,
            ("json_allowed_escapes", Value::String(value)) if ESCAPES.chars().all(|c| value.contains(c)) => continue,
            ("json_allowed_escapes", _) => "Control characters need \\u, so all of nrbtf\\\"u have to be allowed",
            ("whitespace_flexible" | "whitespace_pattern" | "coerce_one_of" | "lenient", _) => "Correct its type",
            _ => "Leave it out; docs/lark.md lists the options that are known",
        };
        return refused(format!("The option {name:?} of {KEY} cannot be {value}"), hint);
    }
    let whitespace = match (item, key, flexible) {
        (",", ":", None) => return Ok(out),
        (",", ":", Some(true)) => "any",
        (",", ":", Some(false)) => "none",
        (", ", ": ", Some(false)) => "after_separators",
        _ => {
            let message = format!("The separators {item:?} and {key:?} of {KEY} cannot be combined so");
            let hint = "Known are \",\" with \":\", and with \"whitespace_flexible\": false also \", \" with \": \"";
            return refused(message, hint);
        }
    };
    out.insert("whitespace".to_string(), whitespace.into());
    Ok(out)
}
