//! Faults: wrong uses of the C API, found by the host and recorded in the call that made them.
//!
//! A thread that runs a plugin's code has a scope for the call; faults are kept there, and fail it. Faults outside of
//! any call (a plugin's own thread) go to a handler of the process.

use std::cell::Cell;
use std::fmt;
use std::sync::{PoisonError, RwLock};

/// The most faults that are kept of one call.
const MAX_FAULTS: usize = 16;

thread_local! {
    /// Faults of the innermost call that runs on this thread; `None` outside of any.
    static FAULTS: Cell<Option<Vec<String>>> = const { Cell::new(None) };
    /// The function of the C API that is running.
    static FUNCTION: Cell<&'static str> = const { Cell::new("") };
}

/// Function that hears of faults outside of any call.
pub type FaultHandler = fn(&str);

static HANDLER: RwLock<FaultHandler> = RwLock::new(|text| eprintln!("plugin: {text}"));

/// Sets the handler of faults outside of any call. Default: they are written to standard error.
pub fn set_handler(handler: FaultHandler) {
    *HANDLER.write().unwrap_or_else(PoisonError::into_inner) = handler;
}

/// Runs a plugin's code, and returns its result with the faults that happened meanwhile on this thread.
#[inline]
pub fn scope<R>(run: impl FnOnce() -> R) -> (R, Vec<String>) {
    /// Ends the scope, also when `run` panics: the faults of the call around it are there again.
    struct Outer(Option<Vec<String>>);
    impl Drop for Outer {
        fn drop(&mut self) {
            FAULTS.set(self.0.take());
        }
    }
    let outer = Outer(FAULTS.replace(Some(Vec::new())));
    let result = run();
    let faults = FAULTS.take().unwrap_or_default();
    drop(outer);
    (result, faults)
}

/// Takes the faults so far of the innermost call on this thread.
#[cold]
pub fn take() -> Vec<String> {
    let faults = FAULTS.take();
    FAULTS.set(faults.as_ref().map(|_| Vec::new()));
    faults.unwrap_or_default()
}

/// Runs a function of the C API under its name, which faults begin with.
#[inline]
pub fn within<R>(function: &'static str, run: impl FnOnce() -> R) -> R {
    let before = FUNCTION.replace(function);
    let result = run();
    FUNCTION.set(before);
    result
}

/// Returns the name of the function of the C API that is running.
pub fn function() -> &'static str {
    FUNCTION.get()
}

/// Records a fault of the function that is running.
pub fn record(message: fmt::Arguments<'_>) {
    let text = match function() {
        "" => message.to_string(),
        function => format!("{function}: {message}"),
    };
    let Some(mut faults) = FAULTS.take() else {
        let handler = *HANDLER.read().unwrap_or_else(PoisonError::into_inner);
        return handler(&text);
    };
    if faults.len() < MAX_FAULTS {
        faults.push(text);
    }
    FAULTS.set(Some(faults));
}

/// Records a fault of an argument.
pub fn argument(name: &str, reason: &str) {
    record(format_args!("argument '{name}': {reason}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_belong_to_the_innermost_call() {
        let (inner, outer) = scope(|| {
            record(format_args!("one"));
            let ((), inner) = scope(|| within("TF_Dim", || record(format_args!("two"))));
            inner
        });
        assert_eq!(
            (inner, outer),
            (vec!["TF_Dim: two".to_owned()], vec!["one".to_owned()])
        );
    }
}
