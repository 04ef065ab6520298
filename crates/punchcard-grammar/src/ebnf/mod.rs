//! EBNF: the notations of llama.cpp (GBNF), XGrammar and the W3C, read by one parser.
//!
//! ```
//! let grammar = punchcard_grammar::ebnf::parse("root ::= \"yes\" | \"no\" [.!]?", None)?;
//! assert_eq!(punchcard_grammar::print(&grammar), "root ::= \"yes\" | \"no\" [!.]?\n");
//! # Ok::<(), punchcard_grammar::GrammarError>(())
//! ```
//!
//! A grammar is a list of rules, `name ::= alternatives`; `:=` and `=` do as well. A rule ends where the next one begins
//! (or with a `;`), however the lines fall. The first choice of a start is the rule `root`, then the first rule.
//!
//! | written            | means                                                                                |
//! |--------------------|--------------------------------------------------------------------------------------|
//! | `"a\n"`            | this text; a backslash escapes                                                       |
//! | `'a\n'`            | this text, as it is                                                                  |
//! | `[a-z\n]`, `[^"]`  | one character of a class, or not of it; a backslash escapes                          |
//! | `#x41`             | this character, also in a class                                                      |
//! | `.`                | any character                                                                        |
//! | `a b`, `a \| b`    | one after the other; one or the other                                                |
//! | `a? a* a+`         | repetition, also `a{3}`, `a{3,}`, `a{3,5}`, `a{,5}`                                  |
//! | `a - b`            | what is `a` and not `b`                                                              |
//! | `<[7]>`, `<think>` | the token of this number, of this name; `!<think>`: any other                        |
//! | `# ...`            | a comment up to the end of the line; `/* ... */` and `(* ... *)` too                 |
//! | `@name(...)`       | everything else that an expression can be: see `extensions.rs`                       |
//!
//! Of XGrammar's functions, `Token(1, 2)`, `ExcludeToken(1)` and `Regex("...")` are read, and so are the attributes
//! `rule[max_tokens=8]` and `rule[capture="x"]`.
//!
//! # Where the notations disagree
//!
//! * *Backslashes.* GBNF has escapes and no single quotes; W3C has single quotes and no escapes. So double quotes and
//!   classes take escapes, single quotes do not. `[\"']` in a grammar with W3C's single quotes or `#xN` could mean
//!   either, and is refused.
//! * *`#`.* GBNF begins a comment with it, W3C a character. `#x` and hexadecimal digits, with no letter after them, are a
//!   character; anything else is a comment. A comment that begins so needs a space: `# x1 is ...`. Before the first rule
//!   there are only comments.
//! * *`-` and `.`.* They belong to a name if more of the name comes right after them. So `a-b` is a name and `a - b` a
//!   difference. A hyphen at the edge of a name belongs to it where a line begins with a rule of that name: `number- ::=`.
//! * *`[1]` and `[wfc: ...]`* as the W3C numbers and annotates its productions are skipped where they can be nothing else.
//!
//! Reading takes time in proportion to the text. Groups nest at most [`MAX_NESTING`] deep.

mod extensions;
mod scan;
mod terminals;
#[cfg(test)]
mod tests;

use crate::build;
use crate::error::GrammarError;
use crate::expr::{Expr, Grammar, MAX_DEPTH, STACK_BYTES};
use crate::similar::nearest;
use punchcard_automata::CharSet;
use std::collections::{BTreeMap, HashMap, HashSet};

pub(crate) use scan::{is_name_char, name_len};

/// How deep parentheses may nest.
pub const MAX_NESTING: usize = 500;

type Result<T> = std::result::Result<T, GrammarError>;

/// Reads a grammar. It starts with the rule `start`, or if none is given with `root` or else the first rule.
///
/// Fails if the text is no EBNF, or names a rule that is not in it; the error says where.
pub fn parse(text: &str, start: Option<&str>) -> Result<Grammar> {
    stacker::grow(STACK_BYTES, || Parser::new(text).grammar(start))
}

/// An expression, and how deep expressions nest in it.
struct Part {
    expr: Expr,
    depth: usize,
}

