//! The options of JSON grammars and the limits of all, as callers give them.

use crate::error::CompileError;
use crate::json::Machine;
use crate::json::machine::{MachineLimits, Spelling};
use crate::leaf::Encoding;
use crate::vocabulary::Vocabulary;
use punchcard_automata::{CharSet, Language, Languages, NumberDigits};
use punchcard_grammar::GrammarError;
use punchcard_schema::draft::Draft;
use punchcard_schema::options::SchemaLimits;
use punchcard_schema::{Algebra, Formula, JsonLimits, NumberSpelling, Options, PropertyOrder, SchemaError};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// White space between the tokens of JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhiteSpace {
    /// None at all.
    None,
    /// At most one space, or one line break and up to so many spaces or tabs.
    Bounded(u32),
    /// Any run.
    Any,
    /// Exactly one space after a comma and after a colon, none elsewhere.
    AfterSeparators,
}

/// Limits against hostile schemas, grammars and texts: `punchcard.Limits`, which describes them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs)]
pub struct Limits {
    pub max_bytes: usize,
    pub max_depth: usize,
    pub max_alternatives: usize,
    pub max_search: usize,
    pub max_contexts: usize,
    pub max_automaton_states: usize,
    pub max_automaton_work: u64,
    pub max_states: usize,
    pub max_readings: usize,
    pub max_memory: usize,
    pub max_work: u64,
}

/// Steps of one operation. Of eight thousand real schemas none takes a hundredth of them.
const MAX_WORK: u64 = 20_000_000;

/// Bytes that texts may add to a grammar before its tables begin anew.
const MAX_MEMORY: usize = 64 << 20;

impl Default for Limits {
    fn default() -> Self {
        let (json, schema, machine) = (JsonLimits::default(), SchemaLimits::default(), MachineLimits::default());
        Limits {
            max_bytes: json.max_bytes,
            max_depth: json.max_depth,
            max_alternatives: schema.max_alternatives,
            max_search: schema.max_search,
            max_contexts: schema.max_contexts,
            max_automaton_states: schema.max_automaton_states,
            max_automaton_work: schema.max_automaton_work,
            max_states: machine.max_states,
            max_readings: machine.max_readings,
            max_memory: MAX_MEMORY,
            max_work: MAX_WORK,
        }
    }
}

impl Limits {
    /// On the text of schemas.
    pub fn json(&self) -> JsonLimits {
        JsonLimits { max_bytes: self.max_bytes, max_depth: self.max_depth }
    }

    /// On schemas.
    pub fn schema(&self) -> SchemaLimits {
        SchemaLimits {
            max_alternatives: self.max_alternatives,
            max_search: self.max_search,
            max_contexts: self.max_contexts,
            max_automaton_states: self.max_automaton_states,
            max_automaton_work: self.max_automaton_work,
        }
    }

    /// On what texts build up.
    pub fn machine(&self) -> MachineLimits {
        MachineLimits { max_states: self.max_states, max_readings: self.max_readings }
    }
}

/// Everything that a caller may choose about a JSON grammar: the options of `punchcard.Grammar.from_json_schema`.
#[derive(Clone, Debug)]
pub struct JsonOptions {
    /// Options of the schema.
    pub schema: Options,
    /// White space between tokens.
    pub white_space: WhiteSpace,
    /// White space may also stand before and after the whole text.
    pub outer_white_space: bool,
    /// Characters may be escaped that need not be.
    pub any_escapes: bool,
    /// Further documents for references, as (URI, JSON text).
    pub resources: Vec<(String, String)>,
    /// Limits.
    pub limits: Limits,
}

impl Default for JsonOptions {
    /// The profile `generate`.
    fn default() -> Self {
        JsonOptions {
            schema: Options::default(),
            white_space: WhiteSpace::Bounded(INDENTATION),
            outer_white_space: false,
            any_escapes: true,
            resources: Vec::new(),
            limits: Limits::default(),
        }
    }
}

