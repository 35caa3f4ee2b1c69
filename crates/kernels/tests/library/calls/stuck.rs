//! Tests of the watch for stuck requests, by a queue that controls what the watch sees: what counts as progress, and
//! which requests fail.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use tfrt_async::queue::{
    Activity, AwaitError, ConcurrentWorkQueue, LocalTask, QueueStats, SingleThreadedWorkQueue, Task,
};
use tfrt_async::{AsyncValue, Promise};
use tfrt_host::kernel::{Call, Callee, KernelRegistry, Step};
use tfrt_host::{AnyAsyncValue, ExecutionContext, HostContext, RequestContext, Stuck};

use super::main_of;

/// A single-threaded queue that counts the looks of the watch.
struct Observed {
    queue: SingleThreadedWorkQueue,
    n_looks: AtomicUsize,
    /// The number of tasks that it reports beyond those there are.
    in_flight: AtomicUsize,
    /// Whether it reports progress between any two looks.
    is_moving: AtomicBool,
    epoch: AtomicU64,
}

impl Observed {
    fn new() -> Arc<Self> {
        Arc::new(Observed {
            queue: SingleThreadedWorkQueue::new(),
            n_looks: AtomicUsize::new(0),
            in_flight: AtomicUsize::new(0),
            is_moving: AtomicBool::new(false),
            epoch: AtomicU64::new(0),
        })
    }

    /// Waits until the watch has looked several times, and has finished the last look but one.
    fn wait_for_looks(&self) {
        let enough = self.n_looks.load(Ordering::Acquire) + 5;
        let latest = Instant::now() + Duration::from_secs(30);
        while self.n_looks.load(Ordering::Acquire) < enough {
            assert!(Instant::now() < latest, "nobody looks");
            thread::yield_now();
        }
    }
}

impl ConcurrentWorkQueue for Observed {
    fn name(&self) -> String {
        self.queue.name()
    }
    fn add_task(&self, task: Task) {
        self.queue.add_task(task);
    }
    fn add_local_task(&self, task: LocalTask<'_>) {
        self.queue.add_local_task(task);
    }
    fn take_local_task(&self, owner: *const (), take: &mut dyn FnMut(LocalTask<'_>)) {
        self.queue.take_local_task(owner, take);
    }
    fn share_local_tasks(&self) {
        self.queue.share_local_tasks();
    }
    fn run_here(&self, work: &mut dyn FnMut()) {
        self.queue.run_here(work);
    }
    fn add_blocking_task(&self, task: Task, _: bool) -> Result<(), Task> {
        Err(task)
    }
    fn await_until(
        &self,
        values: &[AnyAsyncValue],
        deadline: Option<Instant>,
    ) -> Result<bool, AwaitError> {
        self.queue.await_until(values, deadline)
    }
    fn quiesce(&self) -> Result<(), AwaitError> {
        self.queue.quiesce()
    }
    fn parallelism(&self) -> usize {
        self.queue.parallelism()
    }
    fn is_worker_thread(&self) -> bool {
        self.queue.is_worker_thread()
    }
    fn activity(&self) -> Activity {
        let mut activity = self.queue.activity();
        activity.in_flight += self.in_flight.load(Ordering::Relaxed);
        if self.is_moving.load(Ordering::Relaxed) {
            self.epoch.fetch_add(1, Ordering::Relaxed);
        }
        activity.epoch += self.epoch.load(Ordering::Relaxed);
        self.n_looks.fetch_add(1, Ordering::AcqRel);
        activity
    }
    fn stats(&self) -> QueueStats {
        self.queue.stats()
    }
}

/// A value that panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("a bomb was dropped");
    }
}

/// A host that looks every millisecond. Its kernel `t.to_come` returns promised values, `t.looks` takes so long that
/// the watch looks several times.
struct Host {
    host: HostContext,
    queue: Arc<Observed>,
    promises: Arc<Mutex<Vec<Promise<i32>>>>,
}

impl Host {
    fn new(always_counts: bool) -> Host {
        let (queue, promises) = (Observed::new(), Arc::<Mutex<Vec<_>>>::default());
        let mut registry = KernelRegistry::new();
        tfrt_kernels::register_all(&mut registry);
        let (observed, kept) = (queue.clone(), promises.clone());
        registry
            .add("t.to_come", move |_: i32| -> AsyncValue<i32> {
                let (promise, value) = AsyncValue::pending();
                kept.lock().unwrap().push(promise);
                value
            })
            .add("t.leaves", |_: i32, body: Callee| {
                let bomb = Bomb;
                // It fails, and is dropped with what was to come then.
                Step::call(Call::new(body, Vec::new()), move |values| {
                    let _bomb = &bomb;
                    Step::done(values)
                })
            })
            .add("t.looks", move |x: i32| {
                // But for this thread nothing goes on.
                observed.in_flight.store(0, Ordering::Relaxed);
                observed.wait_for_looks();
                observed.in_flight.store(1, Ordering::Relaxed);
                x
            });
        let host = HostContext::builder(registry)
            .queue(queue.clone())
            .dynamic_order(always_counts)
            .stuck(Stuck::Fail(Duration::from_millis(1)))
            .build();
        Host {
            host,
            queue,
            promises,
        }
    }

