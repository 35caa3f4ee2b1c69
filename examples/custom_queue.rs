//! A work queue of one's own: newest task first, behind one lock.
//!
//! It is slow where many threads meet at the lock, and simple enough to read in one go. What a
//! queue must promise is in the documentation of `ConcurrentWorkQueue`; that this one does is
//! tried by the conformance suite before it runs a program.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use tfrt::asynchronous::queue::{Activity, AwaitError, QueueStats, Task, conformance};
use tfrt::{AnyAsyncValue, ConcurrentWorkQueue, Runtime};

/// Tries the queue, plugs it in, and runs a program on it.
pub fn main() {
    conformance::suite(&|| Arc::new(StackQueue::new(3)));

    let runtime = Runtime::builder()
        .queue(Arc::new(StackQueue::new(3)))
        .build();
    let program = runtime
        .compile(
            "sum.mlir",
            r#"func.func @sum(%a: i32, %b: i32) -> i32 {
                 %x = "tfrt_test.async_add.i32"(%a, %a) : (i32, i32) -> i32
                 %y = "tfrt_test.async_add.i32"(%b, %b) : (i32, i32) -> i32
                 %z = tfrt.add.i32 %x, %y
                 tfrt.return %z : i32
               }"#,
        )
        .expect("the program is right");
    let sum = program.function("sum").expect("it is in the text");
    let values = sum.call(&runtime.context(), (1, 20)).wait();
    let values = values.expect("nothing in it fails");
    assert_eq!(*values.get::<i32>(0).expect("it is an i32"), 42);
    println!("42, by courtesy of {}", runtime.host().queue().name());
}

/// A number of threads that take the task that was added last, and one for tasks that wait.
struct StackQueue {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Notified whenever something in the state, or a value that somebody waits for, has changed.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    compute: Vec<Task>,
    blocking: Vec<Task>,
    /// Tasks that are in one of the lists or running.
    in_flight: usize,
    n_executed: u64,
    n_panicked: u64,
    epoch: u64,
    stopping: bool,
}

/// The role of a queue's thread.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Compute,
    Blocking,
}

thread_local! {
    /// The queue that this thread belongs to.
    static MINE: Cell<Option<(*const Shared, Role)>> = const { Cell::new(None) };
}

impl StackQueue {
    fn new(n_threads: usize) -> StackQueue {
        let shared = Arc::new(Shared::default());
        let mut roles = vec![Role::Compute; n_threads.max(1)];
        roles.push(Role::Blocking);
        let start = |role| {
            let shared = shared.clone();
            thread::spawn(move || shared.work(role))
        };
        let threads = roles.into_iter().map(start).collect();
        StackQueue { shared, threads }
    }

    /// Returns the role of the calling thread in this queue.
    fn role(&self) -> Option<Role> {
        let (queue, role) = MINE.get()?;
        ptr::eq(queue, &*self.shared).then_some(role)
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(
        &self,
        state: MutexGuard<'a, State>,
        deadline: Option<Instant>,
    ) -> MutexGuard<'a, State> {
        match deadline {
            None => self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner),
            Some(deadline) => {
                let left = deadline.saturating_duration_since(Instant::now());
                let woken = self.changed.wait_timeout(state, left);
                woken.unwrap_or_else(PoisonError::into_inner).0
            }
        }
    }

    fn push(&self, role: Role, task: Task) {
        let mut state = self.lock();
        state.in_flight += 1;
        match role {
            Role::Compute => state.compute.push(task),
            Role::Blocking => state.blocking.push(task),
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Runs tasks until the queue stops and none is left.
    fn work(self: Arc<Self>, role: Role) {
        MINE.set(Some((Arc::as_ptr(&self), role)));
        let mut state = self.lock();
        loop {
            let task = match role {
                Role::Compute => state.compute.pop(),
                Role::Blocking => state.blocking.pop(),
            };
            let Some(task) = task else {
                // A running task may add others, so the last one to end ends the threads.
                if state.stopping && state.in_flight == 0 {
                    return;
                }
                state = self.wait(state, None);
                continue;
            };
            state.epoch += 1;
            drop(state);
            let panicked = catch_unwind(AssertUnwindSafe(|| task.run()));
            let has_panicked = panicked.is_err();
            // What a panic carries may panic when it is dropped.
            drop(catch_unwind(AssertUnwindSafe(|| drop(panicked))));
            state = self.lock();
            state.epoch += 1;
            state.n_executed += 1;
            state.n_panicked += u64::from(has_panicked);
            state.in_flight -= 1;
            self.changed.notify_all();
        }
    }
}

impl ConcurrentWorkQueue for StackQueue {
    fn name(&self) -> String {
        format!("a stack of tasks ({} threads)", self.parallelism())
    }

    fn add_task(&self, task: Task) {
        self.shared.push(Role::Compute, task);
    }

    fn add_blocking_task(&self, task: Task, allow_queuing: bool) -> Result<(), Task> {
        if !allow_queuing {
            // There is one thread, and nobody knows whether it is free.
            return Err(task);
        }
        self.shared.push(Role::Blocking, task);
        Ok(())
    }

    fn await_until(
        &self,
        values: &[AnyAsyncValue],
        deadline: Option<Instant>,
    ) -> Result<bool, AwaitError> {
        if self.is_worker_thread() {
            return Err(AwaitError::FromWorker);
        }
        for value in values.iter().filter(|value| !value.is_settled()) {
            let shared = self.shared.clone();
            value.and_then(move || {
                // Under the lock: whoever is about to wait must not miss it.
                let _state = shared.lock();
                shared.changed.notify_all();
            });
        }
        let mut state = self.shared.lock();
        loop {
            if values.iter().all(AnyAsyncValue::is_settled) {
                return Ok(true);
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Ok(false);
            }
            state = self.shared.wait(state, deadline);
        }
    }

    fn quiesce(&self) -> Result<(), AwaitError> {
        if self.role().is_some() {
            return Err(AwaitError::QuiesceFromWorker);
        }
        let mut state = self.shared.lock();
        while state.in_flight > 0 {
            state = self.shared.wait(state, None);
        }
        Ok(())
    }

    fn parallelism(&self) -> usize {
        self.threads.len() - 1
    }

    fn is_worker_thread(&self) -> bool {
        self.role() == Some(Role::Compute)
    }

    fn activity(&self) -> Activity {
        let state = self.shared.lock();
        Activity {
            in_flight: state.in_flight,
            epoch: state.epoch,
        }
    }

    fn stats(&self) -> QueueStats {
        let state = self.shared.lock();
        QueueStats {
            executed: state.n_executed,
            panicked: state.n_panicked,
            blocking_threads: 1,
            ..QueueStats::default()
        }
    }
}

impl Drop for StackQueue {
    fn drop(&mut self) {
        self.shared.lock().stopping = true;
        self.shared.changed.notify_all();
        if self.role().is_some() {
            // The last handle was dropped by one of our tasks, which can't wait for itself.
            return;
        }
        for thread in self.threads.drain(..) {
            // A thread of ours catches the panics of tasks, and has none of its own.
            thread.join().expect("the threads don't panic");
        }
    }
}
