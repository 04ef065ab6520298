//! Rows of many sequences at once, on several threads.

use hashbrown::HashMap;
use rayon::prelude::*;

/// Calls `fill` for each row, in parallel. Rows come with the address of the grammar that they are for: sequences of one
/// grammar share its caches, so they are done one after the other, and different grammars side by side.
pub fn fill_rows<R: Send, E: Send>(
    rows: Vec<(usize, R)>,
    pool: &rayon::ThreadPool,
    fill: impl Fn(R) -> Result<(), E> + Sync,
) -> Result<(), E> {
    let mut by_grammar: HashMap<usize, Vec<R>> = HashMap::new();
    for (grammar, row) in rows {
        by_grammar.entry(grammar).or_default().push(row);
    }
    let fill_all = |rows: Vec<R>| rows.into_iter().try_for_each(&fill);
    if by_grammar.len() == 1 || pool.current_num_threads() == 1 {
        return by_grammar.into_values().try_for_each(fill_all);
    }
    let mut groups: Vec<_> = by_grammar.into_values().collect();
    // The largest first, so that no thread is left with it at the end.
    groups.sort_unstable_by_key(|rows| std::cmp::Reverse(rows.len()));
    pool.install(|| groups.into_par_iter().with_max_len(1).try_for_each(fill_all))
}
