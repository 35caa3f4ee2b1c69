//! [`Finding`]: what the simulated driver has found wrong with its use.

use std::fmt;

/// A wrong use of the driver, which a real one may never show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The kind.
    pub kind: FindingKind,
    /// Where it is, and between which commands.
    pub text: String,
}

/// The kinds of findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FindingKind {
    /// Two commands of which neither waits for the other use the same bytes, and one writes them.
    Race,
    /// A command uses memory that was freed, or given back.
    UseAfterFree,
    /// Memory is freed while a command may still use it.
    FreedInUse,
    /// A command reads bytes that nobody has written.
    Uninitialised,
    /// An access outside of all memory, or beyond the end of a block.
    OutOfBounds,
    /// An access whose address is no multiple of its size.
    Misaligned,
    /// Two threads of a block use the same bytes of shared memory without a barrier between, and one writes them.
    SharedRace,
    /// A barrier, or an exchange between threads, that not all threads reach.
    Divergence,
    /// A handle of another context.
    WrongContext,
    /// A handle that was given back, or never was.
    BadHandle,
    /// A stream waits for an event that was never recorded, which is no wait at all.
    UnrecordedEvent,
    /// Something is taken away while a command needs it.
    DestroyedInUse,
    /// A call that can't be part of a graph, for a stream that captures: waiting, asking, copies from and to the host.
    Capture,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.kind, self.text)
    }
}
