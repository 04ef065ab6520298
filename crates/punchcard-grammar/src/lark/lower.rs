//! Entries to expressions.
//!
//! In rules, each terminal (a name in upper case, a string, a regular expression, inline JSON, a special token, a nested
//! grammar) is followed by `%ignore`, a rule of its own that stands for any number of ignored terminals; another one stands
//! at the beginning of the whole. In terminals there is none.
//!
//! Templates become one rule for each different list of arguments. Arguments are told apart by their labels, which are
//! names of rules and terminals or the source of literals, so that labels stay short: an argument that is itself a template
//! with arguments is labelled by the name of its rule.

use crate::build::{choice, repeat, sequence, text};
use crate::error::GrammarError;
use crate::expr::{Expr, Grammar, MAX_DEPTH, RegexSyntax};
use crate::lark::scope::{self, Body, Entry, Scope};
use crate::lark::syntax::{Attributes, Item, Node, NodeKind};
use crate::lark::{Lexer, guidance, priority, special, substring};
use crate::similar::nearest;
use punchcard_automata::pattern;
use std::collections::{BTreeMap, HashMap, HashSet};

/// The rule of ignored terminals. No rule of a grammar can have this name.
const IGNORE: &str = "%ignore";

/// Rules that templates may make.
const MOST_INSTANCES: usize = 10_000;

/// How deep templates may be arguments of templates. Recursion that passes larger arguments at each step ends here.
const MOST_ARGUMENT_NESTING: usize = 100;

type Result<T, E = GrammarError> = std::result::Result<T, E>;

/// Lowers a grammar that begins with the rule `start`; without such a rule, the error is `at` a spot of the text.
pub(super) fn grammar(text: &str, items: &[Item], start: &str, at: usize, lexer: Lexer) -> Result<Grammar> {
    let scope = scope::gather(text, items)?;
    let Some(entry) = scope.entries.get(start) else {
        let hint = match nearest(start, scope.entries.keys().map(String::as_str)) {
            Some(near) => format!("Did you mean {near:?}?"),
            None => "Define it, or say with which rule to begin".to_string(),
        };
        return Err(GrammarError::at(text, at, format!("There is no rule {start:?} to begin with")).with_hint(hint));
    };
    if !entry.parameters.is_empty() {
        return Err(GrammarError::at(
            text,
            entry.at,
            format!("{start:?} has parameters, so nothing can begin with it"),
        )
        .with_hint("Begin with a rule that passes arguments to it"));
    }
    let mut lowering =
        Lowering { text, scope: &scope, lexer, rules: BTreeMap::new(), instances: HashMap::new(), waiting: Vec::new() };
    lowering.ignored()?;
    for (name, entry) in scope.entries.iter().filter(|(_, entry)| entry.parameters.is_empty()) {
        lowering.entry(name, entry, &Environment::new())?;
    }
    while let Some(instance) = lowering.waiting.pop() {
        lowering.entry(&instance.name, instance.template, &instance.environment)?;
    }
    let mut body = Expr::Rule(start.to_string());
    if entry.is_terminal {
        body = lowering.with_ignored(lowering.as_long_as_can_be(body));
    }
    let start = match lowering.ignore() {
        Some(ignore) => sequence([ignore, body]),
        None => body,
    };
    let rules = reachable(&start, lowering.rules);
    let (start, rules) = priority::apply(text, &scope, IGNORE, start, rules)?;
    let rules = reachable(&start, rules);
    Ok(Grammar { start, rules })
}

/// Arguments by parameter.
type Environment<'a> = HashMap<&'a str, Argument>;

/// What a parameter stands for.
#[derive(Clone)]
struct Argument {
    expr: Expr,
    /// Whether it is a terminal, which ignored text may follow.
    is_terminal: bool,
    /// Tells it from other arguments.
    label: String,
    /// Templates within each other.
    nesting: usize,
}

/// A template with arguments, which is yet to be lowered.
struct Instance<'a> {
    name: String,
    template: &'a Entry<'a>,
    environment: Environment<'a>,
}

/// Where a node stands.
#[derive(Clone, Copy)]
enum Context<'e, 'a> {
    /// In a rule, with the arguments of its template.
    Rule(&'e Environment<'a>),
    /// In a terminal, or in what is treated as one.
    Terminal,
}

