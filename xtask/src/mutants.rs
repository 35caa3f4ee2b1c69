//! Mutation testing by cargo-mutants: what is wrong in one place must fail a test.
//!
//! `.cargo/mutants.toml` says what is left out. All mutants of a subject take hours on a small machine, so a shard
//! is a part of them, spread evenly: `3/20` is the fourth of twenty parts.

use crate::steps::{Steps, cargo, succeeds, target};

/// What is changed, and what must notice.
struct Subject {
    name: &'static str,
    /// Arguments that pick the changes.
    changed: &'static [&'static str],
    /// Packages whose tests are run, by cargo's arguments behind `--`.
    tested: &'static [&'static str],
}

/// All of them.
const SUBJECTS: [Subject; 3] = [
    Subject {
        name: "bef",
        changed: &["--package=tfrt-bef"],
        tested: &["--test-package=tfrt-bef,tfrt-compiler"],
    },
    Subject {
        name: "values",
        changed: &[
            "--package=tfrt-async",
            "--file=crates/async/src/*.rs",
            "--file=crates/async/src/cell/*.rs",
        ],
        tested: &["--test-package=tfrt-async"],
    },
    Subject {
        name: "executor",
        changed: &[
            "--package=tfrt-host",
            "--file=crates/host/src/executor/**/*.rs",
            "--file=crates/host/src/executor.rs",
        ],
        tested: &["--test-package=tfrt-host,tfrt-kernels"],
    },
];

/// The names that `run` knows.
pub fn names() -> Vec<&'static str> {
    SUBJECTS.iter().map(|subject| subject.name).collect()
}

/// Makes the mutants of one subject, or of a shard of it; false if there is no such subject.
pub fn run(steps: &mut Steps, name: &str, shard: Option<&str>) -> bool {
    let Some(subject) = SUBJECTS.iter().find(|subject| subject.name == name) else {
        return false;
    };
    if !succeeds(&mut cargo(&["mutants", "--version"])) {
        steps.skip("mutants", "cargo-mutants (cargo install cargo-mutants)");
        return true;
    }
    let output = target("mutants").join(name);
    let mut command = cargo(&["mutants", "--no-shuffle", "--colors=never", "--output"]);
    command
        .arg(output)
        .args(subject.changed)
        .args(subject.tested);
    if let Some(shard) = shard {
        command.args(["--sharding=round-robin", "--shard", shard]);
    }
    steps.run(&format!("mutants: {name}"), &mut command);
    true
}
