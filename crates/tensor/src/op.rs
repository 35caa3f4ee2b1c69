//! [`OpKernel`]: what runs an operation of the table on one kind of device.
//!
//! A row of `tfrt-ops` says what an operation is; crates of kernels say how it is run. Eager calls come here directly.

mod tensors;

use std::fmt;

use smallvec::SmallVec;
use tfrt_host::{AnyAsyncValue, DeviceKind, Error, ExecutionContext};
use tfrt_ops::{Attrs, OpDef};

pub use tensors::{
    Formats, Operands, Output, Outputs, TensorCall, TensorKernel, TensorRunFn, binary_of, made,
    unary_of, unsupported,
};

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
    /// Runs it.
    pub run: RunFn,
}

impl fmt::Debug for OpKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpKernel")
            .field("op", &self.op)
            .field("device", &self.device)
            .finish_non_exhaustive()
    }
}

/// What runs a row on the processor.
#[derive(Clone, Copy, Debug)]
pub enum Runs {
    /// On tensors, some of whose memory it may take.
    Tensors(TensorKernel),
    /// On values of any kind.
    Values(OpKernel),
}
