//! `oneOf`: exactly one alternative.
//!
//! "A and not B" is A itself where no value is in both, which is the common case of alternatives told apart by a tag. So
//! a complement is taken only of alternatives that really overlap, and only those are compared that may:
//!
//! - Alternatives that list their values (`const`, `enum`) are counted value by value.
//! - Many strings or numbers are put together by halves, without any comparison: languages and sets of numbers have
//!   complements that cost nothing until a text visits them.
//! - Arrays and objects are put into groups by a part that each of them has with one of a few known values (a tag), and
//!   compared only within a group.

use crate::algebra::Algebra;
use crate::constant::{Const, Constant};
use crate::error::{SchemaError, SchemaErrorKind};
use crate::formula::{Formula, FxMap, Keys, NO_END, Name, Node, NumberAtom, Type, Types};
use punchcard_automata::Language;
use std::hash::Hash;

/// Every pair is compared of fewer alternatives than this.
const MANY: usize = 8;

/// A part of an array or object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Part {
    Member(Name),
    Item(u32),
}

/// What a formula says of parts that each of its values has.
type Parts = FxMap<Part, Formula>;

/// The values that parts may have, where these are few.
type Tags = FxMap<Part, Vec<Const>>;

impl Algebra {
    /// Exactly one of formulas that are restricted to type `t`; `one` is the formula they come from. Of those in `inner` only
    /// that part is taken where they hold alone; it is about what is within arrays and objects.
    pub(crate) fn exactly_one(
        &mut self,
        one: Formula,
        parts: Vec<Formula>,
        inner: &FxMap<Formula, Formula>,
        t: Type,
    ) -> Result<Formula, SchemaError> {
        let parts: Vec<Formula> = parts.into_iter().filter(|&p| p != Formula::FALSE).collect();
        if parts.len() < 2 {
            return Ok(parts.first().map_or(Formula::FALSE, |part| *inner.get(part).unwrap_or(part)));
        }
        if parts.len() >= MANY {
            match t {
                Type::String => return self.one_text(parts),
                Type::Number => return Ok(self.one_number(parts)),
                _ => {}
            }
            let lists = || parts.iter().map(|&part| self.constants_listed(part)).collect::<Option<Vec<_>>>();
            if let Some(lists) = inner.is_empty().then(lists).flatten() {
                let once = once(lists.into_iter().flatten().copied());
                return Ok(self.formulas.among(t, once));
            }
        }
        self.one_by_comparison(one, &parts, inner, t)
    }

    fn constants_listed(&self, f: Formula) -> Option<&[Const]> {
        match self.formulas.node(f) {
            Node::Among(_, list) => Some(list),
            _ => None,
        }
    }

    /// Exactly one of many formulas over strings, as one language.
    fn one_text(&mut self, parts: Vec<Formula>) -> Result<Formula, SchemaError> {
        let (mut listed, mut ways) = (Vec::new(), Vec::new());
        for part in parts {
            let language = self.texts(part)?;
            match self.languages.as_texts(language) {
                Some(texts) => listed.extend(texts.into_iter().map(Box::<str>::from)),
                None => ways.push((language, language)),
            }
        }
        let ever = self.languages.texts(listed.iter().map(|text| &**text));
        let once = once(listed.iter());
        let once = self.languages.texts(once.into_iter().map(|text| &**text));
        ways.push((once, ever));
        let (one, _) =
            by_halves(ways, (Language::EMPTY, Language::EMPTY), &mut |(one, any), (other_one, other_any)| {
                let (left, right) =
                    (self.languages.difference(one, other_any), self.languages.difference(other_one, any));
                (self.languages.union([left, right]), self.languages.union([any, other_any]))
            });
        self.languages.check_limit()?;
        Ok(self.formulas.text(one))
    }

