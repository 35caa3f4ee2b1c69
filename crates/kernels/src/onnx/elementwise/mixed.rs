//! Operations whose operands differ in type, or that have attributes.

use tfrt_host::Error;
use tfrt_tensor::math::elementwise as math;
use tfrt_tensor::math::number::Real;
use tfrt_tensor::{Bool, DType, DenseHostTensor, Tensor, TensorMetadata};

use super::{of_two, position};
use crate::onnx::dispatch::{to_f64, with_integer};
use crate::onnx::outputs::IntoValue;
use crate::onnx::{Node, Outputs, with_floating, with_real};

/// `Clip`: each element within two limits, which are operands from version 11 on.
pub(super) fn clip(node: &Node<'_>) -> Result<Outputs, Error> {
    let x = node.inputs.dense(0)?;
    let dtype = x.dtype();
    with_real!(dtype, T => {
        let limit = |index, name, none: T| -> Result<T, Error> {
            if let Some(value) = node.attributes.float(name)? {
                return Ok(T::from_f64(value.into()));
            }
            let Some(tensor) = node.inputs.optional_dense(index)? else {
                return Ok(none);
            };
            match tensor.read()?.elements::<T>()? {
                [limit] => Ok(*limit),
                list => Err(node.inputs.error(index, format_args!("has {} elements, not one", list.len()))),
            }
        };
        let (least, largest) = (limit(1, "min", T::LOWEST)?, limit(2, "max", T::HIGHEST)?);
        let out = node.output(dtype, &x.shape().to_dims())?;
        let chain = math::map_into::<T, T>(node.execution, 2, x, &out, move |x| {
            x.greatest(least).least(largest)
        })?;
        Ok(Outputs::later(out, chain))
    }, else Err(node.inputs.unsupported(0, dtype)))
}

/// `IsInf`: whether elements are infinite, of the signs that are asked for.
pub(super) fn is_infinite(node: &Node<'_>) -> Result<Outputs, Error> {
    let x = node.inputs.dense(0)?;
    let dtype = x.dtype();
    let positive = node.attributes.flag("detect_positive", true)?;
    let negative = node.attributes.flag("detect_negative", true)?;
    with_floating!(dtype, T => {
        let out = node.output(DType::I1, &x.shape().to_dims())?;
        let chain = math::map_into::<T, Bool>(node.execution, 2, x, &out, move |x| {
            let (above, below) = (x.same(T::HIGHEST), x.same(T::LOWEST));
            Bool::from((positive && above) || (negative && below))
        })?;
        Ok(Outputs::later(out, chain))
    }, else Err(node.inputs.unsupported(0, dtype)))
}

/// `Mod`: what a division leaves, with the sign of the divisor, or with `fmod` of the dividend.
pub(super) fn modulo(node: &Node<'_>) -> Result<Outputs, Error> {
    let dtype = node.inputs.dense(0)?.dtype();
    let of_dividend = node.attributes.flag("fmod", false)?;
    with_real!(dtype, T => match of_dividend {
        true => of_two::<math::Remainder, T>(node),
        false => of_two::<math::Modulo, T>(node),
    }, else Err(node.inputs.unsupported(0, dtype)))
}

