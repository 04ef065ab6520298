//! Terminals that are as long as they can be.
//!
//! A tokenizer of source code does not cut `returnx` into `return` and `x`, nor one name into two: a terminal is read as
//! far as it goes. What follows a terminal may therefore not begin like a continuation of it. That is a regular condition
//! on sequences of terminals, so it is built into the rules before anything is read, and there is no dead end to be found
//! later: after a terminal the grammar is in a *state*, the texts that the next text must not begin with (what could have
//! gone on with the terminal, [`State`]); a rule `A` becomes the rules `A` from one state to another, as a context-free
//! language is intersected with a regular one (Bar-Hillel, Perles and Shamir, 1961). Most rules are used in one or two
//! states.
//!
//! The state after an alternative of a terminal is the union over all its texts, which forbids a little more than each text
//! alone would.

use super::nodes::{FxMap, Node, NodeId, Nodes, PartId, RuleId, fewer};
use crate::error::CompileError;
use hashbrown::HashMap;
use punchcard_automata::languages::UNBOUNDED;
use punchcard_automata::{CharSet, Language, work};
use punchcard_grammar::GrammarError;
use punchcard_schema::SchemaError;

/// Texts, none of them empty, with which what follows must not begin.
type State = Language;

const NONE: State = Language::EMPTY;

/// What terminals become, and where rules lead.
struct Rewriting<'a> {
    nodes: &'a mut Nodes,
    terminals: FxMap<(Language, Language, State), (Language, State)>,
    /// The states that a rule can end in, for each that it begins in. Grows to a fixpoint.
    ends: FxMap<(RuleId, State), Vec<State>>,
    /// States that a node can end in, as far as the states of rules were known.
    known: FxMap<(NodeId, State), Vec<State>>,
    /// The rule whose ends are being found, and those whose ends are to be found; `None` is the start.
    current: Option<RuleFrom>,
    open: Vec<Option<RuleFrom>>,
    /// Who asked for the ends of a rule.
    users: FxMap<RuleFrom, Vec<Option<RuleFrom>>>,
    built: FxMap<(NodeId, State, State), NodeId>,
    variants: FxMap<(RuleId, State, State), RuleId>,
    loops: FxMap<(NodeId, State, State), RuleId>,
    /// Repetitions that are written out: the same rounds are left after different first ones.
    rounds: FxMap<(NodeId, u32, u32, State, State), NodeId>,
    /// Repetitions of terminals, by the state that they begin in: what they read, and the state behind it.
    runs: FxMap<(NodeId, State), Option<Ways>>,
    /// The characters that anything can begin with, but for repetitions of terminals.
    firsts: CharSet,
    /// The characters that JSON values can begin with.
    parts: Vec<CharSet>,
    /// Numbers for rules in states, and for groups of ways.
    places: FxMap<(u32, State), u32>,
    pending: Vec<Pending>,
    recursive: Vec<bool>,
}

/// A rule, and the state that it begins in.
type RuleFrom = (RuleId, State);

/// Languages that lead to states.
type Ways = Vec<(State, Language)>;

enum Pending {
    Rule(RuleId, RuleId, State, State),
    Loop(NodeId, RuleId, State, State),
}

/// States of terminals that are told apart while it is found out where they lead.
const MOST_STEPS: usize = 20_000;
/// Continuations of one terminal that are united; beyond them only their first characters count.
const MOST_CONTINUATIONS: usize = 16;
/// Rules, each for a state that it begins in.
const MOST_RULES: usize = 50_000;
/// States of a repetition of terminals that is made one language.
const MOST_RUN_STATES: usize = 8;
/// Rounds of a counted repetition that are written out.
const MOST_ROUNDS: u32 = 100;

