//! The tests that every driver must pass.
//!
//! [`suite`] panics with the name of the promise that a driver does not keep; [`checks`] lists them one by one, for who
//! wants a table. What loses the context is [`sticky`], for a process of its own.

#![expect(
    unsafe_code,
    reason = "launches of kernels whose arguments are written beside them"
)]

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tfrt_host::HostContext;
use tfrt_host::kernel::KernelRegistry;
use tfrt_host::memory::HostBuffer;

use crate::driver::{
    Argument, DeviceOrdinal, DevicePointer, Driver, Fill, GpuErrorKind, GpuResult, Grid,
    RawContext, RawFunction, RawModule, RawStream, Transfer,
};

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
    ("memory begins at multiples of 256, and is counted", memory),
    ("memory that there is not is an error", too_much_memory),
    ("what was copied to the device comes back", there_and_back),
    ("parts are copied, and nothing beside them", parts),
    ("copies within the device", within),
    ("memory is filled with bytes, halves and words", fills),
    (
        "rights of copies are held until the host learns that they are over",
        rights,
    ),
    (
        "rights of copies come back with their stream",
        rights_of_destroyed_streams,
    ),
    ("commands of a stream run in order", order_of_a_stream),
    ("a stream waits for another's event", waiting),
    (
        "events are reached in order, and without a record at once",
        events,
    ),
    ("events tell times if they were made to", times),
    (
        "handles that were given back are refused",
        handles_given_back,
    ),
    ("what is no module is refused", bad_modules),
    (
        "kernels are found by name, and tell their parameters",
        functions,
    ),
    ("a kernel computes", axpy),
    ("shared memory and barriers", sums),
    ("shared memory of the launch", dynamic_shared),
    ("arguments of all sizes", arguments),
    ("grids that no device has are refused", bad_grids),
    ("pinned memory is copied from and to", pinned),
    ("streams and contexts are waited for", synchronising),
    ("many threads use a stream each", many_threads),
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

fn memory(bed: &Bed) {
    let info = |bed: &Bed| bed.driver.memory_info(bed.context).expect("it tells");
    let before = info(bed);
    let blocks: Vec<DevicePointer> = [1, 255, 256, 4 << 20].map(|len| bed.allocate(len)).to_vec();
    for block in &blocks {
        assert!(block.0.is_multiple_of(256), "{block}");
    }
    let held = info(bed);
    assert!(held.free_bytes < before.free_bytes && held.total_bytes == before.total_bytes);
    blocks.into_iter().for_each(|block| bed.free(block));
    refused(
        bed.driver.allocate(bed.context, 0),
        "CUDA_ERROR_INVALID_VALUE",
    );
}

fn too_much_memory(bed: &Bed) {
    let total = bed
        .driver
        .memory_info(bed.context)
        .expect("it tells")
        .total_bytes;
    let error = bed
        .driver
        .allocate(bed.context, 2 * total)
        .expect_err("there is none");
    assert_eq!(
        (&*error.code, error.kind),
        ("CUDA_ERROR_OUT_OF_MEMORY", GpuErrorKind::Exhausted)
    );
    bed.free(bed.allocate(1024));
}

fn there_and_back(bed: &Bed) {
    for len in [1, 3, 4096, 300_001] {
        let bytes = numbers(len, len);
        let block = bed.allocate(len);
        bed.up(bed.stream, &bed.buffer(&bytes), block);
        assert!(bed.content(block, len) == bytes, "{len} bytes");
        bed.free(block);
    }
}

fn parts(bed: &Bed) {
    let block = bed.allocate(64);
    bed.up(bed.stream, &bed.buffer(&[7; 64]), block);
    bed.up(bed.stream, &bed.buffer(&[1, 2, 3]), block.offset(5));
    let mut expected = [7; 64];
    expected[5..8].copy_from_slice(&[1, 2, 3]);
    assert_eq!(bed.content(block, 64), expected);
    assert_eq!(bed.content(block.offset(4), 5), [7, 1, 2, 3, 7]);
    bed.free(block);
}

