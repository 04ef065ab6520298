//! Which names the next member may have, and which of them are treated alike.

use super::seen::SeenId;
use super::spec::may_meet;
use super::{MadeUp, Move, NameClass, ObjectState};
use crate::algebra::Algebra;
use crate::error::SchemaError;
use crate::formula::{Formula, Name};
use crate::options::PropertyOrder;
use punchcard_automata::Language;
use std::sync::Arc;

impl Algebra {
    /// The names that the next member may have.
    pub fn object_names(&mut self, state: ObjectState) -> Result<Language, SchemaError> {
        if let Some(&known) = self.objects.names.get(&state) {
            return Ok(known);
        }
        let (single, classes) = match self.first_wanted(state.spec, state.residual) {
            Some(wanted) => {
                let single = self.listed_names(state, wanted)?;
                let is_open = wanted.is_none() || self.options.property_order == PropertyOrder::Any;
                (single, if is_open { self.next_classes(self.after_declared(state))? } else { Vec::new() })
            }
            None => {
                let (single, classes) = self.next_names(state)?;
                (self.languages.texts(single.iter().map(|&n| self.formulas.text_of(n))), classes)
            }
        };
        let mut parts = vec![single];
        let spec = self.specs[state.spec as usize].clone();
        if !classes.is_empty() {
            let open = if classes.len() == spec.classes.len() {
                spec.unspoken
            } else {
                self.languages.union(classes.iter().map(|&c| spec.classes[c].names))
            };
            // Where each beginning of a name has endless continuations, names that were seen are refused at their end.
            let open = if self.languages.is_endless(open)? { open } else { self.minus_seen(open, state.seen) };
            parts.push(open);
        }
        let names = self.languages.union(parts);
        self.languages.check_limit()?;
        self.objects.names.insert(state, names);
        Ok(names)
    }

    /// Whether the next member may have nearly any name: all but some of those that matter by themselves
    /// (`names_that_matter`). Then every beginning of a name can be continued, and what a name comes to is found out at its
    /// end.
    pub fn names_are_open(&mut self, state: ObjectState) -> Result<bool, SchemaError> {
        if let Some(&known) = self.objects.open.get(&state) {
            return Ok(known);
        }
        let spec = self.specs[state.spec as usize].clone();
        let open = match &*spec.classes {
            [class] if class.size.is_none() => {
                let mut at = self.after_declared(state);
                at.residual = self.without(at.residual, state.spec, state.place..at.place);
                at.residual != Formula::FALSE && self.object_is_viable(at)? && self.class_may_come(at, class)?
            }
            _ => false,
        };
        self.objects.open.insert(state, open);
        Ok(open)
    }

    /// The state in which all declared names are done with, if they are in order.
    fn after_declared(&self, state: ObjectState) -> ObjectState {
        let place = match self.options.property_order {
            PropertyOrder::Declared => self.specs[state.spec as usize].order.len() as u32,
            _ => state.place,
        };
        ObjectState { place, ..state }
    }

    /// Whether an object already has a member of this name, which may not come again.
    pub fn has_seen(&self, state: ObjectState, name: &str) -> bool {
        self.objects.seen.has(&self.formulas, state.seen, name)
    }

    /// How many names an object has that may not come again.
    pub fn seen_count(&self, state: ObjectState) -> usize {
        self.objects.seen.size(state.seen)
    }

    /// The bytes that follow a beginning in such names; `None` where the beginning is one of them.
    pub fn seen_next_bytes(&self, state: ObjectState, beginning: &str, found: impl FnMut(Option<u8>)) {
        self.objects.seen.next_bytes(&self.formulas, state.seen, beginning, found);
    }

    /// Names of the object that begin like this and may not come again.
    pub fn seen_names<'a>(&'a self, state: ObjectState, beginning: &'a str) -> impl Iterator<Item = &'a str> {
        self.objects.seen.beginning_with(&self.formulas, state.seen, beginning)
    }

    /// A language without the names that the object already has.
    pub(crate) fn minus_seen_names(&mut self, names: Language, state: ObjectState) -> Language {
        self.minus_seen(names, state.seen)
    }