struct Lowering<'a> {
    text: &'a str,
    scope: &'a Scope<'a>,
    lexer: Lexer,
    rules: BTreeMap<String, Expr>,
    /// The rule and the argument nesting of each template with labels of arguments.
    instances: HashMap<(String, Vec<String>), (String, usize)>,
    waiting: Vec<Instance<'a>>,
}

impl<'a> Lowering<'a> {
    fn error(&self, at: usize, message: impl Into<String>) -> GrammarError {
        GrammarError::at(self.text, at, message)
    }

    // ------------------------------------------------------------------ ignored terminals

    fn ignored(&mut self) -> Result<()> {
        let ignored = &self.scope.ignored;
        let Some(first) = ignored.first() else { return Ok(()) };
        let mut any = Vec::new();
        for node in ignored {
            let terminal = self.whole_terminal(node)?;
            // Ignored text is as long as it can be with every lexer of lark.
            any.push(Expr::Longest(Box::new(terminal)));
        }
        let rule = repeat(choice(any), 0, None);
        self.check_depth(first.at, &rule)?;
        self.rules.insert(IGNORE.to_string(), rule);
        Ok(())
    }

    fn ignore(&self) -> Option<Expr> {
        (!self.scope.ignored.is_empty()).then(|| Expr::Rule(IGNORE.to_string()))
    }

    /// A terminal, and the ignored text after it.
    fn with_ignored(&self, terminal: Expr) -> Expr {
        match self.ignore() {
            Some(ignore) => sequence([terminal, ignore]),
            None => terminal,
        }
    }

    /// A terminal where a rule uses it, as the lexer has it.
    fn as_long_as_can_be(&self, terminal: Expr) -> Expr {
        let goes_on = match &terminal {
            // Terminals with attributes say by themselves how long they are.
            Expr::Rule(name) => self
                .scope
                .entries
                .get(name.as_str())
                .is_some_and(|entry| entry.is_terminal && !entry.attributes.is_some_and(Attributes::counts)),
            Expr::Regex { .. }
            | Expr::Shortest(_)
            | Expr::And(_)
            | Expr::Not(_)
            | Expr::Choice(_)
            | Expr::Sequence(_) => true,
            _ => false,
        };
        if goes_on && self.lexer == Lexer::Dynamic { Expr::Longest(Box::new(terminal)) } else { terminal }
    }

    /// A terminal that stands outside of rules.
    fn whole_terminal(&mut self, node: &Node) -> Result<Expr> {
        let expr = self.expr(node, Context::Terminal)?;
        let is_lazy = self.lexer == Lexer::Dynamic
            && matches!(&node.kind, NodeKind::Regex { pattern, .. } if scope::repeats_lazily(pattern));
        Ok(if is_lazy { Expr::Shortest(Box::new(expr)) } else { expr })
    }

    // ------------------------------------------------------------------ entries

    fn entry(&mut self, name: &str, entry: &Entry<'a>, environment: &Environment<'a>) -> Result<()> {
        let none = Attributes::default();
        let attributes = entry.attributes.unwrap_or(&none);
        let ends_early = attributes.lazy.is_some() || attributes.stop.is_some();
        if ends_early && !entry.parameters.is_empty() {
            return Err(self
                .error(entry.at, "A template cannot be `lazy`, and has no `stop` or `suffix`")
                .with_hint("Give these to a terminal, and pass it as an argument"));
        }
        let context = if entry.is_terminal || ends_early { Context::Terminal } else { Context::Rule(environment) };
        // A rule that is just one terminal is treated as one, so that what is captured ends before ignored text.
        let single = match (entry.bodies.as_slice(), context) {
            ([Body::Written(node)], Context::Rule(_)) => self.leaf(node, context)?,
            _ => None,
        };
        let is_unit = !entry.is_terminal && (ends_early || matches!(single, Some((_, true))));
        let is_lazy = self.lexer == Lexer::Dynamic && entry.is_terminal && self.scope.is_lazy(name);
        let mut expr = match single {
            Some((expr, _)) => expr,
            None => {
                let bodies = entry.bodies.iter().map(|body| match body {
                    Body::Written(node) => self.expr(node, context),
                    Body::Common(pattern) => Ok(regex(pattern.to_string(), String::new())),
                });
                choice(bodies.collect::<Result<Vec<_>>>()?)
            }
        };
        if let Some(stop) = &attributes.stop {
            expr = sequence([expr, self.expr(stop, Context::Terminal)?]);
        }
        if ends_early || is_lazy {
            expr = Expr::Shortest(Box::new(expr));
        }
        if is_unit || entry.is_terminal && attributes.counts() {
            expr = self.as_long_as_can_be(expr);
        }
        if let Some(tokens) = attributes.max_tokens {
            expr = Expr::MaxTokens { body: Box::new(expr), tokens };
        }
        if let Some(capture) = &attributes.capture {
            expr = Expr::Named { kind: "capture".to_string(), name: capture.clone(), body: Box::new(expr) };
        }
        if is_unit {
            expr = self.with_ignored(expr);
        }
        self.check_depth(entry.at, &expr)?;
        self.rules.insert(name.to_string(), expr);
        Ok(())
    }

