//! From grammar expressions to nodes.
//!
//! Rules are lowered after those that they use, so what turns out to be regular, or a single part, takes the place of its
//! rule. Of rules that use each other, first those that have no text are found, and those that have the empty text; then
//! left recursion is removed ([`super::recursion`]).

use super::beginnings::{self, Fork};
use super::nodes::{FxMap, NameId, NodeId, Nodes, PartId, RuleId, TokensId};
use crate::bytes::ByteSet;
use crate::error::CompileError;
use crate::json;
use crate::options::{JsonOptions, Limits};
use crate::vocabulary::Vocabulary;
use punchcard_automata::languages::UNBOUNDED;
use punchcard_automata::pattern::{self, Dialect, Pattern};
use punchcard_automata::{CharSet, Language, Languages, work};
use punchcard_grammar::error::Spot;
use punchcard_grammar::{Expr, Grammar, GrammarError, RegexSyntax};
use punchcard_schema::SchemaError;

/// What grammars become.
#[derive(Debug)]
pub(crate) struct Lowered {
    pub(crate) nodes: Nodes,
    pub(crate) start: NodeId,
    pub(crate) parts: Vec<json::Machine>,
    /// Token ids, sorted.
    pub(crate) tokens: Vec<Box<[u32]>>,
    /// Kind and name of what is named.
    pub(crate) names: Vec<(String, String)>,
}

/// Lowers an expression for a vocabulary. With `names`, the nodes say where named parts begin and end.
pub(crate) fn lower(
    expr: &Expr,
    vocabulary: &Vocabulary,
    limits: &Limits,
    names: bool,
) -> Result<Lowered, CompileError> {
    let mut languages = Languages::over(vocabulary.alphabet());
    languages.max_states = limits.max_automaton_states;
    languages.max_work = limits.max_automaton_work;
    let mut lowering = Lowering {
        vocabulary,
        limits,
        marks: names,
        out: Lowered {
            nodes: Nodes::new(languages),
            start: NodeId::NOTHING,
            parts: Vec::new(),
            tokens: Vec::new(),
            names: Vec::new(),
        },
        sources: Vec::new(),
        scopes: Vec::new(),
        grammars: FxMap::default(),
        parts: FxMap::default(),
        token_sets: FxMap::default(),
        name_ids: FxMap::default(),
        plain: FxMap::default(),
        done: Vec::new(),
        unproductive: Vec::new(),
    };
    lowering.collect(expr);
    lowering.lower_rules()?;
    let start = lowering.expr(expr, None)?;
    lowering.out.nodes.finish_pending();
    let mut start = lowering.prune_all(start);
    // Whoever follows a text that was taken knows it to be right, and takes the longest first.
    if lowering.out.nodes.has_longest() && !names {
        let first = lowering.out.nodes.rule_count();
        let parts = lowering.out.parts.iter_mut().map(first_characters).collect::<Result<_, _>>()?;
        start = super::longest::rewrite(&mut lowering.out.nodes, parts, start)?;
        lowering.out.nodes.finish_pending();
        start = lowering.prune_since(first, start);
    }
    lowering.out.start = start;
    lowering.out.nodes.languages.check_limit().map_err(|limit| CompileError::Schema(limit.into()))?;
    if start == NodeId::NOTHING {
        let hint = "Every rule needs an alternative that ends, and terminals that exclude each other have no text";
        return Err(GrammarError::new("No text matches the grammar").with_hint(hint).into());
    }
    Ok(lowering.out)
}

/// The rules that are known within a grammar.
struct Scope<'a> {
    rules: FxMap<&'a str, RuleId>,
}

/// A rule before it is lowered.
struct Source<'a> {
    name: &'a str,
    body: &'a Expr,
    scope: usize,
}

struct Lowering<'a> {
    vocabulary: &'a Vocabulary,
    limits: &'a Limits,
    marks: bool,
    out: Lowered,
    sources: Vec<Source<'a>>,
    scopes: Vec<Scope<'a>>,
    /// Scopes of grammars, by address: each grammar of the expression is one object.
    grammars: FxMap<*const Grammar, usize>,
    parts: FxMap<String, PartId>,
    token_sets: FxMap<Box<[u32]>, TokensId>,
    name_ids: FxMap<(String, String), NameId>,
    /// The bodies of rules without marks, where `marks` would put some in. Operands that must be regular have none.
    plain: FxMap<usize, NodeId>,
    /// Rules whose bodies are final.
    done: Vec<bool>,
    unproductive: Vec<bool>,
}

