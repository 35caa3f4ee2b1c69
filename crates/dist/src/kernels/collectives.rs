//! Kernels of collectives: each task of a group calls the same one, with one tensor.
//!
//! They do not wait for their operands to begin: a member whose operands fail, or whose request is stopped before they
//! are there, has to tell the others ([`joining`]).

mod joining;

use std::sync::Arc;

use tfrt_async::{ClusterTask, HostAllocator};
use tfrt_host::kernel::{AttributeView, Early, KernelRegistry, RestAttributes};
use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};
use tfrt_tensor::math::number::Real;
use tfrt_tensor::{BF16, DenseHostTensor, F16, Tensor};

use crate::collective::memory::Tensors;
use crate::collective::{Function, Operation, Order};
use crate::context::ContextRef;
use crate::ids::TaskHandle;
use crate::reduction::ReductionTree;
use joining::{Names, Part, Ready};

/// Adds the four kernels of a type: `register_type!(registry, f32)` adds `tfrt_dist.cpu.allreduce.f32` and so on.
macro_rules! register_type {
    ($registry:expr, $type:ty, $name:literal) => {
        $registry
            .add(concat!("tfrt_dist.cpu.allreduce.", $name), reduce::<$type>)
            .add(
                concat!("tfrt_dist.cpu.broadcast.", $name),
                broadcast::<$type>,
            )
            .add(
                concat!("tfrt_dist.cpu.allgather_fixed_shape.", $name),
                gather::<$type>,
            )
            .add(
                concat!("tfrt_dist.cpu.allgather_any_shape.", $name),
                gather_any::<$type>,
            )
    };
}

pub(super) fn register(registry: &mut KernelRegistry) {
    register_type!(registry, i32, "i32");
    register_type!(registry, i64, "i64");
    register_type!(registry, F16, "f16");
    register_type!(registry, BF16, "bf16");
    register_type!(registry, f32, "f32");
    register_type!(registry, f64, "f64");
}

/// `%c1 = tfrt_dist.cpu.allreduce.f32 %ctx, %group, %instance, %in, %out, %c {reduction_fn = "sum"}`
#[expect(clippy::too_many_arguments, reason = "operands and attributes")]
fn reduce<T: Real>(
    context: AsyncValue<ContextRef>,
    group: AsyncValue<String>,
    instance: AsyncValue<String>,
    input: AsyncValue<Tensor>,
    output: AsyncValue<Tensor>,
    chain: AsyncValue<Chain>,
    attributes: RestAttributes<'_>,
    _: Early,
    execution: &ExecutionContext,
) -> AsyncValue<Chain> {
    let options = Options::read(&attributes.0);
    let operands = vec![
        input.as_any().clone(),
        output.as_any().clone(),
        chain.into_any(),
    ];
    let names = Names {
        context,
        group,
        instance,
    };
    let part = move |ready: Ready<'_>| {
        let options = options?;
        let (input, output) = (
            dense::<T>("in", there(&input)?)?,
            written::<T>("out", there(&output)?)?,
        );
        let extents = output.shape().to_dims().to_vec();
        options.check(input, &extents, ready.me()?, ready.members.len())?;
        Ok(Part {
            operation: Operation::AllReduce {
                function: options.function,
                leaves: options.leaves.unwrap_or(ready.members.len()),
                order: options.order,
            },
            extents,
            result_extents: None,
            tensors: Tensors::reduced(ready.allocator, input, output)?,
        })
    };
    joining::join(names, operands, T::DTYPE, part, execution).map(|_| Chain)
}

/// The attributes of a reduction. Those that may be absent stand before the function, in the order of their names.
#[derive(Clone, Copy)]
struct Options {
    function: Function,
    /// The number of leaves of all members; one each if it is absent.
    leaves: Option<usize>,
    order: Order,
}

const MAX_ATTRIBUTES: usize = 3;

