//! The library under fault: cancelled at every step, panicking at every kernel, dropped half way,
//! stuck, and all of that from many threads. Whatever happens, every result settles, nothing
//! starts after a cancellation, and no cell stays alive.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use tfrt::asynchronous::counters;
use tfrt::host::kernel::KernelRegistry;
use tfrt::host::{ExecutionContext, Output, RequestContext};
use tfrt::{
    AnyAsyncValue, AsyncValue, ConcurrentWorkQueue, Context, Error, ErrorCode, Limits,
    MultiThreadedWorkQueue, Program, Promise, Runtime, SingleThreadedWorkQueue, Stuck,
};

fn alone() -> MutexGuard<'static, ()> {
    let guard = crate::alone();
    // Whatever the test before has left goes a little after it, or never.
    expect_no_leak(0, &"between tests");
    guard
}

/// The fault that happens when the `at`-th counted kernel starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// The request is cancelled by the kernel itself.
    Cancel,
    /// Another thread cancels the request, and the kernel waits until it has.
    CancelElsewhere,
    Panic,
    Fail,
    /// The kernel drops the promise of its result.
    Drop,
    /// The kernel keeps the promise until its request has gone.
    Never,
}

/// The fault of a test and its counters, which kernels find in the data of their request.
struct Plan {
    fault: Fault,
    at: usize,
    started: AtomicUsize,
    /// The number of kernels that started after the request was seen as cancelled.
    late: AtomicUsize,
    cancelled: AtomicBool,
    kept: Mutex<Vec<Promise<i32>>>,
}

impl Plan {
    fn new(fault: Fault, at: usize) -> Arc<Plan> {
        Arc::new(Plan {
            fault,
            at,
            started: AtomicUsize::new(0),
            late: AtomicUsize::new(0),
            cancelled: AtomicBool::new(false),
            kept: Mutex::default(),
        })
    }

    /// Counts the start of a kernel. Returns whether the fault is this one's to have.
    fn start(&self, request: &Arc<RequestContext>) -> bool {
        if self.cancelled.load(Ordering::SeqCst) {
            self.late.fetch_add(1, Ordering::SeqCst);
        }
        if self.started.fetch_add(1, Ordering::SeqCst) != self.at {
            return false;
        }
        match self.fault {
            Fault::Cancel => request.cancel(),
            Fault::CancelElsewhere => {
                let request = request.clone();
                thread::spawn(move || request.cancel()).join().unwrap();
            }
            Fault::Panic => panic!("planned"),
            Fault::Fail | Fault::Drop | Fault::Never => return true,
        }
        self.cancelled.store(true, Ordering::SeqCst);
        false
    }
}

fn plan(context: &ExecutionContext) -> Arc<Plan> {
    context
        .request()
        .data::<Arc<Plan>>()
        .unwrap()
        .as_ref()
        .clone()
}

/// `%c = t.add(%a, %b)`, at once.
fn add(a: i32, b: i32, context: &ExecutionContext) -> Result<i32, Error> {
    if plan(context).start(context.request()) {
        return Err(Error::aborted("planned"));
    }
    Ok(a.wrapping_add(b))
}

/// `%c = t.later(%a, %b)`, from a task.
fn later(a: i32, b: i32, context: &ExecutionContext) -> AsyncValue<i32> {
    let plan = plan(context);
    if !plan.start(context.request()) {
        return context.enqueue(move || Ok(a.wrapping_add(b)));
    }
    let (promise, value) = AsyncValue::pending();
    match plan.fault {
        Fault::Never => plan.kept.lock().unwrap().push(promise),
        Fault::Fail => promise.fail(Error::aborted("planned")),
        _ => drop(promise),
    }
    value
}

/// `%c = t.either(%a, %b)`: takes handles, and waits for neither.
fn either(a: AsyncValue<i32>, _b: AsyncValue<i32>, context: &ExecutionContext) -> AsyncValue<i32> {
    plan(context).start(context.request());
    a
}

/// `%b = t.positive(%a)`
fn positive(a: i32, context: &ExecutionContext) -> bool {
    plan(context).start(context.request());
    a > 0
}

