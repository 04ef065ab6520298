//! Whether an object that began in some way can be finished.

use super::ObjectState;
use super::propose::Proposed;
use crate::algebra::Algebra;
use crate::error::SchemaError;
use crate::formula::{Formula, FxMap, Keys, Name, Node};
use crate::options::PropertyOrder;

/// A member: its name, and a formula for its value.
pub(super) type Member = (Name, Formula);

/// Members that must come, each with what is asked of its value, and bounds on their number.
pub(super) struct Wanted {
    members: Vec<(Name, Vec<Formula>)>,
    /// What is asked of members that need not come.
    others: FxMap<Name, Vec<Formula>>,
    least: u32,
    most: u32,
}

/// Most members of an example that no schema names.
const MOST_MEMBERS: usize = 10_000;

impl Algebra {
    /// Whether some object that began like this can be finished. Called by the search only.
    pub(crate) fn search_object(&mut self, state: ObjectState) -> Result<bool, SchemaError> {
        if self.object_may_end(state) {
            return Ok(true);
        }
        if let Some(branches) = self.branches_of(state.residual) {
            for residual in branches {
                if self.object_is_viable(ObjectState { residual, ..state })? {
                    return Ok(true);
                }
            }
            return Ok(false);
        }
        if let Some(answer) = self.independent_members(state)? {
            return Ok(answer);
        }
        match self.propose(state)? {
            Proposed::Members(_) => return Ok(true),
            Proposed::Nothing => return Ok(false),
            Proposed::Unknown => {}
        }
        let names = self.names_to_try(state)?;
        // Whatever keeps the object from ending must change; only members that it speaks of can do that, and each change
        // makes the residual smaller.
        let missing: Vec<Formula> = match self.formulas.node(state.residual) {
            Node::And(items) => items.iter().copied().filter(|&i| !self.formulas.holds_at_end(i)).collect(),
            _ => vec![state.residual],
        };
        let mut known = FxMap::default();
        for &part in &missing {
            if !self.is_hopeful(state, part, &mut known)? {
                return Ok(false);
            }
        }
        for name in names {
            if !missing.iter().any(|&part| self.touches(part, name)) {
                continue;
            }
            for (value, next) in self.object_steps(state, name)? {
                if next.residual != state.residual && self.is_satisfiable(value)? && self.object_is_viable(next)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// All names that are spoken of and may still come, and one of each class of others.
    pub(crate) fn names_to_try(&mut self, state: ObjectState) -> Result<Vec<Name>, SchemaError> {
        let spec = self.specs[state.spec as usize].clone();
        let mut names: Vec<Name> = spec.order.iter().skip(state.place as usize).copied().collect();
        names.extend(&spec.others);
        for class in &spec.classes {
            names.extend(self.fresh_name(state.spec, class, state.seen)?);
        }
        Ok(names)
    }

    /// Whether a part of the residual could still come true, each of its atoms taken for itself. `false` is certain.
    pub(super) fn is_hopeful(
        &mut self,
        state: ObjectState,
        f: Formula,
        known: &mut FxMap<Formula, bool>,
    ) -> Result<bool, SchemaError> {
        if let Some(&known) = known.get(&f) {
            return Ok(known);
        }
        let hopeful = match *self.formulas.node(f) {
            Node::Member { keys: Keys::One(name), value } => {
                let every = self.member_value(state.spec, name);
                let value = self.formulas.and([value, every]);
                !self.is_gone(state, name) && self.is_satisfiable(value)?
            }
            Node::And(ref items) | Node::Or(ref items) => {
                let all = matches!(self.formulas.node(f), Node::And(_));
                let mut result = all;
                for i in items.clone() {
                    if self.is_hopeful(state, i, known)? != all {
                        result = !all;
                        break;
                    }
                }
                result
            }
            Node::False | Node::Types(_) => false,
            _ => true,
        };
        known.insert(f, hopeful);
        Ok(hopeful)
    }

    /// Whether no member of this name can come any more.
    pub(super) fn is_gone(&self, state: ObjectState, name: Name) -> bool {
        let spec = &self.specs[state.spec as usize];
        self.has_seen(state, self.formulas.text_of(name))
            || !self.languages.can_write(self.formulas.text_of(name))
            || self.options.property_order == PropertyOrder::Declared
                && spec.place.get(&name).is_some_and(|&place| place < state.place)
    }

    /// The usual residual: each name that must come stands for itself, beside bounds on their number. `None` if the
    /// residual is of another kind.
    pub(super) fn wanted(&mut self, residual: Formula) -> Option<Wanted> {
        let items: Vec<Formula> = match self.formulas.node(residual) {
            Node::And(items) => items.to_vec(),
            _ => vec![residual],
        };
        let mut wanted = Wanted { members: Vec::new(), others: FxMap::default(), least: 0, most: u32::MAX };
        let mut places = FxMap::<Name, usize>::default();
        for item in items {
            match *self.formulas.node(item) {
                Node::True | Node::Declared(_) => {}
                Node::Member { keys: Keys::One(name), value } => {
                    let place = *places.entry(name).or_insert(wanted.members.len());
                    if place == wanted.members.len() {
                        wanted.members.push((name, Vec::new()));
                    }
                    wanted.members[place].1.push(value);
                }
                Node::Members(n) => wanted.least = wanted.least.max(n),
                Node::Not(inner) => match *self.formulas.node(inner) {
                    Node::Members(n) => wanted.most = wanted.most.min(n - 1),
                    Node::Member { keys: Keys::One(name), value } => {
                        let value = self.formulas.not(value);
                        wanted.others.entry(name).or_default().push(value);
                    }
                    _ => return None,
                },
                _ => return None,
            }
        }
        for (name, values) in &mut wanted.members {
            values.extend(wanted.others.remove(name).unwrap_or_default());
        }
        Some(wanted)
    }

    /// With the usual residual no search over orders is needed. `None` if the residual is of another kind.
    pub(super) fn independent_members(&mut self, state: ObjectState) -> Result<Option<bool>, SchemaError> {
        // The same question is asked at each place before the first name that is wanted.
        let anywhere = ObjectState { place: 0, ..state };
        if self.objects.complete.get(&anywhere).is_some_and(|&last| state.place <= last) {
            return Ok(Some(true));
        }
        let Some(wanted) = self.wanted(state.residual) else { return Ok(None) };
        let count = wanted.members.len() as u32;
        if count.max(wanted.least) > wanted.most {
            return Ok(Some(false));
        }
        for (name, values) in &wanted.members {
            if self.is_gone(state, *name) {
                return Ok(Some(false));
            }
            let value = self.member_value(state.spec, *name);
            let value = self.formulas.and(values.iter().copied().chain([value]));
            if !self.is_satisfiable(value)? {
                return Ok(Some(false));
            }
        }
        if wanted.least <= count {
            let spec = &self.specs[state.spec as usize];
            let places = wanted.members.iter().filter_map(|(name, _)| spec.place.get(name).copied());
            self.objects.complete.insert(anywhere, places.min().unwrap_or(u32::MAX));
            return Ok(Some(true));
        }
        // More members are wanted than are named: count the others that can be had.
        let mut have = count;
        for name in self.optional_names(state, &wanted) {
            if have >= wanted.least {
                break;
            }
            let value = self.optional_value(state, name, &wanted);
            have += u32::from(self.is_satisfiable(value)?);
        }
        let spec = self.specs[state.spec as usize].clone();
        for class in &spec.classes {
            if have >= wanted.least {
                break;
            }
            let value = self.member_value(state.spec, class.example);
            if self.is_satisfiable(value)? {
                if self.languages.is_endless(class.names)? {
                    have = u32::MAX;
                    break;
                }
                let left = self.minus_seen(class.names, state.seen);
                have = have.saturating_add(match class.size {
                    Some(_) => self.languages.as_texts(left).map_or(u32::MAX, |t| t.len() as u32),
                    None => self.languages.count_up_to(left, wanted.least)?,
                });
            }
        }
        Ok(Some(have >= wanted.least))
    }

    /// With the usual residual, what can come can still come after one of the members.
    pub(super) fn stays_complete(&mut self, state: ObjectState, next: ObjectState) {
        let anywhere = |state| ObjectState { place: 0, ..state };
        if state.residual != next.residual
            && self.objects.complete.contains_key(&anywhere(state))
            && self.first_wanted(state.spec, state.residual).is_some()
            && let Some(first) = self.first_wanted(next.spec, next.residual)
        {
            self.objects.complete.insert(anywhere(next), first.unwrap_or(u32::MAX));
        }
    }

    /// Names that are spoken of, may still come, and need not.
    pub(super) fn optional_names(&self, state: ObjectState, wanted: &Wanted) -> Vec<Name> {
        let spec = &self.specs[state.spec as usize];
        let names = spec.order.iter().chain(&spec.others).copied();
        let wanted: FxMap<Name, ()> = wanted.members.iter().map(|&(name, _)| (name, ())).collect();
        names.filter(|name| !wanted.contains_key(name) && !self.is_gone(state, *name)).collect()
    }

    /// What is asked of a member that need not come.
    fn optional_value(&mut self, state: ObjectState, name: Name, wanted: &Wanted) -> Formula {
        let value = self.member_value(state.spec, name);
        let asked = wanted.others.get(&name).into_iter().flatten().copied();
        self.formulas.and(asked.chain([value]))
    }

    /// The residual in branches, one of which must be fulfilled: its alternatives, or, where it holds a few alternatives
    /// beside members that must come, all of their combinations. So bounds on the number of members are seen at once with
    /// all that must come. `None` if it is of another kind.
    pub(crate) fn branches_of(&mut self, residual: Formula) -> Option<Vec<Formula>> {
        const MOST_BRANCHES: usize = 64;
        let items = match self.formulas.node(residual) {
            Node::Or(items) => return Some(items.to_vec()),
            Node::And(items) => items.to_vec(),
            _ => return None,
        };
        let choices = items.iter().filter_map(|&item| match self.formulas.node(item) {
            Node::Or(parts) => Some(parts.len()),
            _ => None,
        });
        let count = choices.fold(1usize, |count, choices| count.saturating_mul(choices));
        if !(2..=MOST_BRANCHES).contains(&count) {
            return None;
        }
        let mut branches = vec![Vec::new()];
        for item in items {
            match self.formulas.node(item) {
                Node::Or(parts) => {
                    let with = |part: Formula| branches.iter().map(move |branch| [&branch[..], &[part]].concat());
                    branches = parts.iter().flat_map(|&part| with(part)).collect();
                }
                _ => branches.iter_mut().for_each(|branch| branch.push(item)),
            }
        }
        let branches: Vec<Formula> = branches.into_iter().map(|branch| self.formulas.and(branch)).collect();
        branches.iter().all(|&branch| self.wanted(branch).is_some()).then_some(branches)
    }

    /// Members that complete an object that is known to have an example, in an order that is allowed. `None` if the
    /// residual is of another kind than the usual one, and no way to finish it is easy to see.
    pub(crate) fn independent_example(&mut self, state: ObjectState) -> Result<Option<Vec<Member>>, SchemaError> {
        let Some((mut members, least)) = self.named_members(state)? else { return self.proposed_members(state) };
        self.add_other_members(state, least, &mut members)?;
        Ok(Some(members))
    }

    /// The first of those members.
    pub(crate) fn independent_member(&mut self, state: ObjectState) -> Result<Option<Member>, SchemaError> {
        let Some(wanted) = self.wanted(state.residual) else {
            return Ok(self.proposed_members(state)?.and_then(|members| members.first().copied()));
        };
        let spec = self.specs[state.spec as usize].clone();
        let place = |name: &Name| spec.place.get(name).copied().unwrap_or(u32::MAX);
        let first = wanted.members.iter().min_by_key(|(name, _)| place(name));
        let (mut name, mut values) = (first.map(|(name, _)| *name), first.map_or(Vec::new(), |(_, v)| v.clone()));
        if (wanted.members.len() as u32) < wanted.least {
            // Of the members that need not come, the first comes too.
            let wants = |name: Name| wanted.members.iter().any(|&(other, _)| other == name);
            let from = if self.options.property_order == PropertyOrder::Declared { state.place as usize } else { 0 };
            for &other in spec.order.iter().skip(from).chain(&spec.others) {
                if wants(other) || self.is_gone(state, other) {
                    continue;
                }
                let value = self.optional_value(state, other, &wanted);
                if self.is_satisfiable(value)? {
                    if name.is_none_or(|name| place(&other) < place(&name)) {
                        (name, values) = (Some(other), vec![value]);
                    }
                    break;
                }
            }
        }
        if let Some(name) = name {
            let value = self.member_value(state.spec, name);
            return Ok(Some((name, self.formulas.and(values.into_iter().chain([value])))));
        }
        check_count(wanted.least as usize)?;
        for class in &spec.classes {
            let value = self.member_value(state.spec, class.example);
            if self.is_satisfiable(value)?
                && let Some(name) = self.fresh_name(state.spec, class, state.seen)?
            {
                return Ok(Some((name, value)));
            }
        }
        Ok(None)
    }

    /// Those of the members whose names are spoken of, and how many there must be in all.
    fn named_members(&mut self, state: ObjectState) -> Result<Option<(Vec<Member>, usize)>, SchemaError> {
        let Some(wanted) = self.wanted(state.residual) else { return Ok(None) };
        let mut members = Vec::with_capacity(wanted.members.len());
        for (name, values) in &wanted.members {
            let value = self.member_value(state.spec, *name);
            members.push((*name, self.formulas.and(values.iter().copied().chain([value]))));
        }
        let least = wanted.least as usize;
        if members.len() < least {
            for name in self.optional_names(state, &wanted) {
                let value = self.optional_value(state, name, &wanted);
                if members.len() < least && self.is_satisfiable(value)? {
                    members.push((name, value));
                }
            }
        }
        let spec = &self.specs[state.spec as usize];
        members.sort_by_key(|(name, _)| spec.place.get(name).copied().unwrap_or(u32::MAX));
        Ok(Some((members, least)))
    }

    /// Adds members with other names until there are so many.
    fn add_other_members(
        &mut self,
        state: ObjectState,
        least: usize,
        members: &mut Vec<Member>,
    ) -> Result<(), SchemaError> {
        let spec = self.specs[state.spec as usize].clone();
        for class in &spec.classes {
            let missing = least.saturating_sub(members.len());
            let value = self.member_value(state.spec, class.example);
            if missing == 0 || !self.is_satisfiable(value)? {
                continue;
            }
            check_count(missing)?;
            let made_up = self.made_up(state.spec, class, self.seen_count(state) + missing)?;
            let is_fresh = |&&name: &&Name| !self.has_seen(state, self.formulas.text_of(name));
            members.extend(made_up.names.iter().filter(is_fresh).take(missing).map(|&name| (name, value)));
        }
        Ok(())
    }
}

/// An example is written out whole, so it may not have too many members.
fn check_count(members: usize) -> Result<(), SchemaError> {
    if members > MOST_MEMBERS {
        let hint = "Ask for fewer members, or name those that have to come";
        return Err(SchemaError::limit("members of an example", MOST_MEMBERS, "", hint));
    }
    Ok(())
}
