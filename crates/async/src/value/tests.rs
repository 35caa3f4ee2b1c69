use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use crate::{
    AnyAsyncValue, AnyPromise, AsyncValue, Chain, Error, ErrorCode, Heap, InPlace, Nested,
    Producer, ProducerInfo, SourceLocation, Value,
};

/// A value on the heap that counts its drops.
#[derive(Debug)]
struct Tracked {
    number: i32,
    drops: Arc<AtomicUsize>,
}

impl Tracked {
    fn new(number: i32) -> (Tracked, Arc<AtomicUsize>) {
        let drops = Arc::new(AtomicUsize::new(0));
        (
            Tracked {
                number,
                drops: Arc::clone(&drops),
            },
            drops,
        )
    }
}

impl Drop for Tracked {
    fn drop(&mut self) {
        self.drops.fetch_add(1, Ordering::SeqCst);
    }
}

impl Value for Tracked {
    const NAME: &'static str = "!test.tracked";
    type Storage = Heap;
}

/// Nothing, on the heap.
#[derive(Debug, PartialEq)]
struct Unit;

impl Value for Unit {
    const NAME: &'static str = "!test.unit";
    type Storage = Heap;
}

/// A whole page.
#[repr(align(4096))]
#[derive(Debug, PartialEq)]
struct Page(u8);

impl Value for Page {
    const NAME: &'static str = "!test.page";
    type Storage = Heap;
}

/// The largest thing that fits in a register.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Pair(u64, u64);

impl Value for Pair {
    const NAME: &'static str = "!test.pair";
    type Storage = InPlace;
}

fn count(drops: &AtomicUsize) -> usize {
    drops.load(Ordering::SeqCst)
}

#[test]
fn a_register_is_24_bytes() {
    assert_eq!(size_of::<AnyAsyncValue>(), 24);
    assert_eq!(size_of::<AsyncValue<i32>>(), 24);
    assert_eq!(align_of::<AnyAsyncValue>(), 8);
}

#[test]
fn values_cross_threads() {
    fn check<T: Send + Sync>() {}
    check::<AnyAsyncValue>();
    check::<AsyncValue<Tracked>>();
    check::<crate::Promise<Tracked>>();
    check::<AnyPromise>();
    check::<Error>();
    check::<Producer>();
}

/// Makes `value` in every way and reads it back in every way.
fn round_trip<T: Value + std::fmt::Debug + PartialEq>(make: impl Fn() -> T) {
    let read = |value: &AnyAsyncValue| {
        assert!(value.is_settled() && value.error().is_none() && value.is::<T>());
        assert_eq!(value.get::<T>(), Some(&make()));
        assert_eq!(value.get::<u8>(), None);
        assert_eq!(value.type_name(), Some(T::NAME));
        let copy = value.clone().settled();
        assert!(copy.is_plain());
        assert_eq!(copy.get::<T>(), Some(&make()));
        let typed = copy.downcast::<T>().unwrap();
        assert_eq!(typed.get().unwrap().unwrap(), &make());
    };

    let available = AnyAsyncValue::new(make());
    read(&available);
    assert_eq!(available.take::<T>().unwrap(), make());

    let (promise, value) = AsyncValue::<T>::pending();
    promise.resolve(make());
    read(value.as_any());
    assert_eq!(value.try_into_value().unwrap(), make());

    let (promise, value) = AnyAsyncValue::pending();
    promise.resolve(make());
    read(&value);
    assert_eq!(value.take::<T>().unwrap(), make());

    let (promise, value) = AsyncValue::<T>::pending();
    let (outer, result) = AsyncValue::<T>::pending();
    outer.forward(value);
    promise.resolve(make());
    read(result.as_any());

    let (promise, value) = AnyAsyncValue::pending();
    AnyPromise::from(AsyncValue::<T>::pending().0).forward(value.clone());
    promise.forward(AnyAsyncValue::new(make()));
    read(&value);
}

#[test]
fn values_of_every_storage_go_round() {
    round_trip(|| true);
    round_trip(|| -7_i32);
    round_trip(|| 1.5_f64);
    round_trip(|| Chain);
    round_trip(|| Pair(1, u64::MAX));
    round_trip(|| Unit);
    round_trip(|| Page(7));
}

