//! Masks of many sequences at once, on several threads.

use crate::matcher::Matcher;
use hashbrown::HashMap;
use punchcard_schema::SchemaError;
use rayon::prelude::*;

/// Fills one row for each matcher, in parallel; a row without a matcher is left to the caller. Sequences of one grammar
/// share its caches, so they are done one after the other, and different grammars side by side.
pub fn fill_masks(rows: Vec<(&Matcher, &mut [u32])>, pool: &rayon::ThreadPool) -> Result<(), SchemaError> {
    let mut by_grammar: HashMap<usize, Vec<(&Matcher, &mut [u32])>> = HashMap::new();
    for (matcher, row) in rows {
        by_grammar.entry(matcher.grammar().address()).or_default().push((matcher, row));
    }
    let fill =
        |rows: Vec<(&Matcher, &mut [u32])>| rows.into_iter().try_for_each(|(matcher, row)| matcher.fill_mask(row));
    if by_grammar.len() == 1 || pool.current_num_threads() == 1 {
        return by_grammar.into_values().try_for_each(fill);
    }
    let mut groups: Vec<_> = by_grammar.into_values().collect();
    // The largest first, so that no thread is left with it at the end.
    groups.sort_unstable_by_key(|rows| std::cmp::Reverse(rows.len()));
    pool.install(|| groups.into_par_iter().with_max_len(1).try_for_each(fill))
}
