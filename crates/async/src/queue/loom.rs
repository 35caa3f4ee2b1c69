//! Interleaving models of the queues, compiled only under `cfg(loom)`.
//!
//! ```text
//! RUSTFLAGS="--cfg loom" LOOM_MAX_PREEMPTIONS=2 \
//!     timeout 300 cargo test -p tfrt-async --lib --release loom_queue
//! ```
//!
//! Each model is shown to find a bug of its kind, by `cargo xtask checkers NAME`. A lost wake-up shows
//! as loom's deadlock, which ends the test program with an abort.
//!
//! | Planted bug | Found by, among others |
//! |---|---|
//! | `relaxed-deque-publish` | `push_wraps_steal`, `push_together_steal`, `pop_push_reuses_slot_steal`, `push_park` |
//! | `steal-without-cas` | `pop_steal`, `pop_steal_steal`, `steal_half`, `shed_steal` |
//! | `lost-wakeup` | `push_park`, `inject_park`, `unpark_shutdown` |
//! | `look-by-load` | `push_park` |
//! | `search-ends-silently` | `two_items_wake_two_workers` |
//! | `quiesce-off-by-one` | `quiesce_enqueue`, `quiesce_child_on_other_worker` |
//! | `blocking-leaves-promised` | `blocking_release_acquire` |

use ::loom::model;
use ::loom::sync::atomic::AtomicUsize as Plain;

use super::deque::{Owner, Steal, Thief, deque};
use super::injector::Injector;
use super::quiescence::Quiescence;
use super::roster::{Offer, Roster};
use super::sleep::{SleepProtocol, lock};
use super::task_counters::TaskCounters;
use crate::sync::{Arc, Condvar, Mutex, Ordering, UnsafeCell, thread};

/// Runs `f` on another thread of the model.
fn spawn<T: 'static>(f: impl FnOnce() -> T + 'static) -> thread::JoinHandle<T> {
    thread::spawn(f)
}

/// Steals once, and returns all stolen items.
fn steal(thief: &Thief<u32>) -> Vec<u32> {
    let (own, _) = deque(4);
    let mut got = Vec::new();
    if let Steal::Taken { item, .. } = thief.steal(&own) {
        got.push(item);
    }
    got.extend(pop_all(&own));
    got
}

fn pop_all(owner: &Owner<u32>) -> Vec<u32> {
    std::iter::from_fn(|| owner.pop()).collect()
}

fn check_each_once(mut got: Vec<u32>, n: u32) {
    got.sort_unstable();
    assert_eq!(got, (0..n).collect::<Vec<_>>());
}

#[test]
fn loom_queue_pop_steal() {
    model(|| {
        let (owner, thief) = deque(2);
        owner.push(0).unwrap();
        let stealing = spawn(move || steal(&thief));
        let mut got = pop_all(&owner);
        got.extend(stealing.join().unwrap());
        got.extend(pop_all(&owner));
        check_each_once(got, 1);
    });
}

#[test]
fn loom_queue_pop_steal_steal() {
    model(|| {
        let (owner, thief) = deque(2);
        let thief = Arc::new(thief);
        owner.push(0).unwrap();
        let other = thief.clone();
        let stealing = [spawn(move || steal(&thief)), spawn(move || steal(&other))];
        let mut got = pop_all(&owner);
        got.extend(
            stealing
                .into_iter()
                .flat_map(|thread| thread.join().unwrap()),
        );
        got.extend(pop_all(&owner));
        check_each_once(got, 1);
    });
}

#[test]
fn loom_queue_push_wraps_steal() {
    model(|| {
        let (owner, thief) = deque(2);
        let stealing = spawn(move || {
            let mut got = steal(&thief);
            got.extend(steal(&thief));
            got
        });
        let mut got = Vec::new();
        for item in 0..3 {
            // The third goes into the slot of the first, which a thief may be reading.
            if let Err(item) = owner.push(item) {
                got.extend(owner.pop());
                got.push(item);
            }
        }
        got.extend(stealing.join().unwrap());
        got.extend(pop_all(&owner));
        check_each_once(got, 3);
    });
}

