//! Ctrl-C: while functions are called, the first stops the one that runs, and the second ends the process;
//! before and after, the first does.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use tfrt::{Context, Error, RequestContext};

use crate::commands::output::end_process;
use crate::console::Console;
use crate::failure::ExitStatus;

/// The state of the command, which decides what Ctrl-C does.
struct State {
    phase: Phase,
    is_interrupted: bool,
    /// The request of the function that runs.
    request: Option<Arc<RequestContext>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Nothing has been called yet.
    Opening,
    Calling,
    /// All calls have ended. Their results are being written.
    Over,
}

static STATE: Mutex<State> = Mutex::new(State {
    phase: Phase::Opening,
    is_interrupted: false,
    request: None,
});

/// The answer to one Ctrl-C.
enum Response {
    /// End the process, and say so.
    End,
    /// Cancel the request of the function that runs.
    Cancel(Option<Arc<RequestContext>>),
    /// End the process at once.
    Exit,
}

/// Returns what people are told when Ctrl-C stops a function.
pub fn note(console: &Console) -> String {
    let document = serde_json::json!({ "schema": "tfrt.interrupted/1" });
    console.text_of(&document, || {
        "note: interrupted: what runs is being stopped; another Ctrl-C ends the command at once\n"
            .to_owned()
    })
}

/// Begins to listen. Whoever stops a function is told `note`; `end` ends the process before any was called. Without a
/// handler Ctrl-C ends the process, which will do too.
pub fn listen(note: String, end: impl Fn() + Send + 'static) {
    let _ = ctrlc::set_handler(move || match respond() {
        Response::End => end(),
        Response::Cancel(request) => {
            say(note.clone());
            if let Some(request) = request {
                stop(&request);
            }
        }
        Response::Exit => end_process(ExitStatus::Interrupted as i32),
    });
}

fn respond() -> Response {
    let mut state = state();
    let is_first = !std::mem::replace(&mut state.is_interrupted, true);
    match state.phase {
        Phase::Opening if is_first => Response::End,
        Phase::Calling if is_first => Response::Cancel(state.request.clone()),
        _ => Response::Exit,
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

/// Notes that from now on functions are called.
pub fn begin_calls() {
    state().phase = Phase::Calling;
}

/// Notes that all calls have ended. Returns whether there was a Ctrl-C until now.
pub fn end_calls() -> bool {
    let mut state = state();
    state.phase = Phase::Over;
    state.is_interrupted
}

/// Returns whether there was a Ctrl-C.
pub fn is_interrupted() -> bool {
    state().is_interrupted
}

/// A guard that lets Ctrl-C cancel a request until it is dropped.
pub struct Interruptible(());

impl Interruptible {
    /// Makes the request of a context the one that Ctrl-C cancels.
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
