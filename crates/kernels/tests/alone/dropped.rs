//! Tests of calls whose tasks a queue drops, or gives to others: all their results settle, and nothing leaks.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use tfrt_async::queue::{
    Activity, AwaitError, ConcurrentWorkQueue, LocalTask, QueueStats, SingleThreadedWorkQueue, Task,
};
use tfrt_async::{AsyncValue, counters};
use tfrt_bef::BefFile;
use tfrt_compiler::{CompileOptions, compile};
use tfrt_host::kernel::{KernelRegistry, Later};
use tfrt_host::{AnyAsyncValue, ExecutionContext, Function, HostContext, Program, RequestContext};

/// Returns a value whose memory is in a cell.
fn text(a: i32) -> String {
    "x".repeat(usize::try_from(a).unwrap_or(0))
}

fn text_later(a: i32) -> Later<impl FnOnce() -> String + Send> {
    Later(move || text(a))
}

fn text_of_task(a: i32, context: &ExecutionContext) -> AsyncValue<String> {
    context.enqueue(move || Ok(text(a)))
}

fn join(a: &String, b: &String) -> String {
    format!("{a}{b}")
}

const PROGRAMS: &[(&str, &str)] = &[
    (
        "one stream",
        r#"func.func @main(%x: i32) -> (!tfrt.string, !tfrt.string, !tfrt.string) {
          %a = "t.text"(%x) : (i32) -> !tfrt.string
          %b = "t.text_later"(%x) : (i32) -> !tfrt.string
          %c = "t.join"(%a, %b) : (!tfrt.string, !tfrt.string) -> !tfrt.string
          %d = "t.text_of_task"(%x) : (i32) -> !tfrt.string
          %e = "t.join"(%c, %d) : (!tfrt.string, !tfrt.string) -> !tfrt.string
          tfrt.return %e, %a, %a : !tfrt.string, !tfrt.string, !tfrt.string
        }"#,
    ),
    (
        "streams",
        r#"func.func @main(%x: i32) -> (!tfrt.string, !tfrt.string, !tfrt.string)
            attributes {tfrt.cost_threshold = 1 : i64} {
          %a = "t.text"(%x) : (i32) -> !tfrt.string
          %b = "t.text"(%x) : (i32) -> !tfrt.string
          %c = "t.text_of_task"(%x) : (i32) -> !tfrt.string
          %d = "t.join"(%a, %b) : (!tfrt.string, !tfrt.string) -> !tfrt.string
          %e = "t.join"(%a, %c) : (!tfrt.string, !tfrt.string) -> !tfrt.string
          %f = "t.join"(%d, %e) : (!tfrt.string, !tfrt.string) -> !tfrt.string
          tfrt.return %f, %a, %b : !tfrt.string, !tfrt.string, !tfrt.string
        }"#,
    ),
    (
        "several readers and none",
        r#"func.func @main(%x: i32) -> (!tfrt.string, !tfrt.string, !tfrt.string)
            attributes {tfrt.cost_threshold = 1 : i64} {
          %a = "t.text_of_task"(%x) : (i32) -> !tfrt.string
          %b = "t.text_later"(%x) : (i32) -> !tfrt.string
          %c = "t.join"(%b, %b) : (!tfrt.string, !tfrt.string) -> !tfrt.string
          %d = "t.join"(%b, %a) : (!tfrt.string, !tfrt.string) -> !tfrt.string
          %e = "t.text_later"(%x) : (i32) -> !tfrt.string
          %f = "t.join"(%e, %e) : (!tfrt.string, !tfrt.string) -> !tfrt.string
          %g = "t.text_later"(%x) : (i32) -> !tfrt.string
          tfrt.return %c, %d, %f : !tfrt.string, !tfrt.string, !tfrt.string
        }"#,
    ),
    (
        "calls",
        r#"func.func @f(%s: !tfrt.string, %n: i32) -> (!tfrt.string, !tfrt.string)
            attributes {tfrt.cost_threshold = 1 : i64} {
          %a = "t.text"(%n) : (i32) -> !tfrt.string
          %b = "t.text_of_task"(%n) : (i32) -> !tfrt.string
          %c = "t.join"(%a, %s) : (!tfrt.string, !tfrt.string) -> !tfrt.string
          %d = "t.join"(%b, %s) : (!tfrt.string, !tfrt.string) -> !tfrt.string
          tfrt.return %c, %d : !tfrt.string, !tfrt.string
        }
        func.func @main(%x: i32) -> (!tfrt.string, !tfrt.string, !tfrt.string) {
          %s = "t.text"(%x) : (i32) -> !tfrt.string
          %a, %b = tfrt.call @f(%s, %x) : (!tfrt.string, i32) -> (!tfrt.string, !tfrt.string)
          %c, %d = tfrt.call @f(%a, %x) : (!tfrt.string, i32) -> (!tfrt.string, !tfrt.string)
          %e, %n = tfrt.repeat.i32 %x, %d, %x : !tfrt.string, i32 {
            %f, %g = tfrt.call @f(%d, %x) : (!tfrt.string, i32) -> (!tfrt.string, !tfrt.string)
            tfrt.return %g, %x : !tfrt.string, i32
          }
          tfrt.return %c, %e, %s : !tfrt.string, !tfrt.string, !tfrt.string
        }"#,
    ),
];

