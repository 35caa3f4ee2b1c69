//! [`PluginOps`]: the operations of plugins in a runtime: which call goes to which kernel, with which state.
//!
//! An operation `AddV2` is called by the name `tf.AddV2`. A call is resolved (`node.rs`), its kernel is selected
//! (`registry.rs`), the state that the kernel has made for such calls is looked up or made, and the kernel runs (`run.rs`).

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use smallvec::SmallVec;
use tfrt_corert::{
    AddedOps, AttrValue, Call, Formats, MetadataCall, Numbers, OpAttrsRef, OpDefinition, Output,
    Outputs, ResultMetadata,
};
use tfrt_host::{AsyncValue, DType, Error, Promise};
use tfrt_tensor::resource::{Slot, Variable};
use tfrt_tensor::{Bool, Tensor};

use crate::attrs::{Attr, Kind, NodeAttrs};
use crate::dtype;
use crate::functions::tensor::allocator;
use crate::locks::Held;
use crate::node::{Resolved, resolve};
use crate::plugin::Plugin;
use crate::registry::{self, KernelDef};
use crate::run::{self, Context, Input, Instance};
use crate::spec::OpSpec;

mod shapes;

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
        let Some(spec) = registry::spec(op) else {
            return Some(Arc::new(undefined(called, op)));
        };
        Some(Arc::new(definition(called, &spec, shared)))
    }

    fn takes(&self, op: &str, types: &[Option<DType>], attrs: OpAttrsRef<'_>) -> bool {
        let is_renamed = self.shared.renamed.contains_key(op);
        let Some(spec) = self.shared.op(op).and_then(registry::spec) else {
            return false;
        };
        let codes: SmallVec<[Option<i32>; 4]> = types
            .iter()
            .map(|dtype| dtype.and_then(dtype::code))
            .collect();
        let selected = node_attrs(attrs)
            .and_then(|attrs| resolve(&spec, &attrs, &codes))
            .and_then(|call| {
                registry::select(&spec.name, &call.node.attrs, &self.shared.libraries)
            });
        let is_before = |kernel: Arc<KernelDef>| {
            is_renamed || kernel.priority > 0 || kernel.priority == 0 && self.shared.is_first
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

fn definition(called: &str, spec: &Arc<OpSpec>, shared: &Arc<Shared>) -> OpDefinition {
    let (for_count, for_types) = (spec.clone(), spec.clone());
    let (for_run, for_use, shared) = (spec.clone(), spec.clone(), shared.clone());
    let definition = OpDefinition::new(called.to_owned(), move |call| shared.run(&for_run, call))
        .formats(Formats {
            string: true,
            ..Formats::OBJECT
        })
        .results_computed(move |attrs, n_inputs| {
            let types = vec![None; n_inputs];
            let call = resolve(&for_count, &node_attrs(attrs)?, &types)?;
            Ok(call.outputs.len())
        })
        .metadata(move |call| result_metadata(&for_types, call));
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
    let stated = stated.and_then(|(_, value)| attr(value));
    let default = spec
        .attr("use_locking")
        .and_then(|attr| attr.default.clone());
    matches!(stated.or(default), Some(Attr::Bool(false) | Attr::Int(0)))
}

fn result_metadata(spec: &OpSpec, call: &MetadataCall<'_>) -> Result<ResultMetadata, Error> {
    let codes = call
        .inputs
        .iter()
        .map(|metadata| dtype::code(metadata.dtype));
    let codes: SmallVec<[Option<i32>; 4]> = codes.collect();
    let resolved = resolve(spec, &node_attrs(call.attrs)?, &codes)?;
    shapes::infer(spec, &resolved, call.inputs)
}

impl Shared {
    /// Returns the operation, in TensorFlow's words, that is called by a name.
    fn op<'a>(&'a self, called: &'a str) -> Option<&'a str> {
        let name = self.renamed.get(called).map_or(called, String::as_str);
        name.strip_prefix(PREFIX)
    }

    fn run(&self, spec: &OpSpec, call: &mut Call<'_>) -> Result<Outputs, Error> {
        let attrs = node_attrs(call.attrs())?;
        let mut codes: SmallVec<[Option<i32>; 4]> = SmallVec::new();
        for index in 0..call.n_inputs() {
            codes.push(dtype::code(call.tensor(index)?.metadata().dtype));
        }
        let mut resolved = resolve(spec, &attrs, &codes)?;
        if !resolved.references.is_empty() {
            // What they refer to is known now.
            for (index, _) in &resolved.references {
                let slot = Slot::of(call.tensor(*index)?)?;
                let referred = slot.get::<Variable>()?.metadata();
                let code = referred.and_then(|metadata| dtype::code(metadata.dtype));
                codes[*index] = code.map(|code| code + dtype::REFERENCE);
            }
            resolved = resolve(spec, &attrs, &codes)?;
        }
        let kernel = registry::select(&spec.name, &resolved.node.attrs, &self.libraries)?;
        let instance = self.instance(&kernel, &resolved)?;
        let mut inputs: SmallVec<[Input; 4]> = SmallVec::new();
        for index in 0..call.n_inputs() {
            // What was given for good may become an output's memory.
            let lent = call.tensor(index)?.clone();
            let sole = match lent {
                Tensor::Dense(_) => {
                    drop(lent);
                    call.take_sole(index)
                }
                _ => None,
            };
            inputs.push(match sole {
                Some(tensor) => Input::given(tensor),
                None => Input::lent(call.tensor(index)?.clone()),
            });
        }
        let n_outputs = resolved.outputs.len();
        let mut context = Context::new(instance, resolved, inputs, call.execution());
        // A kernel starts when its variables are locked.
        let has_variables = !context.locks.slots().is_empty();
        let is_free = context.locks.try_all()?;
        if is_free && !kernel.is_async {
            let results = run::compute(context)?;
            return Ok(results.into_iter().map(Output::Ready).collect());
        }
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
        let is_async = kernel.is_async;
        context.locks.all()?.when_settled(move |locks| {
            if let Some(reason) = execution.request().cancellation() {
                return run::settle(Err(reason.clone()), promises, effects);
            }
            context.locks.hold(Held::Awaited(locks));
            match is_async {
                true => run::start(context, promises, effects),
                false => run::settle(run::compute(context), promises, effects),
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

/// Returns the attributes of a call as the C API has them.
fn node_attrs(attrs: OpAttrsRef<'_>) -> Result<NodeAttrs, Error> {
    let mut all = NodeAttrs::new();
    for (name, value) in attrs.iter() {
        let converted = attr(value).ok_or_else(|| {
            let name = name.escape_debug();
            Error::invalid_argument(format!("attribute '{name}': plugins take no {value}"))
        })?;
        all.insert(name.to_owned(), converted);
    }
    Ok(all)
}

fn attr(value: &AttrValue) -> Option<Attr> {
    Some(match value {
        AttrValue::Scalar(numbers) => match numbers_of(numbers)? {
            Attr::List(_, list) => list.into_iter().next()?,
            one => one,
        },
        AttrValue::List(numbers) => numbers_of(numbers)?,
        AttrValue::DType(dtype) => Attr::Type(dtype::code(*dtype)?),
        AttrValue::Text(text) => Attr::Bytes(text.as_str().as_bytes().to_vec()),
        AttrValue::Function(name) => Attr::Function(name.as_str().to_owned()),
        AttrValue::Shape(shape) => Attr::Shape(match shape.extents() {
            None => None,
            Some(extents) => {
                let extent = |extent: Option<u64>| match extent {
                    Some(extent) => i64::try_from(extent).ok(),
                    None => Some(-1),
                };
                Some(extents.map(extent).collect::<Option<_>>()?)
            }
        }),
        AttrValue::Dense(tensor) => {
            let tensor = Tensor::Dense(tensor.clone());
            Attr::Tensor(crate::value::Tensor::of_host(&tensor, &allocator()).ok()?)
        }
        AttrValue::Aggregate(list) => {
            let list: Vec<Attr> = list.iter().map(attr).collect::<Option<_>>()?;
            let kind = list.first().map_or(Kind::Int, Attr::kind);
            Attr::List(kind, list)
        }
    })
}

fn numbers_of(numbers: &Numbers) -> Option<Attr> {
    let list = |kind, list: Vec<Attr>| Some(Attr::List(kind, list));
    if let Some(truths) = numbers.as_slice::<Bool>() {
        let truths = truths.iter().map(|truth| Attr::Bool((*truth).into()));
        return list(Kind::Bool, truths.collect());
    }
    if let Some(integers) = numbers.integers() {
        return list(Kind::Int, integers.into_iter().map(Attr::Int).collect());
    }
    if let Some(floats) = numbers.as_slice::<f64>() {
        let floats = floats.iter().map(|float| Attr::Float(*float as f32));
        return list(Kind::Float, floats.collect());
    }
    let floats = numbers.as_slice::<f32>()?.iter();
    list(
        Kind::Float,
        floats.map(|float| Attr::Float(*float)).collect(),
    )
}
