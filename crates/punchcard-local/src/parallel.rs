//! Work shared among candle's threads.

use std::ops::Range;

/// The number of threads.
pub fn threads() -> usize {
    candle_core::utils::barrier_pool().n_workers() + 1
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
    let ascending = ranges.windows(2).all(|pair| pair[0].end <= pair[1].start);
    assert!(ascending && ranges.iter().all(|range| range.start <= range.end && range.end <= data.len()));
    if let [range] = ranges {
        return work(0, &mut data[range.clone()]);
    }
    let base = data.as_mut_ptr() as usize;
    candle_core::utils::barrier_pool().execute_chunked(ranges.len(), |indices| {
        for index in indices {
            let range = ranges[index].clone();
            // SAFETY: the range lies within `data`, whose exclusive borrow outlives this call (the pool returns when all work
            // is done). The pool hands out each index once and the ranges do not overlap, so no other thread sees this slice, and
            // its elements may be handed to this one since they are `Send`.
            let slice = unsafe { std::slice::from_raw_parts_mut((base as *mut T).add(range.start), range.len()) };
            work(index, slice);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_range_is_visited_once() {
        let mut data = vec![0.0; 1000];
        let ranges: Vec<_> = (0..100).map(|i| i * 10 + 1..i * 10 + 9).collect();
        for_each_range(&mut data, &ranges, |index, slice| {
            for value in slice {
                *value += index as f32 + 1.0;
            }
        });
        for (i, value) in data.iter().enumerate() {
            let expected = if matches!(i % 10, 1..=8) { (i / 10) as f32 + 1.0 } else { 0.0 };
            assert_eq!(*value, expected);
        }
    }

    #[test]
    #[should_panic]
    fn overlap_is_refused() {
        for_each_range(&mut [0.0; 10], &[0..6, 5..10], |_, _| {});
    }
}
