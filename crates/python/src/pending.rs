//! [`PendingCall`]: a call that is awaited; [`Mailbox`]: how an event loop hears that calls have ended.
//!
//! A call ends on a thread of the runtime, which must not wait for the interpreter. So it writes the call's number into the
//! mailbox of its event loop, and, if the loop has read all before, a byte into a pipe that the loop watches.

use std::io::{PipeReader, PipeWriter, Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tfrt::asynchronous::when_all;

use crate::array;
use crate::call::{OutputInfos, Started, Wanted, values_of};
use crate::error::{broken, raise};

/// The numbers of calls that have ended, for one event loop.
#[pyclass(frozen, module = "tfrt._tfrt")]
pub struct Mailbox {
    shared: Arc<Shared>,
    reader: PipeReader,
}

struct Shared {
    /// Invariant: if it is not empty, there is a byte in the pipe.
    ended: Mutex<Vec<u64>>,
    writer: PipeWriter,
}

impl Shared {
    fn ended(&self) -> MutexGuard<'_, Vec<u64>> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the loop that a call has ended.
    fn post(&self, number: u64) {
        let mut ended = self.ended();
        ended.push(number);
        if ended.len() == 1 {
            // One byte at a time never fills the pipe; who has closed it waits for nothing.
            let _ = (&self.writer).write_all(&[1]);
        }
    }
}

#[pymethods]
impl Mailbox {
    #[new]
    fn new() -> PyResult<Mailbox> {
        let (reader, writer) = std::io::pipe().map_err(PyOSError::new_err)?;
        let ended = Mutex::default();
        let shared = Arc::new(Shared { ended, writer });
        Ok(Mailbox { shared, reader })
    }

    /// Returns the number of the file that has something to read when calls have ended.
    #[cfg(unix)]
    fn fileno(&self) -> i32 {
        std::os::fd::AsRawFd::as_raw_fd(&self.reader)
    }

    /// Returns the numbers of the calls that have ended since it was called last.
    fn take(&self) -> PyResult<Vec<u64>> {
        let mut ended = self.shared.ended();
        if !ended.is_empty() {
            let mut byte = [0];
            (&self.reader).read_exact(&mut byte)?;
        }
        Ok(std::mem::take(&mut ended))
    }
}

/// A call that has begun, and whose end a mailbox hears of.
#[pyclass(frozen, module = "tfrt._tfrt")]
pub struct PendingCall {
    started: Mutex<Option<Started>>,
    /// Whether it had ended when it was made; then the mailbox does not hear of it.
    is_over: bool,
    wanted: Wanted,
    outputs: OutputInfos,
}

impl PendingCall {
    pub fn new(
        started: Started,
        wanted: Wanted,
        outputs: OutputInfos,
        mailbox: &Mailbox,
        number: u64,
    ) -> PendingCall {
        let all = when_all(started.call.results());
        let is_over = all.is_settled();
        if !is_over {
            let shared = mailbox.shared.clone();
            all.and_then(move || shared.post(number));
        }
        PendingCall {
            started: Mutex::new(Some(started)),
            is_over,
            wanted,
            outputs,
        }
    }

    fn started(&self) -> MutexGuard<'_, Option<Started>> {
        self.started.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl PendingCall {
    /// Whether the call had ended when it was made.
    #[getter]
    fn is_over(&self) -> bool {
        self.is_over
    }

    /// Cancels the call: no further kernel of it begins.
    fn cancel(&self) {
        if let Some(started) = &*self.started() {
            started.context.context.cancel();
        }
    }

    /// Takes the outputs of a call that has ended.
    fn result<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let Some(started) = self.started().take() else {
            return Err(broken("the outputs of a call are taken twice"));
        };
        if !started
            .call
            .results()
            .iter()
            .all(tfrt::AnyAsyncValue::is_settled)
        {
            let error = tfrt::Error::failed_precondition("the call has not ended");
            return Err(raise(py, error));
        }
        let values = values_of(py, started.call)?;
        let dict = self.wanted.dict(py, &self.outputs, values);
        array::settle(py);
        dict
    }
}