/// Spaces or tabs of indentation after a line break, with `whitespace="bounded"`.
const INDENTATION: u32 = 64;

/// The options by name.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Given {
    profile: Option<String>,
    strict: bool,
    draft: Option<String>,
    resources: BTreeMap<String, String>,
    property_order: Option<String>,
    whitespace: Option<Value>,
    outer_whitespace: Option<bool>,
    number_spelling: Option<String>,
    number_digits: Option<Value>,
    string_escapes: Option<String>,
    assert_formats: Option<bool>,
    on_unsupported: Option<String>,
    limits: Option<Limits>,
}

fn no_option(name: &str, value: &str, expected: &str) -> GrammarError {
    GrammarError::new(format!("{name}={value} is no option")).with_hint(format!("Expected {expected}"))
}

/// One of the texts that an option may have.
fn one_of<T: Copy>(name: &str, given: Option<&str>, known: &[(&str, T)], or: T) -> Result<T, GrammarError> {
    let Some(given) = given else { return Ok(or) };
    known.iter().find(|(text, _)| *text == given).map(|(_, option)| *option).ok_or_else(|| {
        let expected: Vec<String> = known.iter().map(|(text, _)| format!("{text:?}")).collect();
        no_option(name, &format!("{given:?}"), &expected.join(" or "))
    })
}

impl JsonOptions {
    /// Reads options by name; what is not there has its default. `limits` hold where the options have none.
    pub fn from_map(options: &Map<String, Value>, limits: &Limits) -> Result<JsonOptions, GrammarError> {
        let given = Given::deserialize(Value::Object(options.clone()))
            .map_err(|error| GrammarError::new(format!("An option of a JSON Schema is wrong: {error}")))?;
        let spec = one_of("profile", given.profile.as_deref(), &[("generate", false), ("spec", true)], false)?;
        let draft = given.draft.as_deref().map_or(Ok(Draft::V2020), |name| {
            let expected = "4, 6, 7, 2019-09, 2020-12 or the URI of one of them";
            Draft::from_name(name).ok_or_else(|| no_option("draft", &format!("{name:?}"), expected))
        })?;
        let orders = [("declared", PropertyOrder::Declared), ("any", PropertyOrder::Any)];
        let order = if spec { PropertyOrder::Any } else { PropertyOrder::Declared };
        let spellings = [("plain", NumberSpelling::Plain), ("any", NumberSpelling::Any)];
        let spelling = if spec { NumberSpelling::Any } else { NumberSpelling::Plain };
        let escapes = [("minimal", false), ("any", true)];
        let unsupported = [("error", false), ("report", true)];
        let limits = given.limits.unwrap_or(*limits);
        let number_spelling = one_of("number_spelling", given.number_spelling.as_deref(), &spellings, spelling)?;
        Ok(JsonOptions {
            schema: Options {
                draft,
                strict: given.strict,
                assert_formats: given.assert_formats.unwrap_or(true),
                property_order: one_of("property_order", given.property_order.as_deref(), &orders, order)?,
                number_spelling,
                number_digits: match &given.number_digits {
                    None if spec => None,
                    None => Some(NumberDigits::DEFAULT),
                    Some(value) => number_digits(value, number_spelling)?,
                },
                leave_out_unsupported: one_of("on_unsupported", given.on_unsupported.as_deref(), &unsupported, false)?,
                limits: limits.schema(),
            },
            white_space: match &given.whitespace {
                None if spec => WhiteSpace::Any,
                None => WhiteSpace::Bounded(INDENTATION),
                Some(value) => white_space_option(value)?,
            },
            outer_white_space: given.outer_whitespace.unwrap_or(spec),
            any_escapes: one_of("string_escapes", given.string_escapes.as_deref(), &escapes, true)?,
            resources: given.resources.into_iter().collect(),
            limits,
        })
    }

