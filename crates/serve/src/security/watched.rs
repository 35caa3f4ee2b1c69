//! [`Watched`]: a value that is read from files, and again when one of them has changed.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tfrt_host::Error;

type Read<T> = dyn Fn(&[PathBuf]) -> Result<T, Error> + Send + Sync;

/// A value that is read from files. Whoever asks for it looks at the files, if nobody has for a while.
pub(super) struct Watched<T> {
    paths: Vec<PathBuf>,
    read: Box<Read<T>>,
    state: Mutex<State<T>>,
    n_failed: AtomicU64,
}

struct State<T> {
    value: Arc<T>,
    seen: Vec<Option<Seen>>,
    looked: Instant,
}

/// A file as it was seen: when it was changed, in seconds and nanoseconds, its length, and which file it is.
type Seen = (i64, i64, u64, u64);

impl<T> Watched<T> {
    /// Reads the files.
    pub fn new(
        paths: Vec<PathBuf>,
        read: impl Fn(&[PathBuf]) -> Result<T, Error> + Send + Sync + 'static,
    ) -> Result<Watched<T>, Error> {
        // Looked at before they are read: a change between both is seen the next time.
        let seen = look(&paths);
        let value = Arc::new(read(&paths)?);
        Ok(Watched {
            paths,
            read: Box::new(read),
            state: Mutex::new(State {
                value,
                seen,
                looked: Instant::now(),
            }),
            n_failed: AtomicU64::new(0),
        })
    }

    /// Returns the value of what the files have now, or had when they could last be read; without a look at them if they
    /// were looked at within `trust_time`.
    pub fn get(&self, trust_time: Duration) -> Arc<T> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.looked.elapsed() >= trust_time {
            state.looked = Instant::now();
            let seen = look(&self.paths);
            if seen != state.seen {
                state.seen = seen;
                match (self.read)(&self.paths) {
                    Ok(value) => state.value = Arc::new(value),
                    Err(_) => {
                        self.n_failed.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }
        }
        state.value.clone()
    }

    /// Returns how often files that had changed could not be read.
    pub fn n_failed(&self) -> u64 {
        self.n_failed.load(Ordering::Relaxed)
    }
}

fn look(paths: &[PathBuf]) -> Vec<Option<Seen>> {
    let seen = |path: &PathBuf| {
        let found = std::fs::metadata(path).ok()?;
        Some((found.mtime(), found.mtime_nsec(), found.len(), found.ino()))
    };
    paths.iter().map(seen).collect()
}
