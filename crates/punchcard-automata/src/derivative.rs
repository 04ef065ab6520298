//! Transitions: the derivative of an expression by one character, for all characters at once.
//!
//! The derivative (Brzozowski, 1964) is taken in continuation-passing form: `consume(r, k)` is what is left of `r · k`
//! after `c`, given that `c` was consumed inside `r`; `unread(r)` says of which rests of the text it is true that `r` may
//! match nothing here (`ALL` where no assertion is in the way). So a look-ahead becomes an intersection with everything
//! that follows, also from within a loop, and a look-behind is a language that is stepped along with the text.
//!
//! Expressions share parts, so nothing here may walk one as if it were a tree: the alternatives of a derivative are
//! gathered with a set of those that were met, and derivatives of parts of intersections and complements are remembered.

use crate::alphabet::Alphabet;
use crate::charset::{CharSet, MAX};
use crate::languages::{FxMap, Language, Languages, Node, UNBOUNDED};
use crate::machine::Machine;
use crate::work;
use hashbrown::HashSet;
use rustc_hash::FxBuildHasher;
use std::sync::Arc;

/// No characters.
const SURROGATES: std::ops::RangeInclusive<u32> = 0xD800..=0xDFFF;

/// What one state does on every character: `targets[i]` for code points from `starts[i]` up to the next start.
/// `starts[0]` is 0. Neighbours with equal targets are merged.
#[derive(Debug)]
pub struct Transitions {
    starts: Box<[u32]>,
    targets: Box<[Language]>,
}

impl Transitions {
    /// The state after code point `c`.
    pub fn target(&self, c: u32) -> Language {
        self.targets[self.starts.partition_point(|&start| start <= c) - 1]
    }

    /// The states after the code points `lo..=hi`, in order, with the ranges that lead there.
    pub fn over(&self, lo: u32, hi: u32) -> impl Iterator<Item = (u32, u32, Language)> {
        let first = self.starts.partition_point(|&start| start <= lo) - 1;
        (first..self.starts.len()).map_while(move |i| {
            let start = self.starts[i].max(lo);
            let end = self.starts.get(i + 1).map_or(MAX, |&next| next - 1).min(hi);
            (start <= hi).then_some((start, end, self.targets[i]))
        })
    }

    /// All targets, with repetitions.
    pub fn targets(&self) -> &[Language] {
        &self.targets
    }

    pub(crate) fn memory_size(&self) -> usize {
        8 * self.starts.len() + 48
    }
}

impl Languages {
    /// What is left of the language after the character `c`.
    pub fn step(&mut self, id: Language, c: u32) -> Language {
        match self.transitions[id.index()] {
            Some(ref t) => t.target(c),
            None => {
                self.memory.trim();
                self.derivative(id, c)
            }
        }
    }

    /// The state after the character `c`, which is remembered.
    ///
    /// As `transitions(id).target(c)`, but a table for all characters is made only when a state was asked about several: of
    /// the states that one text or token reaches, most are left by a single character.
    pub fn next(&mut self, id: Language, c: u32) -> Language {
        const SEVERAL: u8 = 8;
        if let Some(t) = &self.transitions[id.index()] {
            return t.target(c);
        }
        if let Some(&target) = self.steps.get(&(id, c)) {
            return target;
        }
        let asked = self.asked.entry(id).or_default();
        *asked += 1;
        if *asked >= SEVERAL {
            return self.transitions(id).target(c);
        }
        let target = self.step(id, c);
        self.steps.insert((id, c), target);
        target
    }

    /// The transitions of a state, computed once.
    pub fn transitions(&mut self, id: Language) -> Arc<Transitions> {
        if let Some(t) = &self.transitions[id.index()] {
            return t.clone();
        }
        let t = match *self.node(id) {
            Node::Texts { list, lo, hi, depth } => self.tabulate_texts(list, lo, hi, depth),
            _ => {
                self.memory.trim();
                let mut frontier = Frontier::default();
                self.frontier(id, &mut frontier);
                if self.facts(id).looks_behind {
                    self.trackers(id, &mut frontier);
                }
                self.tabulate(id, frontier)
            }
        };
        work::count(1 + t.targets.len() as u64);
        let t = Arc::new(t);
        self.heap += t.memory_size();
        self.transitions[id.index()] = Some(t.clone());
        t
    }

