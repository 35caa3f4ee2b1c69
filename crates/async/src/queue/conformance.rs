//! The tests that every work queue must pass.
//!
//! [`suite`] takes a function that makes queues, and panics with the name of the promise that a
//! queue does not keep. Each check gets a queue of its own, and a minute; together they take a
//! fraction of a second. They wait for events, and for time only where deadlines are tried.
//!
//! # Examples
//!
//! ```
//! use std::sync::Arc;
//! use tfrt_async::queue::{SingleThreadedWorkQueue, conformance};
//!
//! conformance::suite(&|| Arc::new(SingleThreadedWorkQueue::new()));
//! ```

use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use super::{AwaitError, ConcurrentWorkQueue, Task, parallel_for, parallel_reduce};
use crate::any::AnyAsyncValue;
use crate::error::{Error, ErrorCode};
use crate::sync::{Arc, AtomicBool, AtomicUsize, Ordering, thread};
use crate::value::AsyncValue;

/// The queue under test.
type Queue = Arc<dyn ConcurrentWorkQueue>;

/// The time after which a check counts as hanging.
const PATIENCE: Duration = Duration::from_secs(60);

/// A named check of one promise of the contract.
type Check = (&'static str, fn(Queue));

const CHECKS: &[Check] = &[
    ("a queue at rest has nothing in flight", rest),
    ("each task runs once", each_task_runs_once),
    ("tasks may come from many threads", tasks_from_many_threads),
    (
        "quiesce covers tasks that tasks add",
        quiesce_covers_children,
    ),
    (
        "quiesce covers blocking tasks that alternate with others",
        quiesce_covers_ping_pong,
    ),
    ("quiesce inside a task returns", quiesce_inside_a_task),
    (
        "a quiescing thread sees what tasks dropped",
        quiesce_sees_drops,
    ),
    ("await returns for values that are settled", await_settled),
    ("await sees values that tasks settle", await_values_of_tasks),
    (
        "await sees values that other threads settle",
        await_values_of_threads,
    ),
    (
        "await sees values that depend on added blocking tasks",
        await_values_of_blocking,
    ),
    ("await is refused inside a task", await_inside_a_task),
    ("await ends at its deadline", await_until_deadline),
    ("a task is run on a worker thread", worker_thread),
    ("a task that panics harms no other", panics),
    ("activity counts what is queued and running", activity),
    (
        "a refused blocking task comes back whole",
        refused_task_comes_back,
    ),
    (
        "a dropped queue has run or dropped each task once",
        dropped_with_tasks,
    ),
    (
        "the last handle may be dropped inside a task",
        dropped_inside_a_task,
    ),
    ("a loop runs each tile once and reduces in order", loops),
];

/// Runs all checks on queues made by `make`.
///
/// # Panics
///
/// Panics if a queue breaks a promise of the contract.
pub fn suite(make: &dyn Fn() -> Arc<dyn ConcurrentWorkQueue>) {
    for &(promise, check) in CHECKS {
        let queue = make();
        let name = queue.name();
        let (done, ended) = channel::<()>();
        let checking = thread::spawn(move || {
            let _done = done;
            check(queue);
        });
        // The sender is only ever dropped, when the check has ended in one way or another.
        if ended.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
            panic!("'{name}' hangs: {promise}");
        }
        if let Err(payload) = checking.join() {
            eprintln!("'{name}' breaks a promise: {promise}");
            resume_unwind(payload);
        }
    }
}

/// A token that counts up by one when dropped, and fails if that happens twice.
struct Once {
    dropped: AtomicBool,
    n_dropped: Arc<AtomicUsize>,
}

impl Once {
    fn new(n_dropped: &Arc<AtomicUsize>) -> Once {
        Once {
            dropped: AtomicBool::new(false),
            n_dropped: n_dropped.clone(),
        }
    }
}

impl Drop for Once {
    fn drop(&mut self) {
        assert!(!self.dropped.swap(true, Ordering::Relaxed), "dropped twice");
        self.n_dropped.fetch_add(1, Ordering::Release);
    }
}

fn counter() -> Arc<AtomicUsize> {
    Arc::new(AtomicUsize::new(0))
}

fn read(counter: &AtomicUsize) -> usize {
    counter.load(Ordering::Acquire)
}

/// Returns a task that adds one to `counter`.
fn bump(counter: &Arc<AtomicUsize>) -> Task {
    let counter = counter.clone();
    Task::new(move || {
        counter.fetch_add(1, Ordering::Release);
    })
}

