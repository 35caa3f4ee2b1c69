//! The core runtime: operations called one at a time, by name, on tensors that may be pending.
//!
//! | To | Look at |
//! | --- | --- |
//! | begin | [`CoreRuntime`] |
//! | call operations | [`CoreRuntimeOp`], with a [`Context`] |
//! | hold tensors | [`TensorHandle`] |
//! | tell an operation more than tensors | [`OpAttrs`] |
//! | know which operations there are | [`RowOpHandler`], [`names`] |
//! | write one | [`OpDefinition`], [`Call`] |
//! | add those of a library | [`AddedOps`], [`CoreRuntime::add_ops`] |
//! | decide who finds them | [`OpHandler`], tried by [`conformance`] |
//! | let programs call operations | [`kernels`] |
//! | keep calls to make a function of them | [`Recording`] |
//!
//! An operation whose inputs are there runs at once: on the thread of the caller if it is short, else on a worker.
//! One whose inputs are to come waits, without a thread. Either way the caller has handles, of which type and shape
//! are known wherever they can be, and an error about these is his before anything runs.

#![forbid(unsafe_code)]

mod added;
mod attributes;
mod call;
mod call_site;
mod cancellation;
mod composite;
pub mod conformance;
mod context;
mod deferred;
mod definition;
mod dispatch;
mod effects;
mod error_reporter;
mod handle;
mod handler;
mod inputs;
pub mod kernels;
mod op;
mod record;
mod rows;
mod runtime;
mod transfer;

pub use added::AddedOps;
pub use attributes::{AttrValue, FrozenOpAttrs, IntoAttr, Numbers, OpAttrs, OpAttrsRef, Text};
pub use call::{Call, made};
pub use call_site::CallSite;
pub use context::{Context, DEFAULT_MAX_IN_FLIGHT};
pub use definition::{
    AttrDef, AttrKind, Formats, MetadataCall, OpDefinition, OpRegistry, Output, Outputs,
    ResultCount, ResultMetadata, same_metadata,
};
pub use effects::EffectOrder;
pub use handle::TensorHandle;
pub use handler::{
    CpuOpHandler, FallbackOpHandler, LoggingOpHandler, NullOpHandler, OpHandler, OpHandlerRef,
};
pub use inputs::{Inputs, IntoInputs};
pub use op::{CoreRuntimeOp, FastPath, Handles, Op, OpCall};
pub use record::{Recording, Trace, TracedCall};
pub use rows::{DeviceOpHandler, FindKernel, Pointwise, RowOpHandler, names};
pub use runtime::CoreRuntime;
