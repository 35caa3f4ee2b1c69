//! Tests of kernels in programs, in one program; tests that count cells of the process are beside it.

mod calls;
mod embedded;
#[cfg(feature = "tensor")]
mod graph;
mod later;
#[cfg(feature = "tensor")]
mod onnx;
mod out_of_memory;
mod promises;
mod recordings;
mod reports;
mod steps;
#[cfg(feature = "tensor")]
mod tensors;
