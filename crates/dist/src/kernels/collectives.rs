//! Kernels of collectives: each task of a group calls the same one, with one tensor.

#![allow(
    clippy::ptr_arg,
    reason = "an operand is borrowed as the type that stands in the register"
)]

use tfrt_async::ClusterTask;
use tfrt_host::kernel::{Attr, KernelRegistry};
use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};
use tfrt_tensor::math::number::Real;
use tfrt_tensor::{DenseHostTensor, Tensor};

use crate::collective::memory::Tensors;
use crate::collective::{Call, Function, Key, Operation, Order};
use crate::context::ContextRef;
use crate::ids::TaskHandle;

pub(super) fn register(registry: &mut KernelRegistry) {
    registry
        .add("tfrt_dist.cpu.allreduce.i32", reduce::<i32>)
        .add("tfrt_dist.cpu.allreduce.f32", reduce::<f32>)
        .add("tfrt_dist.cpu.broadcast.i32", broadcast::<i32>)
        .add("tfrt_dist.cpu.broadcast.f32", broadcast::<f32>)
        .add("tfrt_dist.cpu.allgather_fixed_shape.i32", gather::<i32>)
        .add("tfrt_dist.cpu.allgather_fixed_shape.f32", gather::<f32>)
        .add("tfrt_dist.cpu.allgather_any_shape.i32", gather_any::<i32>)
        .add("tfrt_dist.cpu.allgather_any_shape.f32", gather_any::<f32>);
}

/// `%c1 = tfrt_dist.cpu.allreduce.f32 %ctx, %group, %instance, %in, %out, %c {reduction_fn = "sum"}`
#[expect(clippy::too_many_arguments, reason = "operands and attributes")]
fn reduce<T: Real>(
    context: &ContextRef,
    group: &String,
    instance: &String,
    input: &Tensor,
    output: &Tensor,
    _: Chain,
    reduction_fn: Attr<&str>,
    execution: &ExecutionContext,
) -> AsyncValue<Chain> {
    let part = |members: &[ClusterTask]| {
        let function = Function::named(*reduction_fn).ok_or_else(|| {
            let found = reduction_fn.escape_debug();
            Error::invalid_argument(format!(
                "unexpected reduction_name in AllReduce: expected sum, min, max or mean, found '{found}'"
            ))
        })?;
        let (input, output) = (dense::<T>("in", input)?, written::<T>("out", output)?);
        if input.shape() != output.shape() {
            let (input, output) = (input.shape(), output.shape());
            return Err(Error::invalid_argument(format!(
                "expected `out` of the shape of `in`, {input}, found {output}"
            )));
        }
        Ok(Part {
            operation: Operation::AllReduce {
                function,
                leaves: members.len(),
                order: Order::Tree,
            },
            extents: input.shape().to_dims().to_vec(),
            result_extents: None,
            tensors: Tensors::reduced(execution.allocator(), input, output)?,
        })
    };
    begin::<T>(context, [group, instance], part, execution).map(|_| Chain)
}

/// `%c1 = tfrt_dist.cpu.broadcast.f32 %ctx, %group, %instance, %tensor, %sender, %c`
fn broadcast<T: Real>(
    context: &ContextRef,
    group: &String,
    instance: &String,
    tensor: &Tensor,
    sender: TaskHandle,
    _: Chain,
    execution: &ExecutionContext,
) -> AsyncValue<Chain> {
    let part = |members: &[ClusterTask]| {
        let task = context.task_name(sender)?;
        let number = members.iter().position(|member| member == task);
        let number = number.ok_or_else(|| {
            Error::invalid_argument(format!(
                "the sender {task} is not part of the collective group {group}"
            ))
        })?;
        let tensor = match sender == context.own_task() {
            true => dense::<T>("tensor", tensor)?,
            false => written::<T>("tensor", tensor)?,
        };
        let result = Some(tensor.clone());
        Ok(Part {
            operation: Operation::Broadcast { sender: number },
            extents: tensor.shape().to_dims().to_vec(),
            result_extents: None,
            tensors: Tensors::new(execution.allocator(), T::DTYPE, None, result)?,
        })
    };
    begin::<T>(context, [group, instance], part, execution).map(|_| Chain)
}

/// `%c1 = tfrt_dist.cpu.allgather_fixed_shape.f32 %ctx, %group, %instance, %in, %out, %axis, %c`
#[expect(clippy::too_many_arguments, reason = "operands")]
fn gather<T: Real>(
    context: &ContextRef,
    group: &String,
    instance: &String,
    input: &Tensor,
    output: &Tensor,
    axis: u64,
    _: Chain,
    execution: &ExecutionContext,
) -> AsyncValue<Chain> {
    let part = |_: &[ClusterTask]| {
        let output = written::<T>("out", output)?;
        let result = Some((output.shape().to_dims().to_vec(), output.clone()));
        gathered::<T>(input, axis, result, execution)
    };
    begin::<T>(context, [group, instance], part, execution).map(|_| Chain)
}

