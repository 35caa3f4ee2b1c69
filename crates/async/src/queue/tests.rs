//! Tests of our queues beyond what every queue promises.

use std::cell::Cell;
use std::io;
use std::num::NonZeroUsize;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use super::sleep::lock;
use super::*;
use crate::error::{Error, ErrorCode};
use crate::sync::{Arc, AtomicUsize, Mutex, Ordering, thread};
use crate::value::AsyncValue;

type Queue = Arc<dyn ConcurrentWorkQueue>;

fn multi(threads: usize, blocking_threads: usize) -> Arc<MultiThreadedWorkQueue> {
    Arc::new(MultiThreadedWorkQueue::new(threads, blocking_threads).unwrap())
}

#[test]
fn single_threaded_queue_conforms() {
    conformance::suite(&|| Arc::new(SingleThreadedWorkQueue::new()));
}

#[test]
fn multi_threaded_queues_conform() {
    for threads in [1, 2, 4, 8] {
        conformance::suite(&|| multi(threads, threads));
    }
}

#[test]
fn queue_without_queued_blocking_threads_conforms() {
    conformance::suite(&|| multi(2, 0));
}

/// A record of the order in which named tasks run on the single-threaded queue.
struct Record {
    queue: Arc<SingleThreadedWorkQueue>,
    names: Arc<Mutex<Vec<&'static str>>>,
}

impl Record {
    fn new() -> Record {
        Record {
            queue: Arc::default(),
            names: Arc::default(),
        }
    }

    fn add(&self, name: &'static str, then: impl FnOnce() + Send + 'static) {
        let names = self.names.clone();
        self.queue.add_task(Task::new(move || {
            lock(&names).push(name);
            then();
        }));
    }

    fn share(&self) -> Record {
        Record {
            queue: self.queue.clone(),
            names: self.names.clone(),
        }
    }

    #[track_caller]
    fn check(&self, expected: &[&str]) {
        assert_eq!(*lock(&self.names), expected);
    }
}

#[test]
fn single_threaded_queue_keeps_the_place_of_leftover_tasks() {
    let record = Record::new();
    let (promise, value) = AsyncValue::<i32>::pending();
    let inner = record.share();
    record.add("a", move || {
        // Behind the whole batch, though the batch is interrupted.
        inner.add("d", || ());
        promise.resolve(1);
    });
    record.add("b", || ());
    record.add("c", || ());
    record.queue.await_all(&[value.into_any()]).unwrap();
    record.check(&["a"]);
    record.add("e", || ());
    record.queue.quiesce().unwrap();
    record.check(&["a", "b", "c", "d", "e"]);
}

#[test]
fn single_threaded_queue_runs_added_tasks_in_a_nested_quiesce_and_then_its_batch() {
    let record = Record::new();
    let inner = record.share();
    record.add("a", move || {
        inner.add("c", || ());
        inner.queue.quiesce().unwrap();
        lock(&inner.names).push("end of a");
    });
    record.add("b", || ());
    record.queue.quiesce().unwrap();
    record.check(&["a", "c", "end of a", "b"]);
}

#[test]
fn single_threaded_queue_refuses_blocking_tasks_that_must_not_wait() {
    let queue = SingleThreadedWorkQueue::new();
    assert!(queue.add_blocking_task(Task::new(|| ()), false).is_err());
    assert!(queue.add_blocking_task(Task::new(|| ()), true).is_ok());
    assert_eq!(
        (queue.name().as_str(), queue.activity().in_flight),
        ("single-threaded", 1)
    );
}

#[test]
fn single_threaded_queue_quiesces_while_another_thread_runs_its_tasks() {
    let queue = Arc::new(SingleThreadedWorkQueue::new());
    let (entered, enter) = channel();
    let (leave, left) = channel::<()>();
    let ran = Arc::new(AtomicUsize::new(0));
    let counted = ran.clone();
    queue.add_task(Task::new(move || {
        entered.send(()).unwrap();
        left.recv().unwrap();
        counted.store(1, Ordering::Relaxed);
    }));
    let other = queue.clone();
    let other = thread::spawn(move || other.quiesce().unwrap());
    enter.recv().unwrap();
    let waiting = queue.clone();
    let waiting = thread::spawn(move || {
        waiting.quiesce().unwrap();
        ran.load(Ordering::Relaxed)
    });
    leave.send(()).unwrap();
    assert_eq!(waiting.join().unwrap(), 1);
    other.join().unwrap();
}

