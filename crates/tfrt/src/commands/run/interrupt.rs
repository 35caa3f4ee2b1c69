//! Ctrl-C: while functions are called, the first stops the one that runs, and the second ends the process;
//! before and after, the first does.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use tfrt::{Context, Error, RequestContext};

use crate::commands::output::end_process;
use crate::failure::ExitStatus;

/// What a Ctrl-C meets.
struct State {
    phase: Phase,
    is_interrupted: bool,
    /// The request of the function that runs.
    request: Option<Arc<RequestContext>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Nothing was called.
    Opening,
    Calling,
    /// All calls have ended. What they gave is being written.
    Over,
}

static STATE: Mutex<State> = Mutex::new(State {
    phase: Phase::Opening,
    is_interrupted: false,
    request: None,
});

/// What is to be done.
enum Step {
    /// End the process, and say so.
    End,
    /// Stop what runs.
    Stop(Option<Arc<RequestContext>>),
    /// End the process at once.
    Exit,
}

/// Begins to listen. Whoever stops a function is told `note`; `end` ends the process before any was called. Without a
/// handler Ctrl-C ends the process, which will do too.
pub fn listen(note: String, end: impl Fn() + Send + 'static) {
    let _ = ctrlc::set_handler(move || match next_step() {
        Step::End => end(),
        Step::Stop(request) => {
            say(note.clone());
            if let Some(request) = request {
                stop(&request);
            }
        }
        Step::Exit => end_process(ExitStatus::Interrupted as i32),
    });
}

fn next_step() -> Step {
    let mut state = state();
    let is_first = !std::mem::replace(&mut state.is_interrupted, true);
    match state.phase {
        Phase::Opening if is_first => Step::End,
        Phase::Calling if is_first => Step::Stop(state.request.clone()),
        _ => Step::Exit,
    }
}

/// Says something on a thread of its own: whoever does not read it does not keep the next Ctrl-C from being heard.
fn say(note: String) {
    let said = move || drop(io::stderr().lock().write_all(note.as_bytes()));
    // Without a thread it is not said.
    let _ = thread::Builder::new().spawn(said);
}

fn stop(request: &RequestContext) {
    request.cancel_with(Error::cancelled("Interrupted"));
}

/// From now on functions are called.
pub fn begin() {
    state().phase = Phase::Calling;
}

/// All calls have ended. Tells whether there was a Ctrl-C until now.
pub fn over() -> bool {
    let mut state = state();
    state.phase = Phase::Over;
    state.is_interrupted
}

/// Tells whether there was a Ctrl-C.
pub fn is_interrupted() -> bool {
    state().is_interrupted
}

/// Lets Ctrl-C cancel a request while this lives.
pub struct Interruptible(());

impl Interruptible {
    /// Makes a request the one that is cancelled.
    pub fn new(context: &Context) -> Interruptible {
        let mut state = state();
        state.request = Some(context.request().clone());
        let is_interrupted = state.is_interrupted;
        drop(state);
        if is_interrupted {
            stop(context.request());
        }
        Interruptible(())
    }
}

impl Drop for Interruptible {
    fn drop(&mut self) {
        let ended = state().request.take();
        drop(ended);
    }
}

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}
