//! `cargo xtask gpu-sim --upstream DIR`: the original's own programs for GPUs, on simulated ones.
//!
//! They are read from a clone of the original, at the two revisions that have most of each dialect, and are put under
//! `target/gpu-sim`. Nothing of them is in the repository. What runs them is `crates/tfrt/tests/corpus/upstream.rs`.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::steps::{Steps, cargo, exists, target};

/// The revisions: a name for each, its commit, and the folder of its programs.
const REVISIONS: [(&str, &str); 2] = [
    ("2021-02", "2d7001ef9647a4918e7b8bc8038d5f28987c94b0"),
    ("2022-06", "da74868905d61b0e82dace3f833e8f411fae27bc"),
];

/// The folders with programs that run on a GPU: those that drive it themselves, and those of the core runtime.
const FOLDERS: [&str; 2] = [
    "backends/gpu/mlir_tests/cuda",
    "backends/gpu/mlir_tests/core_runtime",
];

/// Runs the programs: `--upstream DIR`, `--seeds N`, `--orders N`, `--filter WORD`.
pub fn run(steps: &mut Steps, arguments: &[&str]) -> bool {
    let (mut upstream, mut seeds, mut orders, mut filter) = (None, "32", "5", "upstream/");
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let Some(value) = words.next() else {
            return false;
        };
        match *word {
            "--upstream" => upstream = Some(Path::new(value)),
            "--seeds" => seeds = value,
            "--orders" => orders = value,
            "--filter" => filter = value,
            _ => return false,
        }
    }
    let Some(upstream) = upstream else {
        steps.skip("gpu-sim", "a clone of the original (--upstream DIR)");
        return true;
    };
    if !exists("git") || !exists("tar") {
        steps.skip("gpu-sim", "git or tar");
        return true;
    }
    let folder = target("gpu-sim");
    steps.work("the original's programs", || {
        let _absent = fs::remove_dir_all(&folder);
        let all = REVISIONS.iter();
        all.fold(true, |ok, (name, commit)| {
            extract(upstream, commit, &folder.join(name)) && ok
        })
    });
    let arguments = [
        "test",
        "-p",
        "tfrt",
        "--features",
        "gpu",
        "--test",
        "corpus",
        "--",
    ];
    let mut command = cargo(&arguments);
    command.arg(filter).env("TFRT_GPU_UPSTREAM", &folder);
    command
        .env("TFRT_GPU_SEEDS", seeds)
        .env("TFRT_GPU_ORDERS", orders);
    steps.tests("gpu-sim", &mut command);
    true
}

/// Puts the programs of a revision into a folder.
fn extract(upstream: &Path, commit: &str, to: &Path) -> bool {
    if fs::create_dir_all(to).is_err() {
        return false;
    }
    let archive = Command::new("git")
        .arg("-C")
        .arg(upstream)
        .args(["archive", commit])
        .args(FOLDERS)
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut archive) = archive else {
        return false;
    };
    let Some(bytes) = archive.stdout.take() else {
        return false;
    };
    // Both folders keep their own names.
    let strip = format!("--strip-components={}", FOLDERS[0].split('/').count() - 1);
    let unpacked = Command::new("tar")
        .args(["x", &strip, "-C"])
        .arg(to)
        .stdin(bytes)
        .status();
    let is_archived = archive.wait().is_ok_and(|status| status.success());
    is_archived && unpacked.is_ok_and(|status| status.success())
}
