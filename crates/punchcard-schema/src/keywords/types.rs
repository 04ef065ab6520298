//! `type`, `enum`, `const`.

use crate::algebra::Algebra;
use crate::compile::At;
use crate::constant::{Const, Constant};
use crate::draft::Draft;
use crate::error::SchemaError;
use crate::formula::{Formula, NumberAtom, Type, Types};
use crate::json::{Value, ValueId};
use crate::options::NumberSpelling;
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
                let mut integer = a.formulas.number(NumberAtom::Multiple(one));
                if at.draft == Draft::V4 && a.options.number_spelling == NumberSpelling::Any {
                    let spelled = a.formulas.number(NumberAtom::Spelled);
                    integer = a.formulas.and([integer, spelled]);
                }
                parts.push(integer);
                continue;
            }
            _ => return Err(a.invalid(at, "null, boolean, integer, number, string, array or object")),
        };
        parts.push(a.formulas.types(types));
    }
    Ok(a.formulas.or(parts))
}

pub(crate) fn constant(a: &mut Algebra, at: At) -> Result<Formula, SchemaError> {
    Ok(a.one_of_the_values(&[at.value]))
}

pub(crate) fn enumeration(a: &mut Algebra, at: At) -> Result<Formula, SchemaError> {
    let items = a.list_of(at, "a list of values")?.to_vec();
    Ok(a.one_of_the_values(&items))
}

impl Algebra {
    fn one_of_the_values(&mut self, values: &[ValueId]) -> Formula {
        let constants: Vec<Const> = values.iter().map(|&value| self.constant(value)).collect();
        self.equal_to(&constants)
    }

    /// Interns a JSON value.
    pub(crate) fn constant(&mut self, value: ValueId) -> Const {
        let node = match self.json.get(value) {
            Value::Null => Constant::Null,
            Value::Bool(b) => Constant::Bool(*b),
            Value::Number(n) => Constant::Number(n.clone()),
            Value::String(text) => Constant::Text(text.clone()),
            Value::Array(items) => {
                let items = items.clone();
                return items.iter().rev().fold(Const::EMPTY_ARRAY, |rest, &item| {
                    let item = stacker::maybe_grow(32 << 10, 1 << 20, || self.constant(item));
                    self.constants.intern(Constant::Items(item, rest))
                });
            }
            Value::Object(members) => {
                let members = members.clone();
                let mut list = Vec::with_capacity(members.len());
                for (name, member) in members.iter() {
                    let member = stacker::maybe_grow(32 << 10, 1 << 20, || self.constant(*member));
                    list.push((self.formulas.name(name), member));
                }
                return self.constants.object(list);
            }
        };
        self.constants.intern(node)
    }

    /// The values that are equal to one of the constants.
    pub(crate) fn equal_to(&mut self, constants: &[Const]) -> Formula {
        let mut texts: Vec<&str> = Vec::new();
        let mut parts = Vec::new();
        let (mut arrays, mut objects) = (Vec::new(), Vec::new());
        for &constant in constants {
            match self.constants.get(constant) {
                Constant::Null => parts.push(self.formulas.types(Types::only(Type::Null))),
                Constant::Bool(b) => {
                    let t = if *b { Type::True } else { Type::False };
                    parts.push(self.formulas.types(Types::only(t)));
                }
                Constant::Number(n) => parts.push(self.formulas.number(NumberAtom::Equal(n.clone()))),
                Constant::Text(text) => texts.push(text),
                Constant::EmptyArray | Constant::Items(..) => arrays.push(constant),
                Constant::Object(_) => objects.push(constant),
            }
        }
        // All strings together are one language: a trie instead of an alternative each.
        if !texts.is_empty() {
            let texts = self.languages.texts(texts);
            parts.push(self.formulas.text(texts));
        }
        parts.push(self.formulas.among(Type::Array, arrays));
        parts.push(self.formulas.among(Type::Object, objects));
        self.formulas.or(parts)
    }
}
