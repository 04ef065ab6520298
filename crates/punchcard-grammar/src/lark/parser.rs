//! Lexical tokens to entries, by recursive descent.
//!
//! ```text
//! grammar     = (item? newline)*
//! item        = ("%override" | "%extend")? definition | "%ignore" choice | "%import" ... | "%llguidance" json
//! definition  = modifiers name ("{" names "}")? ("." number | "[" attributes "]")* ":" choice
//! choice      = newline? "|"-separated: conjunction ("->" name)?
//! conjunction = sequence ("&" sequence)*
//! sequence    = repetition*
//! repetition  = atom ("?" | "*" | "+" | "~" number (".." number)? | "{" number? "," number? "}")?
//! atom        = "~" atom | "(" choice ")" | "[" choice "]" | value
//! ```

use crate::error::GrammarError;
use crate::lark::common;
use crate::lark::lexer::{Lexeme, LexemeKind};
use crate::lark::syntax::{Attributes, Definition, Item, ItemKind, Mode, Node, NodeKind};
use crate::similar::nearest;
use std::collections::HashSet;

/// How deep groups, arguments and nested grammars may stand within each other.
const MAX_NESTING: usize = 500;

/// Reads all entries of a grammar.
pub(super) fn parse(text: &str, lexemes: &[Lexeme]) -> Result<Vec<Item>, GrammarError> {
    let mut parser = Parser { text, lexemes, position: 0, groups: 0, nesting: 0 };
    let items = parser.items()?;
    match parser.kind() {
        LexemeKind::End => Ok(items),
        _ => Err(parser.unexpected("a definition")),
    }
}

struct Parser<'a> {
    text: &'a str,
    /// The last one is `End`.
    lexemes: &'a [Lexeme],
    position: usize,
    /// Brackets that are open in the current definition; line ends mean nothing within them.
    groups: usize,
    nesting: usize,
}

type Result<T, E = GrammarError> = std::result::Result<T, E>;

