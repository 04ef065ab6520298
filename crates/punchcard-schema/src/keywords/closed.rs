//! `strict`: no undeclared member where an object is described.
//!
//! Strictness is a conjunction: a schema stands as it is, and beside it stands what `unevaluatedProperties: false` would say
//! at each place that describes a value. So whatever strictness admits, the schema admits: what a schema says of children
//! and of its parts only grows smaller, and what is asked of a value rather than said of it (`if`, `not`, `contains`,
//! `propertyNames`) is compiled without strictness. [`Role`] tells the two apart.
//!
//! A member may come if some part of the description declares it. Parts that hold in any case declare without condition,
//! a branch declares on condition that it holds ([`Declared`]). Of `anyOf` and `oneOf` the object is closed branch by branch
//! ([`Algebra::closing`]): within a branch that holds, its own declarations are certain, so the alternatives stay
//! alternatives, instead of being multiplied with a list of conditions.

use crate::algebra::Algebra;
use crate::carry::Carried;
use crate::compile::At;
use crate::error::SchemaError;
use crate::formula::{Formula, FxMap, Keys, Type};
use crate::json::{Value, ValueId};
use crate::keywords::unevaluated::names_looked_at;
use crate::keywords::{Keyword, lookup};
use punchcard_automata::Language;
use std::sync::Arc;

/// More branches that overlap do not declare for each other: each is closed for itself.
const MOST_OVERLAPS: usize = 4;

/// So few names are spoken of one by one.
const FEW_NAMES: usize = 64;

/// What a schema is to the value that it speaks of. Without strictness it is always `Asked`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Role {
    /// It is asked whether it holds; it describes nothing.
    Asked,
    /// It describes the value beside other schemas, and does not close it.
    Part,
    /// It describes the value and closes it, but for the members that a list of others declares (an id).
    Whole(u32),
}

/// The context in which a schema is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Scope {
    /// The dynamic scope: an id.
    pub(crate) dynamic: u32,
    pub(crate) role: Role,
}

impl Scope {
    /// The same place, asked only.
    pub(crate) fn asked(self) -> Scope {
        Scope { role: Role::Asked, ..self }
    }

    /// A schema that speaks of the same value, beside others.
    pub(crate) fn part(self) -> Scope {
        self.unless_asked(Role::Part)
    }

    /// A schema that describes a member or an item.
    pub(crate) fn child(self) -> Scope {
        self.unless_asked(Role::Whole(0))
    }

    fn unless_asked(self, role: Role) -> Scope {
        if self.role == Role::Asked { self } else { Scope { role, ..self } }
    }
}

/// Members that parts of a description declare.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Declared {
    /// Some part declares members; where none does, an object is free.
    any: bool,
    /// Names, each with the condition on which they are declared.
    names: Vec<(Formula, Language)>,
    /// There are branches that could close the object by themselves.
    forks: bool,
}

/// What was found out for strictness.
#[derive(Debug)]
pub(crate) struct Memory {
    /// What others declare, by the ids of [`Role::Whole`]. Id 0 is nothing.
    lists: Vec<Arc<Declared>>,
    ids: FxMap<Arc<Declared>, u32>,
    declared: FxMap<(ValueId, Scope), Arc<Declared>>,
    steps: usize,
}

impl Default for Memory {
    fn default() -> Self {
        let nothing = Arc::new(Declared::default());
        Memory {
            lists: vec![nothing.clone()],
            ids: [(nothing, 0)].into_iter().collect(),
            declared: FxMap::default(),
            steps: 0,
        }
    }
}

impl Memory {
    fn intern(&mut self, mut list: Declared) -> u32 {
        list.forks = false;
        if let Some(&id) = self.ids.get(&list) {
            return id;
        }
        let (id, list) = (self.lists.len() as u32, Arc::new(list));
        self.lists.push(list.clone());
        self.ids.insert(list, id);
        id
    }

