//! Keywords about the members of objects.
//!
//! "Every member with a name in K has a value in S" is written as the negation of "some member with a name in K has a value
//! outside S".

use crate::algebra::Algebra;
use crate::compile::At;
use crate::draft::Draft;
use crate::error::SchemaError;
use crate::formula::{Formula, Keys, Name, Type, Types};
use crate::json::{Value, ValueId};
use punchcard_automata::Language;

impl Algebra {
    pub(crate) fn every_member(&mut self, keys: Keys, value: Formula) -> Formula {
        let outside = self.formulas.not(value);
        let some = self.formulas.member(keys, outside);
        self.formulas.not(some)
    }

    fn has_member(&mut self, name: &str) -> Formula {
        let name = self.formulas.name(name);
        self.formulas.member(Keys::One(name), Formula::TRUE)
    }

    fn if_object(&mut self, parts: Vec<Formula>) -> Formula {
        let all = self.formulas.and(parts);
        self.formulas.if_type(Type::Object, all)
    }
}

pub(crate) fn properties(a: &mut Algebra, at: At) -> Result<Formula, SchemaError> {
    let members = a.object_of(at, "an object of schemas")?.to_vec();
    let mut names: Vec<Name> = Vec::with_capacity(members.len());
    let mut parts = Vec::with_capacity(members.len() + 1);
    for (name, schema) in members {
        let value = a.subschema(schema, at.scope.child());
        let name = a.formulas.name(&name);
        names.push(name);
        parts.push(a.every_member(Keys::One(name), value));
    }
    parts.push(a.formulas.declared(names));
    Ok(a.if_object(parts))
}

pub(crate) fn pattern_properties(a: &mut Algebra, at: At) -> Result<Formula, SchemaError> {
    let members = a.object_of(at, "an object of schemas by pattern")?.to_vec();
    let mut parts = Vec::with_capacity(members.len());
    for (pattern, schema) in members {
        let names = a.pattern_language(at, &pattern)?;
        let value = a.subschema(schema, at.scope.child());
        parts.push(a.every_member(Keys::In(names), value));
    }
    Ok(a.if_object(parts))
}

/// The names that neither `properties` nor `patternProperties` of a schema speaks of.
pub(crate) fn additional_names(a: &mut Algebra, schema: ValueId, at: At) -> Result<Language, SchemaError> {
    let mut known = Vec::new();
    if let Some(Value::Object(members)) = a.json.member(schema, "properties").map(|v| a.json.get(v)) {
        let names: Vec<Box<str>> = members.iter().map(|m| m.0.clone()).collect();
        known.push(a.languages.texts(names.iter().map(|n| &**n)));
    }
    if let Some(Value::Object(members)) = a.json.member(schema, "patternProperties").map(|v| a.json.get(v)) {
        for (pattern, _) in members.clone().iter() {
            known.push(a.pattern_language(at, pattern)?);
        }
    }
    let known = a.languages.union(known);
    Ok(a.languages.not(known))
}

pub(crate) fn additional_properties(a: &mut Algebra, at: At) -> Result<Formula, SchemaError> {
    let names = additional_names(a, at.schema, at)?;
    let value = a.subschema(at.value, at.scope.child());
    let every = a.every_member(Keys::In(names), value);
    Ok(a.if_object(vec![every]))
}

pub(crate) fn property_names(a: &mut Algebra, at: At) -> Result<Formula, SchemaError> {
    // Names are strings, so only what the schema says of strings counts. Where it refers back to the schema around it, this
    // keyword is met again, of which strings know nothing.
    if a.naming.contains(&(at.schema, at.scope)) {
        return Ok(Formula::TRUE);
    }
    let schema = a.subschema(at.value, at.scope.asked());
    a.naming.push((at.schema, at.scope));
    let names = a.texts(schema);
    a.naming.pop();
    let names = names?;
    let others = a.languages.not(names);
    let every = a.every_member(Keys::In(others), Formula::FALSE);
    Ok(a.if_object(vec![every]))
}

pub(crate) fn required(a: &mut Algebra, at: At) -> Result<Formula, SchemaError> {
    if at.draft == Draft::V4
        && let Value::Bool(_) = a.json.get(at.value)
    {
        // Draft 3 had it as a boolean beside a property; later drafts ignore that.
        return Ok(Formula::TRUE);
    }
    let names = a.strings_of(at, at.value)?;
    let parts = names.iter().map(|name| a.has_member(name)).collect();
    Ok(a.if_object(parts))
}

pub(crate) fn min_properties(a: &mut Algebra, at: At) -> Result<Formula, SchemaError> {
    let least = a.count(at)?.map_or(Formula::FALSE, |count| a.formulas.members(count));
    Ok(a.if_object(vec![least]))
}

pub(crate) fn max_properties(a: &mut Algebra, at: At) -> Result<Formula, SchemaError> {
    let more = a.count(at)?.map_or(Formula::FALSE, |count| a.formulas.members(count + 1));
    let most = a.formulas.not(more);
    Ok(a.if_object(vec![most]))
}

/// No member of that name, or the consequence.
fn implied(a: &mut Algebra, name: &str, consequence: Formula) -> Formula {
    let present = a.has_member(name);
    let absent = a.formulas.not(present);
    a.formulas.or([absent, consequence])
}

pub(crate) fn dependent_required(a: &mut Algebra, at: At) -> Result<Formula, SchemaError> {
    let members = a.object_of(at, "an object of lists of names")?.to_vec();
    let mut parts = Vec::new();
    for (name, list) in members {
        let names = a.strings_of(at, list)?;
        let all: Vec<Formula> = names.iter().map(|n| a.has_member(n)).collect();
        let all = a.formulas.and(all);
        parts.push(implied(a, &name, all));
    }
    Ok(a.if_object(parts))
}

pub(crate) fn dependent_schemas(a: &mut Algebra, at: At) -> Result<Formula, SchemaError> {
    let members = a.object_of(at, "an object of schemas")?.to_vec();
    let mut parts = Vec::new();
    for (name, schema) in members {
        let schema = a.subschema(schema, at.scope.part());
        parts.push(implied(a, &name, schema));
    }
    let object = a.formulas.types(Types::only(Type::Object));
    parts.push(object);
    Ok(a.if_object(parts))
}

pub(crate) fn dependencies(a: &mut Algebra, at: At) -> Result<Formula, SchemaError> {
    let members = a.object_of(at, "an object of lists of names or schemas")?.to_vec();
    let mut parts = Vec::new();
    for (name, value) in members {
        let consequence = match a.json.get(value) {
            Value::Array(_) => {
                let names = a.strings_of(at, value)?;
                let all: Vec<Formula> = names.iter().map(|n| a.has_member(n)).collect();
                a.formulas.and(all)
            }
            Value::String(other) => {
                let other = other.clone();
                a.has_member(&other)
            }
            _ => a.subschema(value, at.scope.part()),
        };
        parts.push(implied(a, &name, consequence));
    }
    Ok(a.if_object(parts))
}
