//! The order in which a schema declares its properties.
//!
//! `properties` has an order of its own. Where several schemas speak of one object, their properties are declared in the
//! order in which a reader meets them: keyword by keyword, into `allOf`, `anyOf`, `oneOf`, `if`, `then`, `else` and
//! `$ref` as they come.

use crate::algebra::Algebra;
use crate::compile::At;
use crate::formula::{Formula, FxMap, Name, Type};
use crate::json::{Value, ValueId};
use crate::keywords::closed::{Role, Scope};

/// More names than this are not put in order across schemas.
const MOST_NAMES: usize = 4_096;

impl Algebra {
    /// The order over all schemas that speak of the same object as this one, where it says more than its own `properties`.
    pub(crate) fn order_across(&mut self, schema: ValueId) -> Formula {
        let has = |keyword: &str| self.json.member(schema, keyword).is_some();
        let own = has("properties");
        let others = ["allOf", "anyOf", "oneOf", "if", "$ref"].into_iter().filter(|&k| has(k)).count();
        // Alternatives alone each keep their own order.
        if others == 0 || !has("allOf") && !own && others < 2 {
            return Formula::TRUE;
        }
        let (mut names, mut visited) = (Vec::new(), FxMap::default());
        self.collect_names(schema, &mut names, &mut visited);
        if names.is_empty() {
            return Formula::TRUE;
        }
        let order = self.formulas.declared(names);
        self.formulas.if_type(Type::Object, order)
    }

    fn collect_names(&mut self, schema: ValueId, names: &mut Vec<Name>, visited: &mut FxMap<ValueId, ()>) {
        let Value::Object(members) = self.json.get(schema) else { return };
        if names.len() > MOST_NAMES || visited.insert(schema, ()).is_some() {
            return;
        }
        let members = members.clone();
        let draft = self.registry.draft_at(&self.json, schema);
        for (keyword, value) in members.iter() {
            let next: Vec<ValueId> = match (&**keyword, self.json.get(*value)) {
                ("properties", Value::Object(properties)) => {
                    names.extend(properties.iter().map(|(name, _)| self.formulas.name(name)));
                    continue;
                }
                ("allOf" | "anyOf" | "oneOf", Value::Array(schemas)) => schemas.to_vec(),
                ("if" | "then" | "else", _) => vec![*value],
                ("$ref", Value::String(_)) => {
                    let scope = Scope { dynamic: 0, role: Role::Asked };
                    let at = At { schema, keyword: "$ref", value: *value, scope, draft, closes: None };
                    self.target_of(at).into_iter().collect()
                }
                _ => continue,
            };
            for schema in next {
                stacker::maybe_grow(32 << 10, 1 << 20, || self.collect_names(schema, names, visited));
            }
        }
    }
}
