//! GPUs, by the driver that the system has.

use tfrt::gpu::driver::cuda::Cuda;
use tfrt::gpu::{Driver, GpuResult, KERNELS, KIND};
use tfrt::{HostEvaluator, Runtime, RuntimeBuilder};

use super::GraphCounts;

/// Returns a line for each GPU, or why there is none.
pub fn found() -> Result<Vec<String>, String> {
    let lines = || -> GpuResult<Vec<String>> {
        let cuda = Cuda::open()?;
        let version = cuda.version()?;
        let (major, minor) = (version / 1000, version % 1000 / 10);
        let mut lines = Vec::new();
        for ordinal in 0..cuda.n_devices()? {
            let found = cuda.properties(cuda.device(ordinal)?)?;
            let (gib, capability) = (
                found.len_bytes as f64 / f64::from(1 << 30),
                found.capability,
            );
            lines.push(format!(
                "GPU:{ordinal}  {}, {gib:.1} GiB, compute capability {}.{}, CUDA {major}.{minor} of {}",
                found.name,
                capability.0,
                capability.1,
                cuda.library()
            ));
        }
        Ok(lines)
    };
    lines().map_err(|error| error.to_string())
}

/// Gives a runtime the kernels of GPUs.
pub fn kernels(builder: RuntimeBuilder) -> RuntimeBuilder {
    builder.op_kernels(KERNELS)
}

/// Has an evaluator place nodes on a GPU.
pub fn placing(name: &str, evaluator: HostEvaluator) -> Result<HostEvaluator, String> {
    Ok(evaluator.on_device(name, KIND, KERNELS.into()))
}

/// Adds a GPU to a runtime, of which so many bytes are taken at most.
pub fn add(runtime: &Runtime, ordinal: i32, max_memory: Option<usize>) -> Result<(), String> {
    let driver = tfrt::gpu::driver_of(runtime.host());
    let driver = driver.map_err(|error| error.message().to_owned())?;
    let added = tfrt::gpu::add_limited(runtime.host(), driver, ordinal, max_memory);
    added
        .map(|_| ())
        .map_err(|error| error.message().to_owned())
}

/// Returns how many graphs a runtime's models have captured and launched; `None` if it has no GPU.
pub fn graphs(runtime: &Runtime) -> Option<GraphCounts> {
    let devices = runtime.host().devices().list();
    let has_gpu = devices.iter().any(|device| device.kind() == KIND);
    let counts = tfrt::gpu::graph_counts(runtime.host());
    has_gpu.then_some(GraphCounts {
        captured: counts.n_captured,
        launched: counts.n_launched,
    })
}
