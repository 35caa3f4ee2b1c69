use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::error::ErrorCode;
use crate::queue::{MultiThreadedWorkQueue, SingleThreadedWorkQueue};

type Queue = Arc<dyn ConcurrentWorkQueue>;

fn multi(n_workers: usize) -> Queue {
    Arc::new(MultiThreadedWorkQueue::new(n_workers, 0).unwrap())
}

#[test]
fn each_part_is_run_once() {
    for (n_workers, n_parts, n_helpers) in [(1, 1, 0), (1, 5, 1), (2, 8, 1), (4, 100, 9)] {
        let queue = multi(n_workers);
        for _ in 0..100 {
            let counts: Arc<[AtomicUsize]> = (0..n_parts).map(|_| AtomicUsize::new(0)).collect();
            let of_parts = counts.clone();
            let done = share(
                &queue,
                n_parts,
                n_helpers,
                || false,
                move |index| {
                    of_parts[index].fetch_add(1, Ordering::Relaxed);
                    Ok(())
                },
            );
            queue.await_all(&[done.into_any()]).unwrap();
            assert!(counts.iter().all(|n| n.load(Ordering::Relaxed) == 1));
        }
    }
}

#[test]
fn without_helpers_all_is_done_at_once() {
    let queue: Queue = Arc::new(SingleThreadedWorkQueue::new());
    let held = Arc::new(());
    let own = held.clone();
    let done = share(
        &queue,
        3,
        0,
        || false,
        move |_| {
            let _ = &own;
            Ok(())
        },
    );
    assert!(done.is_settled() && done.error().is_none());
    assert_eq!(Arc::strong_count(&held), 1);
    assert!(share(&queue, 0, 7, || false, |_| Ok(())).is_settled());
}

#[test]
fn helpers_that_come_late_hold_nothing() {
    let queue: Queue = Arc::new(SingleThreadedWorkQueue::new());
    let held = Arc::new(());
    let own = held.clone();
    let done = share(
        &queue,
        3,
        2,
        || false,
        move |_| {
            let _ = &own;
            Ok(())
        },
    );
    assert!(done.is_settled());
    assert_eq!(Arc::strong_count(&held), 1);
    queue.quiesce().unwrap();
}

#[test]
fn the_last_part_that_failed_is_reported() {
    let queue = multi(2);
    let error_of = |failing: fn(usize) -> Result<(), Error>| {
        let done = share(&queue, 9, 1, || false, failing);
        queue.await_all(&[done.as_any().clone()]).unwrap();
        done.error().cloned()
    };
    let failed = error_of(|index| match index {
        2 | 7 | 4 => Err(Error::unknown(format!("part {index}"))),
        _ => Ok(()),
    });
    assert_eq!(failed.unwrap().message(), "part 7");
    assert!(error_of(|_| Ok(())).is_none());
}

#[test]
fn a_part_that_panics_fails_the_loop() {
    let queue = multi(1);
    let (me, both) = (std::thread::current().id(), Barrier::new(2));
    let done = share(
        &queue,
        2,
        1,
        || false,
        move |_| {
            both.wait();
            if std::thread::current().id() != me {
                std::panic::resume_unwind(Box::new("expected"));
            }
            Ok(())
        },
    );
    queue.await_all(&[done.as_any().clone()]).unwrap();
    assert_eq!(done.error().map(Error::code), Some(ErrorCode::Internal));
}

#[test]
fn it_stops_between_parts() {
    let queue: Queue = Arc::new(SingleThreadedWorkQueue::new());
    let n_run = Arc::new(AtomicUsize::new(0));
    let (counted, seen) = (n_run.clone(), n_run.clone());
    let cancelled = move || {
        let stop = seen.load(Ordering::Relaxed) >= 3;
        stop.then(|| Error::deadline_exceeded("too late"))
    };
    let done = share(&queue, 100, 0, cancelled, move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        Ok(())
    });
    assert_eq!(n_run.load(Ordering::Relaxed), 3);
    assert_eq!(
        done.error().map(Error::code),
        Some(ErrorCode::DeadlineExceeded)
    );
}
