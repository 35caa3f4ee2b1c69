//! Kernels of resource variables: handles, reads, assignments; what they have in common with gathers, scatters and
//! optimizers.
//!
//! No kernel waits for a lock. If a variable is held by others, the kernel goes on as a continuation when the lock is its
//! own, and its results, or its effects, come later. Each change has the variable for itself, whether its attribute
//! `use_locking` asks for that or not.

use std::sync::Arc;

use smallvec::smallvec;
use tfrt_host::{
    AsyncValue, Chain, DType, Error, ErrorCode, ExecutionContext, HostAllocator, LockMode,
};
use tfrt_tensor::math::pointwise::{BinaryFunction, OperandOrder, binary_in_place};
use tfrt_tensor::op::{Formats, Output, Outputs, TensorCall, TensorKernel, unsupported};
use tfrt_tensor::resource::{Resources, Slot, Variable, lock_all, try_lock_all};
use tfrt_tensor::{DenseHostTensor, Tensor, TensorShape};

pub(super) mod rows;
pub(super) mod slices;

/// Variables hold numbers, and strings.
const HELD: Formats = Formats {
    string: true,
    ..Formats::OBJECT
};

/// Makes a kernel that takes handles of resources.
const fn kernel(
    op: &'static str,
    run: fn(&mut TensorCall<'_>) -> Result<Outputs, Error>,
) -> TensorKernel {
    TensorKernel::new(op, run).formats(HELD)
}

pub(super) const KERNELS: &[TensorKernel] = &[
    kernel("tf.AssignAddVariableOp", |call| {
        update(call, BinaryFunction::Add)
    }),
    kernel("tf.AssignSubVariableOp", |call| {
        update(call, BinaryFunction::Subtract)
    }),
    kernel("tf.AssignVariableOp", assign),
    kernel("tf.DestroyResourceOp", destroy),
    kernel("tf.DisableCopyOnRead", |call| {
        let slots = vec![slot(call, 0)?];
        let of = slots[0].clone();
        change(call, slots, move |_| {
            let variable = of.get::<Variable>()?;
            expect_initialized(&of, variable)?;
            variable.disable_copy_on_read();
            Ok(AsyncValue::available(Chain))
        })
    }),
    kernel("tf.ReadVariableOp", read),
    kernel("tf.ResourceCountUpTo", count),
    kernel("tf.VarHandleOp", handle),
    kernel("tf.VarIsInitializedOp", |call| {
        let is_initialized = Slot::of(call.tensor(0)?)?
            .get::<Variable>()?
            .is_initialized();
        let allocator = call.execution.host().allocator();
        let found = tfrt_tensor::Bool::from(is_initialized);
        Ok(smallvec![DenseHostTensor::scalar(allocator, found)?.into()])
    }),
    kernel("tf.VariableShape", shape),
];

/// Returns the slot that an operand refers to.
pub(super) fn slot(call: &TensorCall<'_>, index: usize) -> Result<Arc<Slot>, Error> {
    let slot = Slot::counted(call.tensor(index)?)?;
    slot.get::<Variable>()?;
    Ok(slot)
}

/// Runs a change of variables with all of them locked for writing: now, or when the locks are there.
pub(super) fn change(
    call: &mut TensorCall<'_>,
    slots: Vec<Arc<Slot>>,
    change: impl FnOnce(&ExecutionContext) -> Result<AsyncValue<Chain>, Error> + Send + 'static,
) -> Result<Outputs, Error> {
    if let Some(holds) = try_lock_all(&slots, LockMode::Write)? {
        let done = change(call.execution)?;
        match done.get() {
            Some(Ok(_)) => (),
            Some(Err(error)) => return Err(error.clone()),
            None => call.effects = Some(after(done, holds)),
        }
        return Ok(Outputs::new());
    }
    let execution = call.execution.clone();
    let held = lock_all(&slots, LockMode::Write)?;
    let (promise, effects) = AsyncValue::pending();
    held.when_settled(move |held| {
        let done = match execution.request().cancellation() {
            Some(reason) => Err(reason.clone()),
            None => change(&execution),
        };
        promise.forward(after(done.unwrap_or_else(AsyncValue::from_error), held));
    });
    call.effects = Some(effects);
    Ok(Outputs::new())
}

/// Returns a chain that settles as another one, when what is held until that does is given back.
fn after(done: AsyncValue<Chain>, held: impl Send + 'static) -> AsyncValue<Chain> {
    let (promise, after) = AsyncValue::pending();
    done.when_settled(move |done| {
        drop(held);
        promise.forward(done);
    });
    after
}

/// Makes a result of a variable that is locked for reading: now, or when the lock is there.
pub(super) fn look(
    call: &TensorCall<'_>,
    look: impl FnOnce(&Slot, &ExecutionContext) -> Result<Output, Error> + Send + 'static,
) -> Result<Outputs, Error> {
    let slots = vec![slot(call, 0)?];
    if let Some(holds) = try_lock_all(&slots, LockMode::Read)? {
        let made = look(&slots[0], call.execution)?;
        drop(holds);
        return Ok(smallvec![made]);
    }
    let execution = call.execution.clone();
    let held = lock_all(&slots, LockMode::Read)?;
    let (promise, value) = AsyncValue::pending();
    held.when_settled(move |held| {
        let made = look(&slots[0], &execution);
        drop(held);
        match made {
            Ok(Output::Ready(tensor)) => promise.resolve(tensor),
            Ok(Output::Later(later)) => promise.forward(later),
            Err(error) => promise.fail(error),
        }
    });
    Ok(smallvec![Output::Later(value)])
}

/// Returns the error for a read of a variable that does not exist.
#[cold]
fn not_found(slot: &Slot) -> Error {
    let name = slot.label();
    Error::failed_precondition(format!(
        "Could not find variable {name}. This could mean that the variable has been deleted, or that no value was \
         assigned to it yet."
    ))
}

/// Returns the error for a change of a variable that does not exist.
#[cold]
pub(super) fn missing(slot: &Slot) -> Error {
    let container = match slot.container() {
        "" => "anonymous",
        container => container,
    };
    let (name, found) = (slot.label(), slot.resource_type());
    Error::not_found(format!(
        "Resource {container}/{name}/{found} does not exist."
    ))
}

fn expect_initialized(slot: &Slot, variable: &Variable) -> Result<(), Error> {
    match variable.is_initialized() {
        true => Ok(()),
        false => Err(missing(slot)),
    }
}

fn handle(call: &mut TensorCall<'_>) -> Result<Outputs, Error> {
    let (container, name) = (call.attrs.text("container"), call.attrs.text("shared_name"));
    let slot = match name {
        "" => Slot::anonymous(Variable::new()),
        name => Resources::of(call.execution.host()).slot(container, name, Variable::new),
    };
    Ok(smallvec![slot.handle().into()])
}

fn read(call: &mut TensorCall<'_>) -> Result<Outputs, Error> {
    let dtype = call.attrs.dtype("dtype");
    let allocator = call.execution.host().allocator();
    let slot = Slot::of(call.tensor(0)?)?;
    let variable = slot.get::<Variable>()?;
    let found = variable
        .lock()
        .try_read_with(|| read_value(slot, variable, dtype, allocator));
    if let Ok(found) = found {
        return Ok(smallvec![found?.into()]);
    }
    let (held, allocator) = (variable.lock().acquire(LockMode::Read), allocator.clone());
    let slot = Slot::counted(call.tensor(0)?)?;
    let (promise, value) = AsyncValue::pending();
    held.when_settled(move |held| {
        let found = slot
            .get::<Variable>()
            .and_then(|variable| read_value(&slot, variable, dtype, &allocator));
        drop(held);
        match found {
            Ok(tensor) => promise.resolve(tensor),
            Err(error) => promise.fail(error),
        }
    });
    Ok(smallvec![Output::Later(value)])
}

/// Returns the value of a variable, which has this type if any is stated.
#[inline]
fn read_value(
    slot: &Slot,
    variable: &Variable,
    dtype: Option<DType>,
    allocator: &Arc<dyn HostAllocator>,
) -> Result<Tensor, Error> {
    let Some(tensor) = variable.read(allocator)? else {
        return Err(not_found(slot));
    };
    match dtype {
        Some(dtype) if dtype != tensor.metadata().dtype => {
            Err(wrong_type("read", dtype, tensor.metadata().dtype))
        }
        _ => Ok(tensor),
    }
}

#[cold]
fn wrong_type(verb: &str, expected: DType, found: DType) -> Error {
    Error::invalid_argument(format!(
        "Trying to {verb} variable with wrong dtype. Expected {expected} got {found}"
    ))
}

/// Checks that an attribute states no other type than a variable's value has.
pub(super) fn expect_stated(call: &TensorCall<'_>, found: DType) -> Result<(), Error> {
    match call.attrs.dtype("dtype") {
        Some(stated) if stated != found => Err(Error::invalid_argument(format!(
            "{}: attribute 'dtype' says {stated}, found a tensor of {found}",
            call.name
        ))),
        _ => Ok(()),
    }
}

fn assign(call: &mut TensorCall<'_>) -> Result<Outputs, Error> {
    let value = call.tensor(1)?.clone();
    if let Tensor::Object(_) | Tensor::Device(_) = value {
        return Err(unsupported(call.name, value.metadata().dtype));
    }
    expect_stated(call, value.metadata().dtype)?;
    drop(value);
    let value = match call.operands.take_sole(1) {
        Some(dense) => dense.into(),
        None => call.tensor(1)?.clone(),
    };
    let validates = call.attrs.flag("validate_shape");
    let slots = vec![slot(call, 0)?];
    let of = slots[0].clone();
    change(call, slots, move |execution| {
        let variable = of.get::<Variable>()?;
        if let Some(own) = variable.metadata() {
            let new = value.metadata();
            if own.dtype != new.dtype {
                return Err(wrong_type("assign", own.dtype, new.dtype));
            }
            if validates && own.shape != new.shape {
                let (own, new) = (extents(&own.shape), extents(&new.shape));
                return Err(Error::invalid_argument(format!(
                    "Trying to assign to variable with tensor with wrong shape. Expected {own} got {new}"
                )));
            }
        }
        variable.assign(value, execution.host().allocator())?;
        Ok(AsyncValue::available(Chain))
    })
}

fn update(call: &mut TensorCall<'_>, function: BinaryFunction) -> Result<Outputs, Error> {
    let value = call.dense(1)?.clone();
    expect_stated(call, value.dtype())?;
    let slots = vec![slot(call, 0)?];
    let of = slots[0].clone();
    change(call, slots, move |execution| {
        let variable = of.get::<Variable>()?;
        let own = variable.metadata().ok_or_else(|| missing(&of))?;
        if own.dtype != value.dtype() {
            let message = "DType of variable handle and value does not match.";
            let found = format!(
                "the variable is of {own}, the value of {}",
                value.metadata()
            );
            return Err(Error::invalid_argument(message).with_note(found));
        }
        if own.shape != *value.shape() {
            let (own, found) = (extents(&own.shape), extents(value.shape()));
            return Err(Error::invalid_argument(format!(
                "Cannot update variable with shape {own} using a Tensor with shape {found}, shapes must be equal."
            )));
        }
        let target = variable.prepare_to_update(execution.host().allocator())?;
        let target = target.ok_or_else(|| missing(&of))?;
        let whole = whole(execution, &target);
        binary_in_place(&whole, function, OperandOrder::TargetFirst, &target, &value)
    })
}

/// Returns the context in which a change of a variable runs: one that is not cancelled half way, if it is long enough
/// for that.
pub(super) fn whole(execution: &ExecutionContext, of: &DenseHostTensor) -> ExecutionContext {
    match of.n_elements() < 1 << 12 {
        true => execution.clone(),
        false => execution.request().renewed().into(),
    }
}

fn destroy(call: &mut TensorCall<'_>) -> Result<Outputs, Error> {
    let must_be = !call.attrs.flag("ignore_lookup_error");
    let of = Slot::counted(call.tensor(0)?)?;
    if of.get::<Variable>().is_err() {
        return match of.destroy() || !must_be {
            true => Ok(Outputs::new()),
            false => Err(missing(&of)),
        };
    }
    let slots = vec![of.clone()];
    change(call, slots, move |_| match of.destroy() || !must_be {
        true => Ok(AsyncValue::available(Chain)),
        false => Err(missing(&of)),
    })
}

fn shape(call: &mut TensorCall<'_>) -> Result<Outputs, Error> {
    let slot = Slot::of(call.tensor(0)?)?;
    let metadata = slot.get::<Variable>()?.metadata();
    let metadata = metadata.ok_or_else(|| missing(slot))?;
    let allocator = call.execution.host().allocator();
    let extents: Vec<usize> = metadata.shape.extents().collect();
    let n = [extents.len()];
    let made = match call.attrs.dtype("out_type") {
        Some(DType::I64) => {
            let list: Vec<i64> = extents.iter().map(|one| *one as i64).collect();
            DenseHostTensor::from_slice(allocator, &n, &list)?
        }
        _ => {
            let list: Result<Vec<i32>, _> = extents.iter().map(|one| i32::try_from(*one)).collect();
            let list = list.map_err(|_| {
                call.error(format_args!(
                    "an extent of {metadata} exceeds the largest i32"
                ))
            })?;
            DenseHostTensor::from_slice(allocator, &n, &list)?
        }
    };
    Ok(smallvec![made.into()])
}

fn count(call: &mut TensorCall<'_>) -> Result<Outputs, Error> {
    let limit = call.attrs.int("limit").unwrap_or(0);
    let stated = call.attrs.dtype("T");
    let slots = vec![slot(call, 0)?];
    let of = slots[0].clone();
    let (promise, value) = AsyncValue::<Tensor>::pending();
    let allocator = call.execution.host().allocator().clone();
    let counted = change(call, slots, move |_| {
        let found = count_one(&of, limit, stated, &allocator);
        match found {
            Ok(tensor) => {
                promise.resolve(tensor);
                Ok(AsyncValue::available(Chain))
            }
            Err(error) => {
                promise.fail(error.clone());
                Err(error)
            }
        }
    });
    counted?;
    Ok(smallvec![match value.get() {
        Some(Ok(tensor)) => Output::Ready(tensor.clone()),
        _ => Output::Later(value),
    }])
}

fn count_one(
    of: &Slot,
    limit: i64,
    stated: Option<DType>,
    allocator: &Arc<dyn HostAllocator>,
) -> Result<Tensor, Error> {
    let variable = of.get::<Variable>()?;
    let own = variable.metadata().ok_or_else(|| missing(of))?;
    if let Some(stated) = stated.filter(|stated| *stated != own.dtype) {
        return Err(wrong_type("count", stated, own.dtype));
    }
    if own.shape.rank() != 0 {
        let found = extents(&own.shape);
        return Err(Error::invalid_argument(format!(
            "CountUpTo must be called on scalar variables, found shape {found}"
        )));
    }
    let before: Tensor = variable.read(allocator)?.ok_or_else(|| missing(of))?;
    let dense = before.as_dense()?.deep_copy(allocator)?;
    drop(before);
    let target = variable.prepare_to_update(allocator)?;
    let target = target.ok_or_else(|| missing(of))?;
    let mut writing = target.write()?;
    let reached = || Error::new(ErrorCode::OutOfRange, format!("Reached limit of {limit}"));
    match own.dtype {
        DType::I32 => {
            let elements = writing.elements_mut::<i32>()?;
            if i64::from(elements[0]) >= limit {
                return Err(reached());
            }
            elements[0] += 1;
        }
        DType::I64 => {
            let elements = writing.elements_mut::<i64>()?;
            if elements[0] >= limit {
                return Err(reached());
            }
            elements[0] += 1;
        }
        found => return Err(unsupported("tf.ResourceCountUpTo", found)),
    }
    Ok(dense.into())
}

/// Writes extents as TensorFlow does: `[2,3]`.
pub(super) fn extents(shape: &TensorShape) -> String {
    let extents: Vec<String> = shape.extents().map(|extent| extent.to_string()).collect();
    format!("[{}]", extents.join(","))
}
