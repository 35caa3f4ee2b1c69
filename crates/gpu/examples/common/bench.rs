//! Measurements of a GPU: host time of calls, bandwidths, products of matrices.
//!
//! Each has a name, the median of rounds, and a unit; `examples/peers.py` prints those of PyTorch under the same names. On the
//! simulated driver sizes are small: it is tried that they do what they say.

#![expect(unsafe_code, reason = "launches of an empty kernel, for comparison")]

use std::slice::from_ref;
use std::sync::Arc;
use std::time::Instant;

use tfrt_corert::{CoreRuntime, OpAttrs, TensorHandle};
use tfrt_gpu::context::{Context, Stream};
use tfrt_gpu::driver::{Driver, Fill, Grid, Transfer};
use tfrt_gpu::memory::Allocator;
use tfrt_host::kernel::KernelRegistry;
use tfrt_host::memory::HostBuffer;
use tfrt_host::{DeviceRef, HostContext};
use tfrt_tensor::TensorFormat;

use super::records::Records;
use super::streams;

const CONFORMANCE: &str = include_str!("../../kernels/conformance.ptx");

/// Takes all measurements.
pub fn run(records: &mut Records) {
    let size = Size::new(records.is_simulated);
    bare(records, &size);
    memory(records, &size);
    let driver = records.driver.clone();
    let of_streams = streams::Size {
        n_launches: size.n_launches,
        len_bytes: size.n_bytes_pinned,
    };
    streams::measure(&driver, of_streams, &mut |name, unit, one| {
        records.measure(name, unit, one);
    });
    Bed::new(driver).run(records, &size);
}

/// The sizes of measurements, which are in their names.
struct Size {
    n_calls: usize,
    n_launches: usize,
    n_bytes_within: usize,
    n_bytes_pinned: usize,
    matrix: [usize; 2],
    products: &'static [usize],
    image: [usize; 4],
}

impl Size {
    fn new(is_simulated: bool) -> Size {
        match is_simulated {
            false => Size {
                n_calls: 500,
                n_launches: 1000,
                n_bytes_within: 1 << 30,
                n_bytes_pinned: 64 << 20,
                matrix: [16384, 4096],
                products: &[512, 2048, 4096],
                image: [16, 64, 56, 56],
            },
            // A kernel is interpreted there.
            true => Size {
                n_calls: 4,
                n_launches: 12,
                n_bytes_within: 1 << 12,
                n_bytes_pinned: 1 << 12,
                matrix: [4, 64],
                products: &[16],
                image: [1, 4, 6, 6],
            },
        }
    }

    /// Returns how often an operation of `n` calls on a GPU is called.
    fn calls(&self, n: usize) -> usize {
        n.min(self.n_calls)
    }
}

/// Returns a number of bytes in words.
fn bytes_in_words(n: usize) -> String {
    match n >> 20 {
        0 => format!("{n} bytes"),
        mebibytes => format!("{mebibytes} MiB"),
    }
}

/// Returns a number of elements in words.
fn numbers_in_words(n: usize) -> String {
    match n >> 20 {
        0 => format!("{n}"),
        times => format!("{times} Mi"),
    }
}

