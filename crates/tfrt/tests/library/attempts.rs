//! Calls that begin in order, and are counted from the first kernel on whose result is to come.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tfrt::host::{ExecutionContext, Heap, Value};
use tfrt::{
    AsyncValue, Error, ErrorCode, MultiThreadedWorkQueue, Program, Runtime, SingleThreadedWorkQueue,
};

/// A value on the heap that says when it is gone.
#[derive(Clone)]
struct Held {
    number: i64,
    _alive: Arc<()>,
}

impl Value for Held {
    const NAME: &'static str = "!my.held";
    type Storage = Heap;
}

/// `%c = my.mix %a, %b {number}`: there now, to come, or an error, as the request says.
fn mix(
    a: &Held,
    b: &Held,
    number: tfrt::host::kernel::Attr<i32>,
    execution: &ExecutionContext,
) -> Result<AsyncValue<Held>, Error> {
    let sum = Held {
        number: a
            .number
            .wrapping_mul(31)
            .wrapping_add(b.number)
            .wrapping_add(i64::from(*number)),
        _alive: a._alive.clone(),
    };
    let plan = execution.request().data::<Plan>().expect("it was given");
    plan.n_runs.fetch_add(1, Ordering::Relaxed);
    if plan.fails == Some(*number) {
        return Err(Error::invalid_argument(format!("planned at {}", *number)));
    }
    if plan.later & (1 << *number) == 0 {
        return Ok(AsyncValue::available(sum));
    }
    Ok(execution.enqueue(move || Ok(sum)))
}

/// The events that are to happen in a call.
struct Plan {
    later: u32,
    fails: Option<i32>,
    n_runs: Arc<AtomicU32>,
}

const N_KERNELS: u32 = 7;

/// Kernels with one reader, several, none; arguments that are read early, late, never; results that are returned
/// twice, and an argument that is one.
const TEXT: &str = r#"
func.func @f(%x: !my.held, %y: !my.held, %z: !my.held) -> (!my.held, !my.held, !my.held, !my.held) {
  %a = "my.mix"(%x, %x) {number = 0 : i32} : (!my.held, !my.held) -> !my.held
  %b = "my.mix"(%a, %x) {number = 1 : i32} : (!my.held, !my.held) -> !my.held
  %c = "my.mix"(%a, %b) {number = 2 : i32} : (!my.held, !my.held) -> !my.held
  %unused = "my.mix"(%a, %c) {number = 3 : i32} : (!my.held, !my.held) -> !my.held
  %d = "my.mix"(%a, %y) {number = 4 : i32} : (!my.held, !my.held) -> !my.held
  %e = "my.mix"(%d, %b) {number = 5 : i32} : (!my.held, !my.held) -> !my.held
  %f = "my.mix"(%e, %c) {number = 6 : i32} : (!my.held, !my.held) -> !my.held
  tfrt.return %f, %b, %y, %f : !my.held, !my.held, !my.held, !my.held
}
"#;

fn program(n_threads: usize, counted: bool) -> (Runtime, Program) {
    let builder = Runtime::builder()
        .dynamic_order(counted)
        .kernels(|registry| {
            registry.add("my.mix", mix);
        });
    let builder = match n_threads {
        1 => builder.queue(Arc::new(SingleThreadedWorkQueue::new())),
        n => builder.queue(Arc::new(MultiThreadedWorkQueue::new(n, 2).unwrap())),
    };
    let runtime = builder.build();
    let program = runtime.compile("attempts.mlir", TEXT).unwrap();
    (runtime, program)
}

/// Returns the numbers of a call's results, or its error; everything that it held is gone then.
fn call(
    (runtime, program): &(Runtime, Program),
    later: u32,
    fails: Option<i32>,
) -> (Result<Vec<i64>, String>, u32) {
    let (alive, n_runs) = (Arc::new(()), Arc::new(AtomicU32::new(0)));
    let held = |number| {
        let _alive = alive.clone();
        AsyncValue::available(Held { number, _alive })
    };
    let plan = Plan {
        later,
        fails,
        n_runs: n_runs.clone(),
    };
    let context = runtime.context_builder().data(plan).build();
    let arguments = (held(3), held(5), held(7));
    let function = program.function("f").unwrap();
    let results = match function.call(&context, arguments).wait() {
        Ok(values) => Ok((0..4)
            .map(|index| values.get::<Held>(index).unwrap().number)
            .collect()),
        Err(error) => {
            assert_eq!(error.code(), ErrorCode::InvalidArgument);
            Err(error.to_string())
        }
    };
    runtime.quiesce().unwrap();
    assert_eq!(Arc::strong_count(&alive), 1, "{later:b} {fails:?}");
    (results, n_runs.load(Ordering::Relaxed))
}

#[test]
fn calls_are_the_same_wherever_a_result_is_to_come() {
    let counted = program(1, true);
    for n_threads in [1, 2] {
        for later in 0..1 << N_KERNELS {
            // A new function: after one whose results are to come, some are counted from the start.
            let tried = program(n_threads, false);
            let expected = call(&counted, later, None);
            assert_eq!(call(&tried, later, None), expected, "{later:b}");
            assert_eq!(expected.1, N_KERNELS);
            // The same function, whatever it has learned.
            assert_eq!(call(&tried, later, None), expected, "{later:b}");
            assert_eq!(call(&tried, 0, None), expected, "{later:b}");
        }
    }
}

#[test]
fn errors_are_the_same_wherever_a_result_is_to_come() {
    let counted = program(1, true);
    for later in 0..1 << N_KERNELS {
        for fails in 0..7 {
            let tried = program(1, false);
            let expected = call(&counted, later, Some(fails));
            assert_eq!(
                call(&tried, later, Some(fails)),
                expected,
                "{later:b} {fails}"
            );
        }
    }
}

#[test]
fn calls_that_never_wait_are_tried_again() {
    let tried = program(1, false);
    for later in [1, 0, 0, 0, 1 << 6] {
        for _ in 0..40 {
            let (results, n_runs) = call(&tried, later, None);
            assert!(results.is_ok() && n_runs == N_KERNELS);
        }
    }
}
