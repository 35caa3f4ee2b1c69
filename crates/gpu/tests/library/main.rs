//! Tests of GPUs, on the simulated driver.

mod sim;
