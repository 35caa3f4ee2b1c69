//! `--untrusted`: an end of the process that no kernel can put off.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use crate::failure::{ExitStatus, Failure};

/// How long the process waits for what it says at its end to be taken.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How long work has at least to end by itself once its deadline is over: what is stopped needs a moment to say so.
const LEAST_GRACE: Duration = Duration::from_millis(100);

/// Runs `work`, and ends the process if it takes more than twice the time that a function may take: a
/// function is stopped at its deadline, but a kernel that is running then is not. The process ends even if nobody
/// reads what `say` says.
///
/// # Errors
///
/// Those of `work`.
pub fn within(
    time: Duration,
    say: impl FnOnce(&Failure) + Send,
    work: impl FnOnce() -> Result<ExitStatus, Failure>,
) -> Result<ExitStatus, Failure> {
    thread::scope(|scope| {
        let (at_work, is_done) = mpsc::channel::<()>();
        scope.spawn(move || {
            let ended = is_done.recv_timeout(time.saturating_add(time.max(LEAST_GRACE)));
            if ended == Err(RecvTimeoutError::Timeout) {
                let failure = Failure::TookTooLong(time);
                let status = failure.status();
                let (said, is_said) = mpsc::channel::<()>();
                scope.spawn(move || {
                    say(&failure);
                    drop(said);
                });
                let _ = is_said.recv_timeout(LAST_WORDS);
                std::process::exit(i32::from(status as u8));
            }
        });
        let done = work();
        drop(at_work);
        done
    })
}
