//! GPUs as devices of tfrt.
//!
//! [`driver`] is the border to what drives them: NVIDIA's driver, opened at run time, and a simulated one that runs the
//! same kernels on the processor and checks what it is asked for.

#![deny(unsafe_code)]

pub mod conformance;
pub mod driver;

pub use driver::{Driver, GpuError, GpuErrorKind, GpuResult};