    /// The same over numbers.
    fn one_number(&mut self, parts: Vec<Formula>) -> Formula {
        let (mut listed, mut ways) = (Vec::new(), Vec::new());
        for part in parts {
            match self.numbers_listed(&part) {
                Some(equal) => listed.extend_from_slice(equal),
                None => ways.push((part, part)),
            }
        }
        let once = once(listed.iter().copied());
        ways.push((self.formulas.or(once), self.formulas.or(listed)));
        let (one, _) = by_halves(ways, (Formula::FALSE, Formula::FALSE), &mut |(one, any), (other_one, other_any)| {
            let (none, other_none) = (self.formulas.not(any), self.formulas.not(other_any));
            let (left, right) = (self.formulas.and([one, other_none]), self.formulas.and([other_one, none]));
            (self.formulas.or([left, right]), self.formulas.or([any, other_any]))
        });
        one
    }

    /// "Equal to one of these numbers", number by number.
    fn numbers_listed<'a>(&'a self, f: &'a Formula) -> Option<&'a [Formula]> {
        let items = match self.formulas.node(*f) {
            Node::Or(items) => items,
            _ => std::slice::from_ref(f),
        };
        let is_equal = |item: &Formula| matches!(self.formulas.node(*item), Node::Number(NumberAtom::Equal(_)));
        items.iter().all(is_equal).then_some(items)
    }

    /// Each alternative, and none of those that it overlaps with.
    fn one_by_comparison(
        &mut self,
        one: Formula,
        parts: &[Formula],
        inner: &FxMap<Formula, Formula>,
        t: Type,
    ) -> Result<Formula, SchemaError> {
        // What an alternative says twice it says of no value.
        let mut counts: FxMap<Formula, usize> = FxMap::default();
        parts.iter().for_each(|&part| *counts.entry(part).or_default() += 1);
        let mut parts = parts.to_vec();
        parts.sort_unstable();
        parts.dedup();
        // A comparison that needs itself: every pair may overlap, which is always right, only longer.
        let compare = !self.comparing.contains(&(one, t));
        let said: Vec<Parts> = parts.iter().map(|&part| self.parts_that_come(part)).collect();
        self.comparing.push((one, t));
        let overlaps = self.overlaps(one, &parts, &said, t, compare);
        self.comparing.pop();
        let mut alternatives = Vec::with_capacity(parts.len());
        for (&part, others) in parts.iter().zip(overlaps?) {
            if counts[&part] > 1 {
                continue;
            }
            let mut all = vec![*inner.get(&part).unwrap_or(&part)];
            for other in others {
                let other = self.formulas.not(other);
                all.push(self.restrict(other, t)?);
            }
            alternatives.push(self.formulas.and(all));
        }
        Ok(self.formulas.or(alternatives))
    }

    /// For each alternative the others that it may overlap with.
    fn overlaps(
        &mut self,
        one: Formula,
        parts: &[Formula],
        said: &[Parts],
        t: Type,
        compare: bool,
    ) -> Result<Vec<Vec<Formula>>, SchemaError> {
        let mut overlaps = vec![Vec::new(); parts.len()];
        for (i, j) in self.pairs_to_compare(one, said)? {
            if compare && self.are_disjoint((parts[i], &said[i]), (parts[j], &said[j]), t)? {
                continue;
            }
            overlaps[i].push(parts[j]);
            overlaps[j].push(parts[i]);
        }
        Ok(overlaps)
    }

