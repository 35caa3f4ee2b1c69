//! Whole queues, and sets of locks, under shuttle, which draws schedules at random: more threads, and longer runs, than loom
//! can go through. It knows no weak memory; that is what the loom models are for.
//!
//! ```console
//! $ RUSTFLAGS="--cfg shuttle" cargo test -p tfrt-async --release --test library
//! ```
//!
//! | Variable | Means | If unset |
//! | --- | --- | --- |
//! | `TFRT_SHUTTLE_SCHEDULES` | schedules of each model | 500 |
//! | `TFRT_SHUTTLE_SEED` | what they are drawn from | 0 |
//!
//! One half is drawn evenly, the other half by priorities, which finds bugs of few but rare steps.

use std::sync::atomic::{AtomicUsize, Ordering};

use shuttle::rand::Rng;
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::sync::atomic::AtomicUsize as ModelledUsize;
use shuttle::{Config, MaxSteps, Runner, thread};
use tfrt_async::queue::{ConcurrentWorkQueue, MultiThreadedWorkQueue, Task};
use tfrt_async::sync::Arc;
use tfrt_async::{
    AnyAsyncValue, AsyncValue, Error, LockMode, RwHold, RwQueueLock, run_when_settled,
};

/// The number of steps in a row that change a schedule by priorities.
const DEPTH: usize = 3;

/// Runs a model under many schedules.
fn explore(model: fn()) {
    let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    let n_schedules = number("TFRT_SHUTTLE_SCHEDULES").unwrap_or(500) as usize;
    let seed = number("TFRT_SHUTTLE_SEED").unwrap_or(0);
    let n_even = n_schedules.div_ceil(2);
    Runner::new(RandomScheduler::new_from_seed(seed, n_even), Config::new()).run(model);
    let by_priority = PctScheduler::new_from_seed(seed, DEPTH, n_schedules - n_even);
    // Such a schedule is not fair: one that runs a searcher for ever shows nothing.
    let mut config = Config::new();
    config.max_steps = MaxSteps::ContinueAfter(100_000);
    Runner::new(by_priority, config).run(model);
}

/// A counter outside of what shuttle knows: looking at it is no step of the schedule.
#[derive(Clone, Default)]
struct Count(Arc<AtomicUsize>);

