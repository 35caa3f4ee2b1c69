//! Spans for kernels, functions and programs, for whoever listens.

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

/// Hears what begins and what ends; on each thread, ends come in the reverse order of beginnings.
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
        sink.begin(&name());
        Scope(Some(sink))
    }
}

impl Drop for Scope<'_> {
    fn drop(&mut self) {
        if let Some(sink) = self.0 {
            sink.end();
        }
    }
}
