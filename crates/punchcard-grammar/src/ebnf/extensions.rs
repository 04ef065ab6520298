//! `@name(...)`: what no other EBNF can say, so that every expression can be written; and what XGrammar and llama.cpp
//! have for tokens and regular expressions.
//!
//! ```text
//! @nothing                                             no text at all
//! @and(a, b)  @not(a)  @shortest(a)  @longest(a)        as the expressions of these names
//! @text_without("a", "b")
//! @regex("[a-z]+", "i", python)                        pattern, flags, dialect; the last two may be left out
//! @json_schema({"type": "integer"}, {"profile": "spec"})              schema and options, in JSON
//! @schema_string({"type": "string"}, {}, without "</a>" "</b>")
//! @token(1, 2, "<|end|>")  @token_except("<|end|>")    numbers and names
//! @max_tokens(10, a)
//! @named("kind", "name", a)
//! ```
//!
//! A schema is kept as it is written, as the order of its members matters. One that is no JSON is written as a literal.

use super::{Parser, Part, Result};
use crate::expr::{Expr, RegexSyntax};
use crate::similar::nearest;
use serde::de::IgnoredAny;
use serde_json::{Deserializer, Map, Value};

const EXTENSIONS: &[&str] = &[
    "nothing",
    "and",
    "not",
    "shortest",
    "longest",
    "text_without",
    "regex",
    "json_schema",
    "schema_string",
    "token",
    "token_except",
    "max_tokens",
    "named",
];

/// What XGrammar writes like a function.
const FUNCTIONS: &[&str] = &["TagDispatch", "TokenTagDispatch", "Token", "ExcludeToken", "Regex"];

impl<'a> Parser<'a> {
    /// `@name(...)`, at its `@`.
    pub(super) fn extension(&mut self) -> Result<Part> {
        let start = self.at;
        self.at += 1;
        let name = self.name().unwrap_or_default();
        if name == "nothing" {
            return Ok(Expr::Nothing.into());
        }
        if !EXTENSIONS.contains(&name) {
            let hint = match nearest(name, EXTENSIONS.iter().copied()) {
                Some(near) => format!("Did you mean @{near}?"),
                None => format!("There are @{}", EXTENSIONS.join(", @")),
            };
            return self.fail(start, format!("There is no @{name}"), hint);
        }
        self.skip()?;
        let parenthesis = self.at;
        if !self.eat("(") {
            return self.fail(start, format!("@{name} needs arguments"), format!("Write @{name}(...)"));
        }
        self.open(parenthesis)?;
        self.skip()?;
        let part = match name {
            "and" => {
                let mut parts = Vec::new();
                while !self.at_close()? {
                    parts.push(self.choice()?);
                    self.separator()?;
                }
                // One operand or many: it is an expression around them.
                let depth = parts.iter().map(|part| part.depth).max().unwrap_or(0) + 1;
                let expr = Expr::And(parts.into_iter().map(|part| part.expr).collect());
                self.bounded(start, Part { expr, depth })?
            }
            "not" => self.wrapped(start, Expr::Not)?,
            "shortest" => self.wrapped(start, Expr::Shortest)?,
            "longest" => self.wrapped(start, Expr::Longest)?,
            "text_without" => Expr::TextWithout(self.literals()?).into(),
            "regex" => self.regex()?.into(),
            "json_schema" => {
                let schema = self.schema()?;
                let options = self.options()?;
                Expr::JsonSchema { schema, options }.into()
            }
            "schema_string" => {
                let schema = self.schema()?;
                let options = self.options()?;
                let mut without = Vec::new();
                if self.eat("without") {
                    self.skip()?;
                    while let Some('"' | '\'') = self.peek() {
                        without.push(self.literal()?);
                        self.skip()?;
                    }
                }
                Expr::SchemaString { schema, options, without }.into()
            }
            "max_tokens" => {
                let Some(tokens) = self.number()? else { return self.expected("a number of tokens") };
                self.comma()?;
                self.wrapped(start, |body| Expr::MaxTokens { body, tokens })?
            }
            "named" => {
                let kind = self.literal_argument()?;
                self.comma()?;
                let name = self.literal_argument()?;
                self.comma()?;
                self.wrapped(start, |body| Expr::Named { kind, name, body })?
            }
            _ => self.tokens(name == "token_except")?.into(),
        };
        self.close(parenthesis)?;
        Ok(part)
    }

    /// `Token(1)` and other functions of XGrammar, if that is what this name at `start` and what comes after it are.
    pub(super) fn function(&mut self, start: usize, name: &str) -> Result<Option<Part>> {
        let Some(&function) = FUNCTIONS.iter().find(|&&function| function == name) else { return Ok(None) };
        let parenthesis = self.at;
        if !self.rest().starts_with('(') || self.is_defined(function) {
            return Ok(None);
        }
        self.at += 1;
        self.open(parenthesis)?;
        self.skip()?;
        let expr = match function {
            "Token" => self.tokens(false)?,
            "ExcludeToken" => self.tokens(true)?,
            "Regex" => self.regex()?,
            _ => {
                return self.fail(
                    start,
                    format!("{function} is not supported in EBNF"),
                    "Say it as a structural tag: Grammar.from_structural_tag",
                );
            }
        };
        self.close(parenthesis)?;
        Ok(Some(expr.into()))
    }

    /// Whether the text defines a rule of this name, before or after this place. Looked up once for each function.
    fn is_defined(&mut self, function: &'static str) -> bool {
        let text = self.text;
        *self.shadowed.entry(function).or_insert_with(|| {
            text.match_indices(function).any(|(at, _)| {
                let begins = !text[..at].chars().next_back().is_some_and(super::is_name_char);
                begins && text[at + function.len()..].trim_start().starts_with("::=")
            })
        })
    }

