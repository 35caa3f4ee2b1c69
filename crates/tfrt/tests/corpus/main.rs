//! Programs and bad input on command lines, a test for each file or case, in one program of tests:
//!
//! | Module | Tests |
//! | --- | --- |
//! | `programs.rs` | programs of `tests/` and `examples/`, which state what they expect |
//! | `broken.rs` | programs of `tests/broken/`, which are rejected, and the texts of `tfrt explain` |
//! | `upstream.rs` | the original's programs for GPUs, from a folder that an environment variable names |
//! | `bad_input.rs` | command lines, files, pipes and runs that go wrong |

use std::path::{Path, PathBuf};

use libtest_mimic::Arguments;

mod bad_input;
mod broken;
#[allow(
    dead_code,
    reason = "its tests run in `tests/library`, which has a harness for them"
)]
mod filecheck;
mod programs;
#[cfg(feature = "gpu")]
mod upstream;

fn main() {
    let arguments = Arguments::from_args();
    let trials = [
        programs::trials(),
        broken::trials(),
        bad_input::trials(),
        #[cfg(feature = "gpu")]
        upstream::trials(),
    ];
    libtest_mimic::run(&arguments, trials.into_iter().flatten().collect()).exit();
}

/// Returns the root of the repository, from which programs run, so that messages name them by short paths.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
