//! [`Errors`]: the errors that kernels report, kept until they are printed.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tfrt_host::Error;

/// The number of errors of one function that are kept; further ones are counted.
const MAX_KEPT: usize = 1_000;

/// A collector of errors, to which any thread may add.
#[derive(Debug, Default)]
pub struct Errors(Mutex<Collected>);

#[derive(Debug, Default)]
struct Collected {
    errors: Vec<Error>,
    n_more: usize,
}

impl Errors {
    /// Keeps an error.
    pub fn hear(&self, error: &Error) {
        let mut collected = self.lock();
        if collected.errors.len() < MAX_KEPT {
            collected.errors.push(error.clone());
        } else {
            collected.n_more += 1;
        }
    }

    /// Returns whether `is_so` holds for a kept error.
    pub fn any(&self, is_so: impl Fn(&Error) -> bool) -> bool {
        self.lock().errors.iter().any(is_so)
    }

    /// Takes all kept errors.
    pub fn take(&self) -> Vec<Error> {
        let Collected { mut errors, n_more } = std::mem::take(&mut *self.lock());
        if n_more > 0 {
            errors.push(Error::unknown(format!(
                "and {n_more} more errors that are not shown"
            )));
        }
        errors
    }

    fn lock(&self) -> MutexGuard<'_, Collected> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
