//! Tags: members by which the branches of a description are told apart, as far as that is easy to see.

use crate::algebra::Algebra;
use crate::compile::At;
use crate::constant::Const;
use crate::formula::{Formula, FxMap};
use crate::json::{Value, ValueId};
use crate::keywords::closed::{Role, Scope};

/// What a schema says of a member that all of its objects have.
#[derive(Debug)]
pub(crate) struct Tag {
    /// The values of `const` or `enum`; nothing if it has neither.
    values: Vec<Const>,
    formula: Formula,
}

impl Algebra {
    /// Whether it is easy to see that no object has the tags of both.
    pub(crate) fn are_apart(&mut self, a: &FxMap<Box<str>, Tag>, b: &FxMap<Box<str>, Tag>) -> bool {
        let mut listed = false;
        for (name, tag) in a {
            let Some(other) = b.get(name).filter(|other| !tag.values.is_empty() && !other.values.is_empty()) else {
                continue;
            };
            listed = true;
            if !tag.values.iter().any(|value| other.values.contains(value)) {
                return true;
            }
        }
        !listed
            && a.iter().any(|(name, tag)| {
                b.get(name).is_some_and(|other| {
                    let both = self.formulas.and([tag.formula, other.formula]);
                    self.apart(|a| a.is_absurd(both)) == Ok(true)
                })
            })
    }

    /// Members that every object of a schema has, as far as it is easy to see.
    pub(crate) fn tags_of(
        &mut self,
        schema: ValueId,
        dynamic: u32,
        tags: &mut FxMap<Box<str>, Tag>,
        visited: &mut Vec<ValueId>,
    ) {
        const MOST_SCHEMAS: usize = 16;
        let Value::Object(members) = self.json.get(schema) else { return };
        if visited.contains(&schema) || visited.len() >= MOST_SCHEMAS {
            return;
        }
        visited.push(schema);
        let members = members.clone();
        let draft = self.registry.draft_at(&self.json, schema);
        let scope = Scope { dynamic: self.scope_within(dynamic, schema), role: Role::Part };
        let required: Vec<Box<str>> = match self.json.member(schema, "required").map(|v| self.json.get(v)) {
            Some(Value::Array(names)) => names.iter().filter_map(|&n| self.json.text(n)).map(Box::from).collect(),
            _ => Vec::new(),
        };
        for (keyword, value) in self.asserting(schema, &members) {
            let at = At { schema, keyword, value, scope, draft, closes: None };
            match keyword {
                "properties" => {
                    let Value::Object(properties) = self.json.get(value) else { continue };
                    for (name, property) in properties.clone().iter().filter(|(name, _)| required.contains(name)) {
                        let mut values = match self.json.member(*property, "enum").map(|v| self.json.get(v)) {
                            Some(Value::Array(values)) => values.to_vec(),
                            _ => self.json.member(*property, "const").into_iter().collect(),
                        };
                        if self.hides_siblings(*property, draft) {
                            values.clear();
                        }
                        let values = values.into_iter().map(|value| self.constant(value)).collect();
                        let formula = self.subschema(*property, scope.asked());
                        tags.entry(name.clone()).or_insert(Tag { values, formula });
                    }
                }
                "allOf" => {
                    for branch in self.branches(at) {
                        self.tags_of(branch, scope.dynamic, tags, visited);
                    }
                }
                "$ref" => {
                    if let Ok(target) = self.target_of(at) {
                        self.tags_of(target, scope.dynamic, tags, visited);
                    }
                }
                _ => {}
            }
        }
    }
}
