//! `uniqueItems`: arrays whose items are compared with each other.
//!
//! The atom `Repeats` holds the items read so far; reading one more adds it, and asks of all others to differ. What makes
//! that subtle is the way on: an item may use up a value that a later one needs, as `"b"` does as the first of three
//! different items out of `a`, `b`, `c` where the second must be `b`. So an array is viable if some sequence of steps can be
//! filled with different values, which is a matching of steps and values (Hall's theorem: a step with as many values as
//! there are steps always finds one, so only small sets are ever listed).
//!
//! Where a schema asks for a repetition (`not: {uniqueItems: true}`) the search is for a step that shares a value with an
//! earlier one.

use crate::algebra::Algebra;
use crate::array::ArrayState;
use crate::constant::Const;
use crate::error::SchemaError;
use crate::formula::{Formula, FxMap, NO_END, Node, Type};
use hashbrown::HashSet;
use punchcard_automata::work;

/// Steps that an array still takes: a formula for the items, how many of them, and their values if those are few.
type Steps = Vec<(Formula, u32)>;

/// A way to fill all steps with different values.
struct Filling {
    /// The steps, and the values of those that have few.
    steps: Vec<(Formula, Option<Const>)>,
    /// There is no other sequence of steps.
    only: bool,
}

impl Algebra {
    /// Whether a residual speaks of equal items.
    pub(crate) fn compares_items(&mut self, f: Formula) -> bool {
        if let Some(&known) = self.arrays.compares.get(&f) {
            return known;
        }
        let compares = match self.formulas.node(f) {
            Node::Repeats(_) => true,
            &Node::Not(inner) => self.compares_items(inner),
            Node::And(items) | Node::Or(items) => {
                let items = items.clone();
                items.iter().any(|&i| self.compares_items(i))
            }
            _ => false,
        };
        self.arrays.compares.insert(f, compares);
        compares
    }

    /// Whether the value of the item that led to this state matters to what may follow.
    pub fn array_notes_item(&mut self, state: ArrayState) -> bool {
        self.compares_items(state.residual)
    }

    /// The state after an item with this JSON text; `None` if the item must not be. That is found out before it ends, but
    /// for numbers of very many digits or with enormous exponents: they would make the language of the others large, and
    /// there are always more that begin like them.
    pub fn array_after_item(&mut self, state: ArrayState, text: &str) -> Result<Option<ArrayState>, SchemaError> {
        let value = self.constant_of_text(text)?;
        let mut repeated = false;
        let residual = self.map_repeats(state.residual, &mut |a, items| match items.binary_search(&value) {
            Ok(_) => {
                repeated = true;
                Formula::TRUE
            }
            Err(at) => {
                let items = [&items[..at], &[value], &items[at..]].concat();
                a.formulas.intern(Node::Repeats(items.into()))
            }
        });
        let state = ArrayState { residual, ..state };
        Ok(if repeated && !self.array_is_viable(state)? { None } else { Some(state) })
    }

    fn map_repeats(&mut self, f: Formula, change: &mut dyn FnMut(&mut Self, &[Const]) -> Formula) -> Formula {
        self.rewrite(f, &mut |a, atom| match a.formulas.node(atom) {
            Node::Repeats(items) => {
                let items = items.clone();
                Some(change(a, &items))
            }
            _ => None,
        })
    }

    /// The residual in two cases: no item will be equal to another, or one will. All `Repeats` of a residual hold the same
    /// items, as all began with the array.
    fn by_repetition(&mut self, state: ArrayState) -> (ArrayState, ArrayState, Vec<Const>) {
        let mut noted = Vec::new();
        let fresh = self.map_repeats(state.residual, &mut |_, items| {
            noted = items.to_vec();
            Formula::FALSE
        });
        let repeated = self.map_repeats(state.residual, &mut |_, _| Formula::TRUE);
        let known = self.equal_to(&noted);
        let known = self.formulas.item(0, NO_END, known, 1);
        let unlike = self.formulas.not(known);
        let fresh = self.formulas.and([fresh, unlike]);
        (ArrayState { residual: fresh, ..state }, ArrayState { residual: repeated, ..state }, noted)
    }

    /// Whether an array whose items are compared can be finished. Called by the search only.
    pub(crate) fn search_compared(&mut self, state: ArrayState) -> Result<bool, SchemaError> {
        let (fresh, repeated, noted) = self.by_repetition(state);
        if self.fill(fresh)?.is_some() {
            return Ok(true);
        }
        self.can_repeat(repeated, &noted)
    }

    /// The values of an item after which the state can be finished.
    pub(crate) fn items_that_leave_a_way(&mut self, next: ArrayState) -> Result<Formula, SchemaError> {
        let (fresh, repeated, noted) = self.by_repetition(next);
        let mut allowed = Vec::new();
        if let Some(filling) = self.fill(fresh)? {
            // Only values that the filling needs can be missed.
            let mut needed = Vec::new();
            for value in filling.steps.into_iter().filter_map(|(_, value)| value) {
                let without = self.without_value(fresh, value);
                if filling.only || self.fill(without)?.is_none() {
                    needed.push(value);
                }
            }
            let needed = self.equal_to(&needed);
            allowed.push(self.formulas.not(needed));
        }
        if repeated.residual != Formula::FALSE {
            allowed.push(self.items_to_repeat(repeated, &noted)?);
        }
        Ok(self.formulas.or(allowed))
    }

