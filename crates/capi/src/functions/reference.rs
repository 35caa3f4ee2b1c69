//! Functions of `kernels_experimental.h` for references to variables, as graphs of TensorFlow 1 have them, and for
//! variables of a step.
//!
//! An input `Ref(T)` is given a handle of a variable, as an input `resource` is; an output `Ref(T)` is such a handle.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::{Arc, Mutex, PoisonError};

use tfrt_host::{Error, ErrorCode};
use tfrt_tensor::resource::{Slot, Variable};

use super::context::at;
use super::status::Status;
use super::tensor;
use super::variable::{
    Ctx, Refusal, Result, copied, enter, expect_type, extents, finish, of, resource, value,
};
use crate::guard::Callback;
use crate::handle::{Handle, Kind};
use crate::raw::{Array, Out, StringView};
use crate::run::Context;
use crate::value::Tensor;
use crate::{dtype, locks};

/// Returns the variable that an input, which is a reference, leads to.
fn reference(own: &mut Context, index: c_int, argument: &'static str) -> Result<Arc<Slot>> {
    let found = resource(own, index, argument)?;
    let found = match found {
        Ok(slot) if own.is_reference(at(index)) => {
            of(argument, slot.get::<Variable>().map(drop))?;
            return Ok(slot);
        }
        Ok(_) => dtype::name(dtype::RESOURCE),
        Err(code) => dtype::name(code),
    };
    let reason = format!("expected a reference, found input {index}, which is a {found}");
    Err(Refusal::wrong(argument, &reason))
}

/// Makes an input that is a reference an output. For a resource this does nothing.
pub(crate) fn forward(ctx: Ctx, input: i32, output: i32) {
    let forwarded = enter(ctx, |own| {
        if let Ok(slot) = resource(own, input, "input_ref_index")? {
            match own.is_reference(at(input)) {
                true => of("output_ref_index", own.set_reference(at(output), &slot)),
                false => Ok(()),
            }
        } else {
            reference(own, input, "input_ref_index").map(drop)
        }
    });
    // There is no status: it fails the call.
    finish(ctx, Handle::NULL, forwarded);
}

#[expect(clippy::too_many_arguments, reason = "the arguments of the C function")]
pub(crate) fn assign(
    ctx: Ctx,
    input: c_int,
    output: c_int,
    value_index: c_int,
    _use_locking: u8,
    validate_shape: u8,
    copy: Callback,
    status: Handle<Status>,
) {
    let places = (input, output, value_index);
    let outcome = assigned(ctx, places, validate_shape != 0, copy);
    finish(ctx, status, outcome);
}

fn assigned(
    ctx: Ctx,
    (input, output, value_index): (c_int, c_int, c_int),
    validates: bool,
    copy: Callback,
) -> Result<()> {
    let slot = enter(ctx, |own| {
        let slot = reference(own, input, "input_ref_index")?;
        of("output_ref_index", own.set_reference(at(output), &slot))?;
        Ok(slot)
    })?;
    of("input_ref_index", locks::alone(ctx, &[slot.number()]))?;
    let value = enter(ctx, |own| value(own, value_index, "value_index"))?;
    of("value_index", expect_type(&slot, &value))?;
    let variable = of("input_ref_index", slot.get::<Variable>())?;
    if let Some(before) = variable.metadata()
        && validates
        && before.shape != value.metadata().shape
    {
        let (own, found) = (extents(&before), extents(value.metadata()));
        let message = format!(
            "Assign requires shapes of both tensors to match. lhs shape= {own} rhs shape= {found}"
        );
        let error = Error::invalid_argument(message);
        return Err(Refusal::Failed("value_index", error));
    }
    let copy = copied(ctx, copy, &value, "value_index")?;
    variable.replace(copy);
    enter(ctx, |own| {
        own.forget(slot.number());
        Ok(())
    })
}

/// The variables of a step, by their names.
#[derive(Default)]
struct Temporaries(Mutex<BTreeMap<Vec<u8>, Arc<Slot>>>);

fn temporaries(ctx: Ctx) -> Result<Arc<Temporaries>> {
    enter(ctx, |own| {
        Ok(own.request().data_or_insert(Temporaries::default))
    })
}

fn name_of(name: Out<StringView>) -> Result<Vec<u8>> {
    let argument = "var_name";
    let view = name.get(argument);
    let bytes = view.and_then(|view| view.bytes(argument).map(<[u8]>::to_vec));
    bytes.ok_or_else(|| Refusal::Wrong(Error::invalid_argument("the variable's name is wrong")))
}

