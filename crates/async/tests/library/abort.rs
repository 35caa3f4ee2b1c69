//! Tests of handles that would wrap their count: the process ends before a value is freed in use.
//! Each case is this program once more, in a process of its own.

use std::process::{Command, exit};
use std::{env, mem};

use tfrt_async::{AnyAsyncValue, AsyncValue};

/// The variable that says how many more handles a process of its own counts, one number after the
/// other.
const CASE: &str = "TFRT_ABORT_CASE";

#[test]
fn case_of_a_process() {
    let Ok(case) = env::var(CASE) else {
        // Not a test when it is run with the others.
        return;
    };
    let (promise, value) = AsyncValue::<i32>::pending();
    let value: AnyAsyncValue = value.into_any();
    for n in case.split(' ') {
        value.retain(n.parse().unwrap());
    }
    // Nobody counts so many down again.
    mem::forget((promise, value));
    exit(0);
}

fn survives(case: &str) -> bool {
    let mut process = Command::new(env::current_exe().unwrap());
    process.args(["--exact", "abort::case_of_a_process"]);
    // What it leaves is left on purpose, and not to be counted.
    process.env(CASE, case).env_remove("TFRT_ACCOUNTING");
    process.output().unwrap().status.success()
}

#[test]
fn half_of_all_numbers_may_be_counted() {
    assert!(survives("2147483647"));
    // How many there were before is looked at.
    assert!(survives("2147483646 1"));
    assert!(survives("1073741824 1073741824"));
}

#[test]
fn more_handles_end_the_process() {
    assert!(!survives("2147483648"));
    assert!(!survives("4294967295"));
    assert!(!survives("2147483647 1"));
    assert!(!survives("1073741824 1073741824 1073741824"));
    #[cfg(target_pointer_width = "64")]
    assert!(!survives("4294967296"));
}
