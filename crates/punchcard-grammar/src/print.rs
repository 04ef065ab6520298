//! Any grammar as EBNF that [`crate::ebnf::parse`] reads back.
//!
//! A grammar is printed by its [`normal_form`]: one list of rules with names that EBNF allows, without needless nesting. It
//! has the same language, and reading the text gives it exactly; so printing what was read gives the same text.

use crate::build;
use crate::ebnf::{is_name_char, name_len};
use crate::expr::{Expr, Grammar, RegexSyntax, STACK_BYTES};
use punchcard_automata::CharSet;
use punchcard_automata::charset::MAX;
use serde::de::IgnoredAny;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write;

/// The rule that a printed grammar starts with.
const ROOT: &str = "root";

/// The grammar as EBNF, a rule a line: `root`, then the others in the order in which they are named.
pub fn print(grammar: &Grammar) -> String {
    stacker::grow(STACK_BYTES, || {
        let rules = Normaliser::new().grammar(grammar).rules;
        let mut printer = Printer { out: String::new(), order: vec![ROOT], seen: HashSet::from([ROOT]) };
        let mut printed = 0;
        // What nothing names comes last.
        let mut all = rules.keys();
        loop {
            if let Some(&name) = printer.order.get(printed) {
                if let Some(body) = rules.get(name) {
                    printer.rule(name, body);
                }
                printed += 1;
            } else {
                match all.next() {
                    Some(name) => printer.name(name),
                    None => return printer.out,
                }
            }
        }
    })
}

/// The same grammar as one list of rules that starts with `root`.
///
/// Rules of grammars within it get the name of the rule around them as a prefix; names that EBNF does not allow are
/// rewritten. Sequences hold no sequences and choices no choices, and what nests very deep becomes a rule of its own.
pub fn normal_form(grammar: &Grammar) -> Grammar {
    stacker::grow(STACK_BYTES, || Normaliser::new().grammar(grammar))
}

// ---- the normal form ----

/// How deep expressions may nest in a rule: the parser can follow less deep than expressions may be.
const MAX_RULE_DEPTH: usize = 200;

struct Normaliser {
    rules: BTreeMap<String, Expr>,
    taken: HashSet<String>,
}

/// Where an expression stands.
struct Place<'a> {
    /// The new name of each rule of the grammar around it.
    names: &'a HashMap<&'a str, String>,
    /// The rule that it is in.
    rule: &'a str,
    depth: usize,
}

impl Normaliser {
    fn new() -> Normaliser {
        Normaliser { rules: BTreeMap::new(), taken: HashSet::from([ROOT.to_string()]) }
    }

    fn grammar(mut self, grammar: &Grammar) -> Grammar {
        let mut names = HashMap::new();
        let is_root = grammar.start == Expr::Rule(ROOT.into()) && grammar.rules.contains_key(ROOT);
        if is_root {
            names.insert(ROOT, ROOT.to_string());
        }
        self.rules(grammar, "", names, (!is_root).then_some(ROOT));
        Grammar { start: Expr::Rule(ROOT.into()), rules: self.rules }
    }

