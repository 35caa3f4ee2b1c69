//! A host for plugins: libraries of kernels that are built on the C headers of TensorFlow, and run here unchanged.
//!
//! | To | Look at |
//! | --- | --- |
//! | know whether a library loads | [`check::check`] |
//! | load one | [`Plugin`] |
//! | call its operations | [`rows::PluginOps`] |
//! | know which functions of the C API there are | [`functions::FUNCTIONS`] |
//!
//! A plugin asks for `libtensorflow_framework.so.2`; a library of that name is written in memory (`image.rs`) and loaded
//! before it. Its functions lead to `functions/`. What a plugin holds are numbers that are checked at each use
//! ([`handle`]); what it does wrong fails its call ([`fault`]); what it throws is caught where it was called ([`guard`]). If
//! it crashes, a command says where ([`crash`]).

#![deny(unsafe_code)]

mod attrs;
mod builtin;
#[expect(
    unsafe_code,
    reason = "cells that plugins write are memory of a fixed form"
)]
mod cells;
pub mod check;
pub mod codes;
#[expect(unsafe_code, reason = "handlers of signals")]
pub mod crash;
mod dtype;
pub mod elf;
pub mod fault;
mod foreign;
pub mod functions;
#[expect(unsafe_code, reason = "calls of a plugin's functions, and unwinding")]
pub mod guard;
pub mod handle;
#[expect(
    unsafe_code,
    reason = "the table of a library that is written at run time"
)]
mod image;
#[expect(unsafe_code, reason = "what a call uses without counting it")]
mod lent;
#[expect(unsafe_code, reason = "loading runs foreign code")]
mod library;
mod locks;
mod node;
#[expect(unsafe_code, reason = "loading runs foreign code")]
mod plugin;
mod proto;
#[expect(unsafe_code, reason = "arguments of C functions are addresses")]
pub mod raw;
mod registry;
pub mod rows;
pub mod run;
mod spec;
pub mod value;
#[expect(unsafe_code, reason = "lists of arguments of the C library")]
mod variadic;

pub use attrs::{Attr, Kind};
pub use library::IS_SUPPORTED;
pub use plugin::{Kernel, LoadError, Plugin};
pub use registry::{left_behind, spec};
pub use spec::{ArgSpec, ArgTypes, AttrSpec, OpSpec};
