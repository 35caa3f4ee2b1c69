//! Pointwise rows whose function the engine of [`tfrt_tensor::math::pointwise`] has: no kernel is asked for them, and no
//! rule.

use std::sync::Arc;

use smallvec::{SmallVec, smallvec};
use tfrt_host::{AnyAsyncValue, DType, DeviceId, Error, HostAllocator};
use tfrt_ops::{OpDef, Traits, Types};
use tfrt_tensor::math::elementwise::broadcast_extents;
use tfrt_tensor::math::pointwise::{BinaryFunction, OperandOrder, UnaryFunction};
use tfrt_tensor::op::{binary_of, unary_of};
use tfrt_tensor::{DenseHostTensor, Tensor, TensorMetadata, TensorShape};

use crate::TensorHandle;
use crate::call::Call;
use crate::definition::{MetadataCall, Outputs, ResultMetadata};
use crate::handle::Owner;
use crate::inputs::{Inputs, Operand};
use crate::op::FastPath;
use crate::runtime::RuntimeId;

/// A function of elements.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Function {
    /// Of one element.
    Unary(UnaryFunction),
    /// Of two elements.
    Binary(BinaryFunction),
}

impl Function {
    /// Returns the function of a pointwise row without attributes whose operands are of one type.
    pub(super) fn of(op: &OpDef) -> Option<Function> {
        let is_typed = op.inputs.iter().all(|input| input.types != Types::Any);
        if !op.is(Traits::POINTWISE) || op.is(Traits::VIEW) || !op.attrs.is_empty() || !is_typed {
            return None;
        }
        match op.inputs.len() {
            1 => UnaryFunction::from_name(op.name).map(Function::Unary),
            2 => BinaryFunction::from_name(op.name).map(Function::Binary),
            _ => None,
        }
    }

    fn result(self, dtype: DType) -> Option<DType> {
        match self {
            Function::Unary(function) => function.result(dtype),
            Function::Binary(function) => function.result(dtype),
        }
    }

    /// Returns about how many additions an element takes.
    pub(super) fn cost(self) -> usize {
        match self {
            Function::Unary(function) => function.cost() + 1,
            Function::Binary(function) => function.cost() + 2,
        }
    }

    /// Returns type and shape of the result. `takes_strings` is whether something else than the function takes them.
    pub(super) fn metadata(
        self,
        call: &MetadataCall<'_>,
        takes_strings: bool,
    ) -> Result<ResultMetadata, Error> {
        let Some(first) = call.inputs.first() else {
            return Err(Error::invalid_argument(format!(
                "{} expects an operand",
                call.op
            )));
        };
        if let Some(other) = call.inputs.get(1)
            && other.dtype != first.dtype
        {
            let op = call.op;
            let message = format!("{op}: incompatible dtypes: {first} and {other}");
            return Err(Error::invalid_argument(message));
        }
        let dtype = match self.result(first.dtype) {
            Some(dtype) => dtype,
            None if takes_strings && first.dtype == DType::String => DType::I1,
            None => {
                let takes = |dtype| self.result(dtype).is_some();
                return Err(super::results::unsupported_of(call.op, first.dtype, takes));
            }
        };
        let shape = match call.inputs.get(1) {
            Some(other) if other.shape != first.shape => {
                let extents = [first.shape.to_dims(), other.shape.to_dims()];
                TensorShape::new(&broadcast_extents(&[&extents[0], &extents[1]])?)?
            }
            _ => first.shape.clone(),
        };
        Ok(smallvec![TensorMetadata::new(dtype, shape)])
    }

    /// Calculates the function. Of two tensors whose elements are all the same it is another one.
    pub(super) fn run(self, call: &mut Call<'_>) -> Result<Outputs, Error> {
        let result = call.result(0)?;
        let function = match self {
            Function::Unary(function) => {
                return unary_of(call.execution, &mut call.inputs, function, result);
            }
            Function::Binary(function) => (function, OperandOrder::TargetFirst),
        };
        match (call.tensor(0)?, call.tensor(1)?) {
            (Tensor::Dense(_), Tensor::Dense(_)) => {
                binary_of(call.execution, &mut call.inputs, function, result)
            }
            (Tensor::Scalar(x), Tensor::Scalar(y)) => {
                let value = function.0.of_scalars(x, y, &result.shape)?;
                Ok(smallvec![value.into()])
            }
            _ => {
                let mut handles = dense_ones(call)?;
                let mut inputs = Inputs::owned(&mut handles);
                binary_of(call.execution, &mut inputs, function, result)
            }
        }
    }
}

impl Function {
    /// Calculates a function of a few elements at once, without checks beyond those of the loops. The full path finds
    /// mistakes.
    #[inline]
    pub(crate) fn try_fast(
        self,
        inputs: &mut Inputs<'_>,
        allocator: &Arc<dyn HostAllocator>,
        owner: Owner,
    ) -> FastPath {
        let made = match self {
            Function::Unary(function) => match inputs.one() {
                Some(x) => fast_unary(function, x, allocator)?,
                None => None,
            },
            Function::Binary(function) => match inputs.two() {
                Some((x, y)) => fast_binary(function, x, y, allocator)?,
                None => None,
            },
        };
        match made {
            Some(tensor) => Ok(TensorHandle::of_tensor(owner, tensor.into())),
            None => Err(None),
        }
    }
}

