//! `oneOf`: exactly one alternative.
//!
//! "A and not B" is A itself where no value is in both, which is the common case of alternatives told apart by a tag. So
//! pairs are compared first, and a complement is taken only of alternatives that really overlap.

use crate::algebra::Algebra;
use crate::error::{SchemaError, SchemaErrorKind};
use crate::formula::{Formula, FxMap, Keys, Name, Node, Type, Types};

/// Of so many alternatives not every pair is compared.
const MANY: usize = 8;

impl Algebra {
    /// Values in exactly one of formulas that are restricted to type `t`, and in what stands beside it, which is a part of
    /// it; `one` is the formula they come from.
    pub(crate) fn exactly_one(
        &mut self,
        one: Formula,
        items: Vec<(Formula, Formula)>,
        t: Type,
    ) -> Result<Formula, SchemaError> {
        let items: Vec<(Formula, Formula)> = items.into_iter().filter(|&(part, _)| part != Formula::FALSE).collect();
        let parts: Vec<Formula> = items.iter().map(|&(part, _)| part).collect();
        if parts.len() < 2 {
            return Ok(items.first().map_or(Formula::FALSE, |&(_, inner)| inner));
        }
        // A comparison that needs itself: every pair may overlap, which is always right, only longer.
        let compare = !self.comparing.contains(&(one, t));
        let tags: Vec<FxMap<Name, Vec<Formula>>> = parts.iter().map(|&p| self.tags(p)).collect();
        self.comparing.push((one, t));
        let pairs = self.pairs_with_a_tag_in_common(&tags);
        let mut overlaps = vec![Vec::new(); parts.len()];
        for (i, others) in pairs.into_iter().enumerate() {
            for j in others {
                if parts[i] != parts[j] && compare && self.are_disjoint(parts[i], parts[j], &tags[i], &tags[j], t)? {
                    continue;
                }
                overlaps[i].push(parts[j]);
                overlaps[j].push(parts[i]);
            }
        }
        self.comparing.pop();
        let mut alternatives = Vec::with_capacity(parts.len());
        for (&(_, inner), others) in items.iter().zip(overlaps) {
            let mut all = vec![inner];
            for other in others {
                let other = self.formulas.not(other);
                all.push(self.restrict(other, t)?);
            }
            alternatives.push(self.formulas.and(all));
        }
        Ok(self.formulas.or(alternatives))
    }

    /// For each alternative the earlier ones that it may overlap with, as far as one tag tells: that which has one of a few
    /// known texts in most alternatives. So a thousand alternatives of different tags are not compared with each other.
    fn pairs_with_a_tag_in_common(&mut self, tags: &[FxMap<Name, Vec<Formula>>]) -> Vec<Vec<usize>> {
        let mut counts: FxMap<Name, usize> = FxMap::default();
        tags.iter().flat_map(|tags| tags.keys()).for_each(|&name| *counts.entry(name).or_default() += 1);
        let best = counts.into_iter().max_by_key(|&(name, count)| (count, std::cmp::Reverse(name)));
        let Some((name, _)) = best.filter(|_| tags.len() >= MANY) else {
            return (0..tags.len()).map(|i| (0..i).collect()).collect();
        };
        let mut with_text: FxMap<String, Vec<usize>> = FxMap::default();
        let mut unknown = Vec::new();
        let mut pairs = Vec::with_capacity(tags.len());
        for (i, tags) in tags.iter().enumerate() {
            let values = tags.get(&name).map(|values| self.formulas.and(values.iter().copied()));
            match values.and_then(|value| self.apart(|a| a.only_texts(value))) {
                Some(texts) => {
                    let mut others = unknown.clone();
                    for text in texts {
                        let same = with_text.entry(text).or_default();
                        others.extend_from_slice(same);
                        same.push(i);
                    }
                    others.sort_unstable();
                    others.dedup();
                    pairs.push(others);
                }
                None => {
                    pairs.push((0..i).collect());
                    unknown.push(i);
                }
            }
        }
        pairs
    }

    /// The values of a formula, if they are strings of a list.
    fn only_texts(&mut self, f: Formula) -> Option<Vec<String>> {
        let f = self.flat(f)?;
        for t in Type::ALL.into_iter().filter(|&t| t != Type::String) {
            if self.restrict(f, t).ok()? != Formula::FALSE {
                return None;
            }
        }
        let texts = self.texts(f).ok()?;
        self.languages.as_texts(texts).map(|texts| texts.into_iter().map(String::from).collect())
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
