//! `cargo xtask onnx`: ONNX's own cases, from the package that carries them.
//!
//! The package is got by `pip` once, checked against its hash, and kept unpacked under `target/onnx`. What runs
//! the cases is `crates/suite`.

use crate::steps::{Steps, cargo, exists, root};
use crate::wheel::{Wheel, unpack};

/// The package that has the cases.
const WHEEL: Wheel = Wheel {
    file: "onnx-1.22.0-cp311-cp311-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl",
    sha256: "1d0a2bdb15eb2b3cb65c438f3423d9620d14fdce32f92380e6bb1b2e09568ef5",
};
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
            is_there = match WHEEL.fetch(&folder) {
                Ok(wheel) => unpack(&wheel, &unpacked),
                Err(error) => {
                    eprintln!("{error}");
                    false
                }
            };
            is_there
        });
        if !is_there {
            return;
        }
    }
    let mut suite = cargo(&["run", "--release", "--quiet", "-p", "tfrt-suite", "--"]);
    steps.run("onnx", suite.arg(unpacked.join(CASES)).args(arguments));
}
