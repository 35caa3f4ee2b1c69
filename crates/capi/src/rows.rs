//! [`PluginOps`]: the operations of plugins in a runtime: which call goes to which kernel, with which state.
//!
//! An operation `AddV2` is called by the name `tf.AddV2`. A call is resolved (`node.rs`), its kernel is selected
//! (`registry.rs`), the state that the kernel has made for such calls is looked up or made, and the kernel runs (`run.rs`).

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use smallvec::SmallVec;
use tfrt_corert::{
    AddedOps, Call, Formats, MetadataCall, OpAttrsRef, OpDefinition, Output, Outputs,
    ResultMetadata,
};
use tfrt_host::{AsyncValue, DType, Error, Promise};
use tfrt_tensor::Tensor;
use tfrt_tensor::resource::{Slot, Variable};

use crate::attrs::Attr;
use crate::dtype;
use crate::locks::Held;
use crate::node::Resolved;
use crate::plugin::Plugin;
use crate::registry::{self, KernelDef};
use crate::run::{self, Context, Input, Instance};
use crate::spec::{ArgSpec, OpSpec};

mod alike;
mod attributes;
mod shapes;

use alike::{Alike, Found, OpCalls};
use attributes::Kept;

/// Prefix of the names by which operations of TensorFlow are called.
const PREFIX: &str = "tf.";

/// The most states of kernels that are kept for calls to come.
const MAX_INSTANCES: usize = 1024;

/// The operations of some plugins, to be added to a runtime by
/// [`CoreRuntime::add_ops`](tfrt_corert::CoreRuntime::add_ops).
pub struct PluginOps {
    shared: Arc<Shared>,
}

struct Shared {
    /// Names of the libraries whose kernels are used.
    libraries: Vec<String>,
    /// Operations that are called in place of others.
    renamed: BTreeMap<String, String>,
    /// Whether kernels of priority 0 come before the runtime's.
    is_first: bool,
    instances: Mutex<Instances>,
    /// Known kinds of calls that are not of a node, by operation.
    calls: RwLock<BTreeMap<String, Arc<OpCalls>>>,
}

/// The state of a kernel, made by the first call that wants it.
type Place = OnceLock<Result<Arc<Instance>, Error>>;

/// States of kernels, by operation, attributes and kernel; those that were used last are kept.
#[derive(Default)]
struct Instances {
    /// Each with the time of its last use.
    all: HashMap<String, (u64, Arc<Place>)>,
    clock: u64,
}

impl PluginOps {
    /// Returns the operations of plugins.
    pub fn new<'p>(plugins: impl IntoIterator<Item = &'p Plugin>) -> PluginOps {
        let libraries = plugins.into_iter().map(|plugin| plugin.name().to_owned());
        PluginOps::with(Shared {
            libraries: libraries.collect(),
            renamed: BTreeMap::new(),
            is_first: false,
            instances: Mutex::default(),
            calls: RwLock::default(),
        })
    }

    fn with(shared: Shared) -> PluginOps {
        PluginOps {
            shared: Arc::new(shared),
        }
    }

    fn changed(self, change: impl FnOnce(&mut Shared)) -> PluginOps {
        let mut shared = Shared {
            libraries: self.shared.libraries.clone(),
            renamed: self.shared.renamed.clone(),
            is_first: self.shared.is_first,
            instances: Mutex::default(),
            calls: RwLock::default(),
        };
        change(&mut shared);
        PluginOps::with(shared)
    }

    /// Sends calls of one operation to another with the same inputs: `tf.MatMul` to `tf._ITEXMatMul`.
    pub fn renamed(self, from: &str, to: &str) -> PluginOps {
        self.changed(|shared| drop(shared.renamed.insert(from.to_owned(), to.to_owned())))
    }

    /// Lets kernels of priority 0 come before the runtime's own. Otherwise these clash ([`clashes`](Self::clashes)).
    pub fn first(self) -> PluginOps {
        self.changed(|shared| shared.is_first = true)
    }

    /// Returns the kernels of priority 0 for operations that the runtime has: nothing says which of both is meant.
    pub fn clashes(&self, has: impl Fn(&str) -> bool) -> Vec<String> {
        let own = registry::kernels(None).into_iter().filter(|kernel| {
            kernel.is_for_cpu()
                && kernel.priority == 0
                && kernel.label.is_empty()
                && self.shared.libraries.contains(&kernel.library)
        });
        let clashing =
            own.filter(|kernel| !self.shared.is_first && has(&format!("{PREFIX}{}", kernel.op)));
        let text = |kernel: Arc<KernelDef>| {
            format!("{}, for {}", kernel.text(), registry::constraints(&kernel))
        };
        clashing.map(text).collect()
    }

    /// Returns the names of the operations that have a kernel on the processor: `tf.AddV2`.
    pub fn names(&self) -> Vec<String> {
        let own = registry::kernels(None);
        let own = own.iter().filter(|kernel| {
            kernel.is_for_cpu() && self.shared.libraries.contains(&kernel.library)
        });
        let mut names: Vec<String> = own.map(|kernel| format!("{PREFIX}{}", kernel.op)).collect();
        names.dedup();
        names
    }
}

