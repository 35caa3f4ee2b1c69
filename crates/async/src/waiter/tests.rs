use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
};

use super::{MAX_DEPTH, NESTING};
use crate::{AnyAsyncValue, AsyncValue, Chain, Error, Heap, Promise, Value, counters};

/// The length of a chain: without a bound on nesting, far too long for [`STACK_BYTES`].
const N_LINKS: usize = if cfg!(miri) {
    2_000
} else if cfg!(debug_assertions) {
    100_000
} else {
    1_000_000
};

/// A stack on which unbounded nesting of [`N_LINKS`] levels overflows at once, though not that which is allowed, with
/// the large frames of `cargo xtask mutants`.
const STACK_BYTES: usize = 4 << 20;

/// Runs `test` on a thread with a small stack, and checks that nothing is left on its backlog.
fn on_a_small_stack(test: impl FnOnce() + Send + 'static) {
    let thread = thread::Builder::new()
        .stack_size(STACK_BYTES)
        .spawn(move || {
            test();
            NESTING.with(|nesting| {
                assert_eq!(nesting.depth.get(), 0);
                assert!(nesting.oldest.get().is_null() && nesting.newest.get().is_null());
            });
        });
    thread.unwrap().join().unwrap();
}

#[test]
fn long_chain_of_maps_is_settled() {
    on_a_small_stack(|| {
        let (promise, first) = AsyncValue::<i64>::pending();
        let mut last = first;
        for _ in 0..N_LINKS {
            last = last.map(|x| x + 1);
        }
        promise.resolve(0);
        assert_eq!(
            last.get().unwrap().unwrap(),
            &i64::try_from(N_LINKS).unwrap()
        );
    });
}

#[test]
fn long_chain_of_maps_fails_by_a_dropped_promise() {
    on_a_small_stack(|| {
        let (promise, first) = AsyncValue::<i64>::pending();
        let mut last = first;
        for _ in 0..N_LINKS {
            last = last.map(|x| x + 1);
        }
        drop(promise);
        assert!(last.error().is_some());
    });
}

#[test]
fn long_chain_of_forwards_is_settled() {
    on_a_small_stack(|| {
        let (promise, first) = AnyAsyncValue::pending();
        let mut last = first;
        for _ in 0..N_LINKS {
            let (promise, value) = AnyAsyncValue::pending();
            promise.forward(last);
            last = value;
        }
        promise.resolve(7);
        assert_eq!(last.get::<i32>(), Some(&7));
    });
}

#[test]
fn waiters_of_settled_values_nest_without_bound() {
    fn descend(n_left: usize, deepest: Arc<AtomicUsize>) {
        if n_left == 0 {
            deepest.fetch_add(1, Ordering::SeqCst);
            return;
        }
        let settled = AsyncValue::available(Chain);
        settled.and_then(move || descend(n_left - 1, deepest));
    }
    on_a_small_stack(|| {
        let deepest = Arc::new(AtomicUsize::new(0));
        descend(N_LINKS, Arc::clone(&deepest));
        assert_eq!(deepest.load(Ordering::SeqCst), 1);
    });
}

/// A list of values.
struct Link {
    _next: Option<AsyncValue<Link>>,
}

impl Value for Link {
    const NAME: &'static str = "!test.link";
    type Storage = Heap;
}

#[test]
fn long_chain_of_owned_values_is_dropped() {
    on_a_small_stack(|| {
        let mut list = None;
        for _ in 0..N_LINKS {
            list = Some(AsyncValue::available(Link { _next: list }));
        }
        drop(list);
    });
}

#[test]
fn long_chain_of_owned_promises_is_dropped() {
    /// Fails a value when it is dropped, whose waiter owns the next.
    struct Owner {
        _promise: Promise<Chain>,
    }
    on_a_small_stack(|| {
        let (promise, _value) = AsyncValue::<Chain>::pending();
        let mut owner = Owner { _promise: promise };
        for _ in 0..N_LINKS {
            let (promise, value) = AsyncValue::<Chain>::pending();
            let inner = owner;
            value.and_then(move || drop(inner));
            owner = Owner { _promise: promise };
        }
        drop(owner);
    });
}

#[test]
fn fan_out_of_many_waiters_runs() {
    on_a_small_stack(|| {
        let ran = Arc::new(AtomicUsize::new(0));
        let (promise, value) = AsyncValue::<Chain>::pending();
        for _ in 0..N_LINKS {
            let ran = Arc::clone(&ran);
            value.and_then(move || {
                ran.fetch_add(1, Ordering::Relaxed);
            });
        }
        promise.resolve(Chain);
        assert_eq!(ran.load(Ordering::SeqCst), N_LINKS);
    });
}

#[test]
fn waiters_nest_inline_up_to_the_limit() {
    let depth = || NESTING.with(|nesting| nesting.depth.get());
    let deepest = Arc::new(AtomicUsize::new(0));
    let (first, mut value) = AsyncValue::<Chain>::pending();
    for _ in 0..3 * MAX_DEPTH {
        let deepest = Arc::clone(&deepest);
        let (promise, next) = AsyncValue::<Chain>::pending();
        value.when_settled(move |_| {
            deepest.fetch_max(usize::try_from(depth()).unwrap(), Ordering::SeqCst);
            promise.resolve(Chain);
        });
        value = next;
    }
    first.resolve(Chain);
    assert!(value.is_settled());
    assert_eq!(
        deepest.load(Ordering::SeqCst),
        usize::try_from(MAX_DEPTH).unwrap()
    );
}

