//! Bitmasks of numpy and torch, and filling many of their rows at once.

use crate::errors::exception;
use crate::guard;
use crate::matcher::{Failed, PyMatcher};
use crate::numbers::{Items, Whole};
use numpy::{PyArray2, PyArrayMethods, PyReadwriteArray2, PyUntypedArrayMethods};
use punchcard_engine::batch;
use pyo3::prelude::*;

/// The int32 array behind a numpy array or a torch tensor on the CPU.
pub fn writable<'py>(py: Python<'py>, bitmask: &Bound<'py, PyAny>) -> PyResult<PyReadwriteArray2<'py, i32>> {
    let array = match bitmask.cast::<PyArray2<i32>>() {
        Ok(array) => array.clone(),
        Err(_) => bitmask
            .call_method0("numpy")
            .ok()
            .and_then(|array| array.cast_into::<PyArray2<i32>>().ok())
            .ok_or_else(|| wrong(py, "The bitmask is no int32 array with two dimensions"))?,
    };
    // What numpy calls aligned depends on the type alone, so a view into bytes may still stand anywhere.
    if !array.data().is_aligned() {
        return Err(wrong(py, "The bitmask does not begin at a multiple of four bytes"));
    }
    if !array.is_c_contiguous() {
        return Err(wrong(py, "The rows of the bitmask are not contiguous"));
    }
    array.try_readwrite().map_err(|_| wrong(py, "The bitmask is read-only or in use"))
}

/// A `MatcherError` that says how to get a bitmask that fits.
fn wrong(py: Python<'_>, message: &str) -> PyErr {
    let hint = "Use punchcard.allocate_token_bitmask(batch, vocab_size)".to_string();
    exception(py, "MatcherError", message, &[("hint", hint)])
}

/// So many rows of a bitmask, from row `first` on, as the words that the engine writes.
pub fn rows_of<'a>(
    py: Python<'_>,
    array: &'a mut PyReadwriteArray2<'_, i32>,
    first: Whole,
    count: usize,
    words: usize,
) -> PyResult<&'a mut [u32]> {
    let (rows, columns) = (array.shape()[0], array.shape()[1]);
    let end = first.index().and_then(|first| first.checked_add(count)).filter(|&end| end <= rows);
    let (Some(first), Some(end)) = (first.index().filter(|_| columns == words), end) else {
        let last = i128::from(first.0) + count.max(1) as i128 - 1;
        return Err(wrong(
            py,
            &format!("The bitmask has the shape [{rows}, {columns}]; row {last} of [batch, {words}] is needed"),
        ));
    };
    let all = array.as_slice_mut().map_err(|_| wrong(py, "The rows of the bitmask are not contiguous"))?;
    // A bitmask is bits: the sign of a word means nothing.
    Ok(bytemuck::cast_slice_mut(&mut all[first * words..end * words]))
}

/// Fills rows of one bitmask for many matchers, on threads of its own.
#[pyclass(name = "BatchExecutor", module = "punchcard._core", frozen)]
pub struct PyBatchExecutor(rayon::ThreadPool);

/// More threads than that only wait for each other.
const MOST_THREADS: usize = 1024;

#[pymethods]
impl PyBatchExecutor {
    #[new]
    fn new(py: Python<'_>, threads: Whole) -> PyResult<Self> {
        let Some(count) = threads.index().filter(|&count| count <= MOST_THREADS) else {
            let message = format!("threads={} is not possible", threads.0);
            let hint = format!("Take a number from 1 to {MOST_THREADS}");
            return Err(exception(py, "MatcherError", &message, &[("hint", hint)]));
        };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(count.max(1)).build();
        pool.map(PyBatchExecutor).map_err(|error| {
            exception(py, "MatcherError", &format!("{count} threads could not be started: {error}"), &[])
        })
    }

    #[getter]
    fn threads(&self) -> usize {
        self.0.current_num_threads()
    }

    /// Row `rows[i]` gets the mask of `matchers[i]`; a row without a matcher (None) gets all ones.
    fn fill(
        &self,
        py: Python<'_>,
        matchers: Items<Option<Py<PyMatcher>>>,
        bitmask: &Bound<'_, PyAny>,
        rows: Items<Whole>,
    ) -> PyResult<Vec<bool>> {
        let wrong = |message: String| exception(py, "MatcherError", &message, &[]);
        let (matchers, rows) = (matchers.0, rows.0);
        if matchers.len() != rows.len() {
            return Err(wrong(format!("{} rows do not fit {} matchers", rows.len(), matchers.len())));
        }
        let mut array = writable(py, bitmask)?;
        let (count, words) = (array.shape()[0], array.shape()[1]);
        let mut order = Vec::with_capacity(rows.len());
        for (i, row) in rows.iter().enumerate() {
            match row.index().filter(|&index| index < count) {
                Some(index) => order.push((index, i)),
                None => return Err(wrong(format!("Row {} is not among the {count} rows of the bitmask", row.0))),
            }
            if let Some(matcher) = &matchers[i] {
                rows_of(py, &mut array, *row, 1, matcher.get().words())?;
            }
        }
        order.sort_unstable();
        if let Some(twice) = order.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(wrong(format!("Row {} is given twice", twice[0].0)));
        }
        let mut forbids = vec![false; rows.len()];
        let mut rest = rows_of(py, &mut array, Whole(0), count, words)?;
        let (mut work, mut done) = (Vec::with_capacity(rows.len()), 0);
        let mut results: Vec<(usize, &mut bool)> = forbids.iter_mut().enumerate().collect();
        results.sort_unstable_by_key(|&(i, _)| rows[i].0);
        for ((index, i), (_, forbids)) in order.into_iter().zip(results) {
            let (row, behind) = rest[(index - done) * words..].split_at_mut(words);
            (rest, done) = (behind, index + 1);
            match &matchers[i] {
                Some(matcher) => work.push((matcher.get().grammar.address(), (matcher.get(), row, forbids))),
                None => row.fill(u32::MAX),
            }
        }
        let fill = |(matcher, row, forbids): (&PyMatcher, &mut [u32], &mut bool)| {
            *forbids = matcher.fill_locked("Filling a batch of masks", row)?;
            Ok::<(), Failed>(())
        };
        guard::run(py, "Filling a batch of masks", || batch::fill_rows(work, &self.0, fill))?;
        Ok(forbids)
    }
}