#[test]
fn over_aligned_payload_is_aligned() {
    let value = AsyncValue::available(Page(7));
    let page: *const Page = value.get().unwrap().unwrap();
    assert_eq!(page.addr() % 4096, 0);
}

#[test]
fn in_place_read_takes_the_exact_type_only() {
    let value = AnyAsyncValue::new(7_i32);
    assert_eq!(value.get_in_place::<i32>(), Some(7));
    assert_eq!(value.get_in_place::<u32>(), None);
    assert_eq!(AnyAsyncValue::empty().get_in_place::<i32>(), None);
    assert_eq!(
        AnyAsyncValue::from_error(Error::unknown("x")).get_in_place::<i32>(),
        None
    );
    let (promise, value) = AsyncValue::<i32>::pending();
    promise.resolve(7);
    assert_eq!(
        value.as_any().get_in_place::<i32>(),
        None,
        "a handle is not looked through"
    );
    assert_eq!(value.settled().as_any().get_in_place::<i32>(), Some(7));
}

#[test]
fn register_tells_how_its_value_is_stored() {
    assert!(AnyAsyncValue::is_in_place::<i32>() && AnyAsyncValue::is_in_place::<Pair>());
    assert!(!AnyAsyncValue::is_in_place::<Unit>() && !AnyAsyncValue::is_in_place::<String>());
    let (_promise, pending) = AnyAsyncValue::pending();
    let registers = [
        AnyAsyncValue::empty(),
        AnyAsyncValue::new(1),
        AnyAsyncValue::from_error(Error::unknown("x")),
        pending,
        AnyAsyncValue::new(Unit),
    ];
    let is_counted = registers.each_ref().map(AnyAsyncValue::is_counted);
    assert_eq!(is_counted, [false, false, true, true, true]);
    let is_number = registers.each_ref().map(AnyAsyncValue::is::<i32>);
    assert_eq!(is_number, [false, true, false, false, false]);

    let [empty, number, error, handle, unit] = registers.each_ref().map(AnyAsyncValue::tag);
    assert_eq!((empty, error, handle), (0, 1, 3));
    assert_eq!((number % 8, unit % 8), (0, 1));
    assert_eq!(AnyAsyncValue::new(2).tag(), number);
    assert_ne!(AnyAsyncValue::new(2_u32).tag(), number);
}

#[test]
fn value_inside_a_value_is_not_taken_for_it() {
    // What lies in the cell has the form of a register with an `i32`.
    let (promise, value) = AsyncValue::<Nested<i32>>::pending();
    promise.resolve(Nested(AsyncValue::available(7)));
    assert_eq!(value.as_any().get::<i32>(), None);
    assert_eq!(value.as_any().type_name(), Some(Nested::<i32>::NAME));
    assert_eq!(value.flatten().get().unwrap().unwrap(), &7);
}

#[test]
fn empty_register_holds_nothing() {
    let empty = AnyAsyncValue::empty();
    assert!(empty.is_empty() && empty.is_settled() && !empty.is_plain());
    assert!(empty.error().is_none() && empty.type_name().is_none());
    assert!(empty.downcast::<i32>().is_err());
}

#[test]
fn heap_value_is_dropped_once_by_its_last_handle() {
    let (tracked, drops) = Tracked::new(7);
    let value = AnyAsyncValue::new(tracked);
    let copies = [value.clone(), value.clone(), value];
    assert_eq!(count(&drops), 0);
    assert!(
        copies
            .iter()
            .all(|copy| copy.get::<Tracked>().unwrap().number == 7)
    );
    drop(copies);
    assert_eq!(count(&drops), 1);
}