fn register(registry: &mut KernelRegistry) {
    registry
        .add("t.add", add)
        .add("t.later", later)
        .add("t.either", either)
        .add("t.positive", positive);
}

/// Programs of every shape that the executor knows. Each has a function `main` without parameters.
const PROGRAMS: &[(&str, &str)] = &[
    (
        "straight",
        r#"func.func @main() -> (i32, i32) {
          %x = tfrt.constant.i32 1
          %a = "t.add"(%x, %x) : (i32, i32) -> i32
          %b = "t.later"(%a, %x) : (i32, i32) -> i32
          %c = "t.add"(%b, %a) : (i32, i32) -> i32
          %d = "t.later"(%c, %b) : (i32, i32) -> i32
          tfrt.return %d, %b : i32, i32
        }"#,
    ),
    (
        "wide",
        r#"func.func @main() -> i32 {
          %x = tfrt.constant.i32 1
          %a = "t.later"(%x, %x) : (i32, i32) -> i32
          %b = "t.later"(%x, %x) : (i32, i32) -> i32
          %c = "t.later"(%x, %x) : (i32, i32) -> i32
          %d = "t.add"(%a, %b) : (i32, i32) -> i32
          %e = "t.add"(%c, %d) : (i32, i32) -> i32
          tfrt.return %e : i32
        }"#,
    ),
    (
        "handles",
        r#"func.func @main() -> (i32, i32, i32) {
          %x = tfrt.constant.i32 1
          %a = "t.later"(%x, %x) : (i32, i32) -> i32
          %b = "t.later"(%a, %x) : (i32, i32) -> i32
          %c = "t.either"(%a, %b) : (i32, i32) -> i32
          %d = "t.either"(%b, %c) : (i32, i32) -> i32
          %e = "t.add"(%c, %d) : (i32, i32) -> i32
          tfrt.return %e, %a, %d : i32, i32, i32
        }"#,
    ),
    (
        "any operand",
        r#"func.func @main() -> (!tfrt.chain, i32) {
          %x = tfrt.constant.i32 1
          %a = "t.later"(%x, %x) : (i32, i32) -> i32
          %b = "t.later"(%a, %x) : (i32, i32) -> i32
          %c = "tfrt_test.as_chain"(%a, %b) {bef.nonstrict} : (i32, i32) -> !tfrt.chain
          tfrt.return %c, %b : !tfrt.chain, i32
        }"#,
    ),
    (
        "calls",
        r#"func.func @f(%n: i32) -> i32 {
          %a = "t.later"(%n, %n) : (i32, i32) -> i32
          %b = "t.add"(%a, %n) : (i32, i32) -> i32
          tfrt.return %b : i32
        }
        func.func @main() -> i32 {
          %x = tfrt.constant.i32 1
          %a = tfrt.call @f(%x) : (i32) -> i32
          %p = "t.positive"(%a) : (i32) -> i1
          %b = tfrt.if %p, %a : (i32) -> i32 {
            %c = tfrt.call @f(%a) : (i32) -> i32
            tfrt.return %c : i32
          } else {
            tfrt.return %a : i32
          }
          %d = tfrt_test.do.async %b : (i32) -> (i32) {
            %e = "t.later"(%b, %b) : (i32, i32) -> i32
            tfrt.return %e : i32
          }
          %f = "t.add"(%d, %b) : (i32, i32) -> i32
          tfrt.return %f : i32
        }"#,
    ),
    (
        "loops",
        r#"func.func @body(%n: i32) -> (i32, i1) {
          %minus = tfrt.constant.i32 -1
          %m = "t.later"(%n, %minus) : (i32, i32) -> i32
          %p = "t.positive"(%m) : (i32) -> i1
          tfrt.return %m, %p : i32, i1
        }
        func.func @main() -> (i32, i32, i32) {
          %t = tfrt.constant.i1 true
          %n = tfrt.constant.i32 4
          %a = tfrt.while %t @body(%n) parallel_iterations(1) : (i32) -> (i32)
          %b = tfrt.while %t @body(%n) parallel_iterations(4) : (i32) -> (i32)
          %c = tfrt.repeat.i32 %n, %n : i32 {
            %d = "t.later"(%n, %n) : (i32, i32) -> i32
            tfrt.return %d : i32
          }
          tfrt.return %a, %b, %c : i32, i32, i32
        }"#,
    ),
];

