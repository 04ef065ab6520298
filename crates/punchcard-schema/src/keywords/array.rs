//! Keywords about the items of arrays.

use crate::algebra::Algebra;
use crate::compile::At;
use crate::draft::Draft;
use crate::error::SchemaError;
use crate::formula::{Formula, NO_END, Node, Type};
use crate::json::{Value, ValueId};

impl Algebra {
    pub(crate) fn every_item(&mut self, from: u32, to: u32, value: Formula) -> Formula {
        let outside = self.formulas.not(value);
        let some = self.formulas.item(from, to, outside, 1);
        self.formulas.not(some)
    }

    /// Arrays with so many items in `value`, or more; `None` is more than any array has.
    fn at_least(&mut self, value: Formula, count: Option<u32>) -> Formula {
        count.map_or(Formula::FALSE, |count| self.formulas.item(0, NO_END, value, count))
    }

    /// Arrays with no more than so many items in `value`.
    fn at_most(&mut self, value: Formula, count: Option<u32>) -> Formula {
        let more = self.at_least(value, count.map(|count| count + 1));
        self.formulas.not(more)
    }

    fn if_array(&mut self, parts: Vec<Formula>) -> Formula {
        let all = self.formulas.and(parts);
        self.formulas.if_type(Type::Array, all)
    }

    /// One schema for each of the first positions.
    fn tuple(&mut self, at: At, schemas: Vec<ValueId>) -> Formula {
        let mut parts = Vec::with_capacity(schemas.len());
        for (i, schema) in schemas.into_iter().enumerate() {
            let value = self.subschema(schema, at.scope.child());
            parts.push(self.every_item(i as u32, i as u32 + 1, value));
        }
        self.if_array(parts)
    }

    fn rest_of_items(&mut self, at: At, from: u32) -> Formula {
        let value = self.subschema(at.value, at.scope.child());
        let every = self.every_item(from, NO_END, value);
        self.if_array(vec![every])
    }

    fn length_of(&self, schema: ValueId, keyword: &str) -> Option<u32> {
        match self.json.member(schema, keyword).map(|v| self.json.get(v)) {
            Some(Value::Array(items)) => Some(items.len() as u32),
            _ => None,
        }
    }
}

pub(crate) fn prefix_items(a: &mut Algebra, at: At) -> Result<Formula, SchemaError> {
    let schemas = a.list_of(at, "a list of schemas")?.to_vec();
    Ok(a.tuple(at, schemas))
}

pub(crate) fn items(a: &mut Algebra, at: At) -> Result<Formula, SchemaError> {
    match a.json.get(at.value) {
        Value::Array(schemas) if at.draft < Draft::V2020 => {
            let schemas = schemas.to_vec();
            Ok(a.tuple(at, schemas))
        }
        _ => {
            let from = if at.draft >= Draft::V2020 { a.length_of(at.schema, "prefixItems").unwrap_or(0) } else { 0 };
            Ok(a.rest_of_items(at, from))
        }
    }
}

pub(crate) fn additional_items(a: &mut Algebra, at: At) -> Result<Formula, SchemaError> {
    // Without a list in `items` there is no "additional".
    match a.length_of(at.schema, "items") {
        Some(from) => Ok(a.rest_of_items(at, from)),
        None => Ok(Formula::TRUE),
    }
}

pub(crate) fn contains(a: &mut Algebra, at: At) -> Result<Formula, SchemaError> {
    let value = a.subschema(at.value, at.scope.asked());
    let bound = |a: &Algebra, keyword: &'static str, or: Option<u32>| match a
        .json
        .member(at.schema, keyword)
        .filter(|_| at.draft >= Draft::V2019)
    {
        Some(value) => a.count(At { keyword, value, ..at }),
        None => Ok(or),
    };
    let (least, most) = (bound(a, "minContains", Some(1))?, bound(a, "maxContains", None)?);
    let parts = vec![a.at_least(value, least), a.at_most(value, most)];
    Ok(a.if_array(parts))
}

pub(crate) fn min_items(a: &mut Algebra, at: At) -> Result<Formula, SchemaError> {
    let least = a.at_least(Formula::TRUE, a.count(at)?);
    Ok(a.if_array(vec![least]))
}

pub(crate) fn max_items(a: &mut Algebra, at: At) -> Result<Formula, SchemaError> {
    let most = a.at_most(Formula::TRUE, a.count(at)?);
    Ok(a.if_array(vec![most]))
}

pub(crate) fn unique_items(a: &mut Algebra, at: At) -> Result<Formula, SchemaError> {
    match a.json.get(at.value) {
        Value::Bool(false) => Ok(Formula::TRUE),
        Value::Bool(true) => {
            let repeats = a.formulas.intern(Node::Repeats(Box::new([])));
            let different = a.formulas.not(repeats);
            Ok(a.if_array(vec![different]))
        }
        _ => Err(a.invalid(at, "true or false")),
    }
}
