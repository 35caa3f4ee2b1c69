//! `--untrusted`: an end of the process that no kernel can put off.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use crate::failure::{ExitStatus, Failure};
use crate::talk::Talk;

/// How long work has at least to end by itself once its deadline is over: what is stopped needs a moment to say so.
const LEAST_GRACE: Duration = Duration::from_millis(100);

/// Runs `work`, and ends the process if it takes more than twice the time that a function may take: a
/// function is stopped at its deadline, but a kernel that is running then is not.
///
/// # Errors
///
/// Those of `work`.
pub fn within(
    time: Duration,
    talk: &Talk,
    work: impl FnOnce() -> Result<ExitStatus, Failure>,
) -> Result<ExitStatus, Failure> {
    thread::scope(|scope| {
        let (at_work, is_done) = mpsc::channel::<()>();
        scope.spawn(move || {
            let ended = is_done.recv_timeout(time.saturating_add(time.max(LEAST_GRACE)));
            if ended == Err(RecvTimeoutError::Timeout) {
                talk.failure(&Failure::TookTooLong(time));
                std::process::exit(i32::from(ExitStatus::Cancelled as u8));
            }
        });
        let done = work();
        drop(at_work);
        done
    })
}
