//! Order that nobody promised: workers that yield at random, and handles that are dropped while kernels run.
//!
//! Whatever the order, values and errors are those of one thread, and nothing is left afterwards.

use std::cell::Cell;
use std::mem;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tfrt::asynchronous::counters;
use tfrt::asynchronous::queue::{Activity, AwaitError, QueueStats, Task};
use tfrt::kernel::KernelRegistry;
use tfrt::{
    AnyAsyncValue, AsyncValue, Call, ConcurrentWorkQueue, Context, Error, ExecutionContext,
    MultiThreadedWorkQueue, Program, Runtime, SingleThreadedWorkQueue,
};

use crate::alone;

/// Workers of another queue, which yield at random before and after each task.
struct Yielding(MultiThreadedWorkQueue);

/// Gives the processor away, now and then several times.
fn stagger() {
    thread_local! {
        static STATE: Cell<u64> = const { Cell::new(0x9e37_79b9_7f4a_7c15) };
    }
    let state = STATE
        .get()
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1);
    STATE.set(state);
    for _ in 0..(state >> 61) {
        thread::yield_now();
    }
}

fn staggered(task: Task) -> Task {
    Task::new(move || {
        stagger();
        task.run();
        stagger();
    })
}

impl ConcurrentWorkQueue for Yielding {
    fn name(&self) -> String {
        format!("yielding {}", self.0.name())
    }

    fn add_task(&self, task: Task) {
        self.0.add_task(staggered(task));
    }

    fn add_blocking_task(&self, task: Task, allow_queuing: bool) -> Result<(), Task> {
        self.0.add_blocking_task(staggered(task), allow_queuing)
    }

    fn await_until(
        &self,
        values: &[AnyAsyncValue],
        deadline: Option<Instant>,
    ) -> Result<bool, AwaitError> {
        self.0.await_until(values, deadline)
    }

    fn quiesce(&self) -> Result<(), AwaitError> {
        self.0.quiesce()
    }

    fn parallelism(&self) -> usize {
        self.0.parallelism()
    }

    fn is_worker_thread(&self) -> bool {
        self.0.is_worker_thread()
    }

    fn activity(&self) -> Activity {
        self.0.activity()
    }

    fn stats(&self) -> QueueStats {
        self.0.stats()
    }
}

/// The handles of a run, which the `at`-th kernel drops.
#[derive(Default)]
struct Handles {
    runtime: Option<Runtime>,
    program: Option<Program>,
    context: Option<Context>,
    call: Option<Call>,
    queue: Option<Arc<dyn ConcurrentWorkQueue>>,
}

impl Handles {
    /// Takes all when the results of the call are there, if it is among them.
    fn take_if_over(&mut self) -> Handles {
        let is_settled = |call: &Call| call.results().iter().all(AnyAsyncValue::is_settled);
        match self.call.as_ref().is_none_or(is_settled) {
            true => mem::take(self),
            false => Handles::default(),
        }
    }
}

/// When which handles are dropped: request data.
struct Plan {
    at: usize,
    started: AtomicUsize,
    handles: Mutex<Handles>,
}

