//! The convolutions of ResNet-50, one by one, with filters that are packed ahead: beside ONNX Runtime and
//! oneDNN, on one thread and on two.
//!
//! | Peer | Its tensors |
//! | --- | --- |
//! | ONNX Runtime | channels first, as its models are; the filter is a constant of the model |
//! | oneDNN | channels last, and what it likes best; the filter is in order ahead |
//!
//! All have a bias, and none a function behind it. Peers run in processes of their own, in turns with ours; a ratio is the median, over
//! all rounds, of the peer's time over ours: above 1 we are faster. Against oneDNN the better of its layouts
//! counts.
//!
//! `cargo bench -p tfrt-benches --bench convolutions -- 3x3` measures what has the word in its name;
//! `benches/peers/setup.sh` sets the peers up, and `TFRT_BENCH_THREADS=1` takes but one number of threads.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use tfrt_async::queue::{
    ConcurrentWorkQueue, MultiThreadedWorkQueue, SingleThreadedWorkQueue, Task,
};
use tfrt_benches::measure::{Clock, Times};
use tfrt_benches::peers::process::{PeerProcess, onednn, python};
use tfrt_host::kernel::KernelRegistry;
use tfrt_host::{AsyncValue, Chain, ExecutionContext, HostContext, Promise, RequestContext};
use tfrt_tensor::math::conv::{Convolution, PackedFilter, convolve_packed_into};
use tfrt_tensor::math::packed_gemm::{InstructionSet, TensorEpilogue};
use tfrt_tensor::math::window::{Padding, Window};
use tfrt_tensor::{DenseHostTensor, TensorView};

/// The extent of the image, channels, filters, the extent of the window, the stride.
const SHAPES: [[usize; 5]; 23] = [
    [224, 3, 64, 7, 2],
    [56, 64, 64, 1, 1],
    [56, 64, 64, 3, 1],
    [56, 64, 256, 1, 1],
    [56, 256, 64, 1, 1],
    [56, 256, 128, 1, 1],
    [56, 128, 128, 3, 2],
    [56, 256, 512, 1, 2],
    [28, 128, 512, 1, 1],
    [28, 512, 128, 1, 1],
    [28, 128, 128, 3, 1],
    [28, 512, 256, 1, 1],
    [28, 256, 256, 3, 2],
    [28, 512, 1024, 1, 2],
    [14, 256, 1024, 1, 1],
    [14, 1024, 256, 1, 1],
    [14, 256, 256, 3, 1],
    [14, 1024, 512, 1, 1],
    [14, 512, 512, 3, 2],
    [14, 1024, 2048, 1, 2],
    [7, 512, 2048, 1, 1],
    [7, 2048, 512, 1, 1],
    [7, 512, 512, 3, 1],
];

/// Returns the padding on each side by which the output is as large as the input over the stride.
fn padding(window: usize) -> usize {
    window / 2
}

fn main() {
    let words: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with('-'))
        .collect();
    let dnn = onednn();
    if let Err(why) = &dnn {
        println!("oneDNN is left out: {why}");
    }
    if let Err(why) = python("onnx_convolution.py") {
        println!("ONNX Runtime is left out: {why}");
    }
    let wanted = std::env::var("TFRT_BENCH_THREADS")
        .ok()
        .and_then(|n| n.parse().ok());
    for n_threads in [1, 2] {
        if wanted.is_some_and(|wanted: usize| wanted != n_threads) {
            continue;
        }
        println!(
            "\n{n_threads} thread{}: medians of interleaved rounds, wall time; GFLOP/s, and the peer's time over ours",
            if n_threads == 1 { "" } else { "s" }
        );
        println!(
            "{:<30}{:>8}{:>14}{:>16}{:>16}",
            "", "ours", "ONNX Runtime", "oneDNN nhwc", "oneDNN any"
        );
        let mut sums = Sums::default();
        for shape in SHAPES {
            let [extent, channels, filters, window, stride] = shape;
            let name = format!("{extent} {channels}->{filters} {window}x{window}/{stride}");
            if words.is_empty() || words.iter().any(|word| name.contains(word.as_str())) {
                one(&name, n_threads, shape, dnn.as_ref().ok(), &mut sums);
            }
        }
        sums.print();
    }
}

/// Ratios to the peers.
#[derive(Default)]
struct Sums {
    onnx: Vec<f64>,
    dnn: Vec<f64>,
}

impl Sums {
    fn print(&self) {
        for (name, ratios) in [("ONNX Runtime", &self.onnx), ("oneDNN", &self.dnn)] {
            let n = ratios.len().max(1) as f64;
            let mean = (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / n).exp();
            let worst = ratios.iter().copied().fold(f64::INFINITY, f64::min);
            if !ratios.is_empty() {
                println!("{name}: geometric mean {mean:.2}, worst {worst:.2}");
            }
        }
    }
}

/// A function that does the work so many times.
type Work = Box<dyn FnMut(usize) -> Duration>;

