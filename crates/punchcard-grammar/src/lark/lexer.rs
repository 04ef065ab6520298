//! A Lark grammar as a list of lexical tokens.
//!
//! One pass, one list. What needs to look into the token is done here, where its text is at hand: escapes of strings,
//! flags of regular expressions, the end of inline JSON, and whether a name is a rule's or a terminal's.

use crate::error::GrammarError;
use crate::similar::nearest;
use std::ops::Range;

/// A lexical token, and where it begins.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Lexeme {
    pub(super) kind: LexemeKind,
    pub(super) at: usize,
}

/// What a lexical token is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum LexemeKind {
    /// The name of a rule, in lower case.
    RuleName(String),
    /// The name of a terminal, in upper case.
    TerminalName(String),
    /// `"..."` or `"..."i`, without escapes.
    Text { value: String, ignore_case: bool },
    /// `/.../flags`.
    Regex { pattern: String, flags: String },
    /// Digits, perhaps with a minus sign.
    Number(i64),
    /// `<...>`, with the brackets.
    Special(String),
    /// `%name`.
    Directive(&'static str),
    /// The JSON object after `%json` and its like: where it is in the text.
    Json(Range<usize>),
    /// Punctuation.
    Mark(&'static str),
    /// One or more line ends.
    Newline,
    /// The end of the text.
    End,
}

const DIRECTIVES: [&str; 9] =
    ["ignore", "import", "declare", "override", "extend", "json", "regex", "lark", "llguidance"];

/// Punctuation; where one begins another, the longer comes first.
const MARKS: [&str; 19] =
    ["->", "..", ":", "|", "(", ")", "[", "]", "{", "}", "?", "*", "+", "~", "&", ".", ",", "=", "!"];

impl LexemeKind {
    /// What it is, for error messages.
    pub(super) fn describe(&self) -> String {
        match self {
            LexemeKind::RuleName(name) | LexemeKind::TerminalName(name) => format!("the name {name:?}"),
            LexemeKind::Text { .. } => "a string".to_string(),
            LexemeKind::Regex { .. } => "a regular expression".to_string(),
            LexemeKind::Number(value) => format!("the number {value}"),
            LexemeKind::Special(text) => format!("the token {text}"),
            LexemeKind::Directive(word) => format!("%{word}"),
            LexemeKind::Json(_) => "JSON".to_string(),
            LexemeKind::Mark(mark) => format!("`{mark}`"),
            LexemeKind::Newline => "the end of the line".to_string(),
            LexemeKind::End => "the end of the grammar".to_string(),
        }
    }
}

/// Reads all tokens; the last one is [`LexemeKind::End`].
pub(super) fn tokenize(text: &str) -> Result<Vec<Lexeme>, GrammarError> {
    let mut lexer = Lexer { text, at: 0, lexemes: Vec::new() };
    while lexer.at < text.len() {
        lexer.next()?;
    }
    lexer.push(text.len(), LexemeKind::End);
    Ok(lexer.lexemes)
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    lexemes: Vec<Lexeme>,
}

impl Lexer<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn push(&mut self, at: usize, kind: LexemeKind) {
        self.lexemes.push(Lexeme { kind, at });
    }

    /// Steps over characters as long as they are `wanted`, and returns them.
    fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> &str {
        let length = self.rest().find(|c| !wanted(c)).unwrap_or(self.rest().len());
        let taken = &self.text[self.at..self.at + length];
        self.at += length;
        taken
    }

    fn error(&self, at: usize, message: impl Into<String>) -> GrammarError {
        GrammarError::at(self.text, at, message)
    }

    fn next(&mut self) -> Result<(), GrammarError> {
        let at = self.at;
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return Ok(()) };
        match first {
            ' ' | '\t' | '\u{feff}' => self.at += first.len_utf8(),
            '\r' | '\n' => self.newline(),
            '#' => self.comment(),
            '/' if rest.starts_with("//") => self.comment(),
            '/' => self.regex()?,
            '"' => self.string()?,
            '<' => self.special()?,
            '%' => self.directive()?,
            '\\' => self.continuation()?,
            '-' if rest[1..].starts_with(|c: char| c.is_ascii_digit()) => self.number()?,
            _ if first.is_ascii_digit() => self.number()?,
            _ if first.is_ascii_alphabetic() || first == '_' => self.name()?,
            _ => match MARKS.iter().find(|mark| rest.starts_with(**mark)) {
                Some(mark) => {
                    self.at += mark.len();
                    self.push(at, LexemeKind::Mark(mark));
                }
                None => return Err(self.unknown(first)),
            },
        }
        Ok(())
    }

    fn unknown(&self, first: char) -> GrammarError {
        let hint = match first {
            '\'' => "Strings stand in double quotes",
            ';' => "A definition ends with its line, without a semicolon",
            '@' => "Write the other grammar in place: %json { ... } or %lark { ... }",
            '^' | '$' => "Anchors are of use in regular expressions only, which stand between slashes",
            _ if first.is_alphabetic() => "Names are made of ASCII letters, digits and underscores",
            _ => "Text to be matched stands in double quotes",
        };
        self.error(self.at, format!("The character {first:?} means nothing here")).with_hint(hint)
    }

    /// Empty lines and comments between two lines belong to the same line end.
    fn newline(&mut self) {
        let at = self.at;
        self.take_while(|c| matches!(c, '\r' | '\n'));
        if self.lexemes.last().is_none_or(|last| last.kind != LexemeKind::Newline) {
            self.push(at, LexemeKind::Newline);
        }
    }

    fn comment(&mut self) {
        self.take_while(|c| c != '\n');
    }

    /// A backslash at the end of a line joins it with the next.
    fn continuation(&mut self) -> Result<(), GrammarError> {
        let at = self.at;
        self.at += 1;
        self.take_while(|c| matches!(c, ' ' | '\r'));
        if !self.rest().starts_with('\n') {
            return Err(
                self.error(at, "A backslash outside of strings joins two lines, so it stands at the end of one")
            );
        }
        self.at += 1;
        Ok(())
    }

    fn number(&mut self) -> Result<(), GrammarError> {
        let at = self.at;
        self.at += 1;
        self.take_while(|c| c.is_ascii_digit());
        let digits = &self.text[at..self.at];
        let value = digits.parse().map_err(|_| self.error(at, format!("The number {digits} is too large")))?;
        self.push(at, LexemeKind::Number(value));
        Ok(())
    }

    /// Hyphens may stand inside of names, as llguidance has it.
    fn name(&mut self) -> Result<(), GrammarError> {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let at = self.at;
        self.take_while(is_part);
        while self.rest().starts_with('-') && self.rest()[1..].starts_with(is_part) {
            self.at += 1;
            self.take_while(is_part);
        }
        let name = self.text[at..self.at].to_string();
        let lower = name.contains(|c: char| c.is_ascii_lowercase());
        let upper = name.contains(|c: char| c.is_ascii_uppercase());
        let kind = match (lower, upper) {
            (true, false) => LexemeKind::RuleName(name),
            (false, true) => LexemeKind::TerminalName(name),
            (true, true) => {
                let hint =
                    format!("Write {:?} for a rule, {:?} for a terminal", name.to_lowercase(), name.to_uppercase());
                return Err(self.error(at, format!("The name {name:?} mixes cases")).with_hint(hint));
            }
            (false, false) => {
                return Err(self
                    .error(at, format!("The name {name:?} has no letter"))
                    .with_hint("Lower case makes a rule, upper case a terminal"));
            }
        };
        self.push(at, kind);
        Ok(())
    }

    fn string(&mut self) -> Result<(), GrammarError> {
        let at = self.at;
        let mut value = String::new();
        let mut characters = self.text[at + 1..].char_indices();
        loop {
            match characters.next() {
                None | Some((_, '\n' | '\r')) => {
                    return Err(self
                        .error(at, "This string is not closed")
                        .with_hint("Put a double quote at its end; a line end in it is written \\n, a quote \\\""));
                }
                Some((offset, '"')) => {
                    self.at = at + 1 + offset + 1;
                    break;
                }
                Some((offset, '\\')) => {
                    let escape = at + 1 + offset;
                    let Some((_, letter)) = characters.next() else { continue };
                    let digits = match letter {
                        'x' => 2,
                        'u' => 4,
                        'U' => 8,
                        _ => 0,
                    };
                    match letter {
                        'n' => value.push('\n'),
                        't' => value.push('\t'),
                        'r' => value.push('\r'),
                        'f' => value.push('\u{c}'),
                        '\\' | '"' => value.push(letter),
                        _ if digits > 0 => {
                            let code: String = characters.by_ref().take(digits).map(|(_, c)| c).collect();
                            value.push(self.code_point(escape, letter, digits, &code)?);
                        }
                        '\n' | '\r' => return Err(self.error(at, "This string is not closed at the end of its line")),
                        // Lark keeps the backslash of what is no escape.
                        _ => value.extend(['\\', letter]),
                    }
                }
                Some((_, c)) => value.push(c),
            }
        }
        let after = &self.text[self.at..];
        let ignore_case =
            after.starts_with('i') && !after[1..].starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        self.at += usize::from(ignore_case);
        self.push(at, LexemeKind::Text { value, ignore_case });
        Ok(())
    }

    fn code_point(&self, at: usize, letter: char, digits: usize, code: &str) -> Result<char, GrammarError> {
        let is_whole = code.len() == digits && code.bytes().all(|b| b.is_ascii_hexdigit());
        let value = is_whole.then(|| u32::from_str_radix(code, 16).ok()).flatten();
        value.and_then(char::from_u32).ok_or_else(|| {
            let message = format!("\\{letter} is followed by {digits} hexadecimal digits of a Unicode character");
            self.error(at, message).with_hint("A backslash itself is written \\\\")
        })
    }

    fn regex(&mut self) -> Result<(), GrammarError> {
        let at = self.at;
        let mut pattern = String::new();
        let mut has_line_end = false;
        let mut characters = self.text[at + 1..].char_indices();
        loop {
            match characters.next() {
                None => {
                    return Err(self
                        .error(at, "This regular expression is not closed")
                        .with_hint("Put a slash at its end; a slash in it is written \\/"));
                }
                Some((offset, '/')) => {
                    self.at = at + 1 + offset + 1;
                    break;
                }
                Some((_, '\\')) => match characters.next() {
                    Some((_, '/')) => pattern.push('/'),
                    Some((_, c)) => pattern.extend(['\\', c]),
                    None => {}
                },
                Some((_, c)) => {
                    has_line_end |= c == '\n';
                    pattern.push(c);
                }
            }
        }
        let letters_at = self.at;
        let letters = self.take_while(|c| c.is_ascii_alphanumeric() || c == '_').to_string();
        if has_line_end && !letters.contains('x') {
            // More often than not the closing slash is missing, so that a later one was taken for it.
            return Err(self.error(at, "This regular expression goes over the end of its line").with_hint(
                "Close it with a slash on its line (a line end in it is written \\n), or give it the flag x",
            ));
        }
        let mut flags = String::new();
        for (i, letter) in letters.char_indices() {
            match letter {
                // Python 3 has `u` on for all texts.
                'u' => {}
                'i' | 'm' | 's' | 'x' if flags.contains(letter) => {}
                'i' | 'm' | 's' | 'x' => flags.push(letter),
                'l' => {
                    return Err(self
                        .error(letters_at + i, "The flag `l` hangs on the locale of the machine")
                        .with_hint("Leave it out"));
                }
                _ => {
                    return Err(self
                        .error(letters_at + i, format!("There is no flag {letter:?} of regular expressions"))
                        .with_hint("The flags are i, m, s, x and u; put a blank before a name that follows"));
                }
            }
        }
        self.push(at, LexemeKind::Regex { pattern, flags });
        Ok(())
    }

    fn special(&mut self) -> Result<(), GrammarError> {
        let at = self.at;
        let line = self.rest().lines().next().unwrap_or_default();
        match line.find('>') {
            Some(length) if length > 1 => {
                let name = line[..=length].to_string();
                self.at += name.len();
                self.push(at, LexemeKind::Special(name));
                Ok(())
            }
            _ => Err(self
                .error(at, "`<` begins the name of a special token, and there is none")
                .with_hint("Write <|name|> or <[id]>; text to be matched stands in double quotes")),
        }
    }

    fn directive(&mut self) -> Result<(), GrammarError> {
        let at = self.at;
        self.at += 1;
        let word = self.take_while(|c| c.is_ascii_alphanumeric() || c == '_').to_string();
        let Some(directive) = DIRECTIVES.into_iter().find(|known| *known == word) else {
            let error = self.error(at, format!("There is no directive %{word}"));
            let hint = match nearest(&word, DIRECTIVES) {
                Some(name) => format!("Did you mean %{name}?"),
                None => format!("The directives are %{}", DIRECTIVES.join(", %")),
            };
            return Err(error.with_hint(hint));
        };
        self.push(at, LexemeKind::Directive(directive));
        if matches!(directive, "json" | "regex" | "llguidance") { self.json(directive) } else { Ok(()) }
    }

    /// The end of inline JSON is where a JSON reader ends.
    fn json(&mut self, directive: &str) -> Result<(), GrammarError> {
        self.take_while(char::is_whitespace);
        let at = self.at;
        if !self.rest().starts_with('{') {
            return Err(self.error(at, format!("%{directive} is followed by a JSON object in braces")));
        }
        let mut reader = serde_json::Deserializer::from_str(self.rest()).into_iter::<serde::de::IgnoredAny>();
        let result = reader.next();
        let length = reader.byte_offset();
        match result {
            Some(Ok(_)) => {
                self.at += length;
                self.push(at, LexemeKind::Json(at..self.at));
                Ok(())
            }
            Some(Err(error)) => Err(self.json_error(at, &error)),
            None => Err(self.error(at, format!("%{directive} is followed by a JSON object in braces"))),
        }
    }

    /// Serde counts lines from the beginning of the JSON, and bytes within a line.
    fn json_error(&self, at: usize, error: &serde_json::Error) -> GrammarError {
        let lines = self.text[at..].split_inclusive('\n').take(error.line().saturating_sub(1));
        let offset = at + lines.map(str::len).sum::<usize>() + error.column().saturating_sub(1);
        let message = error.to_string();
        let cause = message.split(" at line ").next().unwrap_or_default();
        self.error(offset, format!("This is no JSON: {cause}")).with_hint("JSON has no comments and no trailing commas")
    }
}
