//! Examples: the JSON text of a value that satisfies a formula.
//!
//! An example follows the proof that there is one: the search notes when it found each answer, and every answer rests on
//! earlier ones only. So going from an answer to earlier ones, a recursive schema comes to an end.

use crate::algebra::Algebra;
use crate::array::ArrayState;
use crate::error::SchemaError;
use crate::formula::{Formula, Name, Node, Type};
use crate::object::ObjectState;
use crate::satisfy::Question;
use punchcard_automata::work;

/// Most items and members of an example.
const MOST_PARTS: usize = 100_000;

/// Most bytes of an example: a few characters of a schema can ask for a billion items.
const MOST_BYTES: usize = 4 << 20;

/// How far an example has come: answers found from `before` on are not to be used, `parts` may still be written.
struct Writer {
    text: String,
    parts: usize,
}

impl Algebra {
    /// The JSON text of some value of the formula; `None` if it has none.
    pub fn example(&mut self, f: Formula) -> Result<Option<String>, SchemaError> {
        if !self.is_satisfiable(f)? {
            return Ok(None);
        }
        let mut writer = Writer { text: String::new(), parts: MOST_PARTS };
        let written = self.write_value(f, u32::MAX, &mut writer)?;
        Ok(written.then_some(writer.text))
    }

    /// What completes an object, from between two members: further members and the closing brace.
    pub fn object_rest(&mut self, state: ObjectState) -> Result<Option<String>, SchemaError> {
        let mut writer = Writer { text: String::new(), parts: MOST_PARTS };
        let written = self.object_is_viable(state)? && self.write_object(state, &mut writer)?;
        Ok(written.then(|| writer.text.split_off(1)))
    }

    /// What completes an array, from between two items: further items and the closing bracket.
    pub fn array_rest(&mut self, state: ArrayState) -> Result<Option<String>, SchemaError> {
        let mut writer = Writer { text: String::new(), parts: MOST_PARTS };
        let written = self.array_is_viable(state)? && self.write_array(state, &mut writer)?;
        Ok(written.then(|| writer.text.split_off(1)))
    }

    /// A name with which an object goes on towards its end, as JSON text; `None` if it may end, or if what is left of it cannot
    /// be told member by member.
    pub fn name_on_the_way(&mut self, state: ObjectState) -> Result<Option<String>, SchemaError> {
        if self.object_may_end(state) || !self.object_is_viable(state)? {
            return Ok(None);
        }
        let Some((name, _)) = self.independent_member(state)? else { return Ok(None) };
        let mut writer = Writer { text: String::new(), parts: 0 };
        write_string(self.formulas.text_of(name), &mut writer);
        Ok(Some(writer.text))
    }

    /// An item with which an array goes on towards its end; `None` if it may end, or if what is left of it cannot be told
    /// item by item.
    pub fn item_on_the_way(&mut self, state: ArrayState) -> Result<Option<Formula>, SchemaError> {
        if self.array_may_end(state) || !self.array_is_viable(state)? {
            return Ok(None);
        }
        let items = self.by_position(state);
        Ok(items.and_then(|items| items.first().map(|&(value, _)| value)))
    }

    /// A member that may come next in an object that has a way to go on: its name, and a value.
    pub fn next_member(&mut self, state: ObjectState) -> Result<Option<String>, SchemaError> {
        let names = self.object_names(state)?;
        let names = self.minus_seen_names(names, state);
        let Some(text) = self.languages.example(names)? else { return Ok(None) };
        let name = self.formulas.name(&text);
        for &(value, _) in self.object_moves(state, name)?.iter() {
            if let Some(value) = self.example(value)? {
                let mut writer = Writer { text: String::new(), parts: 0 };
                write_string(&text, &mut writer);
                return Ok(Some(format!("{}:{value}", writer.text)));
            }
        }
        Ok(None)
    }

    /// An item that may come next in an array that has a way to go on.
    pub fn next_item(&mut self, state: ArrayState) -> Result<Option<String>, SchemaError> {
        for (value, _) in self.array_moves(state)? {
            if let Some(value) = self.example(value)? {
                return Ok(Some(value));
            }
        }
        Ok(None)
    }

    fn is_known(&self, question: Question, before: u32) -> Option<u32> {
        self.search.found(question).filter(|&found| found < before)
    }

    fn value_is_known(&self, f: Formula, before: u32) -> bool {
        f == Formula::TRUE || self.is_known(Question::Value(f), before).is_some()
    }

