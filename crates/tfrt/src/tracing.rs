//! [`TracingSink`]: spans and errors for the crate `tracing`.

use std::cell::RefCell;

use tfrt_host::Error;
use tfrt_host::trace::{TraceLevel, TraceSink};
use tracing::span::EnteredSpan;

thread_local! {
    /// The spans that this thread is in, the innermost last.
    static ENTERED: RefCell<Vec<EnteredSpan>> = const { RefCell::new(Vec::new()) };
}

/// A trace sink that makes every scope of the runtime a span with target `tfrt` and a field `name`.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use tfrt::{Runtime, TracingSink, host::trace::TraceLevel};
///
/// let runtime = Runtime::builder()
///     .trace(Arc::new(TracingSink::new(TraceLevel::Default)))
///     .diagnostics(TracingSink::report)
///     .build();
/// ```
#[derive(Clone, Copy, Debug)]
pub struct TracingSink {
    level: TraceLevel,
}

impl TracingSink {
    /// Makes a sink that listens up to `level`. `TraceLevel::Debug` makes a span per kernel, which
    /// costs more than most kernels do.
    pub fn new(level: TraceLevel) -> Self {
        TracingSink { level }
    }

    /// Makes an error an event; for [`RuntimeBuilder::diagnostics`](crate::RuntimeBuilder::diagnostics).
    pub fn report(error: &Error) {
        let location = error.location().map(ToString::to_string);
        tracing::error!(
            target: "tfrt",
            code = error.code().name(),
            kernel = error.kernel(),
            location,
            "{}",
            error.message()
        );
    }
}

impl TraceSink for TracingSink {
    fn level(&self) -> TraceLevel {
        self.level
    }

    fn begin(&self, name: &str) {
        let span = tracing::info_span!(target: "tfrt", "tfrt", name).entered();
        ENTERED.with_borrow_mut(|entered| entered.push(span));
    }

    fn end(&self) {
        // Dropped outside of the borrow: a subscriber may run code of its own.
        let span = ENTERED.with_borrow_mut(Vec::pop);
        drop(span);
    }
}