    /// Takes over the rules of a grammar, and its start as the rule `start` if that is given; returns the start otherwise.
    fn rules<'a>(
        &mut self,
        grammar: &'a Grammar,
        prefix: &str,
        mut names: HashMap<&'a str, String>,
        start: Option<&str>,
    ) -> Expr {
        for name in grammar.rules.keys() {
            if !names.contains_key(name.as_str()) {
                names.insert(name, self.unique(prefix, name));
            }
        }
        for (name, body) in &grammar.rules {
            let body = self.expr(body, &Place { names: &names, rule: &names[name.as_str()], depth: 0 });
            self.rules.insert(names[name.as_str()].clone(), body);
        }
        match start {
            Some(start) => {
                let body = self.expr(&grammar.start, &Place { names: &names, rule: start, depth: 0 });
                self.rules.insert(start.to_string(), body);
                Expr::EMPTY
            }
            None => {
                let rule = prefix.trim_end_matches('-');
                self.expr(&grammar.start, &Place { names: &names, rule, depth: 0 })
            }
        }
    }

    /// A name that EBNF allows and no other rule has.
    fn unique(&mut self, prefix: &str, name: &str) -> String {
        let legal: String =
            name.chars().map(|c| if is_name_char(c) || matches!(c, '-' | '.') { c } else { '_' }).collect();
        let mut legal = format!("{prefix}{legal}");
        if name_len(&legal) != legal.len() || legal.is_empty() {
            legal = legal.replace(['-', '.'], "_");
            if legal.is_empty() {
                legal.push('_');
            }
        }
        let mut unique = legal.clone();
        for number in 2.. {
            if self.taken.insert(unique.clone()) {
                break;
            }
            unique = format!("{legal}-{number}");
        }
        unique
    }

    fn expr(&mut self, expr: &Expr, place: &Place) -> Expr {
        if place.depth >= MAX_RULE_DEPTH && !is_leaf(expr) {
            let name = self.unique(&format!("{}-", place.rule), "part");
            let body = self.expr(expr, &Place { rule: &name, depth: 0, ..*place });
            self.rules.insert(name.clone(), body);
            return Expr::Rule(name);
        }
        let place = &Place { depth: place.depth + 1, ..*place };
        match expr {
            Expr::Text(text) => build::text(text.clone()),
            Expr::Chars(ranges) => build::chars(&ranges.iter().copied().collect()),
            Expr::Sequence(parts) => build::sequence(self.all(parts, place)),
            Expr::Choice(parts) => build::choice(self.all(parts, place)),
            Expr::Repeat { body, min, max } => build::repeat(self.expr(body, place), *min, *max),
            Expr::Rule(name) => Expr::Rule(match place.names.get(name.as_str()) {
                Some(name) => name.clone(),
                // There is no such rule, and by no accident of renaming should there be one.
                None => self.unique("", name),
            }),
            Expr::And(parts) => Expr::And(self.all(parts, place)),
            Expr::Not(body) => Expr::Not(self.boxed(body, place)),
            Expr::Shortest(body) => Expr::Shortest(self.boxed(body, place)),
            Expr::Longest(body) => Expr::Longest(self.boxed(body, place)),
            Expr::MaxTokens { body, tokens } => Expr::MaxTokens { body: self.boxed(body, place), tokens: *tokens },
            Expr::Named { kind, name, body } => {
                Expr::Named { kind: kind.clone(), name: name.clone(), body: self.boxed(body, place) }
            }
            Expr::Grammar(inner) => self.rules(inner, &format!("{}-", place.rule), HashMap::new(), None),
            leaf => leaf.clone(),
        }
    }

    fn all(&mut self, parts: &[Expr], place: &Place) -> Vec<Expr> {
        parts.iter().map(|part| self.expr(part, place)).collect()
    }

    fn boxed(&mut self, body: &Expr, place: &Place) -> Box<Expr> {
        Box::new(self.expr(body, place))
    }
}

fn is_leaf(expr: &Expr) -> bool {
    match expr {
        Expr::Sequence(parts) | Expr::Choice(parts) | Expr::And(parts) => parts.is_empty(),
        Expr::Repeat { .. }
        | Expr::Not(_)
        | Expr::Shortest(_)
        | Expr::Longest(_)
        | Expr::MaxTokens { .. }
        | Expr::Named { .. }
        | Expr::Grammar(_) => false,
        _ => true,
    }
}

// ---- the text ----

/// How tight parts hold together; what is looser than its place stands in parentheses.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Tightness {
    Choice,
    Sequence,
    Difference,
    Repetition,
    Primary,
}

struct Printer<'a> {
    out: String,
    /// The rules in the order in which they are printed.
    order: Vec<&'a str>,
    seen: HashSet<&'a str>,
}

impl<'a> Printer<'a> {
    fn rule(&mut self, name: &str, body: &'a Expr) {
        /// Alternatives of a longer rule stand on lines of their own.
        const WIDTH: usize = 100;
        let start = self.out.len();
        let _ = write!(self.out, "{name} ::= ");
        match body {
            Expr::Choice(parts) => {
                let rule = std::mem::take(&mut self.out);
                let parts: Vec<String> = parts
                    .iter()
                    .map(|part| {
                        self.expr(part, Tightness::Sequence);
                        std::mem::take(&mut self.out)
                    })
                    .collect();
                self.out = rule;
                let width = self.out.len() - start + parts.iter().map(|part| part.len() + 3).sum::<usize>();
                self.out.push_str(&parts.join(if width > WIDTH { "\n    | " } else { " | " }));
            }
            body => self.expr(body, Tightness::Choice),
        }
        self.out.push('\n');
    }

    /// Notes that a rule is named.
    fn name(&mut self, name: &'a str) {
        if self.seen.insert(name) {
            self.order.push(name);
        }
    }

