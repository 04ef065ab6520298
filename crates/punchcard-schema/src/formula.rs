//! Formulas: schemas as elements of a Boolean algebra of sets of JSON values.
//!
//! A formula is hash-consed; equal ids are equal formulas. Each atom implies a type: `Text(L)` is "a string in L", so that
//! a keyword, which says nothing of other types, is "not of that type, or the atom". Universal statements are negated
//! existential ones: `properties: {p: S}` is "no member p has a value outside S". So negation needs no atoms of its own,
//! and it is pushed inward when a formula is built; it stops at atoms and at schemas that are not resolved yet.

use crate::constant::Const;
use crate::json::ValueId;
use crate::keywords::closed::Scope;
use hashbrown::HashMap;
use punchcard_automata::{Decimal, Language, work};
use rustc_hash::FxBuildHasher;

pub(crate) type FxMap<K, V> = HashMap<K, V, FxBuildHasher>;

/// A formula: the id of a node in [`Formulas`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Formula(pub(crate) u32);

impl Formula {
    /// No value.
    pub const FALSE: Formula = Formula(0);
    /// Every value.
    pub const TRUE: Formula = Formula(1);
}

/// An interned member name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(pub(crate) u32);

/// One of the types that the first byte of a value tells; booleans count as two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Type {
    /// `null`
    Null = 0,
    /// `false`
    False = 1,
    /// `true`
    True = 2,
    /// A number.
    Number = 3,
    /// A string.
    String = 4,
    /// An array.
    Array = 5,
    /// An object.
    Object = 6,
}

impl Type {
    /// All types.
    pub const ALL: [Type; 7] =
        [Type::Null, Type::False, Type::True, Type::Number, Type::String, Type::Array, Type::Object];
}

/// A set of types, as bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Types(pub u8);

impl Types {
    /// Every type.
    pub const ANY: Types = Types(0x7F);

    /// The set of one type.
    pub fn only(t: Type) -> Types {
        Types(1 << t as u8)
    }

    /// Whether the type is in the set.
    pub fn has(self, t: Type) -> bool {
        self.0 >> (t as u8) & 1 == 1
    }

    /// All other types.
    pub fn complement(self) -> Types {
        Types(!self.0 & Types::ANY.0)
    }
}

/// Which members an atom is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Keys {
    One(Name),
    In(Language),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum NumberAtom {
    Above(Decimal),
    Below(Decimal),
    Equal(Decimal),
    Multiple(Decimal),
    /// Spelled without fraction and exponent, which is what draft 4 calls an integer.
    Spelled,
}

/// No upper end of a range of array positions.
pub(crate) const NO_END: u32 = u32::MAX;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Node {
    False,
    True,
    /// Sorted, at least two.
    And(Box<[Formula]>),
    /// Sorted, at least two.
    Or(Box<[Formula]>),
    /// Exactly one of several; resolved when it is restricted to a type, where most alternatives fall away.
    One(Box<[Formula]>),
    /// Exactly one of several holds, and so does what stands beside it, which is a part of it.
    OneOf(Box<[(Formula, Formula)]>),
    /// Of an atom, a schema, `One` or `OneOf`.
    Not(Formula),
    Types(Types),
    /// A string in the language.
    Text(Language),
    Number(NumberAtom),
    /// An object with a member whose name is in `keys` and whose value is in `value`.
    Member {
        keys: Keys,
        value: Formula,
    },
    /// An object with at least so many members.
    Members(u32),
    /// An array with at least `count` items in `value` among positions `from..to`.
    Item {
        from: u32,
        to: u32,
        value: Formula,
        count: u32,
    },
    /// An array or object (the type says which) that is equal to one of the constants, which are sorted.
    Among(Type, Box<[Const]>),
    /// An array with two equal items, or with one that is equal to one of the constants, which are sorted.
    Repeats(Box<[Const]>),
    /// True of every object; remembers the order in which a schema declares its properties.
    Declared(u32),
    /// A schema at a place in a document; `scope` says in which context it was reached.
    Schema {
        at: ValueId,
        scope: Scope,
    },
}