#[test]
fn loom_queue_push_together_steal() {
    model(|| {
        let (owner, thief) = deque(2);
        owner.push(0).unwrap();
        let stealing = spawn(move || steal(&thief));
        // There is room for both once the thief has read out what it took.
        let mut items = vec![1, 2].into_iter();
        owner.push_all(&mut items);
        let mut got: Vec<_> = items.collect();
        got.extend(owner.pop());
        got.extend(stealing.join().unwrap());
        got.extend(pop_all(&owner));
        check_each_once(got, 3);
    });
}

#[test]
fn loom_queue_push_full_steal() {
    model(|| {
        let (owner, thief) = deque(1);
        owner.push(0).unwrap();
        let stealing = spawn(move || steal(&thief));
        let mut got: Vec<_> = owner.push(1).err().into_iter().collect();
        got.extend(stealing.join().unwrap());
        got.extend(pop_all(&owner));
        check_each_once(got, 2);
    });
}

#[test]
fn loom_queue_pop_push_reuses_slot_steal() {
    model(|| {
        let (owner, thief) = deque(2);
        owner.push(0).unwrap();
        let stealing = spawn(move || steal(&thief));
        let mut got = Vec::from_iter(owner.pop());
        // The slot of the popped item, which a thief may have counted.
        owner.push(1).unwrap();
        got.extend(stealing.join().unwrap());
        got.extend(pop_all(&owner));
        check_each_once(got, 2);
    });
}

#[test]
fn loom_queue_steal_half() {
    model(|| {
        let (owner, thief) = deque(4);
        let thief = Arc::new(thief);
        (0..4).for_each(|item| owner.push(item).unwrap());
        let other = thief.clone();
        let stealing = [spawn(move || steal(&thief)), spawn(move || steal(&other))];
        let mut got = Vec::from_iter(owner.pop());
        for thread in stealing {
            let stolen = thread.join().unwrap();
            assert!(stolen.is_sorted(), "stolen items keep their order");
            got.extend(stolen);
        }
        got.extend(pop_all(&owner));
        check_each_once(got, 4);
    });
}

#[test]
fn loom_queue_shed_steal() {
    model(|| {
        let (owner, thief) = deque(2);
        (0..2).for_each(|item| owner.push(item).unwrap());
        let stealing = spawn(move || steal(&thief));
        let mut got = Vec::new();
        owner.shed(|item| got.push(item));
        got.extend(owner.push(2).err());
        got.extend(stealing.join().unwrap());
        got.extend(pop_all(&owner));
        check_each_once(got, 3);
    });
}

/// A small model of a queue with two workers: one deque that the model's main thread owns, and
/// threads that sleep, wake and steal as workers do.
struct Workers {
    idle: SleepProtocol,
    thief: Thief<u32>,
    injector: Injector<u32>,
    n_taken: Mutex<u32>,
    taken: Condvar,
}

impl Workers {
    fn new(n_workers: usize) -> (Owner<u32>, Arc<Workers>) {
        let (owner, thief) = deque(2);
        let workers = Workers {
            idle: SleepProtocol::new(n_workers),
            thief,
            injector: Injector::new(),
            n_taken: Mutex::new(0),
            taken: Condvar::new(),
        };
        (owner, Arc::new(workers))
    }

    fn has_work(&self) -> bool {
        self.injector.has_tasks() || self.thief.has_items()
    }

    /// Takes one item, sleeping as long as there is none; `None` if the queue was closed.
    fn take(&self, index: usize) -> Option<u32> {
        let (own, _) = deque(2);
        let mut searching = self.idle.begin_search();
        loop {
            let injected = self.injector.take(1, 0, &mut Vec::new());
            let item = injected.or_else(|| match self.thief.steal(&own) {
                Steal::Taken { item, .. } => Some(item),
                _ => None,
            });
            if let Some(item) = item {
                if searching {
                    self.idle.end_search(|| self.has_work());
                }
                *lock(&self.n_taken) += 1;
                self.taken.notify_all();
                return Some(item);
            }
            let mut closed = false;
            self.idle.sleep_unless(index, searching, |word| {
                closed = word.is_closed();
                self.has_work() || closed
            });
            searching = true;
            if closed && !self.has_work() {
                return None;
            }
            thread::yield_now();
        }
    }

    /// Blocks until so many items were taken.
    fn wait_taken(&self, n: u32) {
        let mut n_taken = lock(&self.n_taken);
        while *n_taken < n {
            n_taken = self.taken.wait(n_taken).unwrap();
        }
    }
}

