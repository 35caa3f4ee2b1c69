//! A training step of a perceptron of 784, 512 and 10 numbers: our program, run by the runtime, beside TensorFlow's
//! `tf.function` of the same step.
//!
//! | Images at a time | Times as fast, wanted |
//! | --- | --- |
//! | 1 | 5 |
//! | 100 | 1.5 |
//!
//! TensorFlow runs in a process of its own, which is told by a pipe how many steps to make, in turns with ours:
//! `benches/peers/mnist.py`, set up by `benches/peers/setup.sh tensorflow`. `cargo bench -p tfrt-benches --bench
//! mnist -- WORD` measures what has the word in its name, such as `1 images, 2 threads`.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tfrt::{
    AnyAsyncValue, ConcurrentWorkQueue, Function, MultiThreadedWorkQueue, Runtime,
    SingleThreadedWorkQueue,
};
use tfrt_benches::folders;
use tfrt_benches::measure::{Clock, Times};
use tfrt_tensor::{DenseHostTensor, Tensor};

const PIXELS: usize = 784;
const HIDDEN: usize = 512;
const CLASSES: usize = 10;

fn main() {
    println!(
        "medians of interleaved runs, time that passes; spread is half the interquartile range"
    );
    for (batch, goal) in [(1, 5.0), (100, 1.5)] {
        for n_threads in [1, 2] {
            let name = format!("{batch} images, {n_threads} threads");
            let words: Vec<String> = std::env::args()
                .skip(1)
                .filter(|word| !word.starts_with('-'))
                .collect();
            if words.is_empty() || words.iter().any(|word| name.contains(word.as_str())) {
                compare(&name, batch, n_threads, goal);
            }
        }
    }
}

fn compare(name: &str, batch: usize, n_threads: usize, goal: f64) {
    let mut ours = Ours::new(batch, n_threads);
    let loss = ours.step();
    let mut peer = Peer::new(batch, n_threads);
    if let Some(peer) = &mut peer {
        let peer_loss = peer.ask("loss");
        assert!(
            (f64::from(loss) - peer_loss).abs() < 1e-4 * peer_loss.abs(),
            "the loss is {loss}, TensorFlow says {peer_loss}"
        );
    }
    let n_each = (200 / batch).max(10);
    let runs = std::env::var("TFRT_BENCH_RUNS").ok();
    let n_runs = runs.and_then(|runs| runs.parse().ok()).unwrap_or(50);
    let (mut our_times, mut peer_times) = (Times::default(), Times::default());
    for _ in 0..n_runs {
        let begun = Clock::Wall.now();
        (0..n_each).for_each(|_| _ = ours.step());
        our_times.push(Clock::Wall.now().saturating_sub(begun));
        if let Some(peer) = &mut peer {
            let nanoseconds = peer.ask(&n_each.to_string());
            peer_times.push(Duration::from_secs_f64(nanoseconds * 1e-9));
        }
    }
    let each = |times: &Times| times.median().as_secs_f64() * 1e6 / n_each as f64;
    print!(
        "{name:<24}{:>9.1} us{:>5.0}%",
        each(&our_times),
        our_times.spread() * 100.0
    );
    match peer {
        Some(_) => println!(
            "   TensorFlow{:>9.1} us{:>5.0}%   ratio{:>7.2}   wanted {goal}",
            each(&peer_times),
            peer_times.spread() * 100.0,
            each(&peer_times) / each(&our_times),
        ),
        None => println!("   SKIPPED: TensorFlow, for want of `benches/peers/setup.sh tensorflow`"),
    }
}

/// Returns numbers that look random, alike each time, between -0.5 and 0.5.
fn random(seed: u32, n: usize) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / 16_777_216.0 - 0.5
    };
    (0..n).map(|_| next()).collect()
}

/// The step as a program of ours.
struct Ours {
    runtime: Runtime,
    step: Function,
    arguments: Vec<Tensor>,
}