impl Node {
    /// The type that an atom implies; `None` for everything that is no atom of one type.
    pub(crate) fn atom_type(&self) -> Option<Type> {
        match self {
            Node::Text(_) => Some(Type::String),
            Node::Number(_) => Some(Type::Number),
            Node::Member { .. } | Node::Members(_) | Node::Declared(_) => Some(Type::Object),
            Node::Item { .. } | Node::Repeats(_) => Some(Type::Array),
            Node::Among(t, _) => Some(*t),
            _ => None,
        }
    }
}

/// The store of formulas.
#[derive(Debug)]
pub struct Formulas {
    nodes: Vec<Node>,
    /// Of residuals: whether they hold if nothing more comes.
    holds_at_end: Vec<bool>,
    ids: FxMap<Node, Formula>,
    /// Of conjunctions and disjunctions, whose parts may be shared.
    complements: FxMap<Formula, Formula>,
    names: Vec<Box<str>>,
    name_ids: FxMap<Box<str>, Name>,
    orders: Vec<Box<[Name]>>,
    order_ids: FxMap<Box<[Name]>, u32>,
    /// Bytes of what the lists and tables point to.
    heap: usize,
}

impl Default for Formulas {
    fn default() -> Self {
        let mut store = Formulas {
            nodes: Vec::new(),
            holds_at_end: Vec::new(),
            ids: FxMap::default(),
            complements: FxMap::default(),
            names: Vec::new(),
            name_ids: FxMap::default(),
            orders: Vec::new(),
            order_ids: FxMap::default(),
            heap: 0,
        };
        store.intern(Node::False);
        store.intern(Node::True);
        store
    }
}

impl Formulas {
    pub(crate) fn node(&self, id: Formula) -> &Node {
        &self.nodes[id.0 as usize]
    }

    /// How many formulas the store holds.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// How many parts they have in all: what tests measure work by.
    #[cfg(test)]
    pub(crate) fn size(&self) -> usize {
        let parts = |node: &Node| match node {
            Node::And(items) | Node::Or(items) | Node::One(items) => items.len(),
            Node::Among(_, list) => list.len(),
            _ => 1,
        };
        self.nodes.iter().map(parts).sum()
    }

    /// Never: the constants are always there.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// An estimate of the bytes on the heap.
    pub fn memory_size(&self) -> usize {
        let tables = self.ids.allocation_size()
            + self.complements.allocation_size()
            + self.name_ids.allocation_size()
            + self.order_ids.allocation_size();
        let lists = self.nodes.capacity() * (size_of::<Node>() + 1) + self.names.capacity() * size_of::<Box<str>>();
        lists + tables + self.heap
    }

    pub(crate) fn intern(&mut self, node: Node) -> Formula {
        if let Some(&id) = self.ids.get(&node) {
            return id;
        }
        let id = Formula(self.nodes.len() as u32);
        let holds = match &node {
            Node::True | Node::Declared(_) => true,
            Node::And(items) => items.iter().all(|&i| self.holds_at_end(i)),
            Node::Or(items) => items.iter().any(|&i| self.holds_at_end(i)),
            Node::Not(inner) => !self.holds_at_end(*inner),
            Node::Among(_, list) => list.contains(&Const::EMPTY_ARRAY) || list.contains(&Const::EMPTY_OBJECT),
            _ => false,
        };
        // Each is held by the list of nodes and by the table of their ids.
        self.heap += 2 * match &node {
            Node::And(items) | Node::Or(items) | Node::One(items) => size_of_val(&**items),
            Node::Among(_, list) | Node::Repeats(list) => size_of_val(&**list),
            Node::Number(_) => 32,
            _ => 0,
        };
        self.holds_at_end.push(holds);
        self.ids.insert(node.clone(), id);
        self.nodes.push(node);
        id
    }

    /// The formula of a node, if there is one.
    pub(crate) fn known(&self, node: &Node) -> Option<Formula> {
        self.ids.get(node).copied()
    }

    /// The schemas of a formula that speak of the same value; each once.
    pub(crate) fn schemas_of(&self, f: Formula) -> Vec<Formula> {
        let (mut schemas, mut todo, mut seen) = (Vec::new(), vec![f], FxMap::default());
        while let Some(f) = todo.pop() {
            match self.node(f) {
                Node::Schema { .. } => schemas.push(f),
                &Node::Not(inner) => todo.push(inner),
                Node::And(items) | Node::Or(items) | Node::One(items) if seen.insert(f, ()).is_none() => {
                    todo.extend_from_slice(items);
                }
                Node::OneOf(items) if seen.insert(f, ()).is_none() => {
                    todo.extend(items.iter().flat_map(|&(whole, part)| [whole, part]));
                }
                _ => {}
            }
        }
        schemas.sort_unstable();
        schemas.dedup();
        schemas
    }

