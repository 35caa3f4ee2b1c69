//! Tests in a process of their own, whose counters, memory and threads they look at.

use std::env;
use std::process::Command;

/// The variable that tells a process to do the work itself.
const IS_OWN: &str = "TFRT_TEST_IN_OWN_PROCESS";

/// Does the work of the test of this name, with its modules, in a process of its own: this program once more, with that
/// test alone.
pub fn in_own_process(test: &str, work: fn()) {
    if env::var_os(IS_OWN).is_some() {
        return work();
    }
    let output = Command::new(env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(IS_OWN, "1")
        // Freed memory goes back to the system, and is not kept for the sizes that came before.
        .env("MALLOC_MMAP_THRESHOLD_", "131072")
        .output()
        .unwrap();
    let [said, reported] =
        [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    println!("{said}{reported}");
    assert!(output.status.success(), "{test}: {}", output.status);
    // A name that is no test's would run none.
    assert!(said.contains("1 passed"), "{test} has not run");
}
