//! Machines: languages that a few lines of code describe better than any expression.
//!
//! Some texts are checked by arithmetic or by a stack: a host label that must be Punycode, a leap second whose offset
//! leads back to 23:59 UTC, brackets that nest. A [`Machine`] says what each character does to a state, the state is a
//! short string of bytes, and [`Languages::machine`] makes an expression of it, which goes into unions, intersections
//! and complements like any other. States are built when a text reaches them, so there may be infinitely many.
//!
//! The price: nothing is known of a machine but its steps, so an intersection with one is searched text by text. Keep
//! states few (texts with the same future should be the same bytes) and prefer an expression where one stays readable.
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
use crate::languages::{Language, Languages, Node};
use std::fmt::Debug;
use std::sync::Arc;

/// A deterministic automaton whose states are strings of bytes.
///
/// Equal states must have equal futures, and **every state that [`step`](Machine::step) returns must lead to some text**:
/// that is how an expression with machines is known not to be a dead end without a search.
pub trait Machine: Debug + Send + Sync {
    /// A name of its own: two machines of one name are taken for the same.
    fn name(&self) -> &'static str;

    /// The classes of characters that a state tells apart: those of one class lead from it to the same state.
    fn alphabet(&self, state: &[u8]) -> &Alphabet;

    /// The state before the first character.
    fn start(&self) -> Box<[u8]>;

    /// The state after one more character, or `None` if no text goes on like this.
    fn step(&self, state: &[u8], c: char) -> Option<Box<[u8]>>;

    /// Whether a text may end here.
    fn accepts(&self, state: &[u8]) -> bool;

    /// At least so many characters are still to come (a lower bound).
    fn least(&self, state: &[u8]) -> u32 {
        u32::from(!self.accepts(state))
    }

    /// At most so many characters are still to come (an upper bound; `u32::MAX` if there is none).
    fn most(&self, _state: &[u8]) -> u32 {
        u32::MAX
    }
}

impl Languages {
    /// The texts that a machine accepts.
    pub fn machine(&mut self, machine: Arc<dyn Machine>) -> Language {
        let known = self.machines.iter().position(|known| known.name() == machine.name());
        let id = known.unwrap_or_else(|| {
            self.machines.push(machine.clone());
            self.machines.len() - 1
        });
        self.intern(Node::Machine(id as u32, machine.start().into()))
    }

    /// What is left of a machine's language after `c`.
    pub(crate) fn step_machine(&mut self, id: u32, state: &[u8], c: u32) -> Language {
        let Some(c) = char::from_u32(c) else { return Language::EMPTY };
        match self.machines[id as usize].step(state, c) {
            Some(next) => self.intern(Node::Machine(id, next.into())),
            None => Language::EMPTY,
        }
    }
}