impl Options {
    fn read(attributes: &[AttributeView<'_>]) -> Result<Options, Error> {
        let wrong = || {
            Error::invalid_argument(
                "expected the attributes `reduction_fn`, and `leaves`, an i64, and `order` if any",
            )
        };
        let Some((function, others)) = attributes.split_last() else {
            return Err(wrong());
        };
        let name = function.as_str().ok_or_else(wrong)?;
        let function = Function::named(name).ok_or_else(|| {
            let found = name.escape_debug();
            Error::invalid_argument(format!(
                "unexpected reduction_name in AllReduce: expected sum, min, max or mean, found '{found}'"
            ))
        })?;
        let mut options = Options {
            function,
            leaves: None,
            order: Order::Tree,
        };
        let mut others = others.iter().peekable();
        if attributes.len() == MAX_ATTRIBUTES || others.peek().is_some_and(|it| !is_order(it)) {
            let leaves = others.next().and_then(AttributeView::as_i64);
            let leaves = leaves.ok_or_else(wrong)?;
            let expected = || {
                Error::invalid_argument(format!("expected `leaves` of 1 or more, found {leaves}"))
            };
            let some = usize::try_from(leaves).ok().filter(|leaves| *leaves > 0);
            options.leaves = Some(some.ok_or_else(expected)?);
        }
        if let Some(order) = others.next() {
            options.order = order_of(order).ok_or_else(|| {
                let found = order.as_str().unwrap_or("(no text)").escape_debug();
                Error::invalid_argument(format!(
                    "expected the order `tree` or `ring`, found '{found}'"
                ))
            })?;
        }
        match others.next() {
            None => Ok(options),
            Some(_) => Err(wrong()),
        }
    }

    /// Compares the shape of this member's leaves with that of the result.
    fn check(
        &self,
        input: &DenseHostTensor,
        extents: &[usize],
        me: usize,
        n_members: usize,
    ) -> Result<(), Error> {
        let found = input.shape();
        let Some(leaves) = self.leaves else {
            return match found.to_dims().to_vec() == extents {
                true => Ok(()),
                false => Err(Error::invalid_argument(format!(
                    "expected `out` of the shape of `in`, {found}, found {}",
                    told(extents)
                ))),
            };
        };
        let own = ReductionTree::new(leaves).leaves_of(me, n_members).len();
        let expected: Vec<usize> = [own].into_iter().chain(extents.iter().copied()).collect();
        match found.to_dims().to_vec() == expected {
            true => Ok(()),
            false => Err(Error::invalid_argument(format!(
                "expected `in` of shape {}, the {own} of {leaves} leaves that member {me} of {n_members} has, found {found}",
                told(&expected)
            ))),
        }
    }
}

fn is_order(attribute: &AttributeView<'_>) -> bool {
    // Without the types of attributes in the file a number may look like a text, but not like one of these.
    order_of(attribute).is_some() || attribute.as_i64().is_none()
}

fn order_of(attribute: &AttributeView<'_>) -> Option<Order> {
    match attribute.as_str()? {
        "tree" => Some(Order::Tree),
        "ring" => Some(Order::Ring),
        _ => None,
    }
}

fn told(extents: &[usize]) -> String {
    let extents: Vec<String> = extents.iter().map(usize::to_string).collect();
    format!("[{}]", extents.join(", "))
}

/// `%c1 = tfrt_dist.cpu.broadcast.f32 %ctx, %group, %instance, %tensor, %sender, %c`
#[expect(clippy::too_many_arguments, reason = "operands")]
fn broadcast<T: Real>(
    context: AsyncValue<ContextRef>,
    group: AsyncValue<String>,
    instance: AsyncValue<String>,
    tensor: AsyncValue<Tensor>,
    sender: AsyncValue<TaskHandle>,
    chain: AsyncValue<Chain>,
    _: Early,
    execution: &ExecutionContext,
) -> AsyncValue<Chain> {
    let operands = vec![
        tensor.as_any().clone(),
        sender.as_any().clone(),
        chain.into_any(),
    ];
    let names = Names {
        context,
        group,
        instance,
    };
    let part = move |ready: Ready<'_>| {
        let sender = *there(&sender)?;
        let task = ready.context.task_name(sender)?;
        let number = ready.members.iter().position(|member| member == task);
        let number = number.ok_or_else(|| {
            Error::invalid_argument(format!(
                "the sender {task} is not part of the collective group {}",
                ready.group
            ))
        })?;
        let tensor = match sender == ready.context.own_task() {
            true => dense::<T>("tensor", there(&tensor)?)?,
            false => written::<T>("tensor", there(&tensor)?)?,
        };
        let result = Some(tensor.clone());
        Ok(Part {
            operation: Operation::Broadcast { sender: number },
            extents: tensor.shape().to_dims().to_vec(),
            result_extents: None,
            tensors: Tensors::new(ready.allocator, T::DTYPE, None, result)?,
        })
    };
    joining::join(names, operands, T::DTYPE, part, execution).map(|_| Chain)
}

