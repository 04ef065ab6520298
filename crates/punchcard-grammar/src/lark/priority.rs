//! Lazy terminals come first.
//!
//! Where a terminal with `lazy`, `stop` or `suffix` may begin, whatever else begins there is not read past the end of a text
//! of it: `TEXT` beside `head[lazy]: TEXT "<tool_call>"` is text without `<tool_call>`. That is what makes a call out of a
//! text that begins like one. llguidance decides it while it reads, as its lexer runs all terminals that may come side by
//! side; here it is written into the grammar, so that nothing is left to be decided and nothing leads to a dead end.
//!
//! Which terminals may begin where a lazy one may is read off an automaton over terminals. A rule is copied for each of its
//! uses, and only recursion goes back to the copy around it. Terminals that begin at the same place and may have the same
//! text have what follows them begin at the same place too. What a terminal is kept from is the union over all copies of
//! the place where it is written.

use super::scope::{Entry, Scope};
use crate::error::GrammarError;
use crate::expr::{Expr, RegexSyntax};
use punchcard_automata::{CharSet, Language, Languages, languages::UNBOUNDED, pattern};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// States of the automaton; beyond them the uses of a rule share one copy.
const MOST_STATES: usize = 20_000;
/// Pairs of places that are looked at.
const MOST_PAIRS: usize = 200_000;

/// Writes into the rules what lazy terminals keep others from.
pub(super) fn apply(
    text: &str,
    scope: &Scope<'_>,
    ignore: &str,
    start: Expr,
    rules: BTreeMap<String, Expr>,
) -> Result<(Expr, BTreeMap<String, Expr>), GrammarError> {
    let lazy = |name: &String| scope.entries.get(name.as_str()).is_some_and(is_lazy);
    if !rules.keys().any(lazy) {
        return Ok((start, rules));
    }
    let mut places = Places {
        scope,
        ignore,
        rules: &rules,
        languages: Languages::new(),
        terminals: HashMap::new(),
        bodies: BTreeMap::new(),
        empty: Vec::new(),
        from: Vec::new(),
        leaves: Vec::new(),
        copies: HashMap::new(),
    };
    let (begin, end) = (places.state(), places.state());
    places.walk(&start, begin, end, None);
    let beside = places.beside(text, begin)?;
    let mut rewriting = Rewriting { changes: HashMap::new(), names: BTreeMap::new() };
    for (leaf, mut lazy) in beside {
        // One that matches the empty text is over before anything else begins.
        lazy.retain(|&body| !places.languages.is_nullable(body));
        if places.changes(text, leaf, &lazy)? {
            let Leaf { expr, lazy: own, .. } = places.leaves[leaf];
            let change = rewriting.changes.entry(std::ptr::from_ref(expr)).or_insert((own.is_some(), BTreeSet::new()));
            change.1.extend(lazy);
        }
    }
    let start = rewriting.expr(&start);
    let mut out: BTreeMap<String, Expr> =
        rules.iter().map(|(name, body)| (name.clone(), rewriting.expr(body))).collect();
    for (set, name) in rewriting.names {
        let bodies = set.iter().filter_map(|language| places.bodies.get(language)).map(|&body| body.clone());
        out.insert(name, crate::build::choice(bodies));
    }
    Ok((start, out))
}

fn is_lazy(entry: &Entry<'_>) -> bool {
    entry.attributes.is_some_and(|attributes| attributes.lazy.is_some() || attributes.stop.is_some())
}

/// What is read in one piece.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// A regular language.
    Terminal,
    /// What is not looked into: inline JSON, or a grammar of its own.
    Closed(&'static str),
    Ignored,
    /// No text.
    Token,
}

#[derive(Clone, Copy)]
struct Leaf<'e> {
    expr: &'e Expr,
    kind: Kind,
    /// Its texts, or more.
    language: Language,
    /// Of a lazy one: where it is defined, and its body.
    lazy: Option<(usize, Language)>,
    to: usize,
}

/// The automaton over terminals.
struct Places<'e, 's> {
    scope: &'s Scope<'s>,
    ignore: &'s str,
    rules: &'e BTreeMap<String, Expr>,
    languages: Languages,
    terminals: HashMap<&'e str, Language>,
    /// The bodies of lazy terminals, of which they are the shortest texts.
    bodies: BTreeMap<Language, &'e Expr>,
    /// Steps that read nothing, and the leaves that begin, by state.
    empty: Vec<Vec<usize>>,
    from: Vec<Vec<usize>>,
    leaves: Vec<Leaf<'e>>,
    /// The first and the last state of the copy of each rule that is being made, or that is shared.
    copies: HashMap<&'e str, (usize, usize)>,
}