impl AddedOps for PluginOps {
    fn find(&self, op: &str) -> Option<Arc<OpDefinition>> {
        let called = op;
        let op = self.shared.op(op)?;
        let shared = &self.shared;
        let own = registry::kernels(Some(op));
        let mut own = own
            .iter()
            .filter(|kernel| shared.libraries.contains(&kernel.library));
        own.next()?;
        let Some(calls) = shared.calls_of(op) else {
            return Some(Arc::new(undefined(called, op)));
        };
        let common = Arc::new(definition(called, &calls, shared));
        let (for_nodes, called_so) = (shared.clone(), called.to_owned());
        let (op, all) = (op.to_owned(), calls.clone());
        let of_node = move || {
            // Nodes without a state have nothing of their own: what all of them use stays in the cache.
            if all.has_room() && for_nodes.is_stateless(&op) {
                return common.clone();
            }
            let calls = Arc::new(OpCalls::new(&all.spec, true));
            Arc::new(definition(&called_so, &calls, &for_nodes))
        };
        let definition = definition(called, &calls, shared).for_each_node(of_node);
        Some(Arc::new(definition))
    }

    fn takes(&self, op: &str, types: &[Option<DType>], attrs: OpAttrsRef<'_>) -> bool {
        let shared = &self.shared;
        let is_renamed = shared.renamed.contains_key(op);
        let Some(calls) = shared.op(op).and_then(|op| shared.calls_of(op)) else {
            return false;
        };
        let codes: SmallVec<[Option<i32>; 4]> = types
            .iter()
            .map(|dtype| dtype.and_then(dtype::code))
            .collect();
        let selected = calls.find(attrs, &codes);
        let selected = selected.and_then(|call| shared.kernel(&call).cloned());
        let is_before = |kernel: Arc<KernelDef>| {
            is_renamed || kernel.priority > 0 || kernel.priority == 0 && shared.is_first
        };
        selected.is_ok_and(is_before)
    }
}

/// Makes the definition of an operation that has kernels, but is defined nowhere: calls say so.
fn undefined(called: &str, op: &str) -> OpDefinition {
    let message =
        format!("'{op}' has kernels of a plugin, but no definition: nobody knows its inputs");
    OpDefinition::new(called.to_owned(), move |_| {
        Err(Error::not_found(message.clone()))
    })
}

