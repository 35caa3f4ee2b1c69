//! The tests that every driver must pass.
//!
//! [`suite`] panics with the name of the promise that a driver does not keep; [`checks`] lists them one by one, for who
//! wants a table. What loses the context is [`sticky`], for a process of its own.

#![expect(
    unsafe_code,
    reason = "launches of kernels whose arguments are written beside them"
)]

use std::sync::Arc;

use tfrt_host::HostContext;
use tfrt_host::kernel::KernelRegistry;
use tfrt_host::memory::HostBuffer;

use crate::driver::{
    Argument, DeviceOrdinal, DevicePointer, Driver, GpuErrorKind, GpuResult, Grid, RawContext,
    RawFunction, RawModule, RawStream, Transfer,
};

mod graphs;
mod launches;
mod memory;
mod order;

/// The kernels that the suite launches.
const PTX: &str = include_str!("../kernels/conformance.ptx");

/// A named check of one promise.
pub type Check = (&'static str, fn(&Bed));

/// Returns all checks.
pub fn checks() -> &'static [Check] {
    CHECKS
}

const CHECKS: &[Check] = &[
    ("devices are counted from 0, and others refused", devices),
    (
        "memory begins at multiples of 256, and is counted",
        memory::memory,
    ),
    (
        "memory that there is not is an error",
        memory::too_much_memory,
    ),
    (
        "what was copied to the device comes back",
        memory::there_and_back,
    ),
    ("parts are copied, and nothing beside them", memory::parts),
    ("copies within the device", memory::within),
    (
        "memory is filled with bytes, halves and words",
        memory::fills,
    ),
    (
        "rights of copies are held until the host learns that they are over",
        memory::rights,
    ),
    (
        "rights of copies come back with their stream",
        memory::rights_of_destroyed_streams,
    ),
    (
        "commands of a stream run in order",
        order::order_of_a_stream,
    ),
    ("a stream waits for another's event", order::waiting),
    (
        "events are reached in order, and without a record at once",
        order::events,
    ),
    ("events tell times if they were made to", order::times),
    (
        "handles that were given back are refused",
        order::handles_given_back,
    ),
    ("what is no module is refused", launches::bad_modules),
    (
        "kernels are found by name, and tell their parameters",
        launches::functions,
    ),
    ("a kernel computes", launches::axpy),
    ("shared memory and barriers", launches::sums),
    ("shared memory of the launch", launches::dynamic_shared),
    ("arguments of all sizes", launches::arguments),
    ("grids that no device has are refused", launches::bad_grids),
    ("pinned memory is copied from and to", memory::pinned),
    (
        "lent memory is the device's until it is taken back",
        memory::lent,
    ),
    (
        "variables of modules are found by name",
        launches::variables,
    ),
    (
        "a context of one's own has memory and streams of its own",
        order::own_contexts,
    ),
    ("streams and contexts are waited for", order::synchronising),
    ("many threads use a stream each", order::many_threads),
    (
        "what a stream captures runs when its graph is launched, in order",
        graphs::replayed,
    ),
    (
        "launches of one graph run one after the other",
        graphs::one_after_the_other,
    ),
    (
        "what can't be captured is refused, and spoils the capture",
        graphs::spoiled,
    ),
    (
        "captures end once, and graphs are given back once",
        graphs::handles,
    ),
];

/// Runs all checks.
///
/// # Panics
///
/// If one is not kept.
pub fn suite(driver: &Arc<dyn Driver>) {
    for (promise, check) in CHECKS {
        eprintln!("{promise}");
        Bed::with(driver, *check);
    }
}

/// The test bed of a check: a driver, a context and a stream.
pub struct Bed {
    driver: Arc<dyn Driver>,
    host: HostContext,
    device: DeviceOrdinal,
    context: RawContext,
    stream: RawStream,
}

impl Bed {
    /// Runs a check with a driver's first device.
    pub fn with(driver: &Arc<dyn Driver>, check: fn(&Bed)) {
        let device = driver.device(0).expect("there is a device");
        let context = driver.retain_primary(device).expect("it has a context");
        let stream = driver.create_stream(context).expect("it has streams");
        let host = HostContext::builder(KernelRegistry::new()).build();
        let bed = Bed {
            driver: driver.clone(),
            host,
            device,
            context,
            stream,
        };
        check(&bed);
        driver.destroy_stream(context, stream).expect("it is there");
        driver.release_primary(device).expect("it was retained");
    }

    fn buffer(&self, bytes: &[u8]) -> HostBuffer {
        HostBuffer::copy_of(self.host.allocator(), bytes).expect("there is memory")
    }

    fn allocate(&self, len_bytes: usize) -> DevicePointer {
        self.driver
            .allocate(self.context, len_bytes)
            .expect("there is memory")
    }

    fn free(&self, pointer: DevicePointer) {
        self.driver
            .free(self.context, pointer)
            .expect("it is a block");
    }

    fn up(&self, stream: RawStream, from: &HostBuffer, to: DevicePointer) {
        let from = from.clone().read_owned().expect("nobody writes");
        let transfer = Transfer::Up { from, to };
        self.driver
            .copy(self.context, stream, transfer)
            .expect("it is queued");
    }

