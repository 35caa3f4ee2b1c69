//! Calls of models: how they begin, how a thread of Python waits for one, and what comes out.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::{PyDelta, PyDeltaAccess, PyDict, PyString};
use tfrt::model::{Datum, ValueInfo};
use tfrt::{AnyAsyncValue, Call, Context, Error, ErrorCode, Runtime};

use crate::cancel::{PyCancellationToken, Registration};
use crate::error::{invalid_argument, raise};
use crate::{array, convert};

/// How long a thread waits at most before it looks for signals, such as that of Ctrl-C.
const SLICE: Duration = Duration::from_millis(2);

/// Whether this process is the child of one that had threads of a runtime, which it lacks.
static IS_FORKED: AtomicBool = AtomicBool::new(false);

/// Notes that this process was forked; `tfrt` asks Python to call it in children.
#[pyfunction]
pub fn note_fork() {
    // Ordering: a child has one thread when it is called.
    IS_FORKED.store(true, Ordering::Relaxed);
}

/// Refuses to use runtimes of the parent process, whose threads would be waited for in vain.
///
/// # Errors
///
/// `FailedPrecondition` in a child process.
pub fn expect_threads(py: Python<'_>) -> PyResult<()> {
    // Ordering: as above.
    if !IS_FORKED.load(Ordering::Relaxed) {
        return Ok(());
    }
    let message = "this process was forked from one that has imported tfrt, whose threads it lacks";
    let error = Error::failed_precondition(message);
    let note = "import tfrt in the child alone, or start processes by `multiprocessing.get_context(\"spawn\")`";
    Err(raise(py, error.with_note(note)))
}

/// The bounds that a caller may set to a call.
#[derive(Default)]
pub struct Bounds<'py> {
    /// Seconds as a number, or a `timedelta`.
    pub deadline: Option<Bound<'py, PyAny>>,
    /// The most bytes that the call may hold at once.
    pub memory: Option<usize>,
    /// Cancels the call.
    pub cancel: Option<Bound<'py, PyCancellationToken>>,
}

impl Bounds<'_> {
    /// Makes the context of a call.
    ///
    /// # Errors
    ///
    /// `DeadlineExceeded` for a deadline that has passed, `InvalidArgument` for one that is no time.
    pub fn context(&self, py: Python<'_>, runtime: &Runtime) -> PyResult<CallContext> {
        expect_threads(py)?;
        let mut builder = runtime.context_builder();
        if let Some(deadline) = &self.deadline
            && let Some(after) = seconds(deadline)?
        {
            if after <= 0.0 {
                let message = format!("the deadline had passed before the call: {after} s");
                return Err(raise(py, Error::new(ErrorCode::DeadlineExceeded, message)));
            }
            // Later than a duration can tell is never.
            if let Ok(after) = Duration::try_from_secs_f64(after) {
                builder = builder.deadline(after);
            }
        }
        if let Some(memory) = self.memory {
            builder = builder.max_memory(memory);
        }
        let context = builder.build();
        let cancel = self.cancel.as_ref();
        let registration = cancel.map(|token| token.get().register(&context));
        Ok(CallContext {
            context,
            _registration: registration,
        })
    }
}

/// Returns a time as seconds.
fn seconds(deadline: &Bound<'_, PyAny>) -> PyResult<Option<f64>> {
    if deadline.is_none() {
        return Ok(None);
    }
    if let Ok(delta) = deadline.cast::<PyDelta>() {
        let (days, seconds) = (f64::from(delta.get_days()), f64::from(delta.get_seconds()));
        return Ok(Some(
            days * 86_400.0 + seconds + f64::from(delta.get_microseconds()) * 1e-6,
        ));
    }
    match deadline.extract::<f64>() {
        Ok(seconds) if !seconds.is_nan() => Ok(Some(seconds)),
        _ => {
            let found = deadline.repr()?.to_string();
            let message = format!("deadline: expected seconds or a timedelta, found {found}");
            Err(invalid_argument(deadline.py(), message))
        }
    }
}