impl Plan {
    fn new(at: usize) -> Arc<Plan> {
        Arc::new(Plan {
            at,
            started: AtomicUsize::new(0),
            handles: Mutex::default(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Handles> {
        self.handles.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A kernel starts.
fn step(context: &ExecutionContext) {
    let Some(plan) = context.request().data::<Arc<Plan>>() else {
        return;
    };
    if plan.started.fetch_add(1, Ordering::SeqCst) == plan.at {
        let handles = mem::take(&mut *plan.lock());
        drop(handles);
    }
}

/// `%c = t.later(%a, %b)`, from a task.
fn later(a: i32, b: i32, context: &ExecutionContext) -> AsyncValue<i32> {
    step(context);
    context.enqueue(move || Ok(a.wrapping_mul(31).wrapping_add(b)))
}

/// `%c = t.add(%a, %b)`, at once.
fn add(a: i32, b: i32, context: &ExecutionContext) -> i32 {
    step(context);
    a.wrapping_add(b)
}

/// `%b = t.fail(%a)`, from a task.
fn fail(a: i32, context: &ExecutionContext) -> AsyncValue<i32> {
    step(context);
    context.enqueue(move || Err::<i32, _>(Error::aborted(format!("failed at {a}"))))
}

/// `%b = t.panic(%a)`, from a task.
fn panic(a: i32, context: &ExecutionContext) -> AsyncValue<i32> {
    step(context);
    context.enqueue(move || -> Result<i32, Error> { panic!("panicked at {a}") })
}

fn register(registry: &mut KernelRegistry) {
    registry
        .add("t.later", later)
        .add("t.add", add)
        .add("t.fail", fail)
        .add("t.panic", panic);
}

const PROGRAMS: &[&str] = &[
    r#"func.func @main() -> (i32, i32) {
      %x = tfrt.constant.i32 1
      %y = tfrt.constant.i32 2
      %a = "t.later"(%x, %y) : (i32, i32) -> i32
      %b = "t.later"(%y, %x) : (i32, i32) -> i32
      %c = "t.later"(%a, %b) : (i32, i32) -> i32
      %d = "t.later"(%b, %a) : (i32, i32) -> i32
      %e = "t.add"(%c, %d) : (i32, i32) -> i32
      tfrt.return %e, %c : i32, i32
    }"#,
    // Of several errors it is always the same that wins.
    r#"func.func @main() -> (i32, i32, i32) {
      %x = tfrt.constant.i32 1
      %y = tfrt.constant.i32 2
      %a = "t.fail"(%x) : (i32) -> i32
      %b = "t.fail"(%y) : (i32) -> i32
      %c = "t.later"(%a, %b) : (i32, i32) -> i32
      %d = "t.later"(%b, %a) : (i32, i32) -> i32
      %e = "t.panic"(%x) : (i32) -> i32
      %f = "t.add"(%e, %d) : (i32, i32) -> i32
      tfrt.return %c, %d, %f : i32, i32, i32
    }"#,
    r#"func.func @f(%n: i32) -> i32 {
      %a = "t.later"(%n, %n) : (i32, i32) -> i32
      %b = "t.add"(%a, %n) : (i32, i32) -> i32
      tfrt.return %b : i32
    }
    func.func @main() -> (i32, i32) {
      %x = tfrt.constant.i32 1
      %p = tfrt.constant.i1 true
      %n = tfrt.constant.i32 5
      %a = tfrt.call @f(%x) : (i32) -> i32
      %b = tfrt.if %p, %a : (i32) -> i32 {
        %c = tfrt.call @f(%a) : (i32) -> i32
        tfrt.return %c : i32
      } else {
        tfrt.return %a : i32
      }
      %d = tfrt.repeat.i32 %n, %b : i32 {
        %e = tfrt.call @f(%b) : (i32) -> i32
        %g = "t.later"(%e, %b) : (i32, i32) -> i32
        tfrt.return %g : i32
      }
      tfrt.return %d, %b : i32, i32
    }"#,
];

fn runtime(queue: &Arc<dyn ConcurrentWorkQueue>) -> Runtime {
    Runtime::builder()
        .kernels(register)
        .queue(queue.clone())
        .build()
}

/// Returns the results of a program, as text.
fn outcome(runtime: &Runtime, program: &Program) -> Vec<String> {
    let main = program.function("main").unwrap();
    let results = main.spawn(&runtime.context(), ()).wait_each().unwrap();
    let shown = results.iter().map(|result| match result.error() {
        Some(error) => format!("{:?} {error:?}", error.code()),
        None => format!("{:?}", result.get::<i32>()),
    });
    shown.collect()
}

fn expect_no_leak(before: u64, what: &str) {
    let until = Instant::now() + Duration::from_secs(60);
    while counters().live_cells != before {
        let now = counters().live_cells;
        assert!(
            Instant::now() < until,
            "{what}: {before} cells before, {now} now"
        );
        thread::sleep(Duration::from_micros(100));
    }
}

#[test]
fn workers_that_yield_change_neither_values_nor_errors() {
    std::panic::set_hook(Box::new(|_| {}));
    let _alone = alone();
    let single: Arc<dyn ConcurrentWorkQueue> = Arc::new(SingleThreadedWorkQueue::new());
    let plain = runtime(&single);
    for text in PROGRAMS {
        let program = plain.compile("p.mlir", *text).unwrap();
        let expected = outcome(&plain, &program);
        for n_workers in [1, 2, 4, 16] {
            let queue: Arc<dyn ConcurrentWorkQueue> =
                Arc::new(Yielding(MultiThreadedWorkQueue::new(n_workers, 2).unwrap()));
            let runtime = runtime(&queue);
            let program = runtime.compile("p.mlir", *text).unwrap();
            let before = counters().live_cells;
            for _ in 0..200 {
                assert_eq!(outcome(&runtime, &program), expected, "{n_workers} workers");
            }
            runtime.quiesce().unwrap();
            expect_no_leak(before, &queue.name());
        }
    }
}

/// Puts a handle among those that a kernel drops, or those that go when the run is over.
fn put<T>(is_dropped: bool, handle: T, dropped: &mut Option<T>, kept: &mut Option<T>) {
    *(if is_dropped { dropped } else { kept }) = Some(handle);
}

/// Runs a program whose `at`-th kernel drops the handles of a mask; returns whether there was such a kernel.
fn dropped_at(text: &str, queue: Arc<dyn ConcurrentWorkQueue>, at: usize, mask: u32) -> bool {
    let runtime = runtime(&queue);
    let program = runtime.compile("p.mlir", text).unwrap();
    let plan = Plan::new(at);
    let context = runtime.context_builder().data(plan.clone()).build();
    let main = program.function("main").unwrap();
    let mut kept = Handles::default();
    {
        // A kernel that has something to drop waits until it is there.
        let dropped = &mut *plan.lock();
        let call = main.spawn(&context, ());
        drop(main);
        let is_dropped = |bit: u32| mask & (1 << bit) != 0;
        put(
            is_dropped(0),
            runtime,
            &mut dropped.runtime,
            &mut kept.runtime,
        );
        put(
            is_dropped(1),
            program,
            &mut dropped.program,
            &mut kept.program,
        );
        put(
            is_dropped(2),
            context,
            &mut dropped.context,
            &mut kept.context,
        );
        put(is_dropped(3), call, &mut dropped.call, &mut kept.call);
        put(is_dropped(4), queue, &mut dropped.queue, &mut kept.queue);
    }
    // Whoever still has the call waits for it; else nobody needs the values, and the run ends by itself.
    if let Some(call) = kept.call.take() {
        drop(call.wait_each());
    }
    drop(kept);
    let until = Instant::now() + Duration::from_secs(60);
    while Arc::strong_count(&plan) > 1 {
        // If no kernel was the one, what it would have dropped holds the request, and that the plan.
        let left = plan.lock().take_if_over();
        drop(left);
        assert!(Instant::now() < until, "the request is still there");
        thread::yield_now();
    }
    plan.started.load(Ordering::SeqCst) > at
}

#[test]
fn handles_may_be_dropped_by_any_kernel() {
    std::panic::set_hook(Box::new(|_| {}));
    let _alone = alone();
    let before = counters().live_cells;
    for (index, text) in PROGRAMS.iter().enumerate() {
        for mask in 1..32 {
            for at in 0.. {
                // The queue may go with the last handle, on one of its own workers.
                let queue = Arc::new(MultiThreadedWorkQueue::new(2, 1).unwrap());
                let was_there = dropped_at(text, queue, at, mask);
                expect_no_leak(before, &format!("program {index}, mask {mask}, at {at}"));
                if !was_there {
                    break;
                }
            }
        }
    }
}
