//! What a formula says of objects, found once: names, order, classes of other names, and the residual.

use super::ObjectState;
use crate::algebra::Algebra;
use crate::error::SchemaError;
use crate::formula::{Formula, FxMap, Keys, Name, Node, Type};
use punchcard_automata::Language;
use std::sync::Arc;

/// What a formula says of objects, apart from the residual.
#[derive(Debug)]
pub struct ObjectSpec {
    /// Declared names, in order.
    pub(super) order: Vec<Name>,
    pub(super) place: FxMap<Name, u32>,
    /// Names that are spoken of but not declared.
    pub(super) others: Vec<Name>,
    /// Of every member with this name.
    pub(super) by_name: FxMap<Name, Vec<Formula>>,
    /// Of every member whose name is in the language.
    pub(super) by_pattern: Vec<(Language, Formula)>,
    /// The names that are not spoken of one by one, split so that all names of a class are treated alike.
    pub(super) classes: Vec<NameClass>,
    /// All names that are not spoken of one by one.
    pub(super) unspoken: Language,
    /// The names that are, sorted.
    pub(super) spoken: Vec<Box<str>>,
    pub(super) initial: Formula,
}

#[derive(Debug)]
pub(super) struct NameClass {
    pub(super) names: Language,
    /// A name of the class, to find out how all of them are treated.
    pub(super) example: Name,
    /// How many names it has, if few.
    pub(super) size: Option<u32>,
}

impl Algebra {
    /// The states in which an object of the formula begins, one for each top-level alternative.
    pub(crate) fn object_starts(&mut self, f: Formula) -> Result<Vec<ObjectState>, SchemaError> {
        let f = self.restrict(f, Type::Object)?;
        let alternatives: Vec<Formula> = match self.formulas.node(f) {
            Node::False => return Ok(Vec::new()),
            Node::Or(items) => items.to_vec(),
            _ => vec![f],
        };
        let mut states = Vec::with_capacity(alternatives.len());
        for alternative in alternatives {
            let spec = self.object_spec(alternative)?;
            states.push(ObjectState { spec, residual: self.specs[spec as usize].initial, place: 0, seen: 0 });
        }
        Ok(states)
    }

    pub(super) fn object_spec(&mut self, f: Formula) -> Result<u32, SchemaError> {
        if let Some(&id) = self.spec_ids.get(&f) {
            return Ok(id);
        }
        let items: Vec<Formula> = match self.formulas.node(f) {
            Node::And(items) => items.to_vec(),
            _ => vec![f],
        };
        let mut spec = ObjectSpec {
            order: Vec::new(),
            place: FxMap::default(),
            others: Vec::new(),
            by_name: FxMap::default(),
            by_pattern: Vec::new(),
            classes: Vec::new(),
            unspoken: Language::ALL,
            spoken: Vec::new(),
            initial: Formula::TRUE,
        };
        let mut named = Vec::new();
        let mut patterns = Vec::new();
        let mut orders = Vec::new();
        self.survey(f, &mut orders, &mut named, &mut patterns);
        // The order of a whole comes before those of its parts.
        orders.sort_by_key(|order| std::cmp::Reverse(order.len()));
        spec.order = orders.concat();
        let mut rest = Vec::new();
        for item in items {
            match *self.formulas.node(item) {
                Node::Declared(_) => {}
                Node::Not(inner) => match *self.formulas.node(inner) {
                    Node::Member { keys: Keys::One(name), value } => {
                        let value = self.formulas.not(value);
                        spec.by_name.entry(name).or_default().push(value);
                    }
                    Node::Member { keys: Keys::In(names), value } => {
                        let value = self.formulas.not(value);
                        spec.by_pattern.push((names, value));
                    }
                    _ => rest.push(item),
                },
                _ => rest.push(item),
            }
        }
        spec.initial = self.formulas.and(rest);
        let mut order = Vec::with_capacity(spec.order.len());
        for name in std::mem::take(&mut spec.order) {
            if let hashbrown::hash_map::Entry::Vacant(entry) = spec.place.entry(name) {
                entry.insert(order.len() as u32);
                order.push(name);
            }
        }
        spec.order = order;
        named.retain(|name| !spec.place.contains_key(name));
        named.sort_unstable();
        named.dedup();
        spec.others = named;
        spec.spoken = spec.order.iter().chain(&spec.others).map(|&n| self.formulas.text_of(n).into()).collect();
        spec.spoken.sort_unstable();
        let spoken = self.languages.texts(spec.spoken.iter().map(|name| &**name));
        spec.unspoken = self.languages.not(spoken);
        spec.classes = self.name_classes(spec.unspoken, patterns)?;
        let id = self.specs.len() as u32;
        self.specs.push(Arc::new(spec));
        self.spec_ids.insert(f, id);
        Ok(id)
    }

    /// Collects the declared orders, the names and the name languages that a formula speaks of.
    pub(super) fn survey<'a>(
        &'a self,
        f: Formula,
        orders: &mut Vec<&'a [Name]>,
        named: &mut Vec<Name>,
        patterns: &mut Vec<Language>,
    ) {
        for (atom, negated) in self.atoms(f) {
            match self.formulas.node(atom) {
                Node::Among(_, list) if negated => {
                    named.extend(list.iter().flat_map(|&c| self.constants.members(c)).map(|m| m.0));
                }
                Node::Among(_, list) => orders.extend(list.iter().map(|&c| self.constants.order(c))),
                Node::Declared(list) => orders.push(self.formulas.order(*list)),
                Node::Member { keys: Keys::One(name), .. } => named.push(*name),
                Node::Member { keys: Keys::In(names), .. } => patterns.push(*names),
                _ => {}
            }
        }
    }

    pub(super) fn name_classes(
        &mut self,
        unspoken: Language,
        mut patterns: Vec<Language>,
    ) -> Result<Vec<NameClass>, SchemaError> {
        let mut classes = vec![unspoken];
        patterns.sort_unstable();
        patterns.dedup();
        for pattern in patterns {
            let mut split = Vec::with_capacity(2 * classes.len());
            for class in classes {
                let inside = self.languages.and([class, pattern]);
                let outside = self.languages.difference(class, pattern);
                for part in [inside, outside] {
                    if self.languages.is_viable(part)? {
                        split.push(part);
                    }
                }
            }
            classes = split;
            if classes.len() > self.options.limits.max_alternatives {
                return Err(self.too_many_alternatives("overlapping property name patterns"));
            }
        }
        let mut out = Vec::with_capacity(classes.len());
        for names in classes {
            if let Some(example) = self.languages.example(names)? {
                let size = self.languages.as_texts(names).map(|t| t.len() as u32);
                out.push(NameClass { names, example: self.formulas.name(&example), size });
            }
        }
        Ok(out)
    }
}