impl Count {
    fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// A token that counts its drop.
struct Token(Count);

impl Drop for Token {
    fn drop(&mut self) {
        self.0.add();
    }
}

fn queue(n_workers: usize) -> Arc<MultiThreadedWorkQueue> {
    Arc::new(MultiThreadedWorkQueue::new(n_workers, 1).expect("a model's threads can be made"))
}

#[test]
fn each_task_of_several_threads_runs_once() {
    explore(|| {
        let (queue, ran) = (queue(3), Count::default());
        let add = |n: usize| {
            let (queue, ran) = (queue.clone(), ran.clone());
            move || {
                for _ in 0..n {
                    let ran = ran.clone();
                    queue.add_task(Task::new(move || ran.add()));
                }
            }
        };
        let other = thread::spawn(add(3));
        add(3)();
        other.join().unwrap();
        queue.quiesce().unwrap();
        assert_eq!(ran.get(), 6);
    });
}

#[test]
fn tasks_of_tasks_are_waited_for() {
    fn grow(queue: &Arc<MultiThreadedWorkQueue>, ran: &Count, depth: usize) {
        for _ in 0..2 {
            let (own, ran) = (queue.clone(), ran.clone());
            queue.add_task(Task::new(move || {
                if depth > 0 {
                    grow(&own, &ran, depth - 1);
                }
                ran.add();
            }));
        }
    }
    explore(|| {
        let (queue, ran) = (queue(3), Count::default());
        grow(&queue, &ran, 2);
        queue.quiesce().unwrap();
        assert_eq!(ran.get(), 2 + 4 + 8);
    });
}

#[test]
fn shutting_down_runs_what_was_added() {
    explore(|| {
        let (queue, ran) = (queue(2), Count::default());
        for _ in 0..3 {
            let ran = ran.clone();
            queue.add_task(Task::new(move || ran.add()));
        }
        queue.shut_down();
        assert_eq!(ran.get(), 3);
    });
}

#[test]
fn what_is_added_while_the_queue_is_shut_down_runs_or_is_dropped() {
    explore(|| {
        let (queue, gone, ran) = (queue(2), Count::default(), Count::default());
        let other = {
            let (queue, gone, ran) = (queue.clone(), gone.clone(), ran.clone());
            thread::spawn(move || {
                for _ in 0..4 {
                    let (token, ran) = (Token(gone.clone()), ran.clone());
                    queue.add_task(Task::new(move || {
                        ran.add();
                        drop(token);
                    }));
                }
            })
        };
        queue.shut_down();
        other.join().unwrap();
        drop(queue);
        assert_eq!(gone.get(), 4);
        assert!(ran.get() <= 4);
    });
}

#[test]
fn blocking_tasks_are_waited_for() {
    explore(|| {
        let (queue, ran) = (queue(2), Count::default());
        for _ in 0..2 {
            let (own, outer) = (queue.clone(), ran.clone());
            let task = Task::new(move || {
                let inner = outer.clone();
                own.add_task(Task::new(move || inner.add()));
                outer.add();
            });
            assert!(queue.add_blocking_task(task, true).is_ok(), "there is room");
        }
        queue.quiesce().unwrap();
        assert_eq!(ran.get(), 4);
    });
}

#[test]
fn values_of_tasks_are_awaited_while_others_wait_for_rest() {
    explore(|| {
        let queue = queue(3);
        let values: Vec<AnyAsyncValue> = (0..3)
            .map(|number| {
                let (promise, value) = AsyncValue::<i32>::pending();
                queue.add_task(Task::new(move || promise.resolve(number)));
                value.map(|number| number + 1).into_any()
            })
            .collect();
        let resting = queue.clone();
        let other = thread::spawn(move || resting.quiesce().unwrap());
        assert_eq!(queue.await_until(&values, None), Ok(true));
        let sum: i32 = values.iter().filter_map(|value| value.get::<i32>()).sum();
        assert_eq!(sum, 6);
        other.join().unwrap();
    });
}

#[test]
fn promises_that_are_dropped_fail_whoever_waits() {
    explore(|| {
        let (queue, heard) = (queue(3), Count::default());
        let (promise, value) = AsyncValue::<i32>::pending();
        for _ in 0..2 {
            let (own, heard) = (value.clone(), heard.clone());
            queue.add_task(Task::new(move || {
                own.when_settled(move |value| {
                    assert!(value.error().is_some());
                    heard.add();
                });
            }));
        }
        queue.add_task(Task::new(move || drop(promise)));
        let values = [value.into_any()];
        assert_eq!(queue.await_until(&values, None), Ok(true));
        queue.quiesce().unwrap();
        assert_eq!(heard.get(), 2);
    });
}

/// Layers of sums, each of two values of the layer before, found by a few steps from a seed.
fn dataflow(
    queue: &Arc<MultiThreadedWorkQueue>,
    seed: u64,
    first: Vec<AnyAsyncValue>,
) -> Vec<AnyAsyncValue> {
    let mut state = seed;
    let mut below = |n: usize| {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        (state >> 33) as usize % n
    };
    let mut layer = first;
    for _ in 0..3 {
        let next = (0..3).map(|_| {
            let operands = [
                layer[below(layer.len())].clone(),
                layer[below(layer.len())].clone(),
            ];
            let (promise, value) = AsyncValue::<i32>::pending();
            let queue = queue.clone();
            run_when_settled(&operands.clone(), move || {
                queue.add_task(Task::new(move || {
                    let [a, b] = operands.map(AnyAsyncValue::settled);
                    match (a.get::<i32>(), b.get::<i32>()) {
                        (Some(a), Some(b)) => promise.resolve(a.wrapping_add(*b)),
                        _ => promise.fail(b.error().or(a.error()).expect("one failed").clone()),
                    }
                }));
            });
            value.into_any()
        });
        layer = next.collect();
    }
    layer
}

#[test]
fn dataflow_gives_the_same_on_every_schedule() {
    explore(|| {
        let queue = queue(3);
        for seed in 0..2 {
            let (promises, first): (Vec<_>, Vec<_>) =
                (0..3).map(|_| AsyncValue::<i32>::pending()).unzip();
            let first = first.into_iter().map(AsyncValue::into_any).collect();
            let results = dataflow(&queue, seed, first);
            for (number, promise) in (1..).zip(promises) {
                queue.add_task(Task::new(move || promise.resolve(number)));
            }
            assert_eq!(queue.await_until(&results, None), Ok(true));
            let settled: Vec<i32> = results
                .iter()
                .filter_map(|value| value.get().copied())
                .collect();
            let numbers = (1..4).map(AnyAsyncValue::new::<i32>).collect();
            let expected = dataflow(&queue, seed, numbers);
            assert_eq!(queue.await_until(&expected, None), Ok(true));
            let expected: Vec<i32> = expected
                .iter()
                .filter_map(|value| value.get().copied())
                .collect();
            assert_eq!(settled, expected);
        }
    });
}

#[test]
fn dataflow_that_is_cancelled_half_way_settles() {
    explore(|| {
        let queue = queue(3);
        let (promises, first): (Vec<_>, Vec<_>) =
            (0..3).map(|_| AsyncValue::<i32>::pending()).unzip();
        let first = first.into_iter().map(AsyncValue::into_any).collect();
        let results = dataflow(&queue, 1, first);
        for (number, promise) in (0..).zip(promises) {
            queue.add_task(Task::new(move || match number {
                1 => promise.fail(Error::cancelled("half way")),
                _ => promise.resolve(number),
            }));
        }
        assert_eq!(queue.await_until(&results, None), Ok(true));
        for error in results.iter().filter_map(AnyAsyncValue::error) {
            assert_eq!(error.message(), "half way");
        }
        queue.quiesce().unwrap();
    });
}

/// A number behind a lock, which is changed in two steps: another may come in between, if the lock lets him.
struct Guarded {
    lock: RwQueueLock,
    number: ModelledUsize,
    added: Count,
}

impl Guarded {
    fn add(&self) {
        let before = self.number.load(Ordering::SeqCst);
        self.number.store(before + 1, Ordering::SeqCst);
        self.added.add();
    }