    /// The transitions of a list of texts, which are sorted: those that go on with the same character are neighbours.
    fn tabulate_texts(&mut self, list: u32, lo: u32, hi: u32, depth: u32) -> Transitions {
        let texts = self.lists[list as usize].texts();
        let next = |text: &str| text[depth as usize..].chars().next();
        let (mut starts, mut targets) = (vec![0], vec![Language::EMPTY]);
        let mut at = lo;
        while at < hi {
            let Some(c) = next(&texts[at as usize]) else {
                at += 1;
                continue;
            };
            let same = texts[at as usize..hi as usize].partition_point(|text| next(text) <= Some(c)) as u32;
            let target = if self.alphabet.as_ref().is_none_or(|alphabet| alphabet.contains(c as u32)) {
                self.texts_node(list, at, at + same, depth + c.len_utf8() as u32)
            } else {
                Language::EMPTY
            };
            if starts.last() == Some(&(c as u32)) {
                // The character behind the one before.
                targets.pop();
                starts.pop();
            }
            starts.push(c as u32);
            targets.push(target);
            if c as u32 != MAX {
                starts.push(c as u32 + 1);
                targets.push(Language::EMPTY);
            }
            at += same;
        }
        Transitions { starts: starts.into(), targets: targets.into() }
    }

    fn tabulate(&mut self, id: Language, mut frontier: Frontier) -> Transitions {
        frontier.sets.sort_unstable();
        frontier.sets.dedup();
        let mut starts = vec![0];
        for &s in &frontier.sets {
            for &(lo, hi) in self.sets[s as usize].ranges() {
                starts.push(lo);
                if hi < MAX {
                    starts.push(hi + 1);
                }
            }
        }
        for &c in &frontier.chars {
            starts.push(c);
            if c < MAX {
                starts.push(c + 1);
            }
        }
        let machines: Vec<Arc<dyn Machine>> =
            frontier.machines.iter().map(|&(id, _)| self.machines[id as usize].clone()).collect();
        let mut alphabets: Vec<&Alphabet> =
            machines.iter().zip(&frontier.machines).map(|(machine, (_, state))| machine.alphabet(state)).collect();
        alphabets.sort_unstable_by_key(|&alphabet| std::ptr::from_ref(alphabet));
        alphabets.dedup_by(|a, b| std::ptr::eq(*a, *b));
        alphabets.iter().for_each(|alphabet| starts.extend_from_slice(alphabet.starts()));
        if let Some(alphabet) = &self.alphabet {
            starts.extend(alphabet.ranges().iter().flat_map(|&(lo, hi)| [lo, hi + 1]).filter(|&start| start <= MAX));
        }
        if starts.iter().any(|start| SURROGATES.contains(start)) {
            // A set that ends before the surrogates does not say what is after them.
            starts.push(SURROGATES.end() + 1);
        }
        starts.sort_unstable();
        starts.dedup();
        // Characters of the same sets and classes that are in no list lead to the same state: one derivative for them all.
        frontier.chars.sort_unstable();
        let sets: Vec<CharSet> = frontier.sets.iter().map(|&s| self.sets[s as usize].clone()).collect();
        let mut known: hashbrown::HashMap<Vec<u64>, Language, rustc_hash::FxBuildHasher> = Default::default();
        let mut cursors = vec![0usize; sets.len() + alphabets.len()];
        let (set_words, mut signature) = (sets.len().div_ceil(64), Vec::new());
        let (mut out_starts, mut out_targets) = (Vec::new(), Vec::new());
        for &start in &starts {
            let outside = self.alphabet.as_ref().is_some_and(|alphabet| !alphabet.contains(start));
            let target = if outside || SURROGATES.contains(&start) {
                Language::EMPTY
            } else if frontier.chars.binary_search(&start).is_ok() {
                self.derivative(id, start)
            } else {
                signature.clear();
                signature.resize(set_words, 0u64);
                for (i, set) in sets.iter().enumerate() {
                    let ranges = set.ranges();
                    while cursors[i] < ranges.len() && ranges[cursors[i]].1 < start {
                        cursors[i] += 1;
                    }
                    if cursors[i] < ranges.len() && ranges[cursors[i]].0 <= start {
                        signature[i / 64] |= 1 << (i % 64);
                    }
                }
                for (cursor, alphabet) in cursors[sets.len()..].iter_mut().zip(&alphabets) {
                    while alphabet.starts().get(*cursor + 1).is_some_and(|&next| next <= start) {
                        *cursor += 1;
                    }
                    signature.push(alphabet.classes()[*cursor].into());
                }
                match known.get(&signature) {
                    Some(&target) => target,
                    None => {
                        let target = self.derivative(id, start);
                        known.insert(signature.clone(), target);
                        target
                    }
                }
            };
            if out_targets.last() != Some(&target) {
                out_starts.push(start);
                out_targets.push(target);
            }
        }
        Transitions { starts: out_starts.into(), targets: out_targets.into() }
    }