    /// The items read so far of an array whose items are compared.
    pub(crate) fn noted_items(&mut self, state: ArrayState) -> Vec<Const> {
        self.by_repetition(state).2
    }

    fn without_value(&mut self, state: ArrayState, value: Const) -> ArrayState {
        let value = self.equal_to(&[value]);
        let some = self.formulas.item(0, NO_END, value, 1);
        let none = self.formulas.not(some);
        ArrayState { residual: self.formulas.and([state.residual, none]), ..state }
    }

    /// Looks for steps to an end that different values can fill.
    fn fill(&mut self, state: ArrayState) -> Result<Option<Filling>, SchemaError> {
        if !self.array_is_viable(state)? {
            return Ok(None);
        }
        if self.array_may_end(state) {
            return Ok(Some(Filling { steps: Vec::new(), only: false }));
        }
        let mut path = Vec::new();
        let mut budget = self.options.limits.max_search;
        self.fill_from(state, &mut path, &mut Vec::new(), &mut budget)
    }

    fn fill_from(
        &mut self,
        state: ArrayState,
        path: &mut Steps,
        visited: &mut Vec<ArrayState>,
        budget: &mut usize,
    ) -> Result<Option<Filling>, SchemaError> {
        if self.array_may_end(state) {
            return Ok(self.different_values(path)?.map(|steps| Filling { steps, only: false }));
        }
        if let Some(steady) = self.steady(state)
            && let Some(rest) = steady.to_come()
        {
            let length = path.len();
            path.extend(rest);
            let steps = self.different_values(path)?;
            path.truncate(length);
            match steps {
                Some(steps) => return Ok(Some(Filling { steps, only: length == 0 && steady.wanted.is_empty() })),
                // One item may serve several wishes; without wishes there is no other way.
                None if steady.wanted.is_empty() => return Ok(None),
                None => {}
            }
        }
        *budget = budget.checked_sub(1).ok_or_else(|| self.too_many_ways())?;
        visited.push(state);
        let mut found = None;
        for (value, next) in self.array_steps(state)? {
            // Going in a circle only uses up values.
            if visited.contains(&next) || !self.is_satisfiable(value)? || !self.array_is_viable(next)? {
                continue;
            }
            path.push((value, 1));
            found = stacker::maybe_grow(64 << 10, 1 << 20, || self.fill_from(next, path, visited, budget))?;
            path.pop();
            if found.is_some() {
                break;
            }
        }
        visited.pop();
        Ok(found)
    }

    fn too_many_ways(&self) -> SchemaError {
        let limit = self.options.limits.max_search;
        SchemaError::limit("max_search", limit, "", "Simplify the arrays with uniqueItems, or raise the limit")
    }

    /// Steps with different values for all, given to those that have no more values than there are steps. `None` if there
    /// are not enough.
    #[expect(clippy::type_complexity)]
    fn different_values(
        &mut self,
        steps: &[(Formula, u32)],
    ) -> Result<Option<Vec<(Formula, Option<Const>)>>, SchemaError> {
        let total = steps.iter().fold(0u32, |sum, (_, count)| sum.saturating_add(*count));
        if total as usize > self.options.limits.max_search {
            return Err(self.too_many_ways());
        }
        let mut slots: Vec<Vec<Const>> = Vec::new();
        let mut filled = Vec::with_capacity(total as usize);
        let mut tight = Vec::new();
        for &(formula, count) in steps {
            if let Some(values) = self.values_up_to(formula, total)? {
                if values.len() < count as usize {
                    return Ok(None);
                }
                slots.extend(std::iter::repeat_n(values, count as usize));
                tight.extend(filled.len()..filled.len() + count as usize);
            }
            filled.extend(std::iter::repeat_n((formula, None), count as usize));
        }
        let Some(values) = matching(&slots) else { return Ok(None) };
        for (step, value) in tight.into_iter().zip(values) {
            filled[step].1 = Some(value);
        }
        Ok(Some(filled))
    }

    /// Different items that complete an array whose items are compared.
    #[expect(clippy::type_complexity)]
    pub(crate) fn different_items(
        &mut self,
        state: ArrayState,
    ) -> Result<Option<Vec<(Formula, Option<Const>)>>, SchemaError> {
        let (fresh, _, _) = self.by_repetition(state);
        Ok(self.fill(fresh)?.map(|filling| filling.steps))
    }

    /// Interns the value of a JSON text.
    pub(crate) fn constant_of_text(&mut self, text: &str) -> Result<Const, SchemaError> {
        let known = self.json.len();
        let value = self.json.parse_admitted(text);
        let constant = value.map(|value| self.constant(value));
        self.json.truncate(known);
        constant
    }

