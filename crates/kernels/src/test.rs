//! The dialect `tfrt_test`: kernels that fail, stall, count and reorder on purpose.

use tfrt_host::kernel::KernelRegistry;

/// Adds the kernels of the dialect, and the native functions that tests call.
pub fn register(_registry: &mut KernelRegistry) {}
