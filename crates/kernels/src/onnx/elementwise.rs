//! Pointwise operations: arithmetic, functions, comparisons, logic.

use tfrt_host::Error;
use tfrt_tensor::math::elementwise::broadcast_extents;
use tfrt_tensor::math::pointwise::{
    self, BinaryFunction, ParametricFunction, UnaryFunction, binary_into, unary_into,
};
use tfrt_tensor::{Bool, DType, DenseHostTensor, Dims, StringHostTensor, Tensor, TensorShape};

use super::{NodeCall, Operations, Outputs};

mod mixed;

pub(super) const OPERATIONS: &Operations = &[
    ("onnx.Clip", mixed::clip),
    ("eq", equal),
    ("pow", mixed::power),
    ("select", mixed::select),
];

/// Converts the error of a function that is not defined for a type to that of the operation.
pub(super) fn expect_defined(node: &NodeCall<'_>, result: Option<DType>) -> Result<DType, Error> {
    match result {
        Some(result) => Ok(result),
        None => Err(node.inputs.unsupported(0, node.inputs.dense(0)?.dtype())),
    }
}

/// Applies a function to each element of the only operand.
pub(super) fn of_one(node: &NodeCall<'_>, function: UnaryFunction) -> Result<Outputs, Error> {
    let x = node.inputs.dense(0)?;
    let dtype = expect_defined(node, function.result(x.dtype()))?;
    let out = node.output(dtype, &x.shape().to_dims())?;
    let chain = unary_into(node.execution, function, x, &out)?;
    Ok(Outputs::later(out, chain))
}

/// Applies a function with parameters to each element of the first operand.
pub(super) fn with_parameters(
    node: &NodeCall<'_>,
    function: ParametricFunction,
    parameters: [f64; 2],
) -> Result<Outputs, Error> {
    let x = node.inputs.dense(0)?;
    let dtype = expect_defined(node, function.result(x.dtype()))?;
    let out = node.output(dtype, &x.shape().to_dims())?;
    let chain = pointwise::parametric_into(node.execution, function, parameters, x, &out)?;
    Ok(Outputs::later(out, chain))
}

/// Applies a function to each pair of elements of two operands.
pub(super) fn of_two(node: &NodeCall<'_>, function: BinaryFunction) -> Result<Outputs, Error> {
    let (x, y) = (node.inputs.dense(0)?, node.inputs.dense(1)?);
    expect_defined(node, function.result(x.dtype()))?;
    let metadata = pointwise::binary_metadata(function, x.metadata(), y.metadata())
        .map_err(|error| node.with_name(&error))?;
    let out = DenseHostTensor::unspecified(node.execution.host().allocator(), metadata)?;
    let chain = binary_into(node.execution, function, x, y, &out)?;
    Ok(Outputs::later(out, chain))
}

/// Applies a function to all operands, one after the other.
pub(super) fn of_all(node: &NodeCall<'_>, function: BinaryFunction) -> Result<Outputs, Error> {
    let dtype = node.inputs.dense(0)?.dtype();
    expect_defined(node, function.result(dtype))?;
    folded(node, function, None)
}

/// Calculates the mean of all operands.
pub(super) fn mean(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let dtype = node.inputs.dense(0)?.dtype();
    expect_defined(node, ParametricFunction::DividedBy.result(dtype))?;
    #[allow(clippy::cast_precision_loss, reason = "they are no 2^53")]
    let n = node.inputs.all_dense()?.len() as f64;
    folded(node, BinaryFunction::Add, Some(n))
}

fn folded(
    node: &NodeCall<'_>,
    function: BinaryFunction,
    divisor: Option<f64>,
) -> Result<Outputs, Error> {
    let inputs = node.inputs.all_dense()?;
    let shapes: Vec<_> = inputs.iter().map(|input| input.shape().to_dims()).collect();
    let shapes: Vec<&[usize]> = shapes.iter().map(|shape| &shape[..]).collect();
    let extents = broadcast_extents(&shapes).map_err(|error| node.with_name(&error))?;
    let dtype = node.inputs.dense(0)?.dtype();
    for input in &inputs {
        input.metadata().expect_dtype(dtype)?;
    }
    let out = node.output(dtype, &extents)?;
    let program = pointwise::folded(function, inputs.len(), divisor)?;
    let chain = program.run_into(node.execution, &inputs, &out)?;
    Ok(Outputs::later(out, chain))
}

/// Returns whether elements are equal: numbers, truth values, strings.
fn equal(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    match (node.inputs.tensor(0)?, node.inputs.tensor(1)?) {
        (Tensor::String(x), Tensor::String(y)) => equal_strings(node, x, y),
        _ => of_two(node, BinaryFunction::Equal),
    }
}

fn equal_strings(
    node: &NodeCall<'_>,
    x: &StringHostTensor,
    y: &StringHostTensor,
) -> Result<Outputs, Error> {
    let shapes = [x, y].map(|tensor| tensor.metadata().shape.to_dims());
    let extents =
        broadcast_extents(&[&shapes[0], &shapes[1]]).map_err(|error| node.with_name(&error))?;
    let out = node.output(DType::I1, &extents)?;
    let (x_position, y_position) = (
        position(&shapes[0], &extents)?,
        position(&shapes[1], &extents)?,
    );
    let (x, y) = (x.strings(), y.strings());
    for (index, out) in out.write()?.elements_mut()?.iter_mut().enumerate() {
        *out = Bool::from(x[x_position(index)] == y[y_position(index)]);
    }
    Ok(out.into())
}

/// Returns the position of each element of a broadcast tensor in the tensor itself.
fn position(own: &[usize], extents: &[usize]) -> Result<impl Fn(usize) -> usize, Error> {
    let mut strides = TensorShape::new(own)?.strides();
    for (stride, extent) in strides.iter_mut().zip(own) {
        *stride *= usize::from(*extent != 1);
    }
    let extents = Dims::from_slice(extents);
    Ok(move |index| {
        let (mut rest, mut position) = (index, 0);
        // Dimensions in front are repeated.
        for (stride, extent) in strides.iter().rev().zip(extents.iter().rev()) {
            position += rest % extent * stride;
            rest /= extent;
        }
        position
    })
}
