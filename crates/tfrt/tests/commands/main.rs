//! The command as people and scripts run it, in one program of tests.

mod bench;
mod closed_pipe;
#[cfg(feature = "dist")]
mod cluster;
mod control_characters;
mod devices;
mod inspect;
#[cfg(target_os = "linux")]
mod interruption;
#[cfg(target_os = "linux")]
mod large_weights;
mod limits;
mod lsp;
#[cfg(all(feature = "plugins", target_os = "linux", target_arch = "x86_64"))]
mod plugins;
mod profiling;
mod report;
mod saved_models;
#[cfg(feature = "serve")]
mod serve;
mod streams;
#[cfg(all(feature = "dist", target_os = "linux"))]
mod tasks;
