//! ResNet-50 as a whole, as a program with packed weights, beside ONNX Runtime with the same weights: how long
//! images take, for one and for eight at a time, on one thread and on two, and how much memory
//! the processes have held at most.
//!
//! Both run in processes of their own, in turns; the ratio is the median, over all rounds, of the peer's time
//! over ours: above 1 we are faster. Weights are packed, and the session is made, ahead. Logits must agree to
//! 1e-4 of the largest.
//!
//! `cargo bench -p tfrt-benches --bench resnet`; `benches/peers/setup.sh` sets the peer up.
//! `TFRT_BENCH_THREADS` and `TFRT_BENCH_BATCH` take but one number.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use tfrt::{AnyAsyncValue, Runtime};
use tfrt_async::queue::{ConcurrentWorkQueue, MultiThreadedWorkQueue, SingleThreadedWorkQueue};
use tfrt_benches::folders;
use tfrt_benches::measure::{Clock, Times};
use tfrt_benches::peers::process::{PeerProcess, python};
use tfrt_networks::resnet::{Form, ResNet};
use tfrt_tensor::btf::{self, BtfReader};
use tfrt_tensor::{Tensor, npz};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [word, folder, batch, n_threads] = &arguments[..]
        && word == "serve"
    {
        let number = |text: &str| text.parse().expect("a number");
        return serve(Path::new(folder), number(batch), number(n_threads));
    }
    for batch in [1, 8] {
        if !is_wanted("TFRT_BENCH_BATCH", batch) {
            continue;
        }
        let folder = folders::target("peers").join(format!("resnet{batch}"));
        write(&folder, batch);
        for n_threads in [1, 2] {
            if is_wanted("TFRT_BENCH_THREADS", n_threads) {
                compare(&folder, batch, n_threads);
            }
        }
    }
}

/// Returns whether a variable of the environment leaves it open, or says so.
fn is_wanted(variable: &str, number: usize) -> bool {
    std::env::var(variable).map_or(true, |wanted| wanted == number.to_string())
}

fn network(batch: usize) -> ResNet {
    ResNet {
        batch,
        form: Form::Packed,
        ..ResNet::FIFTY
    }
}

/// Writes images and weights: for us, and for the peer.
fn write(folder: &Path, batch: usize) {
    fs::create_dir_all(folder).expect("the folder of what is built can be written");
    let runtime = Runtime::new();
    let network = network(batch);
    let tensors = network
        .tensors(1, runtime.host().allocator())
        .expect("there is memory");
    let mut file = File::create(folder.join("tensors.btf")).expect("it can be written");
    btf::write(&mut file, &tensors).expect("it can be written");
    let mut names = vec!["images".to_owned()];
    names.extend(network.names());
    let archive = npz::write(names.iter().map(String::as_str).zip(&tensors));
    let archive = archive.expect("names differ");
    fs::write(folder.join("tensors.npz"), archive).expect("it can be written");
}

fn compare(folder: &Path, batch: usize, n_threads: usize) {
    let this = std::env::current_exe().expect("this program has a file");
    let numbers = [batch, n_threads].map(|number| number.to_string());
    let ours = PeerProcess::start(Command::new(this).arg("serve").arg(folder).args(&numbers));
    let mut ours = ours.expect("this program can be started");
    let mut peer = match onnx_runtime(folder, n_threads) {
        Ok(peer) => Some(peer),
        Err(why) => {
            println!("ONNX Runtime is left out: {why}");
            None
        }
    };
    let n_rounds = std::env::var("TFRT_BENCH_RUNS")
        .ok()
        .and_then(|runs| runs.parse().ok());
    let (mut our_times, mut peer_times) = (Times::default(), Times::default());
    for round in 0..3 + n_rounds.unwrap_or(50) {
        let our_time = ours.ask(1);
        let peer_time = peer.as_mut().map(|peer| peer.ask(1));
        // The first ones warm up.
        if round >= 3 {
            our_times.push(our_time);
            peer_times.push(peer_time.unwrap_or_default());
        }
    }
    let ms = |times: &Times| times.median().as_secs_f64() * 1e3;
    let mut line = format!(
        "batch {batch}, {n_threads} threads: {:8.2} ms",
        ms(&our_times)
    );
    let our_peak: f64 = ours.tell("peak").parse().expect("a number");
    if let Some(peer) = &mut peer {
        let ratios = peer_times.all().iter().zip(our_times.all());
        let mut ratios: Vec<f64> = ratios
            .map(|(peer, ours)| peer.as_secs_f64() / ours.as_secs_f64())
            .collect();
        ratios.sort_by(f64::total_cmp);
        let peak: f64 = peer.tell("peak").parse().expect("a number");
        line += &format!(
            "   ONNX Runtime {:8.2} ms   ratio {:.2}   memory {:.0} MB and {:.0} MB",
            ms(&peer_times),
            ratios[ratios.len() / 2],
            our_peak / 1e6,
            peak / 1e6
        );
        agree(&ours.tell("logits"), &peer.tell("logits"));
    }
    println!("{line}");
}