pub(crate) fn temporary(
    ctx: Ctx,
    code: c_int,
    dims: Array<i64>,
    n: c_int,
    name: Out<StringView>,
    allocator: Callback,
    status: Handle<Status>,
) {
    let outcome = made_temporary(ctx, code, (&dims, n), name, allocator);
    finish(ctx, status, outcome);
}

/// Deletes an object that a plugin was lent, and returns it as the plugin has left it; or says why there is none.
fn deleted<K: Kind + Clone>(handle: Handle<K>) -> std::result::Result<K, String> {
    let own = handle.with_quietly(|own| own.clone())?;
    handle.delete("handle");
    Ok(own)
}

fn made_temporary(
    ctx: Ctx,
    code: c_int,
    (dims, n): (&Array<i64>, c_int),
    name: Out<StringView>,
    allocator: Callback,
) -> Result<()> {
    let name = name_of(name)?;
    let Some(shape) = tensor::shape(dims, n, "dims") else {
        let error = Error::invalid_argument("the extents are wrong");
        return Err(Refusal::Wrong(error));
    };
    let all = temporaries(ctx)?;
    let is_there = |all: &BTreeMap<Vec<u8>, Arc<Slot>>| match all.contains_key(&name) {
        true => {
            let name = String::from_utf8_lossy(&name);
            Err(Refusal::Failed(
                "var_name",
                Error::already_exists(format!("TemporaryVariable {name} already exists")),
            ))
        }
        false => Ok(()),
    };
    is_there(&all.0.lock().unwrap_or_else(PoisonError::into_inner))?;
    let memory = enter(ctx, |own| Ok(own.allocator().clone()))?;
    let made = Tensor::zeroed(&memory, code, shape);
    // The plugin may put memory of its own in its place.
    let (handle, told) = (
        Handle::new(of("dtype", made)?),
        Handle::new(Status::default()),
    );
    let arguments = [
        ctx.bits(),
        handle.bits(),
        code as usize,
        dims.address(),
        n as usize,
        told.bits(),
    ];
    let called = allocator.call(&arguments);
    let (made, told) = (deleted(handle), deleted(told));
    if let Err(exception) = called {
        let error = Error::internal(format!("the function 'plugin_allocator' {exception}"));
        return Err(Refusal::Failed("plugin_allocator", error));
    }
    if let Some(error) = told.ok().and_then(|told| told.error()) {
        return Err(Refusal::Failed("plugin_allocator", error));
    }
    let made = made.map_err(|reason| Refusal::wrong("plugin_allocator", &reason))?;
    if made.code != code {
        let [expected, found] = [code, made.code].map(dtype::name);
        let reason = format!("expected it to leave a tensor of {expected}, found one of {found}");
        return Err(Refusal::wrong("plugin_allocator", &reason));
    }
    let value = of("plugin_allocator", made.into_host(&memory))?;
    let variable = Variable::new();
    variable.replace(value);
    let slot = Slot::anonymous(variable);
    {
        let mut all = all.0.lock().unwrap_or_else(PoisonError::into_inner);
        is_there(&all)?;
        all.insert(name, slot.clone());
    }
    enter(ctx, |own| of("ctx", own.set_reference(0, &slot)))
}

pub(crate) fn destroy_temporary(
    ctx: Ctx,
    index: c_int,
    name: Out<StringView>,
    status: Handle<Status>,
) {
    finish(ctx, status, destroyed(ctx, index, name));
}

fn destroyed(ctx: Ctx, index: c_int, name: Out<StringView>) -> Result<()> {
    let slot = enter(ctx, |own| reference(own, index, "index"))?;
    let name = name_of(name)?;
    let all = temporaries(ctx)?;
    {
        let mut all = all.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.remove(&name).is_none() {
            let name = String::from_utf8_lossy(&name);
            let error = Error::new(
                ErrorCode::NotFound,
                format!("TemporaryVariable {name} does not exist"),
            );
            return Err(Refusal::Failed("var_name", error));
        }
    }
    enter(ctx, |own| {
        let value = of("index", slot.get::<Variable>())?.look();
        own.forget(slot.number());
        let missing = || Error::failed_precondition("the variable holds no value");
        let value = of("index", value.ok_or_else(missing))?;
        let value = of("index", Tensor::of_host(&value, own.allocator()))?;
        of("index", own.set_output(0, value).map(drop))
    })
}