    /// A schema as an algebra of value sets, over the characters that the vocabulary can write, and the set of its values.
    pub fn algebra(&self, schema: &str, vocabulary: &Vocabulary) -> Result<(Algebra, Formula), SchemaError> {
        Algebra::new(schema, &self.resources, self.schema.clone(), self.limits.json(), vocabulary.alphabet())
    }

    /// The machine of a schema.
    pub fn machine(&self, schema: &str, vocabulary: &Vocabulary) -> Result<Machine, SchemaError> {
        let (mut algebra, formula) = self.algebra(schema, vocabulary)?;
        algebra.check_alternatives(self.limits.max_readings)?;
        Ok(Machine::new(algebra, formula, self.limits.machine(), |languages| {
            let space = white_space(self.white_space, languages);
            let one = languages.literal(" ");
            let after = if self.white_space == WhiteSpace::AfterSeparators { one } else { space };
            Spelling {
                encoding: if self.any_escapes { Encoding::Escaped } else { Encoding::Minimal },
                space,
                after_separator: after,
                outer_space: if self.outer_white_space { space } else { Language::EPSILON },
            }
        }))
    }
}

fn number_digits(value: &Value, spelling: NumberSpelling) -> Result<Option<NumberDigits>, GrammarError> {
    const MOST: u64 = 10_000;
    let digits = match value {
        Value::String(text) if text == "any" => return Ok(None),
        Value::String(text) if text == "bounded" => Some(NumberDigits::DEFAULT),
        Value::Number(number) => number.as_u64().filter(|digits| (1..=MOST).contains(digits)).map(|digits| {
            let digits = digits as u32;
            NumberDigits { whole: digits, significant: digits }
        }),
        _ => None,
    };
    let expected = "\"bounded\", \"any\" or a number from 1 to 10000";
    let digits = digits.ok_or_else(|| no_option("number_digits", &value.to_string(), expected))?;
    if spelling == NumberSpelling::Any {
        let expected = "number_spelling=\"plain\" beside it: with exponents the digits of a number have no bound";
        return Err(no_option("number_digits", &value.to_string(), expected));
    }
    Ok(Some(digits))
}

fn white_space_option(value: &Value) -> Result<WhiteSpace, GrammarError> {
    const MOST: u64 = 10_000;
    let known = [
        ("bounded", WhiteSpace::Bounded(INDENTATION)),
        ("any", WhiteSpace::Any),
        ("none", WhiteSpace::None),
        ("after_separators", WhiteSpace::AfterSeparators),
    ];
    let found = match value {
        Value::String(text) => known.iter().find(|(name, _)| name == text).map(|(_, option)| *option),
        Value::Number(number) => number.as_u64().filter(|&n| n <= MOST).map(|n| WhiteSpace::Bounded(n as u32)),
        _ => None,
    };
    let expected = "\"bounded\", \"any\", \"none\", \"after_separators\" or a number from 0 to 10000";
    found.ok_or_else(|| no_option("whitespace", &value.to_string(), expected))
}

fn white_space(kind: WhiteSpace, l: &mut Languages) -> Language {
    let set = |l: &mut Languages, chars: &str| l.set(CharSet::new(chars.chars().map(|c| (c as u32, c as u32))));
    match kind {
        WhiteSpace::None | WhiteSpace::AfterSeparators => Language::EPSILON,
        WhiteSpace::Any => {
            let any = set(l, " \t\n\r");
            l.star(any)
        }
        WhiteSpace::Bounded(most) => {
            let blank = set(l, " \t");
            let indentation = l.repeat(blank, 0, most);
            let line = l.literal("\n");
            let line = l.concat(line, indentation);
            let space = l.literal(" ");
            l.union([Language::EPSILON, space, line])
        }
    }
}

/// Options as JSON text.
pub fn options_from_json(text: &str) -> Result<Map<String, Value>, CompileError> {
    serde_json::from_str(text).map_err(|error| GrammarError::new(format!("The options are no object: {error}")).into())
}