fn one(name: &str, n_threads: usize, shape: [usize; 5], dnn: Option<&PathBuf>, sums: &mut Sums) {
    let [extent, channels, filters, window, stride] = shape;
    let output = (extent + 2 * padding(window) - window) / stride + 1;
    let operations = 2.0 * (output * output * window * window * channels * filters) as f64;
    let numbers = [
        1,
        extent,
        channels,
        filters,
        window,
        stride,
        output,
        padding(window),
        padding(window),
    ];
    let numbers = numbers.map(|number| number.to_string());
    let mut contenders: Vec<Option<Work>> = vec![Some(ours(n_threads, shape, output))];
    let by_onnx = python("onnx_convolution.py").and_then(|mut command| {
        PeerProcess::start(command.arg(n_threads.to_string()).args(&numbers))
    });
    contenders.push(by_onnx.ok().map(asked));
    for layout in ["nhwc", "any"] {
        let started = dnn.and_then(|path| {
            let mut command = Command::new(path);
            command
                .args([&n_threads.to_string(), layout])
                .args(&numbers);
            PeerProcess::start(&mut command).ok()
        });
        contenders.push(started.map(asked));
    }
    let n_rounds = std::env::var("TFRT_BENCH_RUNS")
        .ok()
        .and_then(|runs| runs.parse().ok())
        .unwrap_or(25);
    let n_each = (3e8 / operations).ceil() as usize;
    let mut times = vec![Times::default(); contenders.len()];
    for round in 0..=n_rounds {
        for (contender, times) in contenders.iter_mut().zip(&mut times) {
            let Some(work) = contender else { continue };
            let time = work(n_each);
            // The first one warms up.
            if round > 0 {
                times.push(time);
            }
        }
    }
    let rate = |times: &Times| operations * n_each as f64 / times.median().as_secs_f64() / 1e9;
    let ratio = |peer: &Times| {
        let ratios = peer.all().iter().zip(times[0].all());
        let mut ratios: Vec<f64> = ratios
            .map(|(peer, ours)| peer.as_secs_f64() / ours.as_secs_f64())
            .collect();
        ratios.sort_by(f64::total_cmp);
        ratios.get(ratios.len() / 2).copied()
    };
    let mut line = format!("{name:<30}{:>8.1}", rate(&times[0]));
    for peer in &times[1..] {
        line += &match ratio(peer) {
            Some(ratio) => format!("{:>8.1} {ratio:>5.2}", rate(peer)),
            None => format!("{:>14}", "-"),
        };
        line += "  ";
    }
    println!("{line}");
    sums.onnx.extend(ratio(&times[1]));
    sums.dnn
        .extend(times[2..].iter().filter_map(ratio).reduce(f64::min));
}

fn asked(mut program: PeerProcess) -> Work {
    Box::new(move |n_times| program.ask(n_times))
}

/// Returns numbers that look random, alike each time.
fn random(n: usize) -> Vec<f32> {
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / 16_777_216.0 - 0.5
    };
    (0..n).map(|_| next()).collect()
}

fn ours(
    n_threads: usize,
    [extent, channels, filters, window, stride]: [usize; 5],
    output: usize,
) -> Work {
    let queue: Arc<dyn ConcurrentWorkQueue> = match n_threads {
        1 => Arc::new(SingleThreadedWorkQueue::new()),
        n => Arc::new(MultiThreadedWorkQueue::new(n, 0).expect("threads can be had")),
    };
    let host = HostContext::builder(KernelRegistry::new())
        .queue(queue)
        .build();
    let execution = ExecutionContext::new(&RequestContext::new(&host));
    let tensor = |extents: &[usize]| {
        let elements = random(extents.iter().product());
        DenseHostTensor::from_slice(host.allocator(), extents, &elements).expect("there is memory")
    };
    let x = tensor(&[1, extent, extent, channels]);
    let out = tensor(&[1, output, output, filters]);
    let filter = random(window * window * channels * filters);
    let filter = TensorView::new(&filter, &[window, window, channels, filters]).expect("it fits");
    let around = Padding::Explicit(padding(window), padding(window));
    let convolution = Convolution::new(&[Window::new(window, stride, around); 2]);
    let filter = PackedFilter::pack_best(
        host.allocator(),
        InstructionSet::best(),
        &convolution,
        &filter,
    );
    let filter = filter.expect("there is memory");
    let after = TensorEpilogue {
        shift: Some(tensor(&[filters])),
        ..TensorEpilogue::default()
    };
    let work = Arc::new(OurWork {
        execution,
        convolution,
        x,
        filter,
        after,
        out,
    });
    Box::new(move |n_times| {
        let (promise, done) = AsyncValue::pending();
        let work = work.clone();
        let start = Clock::Wall.now();
        // As in a program: on the workers, one after the other.
        host.queue()
            .add_task(Task::new(move || work.run(n_times, promise)));
        host.queue()
            .await_all(&[done.into_any()])
            .expect("this is no worker");
        Clock::Wall.now().saturating_sub(start)
    })
}

/// A convolution of ours, with all it needs.
struct OurWork {
    execution: ExecutionContext,
    convolution: Convolution,
    x: DenseHostTensor,
    filter: PackedFilter,
    after: TensorEpilogue,
    out: DenseHostTensor,
}

impl OurWork {
    /// Convolves so many times, and then resolves.
    fn run(self: Arc<Self>, n_times: usize, promise: Promise<Chain>) {
        if n_times == 0 {
            return promise.resolve(Chain);
        }
        let Self {
            execution,
            convolution,
            x,
            filter,
            after,
            out,
        } = &*self;
        let done = convolve_packed_into(execution, convolution, x, filter, after.clone(), out);
        let done = done.expect("the shapes fit");
        done.and_then(move || self.run(n_times - 1, promise));
    }
}
