//! Formulas over numbers as languages of spellings.

use crate::algebra::{Algebra, unreachable_atom};
use crate::error::SchemaError;
use crate::formula::{Formula, FxMap, Node, NumberAtom};
use crate::options::NumberSpelling;
use punchcard_automata::{Decimal, Language, NumberSet};

impl Algebra {
    /// The spellings of the numbers in a formula that is restricted to numbers.
    pub(crate) fn number_language(&mut self, f: Formula) -> Result<Language, SchemaError> {
        if let Some(&known) = self.number_languages.get(&f) {
            return Ok(known);
        }
        let language = match self.options.number_spelling {
            NumberSpelling::Plain => self.plain_numbers(f)?,
            // A vocabulary without exponents, say, cannot finish what it begins in any spelling.
            NumberSpelling::Any if !self.languages.can_write("0123456789.eE+-") => self.plain_numbers(f)?,
            NumberSpelling::Any if self.asks_for_spelling(f) => self.by_spelling(f)?,
            NumberSpelling::Any => {
                let set = self.number_set(f, &mut FxMap::default())?;
                self.languages.numbers_in(&set)?
            }
        };
        self.languages.check_limit()?;
        self.number_languages.insert(f, language);
        Ok(language)
    }

    fn asks_for_spelling(&self, f: Formula) -> bool {
        let is_spelling = |atom| matches!(self.formulas.node(atom), Node::Number(NumberAtom::Spelled));
        self.atoms(f).into_iter().any(|(atom, _)| is_spelling(atom))
    }

    /// The numbers of a formula that asks for the spelling, in two cases.
    fn by_spelling(&mut self, f: Formula) -> Result<Language, SchemaError> {
        let (whole, other) = (self.with_spelling(f, Formula::TRUE), self.with_spelling(f, Formula::FALSE));
        let one = self.formulas.number(NumberAtom::Multiple(Decimal::new(false, vec![1], 0)));
        let whole = self.formulas.and([whole, one]);
        let plain = self.plain_numbers(whole)?;
        let (zero, minus_zero) = (self.languages.matches(plain, "0"), self.languages.literal("-0"));
        let integers = self.languages.plain_integers();
        let integers = self.languages.union([integers, minus_zero]);
        let other = self.number_language(other)?;
        let other = self.languages.difference(other, integers);
        Ok(self.languages.union([plain, if zero { minus_zero } else { Language::EMPTY }, other]))
    }

    fn with_spelling(&mut self, f: Formula, answer: Formula) -> Formula {
        self.rewrite(f, &mut |a, atom| {
            matches!(a.formulas.node(atom), Node::Number(NumberAtom::Spelled)).then_some(answer)
        })
    }

    /// The numbers of the formula by value. Parts that are shared are known after the first time.
    fn number_set(&mut self, f: Formula, known: &mut FxMap<Formula, NumberSet>) -> Result<NumberSet, SchemaError> {
        if let Some(set) = known.get(&f) {
            return Ok(set.clone());
        }
        let set = match self.formulas.node(f) {
            Node::False => NumberSet::none(),
            Node::True => NumberSet::all(),
            Node::Number(NumberAtom::Above(bound)) => NumberSet::above(bound),
            Node::Number(NumberAtom::Below(bound)) => NumberSet::below(bound),
            Node::Number(NumberAtom::Equal(value)) => NumberSet::equal(value),
            Node::Number(NumberAtom::Multiple(unit)) => NumberSet::multiples_of(unit),
            Node::Number(NumberAtom::Spelled) => unreachable_atom(self.formulas.node(f))?,
            &Node::Not(inner) => self.number_set(inner, known)?.complement()?,
            Node::And(items) | Node::Or(items) => {
                let all = matches!(self.formulas.node(f), Node::And(_));
                let items = items.clone();
                let mut sets = Vec::with_capacity(items.len());
                for &item in items.iter() {
                    sets.push(stacker::maybe_grow(64 << 10, 1 << 20, || self.number_set(item, known))?);
                }
                if all { NumberSet::intersection(sets)? } else { NumberSet::union(sets)? }
            }
            other => unreachable_atom(other)?,
        };
        known.insert(f, set.clone());
        Ok(set)
    }

