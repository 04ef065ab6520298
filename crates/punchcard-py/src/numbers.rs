//! Numbers and lists as Python has them. An int has any size, and a sequence may say any length of itself.

use pyo3::Borrowed;
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;

/// A token id: any int, or what can stand for one.
#[derive(Clone, Copy)]
pub struct TokenId(pub u32);

impl<'a, 'py> FromPyObject<'a, 'py> for TokenId {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        match object.extract::<u32>() {
            Ok(id) => Ok(TokenId(id)),
            // A number that no vocabulary has is never legal, however large; what is no number is an error.
            Err(error) if error.is_instance_of::<PyOverflowError>(object.py()) => Ok(TokenId(u32::MAX)),
            Err(error) => Err(error),
        }
    }
}

/// Any int. What is beyond 64 bits becomes the last number within, which is refused wherever it matters.
#[derive(Clone, Copy)]
pub struct Whole(pub i64);

impl Whole {
    /// As an index or a count; `None` if it is negative.
    pub fn index(self) -> Option<usize> {
        usize::try_from(self.0).ok()
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for Whole {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        match object.extract::<i64>() {
            Ok(number) => Ok(Whole(number)),
            Err(error) if error.is_instance_of::<PyOverflowError>(object.py()) => {
                Ok(Whole(if object.lt(0)? { i64::MIN } else { i64::MAX }))
            }
            Err(error) => Err(error),
        }
    }
}

/// The items of anything that can be iterated over. How long it says to be is not believed.
pub struct Items<T>(pub Vec<T>);

impl<'a, 'py, T: for<'b> FromPyObject<'b, 'py, Error: Into<PyErr>>> FromPyObject<'a, 'py> for Items<T> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        const MOST_AHEAD: usize = 1 << 16;
        let mut items = Vec::with_capacity(object.len().unwrap_or(0).min(MOST_AHEAD));
        for item in object.try_iter()? {
            items.push(item?.extract::<T>().map_err(Into::into)?);
        }
        Ok(Items(items))
    }
}
