//! Building of test plugins, and calls of their operations.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tfrt_capi::Plugin;
use tfrt_capi::rows::PluginOps;
use tfrt_corert::{Context, CoreRuntime, OpAttrs, TensorHandle};
use tfrt_host::kernel::KernelRegistry;
use tfrt_host::{Error, HostContext};

/// Folder of what the tests build.
pub fn folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("plugins");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Returns the folder of the header `tfrt_capi.h`, which is written once: compilers of several tests read it.
pub fn header_folder() -> PathBuf {
    static WRITTEN: OnceLock<PathBuf> = OnceLock::new();
    let write = || {
        let folder = folder();
        std::fs::write(folder.join("tfrt_capi.h"), tfrt_capi::functions::header()).unwrap();
        folder
    };
    WRITTEN.get_or_init(write).clone()
}

/// Returns a file or folder of the published packages that `cargo xtask capi` gets; `None` if it is not there.
pub fn unpacked(path: &str) -> Option<PathBuf> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent()?;
    let path = target.join("capi").join(path);
    if !path.exists() {
        eprintln!(
            "SKIPPED: there is no {}: `cargo xtask capi` gets it",
            path.display()
        );
        return None;
    }
    Some(path)
}

/// Builds a library of a source file; `None` if there is no compiler for it.
pub fn build(name: &str, source: &str, flags: &[&str]) -> Option<PathBuf> {
    // One at a time, since they share files.
    static BUILDS: Mutex<()> = Mutex::new(());
    let _one = BUILDS.lock().unwrap_or_else(PoisonError::into_inner);
    let is_cpp = source.contains("// C++");
    let compiler = if is_cpp { "g++" } else { "cc" };
    let folder = header_folder();
    let file = folder.join(format!("{name}.{}", if is_cpp { "cc" } else { "c" }));
    std::fs::write(&file, source).unwrap();
    let library = folder.join(format!("lib{name}.so"));
    let built = Command::new(compiler)
        .args([
            "-shared",
            "-fPIC",
            "-O1",
            "-Wall",
            "-Werror",
            "-ffp-contract=off",
            "-o",
        ])
        .arg(&library)
        .arg(&file)
        .args(flags)
        .output();
    let built = match built {
        Ok(built) => built,
        Err(error) => {
            eprintln!("SKIPPED: there is no {compiler}: {error}");
            return None;
        }
    };
    let text = String::from_utf8_lossy(&built.stderr);
    assert!(built.status.success(), "{name}: {text}");
    Some(library)
}

/// Loads a test plugin.
pub fn load(path: &Path) -> Result<Plugin, tfrt_capi::LoadError> {
    // SAFETY: the tests have written the library.
    #[expect(unsafe_code, reason = "the tests have written the library")]
    unsafe {
        Plugin::load(path)
    }
}

/// Faults outside of any call, once [`collect_faults`] was called.
pub static FAULTS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Keeps faults outside of any call in [`FAULTS`].
pub fn collect_faults() {
    tfrt_capi::fault::set_handler(|text| {
        let mut faults = FAULTS.lock().unwrap_or_else(PoisonError::into_inner);
        faults.push(text.to_owned());
    });
}

/// A runtime with the operations of a plugin.
pub struct Bed {
    pub runtime: CoreRuntime,
    pub context: Context,
}

impl Bed {
    pub fn new(ops: PluginOps) -> Bed {
        let mut registry = KernelRegistry::new();
        tfrt_corert::kernels::register(&mut registry);
        let host = HostContext::builder(registry).build();
        let runtime = CoreRuntime::new(&host);
        runtime.set_kernels(tfrt_kernels::rows::find);
        runtime.add_ops(Arc::new(ops));
        let context = runtime.context();
        Bed { runtime, context }
    }

    pub fn floats(&self, extents: &[usize], elements: &[f32]) -> TensorHandle {
        self.runtime.dense(extents, elements).unwrap()
    }

    /// Calls an operation, and waits for its results.
    pub fn call(
        &self,
        op: &str,
        inputs: Vec<TensorHandle>,
        attrs: &OpAttrs,
    ) -> Result<Vec<TensorHandle>, Error> {
        let op = self.runtime.op(op, &self.runtime.cpu())?;
        let results = op.call(&self.context, inputs, attrs)?;
        let queue = self.runtime.host().queue();
        for handle in &results {
            queue.await_all(&[handle.to_async().into_any()]).unwrap();
            if let Some(error) = handle.error() {
                return Err(error.clone());
            }
        }
        Ok(results.into_iter().collect())
    }

    /// Calls an operation, and returns its results as text.
    pub fn text(
        &self,
        op: &str,
        inputs: Vec<TensorHandle>,
        attrs: &OpAttrs,
    ) -> Result<String, Error> {
        let results = self.call(op, inputs, attrs)?;
        let texts = results.iter().map(ToString::to_string);
        Ok(texts.collect::<Vec<_>>().join("; "))
    }
}

/// The plugin of operations on variables; `None` if there is no compiler.
pub fn variables() -> Option<Plugin> {
    static PLUGIN: OnceLock<Option<Plugin>> = OnceLock::new();
    let make = || {
        let source = include_str!("plugins/variables.c");
        let library = build("variables", source, &["-lpthread"])?;
        Some(load(&library).unwrap())
    };
    PLUGIN.get_or_init(make).clone()
}

/// The plugin of optimizers; `None` if there is no compiler.
pub fn optimizers() -> Option<Plugin> {
    static PLUGIN: OnceLock<Option<Plugin>> = OnceLock::new();
    let make = || {
        let source = include_str!("plugins/optimizers.c");
        let library = build("optimizers", source, &["-lm"])?;
        Some(load(&library).unwrap())
    };
    PLUGIN.get_or_init(make).clone()
}

/// The plugin in C that most tests call; `None` if there is no compiler.
pub fn basic() -> Option<Plugin> {
    static PLUGIN: OnceLock<Option<Plugin>> = OnceLock::new();
    let make = || {
        let library = build("basic", include_str!("plugins/basic.c"), &[])?;
        Some(load(&library).unwrap())
    };
    PLUGIN.get_or_init(make).clone()
}
