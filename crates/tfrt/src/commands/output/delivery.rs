//! Files that a command writes: all of them, or none.
//!
//! A file is written beside its place under another name. When all are written, what is no regular
//! file, such as a pipe, gets its bytes, and standard output too; at the very end the files are moved
//! to their places. Who looks sees the old file or the new one, and a command that fails, or is ended,
//! leaves none behind.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tfrt_run::report::unless_unread;

use super::{WrittenFile, is_same_file, unwritten};
use crate::failure::Failure;

/// The paths that this process has made and removes unless all goes well: folders, each before what lies in it, and
/// staged files. Locked while something is made, while files are moved, and for good by whoever ends the process.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Whether the process is being ended. Read and written while [`UNFINISHED`] is locked.
static IS_ENDING: AtomicBool = AtomicBool::new(false);

/// The output of a command: files, staged beside their places, and standard output. [`finish`](Self::finish) moves all
/// of them there; dropped before, the files are removed.
#[derive(Default)]
pub struct Delivery {
    folders: Vec<PathBuf>,
    files: Vec<StagedFile>,
    /// Paths that are no regular files, such as pipes, with the bytes for each.
    others: Vec<(PathBuf, Vec<u8>)>,
    standard_output: Vec<u8>,
    /// Files that people are told of when all are there.
    written: Vec<WrittenFile>,
}

/// A file that was written beside its place under another name, until it is moved there.
struct StagedFile {
    path: PathBuf,
    place: PathBuf,
}

impl Delivery {
    /// Makes a folder for files, and those that it lies in.
    ///
    /// # Errors
    ///
    /// `Write`.
    pub fn make_folder(&mut self, folder: &Path) -> Result<(), Failure> {
        // A link that leads nowhere is there, and not ours to remove.
        let is_missing =
            |path: &&Path| *path != Path::new("") && fs::symlink_metadata(path).is_err();
        let missing: Vec<&Path> = folder.ancestors().take_while(is_missing).collect();
        let mut all = unfinished();
        for path in missing.into_iter().rev() {
            match fs::create_dir(path) {
                Ok(()) => {
                    all.push(path.to_owned());
                    self.folders.push(path.to_owned());
                }
                // Somebody else was faster.
                Err(reason) if reason.kind() == io::ErrorKind::AlreadyExists => {}
                Err(reason) => return Err(unwritten(folder, reason)),
            }
        }
        fs::create_dir_all(folder).map_err(|reason| unwritten(folder, reason))
    }

