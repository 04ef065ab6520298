//! Alternatives that a text would have to be read in all at once.
//!
//! Alternatives of one value are readings of one text until it tells them apart. Where a list of them is longer than the
//! limit on readings, and the first member or item leaves them apart, no text could be followed: so the schema is refused
//! when it is compiled.

use crate::algebra::Algebra;
use crate::constant::Const;
use crate::error::SchemaError;
use crate::formula::{FxMap, Name, Node, Type};
use crate::json::{Value, ValueId};

impl Algebra {
    /// Refuses a schema of which some value has more than `most` alternatives that begin alike.
    pub fn check_alternatives(&mut self, most: usize) -> Result<(), SchemaError> {
        let schemas: Vec<_> = self.compiled.iter().map(|(&(schema, _), &formula)| (schema, formula)).collect();
        for (schema, formula) in schemas {
            for keyword in ["enum", "anyOf", "oneOf"] {
                let Some(value) = self.json.member(schema, keyword) else { continue };
                let Value::Array(items) = self.json.get(value) else { continue };
                if items.len() <= most {
                    continue;
                }
                let items = items.clone();
                let count = match keyword {
                    "enum" => self.constants_apart(&items),
                    _ => {
                        let objects = self.restrict(formula, Type::Object)?;
                        if let Node::Or(parts) = self.formulas.node(objects) { parts.len() } else { 1 }
                    }
                };
                if count > most {
                    let pointer = format!("{}/{keyword}", self.json.pointer(schema));
                    let hint = "Tell the alternatives apart by their first member or item, list strings instead, \
                                or raise the limit";
                    return Err(SchemaError::limit("max_readings", most, &pointer, hint));
                }
            }
        }
        Ok(())
    }

    /// In how many ways the rest of an object or array may have to be read after its first member or item.
    fn constants_apart(&mut self, items: &[ValueId]) -> usize {
        let mut rests: FxMap<Option<Name>, FxMap<Const, ()>> = FxMap::default();
        for &item in items {
            let constant = self.constant(item);
            let (first, rest) = match self.constants.first_item(constant) {
                Some((_, rest)) => (None, rest),
                None => {
                    let Some(&first) = self.constants.order(constant).first() else { continue };
                    let Some((_, rest)) = self.constants.take_member(constant, first) else { continue };
                    (Some(first), rest)
                }
            };
            rests.entry(first).or_default().insert(rest, ());
        }
        rests.values().map(FxMap::len).max().unwrap_or(0)
    }
}
