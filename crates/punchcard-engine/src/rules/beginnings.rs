//! Many alternatives by how they begin.
//!
//! Alternatives that begin with a text are followed one by one, so ten thousand of them are ten thousand readings from the
//! first byte on. Put together by what their texts have in common, they are as many as there are ways to go on.

use super::lower::MOST_FORKS;
use punchcard_grammar::Expr;

/// An alternative: the text that it begins with, and what follows.
pub(crate) type Beginning<'a> = (&'a str, Vec<&'a Expr>);

/// Alternatives that begin alike.
#[derive(Debug)]
pub(crate) struct Fork<'a> {
    /// What they have in common.
    pub(crate) text: &'a str,
    /// What follows those that are no longer than that.
    pub(crate) rests: Vec<Vec<&'a Expr>>,
    /// The others, by how they go on.
    pub(crate) forks: Vec<Fork<'a>>,
}

/// The text that an expression begins with, and what follows. Names are left out.
pub(crate) fn beginning(expr: &Expr) -> Option<Beginning<'_>> {
    match expr {
        Expr::Text(text) if !text.is_empty() => Some((text, Vec::new())),
        Expr::Sequence(items) => {
            let (first, others) = items.split_first()?;
            let (text, mut rest) = beginning(first)?;
            rest.extend(others);
            Some((text, rest))
        }
        Expr::Named { body, .. } => beginning(body),
        _ => None,
    }
}

/// Alternatives put together by how they begin.
pub(crate) fn forks(mut alternatives: Vec<Beginning<'_>>) -> Vec<Fork<'_>> {
    alternatives.sort_by_key(|&(text, _)| text);
    put_together(alternatives, 0)
}

fn put_together(alternatives: Vec<Beginning<'_>>, depth: usize) -> Vec<Fork<'_>> {
    let mut out = Vec::new();
    let mut alternatives = alternatives.into_iter().peekable();
    while let Some(first) = alternatives.next() {
        let (begin, whole) = (first.0.chars().next(), first.0);
        let mut group = vec![first];
        while let Some(next) = alternatives
            .next_if(|&(text, _)| if depth < MOST_FORKS { text.chars().next() == begin } else { text == whole })
        {
            group.push(next);
        }
        // In a sorted list the first and the last have the least in common.
        let common = common_beginning(whole, group[group.len() - 1].0);
        let (mut rests, mut longer) = (Vec::new(), Vec::new());
        for (text, rest) in group {
            match &text[common..] {
                "" => rests.push(rest),
                more => longer.push((more, rest)),
            }
        }
        out.push(Fork { text: &whole[..common], rests, forks: put_together(longer, depth + 1) });
    }
    out
}

fn common_beginning(a: &str, b: &str) -> usize {
    a.chars().zip(b.chars()).take_while(|(c, d)| c == d).map(|(c, _)| c.len_utf8()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(forks: &[Fork<'_>]) -> String {
        let shown = |fork: &Fork<'_>| format!("{}{}({})", fork.text, fork.rests.len(), shown(&fork.forks));
        forks.iter().map(shown).collect::<Vec<_>>().join("|")
    }

    #[test]
    fn alternatives_are_put_together_by_what_they_have_in_common() {
        let table: [(&[&str], &str); 4] = [
            (&["<a>", "<b>", "x"], "<0(a>1()|b>1())|x1()"),
            (&["ab", "a", "abc", "a"], "a2(b1(c1()))"),
            (&["é", "è"], "è1()|é1()"),
            (&["f12", "f1", "f2"], "f0(11(21())|21())"),
        ];
        for (texts, expected) in table {
            let alternatives = texts.iter().map(|text| (*text, Vec::new())).collect();
            assert_eq!(shown(&forks(alternatives)), expected, "{texts:?}");
        }
    }

    #[test]
    fn forks_do_not_nest_without_bound() {
        let texts: Vec<String> = (1..2_000).map(|n| "a".repeat(n)).collect();
        let mut at = &forks(texts.iter().map(|text| (text.as_str(), Vec::new())).collect())[..];
        let mut depth = 0;
        while let Some(fork) = at.first() {
            (at, depth) = (&fork.forks, depth + 1);
        }
        assert_eq!(depth, MOST_FORKS + 1);
    }
}
