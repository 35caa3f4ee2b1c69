//! `cargo xtask python`: the package for Python, built for development and tested by pytest in an environment of its own.
//!
//! maturin builds the wheel, as it does for those who install the package. In `ci`, where the tests have built the crates
//! below the module already, maturin packs a module that is linked with those: cargo compiles a crate anew where features
//! of what it depends on differ, and those of the module alone are others than the workspace's.
//!
//! pip gets what the tests need, once: maturin, NumPy and ONNX's cases. Where Python or pip is not installed, or can get
//! nothing, the step says SKIPPED.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::accounting::WITH_PYTHON;
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

/// The module that goes into the wheel.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Module {
    /// The one that `maturin` has cargo build, as for those who install the package.
    Alone,
    /// The one of the features of [`WITH_PYTHON`], whose crates are those of the tests.
    OfTests,
}

/// Builds the wheel and runs its tests.
pub fn run(steps: &mut Steps, module: Module) {
    if let Some(python) = installed(steps, environment(), module) {
        tests(steps, &python);
    }
}

/// Builds the wheel and installs it in an environment, if there is one, and builds what its tests load; returns the
/// environment's Python.
pub fn installed(steps: &mut Steps, python: Environment, module: Module) -> Option<PathBuf> {
    let python = match python {
        Ok(python) => python,
        Err(tool) => {
            steps.skip("the package for Python", tool);
            return None;
        }
    };
    let mut is_installed = false;
    steps.work("a wheel of the package for Python", || {
        is_installed = build(&python, module).is_some_and(|wheel| install(&python, &wheel));
        is_installed
    });
    // Tests load it; it depends on nothing.
    steps.work("a plugin for the package's tests", || {
        let mut cargo = Command::new("cargo");
        succeeds(cargo.args(["build", "--quiet", "-p", "tfrt-example-plugin"]))
    });
    is_installed.then_some(python)
}

/// Runs the tests of the installed package.
pub fn tests(steps: &mut Steps, python: &Path) {
    let mut pytest = Command::new(python);
    pytest.args(["-m", "pytest", "-q", "python/tests"]);
    steps.run(
        "tests of the package for Python",
        pytest.current_dir(root()),
    );
}

/// Builds the wheel; returns its path.
fn build(python: &Path, module: Module) -> Option<PathBuf> {
    let wheels = target("python").join("wheels");
    // An older wheel would be another file to install.
    let _ = fs::remove_dir_all(&wheels);
    let mut maturin = Command::new(python);
    maturin
        .args(["-m", "maturin", "build", "--quiet", "--profile", "dev"])
        .args(["--compression-level", "1", "--out"])
        .arg(&wheels)
        .current_dir(root().join("python"));
    if module == Module::OfTests {
        let cargo = target("python").join("cargo");
        maturin.env("CARGO", executable(cargo, &cargo_of_tests())?);
    }
    maturin.status().ok()?.success().then_some(())?;
    let mut entries = fs::read_dir(wheels).ok()?.flatten();
    entries.next().map(|entry| entry.path())
}

fn install(python: &Path, wheel: &Path) -> bool {
    let mut pip = Command::new(python);
    pip.args(["-m", "pip", "install", "--quiet"]);
    pip.args(["--no-deps", "--force-reinstall"]).arg(wheel);
    pip.status().is_ok_and(|status| status.success())
}

/// A program that maturin takes for cargo: it builds the module with the tests' features, and in their environment, since
/// crates of Python's are compiled anew for each interpreter that maturin names.
fn cargo_of_tests() -> String {
    format!(
        "#!/bin/sh
[ \"$1\" = rustc ] || exec cargo \"$@\"
unset PYO3_BUILD_EXTENSION_MODULE PYO3_CONFIG_FILE PYO3_ENVIRONMENT_SIGNATURE PYO3_PYTHON PYTHON_SYS_EXECUTABLE
# With a test, so that cargo heeds what tests depend on.
exec cargo build --quiet --lib --test command {} --message-format json-render-diagnostics
",
        WITH_PYTHON.join(" ")
    )
}

/// Writes a program, and returns its path.
fn executable(path: PathBuf, text: &str) -> Option<PathBuf> {
    fs::write(&path, text).ok()?;
    succeeds(Command::new("chmod").arg("+x").arg(&path)).then_some(path)
}

/// The Python of an environment with the packages, or the tool that is missing.
pub type Environment = Result<PathBuf, &'static str>;

/// Makes an environment with the packages, if it is not there.
pub fn environment() -> Environment {
    if !exists("python3") {
        return Err("python3");
    }
    with_packages(&target("python")).ok_or("pip, or its registry,")
}

fn with_packages(folder: &Path) -> Option<PathBuf> {
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
