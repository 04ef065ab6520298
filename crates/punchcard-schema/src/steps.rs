//! Partial derivatives of Boolean combinations, for members and items alike: pairs of a formula for the value and of what is
//! left after it.

use crate::algebra::Algebra;
use crate::constant::{Const, Constants};
use crate::error::SchemaError;
use crate::formula::{Formula, FxMap, Node, Type};
use punchcard_automata::work;

impl Algebra {
    /// Values for which a step need not be taken: all but those of the formula, if that is easy to tell, else any.
    pub(crate) fn others(&mut self, value: Formula) -> Formula {
        self.flat(value).map_or(Formula::TRUE, |value| self.formulas.not(value))
    }

    /// Steps of alternatives. Where one of them is fulfilled, the others need not be followed: they are left only for
    /// other values, if those are easy to tell.
    pub(crate) fn alternatives(&mut self, steps: Vec<(Formula, Formula)>) -> Vec<(Formula, Formula)> {
        let mut done = Vec::new();
        for &(value, rest) in &steps {
            done.extend(self.flat(value).filter(|_| rest == Formula::TRUE));
        }
        if done.is_empty() {
            return self.merge_steps(steps);
        }
        let done = self.formulas.or(done);
        let open = self.formulas.not(done);
        let mut out = vec![(done, Formula::TRUE)];
        for (value, rest) in steps {
            if rest != Formula::TRUE || self.flat(value).is_none() {
                out.push((self.formulas.and([value, open]), rest));
            }
        }
        self.merge_steps(out)
    }

    /// Both of two choices, in all combinations that are not contradictory on sight.
    pub(crate) fn cross(
        &mut self,
        left: Vec<(Formula, Formula)>,
        right: &[(Formula, Formula)],
    ) -> Result<Vec<(Formula, Formula)>, SchemaError> {
        if left.len().min(right.len()) > 1 && left.len() * right.len() > self.options.limits.max_alternatives {
            return Err(self.too_many_alternatives("alternatives"));
        }
        work::spend((left.len() * right.len()) as u64)?;
        let many = left.len().min(right.len()) > 1;
        let mut out = Vec::with_capacity(left.len() * right.len());
        for (v, r) in left {
            for &(w, s) in right {
                let value = if many { self.both(v, w)? } else { self.formulas.and([v, w]) };
                let rest = self.formulas.and([r, s]);
                if value != Formula::FALSE && rest != Formula::FALSE {
                    out.push((value, rest));
                }
            }
        }
        Ok(self.merge_steps(out))
    }

    /// Both of two formulas; no value at all if that is easy to see.
    pub(crate) fn both(&mut self, f: Formula, g: Formula) -> Result<Formula, SchemaError> {
        for (few, other) in [(f, g), (g, f)] {
            if let Some(is_in) = self.decides(few, other) {
                return Ok(if is_in { few } else { Formula::FALSE });
            }
        }
        let both = self.formulas.and([f, g]);
        Ok(if self.is_absurd(both)? { Formula::FALSE } else { both })
    }

    /// Whether a formula holds for each of a few texts, or for none. `None` if it is another case.
    fn decides(&mut self, few: Formula, f: Formula) -> Option<bool> {
        const FEW: usize = 4;
        let &Node::Text(language) = self.formulas.node(few) else { return None };
        let texts = self.languages.as_texts(language).filter(|texts| (1..=FEW).contains(&texts.len()))?;
        let texts: Vec<String> = texts.into_iter().map(String::from).collect();
        let f = self.flat(f)?;
        let first = self.text_satisfies(f, &texts[0])?;
        texts[1..].iter().all(|text| self.text_satisfies(f, text) == Some(first)).then_some(first)
    }

    fn text_satisfies(&mut self, f: Formula, text: &str) -> Option<bool> {
        Some(match self.formulas.node(f) {
            Node::True => true,
            Node::False | Node::Number(_) => false,
            Node::Types(types) => types.has(Type::String),
            &Node::Text(language) => self.languages.matches(language, text),
            &Node::Not(inner) => !self.text_satisfies(inner, text)?,
            Node::And(items) | Node::Or(items) => {
                let all = matches!(self.formulas.node(f), Node::And(_));
                for item in items.clone() {
                    if self.text_satisfies(item, text)? != all {
                        return Some(!all);
                    }
                }
                all
            }
            _ => return None,
        })
    }

    /// Joins the residuals of equal values, and the values of equal residuals.
    pub(crate) fn merge_steps(&mut self, steps: Vec<(Formula, Formula)>) -> Vec<(Formula, Formula)> {
        let mut out: Vec<(Formula, Formula)> = Vec::with_capacity(steps.len());
        for (value, rest) in steps {
            if value == Formula::FALSE || rest == Formula::FALSE {
                continue;
            }
            match out.iter_mut().find(|(v, _)| *v == value) {
                Some((_, other)) => *other = self.formulas.or([*other, rest]),
                None => out.push((value, rest)),
            }
        }
        let steps = std::mem::take(&mut out);
        for (value, rest) in steps {
            match out.iter_mut().find(|(_, r)| *r == rest) {
                Some((other, _)) => *other = self.formulas.or([*other, value]),
                None => out.push((value, rest)),
            }
        }
        out
    }

    pub(crate) fn too_many_alternatives(&self, what: &str) -> SchemaError {
        let limit = self.options.limits.max_alternatives;
        SchemaError::limit(
            "max_alternatives",
            limit,
            "",
            &format!("Simplify the {what} of the schema, or raise the limit"),
        )
    }

    /// Partial derivatives of "equal to one of the constants" by a part that `take` splits off: constants that agree in the
    /// part stay together. The steps, and the parts.
    pub(crate) fn step_constants(
        &mut self,
        t: Type,
        constants: &[Const],
        take: impl Fn(&mut Constants, Const) -> Option<(Const, Const)>,
    ) -> (Vec<(Formula, Formula)>, Vec<Const>) {
        let mut rests: FxMap<Const, Vec<Const>> = FxMap::default();
        let mut parts = Vec::new();
        for &constant in constants {
            if let Some((part, rest)) = take(&mut self.constants, constant) {
                let known = rests.entry(part).or_default();
                if known.is_empty() {
                    parts.push(part);
                }
                known.push(rest);
            }
        }
        // Parts that leave the same rests are one alternative.
        let mut groups: Vec<(Formula, Vec<Const>)> = Vec::new();
        let mut places: FxMap<Formula, usize> = FxMap::default();
        for &part in &parts {
            let rest = self.formulas.among(t, rests.remove(&part).unwrap_or_default());
            let place = *places.entry(rest).or_insert(groups.len());
            if place == groups.len() {
                groups.push((rest, Vec::new()));
            }
            groups[place].1.push(part);
        }
        let steps = groups.into_iter().map(|(rest, parts)| (self.equal_to(&parts), rest)).collect();
        (steps, parts)
    }

    /// The same for "equal to none of them".
    pub(crate) fn unlike(&mut self, (steps, parts): (Vec<(Formula, Formula)>, Vec<Const>)) -> Vec<(Formula, Formula)> {
        let mut out: Vec<(Formula, Formula)> =
            steps.into_iter().map(|(v, rest)| (v, self.formulas.not(rest))).collect();
        let known = self.equal_to(&parts);
        out.push((self.formulas.not(known), Formula::TRUE));
        out
    }
}
