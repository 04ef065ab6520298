//! Whether a language has any text, and a shortest one.
//!
//! A plain expression is empty only if it is `EMPTY`. With intersections, complements and assertions the reachable states
//! are searched, nearest to a text first (by the lower bound on length); every state on the way to a text is known to be
//! viable from then on, and if none is found, all states that were met are known to be empty. A machine may have so many
//! states that no search ends; see [`crate::machine`] for what is done about that.

use crate::languages::{FxMap, Language, Languages, LimitExceeded, Node, UNBOUNDED};
use crate::work;
use hashbrown::hash_map::Entry;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Long examples are cut where so many characters are left, or a multiple of them, or half of them more.
const CUT: u32 = 64;

/// After so many states a search asks whether it would find anything if machines were looser.
const RELAX_AFTER: usize = 1000;

impl Languages {
    /// Whether the language has no text. Fails if the search passes `max_states`.
    pub fn is_empty_language(&mut self, id: Language) -> Result<bool, LimitExceeded> {
        Ok(!self.is_viable(id)?)
    }

    /// Whether the language has a text.
    pub fn is_viable(&mut self, id: Language) -> Result<bool, LimitExceeded> {
        let facts = self.facts(id);
        if facts.nullable || facts.plain {
            return Ok(id != Language::EMPTY);
        }
        if let Some(&known) = self.viable.get(&id) {
            return Ok(known);
        }
        if self.is_all_but_short_ones(id) {
            return Ok(true);
        }
        if let Node::Union(items) = self.node(id)
            && items.iter().any(|&item| self.is_known_viable(item))
        {
            return Ok(true);
        }
        Ok(self.search(id)?.is_some())
    }

    /// Whether the language holds all texts beyond some length, as is easy to see: it is the complement of a language without
    /// longer ones. Most languages of member names are: every name but the declared ones.
    fn is_all_but_short_ones(&self, id: Language) -> bool {
        let Node::Not(inner) = *self.node(id) else { return false };
        let inner = self.facts(inner);
        !inner.looks && inner.max_len != UNBOUNDED && self.alphabet.as_ref().is_none_or(|set| !set.ranges().is_empty())
    }

