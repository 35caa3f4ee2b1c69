//! The Binary Executable Format: programs as the machine maps them.
//!
//! ```text
//! 0b ef 00                       magic, version
//! 00 len  strings                NUL-terminated, addressed by offset
//! 01 len  attributes             constants, addressed by offset
//! 02 len  kernels                names of the kernels in use
//! 03 len  types                  names of the types in use
//! 04 len  function index         kind, name and signature of each function
//! 05 len  functions              registers, kernel table, kernel records
//! 06 len  location strings       file names
//! 07 len  locations              one record per function and kernel
//! 08 len  attribute types        optional
//! 09 len  attribute names        optional
//! 0a len  register types         optional
//! 40 len  non-strict kernels     ours, written only if there are any
//! ```
//!
//! [`BefFile::open`] is the one way from bytes to views: it checks everything, and
//! after it views index without failing. [`BefWriter`] goes the other way.
//! `docs/bef.md` specifies the format.

#![deny(unsafe_code)]

#[cfg(not(target_endian = "little"))]
compile_error!("words of the format are read in place, which needs a little-endian machine");

mod attribute;
#[allow(unsafe_code)]
mod buffer;
pub mod codes;
mod cursor;
mod dtype;
mod dump;
mod error;
mod file;
mod function;
mod kernel;
pub mod layout;
pub mod listing;
mod location;
pub mod model;
#[doc(hidden)]
pub mod order;
pub mod varint;
mod verify;
mod writer;

pub use attribute::{AggregateView, AttributeView, DenseView, Element, ShapeView, SymbolView};
pub use buffer::BefBuffer;
pub use dtype::{AttributeType, DType};
pub use dump::dump;
pub use error::BefError;
pub use file::{AttributeSection, BefFile};
pub use function::{Body, FunctionView};
pub use kernel::KernelView;
pub use layout::{
    AttributeOffset, FunctionIndex, FunctionKind, KernelCode, KernelIndex, LocationOffset,
    RegisterIndex, SectionId, TypeIndex,
};
pub use location::{Location, LocationRecord};
pub use model::Model;
pub use writer::{
    AttributeWriter, BefWriter, BodyEntry, BodyWriter, FunctionBody, FunctionEntry, KernelEntry,
    KernelHead, ListWriter, LocationWriter, Payload, StringTable, assemble,
};
