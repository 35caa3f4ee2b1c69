//! Loading of libraries: the one that plugins ask for, and plugins.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_int, c_void};
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_LOCAL, RTLD_NOW};
use rustix::fs::MemfdFlags;

use crate::fault;
use crate::functions::{self, FUNCTIONS};
use crate::guard::Callback;
use crate::image::{self, Entry, TABLE};
use crate::raw::Memory;

/// Name of the library that plugins ask for.
pub const FRAMEWORK: &str = "libtensorflow_framework.so.2";

/// Names of further libraries of TensorFlow, which plugins ask for and which are empty here: the functions are all in
/// [`FRAMEWORK`].
pub const EMPTY: [&str; 3] = [
    "_pywrap_tensorflow_internal.so",
    "libtensorflow_cc.so.2",
    "libtensorflow.so.2",
];

/// Symbols that plugins ask for beside TensorFlow's, and that answer by a fault.
pub const OTHERS: [&str; 1] = ["PyRun_SimpleStringFlags"];

/// Returns whether a symbol is a function of TensorFlow's C API, or another that the host answers for.
pub fn is_answered(symbol: &str) -> bool {
    let prefixes = ["TF_", "TFE_", "SE_", "TSL_", "TFNPD_"];
    prefixes.iter().any(|prefix| symbol.starts_with(prefix)) || OTHERS.contains(&symbol)
}

/// Libraries of the process that plugins are given.
struct Process {
    /// Functions that are answered for by an entry of some library.
    answered: Vec<String>,
    /// Names of the empty libraries that are loaded.
    empty: Vec<&'static str>,
    /// Number of libraries of functions that are not provided.
    n_further: usize,
    /// Memory files, which stay open: the loader knows libraries by path, and would take a new file of the same number for
    /// the old one.
    files: Vec<OwnedFd>,
    /// Plugins that were loaded, by path.
    plugins: BTreeMap<PathBuf, Loaded>,
}

/// A plugin that is loaded, for the life of the process.
#[derive(Clone, Copy)]
pub struct Loaded {
    /// Its function `TF_InitKernel`, if it has one.
    pub init_kernel: Option<Callback>,
}

static PROCESS: Mutex<Process> = Mutex::new(Process {
    answered: Vec::new(),
    empty: Vec::new(),
    n_further: 0,
    files: Vec::new(),
    plugins: BTreeMap::new(),
});

/// Serializes loads: registrations belong to the library that is loaded.
pub static LOADS: Mutex<()> = Mutex::new(());

/// Whether plugins can be loaded here.
pub const IS_SUPPORTED: bool = cfg!(all(
    target_os = "linux",
    target_arch = "x86_64",
    target_env = "gnu"
));

/// Loads the library of the C API, once, those of [`EMPTY`] that are among `libraries`, each once, and one of the functions
/// that are asked for and not provided.
///
/// # Errors
///
/// Why it can't be written or loaded.
pub fn provide<'s>(
    libraries: impl Iterator<Item = &'s str>,
    asked: impl Iterator<Item = &'s str>,
) -> Result<(), String> {
    if !IS_SUPPORTED {
        return Err("plugins are loaded on Linux on x86-64, with glibc".to_owned());
    }
    let mut process = PROCESS.lock().unwrap_or_else(PoisonError::into_inner);
    if process.answered.is_empty() {
        refuse_original()?;
        let entries = FUNCTIONS.iter().map(|function| Entry {
            name: function.name.to_owned(),
            is_provided: true,
        });
        let entries: Vec<Entry> = entries.collect();
        process.load(FRAMEWORK, &entries)?;
    }
    process.load_empty(libraries)?;
    let missing = |process: &Process, name: &&str| {
        is_answered(name) && !process.answered.iter().any(|known| known == name)
    };
    let mut further: Vec<&str> = asked.filter(|name| missing(&process, name)).collect();
    further.sort_unstable();
    further.dedup();
    if further.is_empty() {
        return Ok(());
    }
    let entries = further.into_iter().map(|name| Entry {
        name: name.to_owned(),
        is_provided: false,
    });
    let entries: Vec<Entry> = entries.collect();
    let name = format!("libtfrt_unprovided_{}.so", process.n_further);
    process.n_further += 1;
    process.load(&name, &entries)
}

