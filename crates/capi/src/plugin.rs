//! [`Plugin`]: a library of kernels that was loaded.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use crate::check::{Report, check};
use crate::codes;
use crate::crash;
use crate::guard::Callback;
use crate::library::{self, LOADS};
use crate::registry::{self, KernelDef, Registered};
use crate::spec::OpSpec;

/// A plugin that is loaded, for the life of the process. Clones are handles to the same library.
#[derive(Clone)]
pub struct Plugin {
    shared: Arc<Shared>,
}

struct Shared {
    path: PathBuf,
    name: String,
    registered: Registered,
}

/// The reason why a plugin can't be loaded.
#[derive(Clone, Debug)]
pub struct LoadError {
    /// The code of the message.
    pub code: &'static str,
    /// The reason.
    pub message: String,
    /// Further lines: symbols, registrations.
    pub notes: Vec<String>,
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for LoadError {}

impl LoadError {
    fn new(path: &Path, why: impl fmt::Display) -> LoadError {
        let path = path.display();
        LoadError {
            code: codes::NOT_LOADED,
            message: format!("plugin '{path}': {why}"),
            notes: Vec::new(),
        }
    }
}

/// Plugins that were loaded, by canonical path.
static PLUGINS: Mutex<BTreeMap<PathBuf, Plugin>> = Mutex::new(BTreeMap::new());

/// The most symbols that an error lists.
const MAX_LISTED: usize = 8;

impl Plugin {
    /// Loads a plugin: a library of kernels that is built on TensorFlow's C headers. One that is loaded already is not
    /// loaded again.
    ///
    /// # Safety
    ///
    /// The library's code runs in this process: it is trusted as any library that is linked.
    ///
    /// # Errors
    ///
    /// The library can't be loaded ([`check`] tells why before), it fails or throws while it registers, or a registration
    /// of its is refused.
    pub unsafe fn load(path: impl AsRef<Path>) -> Result<Plugin, LoadError> {
        let given = path.as_ref();
        let path = given
            .canonicalize()
            .map_err(|error| LoadError::new(given, error))?;
        let _one_at_a_time = LOADS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(plugin) = plugins().get(&path) {
            return Ok(plugin.clone());
        }
        let report = check(&path);
        if let Some(error) = refusal(given, &report) {
            return Err(error);
        }
        if library::loaded(&path).is_some() {
            let why = "it failed when it was loaded before, and can't be loaded again";
            return Err(LoadError::new(given, why));
        }
        let libraries = report.asks_for.iter().chain(&report.beside_asks_for);
        let asked = report.unprovided.iter().chain(&report.beside);
        library::provide(libraries.map(String::as_str), asked.map(String::as_str))
            .map_err(|why| LoadError::new(given, why))?;
        let load = || {
            // SAFETY: the caller trusts the library.
            let loaded = unsafe { library::open(&path) }?;
            library::initialize(loaded)
        };
        Plugin::registered(given, &path, load)
    }

    /// Registers kernels that are part of this program: `initialize` does what `TF_InitKernel` of a library does. What is
    /// registered already under this name is not registered again.
    ///
    /// # Safety
    ///
    /// The callbacks that it registers are of the types that the C headers ask for.
    ///
    /// # Errors
    ///
    /// It throws or does something wrong while it registers, or a registration is refused.
    pub unsafe fn linked(name: &str, initialize: extern "C" fn()) -> Result<Plugin, LoadError> {
        let path = PathBuf::from(name);
        let _one_at_a_time = LOADS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(plugin) = plugins().get(&path) {
            return Ok(plugin.clone());
        }
        // SAFETY: it is a function without arguments.
        let initialize = unsafe { Callback::of(initialize as *const c_void) };
        let load = || library::initialize_by(initialize);
        Plugin::registered(&path, &path, load)
    }

