//! The cost of a value that is to come, and of one that is there, beside other futures: nanoseconds
//! for one, on one thread.
//!
//! `future` is made, gets one continuation, is settled and dropped; `polled` has a waker instead;
//! `await` goes through the scheduler of tokio and back.

#![forbid(unsafe_code)]

use std::future::{Future, poll_fn};
use std::hint::black_box;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;

use tfrt_async::AsyncValue;
use tfrt_benches::compare::{Contender, Subject};
use tfrt_benches::measure::Clock;
use tfrt_benches::small::{N, Small, answer, hear, heard, poll_around, summed, times};
use tfrt_benches::table::Bench;

fn main() {
    let bench = Bench::from_environment();
    bench.begin("values and futures on one thread; processor time");
    for (name, peers) in [
        ("available", available as fn() -> Vec<Contender>),
        ("settled", settled),
        ("future", future),
        ("polled", polled),
        ("forward", Vec::new),
    ] {
        let small = Small::find(name).expect("it is a thing's name");
        if bench.is_wanted(name) {
            let mut contenders = vec![small.contender()];
            contenders.extend(peers());
            bench.compare(small.subject(), &mut contenders);
        }
    }
    if bench.is_wanted("await") {
        let subject = Subject {
            name: "await",
            unit: "time",
            n_units: usize::try_from(N).expect("it is not negative"),
            answer: answer(),
        };
        bench.compare(subject, &mut awaited());
    }
}

/// Does something with numbers.
fn doing(name: &str, work: impl Fn(i32) + 'static) -> Contender {
    Contender::new(name, Clock::Process, move || times(&work))
}

fn available() -> Vec<Contender> {
    fn making<T>(name: &str, make: impl Fn(i32) -> T + 'static) -> Contender {
        Contender::new(name, Clock::Process, move || {
            summed(|number| drop(black_box(make(number))))
        })
    }
    vec![
        making(
            "tfrt, on the heap",
            |_| AsyncValue::available(String::new()),
        ),
        making("Box", Box::new),
        making("Arc", Arc::new),
    ]
}

fn settled() -> Vec<Contender> {
    vec![
        doing("oneshot", |number| {
            let (sender, receiver) = oneshot::channel();
            sender.send(number).expect("the receiver is there");
            hear(receiver.try_recv().expect("it was sent"));
        }),
        doing("tokio oneshot", |number| {
            let (sender, mut receiver) = tokio::sync::oneshot::channel();
            sender.send(number).expect("the receiver is there");
            hear(receiver.try_recv().expect("it was sent"));
        }),
        doing("futures oneshot", |number| {
            let (sender, mut receiver) = futures_channel::oneshot::channel();
            sender.send(number).expect("the receiver is there");
            hear(receiver.try_recv().ok().flatten().expect("it was sent"));
        }),
    ]
}

/// A future behind a lock, as everybody would write it first.
#[derive(Default)]
struct Locked {
    value: Option<i32>,
    waiters: Vec<Box<dyn FnOnce(i32) + Send>>,
}

fn future() -> Vec<Contender> {
    vec![
        doing("tfrt, value kept", |number| {
            let (promise, value) = AsyncValue::<i32>::pending();
            value.and_then(move || hear(number));
            promise.resolve(number);
            drop(black_box(value));
        }),
        doing("mutex and boxed waiters", |number| {
            let value = Arc::<Mutex<Locked>>::default();
            let promise = value.clone();
            value
                .lock()
                .expect("nobody panics")
                .waiters
                .push(Box::new(hear));
            let waiters = {
                let mut locked = promise.lock().expect("nobody panics");
                locked.value = Some(number);
                std::mem::take(&mut locked.waiters)
            };
            waiters.into_iter().for_each(|waiter| waiter(number));
            drop(black_box((promise, value)));
        }),
    ]
}

fn polled() -> Vec<Contender> {
    vec![
        doing("oneshot", |number| {
            let (sender, receiver) = oneshot::channel();
            let result = poll_around(receiver, || sender.send(number).expect("it is there"));
            hear(result.expect("it was sent"));
        }),
        doing("tokio oneshot", |number| {
            let (sender, receiver) = tokio::sync::oneshot::channel();
            let result = poll_around(receiver, || sender.send(number).expect("it is there"));
            hear(result.expect("it was sent"));
        }),
        doing("futures oneshot", |number| {
            let (sender, receiver) = futures_channel::oneshot::channel();
            let result = poll_around(receiver, || sender.send(number).expect("it is there"));
            hear(result.expect("it was sent"));
        }),
    ]
}

/// Awaits numbers on tokio's scheduler for one thread, one after the other; each is settled when the
/// wait for it has begun, which makes the scheduler poll again.
fn on_tokio<F, S>(name: &str, pair: impl Fn(i32) -> (F, S) + 'static) -> Contender
where
    F: Future<Output = i32>,
    S: FnOnce(),
{
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.expect("a scheduler for one thread needs nothing");
    Contender::new(name, Clock::Process, move || {
        heard(|| {
            runtime.block_on(async {
                for number in 0..N {
                    let (future, settle) = pair(black_box(number));
                    let (mut future, mut settle) = (pin!(future), Some(settle));
                    let waiting = poll_fn(|context| {
                        let polled = future.as_mut().poll(context);
                        let Some(settle) = settle.take() else {
                            return polled;
                        };
                        assert!(polled.is_pending());
                        settle();
                        Poll::Pending
                    });
                    hear(waiting.await);
                }
            });
        })
    })
}

fn awaited() -> Vec<Contender> {
    vec![
        on_tokio("tfrt", |number| {
            let (promise, value) = AsyncValue::<i32>::pending();
            let future = async { *value.await.expect("it is resolved") };
            (future, move || promise.resolve(number))
        }),
        on_tokio("oneshot", |number| {
            let (sender, receiver) = oneshot::channel::<i32>();
            let future = async { receiver.await.expect("it is sent") };
            (future, move || sender.send(number).expect("it is there"))
        }),
        on_tokio("tokio oneshot", |number| {
            let (sender, receiver) = tokio::sync::oneshot::channel::<i32>();
            let future = async { receiver.await.expect("it is sent") };
            (future, move || sender.send(number).expect("it is there"))
        }),
        on_tokio("futures oneshot", |number| {
            let (sender, receiver) = futures_channel::oneshot::channel::<i32>();
            let future = async { receiver.await.expect("it is sent") };
            (future, move || sender.send(number).expect("it is there"))
        }),
    ]
}