#[test]
fn names_and_threads_say_what_they_are() {
    let queue = multi(2, 3);
    assert_eq!(
        queue.name(),
        "Multi-threaded work queue (2 threads, 3 blocking threads)"
    );
    let (sender, receiver) = channel();
    let name = |sender: &Sender<String>| {
        let sender = sender.clone();
        Task::new(move || {
            sender
                .send(std::thread::current().name().unwrap_or_default().to_owned())
                .unwrap();
        })
    };
    queue.add_task(name(&sender));
    assert!(receiver.recv().unwrap().starts_with("tfrt-worker-"));
    queue.add_blocking_task(name(&sender), true).unwrap();
    assert_eq!(receiver.recv().unwrap(), "tfrt-blocking-0");
    let timers = TimerQueue::new();
    timers.schedule_after(Duration::ZERO, move || name(&sender).run());
    assert_eq!(receiver.recv().unwrap(), "tfrt-timer");
}

#[test]
fn number_of_threads_is_checked() {
    for threads in [0, usize::MAX] {
        let error = MultiThreadedWorkQueue::new(threads, 1).err().unwrap();
        assert_eq!(error.code(), ErrorCode::InvalidArgument);
    }
}

/// Returns a task that tells when it has begun, and ends when the returned sender is dropped.
fn held(begun: &Sender<()>) -> (Task, Sender<()>) {
    let begun = begun.clone();
    let (release, released) = channel::<()>();
    let task = Task::new(move || {
        begun.send(()).unwrap();
        let _ = released.recv();
    });
    (task, release)
}

#[test]
fn blocking_tasks_that_must_not_wait_get_threads_up_to_the_maximum() {
    let options = PoolOptions {
        dynamic_threads: 2,
        ..PoolOptions::new(1, 1)
    };
    let queue = MultiThreadedWorkQueue::with_options(options).unwrap();
    let (begun, begin) = channel();
    let ((first, release), (second, keep), (third, _)) = (held(&begun), held(&begun), held(&begun));
    queue.add_blocking_task(first, false).unwrap();
    queue.add_blocking_task(second, false).unwrap();
    let third = queue.add_blocking_task(third, false).unwrap_err();
    (0..2).for_each(|_| begin.recv().unwrap());
    // A refused task does not keep the queue from coming to rest, and runs when there is room.
    assert_eq!(queue.activity().in_flight, 2);
    drop(release);
    let mut task = third;
    while let Err(refused) = queue.add_blocking_task(task, false) {
        task = refused;
        thread::yield_now();
    }
    begin.recv().unwrap();
    drop(keep);
    queue.quiesce().unwrap();
    assert_eq!(queue.stats().blocking_threads, 2);
}

#[test]
fn all_blocking_threads_have_ended_when_their_queue_has() {
    /// A value whose drop takes its time, and is counted when it is over.
    struct Last(Duration, Arc<AtomicUsize>);
    impl Drop for Last {
        fn drop(&mut self) {
            let begin = Instant::now();
            while begin.elapsed() < self.0 {}
            self.1.fetch_add(1, Ordering::SeqCst);
        }
    }
    std::thread_local!(static LAST: Cell<Option<Last>> = const { Cell::new(None) });
    let queue = multi(1, 2);
    let n_ended = Arc::new(AtomicUsize::new(0));
    let (started, has_started) = channel();
    let mut ends = Vec::new();
    for milliseconds in [50, 0] {
        let (end, may_end) = channel::<()>();
        let (started, n_ended) = (started.clone(), n_ended.clone());
        let task = Task::new(move || {
            LAST.set(Some(Last(Duration::from_millis(milliseconds), n_ended)));
            started.send(()).unwrap();
            // Until the other side is gone.
            let _ = may_end.recv();
        });
        queue.add_blocking_task(task, false).unwrap();
        has_started.recv().unwrap();
        ends.push(end);
    }
    drop(ends);
    queue.shut_down();
    assert_eq!(n_ended.load(Ordering::SeqCst), 2);
}