fn onnx_runtime(folder: &Path, n_threads: usize) -> Result<PeerProcess, String> {
    let files = [folder.join("tensors.npz"), folder.join("resnet.onnx")];
    let written = python("onnx_resnet.py")?.arg("write").args(&files).status();
    match written {
        Ok(status) if status.success() => {
            let mut command = python("onnx_resnet.py")?;
            PeerProcess::start(command.arg("run").args(&files).arg(n_threads.to_string()))
        }
        Ok(status) => Err(format!("its model can't be written: {status}")),
        Err(error) => Err(error.to_string()),
    }
}

/// Holds logits against each other.
fn agree(ours: &str, theirs: &str) {
    let numbers = |line: &str| -> Vec<f64> {
        line.split_whitespace()
            .map(|word| word.parse().expect("a number"))
            .collect()
    };
    let (ours, theirs) = (numbers(ours), numbers(theirs));
    assert_eq!(ours.len(), theirs.len());
    let largest = theirs
        .iter()
        .fold(0.0_f64, |largest, x| largest.max(x.abs()));
    let off = ours
        .iter()
        .zip(&theirs)
        .map(|(a, b)| (a - b).abs())
        .fold(0.0, f64::max);
    assert!(
        off <= 1e-4 * largest,
        "logits are {off} apart, the largest is {largest}"
    );
}

/// Answers as peers do: for a number with nanoseconds, for `peak` with bytes, for `logits` with these.
fn serve(folder: &Path, batch: usize, n_threads: usize) {
    let queue: Arc<dyn ConcurrentWorkQueue> = match n_threads {
        1 => Arc::new(SingleThreadedWorkQueue::new()),
        n => Arc::new(MultiThreadedWorkQueue::new(n, 2).expect("threads can be had")),
    };
    let runtime = Runtime::builder().queue(queue).build();
    let path = folder.join("tensors.btf");
    let path = path.to_str().expect("the folder's name is text");
    let program = runtime.compile("resnet.mlir", network(batch).program(path));
    let program = program.expect("what is generated is a program");
    let call = |name: &str, arguments: Vec<AnyAsyncValue>| {
        let function = program.function(name).expect("the program has it");
        let results = function.call(&runtime.context(), arguments).wait();
        results.expect("it does not fail").into_inner()
    };
    let file = File::open(path).expect("it was written");
    let mut reader =
        BtfReader::new("images", BufReader::new(file)).expect("it is what was written");
    let images = reader.read(0, runtime.host().allocator());
    let images: Tensor = images.expect("images come first");
    let mut arguments = vec![AnyAsyncValue::new(images)];
    // In between, the weights as they were; then packed alone.
    let weights = call("weights", vec![AnyAsyncValue::new(path.to_owned())]);
    arguments.extend(call("pack", weights));
    let mut results = call("infer", arguments.clone());
    println!("tfrt");
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        match line.as_str() {
            "peak" => println!("{}", peak_bytes()),
            "logits" => {
                let logits = results[0].get::<Tensor>().expect("a tensor");
                let logits = logits
                    .as_dense()
                    .expect("a dense one")
                    .read()
                    .expect("nobody writes");
                let logits = logits.elements::<f32>().expect("floats").iter();
                println!(
                    "{}",
                    logits.map(f32::to_string).collect::<Vec<_>>().join(" ")
                );
            }
            n_times => {
                let start = Clock::Wall.now();
                for _ in 0..n_times.parse().unwrap_or(1) {
                    results = call("infer", arguments.clone());
                }
                println!("{}", Clock::Wall.now().saturating_sub(start).as_nanos());
            }
        }
        std::io::stdout().flush().expect("somebody listens");
    }
}

/// Returns the most memory that this process has held, in bytes.
fn peak_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse().ok());
    kilobytes.unwrap_or(0_u64) * 1024
}