    fn check_depth(&self, at: usize, expr: &Expr) -> Result<()> {
        if depth(expr) < MAX_DEPTH {
            return Ok(());
        }
        Err(self.error(at, "This nests too deep").with_hint("Name inner parts as rules"))
    }

    // ------------------------------------------------------------------ nodes

    fn expr(&mut self, node: &Node, context: Context<'_, 'a>) -> Result<Expr> {
        match &node.kind {
            NodeKind::Sequence(nodes) => Ok(sequence(self.exprs(nodes, context)?)),
            NodeKind::Choice(nodes) => Ok(choice(self.exprs(nodes, context)?)),
            NodeKind::Repeat { body, min, max } => Ok(repeat(self.expr(body, context)?, *min, *max)),
            _ => match self.leaf(node, context)? {
                Some((expr, true)) if matches!(context, Context::Rule(_)) => {
                    Ok(self.with_ignored(self.as_long_as_can_be(expr)))
                }
                Some((expr, _)) => Ok(expr),
                // Sequences, choices and repetitions are all that is no leaf.
                None => Ok(Expr::Nothing),
            },
        }
    }

    fn exprs(&mut self, nodes: &[Node], context: Context<'_, 'a>) -> Result<Vec<Expr>> {
        nodes.iter().map(|node| self.expr(node, context)).collect()
    }

    /// What has no parts in the context of `node`, and whether it is a terminal; nothing for what has parts.
    fn leaf(&mut self, node: &Node, context: Context<'_, 'a>) -> Result<Option<(Expr, bool)>> {
        let expr = match (&node.kind, context) {
            (NodeKind::Sequence(_) | NodeKind::Choice(_) | NodeKind::Repeat { .. }, _) => return Ok(None),
            (NodeKind::Rule(_) | NodeKind::Template { .. }, Context::Rule(environment)) => {
                let argument = self.reference(node, environment)?;
                return Ok(Some((argument.expr, argument.is_terminal)));
            }
            (NodeKind::And(nodes), _) => Expr::And(self.exprs(nodes, Context::Terminal)?),
            (NodeKind::Not(body), _) => Expr::Not(Box::new(self.expr(body, Context::Terminal)?)),
            (NodeKind::Terminal(name), _) => self.terminal(node.at, name, context)?,
            (NodeKind::Text { value, ignore_case: false }, _) => text(value.clone()),
            (NodeKind::Text { value, ignore_case: true }, _) => regex(escape(value), "i".to_string()),
            (NodeKind::Range(first, last), _) => Expr::Chars(vec![(u32::from(*first), u32::from(*last))]),
            (NodeKind::Regex { pattern, flags }, _) => {
                self.check_pattern(node.at, pattern, flags)?;
                let regex = regex(pattern.clone(), flags.clone());
                let alone = matches!(context, Context::Rule(_)) && self.lexer == Lexer::Dynamic;
                if alone && scope::repeats_lazily(pattern) { Expr::Shortest(Box::new(regex)) } else { regex }
            }
            (NodeKind::StructuredRegex(range), _) => {
                substring::structured(self.text, range.start, &self.text[range.clone()])?
            }
            (NodeKind::Special(source), Context::Rule(_)) => special::token(self.text, node.at, source)?,
            (NodeKind::Json(range), Context::Rule(_)) => {
                let schema = self.text[range.clone()].to_string();
                let options = guidance::options(self.text, range.start, &schema)?;
                Expr::JsonSchema { schema, options }
            }
            (NodeKind::Nested(items), Context::Rule(_)) => {
                Expr::Grammar(Box::new(grammar(self.text, items, "start", node.at, self.lexer)?))
            }
            (kind, Context::Terminal) => return Err(self.not_in_terminals(node.at, kind)),
        };
        Ok(Some((expr, true)))
    }