/// Makes the definition of an operation whose calls are these.
fn definition(called: &str, calls: &Arc<OpCalls>, shared: &Arc<Shared>) -> OpDefinition {
    let (spec, own) = (&calls.spec, shared.clone());
    let (for_count, for_types, for_run) = (calls.clone(), calls.clone(), calls.clone());
    let for_use = spec.clone();
    let run = move |call: &mut Call<'_>| own.run(&for_run, call);
    let definition = OpDefinition::new(called.to_owned(), run).formats(Formats {
        string: true,
        ..Formats::OBJECT
    });
    let definition = match spec.outputs.iter().all(ArgSpec::is_one) {
        true => definition.results(spec.outputs.len()),
        false => definition.results_computed(move |attrs, n_inputs| {
            let types: SmallVec<[Option<i32>; 4]> = SmallVec::from_elem(None, n_inputs);
            let call = for_count.find(attrs, &types)?;
            Ok(call.resolved.outputs.len())
        }),
    };
    let definition = match spec.shape_function {
        Some(_) => definition.metadata(move |call| result_metadata(&for_types, call)),
        None => definition,
    };
    // Results that come later tell their shapes before.
    let is_later = |kernel: &Arc<KernelDef>| kernel.is_async;
    let definition = match spec.shape_function {
        Some(_) if registry::kernels(Some(&spec.name)).iter().any(is_later) => definition,
        _ => definition.direct(),
    };
    match spec.is_stateful {
        // Whether the plugin has said so or not.
        _ if spec.takes_resources() => definition
            .effects_on_resources(true)
            .resources_shared_by(move |attrs| shares_resources(&for_use, attrs)),
        true => definition,
        false => definition.pure(),
    }
}

/// Returns whether calls with these attributes lock their variables for readers only.
fn shares_resources(spec: &OpSpec, attrs: OpAttrsRef<'_>) -> bool {
    let mut all = attrs.iter();
    let stated = all.find(|(name, _)| *name == "use_locking");
    let stated = stated.and_then(|(_, value)| attributes::attr(value, Kept::ByRuntime));
    let default = spec
        .attr("use_locking")
        .and_then(|attr| attr.default.clone());
    matches!(stated.or(default), Some(Attr::Bool(false) | Attr::Int(0)))
}

fn result_metadata(calls: &OpCalls, call: &MetadataCall<'_>) -> Result<ResultMetadata, Error> {
    let codes = call
        .inputs
        .iter()
        .map(|metadata| dtype::code(metadata.dtype));
    let codes: SmallVec<[Option<i32>; 4]> = codes.collect();
    let alike = calls.find(call.attrs, &codes)?;
    alike.shapes(call.inputs, || {
        shapes::infer(&calls.spec, &alike.resolved, call.inputs)
    })
}

/// Returns what is known of a call; of references among its inputs, by what they refer to.
fn find<'c>(calls: &'c OpCalls, call: &Call<'_>) -> Result<Found<'c>, Error> {
    let mut codes: SmallVec<[Option<i32>; 4]> = SmallVec::new();
    for index in 0..call.n_inputs() {
        codes.push(dtype::code(call.tensor(index)?.metadata().dtype));
    }
    let alike = calls.find(call.attrs(), &codes)?;
    if !alike.has_references {
        return Ok(alike);
    }
    for (index, _) in &alike.resolved.references {
        let slot = Slot::of(call.tensor(*index)?)?;
        let referred = slot.get::<Variable>()?.metadata();
        let code = referred.and_then(|metadata| dtype::code(metadata.dtype));
        codes[*index] = code.map(|code| code + dtype::REFERENCE);
    }
    calls.find(call.attrs(), &codes)
}

impl Shared {
    /// Returns the operation, in TensorFlow's words, that is called by a name.
    fn op<'a>(&'a self, called: &'a str) -> Option<&'a str> {
        let name = self.renamed.get(called).map_or(called, String::as_str);
        name.strip_prefix(PREFIX)
    }

    /// Returns what is known of the calls of an operation, by its name in TensorFlow, if it is defined.
    fn calls_of(&self, op: &str) -> Option<Arc<OpCalls>> {
        let calls = self.calls.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = calls.get(op) {
            return Some(own.clone());
        }
        drop(calls);
        // Definitions are never changed, so that this one stays right.
        let new = Arc::new(OpCalls::new(&registry::spec(op)?, false));
        let mut calls = self.calls.write().unwrap_or_else(PoisonError::into_inner);
        Some(calls.entry(op.to_owned()).or_insert(new).clone())
    }

