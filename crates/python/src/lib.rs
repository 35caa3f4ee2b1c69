//! The module `tfrt._tfrt` of Python: models, tensors and runtimes as classes. The package `tfrt`, in `python/`, stands on it.
//!
//! | File | Has |
//! | --- | --- |
//! | `model.rs`, `session.rs`, `runtime.rs`, `tensor.rs`, `variable.rs`, `cancel.rs` | the classes that users see |
//! | `op.rs`, `attr.rs` | operations, called one at a time |
//! | `call.rs`, `pending.rs` | how calls begin, are waited for and awaited |
//! | `convert.rs` | objects of Python as values of models, and back |
//! | `array.rs`, `dlpack.rs`, `dtype.rs` | elements that NumPy and other libraries see where they are |
//! | `error.rs` | errors as exceptions |
//!
//! While a call runs, its thread is detached from the interpreter, so that others go on; threads of the runtime never wait
//! for the interpreter.

#![deny(unsafe_code)]
#![cfg(feature = "extension")]

use pyo3::prelude::*;

#[allow(unsafe_code, reason = "a listed module")]
mod array;
mod attr;
mod call;
mod cancel;
mod convert;
#[allow(unsafe_code, reason = "a listed module")]
mod dlpack;
#[allow(unsafe_code, reason = "a listed module")]
mod dtype;
mod error;
mod model;
mod op;
mod pending;
#[allow(unsafe_code, reason = "a listed module")]
mod runtime;
mod session;
#[allow(unsafe_code, reason = "a listed module")]
mod tensor;
mod variable;

/// Models, tensors and runtimes of tfrt.
#[pymodule]
mod _tfrt {
    #[pymodule_export]
    use crate::call::note_fork;
    #[pymodule_export]
    use crate::cancel::PyCancellationToken;
    #[pymodule_export]
    use crate::model::{PyModel, PyValueInfo, graph_page};
    #[pymodule_export]
    use crate::op::{PyOp, op_names};
    #[pymodule_export]
    use crate::pending::{Mailbox, PendingCall};
    #[pymodule_export]
    use crate::runtime::PyRuntime;
    #[pymodule_export]
    use crate::session::PySession;
    #[pymodule_export]
    use crate::tensor::{PyTensor, from_dlpack};
    #[pymodule_export]
    use crate::variable::{PyObject, PyVariable};

    use pyo3::prelude::*;

    /// Runs the command with these words, of which the first is the program's name, and returns the exit status.
    #[pyfunction]
    fn command(py: Python<'_>, words: Vec<std::ffi::OsString>) -> u8 {
        py.detach(|| tfrt::command::run(&words))
    }

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
