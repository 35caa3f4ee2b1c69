//! Tests of the crate's border.

mod cluster;
mod engine;
mod reduction;
mod transport;
