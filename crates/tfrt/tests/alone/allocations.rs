//! Memory that is refused: the n-th allocation of load and run, for every n, once and from then on.
//!
//! Whatever is refused, each result is a value or an error that says so; no kernel panics, and nothing is left.
//! `TFRT_ALLOCATIONS=all` tries every n also of programs that ask for memory very often.

use std::alloc::Layout;
use std::fs;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tfrt::asynchronous::{Counters, SystemAllocator, counters};
use tfrt::bef::{BefFile, FunctionKind};
use tfrt::eager::Eager;
use tfrt::input::Input;
use tfrt::ir::Source;
use tfrt::tensor::DenseHostTensor;
use tfrt::{
    AnyAsyncValue, AnyError, ConcurrentWorkQueue, Error, ErrorCode, HostAllocator, Model,
    MultiThreadedWorkQueue, Output, Program, Runtime, SingleThreadedWorkQueue,
};

use crate::own_process::in_own_process;

/// The number of n that are tried of programs that allocate more often, unless all are.
const MOST_TRIED: u64 = 100;

/// The number of n that are tried of programs that run long: each turn of a loop asks for memory as the one before.
const LEAST_TRIED: u64 = 10;

/// The time that the runs of one kind take, about, unless there are so few.
const TIME_TRIED: Duration = Duration::from_secs(1);

/// Refuses some allocations, and counts those that are alive.
struct Refusing {
    system: SystemAllocator,
    asked: AtomicU64,
    alive: AtomicU64,
    /// The first that is refused, and the first after it that is not.
    refused: (u64, u64),
}

impl Refusing {
    fn new(refused: (u64, u64)) -> Arc<Refusing> {
        Arc::new(Refusing {
            system: SystemAllocator::new(),
            asked: AtomicU64::new(0),
            alive: AtomicU64::new(0),
            refused,
        })
    }
}

// SAFETY: the blocks are the system allocator's, which makes the same promise.
unsafe impl HostAllocator for Refusing {
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        let n = self.asked.fetch_add(1, Ordering::Relaxed);
        if (self.refused.0..self.refused.1).contains(&n) {
            return None;
        }
        let block = self.system.allocate(layout)?;
        self.alive.fetch_add(1, Ordering::Relaxed);
        Some(block)
    }

    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        self.alive.fetch_sub(1, Ordering::Relaxed);
        // SAFETY: `allocate` got the block from the system's allocator with this layout (caller's duty).
        unsafe { self.system.deallocate(block, layout) }
    }

    fn name(&self) -> &'static str {
        "refusing"
    }
}

/// Work with a runtime; returns the errors that it comes to.
type Work<'w> = &'w dyn Fn(&Runtime) -> Vec<Error>;

/// Does the work with memory that is refused at each place in turn.
fn sweep(name: &str, work: Work<'_>) {
    let queues: [Arc<dyn ConcurrentWorkQueue>; 2] = [
        Arc::new(SingleThreadedWorkQueue::new()),
        Arc::new(MultiThreadedWorkQueue::new(2, 2).unwrap()),
    ];
    for queue in &queues {
        // What is made once for all is not counted.
        once(name, queue, (u64::MAX, u64::MAX), work);
        let begin = Instant::now();
        let n_asked = once(name, queue, (u64::MAX, u64::MAX), work);
        let n_runs = TIME_TRIED.as_nanos() / begin.elapsed().as_nanos().max(1);
        let most = u64::try_from(n_runs).unwrap_or(MOST_TRIED);
        let most = most.clamp(LEAST_TRIED, MOST_TRIED);
        let is_whole = std::env::var("TFRT_ALLOCATIONS").is_ok_and(|value| value == "all");
        let stride = match is_whole {
            true => 1,
            false => n_asked.div_ceil(most).max(1),
        };
        for n in (0..n_asked).step_by(usize::try_from(stride).unwrap()) {
            once(name, queue, (n, n + 1), work);
            once(name, queue, (n, u64::MAX), work);
        }
    }
}

/// Does the work once, looks at what it came to, and says how often memory was asked for.
fn once(
    name: &str,
    queue: &Arc<dyn ConcurrentWorkQueue>,
    refused: (u64, u64),
    work: Work<'_>,
) -> u64 {
    let what = format!("{name} on {}, refused {refused:?}", queue.name());
    let before = counters();
    let allocator = Refusing::new(refused);
    let (output, _printed) = Output::captured();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let runtime = Runtime::builder()
        .queue(queue.clone())
        .allocator(allocator.clone())
        .output(output)
        .diagnostics({
            let heard = heard.clone();
            move |error| lock(&heard).push(error.clone())
        })
        .build();
    let mut errors = work(&runtime);
    runtime.quiesce().unwrap();
    drop(runtime);
    errors.append(&mut lock(&heard));
    for error in &errors {
        assert_ne!(error.code(), ErrorCode::Internal, "{what}: {error}");
        assert!(!error.message().contains("panicked"), "{what}: {error}");
    }
    drop(errors);
    expect_nothing_left(&before, &allocator, &what);
    allocator.asked.load(Ordering::Relaxed)
}

