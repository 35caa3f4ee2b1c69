//! Checkers that need a build of their own: loom, sanitizers, Miri, another processor.

use std::path::Path;
use std::process::Command;

use crate::steps::{Steps, cargo, cargo_within, exists, succeeds, target};

/// The only platform that the sanitizers are tried on.
const HOST: &str = "x86_64-unknown-linux-gnu";

/// The profile that models are built with, for loom and for shuttle.
const PROFILE: &str = "--profile=models";

/// The groups of models. Each is a run of its own, with a time limit.
pub const MODELS: [Models; 4] = [
    Models {
        name: "values",
        package: "tfrt-async",
        filter: &["loom::", "loom_models::", "--skip", "queue::"],
    },
    Models {
        name: "memory",
        package: "tfrt-async",
        filter: &["loom_memory"],
    },
    Models {
        name: "queues",
        package: "tfrt-async",
        filter: &["loom_queue"],
    },
    Models {
        name: "executor",
        package: "tfrt-host",
        filter: &["models::"],
    },
];

/// A group of models that run together.
pub struct Models {
    pub name: &'static str,
    pub package: &'static str,
    pub filter: &'static [&'static str],
}

/// The depth to which models are explored.
#[derive(Clone, Copy)]
pub enum Depth {
    /// Two preemptions: what `ci` has time for, and enough for every planted bug.
    Short,
    /// Three preemptions.
    Full,
}

impl Models {
    /// Returns the command that builds the models, outside of any time limit for them.
    pub fn build(&self) -> Command {
        let mut command = cargo(&["test", "-p", self.package, "--lib", PROFILE, "--no-run"]);
        command
            .env("RUSTFLAGS", "--cfg loom")
            .env("CARGO_TARGET_DIR", target("loom"));
        command
    }

    /// Returns the command that explores the models.
    pub fn command(&self, depth: Depth) -> Command {
        let (seconds, n_preemptions) = match depth {
            Depth::Short => (150, "2"),
            Depth::Full => (1800, "3"),
        };
        let build = ["test", "-p", self.package, "--lib", PROFILE, "--"];
        let mut command = cargo_within(seconds, &build);
        command
            .args(self.filter)
            .env("RUSTFLAGS", "--cfg loom")
            .env("LOOM_MAX_PREEMPTIONS", n_preemptions)
            .env("CARGO_TARGET_DIR", target("loom"));
        command
    }
}

/// Explores all models.
pub fn loom(steps: &mut Steps, depth: Depth) {
    for models in &MODELS {
        if !models.build().status().is_ok_and(|status| status.success()) {
            steps.count(&format!("loom: {} (build)", models.name), false);
            continue;
        }
        steps.tests(
            &format!("loom: {}", models.name),
            &mut models.command(depth),
        );
    }
}

/// The number of schedules of each model that shuttle draws in `ci`.
pub const N_SCHEDULES: u64 = 2_000;

/// Returns the command of the tests of whole queues under shuttle, so many schedules each, or only
/// their build.
pub fn shuttle_command(n_schedules: Option<u64>) -> Command {
    let build = ["test", "-p", "tfrt-async", PROFILE, "--test", "library"];
    let mut command = cargo_within(3600, &build);
    match n_schedules {
        Some(n) => command.env("TFRT_SHUTTLE_SCHEDULES", n.to_string()),
        None => command.arg("--no-run"),
    };
    command
        .env("RUSTFLAGS", "--cfg shuttle")
        .env("CARGO_TARGET_DIR", target("shuttle"));
    command
}

/// Runs whole queues under schedules that shuttle draws, so many for each model.
pub fn shuttle(steps: &mut Steps, n_schedules: Option<u64>) {
    let n_schedules = n_schedules.unwrap_or(N_SCHEDULES);
    let mut command = shuttle_command(Some(n_schedules));
    steps.tests(
        &format!("shuttle: {n_schedules} schedules each"),
        &mut command,
    );
}

/// Returns the command of tests under AddressSanitizer and LeakSanitizer.
pub fn asan_command(arguments: &[&str]) -> Command {
    let mut command = cargo_within(3600, &["+nightly", "test", "--target", HOST]);
    command
        .args(arguments)
        .env("RUSTFLAGS", "-Zsanitizer=address --cfg tfrt_no_free_lists")
        // Tests ask for more memory than there is, and expect an error.
        .env("ASAN_OPTIONS", "allocator_may_return_null=1")
        .env("CARGO_TARGET_DIR", target("asan"));
    command
}

/// Returns whether there is a nightly compiler.
pub fn has_nightly() -> bool {
    succeeds(&mut cargo(&["+nightly", "--version"]))
}

