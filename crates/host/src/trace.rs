//! Spans for kernels, functions and programs, for whoever listens.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// The level of detail of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum TraceLevel {
    /// Programs and functions are traced.
    #[default]
    Default,
    /// More costly events are traced, too.
    Verbose,
    /// Every kernel is traced, too.
    Debug,
}

/// A receiver of spans' beginnings and ends. Its panics are caught, and lost. On each thread, ends
/// come in the reverse order of beginnings.
pub trait TraceSink: Send + Sync + 'static {
    /// Returns the level up to which the sink listens.
    fn level(&self) -> TraceLevel;

    /// Begins a span on this thread.
    fn begin(&self, name: &str);

    /// Ends the span that began last on this thread.
    fn end(&self);
}

/// A span that lasts while this lives.
pub struct TraceSpan<'a>(Option<&'a Arc<dyn TraceSink>>);

impl<'a> TraceSpan<'a> {
    /// Begins a span, if the sink listens at `level`. The name is made only then.
    pub fn new(
        sink: &'a Arc<dyn TraceSink>,
        level: TraceLevel,
        name: impl FnOnce() -> String,
    ) -> Self {
        if sink.level() < level {
            return TraceSpan(None);
        }
        let begun = catch_unwind(AssertUnwindSafe(|| sink.begin(&name())));
        crate::executor::forget_panic(begun);
        TraceSpan(Some(sink))
    }
}

impl Drop for TraceSpan<'_> {
    fn drop(&mut self) {
        if let Some(sink) = self.0 {
            let ended = catch_unwind(AssertUnwindSafe(|| sink.end()));
            crate::executor::forget_panic(ended);
        }
    }
}
