//! The kernels and operations that plugins have registered, for the life of the process.
//!
//! Libraries are never closed, so that a registration stays. Which of them a runtime uses is the runtime's matter
//! (`rows.rs`).

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use tfrt_host::Error;

use crate::attrs::{Attr, NodeAttrs};
use crate::builtin;
use crate::dtype;
use crate::guard::Callback;
use crate::spec::OpSpec;

/// A kernel as a plugin has registered it.
pub struct KernelDef {
    /// The operation.
    pub op: String,
    /// The kind of device: `CPU`.
    pub device: String,
    /// The kernel's name.
    pub name: String,
    /// Attributes with the types that they may be.
    pub constraints: Vec<(String, Vec<i32>)>,
    /// Inputs and outputs that lie in the host's memory on devices.
    pub host_memory: Vec<String>,
    /// Kernels of a higher priority come first.
    pub priority: i32,
    /// Nodes take the kernel only if their attribute `_kernel` is this, unless it is empty.
    pub label: String,
    /// Makes the state of a node.
    pub create: Callback,
    /// Runs the kernel.
    pub compute: Callback,
    /// Frees the state of a node.
    pub delete: Callback,
    /// Whether the kernel goes on after `compute` has returned.
    pub is_async: bool,
    /// The library that it comes from.
    pub library: String,
    /// The kernel as messages have it, set when it is registered.
    pub text: String,
    /// Objects of the host that calls of the kernel have made and left behind. A statistic.
    pub n_left: AtomicI64,
}

impl KernelDef {
    /// Returns whether the kernel runs on the processor.
    pub fn is_for_cpu(&self) -> bool {
        matches!(self.device.as_str(), "CPU" | "DEFAULT")
    }

    /// Returns the kernel as messages have it: `kernel 'Foo' of libfoo.so`.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns whether the kernel takes a node with these attributes, of which those of types may be unknown.
    fn takes(&self, attrs: &NodeAttrs) -> bool {
        let label = match attrs.get("_kernel") {
            Some(Attr::Bytes(label)) => label.as_slice(),
            _ => b"",
        };
        label == self.label.as_bytes()
            && self
                .constraints
                .iter()
                .all(|(name, types)| match attrs.get(name) {
                    Some(Attr::Type(code)) => types.contains(code),
                    Some(Attr::List(_, list)) => list.iter().all(|one| match one {
                        Attr::Type(code) => types.contains(code),
                        _ => false,
                    }),
                    _ => true,
                })
    }
}

/// A library that is being loaded: its registrations, and what was wrong with them.
#[derive(Default)]
struct Loading {
    library: String,
    kernels: Vec<Arc<KernelDef>>,
    ops: Vec<Arc<OpSpec>>,
    errors: Vec<String>,
}

/// Registrations of a library.
#[derive(Clone, Default)]
pub struct Registered {
    /// Its kernels, in the order of their registration.
    pub kernels: Vec<Arc<KernelDef>>,
    /// Its operations.
    pub ops: Vec<Arc<OpSpec>>,
    /// Registrations that were refused, with the reason.
    pub errors: Vec<String>,
}

static LOADING: Mutex<Option<Loading>> = Mutex::new(None);

#[derive(Default)]
struct All {
    kernels: BTreeMap<String, Vec<Arc<KernelDef>>>,
    ops: BTreeMap<String, Arc<OpSpec>>,
}

static ALL: RwLock<All> = RwLock::new(All {
    kernels: BTreeMap::new(),
    ops: BTreeMap::new(),
});

/// Runs a library's registrations under its name, and returns them. They become known to all if `is_wanted` says so of
/// them. Callers let one library load at a time.
pub fn loading<R>(
    library: &str,
    load: impl FnOnce() -> R,
    is_wanted: impl FnOnce(&R, &Registered) -> bool,
) -> (R, Registered) {
    let begun = Loading {
        library: library.to_owned(),
        ..Loading::default()
    };
    *LOADING.lock().unwrap_or_else(PoisonError::into_inner) = Some(begun);
    let result = load();
    let loaded = LOADING
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take();
    let loaded = loaded.unwrap_or_default();
    let registered = Registered {
        kernels: loaded.kernels,
        ops: loaded.ops,
        errors: loaded.errors,
    };
    if is_wanted(&result, &registered) {
        let mut all = ALL.write().unwrap_or_else(PoisonError::into_inner);
        for kernel in &registered.kernels {
            let own = all.kernels.entry(kernel.op.clone()).or_default();
            own.push(kernel.clone());
        }
        for op in &registered.ops {
            all.ops.insert(op.name.clone(), op.clone());
        }
    }
    (result, registered)
}

fn with_loading<R>(with: impl FnOnce(&mut Loading) -> R) -> Result<R, Error> {
    let mut loading = LOADING.lock().unwrap_or_else(PoisonError::into_inner);
    match loading.as_mut() {
        Some(loading) => Ok(with(loading)),
        None => Err(Error::failed_precondition(
            "a plugin registers while it is loaded, and not later",
        )),
    }
}

/// Registers a kernel of the library that is being loaded.
///
/// # Errors
///
/// `FailedPrecondition` if none is being loaded.
pub fn register_kernel(mut kernel: KernelDef) -> Result<(), Error> {
    with_loading(|loading| {
        kernel.library.clone_from(&loading.library);
        kernel.text = format!("kernel '{}' of {}", kernel.op, kernel.library);
        loading.kernels.push(Arc::new(kernel));
    })
}

