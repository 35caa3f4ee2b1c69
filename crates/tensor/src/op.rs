//! [`OpKernel`]: what runs an operation of the table on one kind of device; and [`Prepared`], what it makes of constants.
//!
//! A row of `tfrt-ops` says what an operation is; crates of kernels say how it is run. Eager calls come here directly.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use smallvec::SmallVec;
use tfrt_host::codec::Encoder;
use tfrt_host::{AnyAsyncValue, DeviceKind, Error, ExecutionContext, Heap, Value};
use tfrt_ops::{Attrs, OpDef};

/// One run of an operation.
#[derive(Clone, Copy)]
pub struct OpCall<'a> {
    /// The operation's row.
    pub op: &'static OpDef,
    /// Its attributes, by the names of the row.
    pub attrs: Attrs<'a>,
    /// Its operands, which are there: tensors, and [`NoValue`](crate::NoValue) for what is left out.
    pub inputs: &'a [AnyAsyncValue],
    /// How many results the caller takes: the first ones.
    pub n_results: usize,
    /// What the kernel has made of the operands that are left out, if it was asked to.
    pub prepared: Option<&'a Prepared>,
    /// The request that it runs for.
    pub execution: &'a ExecutionContext,
}

impl fmt::Debug for OpCall<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpCall")
            .field("op", &self.op.name)
            .field("attrs", &self.attrs)
            .field("n_results", &self.n_results)
            .finish_non_exhaustive()
    }
}

/// What a run gives: values that are there, or are to come.
pub type OpResults = SmallVec<[AnyAsyncValue; 1]>;

/// Runs an operation.
///
/// # Errors
///
/// `InvalidArgument` for operands and attributes that don't fit, `ResourceExhausted` if there is no memory for the
/// results. What goes wrong later fails the results.
pub type RunFn = fn(&OpCall<'_>) -> Result<OpResults, Error>;

/// What runs an operation on one kind of device.
#[derive(Clone, Copy)]
pub struct OpKernel {
    /// The name of the row.
    pub op: &'static str,
    /// The kind of device.
    pub device: DeviceKind,
    /// What it makes of constants, if it makes anything.
    pub prepare: Option<Prepare>,
    /// Runs it. All operands may be there, and nothing prepared.
    pub run: RunFn,
}

/// How a kernel makes of constants, once for each node of a model, what it needs of them in each call: packed weights,
/// attributes that were read.
#[derive(Clone, Copy, Debug)]
pub struct Prepare {
    /// The operands that it takes, by their places. All of them that are not left out must be constants.
    pub inputs: &'static [usize],
    /// Whether it takes the attributes, too: then calls have none.
    pub takes_attributes: bool,
    /// Makes it. Operands that it does not take are left out.
    pub make: PrepareFn,
}

/// Prepares an operation. Nothing is prepared where the kernel does as well with the constants themselves; not if it takes
/// the attributes.
///
/// # Errors
///
/// `InvalidArgument` for constants and attributes that don't fit, `ResourceExhausted` if there is no memory.
pub type PrepareFn = fn(&OpCall<'_>) -> Result<Option<Prepared>, Error>;

/// What a kernel has made of an operation's constants: made when a model is opened, or when it is compiled and stored in
/// its file; shared by all calls, and dropped with the model.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The row of the operation that it is for.
    pub op: &'static str,
    /// What was made. Only the kernel that made it knows its type.
    pub state: Arc<dyn PreparedState>,
}

impl Value for Prepared {
    const NAME: &'static str = "!graph.prepared";
    type Storage = Heap;
}

/// A kernel's own form of constants.
pub trait PreparedState: Any + fmt::Debug + Send + Sync {
    /// Writes it for a file, laid out for the encoder's target. Nothing is written if files keep the constants instead.
    fn encode(&self, _: &mut Encoder) -> Option<Result<(), Error>> {
        None
    }
}

impl fmt::Debug for OpKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpKernel")
            .field("op", &self.op)
            .field("device", &self.device)
            .finish_non_exhaustive()
    }
}