    /// An estimate of the bytes on the heap.
    pub(crate) fn memory_size(&self) -> usize {
        let names = |list: &Declared| list.names.capacity() * size_of::<(Formula, Language)>() + 64;
        let lists: usize = self.lists.iter().map(|list| names(list)).sum();
        let declared: usize = self.declared.values().map(|list| names(list)).sum();
        lists + declared + self.ids.allocation_size() + self.declared.allocation_size()
    }
}

/// Schemas that are being looked through.
#[derive(Default)]
struct Open {
    schemas: Vec<ValueId>,
    /// The lowest of them that the result depends on.
    cut: Option<usize>,
}

/// How a schema closes the object that it describes.
pub(crate) enum Closing {
    /// It does not, or it does so by a formula.
    Here(Formula),
    /// One of its parts does: a keyword's value or one of its branches, given what others declare.
    Within(ValueId, u32),
}

/// A schema beside others that speak of the same value.
struct Component {
    /// The keyword's value, or a branch of `allOf`.
    at: ValueId,
    declared: Declared,
}

impl Declared {
    fn add(&mut self, other: &Declared) {
        self.any |= other.any;
        self.forks |= other.forks;
        self.names.extend_from_slice(&other.names);
    }

    fn is_free(&self) -> bool {
        self.names.contains(&(Formula::TRUE, Language::ALL))
    }
}

impl Algebra {
    /// How a schema that is to close the object does so; `list` is what others declare.
    pub(crate) fn closing(&mut self, schema: ValueId, dynamic: u32, list: u32) -> Result<Closing, SchemaError> {
        let scope = Scope { dynamic, role: Role::Part };
        let mut open = Open::default();
        let others = self.closed.lists[list as usize].clone();
        let (own, components) = self.components(schema, scope, &mut open)?;
        let mut all = own.clone();
        all.add(&others);
        components.iter().for_each(|component| all.add(&component.declared));
        self.note_steps(all.names.len())?;
        if !all.any || self.without_repetition(&mut all)?.is_free() {
            return Ok(Closing::Here(Formula::TRUE));
        }
        let forks = components.iter().filter(|component| component.declared.forks);
        // The one with the most to choose from; the first of several.
        let Some(within) = forks.map(|c| (c.declared.names.len(), std::cmp::Reverse(c.at))).max() else {
            return Ok(Closing::Here(self.nothing_else(&all)?));
        };
        let within = within.1.0;
        let mut beside = own;
        beside.add(&others);
        components.iter().filter(|component| component.at != within).for_each(|c| beside.add(&c.declared));
        let list = self.list_of_declared(beside)?;
        Ok(Closing::Within(within, list))
    }

    /// For each branch of `anyOf` what is declared beside it, if the branches close the object, given what others declare.
    /// `alone`: no two of them hold together.
    pub(crate) fn beside_branches(
        &mut self,
        branches: &[ValueId],
        scope: Scope,
        list: u32,
        alone: bool,
    ) -> Result<Vec<Scope>, SchemaError> {
        let scope = scope.part();
        let others = self.closed.lists[list as usize].clone();
        let mut open = Open::default();
        let mut declared = Vec::with_capacity(branches.len());
        let mut tags = Vec::with_capacity(branches.len());
        for &branch in branches {
            let is_object = self.may_be_object(branch);
            declared.push(if is_object && !alone {
                self.declared_if(branch, scope, &mut open)?
            } else {
                Declared::default()
            });
            let mut of_branch = FxMap::default();
            if !alone {
                self.tags_of(branch, scope.dynamic, &mut of_branch, &mut Vec::new());
            }
            tags.push(of_branch);
        }
        let mut certain = Vec::with_capacity(branches.len());
        let mut every = Vec::with_capacity(branches.len());
        let outside = self.certain(&others);
        for (&branch, of_branch) in branches.iter().zip(&declared) {
            let here = self.declared(branch, scope, &mut open)?;
            let here = self.certain(&here);
            certain.push(self.languages.union([here, outside]));
            every.push(self.languages.union(of_branch.names.iter().map(|&(_, names)| names).collect::<Vec<_>>()));
        }
        self.note_steps(branches.len() * branches.len() / 64)?;
        let mut scopes = Vec::with_capacity(branches.len());
        for i in 0..branches.len() {
            if !self.may_be_object(branches[i]) {
                scopes.push(scope);
                continue;
            }
            let mut beside = (*others).clone();
            let mut overlaps = Vec::new();
            for j in 0..branches.len() {
                // Where the other declares all that this one does, an object in both is found with the other.
                if i != j
                    && !declared[j].names.is_empty()
                    && !self.are_apart(&tags[i], &tags[j])
                    && self.names_beyond(every[i], certain[j])? != Language::EMPTY
                    && self.names_beyond(every[j], certain[i])? != Language::EMPTY
                {
                    overlaps.push(j);
                    if overlaps.len() > MOST_OVERLAPS {
                        overlaps.clear();
                        break;
                    }
                }
            }
            for j in overlaps {
                for &(condition, names) in &declared[j].names {
                    let names = self.names_beyond(names, certain[i])?;
                    beside.names.push((condition, names));
                }
            }
            let list = self.list_of_declared(beside)?;
            scopes.push(Scope { role: Role::Whole(list), ..scope });
        }
        Ok(scopes)
    }