    /// Returns whether no kernel of an operation keeps a state for its nodes.
    fn is_stateless(&self, op: &str) -> bool {
        let kernels = registry::kernels(Some(op));
        let mut own = kernels
            .iter()
            .filter(|kernel| self.libraries.contains(&kernel.library));
        own.all(|kernel| kernel.create.is_null() && kernel.delete.is_null())
    }

    /// Returns the kernel of a call.
    fn kernel<'c>(&self, call: &'c Alike) -> Result<&'c Arc<KernelDef>, Error> {
        call.kernel(|node| registry::select(&node.op, &node.attrs, &self.libraries))
    }

    fn run(&self, calls: &OpCalls, call: &mut Call<'_>) -> Result<Outputs, Error> {
        let alike = match calls.known_of(call) {
            Some(known) if !known.has_references => known,
            _ => find(calls, call)?,
        };
        let kernel = self.kernel(&alike)?;
        let shared = || self.instance(kernel, &alike.resolved);
        let bound = calls.bound(&alike, kernel, shared)?;
        if !kernel.is_async
            && let Some(results) = run::compute_now(call, bound)
        {
            return results;
        }
        let mut context = Context::new(bound, call.execution().request());
        for index in 0..call.n_inputs() {
            // What was given for good may become an output's memory.
            context.add_input(match call.take_sole(index) {
                Some(tensor) => Input::given(tensor),
                None => Input::kept(call.tensor(index)?.clone()),
            });
        }
        // A kernel starts when its variables are locked.
        let has_variables = context.has_variables();
        let is_free = !has_variables || context.variables().locks.try_all()?;
        if is_free && !kernel.is_async {
            return run::compute(context, bound);
        }
        let n_outputs = bound.outputs().len();
        let (promises, results): (Vec<Promise<Tensor>>, Outputs) = (0..n_outputs)
            .map(|_| {
                let (promise, later) = AsyncValue::<Tensor>::pending();
                (promise, Output::Later(later))
            })
            .unzip();
        let effects = (has_variables || n_outputs == 0).then(|| {
            let (promise, chain) = AsyncValue::pending();
            call.set_effects(chain);
            promise
        });
        if is_free {
            run::start(context, promises, effects);
            return Ok(results);
        }
        let execution = call.execution().clone();
        let (is_async, bound) = (kernel.is_async, bound.clone());
        context.variables().locks.all()?.when_settled(move |locks| {
            if let Some(reason) = execution.request().cancellation() {
                return run::settle(Err(reason.clone()), promises, effects);
            }
            context.variables().locks.hold(Held::Awaited(locks));
            match is_async {
                true => run::start(context, promises, effects),
                false => {
                    let results = run::compute(context, &bound);
                    run::settle(results, promises, effects);
                }
            }
        });
        Ok(results)
    }

    /// Returns the state of a kernel for calls with these attributes.
    fn instance(&self, kernel: &Arc<KernelDef>, call: &Resolved) -> Result<Arc<Instance>, Error> {
        let mut key = format!("{:x} {}", Arc::as_ptr(kernel).addr(), call.node.op);
        for (name, value) in &call.node.attrs {
            let _never_fails = write!(key, " {name}=");
            value.write_key(&mut key);
        }
        let mut dropped = Vec::new();
        let place = {
            let mut instances = self
                .instances
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            instances.clock += 1;
            let now = instances.clock;
            if !instances.all.contains_key(&key) && instances.all.len() >= MAX_INSTANCES {
                let oldest = instances.all.iter().min_by_key(|(_, (used, _))| *used);
                let oldest = oldest.map(|(key, _)| key.clone());
                dropped.extend(oldest.and_then(|oldest| instances.all.remove(&oldest)));
            }
            let (used, place) = instances.all.entry(key.clone()).or_default();
            *used = now;
            place.clone()
        };
        // States are deleted outside of the lock: that is a plugin's code.
        drop(dropped);
        let make = || Instance::new(kernel, &call.node).map(Arc::new);
        let made = place.get_or_init(make).clone();
        if made.is_err() {
            // The next call tries again.
            let mut instances = self
                .instances
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            instances.all.remove(&key);
        }
        made
    }
}
