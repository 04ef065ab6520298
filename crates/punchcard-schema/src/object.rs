//! Objects: what a formula says of the members read so far, and of those to come.
//!
//! A formula restricted to objects is split once ([`ObjectSpec`]) into what holds of every member, found by name, and the
//! residual: what must still happen or must not happen (required members, counts, alternatives). Reading a member steps the
//! residual to its partial derivatives (as Antimirov's for regular expressions, 1996): pairs of a formula for the member's
//! value and the residual that is left. Alternatives become several pairs, so complements of values arise only where the
//! schema itself negates.

use crate::algebra::Algebra;
use crate::error::SchemaError;
use crate::formula::{Formula, FxMap, Keys, Name, Node, Type};
use crate::options::PropertyOrder;
use punchcard_automata::Language;
use std::sync::Arc;

/// What a formula says of objects, apart from the residual.
#[derive(Debug)]
pub struct ObjectSpec {
    /// Declared names, in order.
    order: Vec<Name>,
    place: FxMap<Name, u32>,
    /// Names that are spoken of but not declared.
    others: Vec<Name>,
    /// Of every member with this name.
    by_name: FxMap<Name, Vec<Formula>>,
    /// Of every member whose name is in the language.
    by_pattern: Vec<(Language, Formula)>,
    /// The names that are not spoken of one by one, split so that all names of a class are treated alike.
    classes: Vec<NameClass>,
    /// All names that are not spoken of one by one.
    unspoken: Language,
    /// The names that are, sorted.
    spoken: Vec<Box<str>>,
    initial: Formula,
}

#[derive(Debug)]
struct NameClass {
    names: Language,
    /// A name of the class, to find out how all of them are treated.
    example: Name,
    /// How many names it has, if few.
    size: Option<u32>,
}

/// An object that is being read, between two members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ObjectState {
    spec: u32,
    residual: Formula,
    /// Declared names before this place are done with.
    place: u32,
    /// Names that may not come again (the id of a sorted list).
    seen: u32,
}

/// Members that must come, each with what is asked of its value, and bounds on their number.
struct Wanted {
    members: Vec<(Name, Vec<Formula>)>,
    least: u32,
    most: u32,
}

/// Partial derivatives: formulas for a value, and what is left.
type Steps = Arc<[(Formula, Formula)]>;

/// One way to treat a member: a formula for its value, and what comes after it.
pub type Move = (Formula, ObjectState);

/// What was found out about objects.
#[derive(Debug)]
pub struct Memory {
    seen: Vec<Arc<[Name]>>,
    seen_ids: FxMap<Arc<[Name]>, u32>,
    values: FxMap<(u32, Name), Formula>,
    names: FxMap<ObjectState, Language>,
    steps: FxMap<(Formula, Name), Steps>,
}

impl Default for Memory {
    fn default() -> Self {
        let none: Arc<[Name]> = Arc::new([]);
        Memory {
            seen: vec![none.clone()],
            seen_ids: [(none, 0)].into_iter().collect(),
            values: FxMap::default(),
            names: FxMap::default(),
            steps: FxMap::default(),
        }
    }
}

impl Memory {
    pub(crate) fn memory_size(&self) -> usize {
        self.seen.iter().map(|s| 4 * s.len() + 48).sum::<usize>() + (self.values.len() + self.names.len()) * 32
    }

    fn with(&mut self, seen: u32, name: Name) -> u32 {
        let mut list = self.seen[seen as usize].to_vec();
        if let Err(at) = list.binary_search(&name) {
            list.insert(at, name);
        }
        let list: Arc<[Name]> = list.into();
        if let Some(&id) = self.seen_ids.get(&list) {
            return id;
        }
        let id = self.seen.len() as u32;
        self.seen.push(list.clone());
        self.seen_ids.insert(list, id);
        id
    }
}

impl ObjectState {
    /// The state, but for its residual.
    pub fn without_residual(self) -> ObjectState {
        self.with_residual(Formula::FALSE)
    }

