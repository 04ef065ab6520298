//! Partial derivatives of a residual by a member.

use super::Steps;
use crate::algebra::Algebra;
use crate::error::SchemaError;
use crate::formula::{Formula, FxMap, Keys, Name, Node, Type};
use std::ops::Range;
use std::sync::Arc;

impl Algebra {
    /// Partial derivatives of a residual by a member: (formula for its value, what is left).
    pub(super) fn step_member(&mut self, f: Formula, name: Name) -> Result<Steps, SchemaError> {
        if let Some(known) = self.objects.steps.get(&(f, name)) {
            return Ok(known.clone());
        }
        let steps: Steps = self.step_member_anew(f, name)?.into();
        self.objects.heap += 16 + size_of_val(&*steps);
        self.objects.steps.insert((f, name), steps.clone());
        Ok(steps)
    }

    pub(super) fn step_member_anew(&mut self, f: Formula, name: Name) -> Result<Vec<(Formula, Formula)>, SchemaError> {
        let same = |f| Ok(vec![(Formula::TRUE, f)]);
        match *self.formulas.node(f) {
            Node::Member { keys, value } => {
                if !self.speaks_of(keys, name) {
                    return same(f);
                }
                let value = self.flat(value).unwrap_or(value);
                let mut out = vec![(value, Formula::TRUE)];
                // A name comes only once; of a language of names, another may do it.
                if value != Formula::TRUE && matches!(keys, Keys::In(_)) {
                    out.push((self.others(value), f));
                }
                Ok(out)
            }
            Node::Members(count) => {
                let less = if count == 1 { Formula::TRUE } else { self.formulas.members(count - 1) };
                same(less)
            }
            Node::Among(_, ref list) => {
                let list = list.clone();
                Ok(self.step_constants(Type::Object, &list, |c, of| c.take_member(of, name)).0)
            }
            Node::Not(inner) => match *self.formulas.node(inner) {
                Node::Among(_, ref list) => {
                    let list = list.clone();
                    let steps = self.step_constants(Type::Object, &list, |c, of| c.take_member(of, name));
                    Ok(self.unlike(steps))
                }
                Node::Member { keys, value } => {
                    if !self.speaks_of(keys, name) {
                        return same(f);
                    }
                    let value = self.flat(value).unwrap_or(value);
                    let value = self.formulas.not(value);
                    Ok(vec![(value, if matches!(keys, Keys::In(_)) { f } else { Formula::TRUE })])
                }
                Node::Members(1) => Ok(Vec::new()),
                Node::Members(count) => {
                    let less = self.formulas.members(count - 1);
                    same(self.formulas.not(less))
                }
                _ => same(f),
            },
            Node::And(ref items) => {
                let items = items.clone();
                if let Some(cases) = self.cases(&items, name)? {
                    let mut out = Vec::new();
                    let around = self.objects.cases;
                    self.objects.cases = around.max(1) * cases.len();
                    for case in cases {
                        match self.step_member(case, name) {
                            Ok(steps) => out.extend_from_slice(&steps),
                            Err(error) => {
                                self.objects.cases = around;
                                return Err(error);
                            }
                        }
                    }
                    self.objects.cases = around;
                    let out = self.merge_steps(out);
                    if out.len() > self.options.limits.max_alternatives {
                        return Err(self.too_many_alternatives("alternatives"));
                    }
                    return Ok(out);
                }
                let mut product = vec![(Formula::TRUE, Formula::TRUE)];
                let mut untouched = Vec::new();
                for &item in items.iter() {
                    if !self.touches(item, name) {
                        untouched.push(item);
                        continue;
                    }
                    let steps = self.step_member(item, name)?;
                    product = self.cross(product, &steps)?;
                }
                untouched.push(Formula::TRUE);
                let untouched = self.formulas.and(untouched);
                Ok(product.into_iter().map(|(v, r)| (v, self.formulas.and([r, untouched]))).collect())
            }
            Node::Or(ref items) => {
                let items = items.clone();
                let mut out = Vec::new();
                for &item in items.iter() {
                    out.extend_from_slice(&self.step_member(item, name)?);
                }
                Ok(self.alternatives(out))
            }
            _ => same(f),
        }
    }

    pub(super) fn speaks_of(&mut self, keys: Keys, name: Name) -> bool {
        match keys {
            Keys::One(other) => other == name,
            Keys::In(names) => self.languages.matches(names, self.formulas.text_of(name)),
        }
    }

    /// Whether a member of this name can change the residual.
    pub(super) fn touches(&mut self, f: Formula, name: Name) -> bool {
        if let Node::Member { keys: Keys::One(other), .. } = self.formulas.node(f) {
            return *other == name;
        }
        if let Some(names) = self.single_names(f) {
            return names.contains_key(&name);
        }
        if let Some(&known) = self.objects.touches.get(&(f, name)) {
            return known;
        }
        let touches = match *self.formulas.node(f) {
            Node::Members(_) | Node::Among(..) => true,
            Node::Member { keys, .. } => self.speaks_of(keys, name),
            Node::Not(inner) => self.touches(inner, name),
            Node::And(ref items) | Node::Or(ref items) => {
                let items = items.clone();
                items.iter().any(|&i| self.touches(i, name))
            }
            _ => return false,
        };
        self.objects.touches.insert((f, name), touches);
        touches
    }

    /// The names that a formula of many parts speaks of, if it speaks of nothing but single names.
    fn single_names(&mut self, f: Formula) -> Option<Arc<FxMap<Name, ()>>> {
        const MANY: usize = 8;
        let (Node::And(items) | Node::Or(items)) = self.formulas.node(f) else { return None };
        if items.len() < MANY {
            return None;
        }
        if let Some(known) = self.objects.spoken.get(&f) {
            return known.clone();
        }
        let mut names = Some(FxMap::default());
        for (atom, _) in self.atoms(f) {
            match *self.formulas.node(atom) {
                Node::Member { keys: Keys::One(name), .. } => names.as_mut().map(|names| names.insert(name, ())),
                Node::Members(_) | Node::Among(..) | Node::Member { .. } => names.take().map(|_| None),
                _ => None,
            };
        }
        let names = names.map(Arc::new);
        self.objects.heap += names.as_ref().map_or(0, |names| names.allocation_size());
        self.objects.spoken.insert(f, names.clone());
        names
    }

    /// The residual, given that none of the declared names at these places will come.
    pub(super) fn without(&mut self, f: Formula, spec: u32, places: Range<u32>) -> Formula {
        if places.is_empty() || f == Formula::TRUE {
            return f;
        }
        match self.first_wanted(spec, f) {
            Some(first) if first.is_none_or(|first| first >= places.end) => return f,
            Some(Some(first)) if places.contains(&first) => return Formula::FALSE,
            _ => {}
        }
        let spec = self.specs[spec as usize].clone();
        let is_gone = |name: &Name| spec.place.get(name).is_some_and(|place| places.contains(place));
        if let Some(spoken) = self.single_names(f)
            && !spoken.keys().any(is_gone)
        {
            return f;
        }
        self.rewrite(f, &mut |a, atom| match a.formulas.node(atom) {
            Node::Member { keys: Keys::One(name), .. } if is_gone(name) => Some(Formula::FALSE),
            Node::Among(t, list) => {
                let (t, mut list) = (*t, list.to_vec());
                list.retain(|&c| !a.constants.members(c).iter().any(|(name, _)| is_gone(name)));
                Some(a.formulas.among(t, list))
            }
            _ => None,
        })
    }
}