    fn down(&self, stream: RawStream, from: DevicePointer, to: &HostBuffer) {
        let to = to.clone().write_owned().expect("nobody uses it");
        let transfer = Transfer::Down { from, to };
        self.driver
            .copy(self.context, stream, transfer)
            .expect("it is queued");
    }

    fn within(&self, stream: RawStream, from: DevicePointer, to: DevicePointer, len_bytes: usize) {
        let transfer = Transfer::Within {
            from,
            to,
            len_bytes,
        };
        self.driver
            .copy(self.context, stream, transfer)
            .expect("it is queued");
    }

    fn wait(&self, stream: RawStream) {
        self.driver
            .synchronize_stream(self.context, stream)
            .expect("nothing is lost");
    }

    fn content(&self, from: DevicePointer, len_bytes: usize) -> Vec<u8> {
        let to = self.buffer(&vec![0xee; len_bytes]);
        self.down(self.stream, from, &to);
        self.wait(self.stream);
        to.read().expect("the right was given back").to_vec()
    }

    fn floats(&self, from: DevicePointer, n: usize) -> Vec<f32> {
        let bytes = self.content(from, 4 * n);
        bytes
            .as_chunks()
            .0
            .iter()
            .map(|four| f32::from_ne_bytes(*four))
            .collect()
    }

    fn put(&self, values: &[f32]) -> DevicePointer {
        let bytes: Vec<u8> = values
            .iter()
            .flat_map(|value| value.to_ne_bytes())
            .collect();
        let to = self.allocate(bytes.len());
        self.up(self.stream, &self.buffer(&bytes), to);
        to
    }

    fn module(&self) -> RawModule {
        self.driver
            .load_module(self.context, PTX.as_bytes())
            .expect("it is PTX")
    }

    fn function(&self, module: RawModule, name: &str) -> RawFunction {
        self.driver
            .function(self.context, module, name)
            .expect("the module has it")
    }

    fn try_launch(
        &self,
        function: RawFunction,
        grid: Grid,
        arguments: &[Argument<'_>],
    ) -> GpuResult<()> {
        // SAFETY: the callers beside give the arguments that the kernels of `conformance.cu` take, and memory for all
        // that they touch; `sticky` gives an address that is nobody's.
        unsafe {
            self.driver
                .launch(self.context, self.stream, function, &grid, arguments)
        }
    }

    fn launch(&self, function: RawFunction, grid: Grid, arguments: &[Argument<'_>]) {
        self.try_launch(function, grid, arguments)
            .expect("it is queued");
    }
}

fn refused<T: std::fmt::Debug>(result: GpuResult<T>, code: &str) {
    let error = result.expect_err("it is wrong");
    assert_eq!(
        (&*error.code, error.kind),
        (code, GpuErrorKind::Refused),
        "{error}"
    );
}

fn numbers(n: usize, seed: usize) -> Vec<u8> {
    (0..n).map(|i| ((i * 31 + seed * 17) % 251) as u8).collect()
}

fn devices(bed: &Bed) {
    let n = bed.driver.n_devices().expect("it counts");
    assert!(n >= 1);
    for ordinal in [-1, n, i32::MAX] {
        refused(bed.driver.device(ordinal), "CUDA_ERROR_INVALID_DEVICE");
    }
    let properties = bed.driver.properties(bed.device).expect("it tells");
    assert!(!properties.name.is_empty() && properties.len_bytes > 0);
    assert!(properties.max_threads >= 256 && properties.max_grid[0] > 65535);
    assert!(bed.driver.version().expect("it tells") >= 12000);
}

/// Loses the context of a driver's first device, and checks what is told of that. Nothing else can be done in the process
/// then.
///
/// # Panics
///
/// If the error is not the expected one, or calls are not refused from then on.
pub fn sticky(driver: &Arc<dyn Driver>) {
    let device = driver.device(0).expect("there is a device");
    let context = driver.retain_primary(device).expect("it has a context");
    let stream = driver.create_stream(context).expect("it has streams");
    let host = HostContext::builder(KernelRegistry::new()).build();
    let bed = Bed {
        driver: driver.clone(),
        host,
        device,
        context,
        stream,
    };
    let module = bed.module();
    let function = bed.function(module, "axpy");
    let bytes = bed.buffer(&[1; 64]);
    let block = bed.allocate(64);
    bed.up(stream, &bytes, block);
    let nowhere = [
        Argument::U32(4),
        Argument::F32(1.0),
        Argument::Pointer(None),
        Argument::Pointer(None),
    ];
    // The launch itself may tell, if it runs at once.
    let _queued = bed.try_launch(function, Grid::linear(1, 32), &nowhere);
    let lost = driver
        .synchronize_stream(context, stream)
        .expect_err("it reads where nothing is");
    assert_eq!(
        (&*lost.code, lost.kind),
        ("CUDA_ERROR_ILLEGAL_ADDRESS", GpuErrorKind::Sticky),
        "{lost}"
    );
    assert!(lost.to_string().contains("axpy"), "{lost}");
    let after = driver
        .allocate(context, 16)
        .expect_err("the context is lost");
    assert_eq!(after.kind, GpuErrorKind::Sticky, "{after}");
    let after = driver.copy(
        context,
        stream,
        Transfer::Within {
            from: block,
            to: block,
            len_bytes: 4,
        },
    );
    assert_eq!(
        after.expect_err("the context is lost").kind,
        GpuErrorKind::Sticky
    );
}
