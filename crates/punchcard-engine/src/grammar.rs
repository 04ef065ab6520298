//! A compiled grammar: its source, its vocabulary, and the tables that all its matchers share.

use crate::error::CompileError;
use crate::machine::Machine;
use crate::options::Limits;
use crate::tables::Tables;
use crate::vocabulary::Vocabulary;
use punchcard_automata::work;
use punchcard_grammar::Expr;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

/// Bytes of stack that compiling may take: expressions and regular expressions nest.
pub(crate) const COMPILE_STACK: usize = 256 << 20;

/// What holds more bytes is freed on a thread of its own.
pub(crate) const FREED_APART: usize = 1 << 20;

/// Runs what compiles.
pub(crate) fn on_a_large_stack<T>(compile: impl FnOnce() -> T) -> T {
    stacker::grow(COMPILE_STACK, compile)
}

/// What a grammar is compiled from.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) vocabulary: Arc<Vocabulary>,
    pub(crate) expr: Expr,
    pub(crate) limits: Limits,
}

#[derive(Debug)]
struct Shared {
    source: Source,
    tables: Mutex<Tables>,
    /// Bytes that the tables hold, for those who must not wait for a grammar at work.
    size: AtomicUsize,
}

/// A grammar compiled for a vocabulary. Cheap to clone; the tables behind it grow as texts visit new states, up to
/// [`Limits::max_memory`].
#[derive(Clone, Debug)]
pub struct CompiledGrammar(Arc<Shared>);

impl Drop for CompiledGrammar {
    /// See [`free`].
    fn drop(&mut self) {
        if Arc::strong_count(&self.0) == 1 && self.memory_size() > FREED_APART {
            free_apart(self.0.clone());
        }
    }
}

/// Drops a value on a thread of its own. What many texts built up is a great many small pieces, and giving back a hundred
/// megabytes takes a tenth of a second: too long for whoever holds Python's lock or wants a mask.
pub(crate) fn free_apart(value: impl Send + 'static) {
    // Where no thread can be had, the closure is dropped here and now.
    let _ = std::thread::Builder::new().name("punchcard-free".into()).spawn(move || drop(value));
}

/// The tables of a grammar, for one operation.
pub(crate) struct Locked<'a> {
    tables: MutexGuard<'a, Tables>,
    size: &'a AtomicUsize,
}

impl Deref for Locked<'_> {
    type Target = Tables;

    fn deref(&self) -> &Tables {
        &self.tables
    }
}

impl DerefMut for Locked<'_> {
    fn deref_mut(&mut self) -> &mut Tables {
        &mut self.tables
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        self.size.store(self.tables.size(), Ordering::Relaxed);
    }
}

impl CompiledGrammar {
    /// Compiles a grammar expression.
    pub fn new(vocabulary: Arc<Vocabulary>, expr: Expr, limits: &Limits) -> Result<Self, CompileError> {
        let compile = || Machine::new(&vocabulary, &expr, limits);
        let machine = work::within(limits.max_work, || on_a_large_stack(compile))?;
        let tables = Tables::new(machine, 0, limits);
        let size = AtomicUsize::new(tables.size());
        let source = Source { vocabulary, expr, limits: *limits };
        Ok(CompiledGrammar(Arc::new(Shared { source, tables: Mutex::new(tables), size })))
    }

    /// The vocabulary that the grammar was compiled for.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.0.source.vocabulary
    }

    /// Equal for clones of one compiled grammar, which share their tables.
    pub fn address(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }

    /// The expression that was compiled.
    pub fn expr(&self) -> &Expr {
        &self.0.source.expr
    }

    /// The limits that it was compiled with.
    pub fn limits(&self) -> &Limits {
        &self.0.source.limits
    }

    /// An estimate of the bytes that the grammar and its tables hold. Does not wait for a grammar at work.
    pub fn memory_size(&self) -> usize {
        self.0.size.load(Ordering::Relaxed)
    }

    /// Whether somebody is at work on it, for whom a call would have to wait.
    pub fn is_busy(&self) -> bool {
        matches!(self.0.tables.try_lock(), Err(TryLockError::WouldBlock))
    }

    /// Panics with the tables locked, to test what is done about that.
    #[doc(hidden)]
    pub fn fail(&self) {
        let _tables = self.lock();
        panic!("asked to");
    }

    pub(crate) fn source(&self) -> &Source {
        &self.0.source
    }

    pub(crate) fn lock(&self) -> Locked<'_> {
        let Shared { tables, size, .. } = &*self.0;
        let tables = tables.lock().unwrap_or_else(|poisoned| {
            // Whoever panicked may have left the tables half written.
            let mut guard = poisoned.into_inner();
            guard.mark_broken();
            tables.clear_poison();
            guard
        });
        Locked { tables, size }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Matcher;

    fn compiled() -> CompiledGrammar {
        let tokens = (0..=255u8).map(|byte| [byte].into()).chain([[].into()]).collect();
        let vocabulary = Vocabulary::new(tokens, &[256], &[], None).unwrap();
        CompiledGrammar::new(Arc::new(vocabulary), Expr::Text("ab".into()), &Limits::default()).unwrap()
    }

    #[test]
    fn the_size_is_known_while_somebody_is_at_work() {
        let grammar = compiled();
        let before = grammar.memory_size();
        let held = grammar.lock();
        assert!(grammar.is_busy() && before > 0);
        assert_eq!(grammar.memory_size(), before);
        drop(held);
        assert!(!grammar.is_busy());
    }

    #[test]
    fn after_a_panic_the_tables_begin_anew_and_matchers_go_on() {
        let grammar = compiled();
        let mut matcher = Matcher::new(grammar.clone(), None).unwrap();
        assert_eq!(matcher.accept_bytes(b"a"), Ok(true));
        let epoch = grammar.lock().epoch();
        let clone = grammar.clone();
        assert!(std::thread::spawn(move || clone.fail()).join().is_err());
        assert_eq!(matcher.accept_bytes(b"b"), Ok(true));
        assert_eq!(matcher.is_accepting(), Ok(true));
        assert_eq!(grammar.lock().epoch(), epoch + 1);
        assert_eq!(Matcher::new(grammar, None).unwrap().accept_bytes(b"b"), Ok(false));
    }
}
