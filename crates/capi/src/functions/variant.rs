//! Functions of `kernels_experimental.h` for variants: sums and zeros of lists of tensors, whose tensors a function of the
//! plugin adds or fills.

use tfrt_host::{DType, Error};
use tfrt_tensor::resource::TensorList;
use tfrt_tensor::resource::list::merged;

use super::context::at;
use super::status::Status;
use super::variable::{Ctx, Refusal, Result, called, enter, finish, of};
use crate::guard::Callback;
use crate::handle::Handle;
use crate::value::Tensor;

/// Returns an input, which holds a list of tensors or any other variant.
fn variant(ctx: Ctx, index: usize) -> Result<tfrt_tensor::Tensor> {
    let tensor = enter(ctx, |own| of("ctx", own.keep(index).cloned()))?;
    let found = tensor.metadata();
    if found.dtype != DType::Variant || found.shape.rank() != 0 {
        let reason =
            format!("expected input {index} to be a scalar of type variant, found {found}");
        return Err(Refusal::wrong("ctx", &reason));
    }
    Ok(tensor)
}

/// Returns the list that a variant holds.
fn list(tensor: &tfrt_tensor::Tensor) -> Result<&TensorList> {
    of("ctx", TensorList::of(tensor))
}

/// Makes a variant the only output.
fn give(ctx: Ctx, tensor: &tfrt_tensor::Tensor) -> Result<()> {
    enter(ctx, |own| {
        let view = of("ctx", Tensor::of_host(tensor, own.allocator()))?;
        of("ctx", own.set_output(at(0), view).map(drop))
    })
}

pub(crate) fn add_n(ctx: Ctx, add: Callback, status: Handle<Status>) {
    finish(ctx, status, sum(ctx, add));
}

fn sum(ctx: Ctx, add: Callback) -> Result<()> {
    if add.is_null() {
        let reason = "expected a function, found a null pointer";
        return Err(Refusal::wrong("binary_add_func", reason));
    }
    let n = enter(ctx, |own| Ok(own.n_inputs()))?;
    let mut sum = variant(ctx, 0)?;
    for index in 1..n {
        sum = added(ctx, add, &sum, &variant(ctx, index)?)?;
    }
    give(ctx, &sum)
}

/// Adds the lists of two variants, tensor by tensor.
fn added(
    ctx: Ctx,
    add: Callback,
    x: &tfrt_tensor::Tensor,
    y: &tfrt_tensor::Tensor,
) -> Result<tfrt_tensor::Tensor> {
    let (mut sum, other) = (list(x)?.clone(), list(y)?);
    of("ctx", sum.expect_type(other.dtype))?;
    let (own, others) = (sum.elements.len(), other.elements.len());
    if own != others {
        let error = Error::invalid_argument(format!(
            "Trying to add two lists of tensors with different lengths. One is {own} and the other is {others}"
        ));
        return Err(Refusal::Failed("ctx", error));
    }
    sum.shape = of("ctx", merged(&sum.shape, &other.shape))?;
    for (own, other) in sum.elements.iter_mut().zip(&other.elements) {
        *own = match (&*own, other) {
            (Some(x), Some(y)) if x.metadata().dtype == DType::Variant => {
                Some(added(ctx, add, x, y)?)
            }
            (Some(x), Some(y)) => Some(added_tensor(ctx, add, x, y)?),
            (found, None) | (None, found) => found.clone(),
        };
    }
    Ok(sum.into_tensor())
}

fn added_tensor(
    ctx: Ctx,
    add: Callback,
    x: &tfrt_tensor::Tensor,
    y: &tfrt_tensor::Tensor,
) -> Result<tfrt_tensor::Tensor> {
    if x.metadata() != y.metadata() {
        let (x, y) = (x.metadata(), y.metadata());
        let error = Error::invalid_argument(format!(
            "Trying to add two tensors with incompatible element shapes. One is {x} and the other is {y}"
        ));
        return Err(Refusal::Failed("ctx", error));
    }
    made(ctx, add, &[x, y], "binary_add_func")
}

pub(crate) fn zeros_like(ctx: Ctx, zeros: Callback, status: Handle<Status>) {
    let outcome = match zeros.is_null() {
        true => {
            let reason = "expected a function, found a null pointer";
            Err(Refusal::wrong("zeros_like_func", reason))
        }
        false => variant(ctx, 0)
            .and_then(|input| zeros_of(ctx, zeros, &input))
            .and_then(|made| give(ctx, &made)),
    };
    finish(ctx, status, outcome);
}

fn zeros_of(
    ctx: Ctx,
    zeros: Callback,
    variant: &tfrt_tensor::Tensor,
) -> Result<tfrt_tensor::Tensor> {
    let mut all = list(variant)?.clone();
    for own in all.elements.iter_mut().flatten() {
        *own = match own.metadata().dtype {
            DType::Variant => zeros_of(ctx, zeros, own)?,
            _ => made(ctx, zeros, &[own], "zeros_like_func")?,
        };
    }
    Ok(all.into_tensor())
}

/// Returns a tensor like the first of some that a function of the plugin makes of them. The function deletes all that it
/// is given.
fn made(
    ctx: Ctx,
    function: Callback,
    of_these: &[&tfrt_tensor::Tensor],
    argument: &'static str,
) -> Result<tfrt_tensor::Tensor> {
    let allocator = enter(ctx, |own| Ok(own.allocator().clone()))?;
    let mut given = Vec::new();
    for tensor in of_these {
        given.push(of(argument, Tensor::of_host(tensor, &allocator))?);
    }
    let out = Tensor::zeroed(&allocator, given[0].code, given[0].shape.clone());
    let out = of(argument, out)?;
    let mut arguments = vec![ctx.bits()];
    let handles = given.iter().chain([&out]);
    arguments.extend(handles.map(|tensor| Handle::new(tensor.clone()).bits()));
    let outcome = called(ctx, function, &arguments, argument);
    given.iter().for_each(Tensor::release);
    out.release();
    outcome?;
    of(argument, out.into_host(&allocator))
}
