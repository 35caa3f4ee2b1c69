//! `soak [SECONDS]`: everything mixed, over and over, and the memory of the process meanwhile.
//!
//! Random programs, programs of the repository that are opened anew each time, models, tensors with methods,
//! cancellations, deadlines, errors, panics, kernels that never resolve, and handles that are dropped half way.
//! Each stuck kernel is found and named, and no other call counts as stuck. After each round no value and no cell
//! is alive that was not before; when the first quarter of the time is over, the process grows by less
//! than one part in a hundred.

#![forbid(unsafe_code)]

use std::fs;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tfrt::eager::Eager;
use tfrt::input::Input;
use tfrt::tensor::DenseHostTensor;
use tfrt::{
    AnyAsyncValue, AnyError, AsyncValue, Error, ExecutionContext, Model, MultiThreadedWorkQueue,
    Program, Promise, Runtime,
};
use tfrt_async::counters;
use tfrt_bef::{BefBuffer, BefFile};
use tfrt_differential::bench::Bench;
use tfrt_fuzz::{execute, seeds};
use tfrt_oracle::random::Random;

/// How long the last values may take to go when the queue is empty.
const SETTLING: Duration = Duration::from_secs(5);

/// A program with faults for the taking: its kernels are those of [`fault`] and [`late`].
const FAULTY: &str = r#"
func.func @f(%n: i32) -> i32 {
  %a = "soak.late"(%n) : (i32) -> i32
  %b = "soak.fault"(%a) : (i32) -> i32
  tfrt.return %b : i32
}
func.func @main(%n: i32) -> (i32, i32) {
  %a = tfrt.call @f(%n) : (i32) -> i32
  %b = tfrt.call @f(%n) : (i32) -> i32
  %c = "soak.late"(%b) : (i32) -> i32
  %d = tfrt.add.i32 %a, %c
  tfrt.return %d, %a : i32, i32
}"#;

const MODEL: &str = r#"module attributes {onnx.opset = 17 : i64} {
  func.func @main(%x: tensor<?x3xf32>) -> tensor<?x2xf32>
      attributes {onnx.inputs = ["x"], onnx.outputs = ["y"],
                  onnx.input_dims = [["N", 3 : i64]], onnx.output_dims = [["N", 2 : i64]]} {
    %w = "onnx.Constant"() {value = dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]> : tensor<3x2xf32>} : () -> tensor<3x2xf32>
    %0 = "onnx.MatMul"(%x, %w) : (tensor<?x3xf32>, tensor<3x2xf32>) -> tensor<?x2xf32>
    %1 = "onnx.Softmax"(%0) : (tensor<?x2xf32>) -> tensor<?x2xf32>
    func.return %1 : tensor<?x2xf32>
  }
}"#;

fn fault(n: i32, context: &ExecutionContext) -> Result<i32, Error> {
    match n {
        0 => panic!("planned"),
        1 => Err(Error::aborted("planned")),
        2 => {
            context.request().cancel();
            Ok(n)
        }
        n => Ok(n),
    }
}

/// Promises that nobody resolves.
static KEPT: Mutex<Vec<Promise<i32>>> = Mutex::new(Vec::new());

/// What `soak.late` is given to never resolve.
const NEVER: i32 = 9;

fn kept() -> MutexGuard<'static, Vec<Promise<i32>>> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

fn late(n: i32, context: &ExecutionContext) -> AsyncValue<i32> {
    if n == NEVER {
        let (promise, value) = AsyncValue::pending();
        kept().push(promise);
        return value;
    }
    if n == 3 {
        let (promise, value): (Promise<i32>, _) = AsyncValue::pending();
        drop(promise);
        return value;
    }
    context.enqueue(move || Ok(n))
}

/// What the rounds share.
struct Soak {
    runtime: Runtime,
    faulty: Program,
    harmless: Bench,
    files: Vec<BefFile>,
    models: Vec<Vec<u8>>,
    random: Random,
}

impl Soak {
    fn new() -> Result<Soak, AnyError> {
        let queue = MultiThreadedWorkQueue::new(4, 4).expect("threads can be started");
        let runtime = Runtime::builder()
            .kernels(|registry| {
                registry.add("soak.fault", fault).add("soak.late", late);
            })
            .queue(Arc::new(queue))
            .build();
        let faulty = runtime.compile("faulty.mlir", FAULTY)?;
        let files = seeds::files().into_iter();
        let files = files.filter_map(|(_, bytes)| BefFile::open(BefBuffer::from_vec(bytes)).ok());
        Ok(Soak {
            faulty,
            harmless: Bench::harmless(),
            files: files.collect(),
            models: seeds::inputs("import"),
            random: Random::new(1),
            runtime,
        })
    }

    /// Does one thing of each kind.
    fn round(&mut self) -> Result<(), AnyError> {
        let choices: Vec<u8> = (0..256)
            .map(|_| self.random.bits().to_le_bytes()[0])
            .collect();
        execute::execute(&choices);
        let file = self.random.pick(&self.files).clone();
        let ran = self.harmless.run_untrusted(&file);
        ran.expect("nothing is left behind");
        for _ in 0..16 {
            self.call_with_faults();
        }
        self.stuck();
        self.imported();
        self.model()?;
        self.eager()
    }

