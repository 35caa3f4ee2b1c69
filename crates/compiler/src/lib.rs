//! The compiler: from text to bytes and back. It depends on `tfrt_ir` and `tfrt_bef`.
//!
//! [`compile`] numbers everything that a module holds in the order in which the
//! original does, groups its operations into streams, and writes the sections. So the
//! same text under the same file name gives the same bytes. [`decompile()`] goes the other
//! way, and loses nothing that the bytes hold.
//!
//! # Examples
//!
//! ```
//! use tfrt_bef::BefFile;
//! use tfrt_compiler::{CompileOptions, compile};
//! use tfrt_ir::{Source, parse};
//!
//! let source = Source::new(
//!     "answer.mlir",
//!     "func.func @answer() -> i32 {\n  %a = tfrt.constant.i32 42\n  tfrt.return %a : i32\n}\n",
//! );
//! let module = parse(&source)?;
//! let file = BefFile::open(compile(&module, &CompileOptions::default())?).unwrap();
//! assert!(file.find_function("answer").is_some());
//! # Ok::<(), tfrt_ir::Diagnostics>(())
//! ```

#![forbid(unsafe_code)]

pub mod codes;
mod decompile;
mod emit;
pub mod graph;
pub mod legalize;
mod model;
pub mod onnx;
mod passes;
pub mod pipeline;
pub mod streams;

use tfrt_bef::BefBuffer;
use tfrt_ir::{Diagnostics, Module};

pub use decompile::{Decompiled, decompile};

/// The attribute of an operation that starts when any one operand is there.
const NONSTRICT: &str = "bef.nonstrict";

/// The attribute that states the cost of an operation; only stream analysis reads it.
const COST: &str = "_tfrt_cost";

/// The attribute that states the streams of an operation's regions, which then are not analyzed: for each region the
/// stream of its entry and of each operation, or nothing to have them analyzed.
const STREAMS: &str = "_tfrt_streams";

/// The attribute of a module whose text is handed to kernels.
const COMPILED: &str = "tfrt.compiled";

/// Options of [`compile`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompileOptions {
    /// Whether to leave out attribute types, attribute names and register types, without which a file runs, but can't
    /// be decompiled.
    pub strip: bool,
}

/// Compiles `module` to the bytes of a file.
///
/// The module need not be verified; what the format cannot express is refused here, and
/// the rest when the file is opened.
///
/// # Errors
///
/// Returns every part of the module that the format cannot express.
pub fn compile(module: &Module, options: &CompileOptions) -> Result<BefBuffer, Diagnostics> {
    emit::emit(module, options)
}