    /// Whether the residual of an object or array holds if no member or item is left to come.
    pub(crate) fn holds_at_end(&self, f: Formula) -> bool {
        self.holds_at_end[f.0 as usize]
    }

    pub(crate) fn name(&mut self, text: &str) -> Name {
        if let Some(&name) = self.name_ids.get(text) {
            return name;
        }
        let name = Name(self.names.len() as u32);
        self.names.push(text.into());
        self.heap += 2 * (16 + text.len());
        self.name_ids.insert(text.into(), name);
        name
    }

    pub(crate) fn text_of(&self, name: Name) -> &str {
        &self.names[name.0 as usize]
    }

    pub(crate) fn declared(&mut self, names: Vec<Name>) -> Formula {
        let names: Box<[Name]> = names.into();
        let id = match self.order_ids.get(&names) {
            Some(&id) => id,
            None => {
                let id = self.orders.len() as u32;
                self.orders.push(names.clone());
                self.heap += 2 * (16 + size_of_val(&*names));
                self.order_ids.insert(names, id);
                id
            }
        };
        self.intern(Node::Declared(id))
    }

    pub(crate) fn order(&self, id: u32) -> &[Name] {
        &self.orders[id as usize]
    }

    pub(crate) fn types(&mut self, types: Types) -> Formula {
        match types.0 & Types::ANY.0 {
            0 => Formula::FALSE,
            bits if bits == Types::ANY.0 => Formula::TRUE,
            bits => self.intern(Node::Types(Types(bits))),
        }
    }

    pub(crate) fn and(&mut self, items: impl IntoIterator<Item = Formula>) -> Formula {
        self.combine(items, true)
    }

    pub(crate) fn or(&mut self, items: impl IntoIterator<Item = Formula>) -> Formula {
        self.combine(items, false)
    }

    fn combine(&mut self, items: impl IntoIterator<Item = Formula>, all: bool) -> Formula {
        let (neutral, absorbing) = if all { (Formula::TRUE, Formula::FALSE) } else { (Formula::FALSE, Formula::TRUE) };
        let mut list = Vec::new();
        let mut types: Option<Types> = None;
        for item in items {
            if item == absorbing {
                return absorbing;
            }
            match self.node(item) {
                Node::And(inner) if all => list.extend_from_slice(inner),
                Node::Or(inner) if !all => list.extend_from_slice(inner),
                _ if item == neutral => {}
                _ => list.push(item),
            }
        }
        list.retain(|&i| match self.nodes[i.0 as usize] {
            Node::Types(t) => {
                types = Some(match types {
                    Some(u) if all => Types(t.0 & u.0),
                    Some(u) => Types(t.0 | u.0),
                    None => t,
                });
                false
            }
            _ => true,
        });
        if list.iter().any(|&i| self.constants_of(i).is_some()) {
            self.merge_constants(&mut list, all);
            if list.contains(&absorbing) {
                return absorbing;
            }
            list.retain(|&i| i != neutral);
        }
        if let Some(t) = types {
            let t = self.types(t);
            if t == absorbing {
                return absorbing;
            }
            if t != neutral {
                list.push(t);
            }
        }
        work::count(1 + list.len() as u64);
        list.sort_unstable();
        list.dedup();
        // x and not x, x or not x.
        if list.iter().any(|&i| matches!(self.node(i), Node::Not(inner) if list.binary_search(inner).is_ok())) {
            return absorbing;
        }
        if let Some(simpler) = self.absorb(&list, all) {
            return self.combine(simpler, all);
        }
        match list.as_slice() {
            [] => neutral,
            [one] => *one,
            _ if all => self.intern(Node::And(list.into())),
            _ => self.intern(Node::Or(list.into())),
        }
    }

