//! Tests of GPUs, on the simulated driver.

mod device;
mod findings;
mod memory;
mod programs;
mod rows;
mod sim;
mod streams;
mod ulps;