fn queues() -> Vec<Arc<dyn ConcurrentWorkQueue>> {
    vec![
        Arc::new(SingleThreadedWorkQueue::new()),
        Arc::new(MultiThreadedWorkQueue::new(4, 4).unwrap()),
    ]
}

fn runtime(queue: &Arc<dyn ConcurrentWorkQueue>) -> Runtime {
    Runtime::builder()
        .kernels(register)
        .queue(queue.clone())
        .output(Output::new(io::sink(), io::sink()))
        .stuck(Stuck::FAIL)
        .build()
}

fn main_of(runtime: &Runtime, name: &str, text: &str) -> Program {
    runtime
        .compile(name, text)
        .unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn context(runtime: &Runtime, plan: &Arc<Plan>) -> Context {
    runtime.context_builder().data(plan.clone()).build()
}

/// Runs `main` with a fault, and gives its results when everything has come to rest.
fn run(runtime: &Runtime, program: &Program, plan: &Arc<Plan>) -> Vec<AnyAsyncValue> {
    let context = context(runtime, plan);
    let call = program.function("main").unwrap().call(&context, ());
    let results = call.wait_each().unwrap();
    runtime.quiesce().unwrap();
    plan.kept.lock().unwrap().clear();
    runtime.quiesce().unwrap();
    results
}

/// Waits until no more cells live than before: the last ones may go a little after the results.
///
/// Looks are counted, not seconds: a machine may stand still for some.
fn expect_no_leak(before: u64, what: &dyn std::fmt::Debug) {
    for _ in 0..10_000 {
        if counters().live_cells == before {
            return;
        }
        thread::sleep(Duration::from_millis(1));
    }
    let now = counters().live_cells;
    assert_eq!(now, before, "{what:?}: cells live now, and before");
}

/// Has a fault at every kernel of every program, one after the other, on every queue.
fn at_every_step(fault: Fault, look: impl Fn(&[AnyAsyncValue], &str)) {
    let _alone = alone();
    for queue in queues() {
        let runtime = runtime(&queue);
        for (name, text) in PROGRAMS {
            let program = main_of(&runtime, name, text);
            let whole = Plan::new(fault, usize::MAX);
            let results = run(&runtime, &program, &whole);
            assert!(results.iter().all(|result| result.error().is_none()));
            let n_kernels = whole.started.load(Ordering::SeqCst);
            drop((results, whole));
            let before = counters().live_cells;
            for at in 0..n_kernels {
                let what = format!("{} {name} {fault:?} at {at}", queue.name());
                let plan = Plan::new(fault, at);
                let begin = Instant::now();
                let results = run(&runtime, &program, &plan);
                assert!(begin.elapsed() < Duration::from_secs(20), "{what}");
                assert!(results.iter().all(AnyAsyncValue::is_settled), "{what}");
                // Kernels that looked just before may start on other threads.
                let n_racing = if queue.parallelism() > 1 { 4 } else { 0 };
                assert!(plan.late.load(Ordering::SeqCst) <= n_racing, "{what}");
                look(&results, &what);
                drop((results, plan));
                expect_no_leak(before, &what);
            }
        }
    }
}

fn codes(results: &[AnyAsyncValue]) -> Vec<ErrorCode> {
    let errors = results.iter().filter_map(AnyAsyncValue::error);
    errors.map(Error::code).collect()
}

#[test]
fn cancelled_by_any_kernel_settles_everything_and_starts_nothing() {
    at_every_step(Fault::Cancel, |results, what| {
        assert!(
            codes(results)
                .iter()
                .all(|code| *code == ErrorCode::Cancelled),
            "{what}"
        );
    });
}

#[test]
fn cancelled_from_another_thread_settles_everything_and_starts_nothing() {
    at_every_step(Fault::CancelElsewhere, |results, what| {
        assert!(
            codes(results)
                .iter()
                .all(|code| *code == ErrorCode::Cancelled),
            "{what}"
        );
    });
}

#[test]
fn panic_in_any_kernel_fails_what_depends_on_it() {
    std::panic::set_hook(Box::new(|_| {}));
    at_every_step(Fault::Panic, |results, what| {
        for error in results.iter().filter_map(AnyAsyncValue::error) {
            assert_eq!(error.code(), ErrorCode::Internal, "{what}");
            assert_eq!(error.message(), "the kernel panicked: planned", "{what}");
            assert!(error.location().is_some(), "{what}");
        }
    });
}

#[test]
fn failure_of_any_kernel_fails_what_depends_on_it() {
    at_every_step(Fault::Fail, |results, what| {
        for error in results.iter().filter_map(AnyAsyncValue::error) {
            assert_eq!(error.message(), "planned", "{what}");
        }
    });
}

#[test]
fn promise_that_any_kernel_drops_fails_what_depends_on_it() {
    at_every_step(Fault::Drop, |results, what| {
        for error in results.iter().filter_map(AnyAsyncValue::error) {
            let dropped = "kernel 't.later' dropped its promise without resolving it";
            assert!(["planned", dropped].contains(&error.message()), "{what}");
            assert!(error.kernel().is_some(), "{what}");
        }
    });
}

#[test]
fn any_kernel_that_never_resolves_is_found() {
    at_every_step(Fault::Never, |results, what| {
        for error in results.iter().filter_map(AnyAsyncValue::error) {
            let message = error.message();
            let stuck = message.starts_with("the request is stuck")
                && message.contains("kernel 't.later' at ");
            assert!(stuck || message == "planned", "{what}: {message}");
        }
    });
}

#[test]
fn kernel_that_cancels_and_never_resolves_leaves_nothing_to_wait_for() {
    fn give_up(context: &ExecutionContext) -> AsyncValue<i32> {
        let (promise, value) = AsyncValue::pending();
        plan(context).kept.lock().unwrap().push(promise);
        context.request().cancel();
        value
    }
    let _alone = alone();
    for queue in queues() {
        let runtime = Runtime::builder()
            .kernels(|registry| {
                registry.add("t.give_up", give_up);
            })
            .queue(queue)
            .build();
        let text = r#"func.func @main() -> i32 {
          %x = "t.give_up"() : () -> i32
          tfrt.return %x : i32
        }"#;
        let program = main_of(&runtime, "give_up", text);
        let results = run(&runtime, &program, &Plan::new(Fault::Fail, usize::MAX));
        assert_eq!(codes(&results), [ErrorCode::Cancelled]);
    }
}