#[test]
fn value_is_dropped_once_however_it_was_settled() {
    let (tracked, drops) = Tracked::new(1);
    let (promise, value) = AsyncValue::pending();
    promise.resolve(tracked);
    drop(value);
    assert_eq!(count(&drops), 1);

    let (tracked, drops) = Tracked::new(2);
    let (promise, value) = AsyncValue::pending();
    drop(value);
    assert!(promise.is_unobserved());
    promise.resolve(tracked);
    assert_eq!(count(&drops), 1);

    let (promise, value) = AnyAsyncValue::pending();
    assert!(!promise.is_unobserved());
    drop(value);
    assert!(promise.is_unobserved());

    let (tracked, drops) = Tracked::new(3);
    let (promise, value) = AnyAsyncValue::pending();
    let source = AnyAsyncValue::new(tracked);
    promise.forward(source.clone());
    drop(source);
    assert_eq!(value.get::<Tracked>().unwrap().number, 3);
    drop(value);
    assert_eq!(count(&drops), 1);
}

#[test]
fn uniqueness_is_of_heap_values_with_one_reference() {
    let value = AnyAsyncValue::new(Unit);
    assert!(value.is_unique());
    let copy = value.clone();
    assert!(!value.is_unique());
    drop(copy);
    assert!(value.is_unique());
    assert!(!AnyAsyncValue::new(1).is_unique());
    assert!(!AnyAsyncValue::from_error(Error::unknown("x")).is_unique());
    let (promise, pending) = AnyAsyncValue::pending();
    assert!(!pending.is_unique());
    promise.forward(value);
    assert!(!pending.is_unique());
}

#[test]
fn shared_value_cannot_be_taken() {
    let value = AnyAsyncValue::new(Unit);
    let copy = value.clone();
    let value = value.take::<Unit>().unwrap_err();
    assert!(copy.take::<Page>().is_err());
    assert_eq!(value.take::<Unit>().unwrap(), Unit);
    let (_promise, pending) = AnyAsyncValue::pending();
    assert!(pending.take::<Unit>().is_err());
}

#[test]
fn sole_owner_may_write() {
    let mut value = AnyAsyncValue::new(Page(1));
    value.get_mut::<Page>().unwrap().0 = 2;
    let copy = value.clone();
    assert_eq!(value.get_mut::<Page>(), None);
    assert_eq!(copy.get::<Page>(), Some(&Page(2)));
    let mut number = AnyAsyncValue::new(1_i32);
    *number.get_mut::<i32>().unwrap() += 1;
    assert_eq!(number.get::<i32>(), Some(&2));
    assert_eq!(number.get_mut::<i64>(), None);
}

#[test]
fn waiters_run_latest_first() {
    let order = Arc::new(Mutex::new(Vec::new()));
    let (promise, value) = AsyncValue::<i32>::pending();
    for index in 0..5 {
        let order = Arc::clone(&order);
        let padding = [index; 16];
        if index % 2 == 0 {
            value.and_then(move || order.lock().unwrap().push(index));
        } else {
            value.and_then(move || order.lock().unwrap().push(padding[0]));
        }
    }
    promise.resolve(1);
    assert_eq!(*order.lock().unwrap(), [4, 3, 2, 1, 0]);
}

#[test]
fn waiter_of_a_settled_value_runs_at_once() {
    let ran = Arc::new(AtomicUsize::new(0));
    let values = [
        AnyAsyncValue::new(1),
        AnyAsyncValue::from_error(Error::unknown("x")),
        AnyAsyncValue::new(Unit),
        AnyAsyncValue::empty(),
    ];
    for value in &values {
        let ran = Arc::clone(&ran);
        value.and_then(move || {
            ran.fetch_add(1, Ordering::SeqCst);
        });
    }
    assert_eq!(count(&ran), values.len());
}

#[test]
fn waiters_outlive_the_handles() {
    let ran = Arc::new(AtomicUsize::new(0));
    let (promise, value) = AsyncValue::<i32>::pending();
    value.and_then({
        let ran = Arc::clone(&ran);
        move || {
            ran.fetch_add(1, Ordering::SeqCst);
        }
    });
    drop(value);
    assert!(promise.is_unobserved());
    promise.resolve(1);
    assert_eq!(count(&ran), 1);
}

#[test]
fn promise_dropped_unresolved_fails_its_value() {
    let (promise, value) = AsyncValue::<i32>::pending();
    drop(promise);
    let error = value.error().unwrap();
    assert_eq!(error.code(), ErrorCode::Internal);
    assert_eq!(
        error.message(),
        "a promise was dropped without being resolved"
    );
    assert_eq!(error.kernel(), None);
}