#[test]
fn ten_blocking_tasks_run_at_once_beside_one_queued_thread() {
    let queue = multi(1, 1);
    let (begun, begin) = channel();
    let (tasks, releases): (Vec<_>, Vec<_>) = (0..10).map(|_| held(&begun)).unzip();
    tasks
        .into_iter()
        .for_each(|task| queue.add_blocking_task(task, false).unwrap());
    (0..10).for_each(|_| begin.recv().unwrap());
    drop(releases);
    queue.quiesce().unwrap();
}

#[test]
fn queued_blocking_tasks_are_bounded() {
    let options = PoolOptions {
        blocking_capacity: 3,
        ..PoolOptions::new(1, 1)
    };
    let queue = MultiThreadedWorkQueue::with_options(options).unwrap();
    let (begun, begin) = channel();
    let (first, release) = held(&begun);
    queue.add_blocking_task(first, true).unwrap();
    begin.recv().unwrap();
    for _ in 0..3 {
        queue.add_blocking_task(Task::new(|| ()), true).unwrap();
    }
    assert!(queue.add_blocking_task(Task::new(|| ()), true).is_err());
    drop(release);
    queue.quiesce().unwrap();
    assert_eq!(queue.stats().executed, 4);
    assert!(
        multi(1, 0)
            .add_blocking_task(Task::new(|| ()), true)
            .is_err()
    );
}

#[test]
fn idle_blocking_threads_leave() {
    let patience = Duration::ZERO;
    let options = PoolOptions {
        blocking_patience: patience,
        ..PoolOptions::new(1, 1)
    };
    let queue = MultiThreadedWorkQueue::with_options(options).unwrap();
    // Each task that finds its predecessor's thread gone makes another one.
    while queue.stats().blocking_threads < 3 {
        queue.add_blocking_task(Task::new(|| ()), true).unwrap();
        queue.quiesce().unwrap();
        thread::yield_now();
    }
}

#[test]
fn blocking_task_may_await_but_not_quiesce() {
    let queue = multi(1, 1);
    let (promise, value) = AsyncValue::<i32>::pending();
    let inner = queue.clone();
    let (sender, receiver) = channel();
    let task = Task::new(move || {
        inner.add_task(Task::new(move || promise.resolve(1)));
        let awaited = inner.await_all(&[value.into_any()]);
        sender
            .send((awaited, inner.quiesce(), inner.is_worker_thread()))
            .unwrap();
    });
    queue.add_blocking_task(task, true).unwrap();
    let expected = (Ok(()), Err(AwaitError::QuiesceFromWorker), false);
    assert_eq!(receiver.recv().unwrap(), expected);
    queue.quiesce().unwrap();
}

/// Returns a spawner that makes the first `n` threads, and then fails.
fn failing_spawner(n: usize) -> Spawner {
    let left = AtomicUsize::new(n);
    Arc::new(move |name, body| {
        let grant = |left: usize| left.checked_sub(1);
        match left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grant) {
            Ok(_) => std::thread::Builder::new().name(name).spawn(body),
            Err(_) => Err(io::Error::from(io::ErrorKind::WouldBlock)),
        }
    })
}

fn with_threads_that_can_be_made(n: usize) -> Result<MultiThreadedWorkQueue, Error> {
    let spawner = failing_spawner(n);
    MultiThreadedWorkQueue::with_options(PoolOptions {
        spawner,
        ..PoolOptions::new(4, 2)
    })
}