    fn expr(&mut self, expr: &'a Expr, place: Tightness) {
        let tightness = tightness(expr);
        if tightness < place {
            self.out.push('(');
            self.expr(expr, Tightness::Choice);
            self.out.push(')');
            return;
        }
        match expr {
            Expr::Nothing => self.out.push_str("@nothing"),
            Expr::Text(text) => self.out.push_str(&literal(text)),
            Expr::Chars(ranges) => self.out.push_str(&class(&ranges.iter().copied().collect())),
            Expr::Sequence(parts) if parts.is_empty() => self.out.push_str("\"\""),
            // A difference binds tighter, but few readers know.
            Expr::Sequence(parts) => self.list(parts, " ", Tightness::Repetition),
            Expr::Choice(parts) => self.list(parts, " | ", Tightness::Sequence),
            Expr::Repeat { body, min, max } => {
                self.expr(body, Tightness::Primary);
                let _ = match (min, max) {
                    (0, None) => write!(self.out, "*"),
                    (1, None) => write!(self.out, "+"),
                    (0, Some(1)) => write!(self.out, "?"),
                    (min, None) => write!(self.out, "{{{min},}}"),
                    (min, Some(max)) if min == max => write!(self.out, "{{{min}}}"),
                    (min, Some(max)) => write!(self.out, "{{{min},{max}}}"),
                };
            }
            Expr::Rule(name) => {
                self.name(name);
                self.out.push_str(name);
            }
            Expr::Regex { pattern, flags, syntax } => {
                let flags = if flags.is_empty() { String::new() } else { format!(", {}", literal(flags)) };
                let syntax = match syntax {
                    RegexSyntax::Ecma => "",
                    RegexSyntax::Python => ", python",
                };
                let _ = write!(self.out, "@regex({}{flags}{syntax})", source(pattern));
            }
            Expr::And(parts) if tightness == Tightness::Difference => {
                for (i, part) in parts.iter().enumerate() {
                    match part {
                        Expr::Not(less) if i > 0 => {
                            self.out.push_str(" - ");
                            self.expr(less, Tightness::Repetition);
                        }
                        part => self.expr(part, Tightness::Repetition),
                    }
                }
            }
            Expr::And(parts) => {
                self.out.push_str("@and(");
                self.list(parts, ", ", Tightness::Choice);
                self.out.push(')');
            }
            Expr::Not(body) => self.call("@not(", body),
            Expr::Shortest(body) => self.call("@shortest(", body),
            Expr::Longest(body) => self.call("@longest(", body),
            Expr::TextWithout(texts) => {
                let _ = write!(self.out, "@text_without({})", literals(texts, ", "));
            }
            Expr::JsonSchema { schema, options } => {
                let _ = write!(self.out, "@json_schema({}{})", json(schema), options_of(options));
            }
            Expr::SchemaString { schema, options, without } => {
                let _ = write!(self.out, "@schema_string({}{}", json(schema), options_of(options));
                if !without.is_empty() {
                    let _ = write!(self.out, ", without {}", literals(without, " "));
                }
                self.out.push(')');
            }
            Expr::Token { ids, names, except } => {
                let ids = ids.iter().map(u32::to_string);
                let all: Vec<String> = ids.chain(names.iter().map(|name| literal(name))).collect();
                let _ = write!(self.out, "@token{}({})", if *except { "_except" } else { "" }, all.join(", "));
            }
            Expr::MaxTokens { body, tokens } => self.call(&format!("@max_tokens({tokens}, "), body),
            Expr::Named { kind, name, body } => {
                self.call(&format!("@named({}, {}, ", literal(kind), literal(name)), body);
            }
            // The normal form has none; its start alone is what can be said of it here.
            Expr::Grammar(inner) => self.expr(&inner.start, place),
        }
    }

    fn call(&mut self, head: &str, body: &'a Expr) {
        self.out.push_str(head);
        self.expr(body, Tightness::Choice);
        self.out.push(')');
    }

    fn list(&mut self, parts: &'a [Expr], between: &str, place: Tightness) {
        for (i, part) in parts.iter().enumerate() {
            if i > 0 {
                self.out.push_str(between);
            }
            self.expr(part, place);
        }
    }
}

fn tightness(expr: &Expr) -> Tightness {
    match expr {
        Expr::Choice(_) => Tightness::Choice,
        Expr::Sequence(parts) if !parts.is_empty() => Tightness::Sequence,
        Expr::And(parts) if parts.len() > 1 && parts[1..].iter().all(|part| matches!(part, Expr::Not(_))) => {
            Tightness::Difference
        }
        Expr::Repeat { .. } => Tightness::Repetition,
        _ => Tightness::Primary,
    }
}

/// A literal in double quotes.
fn literal(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        if matches!(c, '"' | '\\') {
            out.push('\\');
        }
        push_char(&mut out, c);
    }
    out + "\""
}

