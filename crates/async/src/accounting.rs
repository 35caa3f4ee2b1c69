//! What is left when a program of tests is over, for whoever asks: builds for development only.
//!
//! A program's values belong to its threads, or to tasks and timers, which belong to queues, whose threads end
//! with them. So nothing may be alive once each thread of a queue has ended, and each other that ever made or freed
//! anything; what is, was lost, or lies in a static variable. Each time that no such thread is left, the count is
//! written to a file of the folder that the variable `TFRT_ACCOUNTING` names, and removed when there is one again: what
//! is there at last is the count of the end. `cargo xtask accounting` has tests write, and reads it.
//!
//! A worker that is itself the last to hold its queue ends whenever it likes, perhaps never: the program may be over
//! before. What it still has in its hands then is not lost, and there is no count.

use std::path::{Path, PathBuf};
use std::{env, fs, process};

/// Makes the calling thread, which is one of a queue, one that is waited for, before it makes or frees anything: tasks
/// come with what others made. No count changes by that.
pub(crate) fn attend() {
    crate::counters::attend();
    crate::memory::attend();
}

/// Writes how many of a kind are alive now. Nobody is told of what goes wrong: then there is no file.
pub(crate) fn tell(kind: &str, n_alive: u64) {
    let Some(path) = file_of(kind) else {
        return;
    };
    // At once, or not at all: the program may end meanwhile.
    let written = path.with_added_extension("new");
    if fs::write(&written, n_alive.to_string()).is_ok() {
        let _ = fs::rename(written, path);
    }
}

/// Takes back what was told of a kind: a thread has some in its hands again.
pub(crate) fn withdraw(kind: &str) {
    if let Some(path) = file_of(kind) {
        let _ = fs::remove_file(path);
    }
}

/// The file of a kind's count, for whoever asks.
fn file_of(kind: &str) -> Option<PathBuf> {
    let folder = env::var_os("TFRT_ACCOUNTING")?;
    let program = env::current_exe().unwrap_or_default();
    let program = program.file_stem().unwrap_or_default().to_string_lossy();
    let name = format!("{program}.{}.{kind}", process::id());
    Some(Path::new(&folder).join(name))
}
