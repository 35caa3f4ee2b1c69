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
    /// Whether a call runs on this thread, whose faults are kept.
    static IS_CALL: Cell<bool> = const { Cell::new(false) };
    /// Faults of the innermost call.
    static FAULTS: Cell<Vec<String>> = const { Cell::new(Vec::new()) };
    /// Whether there are any: a look at these alone, unlike one at the list, asks nothing of the thread.
    static HAS_FAULTS: Cell<bool> = const { Cell::new(false) };
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
    struct Outer {
        is_call: bool,
        faults: Vec<String>,
    }
    impl Drop for Outer {
        #[inline]
        fn drop(&mut self) {
            IS_CALL.set(self.is_call);
            if !self.faults.is_empty() {
                HAS_FAULTS.set(true);
                FAULTS.set(std::mem::take(&mut self.faults));
            }
        }
    }
    let outer = Outer {
        is_call: IS_CALL.replace(true),
        faults: take(),
    };
    let result = calling_back(run);
    let faults = take();
    drop(outer);
    (result, faults)
}

/// Takes the faults so far of the innermost call on this thread.
#[inline]
pub fn take() -> Vec<String> {
    match HAS_FAULTS.replace(false) {
        true => FAULTS.take(),
        false => Vec::new(),
    }
}

/// Says that a function of the C API begins, by whose name faults go from here on.
#[inline(always)]
pub fn enter(function: &'static str) {
    FUNCTION.set(function);
}

/// Runs a plugin's code, which calls functions of the C API: the one that runs now goes on afterwards.
#[inline]
pub fn calling_back<R>(run: impl FnOnce() -> R) -> R {
    let before = FUNCTION.replace("");
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
    if !IS_CALL.get() {
        let handler = *HANDLER.read().unwrap_or_else(PoisonError::into_inner);
        return handler(&text);
    }
    let mut faults = take();
    if faults.len() < MAX_FAULTS {
        faults.push(text);
    }
    FAULTS.set(faults);
    HAS_FAULTS.set(true);
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
            enter("TF_NewTensor");
            let ((), inner) = scope(|| {
                enter("TF_Dim");
                record(format_args!("two"));
            });
            record(format_args!("three"));
            inner
        });
        let expected = ["one", "TF_NewTensor: three"].map(str::to_owned);
        assert_eq!(
            (inner, outer),
            (vec!["TF_Dim: two".to_owned()], expected.to_vec())
        );
    }
}
