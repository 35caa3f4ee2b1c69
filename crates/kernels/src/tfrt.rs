//! The dialect `tfrt`: basic kernels of the host runtime.

use tfrt_host::kernel::KernelRegistry;

mod arithmetic;
mod cast;
mod chains;
mod compare;
mod constants;
mod control;
mod device;
mod parallel;
mod print;

/// Adds the kernels of the dialect.
pub fn register(registry: &mut KernelRegistry) {
    constants::register(registry);
    arithmetic::register(registry);
    compare::register(registry);
    cast::register(registry);
    chains::register(registry);
    print::register(registry);
    device::register(registry);
    control::register(registry);
    parallel::register(registry);
}
