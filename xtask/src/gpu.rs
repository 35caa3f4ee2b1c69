//! `cargo xtask gpu-kernels`: the CUDA C of `crates/gpu/kernels`, compiled to the PTX beside it.
//!
//! The compiler is NVRTC 12.0, from the package that carries it: `pip` gets it once, it is checked against its hash, and
//! kept under `target/nvrtc`. It needs no GPU.

use crate::steps::{Steps, exists, root};
use crate::wheel::{Wheel, unpack};

const WHEEL: Wheel = Wheel {
    file: "nvidia_cuda_nvrtc_cu12-12.0.140-py3-none-manylinux1_x86_64.whl",
    sha256: "8e94e991d85c422de4da87bdc7472fdc1364367bd4aace7000b559cd33122071",
};

/// Where the library is in the package.
const LIBRARY: &str = "nvidia/cuda_nvrtc/lib/libnvrtc.so.12";

/// The sources.
const SOURCES: [&str; 9] = [
    "casts",
    "conformance",
    "functions",
    "matrix",
    "moves",
    "numbers",
    "pointwise",
    "rows",
    "windows",
];

/// Compiles all sources.
pub fn kernels(steps: &mut Steps) {
    if !exists("python3") || !exists("sha256sum") {
        return steps.skip("gpu-kernels", "python3 or sha256sum");
    }
    let folder = root().join("target/nvrtc");
    let unpacked = folder.join("unpacked");
    let library = unpacked.join(LIBRARY);
    if !library.exists() {
        let mut is_there = false;
        steps.work("the package with NVRTC", || {
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
    let kernels = root().join("crates/gpu/kernels");
    for source in SOURCES {
        let mut command = std::process::Command::new("python3");
        command.arg(kernels.join("compile.py")).arg(&library);
        command.arg(kernels.join(format!("{source}.cu")));
        command.arg(kernels.join(format!("{source}.ptx")));
        steps.run(&format!("{source}.ptx"), &mut command);
    }
}