    /// The spellings without exponent and needless digits, of whole numbers without a point: one for each number.
    pub(crate) fn plain_numbers(&mut self, f: Formula) -> Result<Language, SchemaError> {
        if let Some(language) = self.integer_range(f) {
            return Ok(language);
        }
        let items: Vec<Formula> = match self.formulas.node(f) {
            Node::And(items) => items.to_vec(),
            _ => vec![f],
        };
        if let Some((at, language)) = items.iter().enumerate().find_map(|(at, &i)| Some((at, self.whole_numbers(i)?))) {
            let others = self.formulas.and([&items[..at], &items[at + 1..]].concat());
            let others = self.by_value(others)?;
            return Ok(self.languages.and([language, others]));
        }
        let by_value = self.by_value(f)?;
        if !self.is_whole(f) {
            return Ok(by_value);
        }
        let integers = self.languages.plain_integers();
        Ok(self.languages.and([by_value, integers]))
    }

    /// Whole numbers that are listed, as a list of texts.
    fn whole_numbers(&mut self, f: Formula) -> Option<Language> {
        // Longer ones are sequences of parts.
        const MOST_DIGITS: usize = 400;
        let items = match self.formulas.node(f) {
            Node::Or(items) => items,
            _ => std::slice::from_ref(&f),
        };
        let mut texts = Vec::with_capacity(items.len());
        for &item in items {
            match self.formulas.node(item) {
                Node::Number(NumberAtom::Equal(value))
                    if value.is_integer() && value.exponent().unsigned_abs() < MOST_DIGITS as u64 =>
                {
                    texts.push(value.to_string());
                }
                _ => return None,
            }
        }
        texts.iter().all(|text| text.len() <= MOST_DIGITS).then(|| self.languages.texts(texts.iter().map(|t| &**t)))
    }

    /// The plain spellings of the numbers in the formula, `1.0` beside `1`.
    fn by_value(&mut self, f: Formula) -> Result<Language, SchemaError> {
        Ok(match self.formulas.node(f) {
            Node::False => Language::EMPTY,
            Node::True => self.languages.numbers(),
            Node::Number(atom) => {
                let atom = atom.clone();
                self.number_atom(&atom)
            }
            &Node::Not(inner) => match self.formulas.node(inner) {
                // Bounds have complements that need no search.
                Node::Number(NumberAtom::Above(b)) => {
                    let b = b.clone();
                    let (below, equal) = (self.languages.numbers_below(&b), self.languages.numbers_equal(&b));
                    self.languages.union([below, equal])
                }
                Node::Number(NumberAtom::Below(b)) => {
                    let b = b.clone();
                    let (above, equal) = (self.languages.numbers_above(&b), self.languages.numbers_equal(&b));
                    self.languages.union([above, equal])
                }
                _ => {
                    let inner = self.by_value(inner)?;
                    let all = self.languages.numbers();
                    self.languages.difference(all, inner)
                }
            },
            Node::And(items) | Node::Or(items) => {
                let all = matches!(self.formulas.node(f), Node::And(_));
                let items = items.clone();
                let mut parts = Vec::with_capacity(items.len());
                let mut unit: Option<Decimal> = None;
                for &i in items.iter() {
                    match self.formulas.node(i) {
                        // Multiples of two units are those of one, and the search for them goes straight there.
                        Node::Number(NumberAtom::Multiple(u)) if all => {
                            unit = Some(unit.map_or_else(|| u.clone(), |v| v.common_multiple(u)));
                        }
                        _ => parts.push(self.by_value(i)?),
                    }
                }
                if let Some(unit) = unit {
                    parts.push(self.languages.multiples_of(&unit));
                }
                if all { self.languages.and(parts) } else { self.languages.union(parts) }
            }
            other => unreachable_atom(other)?,
        })
    }

    fn number_atom(&mut self, atom: &NumberAtom) -> Language {
        match atom {
            NumberAtom::Above(b) => self.languages.numbers_above(b),
            NumberAtom::Below(b) => self.languages.numbers_below(b),
            NumberAtom::Equal(v) => self.languages.numbers_equal(v),
            NumberAtom::Multiple(unit) => self.languages.multiples_of(unit),
            NumberAtom::Spelled => self.languages.plain_integers(),
        }
    }

    /// Whether the formula asks for whole numbers, which are then spelled without a point.
    fn is_whole(&self, f: Formula) -> bool {
        match self.formulas.node(f) {
            Node::Number(NumberAtom::Multiple(unit)) => unit.is_integer(),
            Node::Number(NumberAtom::Equal(value)) => value.is_integer(),
            Node::And(items) => items.iter().any(|&i| self.is_whole(i)),
            Node::Or(items) => items.iter().all(|&i| self.is_whole(i)),
            _ => false,
        }
    }

