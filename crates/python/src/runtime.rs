//! [`PyRuntime`], the class `tfrt.Runtime`: the threads and the limits that models share.

use pyo3::prelude::*;
use tfrt::{Limits, Runtime};

use crate::call::expect_threads;
use crate::error::invalid_argument;

/// The threads and the limits that models share. Models that are given none share one for the process.
#[pyclass(frozen, name = "Runtime", module = "tfrt")]
pub struct PyRuntime(pub Runtime);

#[pymethods]
impl PyRuntime {
    /// Makes a runtime of its own: with so many threads, one for each processor if none are given, and so many bytes for all
    /// its calls together.
    #[new]
    #[pyo3(signature = (*, threads=None, memory=None, max_steps=None))]
    fn new(
        py: Python<'_>,
        threads: Option<usize>,
        memory: Option<usize>,
        max_steps: Option<u64>,
    ) -> PyResult<PyRuntime> {
        expect_threads(py)?;
        if threads == Some(0) || threads.is_some_and(|threads| threads > 4096) {
            return Err(invalid_argument(
                py,
                "threads: expected a number from 1 to 4096",
            ));
        }
        let limits = Limits {
            max_memory: memory,
            max_steps,
            ..Limits::default()
        };
        let build = move || {
            let builder = Runtime::builder().limits(limits);
            match threads {
                Some(threads) => builder.threads(threads).build(),
                None => builder.build(),
            }
        };
        Ok(PyRuntime(py.detach(build)))
    }

    /// Returns the runtime that the process shares.
    #[staticmethod]
    fn shared() -> PyRuntime {
        PyRuntime(Runtime::shared().clone())
    }

    /// The number of threads.
    #[getter]
    fn threads(&self) -> usize {
        self.0.host().queue().parallelism()
    }

    fn __repr__(&self) -> String {
        format!("Runtime(threads={})", self.threads())
    }
}