    pub(super) fn minus_seen(&mut self, names: Language, seen: SeenId) -> Language {
        if seen == SeenId::NONE {
            return names;
        }
        let seen = self.objects.seen.names(seen).map(|name| self.formulas.text_of(name));
        let seen = self.languages.texts(seen);
        self.languages.difference(names, seen)
    }

    /// The names spoken of one by one that may come next, and the classes of other names.
    pub(super) fn next_names(&mut self, state: ObjectState) -> Result<(Vec<Name>, Vec<usize>), SchemaError> {
        let spec = self.specs[state.spec as usize].clone();
        let mut single = Vec::new();
        let mut at = state;
        let mut open = true;
        for (place, &name) in spec.order.iter().enumerate().skip(state.place as usize) {
            if !self.object_moves(at, name)?.is_empty() {
                single.push(name);
            }
            if self.options.property_order == PropertyOrder::Declared {
                // Whoever goes on without this name must be able to finish without it.
                let next = place as u32 + 1;
                at.residual = self.without(at.residual, state.spec, place as u32..next);
                at.place = next;
                if at.residual == Formula::FALSE || !self.object_is_viable(at)? {
                    open = false;
                    break;
                }
            }
        }
        let mut classes = Vec::new();
        if open {
            for &name in &spec.others {
                if !self.object_moves(at, name)?.is_empty() {
                    single.push(name);
                }
            }
            classes = self.next_classes(at)?;
        }
        Ok((single, classes))
    }

    /// The classes of names that may come next, after all declared names.
    fn next_classes(&mut self, state: ObjectState) -> Result<Vec<usize>, SchemaError> {
        let spec = self.specs[state.spec as usize].clone();
        let mut classes = Vec::new();
        for (i, class) in spec.classes.iter().enumerate() {
            if self.has_fresh_name(class, state.seen)? && self.class_may_come(state, class)? {
                classes.push(i);
            }
        }
        Ok(classes)
    }

    /// Whether a fresh name of the class can be taken: any one stands for all of them.
    pub(super) fn class_may_come(&mut self, state: ObjectState, class: &NameClass) -> Result<bool, SchemaError> {
        let Some(name) = self.fresh_name(state.spec, class, state.seen)? else { return Ok(false) };
        Ok(!self.object_moves(state, name)?.is_empty())
    }

    /// A name of the class that was not seen.
    pub(super) fn fresh_name(
        &mut self,
        spec: u32,
        class: &NameClass,
        seen: SeenId,
    ) -> Result<Option<Name>, SchemaError> {
        let is_fresh = |a: &Self, name: Name| !a.objects.seen.has(&a.formulas, seen, a.formulas.text_of(name));
        if is_fresh(self, class.example) {
            return Ok(Some(class.example));
        }
        // What was made up before mostly suffices; of one name more than the object has, one is fresh.
        let MadeUp { names, next, .. } = self.made_up(spec, class, 1)?;
        let count = names.len();
        let mut found = (0..count).map(|i| (next + i) % count).find(|&i| is_fresh(self, names[i]));
        if found.is_none() {
            let MadeUp { names, .. } = self.made_up(spec, class, self.objects.seen.size(seen) + 1)?;
            found = (count..names.len()).find(|&i| is_fresh(self, names[i]));
        }
        let made_up = self.objects.made_up.get_mut(&(spec, class.example.0));
        Ok(made_up.zip(found).map(|(made_up, at)| {
            made_up.next = at;
            made_up.names[at]
        }))
    }

    /// At least so many names of a class, the short ones first; fewer if it has no more.
    pub(super) fn made_up(&mut self, spec: u32, class: &NameClass, count: usize) -> Result<MadeUp, SchemaError> {
        let key = (spec, class.example.0);
        if let Some(known) = self.objects.made_up.get(&key)
            && (known.names.len() >= count || known.is_all)
        {
            return Ok(known.clone());
        }
        let wanted = count.next_power_of_two().max(8);
        let mut texts = self.languages.examples(class.names, wanted)?;
        let mut is_all = false;
        while texts.len() < count && !is_all {
            let known = self.languages.texts(texts.iter().map(String::as_str));
            let left = self.languages.difference(class.names, known);
            match self.languages.example(left)? {
                Some(text) => texts.push(text),
                None => is_all = true,
            }
        }
        let names: Arc<[Name]> = texts.iter().map(|text| self.formulas.name(text)).collect();
        self.objects.heap += size_of_val(&*names);
        let made_up = MadeUp { names, is_all, next: 0 };
        self.objects.made_up.insert(key, made_up.clone());
        Ok(made_up)
    }

