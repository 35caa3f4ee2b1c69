//! Small things of ours that are defended by themselves: values, memory, tasks. What they cost is
//! timed beside peers by benchmarks of their own, and counted in instructions.

use std::future::{Future, IntoFuture};
use std::hint::black_box;
use std::pin::pin;
use std::sync::Arc;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicI32, Ordering};
use std::task::{Context, Poll, Waker};

use tfrt_async::AsyncValue;
use tfrt_async::queue::{ConcurrentWorkQueue, SingleThreadedWorkQueue, Task};

use crate::compare::{Contender, Subject};
use crate::measure::Clock;

/// The number of times that a thing is done each time.
pub const N: i32 = 1_000;

/// A small thing that is measured by itself.
#[derive(Clone, Copy, Debug)]
pub struct Small {
    /// The name.
    pub name: &'static str,
    /// The function that does it [`N`] times.
    pub work: fn() -> i32,
}

/// All small things.
pub const ALL: [Small; 7] = [
    small("available", || summed(available)),
    small("settled", || times(settled)),
    small("future", || times(future)),
    small("polled", || times(polled)),
    small("forward", || times(forward)),
    small("task", tasks),
    small("task_chain", task_chain),
];

/// Repeats `Small { name, work }`.
const fn small(name: &'static str, work: fn() -> i32) -> Small {
    Small { name, work }
}

impl Small {
    /// Returns the thing called so.
    pub fn find(name: &str) -> Option<Small> {
        ALL.into_iter().find(|small| small.name == name)
    }

    /// Returns the subject of the comparison.
    pub fn subject(self) -> Subject<'static> {
        Subject {
            name: self.name,
            unit: "time",
            n_units: usize::try_from(N).expect("it is not negative"),
            answer: answer(),
        }
    }

    /// Returns our contender.
    pub fn contender(self) -> Contender {
        Contender::new("tfrt", Clock::Process, self.work)
    }
}

/// Returns the answer of all things: the sum of the numbers that they pass on.
pub fn answer() -> i32 {
    (0..N).sum()
}

/// The sum of the numbers that continuations have heard.
static HEARD: AtomicI32 = AtomicI32::new(0);

/// Hears a number: the least that a continuation can do.
pub fn hear(number: i32) {
    // A load and a store: no exchange is to be measured.
    let heard = HEARD.load(Ordering::Relaxed);
    HEARD.store(heard.wrapping_add(number), Ordering::Relaxed);
}

/// Runs `work`, and returns the sum of what it made heard.
pub fn heard(work: impl FnOnce()) -> i32 {
    HEARD.store(0, Ordering::Relaxed);
    work();
    HEARD.load(Ordering::Relaxed)
}

/// Does something [`N`] times, with numbers that nobody knows at compile time.
pub fn times(work: impl Fn(i32)) -> i32 {
    heard(|| (0..N).for_each(|number| work(black_box(number))))
}

/// Does something [`N`] times as [`times`] does, and returns the answer, for work that passes
/// nothing on.
pub fn summed(work: impl Fn(i32)) -> i32 {
    (0..N).fold(0, |sum, number| {
        work(black_box(number));
        sum + number
    })
}

/// Polls before something is settled, with a waker that does nothing, and after.
///
/// # Panics
///
/// If it is ready too early or too late.
pub fn poll_around<F: Future>(future: F, settle: impl FnOnce()) -> F::Output {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    assert!(future.as_mut().poll(&mut context).is_pending());
    settle();
    match future.poll(&mut context) {
        Poll::Ready(output) => output,
        Poll::Pending => unreachable!("it was settled"),
    }
}

fn available(number: i32) {
    drop(black_box(AsyncValue::available(number)));
}

fn settled(number: i32) {
    let (promise, value) = AsyncValue::<i32>::pending();
    promise.resolve(number);
    if let Some(Ok(number)) = value.get() {
        hear(*number);
    }
}

fn future(number: i32) {
    let (promise, value) = AsyncValue::<i32>::pending();
    value.when_settled(|value| {
        if let Some(Ok(number)) = value.get() {
            hear(*number);
        }
    });
    promise.resolve(number);
}

fn polled(number: i32) {
    let (promise, value) = AsyncValue::<i32>::pending();
    let result = poll_around(value.into_future(), || promise.resolve(number));
    hear(*result.expect("it was resolved"));
}

fn forward(number: i32) {
    let (promise, value) = AsyncValue::<i32>::pending();
    let (forward, forwarded) = AsyncValue::<i32>::pending();
    forward.forward(value);
    promise.resolve(number);
    if let Some(Ok(number)) = forwarded.get() {
        hear(*number);
    }
}

static QUEUE: LazyLock<Arc<dyn ConcurrentWorkQueue>> =
    LazyLock::new(|| Arc::new(SingleThreadedWorkQueue::new()));

/// Adds tasks from outside, and runs them.
fn tasks() -> i32 {
    let queue = &**QUEUE;
    heard(|| {
        for number in 0..N {
            let number = black_box(number);
            queue.add_task(Task::new(move || hear(number)));
        }
        queue.quiesce().expect("it is not called by a task");
    })
}

/// Runs tasks each of which adds the next.
fn task_chain() -> i32 {
    let queue = &**QUEUE;
    heard(|| {
        add_next(queue, 0);
        queue.quiesce().expect("it is not called by a task");
    })
}

/// Adds a task that hears a number and adds the next one.
pub fn add_next(queue: &'static dyn ConcurrentWorkQueue, number: i32) {
    queue.add_task(Task::new(move || {
        hear(number);
        if number + 1 < N {
            add_next(queue, number + 1);
        }
    }));
}
