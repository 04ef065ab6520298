//! Work: how many steps an operation may take, and whether it was cancelled.
//!
//! Time is no limit to rely on: a slow machine would refuse what a fast one takes. So loops count their steps, each some tens
//! of nanoseconds. The limit holds for the operation that runs on this thread, whatever stores, searches and machines it goes
//! through; so it is kept beside them, and who compiles or fills a mask says how much that may be ([`within`]). Where nobody
//! has said so there is no limit.
//!
//! An operation that is refused leaves everything as it was: results are noted when they are complete.

use crate::languages::LimitExceeded;
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The name of what [`LimitExceeded`] says of a cancelled operation.
pub const CANCELLED: &str = "cancelled";

/// So many steps are taken between two looks at the token.
const STRIDE: u64 = 4096;

/// Ends operations on other threads.
#[derive(Clone, Debug, Default)]
pub struct CancelToken(Arc<AtomicBool>);

impl CancelToken {
    /// Ends all operations that run, or will run, under the token: each fails at its next look.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

thread_local! {
    /// Steps until the next look; negative if they are overdrawn.
    static LEFT: Cell<i64> = const { Cell::new(0) };
    static ALLOWANCE: Cell<Allowance> = const { Cell::new(Allowance { limit: u64::MAX, rest: u64::MAX }) };
    static TOKEN: RefCell<Option<CancelToken>> = const { RefCell::new(None) };
}

#[derive(Clone, Copy)]
struct Allowance {
    /// Of the whole operation; the last number for none.
    limit: u64,
    /// Steps beyond those that are left until the next look.
    rest: u64,
}

/// Counts steps that were taken, where nothing can be refused.
pub fn count(steps: u64) {
    LEFT.set(LEFT.get().saturating_sub_unsigned(steps));
}

/// Counts steps. An error if they are more than the operation may take, or it was cancelled; and so from then on.
pub fn spend(steps: u64) -> Result<(), LimitExceeded> {
    count(steps);
    if LEFT.get() >= 0 { Ok(()) } else { look() }
}

#[cold]
fn look() -> Result<(), LimitExceeded> {
    if TOKEN.with_borrow(|token| token.as_ref().is_some_and(CancelToken::is_cancelled)) {
        return Err(LimitExceeded { limit: CANCELLED, value: 0 });
    }
    let Allowance { limit, rest } = ALLOWANCE.get();
    let more = LEFT.get().unsigned_abs().saturating_add(STRIDE).min(rest);
    LEFT.set(LEFT.get().saturating_add_unsigned(more));
    if limit != u64::MAX {
        ALLOWANCE.set(Allowance { limit, rest: rest - more });
    }
    if LEFT.get() < 0 {
        return Err(LimitExceeded { limit: "max_work", value: usize::try_from(limit).unwrap_or(usize::MAX) });
    }
    Ok(())
}

/// Does an operation that may take at most so many steps. They do not count as steps of an operation around it.
pub fn within<T>(limit: u64, operation: impl FnOnce() -> T) -> T {
    /// What held before, to be restored also after a panic.
    struct Outer(i64, Allowance);
    impl Drop for Outer {
        fn drop(&mut self) {
            LEFT.set(self.0);
            ALLOWANCE.set(self.1);
        }
    }
    let _outer = Outer(LEFT.replace(0), ALLOWANCE.replace(Allowance { limit, rest: limit }));
    operation()
}

/// Does an operation that ends with an error when the token is cancelled, on this or another thread.
pub fn cancellable<T>(token: Option<&CancelToken>, operation: impl FnOnce() -> T) -> T {
    /// The token that held before.
    struct Outer(Option<CancelToken>);
    impl Drop for Outer {
        fn drop(&mut self) {
            TOKEN.set(self.0.take());
        }
    }
    let Some(token) = token else { return operation() };
    let _outer = Outer(TOKEN.replace(Some(token.clone())));
    // The first step looks at the token.
    let Allowance { limit, rest } = ALLOWANCE.get();
    let left = LEFT.get().max(0);
    LEFT.set(LEFT.get() - left);
    ALLOWANCE.set(Allowance { limit, rest: rest.saturating_add_signed(left) });
    operation()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many steps of this size are taken before one is refused.
    fn steps(size: u64) -> u64 {
        (0..).find(|_| spend(size).is_err()).unwrap_or_default()
    }

    #[test]
    fn an_operation_takes_so_many_steps_and_no_more() {
        for limit in [0, 1, 100, STRIDE - 1, STRIDE, STRIDE + 1, 10 * STRIDE + 7] {
            assert_eq!(within(limit, || steps(1)), limit);
            assert_eq!(within(limit, || steps(3)), limit / 3);
            let error = within(limit, || spend(limit + 1)).unwrap_err();
            assert_eq!((error.limit, error.value), ("max_work", limit as usize));
        }
        // What was refused stays refused, and only there.
        within(10, || {
            assert!(spend(11).is_err() && spend(1).is_err());
        });
        assert!(spend(1).is_ok());
        assert!(within(u64::MAX, || spend(u64::MAX / 2).is_ok() && spend(u64::MAX).is_ok()));
    }

    #[test]
    fn an_operation_within_another_has_an_allowance_of_its_own() {
        within(100, || {
            assert_eq!(within(60, || steps(1)), 60);
            assert_eq!(within(600, || steps(1)), 600);
            assert_eq!(steps(1), 100);
        });
        within(100, || {
            count(1000);
            assert!(spend(1).is_err());
        });
    }

    #[test]
    fn a_cancelled_operation_ends_at_its_next_look() {
        let (token, other) = (CancelToken::default(), CancelToken::default());
        cancellable(Some(&token), || {
            assert!(spend(1).is_ok());
            cancellable(Some(&other), || assert!(spend(1).is_ok()));
            std::thread::scope(|scope| scope.spawn(|| token.cancel()).join().unwrap());
            assert!(steps(1) <= STRIDE);
            assert_eq!(spend(1).unwrap_err().limit, CANCELLED);
        });
        assert!(spend(1).is_ok());
        assert!(cancellable(Some(&token), || spend(1)).is_err() && token.is_cancelled() && !other.is_cancelled());
        within(50, || assert!(cancellable(Some(&other), || steps(1)) <= 50));
    }

    #[test]
    fn a_panic_takes_the_limit_with_it() {
        let done = std::panic::catch_unwind(|| within(5, || panic!("within")));
        assert!(done.is_err() && spend(1000).is_ok());
    }
}
