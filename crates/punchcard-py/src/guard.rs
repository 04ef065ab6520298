//! The boundary that no panic crosses.
//!
//! A panic is a fault of this library. PyO3 would raise its `PanicException`, which is no `Exception`: a server that catches
//! what goes wrong with one request would end by it. So every call that runs the engine goes through [`guarded`], and a
//! panic becomes an `InternalError`. It poisons the locks that are held: the matcher is refused from then on, and the tables
//! of its grammar begin anew.

use crate::errors::{Raise, exception};
use pyo3::prelude::*;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Why a call failed that should not have.
#[derive(Debug)]
pub struct Fault {
    operation: &'static str,
    what: String,
    hint: &'static str,
}

const REPORT: &str = "This is a bug in Punchcard: please report it, with this message and the input";

thread_local! {
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Has panics of guarded calls noted, instead of printed. Others are printed as before.
pub fn install() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if !IS_GUARDED.get() {
            return print(info);
        }
        let place = info.location().map(|at| format!(" ({}:{})", at.file(), at.line()));
        PLACE.with(|known| *known.borrow_mut() = place);
    }));
}

/// Does the work; a panic is a fault that names the operation.
///
/// Whoever calls this keeps out of what the work has left behind: the locks that it holds are let go within `work`, so that
/// a panic poisons them.
pub fn guarded<T>(operation: &'static str, work: impl FnOnce() -> T) -> Result<T, Fault> {
    let outer = IS_GUARDED.replace(true);
    let done = catch_unwind(AssertUnwindSafe(work));
    IS_GUARDED.set(outer);
    done.map_err(|payload| {
        let place = PLACE.with(|known| known.borrow_mut().take()).unwrap_or_default();
        Fault { operation, what: format!("{}{place}", message(&*payload)), hint: REPORT }
    })
}

fn message(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("no message")
}

impl Fault {
    /// An earlier call on the same matcher, or sequence, has failed inside.
    pub fn poisoned(operation: &'static str) -> Fault {
        let what = "an earlier call has failed inside, and may have left this object damaged".to_string();
        Fault { operation, what, hint: "Make a new one; and please report the first error" }
    }
}

impl Raise for Fault {
    fn raise(&self, py: Python<'_>) -> PyErr {
        let message = format!("{} failed inside Punchcard: {}", self.operation, self.what);
        let fields = [("hint", self.hint.to_string()), ("operation", self.operation.to_string())];
        exception(py, "InternalError", &message, &fields)
    }
}

/// Does the work without Python's lock. What it returns as an error, or panics with, is raised.
pub fn run<T: Send, E: Raise + Send>(
    py: Python<'_>,
    operation: &'static str,
    work: impl FnOnce() -> Result<T, E> + Send,
) -> PyResult<T> {
    raised(py, py.detach(|| guarded(operation, work)))
}

/// The same of work that cannot fail in any other way.
pub fn sure<T: Send>(py: Python<'_>, operation: &'static str, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    run(py, operation, || Ok::<T, Infallible>(work()))
}

/// What was done, or the exception for what went wrong.
pub fn raised<T, E: Raise>(py: Python<'_>, done: Result<Result<T, E>, Fault>) -> PyResult<T> {
    match done {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(error.raise(py)),
        Err(fault) => Err(fault.raise(py)),
    }
}
