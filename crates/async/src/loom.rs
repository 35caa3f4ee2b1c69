//! Interleaving models of values: every order of steps of two or three threads, up to a number
//! of preemptions, with the orders that weak memory allows.
//!
//! Each model also checks that no cell outlives it, so a lost waiter that owns a value, a leaked
//! count and a cell that nobody frees are all seen. Payloads, outcomes and continuations lie in
//! loom's `UnsafeCell`s, so that a race or a use after free is seen at the access.
//!
//! Run with `RUSTFLAGS="--cfg loom" cargo test -p tfrt-async --lib --release loom`, always under
//! a timeout. `LOOM_MAX_PREEMPTIONS` overrides each model's own bound.

use std::future::IntoFuture;

use crate::{
    AnyAsyncValue, AsyncValue, Chain, Error, Heap, Producer, Promise, Value,
    counters::live_cells_of_this_thread,
    future::drive::PollState,
    run_when_settled,
    sync::{Arc, AtomicUsize, Ordering, statistic, thread},
    when_all,
};

/// A value that lives in a cell.
#[derive(Debug)]
struct Boxed(i32);

impl Value for Boxed {
    const NAME: &'static str = "!test.boxed";
    type Storage = Heap;
}

/// Explores `model`, and checks after each run of it that no cell is left.
fn check(n_preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(n_preemptions);
    builder.check(move || {
        let before = live_cells_of_this_thread();
        model();
        assert_eq!(
            live_cells_of_this_thread(),
            before,
            "a cell was leaked or freed twice"
        );
    });
}

/// Counts how often its continuations ran. Not modelled: it is read when all threads are joined.
#[derive(Clone)]
struct Ran(std::sync::Arc<statistic::AtomicUsize>);

impl Ran {
    fn new() -> Ran {
        Ran(std::sync::Arc::new(statistic::AtomicUsize::new(0)))
    }

    fn once(&self) -> impl FnOnce() + Send + 'static {
        let count = std::sync::Arc::clone(&self.0);
        move || {
            count.fetch_add(1, statistic::Ordering::Relaxed);
        }
    }

    fn times(&self) -> usize {
        self.0.load(statistic::Ordering::Relaxed)
    }
}

#[test]
fn set_while_adding() {
    check(3, || {
        let (promise, value) = AsyncValue::<i32>::pending();
        let ran = Ran::new();
        let setter = thread::spawn(move || promise.resolve(7));
        value.and_then(ran.once());
        setter.join().unwrap();
        assert_eq!(ran.times(), 1);
        assert_eq!(value.get().unwrap().unwrap(), &7);
    });
}

#[test]
fn set_while_two_are_adding() {
    check(2, || {
        let (promise, value) = AsyncValue::<Boxed>::pending();
        let ran = Ran::new();
        let setter = thread::spawn(move || promise.resolve(Boxed(7)));
        let adder = thread::spawn({
            let (value, work) = (value.clone(), ran.once());
            move || value.and_then(work)
        });
        value.and_then(ran.once());
        drop(value);
        setter.join().unwrap();
        adder.join().unwrap();
        assert_eq!(ran.times(), 2);
    });
}

#[test]
fn set_while_one_adds_twice_and_the_waiter_reads() {
    check(3, || {
        let (promise, value) = AsyncValue::<Boxed>::pending();
        let setter = thread::spawn(move || promise.resolve(Boxed(7)));
        let ran = Ran::new();
        for _ in 0..2 {
            let (work, reader) = (ran.once(), value.clone());
            value.and_then(move || {
                assert_eq!(reader.get().unwrap().unwrap().0, 7);
                work();
            });
        }
        drop(value);
        setter.join().unwrap();
        assert_eq!(ran.times(), 2);
    });
}

#[test]
fn set_while_getting_and_dropping() {
    check(3, || {
        let (promise, value) = AsyncValue::<Boxed>::pending();
        let setter = thread::spawn(move || promise.resolve(Boxed(7)));
        let reader = thread::spawn({
            let value = value.clone();
            move || {
                if let Some(found) = value.get() {
                    assert_eq!(found.unwrap().0, 7);
                }
            }
        });
        drop(value);
        setter.join().unwrap();
        reader.join().unwrap();
    });
}

#[test]
fn set_while_dropping_the_only_handle() {
    check(3, || {
        let (promise, value) = AsyncValue::<Boxed>::pending();
        let setter = thread::spawn(move || {
            let _ = promise.is_unobserved();
            promise.resolve(Boxed(7));
        });
        drop(value);
        setter.join().unwrap();
    });
}

#[test]
fn last_drop_against_last_drop() {
    check(3, || {
        let value = AsyncValue::available(Boxed(7));
        let other = thread::spawn({
            let value = value.clone();
            move || assert_eq!(value.get().unwrap().unwrap().0, 7)
        });
        assert_eq!(value.get().unwrap().unwrap().0, 7);
        drop(value);
        other.join().unwrap();
    });
}

