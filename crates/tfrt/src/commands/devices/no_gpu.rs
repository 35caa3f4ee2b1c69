//! No GPUs: the command was built without them.

use tfrt::{HostEvaluator, Runtime, RuntimeBuilder};

use super::GraphCounts;

const WITHOUT: &str = "this command was built without the feature `gpu`";

/// Returns why there is no GPU.
pub fn found() -> Result<Vec<String>, String> {
    Err(WITHOUT.to_owned())
}

/// Leaves a runtime as it is.
pub fn kernels(builder: RuntimeBuilder) -> RuntimeBuilder {
    builder
}

/// Returns why nothing is known of GPUs.
pub fn placing(_: &str, _: HostEvaluator) -> Result<HostEvaluator, String> {
    Err(WITHOUT.to_owned())
}

/// Returns why there is no GPU.
pub fn add(_: &Runtime, _: i32, _: Option<usize>) -> Result<(), String> {
    Err(WITHOUT.to_owned())
}

/// Returns that there is no GPU.
pub fn graphs(_: &Runtime) -> Option<GraphCounts> {
    None
}