impl<'a> Parser<'a> {
    fn kind(&self) -> &'a LexemeKind {
        self.kind_ahead(0)
    }

    fn kind_ahead(&self, count: usize) -> &'a LexemeKind {
        self.lexemes.get(self.position + count).map_or(&LexemeKind::End, |lexeme| &lexeme.kind)
    }

    fn at(&self) -> usize {
        self.lexemes.get(self.position).map_or(self.text.len(), |lexeme| lexeme.at)
    }

    fn advance(&mut self) {
        self.position += 1;
        while self.groups > 0 && *self.kind() == LexemeKind::Newline {
            self.position += 1;
        }
    }

    fn is(&self, mark: &str) -> bool {
        matches!(self.kind(), LexemeKind::Mark(found) if *found == mark)
    }

    fn take(&mut self, mark: &str) -> bool {
        let found = self.is(mark);
        if found {
            self.advance();
        }
        found
    }

    fn expect(&mut self, mark: &str, purpose: &str) -> Result<()> {
        if self.take(mark) { Ok(()) } else { Err(self.unexpected(&format!("`{mark}` {purpose}"))) }
    }

    fn error(&self, at: usize, message: impl Into<String>) -> GrammarError {
        GrammarError::at(self.text, at, message)
    }

    fn unexpected(&self, wanted: &str) -> GrammarError {
        let error = self.error(self.at(), format!("Here is {}, where {wanted} is expected", self.kind().describe()));
        match self.kind() {
            LexemeKind::Newline => error.with_hint("A line that goes on with the definition begins with `|`"),
            LexemeKind::Mark("*" | "+" | "?") => {
                error.with_hint("One operator follows one operand; put the operand in parentheses")
            }
            LexemeKind::Mark("=") => error.with_hint("A definition is written `name: ...`"),
            LexemeKind::Mark(")" | "]" | "}") => error.with_hint("It closes nothing; take it out or open it before"),
            _ => error,
        }
    }

    /// Runs `inner` one level deeper.
    fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.nesting += 1;
        if self.nesting > MAX_NESTING {
            return Err(self
                .error(self.at(), format!("Groups nest more than {MAX_NESTING} deep"))
                .with_hint("Name inner parts as rules"));
        }
        let result = inner(self);
        self.nesting -= 1;
        result
    }

    /// Runs `inner` within a bracket, which the current token opens, up to `close`.
    fn bracketed<T>(&mut self, close: &str, inner: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let open = self.at();
        let opened = self.kind().describe();
        self.nested(|parser| {
            parser.groups += 1;
            parser.advance();
            let result = inner(parser)?;
            if !parser.is(close) {
                if *parser.kind() == LexemeKind::End {
                    return Err(parser
                        .error(open, format!("{opened} is not closed"))
                        .with_hint(format!("Put `{close}` at its end")));
                }
                return Err(parser.unexpected(&format!("`{close}`")));
            }
            parser.groups -= 1;
            parser.advance();
            Ok(result)
        })
    }

    /// Entries up to the end of the text or a closing brace.
    fn items(&mut self) -> Result<Vec<Item>> {
        let mut items = Vec::new();
        loop {
            match self.kind() {
                LexemeKind::Newline => self.advance(),
                LexemeKind::End | LexemeKind::Mark("}") => return Ok(items),
                _ => {
                    self.item(&mut items)?;
                    if !matches!(self.kind(), LexemeKind::Newline | LexemeKind::End | LexemeKind::Mark("}")) {
                        return Err(self.unexpected("the end of the line"));
                    }
                }
            }
        }
    }

    fn item(&mut self, items: &mut Vec<Item>) -> Result<()> {
        let at = self.at();
        let kind = match self.kind() {
            LexemeKind::Directive("ignore") => {
                self.advance();
                ItemKind::Ignore(self.choice()?)
            }
            LexemeKind::Directive("import") => return self.import(items),
            LexemeKind::Directive("override") => {
                self.advance();
                ItemKind::Define(Mode::Override, self.definition()?)
            }
            LexemeKind::Directive("extend") => {
                self.advance();
                ItemKind::Define(Mode::Extend, self.definition()?)
            }
            LexemeKind::Directive("llguidance") => return self.options(),
            LexemeKind::Directive("declare") => {
                return Err(self.error(at, "A terminal that is only declared matches nothing").with_hint(
                    "Define it; if a special token of the vocabulary is meant, write <|name|> or <[id]> where it stands",
                ));
            }
            LexemeKind::Directive(word) => {
                return Err(self
                    .error(at, format!("%{word} stands inside of a rule"))
                    .with_hint(format!("Write `name: %{word} {{ ... }}`")));
            }
            _ => ItemKind::Define(Mode::New, self.definition()?),
        };
        items.push(Item { kind, at });
        Ok(())
    }

    // ------------------------------------------------------------------ directives

    /// `%import common.NAME`, `%import common.NAME -> OTHER`, `%import common (A, B)`
    fn import(&mut self, items: &mut Vec<Item>) -> Result<()> {
        self.advance();
        let at = self.at();
        if self.is(".") {
            return Err(self
                .error(at, "Grammars are not read from files, so there is nothing beside this one")
                .with_hint("Copy the definitions here"));
        }
        let mut path = vec![self.name()?];
        while self.take(".") {
            let at = self.at();
            path.push(self.name()?);
            if path.len() > 2 {
                return Err(self.error(at, "The common library has no parts").with_hint("Write %import common.NAME"));
            }
        }
        let (library_at, library) = &path[0];
        if library != "common" {
            let error = self.error(*library_at, format!("There is no library {library:?} to import from"));
            return Err(error.with_hint(match library.as_str() {
                "python" | "unicode" | "lark" => {
                    "Of lark's own grammars, only `common` is here; copy the definitions that you need"
                }
                _ => "Only %import common.NAME is known, as no files are read; copy the definitions here",
            }));
        }
        let mut add = |parser: &Self, at: usize, name: String, local: String| {
            if common::pattern(&name).is_none() {
                let error = parser.error(at, format!("The common library has no {name:?}"));
                return Err(error.with_hint(match nearest(&name, common::names()) {
                    Some(near) => format!("Did you mean {near:?}?"),
                    None => format!("It has {}", common::names().collect::<Vec<_>>().join(", ")),
                }));
            }
            items.push(Item { kind: ItemKind::Import { name, local }, at });
            Ok(())
        };
        match path.pop() {
            Some((name_at, name)) if !path.is_empty() => {
                let mut local = name.clone();
                if self.take("->") {
                    let at = self.at();
                    let LexemeKind::TerminalName(other) = self.kind() else {
                        return Err(
                            self.error(at, "A terminal is imported under the name of a terminal, in upper case")
                        );
                    };
                    local = other.clone();
                    self.advance();
                }
                add(self, name_at, name, local)
            }
            _ if self.is("(") => self.bracketed(")", |parser| {
                loop {
                    let (at, name) = parser.name()?;
                    add(parser, at, name.clone(), name)?;
                    if !parser.take(",") {
                        return Ok(());
                    }
                }
            }),
            _ => Err(self.unexpected("`.` and a name, or names in parentheses,")),
        }
    }

    fn name(&mut self) -> Result<(usize, String)> {
        let at = self.at();
        match self.kind() {
            LexemeKind::RuleName(name) | LexemeKind::TerminalName(name) => {
                self.advance();
                Ok((at, name.clone()))
            }
            _ => Err(self.unexpected("a name")),
        }
    }

    /// `%llguidance {}` marks a grammar as llguidance's; what its options ask for would change what is matched.
    fn options(&mut self) -> Result<()> {
        self.advance();
        let LexemeKind::Json(range) = self.kind() else { return Err(self.unexpected("a JSON object")) };
        let options: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&self.text[range.clone()])
            .map_err(|error| self.error(range.start, format!("These options cannot be read: {error}")))?;
        if let Some(option) = options.keys().next() {
            let hint = match option.as_str() {
                "no_forcing" => "Leave it out: text is forced only where it is asked for",
                "allow_initial_skip" => "Leave it out: ignored text may always stand at the beginning",
                "allow_invalid_utf8" => "Leave it out: every text is valid UTF-8",
                "skip_repetition" => "Leave it out: ignored text is repeated any number of times",
                _ => "Leave it out",
            };
            return Err(self.error(range.start, format!("The option {option:?} is not supported")).with_hint(hint));
        }
        self.advance();
        Ok(())
    }

    // ------------------------------------------------------------------ definitions

    fn definition(&mut self) -> Result<Definition> {
        // How a rule shows in a tree (`?rule`, `!rule`) is no matter of what it matches.
        while self.take("!") || self.take("?") {}
        let is_terminal = matches!(self.kind(), LexemeKind::TerminalName(_));
        let (at, name) = match self.kind() {
            LexemeKind::RuleName(_) | LexemeKind::TerminalName(_) => self.name()?,
            _ => return Err(self.unexpected("a definition")),
        };
        let mut parameters = Vec::new();
        if self.is("{") {
            if is_terminal {
                return Err(self
                    .error(self.at(), "Terminals have no parameters")
                    .with_hint("Make it a rule, in lower case"));
            }
            parameters = self.parameters()?;
        }
        let mut attributes = Attributes::default();
        loop {
            if self.is("[") {
                self.bracketed("]", |parser| parser.attributes(&name, &mut attributes))?;
            } else if self.take(".") {
                self.take("+");
                let LexemeKind::Number(_) = self.kind() else { return Err(self.unexpected("a priority")) };
                self.advance();
            } else {
                break;
            }
        }
        if !self.take(":") {
            return Err(self.unexpected(&format!("`:` after {name:?}")));
        }
        Ok(Definition { at, is_terminal, parameters, attributes, body: self.choice()?, name })
    }

    fn parameters(&mut self) -> Result<Vec<String>> {
        self.bracketed("}", |parser| {
            let mut names: Vec<String> = Vec::new();
            let mut seen = HashSet::new();
            loop {
                let at = parser.at();
                let LexemeKind::RuleName(name) = parser.kind() else {
                    return Err(parser.unexpected("a parameter in lower case"));
                };
                if !seen.insert(name) {
                    return Err(parser.error(at, format!("There are two parameters {name:?}")).with_hint("Rename one"));
                }
                names.push(name.clone());
                parser.advance();
                if !parser.take(",") {
                    return Ok(names);
                }
            }
        })
    }

    fn attributes(&mut self, rule: &str, attributes: &mut Attributes) -> Result<()> {
        loop {
            let (at, name) = self.name()?;
            match name.as_str() {
                "lazy" => attributes.lazy = Some(at),
                "capture" => {
                    let name = if self.take("=") { self.capture_name()? } else { rule.to_string() };
                    attributes.capture = Some(name);
                }
                "max_tokens" => {
                    self.expect("=", "and a number")?;
                    let at = self.at();
                    let LexemeKind::Number(number) = self.kind() else { return Err(self.unexpected("a number")) };
                    attributes.max_tokens = Some(self.count(at, *number)?);
                    self.advance();
                }
                "stop" | "suffix" => {
                    self.expect("=", "and a string")?;
                    if attributes.stop.is_some() {
                        return Err(self
                            .error(at, "A rule has one `stop` or `suffix`")
                            .with_hint("Join them as a terminal"));
                    }
                    attributes.stop = Some(self.stop()?);
                }
                _ => return Err(self.unknown_attribute(at, &name)),
            }
            if !self.take(",") {
                return Ok(());
            }
        }
    }

    fn unknown_attribute(&self, at: usize, name: &str) -> GrammarError {
        let hint = match name {
            "temperature" => "A grammar says which texts may come, the sampler how they are drawn; set it there",
            "stop_capture" => "Give the text at the end a rule of its own with `capture`",
            _ => match nearest(name, ["lazy", "capture", "max_tokens", "stop", "suffix"]) {
                Some(near) => {
                    return self
                        .error(at, format!("There is no attribute {name:?}"))
                        .with_hint(format!("Did you mean {near:?}?"));
                }
                None => "The attributes are lazy, stop, suffix, max_tokens and capture",
            },
        };
        self.error(at, format!("The attribute {name:?} is not supported")).with_hint(hint)
    }

    fn capture_name(&mut self) -> Result<String> {
        match self.kind() {
            LexemeKind::Text { value, ignore_case: false } => {
                self.advance();
                Ok(value.clone())
            }
            _ => Err(self.unexpected("a string")),
        }
    }

    fn stop(&mut self) -> Result<Node> {
        let at = self.at();
        match self.kind() {
            LexemeKind::Text { value, .. } if value.is_empty() => Err(self
                .error(at, "An empty `stop` is the end of the output in llguidance; here it would stop before any text")
                .with_hint("Leave it out, and end the rule before it with a special token such as <|end|>")),
            LexemeKind::Text { .. } | LexemeKind::Regex { .. } | LexemeKind::TerminalName(_) => self.value(),
            _ => Err(self.unexpected("a string, a regular expression or a terminal")),
        }
    }

    // ------------------------------------------------------------------ bodies

    fn choice(&mut self) -> Result<Node> {
        let at = self.at();
        let mut alternatives = vec![self.alternative()?];
        loop {
            // A line that begins with `|` goes on with the definition.
            if *self.kind() == LexemeKind::Newline && *self.kind_ahead(1) == LexemeKind::Mark("|") {
                self.advance();
            }
            if !self.take("|") {
                return Ok(Node::joined(at, alternatives, NodeKind::Choice));
            }
            alternatives.push(self.alternative()?);
        }
    }

    fn alternative(&mut self) -> Result<Node> {
        let at = self.at();
        let mut operands = vec![self.sequence()?];
        while self.take("&") {
            operands.push(self.sequence()?);
        }
        if self.take("->") {
            // What an alternative is called in a tree is no matter of what it matches.
            let LexemeKind::RuleName(_) = self.kind() else { return Err(self.unexpected("a name in lower case")) };
            self.advance();
        }
        Ok(Node::joined(at, operands, NodeKind::And))
    }

    fn sequence(&mut self) -> Result<Node> {
        let at = self.at();
        let mut parts = Vec::new();
        while self.begins_atom() {
            parts.push(self.repetition()?);
        }
        Ok(Node::joined(at, parts, NodeKind::Sequence))
    }

    fn begins_atom(&self) -> bool {
        match self.kind() {
            LexemeKind::Mark(mark) => matches!(*mark, "(" | "[" | "~"),
            LexemeKind::Directive(word) => matches!(*word, "json" | "regex" | "lark"),
            LexemeKind::Newline | LexemeKind::End | LexemeKind::Number(_) | LexemeKind::Json(_) => false,
            _ => true,
        }
    }

    fn repetition(&mut self) -> Result<Node> {
        let at = self.at();
        let atom = self.atom()?;
        let (min, max) = match self.kind() {
            LexemeKind::Mark("?") => (0, Some(1)),
            LexemeKind::Mark("*") => (0, None),
            LexemeKind::Mark("+") => (1, None),
            LexemeKind::Mark("~") if matches!(self.kind_ahead(1), LexemeKind::Number(_)) => {
                self.advance();
                let min = self.number()?;
                let max = if self.take("..") { self.number()? } else { min };
                return self.repeated(at, atom, min, Some(max));
            }
            LexemeKind::Mark("{") => {
                let (min, max) = self.bracketed("}", Self::braces)?;
                return self.repeated(at, atom, min, max);
            }
            _ => return Ok(atom),
        };
        self.advance();
        self.repeated(at, atom, min, max)
    }

    fn repeated(&self, at: usize, body: Node, min: u32, max: Option<u32>) -> Result<Node> {
        if max.is_some_and(|max| max < min) {
            let message = format!("No text is repeated at least {min} and at most {} times", max.unwrap_or_default());
            return Err(self.error(at, message).with_hint("Write the smaller number first"));
        }
        if self.is("*") || self.is("+") || self.is("?") || self.is("{") {
            return Err(self.unexpected("something to match"));
        }
        Ok(Node::new(at, NodeKind::Repeat { body: Box::new(body), min, max }))
    }

    /// `{2}`, `{2,}`, `{,3}`, `{2,3}`
    fn braces(&mut self) -> Result<(u32, Option<u32>)> {
        let min = if self.is(",") { 0 } else { self.number()? };
        if !self.take(",") {
            return Ok((min, Some(min)));
        }
        Ok((min, if self.is("}") { None } else { Some(self.number()?) }))
    }

    fn number(&mut self) -> Result<u32> {
        let LexemeKind::Number(number) = self.kind() else { return Err(self.unexpected("a number")) };
        let count = self.count(self.at(), *number)?;
        self.advance();
        Ok(count)
    }

    fn count(&self, at: usize, number: i64) -> Result<u32> {
        u32::try_from(number).map_err(|_| {
            self.error(at, format!("{number} is no count")).with_hint(format!("Counts go from 0 to {}", u32::MAX))
        })
    }

    fn atom(&mut self) -> Result<Node> {
        let at = self.at();
        match self.kind() {
            LexemeKind::Mark("(") => self.bracketed(")", Self::choice),
            LexemeKind::Mark("[") => {
                let body = Box::new(self.bracketed("]", Self::choice)?);
                Ok(Node::new(at, NodeKind::Repeat { body, min: 0, max: Some(1) }))
            }
            LexemeKind::Mark("~") => {
                self.advance();
                if matches!(self.kind(), LexemeKind::Number(_)) || !self.begins_atom() {
                    return Err(self.unexpected("something to repeat before `~`, or a terminal after it,"));
                }
                let body = self.nested(Self::atom)?;
                Ok(Node::new(at, NodeKind::Not(Box::new(body))))
            }
            _ => self.value(),
        }
    }

    /// What may also be an argument of a template.
    fn value(&mut self) -> Result<Node> {
        let at = self.at();
        let kind = match self.kind() {
            LexemeKind::RuleName(name) => {
                self.advance();
                let counts = matches!(self.kind_ahead(1), LexemeKind::Number(_) | LexemeKind::Mark(","));
                if self.is("{") && !counts {
                    let arguments = self.bracketed("}", Self::arguments)?;
                    NodeKind::Template { name: name.clone(), arguments }
                } else {
                    NodeKind::Rule(name.clone())
                }
            }
            LexemeKind::TerminalName(name) => {
                self.advance();
                NodeKind::Terminal(name.clone())
            }
            LexemeKind::Text { value, ignore_case } => {
                self.advance();
                if self.take("..") {
                    return self.range(at, value, *ignore_case);
                }
                NodeKind::Text { value: value.clone(), ignore_case: *ignore_case }
            }
            LexemeKind::Regex { pattern, flags } => {
                self.advance();
                NodeKind::Regex { pattern: pattern.clone(), flags: flags.clone() }
            }
            LexemeKind::Special(name) => {
                self.advance();
                NodeKind::Special(name.clone())
            }
            LexemeKind::Directive("lark") => {
                self.advance();
                if !self.is("{") {
                    return Err(self.unexpected("`{` and a grammar"));
                }
                NodeKind::Nested(self.nested_grammar()?)
            }
            LexemeKind::Directive(word @ ("json" | "regex")) => {
                self.advance();
                let LexemeKind::Json(range) = self.kind() else { return Err(self.unexpected("a JSON object")) };
                let range = range.clone();
                self.advance();
                if *word == "json" { NodeKind::Json(range) } else { NodeKind::StructuredRegex(range) }
            }
            _ => return Err(self.unexpected("something to match")),
        };
        Ok(Node::new(at, kind))
    }

    fn arguments(&mut self) -> Result<Vec<Node>> {
        let mut arguments = Vec::new();
        loop {
            if self.is("(") || self.is("[") {
                return Err(self
                    .error(
                        self.at(),
                        "An argument is a name, a string, a regular expression or a template with arguments",
                    )
                    .with_hint("Name the group as a rule, and pass its name"));
            }
            arguments.push(self.value()?);
            if !self.take(",") {
                return Ok(arguments);
            }
        }
    }

    /// Line ends count again within a grammar.
    fn nested_grammar(&mut self) -> Result<Vec<Item>> {
        let groups = std::mem::take(&mut self.groups);
        let open = self.at();
        let items = self.nested(|parser| {
            parser.advance();
            parser.items()
        })?;
        if !self.is("}") {
            return Err(self.error(open, "The grammar after %lark is not closed").with_hint("Put `}` at its end"));
        }
        self.groups = groups;
        self.advance();
        Ok(items)
    }

    fn range(&mut self, at: usize, first: &str, first_ignores_case: bool) -> Result<Node> {
        let last_at = self.at();
        let LexemeKind::Text { value: last, ignore_case } = self.kind() else {
            return Err(self.unexpected("the string that ends the range"));
        };
        if first_ignores_case || *ignore_case {
            return Err(self
                .error(at, "A range of characters has no flags")
                .with_hint("Write both ranges: \"a\"..\"z\" | \"A\"..\"Z\""));
        }
        let single = |text: &str| {
            let mut characters = text.chars();
            characters.next().filter(|_| characters.next().is_none())
        };
        let Some(first) = single(first) else { return Err(self.error(at, "A range begins with one character")) };
        let Some(last_character) = single(last) else {
            return Err(self.error(last_at, "A range ends with one character"));
        };
        if last_character < first {
            return Err(self
                .error(at, format!("The range from {first:?} to {last_character:?} is empty"))
                .with_hint("Write the smaller character first"));
        }
        self.advance();
        Ok(Node::new(at, NodeKind::Range(first, last_character)))
    }
}
