//! [`PyCancellationToken`], the class `tfrt.CancellationToken`: cancels calls from another thread than those that wait.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use tfrt::Context;

/// Cancels calls: those that were begun with it and are not over, and those that would be begun with it later. It is
/// given to calls as `cancel=token`.
#[pyclass(frozen, name = "CancellationToken", module = "tfrt")]
#[derive(Clone, Default)]
pub struct PyCancellationToken(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    is_cancelled: bool,
    /// The contexts of the calls that are not over, by the numbers of their registrations.
    contexts: HashMap<u64, Context>,
    next: u64,
}

impl PyCancellationToken {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has a context cancelled with the token, at once if that is cancelled, until the registration is dropped.
    pub fn register(&self, context: &Context) -> Registration {
        let mut state = self.state();
        if state.is_cancelled {
            context.cancel();
        }
        let number = state.next;
        state.next += 1;
        state.contexts.insert(number, context.clone());
        Registration {
            token: self.clone(),
            number,
        }
    }
}

#[pymethods]
impl PyCancellationToken {
    #[new]
    fn new() -> PyCancellationToken {
        PyCancellationToken::default()
    }

    /// Cancels the calls.
    fn cancel(&self) {
        let contexts: Vec<Context> = {
            let mut state = self.state();
            state.is_cancelled = true;
            state.contexts.values().cloned().collect()
        };
        for context in contexts {
            context.cancel();
        }
    }

    /// Whether it was cancelled.
    #[getter]
    fn is_cancelled(&self) -> bool {
        self.state().is_cancelled
    }

    fn __repr__(&self) -> String {
        format!(
            "CancellationToken(is_cancelled={})",
            match self.is_cancelled() {
                true => "True",
                false => "False",
            }
        )
    }
}

/// The entry of a call with a token, for as long as the call runs.
pub struct Registration {
    token: PyCancellationToken,
    number: u64,
}

impl Drop for Registration {
    fn drop(&mut self) {
        let context = self.token.state().contexts.remove(&self.number);
        // The context may be the last owner of the call's values: it is dropped when the token is not locked.
        drop(context);
    }
}
