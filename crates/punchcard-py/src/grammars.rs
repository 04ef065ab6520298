//! Notations of grammars.

use crate::errors::grammar_error;
use punchcard_grammar::lark::Lexer;
use punchcard_grammar::{Expr, Grammar, GrammarError, ebnf, lark, print};
use pyo3::prelude::*;

fn as_json(py: Python<'_>, parsed: Result<Grammar, GrammarError>) -> PyResult<String> {
    let grammar = parsed.map_err(|error| grammar_error(py, &error))?;
    Ok(Expr::Grammar(Box::new(grammar)).to_json())
}

/// A grammar in EBNF as an expression in its JSON form.
#[pyfunction]
#[pyo3(signature = (text, start = None))]
pub fn parse_ebnf(py: Python<'_>, text: &str, start: Option<&str>) -> PyResult<String> {
    let parsed = py.detach(|| ebnf::parse(text, start));
    as_json(py, parsed)
}

/// A Lark grammar as an expression in its JSON form.
#[pyfunction]
#[pyo3(signature = (text, start = None, lexer = "dynamic"))]
pub fn parse_lark(py: Python<'_>, text: &str, start: Option<&str>, lexer: &str) -> PyResult<String> {
    let lexer = match lexer {
        "dynamic" => Lexer::Dynamic,
        "dynamic_complete" => Lexer::DynamicComplete,
        _ => {
            let error = GrammarError::new(format!("lexer={lexer:?} is no option"));
            return Err(grammar_error(py, &error.with_hint("Expected 'dynamic' or 'dynamic_complete'")));
        }
    };
    let parsed = py.detach(|| lark::parse(text, start, lexer));
    as_json(py, parsed)
}

/// An expression in its JSON form as EBNF.
#[pyfunction]
pub fn print_grammar(py: Python<'_>, expr: &str) -> PyResult<String> {
    let printed = py.detach(|| {
        let grammar = match Expr::from_json(expr)? {
            Expr::Grammar(grammar) => *grammar,
            start => Grammar { start, rules: Default::default() },
        };
        Ok(print::print(&grammar))
    });
    printed.map_err(|error| grammar_error(py, &error))
}

/// Adds the functions of this file to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(parse_ebnf, module)?)?;
    module.add_function(wrap_pyfunction!(parse_lark, module)?)?;
    module.add_function(wrap_pyfunction!(print_grammar, module)?)?;
    Ok(())
}