fn within(bed: &Bed) {
    let bytes = numbers(1000, 3);
    let (one, two) = (bed.allocate(1000), bed.allocate(1000));
    bed.up(bed.stream, &bed.buffer(&bytes), one);
    bed.within(bed.stream, one, two, 1000);
    bed.within(bed.stream, one.offset(10), two.offset(500), 100);
    let mut expected = bytes.clone();
    expected[500..600].copy_from_slice(&bytes[10..110]);
    assert_eq!(bed.content(two, 1000), expected);
    bed.free(one);
    bed.free(two);
}

fn fills(bed: &Bed) {
    let block = bed.allocate(16);
    let fill = |at, value, n| {
        bed.driver
            .fill(bed.context, bed.stream, at, value, n)
            .expect("it is queued")
    };
    fill(block, Fill::Word(0x0403_0201), 4);
    fill(block.offset(4), Fill::Half(0x0605), 2);
    fill(block.offset(9), Fill::Byte(9), 3);
    fill(block, Fill::Byte(0), 0);
    assert_eq!(
        bed.content(block, 16),
        [1, 2, 3, 4, 5, 6, 5, 6, 1, 9, 9, 9, 1, 2, 3, 4]
    );
    bed.free(block);
}

fn rights(bed: &Bed) {
    let (block, bytes) = (bed.allocate(100), bed.buffer(&[1; 100]));
    bed.up(bed.stream, &bytes, block);
    assert!(bytes.write().is_err(), "the copy holds it");
    bed.wait(bed.stream);
    assert!(bytes.write().is_ok(), "the copy is over");
    let event = bed
        .driver
        .create_event(bed.context, false)
        .expect("it has events");
    bed.down(bed.stream, block, &bytes);
    bed.driver
        .record_event(bed.context, event, bed.stream)
        .expect("it is queued");
    // This one is behind the record.
    let later = bed.buffer(&[2; 100]);
    bed.up(bed.stream, &later, block);
    assert!(bytes.read().is_err(), "the copy holds it");
    bed.driver
        .synchronize_event(bed.context, event)
        .expect("it is reached");
    assert_eq!(*bytes.read().expect("the copy is over"), [1; 100]);
    assert!(
        later.write().is_err(),
        "nobody has heard that this one is over"
    );
    bed.driver
        .synchronize_context(bed.context)
        .expect("nothing is lost");
    assert!(later.write().is_ok());
    bed.driver
        .destroy_event(bed.context, event)
        .expect("it is there");
    bed.free(block);
}

fn rights_of_destroyed_streams(bed: &Bed) {
    let stream = bed
        .driver
        .create_stream(bed.context)
        .expect("it has streams");
    let (block, bytes) = (bed.allocate(1 << 18), bed.buffer(&vec![5; 1 << 18]));
    bed.up(stream, &bytes, block);
    bed.driver
        .destroy_stream(bed.context, stream)
        .expect("it is there");
    assert!(bytes.write().is_ok());
    assert!(bed.content(block, 1 << 18).iter().all(|byte| *byte == 5));
    bed.free(block);
}

fn order_of_a_stream(bed: &Bed) {
    const LEN: usize = 1 << 14;
    let (one, two) = (bed.allocate(LEN), bed.allocate(LEN));
    for value in 0..20_u8 {
        bed.driver
            .fill(bed.context, bed.stream, one, Fill::Byte(value), LEN)
            .expect("it is queued");
        bed.within(bed.stream, one, two, LEN);
    }
    assert!(bed.content(two, LEN).iter().all(|byte| *byte == 19));
    bed.free(one);
    bed.free(two);
}

fn waiting(bed: &Bed) {
    const LEN: usize = 1 << 14;
    let other = bed
        .driver
        .create_stream(bed.context)
        .expect("it has streams");
    let event = bed
        .driver
        .create_event(bed.context, false)
        .expect("it has events");
    let (one, two) = (bed.allocate(LEN), bed.allocate(LEN));
    let meet = |first: RawStream, second: RawStream| {
        bed.driver
            .record_event(bed.context, event, first)
            .expect("it is queued");
        bed.driver
            .wait_event(bed.context, second, event)
            .expect("it is queued");
    };
    for value in 0..20_u8 {
        bed.driver
            .fill(bed.context, bed.stream, one, Fill::Byte(value), LEN)
            .expect("it is queued");
        meet(bed.stream, other);
        bed.within(other, one, two, LEN);
        meet(other, bed.stream);
    }
    assert!(bed.content(two, LEN).iter().all(|byte| *byte == 19));
    bed.wait(other);
    bed.driver
        .destroy_event(bed.context, event)
        .expect("it is there");
    bed.driver
        .destroy_stream(bed.context, other)
        .expect("it is there");
    bed.free(one);
    bed.free(two);
}

