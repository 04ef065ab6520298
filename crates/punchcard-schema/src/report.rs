//! The truth about support: what became of each keyword of a schema, and what is not enforced.

use crate::algebra::Algebra;
use crate::draft::Draft;
use crate::error::SchemaError;
use crate::formula::{Formula, Node};
use crate::json::{Value, ValueId};
use crate::keywords::{Keyword, for_each_subschema, lookup};
use punchcard_automata::formats;

/// What became of a keyword.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// What it says holds of every text that is admitted.
    Enforced,
    /// It says nothing about validity.
    Annotation,
    /// It says something, and is not enforced.
    NotEnforced,
}

/// One keyword at one place.
#[derive(Clone, Debug)]
pub struct ReportEntry {
    /// JSON pointer to the keyword.
    pub pointer: String,
    /// The keyword.
    pub keyword: String,
    /// What became of it.
    pub status: Status,
    /// The same in words.
    pub became: String,
}

/// A schema as it is understood.
#[derive(Clone, Debug)]
pub struct Report {
    /// The dialect.
    pub draft: Draft,
    /// All keywords of all schemas that can be reached, in the order of the document.
    pub entries: Vec<ReportEntry>,
    /// The JSON text of a document that is admitted.
    pub example: Option<String>,
    /// Formulas that the schema and the questions about it have become.
    pub formulas: usize,
    /// States of regular languages so far; further ones are built when a text reaches them.
    pub language_states: usize,
    /// Questions of satisfiability that were answered: what a compilation costs.
    pub steps: usize,
    /// The most ways in which a value of one of the schemas can begin: what a mask costs grows with it.
    pub alternatives: usize,
}

impl Algebra {
    /// Describes what the schema has become. `root` is the formula of the whole.
    pub fn report(&mut self, root: Formula) -> Result<Report, SchemaError> {
        let example = self.example(root)?;
        let mut schemas: Vec<(ValueId, Formula)> = self.compiled.iter().map(|(&(at, _), &f)| (at, f)).collect();
        schemas.sort_unstable();
        let mut alternatives = 0;
        for &(_, formula) in &schemas {
            alternatives = alternatives.max(self.object_starts(formula)?.len());
        }
        let mut places: Vec<ValueId> = schemas.iter().map(|&(at, _)| at).collect();
        places.dedup();
        // Lone references are followed at once, and are no formulas of their own.
        let mut references = Vec::new();
        for &schema in &places {
            let draft = self.registry.draft_at(&self.json, schema);
            for_each_subschema(&self.json, schema, draft, &mut |child| {
                references.extend(self.json.member(child, "$ref").map(|_| child));
            });
        }
        places.extend(references);
        places.sort_unstable();
        places.dedup();
        let mut entries = Vec::new();
        for schema in places {
            self.describe_schema(schema, &mut entries);
        }
        // Values are numbered from the inside out; a reader goes from the outside in.
        entries.sort_by(|(a, _): &(Vec<u32>, _), (b, _)| a.cmp(b));
        Ok(Report {
            draft: match self.formulas.node(root) {
                Node::Schema { at, .. } => self.registry.draft_at(&self.json, *at),
                _ => self.options.draft,
            },
            entries: entries.into_iter().map(|(_, entry)| entry).collect(),
            example,
            formulas: self.formulas.len(),
            language_states: self.languages.len(),
            steps: self.search.answered(),
            alternatives,
        })
    }

    fn describe_schema(&self, schema: ValueId, entries: &mut Vec<(Vec<u32>, ReportEntry)>) {
        let Value::Object(members) = self.json.get(schema) else { return };
        let dialect = self.registry.dialect_at(&self.json, schema);
        let draft = dialect.draft;
        let reference_only = self.hides_siblings(schema, draft);
        for (keyword, value) in members {
            let (status, became) = match lookup(keyword, dialect) {
                _ if reference_only && &**keyword != "$ref" => {
                    (Status::Annotation, "this draft ignores what stands beside $ref".to_string())
                }
                _ if !dialect.has(keyword) => {
                    (Status::Annotation, "the metaschema does not list its vocabulary".to_string())
                }
                Keyword::Annotation => (Status::Annotation, self.describe_annotation(keyword)),
                Keyword::Assert(_) => match self.left_out.iter().find(|(at, _)| at == value) {
                    Some((_, error)) => (Status::NotEnforced, error.message.clone()),
                    None => self.describe(keyword, *value),
                },
            };
            let pointer = self.json.pointer(*value);
            entries
                .push((self.json.path(*value), ReportEntry { pointer, keyword: keyword.to_string(), status, became }));
        }
    }

    fn describe_annotation(&self, keyword: &str) -> String {
        match keyword {
            "then" | "else" => "part of if",
            "minContains" | "maxContains" => "part of contains",
            "$defs" | "definitions" => "schemas for references",
            "$id" | "id" | "$anchor" | "$dynamicAnchor" | "$recursiveAnchor" | "$schema" | "$vocabulary" => {
                "an address"
            }
            _ => "no statement about validity",
        }
        .into()
    }

    fn describe(&self, keyword: &str, value: ValueId) -> (Status, String) {
        let value = self.json.get(value);
        let count = match value {
            Value::Array(items) => items.len(),
            Value::Object(members) => members.len(),
            _ => 0,
        };
        let text = match (keyword, value) {
            ("format", Value::String(name)) if !formats::is_known(name) => {
                return (Status::Annotation, format!("the format {name:?} is not known, so it is an annotation"));
            }
            ("format", _) if !self.options.assert_formats => {
                return (Status::Annotation, "formats are annotations, as the caller asked".into());
            }
            ("type", _) => "a choice by the first byte of a value".into(),
            ("const", _) => "one value".into(),
            ("enum", _) => format!("a set of {count} values"),
            ("minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf", _) => {
                "the spellings of numbers, by exact value".into()
            }
            ("minLength" | "maxLength" | "pattern" | "format", _) => {
                "a regular language over the decoded string".into()
            }
            ("properties" | "patternProperties" | "dependentSchemas" | "dependencies", _) => {
                format!("statements about members, for {count} names")
            }
            ("required" | "dependentRequired", _) => format!("members that must come, for {count} names"),
            ("additionalProperties" | "propertyNames" | "unevaluatedProperties", _) => {
                "a statement about members".into()
            }
            ("minProperties" | "maxProperties", _) => "a count of members".into(),
            ("uniqueItems", Value::Bool(false)) => "nothing".into(),
            ("uniqueItems", _) => "items are compared with those before, by value".into(),
            ("minItems" | "maxItems", _) => "a count of items".into(),
            ("prefixItems" | "items" | "additionalItems" | "contains" | "unevaluatedItems", _) => {
                "a statement about items".into()
            }
            ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(target)) => format!("the schema at {target:?}"),
            ("allOf", _) => format!("all of {count} schemas"),
            ("anyOf", _) => format!("at least one of {count} schemas"),
            ("oneOf", _) => format!("exactly one of {count} schemas"),
            ("not", _) => "the complement of a schema".into(),
            ("if", _) => "a choice between then and else".into(),
            _ => "a statement about values".into(),
        };
        (Status::Enforced, text)
    }
}
