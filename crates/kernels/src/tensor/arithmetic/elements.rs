//! Pointwise kernels.

use tfrt_host::kernel::KernelRegistry;
use tfrt_host::{Error, ExecutionContext};
use tfrt_tensor::math::cast::{Casting, cast_into};
use tfrt_tensor::math::elementwise::expect_same;
use tfrt_tensor::math::pointwise::{
    BinaryFunction, Operand, OperandOrder, PointwiseProgram, Step, UnaryFunction, binary_in_place,
    binary_into, unary_in_place, unary_into,
};
use tfrt_tensor::{DType, DenseHostTensor, Tensor};

use super::{WriteResult, both};

pub(super) fn register(registry: &mut KernelRegistry) {
    type InPlace = fn(&Tensor, &ExecutionContext) -> WriteResult;
    type OfOne = fn(&Tensor, &Tensor, &ExecutionContext) -> WriteResult;
    type OfTwo = fn(&Tensor, &Tensor, &Tensor, &ExecutionContext) -> WriteResult;
    add_all! { registry, InPlace,
        "tfrt_test.relu_inplace.f32" => |a, execution| relu_in_place(DType::F32, a, execution);
        "tfrt_test.relu_inplace.i32" => |a, execution| relu_in_place(DType::I32, a, execution);
        "tfrt_test.relu_inplace.i64" => |a, execution| relu_in_place(DType::I64, a, execution);
    }
    add_all! { registry, OfOne,
        "tfrt_test.relu.f32" => |a, b, execution| relu(DType::F32, [a, b], execution);
        "tfrt_test.relu.i32" => |a, b, execution| relu(DType::I32, [a, b], execution);
        "tfrt_test.relu.i64" => |a, b, execution| relu(DType::I64, [a, b], execution);
        "tfrt_test.relu_grad_inplace.f32" => |a, b, execution| relu_gradient(DType::F32, [a, b], execution);
        "tfrt_test.relu_grad_inplace.i32" => |a, b, execution| relu_gradient(DType::I32, [a, b], execution);
        "tfrt_test.relu_grad_inplace.i64" => |a, b, execution| relu_gradient(DType::I64, [a, b], execution);
        "tfrt_test.add_inplace.f32" => |a, b, execution| to_second(BinaryFunction::Add, DType::F32, [a, b], execution);
        "tfrt_test.add_inplace.i32" => |a, b, execution| to_second(BinaryFunction::Add, DType::I32, [a, b], execution);
        "tfrt_test.add_inplace.i64" => |a, b, execution| to_second(BinaryFunction::Add, DType::I64, [a, b], execution);
        "tfrt_test.equal_inplace.f32" => |a, b, execution| to_second(BinaryFunction::EqualAsNumber, DType::F32, [a, b], execution);
        "tfrt_test.equal_inplace.i32" => |a, b, execution| to_second(BinaryFunction::EqualAsNumber, DType::I32, [a, b], execution);
        "tfrt_test.equal_inplace.i64" => |a, b, execution| to_second(BinaryFunction::EqualAsNumber, DType::I64, [a, b], execution);
        "tfrt_test.subtract_inplace.f32" => |a, b, execution| to_second(BinaryFunction::Subtract, DType::F32, [a, b], execution);
        "tfrt_test.cast.i32_to_f32" => cast;
    }
    add_all! { registry, OfTwo,
        "tfrt_test.add.f32" => |a, b, c, execution| of_two(BinaryFunction::Add, DType::F32, [a, b, c], execution);
        "tfrt_test.add.i32" => |a, b, c, execution| of_two(BinaryFunction::Add, DType::I32, [a, b, c], execution);
        "tfrt_test.add.i64" => |a, b, c, execution| of_two(BinaryFunction::Add, DType::I64, [a, b, c], execution);
        "tfrt_test.equal.f32" => |a, b, c, execution| of_two(BinaryFunction::EqualAsNumber, DType::F32, [a, b, c], execution);
        "tfrt_test.equal.i32" => |a, b, c, execution| of_two(BinaryFunction::EqualAsNumber, DType::I32, [a, b, c], execution);
        "tfrt_test.equal.i64" => |a, b, c, execution| of_two(BinaryFunction::EqualAsNumber, DType::I64, [a, b, c], execution);
    }
}