    /// Writes a file beside its place. Bytes for a path that is no regular file are kept until [`send`](Self::send).
    ///
    /// # Errors
    ///
    /// `Write`, with the path that was asked for.
    pub fn add(
        &mut self,
        path: &Path,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<u64, Failure> {
        self.try_add(path, write)
            .map_err(|reason| unwritten(path, reason))
    }

    fn try_add(
        &mut self,
        path: &Path,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<u64> {
        // A link leads to where the file is to be.
        let place = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if fs::metadata(&place).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
            let mut bytes = Vec::new();
            write(&mut bytes)?;
            let len_bytes = bytes.len() as u64;
            self.others.push((place, bytes));
            return Ok(len_bytes);
        }
        let file = self.make_staged(place)?;
        let mut out = BufWriter::new(&file);
        write(&mut out)?;
        out.flush()?;
        drop(out);
        Ok(file.metadata()?.len())
    }

    /// Adds a regular file that is large: `write` gets the empty file beside its place, to write where it will.
    ///
    /// # Errors
    ///
    /// `Write`, with the path that was asked for.
    pub fn add_file(
        &mut self,
        path: &Path,
        write: impl FnOnce(&File) -> io::Result<()>,
    ) -> Result<(), Failure> {
        let place = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let made = self.make_staged(place).and_then(|file| write(&file));
        made.map_err(|reason| unwritten(path, reason))
    }

    /// Makes an empty file beside a place, with the permissions of what is there.
    fn make_staged(&mut self, place: PathBuf) -> io::Result<File> {
        let old = fs::metadata(&place).ok();
        if old.is_some() {
            // What must not be written is not replaced either.
            File::options().write(true).open(&place)?;
        }
        let name = place.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
        let mut all = unfinished();
        let mut number = self.files.len();
        let (path, file) = loop {
            let mut beside = OsString::from(".");
            beside.push(name);
            beside.push(format!(".{}-{number}", process::id()));
            let path = place.with_file_name(beside);
            match File::create_new(&path) {
                Ok(file) => break (path, file),
                // One that was killed may have had the number of this process.
                Err(reason) if reason.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(reason) => return Err(reason),
            }
        };
        all.push(path.clone());
        self.files.push(StagedFile { path, place });
        drop(all);
        if let Some(old) = old {
            file.set_permissions(old.permissions())?;
        }
        Ok(file)
    }

    /// Refuses to write over what was read.
    ///
    /// # Errors
    ///
    /// `Usage`.
    pub fn refuse(&self, read: &[PathBuf]) -> Result<(), Failure> {
        let places = self.files.iter().map(|file| &file.place);
        let mut all = places.chain(self.others.iter().map(|(path, _)| path));
        let is_read = |path: &&PathBuf| read.iter().any(|read| is_same_file(path, read));
        match all.find(is_read) {
            None => Ok(()),
            Some(path) => Err(Failure::Usage(format!(
                "'{}' was read, and would be lost; name another file to write to",
                path.display()
            ))),
        }
    }

    /// Adds a file to those that people are told of when all are there.
    pub fn tell_of(&mut self, written: WrittenFile) {
        self.written.push(written);
    }

    /// Adds bytes to standard output.
    pub fn print(&mut self, bytes: impl Into<Vec<u8>>) {
        self.standard_output.extend(bytes.into());
    }

    /// Writes to the paths that are no regular files, and to standard output. This may wait for whoever reads it.
    ///
    /// # Errors
    ///
    /// `Write` or `Output`.
    pub fn send(&mut self) -> Result<(), Failure> {
        for (path, bytes) in self.others.drain(..) {
            let opened = File::options().write(true).open(&path);
            let written = opened.and_then(|mut file| file.write_all(&bytes));
            written.map_err(|reason| unwritten(&path, reason))?;
        }
        let bytes = std::mem::take(&mut self.standard_output);
        if bytes.is_empty() {
            return Ok(());
        }
        let mut out = io::stdout().lock();
        let written = out.write_all(&bytes).and_then(|()| out.flush());
        unless_unread(written).map_err(Failure::Output)
    }

    /// Moves the files to their places, once all else has gone well. Returns the files that people are told of.
    ///
    /// # Errors
    ///
    /// Those of [`send`](Self::send), and `Write` with the first path that can't be had.
    pub fn finish(mut self) -> Result<Vec<WrittenFile>, Failure> {
        self.send()?;
        // Until this is given back, nobody ends the process.
        let mut all = unfinished();
        if IS_ENDING.load(Ordering::Relaxed) {
            drop(all);
            loop {
                std::thread::park();
            }
        }
        while let Some(StagedFile { path, place }) = self.files.first() {
            fs::rename(path, place).map_err(|reason| unwritten(place, reason))?;
            all.retain(|other| other != path);
            self.files.remove(0);
        }
        let folders = std::mem::take(&mut self.folders);
        all.retain(|path| !folders.contains(path));
        Ok(std::mem::take(&mut self.written))
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        let mut all = unfinished();
        let files = self.files.iter().map(|file| &file.path);
        for path in files.chain(self.folders.iter().rev()) {
            remove(path);
            all.retain(|other| other != path);
        }
    }
}

/// Notes that the process is being ended: from now on no file is moved to its place.
pub fn announce_end() {
    let _all = unfinished();
    IS_ENDING.store(true, Ordering::Relaxed);
}

/// Ends the process, and removes what is not finished. Files that are being moved are moved first.
pub fn end_process(status: i32) -> ! {
    // Locked for good: nothing is made or moved any more.
    let all = unfinished();
    all.iter().rev().for_each(|path| remove(path));
    process::exit(status)
}

/// Removes a file, or a folder that is empty. Nothing can be done about one that stays.
fn remove(path: &Path) {
    let is_folder = fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
    let _ = match is_folder {
        true => fs::remove_dir(path),
        false => fs::remove_file(path),
    };
}

fn unfinished() -> MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_appear_together_or_not_at_all() {
        let folder = std::env::temp_dir().join(format!("tfrt-delivery-{}", process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (one, two) = (folder.join("one"), folder.join("two"));
        let add = |delivery: &mut Delivery, path: &Path, bytes: &[u8]| {
            delivery.add(path, |out| out.write_all(bytes))
        };
        let mut delivery = Delivery::default();
        add(&mut delivery, &one, b"1").unwrap();
        assert!(!one.exists());
        assert!(add(&mut delivery, &folder.join("missing/two"), b"2").is_err());
        drop(delivery);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        let mut delivery = Delivery::default();
        add(&mut delivery, &one, b"1").unwrap();
        add(&mut delivery, &two, b"2").unwrap();
        delivery.finish().unwrap();
        assert_eq!(fs::read(&two).unwrap(), b"2");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 2);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_another_process_left_is_not_in_the_way() {
        let folder = std::env::temp_dir().join(format!("tfrt-delivery-left-{}", process::id()));
        fs::create_dir_all(&folder).unwrap();
        let left = folder.join(format!(".one.{}-0", process::id()));
        fs::write(&left, b"left").unwrap();
        let mut delivery = Delivery::default();
        let one = folder.join("one");
        delivery.add(&one, |out| out.write_all(b"1")).unwrap();
        delivery.finish().unwrap();
        assert_eq!(fs::read(&one).unwrap(), b"1");
        assert_eq!(fs::read(&left).unwrap(), b"left");
        fs::remove_dir_all(folder).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn links_that_lead_nowhere_stay() {
        let folder = std::env::temp_dir().join(format!("tfrt-delivery-links-{}", process::id()));
        fs::create_dir_all(&folder).unwrap();
        let link = folder.join("link");
        std::os::unix::fs::symlink(folder.join("nowhere"), &link).unwrap();
        for path in [link.clone(), link.join("inner")] {
            let mut delivery = Delivery::default();
            assert!(delivery.make_folder(&path).is_err());
            drop(delivery);
            assert!(fs::symlink_metadata(&link).is_ok(), "{path:?}");
        }
        let mut delivery = Delivery::default();
        delivery.make_folder(&folder.join("a/b")).unwrap();
        drop(delivery);
        assert!(!folder.join("a").exists());
        fs::remove_dir_all(folder).unwrap();
    }
}