    /// The pairs of alternatives that may have a value in common, as far as their tags tell.
    fn pairs_to_compare(&mut self, one: Formula, said: &[Parts]) -> Result<Vec<(usize, usize)>, SchemaError> {
        let mut pairs = Vec::new();
        let all: Vec<usize> = (0..said.len()).collect();
        if said.len() < MANY {
            add_pairs(&all, &all, &mut pairs);
            return Ok(pairs);
        }
        let mut tags: Vec<Tags> = Vec::with_capacity(said.len());
        for parts in said {
            let mut few = Tags::default();
            for (&part, &value) in parts {
                few.extend(self.apart(|a| a.few_values(value)).map(|values| (part, values)));
            }
            tags.push(few);
        }
        let most = self.options.limits.max_search;
        let mut groups = vec![(all, Vec::new())];
        while let Some((group, done)) = groups.pop() {
            let tag = if group.len() < MANY { None } else { best_tag(&tags, &group, &done) };
            let Some(tag) = tag else {
                if pairs.len() + group.len() * group.len() / 2 > most {
                    return Err(self.too_many_pairs(one, most));
                }
                add_pairs(&group, &group, &mut pairs);
                continue;
            };
            let (with, without): (Vec<usize>, Vec<usize>) = group.iter().partition(|&&i| tags[i].contains_key(&tag));
            if pairs.len() + without.len() * group.len() > most {
                return Err(self.too_many_pairs(one, most));
            }
            add_pairs(&without, &group, &mut pairs);
            let mut by_value: FxMap<Const, Vec<usize>> = FxMap::default();
            for i in with {
                tags[i][&tag].iter().for_each(|&value| by_value.entry(value).or_default().push(i));
            }
            let done = [&done[..], &[tag]].concat();
            groups.extend(by_value.into_values().filter(|group| group.len() > 1).map(|group| (group, done.clone())));
        }
        pairs.sort_unstable();
        pairs.dedup();
        Ok(pairs)
    }

    fn too_many_pairs(&self, one: Formula, most: usize) -> SchemaError {
        let says = |f: Formula| match self.formulas.node(f) {
            Node::And(items) => items.contains(&one),
            _ => f == one,
        };
        let place = self.compiled.iter().find(|&(_, &f)| says(f));
        let pointer = place.map(|(&(at, _), _)| self.json.pointer(at)).unwrap_or_default();
        let hint = "Give each alternative of 'oneOf' a required property with a 'const' of its own, write 'anyOf' where no \
                    value can be in two of them, or raise the limit";
        SchemaError::limit("max_search", most, &pointer, hint)
    }

    /// The values of a formula, if they are listed in the schema.
    fn few_values(&mut self, f: Formula) -> Option<Vec<Const>> {
        let f = match *self.formulas.node(f) {
            Node::Schema { at, scope } => self.compile_schema(at, scope).ok()?,
            _ => f,
        };
        if let Some(list) = self.constants_listed(f) {
            return Some(list.to_vec());
        }
        let f = self.flat(f)?;
        for t in [Type::Array, Type::Object] {
            if self.restrict(f, t).ok()? != Formula::FALSE {
                return None;
            }
        }
        let mut values = Vec::new();
        let words =
            [(Type::Null, Constant::Null), (Type::False, Constant::Bool(false)), (Type::True, Constant::Bool(true))];
        for (t, word) in words {
            if self.restrict(f, t).ok()? != Formula::FALSE {
                values.push(word);
            }
        }
        let numbers = self.restrict(f, Type::Number).ok()?;
        if numbers != Formula::FALSE {
            values.extend(self.numbers_listed(&numbers)?.iter().filter_map(
                |&number| match self.formulas.node(number) {
                    Node::Number(NumberAtom::Equal(value)) => Some(Constant::Number(value.clone())),
                    _ => None,
                },
            ));
        }
        let texts = self.texts(f).ok()?;
        values.extend(self.languages.as_texts(texts)?.into_iter().map(|text| Constant::Text(text.into())));
        Some(values.into_iter().map(|value| self.constants.intern(value)).collect())
    }

