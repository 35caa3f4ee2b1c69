//! Tests of leak reports, written when a program is over: each case is this program once more, in a process of its own,
//! with `TFRT_ACCOUNTING` set. Builds for development only, as what they test; and not those for sanitizers, to which
//! what some cases lose is a leak.

use std::cell::Cell;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;
use std::{env, fs, mem, process, thread};

use tfrt_async::queue::{ConcurrentWorkQueue, MultiThreadedWorkQueue, Task};
use tfrt_async::{AsyncValue, Heap, Value};

/// The variable that names the case that a process of its own runs.
const CASE: &str = "TFRT_ACCOUNTING_CASE";

/// The name of the test below, by which the process is told to run nothing else.
const TEST: &str = "accounting::case_of_a_process";

thread_local! {
    /// A value that a thread keeps until it is over.
    static KEPT: Cell<Option<AsyncValue<i32>>> = const { Cell::new(None) };
}

/// A value whose block is too large for free lists.
struct Large(#[expect(dead_code, reason = "it is there for its size")] [u8; 1 << 16]);

impl Value for Large {
    const NAME: &'static str = "!t.large";
    type Storage = Heap;
}

/// Runs the case that the variable names; when run with the other tests, does nothing.
#[test]
fn case_of_a_process() {
    let case: fn() = match env::var(CASE).as_deref() {
        Ok("all is freed") => || drop(AsyncValue::<i32>::pending()),
        Ok("two values are lost") => || {
            mem::forget(AsyncValue::<i32>::pending());
            mem::forget(AsyncValue::<i32>::pending());
        },
        Ok("a thread frees one when it ends") => || {
            // Begun before the thread has any memory of ours, so that its end comes after the end of that.
            KEPT.with(|kept| {
                let (_, value) = AsyncValue::<i32>::pending();
                kept.set(Some(value));
            });
        },
        Ok("a worker has one in its hands") => || {
            let queue = Arc::new(MultiThreadedWorkQueue::new(1, 0).unwrap());
            let (promise, value) = AsyncValue::<i32>::pending();
            let (sender, has_begun) = channel();
            queue.add_task(Task::new(move || {
                sender.send(()).unwrap();
                loop {
                    thread::park();
                    assert!(!value.is_settled(), "nobody resolves it");
                }
            }));
            has_begun.recv().unwrap();
            // The end of the one would wait for the task, that of the other would settle the value.
            mem::forget((queue, promise));
        },
        Ok("a thread that runs tasks has one in its hands") => || {
            let (promise, value) = AsyncValue::<i32>::pending();
            let (sender, has_begun) = channel();
            let task = Task::new(move || {
                sender.send(()).unwrap();
                loop {
                    thread::park();
                    assert!(!value.is_settled(), "nobody resolves it");
                }
            });
            thread::spawn(move || task.run());
            has_begun.recv().unwrap();
            mem::forget(promise);
        },
        Ok("a thread has one large block in its hands for some time") => || {
            let (_, value) = AsyncValue::<Large>::pending();
            // Meanwhile all others end.
            let other = thread::spawn(|| drop(AsyncValue::<i32>::pending()));
            other.join().unwrap();
            drop(value);
        },
        Ok("a thread frees one after the last test") => || {
            let (sender, has_begun) = channel();
            thread::spawn(move || {
                let both = AsyncValue::<i32>::pending();
                sender.send(()).unwrap();
                thread::sleep(Duration::from_millis(100));
                drop(both);
            });
            has_begun.recv().unwrap();
        },
        Ok("a thread takes one over and never ends") => || {
            let maker = thread::spawn(|| AsyncValue::<i32>::pending().1);
            let value = maker.join().unwrap();
            let (sender, has_begun) = channel();
            thread::spawn(move || {
                let other = AsyncValue::<i32>::pending();
                sender.send(()).unwrap();
                loop {
                    thread::park();
                    assert!(!value.is_settled() || other.1.is_settled());
                }
            });
            has_begun.recv().unwrap();
        },
        _ => return,
    };
    // The count is written when a thread ends; this one may be that of the harness.
    thread::spawn(case).join().unwrap();
    process::exit(0);
}

/// Runs a case, and reads the counts that are there afterwards: of blocks and of values.
fn counts_after(case: &str) -> Vec<String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(case);
    if folder.exists() {
        fs::remove_dir_all(&folder).unwrap();
    }
    fs::create_dir_all(&folder).unwrap();
    let output = Command::new(env::current_exe().unwrap())
        .args(["--exact", TEST])
        .env(CASE, case)
        .env("TFRT_ACCOUNTING", &folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let mut counts: Vec<String> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let kind = path.extension().unwrap().to_string_lossy().into_owned();
            format!("{} {kind}", fs::read_to_string(path).unwrap())
        })
        .collect();
    counts.sort();
    counts
}

#[test]
fn what_frees_all_leaves_nothing() {
    assert_eq!(counts_after("all is freed"), ["0 blocks", "0 values"]);
}

#[test]
fn what_a_thread_frees_at_its_very_end_is_not_left() {
    assert_eq!(
        counts_after("a thread frees one when it ends"),
        ["0 blocks", "0 values"]
    );
}

#[test]
fn what_is_lost_is_counted() {
    assert_eq!(
        counts_after("two values are lost"),
        ["2 blocks", "2 values"]
    );
}

#[test]
fn nothing_is_counted_while_a_worker_may_free_it() {
    assert_eq!(
        counts_after("a worker has one in its hands"),
        ["? blocks", "? values"]
    );
}

#[test]
fn nothing_is_counted_while_a_thread_of_another_queue_may_free_it() {
    assert_eq!(
        counts_after("a thread that runs tasks has one in its hands"),
        ["? blocks", "? values"]
    );
}

#[test]
fn what_a_thread_frees_that_takes_large_blocks_alone_is_not_left() {
    assert_eq!(
        counts_after("a thread has one large block in its hands for some time"),
        ["0 blocks", "0 values"]
    );
}

#[test]
fn what_a_thread_frees_after_the_last_test_is_not_left() {
    assert_eq!(
        counts_after("a thread frees one after the last test"),
        ["0 blocks", "0 values"]
    );
}

#[test]
fn a_count_is_taken_back_when_a_thread_begins() {
    assert_eq!(
        counts_after("a thread takes one over and never ends"),
        ["? blocks", "? values"]
    );
}
