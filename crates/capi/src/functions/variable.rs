//! Functions of `kernels_experimental.h` for variables: locks, assignments, changes in place.
//!
//! The variables among a kernel's inputs are locked before it starts, and until it has run (`locks.rs`): what
//! `TF_MaybeLockVariableInputMutexesInOrder` asks for is there already. A variable's memory that is changed in place is
//! made ready once in a call: who asks again gets the same. A failure is told to the status and fails the call as well,
//! with the function and the argument.

use std::ffi::c_int;
use std::sync::Arc;

use tfrt_host::{Error, LockMode};
use tfrt_tensor::TensorMetadata;
use tfrt_tensor::resource::{Slot, Variable};

use super::context::{at, give};
use super::status::{Status, set, succeed};
use crate::guard::Callback;
use crate::handle::Handle;
use crate::raw::{Array, Out};
use crate::run::Context;
use crate::value::Tensor;
use crate::{dtype, fault, locks};

mod prepared;

pub use prepared::Prepared;
pub(super) use prepared::{copied, prepare};

/// The locks that a kernel has asked for: `TF_VariableInputLockHolder`. The call itself holds them.
pub struct LockHolder {
    ctx: Ctx,
}

pub(super) type Ctx = Handle<Context>;

/// The reason why a function did nothing.
pub(super) enum Refusal {
    /// A wrong use, which was recorded.
    Wrong(Error),
    /// A failure that is told in TensorFlow's words, and the argument that it is about.
    Failed(&'static str, Error),
}

pub(super) type Result<T> = std::result::Result<T, Refusal>;

impl Refusal {
    /// Records a wrong use of an argument.
    pub(super) fn wrong(argument: &str, reason: &str) -> Refusal {
        fault::argument(argument, reason);
        let function = fault::function();
        Refusal::Wrong(Error::invalid_argument(format!(
            "{function}: argument '{argument}': {reason}"
        )))
    }
}

/// Says which argument a failure is about.
pub(super) fn of<T>(argument: &'static str, outcome: std::result::Result<T, Error>) -> Result<T> {
    outcome.map_err(|error| Refusal::Failed(argument, error))
}

/// Uses the context.
pub(super) fn enter<R>(ctx: Ctx, use_it: impl FnOnce(&mut Context) -> Result<R>) -> Result<R> {
    match ctx.with_quietly(use_it) {
        Ok(outcome) => outcome,
        Err(reason) => Err(Refusal::wrong("ctx", &reason)),
    }
}

/// Tells the outcome to the status; an error fails the call as well. Success is one of the call, too: if it has failed
/// before, that is told.
pub(super) fn finish<T: Default>(ctx: Ctx, status: Handle<Status>, outcome: Result<T>) -> T {
    match outcome {
        Ok(value) => {
            set(status, &Ok(()));
            value
        }
        Err(Refusal::Wrong(error)) => {
            set(status, &Err(error));
            T::default()
        }
        Err(Refusal::Failed(argument, error)) => {
            let told = Status::told(&error, Some(argument));
            let _gone = ctx.with_quietly(|own| {
                match &own.failure {
                    // A function of the plugin that was called here may have told it.
                    Some(own) if own.message() != told.message() || own.place().is_some() => (),
                    _ => own.failure = Some(told),
                }
            });
            set(status, &Err(error));
            T::default()
        }
    }
}

/// Returns the resource that an input leads to; the type of its elements if it is of another one.
pub(super) fn resource(
    own: &mut Context,
    index: c_int,
    argument: &'static str,
) -> Result<std::result::Result<Arc<Slot>, i32>> {
    let n = own.n_inputs();
    if at(index) >= n {
        let reason = format!("expected one of {n} inputs, found {index}");
        return Err(Refusal::wrong(argument, &reason));
    }
    let tensor = of(argument, own.keep(at(index)))?;
    match dtype::code(tensor.metadata().dtype) {
        Some(dtype::RESOURCE) => Ok(Ok(of(argument, Slot::counted(tensor))?)),
        found => Ok(Err(found.unwrap_or_default())),
    }
}

/// Returns the variable that an input leads to.
pub(super) fn variable(
    own: &mut Context,
    index: c_int,
    argument: &'static str,
) -> Result<Arc<Slot>> {
    let slot = resource(own, index, argument)?.map_err(|found| {
        let found = dtype::name(found);
        let reason = format!("expected a resource, found input {index}, a tensor of {found}");
        Refusal::wrong(argument, &reason)
    })?;
    of(argument, slot.get::<Variable>().map(drop))?;
    Ok(slot)
}

/// Returns an input that is no variable.
pub(super) fn value(
    own: &mut Context,
    index: c_int,
    argument: &'static str,
) -> Result<tfrt_tensor::Tensor> {
    let n = own.n_inputs();
    if at(index) >= n {
        let reason = format!("expected one of {n} inputs, found {index}");
        return Err(Refusal::wrong(argument, &reason));
    }
    of(argument, own.keep(at(index)).cloned())
}

/// Returns the error for a variable without a value, in TensorFlow's words.
#[cold]
pub(super) fn missing(slot: &Slot) -> Error {
    let container = match slot.container() {
        "" => "localhost",
        container => container,
    };
    let name = slot.label();
    Error::not_found(format!(
        "Resource {container}/{name}/N10tensorflow3VarE does not exist."
    ))
}

#[expect(clippy::too_many_arguments, reason = "the arguments of the C function")]
pub(crate) fn maybe_lock(
    ctx: Ctx,
    do_lock: u8,
    sparse: u8,
    inputs: Array<c_int>,
    len: usize,
    copy: Callback,
    holder: Out<Handle<LockHolder>>,
    status: Handle<Status>,
) {
    let is_locked = sparse == 0
        && !holder.is_null()
        && len <= MAX_AT_ONCE
        && inputs.address() != 0
        && inputs.first(len as i64, "inputs").is_some_and(|inputs| {
            let locked = ctx.with_quietly(|own| are_locked(own, inputs));
            locked.unwrap_or(false)
        });
    if is_locked {
        holder.set_if(Handle::new(LockHolder { ctx }));
        return succeed(status);
    }
    let outcome = lock(ctx, (do_lock, sparse), (&inputs, len), copy);
    // Whatever comes of it, as in TensorFlow: the plugin deletes the holder.
    let is_counted = ctx
        .with_quietly(|own| own.variables().locks.n_holders += 1)
        .is_ok();
    let given = Handle::new(LockHolder { ctx });
    if !holder.set(given, "lockHolder") {
        let _own = given.take_quietly();
        if is_counted {
            let _gone = ctx.with_quietly(|own| own.variables().locks.n_holders -= 1);
        }
    }
    finish(ctx, status, outcome);
}

/// The most inputs that are looked at at once.
const MAX_AT_ONCE: usize = 64;

/// Notes a holder of some variables, if the call has them for itself, and all of them have a value: there is nothing else
/// to be done. Otherwise changes nothing.
fn are_locked(own: &mut Context, inputs: &[c_int]) -> bool {
    if !own.has_variables() || own.variables().locks.mode() != LockMode::Write {
        return false;
    }
    let is_ready = |index: &c_int| {
        let slot = own.keep(at(*index)).and_then(Slot::of);
        let variable = slot.and_then(Slot::get::<Variable>);
        variable.is_ok_and(Variable::is_initialized)
    };
    let are_ready = inputs.iter().all(is_ready);
    if are_ready {
        own.variables().locks.n_holders += 1;
    }
    are_ready
}

fn lock(
    ctx: Ctx,
    (do_lock, sparse): (u8, u8),
    (inputs, len): (&Array<c_int>, usize),
    copy: Callback,
) -> Result<()> {
    let inputs = inputs.read(i64::try_from(len).unwrap_or(-1), "inputs");
    let Some(inputs) = inputs else {
        return Err(Refusal::Wrong(Error::invalid_argument(
            "the inputs are wrong",
        )));
    };
    let slots = enter(ctx, |own| lockable(own, &inputs))?;
    if do_lock != 0 {
        let numbers: Vec<u64> = slots.iter().map(|slot| slot.number()).collect();
        of("do_lock", locks::alone(ctx, &numbers))?;
    }
    if sparse != 0 {
        for slot in &slots {
            prepare(ctx, slot, true, copy, "inputs")?;
        }
    }
    Ok(())
}

/// Returns the variables among some inputs, all of which have a value. Inputs of numbers are passed over.
fn lockable(own: &mut Context, inputs: &[c_int]) -> Result<Vec<Arc<Slot>>> {
    let mut slots = Vec::new();
    for index in inputs {
        let Ok(slot) = resource(own, *index, "inputs")? else {
            continue;
        };
        let why = match slot.get::<Variable>() {
            Ok(variable) if variable.is_initialized() => {
                slots.push(slot);
                continue;
            }
            Ok(_) => missing(&slot),
            Err(error) => error,
        };
        let error = Error::internal("Invalid variable reference.").with_note(why.message());
        return Err(Refusal::Failed("inputs", error));
    }
    Ok(slots)
}

pub(crate) fn release(holder: Handle<LockHolder>) {
    if holder.is_null() {
        return;
    }
    if let Some(LockHolder { ctx }) = holder.take("lockHolder") {
        let _gone = ctx.with_quietly(|own| {
            let locks = &mut own.variables().locks;
            locks.n_holders = locks.n_holders.saturating_sub(1);
        });
    }
}

#[expect(clippy::too_many_arguments, reason = "the arguments of the C function")]
pub(crate) fn get(
    ctx: Ctx,
    index: c_int,
    _lock_held: u8,
    _is_variant: u8,
    sparse: u8,
    copy: Callback,
    place: Out<Handle<Tensor>>,
    status: Handle<Status>,
) {
    let slot = enter(ctx, |own| variable(own, index, "input"));
    let found = slot.and_then(|slot| prepare(ctx, &slot, sparse != 0, copy, "input"));
    let outcome = found.and_then(|found| of("out", give(place, found, "out")));
    finish(ctx, status, outcome);
}

/// Writes extents as TensorFlow does: `[2,3]`.
pub(super) fn extents(metadata: &TensorMetadata) -> String {
    let extents = metadata.shape.extents();
    let extents: Vec<String> = extents.map(|extent| extent.to_string()).collect();
    format!("[{}]", extents.join(","))
}

fn type_name(metadata: &TensorMetadata) -> String {
    dtype::code(metadata.dtype).map_or_else(|| metadata.dtype.to_string(), dtype::name)
}

/// Checks that a variable stays of its type.
pub(super) fn expect_type(
    slot: &Slot,
    value: &tfrt_tensor::Tensor,
) -> std::result::Result<(), Error> {
    let before = slot.get::<Variable>()?.metadata();
    match before {
        Some(before) if before.dtype != value.metadata().dtype => {
            let (expected, found) = (type_name(&before), type_name(value.metadata()));
            Err(Error::invalid_argument(format!(
                "Trying to assign variable with wrong dtype. Expected {expected} got {found}"
            )))
        }
        _ => Ok(()),
    }
}

pub(crate) fn assign(
    ctx: Ctx,
    index: c_int,
    value_index: c_int,
    validate_shape: u8,
    copy: Callback,
    status: Handle<Status>,
) {
    let outcome = assigned(ctx, (index, value_index), validate_shape != 0, copy);
    finish(ctx, status, outcome);
}

fn assigned(
    ctx: Ctx,
    (index, value_index): (c_int, c_int),
    validates: bool,
    copy: Callback,
) -> Result<()> {
    let slot = enter(ctx, |own| variable(own, index, "input_index"))?;
    of("input_index", locks::alone(ctx, &[slot.number()]))?;
    let value = enter(ctx, |own| value(own, value_index, "value_index"))?;
    of("value_index", expect_type(&slot, &value))?;
    let variable = of("input_index", slot.get::<Variable>())?;
    if let Some(before) = variable.metadata()
        && validates
        && before.shape != value.metadata().shape
    {
        let (expected, found) = (extents(&before), extents(value.metadata()));
        let message = format!(
            "Trying to assign to variable with tensor with wrong shape. Expected {expected} got {found}"
        );
        return Err(Refusal::Failed(
            "value_index",
            Error::invalid_argument(message),
        ));
    }
    let value = match variable.copies_on_read() && !copy.is_null() {
        true => Some(copied(ctx, copy, &value, "value_index")?),
        false => {
            let assign =
                |own: &mut Context| of("value_index", variable.assign(value, own.allocator()));
            enter(ctx, assign)?;
            None
        }
    };
    if let Some(value) = value {
        variable.replace(value);
    }
    enter(ctx, |own| {
        own.forget(slot.number());
        Ok(())
    })
}

#[expect(clippy::too_many_arguments, reason = "the arguments of the C function")]
pub(crate) fn assign_update(
    ctx: Ctx,
    index: c_int,
    value_index: c_int,
    op: c_int,
    _is_variant: c_int,
    copy: Callback,
    update: Callback,
    status: Handle<Status>,
) {
    let outcome = updated(ctx, (index, value_index), op, (copy, update));
    finish(ctx, status, outcome);
}

fn updated(
    ctx: Ctx,
    (index, value_index): (c_int, c_int),
    op: c_int,
    (copy, update): (Callback, Callback),
) -> Result<()> {
    if update.is_null() {
        let reason = "expected a function, found a null pointer";
        return Err(Refusal::wrong("updateFunc", reason));
    }
    let slot = enter(ctx, |own| variable(own, index, "input_index"))?;
    of("input_index", locks::alone(ctx, &[slot.number()]))?;
    let value = enter(ctx, |own| {
        let before = of("input_index", slot.get::<Variable>())?.metadata();
        let before = of("input_index", before.ok_or_else(|| missing(&slot)))?;
        let new = value(own, value_index, "value_index")?.metadata().clone();
        let fails = |message: String| {
            Err(Refusal::Failed(
                "value_index",
                Error::invalid_argument(message),
            ))
        };
        if before.dtype != new.dtype {
            return fails("DType of variable handle and value does not match.".to_owned());
        }
        if before.shape != new.shape {
            let (own, found) = (extents(&before), extents(&new));
            return fails(format!(
                "Cannot update variable with shape {own} using a Tensor with shape {found}, shapes must be equal."
            ));
        }
        of("value_index", own.input(at(value_index)))
    })?;
    let target = prepare(ctx, &slot, false, copy, "input_index")?;
    // The function deletes both.
    let (target, value) = (Handle::new(target), Handle::new(value));
    let arguments = [ctx.bits(), target.bits(), value.bits(), op as usize];
    called(ctx, update, &arguments, "updateFunc")
}

/// Calls a function of the plugin with at most six arguments; its exception, or the failure of the call that it tells, is the outcome.
pub(super) fn called(
    ctx: Ctx,
    function: Callback,
    arguments: &[usize],
    argument: &'static str,
) -> Result<()> {
    let failure = || {
        let told = ctx.with_quietly(|own| own.failure.as_ref().and_then(Status::error));
        told.ok().flatten()
    };
    let had_failed = failure().is_some();
    let mut all = [0; 6];
    all[..arguments.len()].copy_from_slice(arguments);
    if let Err(exception) = function.call(&all) {
        let error = Error::internal(format!("the function '{argument}' {exception}"));
        return Err(Refusal::Failed(argument, error));
    }
    match failure() {
        Some(error) if !had_failed => Err(Refusal::Failed(argument, error)),
        _ => Ok(()),
    }
}
