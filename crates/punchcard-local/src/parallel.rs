//! Work shared among threads.
//!
//! A decoding step is some two hundred pieces of work of a few tens of microseconds each, one after the other. So what matters
//! is that no piece waits for a thread that the system has just put aside: threads take work from one another, and a piece is
//! done when its tasks are, whoever did them. (Candle's own pool waits for each of its threads every time; on a busy machine
//! that is ten times as slow.)

use rayon::prelude::*;
use std::ops::Range;
use std::sync::OnceLock;

/// The threads of this crate: as many as candle would use, which is the physical cores unless `RAYON_NUM_THREADS` says
/// otherwise. `None` where the system refuses to start them.
fn pool() -> Option<&'static rayon::ThreadPool> {
    static POOL: OnceLock<Option<rayon::ThreadPool>> = OnceLock::new();
    POOL.get_or_init(|| {
        let name = |index| format!("punchcard-{index}");
        rayon::ThreadPoolBuilder::new()
            .num_threads(candle_core::utils::get_num_threads())
            .thread_name(name)
            .build()
            .ok()
    })
    .as_ref()
}

/// Runs `work` on one of the threads, and with it all that it shares with the others.
pub fn run<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    match pool() {
        Some(pool) => pool.install(work),
        None => work(),
    }
}

/// The number of threads.
pub fn threads() -> usize {
    pool().map_or(1, rayon::ThreadPool::current_num_threads)
}

/// The ranges of `rows` rows of `columns` elements each, `count` rows at a time.
pub fn chunks(rows: usize, count: usize, columns: usize) -> Vec<Range<usize>> {
    (0..rows).step_by(count).map(|first| first * columns..rows.min(first + count) * columns).collect()
}

/// Calls `work(i, slice)` for each of the `ranges` of `data`, in parallel and in no certain order. The ranges must ascend
/// without overlap.
///
/// # Panics
/// Where they do not, or reach beyond `data`.
pub fn for_each_range<T: Send>(data: &mut [T], ranges: &[Range<usize>], work: impl Fn(usize, &mut [T]) + Sync) {
    if let [range] = ranges {
        return work(0, &mut data[range.clone()]);
    }
    let mut slices = Vec::with_capacity(ranges.len());
    let (mut rest, mut at) = (data, 0);
    for range in ranges {
        let (slice, after) = rest.split_at_mut(range.end - at);
        slices.push(&mut slice[range.start - at..]);
        (rest, at) = (after, range.end);
    }
    slices.into_par_iter().enumerate().for_each(|(index, slice)| work(index, slice));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_range_is_visited_once() {
        let mut data = vec![0.0; 1000];
        let ranges: Vec<_> = (0..100).map(|i| i * 10 + 1..i * 10 + 9).collect();
        run(|| {
            for_each_range(&mut data, &ranges, |index, slice| {
                for value in slice {
                    *value += index as f32 + 1.0;
                }
            });
        });
        for (i, value) in data.iter().enumerate() {
            let expected = if matches!(i % 10, 1..=8) { (i / 10) as f32 + 1.0 } else { 0.0 };
            assert_eq!(*value, expected);
        }
    }

    #[test]
    fn chunks_cover_all_rows() {
        assert_eq!(chunks(5, 2, 3), [0..6, 6..12, 12..15]);
        assert!(chunks(0, 2, 3).is_empty());
    }

    #[test]
    #[should_panic]
    fn overlap_is_refused() {
        for_each_range(&mut [0.0; 10], &[0..6, 5..10], |_, _| {});
    }
}
