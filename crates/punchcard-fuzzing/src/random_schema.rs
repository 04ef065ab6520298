//! Random schemas of few names and values, so that keywords meet, and documents of the same.

use crate::Choices;
use crate::random_pattern::quick_pattern;
use crate::values::Json;

const NAMES: [&str; 5] = ["a", "b", "ab", "c", "é"];
const TEXTS: [&str; 7] = ["", "a", "b", "ab", "aab", "é", "1"];
const NUMBERS: [&str; 14] = ["0", "1", "2", "3", "-1", "-2", "0.5", "1.5", "10", "100", "1e2", "2.50", "-0", "0.1"];
/// Numbers that test how much is counted out.
const HARD: [&str; 6] = ["1e400", "-1e-400", "123456789012345678901234567890", "0.000000001", "4294967296", "1e19"];
const TYPES: [&str; 7] = ["object", "array", "string", "integer", "number", "boolean", "null"];
const FORMATS: [&str; 12] = [
    "date",
    "date-time",
    "time",
    "duration",
    "email",
    "ipv4",
    "ipv6",
    "uuid",
    "uri",
    "hostname",
    "json-pointer",
    "regex",
];

/// A schema.
pub(crate) fn schema(choices: &mut Choices<'_>) -> Json {
    let mut root = level(choices, 3);
    let definitions = choices.list(0, 2, |choices| level(choices, 2));
    if let (Json::Object(members), false) = (&mut root, definitions.is_empty()) {
        let names = ["a", "b"].iter().map(|name| name.to_string());
        members.push(("$defs".into(), Json::Object(names.zip(definitions).collect())));
    }
    root
}

fn level(choices: &mut Choices<'_>, depth: usize) -> Json {
    let mut members: Vec<(String, Json)> = Vec::new();
    if depth == 0 || choices.once_in(12) {
        return leaf(choices);
    }
    for _ in 0..choices.below(6) {
        let (keyword, value) = keyword(choices, depth - 1);
        if !members.iter().any(|(other, _)| other == keyword) {
            members.push((keyword.into(), value));
        }
    }
    Json::Object(members)
}

fn leaf(choices: &mut Choices<'_>) -> Json {
    let one = |name: &str, value: Json| Json::Object(vec![(name.into(), value)]);
    match choices.below(7) {
        0 => Json::Bool(true),
        1 => Json::Bool(false),
        2 => one("const", document(choices, 1)),
        3 => one("not", one("const", document(choices, 1))),
        4 => one("$ref", reference(choices)),
        5 => one("multipleOf", Json::number(choices.pick(&["1", "2", "0.5", "3"]))),
        _ => one("type", Json::text(choices.pick(&TYPES))),
    }
}

fn reference(choices: &mut Choices<'_>) -> Json {
    Json::text(choices.pick(&["#/$defs/a", "#/$defs/b", "#", "#/properties/a", "#/$defs/none"]))
}

fn keyword(choices: &mut Choices<'_>, depth: usize) -> (&'static str, Json) {
    let count = |choices: &mut Choices<'_>| {
        let large = choices.once_in(40);
        Json::number(if large {
            choices.pick(&["1000", "1e9", "70"])
        } else {
            choices.pick(&["0", "1", "2", "3", "1.0"])
        })
    };
    let number = |choices: &mut Choices<'_>| {
        let hard = choices.once_in(20);
        Json::number(if hard { choices.pick(&HARD) } else { choices.pick(&NUMBERS) })
    };
    let schemas = |choices: &mut Choices<'_>| Json::Array(choices.list(1, 3, |choices| level(choices, depth)));
    match choices.below(44) {
        0 => ("type", Json::text(choices.pick(&TYPES))),
        1..4 => ("type", Json::text(choices.pick(&["object", "array"]))),
        4 => ("type", Json::Array(choices.list(1, 3, |choices| Json::text(choices.pick(&TYPES))))),
        5 => ("enum", Json::Array(choices.list(1, 4, |choices| document(choices, 2)))),
        6 => ("const", document(choices, 2)),
        7 => ("minimum", number(choices)),
        8 => ("maximum", number(choices)),
        9 => ("exclusiveMinimum", number(choices)),
        10 => ("exclusiveMaximum", number(choices)),
        11 => ("multipleOf", Json::number(choices.pick(&["1", "2", "3", "0.5", "1.5", "10", "0.01", "1e2", "7"]))),
        12 => ("minLength", count(choices)),
        13 => ("maxLength", count(choices)),
        14 => ("pattern", Json::text(&quick_pattern(choices))),
        15 => ("minItems", count(choices)),
        16 => ("maxItems", count(choices)),
        17 => ("uniqueItems", Json::Bool(!choices.once_in(5))),
        18 => ("prefixItems", schemas(choices)),
        19 => ("items", level(choices, depth)),
        20 => ("contains", level(choices, depth)),
        21 => ("minContains", count(choices)),
        22 => ("maxContains", count(choices)),
        23..27 => ("properties", named(choices, depth, |choices| choices.pick(&NAMES).to_string())),
        27 => ("patternProperties", named(choices, depth, quick_pattern)),
        28 => ("additionalProperties", level(choices, depth)),
        29 => ("propertyNames", level(choices, depth)),
        30 => ("required", names(choices)),
        31 => ("minProperties", count(choices)),
        32 => ("maxProperties", count(choices)),
        33 => ("dependentRequired", Json::Object(vec![(choices.pick(&NAMES).into(), names(choices))])),
        34 => ("dependentSchemas", named(choices, depth, |choices| choices.pick(&NAMES).to_string())),
        35 => ("allOf", schemas(choices)),
        36 => ("anyOf", schemas(choices)),
        37 => ("oneOf", schemas(choices)),
        38 => ("not", level(choices, depth)),
        39 => ("if", level(choices, depth)),
        40 => (choices.pick(&["then", "else"]), level(choices, depth)),
        41 => ("$ref", reference(choices)),
        42 => (choices.pick(&["unevaluatedProperties", "unevaluatedItems"]), level(choices, depth)),
        _ => ("format", Json::text(choices.pick(&FORMATS))),
    }
}

fn names(choices: &mut Choices<'_>) -> Json {
    let mut names = choices.list(0, 3, |choices| choices.pick(&NAMES));
    names.sort_unstable();
    names.dedup();
    Json::Array(names.into_iter().map(Json::text).collect())
}

fn named(choices: &mut Choices<'_>, depth: usize, name: impl Fn(&mut Choices<'_>) -> String) -> Json {
    let mut members: Vec<(String, Json)> = Vec::new();
    for (name, schema) in choices.list(0, 3, |choices| (name(choices), level(choices, depth))) {
        if !members.iter().any(|(other, _)| *other == name) {
            members.push((name, schema));
        }
    }
    Json::Object(members)
}

/// A document.
pub(crate) fn document(choices: &mut Choices<'_>, depth: usize) -> Json {
    match choices.below(if depth == 0 { 8 } else { 12 }) {
        0 => Json::Null,
        1 => Json::Bool(choices.once_in(2)),
        2..5 => Json::number(choices.pick(&NUMBERS)),
        5..8 => Json::text(choices.pick(&TEXTS)),
        8 | 9 => Json::Array(choices.list(0, 3, |choices| document(choices, depth - 1))),
        _ => {
            let mut members: Vec<(String, Json)> = Vec::new();
            for (name, value) in choices.list(0, 3, |c| (c.pick(&NAMES).to_string(), document(c, depth - 1))) {
                if !members.iter().any(|(other, _)| *other == name) {
                    members.push((name, value));
                }
            }
            Json::Object(members)
        }
    }
}
