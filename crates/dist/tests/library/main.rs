//! Tests of the crate's border.

mod cluster;
mod collective;
mod contexts;
mod engine;
mod join;
mod programs;
mod reduction;
mod schedules;
#[cfg(target_os = "linux")]
mod security;
mod transport;
