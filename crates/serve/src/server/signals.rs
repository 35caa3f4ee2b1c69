//! [`Server::serve`]: a server that runs until the process is told to end.

use std::io;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

use super::Server;
use super::connection::first;

/// How a server came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// All requests were answered.
    Drained,
    /// Some requests were cut off when the time for them had passed.
    CutOff,
    /// A second signal came: whoever called should end the process at once.
    Twice,
}

impl Server {
    /// Serves until the process gets SIGTERM or SIGINT. Then `/v2/health/ready` says no, and for `delay` connections are
    /// still taken, so that whoever distributes requests can see that; then waits for requests, for `patience` at most.
    /// A second signal ends the wait.
    ///
    /// # Errors
    ///
    /// Those of the system: signals can't be heard.
    pub fn serve(self, delay: Duration, patience: Duration) -> io::Result<Ended> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (mut terminate, mut interrupt) = {
            let _entered = runtime.enter();
            (
                signal(SignalKind::terminate())?,
                signal(SignalKind::interrupt())?,
            )
        };
        let mut heard = move || {
            runtime.block_on(async {
                let interrupted = async {
                    interrupt.recv().await;
                };
                first(interrupted, terminate.recv()).await;
            });
        };
        heard();
        let stopper = self.stopper();
        let (sender, ends) = std::sync::mpsc::channel();
        let twice = sender.clone();
        // The thread ends with the process, or hears of the second signal.
        std::thread::Builder::new().spawn(move || {
            heard();
            let _ = twice.send(Ended::Twice);
        })?;
        stopper.refuse();
        if !delay.is_zero() && ends.recv_timeout(delay).is_ok() {
            return Ok(Ended::Twice);
        }
        std::thread::Builder::new().spawn(move || {
            let ended = match self.stop(patience) {
                true => Ended::Drained,
                false => Ended::CutOff,
            };
            let _ = sender.send(ended);
        })?;
        Ok(ends.recv().unwrap_or(Ended::CutOff))
    }
}