/// Refuses to go on beside TensorFlow itself: one of the two would get the other's calls.
fn refuse_original() -> Result<(), String> {
    // The loader looks for a library that is not there in all folders of the system, which takes longer than all else here.
    if !is_of_tensorflow_there() {
        return Ok(());
    }
    for name in [FRAMEWORK, EMPTY[0], EMPTY[1]] {
        // RTLD_NOLOAD: only a library that is there is found.
        const NOLOAD: i32 = libc::RTLD_NOLOAD;
        // SAFETY: no library is loaded by this, so that none runs code.
        let found = unsafe { Library::open(Some(name), RTLD_NOW | NOLOAD) };
        if found.is_ok() {
            return Err(format!(
                "TensorFlow itself is in this process ({name}): one of the two would get the other's calls"
            ));
        }
    }
    Ok(())
}

/// Returns whether the file of a library in this process lies in a folder of TensorFlow's, or has its name.
fn is_of_tensorflow_there() -> bool {
    /// Looks at one library; the loader stops at the first number that is not 0, and returns it.
    unsafe extern "C" fn look(info: *mut libc::dl_phdr_info, _: usize, _: *mut c_void) -> c_int {
        // SAFETY: the loader has handed over the description of a library.
        let path = unsafe { (*info).dlpi_name };
        if path.is_null() {
            return 0;
        }
        // SAFETY: the path is a text that stays for the time of the call.
        let path = unsafe { CStr::from_ptr(path) };
        let mut parts = path.to_bytes().windows(TENSORFLOW.len());
        c_int::from(parts.any(|part| part == TENSORFLOW))
    }
    const TENSORFLOW: &[u8] = b"tensorflow";
    // SAFETY: the function is of the type that is asked for, and takes no data.
    unsafe { libc::dl_iterate_phdr(Some(look), std::ptr::null_mut()) != 0 }
}

impl Process {
    /// Loads the empty libraries that are among these names, unless they are there.
    fn load_empty<'s>(&mut self, names: impl Iterator<Item = &'s str>) -> Result<(), String> {
        for name in names {
            let empty = EMPTY.into_iter().find(|empty| *empty == name);
            if let Some(empty) = empty.filter(|empty| !self.empty.contains(empty)) {
                self.load(empty, &[])?;
                self.empty.push(empty);
            }
        }
        Ok(())
    }

    fn load(&mut self, soname: &str, entries: &[Entry]) -> Result<(), String> {
        let bytes = image::library(soname, entries);
        let failed = |error: String| format!("{soname} can't be made: {error}");
        let library = match self.open_in_memory(soname, &bytes) {
            Ok(library) => library,
            // Where memory may not be executed, a file may be.
            Err(in_memory) => open_in_file(&bytes).map_err(|in_file| {
                failed(format!("in memory: {in_memory}; in a file: {in_file}"))
            })?,
        };
        // SAFETY: the library has a table of this name.
        let table = unsafe { library.get::<*mut c_void>(TABLE.as_bytes()) };
        let table = table.map_err(|error| failed(error.to_string()))?;
        let provided = entries.iter().map(|entry| {
            let function = functions::find(&entry.name).filter(|_| entry.is_provided);
            function.map_or(0, |function| function.address())
        });
        let mut addresses: Vec<usize> = provided.collect();
        addresses.push(functions::unprovided as *const () as usize);
        // SAFETY: the image was made of these entries.
        let filled = unsafe { image::fill(table.into_raw(), &addresses) };
        filled.map_err(|error| failed(error.to_string()))?;
        self.answered
            .extend(entries.iter().map(|entry| entry.name.clone()));
        // It stays for good.
        std::mem::forget(library);
        Ok(())
    }

    fn open_in_memory(&mut self, name: &str, bytes: &[u8]) -> Result<Library, String> {
        let name = CString::new(name).map_err(|error| error.to_string())?;
        let create = |flags| rustix::fs::memfd_create(&name, MemfdFlags::CLOEXEC | flags);
        // Older kernels don't know the flag, and allow execution without.
        let file = create(MemfdFlags::EXEC).or_else(|_| create(MemfdFlags::empty()));
        let file = file.map_err(|error| error.to_string())?;
        let mut file = std::fs::File::from(file);
        file.write_all(bytes).map_err(|error| error.to_string())?;
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        // SAFETY: the library has no code that runs when it is opened.
        let opened = unsafe { Library::open(Some(&path), RTLD_NOW | RTLD_GLOBAL) };
        self.files.push(file.into());
        opened.map_err(|error| error.to_string())
    }
}

