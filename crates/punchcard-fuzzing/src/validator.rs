//! A validator of JSON Schema 2020-12 that goes by the words of the specification, one keyword at a time.
//!
//! What it does not know, it says so: formats, dynamic references, unevaluated members and items, other drafts.

use crate::values::Json;
use std::collections::HashMap;

/// Evaluations within each other, and in all, after which nothing is said.
const MOST_DEPTH: usize = 60;
const MOST_STEPS: usize = 20_000;

/// Validates values against one schema.
pub(crate) struct Validator<'a> {
    root: &'a Json,
    patterns: HashMap<String, Option<regress::Regex>>,
    depth: usize,
    steps: usize,
}

type Verdict = Option<bool>;

impl<'a> Validator<'a> {
    pub(crate) fn new(root: &'a Json) -> Validator<'a> {
        Validator { root, patterns: HashMap::new(), depth: 0, steps: 0 }
    }

    /// Whether a value is valid; `None` where that is beyond this validator.
    pub(crate) fn is_valid(&mut self, value: &Json) -> Verdict {
        (self.depth, self.steps) = (0, 0);
        self.schema(self.root, value)
    }

    fn schema(&mut self, schema: &Json, value: &Json) -> Verdict {
        self.depth += 1;
        self.steps += 1;
        if self.depth > MOST_DEPTH || self.steps > MOST_STEPS {
            return None;
        }
        let verdict = match schema {
            Json::Bool(all) => Some(*all),
            Json::Object(members) => {
                // Every keyword is asked: one that is not known makes the whole unknown.
                let verdicts: Option<Vec<bool>> =
                    members.iter().map(|(keyword, argument)| self.keyword(schema, keyword, argument, value)).collect();
                verdicts.map(|verdicts| verdicts.into_iter().all(|holds| holds))
            }
            _ => None,
        };
        self.depth -= 1;
        verdict
    }

    fn all<'b>(&mut self, mut of: impl Iterator<Item = (&'b Json, &'b Json)>) -> Verdict {
        let mut holds = true;
        of.try_for_each(|(schema, value)| {
            holds &= self.schema(schema, value)?;
            Some(())
        })?;
        Some(holds)
    }

