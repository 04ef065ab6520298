//! EBNF and Lark: random grammars in all that the notations can say, and whatever else is fed to their parsers.

use crate::expressions::{check_grammar, prints_and_reads_back};
use crate::random_pattern::quick_pattern;
use crate::{Choices, RANDOM};
use punchcard_grammar::lark::Lexer;
use punchcard_grammar::{Grammar, GrammarError};

/// A random grammar.
pub(crate) fn ebnf(choices: &mut Choices<'_>) -> String {
    Writer::new(&EBNF, choices).grammar()
}

/// A random grammar.
pub(crate) fn lark(choices: &mut Choices<'_>) -> String {
    Writer::new(&LARK, choices).grammar()
}

pub(crate) fn check_ebnf(data: &[u8]) {
    check(data, ebnf, |text, _| punchcard_grammar::ebnf::parse(text, None));
}

pub(crate) fn check_lark(data: &[u8]) {
    let lexers = [Lexer::Dynamic, Lexer::DynamicComplete];
    check(data, lark, |text, choices| punchcard_grammar::lark::parse(text, None, lexers[choices.below(2)]));
}

fn check(
    data: &[u8],
    make: impl Fn(&mut Choices<'_>) -> String,
    parse: impl Fn(&str, &mut Choices<'_>) -> Result<Grammar, GrammarError>,
) {
    let source = match data.split_first() {
        Some((&RANDOM, rest)) => make(&mut Choices::new(rest)),
        _ => match std::str::from_utf8(data) {
            Ok(text) => text.to_string(),
            Err(_) => return,
        },
    };
    let mut choices = Choices::endless(data);
    match parse(&source, &mut choices) {
        Ok(grammar) => {
            prints_and_reads_back(&grammar);
            check_grammar(&grammar, &mut choices);
        }
        Err(error) => {
            assert!(!error.message.trim().is_empty(), "an error without a message: {source}");
            if let Some(spot) = &error.spot {
                let lines = source.matches('\n').count() + 1;
                assert!((1..=lines).contains(&spot.line) && spot.column > 0, "{error} is beyond the grammar {source}");
            }
        }
    }
}

/// How a notation writes what all of them have.
struct Notation {
    defines: &'static str,
    rules: &'static [&'static str],
    /// Rules that are terminals; names of them come first.
    terminals: &'static [&'static str],
    leaves: &'static [&'static str],
    /// Around an operand.
    wrappers: &'static [(&'static str, &'static str)],
    counts: &'static [&'static str],
    /// After the name of a rule that is defined.
    attributes: &'static [&'static str],
    /// Lines of their own.
    lines: &'static [&'static str],
}