#[test]
fn drop_against_taking_the_value_out() {
    check(3, || {
        let value = AnyAsyncValue::new(Boxed(7));
        let other = thread::spawn({
            let value = value.clone();
            move || value.take::<Boxed>().map(|boxed| boxed.0).ok()
        });
        let mine = value.take::<Boxed>().map(|boxed| boxed.0).ok();
        let theirs = other.join().unwrap();
        assert!(
            mine.is_none() || theirs.is_none(),
            "both had the only reference"
        );
    });
}

#[test]
fn handle_of_an_unset_value_is_dropped_with_a_waiter() {
    check(3, || {
        let (promise, value) = AsyncValue::<Boxed>::pending();
        let ran = Ran::new();
        value.and_then(ran.once());
        value.and_then(ran.once());
        let setter = thread::spawn(move || promise.resolve(Boxed(7)));
        drop(value);
        setter.join().unwrap();
        assert_eq!(ran.times(), 2);
    });
}

#[test]
fn promise_is_dropped_while_an_origin_is_set() {
    check(2, || {
        let (promise, value) = AsyncValue::<Boxed>::pending();
        let dropper = thread::spawn(move || drop(promise));
        value.as_any().set_producer(&Producer::new("k"));
        dropper.join().unwrap();
        let message = value.error().unwrap().message();
        assert!(message.contains("without being resolved") || message.contains("kernel 'k'"));
    });
}

#[test]
fn promise_is_dropped_while_its_handle_is() {
    check(3, || {
        let (promise, value) = AsyncValue::<Boxed>::pending();
        let dropper = thread::spawn(move || drop(promise));
        drop(value);
        dropper.join().unwrap();
    });
}

#[test]
fn waiter_adds_a_waiter() {
    check(3, || {
        let (promise, value) = AsyncValue::<Boxed>::pending();
        let setter = thread::spawn(move || promise.resolve(Boxed(7)));
        let ran = Ran::new();
        let (inner, outer) = (ran.once(), ran.once());
        value.clone().when_settled(move |value| {
            value.and_then(inner);
            outer();
        });
        drop(value);
        setter.join().unwrap();
        assert_eq!(ran.times(), 2);
    });
}

#[test]
fn waiter_drops_the_last_reference() {
    check(3, || {
        let (promise, value) = AsyncValue::<Boxed>::pending();
        let ran = Ran::new();
        let work = ran.once();
        let setter = thread::spawn(move || promise.resolve(Boxed(7)));
        value.when_settled(move |value| {
            assert_eq!(value.get().unwrap().unwrap().0, 7);
            drop(value);
            work();
        });
        setter.join().unwrap();
        assert_eq!(ran.times(), 1);
    });
}

#[test]
fn waiter_sets_another_value() {
    check(3, || {
        let (promise, value) = AsyncValue::<i32>::pending();
        let setter = thread::spawn(move || promise.resolve(7));
        let (next, result) = AsyncValue::<Boxed>::pending();
        value.when_settled(move |value| next.resolve(Boxed(*value.get().unwrap().unwrap())));
        let ran = Ran::new();
        result.and_then(ran.once());
        setter.join().unwrap();
        assert_eq!(ran.times(), 1);
        assert_eq!(result.get().unwrap().unwrap().0, 7);
    });
}

#[test]
fn forward_while_setting() {
    check(3, || {
        let (promise, value) = AsyncValue::<Boxed>::pending();
        let (outer, result) = AsyncValue::<Boxed>::pending();
        let setter = thread::spawn(move || promise.resolve(Boxed(7)));
        outer.forward(value);
        setter.join().unwrap();
        assert_eq!(result.get().unwrap().unwrap().0, 7);
    });
}

#[test]
fn forward_while_adding() {
    check(2, || {
        let (promise, value) = AnyAsyncValue::pending();
        let (outer, result) = AnyAsyncValue::pending();
        let forwarder = thread::spawn(move || {
            outer.forward(value);
            promise.resolve(Boxed(7));
        });
        let ran = Ran::new();
        result.and_then(ran.once());
        forwarder.join().unwrap();
        assert_eq!(ran.times(), 1);
        assert_eq!(result.get::<Boxed>().unwrap().0, 7);
    });
}

#[test]
fn forward_while_dropping() {
    check(3, || {
        let value = AsyncValue::available(Boxed(7));
        let (outer, result) = AsyncValue::<Boxed>::pending();
        let forwarder = thread::spawn({
            let value = value.clone();
            move || outer.forward(value)
        });
        drop(value);
        if let Some(found) = result.get() {
            assert_eq!(found.unwrap().0, 7);
        }
        drop(result);
        forwarder.join().unwrap();
    });
}

#[test]
fn forward_is_read_in_normal_form() {
    check(3, || {
        let (outer, result) = AnyAsyncValue::pending();
        let forwarder = thread::spawn(move || outer.forward(AnyAsyncValue::new(Boxed(7))));
        let result = result.settled();
        if let Some(found) = result.get::<Boxed>() {
            assert_eq!(found.0, 7);
        }
        drop(result);
        forwarder.join().unwrap();
    });
}