    /// `<[7]>` or `<think>`, at its angle bracket.
    pub(super) fn token(&mut self, except: bool) -> Result<Expr> {
        let start = self.at;
        let rest = self.rest();
        let end = rest.find(|c: char| c == '>' || c.is_whitespace());
        let Some(end) = end.filter(|&end| rest[end..].starts_with('>') && end > 1) else {
            let hint = "It is written <[7]> or <name>; a literal bracket \"<\"";
            return self.fail(start, "The token is not closed by an angle bracket", hint);
        };
        self.at += end + 1;
        let (mut ids, mut names) = (Vec::new(), Vec::new());
        match rest[1..end].strip_prefix('[').and_then(|id| id.strip_suffix(']')) {
            Some(id) => match id.parse() {
                Ok(id) => ids.push(id),
                Err(_) => return self.fail(start, format!("{id:?} is no token id"), "It is a number: <[7]>"),
            },
            None => names.push(rest[..=end].to_string()),
        }
        Ok(Expr::Token { ids, names, except })
    }

    // ---- arguments ----

    /// The last argument, an expression, with something around it.
    fn wrapped(&mut self, start: usize, wrap: impl FnOnce(Box<Expr>) -> Expr) -> Result<Part> {
        let Part { expr, depth } = self.choice()?;
        self.bounded(start, Part { expr: wrap(Box::new(expr)), depth: depth + 1 })
    }

    fn tokens(&mut self, except: bool) -> Result<Expr> {
        let (mut ids, mut names) = (Vec::new(), Vec::new());
        while !self.at_close()? {
            match self.number()? {
                Some(id) => ids.push(id),
                None if matches!(self.peek(), Some('"' | '\'')) => names.push(self.literal()?),
                None => return self.expected("a token id or the name of a token in quotes"),
            }
            self.separator()?;
        }
        Ok(Expr::Token { ids, names, except })
    }

    fn regex(&mut self) -> Result<Expr> {
        let pattern = self.literal_argument()?;
        let (mut flags, mut syntax) = (String::new(), RegexSyntax::default());
        self.separator()?;
        if let Some('"' | '\'') = self.peek() {
            flags = self.literal()?;
            self.separator()?;
        }
        if !self.at_close()? {
            let at = self.at;
            syntax = match self.name() {
                Some("python") => RegexSyntax::Python,
                Some("ecma") => RegexSyntax::Ecma,
                _ => return self.fail(at, "A dialect should come here", "There are ecma and python"),
            };
        }
        Ok(Expr::Regex { pattern, flags, syntax })
    }

    fn literals(&mut self) -> Result<Vec<String>> {
        let mut texts = Vec::new();
        while !self.at_close()? {
            texts.push(self.literal_argument()?);
            self.separator()?;
        }
        Ok(texts)
    }

    fn literal_argument(&mut self) -> Result<String> {
        match self.peek() {
            Some('"' | '\'') => self.literal(),
            _ => self.expected("a literal"),
        }
    }

    /// A schema: JSON as it stands, or any text as a literal.
    fn schema(&mut self) -> Result<String> {
        if let Some('"' | '\'') = self.peek() {
            let schema = self.literal()?;
            self.separator()?;
            return Ok(schema);
        }
        Ok(self.json()?.to_string())
    }

    fn options(&mut self) -> Result<Map<String, Value>> {
        let start = self.at;
        if !self.rest().starts_with('{') {
            return Ok(Map::new());
        }
        let text = self.json()?;
        serde_json::from_str(text).or_else(|error| self.fail(start, format!("The options are wrong: {error}"), ""))
    }

    /// A value in JSON, as it is written, and the comma after it.
    fn json(&mut self) -> Result<&'a str> {
        let (start, rest) = (self.at, self.rest());
        if !rest.starts_with(['{', '[']) {
            let end = rest.find(|c: char| matches!(c, ',' | ')') || c.is_whitespace()).unwrap_or(rest.len());
            if serde_json::from_str::<IgnoredAny>(&rest[..end]).is_err() {
                return self.expected("JSON");
            }
            self.at += end;
            self.separator()?;
            return Ok(&rest[..end]);
        }
        // It ends where its bracket does; what comes after it is no JSON.
        let mut values = Deserializer::from_str(rest).into_iter::<IgnoredAny>();
        if let Some(Err(error)) = values.next() {
            // The place of the error, counted in lines and bytes of the rest.
            let lines = rest.split_inclusive('\n').take(error.line().saturating_sub(1));
            let at = start + lines.map(str::len).sum::<usize>() + error.column().saturating_sub(1);
            let message = error.to_string();
            let message = message.split(" at line ").next().unwrap_or_default();
            return self.fail(at, format!("This is no JSON: {message}"), "");
        }
        self.at += values.byte_offset();
        let text = &self.text[start..self.at];
        self.separator()?;
        Ok(text)
    }

    fn at_close(&mut self) -> Result<bool> {
        self.skip()?;
        Ok(matches!(self.peek(), None | Some(')')))
    }

    /// A comma, or the end of the arguments.
    fn separator(&mut self) -> Result<()> {
        self.skip()?;
        if self.at_close()? { Ok(()) } else { self.comma() }
    }

    fn comma(&mut self) -> Result<()> {
        self.skip()?;
        if !self.eat(",") {
            return self.expected("a comma");
        }
        self.skip()
    }

    fn expected<T>(&self, what: &str) -> Result<T> {
        self.fail(self.at, format!("Here {what} should come"), "")
    }
}
