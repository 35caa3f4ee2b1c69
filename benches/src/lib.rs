//! What benchmarks share: programs of any size, and medians.

#![forbid(unsafe_code)]

pub mod measure;
pub mod programs;
