//! The output of commands: files, or standard output.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use tfrt::input::{Input, STANDARD_INPUT};

use crate::console::Console;
use crate::failure::Failure;

mod delivery;

pub use delivery::{Delivery, announce_end, end_process};

/// Writes `bytes`, made from what was read, to the path that an option gives, where `-` is standard output.
///
/// # Errors
///
/// If the path is that of a file that was read, which would be lost, or can't be written.
pub fn write(path: &Path, read: &[PathBuf], option: &str, bytes: &[u8]) -> Result<(), Failure> {
    if path == Path::new(STANDARD_INPUT) {
        let mut out = io::stdout().lock();
        out.write_all(bytes)?;
        return Ok(out.flush()?);
    }
    refuse_inputs(path, read, option)?;
    let mut delivery = Delivery::default();
    delivery.add(path, |out| out.write_all(bytes))?;
    delivery.finish().map(drop)
}

/// Checks the path of an output, given with an option, before the output is made, which may take its time. A file that
/// is there stays as it is.
///
/// # Errors
///
/// If the path is that of a file that was read, which would be lost, or can't be written; if it is that of
/// standard output, which has results to show.
pub fn check(path: &Path, read: &[PathBuf], option: &str) -> Result<(), Failure> {
    if path == Path::new(STANDARD_INPUT) {
        return Err(Failure::Usage(format!(
            "{option} takes a file: standard output is for results"
        )));
    }
    refuse_inputs(path, read, option)?;
    Delivery::default().add(path, |_| Ok(())).map(drop)
}

/// A file that was written beside the results, as standard error tells of it.
#[derive(Serialize)]
pub struct WrittenFile {
    schema: &'static str,
    file: String,
    bytes: u64,
    /// The program that opens the file, for people.
    open_with: &'static str,
}

impl WrittenFile {
    /// Describes a file with so many bytes.
    pub fn new(path: &Path, bytes: u64, open_with: &'static str) -> WrittenFile {
        WrittenFile {
            schema: "tfrt.written/1",
            file: path.display().to_string(),
            bytes,
            open_with,
        }
    }

    /// Tells people of the file.
    pub fn tell(&self, console: &Console) {
        console.document(self, || {
            let WrittenFile {
                file,
                bytes,
                open_with,
                ..
            } = self;
            format!("tfrt: wrote {bytes} bytes to '{file}', for {open_with}\n")
        });
    }
}

/// Returns the failure to write a file.
pub fn unwritten(path: &Path, reason: io::Error) -> Failure {
    let path = path.to_owned();
    Failure::Write { path, reason }
}

/// Returns the files that an input was read from, once it was opened.
pub fn files_of(path: &Path, input: &Input) -> Vec<PathBuf> {
    let mut files = vec![path.to_owned()];
    files.extend(input.files_beside());
    files
}

/// Refuses a path that is that of a file that was read.
///
/// # Errors
///
/// `Usage`.
pub fn refuse_inputs(path: &Path, read: &[PathBuf], option: &str) -> Result<(), Failure> {
    if !read.iter().any(|input| is_same_file(path, input)) {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "'{}' is the input, which would be lost; name another file with {option}",
        path.display()
    )))
}

/// Returns whether two paths lead to the same file, which need not exist yet.
pub fn is_same_file(a: &Path, b: &Path) -> bool {
    a == b || place_of(a).is_some_and(|place| place_of(b) == Some(place))
}

/// Returns the path of a file that is there, or would be made, without links.
fn place_of(path: &Path) -> Option<PathBuf> {
    if let Ok(place) = fs::canonicalize(path) {
        return Some(place);
    }
    let folder = match path.parent()? {
        here if here == Path::new("") => Path::new("."),
        folder => folder,
    };
    Some(fs::canonicalize(folder).ok()?.join(path.file_name()?))
}