fn events(bed: &Bed) {
    let event = || {
        bed.driver
            .create_event(bed.context, false)
            .expect("it has events")
    };
    let (one, two) = (event(), event());
    let is_reached = |event| {
        bed.driver
            .query_event(bed.context, event)
            .expect("nothing is lost")
    };
    assert!(is_reached(one), "without a record");
    let block = bed.allocate(1 << 18);
    let record = |event| {
        bed.driver
            .record_event(bed.context, event, bed.stream)
            .expect("it is queued")
    };
    bed.driver
        .fill(bed.context, bed.stream, block, Fill::Byte(1), 1 << 18)
        .expect("it is queued");
    record(one);
    bed.driver
        .fill(bed.context, bed.stream, block, Fill::Byte(2), 1 << 18)
        .expect("it is queued");
    record(two);
    let begin = Instant::now();
    while !is_reached(two) {
        assert!(
            begin.elapsed() < Duration::from_secs(10),
            "it is never reached"
        );
        thread::yield_now();
    }
    assert!(is_reached(one), "it comes before");
    assert!(
        bed.driver
            .query_stream(bed.context, bed.stream)
            .expect("nothing is lost")
    );
    for event in [one, two] {
        bed.driver
            .destroy_event(bed.context, event)
            .expect("it is there");
    }
    bed.free(block);
}

fn times(bed: &Bed) {
    let event = |is_timing| {
        bed.driver
            .create_event(bed.context, is_timing)
            .expect("it has events")
    };
    let (one, two, mute) = (event(true), event(true), event(false));
    let block = bed.allocate(1 << 18);
    for event in [one, two, mute] {
        bed.driver
            .record_event(bed.context, event, bed.stream)
            .expect("it is queued");
        bed.driver
            .fill(bed.context, bed.stream, block, Fill::Byte(1), 1 << 18)
            .expect("it is queued");
    }
    bed.wait(bed.stream);
    let time = bed
        .driver
        .elapsed(bed.context, one, two)
        .expect("both are reached");
    assert!(
        time > Duration::ZERO && time < Duration::from_secs(1),
        "{time:?}"
    );
    refused(
        bed.driver.elapsed(bed.context, one, mute),
        "CUDA_ERROR_INVALID_HANDLE",
    );
    for event in [one, two, mute] {
        bed.driver
            .destroy_event(bed.context, event)
            .expect("it is there");
    }
    bed.free(block);
}

fn handles_given_back(bed: &Bed) {
    let stream = bed
        .driver
        .create_stream(bed.context)
        .expect("it has streams");
    let event = bed
        .driver
        .create_event(bed.context, false)
        .expect("it has events");
    let module = bed.module();
    let function = bed.function(module, "nothing");
    bed.driver
        .destroy_stream(bed.context, stream)
        .expect("it is there");
    bed.driver
        .destroy_event(bed.context, event)
        .expect("it is there");
    bed.driver
        .unload_module(bed.context, module)
        .expect("it is there");
    let code = "CUDA_ERROR_INVALID_HANDLE";
    refused(bed.driver.synchronize_stream(bed.context, stream), code);
    refused(bed.driver.destroy_stream(bed.context, stream), code);
    refused(bed.driver.query_event(bed.context, event), code);
    refused(
        bed.driver.record_event(bed.context, event, bed.stream),
        code,
    );
    refused(bed.driver.unload_module(bed.context, module), code);
    refused(bed.driver.function(bed.context, module, "nothing"), code);
    refused(bed.try_launch(function, Grid::linear(1, 1), &[]), code);
    let block = bed.allocate(256);
    bed.free(block);
    refused(
        bed.driver.free(bed.context, block),
        "CUDA_ERROR_INVALID_VALUE",
    );
    refused(
        bed.driver.create_stream(RawContext(999)),
        "CUDA_ERROR_INVALID_CONTEXT",
    );
}

