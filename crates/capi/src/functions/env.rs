//! Functions of `env.h`: files, folders, the clock, threads, and further libraries.

use std::ffi::{CString, OsStr};
use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};

use tfrt_host::Error;

use super::status::{Status, finish, of_io_error, set};
use crate::fault;
use crate::guard::Callback;
use crate::handle::Handle;
use crate::library::OpenLibrary;
use crate::raw::{Array, FileStatistics, HostText, Memory, Out, Text, ThreadOptions};

/// A file that is being written: `TF_WritableFileHandle`.
pub struct WritableFile {
    name: String,
    file: BufWriter<File>,
}

/// A list of texts that a plugin goes through: `TF_StringStream`. The texts live as long as it does.
#[derive(Default)]
pub struct StringStream {
    texts: Vec<CString>,
    next: usize,
}

/// A thread that a plugin has started: `TF_Thread`.
pub struct Thread(JoinHandle<()>);

type Result<T> = std::result::Result<T, Error>;

/// Reads a path, which may be of any bytes; the outcome is an error for a null pointer.
fn path<'a>(text: &'a Text, argument: &str) -> Result<&'a Path> {
    let bytes = text.bytes(argument);
    let bytes = bytes.ok_or_else(|| Error::invalid_argument("expected a path"))?;
    Ok(Path::new(OsStr::from_bytes(bytes)))
}

/// Runs something with a path, and tells its outcome to the status, with the path.
fn on_path<T: Default>(
    text: &Text,
    argument: &str,
    status: Handle<Status>,
    run: impl FnOnce(&Path) -> std::io::Result<T>,
) -> T {
    let outcome = path(text, argument)
        .and_then(|path| run(path).map_err(|error| of_io_error(&path.to_string_lossy(), &error)));
    finish(status, outcome)
}

pub(crate) fn create_dir(dirname: Text, status: Handle<Status>) {
    on_path(&dirname, "dirname", status, |path| fs::create_dir(path));
}

pub(crate) fn delete_dir(dirname: Text, status: Handle<Status>) {
    on_path(&dirname, "dirname", status, |path| fs::remove_dir(path));
}

pub(crate) fn delete_file(filename: Text, status: Handle<Status>) {
    on_path(&filename, "filename", status, |path| fs::remove_file(path));
}

/// Files and folders that could not be deleted, and the first reason.
#[derive(Default)]
struct Undeleted {
    files: i64,
    folders: i64,
    reason: Option<Error>,
}

impl Undeleted {
    fn note(&mut self, path: &Path, error: &std::io::Error) {
        let reason = || of_io_error(&path.to_string_lossy(), error);
        self.reason.get_or_insert_with(reason);
    }

    /// Deletes what is at a path; links are deleted, and not followed.
    fn delete(&mut self, root: &Path) {
        // Folders are deleted after all that is in them: they are met twice.
        let mut open = vec![(root.to_owned(), false)];
        while let Some((path, is_empty)) = open.pop() {
            let is_folder = match fs::symlink_metadata(&path) {
                Ok(metadata) => metadata.is_dir(),
                Err(error) => {
                    self.files += 1;
                    self.note(&path, &error);
                    continue;
                }
            };
            if !is_folder {
                if let Err(error) = fs::remove_file(&path) {
                    self.files += 1;
                    self.note(&path, &error);
                }
            } else if is_empty {
                if let Err(error) = fs::remove_dir(&path) {
                    self.folders += 1;
                    self.note(&path, &error);
                }
            } else {
                match fs::read_dir(&path) {
                    Ok(entries) => {
                        open.push((path, true));
                        open.extend(entries.flatten().map(|entry| (entry.path(), false)));
                    }
                    Err(error) => {
                        self.folders += 1;
                        self.note(&path, &error);
                    }
                }
            }
        }
    }
}

pub(crate) fn delete_recursively(
    dirname: Text,
    undeleted_files: Out<i64>,
    undeleted_folders: Out<i64>,
    status: Handle<Status>,
) {
    let mut undeleted = Undeleted::default();
    let outcome = path(&dirname, "dirname").and_then(|path| {
        if let Err(error) = fs::symlink_metadata(path) {
            undeleted.folders = 1;
            return Err(of_io_error(&path.to_string_lossy(), &error));
        }
        undeleted.delete(path);
        undeleted.reason.take().map_or(Ok(()), Err)
    });
    undeleted_files.set_if(undeleted.files);
    undeleted_folders.set_if(undeleted.folders);
    finish(status, outcome);
}

