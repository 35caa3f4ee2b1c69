//! `soak [SECONDS]`: runs everything mixed, over and over, and watches the memory of the process.
//!
//! Random programs, programs of the repository that are opened anew each time, models, tensors with methods,
//! cancellations, deadlines, errors, panics, kernels that never resolve, and handles that are dropped half way.
//! Each stuck kernel is found and named, and no other call counts as stuck. After each round no value and no cell
//! is alive that was not before.
//!
//! # Whether the process grows
//!
//! What counts is what is *held*: blocks, and their bytes, that were taken and not given back, from the system or
//! from free lists. They are counted, not measured, after each round, and the least counts of the last quarter of the
//! time are compared with the least of the second: a leak raises every count that comes after it, while what a thread
//! is just about to give back is in some counts only. No block may be added but one for each thread, which may first
//! need memory of its own late; and bytes may grow by one part in a hundred, since tables that are never empty keep
//! the room of their fullest hour.
//!
//! Memory that is *resident* says less, and is told only: the larger part of it is code, pages of which are read in
//! when something runs for the first time; and of what is anonymous, idle blocks of free lists stay with the thread
//! and the size that needed the most at one time, whose records come ever more rarely, but never end: it is told how
//! often a list was empty, which blocks that are lost on their way back would make happen in every round. Resident
//! memory would be the only sign of what is mapped without the allocator, so it must not grow by a tenth.

#![forbid(unsafe_code)]

use std::fmt;
use std::fs;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tfrt::eager::Eager;
use tfrt::input::Input;
use tfrt::tensor::DenseHostTensor;
use tfrt::{
    AnyAsyncValue, AnyError, AsyncValue, Error, ExecutionContext, Model, MultiThreadedWorkQueue,
    Program, Promise, Runtime, Stuck,
};
use tfrt_async::{counters, memory_stats};
use tfrt_bef::{BefBuffer, BefFile};
use tfrt_differential::test_runtime::TestRuntime;
use tfrt_fuzz::counting::Counting;
use tfrt_fuzz::{execute, seeds};
use tfrt_oracle::random::Random;

/// The longest time that the last values may take to go when the queue is empty.
const SETTLING: Duration = Duration::from_secs(5);

/// The number of blocks that the process has from the system, and of their bytes.
static BLOCKS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);

#[global_allocator]
static COUNTING: Counting = Counting(|taken, given_back| {
    BLOCKS.fetch_add(u64::from(taken > 0), Ordering::Relaxed);
    BLOCKS.fetch_sub(u64::from(given_back > 0), Ordering::Relaxed);
    BYTES.fetch_add(taken as u64, Ordering::Relaxed);
    BYTES.fetch_sub(given_back as u64, Ordering::Relaxed);
});