impl<'e> Places<'e, '_> {
    fn state(&mut self) -> usize {
        self.empty.push(Vec::new());
        self.from.push(Vec::new());
        self.empty.len() - 1
    }

    /// Adds an expression between two states. `lazy` is where the lazy rule around it is defined.
    fn walk(&mut self, expr: &'e Expr, from: usize, to: usize, lazy: Option<usize>) {
        stacker::maybe_grow(64 << 10, 1 << 20, || self.walk_into(expr, from, to, lazy));
    }

    fn walk_into(&mut self, expr: &'e Expr, from: usize, to: usize, lazy: Option<usize>) {
        match expr {
            Expr::Nothing => {}
            Expr::Sequence(items) => {
                let mut at = from;
                for item in items {
                    let next = self.state();
                    self.walk(item, at, next, lazy);
                    at = next;
                }
                self.empty[at].push(to);
            }
            Expr::Choice(items) => items.iter().for_each(|item| self.walk(item, from, to, lazy)),
            Expr::Repeat { body, min, .. } => {
                let (first, last) = (self.state(), self.state());
                self.empty[from].push(first);
                self.walk(body, first, last, lazy);
                self.empty[last].extend([first, to]);
                if *min == 0 {
                    self.empty[from].push(to);
                }
            }
            Expr::MaxTokens { body, .. } | Expr::Named { body, .. } => self.walk(body, from, to, lazy),
            Expr::Rule(name) if name == self.ignore => self.leaf(expr, Kind::Ignored, from, to, None),
            Expr::Rule(name) => {
                let entry = self.scope.entries.get(name.as_str());
                let counts = entry.and_then(|entry| entry.attributes).is_some_and(|attributes| attributes.counts());
                if entry.is_some_and(|entry| entry.is_terminal) && !counts {
                    return self.leaf(expr, Kind::Terminal, from, to, lazy);
                }
                let lazy = lazy.or(entry.filter(|entry| is_lazy(entry)).map(|entry| entry.at));
                self.copy(name, from, to, lazy);
            }
            Expr::Token { .. } => self.leaf(expr, Kind::Token, from, to, None),
            Expr::JsonSchema { .. } | Expr::SchemaString { .. } => {
                self.leaf(expr, Kind::Closed("Inline JSON"), from, to, None);
            }
            Expr::Grammar(_) => self.leaf(expr, Kind::Closed("A grammar in place"), from, to, None),
            _ => self.leaf(expr, Kind::Terminal, from, to, lazy),
        }
    }

    /// A copy of a rule between two states.
    fn copy(&mut self, name: &'e str, from: usize, to: usize, lazy: Option<usize>) {
        let Some(body) = self.rules.get(name) else { return };
        let known = self.copies.get(name).copied();
        let (first, last) = match known {
            Some(known) => known,
            None => {
                let ends = (self.state(), self.state());
                self.copies.insert(name, ends);
                self.walk(body, ends.0, ends.1, lazy);
                if self.empty.len() < MOST_STATES {
                    self.copies.remove(name);
                }
                ends
            }
        };
        self.empty[from].push(first);
        self.empty[last].push(to);
    }

    fn leaf(&mut self, expr: &'e Expr, kind: Kind, from: usize, to: usize, lazy: Option<usize>) {
        let language = match kind {
            Kind::Terminal | Kind::Ignored => self.language(expr),
            Kind::Closed("Inline JSON") => {
                let first =
                    self.languages.set(" \t\r\n{[\"-0123456789tfn".chars().map(|c| (c as u32, c as u32)).collect());
                self.languages.concat(first, Language::ALL)
            }
            Kind::Closed(_) => Language::ALL,
            Kind::Token => Language::EMPTY,
        };
        let lazy = lazy.or_else(|| match unwrapped(expr) {
            Expr::Rule(name) => {
                self.scope.entries.get(name.as_str()).filter(|entry| is_lazy(entry)).map(|entry| entry.at)
            }
            _ => None,
        });
        let lazy = lazy.filter(|_| kind == Kind::Terminal).map(|at| {
            let body = self.body(expr);
            let language = self.language(body);
            self.bodies.entry(language).or_insert(body);
            (at, language)
        });
        if self.languages.is_nullable(language) {
            self.empty[from].push(to);
        }
        self.from[from].push(self.leaves.len());
        self.leaves.push(Leaf { expr, kind, language, lazy, to });
    }

    /// What a lazy terminal has the shortest texts of.
    fn body(&self, expr: &'e Expr) -> &'e Expr {
        match expr {
            Expr::Longest(body) | Expr::Shortest(body) => self.body(body),
            Expr::Rule(name) => self.rules.get(name).map_or(expr, |body| self.body(body)),
            _ => expr,
        }
    }

    /// The language of a terminal; where it is not known, every text.
    fn language(&mut self, expr: &'e Expr) -> Language {
        stacker::maybe_grow(64 << 10, 1 << 20, || self.find_language(expr))
    }

    fn find_language(&mut self, expr: &'e Expr) -> Language {
        match expr {
            Expr::Nothing => Language::EMPTY,
            Expr::Text(text) => self.languages.literal(text),
            Expr::Chars(ranges) => self.languages.set(ranges.iter().copied().collect::<CharSet>()),
            Expr::Sequence(items) => {
                let items: Vec<_> = items.iter().map(|item| self.language(item)).collect();
                self.languages.sequence(items)
            }
            Expr::Choice(items) => {
                let items: Vec<_> = items.iter().map(|item| self.language(item)).collect();
                self.languages.union(items)
            }
            Expr::And(items) => {
                let items: Vec<_> = items.iter().map(|item| self.language(item)).collect();
                self.languages.and(items)
            }
            Expr::Repeat { body, min, max } => {
                let body = self.language(body);
                self.languages.repeat(body, *min, max.unwrap_or(UNBOUNDED))
            }
            Expr::Not(body) => {
                let body = self.language(body);
                self.languages.not(body)
            }
            Expr::Shortest(body) => {
                let body = self.language(body);
                let longer = self.longer(body);
                self.languages.difference(body, longer)
            }
            Expr::Longest(body) => self.language(body),
            Expr::Rule(name) => {
                let Some((name, body)) = self.rules.get_key_value(name) else { return Language::ALL };
                if let Some(&known) = self.terminals.get(name.as_str()) {
                    return known;
                }
                let language = self.language(body);
                self.terminals.insert(name, language);
                language
            }
            Expr::Regex { pattern, flags, syntax } => {
                let dialect = match syntax {
                    RegexSyntax::Ecma => pattern::Dialect::Ecma,
                    RegexSyntax::Python => pattern::Dialect::Python,
                };
                let parsed = pattern::Options::with_flags(dialect, flags)
                    .and_then(|options| pattern::parse(pattern, &options))
                    .and_then(|parsed| parsed.full(&mut self.languages));
                parsed.unwrap_or(Language::ALL)
            }
            _ => Language::ALL,
        }
    }

    /// The texts of a language with more behind them.
    fn longer(&mut self, language: Language) -> Language {
        let more = self.languages.difference(Language::ALL, Language::EPSILON);
        self.languages.concat(language, more)
    }

    /// Whether two languages have a text in common; where it is not found out, they may.
    fn meet(&mut self, a: Language, b: Language) -> bool {
        let both = self.languages.and([a, b]);
        self.languages.is_viable(both).unwrap_or(true)
    }

    /// The lazy terminals, by their bodies, that may begin where each leaf does.
    fn beside(&mut self, text: &str, begin: usize) -> Result<BTreeMap<usize, BTreeSet<Language>>, GrammarError> {
        let mut begins: HashMap<usize, Vec<usize>> = HashMap::new();
        let mut meet: HashMap<(usize, usize), bool> = HashMap::new();
        let mut beside: BTreeMap<usize, BTreeSet<Language>> = BTreeMap::new();
        let (mut open, mut seen) = (vec![(begin, begin)], HashSet::from([(begin, begin)]));
        while let Some((a, b)) = open.pop() {
            for state in [a, b] {
                begins.entry(state).or_insert_with(|| self.begins(state));
            }
            for &p in &begins[&a] {
                for &q in &begins[&b] {
                    let (first, second) = (self.leaves[p], self.leaves[q]);
                    for (leaf, other) in [(p, second), (q, first)] {
                        if let Some((_, body)) = other.lazy {
                            beside.entry(leaf).or_default().insert(body);
                        }
                    }
                    // Where a lazy one ends, no other kind is left.
                    let together = first.lazy.is_some() == second.lazy.is_some()
                        && (first.kind == Kind::Token) == (second.kind == Kind::Token)
                        && (p == q
                            || first.kind == Kind::Token
                            || *meet
                                .entry((p.min(q), p.max(q)))
                                .or_insert_with(|| self.meet(first.language, second.language)));
                    let next = (first.to.min(second.to), first.to.max(second.to));
                    if together && seen.insert(next) {
                        open.push(next);
                    }
                }
            }
            if seen.len() > MOST_PAIRS {
                let message = "Too many terminals may begin beside lazy ones";
                return Err(GrammarError::at(text, 0, message).with_hint("Begin the rules with different terminals"));
            }
        }
        Ok(beside)
    }

    /// The leaves that may come next from a state.
    fn begins(&self, state: usize) -> Vec<usize> {
        let (mut open, mut seen, mut out) = (vec![state], HashSet::from([state]), Vec::new());
        while let Some(state) = open.pop() {
            out.extend_from_slice(&self.from[state]);
            open.extend(self.empty[state].iter().copied().filter(|&next| seen.insert(next)));
        }
        out
    }

    /// Whether a leaf is kept from something by the lazy terminals beside it.
    fn changes(&mut self, text: &str, leaf: usize, lazy: &BTreeSet<Language>) -> Result<bool, GrammarError> {
        let Leaf { kind, language, lazy: own, .. } = self.leaves[leaf];
        let others = lazy.iter().copied().filter(|&other| own.is_none_or(|(_, body)| body != other));
        let others = self.languages.union(others.collect::<Vec<_>>());
        let past = if own.is_some() { self.longer(others) } else { self.languages.concat(others, Language::ALL) };
        if kind == Kind::Token || !self.meet(language, past) {
            return Ok(false);
        }
        let at = self.leaves.iter().filter_map(|leaf| leaf.lazy).find(|(_, body)| lazy.contains(body));
        let at = at.map_or(0, |(at, _)| at);
        let refused = |message: String, hint: &str| Err(GrammarError::at(text, at, message).with_hint(hint));
        match kind {
            Kind::Closed(what) => refused(
                format!("{what} may begin where this lazy terminal may, which would cut it short"),
                "Let a terminal come before one of them that tells which it is",
            ),
            Kind::Ignored => refused(
                "Ignored text may begin where this lazy terminal may, and hold what ends it".to_string(),
                "Let it end with a text that is not ignored",
            ),
            _ if lazy.iter().any(|&body| self.languages.looks(body)) => refused(
                "This lazy terminal looks beyond its end, so it cannot be told where others have to make room for it"
                    .to_string(),
                "Write it without look-around",
            ),
            _ => Ok(true),
        }
    }
}