fn nanoseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

pub(crate) fn file_stat(filename: Text, stats: Out<FileStatistics>, status: Handle<Status>) {
    let found = path(&filename, "filename").and_then(|path| {
        let metadata = fs::metadata(path);
        metadata.map_err(|error| of_io_error(&path.to_string_lossy(), &error))
    });
    let told = found.map(|metadata| {
        let modified = metadata.modified().map_or(0, nanoseconds);
        let found = FileStatistics {
            length: i64::try_from(metadata.len()).unwrap_or(i64::MAX),
            mtime_nsec: i64::try_from(modified).unwrap_or(i64::MAX),
            is_directory: metadata.is_dir().into(),
        };
        stats.set(found, "stats");
    });
    finish(status, told);
}

pub(crate) fn new_writable_file(
    filename: Text,
    place: Out<Handle<WritableFile>>,
    status: Handle<Status>,
) {
    if place.is_null() {
        let reason = "expected a place for a file, found a null pointer";
        fault::argument("handle", reason);
        return set(status, &Err(Error::invalid_argument(reason)));
    }
    let made = on_path(&filename, "filename", status, |path| {
        let file = File::create(path)?;
        Ok(Some(WritableFile {
            name: path.to_string_lossy().into_owned(),
            file: BufWriter::new(file),
        }))
    });
    place.set_if(made.map_or(Handle::NULL, Handle::new));
}

/// Runs something with a file, and tells the outcome to the status, with the file's name.
fn on_file(
    handle: Handle<WritableFile>,
    status: Handle<Status>,
    run: impl FnOnce(&mut BufWriter<File>) -> std::io::Result<()>,
) {
    let outcome = handle.with("handle", |own| {
        run(&mut own.file).map_err(|error| of_io_error(&own.name, &error))
    });
    let wrong = || Err(Error::invalid_argument("the file is wrong"));
    finish(status, outcome.unwrap_or_else(wrong));
}

pub(crate) fn append_writable_file(
    handle: Handle<WritableFile>,
    data: Array<u8>,
    length: usize,
    status: Handle<Status>,
) {
    match data.slice(length, "data") {
        Some(bytes) => on_file(handle, status, |file| file.write_all(bytes)),
        None => set(status, &Err(Error::invalid_argument("the bytes are wrong"))),
    }
}

pub(crate) fn flush_writable_file(handle: Handle<WritableFile>, status: Handle<Status>) {
    on_file(handle, status, BufWriter::flush);
}

pub(crate) fn sync_writable_file(handle: Handle<WritableFile>, status: Handle<Status>) {
    on_file(handle, status, |file| {
        file.flush()?;
        file.get_ref().sync_all()
    });
}

pub(crate) fn close_writable_file(handle: Handle<WritableFile>, status: Handle<Status>) {
    let Some(mut own) = handle.take("handle") else {
        return set(status, &Err(Error::invalid_argument("the file is wrong")));
    };
    let flushed = own.file.flush();
    finish(
        status,
        flushed.map_err(|error| of_io_error(&own.name, &error)),
    );
}

pub(crate) fn string_stream_next(list: Handle<StringStream>, result: Out<HostText>) -> u8 {
    let next = list.with("list", |own| {
        let text = own.texts.get(own.next).map(|text| HostText::of(text));
        own.next += usize::from(text.is_some());
        text
    });
    let next = next.flatten();
    result.set(next.unwrap_or(HostText::NULL), "result");
    next.is_some().into()
}

pub(crate) fn string_stream_done(list: Handle<StringStream>) {
    if !list.is_null() {
        list.take("list");
    }
}

fn stream(texts: impl IntoIterator<Item = PathBuf>) -> StringStream {
    let texts = texts.into_iter();
    let texts = texts.filter_map(|text| CString::new(text.into_os_string().as_bytes()).ok());
    StringStream {
        texts: texts.collect(),
        next: 0,
    }
}

/// There is a stream in any case, an empty one after an error.
pub(crate) fn get_children(dirname: Text, status: Handle<Status>) -> Handle<StringStream> {
    let names = on_path(&dirname, "dirname", status, |path| {
        let names = fs::read_dir(path)?.map(|entry| Ok(PathBuf::from(entry?.file_name())));
        names.collect::<std::io::Result<Vec<PathBuf>>>()
    });
    Handle::new(stream(names))
}