/// The context of a call, which the call's token cancels.
pub struct CallContext {
    pub context: Context,
    _registration: Option<Registration>,
}

/// A call that has begun, with its context.
pub struct Started {
    pub call: Call,
    pub context: CallContext,
}

impl Started {
    /// Waits for the results while other threads of Python run, and while signals are heard: an interrupt cancels the call.
    ///
    /// # Errors
    ///
    /// That of the call, or what a handler of a signal has raised.
    pub fn wait(self, py: Python<'_>) -> PyResult<Vec<AnyAsyncValue>> {
        let Started { call, context } = self;
        while !is_settled(&call) {
            let waited = py.detach(|| call.wait_timeout(SLICE));
            if waited.map_err(|error| raise(py, error))? {
                break;
            }
            if let Err(interrupt) = py.check_signals() {
                context.context.cancel();
                drop(call);
                array::settle(py);
                return Err(interrupt);
            }
        }
        values_of(py, call)
    }
}

fn is_settled(call: &Call) -> bool {
    call.results().iter().all(AnyAsyncValue::is_settled)
}

/// Takes the results of a call that has ended.
///
/// # Errors
///
/// That of the call.
pub fn values_of(py: Python<'_>, call: Call) -> PyResult<Vec<AnyAsyncValue>> {
    match call.wait() {
        Ok(values) => Ok(values.into_inner()),
        Err(error) => {
            array::settle(py);
            Err(raise(py, error))
        }
    }
}

/// The outputs that a caller wants, by their indices among those of the model; all of them if none are named.
pub enum Wanted {
    /// All, in the order of the model.
    All,
    /// Some.
    These(Vec<usize>),
}

impl Wanted {
    /// Finds the outputs of these names.
    ///
    /// # Errors
    ///
    /// `NotFound` for a name that no output has.
    pub fn find(names: Option<&Bound<'_, PyAny>>, outputs: &[ValueInfo]) -> PyResult<Wanted> {
        let Some(names) = names.filter(|names| !names.is_none()) else {
            return Ok(Wanted::All);
        };
        let py = names.py();
        let mut found = Vec::new();
        let mut find = |name: &Bound<'_, PyAny>| {
            let text = name.cast::<PyString>().map_err(|_| {
                invalid_argument(py, format!("outputs: expected names, found {name:?}"))
            })?;
            let text = text.to_str()?;
            let index = outputs.iter().position(|output| output.name == text);
            let Some(index) = index else {
                let known = outputs.iter().map(|output| output.name.as_str());
                let known = known.take(20).collect::<Vec<_>>().join(", ");
                let message = format!("the model has no output '{text}': it gives {known}");
                return Err(raise(py, Error::new(ErrorCode::NotFound, message)));
            };
            found.push(index);
            Ok(())
        };
        match names.is_instance_of::<PyString>() {
            true => find(names)?,
            false => {
                for name in names.try_iter()? {
                    find(&name?)?;
                }
            }
        }
        Ok(Wanted::These(found))
    }

    /// Makes a dictionary of the outputs, by name.
    ///
    /// # Errors
    ///
    /// That of an output that can't become an object.
    pub fn dict<'py>(
        &self,
        py: Python<'py>,
        outputs: &[ValueInfo],
        values: Vec<AnyAsyncValue>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        let add = |index: usize, value: AnyAsyncValue| {
            let datum = Datum::try_from(value).map_err(|error| raise(py, error))?;
            dict.set_item(outputs[index].name.as_str(), convert::to_python(py, datum)?)
        };
        match self {
            Wanted::All => {
                for (index, value) in values.into_iter().enumerate() {
                    add(index, value)?;
                }
            }
            Wanted::These(indices) => {
                let mut values: Vec<Option<AnyAsyncValue>> = values.into_iter().map(Some).collect();
                for index in indices {
                    // A name that is given twice is one entry.
                    if let Some(value) = values[*index].take() {
                        add(*index, value)?;
                    }
                }
            }
        }
        Ok(dict)
    }
}

/// The model's outputs, as calls that outlive the model's object keep them.
pub type OutputInfos = Arc<[ValueInfo]>;