impl<'a> Lowering<'a> {
    /// Notes all rules of all grammars within an expression.
    fn collect(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Sequence(items) | Expr::Choice(items) | Expr::And(items) => {
                items.iter().for_each(|item| self.collect(item));
            }
            Expr::Repeat { body, .. } | Expr::MaxTokens { body, .. } | Expr::Named { body, .. } => self.collect(body),
            Expr::Not(body) | Expr::Shortest(body) | Expr::Longest(body) => self.collect(body),
            Expr::Grammar(grammar) => {
                let id = self.scopes.len();
                self.scopes.push(Scope { rules: FxMap::default() });
                self.grammars.insert(&raw const **grammar, id);
                for (name, body) in &grammar.rules {
                    let rule = self.out.nodes.new_rule();
                    debug_assert_eq!(rule.0 as usize, self.sources.len());
                    self.sources.push(Source { name, body, scope: id });
                    self.done.push(false);
                    self.unproductive.push(false);
                    self.scopes[id].rules.insert(name, rule);
                }
                grammar.rules.values().for_each(|body| self.collect(body));
                self.collect(&grammar.start);
            }
            _ => {}
        }
    }

    fn resolve(&self, name: &str, scope: Option<usize>) -> Result<RuleId, GrammarError> {
        scope.and_then(|scope| self.scopes[scope].rules.get(name).copied()).ok_or_else(|| {
            GrammarError::new(format!("There is no rule {name:?}")).with_hint("Define it, or correct the name")
        })
    }

    /// Rules that an expression uses.
    fn uses(&self, expr: &'a Expr, scope: Option<usize>, out: &mut Vec<RuleId>) -> Result<(), GrammarError> {
        match expr {
            Expr::Rule(name) => out.push(self.resolve(name, scope)?),
            Expr::Sequence(items) | Expr::Choice(items) | Expr::And(items) => {
                items.iter().try_for_each(|item| self.uses(item, scope, out))?;
            }
            Expr::Repeat { body, .. } | Expr::MaxTokens { body, .. } | Expr::Named { body, .. } => {
                self.uses(body, scope, out)?;
            }
            Expr::Not(body) | Expr::Shortest(body) | Expr::Longest(body) => self.uses(body, scope, out)?,
            Expr::Grammar(grammar) => {
                let scope = self.grammars.get(&(&raw const **grammar)).copied();
                self.uses(&grammar.start, scope, out)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn lower_rules(&mut self) -> Result<(), CompileError> {
        let mut uses = Vec::with_capacity(self.sources.len());
        for source in &self.sources {
            let mut out = Vec::new();
            self.uses(source.body, Some(source.scope), &mut out)?;
            out.sort_unstable();
            out.dedup();
            uses.push(out.into_iter().map(|rule| rule.0 as usize).collect::<Vec<_>>());
        }
        for group in super::recursion::groups(&uses) {
            let recursive = group.len() > 1 || uses[group[0]].contains(&group[0]);
            if recursive {
                self.lower_group(&group)?;
            } else {
                if self.marks {
                    let plain = self.without_marks(|lowering| lowering.body_of(group[0]))?;
                    self.plain.insert(group[0], plain);
                }
                let body = self.body_of(group[0])?;
                let rule = RuleId(group[0] as u32);
                self.out.nodes.set_body(rule, body);
                let nullable = self.out.nodes.is_nullable(body);
                self.out.nodes.set_nullable(rule, nullable);
            }
            for rule in group {
                self.done[rule] = true;
            }
            self.out.nodes.languages.check_limit().map_err(|limit| CompileError::Schema(limit.into()))?;
        }
        Ok(())
    }

    /// Takes what has no text out of everything, last of all.
    fn prune_all(&mut self, start: NodeId) -> NodeId {
        self.prune_since(self.sources.len(), start)
    }

    /// The same, if it can only be in rules from the `first` on.
    fn prune_since(&mut self, first: usize, start: NodeId) -> NodeId {
        let nodes = &mut self.out.nodes;
        let count = nodes.rule_count();
        let made: Vec<RuleId> = (first..count).map(|rule| RuleId(rule as u32)).collect();
        let dead = super::recursion::prune(nodes, &made);
        if dead.is_empty() {
            return start;
        }
        nodes.remove_rules(&dead, (0..count).map(|rule| RuleId(rule as u32)));
        nodes.without_rules(start, &dead, &mut FxMap::default())
    }

    fn body_of(&mut self, rule: usize) -> Result<NodeId, CompileError> {
        let Source { name, body, scope } = self.sources[rule];
        self.expr(body, Some(scope)).map_err(|error| error.within(name))
    }

    /// Lowers rules that use each other.
    fn lower_group(&mut self, group: &[usize]) -> Result<(), CompileError> {
        for &rule in group {
            let body = self.body_of(rule)?;
            self.out.nodes.set_body(RuleId(rule as u32), body);
        }
        let rules: Vec<RuleId> = group.iter().map(|&rule| RuleId(rule as u32)).collect();
        let productive = super::recursion::productive(&self.out.nodes, &rules);
        for &rule in group {
            self.unproductive[rule] = !productive.contains(&RuleId(rule as u32));
        }
        super::recursion::find_nullable(&mut self.out.nodes, &rules);
        // Again, now that this is known: no alternative without text is left, and repetitions have no empty body.
        let mut first = self.out.nodes.rule_count();
        self.lower_bodies(group)?;
        if self.marks && super::recursion::is_left_recursive(&self.out.nodes, &self.all_of(group, first)) {
            // Left recursion is turned inside out, and there is no place left where such a rule begins.
            // What was made of the bodies with marks is left behind.
            group.iter().for_each(|&rule| self.out.nodes.forget_without_empty(RuleId(rule as u32)));
            first = self.out.nodes.rule_count();
            self.without_marks(|lowering| lowering.lower_bodies(group))?;
        }
        self.prune(group, first);
        let rules = self.all_of(group, first);
        super::recursion::remove_left_recursion(&mut self.out.nodes, &rules)?;
        self.prune(group, first);
        if self.marks {
            self.find_plain(group)?;
        }
        if super::recursion::is_left_recursive(&self.out.nodes, &self.all_of(group, first)) {
            let message = "A rule begins with itself within a limit on tokens";
            return Err(GrammarError::new(message).with_hint("Limit the rules that it is made of").into());
        }
        Ok(())
    }

    /// Rules of a group that are regular once what has no text is gone, as operands need them: without marks.
    fn find_plain(&mut self, group: &[usize]) -> Result<(), CompileError> {
        for &rule in group {
            if self.unproductive[rule] {
                continue;
            }
            let plain = self.without_marks(|lowering| lowering.body_of(rule))?;
            if self.out.nodes.as_terminal(plain).is_some() {
                self.plain.insert(rule, plain);
            }
        }
        Ok(())
    }

    fn lower_bodies(&mut self, group: &[usize]) -> Result<(), CompileError> {
        for &rule in group {
            let body = if self.unproductive[rule] { NodeId::NOTHING } else { self.body_of(rule)? };
            self.out.nodes.set_body(RuleId(rule as u32), body);
        }
        self.out.nodes.finish_pending();
        Ok(())
    }

    /// The rules of a group, and those that were made of them: all since `first`.
    fn all_of(&self, group: &[usize], first: usize) -> Vec<RuleId> {
        let made = first..self.out.nodes.rule_count();
        group.iter().copied().chain(made).map(|rule| RuleId(rule as u32)).collect()
    }

    fn prune(&mut self, group: &[usize], first: usize) {
        let rules = self.all_of(group, first);
        let dead = super::recursion::prune(&mut self.out.nodes, &rules);
        for &rule in group {
            self.unproductive[rule] |= dead.contains(&RuleId(rule as u32));
        }
    }

    fn expr(&mut self, expr: &'a Expr, scope: Option<usize>) -> Result<NodeId, CompileError> {
        work::spend(1).map_err(|limit| CompileError::Schema(limit.into()))?;
        let language = match expr {
            Expr::Nothing => return Ok(NodeId::NOTHING),
            Expr::Text(text) if text.is_empty() => return Ok(NodeId::EMPTY),
            Expr::Text(text) => self.out.nodes.languages.literal(text),
            Expr::Chars(ranges) => {
                let set = CharSet::new(ranges.iter().copied());
                self.out.nodes.languages.set(set)
            }
            Expr::Sequence(items) => {
                let items = items.iter().map(|item| self.expr(item, scope)).collect::<Result<Vec<_>, _>>()?;
                return Ok(self.out.nodes.sequence_of(items));
            }
            Expr::Choice(items) => {
                // Many texts are one list: it takes part in unions as a whole.
                let texts: Vec<&str> = items.iter().filter_map(as_text).collect();
                let texts = self.out.nodes.languages.texts(texts);
                let mut nodes = vec![self.out.nodes.terminal(texts)];
                let mut others: Vec<&Expr> = items.iter().filter(|item| as_text(item).is_none()).collect();
                if others.len() >= MANY_ALTERNATIVES && !self.marks {
                    let alternatives = others.iter().filter_map(|item| beginnings::beginning(item)).collect();
                    others.retain(|item| beginnings::beginning(item).is_none());
                    nodes.extend(self.forks(beginnings::forks(alternatives), scope)?);
                }
                for item in others {
                    nodes.push(self.expr(item, scope)?);
                }
                return Ok(self.out.nodes.choice(nodes));
            }
            Expr::Repeat { body, min, max } => {
                let body = self.expr(body, scope)?;
                let max = max.unwrap_or(UNBOUNDED);
                if *min > max {
                    let message = format!("A repetition of at least {min} and at most {max} times is impossible");
                    return Err(GrammarError::new(message).with_hint("Swap the bounds").into());
                }
                return Ok(self.out.nodes.repeat(body, *min, max));
            }
            Expr::Rule(name) => return Ok(self.use_rule(name, scope)?),
            Expr::Regex { pattern, flags, syntax } => self.regex(pattern, flags, *syntax)?,
            Expr::And(items) => {
                let items = items
                    .iter()
                    .map(|item| self.regular(item, scope, "intersection"))
                    .collect::<Result<Vec<_>, _>>()?;
                self.out.nodes.languages.and(items)
            }
            Expr::Not(body) => {
                let body = self.regular(body, scope, "complement")?;
                self.out.nodes.languages.not(body)
            }
            Expr::Shortest(body) => {
                let body = self.regular(body, scope, "shortest match")?;
                let languages = &mut self.out.nodes.languages;
                let more = languages.difference(Language::ALL, Language::EPSILON);
                let longer = languages.concat(body, more);
                languages.difference(body, longer)
            }
            Expr::Longest(body) => {
                let body = self.regular(body, scope, "longest match")?;
                let nodes = &mut self.out.nodes;
                let nullable = nodes.languages.is_nullable(body);
                // Alternatives stay as they are written where they can.
                let some = if nullable { nodes.languages.difference(body, Language::EPSILON) } else { body };
                let viable = nodes.languages.is_viable(some).map_err(|limit| CompileError::Schema(limit.into()))?;
                let mut items = if viable { vec![nodes.longest(some)] } else { Vec::new() };
                if nullable {
                    items.push(NodeId::EMPTY);
                }
                return Ok(nodes.choice(items));
            }
            Expr::TextWithout(texts) => {
                // Without the empty text there is no text at all.
                let language = without(&mut self.out.nodes.languages, texts);
                return Ok(if texts.iter().any(String::is_empty) {
                    NodeId::NOTHING
                } else {
                    self.out.nodes.terminal(language)
                });
            }
            Expr::JsonSchema { schema, options } => return self.json(schema, options),
            Expr::SchemaString { schema, options, without: texts } => {
                let options = JsonOptions::from_map(options, self.limits)?;
                let (mut algebra, formula) = options.algebra(schema, self.vocabulary)?;
                let Some(text) = algebra.shape(formula)?.text else {
                    let message = "The schema allows no string, but its strings are asked for";
                    return Err(GrammarError::new(message).with_hint("Use the JSON text of the schema instead").into());
                };
                let languages = &mut self.out.nodes.languages;
                let text = languages.copy(&algebra.languages, text);
                let rest = without(languages, texts);
                languages.and([text, rest])
            }
            Expr::Token { ids, names, except } => return self.tokens(ids, names, *except),
            Expr::MaxTokens { body, tokens } => {
                let body = self.expr(body, scope)?;
                return Ok(self.out.nodes.limit(body, *tokens));
            }
            Expr::Named { kind, name, body } => {
                let body = self.expr(body, scope)?;
                return Ok(if self.marks { self.named(kind, name, body) } else { body });
            }
            Expr::Grammar(grammar) => {
                let scope = self.grammars.get(&(&raw const **grammar)).copied();
                return self.expr(&grammar.start, scope);
            }
        };
        let languages = &mut self.out.nodes.languages;
        languages.check_limit().map_err(|limit| CompileError::Schema(limit.into()))?;
        let viable = languages.is_plain(language)
            || languages.is_viable(language).map_err(|limit| CompileError::Schema(limit.into()))?;
        Ok(if viable { self.out.nodes.terminal(language) } else { NodeId::NOTHING })
    }

    /// Alternatives that were put together by how they begin.
    fn forks(&mut self, forks: Vec<Fork<'a>>, scope: Option<usize>) -> Result<Vec<NodeId>, CompileError> {
        let mut nodes = Vec::with_capacity(forks.len());
        for Fork { text, rests, forks } in forks {
            let mut ways = Vec::with_capacity(rests.len() + forks.len());
            for rest in rests {
                let rest = rest.into_iter().map(|item| self.expr(item, scope)).collect::<Result<Vec<_>, _>>()?;
                ways.push(self.out.nodes.sequence_of(rest));
            }
            ways.extend(self.forks(forks, scope)?);
            let text = self.out.nodes.languages.literal(text);
            let text = self.out.nodes.terminal(text);
            let ways = self.out.nodes.choice(ways);
            nodes.push(self.out.nodes.sequence_of(vec![text, ways]));
        }
        Ok(nodes)
    }

    fn use_rule(&mut self, name: &str, scope: Option<usize>) -> Result<NodeId, GrammarError> {
        let rule = self.resolve(name, scope)?;
        let index = rule.0 as usize;
        if self.unproductive[index] {
            return Ok(NodeId::NOTHING);
        }
        let plain = self.plain.get(&index).filter(|_| !self.marks);
        let body = plain.copied().unwrap_or_else(|| self.out.nodes.body(rule));
        let node = if self.done[index] && self.out.nodes.is_simple(body) { body } else { self.out.nodes.rule(rule) };
        Ok(if self.marks { self.named("rule", name, node) } else { node })
    }

    fn named(&mut self, kind: &str, name: &str, body: NodeId) -> NodeId {
        let names = &mut self.out.names;
        let id = *self.name_ids.entry((kind.to_string(), name.to_string())).or_insert_with(|| {
            names.push((kind.to_string(), name.to_string()));
            NameId(names.len() as u32 - 1)
        });
        let (begin, end) = (self.out.nodes.begin(id), self.out.nodes.end(id));
        self.out.nodes.sequence_of(vec![begin, body, end])
    }

    fn without_marks<T>(&mut self, lower: impl FnOnce(&mut Self) -> T) -> T {
        let marks = std::mem::replace(&mut self.marks, false);
        let lowered = lower(self);
        self.marks = marks;
        lowered
    }

    /// The language of an operand that must be regular.
    fn regular(&mut self, expr: &'a Expr, scope: Option<usize>, of: &str) -> Result<Language, CompileError> {
        let node = self.without_marks(|lowering| lowering.expr(expr, scope))?;
        let node = self.without_rules(node);
        self.out.nodes.as_terminal(node).ok_or_else(|| {
            let message = format!("An operand of {of} is not regular");
            let hint = "Write it without recursive rules, JSON, tokens and limits on tokens";
            GrammarError::new(message).with_hint(hint).into()
        })
    }

    /// The body of a rule that only names are in the way of; else the node itself.
    fn without_rules(&mut self, node: NodeId) -> NodeId {
        self.out
            .nodes
            .as_rule(node)
            .filter(|rule| self.done[rule.0 as usize])
            .map_or(node, |rule| self.out.nodes.body(rule))
    }

    fn regex(&mut self, source: &str, flags: &str, syntax: RegexSyntax) -> Result<Language, CompileError> {
        let pattern = read_regex(source, flags, syntax)?;
        let languages = &mut self.out.nodes.languages;
        let language = pattern.full(languages).map_err(|error| refused_regex(source, error))?;
        if !languages.is_viable(language).map_err(|limit| CompileError::Schema(limit.into()))? {
            return Err(refused_regex(source, pattern::PatternError::new(0, "no text matches it")).into());
        }
        Ok(language)
    }

    fn json(
        &mut self,
        schema: &str,
        options: &serde_json::Map<String, serde_json::Value>,
    ) -> Result<NodeId, CompileError> {
        let key = serde_json::to_string(&(schema, options)).unwrap_or_default();
        let part = match self.parts.get(&key) {
            Some(&part) => part,
            None => {
                let options = JsonOptions::from_map(options, self.limits)?;
                let machine = options.machine(schema, self.vocabulary)?;
                self.out.parts.push(machine);
                let part = PartId(self.out.parts.len() as u32 - 1);
                self.parts.insert(key, part);
                part
            }
        };
        Ok(self.out.nodes.json(part))
    }

    fn tokens(&mut self, ids: &[u32], names: &[String], except: bool) -> Result<NodeId, CompileError> {
        let vocabulary = self.vocabulary;
        let mut found = Vec::new();
        for &id in ids {
            if vocabulary.token(id).is_none_or(<[u8]>::is_empty) {
                let message = format!("The vocabulary has no token with the id {id}");
                return Err(GrammarError::new(message).with_hint("Token ids belong to one model").into());
            }
            found.push(id);
        }
        for name in names {
            let before = found.len();
            let special = vocabulary.eos().iter().chain(vocabulary.special());
            found.extend(special.filter(|&&id| vocabulary.token(id) == Some(name.as_bytes())));
            if found.len() == before {
                let message = format!("The vocabulary has no special token {name:?}");
                let hint = "Write it as text if it is text, or name a special token of this model";
                return Err(GrammarError::new(message).with_hint(hint).into());
            }
        }
        found.sort_unstable();
        found.dedup();
        if except {
            let usable = |id: &u32| {
                vocabulary.token(*id).is_some_and(|bytes| !bytes.is_empty())
                    && vocabulary.eos().binary_search(id).is_err()
                    && found.binary_search(id).is_err()
            };
            found = (0..vocabulary.size() as u32).filter(usable).collect();
        }
        if found.is_empty() {
            return Ok(NodeId::NOTHING);
        }
        let set: Box<[u32]> = found.into();
        let tokens = &mut self.out.tokens;
        let id = *self.token_sets.entry(set.clone()).or_insert_with(|| {
            tokens.push(set);
            TokensId(tokens.len() as u32 - 1)
        });
        Ok(self.out.nodes.token(id))
    }
}

/// A regular expression that is well-formed.
pub(crate) fn read_regex(source: &str, flags: &str, syntax: RegexSyntax) -> Result<Pattern, GrammarError> {
    let dialect = match syntax {
        RegexSyntax::Ecma => Dialect::Ecma,
        RegexSyntax::Python => Dialect::Python,
    };
    let options = pattern::Options::with_flags(dialect, flags).map_err(|error| GrammarError::new(error.message))?;
    let options = pattern::Options { max_nesting: MOST_GROUPS_WITHIN_EACH_OTHER, ..options };
    pattern::parse(source, &options).map_err(|error| refused_regex(source, error))
}

fn refused_regex(source: &str, error: pattern::PatternError) -> GrammarError {
    let offset = source.char_indices().nth(error.offset).map_or(source.len(), |(i, _)| i);
    let shown: String = source.chars().take(60).collect();
    let ending = if shown.len() < source.len() { "..." } else { "" };
    let message = format!("The regular expression {shown:?}{ending} cannot be used: {}", error.message);
    GrammarError { message, hint: error.hint.unwrap_or_default(), spot: Some(Spot::at(source, offset)) }
}
/// So many alternatives are put together by how they begin.
const MANY_ALTERNATIVES: usize = 64;

/// Forks of alternatives within each other.
pub(super) const MOST_FORKS: usize = 64;

/// The characters that a JSON value may begin with.
fn first_characters(part: &mut json::Machine) -> Result<CharSet, SchemaError> {
    let mut bytes = ByteSet::default();
    part.possible_bytes(part.start(), &mut bytes)?;
    Ok(bytes.iter().filter(u8::is_ascii).map(|byte| (u32::from(byte), u32::from(byte))).collect())
}

/// Groups of a regular expression within each other.
const MOST_GROUPS_WITHIN_EACH_OTHER: usize = 10_000;

fn as_text(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Text(text) => Some(text),
        Expr::Sequence(items) if items.is_empty() => Some(""),
        _ => None,
    }
}

/// Texts in which none of `texts` occurs.
fn without(languages: &mut Languages, texts: &[String]) -> Language {
    if texts.is_empty() {
        return Language::ALL;
    }
    let texts = languages.texts(texts.iter().map(String::as_str));
    let found = languages.sequence([Language::ALL, texts, Language::ALL]);
    languages.not(found)
}
