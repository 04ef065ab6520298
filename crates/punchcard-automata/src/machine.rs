//! Machines: languages that a few lines of code describe better than any expression.
//!
//! Some texts are checked by arithmetic or by a stack: a host label that must be Punycode, a leap second whose offset
//! leads back to 23:59 UTC, brackets that nest. A [`Machine`] says what each character does to a state, the state is a
//! short string of bytes, and [`Languages::machine`] makes an expression of it, which goes into unions, intersections
//! and complements like any other. States are built when a text reaches them, so there may be infinitely many.
//!
//! The price: nothing is known of a machine but its steps, so an intersection with one is searched state by state. Where
//! such a search grows, machines are first taken for any run of the characters that they [may still
//! read](Machine::reads): if even so there is no text, there is none. Keep states few (texts with the same future should be
//! the same bytes) and prefer an expression where one stays readable.
//!
//! ```
//! use punchcard_automata::{Alphabet, CharSet, Languages, Machine};
//! use std::sync::Arc;
//!
//! /// Balanced parentheses: the state is how many are open.
//! #[derive(Debug)]
//! struct Balanced(Alphabet);
//!
//! impl Machine for Balanced {
//!     fn name(&self) -> &'static str {
//!         "balanced parentheses"
//!     }
//!     fn alphabet(&self, _state: &[u8]) -> &Alphabet {
//!         &self.0
//!     }
//!     fn start(&self) -> Box<[u8]> {
//!         [0].into()
//!     }
//!     fn step(&self, state: &[u8], c: char) -> Option<Box<[u8]>> {
//!         match c {
//!             '(' => Some([state[0].checked_add(1)?].into()),
//!             ')' => Some([state[0].checked_sub(1)?].into()),
//!             _ => None,
//!         }
//!     }
//!     fn accepts(&self, state: &[u8]) -> bool {
//!         state[0] == 0
//!     }
//!     fn least(&self, state: &[u8]) -> u32 {
//!         state[0].into()
//!     }
//! }
//!
//! let mut languages = Languages::new();
//! let machine = Balanced(Alphabet::new(&[CharSet::single('('), CharSet::single(')')]));
//! let balanced = languages.machine(Arc::new(machine));
//! assert!(languages.matches(balanced, "(()())") && !languages.matches(balanced, "(()"));
//! ```

use crate::alphabet::Alphabet;
use crate::charset::CharSet;
use crate::languages::{FxMap, Language, Languages, Look, Node, UNBOUNDED};
use rustc_hash::FxBuildHasher;
use std::fmt::Debug;
use std::hash::BuildHasher;
use std::sync::Arc;

/// A deterministic automaton whose states are strings of bytes.
///
/// Equal states must have equal futures, and **every state that [`step`](Machine::step) returns must lead to some text**:
/// that is how an expression with machines is known not to be a dead end without a search.
pub trait Machine: Debug + Send + Sync {
    /// A name of its own: two machines of one name are taken for the same.
    fn name(&self) -> &str;

    /// The classes of characters that a state tells apart: those of one class lead from it to the same state.
    fn alphabet(&self, state: &[u8]) -> &Alphabet;

    /// The state before the first character.
    fn start(&self) -> Box<[u8]>;

    /// The state after one more character, or `None` if no text goes on like this.
    fn step(&self, state: &[u8], c: char) -> Option<Box<[u8]>>;

    /// Whether a text may end here.
    fn accepts(&self, state: &[u8]) -> bool;

    /// Characters of which every rest of a text is made.
    fn reads(&self, _state: &[u8]) -> CharSet {
        CharSet::any()
    }

    /// At least so many characters are still to come (a lower bound).
    fn least(&self, state: &[u8]) -> u32 {
        u32::from(!self.accepts(state))
    }

    /// The next character on some short way to the end, if the machine knows one: searches try it first.
    fn way(&self, _state: &[u8]) -> Option<char> {
        None
    }

    /// At most so many characters are still to come (an upper bound; `u32::MAX` if there is none).
    fn most(&self, _state: &[u8]) -> u32 {
        u32::MAX
    }
}

impl Languages {
    /// The texts that a machine accepts.
    pub fn machine(&mut self, machine: Arc<dyn Machine>) -> Language {
        let start = machine.start();
        self.machine_at(machine, start.into())
    }

    /// The texts that lead a machine from a state to its end.
    pub(crate) fn machine_at(&mut self, machine: Arc<dyn Machine>, state: Arc<[u8]>) -> Language {
        let known = self.machines.iter().position(|known| known.name() == machine.name());
        let id = known.unwrap_or_else(|| {
            self.machine_prints.push(FxBuildHasher.hash_one(machine.name()));
            self.machines.push(machine);
            self.machines.len() - 1
        });
        self.intern(Node::Machine(id as u32, state))
    }