    /// Whether the empty text is the only one.
    pub fn is_only_empty(&mut self, id: Language) -> Result<bool, LimitExceeded> {
        if id == Language::EPSILON || !self.is_nullable(id) || self.is_plain(id) {
            return Ok(id == Language::EPSILON);
        }
        let transitions = self.transitions(id);
        self.check_limit()?;
        for &target in transitions.targets() {
            if self.is_viable(target)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// A shortest text of the language by the order of the search (shortest in characters up to the bound's slack).
    pub fn example(&mut self, id: Language) -> Result<Option<String>, LimitExceeded> {
        if let Node::Texts { list, lo, hi, depth } = *self.node(id)
            && hi - lo == 1
            && !self.lists[list as usize].is_selection()
        {
            return Ok(Some(self.lists[list as usize].slice(lo, hi)[0][depth as usize..].into()));
        }
        let mut text = String::new();
        let mut at = id;
        // The search finds one way; after it the rest of the way is found from every state on it.
        while !self.is_nullable(at) {
            if let (Node::Machine(..), Some(c)) = (self.node(at), self.way_of_machines(at)) {
                text.extend(char::from_u32(c));
                at = self.step(at, c);
                self.check_limit()?;
                continue;
            }
            let Some(path) = self.path(at, Self::is_nullable)? else { return Ok(None) };
            text.extend(path.iter().filter_map(|&(c, _)| char::from_u32(c)));
            match path.last() {
                Some(&(_, end)) => at = end,
                None => break,
            }
        }
        Ok(Some(text))
    }

    /// The beginning of a shortest text, up to one of the places where long texts are cut, and the language of what follows;
    /// `None` instead of that if it is the whole text. From wherever on a text is asked for, it is cut in the same places, so
    /// that their rests are the same.
    pub fn example_part(&mut self, id: Language) -> Result<Option<(String, Option<Language>)>, LimitExceeded> {
        let length = self.facts(id).min_len;
        if self.is_plain(id) && length > 2 * CUT {
            if let Some((text, rest)) = self.part_of_only_text(id, length) {
                return Ok(Some((text, Some(rest))));
            }
            let cut = if length.is_multiple_of(CUT) { Self::is_between_cuts } else { Self::is_at_cut };
            let path = self.path(id, cut)?.unwrap_or_default();
            if let Some(&(_, end)) = path.last()
                && self.facts(end).min_len < length
                && !self.is_nullable(end)
            {
                let text = path.iter().filter_map(|&(c, _)| char::from_u32(c)).collect();
                return Ok(Some((text, Some(end))));
            }
        }
        Ok(self.example(id)?.map(|text| (text, None)))
    }

    /// The same of a single text, without the states in between.
    fn part_of_only_text(&mut self, id: Language, length: u32) -> Option<(String, Language)> {
        let &Node::Texts { list, lo, hi, depth } = self.node(id) else { return None };
        let all = &self.lists[list as usize];
        if hi - lo > 1 || all.is_selection() {
            return None;
        }
        let count = if length.is_multiple_of(CUT) { CUT / 2 } else { length % CUT };
        let part: String = all.slice(lo, hi)[0][depth as usize..].chars().take(count as usize).collect();
        let rest = self.texts_node(list, lo, hi, depth + part.len() as u32);
        Some((part, rest))
    }

    fn is_at_cut(&self, id: Language) -> bool {
        let facts = self.facts(id);
        facts.nullable || facts.plain && facts.min_len.is_multiple_of(CUT)
    }

    fn is_between_cuts(&self, id: Language) -> bool {
        let facts = self.facts(id);
        facts.nullable || facts.plain && facts.min_len % CUT == CUT / 2
    }

    /// How all texts of the language begin, as far as that is easy to see.
    pub fn beginning(&mut self, id: Language) -> String {
        const MOST: usize = 64;
        let (mut at, mut text) = (id, String::new());
        while !self.is_nullable(at) && text.len() < MOST {
            let transitions = self.transitions(at);
            let mut ways = transitions.over(0, crate::charset::MAX).filter(|&(.., target)| target != Language::EMPTY);
            let (Some((c, last, target)), None) = (ways.next(), ways.next()) else { break };
            let Some(c) = char::from_u32(c).filter(|_| c == last) else { break };
            text.push(c);
            at = target;
        }
        text
    }

    /// Whether every beginning of a text of the language can be continued in infinitely many ways. `false` also if it takes
    /// many states to find out.
    pub fn is_endless(&mut self, id: Language) -> Result<bool, LimitExceeded> {
        const MOST_STATES: usize = 256;
        if self.is_all_but_short_ones(id) {
            return Ok(true);
        }
        if let Some(&known) = self.endless.get(&id) {
            return Ok(known);
        }
        let mut states = vec![id];
        let mut places: FxMap<Language, usize> = [(id, 0)].into_iter().collect();
        let mut ways: Vec<Vec<usize>> = Vec::new();
        let mut few = true;
        while let Some(&state) = states.get(ways.len()) {
            work::spend(1)?;
            let mut next = Vec::new();
            for &target in self.transitions(state).targets() {
                if self.is_viable(target)? {
                    let place = *places.entry(target).or_insert(states.len());
                    if place == states.len() {
                        states.push(target);
                    }
                    next.push(place);
                }
            }
            ways.push(next);
            few = states.len() <= MOST_STATES;
            if !few {
                break;
            }
        }
        // States that lead nowhere but to the end are taken away until all that are left lead to a circle.
        let mut lost = vec![false; states.len()];
        let mut changed = few;
        while changed {
            changed = false;
            for (state, next) in ways.iter().enumerate() {
                if !lost[state] && next.iter().all(|&n| lost[n]) {
                    lost[state] = true;
                    changed = true;
                }
            }
        }
        let endless = few && !lost.contains(&true);
        self.endless.insert(id, endless);
        Ok(endless)
    }

    fn search(&mut self, id: Language) -> Result<Option<Vec<(u32, Language)>>, LimitExceeded> {
        let found = match self.path_along_machines(id)? {
            Some(path) => Some(path),
            None => self.path(id, Self::is_known_viable)?,
        };
        if let Some(path) = &found {
            self.viable.insert(id, true);
            for &(_, state) in path {
                self.viable.insert(state, true);
            }
        }
        Ok(found)
    }

    /// A way to a viable state that begins with the way that a machine in the expression knows.
    fn path_along_machines(&mut self, id: Language) -> Result<Option<Vec<(u32, Language)>>, LimitExceeded> {
        let (mut at, mut path) = (id, Vec::new());
        while let Some(c) = self.way_of_machines(at) {
            at = self.step(at, c);
            if at == Language::EMPTY {
                return Ok(None);
            }
            path.push((c, at));
            if self.is_known_viable(at) {
                return Ok(Some(path));
            }
        }
        if path.is_empty() {
            return Ok(None);
        }
        path.extend(self.path(at, Self::is_known_viable)?.into_iter().flatten());
        let ends = path.last().is_some_and(|&(_, end)| self.is_known_viable(end));
        Ok(ends.then_some(path))
    }

    fn is_known_viable(&self, id: Language) -> bool {
        let facts = self.facts(id);
        facts.nullable || facts.plain || self.viable.get(&id) == Some(&true)
    }

    /// The way to a state where the search may end.
    fn path(
        &mut self,
        id: Language,
        ends: fn(&Self, Language) -> bool,
    ) -> Result<Option<Vec<(u32, Language)>>, LimitExceeded> {
        let mut from: FxMap<Language, (Language, u32)> = FxMap::default();
        let mut queue = BinaryHeap::new();
        queue.push((Reverse(self.facts(id).min_len), 0u32, Reverse(0), id));
        from.insert(id, (id, 0));
        let budget = self.nodes.len().saturating_add(self.max_states);
        let before = self.work;
        let mut relaxed = false;
        while let Some((_, depth, _, state)) = queue.pop() {
            if ends(self, state) {
                let mut path = Vec::new();
                let mut at = state;
                while at != id {
                    let (before, c) = from[&at];
                    path.push((c, at));
                    at = before;
                }
                path.reverse();
                return Ok(Some(path));
            }
            if self.viable.get(&state) == Some(&false) {
                continue;
            }
            work::spend(1)?;
            if self.nodes.len() > budget || self.nodes.len() + self.weight > self.max_states {
                return Err(LimitExceeded { limit: "max_automaton_states", value: self.max_states });
            }
            if self.work - before > self.max_work {
                return Err(LimitExceeded { limit: "max_automaton_work", value: self.max_work as usize });
            }
            if !relaxed && from.len() > RELAX_AFTER {
                relaxed = true;
                let mut relaxed = self.without_machines(id);
                if relaxed == id {
                    relaxed = self.without_counts(id);
                }
                if relaxed != id && self.is_empty_language(relaxed) == Ok(true) {
                    break;
                }
            }
            let transitions = self.transitions(state);
            self.check_limit()?;
            for (lo, hi, target) in transitions.over(0, crate::charset::MAX) {
                if target == Language::EMPTY {
                    continue;
                }
                let c = readable(lo, hi);
                match from.entry(target) {
                    Entry::Vacant(entry) => {
                        entry.insert((state, c));
                    }
                    Entry::Occupied(mut entry) => {
                        // Of the characters that lead there, the one that reads best.
                        let (before, known) = *entry.get();
                        if before == state && taste(c) < taste(known) {
                            entry.insert((state, c));
                        }
                        continue;
                    }
                }
                let cost = depth.saturating_add(1).saturating_add(self.facts(target).min_len);
                // Among equals the one that has come farthest: a bound on the length makes all of them equal.
                queue.push((Reverse(cost), depth + 1, Reverse(taste(c)), target));
            }
        }
        for state in from.into_keys() {
            self.viable.insert(state, false);
        }
        Ok(None)
    }
}

/// Which characters are tried first among equals: small letters from `a` on, as people would.
pub(crate) fn taste(c: u32) -> u32 {
    match char::from_u32(c) {
        Some('a'..='z') => c - u32::from('a'),
        Some('A'..='Z') => c,
        // Years and the like do not begin with a zero.
        Some('0') => 200,
        Some('1'..='9') => c + 100,
        _ => c.saturating_add(200),
    }
}

/// A character of the range that reads well in an example.
fn readable(lo: u32, hi: u32) -> u32 {
    ['a', 'A', '0', ' '].into_iter().map(|c| c as u32).find(|c| (lo..=hi).contains(c)).unwrap_or(lo)
}