    /// The sets and characters that decide what the next character does.
    fn frontier(&self, id: Language, out: &mut Frontier) {
        if !self.is_leaf(id) && !out.met.insert(id) {
            return;
        }
        match self.node(id) {
            Node::Empty | Node::Epsilon | Node::Here => {}
            Node::Set(s) => out.sets.push(*s),
            Node::Concat(..) => {
                let mut at = id;
                while let Node::Concat(a, b) = *self.node(at) {
                    self.frontier(a, out);
                    if !self.facts(a).nullable && !self.facts(a).looks {
                        return;
                    }
                    at = b;
                    if matches!(self.node(at), Node::Concat(..)) && !out.met.insert(at) {
                        return;
                    }
                }
                self.frontier(at, out);
            }
            Node::Union(items) | Node::And(items) => items.iter().for_each(|&i| self.frontier(i, out)),
            Node::Not(a) | Node::Repeat(a, ..) => self.frontier(*a, out),
            Node::Look(_, a) => self.frontier(*a, out),
            Node::Machine(id, state) => out.machines.push((*id, state.clone())),
            Node::Texts { list, lo, hi, depth } => {
                let (mut texts, depth) = (self.lists[*list as usize].slice(*lo, *hi), *depth as usize);
                while let Some(first) = texts.first() {
                    let next = first[depth..].chars().next();
                    out.chars.extend(next.map(u32::from));
                    texts = &texts[texts.partition_point(|t| t[depth..].chars().next() <= next)..];
                }
            }
        }
    }

    /// The frontier of every look-behind, wherever it stands: all of them step with the text.
    fn trackers(&self, id: Language, out: &mut Frontier) {
        if !self.facts(id).looks_behind || !out.tracked.insert(id) {
            return;
        }
        match self.node(id) {
            Node::Look(look, a) => {
                if look.behind {
                    self.frontier(*a, out);
                }
                self.trackers(*a, out);
            }
            Node::Concat(..) => {
                let mut at = id;
                while let Node::Concat(a, b) = *self.node(at) {
                    self.trackers(a, out);
                    at = b;
                }
                self.trackers(at, out);
            }
            Node::Union(items) | Node::And(items) => items.iter().for_each(|&i| self.trackers(i, out)),
            Node::Not(a) | Node::Repeat(a, ..) => self.trackers(*a, out),
            _ => {}
        }
    }

    /// What is left of the language after `c`.
    pub(crate) fn derivative(&mut self, id: Language, c: u32) -> Language {
        self.consume(id, Language::EPSILON, c)
    }