#[test]
fn deadline_fails_kernels_that_never_resolve_on_a_busy_host() {
    let _alone = alone();
    for queue in queues() {
        let runtime = runtime(&queue);
        let before = counters().live_cells;
        let program = main_of(&runtime, PROGRAMS[0].0, PROGRAMS[0].1);
        let plan = Plan::new(Fault::Never, 1);
        let builder = runtime.context_builder().data(plan.clone());
        let context = builder.deadline(Duration::from_millis(5)).build();
        let external = context.request().external();
        let results = program.function("main").unwrap().call(&context, ());
        let results = results.wait_each().unwrap();
        assert_eq!(codes(&results), [ErrorCode::DeadlineExceeded; 2]);
        plan.kept.lock().unwrap().clear();
        drop((context, results, external, program, plan));
        expect_no_leak(before, &"deadline");
    }
}

#[test]
fn promise_in_the_data_of_a_cancelled_request_does_not_keep_it_alive() {
    struct Kept(Mutex<Vec<Promise<i32>>>);
    fn keep(context: &ExecutionContext) -> AsyncValue<i32> {
        let (promise, value) = AsyncValue::pending();
        let kept = context.request().data::<Kept>().unwrap();
        kept.0.lock().unwrap().push(promise);
        value
    }
    let _alone = alone();
    let runtime = Runtime::builder()
        .kernels(|registry| {
            registry.add("t.keep", keep);
        })
        .stuck(Stuck::FAIL)
        .build();
    let text = r#"func.func @main() -> i32 {
      %x = "t.keep"() : () -> i32
      tfrt.return %x : i32
    }"#;
    let program = main_of(&runtime, "keep", text);
    let before = counters().live_cells;
    let context = runtime
        .context_builder()
        .data(Kept(Mutex::default()))
        .build();
    let call = program.function("main").unwrap().call(&context, ());
    context.cancel();
    assert_eq!(codes(&call.wait_each().unwrap()), [ErrorCode::Cancelled]);
    drop(context);
    expect_no_leak(before, &"kept");
}