/// Calls of the driver with nothing of ours around them.
fn bare(records: &mut Records, size: &Size) {
    let driver = &records.driver.clone();
    let device = driver.device(0).expect("there is a device");
    let context = driver.retain_primary(device).expect("it has a context");
    let stream = driver.create_stream(context).expect("it has streams");
    let module = driver
        .load_module(context, CONFORMANCE.as_bytes())
        .expect("it is PTX");
    let nothing = driver
        .function(context, module, "nothing")
        .expect("it has it");
    let grid = Grid::linear(1, 1);
    records.measure("launch of an empty kernel by the driver", "us", &mut || {
        let begin = Instant::now();
        for _ in 0..size.n_calls {
            // SAFETY: the kernel takes and touches nothing.
            unsafe { driver.launch(context, stream, nothing, &grid, &[]) }.expect("it is queued");
        }
        let time = begin.elapsed();
        driver
            .synchronize_stream(context, stream)
            .expect("nothing is lost");
        time.as_secs_f64() * 1e6 / size.n_calls as f64
    });
    records.measure("empty kernel and wait", "us", &mut || {
        let begin = Instant::now();
        for _ in 0..size.calls(100) {
            // SAFETY: as above.
            unsafe { driver.launch(context, stream, nothing, &grid, &[]) }.expect("it is queued");
            driver
                .synchronize_stream(context, stream)
                .expect("nothing is lost");
        }
        begin.elapsed().as_secs_f64() * 1e6 / size.calls(100) as f64
    });
    let len = size.n_bytes_within;
    let [one, two] = [0; 2].map(|_| driver.allocate(context, len).expect("there is memory"));
    let event = || driver.create_event(context, true).expect("it has events");
    let (from, to) = (event(), event());
    driver
        .fill(context, stream, one, Fill::Word(0x3f12_3456), len / 4)
        .expect("it is queued");
    records.measure(
        "copy within the device, read and written",
        "GB/s",
        &mut || {
            driver
                .record_event(context, from, stream)
                .expect("it is queued");
            for _ in 0..4 {
                let transfer = Transfer::Within {
                    from: one,
                    to: two,
                    len_bytes: len,
                };
                driver
                    .copy(context, stream, transfer)
                    .expect("it is queued");
            }
            driver
                .record_event(context, to, stream)
                .expect("it is queued");
            driver
                .synchronize_stream(context, stream)
                .expect("nothing is lost");
            8.0 * len as f64
                / driver
                    .elapsed(context, from, to)
                    .expect("both are reached")
                    .as_secs_f64()
                / 1e9
        },
    );
    let n_pinned = size.n_bytes_pinned;
    let pinned_in_words = bytes_in_words(n_pinned);
    let host = HostContext::builder(KernelRegistry::new()).build();
    let buffer = HostBuffer::zeroed(host.allocator(), n_pinned, 4096).expect("there is memory");
    let pinned = driver
        .register(context, buffer.clone())
        .expect("it is memory of the host");
    records.measure(
        &format!("pinned copy to the device, {pinned_in_words}"),
        "GB/s",
        &mut || {
            let begin = Instant::now();
            let reading = buffer.clone().read_owned().expect("nobody writes");
            driver
                .copy(
                    context,
                    stream,
                    Transfer::Up {
                        from: reading,
                        to: one,
                    },
                )
                .expect("it is queued");
            driver
                .synchronize_stream(context, stream)
                .expect("nothing is lost");
            n_pinned as f64 / begin.elapsed().as_secs_f64() / 1e9
        },
    );
    records.measure(
        &format!("pinned copy to the host, {pinned_in_words}"),
        "GB/s",
        &mut || {
            let begin = Instant::now();
            let writing = buffer.clone().write_owned().expect("nobody uses it");
            driver
                .copy(
                    context,
                    stream,
                    Transfer::Down {
                        from: one,
                        to: writing,
                    },
                )
                .expect("it is queued");
            driver
                .synchronize_stream(context, stream)
                .expect("nothing is lost");
            n_pinned as f64 / begin.elapsed().as_secs_f64() / 1e9
        },
    );
    driver
        .unregister(context, pinned)
        .expect("it was registered");
    for block in [one, two] {
        driver.free(context, block).expect("it is a block");
    }
}

/// Memory that is taken and given back.
fn memory(records: &mut Records, size: &Size) {
    let context = Context::primary(records.driver.clone(), 0).expect("there is a device");
    let stream = Arc::new(Stream::new(context).expect("it has streams"));
    let allocator = Arc::new(Allocator::default());
    for len in [1024, 4 << 20] {
        records.measure(&format!("take and give {len} bytes"), "ns", &mut || {
            let begin = Instant::now();
            for _ in 0..20 * size.n_calls {
                drop(allocator.take(&stream, len).expect("there is memory"));
            }
            begin.elapsed().as_secs_f64() * 1e9 / (20 * size.n_calls) as f64
        });
    }
}

/// A runtime with a GPU.
struct Bed {
    driver: Arc<dyn Driver>,
    core: CoreRuntime,
    device: DeviceRef,
}

impl Bed {
    fn new(driver: Arc<dyn Driver>) -> Bed {
        let host = HostContext::builder(KernelRegistry::new()).build();
        let device = tfrt_gpu::add(&host, driver.clone(), 0).expect("there is a device");
        let core = CoreRuntime::new(&host);
        core.set_device_kernels(tfrt_gpu::KERNELS.into());
        Bed {
            driver,
            core,
            device,
        }
    }