    /// The same for `id · then`, consumed inside `id`, where that is a part of a state that other parts may share.
    fn part(&mut self, id: Language, then: Language, c: u32) -> Language {
        if self.is_leaf(id) {
            return self.consume(id, then, c);
        }
        if let Some(&known) = self.memory.parts.get(&(id, then, c)) {
            return known;
        }
        let rest = self.consume(id, then, c);
        self.memory.parts.insert((id, then, c), rest);
        rest
    }

    /// Whether the node has no parts.
    fn is_leaf(&self, id: Language) -> bool {
        !matches!(
            self.node(id),
            Node::Concat(..) | Node::Union(_) | Node::And(_) | Node::Not(_) | Node::Repeat(..) | Node::Look(..)
        )
    }

    /// What is left of `id · then` after `c`, consumed inside `id`.
    fn consume(&mut self, id: Language, then: Language, c: u32) -> Language {
        let mut alternatives = Alternatives::default();
        self.gather(id, then, c, &mut alternatives);
        match *alternatives.list.as_slice() {
            [] => Language::EMPTY,
            [one] => one,
            _ => self.union(alternatives.list),
        }
    }

    /// Adds the alternatives of `consume(id, then)`.
    fn gather(&mut self, id: Language, then: Language, c: u32, out: &mut Alternatives) {
        // Ways within one expression may be more than there is time for. What is left out is never seen: whoever asks is
        // refused by `check_limit` from now on.
        if self.check_limit().is_err() {
            return;
        }
        let rest = match self.node(id) {
            Node::Empty | Node::Epsilon | Node::Look(..) | Node::Here => return,
            Node::Set(s) => {
                if !self.sets[*s as usize].contains(c) {
                    return;
                }
                Language::EPSILON
            }
            Node::Concat(..) => return self.gather_concat(id, then, c, out),
            Node::Union(items) => {
                if out.met.insert((id, then)) {
                    let items = items.clone();
                    items.iter().for_each(|&i| self.gather(i, then, c, out));
                }
                return;
            }
            &Node::Repeat(a, min, max) => {
                if out.met.insert((id, then)) {
                    let less = if max == UNBOUNDED { max } else { max - 1 };
                    let again = self.repeat(a, min.saturating_sub(1), less);
                    let then = self.concat(again, then);
                    self.gather(a, then, c, out);
                }
                return;
            }
            Node::And(items) => {
                let items = items.clone();
                let mut parts = Vec::with_capacity(items.len());
                for &i in items.iter() {
                    let part = self.part(i, Language::EPSILON, c);
                    if part == Language::EMPTY {
                        return;
                    }
                    parts.push(part);
                }
                self.and(parts)
            }
            &Node::Not(a) => {
                let rest = self.part(a, Language::EPSILON, c);
                self.not(rest)
            }
            &Node::Texts { list, lo, hi, depth } => {
                let Some(next) = char::from_u32(c) else { return };
                let (texts, d) = (self.lists[list as usize].slice(lo, hi), depth as usize);
                let first = texts.partition_point(|t| t[d..].chars().next() < Some(next));
                let last = texts.partition_point(|t| t[d..].chars().next() <= Some(next));
                self.texts_node(list, lo + first as u32, lo + last as u32, depth + next.len_utf8() as u32)
            }
            Node::Machine(machine, state) => {
                let (machine, state) = (*machine, state.clone());
                self.step_machine(machine, &state, c)
            }
        };
        if rest != Language::EMPTY {
            let then = self.pass(then, c);
            let rest = self.concat(rest, then);
            out.list.push(rest);
        }
    }

