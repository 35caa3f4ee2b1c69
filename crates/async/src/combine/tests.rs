use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use crate::{
    AnyAsyncValue, AsyncValue, Error, Nested, Promise, first_error, run_when_settled, when_all,
};

fn pending(n: usize) -> (Vec<Promise<i32>>, Vec<AnyAsyncValue>) {
    (0..n)
        .map(|_| AsyncValue::<i32>::pending())
        .map(|(p, v)| (p, v.into_any()))
        .unzip()
}

#[test]
fn map_passes_errors_without_running() {
    let error = Error::unknown("x");
    let mapped = AsyncValue::<i32>::from_error(error.clone()).map(|_| -> i64 { unreachable!() });
    assert!(mapped.error().unwrap().same(&error));
    let (promise, value) = AsyncValue::<i32>::pending();
    let mapped = value.map(|_| -> i64 { unreachable!() });
    promise.fail(error.clone());
    assert!(mapped.error().unwrap().same(&error));
}

#[test]
fn try_map_may_fail() {
    let (promise, value) = AsyncValue::<i32>::pending();
    let mapped = value.try_map(|_| Err::<i32, _>(Error::invalid_argument("odd")));
    promise.resolve(1);
    assert_eq!(mapped.error().unwrap().message(), "odd");
}

#[test]
fn function_that_panics_fails_the_mapped_value() {
    let (promise, value) = AsyncValue::<i32>::pending();
    let mapped = value.map(|_| -> i32 { std::panic::resume_unwind(Box::new("planned")) });
    promise.resolve(1);
    assert!(mapped.error().is_some());
}

#[test]
fn flatten_gives_the_inner_value() {
    let (inner_promise, inner) = AsyncValue::<i32>::pending();
    let (promise, value) = AsyncValue::<Nested<i32>>::pending();
    let flat = value.flatten();
    promise.resolve(Nested(inner));
    assert!(!flat.is_settled());
    inner_promise.resolve(7);
    assert_eq!(flat.get().unwrap().unwrap(), &7);
}

#[test]
fn when_all_waits_for_every_value() {
    let (promises, values) = pending(3);
    let all = when_all(&values);
    for promise in promises {
        assert!(!all.is_settled());
        promise.resolve(1);
    }
    assert!(all.get().unwrap().is_ok());
    assert!(when_all(&[]).get().unwrap().is_ok());
}

#[test]
fn when_all_reports_the_failed_value_with_the_highest_index() {
    let (promises, values) = pending(4);
    let all = when_all(&values);
    // The last to fail is not the last by index.
    for (index, promise) in promises.into_iter().enumerate().rev() {
        match index {
            0 | 2 => promise.fail(Error::unknown(format!("number {index}"))),
            _ => promise.resolve(1),
        }
    }
    assert_eq!(all.error().unwrap().message(), "number 2");
    assert_eq!(first_error(&values).unwrap().message(), "number 2");
    assert!(first_error(&[AnyAsyncValue::new(1)]).is_none());
}

#[test]
fn when_all_is_settled_by_dropped_promises() {
    let (promises, values) = pending(2);
    let all = when_all(&values);
    drop((promises, values));
    assert!(all.error().is_some());
}

#[test]
fn run_when_settled_runs_once_and_counts_errors() {
    for n in 0..4 {
        let ran = Arc::new(AtomicUsize::new(0));
        let (promises, values) = pending(n);
        run_when_settled(&values, {
            let ran = Arc::clone(&ran);
            move || {
                ran.fetch_add(1, Ordering::SeqCst);
            }
        });
        for (index, promise) in promises.into_iter().enumerate() {
            assert_eq!(ran.load(Ordering::SeqCst), 0);
            if index == 0 {
                promise.fail(Error::unknown("x"))
            } else {
                promise.resolve(1)
            }
        }
        assert_eq!(ran.load(Ordering::SeqCst), 1);
    }
}
