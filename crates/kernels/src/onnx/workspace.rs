//! [`Workspace`]: what an operation keeps beside its operands and results.

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

use tfrt_host::memory::Aside;
use tfrt_host::{AnyAsyncValue, Error, ExecutionContext};

/// So little is not counted: to ask for it would take as long as to use it.
const LITTLE: usize = 64 << 10;

/// Memory that is set aside with the host's allocator for lists that an operation keeps while it runs, and its tasks
/// behind it: positions, weights, wide numbers. They come from the process, in proportion to operands or results, but
/// may be many times as large.
pub struct Workspace<'a> {
    operation: &'static str,
    execution: &'a ExecutionContext,
    aside: RefCell<Option<Aside>>,
}

impl<'a> Workspace<'a> {
    /// Nothing yet.
    pub(super) fn new(operation: &'static str, execution: &'a ExecutionContext) -> Workspace<'a> {
        Workspace {
            operation,
            execution,
            aside: RefCell::new(None),
        }
    }

    /// Sets memory aside for so many more elements of so many bytes, until the results are there.
    ///
    /// # Errors
    ///
    /// `ResourceExhausted` if there is none.
    pub fn set_aside(&self, n_elements: usize, n_bytes_each: usize) -> Result<(), Error> {
        let n_bytes = n_elements.saturating_mul(n_bytes_each);
        if n_bytes < LITTLE {
            return Ok(());
        }
        let mut aside = self.aside.borrow_mut();
        let aside = aside.get_or_insert_with(|| Aside::new(self.execution.host().allocator()));
        if aside.add(n_bytes) {
            return Ok(());
        }
        let name = self.operation;
        let message =
            format!("{name}: Cannot allocate {n_bytes} bytes beside operands and results");
        Err(Error::resource_exhausted(message))
    }

    /// Keeps what is set aside until these results are there: what calculates them may need the lists.
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