    fn look(&self) {
        let first = self.number.load(Ordering::SeqCst);
        assert_eq!(self.number.load(Ordering::SeqCst), first, "nobody writes");
    }

    fn use_by(&self, mode: LockMode) {
        match mode {
            LockMode::Read => self.look(),
            LockMode::Write => self.add(),
        }
    }
}

/// Locks the rest of a set, one when the one before is there, and uses all of it, on whatever thread that is.
fn lock_next(set: Vec<Arc<Guarded>>, mode: LockMode, mut held: Vec<AsyncValue<RwHold>>) {
    let Some(next) = set.get(held.len()) else {
        set.iter().for_each(|one| one.use_by(mode));
        return;
    };
    next.lock.acquire(mode).when_settled(move |next| {
        held.push(next);
        lock_next(set, mode, held);
    });
}

/// Reads a set, and makes the rights to read rights to write where nobody else reads.
fn upgrade(set: &[Arc<Guarded>]) {
    let held: Option<Vec<RwHold>> = set.iter().map(|one| one.lock.try_read()).collect();
    for (hold, one) in held.iter().flatten().zip(set) {
        one.look();
        match hold.try_upgrade() {
            true => one.add(),
            false => one.look(),
        }
    }
}

#[test]
fn random_sets_of_locks_in_one_order_are_got_by_all() {
    explore(|| {
        let guarded = || {
            Arc::new(Guarded {
                lock: RwQueueLock::new(),
                number: ModelledUsize::new(0),
                added: Count::default(),
            })
        };
        let all: Vec<Arc<Guarded>> = (0..3).map(|_| guarded()).collect();
        let work = |all: Vec<Arc<Guarded>>| {
            move || {
                for _ in 0..2 {
                    let chosen: u32 = shuttle::rand::thread_rng().gen_range(1..8);
                    let set = all.iter().enumerate();
                    let set: Vec<_> = set
                        .filter(|(at, _)| chosen >> at & 1 == 1)
                        .map(|(_, one)| one.clone())
                        .collect();
                    let mode = match shuttle::rand::thread_rng().gen_range(0..3) {
                        0 => LockMode::Read,
                        _ => LockMode::Write,
                    };
                    match shuttle::rand::thread_rng().gen_range(0..3) {
                        0 => upgrade(&set),
                        1 => {
                            let locks = set.iter();
                            let held: Vec<RwHold> =
                                locks.map(|one| one.lock.acquire_blocking(mode)).collect();
                            set.iter().for_each(|one| one.use_by(mode));
                            drop(held);
                        }
                        _ => lock_next(set, mode, Vec::new()),
                    }
                }
            }
        };
        let threads: Vec<_> = (0..2).map(|_| thread::spawn(work(all.clone()))).collect();
        work(all.clone())();
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
        for one in &all {
            let hold = one.lock.try_write().expect("everybody has left");
            assert_eq!(one.number.load(Ordering::SeqCst), one.added.get());
            drop(hold);
        }
    });
}
