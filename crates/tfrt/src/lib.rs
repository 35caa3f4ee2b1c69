//! An asynchronous dataflow runtime: models and programs in, tensors and values out.
//!
//! From the file of a model and a vector of inputs to a vector of outputs:
//!
//! ```
//! # std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).unwrap();
//! use tfrt::{Model, Runtime, Tensor};
//!
//! let (model, runtime) = (Model::open("examples/layer.onnx")?, Runtime::shared());
//! let x = Tensor::from_vec(&[1, 2], vec![1.0_f32, 2.0])?;
//!
//! // Any number of calls at once; wait for one, or `.await` it on any executor.
//! let outputs = model.call(&runtime.context(), [("x", x)]).wait()?;
//! let y: Vec<f32> = outputs.tensor("y")?.to_vec()?;
//! assert_eq!(y, [2.0, 5.0]);
//! # Ok::<(), tfrt::AnyError>(())
//! ```
//!
//! A program is text, or bytes that were compiled of it, with functions of any values:
//!
//! ```
//! use tfrt::Runtime;
//!
//! let runtime = Runtime::new();
//! let program = runtime.compile(
//!     "triple.mlir",
//!     "func.func @triple(%x: i32) -> i32 {
//!        %y = tfrt.add.i32 %x, %x
//!        %z = tfrt.add.i32 %y, %x
//!        tfrt.return %z : i32
//!      }",
//! )?;
//! let triple = program.function("triple").expect("the program has it");
//!
//! // Wait for the results, or `.await` them on any executor.
//! let results = triple.call(&runtime.context(), (14,)).wait()?;
//! assert_eq!(*results.get::<i32>(0)?, 42);
//! # Ok::<(), tfrt::AnyError>(())
//! ```
//!
//! | To | Use |
//! | --- | --- |
//! | run a model: ONNX, or compiled | [`Model::open`], [`Model::call`] |
//! | fix its symbolic dimensions, open it without optimizations | [`OpenOptions`], [`Model::open_with`] |
//! | give it tensors, and read its outputs | [`Tensor`], [`model::Outputs`] |
//! | keep state from one call to the next | [`Model::session`], [`model::Session`] |
//! | hand elements to another language, thread or device | [`OwnedReading`], [`OwnedWriting`] |
//! | save a compiled model, as `tfrt compile` does | [`Input::compile_for`](input::Input::compile_for) |
//! | run the program in a file | [`Program::open`], [`Program::function`], [`Function::call`] |
//! | choose queue, allocator, limits; add kernels, devices, codecs | [`Runtime::builder`] |
//! | limit the memory of one request, or its time | [`Runtime::context_builder`] |
//! | run programs that nobody vouches for | [`RuntimeBuilder::untrusted`] |
//! | fold constants while a model is compiled | [`HostEvaluator`] |
//! | stop a call, give it a deadline or data | [`Context`] |
//! | hear of errors and events | [`RuntimeBuilder::diagnostics`], [`RuntimeBuilder::trace`] |
//! | read what went wrong as numbers and places | [`AnyError::problems`] |
//! | know what ran when | [`RuntimeBuilder::recorder`], [`profile`] |
//! | catch what programs print | [`RuntimeBuilder::output`] |
//! | calculate with tensors, one operation at a time | [`eager`] |
//! | write a kernel | [`kernel`] |
//! | run kernels of a library that is built for TensorFlow | `Plugin`, `RuntimeBuilder::plugins` (feature `plugins`) |
//! | serve models to clients of KServe's protocol | `serve` (feature `serve`) |
//! | run the command `tfrt` in a process of your own | `command::run` (feature `cli`) |
//! | read models of a format of your own | [`Format`], [`RuntimeBuilder::formats`] |
//!
//! # Kernels of your own
//!
//! A kernel is a function; adding it is a line:
//!
//! ```
//! use tfrt::{Runtime, Error};
//!
//! fn double(x: i32) -> Result<i32, Error> {
//!     x.checked_mul(2).ok_or_else(|| Error::new(tfrt::ErrorCode::OutOfRange, "too large to double"))
//! }
//!
//! let runtime = Runtime::builder()
//!     .kernels(|registry| {
//!         registry.add("my.double", double);
//!     })
//!     .build();
//! let program = runtime.compile(
//!     "double.mlir",
//!     r#"func.func @main() -> i32 {
//!          %x = tfrt.constant.i32 21
//!          %y = "my.double"(%x) : (i32) -> i32
//!          tfrt.return %y : i32
//!        }"#,
//! )?;
//! let results = program.function("main").unwrap().call(&runtime.context(), ()).wait()?;
//! assert_eq!(*results.get::<i32>(0)?, 42);
//! # Ok::<(), tfrt::AnyError>(())
//! ```
//!
//! # The layers below
//!
//! The crates that this one stands on are re-exported whole, for those who need more: [`asynchronous`],
//! [`bef`], [`compiler`], [`corert`], [`host`], [`import`], [`ir`], [`kernels`], [`ops`] and
//! [`tensor`]. Only what stands at the root of this
//! crate is a promise.