    fn write_value(&mut self, f: Formula, before: u32, to: &mut Writer) -> Result<bool, SchemaError> {
        if to.text.len() > MOST_BYTES {
            let hint = "Ask for fewer items and members, and for shorter texts";
            return Err(SchemaError::limit("bytes of an example", MOST_BYTES, "", hint));
        }
        if f == Formula::TRUE {
            to.text.push_str("null");
            return Ok(true);
        }
        let Some(found) = self.is_known(Question::Value(f), before) else { return Ok(false) };
        to.parts = to.parts.checked_sub(1).ok_or_else(|| {
            SchemaError::limit("size of an example", MOST_PARTS, "", "Ask for fewer items and members")
        })?;
        for (t, word) in [(Type::Null, "null"), (Type::True, "true"), (Type::False, "false")] {
            if self.restrict(f, t)? != Formula::FALSE {
                to.text.push_str(word);
                return Ok(true);
            }
        }
        let texts = self.texts(f)?;
        if let Some(text) = self.languages.example(texts)? {
            write_string(&text, to);
            return Ok(true);
        }
        let numbers = self.numbers(f)?;
        if let Some(number) = self.languages.example(numbers)? {
            to.text.push_str(&number);
            return Ok(true);
        }
        let array = self.restrict(f, Type::Array)?;
        if array != Formula::FALSE {
            let state = ArrayState { residual: array, index: 0 };
            if self.is_known(Question::Array(state), found).is_some() {
                let length = to.text.len();
                if stacker::maybe_grow(128 << 10, 2 << 20, || self.write_array(state, to))? {
                    return Ok(true);
                }
                to.text.truncate(length);
            }
        }
        for state in self.object_starts(f)? {
            if self.is_known(Question::Object(state), found).is_some() {
                let length = to.text.len();
                if stacker::maybe_grow(128 << 10, 2 << 20, || self.write_object(state, to))? {
                    return Ok(true);
                }
                to.text.truncate(length);
            }
        }
        Ok(false)
    }

    /// Writes an array that is known to have an example.
    fn write_array(&mut self, start: ArrayState, to: &mut Writer) -> Result<bool, SchemaError> {
        to.text.push('[');
        let (mut state, mut items) = (start, 0);
        while !self.array_may_end(state) {
            work::spend(1)?;
            let Some(found) = self.search.found(Question::Array(state)) else { return Ok(false) };
            // The search takes alternatives one by one.
            if let Node::Or(items) = self.formulas.node(state.residual) {
                let mut branches = items.iter().map(|&residual| ArrayState { residual, ..state });
                match branches.find(|&branch| self.is_known(Question::Array(branch), found).is_some()) {
                    Some(branch) => state = branch,
                    None => return Ok(false),
                }
                continue;
            }
            if self.compares_items(state.residual) {
                return self.write_different(state, to);
            }
            let steady = self.steady(state).and_then(|steady| steady.to_come());
            if let Some(rest) = steady.or_else(|| self.by_position(state)) {
                for (value, count) in rest {
                    for _ in 0..count {
                        separate(&mut items, to);
                        if !self.write_value(value, found, to)? {
                            return Ok(false);
                        }
                    }
                }
                break;
            }
            let mut way = None;
            for (value, next) in self.array_steps(state)? {
                let ends = self.array_may_end(next) || self.is_known(Question::Array(next), found).is_some();
                if ends && self.value_is_known(value, found) {
                    way = Some((value, next));
                    break;
                }
            }
            let Some((value, next)) = way else { return Ok(false) };
            separate(&mut items, to);
            if !self.write_value(value, found, to)? {
                return Ok(false);
            }
            state = next;
        }
        to.text.push(']');
        Ok(true)
    }

    /// Writes what is left of an array of different items, and its end.
    fn write_different(&mut self, state: ArrayState, to: &mut Writer) -> Result<bool, SchemaError> {
        let Some(steps) = self.different_items(state)? else { return self.write_repeated(state, to) };
        let (mut used, mut items) = (Vec::new(), 0);
        used.extend(steps.iter().filter_map(|&(_, value)| value));
        for (formula, value) in steps {
            separate(&mut items, to);
            let item = match value {
                Some(value) => self.equal_to(&[value]),
                None => {
                    let used = self.equal_to(&used);
                    let fresh = self.formulas.not(used);
                    self.formulas.and([formula, fresh])
                }
            };
            let from = to.text.len();
            // What these formulas rest on was found just now.
            if !self.is_satisfiable(item)? || !self.write_value(item, u32::MAX, to)? {
                return Ok(false);
            }
            if value.is_none() {
                let text = to.text[from..].to_string();
                used.push(self.constant_of_text(&text)?);
            }
        }
        to.text.push(']');
        Ok(true)
    }

