//! Errors of ours as exceptions of Python: `tfrt.Error` and its kinds, which `tfrt/_errors.py` declares.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyList, PyTuple};
use tfrt::{AnyError, Error, Problem, SourceLocation};

/// Makes the exception of an error, with what is wrong as numbers and places.
pub fn raise(py: Python<'_>, error: impl Into<AnyError>) -> PyErr {
    let error = error.into();
    let made = problems(py, &error).and_then(|problems| {
        let message = match &error {
            AnyError::Open(error) => error.message(),
            AnyError::Call(error) => error.message().to_owned(),
            other => other.to_string(),
        };
        maker(py)?.call1((message, problems))
    });
    match made {
        Ok(exception) => PyErr::from_value(exception),
        Err(failed) => failed,
    }
}

/// Makes the exception of an argument that can't be taken.
#[cold]
pub fn invalid_argument(py: Python<'_>, message: impl Into<String>) -> PyErr {
    raise(py, Error::invalid_argument(message.into()))
}

/// Adds to an exception of ours what it is about, `input 'x': `. Others, such as interrupts, stay as they are.
pub fn about(py: Python<'_>, error: PyErr, subject: &str) -> PyErr {
    let value = error.value(py);
    let about = value
        .getattr("_about")
        .and_then(|about| about.call1((subject,)));
    match about {
        Ok(exception) => PyErr::from_value(exception),
        Err(_) => error,
    }
}

/// Returns the function of `tfrt._errors` that makes exceptions.
fn maker(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static MAKER: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let maker = MAKER.get_or_try_init(py, || {
        let module = py.import("tfrt._errors")?;
        Ok::<_, PyErr>(module.getattr("_of_problems")?.unbind())
    })?;
    Ok(maker.bind(py))
}

/// Returns what is wrong as tuples: code, kind, message, place, node, kernel, notes.
fn problems<'py>(py: Python<'py>, error: &AnyError) -> PyResult<Bound<'py, PyList>> {
    let all = error.problems();
    let tuples = all.iter().map(|problem| {
        let kind = problem.kind.map(|kind| kind.name());
        let Problem {
            code,
            message,
            node,
            kernel,
            notes,
            ..
        } = problem;
        let place = place(py, problem.location.as_ref())?;
        let tuple = (
            *code,
            kind,
            message,
            place,
            node,
            kernel,
            PyTuple::new(py, notes)?,
        );
        tuple.into_pyobject(py)
    });
    PyList::new(py, tuples.collect::<PyResult<Vec<_>>>()?)
}

fn place<'py>(py: Python<'py>, location: Option<&SourceLocation>) -> PyResult<Bound<'py, PyAny>> {
    Ok(match location {
        None => py.None().into_bound(py),
        Some(SourceLocation::FileLineCol { file, line, column }) => {
            (file, line, column).into_pyobject(py)?.into_any()
        }
        Some(SourceLocation::Opaque(text)) => text.into_pyobject(py)?.into_any(),
    })
}

/// Makes the exception of something that can't fail unless this module is broken.
#[cold]
pub fn broken(what: &'static str) -> PyErr {
    PyRuntimeError::new_err(what)
}
