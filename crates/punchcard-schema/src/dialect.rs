//! What `$schema` makes of a schema: a draft, and the vocabularies of it that are in use.
//!
//! A metaschema that the caller passes as a resource may list vocabularies. Keywords of those that it does not list say
//! nothing; one that it requires and that is not known here is an error.

use crate::draft::Draft;
use crate::error::{SchemaError, SchemaErrorKind};
use crate::formula::FxMap;
use crate::json::{Json, Value, ValueId};

/// A draft, and which of its vocabularies are in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dialect {
    pub(crate) draft: Draft,
    vocabularies: u8,
}

/// Vocabularies, by the last part of their URIs, with the keywords that belong to each. All others are always in use.
const VOCABULARIES: [(&str, &[&str]); 4] = [
    (
        "validation",
        &[
            "type",
            "enum",
            "const",
            "multipleOf",
            "maximum",
            "exclusiveMaximum",
            "minimum",
            "exclusiveMinimum",
            "maxLength",
            "minLength",
            "pattern",
            "maxItems",
            "minItems",
            "uniqueItems",
            "maxContains",
            "minContains",
            "maxProperties",
            "minProperties",
            "required",
            "dependentRequired",
        ],
    ),
    (
        "applicator",
        &[
            "prefixItems",
            "items",
            "additionalItems",
            "contains",
            "additionalProperties",
            "properties",
            "patternProperties",
            "dependentSchemas",
            "dependencies",
            "propertyNames",
            "if",
            "allOf",
            "anyOf",
            "oneOf",
            "not",
        ],
    ),
    ("unevaluated", &["unevaluatedItems", "unevaluatedProperties"]),
    ("format", &["format"]),
];

/// Vocabularies of the drafts without keywords that say anything of validity.
const SILENT: [&str; 3] = ["core", "meta-data", "content"];

impl Dialect {
    /// A draft as it is.
    pub(crate) fn of(draft: Draft) -> Dialect {
        Dialect { draft, vocabularies: u8::MAX }
    }

    /// Whether the vocabulary of a keyword is in use.
    pub(crate) fn has(self, keyword: &str) -> bool {
        let place = VOCABULARIES.iter().position(|(_, keywords)| keywords.contains(&keyword));
        self.vocabularies == u8::MAX || place.is_none_or(|place| self.vocabularies >> place & 1 == 1)
    }
}

/// The dialects of the metaschemas among a caller's documents, by URI.
#[derive(Debug, Default)]
pub(crate) struct Dialects(FxMap<Box<str>, Result<Dialect, SchemaError>>);

impl Dialects {
    /// Reads them; `draft` is that of a metaschema which does not say.
    pub(crate) fn new(json: &Json, documents: &[(String, ValueId)], draft: Draft) -> Dialects {
        let mut dialects = Dialects::default();
        for (uri, document) in documents {
            let Some(Value::Object(listed)) = json.member(*document, "$vocabulary").map(|v| json.get(v)) else {
                continue;
            };
            let draft = dialects.of(json, *document).ok().flatten().map_or(draft, |dialect| dialect.draft);
            let (mut vocabularies, mut refusal) = (0, None);
            for (vocabulary, required) in listed {
                let known = vocabulary.strip_prefix("https://json-schema.org/draft/").and_then(|rest| {
                    let name = rest.split_once("/vocab/")?.1;
                    // 2020-12 has one of these names for each way to treat formats.
                    let name = if name.starts_with("format-") { "format" } else { name };
                    VOCABULARIES
                        .iter()
                        .position(|&(other, _)| other == name)
                        .map(|place| 1 << place)
                        .or_else(|| SILENT.contains(&name).then_some(0))
                });
                match known {
                    Some(bits) => vocabularies |= bits,
                    None if json.get(*required) == &Value::Bool(true) => {
                        let pointer = json.pointer(*required);
                        refusal = Some(SchemaError {
                            kind: SchemaErrorKind::Unsupported,
                            message: format!(
                                "The metaschema '{uri}' requires the vocabulary '{vocabulary}', which is not known"
                            ),
                            pointer,
                            keyword: "$vocabulary".into(),
                            hint: "Set it to false in \"$vocabulary\", if the schema can do without its keywords"
                                .into(),
                        });
                    }
                    None => {}
                }
            }
            // Up to 2019-09 there is no vocabulary of its own for what no keyword has looked at.
            if draft < Draft::V2020 && vocabularies & 0b10 != 0 {
                vocabularies |= 0b100;
            }
            let dialect = refusal.map_or(Ok(Dialect { draft, vocabularies }), Err);
            let id = json.member(*document, "$id").and_then(|id| json.text(id));
            for uri in id.into_iter().chain([uri.as_str()]) {
                dialects.0.insert(uri.trim_end_matches('#').into(), dialect.clone());
            }
        }
        dialects
    }

    /// The dialect that a schema says it is in, if that is known.
    pub(crate) fn of(&self, json: &Json, schema: ValueId) -> Result<Option<Dialect>, SchemaError> {
        let Some(uri) = json.member(schema, "$schema").and_then(|uri| json.text(uri)) else { return Ok(None) };
        match self.0.get(uri.trim_end_matches('#')) {
            Some(custom) => custom.clone().map(Some),
            None => Ok(Draft::from_name(uri).map(Dialect::of)),
        }
    }
}
