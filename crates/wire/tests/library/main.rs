//! Tests of the crate's border.

mod frame;
mod message;
mod simulation;