#[test]
fn everything_may_be_dropped_half_way() {
    let _alone = alone();
    for queue in queues() {
        let outer = counters().live_cells;
        for round in 0..40 {
            for (name, text) in PROGRAMS {
                let runtime = runtime(&queue);
                let program = main_of(&runtime, name, text);
                let plan = Plan::new(Fault::Fail, usize::MAX);
                let context = context(&runtime, &plan);
                let call = program.function("main").unwrap().spawn(&context, ());
                match round % 4 {
                    0 => drop(call),
                    1 => drop((context, program, call)),
                    2 => drop((runtime, context, program)),
                    _ => {
                        context.cancel();
                        drop((runtime, context, program, call));
                    }
                }
            }
        }
        queue.quiesce().unwrap();
        expect_no_leak(outer, &queue.name());
    }
}

#[test]
fn ten_thousand_panicking_kernels_leave_all_workers() {
    std::panic::set_hook(Box::new(|_| {}));
    let _alone = alone();
    let queue: Arc<dyn ConcurrentWorkQueue> = Arc::new(MultiThreadedWorkQueue::new(4, 4).unwrap());
    let runtime = runtime(&queue);
    let before = counters().live_cells;
    let program = main_of(&runtime, PROGRAMS[1].0, PROGRAMS[1].1);
    let function = program.function("main").unwrap();
    let mut calls = Vec::new();
    for n in 0..10_000 {
        let plan = Plan::new(Fault::Panic, n % 5);
        calls.push(function.spawn(&context(&runtime, &plan), ()));
    }
    for call in calls {
        assert_eq!(
            call.wait().unwrap_err().message(),
            "the kernel panicked: planned"
        );
    }
    let plan = Plan::new(Fault::Fail, usize::MAX);
    let sum = function
        .spawn(&context(&runtime, &plan), ())
        .wait()
        .unwrap();
    assert_eq!(*sum.get::<i32>(0).unwrap(), 6);
    // Every worker is there: as many tasks as workers run at one time.
    let barrier = Arc::new(std::sync::Barrier::new(4));
    for _ in 0..3 {
        let barrier = barrier.clone();
        queue.add_task(tfrt::asynchronous::queue::Task::new(move || {
            barrier.wait();
        }));
    }
    let (promise, all) = AsyncValue::<i32>::pending();
    queue.add_task(tfrt::asynchronous::queue::Task::new(move || {
        barrier.wait();
        promise.resolve(1);
    }));
    let until = Instant::now() + Duration::from_secs(20);
    while !all.is_settled() {
        assert!(Instant::now() < until, "a worker is missing");
        thread::sleep(Duration::from_millis(1));
    }
    drop((sum, all, program, function));
    queue.quiesce().unwrap();
    expect_no_leak(before, &"panics");
}

#[test]
fn requests_that_only_take_their_time_do_not_count_as_stuck() {
    let _alone = alone();
    let text = r#"func.func @main() -> (i32, i32) {
      %x = tfrt.constant.i32 3
      %us = tfrt.constant.i32 30000
      %a = "tfrt_test.external"(%x) : (i32) -> i32
      %c = "tfrt_test.blocking.usleep"(%us) : (i32) -> !tfrt.chain
      %d = "tfrt_test.async_copy.with_delay.i32"(%a) : (i32) -> i32
      %e = "tfrt_test.async_add.i32"(%a, %d) : (i32, i32) -> i32
      tfrt.return %a, %e : i32, i32
    }"#;
    for queue in queues() {
        let runtime = runtime(&queue);
        let program = main_of(&runtime, "slow", text);
        let function = program.function("main").unwrap();
        let calls: Vec<_> = (0..100)
            .map(|_| function.call(&runtime.context(), ()))
            .collect();
        for call in calls {
            let values = call.wait().unwrap();
            assert_eq!(*values.get::<i32>(1).unwrap(), 6);
        }
        runtime.quiesce().unwrap();
    }
}

