//! Kernels of the dialects `tfrt_cuda` and `tfrt_gpu`: GPUs as programs name them, over the owners of this crate.
//!
//! | Part | Where |
//! | --- | --- |
//! | which driver a host's programs get | [`use_driver`] |
//! | what values of programs are: contexts, streams, buffers | [`objects`], [`buffers`] |
//! | what both dialects do alike: copies, launches, calls of libraries | [`transfer`], [`launch`], [`linear`], [`networks`] |
//! | the kernels, a dialect each | [`cuda`], [`gpu`] |
//!
//! A kernel checks its operands before it asks the driver, so that what is wrong is told with its sizes; what the driver
//! refuses is told with its code. A chain that a kernel gives says that work is queued. Only `synchronize`, `poll` and
//! copies to the host wait for it, on threads for that.

use std::sync::{Arc, Mutex, PoisonError};

use tfrt_corert::OpHandlerRef;
use tfrt_host::kernel::KernelRegistry;
use tfrt_host::{Error, ExecutionContext, HostContext};

use crate::driver::Driver;
use crate::driver::cuda::Cuda;
use crate::op_handler::GpuOpHandler;
use crate::section;

/// Makes types of values with names of their own: `named! { Stream(objects::Stream) = "!tfrt_gpu.stream"; }`.
macro_rules! named {
    ($($name:ident($inner:ty) = $text:literal;)*) => {
        $(
            #[derive(Clone)]
            pub(super) struct $name(pub(super) $inner);

            impl tfrt_host::Value for $name {
                const NAME: &'static str = $text;
                type Storage = tfrt_host::Heap;
            }

            impl std::ops::Deref for $name {
                type Target = $inner;

                fn deref(&self) -> &$inner {
                    &self.0
                }
            }
        )*
    };
}

mod buffers;
mod cuda;
mod exchange;
mod gpu;
mod launch;
mod linear;
mod networks;
mod objects;
mod transfer;

/// The driver of a host's programs.
#[derive(Default)]
struct Chosen(Mutex<Option<Arc<dyn Driver>>>);

/// Says which driver the host's programs get. Without this it is NVIDIA's, opened when the first asks.
pub fn use_driver(host: &HostContext, driver: Arc<dyn Driver>) {
    let chosen = host.shared(|_| Chosen::default());
    *chosen.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(driver);
}

/// Returns the driver of a host's programs.
///
/// # Errors
///
/// `Unavailable` if there is none.
pub fn driver_of(host: &HostContext) -> Result<Arc<dyn Driver>, Error> {
    let chosen = host.shared(|_| Chosen::default());
    let mut chosen = chosen.0.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(driver) = &*chosen {
        return Ok(driver.clone());
    }
    let driver: Arc<dyn Driver> = Arc::new(Cuda::open()?);
    *chosen = Some(driver.clone());
    Ok(driver)
}

/// Adds the kernels of both dialects, and that of sections of models, to a registry.
pub fn register(registry: &mut KernelRegistry) {
    registry
        .add_dialect("tfrt_cuda", cuda::register)
        .add_dialect("tfrt_cuda_test", cuda::register_test)
        .add_dialect("tfrt_gpu", gpu::register)
        .add("corert.create_gpu_op_handler", create_op_handler)
        .add(section::KERNEL, section::run);
}

/// `%h = "corert.create_gpu_op_handler"(%ordinal, %fallback)`
fn create_op_handler(
    ordinal: i32,
    fallback: &OpHandlerRef,
    execution: &ExecutionContext,
) -> Result<OpHandlerRef, Error> {
    let host = execution.host();
    let device = match host.devices().get(&format!("GPU:{ordinal}")) {
        Some(present) => present,
        None => crate::add(host, driver_of(host)?, ordinal)?,
    };
    let handler = GpuOpHandler::new(host, &device, fallback.0.clone())?;
    Ok(OpHandlerRef(Arc::new(handler)))
}

/// Returns a number of things, or of bytes, that a program gives.
fn count(what: &str, n: i64) -> Result<usize, Error> {
    let found = usize::try_from(n).ok();
    found.ok_or_else(|| Error::invalid_argument(format!("expected {what}, found {n}")))
}
