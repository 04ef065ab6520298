//! `type`, `enum`, `const`.

use crate::algebra::Algebra;
use crate::compile::At;
use crate::draft::Draft;
use crate::error::SchemaError;
use crate::formula::{Formula, Keys, NO_END, NumberAtom, Type, Types};
use crate::json::{Value, ValueId};
use punchcard_automata::Decimal;

pub(crate) fn types(a: &mut Algebra, at: At) -> Result<Formula, SchemaError> {
    let names: Vec<String> = match a.json.get(at.value) {
        Value::String(name) => vec![name.to_string()],
        Value::Array(_) => a.strings_of(at, at.value)?,
        _ => return Err(a.invalid(at, "a type name or a list of them")),
    };
    let mut parts = Vec::new();
    for name in names {
        let types = match name.as_str() {
            "null" => Types::only(Type::Null),
            "boolean" => Types(Types::only(Type::True).0 | Types::only(Type::False).0),
            "number" => Types::only(Type::Number),
            "string" => Types::only(Type::String),
            "array" => Types::only(Type::Array),
            "object" => Types::only(Type::Object),
            "any" if at.draft == Draft::V4 => Types::ANY,
            "integer" => {
                let one = Decimal::new(false, vec![1], 0);
                parts.push(a.formulas.number(NumberAtom::Multiple(one)));
                continue;
            }
            _ => return Err(a.invalid(at, "null, boolean, integer, number, string, array or object")),
        };
        parts.push(a.formulas.types(types));
    }
    Ok(a.formulas.or(parts))
}

pub(crate) fn constant(a: &mut Algebra, at: At) -> Result<Formula, SchemaError> {
    Ok(a.equal_to(at.value))
}

pub(crate) fn enumeration(a: &mut Algebra, at: At) -> Result<Formula, SchemaError> {
    let items = a.list_of(at, "a list of values")?.to_vec();
    // All strings together are one language: a trie instead of an alternative each.
    let mut texts: Vec<String> = Vec::new();
    let mut parts = Vec::new();
    for item in items {
        match a.json.get(item) {
            Value::String(text) => texts.push(text.to_string()),
            _ => {
                let part = a.equal_to(item);
                parts.push(part);
            }
        }
    }
    let texts = a.languages.texts(texts.iter().map(String::as_str));
    parts.push(a.formulas.text(texts));
    Ok(a.formulas.or(parts))
}

impl Algebra {
    /// The values that are equal to a JSON value.
    pub(crate) fn equal_to(&mut self, value: ValueId) -> Formula {
        match self.json.get(value) {
            Value::Null => self.formulas.types(Types::only(Type::Null)),
            Value::Bool(b) => {
                let t = if *b { Type::True } else { Type::False };
                self.formulas.types(Types::only(t))
            }
            Value::Number(n) => {
                let n = n.clone();
                self.formulas.number(NumberAtom::Equal(n))
            }
            Value::String(text) => {
                let text = text.clone();
                let language = self.languages.literal(&text);
                self.formulas.text(language)
            }
            Value::Array(items) => {
                let items = items.clone();
                let n = items.len() as u32;
                let mut parts = vec![self.formulas.types(Types::only(Type::Array))];
                parts.push(self.formulas.item(0, NO_END, Formula::TRUE, n));
                let more = self.formulas.item(0, NO_END, Formula::TRUE, n + 1);
                parts.push(self.formulas.not(more));
                for (i, &item) in items.iter().enumerate() {
                    let equal = stacker::maybe_grow(32 << 10, 1 << 20, || self.equal_to(item));
                    let other = self.formulas.not(equal);
                    let other = self.formulas.item(i as u32, i as u32 + 1, other, 1);
                    parts.push(self.formulas.not(other));
                }
                self.formulas.and(parts)
            }
            Value::Object(members) => {
                let members = members.clone();
                let mut parts = vec![self.formulas.types(Types::only(Type::Object))];
                let more = self.formulas.members(members.len() as u32 + 1);
                parts.push(self.formulas.not(more));
                let mut names = Vec::new();
                for (name, member) in members.iter() {
                    let equal = stacker::maybe_grow(32 << 10, 1 << 20, || self.equal_to(*member));
                    let name = self.formulas.name(name);
                    names.push(name);
                    parts.push(self.formulas.member(Keys::One(name), Formula::TRUE));
                    let other = self.formulas.not(equal);
                    let other = self.formulas.member(Keys::One(name), other);
                    parts.push(self.formulas.not(other));
                }
                parts.push(self.formulas.declared(names));
                self.formulas.and(parts)
            }
        }
    }
}