/// A program with all faults: its kernels are those of [`fault`] and [`late`].
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
      attributes {model.input_names = ["x"], model.output_names = ["y"],
                  model.input_dims = [["N", 3 : i64]], model.output_dims = [["N", 2 : i64]]} {
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

/// The promises that nobody resolves.
static KEPT: Mutex<Vec<Promise<i32>>> = Mutex::new(Vec::new());

/// The argument with which `soak.late` never resolves its promise.
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

/// The state that the rounds share.
struct Soak {
    runtime: Runtime,
    faulty: Program,
    harmless: TestRuntime,
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
            .stuck(Stuck::FAIL)
            .build();
        let faulty = runtime.compile("faulty.mlir", FAULTY)?;
        let files = seeds::files().into_iter();
        let files = files.filter_map(|(_, bytes)| BefFile::open(BefBuffer::from_vec(bytes)).ok());
        Ok(Soak {
            faulty,
            harmless: TestRuntime::harmless(),
            files: files.collect(),
            models: seeds::inputs("import"),
            random: Random::new(1),
            runtime,
        })
    }

    /// Opens every file and every model, so that caches that live as long as the process are full.
    fn each_once(&self) {
        for file in &self.files {
            let ran = self.harmless.run_untrusted(file);
            ran.expect("nothing is left behind");
        }
        for bytes in &self.models {
            self.load(bytes);
        }
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

    /// Makes a call that may fail, panic, be cancelled, run out of time or be dropped.
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

    /// Makes a call of which a kernel never resolves its promise.
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

    /// Imports a model of the corpus, most of which are broken.
    fn imported(&mut self) {
        let bytes = self.random.pick(&self.models).clone();
        self.load(&bytes);
    }

    fn load(&self, bytes: &[u8]) {
        let input = Input::from_bytes("model.onnx", bytes.to_vec());
        let _ = input.and_then(|input| self.runtime.load_model(&input));
    }

    /// Opens a model anew, and calls it.
    fn model(&mut self) -> Result<(), AnyError> {
        let program = self.runtime.compile("model.mlir", MODEL)?;
        let model = Model::from_program(program, &self.runtime)?;
        let n_rows = 1 + self.random.below(100);
        let elements = vec![0.5_f32; 3 * n_rows];
        let allocator = self.runtime.host().allocator();
        let x = DenseHostTensor::from_slice(allocator, &[n_rows, 3], &elements)?;
        let outputs = model.call(&self.runtime.context(), [("x", x)]).wait()?;
        outputs.tensor("y")?.view::<f32>()?;
        Ok(())
    }

    /// Makes eager calls on tensors, of which one is wrong.
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

    /// Returns the number of cells that are alive when nothing happens any more.
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

    /// Waits until no more cells are alive than before.
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

/// The memory that the process holds, or the least of several counts.
#[derive(Clone, Copy)]
struct MemoryUse {
    blocks: u64,
    bytes: u64,
    /// The bytes of memory that are no file's; 0 if the system does not say.
    resident: u64,
}

impl MemoryUse {
    const MOST: MemoryUse = MemoryUse {
        blocks: u64::MAX,
        bytes: u64::MAX,
        resident: u64::MAX,
    };

    fn now() -> MemoryUse {
        let lists = memory_stats();
        // What free lists have from the system counts as far as it is in use. Each piece of it is a block.
        let n_chunks = lists.chunk_bytes / CHUNK_BYTES;
        let (blocks, bytes) = (
            BLOCKS.load(Ordering::Relaxed),
            BYTES.load(Ordering::Relaxed),
        );
        MemoryUse {
            blocks: (blocks + lists.live_blocks).saturating_sub(n_chunks),
            bytes: (bytes + lists.live_bytes).saturating_sub(lists.chunk_bytes),
            resident: resident_bytes().unwrap_or(0),
        }
    }

    fn least(self, other: MemoryUse) -> MemoryUse {
        MemoryUse {
            blocks: self.blocks.min(other.blocks),
            bytes: self.bytes.min(other.bytes),
            resident: self.resident.min(other.resident),
        }
    }

    /// Compares with an earlier count; returns an error if memory has grown.
    fn grown_since(self, before: MemoryUse) -> Result<(), String> {
        let n_threads = fs::read_dir("/proc/self/task").map_or(16, Iterator::count);
        let parts = [
            ("blocks", self.blocks, before.blocks + n_threads as u64),
            ("bytes", self.bytes, before.bytes + before.bytes / 100),
            (
                "resident bytes",
                self.resident,
                before.resident + before.resident / 10,
            ),
        ];
        for (what, now, most) in parts {
            if now > most {
                return Err(format!(
                    "{now} {what} are held, and no more than {most} may be"
                ));
            }
        }
        Ok(())
    }
}

impl fmt::Display for MemoryUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MemoryUse {
            blocks,
            bytes,
            resident,
        } = self;
        write!(
            f,
            "{bytes} bytes held in {blocks} blocks, {resident} resident"
        )
    }
}

/// The bytes that free lists take from the system at a time.
const CHUNK_BYTES: u64 = 256 << 10;

/// Returns the bytes of the process's own that lie in memory.
fn resident_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/status").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"))?;
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().ok()?;
    Some(kib << 10)
}

fn soak(time: Duration) -> Result<(), String> {
    let mut soak = Soak::new().map_err(|error| error.to_string())?;
    // What is made once for all is there when each thing has been done.
    soak.each_once();
    soak.round().map_err(|error| error.to_string())?;
    let live_cells = soak.at_rest()?;
    let begin = Instant::now();
    let mut quarters = [MemoryUse::MOST; 4];
    let (mut n_rounds, mut last_told) = (0_u64, begin);
    while begin.elapsed() < time {
        soak.round().map_err(|error| error.to_string())?;
        soak.settle(live_cells)?;
        n_rounds += 1;
        let held = MemoryUse::now();
        let share = begin.elapsed().as_secs_f64() / time.as_secs_f64();
        let quarter = &mut quarters[((4.0 * share) as usize).min(3)];
        *quarter = quarter.least(held);
        if last_told.elapsed() > time / 10 {
            last_told = Instant::now();
            println!(
                "{:5} s: {n_rounds} rounds, {held}; {} times a free list was empty",
                begin.elapsed().as_secs(),
                memory_stats().misses
            );
        }
    }
    let [_, warm, _, end] = quarters;
    println!("{n_rounds} rounds; least of the second quarter: {warm}");
    println!("least of the last quarter: {end}");
    end.grown_since(warm)
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