    fn list_of_declared(&mut self, mut list: Declared) -> Result<u32, SchemaError> {
        self.note_steps(list.names.len())?;
        self.without_repetition(&mut list)?;
        Ok(self.closed.intern(list))
    }

    /// A list of another algebra that was made from the same schema.
    pub(crate) fn carry_declared(&mut self, from: &Algebra, list: u32, carried: &mut Carried) -> u32 {
        let list = &from.closed.lists[list as usize];
        let names = list.names.iter().map(|&(condition, names)| {
            (self.carry_formula(from, condition, carried), self.carry_language(from, names, carried))
        });
        let mut names: Vec<(Formula, Language)> = names.collect();
        names.sort_unstable();
        self.closed.intern(Declared { any: list.any, names, forks: false })
    }

    /// Joins the names of equal conditions, and the conditions of equal names.
    fn without_repetition<'a>(&mut self, list: &'a mut Declared) -> Result<&'a Declared, SchemaError> {
        let mut by_condition: FxMap<Formula, Vec<Language>> = FxMap::default();
        for &(condition, names) in &list.names {
            if condition != Formula::FALSE && names != Language::EMPTY {
                by_condition.entry(condition).or_default().push(names);
            }
        }
        let mut by_names: FxMap<Language, Vec<Formula>> = FxMap::default();
        for (condition, names) in by_condition {
            by_names.entry(self.languages.union(names)).or_default().push(condition);
        }
        list.names = by_names.into_iter().map(|(names, conditions)| (self.formulas.or(conditions), names)).collect();
        let certain = self.certain(list);
        for (condition, names) in &mut list.names {
            if *condition == Formula::TRUE {
                *names = certain;
            } else {
                *names = self.names_beyond(*names, certain)?;
            }
        }
        list.names.retain(|&(_, names)| names != Language::EMPTY);
        list.names.sort_unstable();
        list.names.dedup();
        if list.names.len() > self.options.limits.max_alternatives {
            return Err(self.too_many_alternatives("branches that declare members, under strict"));
        }
        Ok(list)
    }

    /// What a schema itself declares, and the schemas beside it that speak of the same value.
    fn components(
        &mut self,
        schema: ValueId,
        scope: Scope,
        open: &mut Open,
    ) -> Result<(Declared, Vec<Component>), SchemaError> {
        let mut own = Declared::default();
        let mut components = Vec::new();
        let Value::Object(members) = self.json.get(schema) else { return Ok((own, components)) };
        let members = members.clone();
        for (keyword, value) in self.asserting(schema, &members) {
            let draft = self.registry.draft_at(&self.json, schema);
            let at = At { schema, keyword, value, scope, draft, closes: None };
            match keyword {
                "properties" | "patternProperties" | "additionalProperties" => own.any = true,
                "unevaluatedProperties" => {
                    own.any = true;
                    own.names.push((Formula::TRUE, Language::ALL));
                }
                "allOf" => {
                    for branch in self.branches(at) {
                        let declared = (*self.declared(branch, scope, open)?).clone();
                        components.push(Component { at: branch, declared });
                    }
                }
                "anyOf" | "oneOf" => {
                    let mut declared = Declared::default();
                    let mut in_all = Language::ALL;
                    for branch in self.branches(at) {
                        if self.may_be_object(branch) {
                            let of_branch = self.declared(branch, scope, open)?;
                            let certain = self.certain(&of_branch);
                            in_all = self.languages.and([in_all, certain]);
                            declared.add(&self.declared_if(branch, scope, open)?);
                        }
                    }
                    // Some branch holds, so what all declare is declared in any case.
                    if in_all != Language::ALL && self.languages.is_viable(in_all)? {
                        declared.names.push((Formula::TRUE, in_all));
                    }
                    declared.forks = declared.any;
                    components.push(Component { at: value, declared });
                }
                "$ref" | "$dynamicRef" | "$recursiveRef" => {
                    let target = self.target_of(at)?;
                    let declared = (*self.declared(target, scope, open)?).clone();
                    components.push(Component { at: value, declared });
                }
                // What must come is not undeclared, though nothing describes it; and an object that only says so is free.
                "required" => {
                    let names = self.names_in(value);
                    own.names.push((Formula::TRUE, names));
                }
                "if" | "dependentRequired" | "dependentSchemas" | "dependencies" => {
                    let declared = self.declared_on_condition(at, open)?;
                    components.push(Component { at: value, declared });
                }
                _ => {}
            }
        }
        if own.any {
            let draft = self.registry.draft_at(&self.json, schema);
            let at = At { schema, keyword: "", value: schema, scope, draft, closes: None };
            own.names.push((Formula::TRUE, names_looked_at(self, at)?));
        }
        Ok((own, components))
    }

    /// The keywords of a schema that its draft gives a meaning.
    pub(crate) fn asserting<'a>(&self, schema: ValueId, members: &'a [(Box<str>, ValueId)]) -> Vec<(&'a str, ValueId)> {
        let dialect = self.registry.dialect_at(&self.json, schema);
        let alone = self.hides_siblings(schema, dialect.draft);
        let is_asserted =
            |name: &str| matches!(lookup(name, dialect), Keyword::Assert(_)) && (!alone || name == "$ref");
        members.iter().filter(|(name, _)| is_asserted(name)).map(|(name, value)| (&**name, *value)).collect()
    }

    /// What a schema and all its parts declare.
    fn declared(&mut self, schema: ValueId, scope: Scope, open: &mut Open) -> Result<Arc<Declared>, SchemaError> {
        let scope = Scope { dynamic: self.scope_within(scope.dynamic, schema), ..scope };
        if let Some(known) = self.closed.declared.get(&(schema, scope)) {
            return Ok(known.clone());
        }
        if let Some(place) = open.schemas.iter().position(|&other| other == schema) {
            open.cut = Some(open.cut.map_or(place, |cut| cut.min(place)));
            return Ok(Arc::default());
        }
        self.note_steps(1)?;
        let depth = open.schemas.len();
        open.schemas.push(schema);
        let parts = stacker::maybe_grow(64 << 10, 1 << 20, || self.components(schema, scope, open));
        open.schemas.pop();
        let (mut all, components) = parts?;
        components.iter().for_each(|component| all.add(&component.declared));
        self.without_repetition(&mut all)?;
        let all = Arc::new(all);
        // What was cut short by a schema further out is not all that there is.
        if open.cut.is_none_or(|cut| cut >= depth) {
            open.cut = None;
            self.closed.declared.insert((schema, scope), all.clone());
        }
        Ok(all)
    }

    fn note_steps(&mut self, steps: usize) -> Result<(), SchemaError> {
        self.closed.steps = self.closed.steps.saturating_add(steps);
        let limit = self.options.limits.max_search;
        if self.closed.steps > limit {
            let hint = "Simplify the branches that declare members, do without strict, or raise the limit";
            return Err(SchemaError::limit("max_search", limit, "", hint));
        }
        Ok(())
    }

    /// What a branch declares, if it holds.
    fn declared_if(&mut self, branch: ValueId, scope: Scope, open: &mut Open) -> Result<Declared, SchemaError> {
        let mut declared = (*self.declared(branch, scope, open)?).clone();
        let parts: usize = declared.names.iter().map(|&(condition, _)| 1 + self.formulas.parts(condition).len()).sum();
        self.note_steps(parts)?;
        let holds = self.subschema(branch, scope);
        declared.names.iter_mut().for_each(|(condition, _)| *condition = self.formulas.and([*condition, holds]));
        Ok(declared)
    }

    /// What `if` with `then` and `else` declares, and what schemas do that depend on a member.
    fn declared_on_condition(&mut self, at: At, open: &mut Open) -> Result<Declared, SchemaError> {
        let mut all = Declared::default();
        let mut add = |a: &mut Algebra, condition: Formula, declared: &Declared| {
            all.any |= declared.any;
            let names = declared.names.iter().map(|&(c, names)| (a.formulas.and([c, condition]), names));
            all.names.extend(names.collect::<Vec<_>>());
        };
        if at.keyword == "if" {
            let holds = self.subschema(at.value, at.scope.asked());
            let mut declared = (*self.declared(at.value, at.scope.asked(), open)?).clone();
            // A condition describes nothing.
            declared.any = false;
            add(self, holds, &declared);
            let fails = self.formulas.not(holds);
            for (keyword, condition) in [("then", holds), ("else", fails)] {
                if let Some(schema) = self.json.member(at.schema, keyword) {
                    let declared = self.declared(schema, at.scope, open)?;
                    add(self, condition, &declared);
                }
            }
            return Ok(all);
        }
        let Value::Object(members) = self.json.get(at.value) else { return Ok(all) };
        for (name, schema) in members.clone().iter() {
            let name = self.formulas.name(name);
            let present = self.formulas.member(Keys::One(name), Formula::TRUE);
            match self.json.get(*schema) {
                Value::Array(_) | Value::String(_) => {
                    let names = self.names_in(*schema);
                    add(self, present, &Declared { names: vec![(Formula::TRUE, names)], ..Declared::default() });
                }
                _ => {
                    let declared = self.declared(*schema, at.scope, open)?;
                    add(self, present, &declared);
                }
            }
        }
        Ok(all)
    }

    /// The names in a list, or the one that stands there alone.
    fn names_in(&mut self, value: ValueId) -> Language {
        let list = match self.json.get(value) {
            Value::Array(items) => items,
            _ => std::slice::from_ref(&value),
        };
        self.languages.texts(list.iter().filter_map(|&item| self.json.text(item)))
    }

    /// The names that are declared in any case.
    fn certain(&mut self, declared: &Declared) -> Language {
        let certain = declared.names.iter().filter(|(condition, _)| *condition == Formula::TRUE);
        self.languages.union(certain.map(|&(_, names)| names).collect::<Vec<_>>())
    }

    /// Those of some names that are not among others.
    fn names_beyond(&mut self, names: Language, others: Language) -> Result<Language, SchemaError> {
        let Some(texts) = self.languages.as_texts(names) else {
            let beyond = self.languages.difference(names, others);
            return Ok(if self.languages.is_viable(beyond)? { beyond } else { Language::EMPTY });
        };
        let texts: Vec<String> = texts.into_iter().map(String::from).collect();
        let beyond: Vec<&str> =
            texts.iter().map(String::as_str).filter(|text| !self.languages.matches(others, text)).collect();
        Ok(if beyond.len() == texts.len() { names } else { self.languages.texts(beyond) })
    }

    /// No member that is not declared.
    fn nothing_else(&mut self, declared: &Declared) -> Result<Formula, SchemaError> {
        let certain = self.certain(declared);
        let conditional: Vec<(Formula, Language)> =
            declared.names.iter().copied().filter(|&(condition, _)| condition != Formula::TRUE).collect();
        // Names that are listed, with the conditions of each; then languages of names, split where they overlap.
        let mut listed: FxMap<String, Vec<Formula>> = FxMap::default();
        for &(_, names) in &conditional {
            let texts: Vec<String> =
                self.languages.as_texts(names).unwrap_or_default().into_iter().map(String::from).collect();
            for text in texts {
                if !self.languages.matches(certain, &text) {
                    listed.entry(text).or_default();
                }
            }
        }
        let rest = self.languages.texts(listed.keys().map(String::as_str));
        let rest = self.languages.union([rest, certain]);
        let mut cells = vec![(self.languages.not(rest), Vec::new())];
        for &(condition, names) in &conditional {
            for (text, conditions) in &mut listed {
                if self.languages.matches(names, text) {
                    conditions.push(condition);
                }
            }
            if self.languages.as_texts(names).is_none() {
                let mut finer = Vec::with_capacity(cells.len() + 1);
                for (cell, conditions) in cells {
                    let inside = self.languages.and([cell, names]);
                    let outside = self.languages.difference(cell, names);
                    if self.languages.is_viable(inside)? {
                        finer.push((inside, [&conditions[..], &[condition]].concat()));
                    }
                    if self.languages.is_viable(outside)? {
                        finer.push((outside, conditions));
                    }
                }
                cells = finer;
                if cells.len() > self.options.limits.max_alternatives {
                    return Err(self.too_many_alternatives("name patterns of branches, under strict"));
                }
            }
        }
        let mut by_conditions: FxMap<Vec<Formula>, Vec<String>> = FxMap::default();
        for (text, mut conditions) in listed {
            conditions.sort_unstable();
            by_conditions.entry(conditions).or_default().push(text);
        }
        let mut parts = Vec::with_capacity(cells.len() + by_conditions.len());
        for (names, conditions) in cells {
            let none = self.every_member(Keys::In(names), Formula::FALSE);
            parts.push(self.formulas.or(conditions.into_iter().chain([none])));
        }
        for (conditions, texts) in by_conditions {
            let none = if texts.len() <= FEW_NAMES {
                let names: Vec<_> = texts.iter().map(|text| self.formulas.name(text)).collect();
                let absent: Vec<_> =
                    names.into_iter().map(|name| self.every_member(Keys::One(name), Formula::FALSE)).collect();
                self.formulas.and(absent)
            } else {
                let names = self.languages.texts(texts.iter().map(String::as_str));
                self.every_member(Keys::In(names), Formula::FALSE)
            };
            parts.push(self.formulas.or(conditions.into_iter().chain([none])));
        }
        let all = self.formulas.and(parts);
        Ok(self.formulas.if_type(Type::Object, all))
    }

    /// Whether a schema may have objects, as far as its own `type`, `const` and `enum` tell.
    fn may_be_object(&self, schema: ValueId) -> bool {
        let is_object = |value: ValueId| matches!(self.json.get(value), Value::Object(_));
        let says_object = |value: ValueId| matches!(self.json.get(value), Value::String(t) if &**t == "object");
        let Value::Object(members) = self.json.get(schema) else { return true };
        if self.hides_siblings(schema, self.registry.draft_at(&self.json, schema)) {
            return true;
        }
        members.iter().all(|(keyword, value)| match (&**keyword, self.json.get(*value)) {
            ("type", Value::Array(types)) => types.iter().any(|&t| says_object(t)),
            ("type", Value::String(_)) => says_object(*value),
            ("enum", Value::Array(values)) => values.iter().any(|&value| is_object(value)),
            ("const", _) => is_object(*value),
            _ => true,
        })
    }
}