    /// What is left of a machine's language after `c`.
    pub(crate) fn step_machine(&mut self, id: u32, state: &[u8], c: u32) -> Language {
        let Some(c) = char::from_u32(c) else { return Language::EMPTY };
        match self.machines[id as usize].step(state, c) {
            Some(next) => self.intern(Node::Machine(id, next.into())),
            None => Language::EMPTY,
        }
    }

    /// The next character on the way to the end of a machine in the expression.
    pub(crate) fn way_of_machines(&self, id: Language) -> Option<u32> {
        match self.node(id) {
            Node::Machine(machine, state) => self.machines[*machine as usize].way(state).map(u32::from),
            Node::Concat(first, _) => self.way_of_machines(*first),
            Node::And(items) | Node::Union(items) => items.iter().find_map(|&item| self.way_of_machines(item)),
            _ => None,
        }
    }

    /// A language without machines that holds this one.
    pub(crate) fn without_machines(&mut self, id: Language) -> Language {
        self.relax(id, false, &mut FxMap::default()).0
    }

    /// A language that holds this one, without machines, and in which what is repeated at all may be repeated at will:
    /// counters within counters have as many states as their product.
    pub(crate) fn without_counts(&mut self, id: Language) -> Language {
        self.relax(id, true, &mut FxMap::default()).0
    }

    /// The same, and whether it is exact, since there was nothing to relax.
    fn relax(&mut self, id: Language, counts: bool, known: &mut FxMap<Language, (Language, bool)>) -> (Language, bool) {
        if let Some(&result) = known.get(&id) {
            return result;
        }
        let result = match self.node(id).clone() {
            Node::Machine(machine, state) => {
                let machine = self.machines[machine as usize].clone();
                let (least, most) = (machine.least(&state), machine.most(&state));
                let set = self.set(machine.reads(&state));
                (self.repeat(set, least, most.max(least)), false)
            }
            Node::Concat(..) => {
                let (mut at, mut parts, mut exact) = (id, Vec::new(), true);
                while let Node::Concat(head, tail) = *self.node(at) {
                    let (head, same) = self.relax(head, counts, known);
                    parts.push(head);
                    (at, exact) = (tail, exact && same);
                }
                let (last, same) = self.relax(at, counts, known);
                parts.push(last);
                if exact && same { (id, true) } else { (self.sequence(parts), false) }
            }
            Node::Union(items) => {
                let parts: Vec<_> = items.iter().map(|&item| self.relax(item, counts, known)).collect();
                let exact = parts.iter().all(|part| part.1);
                if exact { (id, true) } else { (self.union(parts.iter().map(|part| part.0)), false) }
            }
            Node::And(items) => {
                let parts: Vec<_> = items.iter().map(|&item| self.relax(item, counts, known)).collect();
                let exact = parts.iter().all(|part| part.1);
                if exact { (id, true) } else { (self.and(parts.iter().map(|part| part.0)), false) }
            }
            Node::Repeat(body, min, max) if counts && (min > 1 || (max > 1 && max != UNBOUNDED)) => {
                let (body, _) = self.relax(body, counts, known);
                (self.repeat(body, min.min(1), UNBOUNDED), false)
            }
            Node::Repeat(body, min, max) => match self.relax(body, counts, known) {
                (_, true) => (id, true),
                (body, false) => (self.repeat(body, min, max), false),
            },
            // Less of a complement is more.
            Node::Not(inner) => {
                if self.relax(inner, counts, known).1 {
                    (id, true)
                } else {
                    (Language::ALL, false)
                }
            }
            Node::Look(look, inner) => match self.relax(inner, counts, known) {
                (_, true) => (id, true),
                (inner, false) => {
                    let inner = if look.negated { Language::ALL } else { inner };
                    (self.look(Look { negated: false, ..look }, inner), false)
                }
            },
            _ => (id, true),
        };
        known.insert(id, result);
        result
    }
}

#[cfg(test)]
mod tests {
    use crate::formats;
    use crate::languages::{Language, Languages};

    /// No host name has an underscore, and to know this not all host names must be tried.
    #[test]
    fn what_no_machine_reads_is_found_out_soon() {
        let mut l = Languages::new();
        l.max_states = 20_000;
        for format in ["hostname", "idn-hostname"] {
            let names = formats::language(format, &mut l).unwrap();
            let underscore = l.literal("_");
            let some = l.sequence([Language::ALL, underscore, Language::ALL]);
            let both = l.and([names, some]);
            assert_eq!(l.is_empty_language(both), Ok(true), "{format}");
        }
    }
}
