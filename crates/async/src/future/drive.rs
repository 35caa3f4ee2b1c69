//! Values from futures: a future that a work queue polls, one task per wake-up.
//!
//! | State   | Meaning                         | Wake-up makes it | Task makes it          |
//! |---------|---------------------------------|------------------|------------------------|
//! | idle    | waits to be woken               | queued, and adds the task |               |
//! | queued  | a task will poll it             | queued           | running                |
//! | running | a task polls it                 | woken            | idle, if still pending |
//! | woken   | a task polls it, and must again | woken            | queued, and adds itself|
//!
//! Nothing but its wakers keeps an idle future alive, so one that can never be woken is dropped,
//! and its promise with it. The queue is held weakly: futures do not keep threads alive.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Weak},
    task::{Context, Poll, Wake, Waker},
};

use crate::{
    error::Error,
    promise::Promise,
    queue::{ConcurrentWorkQueue, Task},
    storage::Value,
    sync::{AtomicU32, Mutex, Ordering},
    value::AsyncValue,
};

impl<T: Value> AsyncValue<T> {
    /// Returns the value that `future` will give, polled by compute tasks of `queue`.
    ///
    /// A future whose value nobody holds any more is dropped when it is next woken.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tfrt_async::{AsyncValue, queue::{ConcurrentWorkQueue, SingleThreadedWorkQueue}};
    ///
    /// let queue: Arc<dyn ConcurrentWorkQueue> = Arc::new(SingleThreadedWorkQueue::new());
    /// let (promise, value) = AsyncValue::<i32>::pending();
    /// let doubled = AsyncValue::from_future(async move { Ok(*value.await? * 2) }, &queue);
    /// promise.resolve(21);
    /// queue.await_all(&[doubled.as_any().clone()]).unwrap();
    /// assert_eq!(doubled.get().unwrap().unwrap(), &42);
    /// ```
    pub fn from_future<F>(future: F, queue: &Arc<dyn ConcurrentWorkQueue>) -> AsyncValue<T>
    where
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let (promise, value) = AsyncValue::pending();
        let driver = Arc::new(Driver {
            schedule: PollState::queued(),
            work: Mutex::new(Some((Box::pin(future), promise))),
            queue: Arc::downgrade(queue),
        });
        driver.add_task();
        value
    }
}

/// A future, and the promise that its result settles.
type DrivenFuture<F, T> = (Pin<Box<F>>, Promise<T>);

struct Driver<F, T: Value> {
    schedule: PollState,
    /// `None` while it is polled, and when it is complete.
    work: Mutex<Option<DrivenFuture<F, T>>>,
    queue: Weak<dyn ConcurrentWorkQueue>,
}

impl<F, T> Driver<F, T>
where
    F: Future<Output = Result<T, Error>> + Send + 'static,
    T: Value,
{
    fn add_task(self: Arc<Self>) {
        if let Some(queue) = self.queue.upgrade() {
            return queue.add_task(Task::new(move || self.poll()));
        }
        if let Some((_, promise)) = self.exchange(None) {
            promise.fail(Error::unavailable(
                "the work queue that polls a future is gone",
            ));
        }
    }

    fn poll(self: Arc<Self>) {
        self.schedule.start();
        let Some((mut future, promise)) = self.exchange(None) else {
            return;
        };
        if promise.is_unobserved() {
            return;
        }
        let waker = Waker::from(Arc::clone(&self));
        if let Poll::Ready(result) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            drop(future);
            return promise.complete(result);
        }
        self.exchange(Some((future, promise)));
        if self.schedule.finish() {
            self.add_task();
        }
    }

    fn exchange(&self, work: Option<DrivenFuture<F, T>>) -> Option<DrivenFuture<F, T>> {
        // Nothing panics while it holds this lock.
        let mut place = self
            .work
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        std::mem::replace(&mut *place, work)
    }
}

impl<F, T> Wake for Driver<F, T>
where
    F: Future<Output = Result<T, Error>> + Send + 'static,
    T: Value,
{
    fn wake(self: Arc<Self>) {
        if self.schedule.wake() {
            self.add_task();
        }
    }
}

const IDLE: u32 = 0;
const QUEUED: u32 = 1;
const RUNNING: u32 = 2;
const WOKEN: u32 = 3;

/// The state of a driven future: whether a task is queued or polls, and whether it was woken
/// meanwhile.
pub(crate) struct PollState(AtomicU32);

impl PollState {
    /// Returns the schedule of a future whose first task is being added.
    pub(crate) fn queued() -> PollState {
        PollState(AtomicU32::new(QUEUED))
    }

    /// Notes a wake-up; returns true if the caller must add a task.
    pub(crate) fn wake(&self) -> bool {
        // Ordering: relaxed, since the exchange below acquires.
        let mut seen = self.0.load(Ordering::Relaxed);
        loop {
            let next = match seen {
                IDLE => QUEUED,
                RUNNING => WOKEN,
                other => other,
            };
            // Ordering: releases the event to the `start` or `finish` that reads this, even
            // where the state stays the same.
            match self
                .0
                .compare_exchange_weak(seen, next, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) => return seen == IDLE,
                Err(now) => seen = now,
            }
        }
    }

    /// Notes that a task polls now.
    pub(crate) fn start(&self) {
        // Ordering: acquires the events that `wake` released.
        self.0.swap(RUNNING, Ordering::AcqRel);
    }

    /// Notes that the poll found nothing; returns true if the caller must add a task again.
    pub(crate) fn finish(&self) -> bool {
        // Ordering: releases what the poll did to the next `start`.
        let idle = self
            .0
            .compare_exchange(RUNNING, IDLE, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok();
        if !idle {
            // Ordering: as above. Only this task leaves the state `woken`.
            self.0.swap(QUEUED, Ordering::AcqRel);
        }
        !idle
    }
}