    /// Writes what is left of an array in which some item comes again, and its end.
    fn write_repeated(&mut self, start: ArrayState, to: &mut Writer) -> Result<bool, SchemaError> {
        const MOST_ITEMS: usize = 1_000;
        let (mut state, mut items) = (start, 0);
        while !self.array_may_end(state) {
            work::spend(1)?;
            let known = self.noted_items(state);
            let known = self.equal_to(&known);
            let mut way = None;
            for (value, next) in self.array_moves(state)? {
                let again = self.formulas.and([value, known]);
                if self.is_satisfiable(again)? {
                    way = Some((again, next));
                    break;
                }
                way = way.or(Some((value, next)));
            }
            let Some((value, next)) = way.filter(|_| items < MOST_ITEMS) else { return Ok(false) };
            separate(&mut items, to);
            let from = to.text.len();
            if !self.write_value(value, u32::MAX, to)? {
                return Ok(false);
            }
            let text = to.text[from..].to_string();
            let noted = self.array_notes_item(next);
            let next = if noted { self.array_after_item(next, &text)? } else { Some(next) };
            let Some(next) = next else { return Ok(false) };
            state = next;
        }
        to.text.push(']');
        Ok(true)
    }

    /// Writes an object that is known to have an example.
    fn write_object(&mut self, start: ObjectState, to: &mut Writer) -> Result<bool, SchemaError> {
        to.text.push('{');
        let (mut state, mut members) = (start, 0);
        while !self.object_may_end(state) {
            work::spend(1)?;
            let Some(found) = self.search.found(Question::Object(state)) else { return Ok(false) };
            if let Some(branches) = self.branches_of(state.residual()) {
                let mut branches = branches.into_iter().map(|residual| state.with_residual(residual));
                match branches.find(|&branch| self.is_known(Question::Object(branch), found).is_some()) {
                    Some(branch) => state = branch,
                    None => return Ok(false),
                }
                continue;
            }
            if let Some(rest) = self.independent_example(state)?
                && rest.iter().all(|&(_, value)| self.value_is_known(value, found))
            {
                for (name, value) in rest {
                    separate(&mut members, to);
                    if !self.write_member(name, value, found, to)? {
                        return Ok(false);
                    }
                }
                break;
            }
            let Some((name, value, next)) = self.known_member(state, found)? else { return Ok(false) };
            separate(&mut members, to);
            if !self.write_member(name, value, found, to)? {
                return Ok(false);
            }
            state = next;
        }
        to.text.push('}');
        Ok(true)
    }

    fn write_member(&mut self, name: Name, value: Formula, before: u32, to: &mut Writer) -> Result<bool, SchemaError> {
        let text = self.formulas.text_of(name).to_string();
        write_string(&text, to);
        to.text.push(':');
        self.write_value(value, before, to)
    }

    /// A member that brings the object nearer to its end.
    fn known_member(
        &mut self,
        state: ObjectState,
        before: u32,
    ) -> Result<Option<(Name, Formula, ObjectState)>, SchemaError> {
        for name in self.names_to_try(state)? {
            for (value, next) in self.object_steps(state, name)? {
                let ends = self.object_may_end(next) || self.is_known(Question::Object(next), before).is_some();
                if ends && self.value_is_known(value, before) {
                    return Ok(Some((name, value, next)));
                }
            }
        }
        Ok(None)
    }
}

fn separate(count: &mut usize, to: &mut Writer) {
    if *count > 0 {
        to.text.push(',');
    }
    *count += 1;
}

fn write_string(text: &str, to: &mut Writer) {
    to.text.push('"');
    to.text.push_str(&escaped(text));
    to.text.push('"');
}

/// The inside of a JSON string, with the escapes that it needs.
pub fn escaped(text: &str) -> String {
    let mut to = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' => to.push_str("\\\""),
            '\\' => to.push_str("\\\\"),
            '\n' => to.push_str("\\n"),
            '\r' => to.push_str("\\r"),
            '\t' => to.push_str("\\t"),
            '\u{8}' => to.push_str("\\b"),
            '\u{c}' => to.push_str("\\f"),
            c if c < ' ' => to.push_str(&format!("\\u{:04x}", c as u32)),
            c => to.push(c),
        }
    }
    to
}
