//! JSON values as constants of formulas, interned: equal values (numbers by value, members without order) are equal ids.
//!
//! Arrays are lists from the front, so that the rest of one after its first item is a constant as well; so is an object
//! without one of its members. That is how "equal to one of these values" is followed item by item.

use crate::formula::{FxMap, Name};
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
}

impl Default for Constants {
    fn default() -> Self {
        let mut store = Constants { nodes: Vec::new(), ids: FxMap::default(), orders: FxMap::default() };
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
        self.ids.insert(node.clone(), id);
        self.nodes.push(node);
        id
    }

    /// Interns an object, given in the order of its text.
    pub(crate) fn object(&mut self, mut members: Vec<(Name, Const)>) -> Const {
        let order: Box<[Name]> = members.iter().map(|m| m.0).collect();
        members.sort_unstable();
        let id = self.intern(Constant::Object(members.into()));
        self.orders.entry(id).or_insert(order);
        id
    }

    /// The names of an object's members, in the order in which it was first written.
    pub(crate) fn order(&self, id: Const) -> &[Name] {
        self.orders.get(&id).map_or(&[], |order| order)
    }

    pub(crate) fn memory_size(&self) -> usize {
        self.nodes.len() * 112
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