    pub(super) fn has_fresh_name(&mut self, class: &NameClass, seen: SeenId) -> Result<bool, SchemaError> {
        if self.languages.is_endless(class.names)? {
            return Ok(true);
        }
        let left = self.minus_seen(class.names, seen);
        Ok(self.languages.is_viable(left)?)
    }

    /// The names that the schema speaks of one by one.
    pub fn spoken_names(&mut self, state: ObjectState) -> Language {
        if let Some(&known) = self.objects.spoken_names.get(&state.spec) {
            return known;
        }
        let spec = self.specs[state.spec as usize].clone();
        let names = self.languages.texts(spec.spoken.iter().map(|name| &**name));
        self.objects.spoken_names.insert(state.spec, names);
        names
    }

    /// The class of all names that begin like this, may come next and do not matter by themselves; `None` if there are
    /// several, or if the names of the class can be used up.
    pub fn only_class(
        &mut self,
        state: ObjectState,
        beginning: impl FnOnce() -> String,
    ) -> Result<Option<u32>, SchemaError> {
        let spec = self.specs[state.spec as usize].clone();
        let mut only = None;
        let several = spec.classes.len() > 1;
        let beginning = if several { beginning() } else { String::new() };
        for (i, class) in spec.classes.iter().enumerate() {
            if several {
                if !may_meet(&beginning, &class.beginning) {
                    continue;
                }
                let rest = beginning.chars().fold(class.names, |rest, c| self.languages.step(rest, c as u32));
                if !self.languages.is_viable(rest)? || self.class_moves(state, i as u32)?.is_empty() {
                    continue;
                }
            }
            if only.is_some() || class.size.is_some() {
                return Ok(None);
            }
            only = Some(i as u32);
        }
        Ok(only)
    }

    /// How names that begin like this may go on in each class, where no name matters by itself: names whose beginnings are
    /// of one kind are treated alike.
    pub fn kind_of_names(&mut self, state: ObjectState, beginning: &str) -> Option<Vec<Language>> {
        let spec = self.specs[state.spec as usize].clone();
        let next = spec.spoken.partition_point(|name| &**name < beginning);
        if spec.spoken.get(next).is_some_and(|name| name.starts_with(beginning))
            || self.seen_names(state, beginning).next().is_some()
        {
            return None;
        }
        let mut kind = Vec::with_capacity(spec.classes.len());
        for class in &spec.classes {
            if !may_meet(beginning, &class.beginning) {
                kind.push(Language::EMPTY);
                continue;
            }
            let rest = beginning.chars().fold(class.names, |rest, c| self.languages.step(rest, c as u32));
            if rest != Language::EMPTY && class.size.is_some() {
                return None;
            }
            kind.push(rest);
        }
        Some(kind)
    }

    /// The class of a name that may come next, if all names of the class are treated alike: it is not spoken of, and there
    /// are always more of its kind.
    pub fn name_class(&mut self, state: ObjectState, name: &str) -> Option<u32> {
        let spec = self.specs[state.spec as usize].clone();
        let known = spec.spoken.binary_search_by(|spoken| (**spoken).cmp(name)).is_ok();
        if known || self.has_seen(state, name) {
            return None;
        }
        let has = |class: &NameClass| name.starts_with(&class.beginning) && self.languages.matches(class.names, name);
        let class = spec.classes.iter().position(has)?;
        spec.classes[class].size.is_none().then_some(class as u32)
    }

    /// The ways to treat a member with a name of the class, which is not noted as seen.
    pub fn class_moves(&mut self, state: ObjectState, class: u32) -> Result<Vec<Move>, SchemaError> {
        let spec = self.specs[state.spec as usize].clone();
        let example = spec.classes[class as usize].example;
        let mut moves = self.object_moves(ObjectState { seen: SeenId::NONE, ..state }, example)?.to_vec();
        moves.iter_mut().for_each(|(_, next)| next.seen = state.seen);
        Ok(moves)
    }
}
