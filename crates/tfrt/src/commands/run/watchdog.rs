//! The watchdog of a run: a thread that ends the process before its work does, when the time is over, which kernels
//! need not heed, or at Ctrl-C.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use tfrt::Context;

use super::interrupt::{self, Interruptible};
use crate::commands::output::{announce_end, end_process};
use crate::failure::{ExitStatus, Failure, LimitReached};

/// The time that somebody has to read what the process says at its end.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The least time that work has to end by itself after its deadline: calls that are stopped need a moment to say so.
const LEAST_GRACE: Duration = Duration::from_millis(100);

/// A handle of the thread that ends the process in time: by it the work tells what it is at.
pub struct Watchdog {
    events: Sender<Event>,
    /// Whether all the work has a deadline, and not each call.
    is_whole: bool,
}

/// A message to the watching thread.
enum Event {
    /// A call begins, with this deadline.
    Begins(Duration),
    Ends,
    /// Ctrl-C, before anything was called.
    Interrupted,
    /// The work is done.
    Done,
}

impl Watchdog {
    /// Watches a call, by a context that has this deadline; until the guard is dropped Ctrl-C stops it.
    pub fn watch_call(&self, context: &Context, deadline: Option<Duration>) -> WatchedCall<'_> {
        if let Some(time) = deadline.filter(|_| !self.is_whole) {
            self.tell(Event::Begins(time));
        }
        WatchedCall {
            watchdog: self,
            _interruptible: Interruptible::new(context),
        }
    }

    fn tell(&self, event: Event) {
        // Where no thread could be made, nobody hears it.
        let _ = self.events.send(event);
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.tell(Event::Done);
    }
}

/// A guard: the call that is watched ends when it is dropped.
pub struct WatchedCall<'w> {
    watchdog: &'w Watchdog,
    _interruptible: Interruptible,
}

impl Drop for WatchedCall<'_> {
    fn drop(&mut self) {
        if !self.watchdog.is_whole {
            self.watchdog.tell(Event::Ends);
        }
    }
}

/// Runs `work`, and ends the process if it takes too long, or is interrupted before it calls anything. What may take
/// its time is all the work, of which `whole` is the deadline, or else each call that has one. A function is stopped
/// at its deadline, but a kernel that is running then is not: so the process ends when twice the time has passed. It
/// ends even if nobody reads what `say` says.
///
/// # Errors
///
/// Those of `work`; `Limited` if `whole` can't be watched.
pub fn watched(
    whole: Option<Duration>,
    note: String,
    say: impl FnOnce(&Failure) + Send,
    work: impl FnOnce(&Watchdog) -> Result<ExitStatus, Failure>,
) -> Result<ExitStatus, Failure> {
    thread::scope(|scope| {
        let (events, heard) = mpsc::channel();
        let interrupted = events.clone();
        let watchdog = Watchdog {
            events,
            is_whole: whole.is_some(),
        };
        let watching = thread::Builder::new().name("tfrt-watch".to_owned());
        let watching = watching.spawn_scoped(scope, move || {
            if let Some(limit) = wait(&heard, whole) {
                end(scope, limit.into(), say);
            }
        });
        match watching {
            Ok(_) => interrupt::listen(note, move || drop(interrupted.send(Event::Interrupted))),
            // Then Ctrl-C ends the process without a word.
            Err(_) if whole.is_none() => {}
            Err(reason) => return Err(LimitReached::NoWatchdog(reason.to_string()).into()),
        }
        work(&watchdog)
    })
}

/// Waits until the work is done; returns the limit that was reached before.
fn wait(events: &Receiver<Event>, whole: Option<Duration>) -> Option<LimitReached> {
    // A time that no clock can show does not end.
    let limit_of = |time: Duration| {
        let grace = time.max(LEAST_GRACE);
        let end = Instant::now().checked_add(time.saturating_add(grace));
        Some((end?, time))
    };
    let mut limit = whole.and_then(limit_of);
    loop {
        let event = match limit {
            None => events.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some((end, _)) => events.recv_timeout(end.saturating_duration_since(Instant::now())),
        };
        match (event, limit) {
            (Ok(Event::Begins(time)), _) => limit = limit_of(time),
            (Ok(Event::Ends), _) => limit = None,
            (Ok(Event::Interrupted), _) => return Some(LimitReached::Interrupted),
            (Err(RecvTimeoutError::Timeout), Some((_, time))) => {
                return Some(LimitReached::Time(time));
            }
            (Ok(Event::Done) | Err(_), _) => return None,
        }
    }
}

/// Ends the process, with a word on why.
fn end<'s>(
    scope: &'s Scope<'s, '_>,
    failure: Failure,
    say: impl FnOnce(&Failure) + Send + 's,
) -> ! {
    announce_end();
    let status = failure.status();
    let (said, is_said) = mpsc::channel::<()>();
    let saying = thread::Builder::new().spawn_scoped(scope, move || {
        say(&failure);
        drop(said);
    });
    if saying.is_ok() {
        let _ = is_said.recv_timeout(LAST_WORDS);
    }
    end_process(i32::from(status as u8))
}