/// A queue that runs its first tasks and drops the others.
struct Forgetful {
    queue: SingleThreadedWorkQueue,
    n_left: AtomicUsize,
    n_dropped: AtomicUsize,
    /// Whether the queue keeps tasks that are confined to their thread.
    has_local: bool,
    /// All owners of local tasks: whoever asks for the next task gets it, and the one behind it, whosever they are.
    owners: Option<Mutex<BTreeSet<usize>>>,
    /// The number of requests after which one, instead of its own task, gets another owner's.
    wrong_at: Option<AtomicUsize>,
}

impl Forgetful {
    fn new(n_tasks: usize, has_local: bool) -> Self {
        Forgetful {
            queue: SingleThreadedWorkQueue::new(),
            n_left: AtomicUsize::new(n_tasks),
            n_dropped: AtomicUsize::new(0),
            has_local,
            owners: None,
            wrong_at: None,
        }
    }

    fn takes_one(&self) -> bool {
        let left = self.n_left.load(Ordering::Relaxed);
        match left {
            0 => self.n_dropped.fetch_add(1, Ordering::Relaxed),
            _ => self.n_left.swap(left - 1, Ordering::Relaxed),
        };
        left > 0
    }
}

impl ConcurrentWorkQueue for Forgetful {
    fn name(&self) -> String {
        "forgetful".to_owned()
    }

    fn add_task(&self, task: Task) {
        if self.takes_one() {
            self.queue.add_task(task);
        }
    }

    fn add_local_task(&self, task: LocalTask<'_>) {
        if let Some(owners) = &self.owners {
            owners.lock().unwrap().insert(task.owner().addr());
        }
        match (self.takes_one(), self.has_local) {
            (false, _) => {}
            (_, true) => self.queue.add_local_task(task),
            (_, false) => self.queue.add_task(task.into_shared()),
        }
    }