impl From<Expr> for Part {
    /// An expression that holds no others.
    fn from(expr: Expr) -> Part {
        Part { expr, depth: 1 }
    }
}

struct Parser<'a> {
    text: &'a str,
    /// The next byte.
    at: usize,
    /// How many groups are open.
    nesting: usize,
    rules: BTreeMap<String, Expr>,
    first_rule: Option<&'a str>,
    /// Where each rule is defined.
    defined_at: HashMap<&'a str, usize>,
    /// Names with a hyphen at an edge.
    hyphenated: HashSet<&'a str>,
    /// Where each rule is named first.
    used_at: HashMap<&'a str, usize>,
    /// Whether a rule of the name of one of XGrammar's functions is defined.
    shadowed: HashMap<&'static str, bool>,
    /// Whether there are literals in single quotes or characters by number, which only W3C has.
    is_w3c: bool,
    /// Where a class first holds an escaped quote.
    quote_escaped_at: Option<usize>,
}

/// What XGrammar writes in brackets after the name of a rule that it defines.
#[derive(Default)]
struct Attributes<'a> {
    max_tokens: Option<u32>,
    capture: Option<&'a str>,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Parser<'a> {
        Parser {
            text,
            at: 0,
            nesting: 0,
            rules: BTreeMap::new(),
            first_rule: None,
            defined_at: HashMap::new(),
            hyphenated: scan::hyphenated(text),
            used_at: HashMap::new(),
            shadowed: HashMap::new(),
            is_w3c: false,
            quote_escaped_at: None,
        }
    }

    fn grammar(mut self, start: Option<&str>) -> Result<Grammar> {
        self.skip()?;
        while self.at < self.text.len() {
            self.rule()?;
            self.skip()?;
        }
        if let Some(at) = self.quote_escaped_at.filter(|_| self.is_w3c) {
            return self.fail(
                at,
                "A quote after a backslash in a class means two things: to W3C's EBNF both characters, to GBNF a quote",
                "Write the quote alone, or \\\\ before it for a backslash",
            );
        }
        let undefined = self.used_at.iter().filter(|(name, _)| !self.rules.contains_key(**name));
        if let Some((name, &at)) = undefined.min_by_key(|&(_, at)| at) {
            return Err(self.undefined(self.error(at, format!("There is no rule {name:?}")), name));
        }
        let Some(first) = self.first_rule else {
            return Err(GrammarError::new("The grammar has no rules").with_hint("Write root ::= ..."));
        };
        let start = match start {
            Some(name) if !self.rules.contains_key(name) => {
                return Err(self.undefined(GrammarError::new(format!("There is no rule {name:?} to start with")), name));
            }
            Some(name) => name,
            None if self.rules.contains_key("root") => "root",
            None => first,
        };
        Ok(Grammar { start: Expr::Rule(start.to_string()), rules: self.rules })
    }

    /// The error with a hint at what could have been meant by `name`.
    fn undefined(&self, error: GrammarError, name: &str) -> GrammarError {
        let known = |name: &str| self.rules.contains_key(name);
        for (joint, what) in [('-', "a difference"), ('.', "any character")] {
            if name.match_indices(joint).any(|(at, _)| known(&name[..at]) && known(&name[at + 1..])) {
                return error.with_hint(format!("Where {what} is meant, write spaces around the {joint:?}"));
            }
        }
        match nearest(name, self.rules.keys().map(String::as_str)) {
            Some(near) => error.with_hint(format!("Did you mean {near:?}?")),
            None => error.with_hint(format!("Define it: {name} ::= ...")),
        }
    }

    // ---- rules ----

    fn rule(&mut self) -> Result<()> {
        let start = self.at;
        let Some((name, attributes, body)) = self.definition(start)? else {
            let hint = match self.peek() {
                Some('<') => "A name stands without angle brackets; those are for tokens",
                Some('%' | '@') => "It is no directive of EBNF",
                _ => "A rule is written name ::= ...",
            };
            return self.fail(start, "Here a rule should begin", hint);
        };
        if let Some(&first) = self.defined_at.get(name) {
            let line = GrammarError::at(self.text, first, "").spot.map_or(0, |spot| spot.line);
            return self.fail(
                start,
                format!("The rule {name:?} is defined twice, first on line {line}"),
                "Join both with |, or give one of them another name",
            );
        }
        self.defined_at.insert(name, start);
        self.first_rule.get_or_insert(name);
        self.at = body;
        let mut part = self.choice()?;
        let terminated = self.eat(";");
        self.skip()?;
        if !terminated && self.at < self.text.len() && self.definition(self.at)?.is_none() {
            return Err(self.unexpected());
        }
        if let Some(tokens) = attributes.max_tokens {
            part = self.deeper(start, part, |body| Expr::MaxTokens { body, tokens })?;
        }
        if let Some(capture) = attributes.capture {
            let (kind, name) = ("capture".to_string(), capture.to_string());
            part = self.deeper(start, part, |body| Expr::Named { kind, name, body })?;
        }
        self.rules.insert(name.to_string(), part.expr);
        Ok(())
    }

    /// If a rule begins at a byte: its name and attributes, and where its body begins. The place does not move.
    fn definition(&mut self, at: usize) -> Result<Option<(&'a str, Attributes<'a>, usize)>> {
        let back = std::mem::replace(&mut self.at, at);
        let found = self.head();
        let body = std::mem::replace(&mut self.at, back);
        Ok(found?.map(|(name, attributes)| (name, attributes, body)))
    }

    /// `name ::=`, or nothing (then the place is not restored).
    fn head(&mut self) -> Result<Option<(&'a str, Attributes<'a>)>> {
        self.production_number();
        let Some(name) = self.name() else { return Ok(None) };
        let attributes = self.attributes(name);
        self.skip()?;
        let defines = self.eat("::=") || self.eat(":=") || self.eat("=");
        Ok(defines.then_some((name, attributes)))
    }

    /// What stands in brackets here, if it takes no more than `most` bytes.
    fn brackets(&self, most: usize) -> Option<&'a str> {
        let inside = self.rest().strip_prefix('[')?;
        let end = inside.bytes().take(most + 1).position(|c| c == b']')?;
        Some(&inside[..end])
    }

    /// Skips `[12]` or `[12a]`, if only white space is before it on its line.
    fn production_number(&mut self) {
        let Some(number) = self.brackets(10) else { return };
        let digits = number.trim_end_matches(|c: char| c.is_ascii_lowercase());
        let is_number = !digits.is_empty() && digits.bytes().all(|c| c.is_ascii_digit());
        let before = self.text[..self.at].bytes().rev().find(|c| !matches!(c, b' ' | b'\t'));
        if is_number && before.is_none_or(|c| c == b'\n') {
            self.at += number.len() + 2;
            let rest = self.rest();
            self.at += rest.len() - rest.trim_start_matches([' ', '\t']).len();
        }
    }

    /// `[max_tokens=8, capture="x"]` right after the name of a rule, or nothing.
    fn attributes(&mut self, name: &'a str) -> Attributes<'a> {
        const MOST_BYTES: usize = 250;
        let none = Attributes::default;
        let Some(list) = self.brackets(MOST_BYTES) else { return none() };
        let mut attributes = none();
        for item in list.split(',') {
            let (key, value) = item.split_once('=').map_or((item, None), |(key, value)| (key, Some(value.trim())));
            match (key.trim(), value) {
                ("max_tokens", Some(value)) => match value.parse() {
                    Ok(tokens) => attributes.max_tokens = Some(tokens),
                    Err(_) => return none(),
                },
                ("capture", None) => attributes.capture = Some(name),
                ("capture", Some(value)) => match value.strip_prefix('"').and_then(|value| value.strip_suffix('"')) {
                    Some(capture) if !capture.is_empty() => attributes.capture = Some(capture),
                    _ => return none(),
                },
                _ => return none(),
            }
        }
        self.at += list.len() + 2;
        attributes
    }

    // ---- expressions ----

    fn choice(&mut self) -> Result<Part> {
        let start = self.at;
        let mut parts = vec![self.sequence()?];
        while self.eat("|") {
            parts.push(self.sequence()?);
        }
        self.join(start, parts, build::choice)
    }

    fn sequence(&mut self) -> Result<Part> {
        let start = self.at;
        let mut parts = Vec::new();
        loop {
            self.skip()?;
            match self.peek() {
                None | Some('|' | ')' | ',' | ';') => break,
                Some('[') if self.annotation() => {}
                Some(c) if (is_name_char(c) || matches!(c, '[' | '-')) && self.definition(self.at)?.is_some() => break,
                Some(_) => parts.push(self.term()?),
            }
        }
        self.join(start, parts, build::sequence)
    }

    /// Skips `[ wfc: ... ]` and `[ vc: ... ]`, by which the W3C refers to constraints in words.
    fn annotation(&mut self) -> bool {
        let rest = self.rest();
        let inside = rest[1..].trim_start_matches(' ');
        let found = ["wfc:", "WFC:", "vc:", "VC:"].iter().any(|kind| inside.starts_with(kind));
        let Some(end) = found.then(|| rest.find(']')).flatten() else { return false };
        self.at += end + 1;
        true
    }

    /// A part with its repetitions, less others: `a* - b`.
    fn term(&mut self) -> Result<Part> {
        let start = self.at;
        let first = self.repeated()?;
        let mut parts = vec![first];
        loop {
            self.skip()?;
            if self.hyphenated_name().is_some() || !self.eat("-") {
                break;
            }
            self.skip()?;
            let at = self.at;
            let less = self.repeated()?;
            parts.push(self.deeper(at, less, Expr::Not)?);
        }
        self.join(start, parts, Expr::And)
    }

    fn repeated(&mut self) -> Result<Part> {
        let start = self.at;
        let mut part = self.primary()?;
        loop {
            self.skip()?;
            let (min, max) = match self.peek() {
                Some('*') => (0, None),
                Some('+') => (1, None),
                Some('?') => (0, Some(1)),
                Some('{') => {
                    let (min, max) = self.counts()?;
                    part = self.deeper(start, part, |body| Expr::Repeat { body, min, max })?;
                    continue;
                }
                _ => return Ok(part),
            };
            self.at += 1;
            part = self.deeper(start, part, |body| Expr::Repeat { body, min, max })?;
        }
    }

    /// `{m}`, `{m,}`, `{m,n}` or `{,n}`, at its brace.
    fn counts(&mut self) -> Result<(u32, Option<u32>)> {
        let start = self.at;
        self.at += 1;
        self.skip()?;
        let min = self.number()?;
        self.skip()?;
        let (min, max) = if self.eat(",") {
            self.skip()?;
            // XGrammar prints -1 for no limit.
            let max = if self.eat("-1") { None } else { self.number()? };
            if min.is_none() && max.is_none() {
                return self.fail(start, "The repetition has no bounds", "Write * for any number of times");
            }
            (min.unwrap_or(0), max)
        } else if let Some(min) = min {
            (min, Some(min))
        } else {
            return self.fail(start, "A brace begins a repetition, such as {2,5}", "A literal brace is written \"{\"");
        };
        self.skip()?;
        if !self.eat("}") {
            return self.fail(start, "The repetition is not closed", "It is written {m}, {m,}, {m,n} or {,n}");
        }
        if max.is_some_and(|max| max < min) {
            return self.fail(start, "The bounds of the repetition are out of order", "The smaller one comes first");
        }
        Ok((min, max))
    }

    fn primary(&mut self) -> Result<Part> {
        let start = self.at;
        match self.peek() {
            Some('(') => self.group(),
            Some('"' | '\'') => Ok(build::text(self.literal()?).into()),
            Some('[') => Ok(self.class()?.into()),
            Some('.') => {
                self.at += 1;
                Ok(build::chars(&CharSet::any()).into())
            }
            // What is a comment was skipped.
            Some('#') => Ok(Expr::Text(self.code_point()?.into()).into()),
            Some('@') => self.extension(),
            Some('<') => Ok(self.token(false)?.into()),
            Some('!') if self.rest().starts_with("!<") => {
                self.at += 1;
                Ok(self.token(true)?.into())
            }
            _ => match self.name() {
                Some(name) => match self.function(start, name)? {
                    Some(part) => Ok(part),
                    None => {
                        self.used_at.entry(name).or_insert(start);
                        Ok(Expr::Rule(name.to_string()).into())
                    }
                },
                None => Err(self.unexpected()),
            },
        }
    }

    fn group(&mut self) -> Result<Part> {
        let start = self.at;
        if self.rest().starts_with("(=") {
            return self.fail(
                start,
                "A look-ahead (= ...) is not supported",
                "Leave it out: to XGrammar it only promises what comes next, and that follows from the rules",
            );
        }
        self.at += 1;
        self.open(start)?;
        let part = self.choice()?;
        self.close(start)?;
        Ok(part)
    }

    /// Counts the parenthesis at `start`, already read.
    fn open(&mut self, start: usize) -> Result<()> {
        self.nesting += 1;
        if self.nesting > MAX_NESTING {
            let message = format!("Parentheses nest deeper than {MAX_NESTING}");
            return self.fail(start, message, "Name inner parts as rules");
        }
        Ok(())
    }

    /// Reads the parenthesis that closes the one at `start`.
    fn close(&mut self, start: usize) -> Result<()> {
        self.skip()?;
        self.nesting -= 1;
        if self.eat(")") {
            return Ok(());
        }
        // A new rule is no part of a group: the parenthesis was forgotten before it.
        if self.at == self.text.len() || self.definition(self.at)?.is_some() {
            return self.fail(start, "The parenthesis is not closed", "A literal one is written \"(\"");
        }
        Err(self.unexpected())
    }

    // ---- depth ----

    /// An expression around the part.
    fn deeper(&self, at: usize, part: Part, wrap: impl FnOnce(Box<Expr>) -> Expr) -> Result<Part> {
        self.bounded(at, Part { expr: wrap(Box::new(part.expr)), depth: part.depth + 1 })
    }

    /// An expression of several parts; one alone stays as it is.
    fn join(&self, at: usize, mut parts: Vec<Part>, join: impl FnOnce(Vec<Expr>) -> Expr) -> Result<Part> {
        if parts.len() == 1 {
            return Ok(parts.remove(0));
        }
        let depth = 1 + parts.iter().map(|part| part.depth).max().unwrap_or(0);
        let expr = join(parts.into_iter().map(|part| part.expr).collect());
        self.bounded(at, Part { expr, depth })
    }

    /// The part, if expressions do not nest too deep in it.
    fn bounded(&self, at: usize, part: Part) -> Result<Part> {
        if part.depth > MAX_DEPTH {
            return self.fail(at, format!("The grammar nests deeper than {MAX_DEPTH}"), "Name inner parts as rules");
        }
        Ok(part)
    }

    // ---- errors ----

    /// The error about what stands here and cannot.
    fn unexpected(&self) -> GrammarError {
        let Some(c) = self.peek() else {
            return self.error(self.at, "The text ends where more should come").with_hint("Complete the rule");
        };
        let (message, hint) = match c {
            ')' => ("A closing parenthesis without an opening one", "A literal one is written \")\""),
            ']' => ("A closing bracket without an opening one", "A literal one is written \"]\""),
            '}' => ("A closing brace without an opening one", "A literal one is written \"}\""),
            '*' | '+' | '?' => ("There is nothing to repeat", "A literal character stands in quotes"),
            '{' => ("There is nothing to repeat", "A repetition is written a*, a literal brace \"{\""),
            ',' => (
                "A comma has no meaning between parts",
                "Parts that come one after the other stand so, without a comma",
            ),
            ':' | '=' => ("A definition without a name before it", "A rule is written name ::= ..."),
            '\u{201C}' | '\u{201D}' | '\u{2018}' | '\u{2019}' => ("A typographic quote", "Write straight quotes"),
            '/' => ("A slash has no meaning here", "A regular expression is written @regex(\"...\")"),
            '`' => ("A backtick has no meaning here", "Literals stand in double quotes"),
            _ => {
                return self
                    .error(self.at, format!("The character {c:?} has no meaning here"))
                    .with_hint("A literal character stands in quotes");
            }
        };
        self.error(self.at, message).with_hint(hint)
    }
}