fn bad_modules(bed: &Bed) {
    for image in [&b"hello"[..], b"", &[0x7f, b'E', b'L', b'F', 0, 0, 0, 0]] {
        refused(
            bed.driver.load_module(bed.context, image),
            "CUDA_ERROR_INVALID_IMAGE",
        );
    }
    let broken = PTX.replacen("mad.lo.s32", "mud.lo.s32", 1);
    let error = bed
        .driver
        .load_module(bed.context, broken.as_bytes())
        .expect_err("it is broken");
    assert_eq!(
        (&*error.code, error.kind),
        ("CUDA_ERROR_INVALID_PTX", GpuErrorKind::Refused)
    );
    assert!(error.detail.contains("mud"), "{error}");
}

fn functions(bed: &Bed) {
    let module = bed.module();
    let error = bed
        .driver
        .function(bed.context, module, "absent")
        .expect_err("there is none");
    assert_eq!(
        error.to_string(),
        "cuModuleGetFunction failed with CUDA_ERROR_NOT_FOUND: no kernel 'absent'"
    );
    let info = |name| {
        let function = bed.function(module, name);
        bed.driver
            .function_info(bed.context, function)
            .expect("it is there")
    };
    let axpy = info("axpy");
    if let Some(parameters) = axpy.parameters {
        assert_eq!(parameters, [4, 4, 8, 8]);
        assert_eq!(
            info("arguments").parameters.expect("it told before"),
            [8, 8, 4, 4, 8]
        );
        assert!(
            info("nothing")
                .parameters
                .expect("it told before")
                .is_empty()
        );
    }
    assert_eq!((axpy.max_threads, info("sums").shared_bytes), (1024, 1024));
    bed.driver
        .unload_module(bed.context, module)
        .expect("it is there");
}

fn axpy(bed: &Bed) {
    const N: usize = 1000;
    let module = bed.module();
    let function = bed.function(module, "axpy");
    let x: Vec<f32> = (0..N).map(|i| i as f32).collect();
    let (x, y) = (bed.put(&x), bed.put(&[1.0; N]));
    let arguments = [
        Argument::U32(N as u32),
        Argument::F32(0.5),
        Argument::Pointer(Some(x)),
        Argument::Pointer(Some(y)),
    ];
    bed.launch(function, Grid::linear(4, 256), &arguments);
    bed.launch(function, Grid::linear(8, 128), &arguments);
    for (i, value) in bed.floats(y, N).into_iter().enumerate() {
        assert_eq!(value, 1.0 + i as f32, "element {i}");
    }
    bed.driver
        .unload_module(bed.context, module)
        .expect("it is there");
    bed.free(x);
    bed.free(y);
}

fn sums(bed: &Bed) {
    let module = bed.module();
    let function = bed.function(module, "sums");
    let x: Vec<f32> = (0..512).map(|i| i as f32).collect();
    let (x, y) = (bed.put(&x), bed.allocate(8));
    bed.launch(
        function,
        Grid::linear(2, 256),
        &[Argument::Pointer(Some(y)), Argument::Pointer(Some(x))],
    );
    assert_eq!(bed.floats(y, 2), [32640.0, 98176.0]);
    bed.driver
        .unload_module(bed.context, module)
        .expect("it is there");
    bed.free(x);
    bed.free(y);
}

fn dynamic_shared(bed: &Bed) {
    let module = bed.module();
    let function = bed.function(module, "dynamic_shared");
    let y = bed.allocate(4 * 64);
    let grid = Grid {
        shared_bytes: 4 * 64,
        ..Grid::linear(1, 64)
    };
    bed.launch(function, grid, &[Argument::Pointer(Some(y))]);
    let bytes = bed.content(y, 4 * 64);
    let found: Vec<u32> = bytes
        .as_chunks()
        .0
        .iter()
        .map(|four| u32::from_ne_bytes(*four))
        .collect();
    let expected: Vec<u32> = (0..64).map(|i| (63 - i) * (63 - i)).collect();
    assert_eq!(found, expected);
    bed.driver
        .unload_module(bed.context, module)
        .expect("it is there");
    bed.free(y);
}