#[test]
fn loom_queue_push_park() {
    model(|| {
        let (owner, workers) = Workers::new(1);
        let other = workers.clone();
        let worker = spawn(move || other.take(0));
        owner.push(0).unwrap();
        workers.idle.announce();
        assert_eq!(worker.join().unwrap(), Some(0));
    });
}

#[test]
fn loom_queue_inject_park() {
    model(|| {
        let (_owner, workers) = Workers::new(1);
        let other = workers.clone();
        let worker = spawn(move || other.take(0));
        workers.injector.push(0).unwrap();
        workers.idle.announce();
        assert_eq!(worker.join().unwrap(), Some(0));
    });
}

#[test]
fn loom_queue_push_park_park_wakes_one() {
    model(|| {
        let (owner, workers) = Workers::new(2);
        let threads = [0, 1].map(|index| {
            let other = workers.clone();
            spawn(move || other.take(index))
        });
        owner.push(0).unwrap();
        workers.idle.announce();
        workers.wait_taken(1);
        workers.idle.close();
        let got: Vec<_> = threads
            .into_iter()
            .filter_map(|thread| thread.join().unwrap())
            .collect();
        assert_eq!(got, [0]);
    });
}

#[test]
fn loom_queue_two_items_wake_two_workers() {
    model(|| {
        let (owner, workers) = Workers::new(2);
        let threads = [0, 1].map(|index| {
            let other = workers.clone();
            spawn(move || {
                other.take(index);
                // Busy until both items were taken: so the other worker must take the second.
                other.wait_taken(2);
            })
        });
        for item in 0..2 {
            owner.push(item).unwrap();
            workers.idle.announce();
        }
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
    });
}

#[test]
fn loom_queue_unpark_shutdown() {
    model(|| {
        let (_owner, workers) = Workers::new(1);
        let (other, closing) = (workers.clone(), workers.clone());
        let worker = spawn(move || {
            let first = other.take(0);
            (first, first.and_then(|_| other.take(0)))
        });
        let closing = spawn(move || {
            closing.injector.close();
            closing.idle.close();
        });
        let accepted = workers.injector.push(7).is_ok();
        if accepted {
            workers.idle.announce();
        }
        closing.join().unwrap();
        // Accepted and not taken would be lost.
        let expected = if accepted { Some(7) } else { None };
        assert_eq!(worker.join().unwrap(), (expected, None));
    });
}

/// Runs tasks as a blocking thread does whose patience ends at once.
fn serve(roster: &Roster<u32>, first: u32, ran: &Mutex<Vec<u32>>) {
    let mut task = Some(first);
    while let Some(current) = task {
        lock(ran).push(current);
        task = roster.next(|_, state| {
            drop(state);
            thread::yield_now();
            (roster.relock(), true)
        });
    }
}

fn check_blocking(n_offering: u32, max_queued: usize) {
    model(move || {
        let roster = Arc::new(Roster::new(1, max_queued));
        let ran = Arc::new(Mutex::new(Vec::new()));
        let offer = {
            let (roster, ran) = (roster.clone(), ran.clone());
            move |task| match roster.offer(task) {
                Offer::Accepted => None,
                Offer::Refused(task) => Some(task),
                Offer::Start(task) => {
                    serve(&roster, task, &ran);
                    None
                }
            }
        };
        let threads: Vec<_> = (1..=n_offering)
            .map(|task| {
                let offer = offer.clone();
                spawn(move || offer(task))
            })
            .collect();
        let mut got = Vec::from_iter(offer(0));
        got.extend(
            threads
                .into_iter()
                .filter_map(|thread| thread.join().unwrap()),
        );
        got.append(&mut lock(&ran));
        check_each_once(got, n_offering + 1);
    });
}

#[test]
fn loom_queue_blocking_release_acquire() {
    check_blocking(1, 0);
}

#[test]
fn loom_queue_blocking_release_acquire_queued() {
    check_blocking(1, 1);
}

#[test]
fn loom_queue_blocking_release_acquire_acquire() {
    check_blocking(2, 1);
}

/// The task counters, quiescence and one worker's sleep, as the pool has them.
struct Resting {
    idle: SleepProtocol,
    counters: TaskCounters,
    quiescence: Quiescence,
    ran: UnsafeCell<u32>,
}

