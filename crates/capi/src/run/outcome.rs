//! [`Outcome`]: whether a plugin's code has failed, by what it has told, thrown and done wrong.

use std::sync::atomic::Ordering;

use tfrt_host::Error;

use crate::crash;
use crate::fault;
use crate::functions::status::Status;
use crate::guard::Exception;
use crate::handle;
use crate::registry::KernelDef;

/// The outcome of a plugin's code: what it has told, thrown and done wrong.
pub struct Outcome {
    /// The exception that the code has thrown.
    pub thrown: Option<Exception>,
    /// The failure that it has told.
    pub told: Option<Status>,
    /// Its wrong uses of the C API.
    pub faults: Vec<String>,
}

impl Outcome {
    /// Returns the error, if something was wrong.
    #[inline(always)]
    pub fn error(self, kernel: &KernelDef) -> Option<Error> {
        let is_wrong = self.thrown.is_some() || self.told.is_some() || !self.faults.is_empty();
        is_wrong.then(|| self.wrong(kernel)).flatten()
    }

    #[cold]
    #[inline(never)]
    fn wrong(self, kernel: &KernelDef) -> Option<Error> {
        let text = kernel.text();
        let told = self.told.as_ref().and_then(Status::error);
        if let Some(exception) = self.thrown {
            let error = Error::internal(format!("{text} {exception}"));
            let error = match told {
                Some(told) => error.with_note(format!("before, it told: {}", told.message())),
                None => error,
            };
            return Some(self.faults.into_iter().fold(error, Error::with_note));
        }
        let mut faults = self.faults.into_iter();
        let Some(first) = faults.next() else {
            let place = self.told.as_ref().and_then(Status::place);
            let place = place.map_or(String::new(), |place| format!("{place}, "));
            return told.map(|error| error.with_note(format!("{place}in {text}")));
        };
        let error = Error::invalid_argument(format!("{first}, in {text}"));
        let error = faults.fold(error, Error::with_note);
        Some(match told {
            Some(told) => error.with_note(format!("it told: {}", told.message())),
            None => error,
        })
    }
}

/// Runs a function of a kernel, and returns its result with the faults of the call.
pub fn running<R>(kernel: &KernelDef, run: impl FnOnce() -> R) -> (R, Vec<String>) {
    let (outcome, n_left) = handle::counted(|| crash::within(kernel.text(), || fault::scope(run)));
    if n_left != 0 {
        // Ordering: a statistic.
        kernel.n_left.fetch_add(n_left, Ordering::Relaxed);
    }
    outcome
}
