//! Tests of GPUs, on the simulated driver.

mod device;
mod rows;
mod sim;
