//! What a formula says of objects, found once: names, order, classes of other names, and the residual.

use super::ObjectState;
use super::seen::SeenId;
use crate::algebra::Algebra;
use crate::error::SchemaError;
use crate::formula::{Formula, FxMap, Keys, Name, Node, Type};
use punchcard_automata::{Language, work};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

/// What a formula says of objects, apart from the residual.
#[derive(Debug, PartialEq)]
pub struct ObjectSpec {
    /// The formula.
    pub(super) of: Formula,
    /// Declared names, in order.
    pub(super) order: Vec<Name>,
    pub(super) place: FxMap<Name, u32>,
    /// Names that are spoken of but not declared.
    pub(super) others: Vec<Name>,
    /// Of every member with this name.
    pub(super) by_name: FxMap<Name, Vec<Formula>>,
    /// Of every member whose name is in the language.
    pub(super) by_pattern: Vec<NamePattern>,
    /// The names that are not spoken of one by one, split so that all names of a class are treated alike.
    pub(super) classes: Vec<NameClass>,
    /// All names that are not spoken of one by one.
    pub(super) unspoken: Language,
    /// The names that are, sorted.
    pub(super) spoken: Vec<Box<str>>,
    pub(super) initial: Formula,
}

impl ObjectSpec {
    /// An estimate of the bytes on the heap.
    pub(super) fn memory_size(&self) -> usize {
        let tables = self.place.allocation_size() + self.by_name.allocation_size() + 24 * self.by_name.len();
        let names = 4 * (self.order.len() + self.others.len()) + 40 * self.spoken.len();
        let patterns = self.by_pattern.len() * size_of::<NamePattern>() + self.classes.len() * size_of::<NameClass>();
        size_of::<Self>() + tables + names + patterns
    }
}

/// What holds of every member whose name is in a language.
#[derive(Debug, PartialEq)]
pub(super) struct NamePattern {
    pub(super) names: Language,
    /// How all of its names begin.
    pub(super) beginning: String,
    pub(super) value: Formula,
}

#[derive(Debug, PartialEq)]
pub(super) struct NameClass {
    pub(super) names: Language,
    /// How all of its names begin.
    pub(super) beginning: String,
    /// A name of the class, to find out how all of them are treated.
    pub(super) example: Name,
    /// How many names it has, if few.
    pub(super) size: Option<u32>,
}

/// Things of languages, by how all texts of each begin.
#[derive(Debug)]
struct ByBeginning<T>(BTreeMap<String, Vec<T>>);

impl<T> Default for ByBeginning<T> {
    fn default() -> Self {
        ByBeginning(BTreeMap::new())
    }
}

impl<T: Copy> ByBeginning<T> {
    fn insert(&mut self, beginning: String, value: T) {
        self.0.entry(beginning).or_default().push(value);
    }

    /// Those of languages that may have a text in common with one whose texts begin like this.
    fn near(&self, beginning: &str) -> Vec<T> {
        let shorter = (0..beginning.len()).filter(|&end| beginning.is_char_boundary(end));
        let shorter = shorter.filter_map(|end| self.0.get(&beginning[..end]));
        let longer = self.0.range::<str, _>((Bound::Included(beginning), Bound::Unbounded));
        let longer = longer.take_while(|(other, _)| other.starts_with(beginning)).map(|(_, values)| values);
        shorter.chain(longer).flatten().copied().collect()
    }
}

/// Whether a text that begins like this may be among those that all have the same beginning.
pub(super) fn may_meet(text: &str, beginning: &str) -> bool {
    text.starts_with(beginning) || beginning.starts_with(text)
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
            states.push(ObjectState {
                spec,
                residual: self.specs[spec as usize].initial,
                place: 0,
                seen: SeenId::NONE,
            });
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
            of: f,
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
                        let beginning = self.languages.beginning(names);
                        spec.by_pattern.push(NamePattern { names, beginning, value });
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
        self.heap += spec.memory_size();
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
        patterns.sort_unstable();
        patterns.dedup();
        // Names of some pattern, split; each pattern is compared only with names that may begin like its own.
        let mut classes: Vec<(Language, String)> = Vec::new();
        let (mut classes_by, mut patterns_by) = (ByBeginning::<usize>::default(), ByBeginning::<Language>::default());
        for &pattern in &patterns {
            work::spend(1)?;
            let beginning = self.languages.beginning(pattern);
            for i in classes_by.near(&beginning) {
                let class = classes[i].0;
                let inside = self.languages.and([class, pattern]);
                if !self.languages.is_viable(inside)? {
                    continue;
                }
                let outside = self.languages.difference(class, pattern);
                if self.languages.is_viable(outside)? {
                    classes[i].0 = outside;
                    let longer = if beginning.len() > classes[i].1.len() { &beginning } else { &classes[i].1 }.clone();
                    classes_by.insert(longer.clone(), classes.len());
                    classes.push((inside, longer));
                }
            }
            let others = self.languages.union(patterns_by.near(&beginning));
            let fresh = self.languages.difference(pattern, others);
            let fresh = self.languages.and([unspoken, fresh]);
            if self.languages.is_viable(fresh)? {
                classes_by.insert(beginning.clone(), classes.len());
                classes.push((fresh, beginning.clone()));
            }
            patterns_by.insert(beginning, pattern);
            if classes.len() > patterns.len().saturating_add(self.options.limits.max_alternatives) {
                return Err(self.too_many_alternatives("overlapping property name patterns"));
            }
        }
        let all = self.languages.union(patterns);
        let rest = self.languages.difference(unspoken, all);
        if self.languages.is_viable(rest)? {
            classes.push((rest, String::new()));
        }
        let mut out = Vec::with_capacity(classes.len());
        for (names, beginning) in classes {
            if let Some(example) = self.languages.example(names)? {
                let size = self.languages.as_texts(names).map(|t| t.len() as u32);
                out.push(NameClass { names, beginning, example: self.formulas.name(&example), size });
            }
        }
        Ok(out)
    }
}