    /// A concatenation may be as long as a pattern, so its spine is walked in a loop.
    fn gather_concat(&mut self, id: Language, then: Language, c: u32, out: &mut Alternatives) {
        let (mut at, mut condition) = (id, Language::ALL);
        loop {
            let (head, tail) = match *self.node(at) {
                Node::Concat(a, b) => (a, Some(b)),
                _ => (at, None),
            };
            let after = match tail {
                Some(tail) => self.concat(tail, then),
                None => then,
            };
            if condition == Language::ALL {
                self.gather(head, after, c, out);
            } else {
                let part = self.part(head, after, c);
                let part = self.given(condition, part, c);
                out.list.push(part);
            }
            let Some(tail) = tail else { break };
            let here = self.unread(head);
            condition = self.and([condition, here]);
            if condition == Language::EMPTY || (condition == Language::ALL && !out.met_tails.insert((tail, then))) {
                break;
            }
            at = tail;
        }
    }

    /// `rest`, provided that `c` and the rest are in `condition`.
    fn given(&mut self, condition: Language, rest: Language, c: u32) -> Language {
        if condition == Language::ALL || rest == Language::EMPTY {
            return rest;
        }
        let condition = self.part(condition, Language::EPSILON, c);
        self.and([condition, rest])
    }

    /// The rests of the text with which the expression may match nothing at this point.
    fn unread(&mut self, id: Language) -> Language {
        let facts = self.facts(id);
        if facts.here {
            // The point of a look-behind around this one is not the next character's business.
            return Language::EMPTY;
        }
        if !facts.looks {
            return if facts.nullable { Language::ALL } else { Language::EMPTY };
        }
        if let Some(&known) = self.memory.unread.get(&id) {
            return known;
        }
        let rest = self.unread_parts(id);
        self.memory.unread.insert(id, rest);
        rest
    }

    fn unread_parts(&mut self, id: Language) -> Language {
        match self.node(id) {
            &Node::Look(look, a) => {
                let rest = if look.behind { self.rests_here(a) } else { a };
                if look.negated { self.not(rest) } else { rest }
            }
            Node::Concat(..) => {
                let (mut at, mut parts) = (id, Vec::new());
                while let Node::Concat(a, b) = *self.node(at) {
                    let part = self.unread(a);
                    if part == Language::EMPTY {
                        return part;
                    }
                    parts.push(part);
                    at = b;
                }
                parts.push(self.unread(at));
                self.and(parts)
            }
            Node::Union(items) => {
                let items = items.clone();
                let parts: Vec<Language> = items.iter().map(|&i| self.unread(i)).collect();
                self.union(parts)
            }
            &Node::Repeat(a, min, _) => {
                if min == 0 {
                    Language::ALL
                } else {
                    self.unread(a)
                }
            }
            _ => {
                if self.facts(id).nullable {
                    Language::ALL
                } else {
                    Language::EMPTY
                }
            }
        }
    }

    /// The rests of the text with which a look-behind holds whose language is `id` by now.
    fn rests_here(&mut self, id: Language) -> Language {
        let facts = self.facts(id);
        if !facts.here {
            // It does not look ahead, so either every rest will do or none.
            return if facts.nullable { Language::ALL } else { Language::EMPTY };
        }
        if let Some(&known) = self.memory.rests_here.get(&id) {
            return known;
        }
        let rest = self.rests_here_parts(id);
        self.memory.rests_here.insert(id, rest);
        rest
    }

    fn rests_here_parts(&mut self, id: Language) -> Language {
        match self.node(id) {
            Node::Concat(..) => {
                let (mut at, mut parts) = (id, Vec::new());
                while let Node::Concat(head, tail) = *self.node(at) {
                    if self.facts(head).here {
                        let head = self.rests_here(head);
                        let rest = self.concat(head, tail);
                        parts.push(rest);
                        return self.and(parts);
                    }
                    let part = self.unread(head);
                    if part == Language::EMPTY {
                        return part;
                    }
                    parts.push(part);
                    at = tail;
                }
                let rest = self.rests_here(at);
                parts.push(rest);
                self.and(parts)
            }
            Node::Union(items) => {
                let items = items.clone();
                let parts: Vec<Language> = items.iter().map(|&i| self.rests_here(i)).collect();
                self.union(parts)
            }
            Node::And(items) => {
                let items = items.clone();
                let parts: Vec<Language> =
                    items.iter().map(|&i| if self.facts(i).here { self.rests_here(i) } else { i }).collect();
                self.and(parts)
            }
            _ => Language::EPSILON,
        }
    }

