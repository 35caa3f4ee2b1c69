//! Leak reports of test programs: how many values and memory blocks are alive when the process ends. Builds for
//! development only.
//!
//! A program's values belong to its threads, or to tasks and timers, which belong to queues, whose threads end
//! with them. So nothing may be alive once each thread of a queue has ended, and each other that ever made or freed
//! anything; what is, was lost, or lies in a static variable. Each time that no such thread is left, the count is
//! written to a file of the folder that the variable `TFRT_ACCOUNTING` names, and `?` when there is one again: what is
//! there at last is the count of the end. `cargo xtask accounting` has tests write, and reads it.
//!
//! A worker that is itself the last to hold its queue ends whenever it likes, perhaps after the last test. So the
//! program waits for such threads when it ends, for some seconds at most (not on Windows): what is `?` even then is held
//! by a thread that never ends, as those of a queue that was lost.

use std::path::{Path, PathBuf};
use std::{env, fs, process};

/// A kind of object whose live instances are counted.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ObjectKind {
    /// Counted cells.
    Values,
    /// Blocks of memory, in which there are values, continuations, frames and buffers.
    Blocks,
}

/// Registers the calling thread as one that the program waits for at its end, before it makes or frees anything: a
/// thread of a queue, or one that runs a task, whose captures others made. Changes no count.
pub(crate) fn register_thread() {
    crate::counters::register_thread();
    crate::memory::register_thread();
}

/// Writes how many of a kind are alive now.
pub(crate) fn report(kind: ObjectKind, n_alive: u64) {
    write(kind, || n_alive.to_string());
}

/// Withdraws the reported number of a kind: a thread may have some in its hands again.
pub(crate) fn withdraw(kind: ObjectKind) {
    write(kind, || "?".to_owned());
}

/// Replaces the file of a kind's count. Failures are silent: then the file keeps its content.
fn write(kind: ObjectKind, text: impl FnOnce() -> String) {
    let Some(path) = file_of(kind) else {
        return;
    };
    #[cfg(unix)]
    end::wait_then();
    // At once, or not at all: the program may end meanwhile.
    let written = path.with_added_extension("new");
    if fs::write(&written, text()).is_ok() {
        let _ = fs::rename(written, path);
    }
}

/// Returns the file of a kind's count; `None` unless this is a test program and reports are asked for: commands that
/// tests run end in the middle of what they do.
fn file_of(kind: ObjectKind) -> Option<PathBuf> {
    let folder = env::var_os("TFRT_ACCOUNTING")?;
    let program = env::current_exe().ok()?;
    // Where Cargo has them.
    if !program.parent()?.ends_with("deps") {
        return None;
    }
    let program = program.file_stem()?.to_string_lossy();
    let kind = match kind {
        ObjectKind::Values => "values",
        ObjectKind::Blocks => "blocks",
    };
    let name = format!("{program}.{}.{kind}", process::id());
    Some(Path::new(&folder).join(name))
}

/// The end of the program, which waits for its threads.
#[cfg(unix)]
#[allow(unsafe_code)]
mod end {
    use std::ffi::c_int;
    use std::sync::Once;
    use std::time::{Duration, Instant};
    use std::{fs, thread};

    use super::{ObjectKind, file_of};

    /// The longest time that the end of the program waits for its threads.
    const PATIENCE: Duration = Duration::from_secs(3);

    unsafe extern "C" {
        // SAFETY: the C standard has it so (C17, 7.22.4.2), and any function may be passed that takes nothing; the
        // standard library links what has it.
        safe fn atexit(function: extern "C" fn()) -> c_int;
    }

    /// Makes the program wait for its threads when it ends.
    pub(super) fn wait_then() {
        static ONCE: Once = Once::new();
        // If there is no room for one more function, nobody waits.
        ONCE.call_once(|| _ = atexit(wait));
    }

    /// Waits until nothing is left, but not longer than [`PATIENCE`].
    extern "C" fn wait() {
        let is_nothing = |kind| {
            file_of(kind)
                .and_then(|path| fs::read_to_string(path).ok())
                .is_none_or(|text| text == "0")
        };
        let begun = Instant::now();
        while ![ObjectKind::Values, ObjectKind::Blocks]
            .into_iter()
            .all(is_nothing)
            && begun.elapsed() < PATIENCE
        {
            thread::sleep(Duration::from_millis(1));
        }
    }
}