    /// `x and (x or y)` is `x`, `x and (not x or y)` is `x and y`, and likewise with "and" and "or" exchanged. `None` if
    /// nothing of the kind is in the sorted list.
    fn absorb(&mut self, list: &[Formula], all: bool) -> Option<Vec<Formula>> {
        let holds = |f: &Formula| list.binary_search(f).is_ok();
        let is_decided = |f: &Formula| holds(f) || self.denial(*f).is_some_and(|denial| holds(&denial));
        if !list.iter().any(|&item| self.parts(item).iter().any(is_decided)) {
            return None;
        }
        // What makes one item simpler may make others simpler in turn: each is looked at again only for what it holds.
        let mut held: FxMap<Formula, ()> = list.iter().map(|&item| (item, ())).collect();
        let mut within: FxMap<Formula, Vec<Formula>> = FxMap::default();
        for &item in list {
            self.parts(item).iter().for_each(|&part| within.entry(part).or_default().push(item));
        }
        let mut todo = list.to_vec();
        while let Some(f) = todo.pop() {
            if !held.contains_key(&f) {
                continue;
            }
            within.get(&f).into_iter().flatten().for_each(|item| {
                held.remove(item);
            });
            let denied = self.denial(f).and_then(|denial| within.remove(&denial)).unwrap_or_default();
            for item in denied.into_iter().filter(|&item| item != f) {
                if held.remove(&item).is_none() {
                    continue;
                }
                let is_left = |f: &Formula| !self.denial(*f).is_some_and(|denial| held.contains_key(&denial));
                let rest: Vec<Formula> = self.parts(item).iter().copied().filter(is_left).collect();
                let rest = self.combine(rest, !all);
                let rests = match self.node(rest) {
                    Node::And(items) if all => items.to_vec(),
                    Node::Or(items) if !all => items.to_vec(),
                    _ => vec![rest],
                };
                for rest in rests {
                    let parts = self.parts(rest);
                    if parts.iter().any(|part| held.contains_key(part)) || held.insert(rest, ()).is_some() {
                        continue;
                    }
                    parts.iter().for_each(|&part| within.entry(part).or_default().push(rest));
                    todo.push(rest);
                }
            }
        }
        Some(held.into_keys().collect())
    }

    /// The parts of an "or" within an "and", or the other way round.
    pub(crate) fn parts(&self, f: Formula) -> &[Formula] {
        match self.node(f) {
            Node::Or(parts) | Node::And(parts) => parts,
            _ => &[],
        }
    }

    /// The complement of an atom, if there is such a formula.
    fn denial(&self, f: Formula) -> Option<Formula> {
        match self.node(f) {
            Node::Not(inner) => Some(*inner),
            _ => self.ids.get(&Node::Not(f)).copied(),
        }
    }

    /// The constants of `Among` (`true`) or of its negation.
    fn constants_of(&self, f: Formula) -> Option<(bool, Type, &[Const])> {
        match self.node(f) {
            Node::Among(t, list) => Some((true, *t, list)),
            Node::Not(inner) => match self.node(*inner) {
                Node::Among(t, list) => Some((false, *t, list)),
                _ => None,
            },
            _ => None,
        }
    }

    /// Makes one of all statements about constants of one type: the sets are intersected, united and subtracted.
    fn merge_constants(&mut self, list: &mut Vec<Formula>, all: bool) {
        for t in [Type::Array, Type::Object] {
            let mut sets: [Option<Vec<Const>>; 2] = [None, None];
            for &item in list.iter() {
                let Some((among, _, more)) = self.constants_of(item).filter(|&(_, u, _)| u == t) else { continue };
                match &mut sets[usize::from(among)] {
                    set @ None => *set = Some(more.to_vec()),
                    // In "and", being among two sets is being among what they share; not being among them, among neither.
                    Some(set) if among == all => set.retain(|c| more.binary_search(c).is_ok()),
                    Some(set) => set.extend_from_slice(more),
                }
            }
            for set in sets.iter_mut().flatten() {
                set.sort_unstable();
                set.dedup();
            }
            let merged = match sets {
                [None, None] => continue,
                [Some(out), Some(mut among)] if all => {
                    among.retain(|c| out.binary_search(c).is_err());
                    self.among(t, among)
                }
                [Some(mut out), Some(among)] => {
                    out.retain(|c| among.binary_search(c).is_err());
                    let out = self.among(t, out);
                    self.not(out)
                }
                [None, Some(among)] => self.among(t, among),
                [Some(out), None] => {
                    let out = self.among(t, out);
                    self.not(out)
                }
            };
            list.retain(|&i| self.constants_of(i).is_none_or(|(_, u, _)| u != t));
            list.push(merged);
        }
    }

