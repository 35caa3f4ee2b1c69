//! The folders in which benchmarks find and leave files.

use std::path::{Path, PathBuf};

/// Returns the folder of this crate.
pub fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns a folder of this name among what is built.
pub fn target(name: &str) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR");
    target
        .map_or_else(|| here().join("../target"), PathBuf::from)
        .join(name)
}
