//! Measurements of graphs, of two streams side by side, and of threads with a stream each: on a GPU by `gpu_check bench`;
//! here it is tried that they do what they say.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tfrt_gpu::driver::{
    Argument, Driver, Grid, RawContext, RawExecutable, RawFunction, RawStream, Transfer,
};
use tfrt_host::HostContext;
use tfrt_host::kernel::KernelRegistry;
use tfrt_host::memory::HostBuffer;

const PTX: &str = include_str!("../../kernels/conformance.ptx");

/// The size of measurements.
#[derive(Clone, Copy)]
pub struct Size {
    /// Launches in a row.
    pub n_launches: usize,
    /// Bytes of a copy.
    pub len_bytes: usize,
}

/// Function that takes a measurement: a name, a unit, and a function that measures once.
type Report<'r> = &'r mut dyn FnMut(&str, &str, &mut dyn FnMut() -> f64);

/// A context with a kernel that touches nothing, and one that does something.
struct Bed {
    driver: Arc<dyn Driver>,
    context: RawContext,
    nothing: RawFunction,
    axpy: RawFunction,
}

impl Bed {
    /// Launches the kernel that touches nothing.
    fn launch(&self, stream: RawStream) {
        let grid = Grid::linear(1, 1);
        #[expect(unsafe_code, reason = "a kernel without arguments")]
        // SAFETY: it takes and touches nothing.
        unsafe {
            let launched = self
                .driver
                .launch(self.context, stream, self.nothing, &grid, &[]);
            launched.expect("it is queued");
        }
    }

    fn stream(&self) -> RawStream {
        let stream = self.driver.create_stream(self.context);
        stream.expect("there are streams")
    }

    fn wait(&self, stream: RawStream) {
        let waited = self.driver.synchronize_stream(self.context, stream);
        waited.expect("nothing is lost");
    }

    fn end(&self, stream: RawStream) {
        self.driver
            .destroy_stream(self.context, stream)
            .expect("it is there");
    }
}

/// Gives each measurement to `report`.
pub fn measure(driver: &Arc<dyn Driver>, size: Size, report: Report<'_>) {
    let device = driver.device(0).expect("there is a device");
    let context = driver.retain_primary(device).expect("it has a context");
    let module = driver.load_module(context, PTX.as_bytes());
    let module = module.expect("it is PTX");
    let function = |name| driver.function(context, module, name).expect("it has it");
    let bed = Bed {
        driver: driver.clone(),
        context,
        nothing: function("nothing"),
        axpy: function("axpy"),
    };
    graphs(&bed, size, report);
    side_by_side(&bed, size, report);
    threads(&bed, size, report);
    driver.unload_module(context, module).expect("it is there");
    driver.release_primary(device).expect("it was retained");
}

/// So many launches one by one, and as one graph, each with the wait for its end.
fn graphs(bed: &Bed, size: Size, report: Report<'_>) {
    let (driver, context, stream) = (&bed.driver, bed.context, bed.stream());
    let n = size.n_launches;
    report(&format!("{n} launches and wait"), "us", &mut || {
        let begin = Instant::now();
        (0..n).for_each(|_| bed.launch(stream));
        bed.wait(stream);
        begin.elapsed().as_secs_f64() * 1e6
    });
    if driver.begin_capture(context, stream).is_ok() {
        (0..n).for_each(|_| bed.launch(stream));
        let graph = driver.end_capture(context, stream).expect("it captures");
        let begin = Instant::now();
        let made: RawExecutable = driver.instantiate(context, graph).expect("it is a graph");
        let time_us = begin.elapsed().as_secs_f64() * 1e6;
        report(&format!("a graph of {n} launches made"), "us", &mut || {
            time_us
        });
        let launch = |waits: bool| {
            let begin = Instant::now();
            #[expect(unsafe_code, reason = "a graph of kernels without arguments")]
            // SAFETY: they touch nothing, and their module is there.
            unsafe {
                let launched = driver.launch_graph(context, stream, made);
                launched.expect("it is queued");
            }
            if waits {
                bed.wait(stream);
            }
            let time_us = begin.elapsed().as_secs_f64() * 1e6;
            bed.wait(stream);
            time_us
        };
        let name = format!("a graph of {n} launches, host time");
        report(&name, "us", &mut || launch(false));
        let name = format!("a graph of {n} launches and wait");
        report(&name, "us", &mut || launch(true));
        driver.destroy_graph(context, graph).expect("it is there");
        driver
            .destroy_executable(context, made)
            .expect("it is there");
    }
    bed.end(stream);
}