    fn count<'b>(&mut self, schemas: impl Iterator<Item = &'b Json>, value: &Json) -> Option<usize> {
        let verdicts: Option<Vec<bool>> = schemas.map(|schema| self.schema(schema, value)).collect();
        Some(verdicts?.into_iter().filter(|holds| *holds).count())
    }

    fn is_found(&mut self, pattern: &str, text: &str) -> Verdict {
        let compile = || is_quick(pattern).then(|| regress::Regex::with_flags(pattern, "u").ok()).flatten();
        let compiled = self.patterns.entry(pattern.into()).or_insert_with(compile);
        Some(compiled.as_ref()?.find(text).is_some())
    }

    fn keyword(&mut self, schema: &Json, keyword: &str, argument: &Json, value: &Json) -> Verdict {
        let length = |of: usize| Some((of as u64, count(argument)?));
        match (keyword, value) {
            ("$defs" | "title" | "description" | "$comment" | "default" | "then" | "else", _) => Some(true),
            ("minContains" | "maxContains", _) => Some(true),
            ("$ref", _) => {
                let Json::Text(reference) = argument else { return None };
                let target = resolve(self.root, reference)?;
                self.schema(target, value)
            }
            ("type", _) => match argument {
                Json::Text(name) => is_of_type(value, name),
                Json::Array(names) => {
                    let verdicts = names.iter().map(|name| match name {
                        Json::Text(name) => is_of_type(value, name),
                        _ => None,
                    });
                    Some(verdicts.collect::<Option<Vec<bool>>>()?.contains(&true))
                }
                _ => None,
            },
            ("const", _) => Some(argument.equals(value)),
            ("enum", _) => Some(array(argument)?.iter().any(|one| one.equals(value))),
            ("allOf", _) => Some(self.count(array(argument)?.iter(), value)? == array(argument)?.len()),
            ("anyOf", _) => Some(self.count(array(argument)?.iter(), value)? > 0),
            ("oneOf", _) => Some(self.count(array(argument)?.iter(), value)? == 1),
            ("not", _) => self.schema(argument, value).map(|holds| !holds),
            ("if", _) => {
                let branch = if self.schema(argument, value)? { "then" } else { "else" };
                schema.get(branch).map_or(Some(true), |branch| self.schema(branch, value))
            }
            ("minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf", Json::Number(number)) => {
                let Json::Number(bound) = argument else { return None };
                match keyword {
                    "minimum" => Some(number >= bound),
                    "maximum" => Some(number <= bound),
                    "exclusiveMinimum" => Some(number > bound),
                    "exclusiveMaximum" => Some(number < bound),
                    _ => number.is_multiple_of(bound),
                }
            }
            ("minLength", Json::Text(text)) => length(text.chars().count()).map(|(is, least)| is >= least),
            ("maxLength", Json::Text(text)) => length(text.chars().count()).map(|(is, most)| is <= most),
            ("pattern", Json::Text(text)) => {
                let Json::Text(pattern) = argument else { return None };
                self.is_found(pattern, text)
            }
            ("minItems", Json::Array(items)) => length(items.len()).map(|(is, least)| is >= least),
            ("maxItems", Json::Array(items)) => length(items.len()).map(|(is, most)| is <= most),
            ("minProperties", Json::Object(members)) => length(members.len()).map(|(is, least)| is >= least),
            ("maxProperties", Json::Object(members)) => length(members.len()).map(|(is, most)| is <= most),
            ("uniqueItems", Json::Array(items)) => {
                let Json::Bool(asked) = argument else { return None };
                let is_new = |(i, item): (usize, &Json)| !items[..i].iter().any(|before| before.equals(item));
                Some(!asked || items.iter().enumerate().all(is_new))
            }
            ("prefixItems", Json::Array(items)) => self.all(array(argument)?.iter().zip(items)),
            ("items", Json::Array(items)) => {
                let before = schema.get("prefixItems").map_or(Some(0), |prefix| Some(array(prefix)?.len()))?;
                self.all(items.iter().skip(before).map(|item| (argument, item)))
            }
            ("contains", Json::Array(items)) => {
                let bound = |name: &str, or: u64| schema.get(name).map_or(Some(or), count);
                let (least, most) = (bound("minContains", 1)?, bound("maxContains", u64::MAX)?);
                let verdicts: Option<Vec<bool>> = items.iter().map(|item| self.schema(argument, item)).collect();
                let found = verdicts?.into_iter().filter(|holds| *holds).count() as u64;
                Some(least <= found && found <= most)
            }
            (
                "minLength" | "maxLength" | "pattern" | "minItems" | "maxItems" | "uniqueItems" | "prefixItems"
                | "items" | "contains" | "minProperties" | "maxProperties" | "minimum" | "maximum" | "exclusiveMinimum"
                | "exclusiveMaximum" | "multipleOf",
                _,
            ) => Some(true),
            (_, Json::Object(members)) => self.of_members(schema, keyword, argument, value, members),
            (
                "required"
                | "properties"
                | "patternProperties"
                | "additionalProperties"
                | "propertyNames"
                | "dependentRequired"
                | "dependentSchemas",
                _,
            ) => Some(true),
            _ => None,
        }
    }

    fn of_members(
        &mut self,
        schema: &Json,
        keyword: &str,
        argument: &Json,
        value: &Json,
        members: &[(String, Json)],
    ) -> Verdict {
        let has = |name: &Json| matches!(name, Json::Text(name) if value.get(name).is_some());
        match keyword {
            "required" => Some(array(argument)?.iter().all(has)),
            "properties" => {
                let declared = object(argument)?.iter();
                self.all(declared.filter_map(|(name, schema)| Some((schema, value.get(name)?))))
            }
            "patternProperties" => {
                let mut holds = true;
                for (pattern, schema) in object(argument)? {
                    for (name, value) in members {
                        if self.is_found(pattern, name)? {
                            holds &= self.schema(schema, value)?;
                        }
                    }
                }
                Some(holds)
            }
            "additionalProperties" => {
                let mut holds = true;
                let patterns = schema.get("patternProperties").map_or(Some([].as_slice()), object)?;
                for (name, value) in members {
                    let mut is_declared = schema.get("properties").is_some_and(|p| p.get(name).is_some());
                    for (pattern, _) in patterns {
                        is_declared |= self.is_found(pattern, name)?;
                    }
                    holds &= is_declared || self.schema(argument, value)?;
                }
                Some(holds)
            }
            "propertyNames" => {
                let names: Vec<Json> = members.iter().map(|(name, _)| Json::text(name)).collect();
                self.all(names.iter().map(|name| (argument, name)))
            }
            "dependentRequired" => {
                let asked = object(argument)?.iter().filter(|(name, _)| value.get(name).is_some());
                let verdicts: Option<Vec<bool>> = asked.map(|(_, names)| Some(array(names)?.iter().all(has))).collect();
                Some(verdicts?.into_iter().all(|holds| holds))
            }
            "dependentSchemas" => {
                let asked = object(argument)?.iter().filter(|(name, _)| value.get(name).is_some());
                self.all(asked.map(|(_, schema)| (schema, value)))
            }
            _ => None,
        }
    }
}