#![deny(unsafe_code)]

// The modules of the command name the library as whoever uses it does.
#[cfg(feature = "cli")]
extern crate self as tfrt;

pub use tfrt_async as asynchronous;
pub use tfrt_bef as bef;
#[cfg(feature = "plugins")]
pub use tfrt_capi as capi;
pub use tfrt_compiler as compiler;
pub use tfrt_corert as corert;
#[cfg(feature = "dist")]
pub use tfrt_dist as dist;
#[cfg(feature = "gpu")]
pub use tfrt_gpu as gpu;
pub use tfrt_host as host;
pub use tfrt_import as import;
pub use tfrt_ir as ir;
pub use tfrt_kernels as kernels;
pub use tfrt_ops as ops;
pub use tfrt_run::report;
pub use tfrt_tensor as tensor;

#[doc(inline)]
pub use tfrt_async::ClusterTask;
#[doc(inline)]
pub use tfrt_async::queue::{
    Clock, ConcurrentWorkQueue, ManualClock, MultiThreadedWorkQueue, SingleThreadedWorkQueue,
    available_parallelism,
};
/// The type of the elements of a [`Tensor`].
///
/// # Examples
///
/// ```
/// use tfrt::{DType, Tensor};
///
/// let halves = Tensor::zeros(DType::F16, &[3])?;
/// assert_eq!(halves.dtype(), DType::F16);
/// assert_eq!((DType::F16.name(), DType::F16.size_bytes()), ("f16", Some(2)));
/// # Ok::<(), tfrt::Error>(())
/// ```
#[doc(inline)]
pub use tfrt_host::DType;
#[doc(inline)]
pub use tfrt_host::{
    AnyAsyncValue, AnyPromise, AsyncValue, Chain, Error, ErrorCode, ExecutionContext, Heap,
    HostAllocator, HostContext, InPlace, KernelPromise, Limits, Output, Promise, RequestContext,
    ResourceContext, SourceLocation, Stuck, Value, kernel,
};
/// The shape of a [`Tensor`].
///
/// # Examples
///
/// ```
/// use tfrt::{Shape, Tensor};
///
/// let x = Tensor::from_vec(&[2, 3], vec![0_u8; 6])?;
/// assert_eq!((x.shape().rank(), x.shape().n_elements()), (2, Some(6)));
/// assert_eq!(x.shape().extents().collect::<Vec<_>>(), [2, 3]);
/// assert_eq!(*x.shape(), Shape::new(&[2, 3])?);
/// # Ok::<(), tfrt::Error>(())
/// ```
#[doc(inline)]
pub use tfrt_tensor::TensorShape as Shape;
#[doc(inline)]
pub use tfrt_tensor::{BF16, Bool, Complex, Element, F16};

mod arguments;
mod call;
pub mod codes;
#[cfg(feature = "cli")]
pub mod command;
#[cfg(feature = "cli")]
mod commands;
#[cfg(feature = "cli")]
mod console;
mod context;
#[cfg(feature = "cli")]
mod data;
#[cfg(feature = "dist")]
mod dist_compiler;
pub mod eager;
mod error;
mod evaluator;
#[cfg(feature = "cli")]
mod failure;
mod formats;
mod host_tensor;
pub mod input;
pub mod model;
mod open_options;
#[cfg(feature = "cli")]
mod options;
pub mod profile;
mod program;
mod runtime;
#[cfg(feature = "serve")]
pub mod serve;
mod stored;
#[cfg(feature = "tracing")]
mod tracing;
mod untrusted;

pub use arguments::{Argument, Arguments};
pub use call::{Call, CallFuture, Values};
pub use context::{Context, ContextBuilder};
pub use error::{AnyError, OpenError, Problem, error_message};
pub use evaluator::HostEvaluator;
pub use formats::{Format, Formats};
pub use host_tensor::{OwnedReading, OwnedView, OwnedWriting, Tensor, View};
#[doc(inline)]
pub use model::Model;
pub use open_options::{OpenOptions, Placements, Warnings};
pub use program::{Function, Program};
pub use runtime::{Runtime, RuntimeBuilder};
pub use tfrt_compiler::onnx::{HostNodes, PlacementReport, Precision};
pub use untrusted::Untrusted;

/// A library of kernels that is built on TensorFlow's C headers.
#[cfg(feature = "plugins")]
#[doc(inline)]
pub use tfrt_capi::Plugin;
#[cfg(feature = "plugins")]
#[doc(inline)]
pub use tfrt_capi::rows::PluginOps;
#[cfg(feature = "tracing")]
pub use tracing::TracingSink;

/// The programs in README.md and docs/library.md are tests, too.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../../README.md")]
    mod readme {}
    #[doc = include_str!("../../../docs/library.md")]
    mod library {}
}