#[test]
fn untyped_value_gets_its_type_while_it_is_set() {
    check(2, || {
        let (promise, value) = AnyAsyncValue::pending();
        let setter = thread::spawn(move || promise.resolve(Boxed(7)));
        let typed = value.downcast::<Boxed>().unwrap();
        setter.join().unwrap();
        assert_eq!(typed.get().unwrap().unwrap().0, 7);
    });
}

#[test]
fn error_while_reading_and_adding() {
    check(3, || {
        let (promise, value) = AsyncValue::<Boxed>::pending();
        let setter = thread::spawn(move || promise.fail(Error::unknown("planned")));
        let ran = Ran::new();
        value.and_then(ran.once());
        if let Some(found) = value.get() {
            assert_eq!(found.unwrap_err().message(), "planned");
        }
        drop(value);
        setter.join().unwrap();
        assert_eq!(ran.times(), 1);
    });
}

#[test]
fn error_against_set_of_two_values_of_one_reader() {
    check(2, || {
        let (left, one) = AsyncValue::<Boxed>::pending();
        let (right, two) = AsyncValue::<Boxed>::pending();
        let failer = thread::spawn(move || left.fail(Error::unknown("planned")));
        let setter = thread::spawn(move || right.resolve(Boxed(7)));
        let (outer, result) = AsyncValue::<Boxed>::pending();
        one.when_settled(move |one| match one.error() {
            Some(_) => outer.forward(two),
            None => outer.forward(one),
        });
        failer.join().unwrap();
        setter.join().unwrap();
        assert_eq!(result.get().unwrap().unwrap().0, 7);
    });
}

#[test]
fn when_all_of_two_with_a_drop() {
    check(2, || {
        let (left, one) = AsyncValue::<i32>::pending();
        let (right, two) = AsyncValue::<i32>::pending();
        let all = when_all(&[one.into_any(), two.into_any()]);
        let dropper = thread::spawn(move || drop(left));
        let setter = thread::spawn(move || right.resolve(7));
        let seen = all.error().is_some();
        dropper.join().unwrap();
        setter.join().unwrap();
        assert!(all.is_settled());
        assert!(all.error().is_some() || seen);
    });
}

#[test]
fn run_when_two_are_settled() {
    check(2, || {
        let (left, one) = AsyncValue::<Chain>::pending();
        let (right, two) = AsyncValue::<Chain>::pending();
        let ran = Ran::new();
        let a = thread::spawn(move || left.resolve(Chain));
        let b = thread::spawn(move || right.resolve(Chain));
        run_when_settled(&[one.into_any(), two.into_any()], ran.once());
        a.join().unwrap();
        b.join().unwrap();
        assert_eq!(ran.times(), 1);
    });
}

#[test]
fn what_happened_before_setting_is_seen_by_a_reader_of_a_chain() {
    check(3, || {
        let (promise, value): (Promise<Chain>, _) = AsyncValue::pending();
        let fact = Arc::new(AtomicUsize::new(0));
        let setter = thread::spawn({
            let fact = Arc::clone(&fact);
            move || {
                fact.store(1, Ordering::Relaxed);
                promise.resolve(Chain);
            }
        });
        if value.is_settled() {
            assert_eq!(fact.load(Ordering::Relaxed), 1);
        }
        setter.join().unwrap();
    });
}

#[test]
fn future_is_polled_while_it_is_set() {
    check(2, || {
        let (promise, value) = AsyncValue::<Boxed>::pending();
        let setter = thread::spawn(move || promise.resolve(Boxed(7)));
        assert_eq!(loom::future::block_on(value.into_future()).unwrap().0, 7);
        setter.join().unwrap();
    });
}

#[test]
fn future_is_woken_while_a_task_polls_it() {
    check(3, || {
        let event = Arc::new(AtomicUsize::new(0));
        let schedule = Arc::new(PollState::queued());
        let n_tasks = Ran::new();
        /// Polls until there is nothing to do; returns true if the event was seen.
        fn poll(event: &AtomicUsize, schedule: &PollState, work: impl FnOnce()) -> bool {
            work();
            loop {
                schedule.start();
                if event.load(Ordering::Relaxed) == 1 {
                    return true;
                }
                if !schedule.finish() {
                    return false;
                }
            }
        }
        let waker = thread::spawn({
            let (event, schedule, work) =
                (Arc::clone(&event), Arc::clone(&schedule), n_tasks.once());
            move || {
                event.store(1, Ordering::Relaxed);
                schedule.wake() && poll(&event, &schedule, work)
            }
        });
        let seen = poll(&event, &schedule, n_tasks.once());
        let seen_by_waker = waker.join().unwrap();
        assert!(
            seen != seen_by_waker,
            "one task saw the event, and no other polled after it"
        );
        assert_eq!(n_tasks.times(), 1 + usize::from(seen_by_waker));
    });
}
