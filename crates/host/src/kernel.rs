//! How to write a kernel: one function and one line.
//!
//! A kernel is a plain Rust function. Its parameters and results say what it takes and gives;
//! registering it under the name of an operation is all that is left to do.
//!
//! ```
//! use tfrt_host::Error;
//! use tfrt_host::kernel::KernelRegistry;
//!
//! /// `%quotient, %remainder = my.div %n, %d`
//! fn div(n: i32, d: i32) -> Result<(i32, i32), Error> {
//!     if d == 0 {
//!         return Err(Error::invalid_argument("Divide by zero"));
//!     }
//!     Ok((n.wrapping_div(d), n.wrapping_rem(d)))
//! }
//!
//! pub fn register(registry: &mut KernelRegistry) {
//!     registry.add("my.div", div);
//! }
//! # let mut registry = KernelRegistry::new();
//! # register(&mut registry);
//! ```
//!
//! Parameters stand in the order operands, attributes (in the order of their names), functions;
//! surroundings may stand anywhere. The tables are in [`param`] and [`returns`].
//!
//! # What the executor promises
//!
//! * Strict operands are values: an error operand skips the kernel and becomes its results.
//! * A kernel that panics fails its own results with `Internal`, and nothing else.
//! * Operands are released when the function returns, before its results are published.
//! * An operation may pass one chain more than the kernel declares: it only orders.
//!
//! # What the executor asks
//!
//! Kernels must not block. One that computes for long returns [`Later`], which leaves that to a task of
//! the work queue. One that has to wait for something returns a value that is to come, and gives its
//! [promise](crate::ExecutionContext::promise) to whoever brings it: a task, a blocking task, a thread of its
//! own, the callback of a driver. The request waits for as long as the promise is kept; a promise that is
//! dropped fails its result.
//!
//! ```
//! use std::thread;
//! use tfrt_host::kernel::KernelRegistry;
//! use tfrt_host::{AsyncValue, ExecutionContext};
//!
//! /// `%y = my.later %x`
//! fn later(x: i32, context: &ExecutionContext) -> AsyncValue<i32> {
//!     let (promise, value) = context.promise();
//!     thread::spawn(move || promise.resolve(x + 1));
//!     value
//! }
//!
//! let mut registry = KernelRegistry::new();
//! registry.add("my.later", later);
//! ```
//!
//! Control flow is in [`control`].

#[allow(unsafe_code, reason = "a listed module")]
mod code;
pub mod control;
mod frame;
mod function;
mod node;
#[allow(
    clippy::needless_lifetimes,
    reason = "the lifetime of a call is the point of the trait"
)]
pub mod param;
mod registry;
pub mod returns;
mod signature;
mod value;

pub use crate::request::LentContext;
pub(crate) use code::EntryPoints;
pub use control::{Call, Callee, Forward, Loop, Step, Target, Turn, Turns};
pub(crate) use control::{Flow, looping};
pub(crate) use frame::{KernelEnv, Scratch, Status, wrong_result_count};
pub use frame::{KernelFrame, Mismatch};
pub use function::{Explain, KernelFn, Leaf, Shape, WithShortcut, explain, with_shortcut};
pub use node::NodeState;
pub(crate) use node::Place as NodePlace;
pub use param::{
    Arguments, Attr, Awaited, Callees, Early, KernelParam, Operands, Owned, Rest, RestAttributes,
    ResultCount, ScalarAttr,
};
pub use registry::{KernelEntry, KernelRegistry};
pub use returns::{KernelResult, KernelReturn, Later, Results};
pub(crate) use signature::CHAIN;
pub use signature::{AttributeSpec, Completion, OperandSpec, Part, Parts, ResultSpec, Signature};
pub use value::{BF16, Complex, F16};

pub use tfrt_bef::{AggregateView, AttributeType, AttributeView, ShapeView};

pub use crate::function::Function;
