//! `oneOf`: exactly one alternative.
//!
//! "A and not B" is A itself where no value is in both, which is the common case of alternatives told apart by a tag. So
//! pairs are compared first, and a complement is taken only of alternatives that really overlap.

use crate::algebra::Algebra;
use crate::error::{SchemaError, SchemaErrorKind};
use crate::formula::{Formula, FxMap, Keys, Name, Node, Type, Types};

impl Algebra {
    /// Exactly one of formulas that are restricted to type `t`; `one` is the formula they come from.
    pub(crate) fn exactly_one(&mut self, one: Formula, parts: Vec<Formula>, t: Type) -> Result<Formula, SchemaError> {
        let parts: Vec<Formula> = parts.into_iter().filter(|&p| p != Formula::FALSE).collect();
        if parts.len() < 2 {
            return Ok(parts.first().copied().unwrap_or(Formula::FALSE));
        }
        // A comparison that needs itself: every pair may overlap, which is always right, only longer.
        let compare = !self.comparing.contains(&(one, t));
        let tags: Vec<FxMap<Name, Vec<Formula>>> = parts.iter().map(|&p| self.tags(p)).collect();
        self.comparing.push((one, t));
        let mut overlaps = vec![Vec::new(); parts.len()];
        for i in 0..parts.len() {
            for j in 0..i {
                if parts[i] != parts[j] && compare && self.are_disjoint(parts[i], parts[j], &tags[i], &tags[j], t)? {
                    continue;
                }
                overlaps[i].push(parts[j]);
                overlaps[j].push(parts[i]);
            }
        }
        self.comparing.pop();
        let mut alternatives = Vec::with_capacity(parts.len());
        for (&part, others) in parts.iter().zip(overlaps) {
            let mut all = vec![part];
            for other in others {
                let other = self.formulas.not(other);
                all.push(self.restrict(other, t)?);
            }
            alternatives.push(self.formulas.and(all));
        }
        Ok(self.formulas.or(alternatives))
    }

    fn are_disjoint(
        &mut self,
        a: Formula,
        b: Formula,
        tags_a: &FxMap<Name, Vec<Formula>>,
        tags_b: &FxMap<Name, Vec<Formula>>,
        t: Type,
    ) -> Result<bool, SchemaError> {
        for (name, values) in tags_a {
            if let Some(others) = tags_b.get(name) {
                let both = self.formulas.and(values.iter().chain(others).copied());
                if self.apart(|a| a.is_satisfiable(both)).is_ok_and(|yes| !yes) {
                    return Ok(true);
                }
            }
        }
        let typed = self.formulas.types(Types::only(t));
        let both = self.formulas.and([typed, a, b]);
        match self.apart(|a| a.is_satisfiable(both)) {
            Ok(yes) => Ok(!yes),
            // Not decided within the limits: they may overlap.
            Err(error) if matches!(error.kind, SchemaErrorKind::Limit { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Members that every object of the formula has, with what it says of their values.
    fn tags(&mut self, f: Formula) -> FxMap<Name, Vec<Formula>> {
        let items = match self.formulas.node(f) {
            Node::And(items) => items.clone(),
            _ => return FxMap::default(),
        };
        let mut tags: FxMap<Name, Vec<Formula>> = FxMap::default();
        for &item in items.iter() {
            if let Node::Member { keys: Keys::One(name), value } = *self.formulas.node(item) {
                tags.entry(name).or_default().push(value);
            }
        }
        for &item in items.iter() {
            if let Node::Not(inner) = self.formulas.node(item)
                && let Node::Member { keys: Keys::One(name), value } = *self.formulas.node(*inner)
                && let Some(values) = tags.get_mut(&name)
            {
                values.push(self.formulas.not(value));
            }
        }
        tags
    }
}