/// `%c1, %joined = tfrt_dist.cpu.allgather_any_shape.f32 %ctx, %group, %instance, %in, %axis, %c`
fn gather_any<T: Real>(
    context: &ContextRef,
    group: &String,
    instance: &String,
    input: &Tensor,
    axis: u64,
    _: Chain,
    execution: &ExecutionContext,
) -> (AsyncValue<Chain>, AsyncValue<Tensor>) {
    let part = |_: &[ClusterTask]| gathered::<T>(input, axis, None, execution);
    let joined = begin::<T>(context, [group, instance], part, execution);
    (joined.clone().map(|_| Chain), joined)
}

fn gathered<T: Real>(
    input: &Tensor,
    axis: u64,
    result: Option<(Vec<usize>, DenseHostTensor)>,
    execution: &ExecutionContext,
) -> Result<Part, Error> {
    let input = dense::<T>("in", input)?;
    let any_shape = result.is_none();
    let (result_extents, result) = result.unzip();
    Ok(Part {
        operation: Operation::AllGather {
            // One that is too large is above any rank, and refused with the rank.
            axis: usize::try_from(axis).unwrap_or(usize::MAX),
            any_shape,
        },
        extents: input.shape().to_dims().to_vec(),
        result_extents,
        tensors: Tensors::new(execution.allocator(), T::DTYPE, Some(input), result)?,
    })
}

/// A member's part in a collective.
struct Part {
    operation: Operation,
    extents: Vec<usize>,
    result_extents: Option<Vec<usize>>,
    tensors: Tensors,
}

/// Begins a collective among the members of a group; what is wrong with this member's part fails it on all.
fn begin<T: Real>(
    context: &ContextRef,
    [group, instance]: [&String; 2],
    part: impl FnOnce(&[ClusterTask]) -> Result<Part, Error>,
    execution: &ExecutionContext,
) -> AsyncValue<Tensor> {
    let (promise, result) = execution.promise();
    let members = context.group(group).and_then(|members| {
        let names = members.into_iter();
        let names = names.map(|member| context.task_name(member).cloned());
        names.collect::<Result<Vec<ClusterTask>, Error>>()
    });
    let members = match members {
        Ok(members) => members,
        Err(error) => {
            promise.complete(Err(error));
            return result;
        }
    };
    let key = Key {
        group: group.clone(),
        instance: instance.clone(),
    };
    let (collectives, request) = (context.collectives(), execution.request());
    let done = match part(&members) {
        Ok(part) => {
            let call = Call {
                key: key.clone(),
                members,
                operation: part.operation,
                dtype: T::DTYPE,
                extents: part.extents,
                result_extents: part.result_extents,
                deadline: collectives.deadline(request.deadline()),
            };
            collectives.call(call, part.tensors)
        }
        Err(error) => collectives.refuse(key.clone(), members, error),
    };
    let weak = context.downgrade();
    let hook = request.on_cancel(move |reason| {
        if let Some(context) = weak.upgrade() {
            context.collectives().cancel(key, reason.clone());
        }
    });
    let held = context.clone();
    done.when_settled(move |done| {
        drop(hook);
        promise.forward(done);
        drop(held);
    });
    result
}

/// Returns an operand as a dense tensor of a type.
fn dense<'t, T: Real>(name: &str, tensor: &'t Tensor) -> Result<&'t DenseHostTensor, Error> {
    let dense = tensor.as_dense()?;
    match dense.dtype() == T::DTYPE {
        true => Ok(dense),
        false => {
            let (expected, found) = (T::DTYPE, dense.dtype());
            Err(Error::invalid_argument(format!(
                "expected `{name}` of type {expected}, found {found}"
            )))
        }
    }
}

/// Returns an operand as a dense tensor that may be written now.
fn written<'t, T: Real>(name: &str, tensor: &'t Tensor) -> Result<&'t DenseHostTensor, Error> {
    if !matches!(tensor, Tensor::Dense(_)) {
        // A copy of its elements would be written.
        let format = tensor.format();
        return Err(Error::invalid_argument(format!(
            "expected `{name}` as a dense tensor, found {format}"
        )));
    }
    let dense = dense::<T>(name, tensor)?;
    dense.write()?;
    Ok(dense)
}
