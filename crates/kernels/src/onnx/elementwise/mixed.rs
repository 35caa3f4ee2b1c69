//! Pointwise operations whose operands differ in type, or that have attributes.

use tfrt_host::Error;
use tfrt_tensor::math::cast::{Casting, cast_into};
use tfrt_tensor::math::elementwise::broadcast_extents;
use tfrt_tensor::math::pointwise::{
    self, BinaryFunction, Operand, ParametricFunction, PointwiseProgram, Step, UnaryFunction,
    binary_into, binary_metadata,
};
use tfrt_tensor::{Bool, DType, DenseHostTensor, Tensor, TensorMetadata, TensorShape};

use super::{expect_defined, of_one, of_two, position, with_parameters};
use crate::onnx::dispatch::{to_f64, with_integer};
use crate::onnx::outputs::IntoValue;
use crate::onnx::{NodeCall, Outputs};

/// `Clip`: limits elements, by operands from version 11 on.
pub(super) fn clip(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let x = node.inputs.dense(0)?;
    let dtype = expect_defined(node, BinaryFunction::Minimum.result(x.dtype()))?;
    let mut inputs = vec![x];
    let mut steps = Vec::new();
    let mut so_far = Operand::Input(0);
    for (index, name, function) in [
        (1, "min", BinaryFunction::Maximum),
        (2, "max", BinaryFunction::Minimum),
    ] {
        let limit = if let Some(value) = node.attributes.float(name)? {
            Operand::Number(value.into())
        } else if let Some(tensor) = node.inputs.optional_dense(index)? {
            tensor.metadata().expect_dtype(dtype)?;
            let n = tensor.n_elements();
            if n != 1 {
                return Err(node
                    .inputs
                    .error(index, format_args!("has {n} elements, not one")));
            }
            inputs.push(tensor);
            Operand::Input(inputs.len() - 1)
        } else {
            continue;
        };
        steps.push(Step::Binary(function, [so_far, limit]));
        so_far = Operand::Step(steps.len() - 1);
    }
    if steps.is_empty() {
        steps.push(Step::Unary(UnaryFunction::Identity, so_far));
    }
    let out = node.output(dtype, &x.shape().to_dims())?;
    // A limit may have more dimensions than the elements.
    let limits = inputs
        .iter()
        .skip(1)
        .map(|limit| limit.reshape(TensorShape::SCALAR));
    let limits = limits.collect::<Result<Vec<_>, _>>()?;
    let inputs: Vec<&DenseHostTensor> = std::iter::once(x).chain(&limits).collect();
    let chain =
        PointwiseProgram::new(inputs.len(), &steps)?.run_into(node.execution, &inputs, &out)?;
    Ok(Outputs::later(out, chain))
}

/// `pow`: powers, whose exponent may be of another type than base and result.
pub(super) fn power(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let (x, y) = (node.inputs.dense(0)?, node.inputs.dense(1)?);
    let dtype = x.dtype();
    if y.n_elements() == 1 && y.shape().rank() <= x.shape().rank() {
        return power_of_all(node, x, y);
    }
    if dtype == y.dtype() {
        return of_two(node, BinaryFunction::Power);
    }
    let wide = |index, tensor: &DenseHostTensor| -> Result<DenseHostTensor, Error> {
        node.workspace
            .reserve(tensor.n_elements(), size_of::<f64>())?;
        let list = to_f64(tensor).map_err(|_| node.inputs.unsupported(index, tensor.dtype()))?;
        node.tensor_of(&tensor.shape().to_dims(), &list)
    };
    let (x, y) = (wide(0, x)?, wide(1, y)?);
    let power = BinaryFunction::Power;
    let metadata = binary_metadata(power, x.metadata(), y.metadata())
        .map_err(|error| node.with_name(&error))?;
    let extents = metadata.shape.to_dims();
    expect_defined(node, ParametricFunction::PowerOf.result(dtype))?;
    let powers = node.output(DType::F64, &extents)?;
    let out = node.output(dtype, &extents)?;
    let chain = binary_into(node.execution, power, &x, &y, &powers)?;
    let (execution, written) = (node.execution.clone(), out.clone());
    let chain = chain.and_then_value(move |_| {
        cast_into(&execution, Casting::default(), &powers, &written).into_value()
    });
    Ok(Outputs::later(out, chain))
}

/// Calculates the powers of all elements with one exponent.
fn power_of_all(
    node: &NodeCall<'_>,
    x: &DenseHostTensor,
    y: &DenseHostTensor,
) -> Result<Outputs, Error> {
    let exponent = node.inputs.number(1)?;
    let whole = whole_number(y)?.filter(|_| x.dtype().is_integer());
    match (exponent, whole) {
        (_, Some(n)) => {
            with_parameters(node, ParametricFunction::WholePowerOf, pointwise::whole(n))
        }
        (2.0, _) if !x.dtype().is_integer() => of_one(node, UnaryFunction::Square),
        (0.5, _) if !x.dtype().is_integer() => of_one(node, UnaryFunction::Sqrt),
        _ => with_parameters(node, ParametricFunction::PowerOf, [exponent, 0.0]),
    }
}

/// Returns the one integer of a tensor, if it is of integers.
fn whole_number(tensor: &DenseHostTensor) -> Result<Option<i64>, Error> {
    let reading = tensor.read()?;
    with_integer!(tensor.dtype(), T => {
        Ok(reading.elements::<T>()?.first().map(|one| i64::try_from(*one).unwrap_or(i64::MAX)))
    }, else Ok(None))
}

/// `select`: elements of the second operand where the first is true, else of the third.
pub(super) fn select(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let condition = node.inputs.dense(0)?;
    if condition.dtype() != DType::I1 {
        return Err(node.inputs.unsupported(0, condition.dtype()));
    }
    let (x, y) = (node.inputs.tensor(1)?, node.inputs.tensor(2)?);
    let shapes = [condition.metadata(), x.metadata(), y.metadata()].map(|one| one.shape.to_dims());
    let extents = broadcast_extents(&[&shapes[0], &shapes[1], &shapes[2]])
        .map_err(|error| node.with_name(&error))?;
    if let (Tensor::String(x), Tensor::String(y)) = (x, y) {
        let (reading, lists) = (condition.read()?, [x.strings(), y.strings()]);
        let conditions = reading.elements::<Bool>()?;
        let [at, x_at, y_at] = [0, 1, 2].map(|index| position(&shapes[index], &extents));
        let (at, x_at, y_at) = (at?, x_at?, y_at?);
        let shape = TensorShape::new(&extents)?;
        let n_strings = TensorMetadata::new(DType::String, shape.clone()).n_elements()?;
        let strings = (0..n_strings).map(|index| match conditions[at(index)].into() {
            true => lists[0][x_at(index)].clone(),
            false => lists[1][y_at(index)].clone(),
        });
        return Ok(node.strings_of(shape, strings)?.into());
    }
    let (x, y) = (node.inputs.dense(1)?, node.inputs.dense(2)?);
    let (dtype, other) = (x.dtype(), y.dtype());
    if dtype != other {
        return Err(node
            .inputs
            .error(2, format_args!("is of {other}, operand 1 of {dtype}")));
    }
    let out = node.output(dtype, &extents)?;
    let chain = pointwise::select_into(node.execution, condition, [x, y], &out)?;
    Ok(Outputs::later(out, chain))
}
