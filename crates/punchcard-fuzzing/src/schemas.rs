//! JSON Schema: what is let through is JSON and valid, and under the profile `spec` everything valid is let through.

use crate::follow::{Text, follow, limited, limits};
use crate::patterns::refused;
use crate::random_schema::{document, schema};
use crate::validator::Validator;
use crate::values::{Json, Refused, read};
use crate::{Choices, RANDOM, vocabularies};
use punchcard_engine::{CompileError, CompiledGrammar, Matcher};
use punchcard_grammar::Expr;
use punchcard_schema::{SchemaError, SchemaErrorKind};
use serde_json::{Map, Value, json};

/// Documents that are tried on each schema.
const DOCUMENTS: usize = 12;

pub(crate) fn check(data: &[u8]) {
    let source = match data.split_first() {
        Some((&RANDOM, rest)) => schema(&mut Choices::new(rest)).to_string(),
        _ => {
            let Ok(text) = std::str::from_utf8(data) else { return };
            text.to_string()
        }
    };
    let mut choices = Choices::endless(data);
    let is_spec = choices.once_in(2);
    let options = if is_spec { json!({"profile": "spec"}) } else { generate(&mut choices) };
    let Value::Object(options) = options else { return };
    check_schema(&source, options, is_spec, &mut choices);
}

fn generate(choices: &mut Choices<'_>) -> Value {
    let mut options = Map::new();
    let option = |choices: &mut Choices<'_>, values: &[Value]| values[choices.below(values.len())].clone();
    for (name, values) in [
        ("property_order", [json!("any"), json!("declared")].as_slice()),
        ("whitespace", &[json!("any"), json!("none"), json!("after_separators"), json!(2)]),
        ("number_spelling", &[json!("any")]),
        ("string_escapes", &[json!("any")]),
        ("outer_whitespace", &[json!(true)]),
        ("on_unsupported", &[json!("report")]),
        ("draft", &[json!("4"), json!("7"), json!("2019-09")]),
    ] {
        if choices.once_in(6) {
            options.insert(name.into(), option(choices, values));
        }
    }
    Value::Object(options)
}

fn check_schema(source: &str, options: Map<String, Value>, is_spec: bool, choices: &mut Choices<'_>) {
    let parsed = read(source.as_bytes()).ok();
    // Other drafts, and what is left out on request, are not what the validator checks.
    let same_meaning = !options.contains_key("draft") && !options.contains_key("on_unsupported");
    let mut validator = parsed.as_ref().filter(|_| same_meaning).map(Validator::new);
    let mut verdict = |value: &Json| validator.as_mut().and_then(|validator| validator.is_valid(value));
    let documents: Vec<Json> = (0..DOCUMENTS).map(|_| document(choices, 2)).collect();
    let vocabulary = if choices.once_in(8) { vocabularies::ascii() } else { vocabularies::all_bytes() };
    let expr = Expr::JsonSchema { schema: source.into(), options };
    let grammar = match CompiledGrammar::new(vocabulary.clone(), expr, &limits(choices)) {
        Ok(grammar) => grammar,
        Err(error) => {
            refused(&error);
            if let CompileError::Schema(SchemaError { kind: SchemaErrorKind::Unsatisfiable, .. }) = error {
                let valid = documents.iter().find(|document| verdict(document) == Some(true));
                assert!(valid.is_none(), "{source} is said to have no value; {valid:?} is one");
            }
            return;
        }
    };
    follow(&grammar, choices, &mut |text: &Text| {
        let shown = String::from_utf8_lossy(&text.bytes);
        match read(&text.bytes) {
            Ok(value) => assert!(verdict(&value) != Some(false), "{source} lets through {shown}, which is invalid"),
            Err(Refused::Malformed(why)) => panic!("{source} lets through {shown}, which is no JSON: {why}"),
            Err(Refused::Unknown) => {}
        }
    });
    for document in documents.iter().filter(|_| is_spec && vocabulary.alphabet().is_none()) {
        let Some(expected) = verdict(document) else { continue };
        let Some(found) = limited(admits(&grammar, &document.to_string())) else { return };
        let (said, is) = if found { ("lets through", "invalid") } else { ("refuses", "valid") };
        assert!(found == expected, "{source} {said} {document}, which is {is}");
    }
}

fn admits(grammar: &CompiledGrammar, text: &str) -> Result<bool, SchemaError> {
    let mut matcher = Matcher::new(grammar.clone(), None).expect("without a budget there is nothing to refuse");
    Ok(matcher.accept_bytes(text.as_bytes())? && matcher.is_accepting()?)
}