/// A function of elements whose results are on a device: what [`Op::pointwise`](crate::Op::pointwise) tells of an operation.
#[derive(Clone, Copy, Debug)]
pub struct Pointwise {
    function: Function,
    device: DeviceId,
}

impl Pointwise {
    pub(crate) fn new(function: Function, device: DeviceId) -> Pointwise {
        Pointwise { function, device }
    }

    /// Calculates the function of a few elements in the register of an input, if nobody else holds that one; registers are
    /// handles. Returns the index of that register; `None` if nothing was done.
    ///
    /// # Errors
    ///
    /// Those of [`BinaryFunction::apply_small_in_place`].
    #[inline]
    pub(crate) fn try_in_place(
        self,
        inputs: &mut [AnyAsyncValue],
        runtime: RuntimeId,
    ) -> Result<Option<usize>, Error> {
        let owner = Owner {
            runtime,
            device: self.device,
        };
        match (self.function, inputs) {
            (Function::Unary(function), [x]) => {
                let apply = |x: &mut DenseHostTensor| Ok(function.apply_small_in_place(x));
                Ok(in_place(x, owner, apply)?.then_some(0))
            }
            (Function::Binary(function), [x, y]) => {
                if in_place_of(function, (x, y), OperandOrder::TargetFirst, owner)? {
                    return Ok(Some(0));
                }
                let is_done = in_place_of(function, (y, x), OperandOrder::OtherFirst, owner)?;
                Ok(is_done.then_some(1))
            }
            _ => Ok(None),
        }
    }
}

/// Calculates a function of two handles in the register of the first. Returns whether it did.
#[inline(always)]
fn in_place_of(
    function: BinaryFunction,
    (target, other): (&mut AnyAsyncValue, &AnyAsyncValue),
    order: OperandOrder,
    owner: Owner,
) -> Result<bool, Error> {
    match other.get::<TensorHandle>() {
        Some(other) if other.owner() == owner => {
            in_place(target, owner, |target| match other.as_dense() {
                Some(other) => function.apply_small_in_place(target, other, order),
                None => Ok(false),
            })
        }
        _ => Ok(false),
    }
}

/// Has `apply` write into the tensor of a handle, if it is dense, and nobody else holds the register. Returns whether it did.
#[inline(always)]
fn in_place(
    target: &mut AnyAsyncValue,
    owner: Owner,
    apply: impl FnOnce(&mut DenseHostTensor) -> Result<bool, Error>,
) -> Result<bool, Error> {
    let Some(handle) = target
        .get_mut::<TensorHandle>()
        .filter(|handle| handle.owner() == owner)
    else {
        return Ok(false);
    };
    let is_done = handle.as_dense_mut().map_or(Ok(false), apply)?;
    if is_done {
        handle.forget_traced();
    }
    Ok(is_done)
}

/// Calculates a function of an input, in its memory if possible.
#[inline]
fn fast_unary(
    function: UnaryFunction,
    mut x: Operand<'_>,
    allocator: &Arc<dyn HostAllocator>,
) -> Result<Option<DenseHostTensor>, Error> {
    if let Some(target) = x.dense_mut()
        && function.apply_small_in_place(target)
    {
        return Ok(x.take());
    }
    match x.dense() {
        Some(x) => function.apply_small(allocator, x),
        None => Ok(None),
    }
}

/// Calculates a function of two inputs, in the memory of one of them if possible.
#[inline]
fn fast_binary(
    function: BinaryFunction,
    mut x: Operand<'_>,
    mut y: Operand<'_>,
    allocator: &Arc<dyn HostAllocator>,
) -> Result<Option<DenseHostTensor>, Error> {
    if let (Some(target), Some(other)) = (x.dense_mut(), y.dense())
        && function.apply_small_in_place(target, other, OperandOrder::TargetFirst)?
    {
        return Ok(x.take());
    }
    if let (Some(target), Some(other)) = (y.dense_mut(), x.dense())
        && function.apply_small_in_place(target, other, OperandOrder::OtherFirst)?
    {
        return Ok(y.take());
    }
    match (x.dense(), y.dense()) {
        (Some(x), Some(y)) => function.apply_small(allocator, x, y),
        _ => Ok(None),
    }
}

/// Returns the two inputs as dense ones. Where the result has the shape of the dense one, the other becomes a tensor of
/// one element.
fn dense_ones(call: &mut Call<'_>) -> Result<SmallVec<[TensorHandle; 2]>, Error> {
    let shape = &call.result(0)?.shape;
    let allocator = call.execution.host().allocator();
    let is_whole =
        |tensor: &Tensor| matches!(tensor, Tensor::Dense(_)) && tensor.metadata().shape == *shape;
    let is_one_enough = (0..call.n_inputs()).any(|index| call.tensor(index).is_ok_and(is_whole));
    let inputs = std::mem::replace(&mut call.inputs, Inputs::borrowed(&[]));
    let mut handles: SmallVec<[TensorHandle; 2]> = inputs.into_vec();
    for handle in &mut handles {
        let Some(Ok(Tensor::Scalar(scalar))) = handle.tensor() else {
            continue;
        };
        let dense = match is_one_enough {
            true => scalar.with_shape(TensorShape::SCALAR).to_dense(allocator)?,
            false => scalar.to_dense(allocator)?,
        };
        *handle = TensorHandle::of_tensor(handle.owner(), dense.into());
    }
    Ok(handles)
}