    fn there(&self, shape: &[usize]) -> TensorHandle {
        let n: usize = shape.iter().product();
        let values: Vec<f32> = (0..n)
            .map(|i| (i * 7919 % 1009) as f32 / 1009.0 - 0.5)
            .collect();
        let here = self.core.dense(shape, &values).expect("there is memory");
        let there = self
            .core
            .context()
            .transfer(&here, &self.device, TensorFormat::Device)
            .expect("there is memory");
        self.wait(&there);
        there
    }

    /// Waits until a tensor is on the host.
    fn back(&self, handle: &TensorHandle) {
        let back =
            self.core
                .context()
                .transfer(handle, &self.core.device(), TensorFormat::DenseHost);
        self.wait(&back.expect("there is memory"));
    }

    fn wait(&self, handle: &TensorHandle) {
        let value = handle.to_async().into_any();
        let _waited = self.core.host().queue().await_all(from_ref(&value));
        let settled = value.settled();
        assert!(settled.error().is_none(), "{:?}", settled.error());
    }

    fn synchronize(&self) {
        let device = self.driver.device(0).expect("there is a device");
        let context = self
            .driver
            .retain_primary(device)
            .expect("it has a context");
        self.driver
            .synchronize_context(context)
            .expect("nothing is lost");
        self.driver
            .release_primary(device)
            .expect("it was retained");
    }

    /// Returns the time of one of `n` calls, of which none is waited for but the last.
    fn time(
        &self,
        n: usize,
        operation: &str,
        operands: &[TensorHandle],
        attributes: &OpAttrs,
    ) -> f64 {
        let handler = self.core.on(&self.device).expect("it has kernels");
        let op = self.core.op(operation, &handler).expect("it has this one");
        let context = self.core.context();
        drop(op.call(&context, operands, attributes).expect("it runs"));
        self.synchronize();
        let begin = Instant::now();
        for _ in 0..n {
            drop(op.call(&context, operands, attributes).expect("it runs"));
        }
        self.synchronize();
        begin.elapsed().as_secs_f64() / n as f64
    }

    fn run(&self, records: &mut Records, size: &Size) {
        let none = OpAttrs::new();
        let one = self.there(&[1]);
        let handler = self.core.on(&self.device).expect("it has kernels");
        let add = self.core.op("tf.AddV2", &handler).expect("it has this one");
        let context = self.core.context();
        records.measure("eager add of [1], host time", "us", &mut || {
            let begin = Instant::now();
            for _ in 0..size.n_calls {
                drop(
                    add.call_one(&context, [&one, &one], &none)
                        .expect("it runs"),
                );
            }
            let time = begin.elapsed();
            self.synchronize();
            time.as_secs_f64() * 1e6 / size.n_calls as f64
        });
        records.measure("[1] up, add, down", "us", &mut || {
            let begin = Instant::now();
            for _ in 0..size.calls(50) {
                let here = self.core.dense(&[1], &[1.0_f32]).expect("there is memory");
                let there = context
                    .transfer(&here, &self.device, TensorFormat::Device)
                    .expect("there is memory");
                let sum = add
                    .call_one(&context, [&there, &there], &none)
                    .expect("it runs");
                self.back(&sum);
            }
            begin.elapsed().as_secs_f64() * 1e6 / size.calls(50) as f64
        });
        let [rows, columns] = size.matrix;
        let n = rows * columns;
        let (big, n_in_words) = (self.there(&[n]), numbers_in_words(n));
        let bytes = (4 * n) as f64;
        records.measure(
            &format!("add of {n_in_words} numbers to themselves"),
            "GB/s",
            &mut || {
                2.0 * bytes
                    / self.time(size.calls(20), "add", &[big.clone(), big.clone()], &none)
                    / 1e9
            },
        );
        records.measure(
            &format!("gelu of {n_in_words} numbers"),
            "GB/s",
            &mut || 2.0 * bytes / self.time(size.calls(20), "gelu", from_ref(&big), &none) / 1e9,
        );
        drop(big);
        let matrix = self.there(&size.matrix);
        let bias = self.there(&[columns]);
        records.measure(
            &format!("add of a bias to {:?}", size.matrix),
            "GB/s",
            &mut || {
                2.0 * bytes
                    / self.time(
                        size.calls(20),
                        "add",
                        &[matrix.clone(), bias.clone()],
                        &none,
                    )
                    / 1e9
            },
        );
        records.measure(
            &format!("softmax of {:?}", size.matrix),
            "GB/s",
            &mut || {
                2.0 * bytes / self.time(size.calls(20), "softmax", from_ref(&matrix), &none) / 1e9
            },
        );
        let mut layer = OpAttrs::new();
        layer.set("kind", "layer").expect("the name is new");
        let operands = [matrix.clone(), bias.clone(), bias.clone()];
        records.measure(
            &format!("layer norm of {:?}", size.matrix),
            "GB/s",
            &mut || 2.0 * bytes / self.time(size.calls(20), "norm", &operands, &layer) / 1e9,
        );
        let mut sum = OpAttrs::new();
        sum.set("kind", "sum").expect("the name is new");
        sum.set("axes", &[1_i64][..]).expect("the name is new");
        records.measure(
            &format!("sum of rows of {:?}", size.matrix),
            "GB/s",
            &mut || bytes / self.time(size.calls(20), "reduce", from_ref(&matrix), &sum) / 1e9,
        );
        records.measure(
            &format!("transposition of {:?}", size.matrix),
            "GB/s",
            &mut || {
                2.0 * bytes / self.time(size.calls(20), "transpose", from_ref(&matrix), &none) / 1e9
            },
        );
        for &n in size.products {
            let square = self.there(&[n, n]);
            let operations = 2.0 * (n * n * n) as f64;
            records.measure(&format!("product of [{n}, {n}]"), "TFLOP/s", &mut || {
                operations
                    / self.time(
                        size.calls(10),
                        "dot",
                        &[square.clone(), square.clone()],
                        &none,
                    )
                    / 1e12
            });
        }
        self.images(records, size);
    }