/// Rewrites `start` and the rules that it uses. Nothing of it is left that has to be as long as it can. `parts` are the
/// characters that JSON values may begin with.
pub(crate) fn rewrite(nodes: &mut Nodes, parts: Vec<CharSet>, start: NodeId) -> Result<NodeId, CompileError> {
    let edges: Vec<Vec<usize>> = (0..nodes.rule_count())
        .map(|rule| nodes.rules_in(nodes.body(RuleId(rule as u32))).into_iter().map(|rule| rule.0 as usize).collect())
        .collect();
    let mut recursive = vec![false; edges.len()];
    for group in super::recursion::groups(&edges) {
        if group.len() > 1 || edges[group[0]].contains(&group[0]) {
            group.into_iter().for_each(|rule| recursive[rule] = true);
        }
    }
    let firsts = firsts(nodes, &parts, start)?;
    let mut rewriting = Rewriting {
        nodes,
        terminals: HashMap::default(),
        ends: HashMap::default(),
        known: HashMap::default(),
        current: None,
        open: vec![None],
        users: HashMap::default(),
        built: HashMap::default(),
        variants: HashMap::default(),
        loops: HashMap::default(),
        rounds: HashMap::default(),
        runs: HashMap::default(),
        firsts,
        parts,
        places: HashMap::default(),
        pending: Vec::new(),
        recursive,
    };
    rewriting.find_ends(start)?;
    let mut out = Vec::new();
    for end in rewriting.ends_of(start, NONE)? {
        out.push(rewriting.build(start, NONE, end)?);
    }
    while let Some(pending) = rewriting.pending.pop() {
        rewriting.finish(pending)?;
    }
    Ok(rewriting.nodes.choice(out))
}

fn deeper<R>(go: impl FnOnce() -> R) -> R {
    stacker::maybe_grow(64 << 10, 1 << 20, go)
}