/// Folders that may be there for files of a while, best first.
fn temporary_folders() -> Vec<PathBuf> {
    let mut all = vec![std::env::temp_dir(), PathBuf::from("/tmp")];
    all.dedup();
    all.retain(|folder| folder.is_dir());
    all
}

pub(crate) fn local_temp_directories() -> Handle<StringStream> {
    Handle::new(stream(temporary_folders()))
}

/// The most names that are tried for a new file.
const MAX_NAMES: usize = 1000;

pub(crate) fn temp_file_name(extension: Text) -> HostText {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let extension = extension.text("extension").unwrap_or_default();
    let dot = if extension.is_empty() { "" } else { "." };
    for folder in temporary_folders() {
        for _ in 0..MAX_NAMES {
            let (process, number) = (std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
            let now = nanoseconds(SystemTime::now());
            let path = folder.join(format!("tfrt_{process}_{now:x}_{number}{dot}{extension}"));
            let made = OpenOptions::new().write(true).create_new(true).open(&path);
            match made {
                Ok(_) => {
                    let text = CString::new(path.into_os_string().as_bytes());
                    return text.map_or(HostText::NULL, |text| HostText::given(&text));
                }
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => (),
                Err(_) => break,
            }
        }
    }
    fault::record(format_args!("no file can be made for a while"));
    HostText::NULL
}

pub(crate) fn now_nanos() -> u64 {
    nanoseconds(SystemTime::now())
}

pub(crate) fn now_micros() -> u64 {
    now_nanos() / 1000
}

pub(crate) fn now_seconds() -> u64 {
    now_nanos() / 1_000_000_000
}

pub(crate) fn default_thread_options(options: Out<ThreadOptions>) {
    options.set(ThreadOptions::default(), "options");
}

/// The most bytes of a thread's stack: 1 GB.
const MAX_STACK: usize = 1 << 30;

pub(crate) fn start_thread(
    options: Out<ThreadOptions>,
    name: Text,
    work: Callback,
    param: Memory,
) -> Handle<Thread> {
    let name = name.bytes_or_null().unwrap_or_default();
    let name = String::from_utf8_lossy(name).into_owned();
    if work.is_null() {
        fault::argument("work_func", "expected a function, found a null pointer");
        return Handle::NULL;
    }
    let mut builder = std::thread::Builder::new().name(name);
    let options = match options.is_null() {
        true => None,
        false => options.get("options"),
    };
    match options.map_or(0, |options| options.stack_size) {
        0 => (),
        size => builder = builder.stack_size(size.min(MAX_STACK)),
    }
    let run = move || {
        if let Err(exception) = work.call(&[param.address()]) {
            fault::record(format_args!("a thread of a plugin {exception}"));
        }
    };
    match builder.spawn(run) {
        Ok(thread) => Handle::new(Thread(thread)),
        Err(error) => {
            fault::record(format_args!("the thread can't be started: {error}"));
            Handle::NULL
        }
    }
}

pub(crate) fn join_thread(thread: Handle<Thread>) {
    if let Some(thread) = thread.take("thread") {
        if thread.0.thread().id() == std::thread::current().id() {
            return fault::argument("thread", "it is the one that calls, which would never end");
        }
        // What it threw was recorded when it was caught.
        let _ended = thread.0.join();
    }
}

pub(crate) fn load_shared_library(filename: Text, status: Handle<Status>) -> Handle<OpenLibrary> {
    let opened = path(&filename, "library_filename")
        .and_then(|path| OpenLibrary::open(path).map_err(Error::not_found));
    match opened {
        Ok(library) => {
            set(status, &Ok(()));
            Handle::new(library)
        }
        Err(error) => {
            set(status, &Err(error));
            Handle::NULL
        }
    }
}

pub(crate) fn symbol_from_library(
    library: Handle<OpenLibrary>,
    symbol: Text,
    status: Handle<Status>,
) -> Memory {
    let Some(symbol) = symbol.bytes("symbol_name") else {
        set(status, &Err(Error::invalid_argument("expected a name")));
        return Memory::default();
    };
    let found = library.with("handle", |own| own.symbol(symbol));
    let wrong = || Err("the library is wrong".to_owned());
    let found = found.unwrap_or_else(wrong).map_err(Error::not_found);
    finish(status, found)
}