/// A copy to the device and kernels, each alone and on a stream of its own at the same time.
fn side_by_side(bed: &Bed, size: Size, report: Report<'_>) {
    let (driver, context) = (&bed.driver, bed.context);
    let [copies, works] = [(); 2].map(|()| bed.stream());
    let host = HostContext::builder(KernelRegistry::new()).build();
    let buffer = HostBuffer::zeroed(host.allocator(), size.len_bytes, 4096);
    let buffer = buffer.expect("there is memory");
    let pinned = driver.register(context, buffer.clone());
    let pinned = pinned.expect("it is memory of the host");
    let block = || {
        let block = driver.allocate(context, size.len_bytes);
        block.expect("there is memory")
    };
    let (to, x, y) = (block(), block(), block());
    let n = u32::try_from(size.len_bytes / 4).unwrap_or(u32::MAX);
    for at in [x, y] {
        let zero = tfrt_gpu::driver::Fill::Word(0);
        let filled = driver.fill(context, works, at, zero, n as usize);
        filled.expect("it is queued");
    }
    let copy = || {
        let from = buffer.clone().read_owned().expect("nobody writes");
        let queued = driver.copy(context, copies, Transfer::Up { from, to });
        queued.expect("it is queued");
    };
    let work = || {
        let arguments = [
            Argument::U32(n),
            Argument::F32(0.5),
            Argument::Pointer(Some(x)),
            Argument::Pointer(Some(y)),
        ];
        let grid = Grid::linear(n.div_ceil(256), 256);
        for _ in 0..10 {
            #[expect(unsafe_code, reason = "a kernel whose arguments stand beside it")]
            // SAFETY: both blocks have `n` numbers.
            unsafe {
                let launched = driver.launch(context, works, bed.axpy, &grid, &arguments);
                launched.expect("it is queued");
            }
        }
    };
    let time_us = |run: &dyn Fn()| {
        let begin = Instant::now();
        run();
        bed.wait(copies);
        bed.wait(works);
        begin.elapsed().as_secs_f64() * 1e6
    };
    report("a copy alone", "us", &mut || time_us(&copy));
    report("ten kernels alone", "us", &mut || time_us(&work));
    let name = "the copy and the kernels on two streams";
    report(name, "us", &mut || {
        time_us(&|| {
            copy();
            work();
        })
    });
    driver.unregister(context, pinned).expect("it is there");
    for block in [to, x, y] {
        driver.free(context, block).expect("it is there");
    }
    bed.end(copies);
    bed.end(works);
}

/// Launches a second of one thread, and of eight with a stream each.
fn threads(bed: &Bed, size: Size, report: Report<'_>) {
    for n_threads in [1, 8] {
        let name = format!("launches of {n_threads} threads with a stream each");
        report(&name, "1/us", &mut || {
            let times: Vec<Duration> = thread::scope(|scope| {
                let running: Vec<_> = (0..n_threads)
                    .map(|_| {
                        scope.spawn(|| {
                            let stream = bed.stream();
                            let begin = Instant::now();
                            (0..size.n_launches).for_each(|_| bed.launch(stream));
                            let time = begin.elapsed();
                            bed.wait(stream);
                            bed.end(stream);
                            time
                        })
                    })
                    .collect();
                let ended = running.into_iter().map(|thread| thread.join());
                ended.map(|time| time.expect("it does not panic")).collect()
            });
            let longest = times.into_iter().max().unwrap_or_default();
            (n_threads * size.n_launches) as f64 / (longest.as_secs_f64() * 1e6)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tfrt_gpu::driver::sim::{Policy, Sim, SimOptions};

    #[test]
    fn measurements_do_what_they_say() {
        for policy in Policy::ALL {
            let sim = Sim::new(SimOptions {
                policy,
                ..SimOptions::default()
            });
            let driver: Arc<dyn Driver> = Arc::new(sim.clone());
            let size = Size {
                n_launches: 12,
                len_bytes: 4096,
            };
            let mut names = Vec::new();
            measure(&driver, size, &mut |name, _, one| {
                assert!(one() >= 0.0 && one() >= 0.0, "{name}");
                names.push(name.to_owned());
            });
            assert_eq!(names.len(), 9, "{names:?}");
            assert_eq!(sim.findings(), [], "{policy:?}");
            assert_eq!(sim.leaks(), [""; 0], "{policy:?}");
        }
    }
}
