//! Measures a GPU: host time of calls, bandwidths, products of matrices. Needs a driver and nothing else; build it with
//! `--release`.
//!
//! Each line has a name, the median of rounds, and a unit; `examples/peers.py` prints those of PyTorch under the same names.

#![expect(unsafe_code, reason = "launches of an empty kernel, for comparison")]

use std::process::exit;
use std::slice::from_ref;
use std::sync::Arc;
use std::time::Instant;

use tfrt_corert::{CoreRuntime, OpAttrs, TensorHandle};
use tfrt_gpu::context::{Context, Stream};
use tfrt_gpu::driver::cuda::Cuda;
use tfrt_gpu::driver::{Driver, Fill, Grid, Transfer};
use tfrt_gpu::memory::Allocator;
use tfrt_host::kernel::KernelRegistry;
use tfrt_host::memory::HostBuffer;
use tfrt_host::{DeviceRef, HostContext};
use tfrt_tensor::TensorFormat;

#[path = "../tests/library/streams.rs"]
mod streams;

const CONFORMANCE: &str = include_str!("../kernels/conformance.ptx");

fn main() {
    let cuda = match Cuda::open() {
        Ok(cuda) => cuda,
        Err(error) => {
            println!("{error}");
            exit(3);
        }
    };
    let driver: Arc<dyn Driver> = Arc::new(cuda);
    bare(&driver);
    memory(&driver);
    let size = streams::Size {
        n_launches: 1000,
        len_bytes: 64 << 20,
    };
    streams::measure(&driver, size, &mut |name, unit, one| {
        report(name, unit, one)
    });
    Bed::new(driver).run();
}

/// Prints the median of rounds of a measurement.
fn report(name: &str, unit: &str, mut one: impl FnMut() -> f64) {
    one();
    let mut all: Vec<f64> = (0..15).map(|_| one()).collect();
    all.sort_by(f64::total_cmp);
    println!(
        "{name}: {:.3} {unit} ({:.3} to {:.3})",
        all[7], all[2], all[12]
    );
}