    /// Runs a plugin's registrations, and keeps it under its path if all is well. `given` is the path for messages.
    fn registered(
        given: &Path,
        path: &Path,
        load: impl FnOnce() -> Result<(), String>,
    ) -> Result<Plugin, LoadError> {
        let name = name_of(path);
        let is_wanted = |loaded: &Result<(), String>, registered: &Registered| {
            loaded.is_ok() && registered.errors.is_empty()
        };
        let load = || crash::within(&format!("the registration of {name}"), load);
        let (loaded, registered) = registry::loading(&name, load, is_wanted);
        loaded.map_err(|why| LoadError::new(given, why))?;
        if let Some(first) = registered.errors.first() {
            let mut error = LoadError::new(given, first);
            error.notes = registered.errors[1..].to_vec();
            return Err(error);
        }
        let plugin = Plugin {
            shared: Arc::new(Shared {
                path: path.to_owned(),
                name,
                registered,
            }),
        };
        plugins().insert(path.to_owned(), plugin.clone());
        Ok(plugin)
    }

    /// Returns the file, by its canonical path; the name of a plugin that is part of the program.
    pub fn path(&self) -> &Path {
        &self.shared.path
    }

    /// Returns the name that messages have: that of the file, with a number if there is another of the name.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Returns the kernels that it has registered.
    pub fn kernels(&self) -> impl Iterator<Item = Kernel<'_>> {
        self.shared
            .registered
            .kernels
            .iter()
            .map(|def| Kernel { def })
    }

    /// Returns the operations that it has defined.
    pub fn ops(&self) -> impl Iterator<Item = &OpSpec> {
        self.shared.registered.ops.iter().map(|op| &**op)
    }
}

/// A kernel of a plugin.
#[derive(Clone, Copy)]
pub struct Kernel<'p> {
    def: &'p KernelDef,
}

impl<'p> Kernel<'p> {
    /// Returns the name of the operation: `MatMul`.
    pub fn op(self) -> &'p str {
        &self.def.op
    }

    /// Returns whether the operation is defined, by a plugin or here. Otherwise nobody knows what it takes, and the kernel
    /// is not called.
    pub fn is_defined(self) -> bool {
        registry::spec(&self.def.op).is_some()
    }

    /// Returns the kind of device: `CPU`.
    pub fn device(self) -> &'p str {
        &self.def.device
    }

    /// Returns the priority among kernels of the operation.
    pub fn priority(self) -> i32 {
        self.def.priority
    }

    /// Returns the label that nodes ask for; empty if the kernel has none.
    pub fn label(self) -> &'p str {
        &self.def.label
    }

    /// Returns what it takes, as text: `T = float or double`.
    pub fn constraints(self) -> String {
        registry::constraints(self.def)
    }

    /// Returns how many objects of the host its calls have made and not deleted, up to now: they are there for good, unless
    /// a later call deletes them.
    pub fn n_left(self) -> u64 {
        // Ordering: a statistic.
        let n_left = self.def.n_left.load(Ordering::Relaxed);
        u64::try_from(n_left).unwrap_or(0)
    }

    /// Returns the kernel as messages have it: `kernel 'Foo' of libfoo.so`.
    pub fn text(self) -> &'p str {
        self.def.text()
    }

    /// Returns whether it goes on after its function has returned.
    pub fn is_async(self) -> bool {
        self.def.is_async
    }
}

fn plugins() -> std::sync::MutexGuard<'static, BTreeMap<PathBuf, Plugin>> {
    PLUGINS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn name_of(path: &Path) -> String {
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    let plugins = plugins();
    let is_taken = |name: &str| plugins.values().any(|plugin| plugin.name() == name);
    let numbered = (2..).map(|number| format!("{file}#{number}"));
    let mut names = std::iter::once(file.to_string()).chain(numbered);
    names.find(|name| !is_taken(name)).unwrap_or_default()
}

/// Returns the error for a plugin that does not load, as the check has found.
fn refusal(path: &Path, report: &Report) -> Option<LoadError> {
    let first = report.reasons.first()?;
    let mut error = LoadError::new(path, first);
    error.code = first.code();
    for reason in &report.reasons {
        let symbols = reason.symbols();
        error.notes.extend(symbols.iter().take(MAX_LISTED).cloned());
        if let Some(more) = symbols
            .len()
            .checked_sub(MAX_LISTED)
            .filter(|more| *more > 0)
        {
            error.notes.push(format!("and {more} more"));
        }
    }
    let others = report.reasons[1..].iter();
    error.notes.extend(others.map(ToString::to_string));
    Some(error)
}

impl fmt::Debug for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Plugin").field(&self.name()).finish()
    }
}
