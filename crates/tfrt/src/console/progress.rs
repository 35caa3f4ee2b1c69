//! [`Progress`]: a line on a terminal that says what takes so long.

use std::io::{self, Write};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The time after which a line is shown.
const PATIENCE: Duration = Duration::from_millis(400);
/// The time between two changes of the line.
const BEAT: Duration = Duration::from_millis(200);
/// The length of the longest text, so that the line is one.
const MAX_CHARS: usize = 60;

/// A line on a terminal that tells of work in progress. Dropped, the line is gone.
pub struct Progress(Option<(Sender<()>, JoinHandle<()>)>);

impl Progress {
    /// Begins to show the line; `None` shows nothing.
    pub(super) fn new(what: Option<String>) -> Progress {
        let Some(what) = what else {
            return Progress(None);
        };
        let what: String = what.chars().take(MAX_CHARS).collect();
        let (end, is_over) = mpsc::channel();
        let show = move || {
            let begin = Instant::now();
            let (mut patience, mut is_shown) = (PATIENCE, false);
            while is_over.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
                let seconds = begin.elapsed().as_secs_f32();
                // Nothing can be done if it can't be shown.
                let _ = write!(io::stderr(), "\r{what}: {seconds:.1} s\x1b[K");
                (patience, is_shown) = (BEAT, true);
            }
            if is_shown {
                let _ = write!(io::stderr(), "\r\x1b[K");
            }
        };
        let thread = thread::Builder::new().spawn(show);
        Progress(thread.ok().map(|thread| (end, thread)))
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((end, thread)) = self.0.take() {
            drop(end);
            let _ = thread.join();
        }
    }
}
