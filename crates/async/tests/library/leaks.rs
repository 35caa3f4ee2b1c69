//! Everything that is made is freed, as the counters of a process tell.

use std::thread;

use tfrt_async::{
    AnyAsyncValue, AsyncValue, Error, Heap, Producer, Value, counters, memory_stats, when_all,
};

use crate::own_process::in_own_process;

struct Text(#[expect(dead_code, reason = "only its memory matters")] String);

impl Value for Text {
    const NAME: &'static str = "!test.text";
    type Storage = Heap;
}

fn text() -> Text {
    Text("text".to_owned())
}

/// Ends every kind of cell in every way.
fn exercise() {
    drop(AsyncValue::available(text()));
    drop(AnyAsyncValue::from_error(Error::unknown("x")));

    let (promise, value) = AsyncValue::<Text>::pending();
    promise.resolve(text());
    drop(value);

    let (promise, value) = AsyncValue::<Text>::pending();
    drop(value);
    promise.resolve(text());

    let (promise, value) = AsyncValue::<Text>::pending();
    value.as_any().set_producer(&Producer::new("k"));
    drop(value.clone());
    drop(promise);
    drop(value);

    let (promise, value) = AnyAsyncValue::pending();
    let (outer, result) = AnyAsyncValue::pending();
    outer.forward(value.clone());
    let all = when_all(&[value, result]);
    thread::spawn(move || promise.resolve(text()))
        .join()
        .unwrap();
    drop(all);

    let (promise, value) = AsyncValue::<i32>::pending();
    let mapped = value.map(|x| *x).map(|x| *x);
    drop(mapped);
    thread::spawn(move || drop(promise)).join().unwrap();

    let (promise, value) = AsyncValue::<i32>::pending();
    promise.forward(value);
}

#[test]
fn nothing_is_left() {
    in_own_process("leaks::nothing_is_left", exercise_often);
}

fn exercise_often() {
    for _ in 0..100 {
        exercise();
    }
    let counters = counters();
    assert_eq!((counters.live_cells, counters.live_cell_bytes), (0, 0));
    assert_eq!(counters.waiter_panics, 0);
    let stats = memory_stats();
    assert_eq!(stats.live_blocks, 0, "{stats:?}");
}
