//! The library as its users call it, in one program of tests: what needs a process of its own lies beside.

mod attempts;
mod calls;
mod decompile;
mod eager;
/// The tests of the corpus's own checker, which has no test harness where it is used.
#[path = "../corpus/filecheck.rs"]
mod filecheck;
mod folding;
#[cfg(feature = "gpu")]
mod gpu;
mod hollow;
mod mlir_opt;
#[cfg(feature = "cli")]
mod models;
mod operation_examples;
mod operations;
mod recording;
mod runtime;
mod sequencing;
mod stablehlo;
mod tensors;
mod twice;
