//! Where what a command makes goes: a file, or standard output.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use tfrt::input::STANDARD_INPUT;

use crate::failure::Failure;

/// Writes `bytes`, made from `input`, to `path`, where `-` is standard output.
///
/// # Errors
///
/// If the path is that of the input, which would be lost, or can't be written.
pub fn write(path: &Path, input: &Path, bytes: &[u8]) -> Result<(), Failure> {
    if path == Path::new(STANDARD_INPUT) {
        let mut out = io::stdout().lock();
        out.write_all(bytes)?;
        return Ok(out.flush()?);
    }
    if is_same_file(path, input) {
        return Err(Failure::Usage(format!(
            "'{}' is the input, which would be lost; name another file with -o",
            path.display()
        )));
    }
    fs::write(path, bytes).map_err(|reason| Failure::Write {
        path: path.to_owned(),
        reason,
    })
}

fn is_same_file(a: &Path, b: &Path) -> bool {
    match (fs::canonicalize(a), fs::canonicalize(b)) {
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    }
}
