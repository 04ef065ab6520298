//! What can be said of a grammar before there is a vocabulary.
//!
//! Regular expressions and schemas within it are read, with their options, references and the values of their keywords.
//! Whether a text matches, and what tokens there are, is found out when the grammar is compiled.

use crate::error::CompileError;
use crate::grammar::on_a_large_stack;
use crate::options::{JsonOptions, Limits};
use crate::rules::lower::read_regex;
use punchcard_automata::work;
use punchcard_grammar::Expr;
use punchcard_schema::{Algebra, SchemaErrorKind};
use serde_json::{Map, Value};

/// Refuses a grammar that cannot be compiled for any vocabulary, as far as that is easy to see.
pub fn check(expr: &Expr) -> Result<(), CompileError> {
    on_a_large_stack(|| check_expr(expr))
}

fn check_expr(expr: &Expr) -> Result<(), CompileError> {
    match expr {
        Expr::Sequence(items) | Expr::Choice(items) | Expr::And(items) => items.iter().try_for_each(check_expr),
        Expr::Repeat { body, .. } | Expr::MaxTokens { body, .. } | Expr::Named { body, .. } => check_expr(body),
        Expr::Not(body) | Expr::Shortest(body) | Expr::Longest(body) => check_expr(body),
        Expr::Grammar(grammar) => {
            for (name, body) in &grammar.rules {
                check_expr(body).map_err(|error| error.within(name))?;
            }
            check_expr(&grammar.start)
        }
        Expr::Regex { pattern, flags, syntax } => Ok(read_regex(pattern, flags, *syntax).map(|_| ())?),
        Expr::JsonSchema { schema, options } | Expr::SchemaString { schema, options, .. } => {
            check_schema(schema, options)
        }
        _ => Ok(()),
    }
}

/// The same of a schema.
pub fn check_schema(schema: &str, options: &Map<String, Value>) -> Result<(), CompileError> {
    /// Steps that a look ahead may take: a real schema takes a few thousand.
    const MOST: u64 = 200_000;
    let given = JsonOptions::from_map(options, &Limits::default())?;
    let most = if options.contains_key("limits") { given.limits.max_work } else { MOST };
    let check = || Algebra::check(schema, &given.resources, given.schema.clone(), given.limits.json());
    match work::within(most, check) {
        // The limits that hold are known when it is compiled, unless they are among the options.
        Err(error) if matches!(error.kind, SchemaErrorKind::Limit { .. }) && !options.contains_key("limits") => Ok(()),
        checked => Ok(checked?),
    }
}
