//! Special tokens: `<|name|>`, `<[12]>`, `<[10-20,30]>`, `<[^10-20]>`, `<[*]>`.

use crate::error::GrammarError;
use crate::expr::Expr;

/// More ids than that in one place are written as what they are not.
const MOST_IDS: usize = 1 << 20;

/// The token, or tokens, that `source` (with its brackets) at `at` of the text stands for.
pub(super) fn token(text: &str, at: usize, source: &str) -> Result<Expr, GrammarError> {
    let Some(list) = source.strip_prefix("<[").and_then(|rest| rest.strip_suffix("]>")) else {
        return Ok(Expr::Token { ids: vec![], names: vec![source.to_string()], except: false });
    };
    if list.trim() == "*" {
        return Ok(Expr::Token { ids: vec![], names: vec![], except: true });
    }
    let (except, list) = match list.strip_prefix('^') {
        Some(rest) => (true, rest),
        None => (false, list),
    };
    let mut ids = Vec::new();
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (Ok(first), Ok(last)) = (first.trim().parse::<u32>(), last.trim().parse::<u32>()) else {
            return Err(GrammarError::at(text, at, format!("{:?} is no token id and no range of them", part.trim()))
                .with_hint("Ids are written <[12]>, <[10-20,30]>, <[^12]> or <[*]>, names <|name|>"));
        };
        if last < first {
            return Err(GrammarError::at(text, at, format!("The range of token ids {first}-{last} is empty"))
                .with_hint("Write the smaller id first"));
        }
        if (last - first) as usize >= MOST_IDS - ids.len().min(MOST_IDS) {
            return Err(GrammarError::at(text, at, format!("These are more than {MOST_IDS} token ids"))
                .with_hint("Name those that are left out: <[^10-20]>, or all: <[*]>"));
        }
        ids.extend(first..=last);
    }
    ids.sort_unstable();
    ids.dedup();
    Ok(Expr::Token { ids, names: vec![], except })
}