/// Returns a value, and a task that settles it.
fn pending() -> (AnyAsyncValue, Task) {
    let (promise, value) = AsyncValue::<i32>::pending();
    (value.into_any(), Task::new(move || promise.resolve(1)))
}

/// Runs `f` in a compute task and gives its result, at the latest when the queue quiesces.
fn inside_a_task<T: Send + 'static>(
    queue: &Queue,
    f: impl FnOnce(&Queue) -> T + Send + 'static,
) -> T {
    let (sender, receiver) = channel();
    let inner = queue.clone();
    queue.add_task(Task::new(move || {
        // The outcome is looked at only after the queue has come to rest.
        let _ = sender.send(f(&inner));
    }));
    queue
        .quiesce()
        .expect("this thread is outside of the queue");
    receiver.try_recv().expect("the task has run")
}

fn rest(queue: Queue) {
    assert!(queue.parallelism() >= 1);
    assert!(!queue.name().is_empty());
    queue
        .quiesce()
        .expect("nothing keeps this thread from waiting");
    assert_eq!(queue.activity().in_flight, 0);
}

fn each_task_runs_once(queue: Queue) {
    let runs: Vec<_> = (0..2000).map(|_| counter()).collect();
    let (one, batch) = runs.split_at(1000);
    one.iter().for_each(|run| queue.add_task(bump(run)));
    queue.add_tasks(&mut batch.iter().map(bump));
    queue.quiesce().unwrap();
    assert!(runs.iter().all(|run| read(run) == 1));
    assert!(queue.stats().executed >= 2000);
}

fn tasks_from_many_threads(queue: Queue) {
    let runs = counter();
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let (queue, runs) = (queue.clone(), runs.clone());
            thread::spawn(move || (0..500).for_each(|_| queue.add_task(bump(&runs))))
        })
        .collect();
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
    queue.quiesce().unwrap();
    assert_eq!(read(&runs), 2000);
}

/// Adds a binary tree of tasks.
fn add_tree(queue: &Queue, runs: &Arc<AtomicUsize>, depth: u32) {
    let (inner, runs) = (queue.clone(), runs.clone());
    queue.add_task(Task::new(move || {
        runs.fetch_add(1, Ordering::Release);
        if depth > 0 {
            (0..2).for_each(|_| add_tree(&inner, &runs, depth - 1));
        }
    }));
}

fn quiesce_covers_children(queue: Queue) {
    let runs = counter();
    for round in 1..=20 {
        add_tree(&queue, &runs, 6);
        queue.quiesce().unwrap();
        assert_eq!(read(&runs), round * 127);
    }
}

/// Adds a task of each kind in turn, `n` of them.
fn add_ping_pong(queue: &Queue, runs: &Arc<AtomicUsize>, n: usize) {
    let (inner, counted) = (queue.clone(), runs.clone());
    let task = Task::new(move || {
        counted.fetch_add(1, Ordering::Release);
        if n > 1 {
            add_ping_pong(&inner, &counted, n - 1);
        }
    });
    if n.is_multiple_of(2) {
        queue.add_task(task);
    } else if let Err(refused) = queue.add_blocking_task(task, true) {
        // A queue without threads for it may refuse.
        queue.add_task(refused);
    }
}

fn quiesce_covers_ping_pong(queue: Queue) {
    let runs = counter();
    add_ping_pong(&queue, &runs, 200);
    queue.quiesce().unwrap();
    assert_eq!(read(&runs), 200);
}

fn quiesce_inside_a_task(queue: Queue) {
    let runs = counter();
    let others = runs.clone();
    let outcome = inside_a_task(&queue, move |queue| {
        queue.add_task(bump(&others));
        let outcome = queue.quiesce();
        (outcome, read(&others))
    });
    match outcome {
        (Ok(()), n_run) => assert_eq!(n_run, 1, "quiesce must run what it accepts to wait for"),
        (Err(error), _) => assert_eq!(error, AwaitError::QuiesceFromWorker),
    }
    assert_eq!(read(&runs), 1);
}

fn quiesce_sees_drops(queue: Queue) {
    for _ in 0..200 {
        let held = Arc::new(());
        for _ in 0..4 {
            let inside = held.clone();
            queue.add_task(Task::new(move || {
                let _inside = inside;
            }));
        }
        queue.quiesce().unwrap();
        assert_eq!(Arc::strong_count(&held), 1);
    }
}

fn await_settled(queue: Queue) {
    queue.await_all(&[]).unwrap();
    let failed = AnyAsyncValue::from_error(Error::unknown("expected"));
    let values = [AnyAsyncValue::new(7i32), failed];
    queue.await_all(&values).unwrap();
    assert_eq!(queue.await_until(&values, Some(Instant::now())), Ok(true));
}

