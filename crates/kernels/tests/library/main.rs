//! Kernels in programs, in one program of tests: what counts cells of the process lies beside.

mod calls;
mod embedded;
#[cfg(feature = "tensor")]
mod graph;
mod later;
#[cfg(feature = "tensor")]
mod onnx;
mod promised;
mod recorded;
mod refused;
mod reports;
mod steps;
#[cfg(feature = "tensor")]
mod tensors;
