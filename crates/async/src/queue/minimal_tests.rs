//! Tests of the contract's default methods, by a queue that has no others.

use std::sync::mpsc::channel;

use super::*;

/// A queue that passes on what every queue must do, and leaves the rest as the contract has it.
struct Minimal(SingleThreadedWorkQueue);

impl ConcurrentWorkQueue for Minimal {
    fn name(&self) -> String {
        "minimal".to_owned()
    }

    fn add_task(&self, task: Task) {
        self.0.add_task(task);
    }

    fn add_blocking_task(&self, task: Task, allow_queuing: bool) -> Result<(), Task> {
        self.0.add_blocking_task(task, allow_queuing)
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

fn minimal() -> Minimal {
    Minimal(SingleThreadedWorkQueue::new())
}

#[test]
fn several_tasks_are_added_in_their_order() {
    let queue = minimal();
    let (sender, receiver) = channel();
    let mut tasks = (0..5).map(|number| {
        let sender = sender.clone();
        Task::new(move || sender.send(number).unwrap())
    });
    queue.add_tasks(&mut tasks);
    queue.quiesce().unwrap();
    assert!(receiver.try_iter().eq(0..5));
}

#[test]
fn work_is_called_at_once() {
    let queue = minimal();
    let mut n_calls = 0;
    queue.run_here(&mut || n_calls += 1);
    queue.share_local_tasks();
    assert_eq!(n_calls, 1);
}

#[test]
fn values_are_awaited() {
    let queue = minimal();
    let (promise, value) = AnyAsyncValue::pending();
    queue.add_task(Task::new(|| promise.resolve(1)));
    queue.await_all(std::slice::from_ref(&value)).unwrap();
    assert_eq!(value.get::<i32>(), Some(&1));
}

#[test]
fn no_workers_are_told_of() {
    let queue = minimal();
    let hints = (queue.worker_index(), queue.idle_workers());
    assert_eq!((hints, queue.sleeping_workers()), ((None, 0), 0));
}
