//! Lists and counts the texts of a language, the short ones first.
//!
//! A language is followed like a deterministic automaton, so each text is met on one way only. Only states that lead to a
//! text are followed: where the language is infinite there always is one more.

use crate::charset::MAX;
use crate::emptiness::taste;
use crate::languages::{Language, Languages, LimitExceeded};
use crate::work;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Letters and digits, which read better than other characters.
const PLAIN: [(u32, u32); 3] = [('a' as u32, 'z' as u32), ('A' as u32, 'Z' as u32), ('0' as u32, '9' as u32)];

impl Languages {
    /// Counts the texts of the language up to `most`.
    pub fn count_up_to(&mut self, id: Language, most: u32) -> Result<u32, LimitExceeded> {
        // In how many ways each state is reached, those near to a text first; as in a search, a shorter way to go is worth
        // more than one that has come farther.
        let mut queue = BTreeMap::from([((self.facts(id).min_len, 0u32, id), 1u32)]);
        let mut count = 0u32;
        while let Some(((_, depth, state), ways)) = queue.pop_first()
            && count < most
        {
            work::spend(1)?;
            if self.is_nullable(state) {
                count = count.saturating_add(ways);
            }
            for (lo, hi, target) in self.viable_transitions(state)? {
                let cost = self.facts(target).min_len.saturating_add(depth + 1);
                let more = queue.entry((cost, depth + 1, target)).or_default();
                *more = more.saturating_add(ways.saturating_mul(hi - lo + 1));
            }
        }
        Ok(count.min(most))
    }

    /// Lists up to `count` texts of the language, about the shortest; fewer if it has no more, or if they are hard to find:
    /// where the bound on the length says little, beginnings that lead nowhere soon may crowd out the others.
    pub fn examples(&mut self, id: Language, count: usize) -> Result<Vec<String>, LimitExceeded> {
        let mut texts = Vec::new();
        // Of the beginnings that promise equally short texts the longest comes first, then the one that reads best. Each
        // leads to a text of its own, so no more of them are kept than texts are wanted.
        let mut queue = BTreeMap::from([((self.facts(id).min_len, Reverse(0u32), 0, 0u32), (id, String::new()))]);
        let (mut met, mut steps) = (0, 16 * count + 256);
        while texts.len() < count
            && steps > 0
            && let Some(((_, Reverse(depth), ..), (state, text))) = queue.pop_first()
        {
            work::spend(1)?;
            steps -= 1;
            if self.is_nullable(state) {
                texts.push(text.clone());
            }
            let room = count - texts.len();
            for (lo, hi, target) in self.viable_transitions(state)? {
                let cost = self.facts(target).min_len.saturating_add(depth + 1);
                for c in characters(lo, hi).take(room) {
                    met += 1;
                    let key = (cost, Reverse(depth + 1), taste(u32::from(c)), met);
                    if queue.len() >= room {
                        if queue.last_key_value().is_none_or(|(last, _)| key >= *last) {
                            break; // those that follow read no better
                        }
                        queue.pop_last();
                    }
                    queue.insert(key, (target, format!("{text}{c}")));
                }
            }
        }
        Ok(texts)
    }

    /// The transitions of a state to states that lead to a text.
    fn viable_transitions(&mut self, state: Language) -> Result<Vec<(u32, u32, Language)>, LimitExceeded> {
        self.check_limit()?;
        let transitions = self.transitions(state);
        self.check_limit()?;
        let mut ways = Vec::new();
        for (lo, hi, target) in transitions.over(0, MAX) {
            if self.is_viable(target)? {
                ways.push((lo, hi, target));
            }
        }
        Ok(ways)
    }
}

/// The characters of a range, letters and digits first.
fn characters(lo: u32, hi: u32) -> impl Iterator<Item = char> {
    let plain = PLAIN.into_iter().flat_map(move |(first, last)| lo.max(first)..=hi.min(last));
    let is_plain = |c: &u32| PLAIN.iter().any(|(first, last)| (first..=last).contains(&c));
    plain.chain((lo..=hi).filter(move |c| !is_plain(c))).filter_map(char::from_u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::charset::CharSet;
    use crate::languages::UNBOUNDED;

    #[test]
    fn texts_are_listed_once_each_and_the_short_ones_first() {
        let mut l = Languages::new();
        let any = l.any_char();
        let all = l.repeat(any, 0, UNBOUNDED);
        let taken = l.texts(["", "b", "c"]);
        let rest = l.difference(all, taken);
        let texts = l.examples(rest, 500).unwrap();
        assert_eq!(texts[..3], ["a", "d", "e"]);
        let mut unique = texts.clone();
        unique.sort();
        unique.dedup();
        assert_eq!(unique.len(), 500);
        assert!(texts.iter().all(|text| l.matches(rest, text)));
    }

    #[test]
    fn a_finite_language_is_listed_whole() {
        let mut l = Languages::new();
        let ab = l.set(CharSet::new([('a' as u32, 'b' as u32)]));
        let words = l.repeat(ab, 2, 4);
        let texts = l.examples(words, 1_000).unwrap();
        assert_eq!((texts.len(), l.count_up_to(words, 1_000).unwrap()), (28, 28));
        assert_eq!(texts[..4].iter().map(String::len).collect::<Vec<_>>(), [2; 4]);
        assert_eq!(l.examples(words, 0).unwrap(), Vec::<String>::new());
        assert_eq!(l.examples(Language::EMPTY, 3).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn a_language_of_long_texts_is_not_listed_breadth_first() {
        let mut l = Languages::new();
        let ab = l.set(CharSet::new([('a' as u32, 'b' as u32)]));
        let words = l.repeat(ab, 40, 40);
        assert_eq!(l.examples(words, 100).unwrap().len(), 100);
    }
}