fn open_in_file(bytes: &[u8]) -> Result<Library, String> {
    let folder = std::env::temp_dir();
    let path = folder.join(format!(
        "tfrt-capi-{}-{}.so",
        std::process::id(),
        bytes.len()
    ));
    let text = |error: std::io::Error| error.to_string();
    let mut file = std::fs::File::create_new(&path).map_err(text)?;
    file.write_all(bytes).map_err(text)?;
    drop(file);
    // SAFETY: the library has no code that runs when it is opened.
    let opened = unsafe { Library::open(Some(&path), RTLD_NOW | RTLD_GLOBAL) };
    let _left_behind = std::fs::remove_file(&path);
    opened.map_err(|error| error.to_string())
}

/// Returns a plugin that was loaded before, by its canonical path.
pub fn loaded(path: &Path) -> Option<Loaded> {
    let process = PROCESS.lock().unwrap_or_else(PoisonError::into_inner);
    process.plugins.get(path).copied()
}

/// Opens a plugin, by its canonical path; its constructors run.
///
/// # Safety
///
/// The library's code runs in this process, and is trusted.
///
/// # Errors
///
/// The loader's reason.
pub unsafe fn open(path: &Path) -> Result<Loaded, String> {
    // SAFETY: the caller trusts the library.
    let opened = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) };
    let library = opened.map_err(|error| reason(&error))?;
    // SAFETY: the symbol is a function by the C headers; it is only asked for its address.
    let init = unsafe { library.get::<*const c_void>(b"TF_InitKernel") };
    let init_kernel = init.ok().map(|symbol| {
        let address = symbol.into_raw().cast_const();
        // SAFETY: it is a function without arguments by the C headers.
        unsafe { Callback::of(address) }
    });
    let loaded = Loaded { init_kernel };
    let mut process = PROCESS.lock().unwrap_or_else(PoisonError::into_inner);
    process.plugins.insert(path.to_owned(), loaded);
    // Libraries are never closed: kernels and texts lead into them.
    std::mem::forget(library);
    Ok(loaded)
}

/// Runs a plugin's entry points.
///
/// # Errors
///
/// What it threw or did wrong.
pub fn initialize(loaded: Loaded) -> Result<(), String> {
    let Some(init) = loaded.init_kernel else {
        return Ok(());
    };
    initialize_by(init)
}

/// Calls a function that registers, and returns what went wrong.
pub fn initialize_by(init: Callback) -> Result<(), String> {
    let (called, faults) = fault::scope(|| init.call(&[]));
    if let Err(exception) = called {
        return Err(format!("TF_InitKernel {exception}"));
    }
    match faults.is_empty() {
        true => Ok(()),
        false => Err(faults.join("; ")),
    }
}

/// A library that a plugin has opened, by `TF_LoadSharedLibrary`. It is never closed.
pub struct OpenLibrary(std::mem::ManuallyDrop<Library>);

impl OpenLibrary {
    /// Opens a library, whose constructors run: a plugin asks for it, whose code runs as well.
    ///
    /// # Errors
    ///
    /// The loader's reason.
    pub fn open(path: &Path) -> Result<OpenLibrary, String> {
        // Nobody has looked at what it asks for.
        let mut process = PROCESS.lock().unwrap_or_else(PoisonError::into_inner);
        process.load_empty(EMPTY.into_iter())?;
        drop(process);
        // SAFETY: a plugin, which is trusted, asks for it, and could open the library itself.
        let opened = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) };
        let opened = opened.map_err(|error| reason(&error))?;
        Ok(OpenLibrary(std::mem::ManuallyDrop::new(opened)))
    }

    /// Returns the address of a symbol.
    ///
    /// # Errors
    ///
    /// The loader's reason.
    pub fn symbol(&self, name: &[u8]) -> Result<Memory, String> {
        // SAFETY: the symbol is only asked for its address.
        let found = unsafe { self.0.get::<*mut u8>(name) };
        let found = found.map_err(|error| reason(&error))?;
        let address = std::ptr::NonNull::new(found.into_raw().cast());
        Ok(address.map_or_else(Memory::default, Memory::at))
    }
}

/// Returns the reason of the system's loader, which is behind the words of ours.
fn reason(error: &libloading::Error) -> String {
    use std::error::Error;
    let source = error.source();
    source.map_or_else(|| error.to_string(), ToString::to_string)
}
