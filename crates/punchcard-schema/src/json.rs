//! JSON documents, read exactly: numbers as decimals, member order kept, every value knows where it stands.
//!
//! Values live in one arena and refer to each other by [`ValueId`], so that a schema location is a small copyable id, and
//! its JSON pointer is found by walking to the root. Reading uses an explicit stack; nesting is limited.

use crate::error::{SchemaError, SchemaErrorKind};
use crate::formula::FxMap;
use punchcard_automata::decimal::{self, Decimal};
use std::fmt::Write;

/// The id of a JSON value in a [`Json`] arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(pub(crate) u32);

/// One JSON value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number, by value.
    Number(Decimal),
    /// A number of a document that is longer or farther from one than any of a schema: a digest of its value.
    Far(u128),
    /// A string, decoded.
    String(Box<str>),
    /// An array.
    Array(Box<[ValueId]>),
    /// An object, members in the order of the text; of equal names the last one.
    Object(Box<[(Box<str>, ValueId)]>),
}

#[derive(Clone, Debug)]
struct Place {
    parent: Option<ValueId>,
    /// Index in the parent array or among the parent's members.
    at: u32,
}

/// An arena of JSON documents.
#[derive(Debug, Default)]
pub struct Json {
    values: Vec<Value>,
    places: Vec<Place>,
    /// Of objects with many members: their places in the order of their names.
    sorted: FxMap<ValueId, Box<[u32]>>,
    /// How many digits the longest number of a schema has.
    longest_number: usize,
}

/// Limits on the JSON text of a schema.
#[derive(Clone, Copy, Debug)]
pub struct JsonLimits {
    /// Deepest nesting of arrays and objects.
    pub max_depth: usize,
    /// Most bytes of text.
    pub max_bytes: usize,
}

impl Default for JsonLimits {
    fn default() -> Self {
        JsonLimits { max_depth: 1_000, max_bytes: 64 << 20 }
    }
}

impl Json {
    /// The value behind an id.
    pub fn get(&self, id: ValueId) -> &Value {
        &self.values[id.0 as usize]
    }

    /// All values of all documents.
    pub fn values(&self) -> impl Iterator<Item = &Value> {
        self.values.iter()
    }

    /// How many values the arena holds.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// An estimate of the bytes on the heap.
    pub(crate) fn memory_size(&self) -> usize {
        // Most values hold a name or a text.
        const HELD: usize = 24;
        self.values.capacity() * (size_of::<Value>() + size_of::<Place>() + HELD) + self.sorted.allocation_size()
    }

    /// Forgets all values but the first `count`, of which none may hold one of the others.
    pub(crate) fn truncate(&mut self, count: usize) {
        for id in count..self.values.len() {
            self.sorted.remove(&ValueId(id as u32));
        }
        self.values.truncate(count);
        self.places.truncate(count);
    }

    /// Whether the arena holds nothing yet.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The member `name` of an object.
    pub fn member(&self, id: ValueId, name: &str) -> Option<ValueId> {
        match self.get(id) {
            Value::Object(members) if members.len() <= FEW => {
                members.iter().find(|(n, _)| &**n == name).map(|&(_, v)| v)
            }
            Value::Object(members) => {
                let sorted = &self.sorted[&id];
                let found = sorted.binary_search_by(|&at| (*members[at as usize].0).cmp(name)).ok()?;
                Some(members[sorted[found] as usize].1)
            }
            _ => None,
        }
    }

