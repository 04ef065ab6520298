//! `type`, `enum`, `const`.

use crate::algebra::Algebra;
use crate::compile::At;
use crate::constant::Const;
use crate::draft::Draft;
use crate::error::SchemaError;
use crate::formula::{Formula, NumberAtom, Type, Types};
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
                let mut integer = a.formulas.number(NumberAtom::Multiple(Decimal::power_of_ten(0)));
                if at.draft == Draft::V4 {
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
}