    /// Arrays or objects that are equal to one of the constants.
    pub(crate) fn among(&mut self, t: Type, mut constants: Vec<Const>) -> Formula {
        if constants.is_empty() {
            return Formula::FALSE;
        }
        constants.sort_unstable();
        constants.dedup();
        self.intern(Node::Among(t, constants.into()))
    }

    /// Values in exactly one of the formulas.
    pub(crate) fn one(&mut self, items: Vec<Formula>) -> Formula {
        let sure = items.iter().filter(|&&i| i == Formula::TRUE).count();
        let items: Vec<Formula> = items.into_iter().filter(|&i| i != Formula::FALSE && i != Formula::TRUE).collect();
        match (sure, items.as_slice()) {
            (0, []) => Formula::FALSE,
            (0, [one]) => *one,
            (0, _) => self.intern(Node::One(items.into())),
            (1, _) => {
                let none: Vec<Formula> = items.iter().map(|&i| self.not(i)).collect();
                self.and(none)
            }
            _ => Formula::FALSE,
        }
    }

    /// Values in exactly one of the formulas, and in what stands beside it, which is a part of it.
    pub(crate) fn one_of(&mut self, items: Vec<(Formula, Formula)>) -> Formula {
        if items.iter().any(|&(whole, part)| whole == Formula::TRUE && part != Formula::TRUE) {
            let one = self.one(items.iter().map(|&(whole, _)| whole).collect());
            let part = self.or(items.into_iter().map(|(_, part)| part));
            return self.and([one, part]);
        }
        if items.iter().all(|&(whole, part)| whole == part) {
            return self.one(items.into_iter().map(|(whole, _)| whole).collect());
        }
        let items: Vec<_> = items.into_iter().filter(|&(whole, _)| whole != Formula::FALSE).collect();
        match items.as_slice() {
            [(_, part)] => *part,
            _ => self.intern(Node::OneOf(items.into())),
        }
    }

    pub(crate) fn not(&mut self, f: Formula) -> Formula {
        match self.node(f) {
            Node::False => Formula::TRUE,
            Node::True => Formula::FALSE,
            Node::Not(inner) => *inner,
            Node::Types(t) => {
                let t = t.complement();
                self.types(t)
            }
            Node::And(items) | Node::Or(items) => {
                if let Some(&known) = self.complements.get(&f) {
                    return known;
                }
                let all = matches!(self.node(f), Node::And(_));
                let items = items.clone();
                let parts: Vec<Formula> =
                    stacker::maybe_grow(32 << 10, 1 << 20, || items.iter().map(|&i| self.not(i)).collect());
                let complement = self.combine(parts, !all);
                self.complements.insert(f, complement);
                complement
            }
            // The order of the declaration is no statement about values: "not an object" is what is left.
            Node::Declared(_) => self.types(Types::only(Type::Object).complement()),
            _ => self.intern(Node::Not(f)),
        }
    }

    /// Not of type `t`, or in `f`: what a keyword about one type says.
    pub(crate) fn if_type(&mut self, t: Type, f: Formula) -> Formula {
        let other = self.types(Types::only(t).complement());
        self.or([other, f])
    }

    pub(crate) fn number(&mut self, atom: NumberAtom) -> Formula {
        self.intern(Node::Number(atom))
    }

    pub(crate) fn text(&mut self, language: Language) -> Formula {
        match language {
            Language::EMPTY => Formula::FALSE,
            Language::ALL => self.types(Types::only(Type::String)),
            _ => self.intern(Node::Text(language)),
        }
    }

    pub(crate) fn member(&mut self, keys: Keys, value: Formula) -> Formula {
        if value == Formula::FALSE || keys == Keys::In(Language::EMPTY) {
            return Formula::FALSE;
        }
        self.intern(Node::Member { keys, value })
    }

    pub(crate) fn members(&mut self, count: u32) -> Formula {
        if count == 0 { self.types(Types::only(Type::Object)) } else { self.intern(Node::Members(count)) }
    }

    pub(crate) fn item(&mut self, from: u32, to: u32, value: Formula, count: u32) -> Formula {
        if count == 0 {
            return self.types(Types::only(Type::Array));
        }
        if value == Formula::FALSE || from >= to || (to != NO_END && count > to - from) {
            return Formula::FALSE;
        }
        self.intern(Node::Item { from, to, value, count })
    }
}