fn await_values_of_tasks(queue: Queue) {
    for n in 1..50 {
        let (values, tasks): (Vec<_>, Vec<_>) = (0..n).map(|_| pending()).unzip();
        tasks.into_iter().for_each(|task| queue.add_task(task));
        queue.await_all(&values).unwrap();
        assert!(values.iter().all(AnyAsyncValue::is_settled));
    }
    // A value whose promise is dropped with its task is settled, too.
    let (promise, value) = AsyncValue::<i32>::pending();
    queue.add_task(Task::new(move || drop(promise)));
    let value = value.into_any();
    queue.await_all(std::slice::from_ref(&value)).unwrap();
    assert!(value.error().is_some());
}

fn await_values_of_threads(queue: Queue) {
    for _ in 0..50 {
        let ((direct, settle), (through_task, task)) = (pending(), pending());
        let inner = queue.clone();
        let thread = thread::spawn(move || {
            inner.add_task(task);
            settle.run();
        });
        queue.await_all(&[direct, through_task]).unwrap();
        thread.join().unwrap();
    }
}

fn await_values_of_blocking(queue: Queue) {
    let (value, task) = pending();
    let inner = queue.clone();
    let thread = thread::spawn(move || {
        if let Err(refused) = inner.add_blocking_task(task, true) {
            inner.add_task(refused);
        }
    });
    queue.await_all(&[value]).unwrap();
    thread.join().unwrap();
}

fn await_inside_a_task(queue: Queue) {
    let (value, settle) = pending();
    let outcome = inside_a_task(&queue, move |queue| {
        let refused = queue.await_all(std::slice::from_ref(&value));
        let until = queue.await_until(&[value], Some(Instant::now()));
        (refused, until)
    });
    assert_eq!(
        outcome,
        (Err(AwaitError::FromWorker), Err(AwaitError::FromWorker))
    );
    let text = AwaitError::FromWorker.to_string();
    assert!(text.ends_with("should not be called by a work thread already managed by the queue."));
    settle.run();
}

fn await_until_deadline(queue: Queue) {
    let (value, settle) = pending();
    let begin = Instant::now();
    let delay = Duration::from_millis(5);
    let values = [value];
    assert_eq!(queue.await_until(&values, Some(begin + delay)), Ok(false));
    assert!(begin.elapsed() >= delay);
    // Tasks run meanwhile.
    queue.add_task(settle);
    assert_eq!(
        queue.await_until(&values, Some(Instant::now() + PATIENCE)),
        Ok(true)
    );
}

fn worker_thread(queue: Queue) {
    assert!(!queue.is_worker_thread());
    assert!(inside_a_task(&queue, |queue| queue.is_worker_thread()));
    assert!(!queue.is_worker_thread());
}

/// A panic payload that panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        // Quietly: the hook for panics is not called.
        resume_unwind(Box::new("expected, too"));
    }
}

fn panics(queue: Queue) {
    let runs = counter();
    let parallelism = queue.parallelism();
    let before = queue.stats().panicked;
    for round in 0..100 {
        queue.add_task(bump(&runs));
        queue.add_task(Task::new(move || {
            if round % 2 == 0 {
                resume_unwind(Box::new("expected"));
            }
            resume_unwind(Box::new(Bomb));
        }));
    }
    let blocking = Task::new(|| resume_unwind(Box::new(Bomb)));
    let accepted = queue.add_blocking_task(blocking, true).is_ok();
    queue.quiesce().unwrap();
    assert_eq!((read(&runs), queue.parallelism()), (100, parallelism));
    assert_eq!(queue.stats().panicked - before, 100 + u64::from(accepted));
}

fn activity(queue: Queue) {
    let before = queue.activity();
    let (inside, in_flight) = inside_a_task(&queue, |queue| {
        let inside = queue.activity();
        queue.add_task(Task::new(|| ()));
        (inside, queue.activity().in_flight)
    });
    let after = queue.activity();
    // The task itself, and while that is there, perhaps the one it added.
    assert!(inside.in_flight >= 1 && (1..=2).contains(&in_flight));
    assert!(before.epoch != inside.epoch && inside.epoch != after.epoch);
    assert_eq!((before.in_flight, after.in_flight), (0, 0));
    assert!(queue.stats().executed >= 2);
}