fn literals(texts: &[String], between: &str) -> String {
    let texts: Vec<String> = texts.iter().map(|text| literal(text)).collect();
    texts.join(between)
}

/// A pattern, in single quotes if that saves its backslashes.
fn source(pattern: &str) -> String {
    let plain = pattern.chars().all(|c| c != '\'' && is_printable(c));
    if plain && pattern.contains(['\\', '"']) { format!("'{pattern}'") } else { literal(pattern) }
}

/// A class, or the class of the other characters if that is shorter to say.
fn class(set: &CharSet) -> String {
    if *set == CharSet::any() {
        return ".".into();
    }
    let negated = set.contains(MAX);
    let mut out = String::from(if negated { "[^" } else { "[" });
    let set = if negated { set.complement() } else { set.clone() };
    let mut ranges = set.ranges().iter().copied().peekable();
    while let Some((first, mut last)) = ranges.next() {
        // Surrogates are no characters, so a range may go across them.
        if last == 0xD7FF {
            last = ranges.next_if(|&(first, _)| first == 0xE000).map_or(last, |(_, last)| last);
        }
        push_member(&mut out, first);
        if last > first + 1 {
            out.push('-');
        }
        if last > first {
            push_member(&mut out, last);
        }
    }
    out + "]"
}

fn push_member(out: &mut String, code: u32) {
    let c = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
    match c {
        // A number sign may begin #xN.
        '#' => out.push_str("\\x23"),
        '\\' | ']' | '[' | '^' | '-' => {
            out.push('\\');
            out.push(c);
        }
        c => push_char(out, c),
    }
}

/// A character, as an escape if it cannot be seen.
fn push_char(out: &mut String, c: char) {
    let code = c as u32;
    let _ = match c {
        '\n' => write!(out, "\\n"),
        '\r' => write!(out, "\\r"),
        '\t' => write!(out, "\\t"),
        c if is_printable(c) => write!(out, "{c}"),
        _ if code < 0x100 => write!(out, "\\x{code:02X}"),
        _ if code < 0x10000 => write!(out, "\\u{code:04X}"),
        _ => write!(out, "\\U{code:08X}"),
    };
}

fn is_printable(c: char) -> bool {
    // Rust's own escapes are for what is not printable, and for quotes and backslashes.
    matches!(c, '"' | '\'' | '\\') || c.escape_debug().count() == 1
}

/// A schema as it is, if it is JSON that reads back; otherwise as a literal.
fn json(schema: &str) -> String {
    let is_json = serde_json::from_str::<IgnoredAny>(schema).is_ok();
    let plain = schema.trim() == schema && !schema.starts_with('"');
    if is_json && plain { schema.to_string() } else { literal(schema) }
}