impl Resting {
    fn new(n_workers: usize) -> Arc<Resting> {
        Arc::new(Resting {
            idle: SleepProtocol::new(n_workers),
            counters: TaskCounters::new(n_workers),
            quiescence: Quiescence::new(),
            ran: UnsafeCell::new(0),
        })
    }

    /// Adds one to what the waiting thread will read without any other synchronisation.
    fn touch(&self) {
        // SAFETY: the model checks that nobody else accesses the cell at the same time.
        self.ran.with_mut(|ran| unsafe { *ran += 1 });
    }

    fn check(&self, expected: u32) {
        self.quiescence.wait(&self.idle, &self.counters);
        // SAFETY: as in `touch`.
        self.ran.with(|ran| assert_eq!(unsafe { *ran }, expected));
    }

    /// Puts a worker to sleep that finds nothing more.
    fn sleep(&self, index: usize) {
        self.idle.sleep_unless(index, false, |word| {
            if word.is_watched() {
                self.quiescence.notify();
            }
            true
        });
    }
}

// SAFETY: the models show, by the cell's own checks, that `ran` is never raced on.
unsafe impl Sync for Resting {}
// SAFETY: as above.
unsafe impl Send for Resting {}

#[test]
fn loom_queue_quiesce_enqueue() {
    model(|| {
        let resting = Resting::new(1);
        let injector = Arc::new(Injector::new());
        resting.counters.shared().add(1);
        injector.push(()).unwrap();
        let (shared, tasks) = (resting.clone(), injector.clone());
        let worker = spawn(move || {
            let counters = shared.counters.worker(0);
            assert!(tasks.take(1, 0, &mut Vec::new()).is_some());
            counters.start();
            shared.touch();
            // A task added by a task, while somebody may already be waiting.
            counters.add(1);
            counters.finish();
            counters.start();
            shared.touch();
            counters.finish();
            shared.sleep(0);
        });
        resting.check(2);
        worker.join().unwrap();
    });
}

#[test]
fn loom_queue_quiesce_child_on_other_worker() {
    model(|| {
        let resting = Resting::new(2);
        let (owner, thief) = deque(2);
        resting.counters.shared().add(1);
        let first = resting.clone();
        let first = spawn(move || {
            let counters = first.counters.worker(0);
            first.touch();
            counters.add(1);
            owner.push(0).unwrap();
            counters.finish();
            // The child may have gone to the other worker.
            if owner.pop().is_some() {
                first.touch();
                counters.finish();
            }
            first.sleep(0);
        });
        let second = resting.clone();
        let second = spawn(move || {
            if !steal(&thief).is_empty() {
                second.touch();
                second.counters.worker(1).finish();
            }
            second.sleep(1);
        });
        resting.check(2);
        first.join().unwrap();
        second.join().unwrap();
    });
}

#[test]
fn loom_queue_quiesce_blocking_finish() {
    model(|| {
        let resting = Resting::new(1);
        resting.counters.blocking().add(1);
        let shared = resting.clone();
        let blocking = spawn(move || {
            shared.touch();
            shared.counters.blocking().finish();
            if shared.idle.read().is_watched() {
                shared.quiescence.notify();
            }
        });
        resting.check(1);
        blocking.join().unwrap();
    });
}

#[test]
fn loom_queue_in_flight_never_reads_zero_too_early() {
    model(|| {
        let counters = Arc::new(TaskCounters::new(2));
        let (owner, thief) = deque(2);
        let n_left = Arc::new(Plain::new(2));
        counters.shared().add(1);
        let (counts, left) = (counters.clone(), n_left.clone());
        let parent = spawn(move || {
            counts.worker(0).add(1);
            owner.push(0).unwrap();
            left.fetch_sub(1, Ordering::Relaxed);
            counts.worker(0).finish();
            owner
        });
        let (counts, left) = (counters.clone(), n_left.clone());
        let child = spawn(move || {
            if !steal(&thief).is_empty() {
                left.fetch_sub(1, Ordering::Relaxed);
                counts.worker(1).finish();
            }
        });
        if counters.in_flight() == 0 {
            assert_eq!(n_left.load(Ordering::Relaxed), 0);
        }
        drop(parent.join().unwrap());
        child.join().unwrap();
    });
}
