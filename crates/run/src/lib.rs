//! Running programs from a command line: the code that `tfrt run` and the small `tfrt-run` share.
//!
//! `tfrt-run` is the runtime with its basic kernels and nothing else: it takes compiled programs,
//! since it has no parser, and is as small as Rust's standard library lets it be (`cargo xtask
//! size`). Its results, messages and exit statuses are those of `tfrt run`.
//!
//! | To | Use |
//! | --- | --- |
//! | call functions as both commands do | [`Session`] |
//! | read `--arg` and `--queue` | [`arguments`], [`QueueOption`] |
//! | show results | [`report`] |
//! | make a small command with kernels of one's own | [`command::main`] |

#![forbid(unsafe_code)]

pub mod arguments;
pub mod command;
mod errors;
mod exit;
mod options;
mod queue;
pub mod report;
mod session;

pub use errors::Errors;
pub use exit::ExitStatus;
pub use queue::QueueOption;
pub use session::{FinishedCall, Outcome, Session, not_running_line, running_line};