/// Runs all tests under AddressSanitizer.
pub fn asan(steps: &mut Steps) {
    if !has_nightly() {
        return steps.skip("asan", "a nightly compiler");
    }
    // Peers of benchmarks keep their graphs for ever.
    let all = [
        "--workspace",
        "--exclude=tfrt-benches",
        "--tests",
        "--no-fail-fast",
    ];
    steps.tests("asan", &mut asan_command(&all));
}

/// Returns the command of tests under ThreadSanitizer, with a standard library that is under it,
/// too.
pub fn tsan_command(arguments: &[&str]) -> Command {
    let build = ["+nightly", "test", "-Zbuild-std", "--target", HOST];
    let mut command = cargo_within(3600, &build);
    command
        .args(arguments)
        .env("RUSTFLAGS", "-Zsanitizer=thread --cfg tfrt_no_free_lists")
        .env("TSAN_OPTIONS", "allocator_may_return_null=1")
        .env("CARGO_TARGET_DIR", target("tsan"));
    command
}

/// Returns whether the nightly compiler has the sources of the standard library.
pub fn has_std_sources() -> bool {
    let output = Command::new("rustc")
        .args(["+nightly", "--print", "sysroot"])
        .output();
    output.is_ok_and(|output| {
        let root = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        Path::new(&root)
            .join("lib/rustlib/src/rust/library/std")
            .exists()
    })
}

/// Runs the tests that have threads under ThreadSanitizer.
pub fn tsan(steps: &mut Steps) {
    if !has_std_sources() {
        return steps.skip("tsan", "rust-src for a nightly compiler");
    }
    let parts: [(&str, &[&str], &[&str]); 4] = [
        (
            "values, queues",
            &["-p", "tfrt-async", "--lib", "--tests"],
            &[],
        ),
        ("executor", &["-p", "tfrt-host", "--lib", "--tests"], &[]),
        (
            "core runtime",
            &["-p", "tfrt-corert", "--lib", "--tests"],
            &[],
        ),
        (
            "programs",
            &["-p", "tfrt", "--test=alone", "--test=library"],
            &["survival::", "interleaving::", "eager::"],
        ),
    ];
    for (name, arguments, filter) in parts {
        let mut command = tsan_command(arguments);
        command.args(["--no-fail-fast", "--"]).args(filter);
        steps.tests(&format!("tsan: {name}"), &mut command);
    }
}

/// Returns whether there is Miri.
pub fn has_miri() -> bool {
    succeeds(&mut cargo(&["+nightly", "miri", "--version"]))
}

/// Returns the command of a package's unit tests under Miri.
pub fn miri_command(package: &str, arguments: &[&str]) -> Command {
    let mut command = cargo_within(3600, &["+nightly", "miri", "test", "-p", package, "--lib"]);
    command
        .args(arguments)
        .env("MIRIFLAGS", "-Zmiri-disable-isolation")
        .env("CARGO_TARGET_DIR", target("miri"));
    command
}

/// Runs the tests of values, of bytes, and of views on elements under Miri.
pub fn miri(steps: &mut Steps) {
    if !has_miri() {
        return steps.skip("miri", "cargo-miri");
    }
    // Of tensors what sees bytes as elements, and walks them by strides.
    let all: &[&str] = &[];
    let views = &["--", "view::", "element::", "movement::tests::what"][..];
    for (package, filter) in [
        ("tfrt-async", all),
        ("tfrt-bef", all),
        ("tfrt-tensor", views),
    ] {
        let mut command = miri_command(package, filter);
        steps.tests(&format!("miri: {package}"), &mut command);
    }
}

/// Another platform, whose programs an emulator runs.
const EMULATED: &str = "aarch64-unknown-linux-gnu";

/// Runs the arithmetic's tests on a processor of another kind, emulated: its vectors are others, and so is what
/// it does with floats where the language leaves a choice.
pub fn aarch64(steps: &mut Steps) {
    for (tool, package) in [
        ("qemu-aarch64", "qemu-user"),
        ("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu"),
    ] {
        if !exists(tool) {
            return steps.skip("aarch64", &format!("{tool} ({package})"));
        }
    }
    let build = ["test", "--target", EMULATED, "-p", "tfrt-tensor", "--lib"];
    let mut command = cargo_within(3600, &build);
    command
        .env(
            "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER",
            "aarch64-linux-gnu-gcc",
        )
        .env(
            "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER",
            "qemu-aarch64 -L /usr/aarch64-linux-gnu",
        )
        .env("PROPTEST_CASES", "16");
    steps.tests("aarch64: tfrt-tensor", &mut command);
}