    /// What is wrong with a pattern is said where it is written.
    fn check_pattern(&self, at: usize, source: &str, flags: &str) -> Result<()> {
        let options = pattern::Options::with_flags(pattern::Dialect::Python, flags);
        let Err(error) = options.and_then(|options| pattern::parse(source, &options)) else { return Ok(()) };
        // The pattern stands after a slash, and its slashes after backslashes.
        let before = source.chars().take(error.offset);
        let offset = at + 1 + before.map(|c| c.len_utf8() + usize::from(c == '/')).sum::<usize>();
        let message = format!("This regular expression cannot be read: {}", error.message);
        Err(self.error(offset, message).with_hint(error.hint.unwrap_or_default()))
    }

    fn not_in_terminals(&self, at: usize, kind: &NodeKind) -> GrammarError {
        let what = match kind {
            NodeKind::Rule(name) | NodeKind::Template { name, .. } => format!("The rule {name:?}"),
            NodeKind::Special(name) => format!("The token {name}"),
            NodeKind::Json(_) => "Inline JSON".to_string(),
            _ => "A nested grammar".to_string(),
        };
        let hint = match kind {
            NodeKind::Rule(_) | NodeKind::Template { .. } => {
                "Write its name in upper case, here and where it is defined"
            }
            _ => "Use it in a rule, whose name is in lower case",
        };
        self.error(
            at,
            format!("{what} stands in a terminal, or in what must be regular like one: `&`, `~`, lazy, stop, suffix"),
        )
        .with_hint(hint)
    }

    fn terminal(&self, at: usize, name: &str, context: Context<'_, 'a>) -> Result<Expr> {
        let attributes = self.scope.entries.get(name).and_then(|entry| entry.attributes);
        let counts = attributes.is_some_and(Attributes::counts);
        if counts && matches!(context, Context::Terminal) {
            let message = format!("{name:?} has max_tokens or capture, which a terminal within another cannot have");
            return Err(self.error(at, message).with_hint("Give these to a rule that is made of the terminal"));
        }
        Ok(Expr::Rule(name.to_string()))
    }

    // ------------------------------------------------------------------ templates

    /// What a name in lower case stands for, perhaps with arguments.
    fn reference(&mut self, node: &Node, environment: &Environment<'a>) -> Result<Argument> {
        let (name, arguments) = match &node.kind {
            NodeKind::Rule(name) => (name.as_str(), [].as_slice()),
            NodeKind::Template { name, arguments } => (name.as_str(), arguments.as_slice()),
            _ => return self.literal(node, environment),
        };
        // A parameter may stand for a template: then its label is the template's name.
        let (name, is_parameter) = match environment.get(name) {
            Some(argument) if arguments.is_empty() && !self.is_template(&argument.label) => return Ok(argument.clone()),
            Some(argument) => (argument.label.as_str(), true),
            None => (name, false),
        };
        let Some(entry) = self.scope.entries.get(name) else {
            return Err(self.error(node.at, format!("{name} takes no arguments")).with_hint(if is_parameter {
                "Pass a template as the argument"
            } else {
                "Take them out"
            }));
        };
        if entry.parameters.len() != arguments.len() {
            let (wanted, given) = (entry.parameters.len(), arguments.len());
            return Err(self.error(node.at, format!("{name:?} takes {wanted} arguments, not {given}")).with_hint(
                if wanted == 0 {
                    format!("Write {name}")
                } else {
                    format!("Write {name}{{{}}}", entry.parameters.join(", "))
                },
            ));
        }
        if arguments.is_empty() {
            let expr = Expr::Rule(name.to_string());
            return Ok(Argument { expr, is_terminal: false, label: name.to_string(), nesting: 0 });
        }
        let name = name.to_string();
        let arguments = arguments.iter().map(|node| self.argument(node, environment)).collect::<Result<Vec<_>>>()?;
        self.instance(node.at, name, entry, arguments)
    }

    /// An argument; unlike elsewhere, a template may stand there without arguments of its own.
    fn argument(&mut self, node: &Node, environment: &Environment<'a>) -> Result<Argument> {
        if let NodeKind::Rule(name) = &node.kind {
            match environment.get(name.as_str()) {
                Some(argument) => return Ok(argument.clone()),
                None if self.is_template(name) => {
                    // It can only be given arguments, so that the expression is never used.
                    return Ok(Argument { expr: Expr::Nothing, is_terminal: false, label: name.clone(), nesting: 0 });
                }
                None => {}
            }
        }
        self.reference(node, environment)
    }