    fn take_local_task(&self, owner: *const (), take: &mut dyn FnMut(LocalTask<'_>)) {
        let Some(owners) = &self.owners else {
            return self.queue.take_local_task(owner, take);
        };
        let owners: Vec<usize> = owners.lock().unwrap().iter().copied().collect();
        if let Some(wrong_at) = &self.wrong_at {
            let left = wrong_at.load(Ordering::Relaxed);
            wrong_at.store(left.wrapping_sub(1), Ordering::Relaxed);
            if left != 0 {
                return self.queue.take_local_task(owner, take);
            }
            for other in owners.iter().filter(|other| **other != owner.addr()) {
                let other = std::ptr::without_provenance(*other);
                self.queue.take_local_task(other, take);
            }
            return;
        }
        for owner in owners.iter().chain(&owners) {
            let owner = std::ptr::without_provenance(*owner);
            self.queue.take_local_task(owner, take);
        }
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
        self.queue.activity()
    }

    fn stats(&self) -> QueueStats {
        self.queue.stats()
    }
}

fn host(queue: Arc<Forgetful>) -> HostContext {
    let mut registry = KernelRegistry::new();
    tfrt_kernels::register_all(&mut registry);
    registry
        .add("t.text", text)
        .add("t.text_later", text_later)
        .add("t.text_of_task", text_of_task)
        .add("t.join", join);
    HostContext::builder(registry).queue(queue).build()
}

fn main_of(host: &HostContext, text: &str) -> Function {
    let module = tfrt_ir::parse(&tfrt_ir::Source::new("main.mlir", text)).unwrap();
    let bytes = compile(&module, &CompileOptions::default()).unwrap();
    let program = Program::load(BefFile::open(bytes).unwrap(), host).unwrap();
    program.function("main").unwrap()
}

/// Calls a program whose tasks are dropped after the first few, and returns the number that were.
fn call(text: &str, n_tasks: usize, has_local: bool, is_spawned: bool) -> usize {
    let queue = Arc::new(Forgetful::new(n_tasks, has_local));
    let host = host(queue.clone());
    let main = main_of(&host, text);
    let request = RequestContext::new(&host);
    let arguments = vec![AnyAsyncValue::new(3)];
    let context = ExecutionContext::new(&request);
    let results = match is_spawned {
        false => main.execute(&context, arguments),
        true => main.spawn(&context, arguments),
    };
    queue.quiesce().unwrap();
    let n_dropped = queue.n_dropped.load(Ordering::Relaxed);
    let results = results.into_iter().map(AnyAsyncValue::settled);
    for result in results {
        assert!(result.is_settled(), "somebody waits for ever");
        assert!(n_dropped > 0 || result.error().is_none());
    }
    n_dropped
}

#[test]
fn calls_leave_nothing_when_their_tasks_are_dropped() {
    let _alone = crate::alone();
    for (name, text) in PROGRAMS {
        for (has_local, is_spawned) in [(false, false), (true, false), (false, true), (true, true)]
        {
            let mut n_tasks = 0;
            loop {
                let before = counters().live_cells;
                let n_dropped = call(text, n_tasks, has_local, is_spawned);
                let left = counters().live_cells - before;
                assert_eq!(left, 0, "{name}: all tasks but {n_tasks} were dropped");
                if n_dropped == 0 {
                    break;
                }
                n_tasks += 1;
            }
            println!("{name}: {n_tasks} tasks");
            assert!(n_tasks > 1, "{name}: there are tasks to drop");
        }
    }
}

#[test]
fn calls_take_no_tasks_of_others() {
    let _alone = crate::alone();
    let text = r#"func.func @main(%x: i32) -> (i32, i32) {
      %a = "tfrt_test.async_add.i32"(%x, %x) : (i32, i32) -> i32
      %b = "tfrt_test.async_add.i32"(%a, %x) : (i32, i32) -> i32
      tfrt.return %a, %b : i32, i32
    }"#;
    let before = counters().live_cells;
    let mut n_dropped = 0;
    let wrong_at = [None].into_iter().chain((0..12).map(Some));
    for (n_calls, wrong_at) in wrong_at.flat_map(|at| (1..5).map(move |n_calls| (n_calls, at))) {
        let queue = Arc::new(Forgetful {
            owners: Some(Mutex::default()),
            wrong_at: wrong_at.map(AtomicUsize::new),
            ..Forgetful::new(usize::MAX, true)
        });
        let host = host(queue.clone());
        let main = main_of(&host, text);
        let request = RequestContext::new(&host);
        let begin = |number: i32| {
            let argument = AnyAsyncValue::new(number);
            main.execute(&ExecutionContext::new(&request), vec![argument])
        };
        let results: Vec<_> = (1..=n_calls).flat_map(begin).collect();
        queue.await_all(&results).unwrap();
        queue.quiesce().unwrap();
        for (number, results) in (1..).zip(results.chunks(2)) {
            for (n_times, result) in [2, 3].into_iter().zip(results) {
                let result = result.clone().settled();
                assert!(result.is_settled(), "somebody waits for ever");
                match result.get::<i32>() {
                    Some(sum) => assert_eq!(*sum, n_times * number, "{wrong_at:?}"),
                    None => n_dropped += 1,
                }
            }
        }
    }
    assert_eq!(counters().live_cells, before);
    assert!(n_dropped > 0);
}