#[test]
fn queue_works_with_the_threads_that_could_be_made() {
    let error = with_threads_that_can_be_made(0).err().unwrap();
    assert_eq!(error.code(), ErrorCode::ResourceExhausted);
    assert!(
        error.message().contains("no thread could be made"),
        "{error}"
    );

    let queue = with_threads_that_can_be_made(2).unwrap();
    assert_eq!(queue.parallelism(), 2);
    let ran = Arc::new(AtomicUsize::new(0));
    for _ in 0..1000 {
        let ran = ran.clone();
        queue.add_task(Task::new(move || {
            ran.fetch_add(1, Ordering::Relaxed);
        }));
    }
    queue.quiesce().unwrap();
    assert_eq!(ran.load(Ordering::Relaxed), 1000);
    // No thread for blocking tasks: they come back whole.
    for allow_queuing in [false, true] {
        let held = Arc::new(());
        let inside = held.clone();
        let task = Task::new(move || drop(inside));
        let refused = queue.add_blocking_task(task, allow_queuing).unwrap_err();
        assert_eq!(Arc::strong_count(&held), 2);
        refused.run();
        assert_eq!(Arc::strong_count(&held), 1);
    }
    assert_eq!(queue.activity().in_flight, 0);
}

#[test]
fn blocking_task_is_queued_if_another_thread_can_be_no_more() {
    let spawner = failing_spawner(2);
    let options = PoolOptions {
        spawner,
        ..PoolOptions::new(1, 4)
    };
    let queue = MultiThreadedWorkQueue::with_options(options).unwrap();
    let (begun, begin) = channel();
    let ((first, release), (second, _)) = (held(&begun), held(&begun));
    queue.add_blocking_task(first, true).unwrap();
    begin.recv().unwrap();
    queue.add_blocking_task(second, true).unwrap();
    drop(release);
    begin.recv().unwrap();
    queue.quiesce().unwrap();
}

#[test]
fn tasks_added_after_shutting_down_are_dropped_or_come_back() {
    let queue = multi(2, 1);
    let held = Arc::new(());
    let task = || {
        let inside = held.clone();
        Task::new(move || drop(inside))
    };
    (0..100).for_each(|_| queue.add_task(task()));
    queue.shut_down();
    assert_eq!((Arc::strong_count(&held), queue.stats().executed), (1, 100));
    queue.add_task(task());
    assert_eq!((Arc::strong_count(&held), queue.stats().dropped), (1, 1));
    assert!(queue.add_blocking_task(task(), true).is_err());
    assert!(queue.add_blocking_task(task(), false).is_err());
    queue.quiesce().unwrap();
    queue.shut_down();
    assert_eq!(Arc::strong_count(&held), 1);
}

/// Returns a task that adds itself again as long as it is let.
fn again(queue: &std::sync::Weak<MultiThreadedWorkQueue>) -> Task {
    let queue = queue.clone();
    Task::new(move || {
        if let Some(strong) = queue.upgrade() {
            strong.add_task(again(&queue));
        }
    })
}

#[test]
fn shutting_down_ends_tasks_that_add_themselves() {
    let queue = multi(2, 1);
    (0..8).for_each(|_| queue.add_task(again(&Arc::downgrade(&queue))));
    queue.shut_down();
    assert_eq!((queue.activity().in_flight, queue.stats().dropped), (0, 8));
}

#[test]
fn queue_may_be_shut_down_by_its_own_threads() {
    let queue = multi(4, 1);
    for blocking in [false, true] {
        let inner = queue.clone();
        let (sender, receiver) = channel();
        let task = Task::new(move || {
            inner.shut_down();
            sender.send(()).unwrap();
        });
        if blocking {
            // The queue is closed by now; what matters is that nobody hangs.
            assert!(queue.add_blocking_task(task, true).is_err());
        } else {
            queue.add_task(task);
            receiver.recv().unwrap();
        }
    }
    let queue = multi(2, 1);
    let (inner, (sender, receiver)) = (queue.clone(), channel());
    let task = Task::new(move || {
        drop(inner);
        sender.send(()).unwrap();
    });
    queue.add_blocking_task(task, true).unwrap();
    drop(queue);
    receiver.recv().unwrap();
}

