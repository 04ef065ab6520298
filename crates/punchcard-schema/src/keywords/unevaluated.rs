//! `unevaluatedProperties` and `unevaluatedItems`: what no other keyword has looked at.
//!
//! Which members were looked at depends on which branches hold. A branch that holds only adds to them, so it is enough to
//! say: for some choice of branches that hold, all members outside of what they look at satisfy the keyword. Choosing too
//! few is never wrong, only harder to satisfy; no branch needs to be negated. So a schema is first turned into its
//! *claims*: pairs of a condition and what has been looked at under it.

use crate::algebra::Algebra;
use crate::compile::At;
use crate::draft::Draft;
use crate::error::SchemaError;
use crate::formula::{Formula, Keys, NO_END, Type};
use crate::json::{Value, ValueId};
use crate::keywords::closed::Scope;
use crate::keywords::object::additional_names;
use punchcard_automata::Language;

/// What has been looked at, given that `condition` holds.
#[derive(Clone, PartialEq)]
struct Claim<T> {
    condition: Formula,
    seen: T,
}

/// Members or items that have been looked at.
trait Seen: Clone + PartialEq {
    const NOTHING: Self;
    /// What a schema itself looks at; its own `unevaluated` keyword looks at everything, if that is asked for.
    fn own(a: &mut Algebra, at: At, with_unevaluated: bool) -> Result<Self, SchemaError>;
    fn join(a: &mut Algebra, x: &Self, y: &Self) -> Self;
}

/// The names of members that the keywords of a schema itself look at, but for `unevaluatedProperties`.
pub(crate) fn names_looked_at(a: &mut Algebra, at: At) -> Result<Language, SchemaError> {
    if a.json.member(at.schema, "additionalProperties").is_some() {
        return Ok(Language::ALL);
    }
    let others = additional_names(a, at.schema, at)?;
    Ok(a.languages.not(others))
}

/// Names of members.
impl Seen for Language {
    const NOTHING: Language = Language::EMPTY;

    fn own(a: &mut Algebra, at: At, with_unevaluated: bool) -> Result<Language, SchemaError> {
        let says = |keyword| a.json.member(at.schema, keyword).is_some();
        if with_unevaluated && says("unevaluatedProperties") && at.draft >= Draft::V2019 {
            return Ok(Language::ALL);
        }
        names_looked_at(a, at)
    }

    fn join(a: &mut Algebra, x: &Language, y: &Language) -> Language {
        a.languages.union([*x, *y])
    }
}

/// Items: the first ones, and those in a formula wherever they are (`contains`).
#[derive(Clone, PartialEq)]
struct Items {
    first: u32,
    matching: Formula,
}

impl Seen for Items {
    const NOTHING: Items = Items { first: 0, matching: Formula::FALSE };

    fn own(a: &mut Algebra, at: At, with_unevaluated: bool) -> Result<Items, SchemaError> {
        let member = |keyword: &str| a.json.member(at.schema, keyword);
        let length = |id: ValueId| match a.json.get(id) {
            Value::Array(items) => Some(items.len() as u32),
            _ => None,
        };
        let modern = at.draft >= Draft::V2020;
        let all = with_unevaluated && member("unevaluatedItems").is_some()
            || member("items").is_some_and(|items| modern || length(items).is_none())
            || !modern && member("additionalItems").is_some() && member("items").is_some();
        let tuple = if modern { "prefixItems" } else { "items" };
        let first = if all { NO_END } else { member(tuple).and_then(length).unwrap_or(0) };
        let matching = match member("contains") {
            Some(schema) if modern => a.subschema(schema, at.scope),
            _ => Formula::FALSE,
        };
        Ok(Items { first, matching })
    }

    fn join(a: &mut Algebra, x: &Items, y: &Items) -> Items {
        Items { first: x.first.max(y.first), matching: a.formulas.or([x.matching, y.matching]) }
    }
}

impl Algebra {
    /// The claims of a schema; those of the outermost one leave out its own `unevaluated` keyword.
    fn claims<T: Seen>(
        &mut self,
        schema: ValueId,
        scope: Scope,
        open: &mut Vec<ValueId>,
        outermost: bool,
    ) -> Result<Vec<Claim<T>>, SchemaError> {
        let nothing = vec![Claim { condition: Formula::TRUE, seen: T::NOTHING }];
        let Value::Object(members) = self.json.get(schema) else { return Ok(nothing) };
        if open.contains(&schema) {
            return Ok(nothing);
        }
        let members = members.clone();
        let draft = self.registry.draft_at(&self.json, schema);
        open.push(schema);
        let mut claims = nothing;
        let at = At { schema, keyword: "", value: schema, scope, draft, closes: None };
        claims[0].seen = T::own(self, at, !outermost)?;
        for (keyword, value) in members.iter() {
            let at = At { schema, keyword, value: *value, scope, draft, closes: None };
            let more = self.claims_of_keyword::<T>(at, open)?;
            claims = self.join_claims(claims, more)?;
        }
        open.pop();
        Ok(claims)
    }