/// Registers an operation of the library that is being loaded.
///
/// # Errors
///
/// `AlreadyExists` if there is another of the name, `FailedPrecondition` if no library is being loaded.
pub fn register_op(mut op: OpSpec) -> Result<(), Error> {
    let name = op.name.clone();
    let is_known = spec(&name).is_some();
    with_loading(|loading| {
        op.library.clone_from(&loading.library);
        let is_own = loading.ops.iter().any(|own| own.name == name);
        if is_known || is_own {
            return Err(Error::already_exists(format!("Op with name {name}")));
        }
        loading.ops.push(Arc::new(op));
        Ok(())
    })?
}

/// Notes a registration that was refused: loading fails for it.
pub fn refuse(reason: String) {
    let noted = with_loading(|loading| loading.errors.push(reason.clone()));
    if noted.is_err() {
        crate::fault::record(format_args!("{reason}"));
    }
}

/// Returns the definition of an operation: a plugin's, or a built-in one.
pub fn spec(op: &str) -> Option<Arc<OpSpec>> {
    let all = ALL.read().unwrap_or_else(PoisonError::into_inner);
    let own = all.ops.get(op).cloned();
    drop(all);
    own.or_else(|| builtin::spec(op))
}

/// Returns all definitions of operations.
pub fn specs() -> Vec<Arc<OpSpec>> {
    let all = ALL.read().unwrap_or_else(PoisonError::into_inner);
    let own = all.ops.values().cloned().collect::<Vec<_>>();
    drop(all);
    own.into_iter().chain(builtin::specs()).collect()
}

/// Returns all kernels of an operation, or of all operations.
pub fn kernels(op: Option<&str>) -> Vec<Arc<KernelDef>> {
    let all = ALL.read().unwrap_or_else(PoisonError::into_inner);
    match op {
        Some(op) => all.kernels.get(op).cloned().unwrap_or_default(),
        None => all.kernels.values().flatten().cloned().collect(),
    }
}

/// Returns the kernels whose calls have made objects of the host and not deleted them, as messages have them, with the
/// number of the objects.
pub fn left_behind() -> Vec<(String, u64)> {
    let all = kernels(None).into_iter();
    let left = all.filter_map(|kernel| {
        // Ordering: a statistic.
        let n_left = u64::try_from(kernel.n_left.load(Ordering::Relaxed)).ok()?;
        (n_left > 0).then(|| (kernel.text().to_owned(), n_left))
    });
    left.collect()
}

/// Returns the kernel that runs a node on the processor, of those of some libraries: the one of the highest priority that
/// takes the node's attributes.
///
/// # Errors
///
/// `NotFound` if there is none, with the kernels that there are; `InvalidArgument` if two have the highest priority.
pub fn select(op: &str, attrs: &NodeAttrs, libraries: &[String]) -> Result<Arc<KernelDef>, Error> {
    let mut own = kernels(Some(op));
    own.retain(|kernel| kernel.is_for_cpu() && libraries.contains(&kernel.library));
    let is_named = |kernel: &Arc<KernelDef>| kernel.device == "CPU" && kernel.takes(attrs);
    // Kernels of any device stand in where the processor has none.
    let has_named = own.iter().any(is_named);
    let taking = own
        .iter()
        .filter(|kernel| kernel.takes(attrs) && (!has_named || kernel.device == "CPU"));
    let best = taking.clone().map(|kernel| kernel.priority).max();
    let mut best = taking.filter(|kernel| Some(kernel.priority) == best);
    match (best.next(), best.next()) {
        (Some(one), None) => Ok(one.clone()),
        (Some(one), Some(other)) => {
            let (one, other, priority) = (one.text(), other.text(), one.priority);
            Err(Error::invalid_argument(format!(
                "several kernels of priority {priority} run this call of '{op}': {one}, {other}"
            )))
        }
        (None, _) => {
            let types = attrs.iter().filter_map(|(name, value)| match value {
                Attr::Type(code) => Some(format!("{name} = {}", dtype::name(*code))),
                _ => None,
            });
            let types: Vec<String> = types.collect();
            let error = Error::not_found(format!(
                "no kernel of a plugin runs '{op}' on the processor with {}",
                if types.is_empty() {
                    "these attributes".to_owned()
                } else {
                    types.join(", ")
                }
            ));
            Err(own.iter().take(8).fold(error, |error, kernel| {
                error.with_note(format!("{} takes {}", kernel.text(), constraints(kernel)))
            }))
        }
    }
}

/// Returns what a kernel takes, as messages have it: `T = float or double`.
pub fn constraints(kernel: &KernelDef) -> String {
    let mut all: Vec<String> = kernel
        .constraints
        .iter()
        .map(|(name, types)| {
            let types: Vec<String> = types.iter().map(|code| dtype::name(*code)).collect();
            format!("{name} = {}", types.join(" or "))
        })
        .collect();
    if !kernel.label.is_empty() {
        all.push(format!("label '{}'", kernel.label));
    }
    match all.is_empty() {
        true => "any types".to_owned(),
        false => all.join(", "),
    }
}
