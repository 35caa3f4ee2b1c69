//! Functions of `next_pluggable_device/c_api.h` for objects of plugins among the resources, and for variables that are
//! found, locked and changed one by one.

use std::ffi::c_int;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::thread::{self, ThreadId};

use tfrt_host::Error;
use tfrt_tensor::resource::{Resource, Resources, Slot, Variable};

use super::status::Status;
use super::variable::{Ctx, Refusal, Result, enter, finish, missing, of, prepare, resource};
use crate::guard::Callback;
use crate::handle::Handle;
use crate::raw::{Array, Memory, Out, Text};
use crate::value::Tensor;
use crate::{dtype, fault, locks};

/// A device as plugins see it, `TF_Device`: the processor.
pub struct Device;

/// Returns the processor, which is the same for all calls.
pub(crate) fn device(ctx: Ctx) -> Handle<Device> {
    static PROCESSOR: OnceLock<Handle<Device>> = OnceLock::new();
    match ctx.with("ctx", |_| ()) {
        Some(()) => *PROCESSOR.get_or_init(|| Handle::new(Device)),
        None => Handle::NULL,
    }
}

/// An object of a plugin among the resources, which the plugin's function deletes.
struct PluginResource {
    state: Mutex<State>,
    has_changed: Condvar,
}

enum State {
    /// There is none yet, or no longer.
    Nothing,
    /// A thread makes it.
    Making(ThreadId),
    /// The object, and the function that deletes it.
    Made(Memory, Callback),
}

impl PluginResource {
    fn new() -> PluginResource {
        PluginResource {
            state: Mutex::new(State::Nothing),
            has_changed: Condvar::new(),
        }
    }

    /// Puts the object here, or says why there was none.
    fn set(&self, state: State) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
        self.has_changed.notify_all();
    }

    /// Returns the object. If there is none, the caller is to make it, and to [set](Self::set) it.
    fn get_or_begin(&self) -> std::result::Result<Option<Memory>, Error> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match &*state {
                State::Made(memory, _) => return Ok(Some(*memory)),
                State::Nothing => {
                    *state = State::Making(thread::current().id());
                    return Ok(None);
                }
                State::Making(by) if *by == thread::current().id() => {
                    return Err(Error::failed_precondition(
                        "the function that makes the resource asks for it",
                    ));
                }
                State::Making(_) => {
                    let woken = self.has_changed.wait(state);
                    state = woken.unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }
}

fn delete_object(memory: Memory, delete: Callback) {
    if let Err(exception) = delete.call(&[memory.address()]) {
        fault::record(format_args!(
            "the function that deletes a plugin's resource {exception}"
        ));
    }
}

impl Resource for PluginResource {
    fn type_name(&self) -> &str {
        "PluginResource"
    }

    fn destroy(&self) -> bool {
        let before = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            match &*state {
                State::Made(..) => std::mem::replace(&mut *state, State::Nothing),
                _ => return false,
            }
        };
        if let State::Made(memory, delete) = before {
            delete_object(memory, delete);
        }
        true
    }
}

impl Drop for PluginResource {
    fn drop(&mut self) {
        self.destroy();
    }
}

impl fmt::Debug for PluginResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PluginResource")
    }
}

/// Returns the place of a plugin's object.
fn place(ctx: Ctx, container: &Text, name: &Text) -> Result<(Arc<Slot>, String)> {
    let wrong = || Refusal::Wrong(Error::invalid_argument("the resource's name is wrong"));
    let container = container.text("container_name").ok_or_else(wrong)?;
    let name = name.text("plugin_resource_name").ok_or_else(wrong)?;
    let resources = enter(ctx, |own| Ok(Resources::of(own.request().host())))?;
    let slot = resources.slot(&container, &name, PluginResource::new);
    let text = format!("{}/{name}", slot.container());
    Ok((slot, text))
}

pub(crate) fn create(
    ctx: Ctx,
    container: Text,
    name: Text,
    object: Memory,
    delete: Callback,
    status: Handle<Status>,
) {
    let outcome = created(ctx, (&container, &name), object, delete);
    if outcome.is_err() {
        // It was handed over, whatever comes of it.
        delete_object(object, delete);
    }
    finish(ctx, status, outcome);
}

fn created(
    ctx: Ctx,
    (container, name): (&Text, &Text),
    object: Memory,
    delete: Callback,
) -> Result<()> {
    let (slot, text) = place(ctx, container, name)?;
    let own = of("plugin_resource_name", slot.get::<PluginResource>())?;
    if of("plugin_resource_name", own.get_or_begin())?.is_some() {
        let message = format!("Resource {text}/PluginResource already exists.");
        return Err(Refusal::Failed(
            "plugin_resource_name",
            Error::already_exists(message),
        ));
    }
    own.set(State::Made(object, delete));
    Ok(())
}

#[expect(clippy::too_many_arguments, reason = "the arguments of the C function")]
pub(crate) fn lookup_or_create(
    ctx: Ctx,
    container: Text,
    name: Text,
    found: Out<Memory>,
    make: Callback,
    argument: Memory,
    delete: Callback,
    status: Handle<Status>,
) {
    let outcome = looked_up(ctx, (&container, &name), (make, argument), delete);
    let (object, outcome) = match outcome {
        Ok(object) => (object, Ok(())),
        Err(refusal) => (Memory::default(), Err(refusal)),
    };
    found.set(object, "result_plugin_resource");
    finish(ctx, status, outcome);
}