impl Ours {
    fn new(batch: usize, n_threads: usize) -> Ours {
        let queue: Arc<dyn ConcurrentWorkQueue> = match n_threads {
            1 => Arc::new(SingleThreadedWorkQueue::new()),
            _ => {
                Arc::new(MultiThreadedWorkQueue::new(n_threads, 1).expect("threads can be started"))
            }
        };
        let runtime = Runtime::builder().queue(queue).build();
        let program = runtime
            .compile("mnist.mlir", program(batch))
            .expect("the program is right");
        let allocator = runtime.host().allocator().clone();
        let tensor = |extents: &[usize], elements: &[f32]| {
            DenseHostTensor::from_slice(&allocator, extents, elements)
                .expect("there is memory")
                .into()
        };
        let eighths = |seed, n| {
            random(seed, n)
                .iter()
                .map(|x| x / 8.0)
                .collect::<Vec<f32>>()
        };
        let images: Vec<f32> = random(3, batch * PIXELS).iter().map(|x| x + 0.5).collect();
        let mut targets = vec![0.0; batch * CLASSES];
        for (index, row) in targets.chunks_mut(CLASSES).enumerate() {
            row[index % CLASSES] = 1.0;
        }
        let arguments = vec![
            tensor(&[batch, PIXELS], &images),
            tensor(&[batch, CLASSES], &targets),
            tensor(&[PIXELS, HIDDEN], &eighths(1, PIXELS * HIDDEN)),
            tensor(&[HIDDEN], &[0.0; HIDDEN]),
            tensor(&[HIDDEN, CLASSES], &eighths(2, HIDDEN * CLASSES)),
            tensor(&[CLASSES], &[0.0; CLASSES]),
        ];
        let step = program.function("step").expect("the program has it");
        Ours {
            runtime,
            step,
            arguments,
        }
    }

    /// Makes a step and returns the loss before it.
    fn step(&mut self) -> f32 {
        let arguments: Vec<AnyAsyncValue> = self
            .arguments
            .iter()
            .cloned()
            .map(AnyAsyncValue::new)
            .collect();
        let call = self.step.call(&self.runtime.context(), arguments);
        let results = call.wait().expect("the step succeeds");
        let loss = results
            .get::<Tensor>(0)
            .and_then(|loss| loss.as_dense())
            .expect("it is a tensor");
        let loss = loss.read().expect("nobody writes it");
        loss.elements::<f32>().expect("it is a number")[0]
    }
}