#[test]
fn deque_overflows_to_the_injector_without_loss() {
    let queue: Queue = multi(1, 0);
    let order = Arc::new(Mutex::new(Vec::new()));
    let (inner, recorded) = (queue.clone(), order.clone());
    queue.add_task(Task::new(move || {
        for number in 0..5000 {
            let order = recorded.clone();
            inner.add_task(Task::new(move || lock(&order).push(number)));
        }
    }));
    queue.quiesce().unwrap();
    let mut order = std::mem::take(&mut *lock(&order));
    // The newest runs first.
    assert_eq!(order[0], 4999);
    order.sort_unstable();
    assert!(order.iter().copied().eq(0..5000));
    assert!(queue.stats().overflowed > 0);
}

#[test]
fn oldest_task_does_not_starve_behind_newer_ones() {
    let queue: Queue = multi(1, 0);
    let reached = Arc::new(AtomicUsize::new(0));
    fn keep_busy(queue: &Queue, reached: &Arc<AtomicUsize>) {
        let (inner, seen) = (queue.clone(), reached.clone());
        queue.add_task(Task::new(move || {
            if seen.load(Ordering::Relaxed) < 2 {
                keep_busy(&inner, &seen);
            }
        }));
    }
    let bump = |reached: &Arc<AtomicUsize>| {
        let reached = reached.clone();
        Task::new(move || {
            reached.fetch_add(1, Ordering::Relaxed);
        })
    };
    let (inner, seen) = (queue.clone(), reached.clone());
    queue.add_task(Task::new(move || {
        inner.add_task(bump(&seen));
        keep_busy(&inner, &seen);
    }));
    // This one comes from outside, behind a worker that is never out of work of its own.
    queue.add_task(bump(&reached));
    queue.quiesce().unwrap();
    assert_eq!(reached.load(Ordering::Relaxed), 2);
}

#[test]
fn tasks_added_together_all_run_and_keep_their_order_where_there_is_one() {
    for n_tasks in [0, 1, 2, 1000] {
        for inside in [false, true] {
            let single: Queue = Arc::new(SingleThreadedWorkQueue::new());
            for (queue, ordered) in [(single, true), (multi(2, 0) as Queue, false)] {
                let ran = Arc::<Mutex<Vec<usize>>>::default();
                let (target, list) = (queue.clone(), ran.clone());
                let add = move || {
                    let task = |index| {
                        let list = list.clone();
                        Task::new(move || lock(&list).push(index))
                    };
                    target.add_tasks(&mut (0..n_tasks).map(task));
                };
                if inside {
                    queue.add_task(Task::new(add));
                } else {
                    add();
                }
                queue.quiesce().unwrap();
                let mut ran = lock(&ran).clone();
                if !ordered {
                    ran.sort_unstable();
                }
                assert_eq!(ran, (0..n_tasks).collect::<Vec<_>>());
                assert_eq!(queue.activity().in_flight, 0);
            }
        }
    }
}

#[test]
fn blocking_task_may_wait_for_what_its_thread_has_added() {
    let queue = Arc::new(SingleThreadedWorkQueue::new());
    let (promise, value) = AsyncValue::<i32>::pending();
    let (sender, receiver) = channel();
    let inner = queue.clone();
    queue.add_task(Task::new(move || {
        inner.add_task(Task::new(move || sender.send(7).unwrap()));
    }));
    let blocking = Task::new(move || promise.resolve(receiver.recv().unwrap()));
    assert!(queue.add_blocking_task(blocking, true).is_ok());
    let other = {
        let (queue, value) = (queue.clone(), value.clone());
        thread::spawn(move || queue.await_all(&[value.into_any()]))
    };
    // One of the two threads runs the blocking task, and the other what that waits for.
    queue.await_all(&[value.as_any().clone()]).unwrap();
    other.join().unwrap().unwrap();
    assert_eq!(value.get().unwrap().unwrap(), &7);
}

