//! The keywords of JSON Schema, by family: each compiles to a formula.
//!
//! | file | keywords |
//! |---|---|
//! | `types` | type, enum, const |
//! | `number` | minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf |
//! | `string` | minLength, maxLength, pattern, format |
//! | `object` | properties, patternProperties, additionalProperties, propertyNames, required, minProperties, maxProperties, dependentRequired, dependentSchemas, dependencies |
//! | `array` | items, prefixItems, additionalItems, contains, minContains, maxContains, minItems, maxItems, uniqueItems |
//! | `logic` | allOf, anyOf, oneOf, not, if, then, else |
//! | `reference` | $ref, $dynamicRef, $recursiveRef |
//! | `unevaluated` | unevaluatedProperties, unevaluatedItems |
//! | `closed`, `tags` | the option `strict` |

pub(crate) mod array;
pub(crate) mod closed;
pub(crate) mod logic;
pub(crate) mod number;
pub(crate) mod object;
pub(crate) mod reference;
pub(crate) mod string;
pub(crate) mod tags;
pub(crate) mod types;
pub(crate) mod unevaluated;

use crate::algebra::Algebra;
use crate::compile::At;
use crate::dialect::Dialect;
use crate::draft::Draft;
use crate::error::SchemaError;
use crate::formula::Formula;
use crate::json::{Json, Value, ValueId};

/// What a keyword is to a draft.
pub(crate) enum Keyword {
    Assert(fn(&mut Algebra, At) -> Result<Formula, SchemaError>),
    /// Says nothing about validity, or is read by a sibling, or is unknown.
    Annotation,
}

/// The meaning of a keyword in a dialect.
pub(crate) fn lookup(name: &str, dialect: Dialect) -> Keyword {
    use Draft::{V6, V7, V2019, V2020};
    use Keyword::{Annotation, Assert};
    let draft = dialect.draft;
    if !dialect.has(name) {
        return Annotation;
    }
    match name {
        "type" => Assert(types::types),
        "enum" => Assert(types::enumeration),
        "const" if draft >= V6 => Assert(types::constant),
        "minimum" => Assert(number::minimum),
        "maximum" => Assert(number::maximum),
        "exclusiveMinimum" if draft >= V6 => Assert(number::exclusive_minimum),
        "exclusiveMaximum" if draft >= V6 => Assert(number::exclusive_maximum),
        "multipleOf" => Assert(number::multiple_of),
        "minLength" => Assert(string::min_length),
        "maxLength" => Assert(string::max_length),
        "pattern" => Assert(string::pattern),
        "format" => Assert(string::format),
        "properties" => Assert(object::properties),
        "patternProperties" => Assert(object::pattern_properties),
        "additionalProperties" => Assert(object::additional_properties),
        "propertyNames" if draft >= V6 => Assert(object::property_names),
        "required" => Assert(object::required),
        "minProperties" => Assert(object::min_properties),
        "maxProperties" => Assert(object::max_properties),
        "dependentRequired" if draft >= V2019 => Assert(object::dependent_required),
        "dependentSchemas" if draft >= V2019 => Assert(object::dependent_schemas),
        "dependencies" => Assert(object::dependencies),
        "prefixItems" if draft >= V2020 => Assert(array::prefix_items),
        "items" => Assert(array::items),
        "additionalItems" if draft <= V2019 => Assert(array::additional_items),
        "contains" if draft >= V6 => Assert(array::contains),
        "minItems" => Assert(array::min_items),
        "maxItems" => Assert(array::max_items),
        "uniqueItems" => Assert(array::unique_items),
        "allOf" => Assert(logic::all_of),
        "anyOf" => Assert(logic::any_of),
        "oneOf" => Assert(logic::one_of),
        "not" => Assert(logic::not),
        "if" if draft >= V7 => Assert(logic::if_then_else),
        "$ref" => Assert(reference::reference),
        "$dynamicRef" if draft >= V2020 => Assert(reference::reference),
        "$recursiveRef" if draft == V2019 => Assert(reference::reference),
        "unevaluatedProperties" if draft >= V2019 => Assert(unevaluated::properties),
        "unevaluatedItems" if draft >= V2019 => Assert(unevaluated::items),
        _ => Annotation,
    }
}

/// Calls `visit` for each subschema of a schema, of keywords that the draft knows.
pub(crate) fn for_each_subschema(json: &Json, schema: ValueId, draft: Draft, visit: &mut dyn FnMut(ValueId)) {
    let Value::Object(members) = json.get(schema) else { return };
    for (keyword, value) in members.iter() {
        match &**keyword {
            "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" | "dependencies" => {
                if let Value::Object(children) = json.get(*value) {
                    children.iter().for_each(|child| visit(child.1));
                }
            }
            "allOf" | "anyOf" | "oneOf" | "prefixItems" => {
                if let Value::Array(children) = json.get(*value) {
                    children.iter().for_each(|&child| visit(child));
                }
            }
            "items" => match json.get(*value) {
                Value::Array(children) if draft < Draft::V2020 => children.iter().for_each(|&child| visit(child)),
                _ => visit(*value),
            },
            "additionalProperties"
            | "propertyNames"
            | "additionalItems"
            | "contains"
            | "not"
            | "if"
            | "then"
            | "else"
            | "unevaluatedItems"
            | "unevaluatedProperties"
            | "contentSchema" => visit(*value),
            _ => {}
        }
    }
}

/// Counts above this are beyond any document.
const MOST: u32 = 1 << 30;

impl Algebra {
    /// A whole number that is not negative, also spelled `2.0`. `None` if no document that fits into memory has so many
    /// of anything: as a lower bound nothing fulfils it, as an upper bound everything does.
    fn count(&self, at: At) -> Result<Option<u32>, SchemaError> {
        match self.json.get(at.value) {
            Value::Number(n) if n.is_integer() && !n.is_negative() => {
                Ok(u32::try_from(&n.scaled(0)).ok().filter(|&count| count <= MOST))
            }
            _ => Err(self.invalid(at, "a whole number that is not negative")),
        }
    }

    fn object_of<'a>(&'a self, at: At, expected: &str) -> Result<&'a [(Box<str>, ValueId)], SchemaError> {
        match self.json.get(at.value) {
            Value::Object(members) => Ok(members),
            _ => Err(self.invalid(at, expected)),
        }
    }

    fn list_of<'a>(&'a self, at: At, expected: &str) -> Result<&'a [ValueId], SchemaError> {
        match self.json.get(at.value) {
            Value::Array(items) => Ok(items),
            _ => Err(self.invalid(at, expected)),
        }
    }

    fn strings_of(&self, at: At, list: ValueId) -> Result<Vec<String>, SchemaError> {
        let expected = "a list of strings";
        match self.json.get(list) {
            Value::Array(items) => items
                .iter()
                .map(|&item| match self.json.get(item) {
                    Value::String(text) => Ok(text.to_string()),
                    _ => Err(self.invalid(at, expected)),
                })
                .collect(),
            _ => Err(self.invalid(at, expected)),
        }
    }
}
