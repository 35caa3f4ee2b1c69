//! [`OpHandler`]: the interface of handlers, which find operations by name.
//!
//! Handlers stand one behind the other: one that does not know an operation asks the next.

use std::fmt;
use std::sync::Arc;

use tfrt_host::{DeviceId, Error, ErrorCode, Heap, Value};

use crate::op::Op;

mod cpu;
mod logging;

pub use cpu::CpuOpHandler;
pub use logging::LoggingOpHandler;

/// A handler: finds operations by name, for a device.
///
/// [`conformance::suite`](crate::conformance::suite) tests what a handler promises.
///
/// # Examples
///
/// A handler that asks another, and tells of it:
///
/// ```
/// use std::sync::Arc;
/// use tfrt_corert::{CoreRuntime, Op, OpHandler};
/// use tfrt_host::{DeviceId, Error, HostContext, kernel::KernelRegistry};
///
/// struct Asking(Arc<dyn OpHandler>);
///
/// impl OpHandler for Asking {
///     fn name(&self) -> &str { "asking" }
///     fn device(&self) -> DeviceId { self.0.device() }
///     fn find(&self, op: &str) -> Result<Arc<dyn Op>, Error> {
///         self.0.find(&format!("tf.{op}"))
///     }
/// }
///
/// let runtime = CoreRuntime::new(&HostContext::builder(KernelRegistry::new()).build());
/// let handler: Arc<dyn OpHandler> = Arc::new(Asking(runtime.cpu()));
/// runtime.register("asking", handler.clone())?;
/// assert_eq!(runtime.op("Relu", &handler)?.name(), "tf.Relu");
/// # Ok::<(), Error>(())
/// ```
pub trait OpHandler: Send + Sync + 'static {
    /// Returns the handler's name, for traces and messages.
    fn name(&self) -> &str;

    /// Returns the device that the results of its operations are on.
    fn device(&self) -> DeviceId;

    /// Finds an operation.
    ///
    /// # Errors
    ///
    /// `NotFound` if neither this handler nor one behind it knows the operation.
    fn find(&self, op: &str) -> Result<Arc<dyn Op>, Error>;
}

/// Returns the error for an operation that no handler of a chain has.
#[cold]
pub(crate) fn unsupported(op: &str) -> Error {
    let error = Error::not_found(format!("op '{}' is not supported", op.escape_debug()));
    match op.starts_with("tf.") {
        true => error.with_note("a plugin may bring it: none that is loaded does"),
        false => error,
    }
}

/// A handler as a value of programs.
#[derive(Clone)]
pub struct OpHandlerRef(pub Arc<dyn OpHandler>);

impl Value for OpHandlerRef {
    const NAME: &'static str = "!corert.ophandler";
    type Storage = Heap;
}

impl fmt::Debug for OpHandlerRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OpHandlerRef").field(&self.0.name()).finish()
    }
}

/// The end of a chain of handlers, which knows no operation.
#[derive(Debug)]
pub struct NullOpHandler {
    device: DeviceId,
}

impl NullOpHandler {
    /// Returns a handler for a device that knows no operation.
    pub fn new(device: DeviceId) -> NullOpHandler {
        NullOpHandler { device }
    }
}

impl OpHandler for NullOpHandler {
    fn name(&self) -> &str {
        "null"
    }

    fn device(&self) -> DeviceId {
        self.device
    }

    fn find(&self, op: &str) -> Result<Arc<dyn Op>, Error> {
        let op = op.escape_debug();
        Err(Error::not_found(format!(
            "{op} was not supported by NullOpHandler."
        )))
    }
}

/// A row of handlers: the first that knows an operation has it. A failure other than `NotFound` ends the search.
pub struct FallbackOpHandler {
    name: String,
    // Invariant: not empty.
    handlers: Vec<Arc<dyn OpHandler>>,
}

impl FallbackOpHandler {
    /// Returns a handler that asks `first`, then each of `others`. Its device is that of `first`; an operation runs on
    /// the device of the handler that knows it.
    pub fn new(
        name: &str,
        first: Arc<dyn OpHandler>,
        others: impl IntoIterator<Item = Arc<dyn OpHandler>>,
    ) -> FallbackOpHandler {
        let mut handlers = vec![first];
        handlers.extend(others);
        FallbackOpHandler {
            name: name.to_owned(),
            handlers,
        }
    }
}

impl OpHandler for FallbackOpHandler {
    fn name(&self) -> &str {
        &self.name
    }

    fn device(&self) -> DeviceId {
        self.handlers[0].device()
    }

    fn find(&self, op: &str) -> Result<Arc<dyn Op>, Error> {
        let (last, others) = self.handlers.split_last().expect("there is a handler");
        for handler in others {
            match handler.find(op) {
                Err(error) if error.code() == ErrorCode::NotFound => (),
                found => return found,
            }
        }
        last.find(op)
    }
}

impl fmt::Debug for FallbackOpHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.handlers.iter().map(|handler| handler.name()).collect();
        f.debug_tuple("FallbackOpHandler").field(&names).finish()
    }
}