    /// Whole numbers between bounds and nothing else, the usual case, as a plain expression.
    fn integer_range(&mut self, f: Formula) -> Option<Language> {
        let items: Vec<Formula> = match self.formulas.node(f) {
            Node::And(items) => items.to_vec(),
            _ => vec![f],
        };
        let one = Decimal::new(false, vec![1], 0);
        let (mut low, mut high, mut whole): (Option<Decimal>, Option<Decimal>, bool) = (None, None, false);
        let mut raise = |bound: Decimal| low = Some(low.take().map_or(bound.clone(), |l| l.max(bound)));
        let mut lower = |bound: Decimal| high = Some(high.take().map_or(bound.clone(), |h| h.min(bound)));
        for item in items {
            match self.formulas.node(item) {
                Node::Number(NumberAtom::Multiple(unit)) if *unit == one => whole = true,
                Node::Number(NumberAtom::Above(b)) => raise(b.floor().plus_one()),
                Node::Number(NumberAtom::Below(b)) => lower(b.ceiling().minus_one()),
                Node::Not(inner) => match self.formulas.node(*inner) {
                    Node::Number(NumberAtom::Above(b)) => lower(b.floor()),
                    Node::Number(NumberAtom::Below(b)) => raise(b.ceiling()),
                    _ => return None,
                },
                _ => return None,
            }
        }
        whole.then(|| self.languages.integers_between(low.as_ref(), high.as_ref()))
    }
}

#[cfg(test)]
mod tests {
    use crate::json::JsonLimits;
    use crate::{Algebra, NumberSpelling, Options};
    use punchcard_automata::Language;

    /// Every spelling of the numbers that a schema admits.
    fn any_spelling(schema: &str) -> (Algebra, Language) {
        let options = Options { number_spelling: NumberSpelling::Any, ..Options::default() };
        let (mut algebra, formula) = Algebra::new(schema, &[], options, JsonLimits::default(), None).unwrap();
        let numbers = algebra.numbers(formula).unwrap();
        (algebra, numbers)
    }

    #[test]
    fn any_spelling_of_a_value_is_admitted() {
        let one_of = r#"{"oneOf": [{"multipleOf": 2, "type": "number"}, {"multipleOf": 3, "type": "number"}]}"#;
        let table: [(&str, &[&str], &[&str]); 8] = [
            ("{}", &["1e5", "-0", "0.1E-999"], &["01", "1e"]),
            (r#"{"type": "integer"}"#, &["1e3", "1.5e1", "100e-2", "0e-5", "-0.0e7", "7"], &["15e-1", "0.5"]),
            (r#"{"minimum": 1, "maximum": 10}"#, &["1e0", "0.1e1", "1000e-3", "10E-00"], &["0.9e0", "1e2"]),
            (r#"{"minimum": 0}"#, &["1e99999999999999999999", "1e-99999999999999", "-0e1"], &["-1e-99999999999999"]),
            (r#"{"enum": [5, 1e3, "5"]}"#, &["5", "0.5e1", "500e-2", "1000", "1E+03"], &["50", "5e3", "51"]),
            (r#"{"not": {"enum": [5, 1e3]}}"#, &["50", "5e3", "51"], &["5", "0.5e1", "500e-2", "1000"]),
            (one_of, &["2", "3", "4e0", "90e-1"], &["6", "60e-1", "0", "1.2e1", "5"]),
            (r#"{"multipleOf": 1e-300, "maximum": 1e300}"#, &["1e300", "250e-301", "1e-300"], &["1e301", "1e-301"]),
        ];
        for (schema, admitted, others) in table {
            let (mut algebra, numbers) = any_spelling(schema);
            for text in admitted {
                assert!(algebra.languages.matches(numbers, text), "{schema} {text}");
            }
            for text in others {
                assert!(!algebra.languages.matches(numbers, text), "{schema} {text}");
            }
        }
    }

    #[test]
    fn only_numbers_that_there_are_make_a_schema_satisfiable() {
        let options = Options { number_spelling: NumberSpelling::Any, ..Options::default() };
        let schema = r#"{"type": "integer", "exclusiveMinimum": 7, "exclusiveMaximum": 14, "multipleOf": 7}"#;
        assert!(Algebra::new(schema, &[], options, JsonLimits::default(), None).is_err());
    }
}