/// Fails unless all tensors are of a type.
fn expect(dtype: DType, tensors: &[&DenseHostTensor]) -> Result<(), Error> {
    let mut all = tensors.iter();
    all.try_for_each(|tensor| tensor.metadata().expect_dtype(dtype))
}

/// `%c1 = "tfrt_test.relu.<t>"(%a, %b, %c0)`: b = max(a, 0)
fn relu(dtype: DType, [a, b]: [&Tensor; 2], execution: &ExecutionContext) -> WriteResult {
    let [a, b] = both(a, b)?;
    expect(dtype, &[a, b])?;
    match is_same(a, b) {
        true => unary_in_place(execution, UnaryFunction::Relu, b),
        false => unary_into(execution, UnaryFunction::Relu, a, b),
    }
}

/// `%c1 = "tfrt_test.relu_inplace.<t>"(%a, %c0)`: a = max(a, 0)
fn relu_in_place(dtype: DType, a: &Tensor, execution: &ExecutionContext) -> WriteResult {
    let a = a.as_dense()?;
    expect(dtype, &[a])?;
    unary_in_place(execution, UnaryFunction::Relu, a)
}

/// `%c1 = "tfrt_test.relu_grad_inplace.<t>"(%activation, %gradient, %c0)`: sets the gradient to 0 where the
/// activation is not above 0
fn relu_gradient(
    dtype: DType,
    [activation, gradient]: [&Tensor; 2],
    execution: &ExecutionContext,
) -> WriteResult {
    let [activation, gradient] = both(activation, gradient)?;
    expect_same(activation.shape(), gradient.shape())?;
    expect(dtype, &[activation, gradient])?;
    let function = BinaryFunction::ReluGradient;
    binary_in_place(
        execution,
        function,
        OperandOrder::OtherFirst,
        gradient,
        activation,
    )
}

/// `%c1 = "tfrt_test.add.<t>"(%a, %b, %c, %c0)`: c = f(a, b), where c may be a or b
fn of_two(
    function: BinaryFunction,
    dtype: DType,
    [a, b, c]: [&Tensor; 3],
    execution: &ExecutionContext,
) -> WriteResult {
    let ([a, b], c) = (both(a, b)?, c.as_dense()?);
    expect_same(a.shape(), b.shape())?;
    expect(dtype, &[a, b, c])?;
    match [a, b].map(|input| is_same(input, c)) {
        [true, false] => binary_in_place(execution, function, OperandOrder::TargetFirst, c, b),
        [false, true] => binary_in_place(execution, function, OperandOrder::OtherFirst, c, a),
        [true, true] => with_itself(execution, function, c),
        [false, false] => binary_into(execution, function, a, b, c),
    }
}

/// `%c1 = "tfrt_test.add_inplace.<t>"(%a, %b, %c0)`: b = f(b, a)
fn to_second(
    function: BinaryFunction,
    dtype: DType,
    [a, b]: [&Tensor; 2],
    execution: &ExecutionContext,
) -> WriteResult {
    let [a, b] = both(a, b)?;
    expect_same(a.shape(), b.shape())?;
    expect(dtype, &[a, b])?;
    match is_same(a, b) {
        true => with_itself(execution, function, b),
        false => binary_in_place(execution, function, OperandOrder::TargetFirst, b, a),
    }
}

/// Replaces each element by a function of it and itself.
fn with_itself(
    execution: &ExecutionContext,
    function: BinaryFunction,
    tensor: &DenseHostTensor,
) -> WriteResult {
    let step = Step::Binary(function, [Operand::Input(0); 2]);
    PointwiseProgram::new(1, &[step])?.run_in_place(execution, tensor, &[])
}

/// `%c1 = "tfrt_test.cast.i32_to_f32"(%a, %b, %c0)`
fn cast(a: &Tensor, b: &Tensor, execution: &ExecutionContext) -> WriteResult {
    let [a, b] = both(a, b)?;
    expect(DType::I32, &[a])?;
    expect(DType::F32, &[b])?;
    cast_into(execution, Casting::default(), a, b)
}

/// Returns whether two tensors are the same bytes in one layout.
fn is_same(a: &DenseHostTensor, b: &DenseHostTensor) -> bool {
    let is_at_one_place = a.buffer().address() == b.buffer().address();
    is_at_one_place && a.buffer().overlaps(b.buffer()) && a.metadata() == b.metadata()
}