/// `Pow`: the type of the exponent may be another than that of the base, which the result has.
pub(super) fn power(node: &Node<'_>) -> Result<Outputs, Error> {
    let (x, y) = (node.inputs.dense(0)?, node.inputs.dense(1)?);
    let dtype = x.dtype();
    if y.n_elements() == 1 && y.shape().rank() <= x.shape().rank() {
        return power_of_all(node, x, y);
    }
    if dtype == y.dtype() {
        let done = with_floating!(dtype, T => Some(of_two::<math::Power, T>(node)), else None);
        let done = done.or_else(
            || with_integer!(dtype, T => Some(of_two::<math::WholePower, T>(node)), else None),
        );
        return done.unwrap_or_else(|| Err(node.inputs.unsupported(0, dtype)));
    }
    let wide = |index, tensor: &DenseHostTensor| -> Result<DenseHostTensor, Error> {
        node.beside
            .set_aside(tensor.n_elements(), size_of::<f64>())?;
        let list = to_f64(tensor).map_err(|_| node.inputs.unsupported(index, tensor.dtype()))?;
        node.tensor_of(&tensor.shape().to_dims(), &list)
    };
    let (x, y) = (wide(0, x)?, wide(1, y)?);
    let metadata = math::binary_metadata::<math::Power, f64>(x.metadata(), y.metadata())
        .map_err(|error| node.told(&error))?;
    let extents = metadata.shape.to_dims();
    let powers = node.output(DType::F64, &extents)?;
    let out = node.output(dtype, &extents)?;
    let chain = math::binary_into::<math::Power, f64>(node.execution, &x, &y, &powers)?;
    let (execution, written) = (node.execution.clone(), out.clone());
    with_real!(dtype, T => {
        let chain = chain.and_then_value(move |_| {
            math::map_into::<f64, T>(&execution, 1, &powers, &written, T::from_f64).into_value()
        });
        Ok(Outputs::later(out, chain))
    }, else Err(node.inputs.unsupported(0, dtype)))
}

/// The powers of one exponent.
fn power_of_all(
    node: &Node<'_>,
    x: &DenseHostTensor,
    y: &DenseHostTensor,
) -> Result<Outputs, Error> {
    let dtype = x.dtype();
    let exponent = node.inputs.number(1)?;
    let whole = whole_number(y)?;
    let out = node.output(dtype, &x.shape().to_dims())?;
    let execution = node.execution;
    with_floating!(dtype, T => {
        let chain = match exponent {
            2.0 => math::unary_into::<math::Square, T>(execution, x, &out)?,
            0.5 => math::unary_into::<math::Sqrt, T>(execution, x, &out)?,
            _ => math::map_into::<T, T>(execution, 64, x, &out, move |x| {
                T::from_f64(x.to_f64().powf(exponent))
            })?,
        };
        Ok(Outputs::later(out, chain))
    }, else with_integer!(dtype, T => {
        let chain = match whole {
            Some(whole) => math::map_into::<T, T>(execution, 16, x, &out, move |x| math::power(x, whole))?,
            None => math::map_into::<T, T>(execution, 64, x, &out, move |x| {
                T::from_f64(x.to_f64().powf(exponent))
            })?,
        };
        Ok(Outputs::later(out, chain))
    }, else Err(node.inputs.unsupported(0, dtype))))
}

/// The one integer of a tensor, if it is of integers.
fn whole_number(tensor: &DenseHostTensor) -> Result<Option<i64>, Error> {
    let reading = tensor.read()?;
    with_integer!(tensor.dtype(), T => {
        Ok(reading.elements::<T>()?.first().map(|one| i64::try_from(*one).unwrap_or(i64::MAX)))
    }, else Ok(None))
}

/// `Where`: elements of the second operand where the first is true, else of the third.
pub(super) fn select(node: &Node<'_>) -> Result<Outputs, Error> {
    let condition = node.inputs.dense(0)?;
    if condition.dtype() != DType::I1 {
        return Err(node.inputs.unsupported(0, condition.dtype()));
    }
    let (x, y) = (node.inputs.tensor(1)?, node.inputs.tensor(2)?);
    let shapes = [condition.metadata(), x.metadata(), y.metadata()].map(|one| one.shape.to_dims());
    let extents = math::broadcast_extents(&[&shapes[0], &shapes[1], &shapes[2]])
        .map_err(|error| node.told(&error))?;
    if let (Tensor::String(x), Tensor::String(y)) = (x, y) {
        let (reading, lists) = (condition.read()?, [x.strings(), y.strings()]);
        let conditions = reading.elements::<Bool>()?;
        let [at, x_at, y_at] = [0, 1, 2].map(|index| position(&shapes[index], &extents));
        let (at, x_at, y_at) = (at?, x_at?, y_at?);
        let shape = tfrt_tensor::TensorShape::new(&extents)?;
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
    let chain = tfrt_tensor::with_element!(dtype, T => {
        math::select_into::<T>(node.execution, condition, x, y, &out)?
    }, else return Err(node.inputs.unsupported(1, dtype)));
    Ok(Outputs::later(out, chain))
}
