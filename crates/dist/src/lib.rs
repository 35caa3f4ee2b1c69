//! Many tasks: one program on several processes, which an engine of a cluster (Slurm, Open MPI, torchrun, Kubernetes)
//! or a file names.
//!
//! | To know | See |
//! | --- | --- |
//! | which tasks there are, and where | [`cluster`] |
//! | which of them this process is, and how it was told | [`engine`] |
//! | what `--cluster` takes, and how all that is put together | [`source`] |
//! | how tasks reduce, broadcast and gather tensors together | [`collective`] |
//! | in which order numbers of many tasks are reduced | [`reduction`] |
//!
//! A task is named `/job:worker/task:1`: [`task`].

pub mod cluster;
pub mod collective;
pub mod engine;
pub mod reduction;
pub mod source;
pub mod task;