    /// A part that was not reached yet, after `c` went by: its look-behinds have seen `c`.
    fn pass(&mut self, id: Language, c: u32) -> Language {
        if !self.facts(id).looks_behind {
            return id;
        }
        if let Some(&known) = self.memory.passed.get(&(id, c)) {
            return known;
        }
        let passed = self.pass_parts(id, c);
        self.memory.passed.insert((id, c), passed);
        passed
    }

    fn pass_parts(&mut self, id: Language, c: u32) -> Language {
        match self.node(id) {
            &Node::Look(look, a) if look.behind => {
                let a = self.part(a, Language::EPSILON, c);
                self.look(look, a)
            }
            &Node::Look(look, a) => {
                let a = self.pass(a, c);
                self.look(look, a)
            }
            Node::Concat(..) => {
                let (mut at, mut parts) = (id, Vec::new());
                while let Node::Concat(a, b) = *self.node(at) {
                    if !self.facts(at).looks_behind {
                        break;
                    }
                    parts.push(self.pass(a, c));
                    at = b;
                }
                parts.push(self.pass(at, c));
                self.sequence(parts)
            }
            Node::Union(items) => {
                let items = items.clone();
                let parts: Vec<Language> = items.iter().map(|&i| self.pass(i, c)).collect();
                self.union(parts)
            }
            Node::And(items) => {
                let items = items.clone();
                let parts: Vec<Language> = items.iter().map(|&i| self.pass(i, c)).collect();
                self.and(parts)
            }
            &Node::Not(a) => {
                let a = self.pass(a, c);
                self.not(a)
            }
            &Node::Repeat(a, min, max) => {
                let a = self.pass(a, c);
                self.repeat(a, min, max)
            }
            _ => id,
        }
    }
}

#[derive(Default)]
struct Frontier {
    sets: Vec<u32>,
    chars: Vec<u32>,
    machines: Vec<(u32, Arc<[u8]>)>,
    met: HashSet<Language, FxBuildHasher>,
    tracked: HashSet<Language, FxBuildHasher>,
}

/// The alternatives of a derivative, and the parts (each with what comes after it) that they were gathered from.
#[derive(Default)]
struct Alternatives {
    list: Vec<Language>,
    met: HashSet<(Language, Language), FxBuildHasher>,
    /// Rests of concatenations, all the alternatives of which are gathered.
    met_tails: HashSet<(Language, Language), FxBuildHasher>,
}

/// Results for parts of states, which occur in many states and often more than once in one.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    parts: FxMap<(Language, Language, u32), Language>,
    passed: FxMap<(Language, u32), Language>,
    unread: FxMap<Language, Language>,
    rests_here: FxMap<Language, Language>,
}

impl Memory {
    pub(crate) fn memory_size(&self) -> usize {
        self.parts.allocation_size()
            + self.passed.allocation_size()
            + self.unread.allocation_size()
            + self.rests_here.allocation_size()
    }

    /// Forgets everything once it is much: it can be found out again.
    fn trim(&mut self) {
        const MOST: usize = 1 << 16;
        if self.parts.len() + self.passed.len() + self.unread.len() + self.rests_here.len() > MOST {
            *self = Memory::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::charset::CharSet;
    use crate::languages::{Language, Languages};

    #[test]
    fn what_follows_the_surrogates_is_not_lost() {
        let mut l = Languages::new();
        let hangul = l.set(CharSet::new([(0xAC00, 0xD7FF)]));
        let some = l.concat(hangul, Language::ALL);
        let none = l.not(some);
        let transitions = l.transitions(none);
        for c in ['a', '\u{ABFF}', '\u{E000}', '\u{FFFF}'] {
            assert!(l.is_nullable(transitions.target(c as u32)), "{c:?}");
        }
        assert!(!l.is_nullable(transitions.target('가' as u32)));
    }
}