    /// Calls `@main` in a request.
    fn begin(
        &self,
        text: &str,
        request: &Arc<RequestContext>,
        argument: AnyAsyncValue,
    ) -> Vec<AnyAsyncValue> {
        let main = main_of(&self.host, text);
        main.execute(&ExecutionContext::new(request), vec![argument])
    }

    /// Calls `@main` with 1 in a request of its own.
    fn call(&self, text: &str) -> Vec<AnyAsyncValue> {
        let request = RequestContext::new(&self.host);
        self.begin(text, &request, AnyAsyncValue::new(1))
    }

    /// Waits until a call is found to be stuck, and returns what its results say of kernels.
    fn found_stuck(&self, results: Vec<AnyAsyncValue>) -> Vec<String> {
        let latest = Instant::now() + Duration::from_secs(30);
        let is_found = self.queue.await_until(&results, Some(latest));
        assert!(is_found.unwrap(), "it is not found to be stuck");
        let results = results.into_iter().map(AnyAsyncValue::settled);
        let message = |result: AnyAsyncValue| {
            let error = result.error().expect("it is stuck");
            let message = error.message().strip_prefix(
                "the request is stuck: nothing can run and nothing is in flight, but ",
            );
            let kernels = message.and_then(|message| message.strip_suffix(" never resolved"));
            kernels.expect("it is stuck").to_owned()
        };
        results.map(message).collect()
    }
}

impl Drop for Host {
    /// Breaks a cycle: kernels have the promises, and whoever waits for these has the host with its kernels.
    fn drop(&mut self) {
        let promises = self
            .promises
            .lock()
            .map(|mut kept| std::mem::take(&mut *kept));
        drop(promises);
        let _ = self.queue.quiesce();
    }
}

const STUCK: &str = "func.func @main(%x: i32) -> i32 {
  %p = \"t.to_come\"(%x) : (i32) -> i32
  %a = tfrt.add.i32 %p, %x
  tfrt.return %a : i32
}
";

const AT_TWO: &str = "kernel 't.to_come' at main.mlir:2:8";

#[test]
fn nothing_is_stuck_as_long_as_anything_moves_or_is_to_come() {
    let host = Host::new(false);
    let queue = &host.queue;
    for what in ["moves", "tasks", "timers", "elsewhere"] {
        let timers = host.host.timers().clone();
        let timer = (what == "timers").then(|| timers.schedule_after(Duration::MAX, || ()));
        let request = RequestContext::new(&host.host);
        let guard = (what == "elsewhere").then(|| request.external());
        queue.is_moving.store(what == "moves", Ordering::Relaxed);
        let in_flight = usize::from(what == "tasks");
        queue.in_flight.store(in_flight, Ordering::Relaxed);
        let results = host.begin(STUCK, &request, AnyAsyncValue::new(1));
        queue.wait_for_looks();
        assert!(!results[0].is_settled(), "{what}");
        drop(guard);
        if let Some(timer) = timer {
            assert!(timer.cancel());
        }
        queue.is_moving.store(false, Ordering::Relaxed);
        queue.in_flight.store(0, Ordering::Relaxed);
        assert_eq!(host.found_stuck(results), [AT_TWO], "{what}");
    }
}

#[test]
fn who_is_to_bring_an_argument_may_take_his_time() {
    let host = Host::new(false);
    let text = "func.func @f(%x: i32) -> i32 {
      %a = tfrt.add.i32 %x, %x
      tfrt.return %a : i32
    }
    func.func @main(%x: i32) -> i32 {
      %a = tfrt.call @f(%x) : (i32) -> i32
      tfrt.return %a : i32
    }";
    let (promise, argument) = AsyncValue::<i32>::pending();
    let request = RequestContext::new(&host.host);
    let results = host.begin(text, &request, argument.into_any());
    host.queue.wait_for_looks();
    assert!(!results[0].is_settled());
    promise.resolve(2);
    host.queue.await_all(&results).unwrap();
    assert_eq!(results[0].get::<i32>(), Some(&4));
}

#[test]
fn what_a_call_awaits_beside_an_argument_may_take_its_time_too() {
    let host = Host::new(false);
    let text = "func.func @main(%x: i32) -> (i32, i32) {
      %one = tfrt.constant.i32 1
      %p = \"t.to_come\"(%one) : (i32) -> i32
      %a = tfrt.add.i32 %p, %x
      tfrt.return %p, %a : i32, i32
    }";
    let (promise, argument) = AsyncValue::<i32>::pending();
    let request = RequestContext::new(&host.host);
    let results = host.begin(text, &request, argument.into_any());
    host.queue.wait_for_looks();
    assert!(results.iter().all(|result| !result.is_settled()));
    promise.resolve(2);
    let at_three = AT_TWO.replace(":2:8", ":3:12");
    assert_eq!(host.found_stuck(results), [&*at_three; 2]);
}

