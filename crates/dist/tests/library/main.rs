//! Tests of the crate's border.

mod cluster;
mod collective;
mod engine;
mod reduction;
