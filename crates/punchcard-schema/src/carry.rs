//! States of one algebra in another that was made from the same schema.
//!
//! An algebra that texts have filled up is made anew, and what a text still needs is carried over: formulas, languages and
//! constants part by part, through the same stores that intern them. Places in the documents are the same in both.

use crate::algebra::Algebra;
use crate::array::ArrayState;
use crate::constant::{Const, Constant};
use crate::formula::{Formula, FxMap, Keys, Name, Node};
use crate::keywords::closed::{Role, Scope};
use crate::object::ObjectState;
use punchcard_automata::{Copies, Language};

/// What was carried over so far.
#[derive(Debug, Default)]
pub struct Carried {
    languages: Copies,
    formulas: FxMap<Formula, Formula>,
    constants: FxMap<Const, Const>,
    pub(crate) specs: FxMap<u32, u32>,
}

impl Carried {
    /// An estimate of the bytes on the heap.
    pub fn memory_size(&self) -> usize {
        self.languages.memory_size()
            + self.formulas.allocation_size()
            + self.constants.allocation_size()
            + self.specs.allocation_size()
    }
}

impl Algebra {
    /// Carries a language over.
    pub fn carry_language(&mut self, from: &Algebra, id: Language, carried: &mut Carried) -> Language {
        self.languages.copy_known(&from.languages, id, &mut carried.languages)
    }

    /// Carries a formula over.
    pub fn carry_formula(&mut self, from: &Algebra, f: Formula, carried: &mut Carried) -> Formula {
        if f == Formula::FALSE || f == Formula::TRUE {
            return f;
        }
        if let Some(&known) = carried.formulas.get(&f) {
            return known;
        }
        let copy = stacker::maybe_grow(64 << 10, 1 << 20, || self.carry_node(from, f, carried));
        carried.formulas.insert(f, copy);
        copy
    }

    fn carry_node(&mut self, from: &Algebra, f: Formula, carried: &mut Carried) -> Formula {
        let mut all = |a: &mut Self, items: &[Formula]| -> Vec<Formula> {
            items.iter().map(|&item| a.carry_formula(from, item, carried)).collect()
        };
        let node = match from.formulas.node(f) {
            node @ (Node::False | Node::True | Node::Types(_) | Node::Number(_) | Node::Members(_)) => node.clone(),
            Node::And(items) => {
                let items = all(self, items);
                return self.formulas.and(items);
            }
            Node::Or(items) => {
                let items = all(self, items);
                return self.formulas.or(items);
            }
            Node::One(items) => {
                let items = all(self, items);
                return self.formulas.one(items);
            }
            &Node::Not(inner) => {
                let inner = self.carry_formula(from, inner, carried);
                return self.formulas.not(inner);
            }
            &Node::Text(language) => Node::Text(self.carry_language(from, language, carried)),
            &Node::Member { keys, value } => {
                let keys = match keys {
                    Keys::One(name) => Keys::One(self.carry_name(from, name)),
                    Keys::In(names) => Keys::In(self.carry_language(from, names, carried)),
                };
                Node::Member { keys, value: self.carry_formula(from, value, carried) }
            }
            &Node::Item { from: first, to, value, count } => {
                Node::Item { from: first, to, value: self.carry_formula(from, value, carried), count }
            }
            Node::Among(t, list) => Node::Among(*t, self.carry_constants(from, list, carried)),
            Node::Repeats(list) => Node::Repeats(self.carry_constants(from, list, carried)),
            &Node::Declared(order) => {
                let names = from.formulas.order(order).iter().map(|&name| self.carry_name(from, name)).collect();
                return self.formulas.declared(names);
            }
            Node::OneOf(items) => {
                let wholes = all(self, &items.iter().map(|&(whole, _)| whole).collect::<Vec<_>>());
                let parts = all(self, &items.iter().map(|&(_, part)| part).collect::<Vec<_>>());
                return self.formulas.one_of(wholes.into_iter().zip(parts).collect());
            }
            &Node::Schema { at, scope } => {
                let dynamic = self.registry.scopes.carry(&from.registry.scopes, scope.dynamic);
                let role = match scope.role {
                    Role::Whole(list) => Role::Whole(self.carry_declared(from, list, carried)),
                    role => role,
                };
                Node::Schema { at, scope: Scope { dynamic, role } }
            }
        };
        self.formulas.intern(node)
    }

    pub(crate) fn carry_name(&mut self, from: &Algebra, name: Name) -> Name {
        self.formulas.name(from.formulas.text_of(name))
    }

    fn carry_constants(&mut self, from: &Algebra, list: &[Const], carried: &mut Carried) -> Box<[Const]> {
        let mut list: Vec<Const> = list.iter().map(|&constant| self.carry_constant(from, constant, carried)).collect();
        list.sort_unstable();
        list.into()
    }

    fn carry_constant(&mut self, from: &Algebra, id: Const, carried: &mut Carried) -> Const {
        if let Some(&known) = carried.constants.get(&id) {
            return known;
        }
        let copy = stacker::maybe_grow(64 << 10, 1 << 20, || match from.constants.get(id) {
            Constant::EmptyArray => Const::EMPTY_ARRAY,
            Constant::Items(..) => {
                // The spine is as long as an array.
                let (mut items, mut at) = (Vec::new(), id);
                while let Some((first, rest)) = from.constants.first_item(at) {
                    items.push(self.carry_constant(from, first, carried));
                    at = rest;
                }
                let rests = items.into_iter().rev();
                rests.fold(Const::EMPTY_ARRAY, |rest, item| self.constants.intern(Constant::Items(item, rest)))
            }
            Constant::Object(members) => {
                let carry = |&(name, value): &(Name, Const)| {
                    let value = self.carry_constant(from, value, carried);
                    (self.carry_name(from, name), value)
                };
                let mut members: Vec<(Name, Const)> = members.iter().map(carry).collect();
                let order = from.constants.order(id).iter().map(|&name| self.carry_name(from, name));
                let place: FxMap<Name, usize> = order.enumerate().map(|(place, name)| (name, place)).collect();
                if place.len() == members.len() {
                    members.sort_by_key(|(name, _)| place.get(name).copied());
                    self.constants.object(members)
                } else {
                    members.sort_unstable();
                    self.constants.intern(Constant::Object(members.into()))
                }
            }
            other => self.constants.intern(other.clone()),
        });
        carried.constants.insert(id, copy);
        copy
    }

    /// Carries the state of an array over.
    pub fn carry_array(&mut self, from: &Algebra, state: ArrayState, carried: &mut Carried) -> ArrayState {
        ArrayState { residual: self.carry_formula(from, state.residual, carried), ..state }
    }

    /// Carries the state of an object over.
    pub fn carry_object(&mut self, from: &Algebra, state: ObjectState, carried: &mut Carried) -> ObjectState {
        let residual = self.carry_formula(from, state.residual(), carried);
        let spec = self.carry_spec(from, state, carried);
        self.carry_seen(from, state, spec).with_residual(residual)
    }
}