    /// A call that may fail, panic, be cancelled, run out of time or be dropped.
    fn call_with_faults(&mut self) {
        let n = i32::try_from(self.random.below(6)).expect("it is small");
        let builder = self.runtime.context_builder();
        let context = match self.random.chance(20) {
            true => builder.deadline(Duration::from_micros(self.random.below(100) as u64)),
            false => builder,
        }
        .build();
        let main = self.faulty.function("main").expect("it is in the text");
        let call = main.spawn(&context, (n,));
        if self.random.chance(20) {
            context.cancel();
        }
        if self.random.chance(30) {
            return drop(call);
        }
        let results = call.wait_each().expect("this thread is no worker");
        for error in results.iter().filter_map(AnyAsyncValue::error) {
            assert!(!error.message().contains("stuck"), "a false alarm: {error}");
        }
    }

    /// A call of which a kernel never resolves.
    fn stuck(&self) {
        let main = self.faulty.function("main").expect("it is in the text");
        let call = main.spawn(&self.runtime.context(), (NEVER,));
        let results = call.wait_each().expect("this thread is no worker");
        for result in &results {
            let error = result.error().expect("it never comes");
            let is_named = error.message().contains("kernel 'soak.late' at ");
            assert!(is_named, "not found: {error}");
        }
        kept().clear();
    }

    /// A model of the corpus, most of which are broken.
    fn imported(&mut self) {
        let bytes = self.random.pick(&self.models).clone();
        let input = Input::from_bytes("model.onnx", bytes);
        let _ = input.and_then(|input| self.runtime.load_model(&input));
    }

    /// A model that is opened anew, and called.
    fn model(&mut self) -> Result<(), AnyError> {
        let program = self.runtime.compile("model.mlir", MODEL)?;
        let model = Model::from_program(program, &self.runtime)?;
        let n_rows = 1 + self.random.below(100);
        let elements = vec![0.5_f32; 3 * n_rows];
        let allocator = self.runtime.host().allocator();
        let x = DenseHostTensor::from_slice(allocator, &[n_rows, 3], &elements)?;
        let outputs = model.call(&self.runtime.context(), [("x", x)]).wait()?;
        outputs.tensor("y")?.to_text()?;
        Ok(())
    }

    /// Tensors with methods, of which one call is wrong.
    fn eager(&mut self) -> Result<(), AnyError> {
        let eager = Eager::new(&self.runtime);
        let n = 1 + self.random.below(40);
        let x = eager.tensor(&[n, 2], &vec![1.5_f32; 2 * n])?;
        let y = x.transpose(&[1, 0])?.matmul(&x)?.relu()?;
        let wrong = x.matmul(&x);
        assert_eq!(wrong.is_err(), n != 2);
        y.sum(&[0])?.to_vec::<f32>()?;
        Ok(())
    }

    /// The cells that are alive when nothing happens any more.
    fn at_rest(&self) -> Result<u64, String> {
        let mut live_cells = counters().live_cells;
        loop {
            self.runtime.quiesce().map_err(|error| error.to_string())?;
            // What the last tasks held goes a little after them.
            std::thread::sleep(Duration::from_millis(50));
            match counters().live_cells {
                now if now == live_cells => return Ok(now),
                now => live_cells = now,
            }
        }
    }

    /// Waits until nothing is alive but what was before.
    fn settle(&self, live_cells: u64) -> Result<(), String> {
        self.runtime.quiesce().map_err(|error| error.to_string())?;
        let until = Instant::now() + SETTLING;
        while counters().live_cells != live_cells {
            if Instant::now() > until {
                return Err(format!("{live_cells} cells before, {:?} now", counters()));
            }
            std::thread::yield_now();
        }
        Ok(())
    }
}

/// Bytes of the process that lie in memory.
fn resident_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().ok()?;
    Some(kib << 10)
}

fn soak(time: Duration) -> Result<(), String> {
    let mut soak = Soak::new().map_err(|error| error.to_string())?;
    let begin = Instant::now();
    let (mut n_rounds, mut warm, mut last_told) = (0_u64, None, begin);
    // What is made once for all is there after the first round.
    soak.round().map_err(|error| error.to_string())?;
    let live_cells = soak.at_rest()?;
    while begin.elapsed() < time {
        soak.round().map_err(|error| error.to_string())?;
        soak.settle(live_cells)?;
        n_rounds += 1;
        if warm.is_none() && begin.elapsed() > time / 4 {
            warm = resident_bytes();
        }
        if last_told.elapsed() > time / 10 {
            last_told = Instant::now();
            let (seconds, now) = (begin.elapsed().as_secs(), resident_bytes().unwrap_or(0));
            println!("{seconds:5} s: {n_rounds} rounds, {now} bytes in memory");
        }
    }
    let (Some(warm), Some(end)) = (warm, resident_bytes()) else {
        println!("{n_rounds} rounds; this system does not say how much memory a process has");
        return Ok(());
    };
    let growth = (end as f64 - warm as f64) / warm as f64 * 100.0;
    println!("{n_rounds} rounds: from {warm} to {end} bytes in memory, {growth:+.2} %");
    match growth < 1.0 {
        true => Ok(()),
        false => Err(format!("the process grew by {growth:.2} %")),
    }
}

fn main() -> ExitCode {
    std::panic::set_hook(Box::new(|info| {
        if !tfrt_host::is_in_kernel() {
            eprintln!("{info}");
        }
    }));
    let seconds = std::env::args().nth(1).map_or(Ok(60), |text| text.parse());
    let Ok(seconds) = seconds else {
        eprintln!("Usage: soak [SECONDS]");
        return ExitCode::from(2);
    };
    match soak(Duration::from_secs(seconds)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(complaint) => {
            eprintln!("{complaint}");
            ExitCode::FAILURE
        }
    }
}