    fn are_disjoint(&mut self, a: (Formula, &Parts), b: (Formula, &Parts), t: Type) -> Result<bool, SchemaError> {
        for (part, &value) in a.1 {
            if let Some(&other) = b.1.get(part) {
                let both = self.formulas.and([value, other]);
                if self.apart(|a| a.is_satisfiable(both)).is_ok_and(|yes| !yes) {
                    return Ok(true);
                }
            }
        }
        let typed = self.formulas.types(Types::only(t));
        let both = self.formulas.and([typed, a.0, b.0]);
        match self.apart(|a| a.is_satisfiable(both)) {
            Ok(yes) => Ok(!yes),
            // Not decided within the limits: they may overlap.
            Err(error) if matches!(error.kind, SchemaErrorKind::Limit { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Members and items that every value of the formula has, with what it says of them.
    fn parts_that_come(&mut self, f: Formula) -> Parts {
        let items = match self.formulas.node(f) {
            Node::Or(items) => {
                let items = items.clone();
                let mut said: Option<Parts> = None;
                for &item in items.iter() {
                    let other = self.parts_that_come(item);
                    said = Some(match said {
                        None => other,
                        Some(said) => self.parts_of_either(said, &other),
                    });
                }
                return said.unwrap_or_default();
            }
            Node::And(items) => items.clone(),
            Node::Among(_, list) if list.len() == 1 => return self.parts_of_constant(list[0]),
            _ => Box::new([f]),
        };
        let mut said: FxMap<Part, Vec<Formula>> = FxMap::default();
        let mut least = 0;
        for &item in items.iter() {
            match *self.formulas.node(item) {
                Node::Member { keys: Keys::One(name), value } => {
                    said.entry(Part::Member(name)).or_default().push(value);
                }
                // Of so many items from a place on, the first ones must come.
                Node::Item { from, count, .. } => least = least.max(from.saturating_add(count)),
                _ => {}
            }
        }
        for &item in items.iter() {
            let &Node::Not(inner) = self.formulas.node(item) else { continue };
            match *self.formulas.node(inner) {
                Node::Member { keys: Keys::One(name), value } => {
                    if let Some(values) = said.get_mut(&Part::Member(name)) {
                        values.push(self.formulas.not(value));
                    }
                }
                Node::Item { from, to, value, count: 1 } if to != NO_END && to - from == 1 && from < least => {
                    let value = self.formulas.not(value);
                    said.entry(Part::Item(from)).or_default().push(value);
                }
                _ => {}
            }
        }
        said.into_iter().map(|(part, values)| (part, self.formulas.and(values))).collect()
    }

    fn parts_of_either(&mut self, a: Parts, b: &Parts) -> Parts {
        let both = a.into_iter().filter_map(|(part, value)| Some((part, value, *b.get(&part)?)));
        both.map(|(part, value, other)| (part, self.formulas.or([value, other]))).collect()
    }

    fn parts_of_constant(&mut self, constant: Const) -> Parts {
        let mut parts: Vec<(Part, Const)> =
            self.constants.members(constant).iter().map(|&(name, value)| (Part::Member(name), value)).collect();
        parts.extend(self.constants.first_item(constant).map(|(first, _)| (Part::Item(0), first)));
        parts.into_iter().map(|(part, value)| (part, self.equal_to(&[value]))).collect()
    }
}

/// Those that occur once.
fn once<T: Copy + Eq + Hash>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut counts: FxMap<T, usize> = FxMap::default();
    items.for_each(|item| *counts.entry(item).or_default() += 1);
    counts.into_iter().filter(|&(_, count)| count == 1).map(|(item, _)| item).collect()
}

/// Joins neighbours until there is one left: each takes part in as many joins as the list can be halved.
fn by_halves<T: Copy>(mut items: Vec<T>, none: T, join: &mut impl FnMut(T, T) -> T) -> T {
    while items.len() > 1 {
        items = items.chunks(2).map(|pair| if let &[a, b] = pair { join(a, b) } else { pair[0] }).collect();
    }
    items.first().copied().unwrap_or(none)
}

/// The part that leaves the fewest pairs of a group to compare, if it leaves fewer than all.
fn best_tag(tags: &[Tags], group: &[usize], done: &[Part]) -> Option<Part> {
    let mut with: FxMap<Part, (usize, FxMap<Const, usize>)> = FxMap::default();
    for &i in group {
        for (part, values) in tags[i].iter().filter(|(part, _)| !done.contains(part)) {
            let (count, by_value) = with.entry(*part).or_default();
            *count += 1;
            values.iter().for_each(|&value| *by_value.entry(value).or_default() += 1);
        }
    }
    let pairs = |(count, by_value): &(usize, FxMap<Const, usize>)| {
        (group.len() - count) * group.len() + by_value.values().map(|n| n * n / 2).sum::<usize>()
    };
    let best = with.iter().map(|(&part, with)| (pairs(with), part)).min()?;
    (best.0 < group.len() * group.len() / 2).then_some(best.1)
}

/// Each pair of one of these with one of those.
fn add_pairs(these: &[usize], those: &[usize], pairs: &mut Vec<(usize, usize)>) {
    for &i in these {
        pairs.extend(those.iter().filter(|&&j| j != i).map(|&j| (i.max(j), i.min(j))));
    }
}

#[cfg(test)]
mod tests {
    use crate::error::SchemaErrorKind;
    use crate::json::JsonLimits;
    use crate::{Algebra, Options, SchemaError};

    fn compiled(alternatives: impl Iterator<Item = String>) -> Result<Algebra, SchemaError> {
        let schema = format!(r#"{{"oneOf": [{}]}}"#, alternatives.collect::<Vec<_>>().join(","));
        Ok(Algebra::new(&schema, &[], Options::default(), JsonLimits::default(), None)?.0)
    }

    /// Parts of formulas, languages and answers that a compilation made.
    fn work(count: usize, alternative: fn(usize) -> String) -> usize {
        let algebra = compiled((0..count).map(alternative)).unwrap();
        algebra.formulas.size() + algebra.languages.len() + algebra.search.answered()
    }

    #[test]
    fn alternatives_that_exclude_each_other_cost_what_they_are() {
        type Alternative = fn(usize) -> String;
        let table: [(&str, Alternative); 12] = [
            ("constants", |i| format!(r#"{{"const": "v{i}", "description": "d"}}"#)),
            ("lists", |i| format!(r#"{{"enum": ["v{i}", {i}]}}"#)),
            ("typed", |i| format!(r#"{{"type": "string", "const": "v{i}"}}"#)),
            ("numbers", |i| format!(r#"{{"const": {i}.5}}"#)),
            ("choices", |i| format!(r#"{{"anyOf": [{{"const": "a{i}"}}, {{"const": "b{i}"}}]}}"#)),
            ("patterns", |i| format!(r#"{{"type": "string", "pattern": "^p{i}-"}}"#)),
            ("ranges", |i| format!(r#"{{"type": "integer", "minimum": 1{i:03}0, "maximum": 1{i:03}9}}"#)),
            ("objects", |i| format!(r#"{{"const": {{"id": {i}, "b": "x"}}}}"#)),
            ("arrays", |i| format!(r#"{{"const": [{i}, "x"]}}"#)),
            ("tags", |i| {
                format!(r#"{{"type": "object", "properties": {{"t": {{"const": {i}}}}}, "required": ["x", "t"]}}"#)
            }),
            ("pairs of tags", |i| {
                let (a, b) = (i % 16, i / 16);
                let tags = format!(r#""t": {{"const": "{a}"}}, "u": {{"enum": ["{b}"]}}, "v": {{"const": 1}}"#);
                format!(r#"{{"type": "object", "properties": {{{tags}}}, "required": ["t", "u", "v"]}}"#)
            }),
            ("tuples", |i| format!(r#"{{"type": "array", "prefixItems": [{{"const": "{i}"}}, {{}}], "minItems": 2}}"#)),
        ];
        for (kind, alternative) in table {
            let (once, twice) = (work(256, alternative), work(512, alternative));
            assert!(10 * twice < 24 * once, "{kind}: {once} for 256, {twice} for 512");
        }
    }

    #[test]
    fn too_many_alternatives_that_may_overlap_are_refused() {
        let error = compiled((0..2_000).map(|i| format!(r#"{{"type": "object", "required": ["r{i}"]}}"#))).unwrap_err();
        assert!(matches!(error.kind, SchemaErrorKind::Limit { limit: "max_search", .. }), "{error:?}");
        assert!(error.hint.contains("'const' of its own"), "{}", error.hint);
    }
}
