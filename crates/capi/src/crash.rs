//! Line that a crash in a plugin's code leaves on standard error, with the plugin and the kernel, before the process dies;
//! and one where that code ends the process by `exit`.
//!
//! Each thread keeps the text of the plugin's code that it runs ([`within`]). A command asks for handlers of the signals of
//! crashes ([`tell`]); a library that others embed asks for none. A handler runs on the alternative stack that Rust gives
//! its threads, reads that text, and writes; then the signal goes where it went before.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::sync::OnceLock;

/// The text of a plugin's code that runs, as an address and a length. Of length 0 if none runs.
#[derive(Clone, Copy)]
struct Running {
    start: *const u8,
    len: usize,
}

const NOTHING: Running = Running {
    start: std::ptr::null(),
    len: 0,
};

thread_local! {
    /// Invariant: the text lives as long as it stands here, which a borrow of [`within`] sees to.
    static RUNNING: Cell<Running> = const { Cell::new(NOTHING) };
}

/// Runs a plugin's code, of which handlers tell as `text`.
#[inline]
pub fn within<R>(text: &str, run: impl FnOnce() -> R) -> R {
    /// Puts the text of before back, also when `run` panics.
    struct Before(Running);
    impl Drop for Before {
        #[inline]
        fn drop(&mut self) {
            RUNNING.set(self.0);
        }
    }
    let _before = Before(RUNNING.replace(Running {
        start: text.as_ptr(),
        len: text.len(),
    }));
    run()
}

/// The signals of crashes, with their names.
const SIGNALS: [(c_int, &str); 4] = [
    (libc::SIGSEGV, "SIGSEGV"),
    (libc::SIGBUS, "SIGBUS"),
    (libc::SIGFPE, "SIGFPE"),
    (libc::SIGABRT, "SIGABRT"),
];

/// Actions that the signals had before.
static BEFORE: OnceLock<[libc::sigaction; SIGNALS.len()]> = OnceLock::new();

/// Lets crashes in a plugin's code, and calls of `exit` there, tell the plugin and the kernel on standard error. For
/// commands, which have the signals of their process; once is enough.
pub fn tell() {
    BEFORE.get_or_init(|| {
        // SAFETY: the function takes nothing, and may be called when the process ends. Where there is no room for it,
        // nothing is told.
        unsafe { libc::atexit(exiting) };
        SIGNALS.map(|(signal, _)| {
            // SAFETY: zeros are a `sigaction`, of the default action.
            let mut before: libc::sigaction = unsafe { std::mem::zeroed() };
            // SAFETY: there is room for the action of before; nothing else is changed.
            unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut before) };
            before
        })
    });
    for (signal, _) in SIGNALS {
        // SAFETY: zeros are a `sigaction`, with an empty set of signals.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = handle as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        // SAFETY: the handler calls only functions that handlers of signals may call.
        unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) };
    }
}

/// Room for a line.
const ROOM: usize = 512;

/// A line that is put together without memory of an allocator.
struct Line {
    bytes: [u8; ROOM],
    len: usize,
}

impl Line {
    fn push(&mut self, text: &[u8]) {
        // The last place is that of the line's end.
        for byte in text.iter().take(ROOM - 1 - self.len) {
            self.bytes[self.len] = *byte;
            self.len += 1;
        }
    }
}

/// Writes `before`, and the text of the plugin's code, if some runs on this thread. Handlers of signals may call it.
fn write_running(before: &[&str]) {
    let running = RUNNING.try_with(Cell::get).unwrap_or(NOTHING);
    if running.len == 0 {
        return;
    }
    // SAFETY: by the invariant the text is there.
    let text = unsafe { std::slice::from_raw_parts(running.start, running.len) };
    let mut line = Line {
        bytes: [0; ROOM],
        len: 0,
    };
    for part in before {
        line.push(part.as_bytes());
    }
    line.push(text);
    line.bytes[line.len] = b'\n';
    // SAFETY: so many bytes are there.
    unsafe { libc::write(2, line.bytes.as_ptr().cast(), line.len + 1) };
}

/// Tells that a plugin's code ends the process, if it does: `exit` calls this function on the thread that called `exit`.
extern "C" fn exiting() {
    write_running(&["error: the plugin has ended the process, by exit, in "]);
}

/// Writes the line, if a plugin's code runs on this thread, and gives the signal back to who had it before.
extern "C" fn handle(signal: c_int, info: *mut libc::siginfo_t, _context: *mut c_void) {
    let mut index = 0;
    while index + 1 < SIGNALS.len() && SIGNALS[index].0 != signal {
        index += 1;
    }
    write_running(&[
        "error: the plugin has crashed, by ",
        SIGNALS[index].1,
        ", in ",
    ]);
    if let Some(before) = BEFORE.get() {
        // SAFETY: it was the action of this signal. What crashed does so again when this function has returned.
        unsafe { libc::sigaction(signal, &raw const before[index], std::ptr::null_mut()) };
    }
    // SAFETY: the system has handed the description of the signal over.
    let code = unsafe { (*info).si_code };
    // A process has sent it, as `abort` does: it comes again when this function has returned.
    if code <= 0 {
        // SAFETY: a handler may raise a signal.
        unsafe { libc::raise(signal) };
    }
}
