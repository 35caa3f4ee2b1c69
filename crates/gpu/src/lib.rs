//! GPUs as devices of tfrt.
//!
//! | What | Where |
//! | --- | --- |
//! | the border to what drives GPUs: NVIDIA's driver, opened at run time, and a simulated one that checks | [`driver`] |
//! | owners of a driver's handles; memory that is kept for reuse | [`context`], [`memory`] |
//! | a GPU as a device of a host: memory, copies | [`GpuDevice`] |
//! | kernels of programs in the dialects `tfrt_cuda` and `tfrt_gpu` | [`register`], [`use_driver`] |
//! | operations of the core runtime, by the names of TensorFlow and of tests | [`GpuOpHandler`] |
//! | sections of models, which are captured and launched as graphs | [`use_graphs`], [`graph_counts`] |
//! | kernels of rows | [`KERNELS`]; CUDA C and PTX lie in `kernels/` |
//! | what every driver must pass | [`conformance`] |
//!
//! # Examples
//!
//! ```
//! use std::sync::Arc;
//! use tfrt_gpu::driver::sim::{Sim, SimOptions};
//! use tfrt_gpu::GpuDevice;
//! use tfrt_host::{HostContext, kernel::KernelRegistry};
//!
//! let host = HostContext::builder(KernelRegistry::new()).build();
//! let driver = Arc::new(Sim::new(SimOptions::default()));
//! let device = tfrt_gpu::add(&host, driver, 0)?;
//! assert_eq!(device.name(), "GPU:0");
//! # Ok::<(), tfrt_host::Error>(())
//! ```

#![deny(unsafe_code)]

use std::sync::Arc;

use tfrt_host::device::Device;
use tfrt_host::{DeviceRef, Error, HostContext};

pub mod conformance;
pub mod context;
mod device;
mod dialect;
pub mod driver;
mod kernels;
pub mod memory;
mod op_handler;
mod programs;
mod rows;
mod section;

pub use device::{GpuDevice, GpuMemory, KIND};
pub use dialect::{driver_of, register, use_driver};
pub use driver::{Driver, GpuError, GpuErrorKind, GpuResult};
pub use op_handler::GpuOpHandler;
pub use rows::KERNELS;
pub use section::{GraphCounts, graph_counts, use_graphs};

/// Adds the device of a driver's ordinal to a host: the first is `GPU:0`.
///
/// # Errors
///
/// `Unavailable` or `InvalidArgument` if there is none; `AlreadyExists` if it was added before.
pub fn add(host: &HostContext, driver: Arc<dyn Driver>, ordinal: i32) -> Result<DeviceRef, Error> {
    add_limited(host, driver, ordinal, None)
}

/// Adds the device of a driver's ordinal to a host, which takes so many bytes of its memory at most. What a tensor beyond
/// that is needed for fails with `ResourceExhausted`, after idle memory was given back.
///
/// # Errors
///
/// See [`add`].
pub fn add_limited(
    host: &HostContext,
    driver: Arc<dyn Driver>,
    ordinal: i32,
    max_memory: Option<usize>,
) -> Result<DeviceRef, Error> {
    if let Some(present) = host.devices().get(&format!("GPU:{ordinal}")) {
        let name = present.name();
        return Err(Error::already_exists(format!(
            "the device {name} was added before"
        )));
    }
    // What can fail is tried before the device gets its number.
    let mut device = Some(GpuDevice::limited(
        driver,
        ordinal,
        host.allocator().clone(),
        max_memory,
    )?);
    host.devices().add(|id| {
        let device = device.take().expect("it is made once");
        device.number(id);
        let device: Arc<dyn Device> = Arc::new(device);
        device
    })
}