#[test]
fn idle_workers_sleep() {
    let queue = multi(4, 1);
    queue.add_task(Task::new(|| ()));
    queue.quiesce().unwrap();
    // All that are awake find nothing, and sleep for good.
    let deadline = Instant::now() + Duration::from_secs(60);
    while queue.sleeping_workers() < 4 {
        assert!(Instant::now() < deadline, "workers stay awake without work");
        thread::yield_now();
    }
    assert_eq!(queue.idle_workers(), 0);
}

/// Returns a random tree of tasks of all kinds, from a seed.
fn grow(queue: &Queue, seed: u64, depth: u32, leaves: &Arc<AtomicUsize>) {
    let mut state = seed;
    let mut random = move |bound: u64| {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (state >> 33) % bound
    };
    let n_children = if depth == 0 { 0 } else { random(4) };
    let kind = random(8);
    let (inner, leaves, next) = (queue.clone(), leaves.clone(), random(u64::MAX >> 33));
    let task = Task::new(move || {
        for child in 0..n_children {
            grow(
                &inner,
                next.wrapping_mul(31).wrapping_add(child),
                depth - 1,
                &leaves,
            );
        }
        leaves.fetch_add(1, Ordering::Relaxed);
        if kind == 0 {
            std::panic::resume_unwind(Box::new("expected"));
        }
    });
    let refused = match kind {
        1 => queue.add_blocking_task(task, true).err(),
        2 => queue.add_blocking_task(task, false).err(),
        _ => Some(task),
    };
    refused.into_iter().for_each(|task| queue.add_task(task));
}

#[test]
fn random_trees_of_tasks_run_whole_on_every_queue() {
    let queues: Vec<Queue> = vec![
        Arc::new(SingleThreadedWorkQueue::new()),
        multi(1, 1),
        multi(2, 1),
        multi(4, 2),
    ];
    for seed in 0..40 {
        let counts: Vec<_> = queues
            .iter()
            .map(|queue| {
                let leaves = Arc::new(AtomicUsize::new(0));
                (0..8).for_each(|root| grow(queue, seed * 8 + root, 7, &leaves));
                queue.quiesce().unwrap();
                assert_eq!(queue.activity().in_flight, 0);
                leaves.load(Ordering::Relaxed)
            })
            .collect();
        assert!(
            counts.iter().all(|&count| count == counts[0]),
            "seed {seed}: {counts:?}"
        );
    }
}

#[test]
fn block_sizes_follow_the_reference() {
    let of = |n| NonZeroUsize::new(n).unwrap();
    let check = |total, workers, size, expected| {
        assert_eq!(block_size(total, workers, size).get(), expected);
    };
    check(100, 4, BlockSize::Even, 6);
    check(100, 4, BlockSize::Fixed(of(25)), 25);
    check(100, 4, BlockSize::Min(of(75)), 75);
    check(100, 4, BlockSize::Min(of(2)), 6);
    check(10, 4, BlockSize::Fixed(of(25)), 10);
    check(3, 4, BlockSize::Even, 1);
    check(0, 0, BlockSize::Even, 1);
}

/// Runs a loop whose body gives `result(start)`, and returns its error.
fn loop_error<R: TileResult>(
    queue: &Queue,
    result: impl Fn(usize) -> R + Send + Sync + 'static,
) -> Option<Error> {
    let tile = NonZeroUsize::new(10).unwrap();
    let done = parallel_for(queue, 0..100, tile, || false, move |start, _| result(start));
    queue.await_all(&[done.as_any().clone()]).unwrap();
    done.error().cloned()
}

#[test]
fn loop_reports_the_last_tile_that_failed() {
    let queue: Queue = multi(4, 0);
    let failing = |start: usize| match start {
        20 | 70 | 40 => Err(Error::unknown(format!("tile at {start}"))),
        _ => Ok(()),
    };
    assert_eq!(loop_error(&queue, failing).unwrap().message(), "tile at 70");
    let value = move |start| match failing(start) {
        Ok(()) => AsyncValue::available(1i32),
        Err(error) => AsyncValue::from_error(error),
    };
    assert_eq!(loop_error(&queue, value).unwrap().message(), "tile at 70");
    let panicking = |start: usize| {
        if start == 50 {
            std::panic::resume_unwind(Box::new("expected"));
        }
    };
    assert_eq!(
        loop_error(&queue, panicking).unwrap().code(),
        ErrorCode::Internal
    );
    assert!(loop_error(&queue, |_| ()).is_none());
}