    /// Convolutions, pools and moves, of sizes that residual networks have.
    fn images(&self, records: &mut Records, size: &Size) {
        let [n, c, height, width] = size.image;
        let image = self.there(&size.image);
        let n_places = n * height * width;
        let bytes = (4 * c * n_places) as f64;
        let windows = |name: &'static str, list: &[i64]| {
            let mut attributes = OpAttrs::new();
            attributes.set(name, list).expect("the name is new");
            attributes
        };
        let convolutions = [
            (
                format!("3x3 convolution of {c} channels of [{n}, {height}, {width}]"),
                [c, c, 3, 3],
                1_i64,
            ),
            (
                format!(
                    "1x1 convolution of {c} to {} channels of [{n}, {height}, {width}]",
                    4 * c
                ),
                [4 * c, c, 1, 1],
                0,
            ),
        ];
        for (name, shape, pad) in convolutions {
            let filter = self.there(&shape);
            let attributes = windows("pads", &[pad; 4]);
            let operations = 2.0 * (n_places * shape.iter().product::<usize>()) as f64;
            let operands = [image.clone(), filter];
            records.measure(&name, "TFLOP/s", &mut || {
                operations / self.time(size.calls(20), "conv", &operands, &attributes) / 1e12
            });
        }
        let mut depthwise = windows("pads", &[1; 4]);
        depthwise.set("groups", c as i64).expect("the name is new");
        let operands = [image.clone(), self.there(&[c, 1, 3, 3])];
        records.measure(
            &format!("3x3 depthwise convolution of {:?}", size.image),
            "GB/s",
            &mut || 2.0 * bytes / self.time(size.calls(20), "conv", &operands, &depthwise) / 1e9,
        );
        let mut pool = windows("kernel_shape", &[3, 3]);
        pool.set("kind", "max").expect("the name is new");
        records.measure(
            &format!("3x3 maximum of {:?}", size.image),
            "GB/s",
            &mut || 2.0 * bytes / self.time(size.calls(20), "pool", from_ref(&image), &pool) / 1e9,
        );
        let mut axis = OpAttrs::new();
        axis.set("axis", 1_i64).expect("the name is new");
        records.measure(&format!("two {:?} joined", size.image), "GB/s", &mut || {
            4.0 * bytes
                / self.time(
                    size.calls(20),
                    "concat",
                    &[image.clone(), image.clone()],
                    &axis,
                )
                / 1e9
        });
    }
}
