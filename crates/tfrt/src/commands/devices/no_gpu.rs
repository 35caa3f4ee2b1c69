//! No GPUs: the command was built without them.

use tfrt::{Runtime, RuntimeBuilder};

const WITHOUT: &str = "this command was built without the feature `gpu`";

/// Returns why there is no GPU.
pub fn found() -> Result<Vec<String>, String> {
    Err(WITHOUT.to_owned())
}

/// Leaves a runtime as it is.
pub fn kernels(builder: RuntimeBuilder) -> RuntimeBuilder {
    builder
}

/// Returns why there is no GPU.
pub fn add(_: &Runtime, _: i32) -> Result<(), String> {
    Err(WITHOUT.to_owned())
}
