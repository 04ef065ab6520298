//! Formulas over numbers as languages of spellings.

use crate::algebra::{Algebra, unreachable_atom};
use crate::error::SchemaError;
use crate::formula::{Formula, FxMap, Node, NumberAtom};
use crate::options::NumberSpelling;
use punchcard_automata::{Decimal, Language, NumberDigits, NumberSet};

impl Algebra {
    /// The spellings of the numbers in a formula that is restricted to numbers.
    pub(crate) fn number_language(&mut self, f: Formula) -> Result<Language, SchemaError> {
        if let Some(&known) = self.number_languages.get(&f) {
            return Ok(known);
        }
        let language = match self.options.number_spelling {
            _ if self.asks_for_spelling(f) => self.by_spelling(f)?,
            NumberSpelling::Plain => self.plain_numbers(f)?,
            // A vocabulary without exponents, say, cannot finish what it begins in any spelling.
            NumberSpelling::Any if !self.languages.can_write("0123456789.eE+-") => self.plain_numbers(f)?,
            NumberSpelling::Any => {
                let set = self.number_set(f)?;
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
        let one = self.formulas.number(NumberAtom::Multiple(Decimal::power_of_ten(0)));
        let whole = self.formulas.and([whole, one]);
        let plain = self.plain_numbers(whole)?;
        if other == Formula::FALSE && self.options.number_spelling == NumberSpelling::Plain {
            return Ok(plain);
        }
        let (zero, minus_zero) = (self.languages.matches(plain, "0"), self.languages.literal("-0"));
        let integers = self.languages.plain_integers();
        let integers = self.languages.union([integers, minus_zero]);
        let other = self.number_language(other)?;
        let other = self.languages.difference(other, integers);
        let is_any = self.options.number_spelling == NumberSpelling::Any;
        Ok(self.languages.union([plain, if zero && is_any { minus_zero } else { Language::EMPTY }, other]))
    }

    fn with_spelling(&mut self, f: Formula, answer: Formula) -> Formula {
        self.rewrite(f, &mut |a, atom| {
            matches!(a.formulas.node(atom), Node::Number(NumberAtom::Spelled)).then_some(answer)
        })
    }

    /// The spellings without exponents.
    fn plain_numbers(&mut self, f: Formula) -> Result<Language, SchemaError> {
        if let Some(texts) = self.whole_numbers(f) {
            return Ok(texts);
        }
        let set = self.number_set(f)?;
        Ok(self.languages.plain_numbers_in(&set, self.number_digits())?)
    }

    /// How many digits numbers may have.
    fn number_digits(&self) -> Option<NumberDigits> {
        self.options.number_digits.filter(|_| self.options.number_spelling == NumberSpelling::Plain)
    }

    /// Whole numbers that are listed, as a list of texts: most enumerations are one.
    fn whole_numbers(&mut self, f: Formula) -> Option<Language> {
        // Longer ones are sequences of parts.
        const MOST_DIGITS: i64 = 400;
        let items = match self.formulas.node(f) {
            Node::Or(items) => items,
            _ => std::slice::from_ref(&f),
        };
        let mut texts = Vec::with_capacity(items.len());
        for &item in items {
            match self.formulas.node(item) {
                Node::Number(NumberAtom::Equal(value)) if value.is_integer() && value.top() < MOST_DIGITS => {
                    texts.push(value.to_string());
                }
                _ => return None,
            }
        }
        Some(self.languages.texts(texts.iter().map(|t| &**t)))
    }

    /// More than `most` numbers of the formula, which is restricted to numbers, have spellings. `false` if there are fewer,
    /// and perhaps if it is hard to see.
    pub(crate) fn has_more_numbers_than(&mut self, f: Formula, most: u32) -> Result<bool, SchemaError> {
        let set = if self.asks_for_spelling(f) {
            let (whole, other) = (self.with_spelling(f, Formula::TRUE), self.with_spelling(f, Formula::FALSE));
            let whole = NumberSet::intersection(vec![self.number_set(whole)?, NumberSet::integers()])?;
            NumberSet::union(vec![whole, self.number_set(other)?])?
        } else {
            self.number_set(f)?
        };
        Ok(set.count_plain(self.number_digits(), most)? > most)
    }

    /// The numbers of the formula by value.
    fn number_set(&mut self, f: Formula) -> Result<NumberSet, SchemaError> {
        self.signed_number_set(f, false, &mut FxMap::default())
    }

    /// The numbers of the formula, or all others. Parts that are shared are known after the first time. Complements are
    /// taken of single conditions, as each must hold of the exact value and of the nearest double.
    fn signed_number_set(
        &mut self,
        f: Formula,
        not: bool,
        known: &mut FxMap<(Formula, bool), NumberSet>,
    ) -> Result<NumberSet, SchemaError> {
        if let Some(set) = known.get(&(f, not)) {
            return Ok(set.clone());
        }
        let is_read_as_double = self.number_digits().is_some();
        let set = match self.formulas.node(f) {
            Node::False | Node::True => {
                if (f == Formula::TRUE) != not {
                    NumberSet::all()
                } else {
                    NumberSet::none()
                }
            }
            Node::Number(atom) => number_atom(atom, not, is_read_as_double)?,
            &Node::Not(inner) => self.signed_number_set(inner, !not, known)?,
            Node::And(items) | Node::Or(items) => {
                let all = matches!(self.formulas.node(f), Node::And(_));
                let items = items.clone();
                let mut sets = Vec::with_capacity(items.len());
                for &item in items.iter() {
                    sets.push(stacker::maybe_grow(64 << 10, 1 << 20, || self.signed_number_set(item, not, known))?);
                }
                if all != not { NumberSet::intersection(sets)? } else { NumberSet::union(sets)? }
            }
            other => unreachable_atom(other)?,
        };
        known.insert((f, not), set.clone());
        Ok(set)
    }
}

/// The numbers of one condition, or all others. Read as doubles, numbers keep their order, but not that they differ: so of
/// those that differ from a bound by less than doubles tell apart none is in.
fn number_atom(atom: &NumberAtom, not: bool, as_double: bool) -> Result<NumberSet, SchemaError> {
    let below = |bound: &Decimal| match bound.below_as_double().filter(|_| as_double) {
        Some(last) => NumberSet::at_most(&last),
        None => NumberSet::below(bound),
    };
    let above = |bound: &Decimal| match bound.above_as_double().filter(|_| as_double) {
        Some(first) => NumberSet::at_least(&first),
        None => NumberSet::above(bound),
    };
    Ok(match (atom, not) {
        (NumberAtom::Above(bound), false) => above(bound),
        (NumberAtom::Above(bound), true) => NumberSet::at_most(bound),
        (NumberAtom::Below(bound), false) => below(bound),
        (NumberAtom::Below(bound), true) => NumberSet::at_least(bound),
        (NumberAtom::Equal(value), false) => NumberSet::equal(value),
        (NumberAtom::Equal(value), true) => NumberSet::union(vec![below(value), above(value)])?,
        (NumberAtom::Multiple(unit), false) => NumberSet::multiples_of(unit),
        (NumberAtom::Multiple(unit), true) => NumberSet::multiples_of(unit).complement()?,
        (NumberAtom::Spelled, _) => unreachable_atom(&Node::Number(NumberAtom::Spelled))?,
    })
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
