//! [`Workspace`]: memory that an operation needs beside its operands and results.

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

use tfrt_host::memory::MemoryReservation;
use tfrt_host::{AnyAsyncValue, Error, ExecutionContext};

/// The bytes that are too few to be counted: to reserve them would take as long as to use them.
const LITTLE: usize = 64 << 10;

/// A reservation with the host's allocator for lists that an operation, and its tasks, hold while they run:
/// positions, weights, wide numbers. The lists themselves come from the process; they may be many times as large as
/// operands and results.
pub struct Workspace<'a> {
    operation: &'static str,
    execution: &'a ExecutionContext,
    aside: RefCell<Option<MemoryReservation>>,
}

impl<'a> Workspace<'a> {
    /// Makes an empty reservation.
    pub(super) fn new(operation: &'static str, execution: &'a ExecutionContext) -> Workspace<'a> {
        Workspace {
            operation,
            execution,
            aside: RefCell::new(None),
        }
    }

    /// Reserves memory for so many more elements of so many bytes, until the results are there.
    ///
    /// # Errors
    ///
    /// `ResourceExhausted` if there is none.
    pub fn reserve(&self, n_elements: usize, n_bytes_each: usize) -> Result<(), Error> {
        let n_bytes = n_elements.saturating_mul(n_bytes_each);
        if n_bytes < LITTLE {
            return Ok(());
        }
        let mut aside = self.aside.borrow_mut();
        let aside =
            aside.get_or_insert_with(|| MemoryReservation::new(self.execution.host().allocator()));
        if aside.add(n_bytes) {
            return Ok(());
        }
        let name = self.operation;
        let message =
            format!("{name}: Cannot allocate {n_bytes} bytes beside operands and results");
        Err(Error::resource_exhausted(message))
    }

    /// Keeps the reservation until these results are there, since tasks that calculate them may need the lists.
    pub(super) fn until_settled(&self, results: &[AnyAsyncValue]) {
        let Some(aside) = self.aside.take() else {
            return;
        };
        let aside = Arc::new(aside);
        for result in results.iter().filter(|result| !result.is_settled()) {
            let aside = aside.clone();
            result.and_then(move || drop(aside));
        }
    }
}

impl fmt::Debug for Workspace<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.aside.borrow().fmt(f)
    }
}