const EBNF: Notation = Notation {
    defines: " ::= ",
    rules: &["root", "a", "b-c", "d.e"],
    terminals: &[],
    leaves: &[
        r#""a""#,
        r#""b""#,
        "[ab]",
        "[^a]",
        "'b'",
        r#""""#,
        r#""\u00e9""#,
        "#x61",
        ".",
        r#""ab""#,
        "[a-cé]",
        r#"[\d]"#,
        "<[2]>",
        "<think>",
        "!<think>",
        "Token(2, 3)",
        "ExcludeToken(1)",
        r#"Regex("a|b")"#,
        r#"@regex("a+b?", "i")"#,
        r#"@json_schema({"type": "integer"})"#,
        r#"@json_schema({"enum": ["a", {"b": 1}]}, {"profile": "spec"})"#,
        r#"@schema_string({"maxLength": 2}, {}, without "ab")"#,
        r#"@text_without("ab", "c")"#,
        "@nothing",
        r#"@token_except("<think>", 3)"#,
        "[]",
        r#""\x""#,
        "(",
    ],
    wrappers: &[
        ("(", ")"),
        ("(", ")"),
        ("@and(", ", [ab]*)"),
        ("@not(", ")"),
        ("@shortest(", ")"),
        ("@longest(", ")"),
        ("@max_tokens(2, ", ")"),
        (r#"@named("k", "n", "#, ")"),
        ("(", " - \"a\")"),
        ("([ab]* - ", ")"),
    ],
    counts: &["?", "*", "+", "{2}", "{0,3}", "{1,}", "{,2}", "{0}", "{0,50}", "{1000}", "{3,2}", "{99999999999}"],
    attributes: &["[max_tokens=2]", "[capture]", "[capture=\"x\"]"],
    lines: &["# comment", "/* b ::= 1 */", ";", "(* x *)"],
};

const LARK: Notation = Notation {
    defines: ": ",
    rules: &["start", "a", "b", "A", "B", "C"],
    terminals: &["A", "B", "C"],
    leaves: &[
        r#""a""#,
        r#""b""#,
        "/[ab]/",
        "/a+/",
        r#""ab"i"#,
        r#""a".."c""#,
        "/.*?b/",
        r#"/\w+/i"#,
        "/[^a]/",
        "/(?=a)./",
        "/a|ab/",
        r#""""#,
        r#""\u00e9""#,
        "<|tool|>",
        "<[2-4]>",
        "<[*]>",
        "<[^1]>",
        r#"%json {"type": "integer"}"#,
        r#"%json {"enum": ["a", {"b": 1}]}"#,
        "%lark { start: \"a\" A?\n A: /b+/ }",
        r#"%regex {"substring_chars": "ab"}"#,
        r#"%regex {"substring_chunks": ["a", "ab"]}"#,
        "INT",
        "WORD",
        "t{A}",
        "t{t{\"a\"}}",
        "/(/",
        "(",
    ],
    wrappers: &[("(", ")"), ("(", ")"), ("[", "]"), ("(", " & /[ab]*/)"), ("~(", ")"), ("(", " & ~\"a\")")],
    counts: &["?", "*", "+", "~2", "~0..3", "{1,}", "{,2}", "{0,50}", "~1000", "~3..2", "~99999999999"],
    attributes: &[
        "[lazy]",
        "[stop=\"b\"]",
        "[suffix=/b/]",
        "[max_tokens=2]",
        "[capture]",
        "[capture=\"x\"]",
        ".2",
        "[lazy,capture]",
    ],
    lines: &[
        "%import common (INT, WORD)",
        "%ignore \" \"",
        "%ignore /#[^\\n]*/",
        "t{x}: x (\",\" x)*",
        "// comment",
        "%override a: \"b\"",
        "%extend a: \"c\"",
    ],
};

/// Writes a grammar.
struct Writer<'a, 'b> {
    notation: &'static Notation,
    choices: &'a mut Choices<'b>,
    out: String,
}

impl<'a, 'b> Writer<'a, 'b> {
    fn new(notation: &'static Notation, choices: &'a mut Choices<'b>) -> Self {
        Writer { notation, choices, out: String::new() }
    }

    fn grammar(mut self) -> String {
        let notation = self.notation;
        for name in notation.rules {
            if self.choices.once_in(6) {
                let line = self.choices.pick(notation.lines);
                self.line(line);
            }
            self.out.push_str(name);
            if self.choices.once_in(8) {
                self.out.push_str(self.choices.pick(notation.attributes));
            }
            self.out.push_str(notation.defines);
            let names = if notation.terminals.contains(name) { notation.terminals } else { notation.rules };
            self.alternatives(names, 2);
            self.line("");
        }
        // What the leaves name has to be there for most of the grammars to be sound.
        if let Some(line) = notation.lines.first().filter(|line| self.out.contains("INT") || line.is_empty()) {
            self.line(line);
        }
        if self.out.contains("t{") && !self.out.contains("t{x}") {
            self.line("t{x}: x (\",\" x)*");
        }
        self.out
    }

    fn line(&mut self, line: &str) {
        self.out.push_str(line);
        self.out.push('\n');
    }

    fn alternatives(&mut self, names: &[&'static str], depth: usize) {
        for i in 0..1 + self.choices.below(3) {
            if i > 0 {
                self.out.push_str(" | ");
            }
            for j in 0..self.choices.below(4) {
                if j > 0 {
                    self.out.push(' ');
                }
                self.part(names, depth);
            }
        }
    }

    fn part(&mut self, names: &[&'static str], depth: usize) {
        match self.choices.below(if depth == 0 { 7 } else { 10 }) {
            0..3 => self.out.push_str(self.choices.pick(names)),
            3..5 => self.out.push_str(self.choices.pick(&self.notation.leaves[..3])),
            5..7 => self.out.push_str(self.choices.pick(self.notation.leaves)),
            7 if self.notation.terminals.is_empty() => {
                self.out.push_str(&format!("@regex({:?})", quick_pattern(self.choices)));
            }
            7 => self.out.push_str(&format!("/{}/", quick_pattern(self.choices)).replace("//", "\"\"")),
            _ => {
                let (open, close) = self.notation.wrappers[self.choices.below(self.notation.wrappers.len())];
                self.out.push_str(open);
                self.alternatives(names, depth - 1);
                self.out.push_str(close);
            }
        }
        if self.choices.once_in(3) {
            self.out.push_str(self.choices.pick(self.notation.counts));
        }
    }
}