/// A terminal without what says how long it is.
fn unwrapped(expr: &Expr) -> &Expr {
    match expr {
        Expr::Longest(body) => unwrapped(body),
        _ => expr,
    }
}

/// What becomes of the places where terminals are written.
struct Rewriting {
    /// Whether the terminal is lazy itself, and the bodies of the lazy terminals that come before it.
    changes: HashMap<*const Expr, (bool, BTreeSet<Language>)>,
    /// The rules of such sets.
    names: BTreeMap<BTreeSet<Language>, String>,
}

impl Rewriting {
    fn expr(&mut self, expr: &Expr) -> Expr {
        stacker::maybe_grow(64 << 10, 1 << 20, || self.rewrite(expr))
    }

    fn rewrite(&mut self, expr: &Expr) -> Expr {
        if let Some((is_lazy, set)) = self.changes.get(&std::ptr::from_ref(expr)) {
            let number = self.names.len() + 1;
            let name = self.names.entry(set.clone()).or_insert_with(|| format!("%lazy{number}")).clone();
            // A lazy terminal may end where another one does, and no other may.
            let rest = if *is_lazy { Expr::EMPTY } else { Expr::Nothing };
            let past = Expr::Sequence(vec![Expr::Rule(name), Expr::Not(Box::new(rest))]);
            let kept = Expr::And(vec![unwrapped(expr).clone(), Expr::Not(Box::new(past))]);
            // Elsewhere a terminal might end early so that the rest is read as another one.
            return Expr::Longest(Box::new(kept));
        }
        let mut all = |items: &[Expr]| items.iter().map(|item| self.expr(item)).collect::<Vec<_>>();
        match expr {
            Expr::Sequence(items) => Expr::Sequence(all(items)),
            Expr::Choice(items) => Expr::Choice(all(items)),
            Expr::Repeat { body, min, max } => Expr::Repeat { body: Box::new(self.expr(body)), min: *min, max: *max },
            Expr::MaxTokens { body, tokens } => Expr::MaxTokens { body: Box::new(self.expr(body)), tokens: *tokens },
            Expr::Named { kind, name, body } => {
                Expr::Named { kind: kind.clone(), name: name.clone(), body: Box::new(self.expr(body)) }
            }
            _ => expr.clone(),
        }
    }
}