/// Returns the text of the program. What a weight is changed by is added by the product that makes it.
fn program(batch: usize) -> String {
    let mut text = String::from(
        "func.func @step(%x: !t.tensor, %y: !t.tensor, %w0: !t.tensor, %b0: !t.tensor, %w1: !t.tensor, \
         %b1: !t.tensor) -> (!t.tensor, !tfrt.chain) {\n",
    );
    let product = |alpha: &str,
                   a: &str,
                   b: &str,
                   beta: &str,
                   c: &str,
                   turned: [bool; 2],
                   chains: [&str; 2]| {
        let ([transpose_a, transpose_b], [before, after]) = (turned, chains);
        format!(
            "%{after} = \"nn.matmul.f32\"(%{alpha}, %{a}, %{b}, %{beta}, %{c}, %{before}) {{transpose_a = \
             {transpose_a}, transpose_b = {transpose_b}}} : (f32, !t.tensor, !t.tensor, f32, !t.tensor, \
             !tfrt.chain) -> !tfrt.chain"
        )
    };
    let create = |name: &str, extents: &[usize]| {
        let list: Vec<String> = extents
            .iter()
            .map(|extent| format!("{extent} : i64"))
            .collect();
        let (rank, list) = (extents.len(), list.join(", "));
        format!("%{name} = tfrt_dht.create_uninitialized_tensor.f32.{rank} [{list}]")
    };
    let rows = |name: &str, bias: &str, columns: usize| {
        format!(
            "%{name}_shape = ts.build_shape [{batch} : i64, {columns} : i64]\n  %{name} = \
             \"tfrt_test.broadcast.f32.2\"(%{bias}, %{name}_shape, %c0) : (!t.tensor, !ts.shape, !tfrt.chain) -> \
             !t.tensor"
        )
    };
    let to_bias = |gradient: &str, bias: &str, n: usize, before: &str, after: &str| {
        format!(
            "{}\n  %{after}_sum = \"nn.bias_gradient.f32\"(%{gradient}, %d{bias}, %{before}) : (!t.tensor, \
             !t.tensor, !tfrt.chain) -> !tfrt.chain\n  %{after} = \"tfrt_test.gradient_descent.f32\"(%d{bias}, \
             %rate, %{bias}, %{after}_sum) : (!t.tensor, !t.tensor, !t.tensor, !tfrt.chain) -> !tfrt.chain",
            create(&format!("d{bias}"), &[n])
        )
    };
    let lines = [
        "%c0 = tfrt.new.chain".to_owned(),
        "%zero = tfrt.constant.f32 0.0".to_owned(),
        "%one = tfrt.constant.f32 1.0".to_owned(),
        "%minus_rate = tfrt.constant.f32 -0.01".to_owned(),
        create("rate", &[]),
        "%r0 = tfrt_dht.fill_tensor_with_constant.f32 %rate, %c0 0.01 : f32".to_owned(),
        rows("hidden", "b0", HIDDEN),
        product("one", "x", "w0", "one", "hidden", [false, false], ["c0", "c1"]),
        "%c2 = \"tfrt_test.relu_inplace.f32\"(%hidden, %c1) : (!t.tensor, !tfrt.chain) -> !tfrt.chain".to_owned(),
        rows("logits", "b1", CLASSES),
        product("one", "hidden", "w1", "one", "logits", [false, false], ["c2", "c3"]),
        create("dlogits", &[batch, CLASSES]),
        "%loss, %c4 = \"nn.softmax_cross_entropy.f32\"(%logits, %y, %dlogits, %c3) : (!t.tensor, !t.tensor, \
         !t.tensor, !tfrt.chain) -> (!t.tensor, !tfrt.chain)"
            .to_owned(),
        create("dhidden", &[batch, HIDDEN]),
        product("one", "dlogits", "w1", "zero", "dhidden", [false, true], ["c4", "c5"]),
        "%c6 = \"tfrt_test.relu_grad_inplace.f32\"(%hidden, %dhidden, %c5) : (!t.tensor, !t.tensor, !tfrt.chain) \
         -> !tfrt.chain"
            .to_owned(),
        "%c7 = tfrt.merge.chains %c6, %r0 : !tfrt.chain, !tfrt.chain".to_owned(),
        product("minus_rate", "hidden", "dlogits", "one", "w1", [true, false], ["c6", "d1"]),
        to_bias("dlogits", "b1", CLASSES, "c7", "d2"),
        product("minus_rate", "x", "dhidden", "one", "w0", [true, false], ["c6", "d3"]),
        to_bias("dhidden", "b0", HIDDEN, "c7", "d4"),
        "%done = tfrt.merge.chains %d1, %d2, %d3, %d4 : !tfrt.chain, !tfrt.chain, !tfrt.chain, !tfrt.chain"
            .to_owned(),
        "tfrt.return %loss, %done : !t.tensor, !tfrt.chain".to_owned(),
    ];
    for line in lines {
        writeln!(text, "  {line}").expect("a string takes all");
    }
    text.push_str("}\n");
    text
}

/// TensorFlow, in a process of its own.
struct Peer {
    process: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Peer {
    /// Starts TensorFlow, if it is installed.
    fn new(batch: usize, n_threads: usize) -> Option<Peer> {
        let python = folders::target("peers/venv").join("bin/python");
        let mut process = Command::new(python)
            .arg(folders::here().join("peers/mnist.py"))
            .args([n_threads.to_string(), batch.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let requests = process.stdin.take();
        let answers = BufReader::new(process.stdout.take()?);
        let mut peer = Peer {
            process,
            requests,
            answers,
        };
        let mut line = String::new();
        peer.answers.read_line(&mut line).ok()?;
        (line.trim() == "ready").then_some(peer)
    }

    /// Sends a line and reads the number that comes back.
    fn ask(&mut self, request: &str) -> f64 {
        let requests = self.requests.as_mut().expect("it is open until the end");
        writeln!(requests, "{request}").expect("the peer listens");
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("the peer answers");
        line.trim().parse().expect("the answer is a number")
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It ends when nothing more can come.
        drop(self.requests.take());
        let _ = self.process.wait();
    }
}