#[test]
fn caller_may_take_his_time_to_bring_an_argument() {
    let _alone = alone();
    for queue in queues() {
        let runtime = runtime(&queue);
        let text = r#"func.func @main(%a: i32) -> i32 {
          %b = tfrt.call @f(%a) : (i32) -> i32
          tfrt.return %b : i32
        }
        func.func @f(%a: i32) -> i32 {
          %b = tfrt.add.i32 %a, %a
          tfrt.return %b : i32
        }"#;
        let program = main_of(&runtime, "late", text);
        let (promise, argument) = AsyncValue::<i32>::pending();
        let arguments = vec![argument.into_any()];
        let call = program
            .function("main")
            .unwrap()
            .call(&runtime.context(), arguments);
        // The watch has looked several times when the argument comes.
        thread::sleep(Duration::from_millis(200));
        promise.resolve(21);
        assert_eq!(*call.wait().unwrap().get::<i32>(0).unwrap(), 42);
    }
}

#[test]
fn stuck_request_is_found_within_a_tenth_of_a_second() {
    let _alone = alone();
    let text = r#"func.func @main() -> i32 {
      %a = "tfrt_test.never"() : () -> i32
      tfrt.return %a : i32
    }"#;
    for queue in queues() {
        let runtime = runtime(&queue);
        let program = main_of(&runtime, "never", text);
        let function = program.function("main").unwrap();
        let try_it = || {
            let begin = Instant::now();
            let error = function.call(&runtime.context(), ()).wait().unwrap_err();
            assert!(error.message().contains("kernel 'tfrt_test.never' at "));
            begin.elapsed()
        };
        // The best of some, since others want the processor, too.
        let best = (0..5).map(|_| try_it()).min().unwrap();
        assert!(best < Duration::from_millis(100), "{best:?}");
    }
}

#[test]
fn stuck_request_names_some_of_its_many_kernels() {
    let _alone = alone();
    let runtime = Runtime::builder().build();
    let nevers: String = (0..1000)
        .map(|n| format!("%x{n} = \"tfrt_test.never\"() : () -> i32\n"))
        .collect();
    let names = |text: &str| (0..1000).map(|n| format!("{text}{n}")).collect::<Vec<_>>();
    let text = format!(
        "func.func @main() -> !tfrt.chain {{\n{nevers}%c = \"tfrt_test.as_chain\"({}) : ({}) -> !tfrt.chain\ntfrt.return %c : !tfrt.chain\n}}",
        names("%x").join(", "),
        vec!["i32"; 1000].join(", ")
    );
    let program = main_of(&runtime, "never", &text);
    let call = program
        .function("main")
        .unwrap()
        .call(&runtime.context(), ());
    let error = call.wait().unwrap_err();
    assert!(error.message().ends_with(" and 984 more never resolved"));
}

#[test]
fn cancelling_one_request_never_touches_another() {
    let _alone = alone();
    for queue in queues() {
        let runtime = runtime(&queue);
        let programs: Vec<Program> = PROGRAMS
            .iter()
            .map(|(name, text)| main_of(&runtime, name, text))
            .collect();
        for at in 0..8 {
            for program in &programs {
                let function = program.function("main").unwrap();
                let (bad, good) = (
                    Plan::new(Fault::CancelElsewhere, at),
                    Plan::new(Fault::Fail, usize::MAX),
                );
                let bad = function.spawn(&context(&runtime, &bad), ());
                let good = function.spawn(&context(&runtime, &good), ());
                let good = good.wait_each().unwrap();
                assert_eq!(codes(&good), []);
                let bad = codes(&bad.wait_each().unwrap());
                assert!(bad.iter().all(|code| *code == ErrorCode::Cancelled));
            }
        }
    }
}