    /// The text of a string.
    pub fn text(&self, id: ValueId) -> Option<&str> {
        match self.get(id) {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// The array or object that holds the value.
    pub fn parent(&self, id: ValueId) -> Option<ValueId> {
        self.places[id.0 as usize].parent
    }

    /// The JSON pointer (RFC 6901) of a value within its document.
    pub fn pointer(&self, id: ValueId) -> String {
        let mut parts = Vec::new();
        let mut at = id;
        while let Place { parent: Some(parent), at: index } = self.places[at.0 as usize] {
            parts.push(match self.get(parent) {
                Value::Object(members) => members[index as usize].0.replace('~', "~0").replace('/', "~1"),
                _ => index.to_string(),
            });
            at = parent;
        }
        parts.iter().rev().fold(String::new(), |mut text, part| {
            let _ = write!(text, "/{part}");
            text
        })
    }

    /// Whether two values are equal as JSON Schema has it: numbers by value, objects without order.
    pub fn equal(&self, a: ValueId, b: ValueId) -> bool {
        match (self.get(a), self.get(b)) {
            (Value::Array(x), Value::Array(y)) => {
                x.len() == y.len() && x.iter().zip(y).all(|(&x, &y)| self.equal(x, y))
            }
            (Value::Object(x), Value::Object(y)) => {
                x.len() == y.len()
                    && x.iter().all(|(name, v)| y.iter().any(|(other, w)| name == other && self.equal(*v, *w)))
            }
            (x, y) => x == y,
        }
    }

    /// Where a value stands among all documents: the number of the document's root, then positions from the outside in.
    pub(crate) fn path(&self, id: ValueId) -> Vec<u32> {
        let mut path = Vec::new();
        let mut at = id;
        while let Place { parent: Some(parent), at: index } = self.places[at.0 as usize] {
            path.push(index);
            at = parent;
        }
        path.push(at.0);
        path.reverse();
        path
    }

    fn push(&mut self, value: Value) -> ValueId {
        self.values.push(value);
        self.places.push(Place { parent: None, at: 0 });
        ValueId((self.values.len() - 1) as u32)
    }

    /// Adopts the items of a finished array.
    fn close_array(&mut self, items: Vec<ValueId>) -> ValueId {
        let id = ValueId(self.values.len() as u32);
        for (at, child) in items.iter().enumerate() {
            self.places[child.0 as usize] = Place { parent: Some(id), at: at as u32 };
        }
        self.push(Value::Array(items.into()))
    }

    /// Adopts the members of a finished object. Of members with equal names only the last one counts, at its own place.
    fn close_object(&mut self, mut members: Vec<(Box<str>, ValueId)>) -> ValueId {
        let id = ValueId(self.values.len() as u32);
        if members.len() <= FEW {
            let earlier = |at: usize| members[at + 1..].iter().any(|(name, _)| *name == members[at].0);
            for at in (0..members.len()).rev().filter(|&at| earlier(at)).collect::<Vec<_>>() {
                members.remove(at);
            }
        } else {
            let sorted = by_name(&members);
            let mut keep = vec![true; members.len()];
            for pair in sorted.windows(2) {
                keep[pair[0] as usize] = members[pair[0] as usize].0 != members[pair[1] as usize].0;
            }
            let sorted = if keep.contains(&false) {
                let mut kept = keep.iter();
                members.retain(|_| kept.next() == Some(&true));
                by_name(&members)
            } else {
                sorted
            };
            self.sorted.insert(id, sorted);
        }
        for (at, (_, child)) in members.iter().enumerate() {
            self.places[child.0 as usize] = Place { parent: Some(id), at: at as u32 };
        }
        self.push(Value::Object(members.into()))
    }

    /// Reads a document into the arena.
    pub fn parse(&mut self, text: &str, limits: JsonLimits) -> Result<ValueId, SchemaError> {
        if text.len() > limits.max_bytes {
            return Err(SchemaError::limit("max_bytes", limits.max_bytes, "", "Split the schema, or raise the limit"));
        }
        Parser { json: self, text, at: 0, limits, is_schema: true }.document()
    }

    /// Reads a value that was admitted: nothing in it is too much.
    pub(crate) fn parse_admitted(&mut self, text: &str) -> Result<ValueId, SchemaError> {
        let limits = JsonLimits { max_depth: usize::MAX, max_bytes: usize::MAX };
        Parser { json: self, text, at: 0, limits, is_schema: false }.document()
    }
}

/// So few members are looked through one by one.
const FEW: usize = 16;

/// The places of members in the order of their names, of equal names in the order of the text.
fn by_name(members: &[(Box<str>, ValueId)]) -> Box<[u32]> {
    let mut places: Box<[u32]> = (0..members.len() as u32).collect();
    places.sort_by(|&a, &b| members[a as usize].0.cmp(&members[b as usize].0));
    places
}

enum Open {
    Array(Vec<ValueId>),
    Object(Vec<(Box<str>, ValueId)>, Box<str>),
}

struct Parser<'a> {
    json: &'a mut Json,
    text: &'a str,
    at: usize,
    limits: JsonLimits,
    is_schema: bool,
}

impl Parser<'_> {
    fn fail<T>(&self, what: &str) -> Result<T, SchemaError> {
        let end = (0..=self.at.min(self.text.len())).rev().find(|&i| self.text.is_char_boundary(i)).unwrap_or(0);
        let before = &self.text[..end];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        Err(SchemaError {
            kind: SchemaErrorKind::Invalid,
            message: format!("The schema is not JSON: {what} at line {line}, column {column}"),
            pointer: String::new(),
            keyword: "".into(),
            hint: "Check the JSON text with a JSON linter".into(),
        })
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn document(&mut self) -> Result<ValueId, SchemaError> {
        let mut open: Vec<Open> = Vec::new();
        loop {
            self.space();
            let mut value = match self.peek() {
                Some(b'[') => {
                    self.at += 1;
                    self.space();
                    if self.peek() == Some(b']') {
                        self.at += 1;
                        self.json.push(Value::Array(Box::new([])))
                    } else {
                        self.enter(&mut open, Open::Array(Vec::new()))?;
                        continue;
                    }
                }
                Some(b'{') => {
                    self.at += 1;
                    self.space();
                    if self.peek() == Some(b'}') {
                        self.at += 1;
                        self.json.push(Value::Object(Box::new([])))
                    } else {
                        let name = self.name()?;
                        self.enter(&mut open, Open::Object(Vec::new(), name))?;
                        continue;
                    }
                }
                _ => self.scalar()?,
            };
            // A value is complete: put it where it belongs, and close what it completes.
            loop {
                self.space();
                match open.last_mut() {
                    None => {
                        return if self.at == self.text.len() {
                            Ok(value)
                        } else {
                            self.fail("more text after the value")
                        };
                    }
                    Some(Open::Array(items)) => {
                        items.push(value);
                        match self.peek() {
                            Some(b',') => {
                                self.at += 1;
                                break;
                            }
                            Some(b']') => self.at += 1,
                            _ => return self.fail("',' or ']' is missing"),
                        }
                    }
                    Some(Open::Object(members, name)) => {
                        let name = std::mem::take(name);
                        members.push((name, value));
                        match self.peek() {
                            Some(b',') => {
                                self.at += 1;
                                self.space();
                                let next = self.name()?;
                                if let Some(Open::Object(_, name)) = open.last_mut() {
                                    *name = next;
                                }
                                break;
                            }
                            Some(b'}') => self.at += 1,
                            _ => return self.fail("',' or '}' is missing"),
                        }
                    }
                }
                value = match open.pop() {
                    Some(Open::Array(items)) => self.json.close_array(items),
                    Some(Open::Object(members, _)) => self.json.close_object(members),
                    None => return self.fail("a bracket too many"),
                };
            }
        }
    }

    fn enter(&self, open: &mut Vec<Open>, frame: Open) -> Result<(), SchemaError> {
        if open.len() >= self.limits.max_depth {
            return Err(SchemaError::limit(
                "max_depth",
                self.limits.max_depth,
                "",
                "Flatten the schema, or name its parts with $defs and $ref",
            ));
        }
        open.push(frame);
        Ok(())
    }

    fn name(&mut self) -> Result<Box<str>, SchemaError> {
        if self.peek() != Some(b'"') {
            return self.fail("a member name in quotes is missing");
        }
        let name = self.string()?;
        self.space();
        if self.peek() != Some(b':') {
            return self.fail("':' is missing");
        }
        self.at += 1;
        Ok(name)
    }

    fn scalar(&mut self) -> Result<ValueId, SchemaError> {
        let rest = &self.text[self.at..];
        for (word, value) in [("null", Value::Null), ("true", Value::Bool(true)), ("false", Value::Bool(false))] {
            if rest.starts_with(word) {
                self.at += word.len();
                return Ok(self.json.push(value));
            }
        }
        match self.peek() {
            Some(b'"') => {
                let text = self.string()?;
                Ok(self.json.push(Value::String(text)))
            }
            Some(b'-' | b'0'..=b'9') => {
                let end =
                    rest.find(|c: char| !matches!(c, '0'..='9' | '-' | '+' | '.' | 'e' | 'E')).unwrap_or(rest.len());
                let text = &rest[..end];
                let whole = text.trim_start_matches('-');
                let bad = (whole.starts_with('0') && whole.as_bytes().get(1).is_some_and(u8::is_ascii_digit))
                    || text.contains(".e")
                    || text.contains(".E")
                    || text.ends_with('.');
                if bad {
                    return self.fail("a malformed number");
                }
                // Up to this many digits, or as many as a number of the schema has, numbers are told apart digit by digit.
                const LONG: usize = 400;
                let most = if self.is_schema { usize::MAX } else { LONG.max(self.json.longest_number) };
                let number = Decimal::parse(text).filter(|number| number.digits().len() <= most);
                if number.is_none() && !self.is_schema {
                    self.at += end;
                    return Ok(self.json.push(Value::Far(decimal::digest(text))));
                }
                match number {
                    Some(number) => {
                        self.at += end;
                        if self.is_schema {
                            self.json.longest_number = self.json.longest_number.max(number.digits().len());
                        }
                        Ok(self.json.push(Value::Number(number)))
                    }
                    None if text.bytes().any(|b| matches!(b, b'e' | b'E')) || text.len() > 1_000 => {
                        Err(SchemaError::limit(
                            "exponents of numbers",
                            decimal::MAX_EXPONENT as usize,
                            "",
                            "Use numbers of a sensible size",
                        ))
                    }
                    None => self.fail("a malformed number"),
                }
            }
            None => self.fail("the text ends too early"),
            Some(_) => self.fail("no value"),
        }
    }

    fn string(&mut self) -> Result<Box<str>, SchemaError> {
        self.at += 1;
        let mut out = String::new();
        loop {
            let rest = &self.text[self.at..];
            let Some(run) = rest.bytes().position(|b| b == b'"' || b == b'\\' || b < b' ') else {
                return self.fail("a string is not closed");
            };
            self.at += run;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    // Most strings have no escapes, and are copied once.
                    return Ok(if out.is_empty() { rest[..run].into() } else { (out + &rest[..run]).into() });
                }
                Some(b'\\') => {
                    out.push_str(&rest[..run]);
                    self.at += 1;
                    let c = self.escape()?;
                    out.push(c);
                }
                _ => return self.fail("a control character in a string"),
            }
        }
    }

    fn escape(&mut self) -> Result<char, SchemaError> {
        let kind = self.peek();
        self.at += 1;
        Ok(match kind {
            Some(c @ (b'"' | b'\\' | b'/')) => c as char,
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                let high = self.hex()?;
                let code = if (0xD800..0xDC00).contains(&high) && self.text[self.at..].starts_with("\\u") {
                    self.at += 2;
                    let low = self.hex()?;
                    if !(0xDC00..0xE000).contains(&low) {
                        return self.fail("half of a surrogate pair");
                    }
                    0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00)
                } else {
                    high
                };
                match char::from_u32(code) {
                    Some(c) => c,
                    None => return self.fail("half of a surrogate pair"),
                }
            }
            _ => return self.fail("an unknown escape"),
        })
    }

    fn hex(&mut self) -> Result<u32, SchemaError> {
        let digits = self.text.get(self.at..self.at + 4).filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
        match digits.and_then(|d| u32::from_str_radix(d, 16).ok()) {
            Some(code) => {
                self.at += 4;
                Ok(code)
            }
            None => self.fail("a malformed \\u escape"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<(Json, ValueId), SchemaError> {
        let mut json = Json::default();
        let root = json.parse(text, JsonLimits::default())?;
        Ok((json, root))
    }

    #[test]
    fn values_and_pointers() {
        let (json, root) = parse(r#" {"a/b": [1, {"m~n": "\ud83d\ude00\n"}], "c": 1.50, "c": 2e0} "#).unwrap();
        let deep = json.member(root, "a/b").and_then(|a| match json.get(a) {
            Value::Array(items) => json.member(items[1], "m~n"),
            _ => None,
        });
        let deep = deep.unwrap();
        assert_eq!(json.get(deep), &Value::String("😀\n".into()));
        assert_eq!(json.pointer(deep), "/a~1b/1/m~0n");
        assert_eq!(json.get(json.member(root, "c").unwrap()), &Value::Number(Decimal::parse("2").unwrap()));
    }

    #[test]
    fn errors_name_the_place() {
        for bad in [
            "",
            "{",
            "[1,]",
            "{\"a\" 1}",
            "nul",
            "01",
            "1.",
            "\"\\ud800\"",
            "\"a\nb\"",
            "[1] 2",
            "{\"a\":1,}",
            "\"\\x\"",
        ] {
            let error = parse(bad).unwrap_err();
            assert!(error.message.contains("line"), "{bad}: {error:?}");
        }
        let deep = "[".repeat(100_000);
        assert!(matches!(parse(&deep).unwrap_err().kind, SchemaErrorKind::Limit { .. }));
    }

    #[test]
    fn equality_is_by_value_and_without_order() {
        let (json, root) = parse(r#"[{"a":1,"b":[1.0]}, {"b":[1],"a":1e0}, {"a":1}]"#).unwrap();
        let Value::Array(items) = json.get(root) else { panic!() };
        assert!(json.equal(items[0], items[1]));
        assert!(!json.equal(items[0], items[2]));
    }
}