fn refused_task_comes_back(queue: Queue) {
    let (n_run, n_dropped) = (counter(), counter());
    let mut n_refused = 0;
    // Tasks that hold their threads until all have been offered.
    let (open, gate) = gate();
    for _ in 0..4 {
        let (once, run, gate) = (Once::new(&n_dropped), n_run.clone(), gate.clone());
        let task = Task::new(move || {
            let _once = once;
            gate.pass();
            run.fetch_add(1, Ordering::Release);
        });
        if let Err(task) = queue.add_blocking_task(task, false) {
            n_refused += 1;
            drop(task);
        }
    }
    assert_eq!(read(&n_dropped), n_refused);
    drop(open);
    queue.quiesce().unwrap();
    assert_eq!((read(&n_run), read(&n_dropped)), (4 - n_refused, 4));
}

/// A gate that holds threads until its sender is dropped.
#[derive(Clone)]
struct Gate(Arc<crate::sync::Mutex<Receiver<()>>>);

impl Gate {
    fn pass(&self) {
        // Nothing is ever sent: the sender's end is the event.
        let _ = super::sleep::lock(&self.0).recv();
    }
}

fn gate() -> (Sender<()>, Gate) {
    let (open, opened) = channel();
    (open, Gate(Arc::new(crate::sync::Mutex::new(opened))))
}

fn dropped_with_tasks(queue: Queue) {
    let n_dropped = counter();
    let task = |queue: &Queue| {
        let once = Once::new(&n_dropped);
        queue.add_task(Task::new(move || {
            let _once = once;
        }));
        let once = Once::new(&n_dropped);
        // A refused one is dropped here.
        let _ = queue.add_blocking_task(Task::new(move || drop(once)), true);
    };
    (0..500).for_each(|_| task(&queue));
    drop(queue);
    assert_eq!(read(&n_dropped), 1000);
}

fn dropped_inside_a_task(queue: Queue) {
    let n_dropped = counter();
    let (value, settle) = pending();
    let (open, gate) = gate();
    let (inner, once) = (queue.clone(), Once::new(&n_dropped));
    queue.add_task(Task::new(move || {
        gate.pass();
        let last = inner;
        last.add_task(Task::new(move || drop(once)));
        drop(last);
        settle.run();
    }));
    if queue.stats().executed == 0 && queue.parallelism() == 1 {
        // Perhaps nobody runs tasks but those who wait: then this thread must, and keeps a
        // handle while it does.
        drop(open);
        queue.quiesce().unwrap();
        drop(queue);
    } else {
        drop(queue);
        drop(open);
    }
    let mut waiting = Some(value);
    while let Some(value) = waiting.take() {
        if !value.is_settled() || read(&n_dropped) == 0 {
            thread::yield_now();
            waiting = Some(value);
        }
    }
}

fn loops(queue: Queue) {
    let tile = NonZeroUsize::new(7).expect("seven is not zero");
    let hits: Arc<[AtomicUsize]> = (0..1000).map(|_| AtomicUsize::new(0)).collect();
    let counted = hits.clone();
    let done = parallel_for(
        &queue,
        3..1000,
        tile,
        || false,
        move |start, end| {
            assert!((start - 3).is_multiple_of(7) && (end == 1000 || end - start == 7));
            counted[start..end].iter().for_each(|hit| {
                hit.fetch_add(1, Ordering::Relaxed);
            });
        },
    );
    queue.await_all(&[done.into_any()]).unwrap();
    assert!(
        hits.iter()
            .enumerate()
            .all(|(index, hit)| read(hit) == usize::from(index >= 3))
    );

    // The sum in one fixed order of rounding, whoever computes the parts.
    let map = |start: usize, end: usize| Ok((start..end).map(|i| 1.0 / (i as f64 + 0.1)).sum());
    let sums: Vec<f64> = (0..3)
        .map(|_| {
            let sum = parallel_reduce(&queue, 0..5000, tile, 0.0, || false, map, |a, b| a + b);
            queue.await_all(&[sum.as_any().clone()]).unwrap();
            sum.get()
                .and_then(Result::ok)
                .copied()
                .expect("no tile failed")
        })
        .collect();
    assert!(
        sums.windows(2)
            .all(|pair| pair[0].to_bits() == pair[1].to_bits())
    );

    let stopping = true;
    let stopped = parallel_for(
        &queue,
        0..100,
        tile,
        move || stopping,
        move |_, _| assert!(!stopping, "it was stopped"),
    );
    queue.await_all(&[stopped.as_any().clone()]).unwrap();
    assert_eq!(stopped.error().map(Error::code), Some(ErrorCode::Cancelled));
}