fn options_of(options: &serde_json::Map<String, serde_json::Value>) -> String {
    if options.is_empty() {
        return String::new();
    }
    format!(", {}", serde_json::to_string(options).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ebnf::parse;
    use crate::expr::MAX_DEPTH;
    use proptest::prelude::*;

    const NAMES: [&str; 6] = ["root", "a", "b c", "", "3-x", "a-"];

    fn options() -> impl Strategy<Value = serde_json::Map<String, serde_json::Value>> {
        prop_oneof![
            Just(serde_json::Map::new()),
            any::<(i32, String)>()
                .prop_map(|(n, s)| serde_json::Map::from_iter([(s, n.into()), ("x".into(), true.into())])),
        ]
    }

    fn schema() -> impl Strategy<Value = String> {
        prop_oneof![Just("{\"type\": [\"integer\"],\n \"a\": 1}".to_string()), Just("true".into()), any::<String>()]
    }

    fn text() -> impl Strategy<Value = String> {
        prop_oneof![any::<String>(), "[\"'\\\\\n\t #x]{0,4}", Just("\\d+".to_string())]
    }

    fn code() -> impl Strategy<Value = u32> {
        prop_oneof![0..0x80u32, 0..=MAX, 0xD7FF..0xE001u32]
    }

    /// Any expression over the rules of [`NAMES`].
    fn expr() -> impl Strategy<Value = Expr> {
        let texts = || prop::collection::vec(text(), 0..3);
        let leaf = prop_oneof![
            Just(Expr::Nothing),
            text().prop_map(Expr::Text),
            prop::collection::vec((code(), code()), 0..4).prop_map(Expr::Chars),
            prop::sample::select(NAMES.as_slice()).prop_map(|name| Expr::Rule(name.into())),
            (text(), "[imsx]{0,2}", any::<bool>()).prop_map(|(pattern, flags, python)| {
                let syntax = if python { RegexSyntax::Python } else { RegexSyntax::Ecma };
                Expr::Regex { pattern, flags, syntax }
            }),
            texts().prop_map(Expr::TextWithout),
            (schema(), options()).prop_map(|(schema, options)| Expr::JsonSchema { schema, options }),
            (schema(), options(), texts()).prop_map(|(schema, options, without)| Expr::SchemaString {
                schema,
                options,
                without
            }),
            (prop::collection::vec(any::<u32>(), 0..3), texts(), any::<bool>())
                .prop_map(|(ids, names, except)| Expr::Token { ids, names, except }),
        ];
        leaf.prop_recursive(5, 40, 4, |inner| {
            let parts = || prop::collection::vec(inner.clone(), 0..4);
            let one = || inner.clone().prop_map(Box::new);
            prop_oneof![
                parts().prop_map(Expr::Sequence),
                parts().prop_map(Expr::Choice),
                (one(), 0..4u32, prop::option::of(0..4u32)).prop_map(|(body, min, max)| Expr::Repeat {
                    body,
                    min,
                    max
                }),
                parts().prop_map(Expr::And),
                one().prop_map(Expr::Not),
                (one(), prop::collection::vec(one().prop_map(Expr::Not), 1..3))
                    .prop_map(|(first, less)| { Expr::And(std::iter::once(*first).chain(less).collect()) }),
                one().prop_map(Expr::Shortest),
                one().prop_map(Expr::Longest),
                (one(), any::<u32>()).prop_map(|(body, tokens)| Expr::MaxTokens { body, tokens }),
                (one(), text(), text()).prop_map(|(body, kind, name)| Expr::Named { kind, name, body }),
                (one(), parts()).prop_map(|(start, bodies)| Expr::Grammar(Box::new(grammar_of(*start, bodies)))),
            ]
        })
    }

    /// A grammar with all the rules of [`NAMES`].
    fn grammar_of(start: Expr, bodies: Vec<Expr>) -> Grammar {
        let bodies = bodies.into_iter().chain(std::iter::repeat(Expr::Text("x".into())));
        Grammar { start, rules: NAMES.iter().map(|name| name.to_string()).zip(bodies).collect() }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        #[test]
        fn what_is_printed_reads_back(start in expr(), bodies in prop::collection::vec(expr(), 0..4)) {
            let grammar = grammar_of(start, bodies);
            let printed = print(&grammar);
            let read = parse(&printed, None);
            prop_assert_eq!(read.as_ref(), Ok(&normal_form(&grammar)), "{}", printed);
            prop_assert_eq!(read.map(|grammar| print(&grammar)), Ok(printed));
        }
    }

    #[test]
    fn rules_of_inner_grammars_get_names_of_their_own() {
        let inner = Grammar {
            start: Expr::Sequence(vec![Expr::Rule("x".into()), Expr::Rule("y z".into())]),
            rules: BTreeMap::from([("x".into(), Expr::Text("1".into())), ("y z".into(), Expr::Text("2".into()))]),
        };
        let outer = Grammar {
            start: Expr::Repeat { body: Box::new(Expr::Rule("x".into())), min: 0, max: None },
            rules: BTreeMap::from([
                ("x".into(), Expr::Grammar(Box::new(inner))),
                ("root".into(), Expr::Text("not the start".into())),
            ]),
        };
        let printed = "root ::= x*\nx ::= x-x x-y_z\nx-x ::= \"1\"\nx-y_z ::= \"2\"\nroot-2 ::= \"not the start\"\n";
        assert_eq!(print(&outer), printed);
    }

    #[test]
    fn long_choices_have_a_line_each() {
        let texts = (0..8).map(|i| Expr::Text(format!("{i}").repeat(12)));
        let printed = print(&Grammar { start: Expr::Choice(texts.collect()), rules: BTreeMap::new() });
        assert_eq!(printed.lines().count(), 8);
        assert!(printed.starts_with("root ::= \"000000000000\"\n    | \"111"));
    }

    #[test]
    fn deep_expressions_become_rules() {
        let mut expr = Expr::Text("a".into());
        for _ in 0..MAX_DEPTH - 1 {
            expr = Expr::Repeat { body: Box::new(expr), min: 0, max: None };
        }
        let grammar = Grammar { start: expr, rules: BTreeMap::new() };
        let read = parse(&print(&grammar), None);
        assert_eq!(read, Ok(normal_form(&grammar)));
        assert_eq!(read.map(|grammar| grammar.rules.len()), Ok(5));
    }
}