/// Waits until nothing is alive that was not before: the last of it may go a little after the results.
fn expect_nothing_left(before: &Counters, allocator: &Refusing, what: &str) {
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let (now, alive) = (counters(), allocator.alive.load(Ordering::Relaxed));
        if now.live_cells == before.live_cells && alive == 0 {
            assert_eq!(now.waiter_panics, before.waiter_panics, "{what}");
            return;
        }
        assert!(
            Instant::now() < until,
            "{what}: {alive} blocks, {now:?} after {before:?}"
        );
        thread::sleep(Duration::from_micros(100));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Loads a program and calls each of its functions without parameters.
fn run_all(file: &BefFile, runtime: &Runtime) -> Vec<Error> {
    // Only a load that is refused memory fails, and that is no `Error`.
    let Ok(program) = Program::from_file(file.clone(), runtime) else {
        return Vec::new();
    };
    let mut errors = Vec::new();
    for function in program.functions() {
        if function.argument_types().len() > 0 {
            continue;
        }
        let context = runtime.context();
        if function.as_host_function().kind() == FunctionKind::Sync {
            let ran = function
                .as_host_function()
                .run_synchronously(context.execution(), &[]);
            errors.extend(ran.err());
        } else {
            let results = function.call(&context, ()).wait_each().unwrap();
            errors.extend(results.iter().filter_map(AnyAsyncValue::error).cloned());
        }
        runtime.quiesce().unwrap();
        context.request().clear_data();
    }
    errors
}

fn repository_file(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path);
    fs::read_to_string(path).unwrap()
}

#[test]
fn memory_may_be_refused_at_any_place() {
    let _alone = crate::alone();
    in_own_process(
        "allocations::memory_may_be_refused_at_any_place",
        refuse_memory_at_any_place,
    );
}

fn refuse_memory_at_any_place() {
    std::panic::set_hook(Box::new(|_| {}));
    const PROGRAMS: &[&str] = &[
        "tests/execute/arithmetic.mlir",
        "tests/execute/atomics.mlir",
        "tests/execute/call_synchronous.mlir",
        "tests/execute/calls.mlir",
        "tests/execute/chains.mlir",
        "tests/execute/constants.mlir",
        "tests/execute/once.mlir",
        "tests/execute/parallel.mlir",
        "tests/execute/resources.mlir",
        "tests/execute/scalars.mlir",
        "tests/execute/strings.mlir",
        "tests/execute/synchronous.mlir",
        "tests/execute/while.mlir",
        "tests/execute/while_synchronous.mlir",
        "tests/execute/tensor/buffers.mlir",
        "tests/execute/tensor/dense.mlir",
        "tests/execute/tensor/networks.mlir",
        "tests/execute/tensor/shapes.mlir",
        "tests/execute/tensor/sparse.mlir",
        "tests/execute/tensor/strings.mlir",
        "tests/execute/tensor/tf_sync.mlir",
    ];
    for path in PROGRAMS {
        let text = repository_file(path);
        let file = Input::Text(Source::new(path, text)).open().unwrap();
        let begin = Instant::now();
        sweep(path, &|runtime| run_all(&file, runtime));
        println!("{path}: {:?}", begin.elapsed());
    }
    sweep_model();
    sweep("eager", &|runtime| match eager(runtime) {
        Err(AnyError::Call(error)) => vec![error],
        _ => Vec::new(),
    });
}

/// A small network with weights, as ONNX has it.
const MODEL: &str = r#"module attributes {onnx.opset = 17 : i64} {
  func.func @main(%x: tensor<?x3xf32>) -> tensor<?x2xf32>
      attributes {model.input_names = ["x"], model.output_names = ["y"],
                  model.input_dims = [["N", 3 : i64]], model.output_dims = [["N", 2 : i64]]} {
    %w = "onnx.Constant"() {value = dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]> : tensor<3x2xf32>} : () -> tensor<3x2xf32>
    %b = "onnx.Constant"() {value = dense<[1.0, -2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
    %0 = "onnx.MatMul"(%x, %w) : (tensor<?x3xf32>, tensor<3x2xf32>) -> tensor<?x2xf32>
    %1 = "onnx.Add"(%0, %b) : (tensor<?x2xf32>, tensor<2xf32>) -> tensor<?x2xf32>
    %2 = "onnx.Relu"(%1) : (tensor<?x2xf32>) -> tensor<?x2xf32>
    %3 = "onnx.Softmax"(%2) : (tensor<?x2xf32>) -> tensor<?x2xf32>
    func.return %3 : tensor<?x2xf32>
  }
}
"#;

fn sweep_model() {
    let file = Input::Text(Source::new("model.mlir", MODEL))
        .open()
        .unwrap();
    sweep("model", &|runtime| {
        let program = Program::from_file(file.clone(), runtime).unwrap();
        // Its constants are made when it is opened.
        let Ok(model) = Model::from_program(program, runtime) else {
            return Vec::new();
        };
        let elements = [0.5_f32, 1.0, -1.0, 2.0, 0.0, 3.0];
        let allocator = runtime.host().allocator();
        match DenseHostTensor::from_slice(allocator, &[2, 3], &elements) {
            Ok(x) => model.call(&runtime.context(), [("x", x)]).wait().err(),
            Err(error) => Some(error),
        }
        .into_iter()
        .collect()
    });
}

fn eager(runtime: &Runtime) -> Result<(), AnyError> {
    let eager = Eager::new(runtime);
    let x = eager.tensor(&[2, 2], &[1.0_f32, -2.0, 3.0, -4.0])?;
    let two = eager.scalar(2.0_f32)?;
    let sum = (&(&x * &two)? + &x)?;
    let product = sum.matmul(&x)?.relu()?.softmax()?;
    let joined = product.transpose(&[1, 0])?.reshape(&[-1])?;
    joined.sum(&[0])?.to_vec::<f32>()?;
    Ok(())
}
