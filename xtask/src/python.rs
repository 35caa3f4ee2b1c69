//! `cargo xtask python`: the package for Python, built for development and tested by pytest in an environment of its own.
//!
//! pip gets what the tests need, once: maturin, NumPy and ONNX's cases. Where Python or pip is not installed, or can get
//! nothing, the step says SKIPPED.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::steps::{Steps, exists, root, succeeds, target};

/// The packages that build the wheel, and those that its tests use.
const PACKAGES: [&str; 8] = [
    "maturin>=1.9,<2",
    "numpy",
    "pytest",
    "hypothesis",
    "ml_dtypes",
    "mypy",
    "onnx==1.22.0",
    "pip",
];

/// Builds the wheel and runs its tests. Returns whether there is a wheel.
pub fn run(steps: &mut Steps) -> bool {
    const NAME: &str = "the package for Python";
    if !exists("python3") {
        steps.skip(NAME, "python3");
        return false;
    }
    let Some(python) = environment(&target("python")) else {
        steps.skip(NAME, "pip, or its registry,");
        return false;
    };
    let (wheels, mut is_built) = (target("python").join("wheels"), false);
    steps.work("a wheel of the package for Python", || {
        // An older wheel would be another file to install.
        let _ = fs::remove_dir_all(&wheels);
        let mut maturin = Command::new(&python);
        maturin
            .args(["-m", "maturin", "build", "--quiet", "--profile", "dev"])
            .args(["--compression-level", "1", "--out"])
            .arg(&wheels)
            .current_dir(root().join("python"));
        is_built =
            maturin.status().is_ok_and(|status| status.success()) && installed(&python, &wheels);
        is_built
    });
    if !is_built {
        return false;
    }
    // The tests load it; it depends on nothing.
    steps.work("a plugin for the package's tests", || {
        let mut cargo = Command::new("cargo");
        succeeds(cargo.args(["build", "--quiet", "-p", "tfrt-example-plugin"]))
    });
    let mut pytest = Command::new(&python);
    pytest.args(["-m", "pytest", "-q", "python/tests"]);
    steps.run(
        "tests of the package for Python",
        pytest.current_dir(root()),
    );
    true
}

/// Makes an environment with the packages, if it is not there; returns its Python.
fn environment(folder: &Path) -> Option<PathBuf> {
    let python = folder.join("bin/python");
    let mark = folder.join("packages.txt");
    let wanted = PACKAGES.join("\n");
    if python.exists() && fs::read_to_string(&mark).is_ok_and(|found| found == wanted) {
        return Some(python);
    }
    let mut venv = Command::new("python3");
    if !succeeds(venv.args(["-m", "venv"]).arg(folder)) {
        return None;
    }
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "install", "--quiet"]).args(PACKAGES);
    if !succeeds(&mut pip) {
        return None;
    }
    fs::write(mark, wanted).ok()?;
    Some(python)
}

/// Installs the wheel that is alone in a folder.
fn installed(python: &Path, wheels: &Path) -> bool {
    let mut entries = fs::read_dir(wheels).into_iter().flatten().flatten();
    let Some(wheel) = entries.next() else {
        return false;
    };
    let mut pip = Command::new(python);
    pip.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--force-reinstall",
    ]);
    let status = pip.arg(wheel.path()).status();
    status.is_ok_and(|status| status.success())
}
