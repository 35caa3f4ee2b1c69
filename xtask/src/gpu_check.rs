//! `cargo xtask gpu-check`: what is checked and measured on a real GPU, here or, with `--pack`, on another machine.
//!
//! The archive has a program that needs NVIDIA's driver and nothing else, and `run.sh`, which runs it and packs what it
//! says. `docs/gpu-checks.md` keeps what was found.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::steps::{Steps, cargo, exists, root, target};

/// The program, an example of `tfrt-gpu`.
const PROGRAM: &str = "gpu_check";

/// Files beside its source.
const FILES: [&str; 2] = ["peers.py", "run.sh"];

/// The most bytes of the archive.
const MOST_BYTES: u64 = 16 << 20;

/// Builds the program, and runs or packs it: `--pack`, `--debug` for one that is built fast.
pub fn run(steps: &mut Steps, arguments: &[&str]) -> bool {
    let (mut packs, mut is_debug) = (false, false);
    for word in arguments {
        match *word {
            "--pack" => packs = true,
            "--debug" => is_debug = true,
            _ => return false,
        }
    }
    if !exists("tar") {
        steps.skip("gpu-check", "tar");
        return true;
    }
    let folder = target("gpu-check");
    if !steps_before(steps, &folder, is_debug) {
        return true;
    }
    if packs {
        steps.work("gpu-check.tar.gz", || pack(&folder, is_debug));
        return true;
    }
    let status = Command::new(folder.join("run.sh")).status();
    match status.ok().and_then(|status| status.code()) {
        Some(3) => steps.skip(
            "gpu-check",
            "a GPU (--pack makes an archive for a machine that has one)",
        ),
        code => steps.count("gpu-check", code == Some(0)),
    }
    true
}

/// Builds the program, and puts it into a folder with what it needs.
fn steps_before(steps: &mut Steps, folder: &Path, is_debug: bool) -> bool {
    let profile = if is_debug { "debug" } else { "release" };
    let mut command = cargo(&["rustc", "-p", "tfrt-gpu", "--example", PROGRAM]);
    if !is_debug {
        command.arg("--release");
    }
    // Names of functions are most of a program. To strip it by its profile would build all crates again.
    command.args(["--", "-C", "strip=symbols"]);
    steps.run("gpu-check: its program", &mut command);
    let built = root().join("target").join(profile).join("examples");
    let sources = root().join("crates/gpu/examples");
    let mut all: Vec<PathBuf> = vec![built.join(PROGRAM)];
    all.extend(FILES.iter().map(|name| sources.join(name)));
    let mut is_there = false;
    steps.work("gpu-check: its folder", || {
        let _absent = fs::remove_dir_all(folder);
        let copied = fs::create_dir_all(folder).and_then(|()| {
            all.iter().try_for_each(|file| {
                let name = file.file_name().unwrap_or_default();
                fs::copy(file, folder.join(name)).map(|_| ())
            })
        });
        if let Err(error) = &copied {
            eprintln!("{}: {error}", folder.display());
        }
        is_there = copied.is_ok();
        is_there
    });
    is_there
}

/// Packs the folder; returns whether the archive is small enough to be carried. A program that is built fast is
/// larger, and for a trial.
fn pack(folder: &Path, is_debug: bool) -> bool {
    let archive = folder.with_extension("tar.gz");
    let (Some(parent), Some(name)) = (folder.parent(), folder.file_name()) else {
        return false;
    };
    let mut command = Command::new("tar");
    command
        .arg("czf")
        .arg(&archive)
        .arg("-C")
        .arg(parent)
        .arg(name);
    let is_packed = command.status().is_ok_and(|status| status.success());
    let len = fs::metadata(&archive).map_or(0, |file| file.len());
    println!(
        "{}: {:.1} MiB; on a machine with a GPU: tar xzf gpu-check.tar.gz && gpu-check/run.sh",
        archive.display(),
        len as f64 / f64::from(1 << 20)
    );
    is_packed && (is_debug || len <= MOST_BYTES)
}
