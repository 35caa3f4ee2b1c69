//! Where what a command makes goes: a file, or standard output.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use tfrt::input::STANDARD_INPUT;

use crate::data::write::Staged;
use crate::failure::Failure;
use crate::talk::Talk;

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
    refuse_input(path, input, "-o")?;
    let mut staged = Staged::default();
    staged.add(path, bytes)?;
    staged.finish()
}

/// Opens a file for what is going to be made of `input`, given with an option. What is there stays until that is made.
///
/// # Errors
///
/// If the path is that of the input, which would be lost, or can't be written; if it is that of
/// standard output, which has results to show.
pub fn create(path: &Path, input: &Path, option: &str) -> Result<File, Failure> {
    if path == Path::new(STANDARD_INPUT) {
        return Err(Failure::Usage(format!(
            "{option} takes a file: standard output is for results"
        )));
    }
    refuse_input(path, input, option)?;
    let mut options = File::options();
    let options = options.write(true).create(true).truncate(false);
    options.open(path).map_err(|reason| unwritten(path, reason))
}

/// A file that was written beside the results, as standard error tells of it.
#[derive(Serialize)]
pub struct Written {
    schema: &'static str,
    file: String,
    bytes: u64,
    /// What it is opened with.
    open_with: &'static str,
}

impl Written {
    /// `bytes` were written to `path`.
    pub fn new(path: &Path, bytes: u64, open_with: &'static str) -> Written {
        Written {
            schema: "tfrt.written/1",
            file: path.display().to_string(),
            bytes,
            open_with,
        }
    }

    /// Tells of it.
    pub fn tell(&self, talk: &Talk) {
        talk.document(self, || {
            let Written {
                file,
                bytes,
                open_with,
                ..
            } = self;
            format!("tfrt: wrote {bytes} bytes to '{file}', for {open_with}\n")
        });
    }
}

/// Says that a file could not be written.
pub fn unwritten(path: &Path, reason: io::Error) -> Failure {
    let path = path.to_owned();
    Failure::Write { path, reason }
}

/// Refuses a path that is that of the input.
///
/// # Errors
///
/// `Usage`.
pub fn refuse_input(path: &Path, input: &Path, option: &str) -> Result<(), Failure> {
    if !is_same_file(path, input) {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "'{}' is the input, which would be lost; name another file with {option}",
        path.display()
    )))
}

/// Tells whether two paths lead to the same file, which need not exist yet.
pub fn is_same_file(a: &Path, b: &Path) -> bool {
    a == b || place_of(a).is_some_and(|place| place_of(b) == Some(place))
}

/// Where a file is, or would be made, without links.
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
