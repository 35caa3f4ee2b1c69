//! The expected output of programs, found without running them on the runtime.
//!
//! ```text
//!           seed ──> generate ──> program ──> text ──┬──> the runtime ──┐
//!                                    ^               │                  ├──> differential
//!                                    │               └──> evaluate ─────┘        │
//!                                    └────────────────── shrink <────────────────┘
//! ```
//!
//! | To know | Read |
//! | --- | --- |
//! | what an operation means, written down a second time | [`evaluate`] |
//! | whether a program can print one thing only | [`ordered`] |
//! | what random programs are like | [`generate`], [`program`] |
//! | how a difference is found and made small | [`differential`], [`shrink`] |
//!
//! This crate knows text and nothing else of the runtime: it depends on
//! `tfrt-ir` only, so that a mistake in a kernel, the executor, the compiler or
//! the bytes is not repeated here.

#![forbid(unsafe_code)]

pub mod differential;
pub mod effects;
pub mod evaluate;
pub mod generate;
pub mod ordered;
mod plan;
pub mod program;
pub mod random;
pub mod shrink;
pub mod value;
