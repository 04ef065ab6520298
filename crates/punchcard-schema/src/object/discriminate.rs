//! Alternatives that hang on the value of one member.
//!
//! Where a dozen conditions ask for the `type` of an object and another member comes first, each condition may still turn
//! out either way, and a dozen of them in every combination. But there are only as many cases as `type` has values that
//! are told apart: so the cases are taken one by one.

use crate::algebra::Algebra;
use crate::error::SchemaError;
use crate::formula::{Formula, FxMap, Keys, Name, Node};

/// Fewer alternatives than this are combined as they are.
const LEAST_ALTERNATIVES: usize = 3;

/// More cases than this, within each other, are no help.
const MOST_CASES: usize = 256;

impl Algebra {
    /// The residual in cases, by the value of a member other than `name`, if several of its alternatives hang on one.
    pub(crate) fn cases(&mut self, items: &[Formula], name: Name) -> Result<Option<Vec<Formula>>, SchemaError> {
        let Some(key) = self.discriminator(items, name) else { return Ok(None) };
        let mut values = Vec::new();
        for &item in items {
            self.values_of_member(item, key, &mut values);
        }
        values.sort_unstable();
        values.dedup();
        let mut cells = vec![Formula::TRUE];
        for &value in &values {
            let outside = self.formulas.not(value);
            let mut finer = Vec::with_capacity(cells.len() + 1);
            for cell in cells {
                for part in [value, outside] {
                    let part = self.both(cell, part)?;
                    if part != Formula::FALSE {
                        finer.push(part);
                    }
                }
            }
            cells = finer;
            if cells.len() * self.objects.cases.max(1) > MOST_CASES {
                return Ok(None);
            }
        }
        let all = self.formulas.and(items.iter().copied());
        let mut cases = Vec::with_capacity(cells.len() + 1);
        for cell in cells {
            let mut answers = FxMap::default();
            for &value in &values {
                answers.insert(value, self.both(cell, value)? != Formula::FALSE);
            }
            let case = self.decide_member(all, key, Some(&answers));
            let present = self.formulas.member(Keys::One(key), cell);
            cases.push(self.formulas.and([present, case]));
        }
        let case = self.decide_member(all, key, None);
        let present = self.formulas.member(Keys::One(key), Formula::TRUE);
        let absent = self.formulas.not(present);
        cases.push(self.formulas.and([absent, case]));
        Ok(Some(cases))
    }

    /// The member on which most alternatives hang.
    pub(super) fn discriminator(&mut self, items: &[Formula], name: Name) -> Option<Name> {
        let mut counts: FxMap<Name, usize> = FxMap::default();
        for &item in items {
            let Node::Or(alternatives) = self.formulas.node(item) else { continue };
            let alternatives = alternatives.clone();
            let mut names = Vec::new();
            for &alternative in alternatives.iter() {
                let atom = match self.formulas.node(alternative) {
                    Node::Not(inner) => self.formulas.node(*inner),
                    atom => atom,
                };
                if let &Node::Member { keys: Keys::One(key), value } = atom
                    && key != name
                    && value != Formula::TRUE
                    && self.flat(value).is_some()
                {
                    names.push(key);
                }
            }
            names.sort_unstable();
            names.dedup();
            names.into_iter().for_each(|key| *counts.entry(key).or_default() += 1);
        }
        let best = counts.into_iter().max_by_key(|&(key, count)| (count, std::cmp::Reverse(key)));
        best.filter(|&(_, count)| count >= LEAST_ALTERNATIVES).map(|(key, _)| key)
    }

    /// What a formula asks of the member, as far as it is easy to tell apart.
    fn values_of_member(&mut self, f: Formula, key: Name, values: &mut Vec<Formula>) {
        for (atom, _) in self.atoms(f) {
            if let &Node::Member { keys: Keys::One(other), value } = self.formulas.node(atom)
                && other == key
            {
                values.extend(self.flat(value));
            }
        }
    }

    /// The formula, given for each value whether the member has it; `None`: there is no such member.
    fn decide_member(&mut self, f: Formula, key: Name, answers: Option<&FxMap<Formula, bool>>) -> Formula {
        self.rewrite(f, &mut |a, atom| {
            let &Node::Member { keys: Keys::One(other), value } = a.formulas.node(atom) else { return None };
            let answer = match answers {
                _ if other != key => None,
                None => Some(false),
                Some(answers) => a.flat(value).and_then(|value| answers.get(&value).copied()),
            };
            answer.map(|yes| if yes { Formula::TRUE } else { Formula::FALSE })
        })
    }
}
