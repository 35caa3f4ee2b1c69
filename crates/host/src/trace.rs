//! Spans for kernels, functions and programs, for whoever listens.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// How much is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Programs and functions.
    #[default]
    Default,
    /// And what costs more to tell.
    Verbose,
    /// And every kernel.
    Debug,
}

/// Hears what begins and what ends (its panics are caught, and lost); on each thread, ends come in the reverse order of beginnings.
pub trait TraceSink: Send + Sync + 'static {
    /// The level up to which it listens.
    fn level(&self) -> Level;

    /// Something begins on this thread.
    fn begin(&self, name: &str);

    /// What began last on this thread ends.
    fn end(&self);
}

/// Something that lasts while this lives.
pub struct Scope<'a>(Option<&'a Arc<dyn TraceSink>>);

impl<'a> Scope<'a> {
    /// Begins something, if the sink listens at `level`. The name is made only then.
    pub fn new(sink: &'a Arc<dyn TraceSink>, level: Level, name: impl FnOnce() -> String) -> Self {
        if sink.level() < level {
            return Scope(None);
        }
        let begun = catch_unwind(AssertUnwindSafe(|| sink.begin(&name())));
        crate::executor::forget_panic(begun);
        Scope(Some(sink))
    }
}

impl Drop for Scope<'_> {
    fn drop(&mut self) {
        if let Some(sink) = self.0 {
            let ended = catch_unwind(AssertUnwindSafe(|| sink.end()));
            crate::executor::forget_panic(ended);
        }
    }
}
