//! Random programs on all queues, compared with the oracle.
//!
//! | To | Use |
//! | --- | --- |
//! | run one program, and see what it leaves behind | [`test_runtime`](mod@test_runtime) |
//! | run many, and compare | [`search`] |
//!
//! What a program leaves behind is counted for the whole process, so one process runs one
//! program at a time. `cargo xtask differential` starts one for each processor.

#![forbid(unsafe_code)]

pub mod search;
pub mod test_runtime;
