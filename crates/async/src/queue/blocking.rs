//! Threads for tasks that wait: made when needed, gone when idle.
//!
//! There are two groups. Tasks that may be queued share a group of at most as many threads as
//! the queue was made with. Tasks that may not be queued have another group, since they must
//! start at once: there a thread that waits takes the task, or a new one is made, or the task is
//! refused.
//!
//! | Group | Threads at most | Queue |
//! |---|---|---|
//! | queued | `blocking_threads` | `blocking_capacity` for each of them |
//! | direct | `dynamic_threads` | none |

use std::time::{Duration, Instant};

use super::roster::{Offer, Roster};
use super::sleep::lock;
use super::task::Task;
use crate::sync::{Arc, AtomicUsize, Mutex, Ordering, has_ended, thread};

/// A function that starts a thread of the given name, which runs the closure.
pub type Spawner = Arc<
    dyn Fn(String, Box<dyn FnOnce() + Send>) -> std::io::Result<thread::JoinHandle<()>>
        + Send
        + Sync,
>;

/// Limits of the blocking threads.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockingLimits {
    pub(super) queued_threads: usize,
    pub(super) queued_tasks: usize,
    pub(super) direct_threads: usize,
    pub(super) patience: Duration,
}

/// The threads for blocking tasks.
pub(super) struct BlockingThreads {
    queued: Arc<Roster<Task>>,
    direct: Arc<Roster<Task>>,
    run: Arc<dyn Fn(Task) + Send + Sync>,
    spawner: Spawner,
    patience: Duration,
    handles: Mutex<Vec<thread::JoinHandle<()>>>,
    n_made: AtomicUsize,
}

impl BlockingThreads {
    /// Makes the groups, without threads. `run` runs a task, and never panics.
    pub(super) fn new(
        bounds: BlockingLimits,
        spawner: Spawner,
        run: Arc<dyn Fn(Task) + Send + Sync>,
    ) -> BlockingThreads {
        BlockingThreads {
            queued: Arc::new(Roster::new(bounds.queued_threads, bounds.queued_tasks)),
            direct: Arc::new(Roster::new(bounds.direct_threads, 0)),
            run,
            spawner,
            patience: bounds.patience,
            handles: Mutex::new(Vec::new()),
            n_made: AtomicUsize::new(0),
        }
    }

    /// Adds a task.
    ///
    /// # Errors
    ///
    /// Hands it back if no thread takes it at once and it may not be queued.
    pub(super) fn add(&self, task: Task, allow_queuing: bool) -> Result<(), Task> {
        let roster = if allow_queuing {
            &self.queued
        } else {
            &self.direct
        };
        let mut offer = roster.offer(task);
        if let Offer::Start(task) = offer {
            offer = match self.start(roster, task) {
                Ok(()) => Offer::Accepted,
                Err(task) => roster.not_started(task),
            };
        }
        match offer {
            Offer::Accepted => Ok(()),
            Offer::Start(task) | Offer::Refused(task) => Err(task),
        }
    }

    /// Makes a thread that begins with `task`, or hands the task back.
    fn start(&self, roster: &Arc<Roster<Task>>, task: Task) -> Result<(), Task> {
        // A spawn that fails drops its closure, and the task must survive that.
        let first = Arc::new(Mutex::new(Some(task)));
        // Ordering: a number for names.
        let index = self.n_made.fetch_add(1, Ordering::Relaxed);
        let body = {
            let (roster, run, first) = (roster.clone(), self.run.clone(), first.clone());
            let patience = self.patience;
            Box::new(move || serve(&roster, &*run, &first, patience))
        };
        match (self.spawner)(format!("tfrt-blocking-{index}"), body) {
            Ok(handle) => {
                let mut handles = lock(&self.handles);
                handles.retain(|handle| !has_ended(handle));
                handles.push(handle);
                Ok(())
            }
            Err(_) => {
                // Ordering: a statistic.
                self.n_made.fetch_sub(1, Ordering::Relaxed);
                match lock(&first).take() {
                    Some(task) => Err(task),
                    // A spawner that fails after running the closure has run the task.
                    None => Ok(()),
                }
            }
        }
    }

    /// Returns how many threads were made so far.
    pub(super) fn n_made(&self) -> usize {
        // Ordering: a statistic.
        self.n_made.load(Ordering::Relaxed)
    }

    /// Refuses new tasks, lets queued ones run, and joins the threads, unless called on one.
    pub(super) fn shut_down(&self) {
        self.queued.close();
        self.direct.close();
        let handles = std::mem::take(&mut *lock(&self.handles));
        join_others(handles);
    }
}

/// Joins all threads but the calling one.
pub(super) fn join_others(handles: Vec<thread::JoinHandle<()>>) {
    let me = thread::current().id();
    for handle in handles
        .into_iter()
        .filter(|handle| handle.thread().id() != me)
    {
        // Our threads catch panics of tasks. One that dies all the same has nothing to tell.
        let _ = handle.join();
    }
}

/// Runs blocking tasks on the calling thread until the roster sends it away.
fn serve(
    roster: &Roster<Task>,
    run: &dyn Fn(Task),
    first: &Mutex<Option<Task>>,
    patience: Duration,
) {
    #[cfg(debug_assertions)]
    crate::accounting::register_thread();
    let mut task = lock(first).take();
    while let Some(current) = task {
        run(current);
        let deadline = Instant::now() + patience;
        task = roster.next(|arrived, state| {
            let left = deadline.saturating_duration_since(Instant::now());
            let (state, _) = arrived
                .wait_timeout(state, left)
                .unwrap_or_else(|poisoned| poisoned.into_inner());
            (state, Instant::now() >= deadline)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_have_ended_are_let_go() {
        let spawner: Spawner = Arc::new(|name, body| thread::Builder::new().name(name).spawn(body));
        let bounds = BlockingLimits {
            queued_threads: 1,
            queued_tasks: 0,
            direct_threads: 1,
            patience: Duration::ZERO,
        };
        let threads = BlockingThreads::new(bounds, spawner, Arc::new(Task::run));
        for _ in 0..5 {
            threads.add(Task::new(|| ()), false).ok().unwrap();
            let all_ended = || {
                lock(&threads.handles)
                    .iter()
                    .all(thread::JoinHandle::is_finished)
            };
            while !all_ended() {
                thread::yield_now();
            }
        }
        assert_eq!((threads.n_made(), lock(&threads.handles).len()), (5, 1));
        threads.shut_down();
    }
}
