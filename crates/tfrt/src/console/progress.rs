//! [`Progress`]: a line on a terminal that says what takes so long.

use std::io::{self, Write};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The time after which a line is shown.
pub(super) const PATIENCE: Duration = Duration::from_millis(400);
/// The time after which a line is shown that counts what is done.
pub(super) const PATIENCE_OF_COUNTS: Duration = Duration::from_secs(1);
/// The time between two changes of the line.
const BEAT: Duration = Duration::from_millis(200);
/// The length of the longest text, so that the line is one.
const MAX_CHARS: usize = 60;

/// A line on a terminal that tells of work in progress. Dropped, the line is gone.
pub struct Progress(Option<Shown>);

/// A line that a thread shows.
struct Shown {
    text: Arc<Mutex<String>>,
    end: Sender<()>,
    thread: JoinHandle<()>,
}

impl Progress {
    /// Begins to show the line after some time; `None` shows nothing.
    pub(super) fn new(what: Option<String>, patience: Duration) -> Progress {
        let Some(what) = what else {
            return Progress(None);
        };
        let text = Arc::new(Mutex::new(cut(&what)));
        let shown = text.clone();
        let (end, is_over) = mpsc::channel();
        let show = move || {
            let begin = Instant::now();
            let (mut patience, mut is_shown) = (patience, false);
            while is_over.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
                let what = shown.lock().unwrap_or_else(PoisonError::into_inner).clone();
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
        Progress(thread.ok().map(|thread| Shown { text, end, thread }))
    }

    /// Changes the text, which is shown with the next beat.
    pub fn say(&self, what: &str) {
        if let Some(shown) = &self.0 {
            *shown.text.lock().unwrap_or_else(PoisonError::into_inner) = cut(what);
        }
    }
}

fn cut(what: &str) -> String {
    what.chars().take(MAX_CHARS).collect()
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(Shown { end, thread, .. }) = self.0.take() {
            drop(end);
            let _ = thread.join();
        }
    }
}
