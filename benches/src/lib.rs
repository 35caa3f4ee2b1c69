//! Shared code of benchmarks: programs of any size, graphs, hosts that run them, peers, and
//! medians.

#![forbid(unsafe_code)]

pub mod cases;
pub mod compare;
pub mod counted;
pub mod folders;
pub mod graph;
pub mod hand_off;
pub mod kernels;
pub mod measure;
pub mod ours;
pub mod peers;
pub mod programs;
pub mod small;
pub mod table;
#[cfg(feature = "models")]
pub mod whole;
