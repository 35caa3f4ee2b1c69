//! Many tasks: one program on several processes, which an engine of a cluster (Slurm, Open MPI, torchrun, Kubernetes)
//! or a file names.
//!
//! | To know | See |
//! | --- | --- |
//! | which tasks there are, and where | [`cluster`] |
//! | which of them this process is, and how it was told | [`engine`] |
//! | what tasks say to each other | [`message`] |
//! | what carries that, and what any carrier promises | [`transport`], [`conformance`] |
//! | in which order numbers of many tasks are reduced | [`reduction`] |
//!
//! A task is named `/job:worker/task:1`: [`task`].

pub mod cluster;
pub mod conformance;
pub mod engine;
pub mod ids;
pub mod message;
pub mod reduction;
pub mod task;
pub mod transport;
