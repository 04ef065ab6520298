//! Limits on tokens that a reading is within.

use super::nodes::FxMap;
use hashbrown::HashMap;

/// How many tokens are left of each limit that a reading is within, as a list by id, the innermost limit first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Tokens(u32);

impl Tokens {
    /// There is no limit.
    pub(crate) const UNLIMITED: Tokens = Tokens(0);

    pub(crate) fn is_limited(self) -> bool {
        self != Tokens::UNLIMITED
    }
}

/// What a step does to the limits: it leaves some, and then enters others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Counting {
    leaves: u32,
    /// How many tokens each of those has that are entered.
    enters: Tokens,
}

impl Counting {
    /// It stays within the same limits.
    pub(crate) const KEEPS: Counting = Counting { leaves: 0, enters: Tokens::UNLIMITED };
    /// It leaves the innermost limit.
    pub(crate) const LEAVES: Counting = Counting { leaves: 1, enters: Tokens::UNLIMITED };

    /// What leaves limits, and then does something else.
    pub(crate) fn then(self, next: Counting) -> Counting {
        debug_assert_eq!(self.enters, Tokens::UNLIMITED);
        Counting { leaves: self.leaves + next.leaves, enters: next.enters }
    }
}

/// The store of such lists.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// What is left of the innermost limit, and the list of those around it; those of number 1 first.
    lists: Vec<(u32, Tokens)>,
    ids: FxMap<(u32, Tokens), Tokens>,
}

impl Counts {
    pub(crate) fn new() -> Counts {
        Counts { lists: Vec::new(), ids: HashMap::default() }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.lists.len()
    }

    /// What is left of the innermost limit, and the limits around it.
    pub(crate) fn innermost(&self, tokens: Tokens) -> Option<(u32, Tokens)> {
        self.lists.get((tokens.0 as usize).checked_sub(1)?).copied()
    }

    /// A limit within others.
    fn within(&mut self, left: u32, outer: Tokens) -> Tokens {
        let lists = &mut self.lists;
        *self.ids.entry((left, outer)).or_insert_with(|| {
            lists.push((left, outer));
            Tokens(lists.len() as u32)
        })
    }

    /// A step that enters one more limit.
    pub(crate) fn entering(&mut self, counting: Counting, tokens: u32) -> Counting {
        Counting { enters: self.within(tokens, counting.enters), ..counting }
    }

    /// What is left of each limit, the innermost first.
    pub(crate) fn left(&self, mut tokens: Tokens) -> Vec<u32> {
        let mut out = Vec::new();
        while let Some((left, outer)) = self.innermost(tokens) {
            out.push(left);
            tokens = outer;
        }
        out
    }

    /// After a step; `None` if it would go on within a limit that is used up.
    pub(crate) fn after(&mut self, mut tokens: Tokens, counting: Counting) -> Option<Tokens> {
        if tokens == Tokens::UNLIMITED && counting == Counting::KEEPS {
            return Some(tokens);
        }
        for _ in 0..counting.leaves {
            tokens = self.innermost(tokens).map_or(Tokens::UNLIMITED, |(_, outer)| outer);
        }
        let mut around = tokens;
        while let Some((left, outer)) = self.innermost(around) {
            if left == 0 {
                return None;
            }
            around = outer;
        }
        for left in self.left(counting.enters).into_iter().rev() {
            tokens = self.within(left, tokens);
        }
        Some(tokens)
    }

    /// The same limits of another store.
    pub(super) fn carry(&mut self, from: &Counts, tokens: Tokens) -> Tokens {
        from.left(tokens).into_iter().rev().fold(Tokens::UNLIMITED, |outer, left| self.within(left, outer))
    }

    /// After one more token; `None` if some limit had none left.
    pub(crate) fn fewer(&mut self, tokens: Tokens) -> Option<Tokens> {
        let mut out = Tokens::UNLIMITED;
        for left in self.left(tokens).into_iter().rev() {
            out = self.within(left.checked_sub(1)?, out);
        }
        Some(out)
    }
}
