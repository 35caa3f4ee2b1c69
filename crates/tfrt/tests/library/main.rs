//! The library as its users call it, in one program of tests: what needs a process of its own lies beside.

mod attempts;
mod calls;
mod decompile;
mod eager;
mod filecheck;
mod folding;
mod hollow;
mod mlir_opt;
mod operation_examples;
mod operations;
mod recording;
mod runtime;
mod sequencing;
mod tensors;
