//! Many tasks: one program on several processes, which an engine of a cluster (Slurm, Open MPI, torchrun, Kubernetes)
//! or a file names.
//!
//! | To know | See |
//! | --- | --- |
//! | which tasks there are, and where | [`cluster`] |
//! | which of them this process is, and how it was told | [`engine`] |
//! | what `--cluster` takes, and how all that is put together | [`source`] |
//! | how tasks reduce, broadcast and gather tensors together | [`collective`] |
//! | what tasks say to each other | [`message`] |
//! | what carries that, and what any carrier promises | [`transport`], [`conformance`] |
//! | how a process joins the others of a cluster, and leaves | [`join`] |
//! | how long connections take | [`probe`] |
//! | who answers requests, and how groups of tasks start | [`server`], [`start`] |
//! | what a task knows of the others of its group | [`context`] |
//! | how functions are registered and run on other tasks | [`functions`], [`kernels`] |
//! | where their results are, and how programs name them | [`objects`], [`names`], [`device`] |
//! | where values that are sent meet who waits for them | [`rendezvous`] |
//! | how operations are called on devices of other tasks | [`op_handler`] |
//! | how peers prove who they are, what each may do, and how much | [`security`] |
//! | in which order numbers of many tasks are reduced | [`reduction`] |
//!
//! A task is named `/job:worker/task:1`: [`task`].

mod bytes;
pub mod cluster;
pub mod collective;
pub mod conformance;
pub mod context;
pub mod device;
pub mod engine;
mod execute;
pub mod functions;
pub mod ids;
pub mod join;
pub mod kernels;
pub mod message;
pub mod names;
pub mod objects;
pub mod op_handler;
mod pace;
pub mod probe;
pub mod reduction;
pub mod rendezvous;
pub mod security;
pub mod server;
pub mod source;
pub mod start;
pub mod task;
pub mod transport;