/// `%c1 = tfrt_dist.cpu.allgather_fixed_shape.f32 %ctx, %group, %instance, %in, %out, %axis, %c`
#[expect(clippy::too_many_arguments, reason = "operands")]
fn gather<T: Real>(
    context: AsyncValue<ContextRef>,
    group: AsyncValue<String>,
    instance: AsyncValue<String>,
    input: AsyncValue<Tensor>,
    output: AsyncValue<Tensor>,
    axis: AsyncValue<u64>,
    chain: AsyncValue<Chain>,
    _: Early,
    execution: &ExecutionContext,
) -> AsyncValue<Chain> {
    let operands = vec![
        input.as_any().clone(),
        output.as_any().clone(),
        axis.as_any().clone(),
        chain.into_any(),
    ];
    let names = Names {
        context,
        group,
        instance,
    };
    let part = move |ready: Ready<'_>| {
        let output = written::<T>("out", there(&output)?)?;
        let result = Some((output.shape().to_dims().to_vec(), output.clone()));
        gathered::<T>(there(&input)?, *there(&axis)?, result, ready.allocator)
    };
    joining::join(names, operands, T::DTYPE, part, execution).map(|_| Chain)
}

/// `%c1, %joined = tfrt_dist.cpu.allgather_any_shape.f32 %ctx, %group, %instance, %in, %axis, %c`
#[expect(clippy::too_many_arguments, reason = "operands")]
fn gather_any<T: Real>(
    context: AsyncValue<ContextRef>,
    group: AsyncValue<String>,
    instance: AsyncValue<String>,
    input: AsyncValue<Tensor>,
    axis: AsyncValue<u64>,
    chain: AsyncValue<Chain>,
    _: Early,
    execution: &ExecutionContext,
) -> (AsyncValue<Chain>, AsyncValue<Tensor>) {
    let operands = vec![
        input.as_any().clone(),
        axis.as_any().clone(),
        chain.into_any(),
    ];
    let names = Names {
        context,
        group,
        instance,
    };
    let part = move |ready: Ready<'_>| {
        gathered::<T>(there(&input)?, *there(&axis)?, None, ready.allocator)
    };
    let joined = joining::join(names, operands, T::DTYPE, part, execution);
    (joined.clone().map(|_| Chain), joined)
}

fn gathered<T: Real>(
    input: &Tensor,
    axis: u64,
    result: Option<(Vec<usize>, DenseHostTensor)>,
    allocator: &Arc<dyn HostAllocator>,
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
        tensors: Tensors::new(allocator, T::DTYPE, Some(input), result)?,
    })
}

/// Returns an operand, which has come.
fn there<T: tfrt_host::Value>(operand: &AsyncValue<T>) -> Result<&T, Error> {
    match operand.get() {
        Some(Ok(value)) => Ok(value),
        Some(Err(error)) => Err(error.clone()),
        None => Err(Error::internal("an operand is there when it is used")),
    }
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

impl Ready<'_> {
    /// Returns the number of this task among the members.
    fn me(&self) -> Result<usize, Error> {
        let own: &ClusterTask = self.context.task_name(self.context.own_task())?;
        let me = self.members.iter().position(|member| member == own);
        me.ok_or_else(|| {
            Error::invalid_argument(format!(
                "The current task {own} is not part of the collective group {}",
                self.group
            ))
        })
    }
}
