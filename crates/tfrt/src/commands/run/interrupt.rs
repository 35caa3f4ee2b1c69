//! Ctrl-C: the first cancels the running function, the second ends the process.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tfrt::{Context, Error, RequestContext};

/// What a shell reports for a process that Ctrl-C has ended.
const STATUS_OF_SIGINT: i32 = 130;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);
static CURRENT: Mutex<Option<Arc<RequestContext>>> = Mutex::new(None);

/// Begins to listen. Without a handler Ctrl-C ends the process, which will do too.
pub fn listen() {
    let _ = ctrlc::set_handler(|| {
        // Ordering: a flag on its own; the request has its own synchronisation.
        if INTERRUPTED.swap(true, Ordering::Relaxed) {
            std::process::exit(STATUS_OF_SIGINT);
        }
        let request = current().clone();
        if let Some(request) = request {
            stop(&request);
        }
    });
}

fn stop(request: &RequestContext) {
    request.cancel_with(Error::cancelled("Interrupted"));
}

/// Tells whether there was a Ctrl-C.
pub fn is_interrupted() -> bool {
    // Ordering: a flag on its own.
    INTERRUPTED.load(Ordering::Relaxed)
}

/// Lets Ctrl-C cancel a request while this lives.
pub struct Interruptible(());

impl Interruptible {
    /// Makes a request the one that is cancelled.
    pub fn new(context: &Context) -> Interruptible {
        *current() = Some(context.request().clone());
        if is_interrupted() {
            stop(context.request());
        }
        Interruptible(())
    }
}

impl Drop for Interruptible {
    fn drop(&mut self) {
        let ended = current().take();
        drop(ended);
    }
}

fn current() -> MutexGuard<'static, Option<Arc<RequestContext>>> {
    CURRENT.lock().unwrap_or_else(PoisonError::into_inner)
}