fn arguments(bed: &Bed) {
    let module = bed.module();
    let function = bed.function(module, "arguments");
    let y = bed.allocate(8);
    let arguments = [
        Argument::Pointer(Some(y)),
        Argument::F64(0.125),
        Argument::F32(0.5),
        Argument::U32(3_000_000_000),
        Argument::U64(-7_i64 as u64),
    ];
    bed.launch(function, Grid::linear(1, 1), &arguments);
    let bytes: [u8; 8] = bed.content(y, 8).try_into().expect("eight bytes");
    assert_eq!(f64::from_ne_bytes(bytes), 2_999_999_993.625);
    bed.driver
        .unload_module(bed.context, module)
        .expect("it is there");
    bed.free(y);
}

fn bad_grids(bed: &Bed) {
    let module = bed.module();
    let function = bed.function(module, "nothing");
    let one = Grid::linear(1, 1);
    for grid in [
        Grid::linear(0, 1),
        Grid::linear(1, 0),
        Grid::linear(1, 1025),
        Grid {
            blocks: [1, 65536, 1],
            ..one
        },
        Grid {
            threads: [1, 1, 65],
            ..one
        },
        Grid {
            shared_bytes: 1 << 20,
            ..one
        },
    ] {
        refused(
            bed.try_launch(function, grid, &[]),
            "CUDA_ERROR_INVALID_VALUE",
        );
    }
    bed.launch(function, one, &[]);
    bed.wait(bed.stream);
    bed.driver
        .unload_module(bed.context, module)
        .expect("it is there");
}

fn pinned(bed: &Bed) {
    const LEN: usize = 1 << 16;
    let buffer = HostBuffer::zeroed(bed.host.allocator(), LEN, 4096).expect("there is memory");
    buffer
        .write()
        .expect("nobody uses it")
        .copy_from_slice(&numbers(LEN, 1));
    let pinned = bed
        .driver
        .register(bed.context, buffer.clone())
        .expect("it is memory of the host");
    let block = bed.allocate(LEN);
    bed.up(bed.stream, &buffer, block);
    bed.wait(bed.stream);
    buffer.write().expect("the copy is over").fill(0);
    bed.down(bed.stream, block, &buffer);
    bed.wait(bed.stream);
    assert!(*buffer.read().expect("the copy is over") == numbers(LEN, 1));
    bed.driver
        .unregister(bed.context, pinned)
        .expect("it is there");
    assert!(
        bed.driver.unregister(bed.context, pinned).is_err(),
        "it was given back"
    );
    bed.free(block);
}

fn synchronising(bed: &Bed) {
    let block = bed.allocate(1 << 18);
    bed.driver
        .fill(bed.context, bed.stream, block, Fill::Byte(1), 1 << 18)
        .expect("it is queued");
    bed.driver
        .synchronize_context(bed.context)
        .expect("nothing is lost");
    assert!(
        bed.driver
            .query_stream(bed.context, bed.stream)
            .expect("nothing is lost")
    );
    bed.free(block);
}

fn many_threads(bed: &Bed) {
    thread::scope(|scope| {
        for seed in 0..4 {
            scope.spawn(move || {
                let stream = bed
                    .driver
                    .create_stream(bed.context)
                    .expect("it has streams");
                let block = bed.allocate(5000);
                for turn in 0..10 {
                    let bytes = numbers(5000, seed * 10 + turn);
                    let (from, to) = (bed.buffer(&bytes), bed.buffer(&[0; 5000]));
                    bed.up(stream, &from, block);
                    bed.down(stream, block, &to);
                    bed.wait(stream);
                    assert_eq!(*to.read().expect("the copy is over"), *bytes);
                }
                bed.driver
                    .destroy_stream(bed.context, stream)
                    .expect("it is there");
                bed.free(block);
            });
        }
    });
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
