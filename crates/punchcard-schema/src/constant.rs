//! JSON values as constants of formulas, interned: equal values (numbers by value, members without order) are equal ids.
//!
//! Arrays are lists from the front, so that the rest of one after its first item is a constant as well; so is an object
//! without one of its members. That is how "equal to one of these values" is followed item by item.

use crate::algebra::Algebra;
use crate::formula::{Formula, FxMap, Name, NumberAtom, Type, Types};
use crate::json::{Value, ValueId};
use punchcard_automata::Decimal;

/// The id of a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Const(u32);

impl Const {
    /// `[]`
    pub(crate) const EMPTY_ARRAY: Const = Const(0);
    /// `{}`
    pub(crate) const EMPTY_OBJECT: Const = Const(1);
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Constant {
    Null,
    Bool(bool),
    Number(Decimal),
    /// A number far beyond those of the schema. No formula speaks of it; see `array_after_item`.
    Far(u128),
    Text(Box<str>),
    EmptyArray,
    /// An array: its first item, and the rest.
    Items(Const, Const),
    /// Sorted by name.
    Object(Box<[(Name, Const)]>),
}

/// The store of constants.
#[derive(Debug)]
pub(crate) struct Constants {
    nodes: Vec<Constant>,
    ids: FxMap<Constant, Const>,
    /// The members of objects as their text had them.
    orders: FxMap<Const, Box<[Name]>>,
    /// Bytes of what the lists and tables point to.
    heap: usize,
}

impl Default for Constants {
    fn default() -> Self {
        let mut store = Constants { nodes: Vec::new(), ids: FxMap::default(), orders: FxMap::default(), heap: 0 };
        store.intern(Constant::EmptyArray);
        store.intern(Constant::Object(Box::new([])));
        store
    }
}

impl Constants {
    pub(crate) fn get(&self, id: Const) -> &Constant {
        &self.nodes[id.0 as usize]
    }

    pub(crate) fn intern(&mut self, node: Constant) -> Const {
        if let Some(&id) = self.ids.get(&node) {
            return id;
        }
        let id = Const(self.nodes.len() as u32);
        // Each is held by the list of nodes and by the table of their ids.
        self.heap += 2 * match &node {
            Constant::Text(text) => 16 + text.len(),
            Constant::Object(members) => 16 + size_of_val(&**members),
            Constant::Number(_) => 32,
            _ => 0,
        };
        self.ids.insert(node.clone(), id);
        self.nodes.push(node);
        id
    }

    /// Interns an object, given in the order of its text.
    pub(crate) fn object(&mut self, mut members: Vec<(Name, Const)>) -> Const {
        let order: Box<[Name]> = members.iter().map(|m| m.0).collect();
        members.sort_unstable();
        let id = self.intern(Constant::Object(members.into()));
        self.heap += 4 * order.len();
        self.orders.entry(id).or_insert(order);
        id
    }

    /// The names of an object's members, in the order in which it was first written.
    pub(crate) fn order(&self, id: Const) -> &[Name] {
        self.orders.get(&id).map_or(&[], |order| order)
    }

    pub(crate) fn memory_size(&self) -> usize {
        let nodes = self.nodes.capacity() * size_of::<Constant>();
        nodes + self.ids.allocation_size() + self.orders.allocation_size() + self.heap
    }

    /// The first item of an array and the rest; `None` of an empty one.
    pub(crate) fn first_item(&self, id: Const) -> Option<(Const, Const)> {
        match self.get(id) {
            &Constant::Items(first, rest) => Some((first, rest)),
            _ => None,
        }
    }

    /// The members of an object.
    pub(crate) fn members(&self, id: Const) -> &[(Name, Const)] {
        match self.get(id) {
            Constant::Object(members) => members,
            _ => &[],
        }
    }

    /// The value of a member, and the object without it; `None` if there is no such member.
    pub(crate) fn take_member(&mut self, id: Const, name: Name) -> Option<(Const, Const)> {
        let members = self.members(id);
        let at = members.binary_search_by_key(&name, |&(n, _)| n).ok()?;
        let value = members[at].1;
        let rest: Box<[(Name, Const)]> = [&members[..at], &members[at + 1..]].concat().into();
        Some((value, self.intern(Constant::Object(rest))))
    }
}

impl Algebra {
    /// Interns a JSON value.
    pub(crate) fn constant(&mut self, value: ValueId) -> Const {
        let node = match self.json.get(value) {
            Value::Null => Constant::Null,
            Value::Bool(b) => Constant::Bool(*b),
            Value::Number(n) => Constant::Number(n.clone()),
            Value::Far(digest) => Constant::Far(*digest),
            Value::String(text) => Constant::Text(text.clone()),
            Value::Array(items) => {
                let items = items.clone();
                return items.iter().rev().fold(Const::EMPTY_ARRAY, |rest, &item| {
                    let item = stacker::maybe_grow(32 << 10, 1 << 20, || self.constant(item));
                    self.constants.intern(Constant::Items(item, rest))
                });
            }
            Value::Object(members) => {
                let members = members.clone();
                let mut list = Vec::with_capacity(members.len());
                for (name, member) in members.iter() {
                    let member = stacker::maybe_grow(32 << 10, 1 << 20, || self.constant(*member));
                    list.push((self.formulas.name(name), member));
                }
                return self.constants.object(list);
            }
        };
        self.constants.intern(node)
    }

    /// The values that are equal to one of the constants.
    pub(crate) fn equal_to(&mut self, constants: &[Const]) -> Formula {
        let mut texts: Vec<&str> = Vec::new();
        let mut parts = Vec::new();
        let (mut arrays, mut objects) = (Vec::new(), Vec::new());
        for &constant in constants {
            match self.constants.get(constant) {
                Constant::Null => parts.push(self.formulas.types(Types::only(Type::Null))),
                Constant::Bool(b) => {
                    let t = if *b { Type::True } else { Type::False };
                    parts.push(self.formulas.types(Types::only(t)));
                }
                Constant::Number(n) => parts.push(self.formulas.number(NumberAtom::Equal(n.clone()))),
                Constant::Far(_) => {}
                Constant::Text(text) => texts.push(text),
                Constant::EmptyArray | Constant::Items(..) => arrays.push(constant),
                Constant::Object(_) => objects.push(constant),
            }
        }
        // All strings together are one language: a trie instead of an alternative each.
        if !texts.is_empty() {
            let texts = self.languages.texts(texts);
            parts.push(self.formulas.text(texts));
        }
        parts.push(self.formulas.among(Type::Array, arrays));
        parts.push(self.formulas.among(Type::Object, objects));
        self.formulas.or(parts)
    }
}