#[test]
fn what_was_put_off_runs_when_the_outermost_level_is_left() {
    fn descend(n_left: u32, log: Arc<Mutex<Vec<&'static str>>>) {
        if n_left == 0 {
            return log.lock().unwrap().push("deepest");
        }
        AsyncValue::available(Chain).and_then(move || descend(n_left - 1, log));
    }
    let log = Arc::new(Mutex::new(Vec::new()));
    let (promise, value) = AsyncValue::<Chain>::pending();
    let later = Arc::clone(&log);
    value.and_then(move || later.lock().unwrap().push("second"));
    let first = Arc::clone(&log);
    value.and_then(move || {
        descend(MAX_DEPTH, Arc::clone(&first));
        first.lock().unwrap().push("first");
    });
    promise.resolve(Chain);
    assert_eq!(*log.lock().unwrap(), ["first", "second", "deepest"]);
}

#[test]
fn waiter_that_panics_does_not_stop_the_others() {
    let before = counters().waiter_panics;
    let ran = Arc::new(AtomicUsize::new(0));
    let (promise, value) = AsyncValue::<Chain>::pending();
    for index in 0..4 {
        let ran = Arc::clone(&ran);
        value.and_then(move || {
            if index % 2 == 0 {
                std::panic::resume_unwind(Box::new("planned"));
            }
            ran.fetch_add(1, Ordering::SeqCst);
        });
    }
    promise.resolve(Chain);
    assert_eq!(ran.load(Ordering::SeqCst), 2);
    value.and_then(|| std::panic::resume_unwind(Box::new("planned")));
    assert!(counters().waiter_panics >= before + 3);
}

#[test]
fn payload_that_panics_when_dropped_is_freed() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            std::panic::resume_unwind(Box::new("planned"));
        }
    }
    impl Value for Bomb {
        const NAME: &'static str = "!test.bomb";
        type Storage = Heap;
    }
    let before = counters().waiter_panics;
    drop(AsyncValue::available(Bomb));
    assert!(counters().waiter_panics > before);
}

#[test]
fn what_was_thrown_may_panic_when_dropped() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            std::panic::resume_unwind(Box::new("planned again"));
        }
    }
    AsyncValue::available(Chain).and_then(|| std::panic::resume_unwind(Box::new(Bomb)));
}

#[test]
fn waiter_adds_a_waiter_to_the_same_value() {
    let ran = Arc::new(AtomicUsize::new(0));
    let (promise, value) = AsyncValue::<i32>::pending();
    let inner = Arc::clone(&ran);
    value.clone().when_settled(move |value| {
        let last = Arc::clone(&inner);
        value.and_then(move || {
            last.fetch_add(1, Ordering::SeqCst);
        });
        assert_eq!(
            inner.load(Ordering::SeqCst),
            1,
            "a late waiter runs at once"
        );
    });
    promise.resolve(1);
    assert_eq!(ran.load(Ordering::SeqCst), 1);
    assert!(value.is_settled());
}

#[test]
fn waiter_gets_the_value_in_normal_form() {
    let (promise, pending) = AnyAsyncValue::pending();
    let (failing, failed) = AnyAsyncValue::pending();
    let (outer, forwarded) = AnyAsyncValue::pending();
    outer.forward(pending.clone());
    let (sender, receiver) = mpsc::channel();
    for value in [pending, failed, forwarded, AnyAsyncValue::new(3)] {
        let sender = sender.clone();
        value.when_settled(move |value| {
            let message = value.error().map(|error| error.message().to_owned());
            let told = (value.get_in_place::<i32>(), message);
            sender.send(told).unwrap();
        });
    }
    assert_eq!(receiver.try_iter().collect::<Vec<_>>(), [(Some(3), None)]);
    failing.fail(Error::unknown("x"));
    promise.resolve(1);
    let x = Some("x".to_owned());
    let later: Vec<_> = receiver.try_iter().collect();
    assert_eq!(later, [(None, x), (Some(1), None), (Some(1), None)]);
}

#[test]
fn waiter_drops_the_last_reference() {
    let (promise, value) = AsyncValue::<Link>::pending();
    value.when_settled(drop);
    promise.resolve(Link { _next: None });
}

/// The captured content of a closure under test.
trait Content: Copy + PartialEq + Send + 'static {
    const CONTENT: Self;
}

impl<const N: usize> Content for [usize; N] {
    const CONTENT: Self = [7; N];
}

#[repr(align(16))]
#[derive(Clone, Copy, PartialEq)]
struct Aligned(u8);

impl Content for Aligned {
    const CONTENT: Self = Aligned(7);
}

/// A line of the cache.
#[repr(align(64))]
#[derive(Clone, Copy, PartialEq)]
struct Line([u8; 64]);

impl Content for Line {
    const CONTENT: Self = Line([7; 64]);
}

/// Lets closures wait that have this alone: the first of a value, which may lie in the cell, and another.
fn check_kept<T: Content>() {
    static N_RAN: AtomicUsize = AtomicUsize::new(0);
    let before = N_RAN.load(Ordering::SeqCst);
    let (promise, value) = AsyncValue::<Chain>::pending();
    let content = T::CONTENT;
    for _ in 0..2 {
        value.and_then(move || {
            let place = &raw const content;
            assert!(place.is_aligned() && content == T::CONTENT);
            N_RAN.fetch_add(1, Ordering::SeqCst);
        });
    }
    promise.resolve(Chain);
    assert_eq!(N_RAN.load(Ordering::SeqCst), before + 2);
}

#[test]
fn closures_of_every_size_and_alignment_are_kept() {
    check_kept::<[usize; 0]>();
    check_kept::<[usize; 1]>();
    check_kept::<[usize; 3]>();
    check_kept::<[usize; 4]>();
    check_kept::<[usize; 100]>();
    check_kept::<Aligned>();
    check_kept::<Line>();
}