fn looked_up(
    ctx: Ctx,
    (container, name): (&Text, &Text),
    (make, argument): (Callback, Memory),
    delete: Callback,
) -> Result<Memory> {
    if make.is_null() {
        let reason = "expected a function, found a null pointer";
        return Err(Refusal::wrong("create_func", reason));
    }
    let (slot, _) = place(ctx, container, name)?;
    let own = of("plugin_resource_name", slot.get::<PluginResource>())?;
    if let Some(found) = of("plugin_resource_name", own.get_or_begin())? {
        return Ok(found);
    }
    match make.call(&[argument.address()]) {
        Ok(address) => {
            let memory = Memory::of_plugin(address);
            own.set(State::Made(memory, delete));
            Ok(memory)
        }
        Err(exception) => {
            own.set(State::Nothing);
            let error = Error::internal(format!("the function 'create_func' {exception}"));
            Err(Refusal::Failed("create_func", error))
        }
    }
}

/// A variable among the inputs of a call: `TF_VariableInfo`.
pub struct VariableInfo {
    ctx: Ctx,
    slot: Arc<Slot>,
}

pub(crate) fn variable_info(
    ctx: Ctx,
    index: c_int,
    status: Handle<Status>,
) -> Handle<VariableInfo> {
    let found = enter(ctx, |own| {
        let slot = resource(own, index, "index")?.map_err(|found| {
            let found = dtype::name(found);
            let error = Error::invalid_argument(format!(
                "Trying to obtain resource handle from Input[{index}], which is not type DT_RESOURCE."
            ));
            Refusal::Failed("index", error.with_note(format!("it is of {found}")))
        })?;
        let variable = of("index", slot.get::<Variable>())?;
        match variable.is_initialized() {
            true => Ok(slot),
            false => Err(Refusal::Failed("index", missing(&slot))),
        }
    });
    finish(
        ctx,
        status,
        found.map(|slot| Handle::new(VariableInfo { ctx, slot })),
    )
}

/// Uses what a variable was found by.
fn info(of_it: Handle<VariableInfo>, argument: &'static str) -> Result<(Ctx, Arc<Slot>)> {
    let found = of_it.with_quietly(|own| (own.ctx, own.slot.clone()));
    found.map_err(|reason| Refusal::wrong(argument, &reason))
}

pub(crate) fn lock(vars: Array<Handle<VariableInfo>>, n: c_int, status: Handle<Status>) {
    let (ctx, outcome) = locked(&vars, n);
    finish(ctx, status, outcome);
}

fn locked(vars: &Array<Handle<VariableInfo>>, n: c_int) -> (Ctx, Result<()>) {
    let Some(vars) = vars.read(i64::from(n), "vars") else {
        let error = Error::invalid_argument("the variables are wrong");
        return (Handle::NULL, Err(Refusal::Wrong(error)));
    };
    let mut of_calls: Vec<(Ctx, Vec<u64>)> = Vec::new();
    for one in vars {
        let (ctx, slot) = match info(one, "vars") {
            Ok(found) => found,
            Err(refusal) => return (Handle::NULL, Err(refusal)),
        };
        match of_calls
            .iter_mut()
            .find(|(own, _)| own.bits() == ctx.bits())
        {
            Some((_, numbers)) => numbers.push(slot.number()),
            None => of_calls.push((ctx, vec![slot.number()])),
        }
    }
    let first = of_calls.first().map_or(Handle::NULL, |(ctx, _)| *ctx);
    for (ctx, numbers) in of_calls {
        if let Err(refusal) = of("vars", locks::alone(ctx, &numbers)) {
            return (ctx, Err(refusal));
        }
    }
    (first, Ok(()))
}

pub(crate) fn allocate(ctx: Ctx, of_it: Handle<VariableInfo>, status: Handle<Status>) {
    finish(ctx, status, allocated(ctx, of_it));
}

fn allocated(ctx: Ctx, of_it: Handle<VariableInfo>) -> Result<()> {
    let (_, slot) = info(of_it, "var_info")?;
    of("var_info", locks::alone(ctx, &[slot.number()]))?;
    let variable = of("var_info", slot.get::<Variable>())?;
    let metadata = of(
        "var_info",
        variable.metadata().ok_or_else(|| missing(&slot)),
    )?;
    enter(ctx, |own| {
        let made = tfrt_tensor::DenseHostTensor::zeroed(own.allocator(), metadata);
        own.forget(slot.number());
        variable.replace(of("var_info", made)?.into());
        Ok(())
    })
}

pub(crate) fn tensor(of_it: Handle<VariableInfo>, status: Handle<Status>) -> Handle<Tensor> {
    let (ctx, found) = match info(of_it, "var_info") {
        Ok((ctx, slot)) => (ctx, prepare(ctx, &slot, false, Callback::NONE, "var_info")),
        Err(refusal) => (Handle::NULL, Err(refusal)),
    };
    finish(ctx, status, found.map(Handle::new))
}

pub(crate) fn delete(of_it: Handle<VariableInfo>) {
    if !of_it.is_null() {
        of_it.take("var_info");
    }
}