#[test]
fn promise_dropped_unresolved_names_its_kernel() {
    struct Somewhere;
    impl ProducerInfo for Somewhere {
        fn kernel(&self) -> String {
            "my.kernel".to_owned()
        }
        fn location(&self) -> Option<SourceLocation> {
            Some(SourceLocation::Opaque("here".to_owned()))
        }
    }
    let (promise, value) = AnyAsyncValue::pending();
    value.set_producer(&Producer::new(Somewhere));
    value.set_producer(&Producer::new("another".to_owned()));
    drop(promise);
    let error = value.error().unwrap();
    assert_eq!(
        error.message(),
        "kernel 'my.kernel' dropped its promise without resolving it"
    );
    assert_eq!(error.kernel(), None);
    assert_eq!(error.location().unwrap().to_string(), "here");
    value.set_producer(&Producer::new("too late"));

    struct Counted(#[expect(dead_code, reason = "only its count matters")] Arc<()>);
    impl ProducerInfo for Counted {
        fn kernel(&self) -> String {
            unreachable!("nobody asks")
        }
    }
    let (promise, value) = AnyAsyncValue::pending();
    promise.resolve(1);
    let witness = Arc::new(());
    value.set_producer(&Producer::new(Counted(Arc::clone(&witness))));
    assert_eq!(Arc::strong_count(&witness), 1, "it is not kept");

    let (promise, value) = AnyAsyncValue::pending();
    value.set_producer(&Producer::new("my.other".to_owned()));
    drop(promise);
    assert_eq!(
        value.error().unwrap().message(),
        "kernel 'my.other' dropped its promise without resolving it"
    );
}

#[test]
fn promise_lost_in_a_panic_fails_its_value() {
    let (promise, value) = AsyncValue::<i32>::pending();
    let thread = thread::spawn(move || {
        let _promise = promise;
        std::panic::resume_unwind(Box::new("planned"));
    });
    thread.join().unwrap_err();
    assert_eq!(value.error().unwrap().code(), ErrorCode::Internal);
}

#[test]
fn failure_is_one_error_for_everybody() {
    let error = Error::not_found("no such file");
    let (promise, value) = AsyncValue::<Tracked>::pending();
    let copy = value.clone().settled();
    promise.fail(error.clone());
    assert!(value.error().unwrap().same(&error));
    assert!(copy.settled().error().unwrap().same(&error));
    assert!(value.get().unwrap().is_err());
    assert!(value.as_any().type_name().is_none());
}

#[test]
fn retain_makes_later_copies_owners() {
    let (tracked, drops) = Tracked::new(1);
    let value = AnyAsyncValue::new(tracked);
    value.retain(2);
    // SAFETY: two more owners were counted, and a register may be copied bytewise.
    let one = unsafe { std::ptr::read(&value) };
    // SAFETY: as above.
    let two = unsafe { std::ptr::read(&value) };
    drop((one, value));
    assert_eq!(count(&drops), 0);
    drop(two);
    assert_eq!(count(&drops), 1);

    let failed = AnyAsyncValue::from_error(Error::unknown("x"));
    failed.retain(1);
    // SAFETY: one more owner was counted.
    let copy = unsafe { std::ptr::read(&failed) };
    assert!(copy.error().unwrap().same(failed.error().unwrap()));
}

#[test]
fn forwarding_flattens() {
    let (first, value) = AnyAsyncValue::pending();
    let mut last = value;
    for _ in 0..10 {
        let (promise, value) = AnyAsyncValue::pending();
        promise.forward(last);
        last = value;
    }
    let (tracked, drops) = Tracked::new(7);
    first.resolve(tracked);
    assert_eq!(last.get::<Tracked>().unwrap().number, 7);
    let last = last.settled();
    assert!(last.is_plain() && last.is_unique());
    drop(last);
    assert_eq!(count(&drops), 1);
}

#[test]
fn forwarding_to_another_type_fails() {
    let (promise, value) = AsyncValue::<i32>::pending();
    AnyPromise::from(promise).resolve(1_i64);
    let error = value.error().unwrap();
    assert_eq!(error.code(), ErrorCode::InvalidArgument);
    assert_eq!(error.message(), "expected a value of type i32, found i64");

    let (promise, value) = AsyncValue::<Page>::pending();
    AnyPromise::from(promise).forward(AnyAsyncValue::new(Unit));
    assert_eq!(
        value.error().unwrap().message(),
        "expected a value of type !test.page, found !test.unit"
    );

    let (promise, value) = AnyAsyncValue::pending();
    promise.forward(AnyAsyncValue::empty());
    assert_eq!(value.error().unwrap().code(), ErrorCode::Internal);
}

#[test]
fn forwarding_to_itself_fails() {
    let (promise, value) = AsyncValue::<i32>::pending();
    promise.forward(value.clone());
    assert_eq!(
        value.error().unwrap().message(),
        "a promise was forwarded to its own value"
    );
    let (promise, value) = AnyAsyncValue::pending();
    promise.forward(value);
}

#[test]
fn forwarding_passes_errors() {
    let (promise, value) = AnyAsyncValue::pending();
    let (outer, result) = AsyncValue::<i32>::pending();
    AnyPromise::from(outer).forward(value);
    let error = Error::unknown("x");
    promise.fail(error.clone());
    assert!(result.error().unwrap().same(&error));
}

#[test]
fn pending_value_is_downcast_by_the_type_it_will_have() {
    let (_promise, value) = AsyncValue::<i32>::pending();
    assert_eq!(value.as_any().type_name(), Some("i32"));
    let value = value.into_any().downcast::<i64>().unwrap_err();
    assert!(value.downcast::<i32>().is_ok());

    let (promise, value) = AnyAsyncValue::pending();
    assert_eq!(value.type_name(), None);
    let right = value.clone().downcast::<i32>().unwrap();
    let wrong = value.downcast::<i64>().unwrap();
    promise.resolve(1_i32);
    assert_eq!(right.get().unwrap().unwrap(), &1);
    assert_eq!(
        wrong.error().unwrap().message(),
        "expected a value of type i64, found i32"
    );
}

#[test]
fn error_is_of_every_type() {
    let value = AnyAsyncValue::from_error(Error::unknown("x"));
    assert!(value.clone().downcast::<i32>().is_ok());
    assert!(value.downcast::<Page>().is_ok());
}

#[test]
fn debug_says_what_is_known() {
    let check = |value: AnyAsyncValue, text: &str| assert_eq!(format!("{value:?}"), text);
    check(AnyAsyncValue::new(1), "settled(i32)");
    check(AnyAsyncValue::empty(), "empty");
    check(
        AnyAsyncValue::from_error(Error::unknown("x")),
        "failed(Error { code: Unknown, message: \"x\" })",
    );
    let (_promise, value) = AnyAsyncValue::pending();
    check(value, "pending(unknown)");
    let (_promise, value) = AsyncValue::<i32>::pending();
    assert_eq!(format!("{value:?}"), "pending(i32)");
    assert_eq!(format!("{:?}", AsyncValue::available(1)), "settled(1)");
}

#[test]
fn every_reader_on_every_thread_sees_the_value_once_it_is_set() {
    const N_READERS: usize = 4;
    const N_ROUNDS: i32 = if cfg!(miri) { 20 } else { 2_000 };
    for round in 0..N_ROUNDS {
        let (tracked, drops) = Tracked::new(round);
        let ran = Arc::new(AtomicUsize::new(0));
        let (promise, value) = AsyncValue::<Tracked>::pending();
        thread::scope(|scope| {
            for _ in 0..N_READERS {
                let (value, ran) = (value.clone(), Arc::clone(&ran));
                scope.spawn(move || {
                    let reader = value.clone();
                    value.and_then(move || {
                        assert_eq!(reader.get().unwrap().unwrap().number, round);
                        ran.fetch_add(1, Ordering::SeqCst);
                    });
                    value.when_settled(drop);
                });
            }
            scope.spawn(move || promise.resolve(tracked));
            drop(value);
        });
        assert_eq!((count(&ran), count(&drops)), (N_READERS, 1));
    }
}
