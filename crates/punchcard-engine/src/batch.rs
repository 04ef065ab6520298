//! Masks of many sequences at once, on several threads.

use crate::matcher::Matcher;
use hashbrown::HashMap;
use punchcard_schema::SchemaError;
use rayon::prelude::*;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A matcher that other threads may use, and its row.
type Job<'a> = (&'a Mutex<Matcher>, &'a mut [u32]);

/// Fills one row for each matcher, in parallel. Sequences of one grammar share its tables, so they are done one after the
/// other, and different grammars side by side.
pub fn fill_masks(rows: Vec<Job<'_>>, pool: &rayon::ThreadPool) -> Result<(), SchemaError> {
    let mut by_grammar: HashMap<usize, Vec<Job<'_>>> = HashMap::new();
    for (matcher, row) in rows {
        let address = lock(matcher).grammar().address();
        by_grammar.entry(address).or_default().push((matcher, row));
    }
    let fill = |rows: Vec<Job<'_>>| rows.into_iter().try_for_each(|(matcher, row)| lock(matcher).fill_mask(row));
    if by_grammar.len() == 1 || pool.current_num_threads() == 1 {
        return by_grammar.into_values().try_for_each(fill);
    }
    let mut groups: Vec<_> = by_grammar.into_values().collect();
    // The largest first, so that no thread is left with it at the end.
    groups.sort_unstable_by_key(|rows| std::cmp::Reverse(rows.len()));
    pool.install(|| groups.into_par_iter().with_max_len(1).try_for_each(fill))
}

/// Locks a matcher. A panic in one of its operations leaves it as it was before.
pub fn lock(matcher: &Mutex<Matcher>) -> MutexGuard<'_, Matcher> {
    matcher.lock().unwrap_or_else(PoisonError::into_inner)
}
