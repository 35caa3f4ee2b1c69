//! The dialect `tfrt_dist` as kernels: programs that run functions on other tasks.
//!
//! | Family | Kernels |
//! | --- | --- |
//! | `execute` | functions registered with other tasks, and run there |
//! | `collectives` | reductions, broadcasts and gatherings of all members of a group |
//! | `values` | values that are sent and received |
//! | `tasks` | names of tasks, chains of tasks, handlers of their devices |
//! | `test` | contexts of several tasks within one process |

use tfrt_host::kernel::KernelRegistry;

mod collectives;
mod execute;
mod tasks;
mod test;
mod values;

#[cfg(target_os = "linux")]
pub use test::SocketNetwork;
pub use test::{Listen, set_test_network};

/// Adds the kernels.
pub fn register(registry: &mut KernelRegistry) {
    registry.add_built_in(|registry| {
        tasks::register(registry);
        execute::register(registry);
        collectives::register(registry);
        values::register(registry);
        test::register(registry);
    });
}