/// Calls of the driver with nothing of ours around them.
fn bare(driver: &Arc<dyn Driver>) {
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
    report("launch of an empty kernel by the driver", "us", || {
        let begin = Instant::now();
        for _ in 0..500 {
            // SAFETY: the kernel takes and touches nothing.
            unsafe { driver.launch(context, stream, nothing, &grid, &[]) }.expect("it is queued");
        }
        let time = begin.elapsed();
        driver
            .synchronize_stream(context, stream)
            .expect("nothing is lost");
        time.as_secs_f64() * 1e6 / 500.0
    });
    report("empty kernel and wait", "us", || {
        let begin = Instant::now();
        for _ in 0..100 {
            // SAFETY: as above.
            unsafe { driver.launch(context, stream, nothing, &grid, &[]) }.expect("it is queued");
            driver
                .synchronize_stream(context, stream)
                .expect("nothing is lost");
        }
        begin.elapsed().as_secs_f64() * 1e6 / 100.0
    });
    const LEN: usize = 1 << 30;
    let [one, two] = [0; 2].map(|_| driver.allocate(context, LEN).expect("there is memory"));
    let event = || driver.create_event(context, true).expect("it has events");
    let (from, to) = (event(), event());
    driver
        .fill(context, stream, one, Fill::Word(0x3f12_3456), LEN / 4)
        .expect("it is queued");
    report("copy within the device, read and written", "GB/s", || {
        driver
            .record_event(context, from, stream)
            .expect("it is queued");
        for _ in 0..4 {
            let transfer = Transfer::Within {
                from: one,
                to: two,
                len_bytes: LEN,
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
        8.0 * LEN as f64
            / driver
                .elapsed(context, from, to)
                .expect("both are reached")
                .as_secs_f64()
            / 1e9
    });
    const PINNED: usize = 64 << 20;
    let host = HostContext::builder(KernelRegistry::new()).build();
    let buffer = HostBuffer::zeroed(host.allocator(), PINNED, 4096).expect("there is memory");
    driver
        .register(context, buffer.clone())
        .expect("it is memory of the host");
    report("pinned copy to the device, 64 MiB", "GB/s", || {
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
        PINNED as f64 / begin.elapsed().as_secs_f64() / 1e9
    });
    report("pinned copy to the host, 64 MiB", "GB/s", || {
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
        PINNED as f64 / begin.elapsed().as_secs_f64() / 1e9
    });
    for block in [one, two] {
        driver.free(context, block).expect("it is a block");
    }
}

/// Memory that is taken and given back.
fn memory(driver: &Arc<dyn Driver>) {
    let context = Context::primary(driver.clone(), 0).expect("there is a device");
    let stream = Arc::new(Stream::new(context).expect("it has streams"));
    let allocator = Arc::new(Allocator::default());
    for len in [1024, 4 << 20] {
        report(&format!("take and give {len} bytes"), "ns", || {
            let begin = Instant::now();
            for _ in 0..10_000 {
                drop(allocator.take(&stream, len).expect("there is memory"));
            }
            begin.elapsed().as_secs_f64() * 1e9 / 10_000.0
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

    fn run(&self) {
        let none = OpAttrs::new();
        let one = self.there(&[1]);
        let handler = self.core.on(&self.device).expect("it has kernels");
        let add = self.core.op("tf.AddV2", &handler).expect("it has this one");
        let context = self.core.context();
        report("eager add of [1], host time", "us", || {
            let begin = Instant::now();
            for _ in 0..500 {
                drop(
                    add.call_one(&context, [&one, &one], &none)
                        .expect("it runs"),
                );
            }
            let time = begin.elapsed();
            self.synchronize();
            time.as_secs_f64() * 1e6 / 500.0
        });
        report("[1] up, add, down", "us", || {
            let begin = Instant::now();
            for _ in 0..50 {
                let here = self.core.dense(&[1], &[1.0_f32]).expect("there is memory");
                let there = context
                    .transfer(&here, &self.device, TensorFormat::Device)
                    .expect("there is memory");
                let sum = add
                    .call_one(&context, [&there, &there], &none)
                    .expect("it runs");
                self.back(&sum);
            }
            begin.elapsed().as_secs_f64() * 1e6 / 50.0
        });
        let big = self.there(&[64 << 20]);
        let bytes = (4_u64 << 26) as f64;
        report("add of 64 Mi numbers to themselves", "GB/s", || {
            2.0 * bytes / self.time(20, "add", &[big.clone(), big.clone()], &none) / 1e9
        });
        report("gelu of 64 Mi numbers", "GB/s", || {
            2.0 * bytes / self.time(20, "gelu", from_ref(&big), &none) / 1e9
        });
        drop(big);
        let matrix = self.there(&[16384, 4096]);
        let bias = self.there(&[4096]);
        report("add of a bias to [16384, 4096]", "GB/s", || {
            2.0 * bytes / self.time(20, "add", &[matrix.clone(), bias.clone()], &none) / 1e9
        });
        report("softmax of [16384, 4096]", "GB/s", || {
            2.0 * bytes / self.time(20, "softmax", from_ref(&matrix), &none) / 1e9
        });
        let mut layer = OpAttrs::new();
        layer.set("kind", "layer").expect("the name is new");
        let operands = [matrix.clone(), bias.clone(), bias.clone()];
        report("layer norm of [16384, 4096]", "GB/s", || {
            2.0 * bytes / self.time(20, "norm", &operands, &layer) / 1e9
        });
        let mut sum = OpAttrs::new();
        sum.set("kind", "sum").expect("the name is new");
        sum.set("axes", &[1_i64][..]).expect("the name is new");
        report("sum of rows of [16384, 4096]", "GB/s", || {
            bytes / self.time(20, "reduce", from_ref(&matrix), &sum) / 1e9
        });
        report("transposition of [16384, 4096]", "GB/s", || {
            2.0 * bytes / self.time(20, "transpose", from_ref(&matrix), &none) / 1e9
        });
        for n in [512, 2048, 4096] {
            let square = self.there(&[n, n]);
            let operations = 2.0 * (n * n * n) as f64;
            report(&format!("product of [{n}, {n}]"), "TFLOP/s", || {
                operations / self.time(10, "dot", &[square.clone(), square.clone()], &none) / 1e12
            });
        }
        self.images();
    }

    /// Convolutions, pools and moves, of sizes that residual networks have.
    fn images(&self) {
        let image = self.there(&[16, 64, 56, 56]);
        let bytes = (16 * 64 * 56 * 56 * 4) as f64;
        let windows = |name: &'static str, list: &[i64]| {
            let mut attributes = OpAttrs::new();
            attributes.set(name, list).expect("the name is new");
            attributes
        };
        let convolutions = [
            (
                "3x3 convolution of 64 channels of [16, 56, 56]",
                [64, 64, 3, 3],
                1_i64,
            ),
            (
                "1x1 convolution of 64 to 256 channels of [16, 56, 56]",
                [256, 64, 1, 1],
                0,
            ),
        ];
        for (name, shape, pad) in convolutions {
            let filter = self.there(&shape);
            let attributes = windows("pads", &[pad; 4]);
            let operations = 2.0 * (16 * 56 * 56 * shape.iter().product::<usize>()) as f64;
            let operands = [image.clone(), filter];
            report(name, "TFLOP/s", || {
                operations / self.time(20, "conv", &operands, &attributes) / 1e12
            });
        }
        let mut depthwise = windows("pads", &[1; 4]);
        depthwise.set("groups", 64_i64).expect("the name is new");
        let operands = [image.clone(), self.there(&[64, 1, 3, 3])];
        report(
            "3x3 depthwise convolution of [16, 64, 56, 56]",
            "GB/s",
            || 2.0 * bytes / self.time(20, "conv", &operands, &depthwise) / 1e9,
        );
        let mut pool = windows("kernel_shape", &[3, 3]);
        pool.set("kind", "max").expect("the name is new");
        report("3x3 maximum of [16, 64, 56, 56]", "GB/s", || {
            2.0 * bytes / self.time(20, "pool", from_ref(&image), &pool) / 1e9
        });
        let mut axis = OpAttrs::new();
        axis.set("axis", 1_i64).expect("the name is new");
        report("two [16, 64, 56, 56] joined", "GB/s", || {
            4.0 * bytes / self.time(20, "concat", &[image.clone(), image.clone()], &axis) / 1e9
        });
    }
}
