//! Notations of grammars.

use crate::errors::Raise;
use crate::guard;
use punchcard_engine::{CompileError, check};
use punchcard_grammar::lark::Lexer;
use punchcard_grammar::{Expr, Grammar, GrammarError, ebnf, lark, print};
use pyo3::prelude::*;

/// The JSON form of a grammar, if nothing in it is malformed.
fn as_json(grammar: Grammar) -> Result<String, CompileError> {
    let expr = Expr::Grammar(Box::new(grammar));
    check::check(&expr)?;
    Ok(expr.to_json())
}

/// A grammar in EBNF as an expression in its JSON form.
#[pyfunction]
#[pyo3(signature = (text, start = None))]
pub fn parse_ebnf(py: Python<'_>, text: &str, start: Option<&str>) -> PyResult<String> {
    guard::run(py, "Reading EBNF", || as_json(ebnf::parse(text, start)?))
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
            return Err(error.with_hint("Expected 'dynamic' or 'dynamic_complete'").raise(py));
        }
    };
    guard::run(py, "Reading a Lark grammar", || as_json(lark::parse(text, start, lexer)?))
}

/// An expression in its JSON form as EBNF.
#[pyfunction]
pub fn print_grammar(py: Python<'_>, expr: &str) -> PyResult<String> {
    guard::run(py, "Printing a grammar", || {
        let grammar = match Expr::from_json(expr)? {
            Expr::Grammar(grammar) => *grammar,
            start => Grammar { start, rules: Default::default() },
        };
        Ok::<_, GrammarError>(print::print(&grammar))
    })
}

/// Adds the functions of this file to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(parse_ebnf, module)?)?;
    module.add_function(wrap_pyfunction!(parse_lark, module)?)?;
    module.add_function(wrap_pyfunction!(print_grammar, module)?)?;
    Ok(())
}
