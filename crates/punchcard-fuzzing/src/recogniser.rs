//! A slow recogniser of grammars that goes by what each expression says.
//!
//! It finds where the texts of an expression that begin at a place can end. Rules that name each other, in circles too,
//! are a least fixpoint: places are added until nothing changes.

use punchcard_grammar::{Expr, Grammar};
use std::collections::{BTreeSet, HashMap, HashSet};

/// What a recogniser says of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Member,
    Stranger,
    /// It may be a member: the grammar has what this recogniser takes for more than it is, such as a limit of tokens.
    Perhaps,
    /// The grammar has what the recogniser does not know, or it would take too long.
    Unknown,
}

/// Steps after which nothing is said.
const MOST_STEPS: usize = 20_000;

/// Says whether a text is of a grammar.
pub(crate) fn recognise(grammar: &Grammar, text: &str) -> Verdict {
    let mut recogniser = Recogniser {
        rules: grammar,
        text: text.chars().collect(),
        known: HashMap::new(),
        visited: HashSet::new(),
        changed: true,
        is_wider: false,
        steps: 0,
    };
    let mut ends = Some(BTreeSet::new());
    while recogniser.changed && ends.is_some() {
        recogniser.changed = false;
        recogniser.visited.clear();
        ends = recogniser.ends(&grammar.start, 0);
    }
    match ends {
        None => Verdict::Unknown,
        Some(ends) if !ends.contains(&recogniser.text.len()) => Verdict::Stranger,
        Some(_) if recogniser.is_wider => Verdict::Perhaps,
        Some(_) => Verdict::Member,
    }
}

type Places = BTreeSet<usize>;

struct Recogniser<'a> {
    rules: &'a Grammar,
    text: Vec<char>,
    known: HashMap<(&'a str, usize), Places>,
    visited: HashSet<(&'a str, usize)>,
    changed: bool,
    is_wider: bool,
    steps: usize,
}

impl<'a> Recogniser<'a> {
    fn ends(&mut self, expr: &'a Expr, at: usize) -> Option<Places> {
        self.steps += 1;
        if self.steps > MOST_STEPS {
            return None;
        }
        let rest = &self.text[at..];
        Some(match expr {
            Expr::Nothing => Places::new(),
            Expr::Text(text) => {
                let length = text.chars().count();
                let is_here = length <= rest.len() && text.chars().zip(rest).all(|(a, b)| a == *b);
                is_here.then_some(at + length).into_iter().collect()
            }
            Expr::Chars(ranges) => {
                let is_here = rest.first().is_some_and(|&c| ranges.iter().any(|&(a, b)| (a..=b).contains(&(c as u32))));
                is_here.then_some(at + 1).into_iter().collect()
            }
            Expr::Sequence(parts) => {
                let mut places = Places::from([at]);
                for part in parts {
                    places = self.after_all(part, &places)?;
                }
                places
            }
            Expr::Choice(parts) => {
                let mut places = Places::new();
                for part in parts {
                    places.extend(self.ends(part, at)?);
                }
                places
            }
            Expr::Repeat { body, min, max } => self.repeat(body, *min as usize, max.map(|max| max as usize), at)?,
            Expr::Rule(name) => self.rule(name, at)?,
            Expr::And(parts) => {
                let mut places: Option<Places> = None;
                for part in parts {
                    let found = self.ends(part, at)?;
                    places = Some(places.map_or(found.clone(), |places| &places & &found));
                }
                places.unwrap_or_else(|| self.all(at))
            }
            Expr::Not(body) => {
                let (all, found) = (self.all(at), self.ends(body, at)?);
                &all - &found
            }
            Expr::Shortest(body) => self.ends(body, at)?.first().copied().into_iter().collect(),
            Expr::Longest(body) | Expr::MaxTokens { body, .. } => {
                self.is_wider = true;
                self.ends(body, at)?
            }
            Expr::Named { body, .. } => self.ends(body, at)?,
            Expr::TextWithout(words) => {
                let is_free = |end: &usize| {
                    let text: String = self.text[at..*end].iter().collect();
                    !words.iter().any(|word| text.contains(word.as_str()))
                };
                (at..=self.text.len()).filter(is_free).collect()
            }
            // Patterns, JSON and tokens have checks of their own.
            _ => return None,
        })
    }

    fn all(&self, at: usize) -> Places {
        (at..=self.text.len()).collect()
    }

    fn after_all(&mut self, expr: &'a Expr, places: &Places) -> Option<Places> {
        let mut out = Places::new();
        for &place in places {
            out.extend(self.ends(expr, place)?);
        }
        Some(out)
    }

    fn repeat(&mut self, body: &'a Expr, min: usize, max: Option<usize>, at: usize) -> Option<Places> {
        let mut places = Places::from([at]);
        let mut out = Places::new();
        // Once there were more rounds than characters, some round was empty, and more of those change nothing.
        let settled = self.text.len() - at + 1;
        for round in 0.. {
            if round >= min || round > settled && min > settled {
                out.extend(&places);
            }
            if max.is_some_and(|max| round >= max) || round > settled && round >= min.min(settled + 1) {
                break;
            }
            let next = self.after_all(body, &places)?;
            if next.is_empty() {
                break;
            }
            places = next;
        }
        Some(out)
    }

    fn rule(&mut self, name: &'a str, at: usize) -> Option<Places> {
        let body = self.rules.rules.get(name)?;
        if self.visited.insert((name, at)) {
            let found = self.ends(body, at)?;
            let known = self.known.entry((name, at)).or_default();
            let before = known.len();
            known.extend(found);
            self.changed |= known.len() > before;
        }
        Some(self.known.get(&(name, at)).cloned().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punchcard_grammar::ebnf;

    #[test]
    fn verdicts() {
        for (source, members, strangers) in [
            ("root ::= \"a\" root \"b\" | root root | \"\"", "|ab|aabbab", "a|ba|aab"),
            ("root ::= a | \"x\"\na ::= root", "x", "|xx"),
            ("root ::= (\"a\"? \"b\"?){3}", "|a|ab|ba|aaa|ababab", "aaaa|bbbb|c"),
            ("root ::= ([ab] | \"\"){70000,}", "|a|abab", "c"),
            ("root ::= \"a\"{3,4} - \"aaaa\"", "aaa", "aa|aaaa"),
            ("root ::= @shortest([ab]* \"b\") [ab]", "aaba|bb", "abab|b"),
            ("root ::= @text_without(\"ab\") \"c\"", "bac|c|bc", "abc|ba"),
            ("root ::= \"a\" root | \"b\" root | \"\" - \"a\"", "abab|", "c"),
        ] {
            let grammar = ebnf::parse(source, None).unwrap();
            for (texts, expected) in [(members, Verdict::Member), (strangers, Verdict::Stranger)] {
                for text in texts.split('|') {
                    assert_eq!(recognise(&grammar, text), expected, "{source} {text:?}");
                }
            }
        }
    }
}
