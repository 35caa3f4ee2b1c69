//! Tests of GPUs, on the simulated driver.

mod device;
mod findings;
mod rows;
mod sim;