    pub(crate) fn with_residual(self, residual: Formula) -> ObjectState {
        ObjectState { residual, ..self }
    }

    pub(crate) fn residual(self) -> Formula {
        self.residual
    }
}

impl Algebra {
    /// What may follow in one of two states that differ in nothing but their residuals.
    pub fn join_objects(&mut self, a: ObjectState, b: ObjectState) -> ObjectState {
        ObjectState { residual: self.formulas.or([a.residual, b.residual]), ..a }
    }

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

    fn object_spec(&mut self, f: Formula) -> Result<u32, SchemaError> {
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
    fn survey<'a>(
        &'a self,
        f: Formula,
        orders: &mut Vec<&'a [Name]>,
        named: &mut Vec<Name>,
        patterns: &mut Vec<Language>,
    ) {
        match self.formulas.node(f) {
            Node::And(items) | Node::Or(items) => items.iter().for_each(|&i| self.survey(i, orders, named, patterns)),
            Node::Not(inner) => match self.formulas.node(*inner) {
                Node::Among(_, list) => {
                    named.extend(list.iter().flat_map(|&c| self.constants.members(c)).map(|m| m.0));
                }
                _ => self.survey(*inner, orders, named, patterns),
            },
            Node::Among(_, list) => orders.extend(list.iter().map(|&c| self.constants.order(c))),
            Node::Declared(list) => orders.push(self.formulas.order(*list)),
            Node::Member { keys: Keys::One(name), .. } => named.push(*name),
            Node::Member { keys: Keys::In(names), .. } => patterns.push(*names),
            _ => {}
        }
    }