/// Whether a matcher that goes back and tries again is quick whatever the text: no group is repeated.
pub(crate) fn is_quick(pattern: &str) -> bool {
    !pattern.as_bytes().windows(2).any(|pair| pair[0] == b')' && b"*+{?".contains(&pair[1]))
        && !pattern.split(|c: char| !c.is_ascii_digit()).any(|digits| digits.len() > 1)
}

fn array(value: &Json) -> Option<&[Json]> {
    match value {
        Json::Array(items) => Some(items),
        _ => None,
    }
}

fn object(value: &Json) -> Option<&[(String, Json)]> {
    match value {
        Json::Object(members) => Some(members),
        _ => None,
    }
}

fn count(value: &Json) -> Option<u64> {
    match value {
        Json::Number(number) => number.as_count(),
        _ => None,
    }
}

fn is_of_type(value: &Json, name: &str) -> Verdict {
    Some(match name {
        "null" => matches!(value, Json::Null),
        "boolean" => matches!(value, Json::Bool(_)),
        "number" => matches!(value, Json::Number(_)),
        "integer" => matches!(value, Json::Number(number) if number.is_integer()),
        "string" => matches!(value, Json::Text(_)),
        "array" => matches!(value, Json::Array(_)),
        "object" => matches!(value, Json::Object(_)),
        _ => return None,
    })
}

/// What a reference within the document points at; escapes are not known.
fn resolve<'a>(root: &'a Json, reference: &str) -> Option<&'a Json> {
    let pointer = reference.strip_prefix('#').filter(|pointer| !pointer.contains(['~', '%']))?;
    if pointer.is_empty() {
        return Some(root);
    }
    pointer.strip_prefix('/')?.split('/').try_fold(root, |at, step| match at {
        Json::Array(items) => items.get(step.parse::<usize>().ok()?),
        _ => at.get(step),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::read;

    #[test]
    fn verdicts() {
        for (schema, valid, invalid) in [
            (r#"{"type":["integer","null"],"minimum":2}"#, "[2,2.0,null]", "[1,2.5,\"a\"]"),
            (
                r#"{"properties":{"a":{"type":"null"}},"additionalProperties":false}"#,
                r#"[{},{"a":null},1]"#,
                r#"[{"b":1},{"a":1}]"#,
            ),
            (r#"{"oneOf":[{"minimum":1},{"multipleOf":2}]}"#, "[1,0]", "[2,0.5,\"a\"]"),
            (r##"{"items":{"$ref":"#"},"maxItems":1}"##, "[[],[[[]]],1]", "[[1,2],[[1,2]]]"),
            (r#"{"if":{"pattern":"^a"},"then":{"minLength":2},"else":false}"#, r#"["ab"]"#, r#"["a","b"]"#),
            (
                r#"{"contains":{"const":1},"minContains":0,"maxContains":1,"uniqueItems":true}"#,
                "[[],[1],[2,3]]",
                "[[1,1.0],[2,2]]",
            ),
            (
                r#"{"dependentRequired":{"a":["b"]},"propertyNames":{"maxLength":1}}"#,
                r#"[{"b":1}]"#,
                r#"[{"a":1},{"ab":1}]"#,
            ),
        ] {
            let schema = read(schema.as_bytes()).unwrap();
            for (documents, expected) in [(valid, true), (invalid, false)] {
                for document in array(&read(documents.as_bytes()).unwrap()).unwrap() {
                    assert_eq!(Validator::new(&schema).is_valid(document), Some(expected), "{schema} {document}");
                }
            }
        }
        let unknown = read(br#"{"anyOf":[true,{"format":"date"}]}"#).unwrap();
        assert_eq!(Validator::new(&unknown).is_valid(&Json::text("x")), None);
    }
}