    fn claims_of_keyword<T: Seen>(&mut self, at: At, open: &mut Vec<ValueId>) -> Result<Vec<Claim<T>>, SchemaError> {
        let mut claims = vec![Claim { condition: Formula::TRUE, seen: T::NOTHING }];
        match at.keyword {
            "$ref" | "$dynamicRef" | "$recursiveRef" => {
                let target = self.target_of(at)?;
                let scope = self.scope_in(at.scope, target);
                return stacker::maybe_grow(64 << 10, 1 << 20, || self.claims(target, scope, open, false));
            }
            "allOf" => {
                for branch in self.branches(at) {
                    let scope = self.scope_in(at.scope, branch);
                    let more = self.claims(branch, scope, open, false)?;
                    claims = self.join_claims(claims, more)?;
                }
            }
            "anyOf" => {
                for branch in self.branches(at) {
                    let mut more = self.claims_if(branch, at, open)?;
                    more.push(Claim { condition: Formula::TRUE, seen: T::NOTHING });
                    claims = self.join_claims(claims, more)?;
                }
            }
            // Exactly one branch holds, so one is chosen.
            "oneOf" => {
                let mut more = Vec::new();
                for branch in self.branches(at) {
                    more.extend(self.claims_if(branch, at, open)?);
                }
                claims = self.join_claims(claims, more)?;
            }
            "if" => {
                let condition = self.subschema(at.value, at.scope);
                let mut yes = self.claims_if(at.value, at, open)?;
                let mut no = vec![Claim { condition: self.formulas.not(condition), seen: T::NOTHING }];
                if let Some(then) = self.json.member(at.schema, "then") {
                    let more = self.claims(then, at.scope, open, false)?;
                    yes = self.join_claims(yes, more)?;
                }
                if let Some(otherwise) = self.json.member(at.schema, "else") {
                    let more = self.claims(otherwise, at.scope, open, false)?;
                    no = self.join_claims(no, more)?;
                }
                yes.extend(no);
                claims = yes;
            }
            "dependentSchemas" => {
                let Value::Object(members) = self.json.get(at.value) else { return Ok(claims) };
                for (name, schema) in members.clone().iter() {
                    let name = self.formulas.name(name);
                    let present = self.formulas.member(Keys::One(name), Formula::TRUE);
                    let mut more = self.claims(*schema, at.scope, open, false)?;
                    for claim in &mut more {
                        claim.condition = self.formulas.and([claim.condition, present]);
                    }
                    more.push(Claim { condition: Formula::TRUE, seen: T::NOTHING });
                    claims = self.join_claims(claims, more)?;
                }
            }
            _ => {}
        }
        Ok(claims)
    }

    /// The claims of a branch, each under the condition that the branch holds.
    fn claims_if<T: Seen>(
        &mut self,
        branch: ValueId,
        at: At,
        open: &mut Vec<ValueId>,
    ) -> Result<Vec<Claim<T>>, SchemaError> {
        let holds = self.subschema(branch, at.scope);
        let scope = self.scope_in(at.scope, branch);
        let mut claims = self.claims(branch, scope, open, false)?;
        for claim in &mut claims {
            claim.condition = self.formulas.and([claim.condition, holds]);
        }
        Ok(claims)
    }

    pub(crate) fn branches(&self, at: At) -> Vec<ValueId> {
        match self.json.get(at.value) {
            Value::Array(items) => items.to_vec(),
            _ => Vec::new(),
        }
    }

    /// Both of two lists of claims.
    fn join_claims<T: Seen>(
        &mut self,
        left: Vec<Claim<T>>,
        right: Vec<Claim<T>>,
    ) -> Result<Vec<Claim<T>>, SchemaError> {
        if left.len() * right.len() > self.options.limits.max_alternatives {
            return Err(self.too_many_alternatives("branches beside an unevaluated keyword"));
        }
        let mut out: Vec<Claim<T>> = Vec::with_capacity(left.len() * right.len());
        for x in &left {
            for y in &right {
                let condition = self.formulas.and([x.condition, y.condition]);
                let seen = T::join(self, &x.seen, &y.seen);
                if condition == Formula::FALSE {
                    continue;
                }
                match out.iter_mut().find(|claim| claim.seen == seen) {
                    Some(claim) => claim.condition = self.formulas.or([claim.condition, condition]),
                    None => out.push(Claim { condition, seen }),
                }
            }
        }
        Ok(out)
    }
}

pub(crate) fn properties(a: &mut Algebra, at: At) -> Result<Formula, SchemaError> {
    let value = a.subschema(at.value, at.scope.child());
    let claims: Vec<Claim<Language>> = a.claims(at.schema, at.scope.asked(), &mut Vec::new(), true)?;
    let mut alternatives = Vec::with_capacity(claims.len());
    for claim in claims {
        let unseen = a.languages.not(claim.seen);
        let every = a.every_member(Keys::In(unseen), value);
        alternatives.push(a.formulas.and([claim.condition, every]));
    }
    let some = a.formulas.or(alternatives);
    Ok(a.formulas.if_type(Type::Object, some))
}

pub(crate) fn items(a: &mut Algebra, at: At) -> Result<Formula, SchemaError> {
    let value = a.subschema(at.value, at.scope.child());
    let claims: Vec<Claim<Items>> = a.claims(at.schema, at.scope.asked(), &mut Vec::new(), true)?;
    let mut alternatives = Vec::with_capacity(claims.len());
    for claim in claims {
        let value = a.formulas.or([value, claim.seen.matching]);
        let every = a.every_item(claim.seen.first, NO_END, value);
        alternatives.push(a.formulas.and([claim.condition, every]));
    }
    let some = a.formulas.or(alternatives);
    Ok(a.formulas.if_type(Type::Array, some))
}