#[test]
fn one_function_may_be_called_from_many_threads() {
    let _alone = alone();
    let queue: Arc<dyn ConcurrentWorkQueue> = Arc::new(MultiThreadedWorkQueue::new(4, 4).unwrap());
    let runtime = runtime(&queue);
    let before = counters().live_cells;
    let programs: Vec<(Program, Vec<i32>)> = PROGRAMS
        .iter()
        .filter(|(name, _)| *name != "any operand")
        .map(|(name, text)| {
            let program = main_of(&runtime, name, text);
            let results = run(&runtime, &program, &Plan::new(Fault::Fail, usize::MAX));
            let values = results.iter().map(|value| *value.get::<i32>().unwrap());
            (program, values.collect())
        })
        .collect();
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..100 {
                    for (program, expected) in &programs {
                        let plan = Plan::new(Fault::Fail, usize::MAX);
                        let context = context(&runtime, &plan);
                        let call = program.function("main").unwrap().call(&context, ());
                        let values = call.wait().unwrap();
                        for (index, expected) in expected.iter().enumerate() {
                            assert_eq!(values.get::<i32>(index).unwrap(), expected);
                        }
                    }
                }
            });
        }
    });
    drop(programs);
    queue.quiesce().unwrap();
    expect_no_leak(before, &"threads");
}

#[test]
fn any_operand_starts_a_marked_kernel_whatever_it_is() {
    let _alone = alone();
    let text = r#"func.func @main(%a: i32, %b: i32) -> !tfrt.chain {
      %c = "tfrt_test.as_chain"(%a, %b) {bef.nonstrict} : (i32, i32) -> !tfrt.chain
      tfrt.return %c : !tfrt.chain
    }"#;
    for queue in queues() {
        let runtime = runtime(&queue);
        let before = counters().live_cells;
        let program = main_of(&runtime, "marked", text);
        let function = program.function("main").unwrap();
        let error = || AnyAsyncValue::from_error(Error::aborted("argument"));
        let (promise, pending) = AnyAsyncValue::pending();
        // A value beside one to come, an error beside one to come, two errors.
        for arguments in [
            vec![AnyAsyncValue::new(1), pending.clone()],
            vec![pending.clone(), error()],
            vec![error(), error()],
        ] {
            let call = function.call(&runtime.context(), arguments);
            let results = call.wait_each().unwrap();
            assert_eq!(codes(&results), []);
        }
        // Nothing is there: the deadline is all that ends it.
        let builder = runtime.context_builder();
        let context = builder.deadline(Duration::from_millis(5)).build();
        let call = function.call(&context, vec![pending.clone(), pending.clone()]);
        let results = call.wait_each().unwrap();
        assert_eq!(codes(&results), [ErrorCode::DeadlineExceeded]);
        // A cancelled request runs no kernel, whatever is there.
        let context = runtime.context();
        context.cancel();
        let call = function.call(&context, vec![AnyAsyncValue::new(1), pending.clone()]);
        assert_eq!(codes(&call.wait_each().unwrap()), [ErrorCode::Cancelled]);
        promise.resolve(1);
        drop((results, pending, context, program, function));
        expect_no_leak(before, &"marked");
    }
}

#[test]
fn limits_end_programs_that_would_not() {
    let _alone = alone();
    let recursion = "func.func @main() -> i32 {
      %a = tfrt.call @main() : () -> i32
      %b = tfrt.call @main() : () -> i32
      %c = tfrt.add.i32 %a, %b
      tfrt.return %c : i32
    }";
    for queue in queues() {
        for limits in [
            Limits {
                max_steps: Some(100_000),
                ..Limits::default()
            },
            Limits {
                max_memory: Some(1 << 20),
                max_steps: Some(1_000_000),
                ..Limits::default()
            },
        ] {
            let before = counters().live_cells;
            let runtime = Runtime::builder()
                .queue(queue.clone())
                .limits(limits)
                .build();
            let program = main_of(&runtime, "recursion", recursion);
            let call = program
                .function("main")
                .unwrap()
                .call(&runtime.context(), ());
            let error = call.wait().unwrap_err();
            assert_eq!(error.code(), ErrorCode::ResourceExhausted, "{error}");
            runtime.quiesce().unwrap();
            drop((program, runtime));
            expect_no_leak(before, &limits);
        }
    }
}
