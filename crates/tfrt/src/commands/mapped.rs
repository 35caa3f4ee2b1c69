//! `--mmap`: compiled files that whoever types the command vouches for.

use std::path::Path;

use tfrt::input::Input;
use tfrt::{Formats, OpenError};

/// Reads a file, or maps it if that is asked for.
///
/// # Errors
///
/// See [`Input::read`].
#[allow(unsafe_code, reason = "a listed module")]
pub fn read(path: &Path, is_trusted: bool) -> Result<Input, OpenError> {
    if !is_trusted {
        return Input::read(path);
    }
    // SAFETY: by `--mmap` the caller of the command promises that the file stays as it is while the
    // command runs, as the help for the flag says.
    unsafe { Input::map_trusted(path, &Formats::builtin()) }
}