#[test]
fn loop_waits_for_values_of_its_tiles() {
    let queue: Queue = multi(2, 0);
    let promises = Arc::new(Mutex::new(Vec::new()));
    let made = promises.clone();
    let tile = NonZeroUsize::MIN;
    let done = parallel_for(
        &queue,
        0..8,
        tile,
        || false,
        move |_, _| {
            let (promise, value) = AsyncValue::<i32>::pending();
            lock(&made).push(promise);
            value
        },
    );
    queue.quiesce().unwrap();
    let promises = std::mem::take(&mut *lock(&promises));
    assert_eq!(promises.len(), 8);
    for promise in promises {
        assert!(!done.is_settled());
        promise.resolve(1);
    }
    assert!(done.is_settled() && done.error().is_none());
}

#[test]
fn loop_stops_between_tiles() {
    let queue: Queue = Arc::new(SingleThreadedWorkQueue::new());
    let n_run = Arc::new(AtomicUsize::new(0));
    let (counted, seen) = (n_run.clone(), n_run.clone());
    let cancelled = move || {
        let stop = seen.load(Ordering::Relaxed) >= 3;
        stop.then(|| Error::deadline_exceeded("too late"))
    };
    let done = parallel_for(&queue, 0..100, NonZeroUsize::MIN, cancelled, move |_, _| {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    queue.quiesce().unwrap();
    assert_eq!(n_run.load(Ordering::Relaxed), 3);
    assert_eq!(
        done.error().map(Error::code),
        Some(ErrorCode::DeadlineExceeded)
    );
}

#[test]
fn queue_without_workers_knows_nobody_as_one() {
    let queue: Queue = Arc::new(SingleThreadedWorkQueue::new());
    let shared = queue.clone();
    let (sender, receiver) = channel();
    queue.add_task(Task::new(move || {
        sender.send(shared.worker_index()).unwrap()
    }));
    queue.quiesce().unwrap();
    assert_eq!((queue.worker_index(), receiver.recv()), (None, Ok(None)));
}

#[test]
fn loop_of_a_worker_begins_at_its_place() {
    let queue = multi(4, 0);
    assert_eq!(queue.worker_index(), None);
    for n_tiles in [1, 2, 3, 4, 5, 100, 103] {
        let (sender, receiver) = channel();
        let shared: Queue = queue.clone();
        queue.add_task(Task::new(move || {
            let (caller, index) = (thread::current().id(), shared.worker_index());
            let body = move |tile, _| {
                let is_here = thread::current().id() == caller;
                sender.send((tile, index.filter(|_| is_here))).unwrap();
            };
            drop(parallel_for(
                &shared,
                0..n_tiles,
                NonZeroUsize::MIN,
                || false,
                body,
            ));
        }));
        queue.quiesce().unwrap();
        let mut told: Vec<(usize, Option<usize>)> = receiver.try_iter().collect();
        let (first, index) = told
            .iter()
            .find_map(|(tile, index)| Some((*tile, (*index)?)))
            .unwrap();
        assert_eq!(first, (n_tiles * index / 4).min(n_tiles - 1));
        told.sort_unstable();
        assert!(told.iter().map(|(tile, _)| *tile).eq(0..n_tiles));
    }
}

#[test]
fn loop_on_a_queue_that_is_gone_fails() {
    let queue = multi(1, 0);
    queue.shut_down();
    let queue: Queue = queue;
    let done = parallel_for(&queue, 0..8, NonZeroUsize::MIN, || false, |_, _| ());
    assert!(done.is_settled() && done.error().is_some());
}