    fn is_template(&self, name: &str) -> bool {
        self.scope.entries.get(name).is_some_and(|entry| !entry.parameters.is_empty())
    }

    fn literal(&mut self, node: &Node, environment: &Environment<'a>) -> Result<Argument> {
        let label = match &node.kind {
            NodeKind::Terminal(name) => name.clone(),
            NodeKind::Text { value, ignore_case } => format!("{value:?}{}", if *ignore_case { "i" } else { "" }),
            NodeKind::Range(first, last) => format!("{:?}..{:?}", first.to_string(), last.to_string()),
            NodeKind::Regex { pattern, flags } => format!("/{pattern}/{flags}"),
            NodeKind::Special(name) => name.clone(),
            // Where it is tells inline JSON and nested grammars apart.
            _ => format!("%{}", node.at),
        };
        match self.leaf(node, Context::Rule(environment))? {
            Some((expr, is_terminal)) => Ok(Argument { expr, is_terminal, label, nesting: 0 }),
            None => Err(self.error(node.at, "A group is no argument").with_hint("Name it as a rule")),
        }
    }

    fn instance(
        &mut self,
        at: usize,
        template: String,
        entry: &'a Entry<'a>,
        arguments: Vec<Argument>,
    ) -> Result<Argument> {
        const READABLE: usize = 60;
        let labels: Vec<String> = arguments.iter().map(|argument| argument.label.clone()).collect();
        let key = (template, labels);
        let (name, nesting) = match self.instances.get(&key) {
            Some(known) => known.clone(),
            None => {
                let nesting = 1 + arguments.iter().map(|argument| argument.nesting).max().unwrap_or_default();
                if self.instances.len() >= MOST_INSTANCES || nesting > MOST_ARGUMENT_NESTING {
                    let message = format!("{:?} makes rules without end: each passes other arguments to it", key.0);
                    return Err(self
                        .error(at, message)
                        .with_hint("Recursion in a template must pass the same arguments"));
                }
                let mut name = format!("{}{{{}}}", key.0, key.1.join(","));
                if name.len() > READABLE {
                    name = format!("{}{{#{}}}", key.0, self.instances.len());
                }
                let environment = entry.parameters.iter().map(String::as_str).zip(arguments).collect();
                self.waiting.push(Instance { name: name.clone(), template: entry, environment });
                self.instances.insert(key, (name.clone(), nesting));
                (name, nesting)
            }
        };
        Ok(Argument { expr: Expr::Rule(name.clone()), is_terminal: false, label: name, nesting })
    }
}

// ---------------------------------------------------------------------- expressions

fn regex(pattern: String, flags: String) -> Expr {
    Expr::Regex { pattern, flags, syntax: RegexSyntax::Python }
}

/// A regular expression for just this text.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if r"\.^$*+?{}[]|()".contains(c) {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

fn parts(expr: &Expr) -> &[Expr] {
    match expr {
        Expr::Sequence(exprs) | Expr::Choice(exprs) | Expr::And(exprs) => exprs,
        Expr::Repeat { body, .. }
        | Expr::Not(body)
        | Expr::Shortest(body)
        | Expr::Longest(body)
        | Expr::MaxTokens { body, .. }
        | Expr::Named { body, .. } => std::slice::from_ref(body),
        _ => &[],
    }
}

/// Expressions within each other.
fn depth(expr: &Expr) -> usize {
    let inner = match expr {
        Expr::Grammar(grammar) => grammar.rules.values().chain([&grammar.start]).map(depth).max(),
        _ => parts(expr).iter().map(depth).max(),
    };
    1 + inner.unwrap_or_default()
}

/// The rules that `start` needs.
fn reachable(start: &Expr, mut rules: BTreeMap<String, Expr>) -> BTreeMap<String, Expr> {
    fn references<'e>(expr: &'e Expr, found: &mut Vec<&'e str>) {
        if let Expr::Rule(name) = expr {
            found.push(name);
        }
        parts(expr).iter().for_each(|part| references(part, found));
    }
    let mut seen: HashSet<String> = HashSet::new();
    let mut waiting = Vec::new();
    references(start, &mut waiting);
    while let Some(name) = waiting.pop() {
        if let Some(rule) = rules.get(name).filter(|_| !seen.contains(name)) {
            seen.insert(name.to_string());
            references(rule, &mut waiting);
        }
    }
    rules.retain(|name, _| seen.contains(name));
    rules
}