#[test]
fn a_request_with_tasks_on_a_queue_of_its_own_is_not_stuck() {
    let host = Host::new(false);
    let text =
        "func.func @main(%x: i32) -> i32 attributes {_tfrt_streams = [array<i64: 0, 0, 0>]} {
      %p = \"t.to_come\"(%x) : (i32) -> i32
      %a = \"tfrt_test.async_add.i32\"(%x, %x) : (i32, i32) -> i32
      tfrt.return %p : i32
    }";
    let queue = Arc::new(SingleThreadedWorkQueue::new());
    let request = RequestContext::builder(&host.host).queue(queue.clone());
    let results = host.begin(text, &request.build(), AnyAsyncValue::new(1));
    // Nobody has run its task yet.
    host.queue.wait_for_looks();
    assert!(!results[0].is_settled());
    queue.quiesce().unwrap();
    let at_two = AT_TWO.replace(":2:8", ":2:12");
    assert_eq!(host.found_stuck(results), [&*at_two]);
}

#[test]
fn each_request_is_told_of_its_own_kernels() {
    let host = Host::new(false);
    host.queue.in_flight.store(1, Ordering::Relaxed);
    let other = format!("\n{STUCK}");
    let calls = [STUCK, &other, STUCK].map(|text| host.call(text));
    host.queue.in_flight.store(0, Ordering::Relaxed);
    let found = calls.map(|results| host.found_stuck(results));
    let at_three = AT_TWO.replace(":2:", ":3:");
    assert_eq!(found, [[AT_TWO], [&at_three], [AT_TWO]]);
}

#[test]
fn the_innermost_call_is_failed_first() {
    let host = Host::new(false);
    let text = "func.func @f(%x: i32) -> i32 {
  %p = \"t.to_come\"(%x) : (i32) -> i32
  tfrt.return %p : i32
}
func.func @main(%x: i32) -> (i32, i32) {
  %a = tfrt.call @f(%x) : (i32) -> i32
  %p = \"t.to_come\"(%x) : (i32) -> i32
  tfrt.return %a, %p : i32, i32
}
";
    let found = host.found_stuck(host.call(text));
    assert_eq!(found, [AT_TWO, &AT_TWO.replace(":2:", ":7:")]);
}

#[test]
fn nothing_is_stuck_while_a_thread_runs_kernels() {
    let at_once = "func.func @main(%x: i32) -> i32 {
      %a = \"t.looks\"(%x) : (i32) -> i32
      tfrt.return %a : i32
    }";
    let tried = "func.func @main(%x: i32) -> i32 {
      %a = \"t.looks\"(%x) : (i32) -> i32
      %p = \"t.to_come\"(%x) : (i32) -> i32
      tfrt.return %a : i32
    }";
    let after_a_task = "func.func @main(%x: i32) -> i32 {
      %a = \"tfrt_test.async_add.i32\"(%x, %x) : (i32, i32) -> i32
      %b = \"t.looks\"(%a) : (i32) -> i32
      tfrt.return %b : i32
    }";
    for (always_counts, text) in [(true, at_once), (false, tried), (false, after_a_task)] {
        let host = Host::new(always_counts);
        host.queue.in_flight.store(1, Ordering::Relaxed);
        let stuck = host.call(STUCK);
        // Tasks of another queue are none of the host's.
        let queue = Arc::new(SingleThreadedWorkQueue::new());
        let other = RequestContext::builder(&host.host).queue(queue.clone());
        let results = host.begin(text, &other.build(), AnyAsyncValue::new(1));
        queue.await_all(&results).unwrap();
        assert!(results[0].get::<i32>().is_some());
        assert!(!stuck[0].is_settled(), "{text}");
        host.queue.in_flight.store(0, Ordering::Relaxed);
        assert_eq!(host.found_stuck(stuck), [AT_TWO]);
    }
}

#[test]
fn nobody_looks_when_there_is_nothing_to_wait_for() {
    let host = Host::new(false);
    for _ in 0..2 {
        assert_eq!(host.found_stuck(host.call(STUCK)), [AT_TWO]);
        // Promises know who waits for them.
        drop(std::mem::take(&mut *host.promises.lock().unwrap()));
        let n_looks = || host.queue.n_looks.load(Ordering::Acquire);
        let latest = Instant::now() + Duration::from_secs(30);
        let mut before = None;
        while before != Some(n_looks()) {
            assert!(Instant::now() < latest, "somebody looks again and again");
            before = Some(n_looks());
            thread::sleep(Duration::from_millis(200));
        }
    }
}

/// Tests a destructor that panics on the way of a result, which is then lost; LeakSanitizer tells.
#[cfg(not(tfrt_no_free_lists))]
#[test]
fn a_thread_that_leaves_by_a_panic_is_not_waited_for() {
    let host = Host::new(false);
    let text = "func.func @f(%x: i32) -> i32 {
      tfrt.return %x : i32
    }
    func.func @main(%x: i32) -> i32 {
      %a = \"t.leaves\"(%x) {body = @f} : (i32) -> i32
      tfrt.return %a : i32
    }";
    let call = std::panic::AssertUnwindSafe(|| host.call(text));
    assert!(std::panic::catch_unwind(call).is_err());
    assert_eq!(host.found_stuck(host.call(STUCK)), [AT_TWO]);
}
