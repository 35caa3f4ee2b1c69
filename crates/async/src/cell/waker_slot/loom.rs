//! Interleaving models of futures that are polled, and forgotten, while their value is settled.

use std::{
    future::{Future, IntoFuture},
    pin::pin,
    sync::Arc,
    task::{Context, Wake, Waker},
};

use crate::{
    AsyncValue, Chain,
    counters::live_cells_of_this_thread,
    sync::{
        statistic::{AtomicUsize, Ordering},
        thread,
    },
};

/// Counts how often it is woken. Not modelled: it is read when all threads are joined.
#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Woken {
    fn times(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

fn counting() -> (Arc<Woken>, Waker) {
    let woken = Arc::<Woken>::default();
    (Arc::clone(&woken), Waker::from(woken))
}

/// Explores `model`, and checks that it leaves no cell.
fn check(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = ::loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(3);
    builder.check(move || {
        let before = live_cells_of_this_thread();
        model();
        assert_eq!(live_cells_of_this_thread(), before, "a cell is left");
    });
}

fn poll(future: impl Future, waker: &Waker) -> bool {
    pin!(future)
        .poll(&mut Context::from_waker(waker))
        .is_ready()
}

#[test]
fn future_is_dropped_while_it_is_set() {
    check(|| {
        let (promise, value) = AsyncValue::<Chain>::pending();
        let (woken, waker) = counting();
        let setter = thread::spawn(move || promise.resolve(Chain));
        let mut future = value.into_future();
        let ready = poll(&mut future, &waker);
        drop(future);
        setter.join().unwrap();
        assert!(woken.times() <= usize::from(!ready));
        drop(waker);
        assert_eq!(Arc::strong_count(&woken), 1, "the waker was let go once");
    });
}

#[test]
fn future_changes_its_waker_while_it_is_set() {
    check(|| {
        let (promise, value) = AsyncValue::<Chain>::pending();
        let ((old, old_waker), (new, new_waker)) = (counting(), counting());
        let setter = thread::spawn(move || promise.resolve(Chain));
        let mut future = value.into_future();
        let ready = poll(&mut future, &old_waker) || poll(&mut future, &new_waker);
        setter.join().unwrap();
        assert!(ready || new.times() == 1, "the last waker is heard");
        assert!(old.times() <= 1);
        assert!(ready || poll(&mut future, &new_waker));
        drop((old_waker, new_waker));
        assert_eq!((Arc::strong_count(&old), Arc::strong_count(&new)), (1, 1));
    });
}

#[test]
fn waiter_is_added_after_a_future_was_dropped_while_both_are_set() {
    check(|| {
        let (promise, value) = AsyncValue::<Chain>::pending();
        let (woken, waker) = counting();
        let mut future = value.clone().into_future();
        let pending = !poll(&mut future, &waker);
        let setter = thread::spawn(move || promise.resolve(Chain));
        drop(future);
        let (heard, hearing) = counting();
        value.when_settled(move |_| hearing.wake());
        setter.join().unwrap();
        assert_eq!((pending, heard.times()), (true, 1));
        assert!(woken.times() <= 1);
    });
}

#[test]
fn future_is_polled_while_another_waits() {
    check(|| {
        let (promise, value) = AsyncValue::<Chain>::pending();
        let ((woken, waker), (heard, hearing)) = (counting(), counting());
        let adder = thread::spawn({
            let value = value.clone();
            move || value.and_then(move || hearing.wake())
        });
        let mut future = value.into_future();
        assert!(!poll(&mut future, &waker), "nobody has set it");
        promise.resolve(Chain);
        adder.join().unwrap();
        assert_eq!((woken.times(), heard.times()), (1, 1));
        assert!(poll(&mut future, &waker));
    });
}