    fn name_classes(&mut self, unspoken: Language, mut patterns: Vec<Language>) -> Result<Vec<NameClass>, SchemaError> {
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

    pub(crate) fn too_many_alternatives(&self, what: &str) -> SchemaError {
        let limit = self.options.limits.max_alternatives;
        SchemaError::limit(
            "max_alternatives",
            limit,
            "",
            &format!("Simplify the {what} of the schema, or raise the limit"),
        )
    }

    /// Interns a member name.
    pub fn name(&mut self, text: &str) -> Name {
        self.formulas.name(text)
    }

    /// What every member of this name must satisfy, whatever the residual.
    fn member_value(&mut self, spec_id: u32, name: Name) -> Formula {
        if let Some(&known) = self.objects.values.get(&(spec_id, name)) {
            return known;
        }
        let spec = self.specs[spec_id as usize].clone();
        let mut parts = spec.by_name.get(&name).cloned().unwrap_or_default();
        for &(names, value) in &spec.by_pattern {
            let text = self.formulas.text_of(name);
            if self.languages.matches(names, text) {
                parts.push(value);
            }
        }
        let value = self.formulas.and(parts);
        self.objects.values.insert((spec_id, name), value);
        value
    }

    /// Whether the object may end here.
    pub fn object_may_end(&self, state: ObjectState) -> bool {
        self.formulas.holds_at_end(state.residual)
    }

    /// The ways to treat a member of this name, also those that cannot be finished.
    pub(crate) fn object_steps(&mut self, state: ObjectState, name: Name) -> Result<Vec<Move>, SchemaError> {
        let spec = self.specs[state.spec as usize].clone();
        let declared = self.options.property_order == PropertyOrder::Declared;
        let place = spec.place.get(&name).copied();
        let (mut residual, mut next, mut seen) = (state.residual, state.place, state.seen);
        let gone = self.objects.seen[seen as usize].binary_search(&name).is_ok();
        if gone || !self.languages.can_write(self.formulas.text_of(name)) {
            return Ok(Vec::new());
        }
        if declared {
            let end = place.unwrap_or(spec.order.len() as u32);
            if end < state.place {
                return Ok(Vec::new());
            }
            residual = self.without(residual, &spec.order[state.place as usize..end as usize]);
            next = if place.is_some() { end + 1 } else { end };
        }
        if place.is_none() || !declared {
            seen = self.objects.with(seen, name);
        }
        if residual == Formula::FALSE {
            return Ok(Vec::new());
        }
        let value = self.member_value(state.spec, name);
        let mut moves = Vec::new();
        for &(part, residual) in self.step_member(residual, name)?.iter() {
            let value = self.formulas.and([value, part]);
            if value != Formula::FALSE {
                moves.push((value, ObjectState { spec: state.spec, residual, place: next, seen }));
            }
        }
        Ok(moves)
    }

    /// The ways to treat a member of this name that can be finished, in an object that can be.
    pub fn object_moves(&mut self, state: ObjectState, name: Name) -> Result<Vec<Move>, SchemaError> {
        let mut moves = Vec::new();
        // What could be finished without a member that nothing speaks of can be finished with it.
        let touched = self.touches(state.residual, name);
        for (value, next) in self.object_steps(state, name)? {
            let as_before = !touched && next.residual == state.residual && next.place == state.place;
            if self.is_satisfiable(value)? && (as_before || self.object_is_viable(next)?) {
                moves.push((value, next));
            }
        }
        Ok(moves)
    }

    /// The residual, given that none of these names will come.
    fn without(&mut self, f: Formula, names: &[Name]) -> Formula {
        if names.is_empty() {
            return f;
        }
        match self.formulas.node(f) {
            Node::Member { keys: Keys::One(name), .. } if names.contains(name) => Formula::FALSE,
            Node::Among(t, list) => {
                let (t, mut list) = (*t, list.to_vec());
                list.retain(|&c| !self.constants.members(c).iter().any(|(name, _)| names.contains(name)));
                self.formulas.among(t, list)
            }
            &Node::Not(inner) => {
                let inner = self.without(inner, names);
                self.formulas.not(inner)
            }
            Node::And(items) => {
                let items = items.clone();
                let mut parts = Vec::with_capacity(items.len());
                for &i in items.iter() {
                    let part = self.without(i, names);
                    if part == Formula::FALSE {
                        return part;
                    }
                    parts.push(part);
                }
                self.formulas.and(parts)
            }
            Node::Or(items) => {
                let items = items.clone();
                let parts: Vec<Formula> = items.iter().map(|&i| self.without(i, names)).collect();
                self.formulas.or(parts)
            }
            _ => f,
        }
    }

    fn speaks_of(&mut self, keys: Keys, name: Name) -> bool {
        match keys {
            Keys::One(other) => other == name,
            Keys::In(names) => self.languages.matches(names, self.formulas.text_of(name)),
        }
    }

    /// Whether a member of this name can change the residual.
    fn touches(&mut self, f: Formula, name: Name) -> bool {
        match *self.formulas.node(f) {
            Node::Members(_) | Node::Among(..) => true,
            Node::Member { keys, .. } => self.speaks_of(keys, name),
            Node::Not(inner) => self.touches(inner, name),
            Node::And(ref items) | Node::Or(ref items) => {
                let items = items.clone();
                items.iter().any(|&i| self.touches(i, name))
            }
            _ => false,
        }
    }

    /// Partial derivatives of a residual by a member: (formula for its value, what is left).
    fn step_member(&mut self, f: Formula, name: Name) -> Result<Steps, SchemaError> {
        if let Some(known) = self.objects.steps.get(&(f, name)) {
            return Ok(known.clone());
        }
        let steps: Steps = self.step_member_anew(f, name)?.into();
        self.objects.steps.insert((f, name), steps.clone());
        Ok(steps)
    }

    fn step_member_anew(&mut self, f: Formula, name: Name) -> Result<Vec<(Formula, Formula)>, SchemaError> {
        let same = |f| Ok(vec![(Formula::TRUE, f)]);
        match *self.formulas.node(f) {
            Node::Member { keys, value } => {
                if !self.speaks_of(keys, name) {
                    return same(f);
                }
                let value = self.flat(value).unwrap_or(value);
                let mut out = vec![(value, Formula::TRUE)];
                // A name comes only once; of a language of names, another may do it.
                if value != Formula::TRUE && matches!(keys, Keys::In(_)) {
                    out.push((self.others(value), f));
                }
                Ok(out)
            }
            Node::Members(count) => {
                let less = if count == 1 { Formula::TRUE } else { self.formulas.members(count - 1) };
                same(less)
            }
            Node::Among(_, ref list) => {
                let list = list.clone();
                Ok(self.step_constants(Type::Object, &list, |c, of| c.take_member(of, name)).0)
            }
            Node::Not(inner) => match *self.formulas.node(inner) {
                Node::Among(_, ref list) => {
                    let list = list.clone();
                    let steps = self.step_constants(Type::Object, &list, |c, of| c.take_member(of, name));
                    Ok(self.unlike(steps))
                }
                Node::Member { keys, value } => {
                    if !self.speaks_of(keys, name) {
                        return same(f);
                    }
                    let value = self.flat(value).unwrap_or(value);
                    let value = self.formulas.not(value);
                    Ok(vec![(value, if matches!(keys, Keys::In(_)) { f } else { Formula::TRUE })])
                }
                Node::Members(1) => Ok(Vec::new()),
                Node::Members(count) => {
                    let less = self.formulas.members(count - 1);
                    same(self.formulas.not(less))
                }
                _ => same(f),
            },
            Node::And(ref items) => {
                let items = items.clone();
                if let Some(cases) = self.cases(&items, name)? {
                    let mut out = Vec::new();
                    for case in cases {
                        out.extend_from_slice(&self.step_member(case, name)?);
                    }
                    let out = self.merge_steps(out);
                    if out.len() > self.options.limits.max_alternatives {
                        return Err(self.too_many_alternatives("alternatives"));
                    }
                    return Ok(out);
                }
                let mut product = vec![(Formula::TRUE, Formula::TRUE)];
                let mut untouched = Vec::new();
                for &item in items.iter() {
                    if !self.touches(item, name) {
                        untouched.push(item);
                        continue;
                    }
                    let steps = self.step_member(item, name)?;
                    product = self.cross(product, &steps)?;
                }
                untouched.push(Formula::TRUE);
                let untouched = self.formulas.and(untouched);
                Ok(product.into_iter().map(|(v, r)| (v, self.formulas.and([r, untouched]))).collect())
            }
            Node::Or(ref items) => {
                let items = items.clone();
                let mut out = Vec::new();
                for &item in items.iter() {
                    out.extend_from_slice(&self.step_member(item, name)?);
                }
                Ok(self.alternatives(out))
            }
            _ => same(f),
        }
    }

    /// Values for which a step need not be taken: all but those of the formula, if that is easy to tell, else any.
    pub(crate) fn others(&mut self, value: Formula) -> Formula {
        self.flat(value).map_or(Formula::TRUE, |value| self.formulas.not(value))
    }

    /// Steps of alternatives. Where one of them is fulfilled, the others need not be followed: they are left only for
    /// other values, if those are easy to tell.
    pub(crate) fn alternatives(&mut self, steps: Vec<(Formula, Formula)>) -> Vec<(Formula, Formula)> {
        let mut done = Vec::new();
        for &(value, rest) in &steps {
            done.extend(self.flat(value).filter(|_| rest == Formula::TRUE));
        }
        if done.is_empty() {
            return self.merge_steps(steps);
        }
        let done = self.formulas.or(done);
        let open = self.formulas.not(done);
        let mut out = vec![(done, Formula::TRUE)];
        for (value, rest) in steps {
            if rest != Formula::TRUE || self.flat(value).is_none() {
                out.push((self.formulas.and([value, open]), rest));
            }
        }
        self.merge_steps(out)
    }

    /// Both of two choices, in all combinations that are not contradictory on sight.
    pub(crate) fn cross(
        &mut self,
        left: Vec<(Formula, Formula)>,
        right: &[(Formula, Formula)],
    ) -> Result<Vec<(Formula, Formula)>, SchemaError> {
        if left.len().min(right.len()) > 1 && left.len() * right.len() > self.options.limits.max_alternatives {
            return Err(self.too_many_alternatives("alternatives"));
        }
        let many = left.len().min(right.len()) > 1;
        let mut out = Vec::with_capacity(left.len() * right.len());
        for (v, r) in left {
            for &(w, s) in right {
                let value = self.formulas.and([v, w]);
                let rest = self.formulas.and([r, s]);
                if value != Formula::FALSE && rest != Formula::FALSE && (!many || !self.is_absurd(value)?) {
                    out.push((value, rest));
                }
            }
        }
        Ok(self.merge_steps(out))
    }

    /// Joins the residuals of equal values, and the values of equal residuals.
    pub(crate) fn merge_steps(&mut self, steps: Vec<(Formula, Formula)>) -> Vec<(Formula, Formula)> {
        let mut out: Vec<(Formula, Formula)> = Vec::with_capacity(steps.len());
        for (value, rest) in steps {
            if value == Formula::FALSE || rest == Formula::FALSE {
                continue;
            }
            match out.iter_mut().find(|(v, _)| *v == value) {
                Some((_, other)) => *other = self.formulas.or([*other, rest]),
                None => out.push((value, rest)),
            }
        }
        let steps = std::mem::take(&mut out);
        for (value, rest) in steps {
            match out.iter_mut().find(|(_, r)| *r == rest) {
                Some((other, _)) => *other = self.formulas.or([*other, value]),
                None => out.push((value, rest)),
            }
        }
        out
    }

    /// Whether all names that begin like this are treated alike: none of them is spoken of, and there is one class.
    pub fn is_indifferent(&self, state: ObjectState, beginning: &str) -> bool {
        let spec = &self.specs[state.spec as usize];
        let next = spec.spoken.partition_point(|name| &**name < beginning);
        spec.classes.len() == 1
            && spec.classes[0].size.is_none()
            && self.seen_names(state, beginning).is_empty()
            && !spec.spoken.get(next).is_some_and(|name| name.starts_with(beginning))
    }

    /// The most bytes of a name that is spoken of.
    pub fn longest_name(&self, state: ObjectState) -> usize {
        self.specs[state.spec as usize].spoken.iter().map(|name| name.len()).max().unwrap_or(0)
    }

    /// The class of a name that may come next, if all names of the class are treated alike: it is not spoken of, and there
    /// are always more of its kind.
    pub fn name_class(&mut self, state: ObjectState, name: &str) -> Option<u32> {
        let spec = self.specs[state.spec as usize].clone();
        let known = spec.spoken.binary_search_by(|spoken| (**spoken).cmp(name)).is_ok();
        if known || self.seen_names(state, name).contains(&name) {
            return None;
        }
        let class = spec.classes.iter().position(|class| self.languages.matches(class.names, name))?;
        spec.classes[class].size.is_none().then_some(class as u32)
    }

    /// The ways to treat a member with a name of the class, which is not noted as seen.
    pub fn class_moves(&mut self, state: ObjectState, class: u32) -> Result<Vec<Move>, SchemaError> {
        let spec = self.specs[state.spec as usize].clone();
        let example = spec.classes[class as usize].example;
        let mut moves = self.object_moves(ObjectState { seen: 0, ..state }, example)?;
        moves.iter_mut().for_each(|(_, next)| next.seen = state.seen);
        Ok(moves)
    }

    /// The names that the next member may have.
    pub fn object_names(&mut self, state: ObjectState) -> Result<Language, SchemaError> {
        if let Some(&known) = self.objects.names.get(&state) {
            return Ok(known);
        }
        let (single, classes) = self.next_names(state)?;
        let texts: Vec<String> = single.iter().map(|&n| self.formulas.text_of(n).to_string()).collect();
        let mut parts = vec![self.languages.texts(texts.iter().map(String::as_str))];
        let spec = self.specs[state.spec as usize].clone();
        if !classes.is_empty() {
            let open = if classes.len() == spec.classes.len() {
                spec.unspoken
            } else {
                self.languages.union(classes.iter().map(|&c| spec.classes[c].names))
            };
            // Where each beginning of a name has endless continuations, names that were seen are refused at their end.
            let open = if self.languages.is_endless(open)? { open } else { self.minus_seen(open, state.seen) };
            parts.push(open);
        }
        let names = self.languages.union(parts);
        self.languages.check_limit()?;
        self.objects.names.insert(state, names);
        Ok(names)
    }

    fn minus_seen(&mut self, names: Language, seen: u32) -> Language {
        let seen: Vec<String> =
            self.objects.seen[seen as usize].iter().map(|&n| self.formulas.text_of(n).to_string()).collect();
        if seen.is_empty() {
            return names;
        }
        let seen = self.languages.texts(seen.iter().map(String::as_str));
        self.languages.difference(names, seen)
    }

    /// The names spoken of one by one that may come next, and the classes of other names.
    fn next_names(&mut self, state: ObjectState) -> Result<(Vec<Name>, Vec<usize>), SchemaError> {
        let spec = self.specs[state.spec as usize].clone();
        let mut single = Vec::new();
        let mut at = state;
        let mut open = true;
        for (place, &name) in spec.order.iter().enumerate().skip(state.place as usize) {
            if !self.object_moves(at, name)?.is_empty() {
                single.push(name);
            }
            if self.options.property_order == PropertyOrder::Declared {
                // Whoever goes on without this name must be able to finish without it.
                at.residual = self.without(at.residual, &[name]);
                at.place = place as u32 + 1;
                if at.residual == Formula::FALSE || !self.object_is_viable(at)? {
                    open = false;
                    break;
                }
            }
        }
        let mut classes = Vec::new();
        if open {
            for &name in &spec.others {
                if !self.object_moves(at, name)?.is_empty() {
                    single.push(name);
                }
            }
            for (i, class) in spec.classes.iter().enumerate() {
                if self.has_fresh_name(class, state.seen)? && self.class_may_come(at, class)? {
                    classes.push(i);
                }
            }
        }
        Ok((single, classes))
    }

    /// A name of the class that was not seen.
    fn fresh_name(&mut self, class: &NameClass, seen: u32) -> Result<Option<Name>, SchemaError> {
        if self.objects.seen[seen as usize].binary_search(&class.example).is_err() {
            return Ok(Some(class.example));
        }
        let left = self.minus_seen(class.names, seen);
        Ok(self.languages.example(left)?.map(|text| self.formulas.name(&text)))
    }

    fn has_fresh_name(&mut self, class: &NameClass, seen: u32) -> Result<bool, SchemaError> {
        if self.languages.is_endless(class.names)? {
            return Ok(true);
        }
        let left = self.minus_seen(class.names, seen);
        Ok(self.languages.is_viable(left)?)
    }

    /// Names of the object that begin like this and may not come again.
    pub fn seen_names(&self, state: ObjectState, beginning: &str) -> Vec<&str> {
        let seen = self.objects.seen[state.seen as usize].iter().map(|&name| self.formulas.text_of(name));
        seen.filter(|name| name.starts_with(beginning)).collect()
    }

    /// Whether a fresh name of the class can be taken: any one stands for all of them.
    fn class_may_come(&mut self, state: ObjectState, class: &NameClass) -> Result<bool, SchemaError> {
        let Some(name) = self.fresh_name(class, state.seen)? else { return Ok(false) };
        Ok(!self.object_moves(state, name)?.is_empty())
    }

    /// Whether some object that began like this can be finished. Called by the search only.
    pub(crate) fn search_object(&mut self, state: ObjectState) -> Result<bool, SchemaError> {
        if self.object_may_end(state) {
            return Ok(true);
        }
        if let Node::Or(items) = self.formulas.node(state.residual) {
            for residual in items.clone() {
                if self.object_is_viable(ObjectState { residual, ..state })? {
                    return Ok(true);
                }
            }
            return Ok(false);
        }
        if let Some(answer) = self.independent_members(state)? {
            return Ok(answer);
        }
        let names = self.names_to_try(state)?;
        // Whatever keeps the object from ending must change; only members that it speaks of can do that, and each change
        // makes the residual smaller.
        let missing: Vec<Formula> = match self.formulas.node(state.residual) {
            Node::And(items) => items.iter().copied().filter(|&i| !self.formulas.holds_at_end(i)).collect(),
            _ => vec![state.residual],
        };
        for &part in &missing {
            if !self.is_hopeful(state, part)? {
                return Ok(false);
            }
        }
        for name in names {
            if !missing.iter().any(|&part| self.touches(part, name)) {
                continue;
            }
            for (value, next) in self.object_steps(state, name)? {
                if next.residual != state.residual && self.is_satisfiable(value)? && self.object_is_viable(next)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// All names that are spoken of and may still come, and one of each class of others.
    pub(crate) fn names_to_try(&mut self, state: ObjectState) -> Result<Vec<Name>, SchemaError> {
        let spec = self.specs[state.spec as usize].clone();
        let mut names: Vec<Name> = spec.order.iter().skip(state.place as usize).copied().collect();
        names.extend(&spec.others);
        for class in &spec.classes {
            names.extend(self.fresh_name(class, state.seen)?);
        }
        Ok(names)
    }

    /// Whether a part of the residual could still come true, each of its atoms taken for itself. `false` is certain.
    fn is_hopeful(&mut self, state: ObjectState, f: Formula) -> Result<bool, SchemaError> {
        match *self.formulas.node(f) {
            Node::Member { keys: Keys::One(name), value } => {
                if self.is_gone(state, name) {
                    return Ok(false);
                }
                let every = self.member_value(state.spec, name);
                let value = self.formulas.and([value, every]);
                self.is_satisfiable(value)
            }
            Node::And(ref items) => {
                for i in items.clone() {
                    if !self.is_hopeful(state, i)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Node::Or(ref items) => {
                for i in items.clone() {
                    if self.is_hopeful(state, i)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Node::False | Node::Types(_) => Ok(false),
            _ => Ok(true),
        }
    }

    /// Whether no member of this name can come any more.
    fn is_gone(&self, state: ObjectState, name: Name) -> bool {
        let spec = &self.specs[state.spec as usize];
        self.objects.seen[state.seen as usize].binary_search(&name).is_ok()
            || !self.languages.can_write(self.formulas.text_of(name))
            || self.options.property_order == PropertyOrder::Declared
                && spec.place.get(&name).is_some_and(|&place| place < state.place)
    }

    /// The usual residual: each name that must come stands for itself, beside bounds on their number. `None` if the
    /// residual is of another kind.
    fn wanted(&self, residual: Formula) -> Option<Wanted> {
        let items: Vec<Formula> = match self.formulas.node(residual) {
            Node::And(items) => items.to_vec(),
            _ => vec![residual],
        };
        let mut wanted = Wanted { members: Vec::new(), least: 0, most: u32::MAX };
        let mut places = FxMap::<Name, usize>::default();
        for item in items {
            match *self.formulas.node(item) {
                Node::True | Node::Declared(_) => {}
                Node::Member { keys: Keys::One(name), value } => {
                    let place = *places.entry(name).or_insert(wanted.members.len());
                    if place == wanted.members.len() {
                        wanted.members.push((name, Vec::new()));
                    }
                    wanted.members[place].1.push(value);
                }
                Node::Members(n) => wanted.least = wanted.least.max(n),
                Node::Not(inner) => match *self.formulas.node(inner) {
                    Node::Members(n) => wanted.most = wanted.most.min(n - 1),
                    _ => return None,
                },
                _ => return None,
            }
        }
        Some(wanted)
    }

    /// With the usual residual no search over orders is needed. `None` if the residual is of another kind.
    fn independent_members(&mut self, state: ObjectState) -> Result<Option<bool>, SchemaError> {
        let Some(wanted) = self.wanted(state.residual) else { return Ok(None) };
        let count = wanted.members.len() as u32;
        if count.max(wanted.least) > wanted.most {
            return Ok(Some(false));
        }
        for (name, values) in &wanted.members {
            if self.is_gone(state, *name) {
                return Ok(Some(false));
            }
            let value = self.member_value(state.spec, *name);
            let value = self.formulas.and(values.iter().copied().chain([value]));
            if !self.is_satisfiable(value)? {
                return Ok(Some(false));
            }
        }
        if wanted.least <= count {
            return Ok(Some(true));
        }
        // More members are wanted than are named: count the others that can be had.
        let mut have = count;
        for name in self.optional_names(state, &wanted) {
            if have >= wanted.least {
                break;
            }
            let value = self.member_value(state.spec, name);
            have += u32::from(self.is_satisfiable(value)?);
        }
        let spec = self.specs[state.spec as usize].clone();
        for class in &spec.classes {
            if have >= wanted.least {
                break;
            }
            let value = self.member_value(state.spec, class.example);
            if self.is_satisfiable(value)? {
                let left = self.minus_seen(class.names, state.seen);
                have = have.saturating_add(match class.size {
                    Some(_) => self.languages.as_texts(left).map_or(u32::MAX, |t| t.len() as u32),
                    None => self.languages.count_up_to(left, wanted.least)?,
                });
            }
        }
        Ok(Some(have >= wanted.least))
    }

    /// Names that are spoken of, may still come, and need not.
    fn optional_names(&self, state: ObjectState, wanted: &Wanted) -> Vec<Name> {
        let spec = &self.specs[state.spec as usize];
        let names = spec.order.iter().chain(&spec.others).copied();
        let is_wanted = |name: Name| wanted.members.iter().any(|&(other, _)| other == name);
        names.filter(|&name| !self.is_gone(state, name) && !is_wanted(name)).collect()
    }

    /// Members that complete an object that is known to have an example, in an order that is allowed. `None` if the
    /// residual is of another kind than the usual one.
    pub(crate) fn independent_example(
        &mut self,
        state: ObjectState,
    ) -> Result<Option<Vec<(Name, Formula)>>, SchemaError> {
        let Some(wanted) = self.wanted(state.residual) else { return Ok(None) };
        let mut members = Vec::with_capacity(wanted.members.len());
        for (name, values) in &wanted.members {
            let value = self.member_value(state.spec, *name);
            members.push((*name, self.formulas.and(values.iter().copied().chain([value]))));
        }
        let least = wanted.least as usize;
        for name in self.optional_names(state, &wanted) {
            let value = self.member_value(state.spec, name);
            if members.len() < least && self.is_satisfiable(value)? {
                members.push((name, value));
            }
        }
        let spec = self.specs[state.spec as usize].clone();
        for class in &spec.classes {
            let value = self.member_value(state.spec, class.example);
            let mut left = self.minus_seen(class.names, state.seen);
            while members.len() < least && self.is_satisfiable(value)? {
                let Some(text) = self.languages.example(left)? else { break };
                members.push((self.formulas.name(&text), value));
                let taken = self.languages.literal(&text);
                left = self.languages.difference(left, taken);
            }
        }
        members.sort_by_key(|(name, _)| spec.place.get(name).copied().unwrap_or(u32::MAX));
        Ok(Some(members))
    }
}