    /// All values of a formula, if there are at most `most`.
    fn values_up_to(&mut self, f: Formula, most: u32) -> Result<Option<Vec<Const>>, SchemaError> {
        if self.is_plainly_infinite(f)? {
            return Ok(None);
        }
        let texts = self.texts(f)?;
        let numbers = self.restrict(f, Type::Number)?;
        if self.languages.count_up_to(texts, most + 1)? > most || self.has_more_numbers_than(numbers, most)? {
            return Ok(None);
        }
        let mut values = Vec::new();
        let mut rest = f;
        while self.is_satisfiable(rest)? {
            if values.len() >= most as usize {
                return Ok(None);
            }
            let text = self.example(rest)?.ok_or_else(|| self.too_many_ways())?;
            values.push(self.constant_of_text(&text)?);
            let known = self.equal_to(&values);
            let others = self.formulas.not(known);
            rest = self.formulas.and([f, others]);
        }
        Ok(Some(values))
    }

    /// Whether the formula has infinitely many values, as far as that can be seen without looking for them.
    fn is_plainly_infinite(&mut self, f: Formula) -> Result<bool, SchemaError> {
        for t in [Type::String, Type::Number, Type::Array, Type::Object] {
            let part = self.restrict(f, t)?;
            let infinite = match self.formulas.node(part) {
                Node::True => true,
                // Without a last bound on both sides of some number there is room for more of them.
                _ if t == Type::String => {
                    let texts = self.texts(f)?;
                    self.languages.as_run(texts).is_some_and(|(set, _, most)| {
                        most == punchcard_automata::languages::UNBOUNDED && !set.is_empty()
                    })
                }
                _ => false,
            };
            if infinite {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether an array can be finished in which some item to come is equal to one of those noted, or to an earlier one
    /// of those to come.
    fn can_repeat(&mut self, state: ArrayState, noted: &[Const]) -> Result<bool, SchemaError> {
        if state.residual == Formula::FALSE {
            return Ok(false);
        }
        let noted = self.equal_to(noted);
        // A mark is the formula of an item that a later one is to repeat.
        let mut open: Vec<(ArrayState, Option<Formula>)> = vec![(state, None)];
        let mut seen: HashSet<(ArrayState, Option<Formula>)> = open.iter().copied().collect();
        while let Some((state, mark)) = open.pop() {
            work::spend(1)?;
            if seen.len() > self.options.limits.max_search {
                return Err(self.too_many_ways());
            }
            for (value, next) in self.array_steps(state)? {
                if !self.is_satisfiable(value)? || !self.array_is_viable(next)? {
                    continue;
                }
                let known = self.formulas.or([noted, mark.unwrap_or(Formula::FALSE)]);
                let again = self.formulas.and([value, known]);
                if self.is_satisfiable(again)? {
                    return Ok(true);
                }
                let marks = [mark, mark.is_none().then_some(value)];
                open.extend(marks.into_iter().map(|mark| (next, mark)).filter(|&way| seen.insert(way)));
            }
        }
        Ok(false)
    }

    /// The values of an item after which an item can be repeated: all, or those that come up again.
    fn items_to_repeat(&mut self, state: ArrayState, noted: &[Const]) -> Result<Formula, SchemaError> {
        if self.can_repeat(state, noted)? {
            return Ok(Formula::TRUE);
        }
        let (mut open, mut seen) = (vec![state], FxMap::default());
        let mut values = Vec::new();
        while let Some(state) = open.pop() {
            work::spend(1)?;
            if seen.len() > self.options.limits.max_search {
                return Err(self.too_many_ways());
            }
            for (value, next) in self.array_steps(state)? {
                if self.is_satisfiable(value)? && self.array_is_viable(next)? {
                    values.push(value);
                    if seen.insert(next, ()).is_none() {
                        open.push(next);
                    }
                }
            }
        }
        Ok(self.formulas.or(values))
    }
}

/// A value for each slot out of its list, all different (augmenting paths: Kuhn 1955).
fn matching(slots: &[Vec<Const>]) -> Option<Vec<Const>> {
    fn place(slot: usize, slots: &[Vec<Const>], owner: &mut FxMap<Const, usize>, tried: &mut FxMap<Const, ()>) -> bool {
        for &value in &slots[slot] {
            if tried.insert(value, ()).is_some() {
                continue;
            }
            let free = match owner.get(&value) {
                Some(&other) => place(other, slots, owner, tried),
                None => true,
            };
            if free {
                owner.insert(value, slot);
                return true;
            }
        }
        false
    }
    let mut owner = FxMap::default();
    for slot in 0..slots.len() {
        if !place(slot, slots, &mut owner, &mut FxMap::default()) {
            return None;
        }
    }
    let mut values = vec![Const::EMPTY_ARRAY; slots.len()];
    owner.into_iter().for_each(|(value, slot)| values[slot] = value);
    Some(values)
}