impl Rewriting<'_> {
    /// Finds the states that rules can end in. A rule is asked again whenever one that it uses can end in more.
    fn find_ends(&mut self, start: NodeId) -> Result<(), CompileError> {
        let mut waiting = hashbrown::HashSet::new();
        while let Some(current) = self.open.pop() {
            waiting.remove(&current);
            work::spend(1).map_err(SchemaError::from)?;
            self.current = current;
            self.known.clear();
            let Some((rule, state)) = current else {
                self.ends_of(start, NONE)?;
                continue;
            };
            let ends = self.ends_of(self.nodes.body(rule), state)?;
            if self.ends.len() > MOST_RULES {
                let hint = "Terminals that could go on into each other are best separated by others";
                return Err(crate::limit_error("max_rules", MOST_RULES, hint).into());
            }
            let before = self.ends.entry((rule, state)).or_default();
            if *before != ends {
                *before = ends;
                let users = self.users.get(&(rule, state)).into_iter().flatten();
                self.open.extend(users.filter(|&&user| waiting.insert(user)));
            }
        }
        self.known.clear();
        Ok(())
    }

    /// What is left of a terminal in a state, each part with the state behind it. Alternatives of the terminal may go on
    /// in different ways, so they are taken one by one.
    fn terminal(
        &mut self,
        language: Language,
        state: State,
        longest: bool,
    ) -> Result<Vec<(Language, State)>, SchemaError> {
        if !longest && state == NONE {
            return Ok(vec![(language, NONE)]);
        }
        let alternatives = self.nodes.languages.alternatives(language);
        let own = if longest { language } else { Language::EMPTY };
        let mut out: Vec<(Language, State)> = Vec::new();
        for alternative in alternatives {
            let (allowed, end) = self.alternative(alternative, own, state)?;
            match out.iter_mut().find(|(_, known)| *known == end) {
                _ if allowed == Language::EMPTY => {}
                Some((known, _)) => *known = self.nodes.languages.union([*known, allowed]),
                None => out.push((allowed, end)),
            }
        }
        Ok(out)
    }

    /// The same for one alternative; `own` is the whole terminal, if it is as long as it can be.
    fn alternative(
        &mut self,
        language: Language,
        own: Language,
        state: State,
    ) -> Result<(Language, State), SchemaError> {
        if let Some(&known) = self.terminals.get(&(language, own, state)) {
            return Ok(known);
        }
        let languages = &mut self.nodes.languages;
        let mut allowed = languages.difference(language, Language::EPSILON);
        if state != NONE {
            let forbidden = languages.concat(state, Language::ALL);
            allowed = languages.difference(allowed, forbidden);
        }
        let result = if languages.is_viable(allowed)? {
            (allowed, self.behind(allowed, own, state)?)
        } else {
            (Language::EMPTY, NONE)
        };
        self.terminals.insert((language, own, state), result);
        Ok(result)
    }

    /// The state behind the texts `allowed`: what could have gone on with `own`, and what is left of `state`.
    fn behind(&mut self, allowed: Language, own: Language, state: State) -> Result<State, SchemaError> {
        let languages = &mut self.nodes.languages;
        let first = (allowed, own, state);
        let (mut open, mut seen, mut found) = (vec![first], hashbrown::HashSet::new(), Vec::new());
        seen.insert(first);
        while let Some((rest, own, forbidden)) = open.pop() {
            work::spend(1)?;
            if languages.is_nullable(rest) {
                let further = languages.difference(own, Language::EPSILON);
                for part in [further, forbidden] {
                    if languages.is_viable(part)? && !found.contains(&part) {
                        found.push(part);
                    }
                }
            }
            if seen.len() > MOST_STEPS {
                return Err(crate::limit_error("max_terminal_states", MOST_STEPS, "Simplify the terminals"));
            }
            let (a, b, c) = (languages.transitions(rest), languages.transitions(own), languages.transitions(forbidden));
            for (lo, hi, rest) in a.over(0, 0x10_FFFF).collect::<Vec<_>>() {
                if !languages.is_viable(rest)? {
                    continue;
                }
                for (lo, hi, own) in b.over(lo, hi).collect::<Vec<_>>() {
                    for (_, _, forbidden) in c.over(lo, hi).collect::<Vec<_>>() {
                        let next = (rest, own, forbidden);
                        if seen.insert(next) {
                            open.push(next);
                        }
                    }
                }
            }
        }
        if found.len() <= MOST_CONTINUATIONS {
            return Ok(languages.union(found));
        }
        // Forbidding every text that begins like one of them forbids each of them.
        let mut ranges = Vec::new();
        for part in found {
            let transitions = languages.transitions(part);
            for (lo, hi, target) in transitions.over(0, 0x10_FFFF).collect::<Vec<_>>() {
                if languages.is_viable(target)? {
                    ranges.push((lo, hi));
                }
            }
        }
        Ok(languages.set(CharSet::new(ranges)))
    }

    /// Whether a JSON value could begin with a forbidden text: it is not looked into, so it may not follow then.
    fn forbids_json(&mut self, part: PartId, state: State) -> Result<bool, SchemaError> {
        let firsts = self.parts[part.0 as usize].clone();
        Ok(!self.is_idle(state, &firsts)?)
    }

    /// The states that a node can end in if it begins in `state`, sorted.
    fn ends_of(&mut self, node: NodeId, state: State) -> Result<Vec<State>, CompileError> {
        if let Some(known) = self.known.get(&(node, state)) {
            return Ok(known.clone());
        }
        let mut ends = match self.nodes.get(node).clone() {
            Node::Terminal(language) => self.ends_of_terminal(language, state, false)?,
            Node::Longest(language) => self.ends_of_terminal(language, state, true)?,
            Node::Json(part) => {
                if self.forbids_json(part, state)? {
                    vec![]
                } else {
                    vec![NONE]
                }
            }
            Node::Token(_) => vec![NONE],
            Node::LimitEnd | Node::Begin(_) | Node::End(_) => vec![state],
            Node::Limit(body, _) => deeper(|| self.ends_of(body, state))?,
            Node::Sequence(..) => {
                let (mut at, mut states) = (node, vec![state]);
                loop {
                    let (head, tail) = match *self.nodes.get(at) {
                        Node::Sequence(head, tail) => (head, Some(tail)),
                        _ => (at, None),
                    };
                    let mut next = Vec::new();
                    for state in states {
                        next.extend(deeper(|| self.ends_of(head, state))?);
                    }
                    next.sort_unstable();
                    next.dedup();
                    states = next;
                    match tail {
                        Some(tail) => at = tail,
                        None => break,
                    }
                }
                states
            }
            Node::Choice(items) => {
                let mut states = Vec::new();
                for &item in &items {
                    states.extend(deeper(|| self.ends_of(item, state))?);
                }
                states
            }
            Node::Repeat(body, min, max) => self.ends_of_repeat(body, min, max, state)?,
            Node::Rule(rule) => {
                let key = (rule, state);
                let users = self.users.entry(key).or_default();
                if !users.contains(&self.current) {
                    users.push(self.current);
                }
                let open = &mut self.open;
                let new = || {
                    open.push(Some(key));
                    Vec::new()
                };
                self.ends.entry(key).or_insert_with(new).clone()
            }
        };
        ends.sort_unstable();
        ends.dedup();
        self.known.insert((node, state), ends.clone());
        Ok(ends)
    }

    fn ends_of_terminal(&mut self, language: Language, state: State, longest: bool) -> Result<Vec<State>, SchemaError> {
        let mut ends = if self.nodes.languages.is_nullable(language) { vec![state] } else { vec![] };
        ends.extend(self.terminal(language, state, longest)?.into_iter().map(|(_, end)| end));
        Ok(ends)
    }

    /// A repetition of terminals, such as ignored text, is regular: what leads to each state is one language. `None` for
    /// other bodies. States that forbid only what nothing but such repetitions can begin with are as good as none behind it.
    fn run(&mut self, body: NodeId, from: State) -> Result<Option<Ways>, SchemaError> {
        if let Some(known) = self.runs.get(&(body, from)) {
            return Ok(known.clone());
        }
        let run = self.find_run(body, from)?;
        self.runs.insert((body, from), run.clone());
        Ok(run)
    }

    fn find_run(&mut self, body: NodeId, from: State) -> Result<Option<Ways>, SchemaError> {
        let Some(terminals) = terminals_of(self.nodes, body) else { return Ok(None) };
        // One round: from each state that is reached, the languages to others.
        let (mut states, mut ways): (Vec<State>, Vec<Vec<Language>>) = (vec![from], Vec::new());
        while let Some(&state) = states.get(ways.len()) {
            let mut row = vec![Language::EMPTY; states.len()];
            for &(language, longest) in &terminals {
                for (allowed, end) in self.terminal(language, state, longest)? {
                    let languages = &mut self.nodes.languages;
                    let allowed = languages.difference(allowed, Language::EPSILON);
                    let index = states.iter().position(|&known| known == end).unwrap_or_else(|| {
                        states.push(end);
                        states.len() - 1
                    });
                    row.resize(states.len(), Language::EMPTY);
                    row[index] = languages.union([row[index], allowed]);
                }
            }
            ways.push(row);
            if states.len() > MOST_RUN_STATES {
                return Ok(None);
            }
        }
        let languages = &mut self.nodes.languages;
        ways.iter_mut().for_each(|row| row.resize(states.len(), Language::EMPTY));
        // Any number of rounds (Kleene, 1956): by way of one state more at a time.
        for via in 0..states.len() {
            work::spend(1)?;
            let again = languages.star(ways[via][via]);
            let before = ways.clone();
            for (i, row) in ways.iter_mut().enumerate() {
                for (j, way) in row.iter_mut().enumerate() {
                    let detour = languages.concat(again, before[via][j]);
                    let detour = languages.concat(before[i][via], detour);
                    *way = languages.union([*way, detour]);
                }
            }
        }
        let mut out: Ways = vec![(from, Language::EPSILON)];
        for (&state, &way) in states.iter().zip(&ways[0]) {
            if way == Language::EMPTY {
                continue;
            }
            let firsts = self.firsts.clone();
            let state = if self.is_idle(state, &firsts)? { NONE } else { state };
            match out.iter_mut().find(|(known, _)| *known == state) {
                Some((_, known)) => *known = self.nodes.languages.union([*known, way]),
                None => out.push((state, way)),
            }
        }
        Ok(Some(out))
    }

    /// Whether a state forbids nothing that begins with one of some characters.
    fn is_idle(&mut self, state: State, firsts: &CharSet) -> Result<bool, SchemaError> {
        let transitions = self.nodes.languages.transitions(state);
        for (lo, hi, target) in transitions.over(0, 0x10_FFFF) {
            if self.nodes.languages.is_viable(target)? && !firsts.intersection(&CharSet::new([(lo, hi)])).is_empty() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// All states that rounds of a body lead to, from the least count on.
    fn ends_of_repeat(&mut self, body: NodeId, min: u32, max: u32, state: State) -> Result<Vec<State>, CompileError> {
        if min == 0
            && max == UNBOUNDED
            && let Some(run) = self.run(body, state)?
        {
            return Ok(run.into_iter().map(|(state, _)| state).collect());
        }
        let (mut here, mut out) = (vec![state], Vec::new());
        let mut round = 0;
        loop {
            work::spend(1).map_err(SchemaError::from)?;
            if round >= min {
                let before = out.len();
                out.extend(here.iter().copied().filter(|state| !out.contains(state)).collect::<Vec<_>>());
                if out.len() == before && round > min {
                    return Ok(out);
                }
            }
            if round == max {
                return Ok(out);
            }
            let mut next = Vec::new();
            for &state in &here {
                next.extend(deeper(|| self.ends_of(body, state))?);
            }
            next.sort_unstable();
            next.dedup();
            if next == here && round < min {
                // Every further round leads to the same states.
                return Ok(next);
            }
            here = next;
            round += 1;
            if round > MOST_ROUNDS && max != UNBOUNDED {
                return Err(too_many_rounds());
            }
        }
    }

    /// The node from one state to another.
    fn build(&mut self, node: NodeId, from: State, to: State) -> Result<NodeId, CompileError> {
        if let Some(&known) = self.built.get(&(node, from, to)) {
            return Ok(known);
        }
        if !self.ends_of(node, from)?.contains(&to) {
            return Ok(NodeId::NOTHING);
        }
        let built = match self.nodes.get(node).clone() {
            Node::Terminal(language) => self.build_terminal(language, from, to, false)?,
            Node::Longest(language) => self.build_terminal(language, from, to, true)?,
            Node::Json(_) | Node::Token(_) | Node::LimitEnd | Node::Begin(_) | Node::End(_) => node,
            Node::Limit(body, tokens) => {
                let body = deeper(|| self.build(body, from, to))?;
                self.nodes.limit(body, tokens)
            }
            Node::Sequence(head, tail) => {
                let mut items = Vec::new();
                for between in self.ends_of(head, from)? {
                    if self.ends_of(tail, between)?.contains(&to) {
                        let head = deeper(|| self.build(head, from, between))?;
                        let tail = deeper(|| self.build(tail, between, to))?;
                        items.push(self.nodes.sequence(head, tail));
                    }
                }
                self.nodes.choice(items)
            }
            Node::Choice(items) => {
                let mut built = Vec::new();
                for &item in &items {
                    built.push(deeper(|| self.build(item, from, to))?);
                }
                self.nodes.choice(built)
            }
            Node::Repeat(body, min, max) => self.build_repeat(body, min, max, from, to, 0)?,
            Node::Rule(rule) => self.build_rule(rule, from, to)?,
        };
        self.built.insert((node, from, to), built);
        Ok(built)
    }

    fn build_terminal(
        &mut self,
        language: Language,
        from: State,
        to: State,
        longest: bool,
    ) -> Result<NodeId, CompileError> {
        let mut items = Vec::new();
        if from == to && self.nodes.languages.is_nullable(language) {
            items.push(NodeId::EMPTY);
        }
        for (allowed, end) in self.terminal(language, from, longest)? {
            if end == to {
                items.push(self.nodes.terminal(allowed));
            }
        }
        Ok(self.nodes.choice(items))
    }

    fn build_repeat(
        &mut self,
        body: NodeId,
        min: u32,
        max: u32,
        from: State,
        to: State,
        round: u32,
    ) -> Result<NodeId, CompileError> {
        if min == 0
            && max == UNBOUNDED
            && let Some(run) = self.run(body, from)?
        {
            let way = run.into_iter().find(|&(state, _)| state == to);
            return Ok(way.map_or(NodeId::NOTHING, |(_, language)| self.nodes.terminal(language)));
        }
        let ends = self.ends_of(body, from)?;
        if ends == [from] {
            // The same in each round.
            if to != from {
                return Ok(NodeId::NOTHING);
            }
            let body = deeper(|| self.build(body, from, from))?;
            return Ok(self.nodes.repeat(body, min, max));
        }
        if round > MOST_ROUNDS {
            return Err(too_many_rounds());
        }
        if min == 0 && max == UNBOUNDED {
            if let Some(&rule) = self.loops.get(&(body, from, to)) {
                return Ok(self.nodes.rule(rule));
            }
            let rule = self.new_way(2 * body.index() as u32 + 1, (0, from), (0, to));
            self.nodes.set_nullable(rule, from == to);
            self.loops.insert((body, from, to), rule);
            self.pending.push(Pending::Loop(body, rule, from, to));
            return Ok(self.nodes.rule(rule));
        }
        if let Some(&known) = self.rounds.get(&(body, min, max, from, to)) {
            return Ok(known);
        }
        let mut items = Vec::new();
        if min == 0 && from == to {
            items.push(NodeId::EMPTY);
        }
        if max > 0 {
            for between in ends {
                let first = deeper(|| self.build(body, from, between))?;
                let rest =
                    deeper(|| self.build_repeat(body, min.saturating_sub(1), fewer(max), between, to, round + 1))?;
                items.push(self.nodes.sequence(first, rest));
            }
        }
        let built = self.nodes.choice(items);
        self.rounds.insert((body, min, max, from, to), built);
        Ok(built)
    }

    fn build_rule(&mut self, rule: RuleId, from: State, to: State) -> Result<NodeId, CompileError> {
        if !self.recursive[rule.0 as usize] {
            let body = deeper(|| self.build(self.nodes.body(rule), from, to))?;
            if self.nodes.is_simple(body) {
                return Ok(body);
            }
        }
        if let Some(&variant) = self.variants.get(&(rule, from, to)) {
            return Ok(self.nodes.rule(variant));
        }
        let variant = match self.nodes.climb(rule) {
            Some((group, below, above)) => self.new_way(2 * group, (below, from), (above, to)),
            None => self.nodes.new_rule(),
        };
        self.nodes.set_nullable(variant, from == to && self.nodes.is_rule_nullable(rule));
        self.variants.insert((rule, from, to), variant);
        self.pending.push(Pending::Rule(rule, variant, from, to));
        Ok(self.nodes.rule(variant))
    }

    fn new_way(&mut self, group: u32, from: (u32, State), to: (u32, State)) -> RuleId {
        let mut number = |place| {
            let count = self.places.len() as u32;
            *self.places.entry(place).or_insert(count)
        };
        let (from, to) = (number(from), number(to));
        self.nodes.new_climb(group, from, to)
    }

    fn finish(&mut self, pending: Pending) -> Result<(), CompileError> {
        match pending {
            Pending::Rule(rule, variant, from, to) => {
                let body = self.build(self.nodes.body(rule), from, to)?;
                self.nodes.set_body(variant, body);
            }
            Pending::Loop(body, rule, from, to) => {
                let mut items = if from == to { vec![NodeId::EMPTY] } else { Vec::new() };
                for between in self.ends_of(body, from)? {
                    let round = self.build(body, from, between)?;
                    let rest = self.build_repeat(body, 0, UNBOUNDED, between, to, 0)?;
                    items.push(self.nodes.sequence(round, rest));
                }
                let body = self.nodes.choice(items);
                self.nodes.set_body(rule, body);
            }
        }
        Ok(())
    }
}

/// The languages of a choice of terminals, and whether each is as long as it can be; `None` for other nodes, and for
/// languages that look beyond their end.
fn terminals_of(nodes: &Nodes, node: NodeId) -> Option<Vec<(Language, bool)>> {
    let terminal = |&node: &NodeId| match *nodes.get(node) {
        Node::Terminal(language) if !nodes.languages.looks(language) => Some((language, false)),
        Node::Longest(language) if !nodes.languages.looks(language) => Some((language, true)),
        _ => None,
    };
    match nodes.get(node) {
        Node::Choice(items) => items.iter().map(terminal).collect(),
        _ => Some(vec![terminal(&node)?]),
    }
}

/// The characters that anything in a node and its rules can begin with, but for repetitions of terminals.
fn firsts(nodes: &mut Nodes, parts: &[CharSet], start: NodeId) -> Result<CharSet, SchemaError> {
    let (mut ranges, mut open, mut seen) = (Vec::new(), vec![start], hashbrown::HashSet::new());
    while let Some(node) = open.pop() {
        if !seen.insert(node) {
            continue;
        }
        match nodes.get(node).clone() {
            Node::Terminal(language) | Node::Longest(language) => {
                let transitions = nodes.languages.transitions(language);
                for (lo, hi, target) in transitions.over(0, 0x10_FFFF) {
                    if nodes.languages.is_viable(target)? {
                        ranges.push((lo, hi));
                    }
                }
            }
            Node::Json(part) => ranges.extend_from_slice(parts[part.0 as usize].ranges()),
            Node::Sequence(head, tail) => open.extend([head, tail]),
            Node::Choice(items) => open.extend(items),
            Node::Repeat(body, 0, UNBOUNDED) if terminals_of(nodes, body).is_some() => {}
            Node::Repeat(body, ..) | Node::Limit(body, _) => open.push(body),
            Node::Rule(rule) => open.push(nodes.body(rule)),
            Node::Token(_) | Node::LimitEnd | Node::Begin(_) | Node::End(_) => {}
        }
    }
    Ok(CharSet::new(ranges))
}

fn too_many_rounds() -> CompileError {
    let message =
        format!("A repetition of more than {MOST_ROUNDS} rounds holds terminals that could go on into each other");
    GrammarError::new(message).with_hint("Separate its rounds by a terminal, or repeat without a bound").into()
}
