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
use punchcard_automata::work;
use std::sync::Arc;

/// More names than this are not put in order across schemas.
const MOST_NAMES: usize = 4_096;

/// So many names are kept, over all schemas.
const MOST_KEPT: usize = 1 << 21;

/// Steps for reading a schema and resolving its reference again.
const REREAD: u64 = 32;

/// The names that schemas declare.
#[derive(Debug, Default)]
pub(crate) struct Orders {
    lists: FxMap<ValueId, Option<Arc<[Name]>>>,
    length: usize,
}

impl Orders {
    /// An estimate of the bytes on the heap.
    pub(crate) fn memory_size(&self) -> usize {
        self.lists.allocation_size() + self.length.min(MOST_KEPT) * size_of::<Name>()
    }
}

/// What a schema has that declares names.
enum Part {
    Names(Vec<Name>),
    Schema(ValueId),
}

impl Algebra {
    /// The order over all schemas that speak of the same object as this one, where it says more than its own `properties`.
    pub(crate) fn order_across(&mut self, schema: ValueId) -> Formula {
        let has = |keyword: &str| self.json.member(schema, keyword).is_some();
        let own = has("properties");
        let others = ["allOf", "anyOf", "oneOf", "if", "$ref"].into_iter().filter(|&k| has(k)).count();
        // Alternatives alone each keep their own order.
        let hidden = self.hides_siblings(schema, self.registry.draft_at(&self.json, schema));
        if hidden || others == 0 || !has("allOf") && !own && others < 2 {
            return Formula::TRUE;
        }
        let mut names = Vec::new();
        match self.names_of(schema, &mut FxMap::default()) {
            Some(list) => names.extend_from_slice(&list),
            None => self.collect_names(schema, &mut names, &mut FxMap::default()),
        }
        if names.is_empty() {
            return Formula::TRUE;
        }
        let order = self.formulas.declared(names);
        self.formulas.if_type(Type::Object, order)
    }

    /// The names that a schema and its parts declare, each once, in the order in which they are met. They are found once
    /// for each schema, as a part of a part would be looked through for each schema around it. `None` if the schema leads
    /// back to itself, or to one that does.
    fn names_of(&mut self, schema: ValueId, open: &mut FxMap<ValueId, ()>) -> Option<Arc<[Name]>> {
        if let Some(known) = self.orders.lists.get(&schema) {
            return known.clone();
        }
        if open.insert(schema, ()).is_some() {
            return None;
        }
        let mut lists: Option<Vec<Arc<[Name]>>> = Some(Vec::new());
        for part in self.parts_with_names(schema) {
            let list = match part {
                Part::Names(names) => Some(names.into()),
                Part::Schema(schema) => stacker::maybe_grow(32 << 10, 1 << 20, || self.names_of(schema, open)),
            };
            lists = lists.zip(list).map(|(mut lists, list)| {
                lists.extend((!list.is_empty()).then_some(list));
                lists
            });
        }
        open.remove(&schema);
        let names: Option<Arc<[Name]>> = lists.map(|lists| match lists.as_slice() {
            [one] => one.clone(),
            _ => {
                let mut seen = FxMap::default();
                let names = lists.iter().flat_map(|list| list.iter().copied());
                names.filter(|&name| seen.insert(name, ()).is_none()).take(MOST_NAMES).collect()
            }
        });
        work::count(names.as_ref().map_or(0, |names| names.len() as u64));
        self.orders.length += names.as_ref().map_or(0, |names| names.len());
        let kept = names.clone().filter(|_| self.orders.length <= MOST_KEPT);
        self.orders.lists.insert(schema, kept);
        names
    }

    /// The same, looking through everything anew.
    fn collect_names(&mut self, schema: ValueId, names: &mut Vec<Name>, visited: &mut FxMap<ValueId, ()>) {
        if names.len() > MOST_NAMES || visited.insert(schema, ()).is_some() {
            return;
        }
        work::count(REREAD);
        for part in self.parts_with_names(schema) {
            match part {
                Part::Names(more) => names.extend(more),
                Part::Schema(schema) => {
                    stacker::maybe_grow(32 << 10, 1 << 20, || self.collect_names(schema, names, visited));
                }
            }
        }
    }

    fn parts_with_names(&mut self, schema: ValueId) -> Vec<Part> {
        let Value::Object(members) = self.json.get(schema) else { return Vec::new() };
        let members = members.clone();
        let draft = self.registry.draft_at(&self.json, schema);
        let mut parts = Vec::new();
        for (keyword, value) in members.iter() {
            match (&**keyword, self.json.get(*value)) {
                ("properties", Value::Object(properties)) => {
                    let names = properties.iter().map(|(name, _)| self.formulas.name(name));
                    parts.push(Part::Names(names.collect()));
                }
                ("allOf" | "anyOf" | "oneOf", Value::Array(schemas)) => {
                    parts.extend(schemas.iter().map(|&schema| Part::Schema(schema)));
                }
                ("if" | "then" | "else", _) => parts.push(Part::Schema(*value)),
                ("$ref", Value::String(_)) => {
                    let scope = Scope { dynamic: 0, role: Role::Asked };
                    let at = At { schema, keyword: "$ref", value: *value, scope, draft, closes: None };
                    parts.extend(self.target_of(at).map(Part::Schema));
                }
                _ => {}
            }
        }
        parts
    }
}
