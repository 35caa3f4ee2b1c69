//! Reductions over dimensions, and positions of extrema.

use tfrt_host::Error;
use tfrt_tensor::math::Family;
use tfrt_tensor::math::number::Real;
use tfrt_tensor::math::reduce::{Extremum, Reduction, Ties, positions_into, reduce_into};
use tfrt_tensor::{DType, DenseHostTensor, Dims, TensorMetadata};

use super::cast::converted;
use super::outputs::IntoValue;
use super::{NodeCall, Operations, Outputs, with_real};

pub(super) const OPERATIONS: &Operations = &[("arg", position), ("reduce", reduce)];

/// `reduce`: reduces along axes, as `kind` says.
fn reduce(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    match node.kind()? {
        "sum" => of_dimensions(node, Reduction::Sum),
        "mean" => of_dimensions(node, Reduction::Mean),
        "prod" => of_dimensions(node, Reduction::Product),
        "max" => extremum::<true>(node),
        "min" => extremum::<false>(node),
        "l1" => of_dimensions(node, Reduction::SumOfSizes),
        "l2" => through_f64(node, Reduction::Norm),
        "log_sum" => through_f64(node, Reduction::LogSum),
        "log_sum_exp" => through_f64(node, Reduction::LogSumExp),
        "sum_square" => of_dimensions(node, Reduction::SumOfSquares),
        other => {
            let kinds = "sum, mean, prod, max, min, l1, l2, log_sum, log_sum_exp or sum_square";
            Err(node.unknown_kind(other, kinds))
        }
    }
}

/// The dimensions that are reduced, and the shape of the result.
struct ReductionShape {
    dimensions: Dims,
    /// The extents of the result, without the reduced dimensions or with extents of 1 there.
    output: Dims,
    /// The number of elements that become one.
    n_reduced: usize,
}

impl ReductionShape {
    /// Reads the dimensions, which are an operand, or before that an attribute; without them all are reduced, or with
    /// `none_if_empty` none.
    fn of(node: &NodeCall<'_>, extents: &[usize]) -> Result<ReductionShape, Error> {
        let axes = match node.attributes.integers("axes")? {
            Some(axes) => axes.to_vec(),
            None => node.inputs.optional_integers(1)?.unwrap_or_default(),
        };
        let mut dimensions = Dims::from_vec(node.dimensions(&axes, extents.len())?);
        if dimensions.is_empty() && !node.attributes.flag("none_if_empty", false)? {
            dimensions.extend(0..extents.len());
        }
        let keeps = node.attributes.flag("keep", true)?;
        let mut output = Dims::new();
        let mut n_reduced = 1_usize;
        for (dimension, extent) in extents.iter().enumerate() {
            match dimensions.contains(&dimension) {
                false => output.push(*extent),
                true => {
                    n_reduced = n_reduced.saturating_mul(*extent);
                    if keeps {
                        output.push(1);
                    }
                }
            }
        }
        Ok(ReductionShape {
            dimensions,
            output,
            n_reduced,
        })
    }
}

/// Reduces numbers of the types that the reduction is defined for.
fn of_dimensions(node: &NodeCall<'_>, reduction: Reduction) -> Result<Outputs, Error> {
    let dtype = node.inputs.expect(0, Family::Reals)?;
    let x = node.inputs.dense(0)?;
    let shape = ReductionShape::of(node, &x.shape().to_dims())?;
    let out = node.output(dtype, &shape.output)?;
    if shape.n_reduced == 0 && matches!(reduction, Reduction::Mean) && !dtype.is_integer() {
        // 0 / 0, as NumPy, PyTorch and TensorFlow have it; ONNX leaves it open.
        return with_real!(dtype, T => {
            out.write()?.elements_mut::<T>()?.fill(T::from_f64(f64::NAN));
            Ok(out.into())
        }, else Err(node.inputs.unsupported(0, dtype)));
    }
    let chain = reduce_into(node.execution, reduction, x, &shape.dimensions, &out)
        .map_err(|error| node.with_name(&error))?;
    Ok(Outputs::later(out, chain))
}

/// Reduces floats; integers are converted to them and back.
fn through_f64(node: &NodeCall<'_>, reduction: Reduction) -> Result<Outputs, Error> {
    let x = node.inputs.dense(0)?;
    match x.dtype().is_integer() {
        true => of_integers(node, reduction, x),
        false => of_dimensions(node, reduction),
    }
}

/// Reduces integers as `f64`, and converts back.
fn of_integers(
    node: &NodeCall<'_>,
    reduction: Reduction,
    x: &DenseHostTensor,
) -> Result<Outputs, Error> {
    let dtype = x.dtype();
    let shape = ReductionShape::of(node, &x.shape().to_dims())?;
    let (wide, chain) = converted(node, x, DType::F64)?;
    let sums = node.output(DType::F64, &shape.output)?;
    let out = node.output(dtype, &shape.output)?;
    let (execution, written, reduced) = (node.execution.clone(), sums.clone(), shape.dimensions);
    let chain = chain.and_then_value(move |_| {
        reduce_into(&execution, reduction, &wide, &reduced, &written).into_value()
    });
    let (execution, written) = (node.execution.clone(), out.clone());
    let chain = chain.and_then_value(move |_| {
        let casting = tfrt_tensor::math::cast::Casting::default();
        tfrt_tensor::math::cast::cast_into(&execution, casting, &sums, &written).into_value()
    });
    Ok(Outputs::later(out, chain))
}

/// Finds the largest or smallest elements; of an empty slice the lowest or highest number. Truth values are numbers
/// here.
fn extremum<const LARGEST: bool>(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let x = node.inputs.dense(0)?;
    let shape = ReductionShape::of(node, &x.shape().to_dims())?;
    let (dtype, seen) = match x.dtype() {
        DType::I1 => (DType::Ui8, seen_as(x, DType::Ui8)?),
        dtype => (dtype, x.clone()),
    };
    with_real!(dtype, T => {
        let out = node.output(dtype, &shape.output)?;
        let result = seen_as(&out, x.dtype())?;
        if shape.n_reduced == 0 {
            let limit = if LARGEST { T::LOWEST } else { T::HIGHEST };
            let is_truth = x.dtype() == DType::I1;
            let limit = if is_truth && !LARGEST { <T as tfrt_tensor::math::number::Number>::ONE } else { limit };
            out.write()?.elements_mut::<T>()?.fill(limit);
            return Ok(result.into());
        }
        let reduction = match LARGEST {
            true => Reduction::Maximum,
            false => Reduction::Minimum,
        };
        let chain = reduce_into(node.execution, reduction, &seen, &shape.dimensions, &out)?;
        Ok(Outputs::later(result, chain))
    }, else Err(node.inputs.unsupported(0, dtype)))
}

/// Reinterprets elements as another type of the same size.
fn seen_as(x: &DenseHostTensor, dtype: DType) -> Result<DenseHostTensor, Error> {
    DenseHostTensor::new(
        TensorMetadata::new(dtype, x.shape().clone()),
        x.buffer().clone(),
    )
}

/// `arg`: the position of the largest element along an axis, or of the smallest, as `kind` says.
fn position(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let extremum = match node.kind()? {
        "max" => Extremum::Greatest,
        "min" => Extremum::Least,
        other => return Err(node.unknown_kind(other, "max or min")),
    };
    let x = node.inputs.dense(0)?;
    let extents = x.shape().to_dims();
    if extents.is_empty() {
        // A number is the largest of itself.
        return Ok(node.tensor_of(&[], &[0_i64])?.into());
    }
    let dimension = node.axis(node.attributes.integer_or("axis", 0)?, extents.len())?;
    let keeps = node.attributes.flag("keep", true)?;
    let takes_last = node.attributes.flag("last", false)?;
    let ties = if takes_last { Ties::Last } else { Ties::First };
    let mut output = extents;
    match keeps {
        true => output[dimension] = 1,
        false => drop(output.remove(dimension)),
    }
    let out = node.output(DType::I64, &output)?;
    node.inputs.expect(0, Family::Reals)?;
    let chain = positions_into(node.execution, extremum, x, dimension, ties, &out);
    let chain = chain.map_err(|error| node.with_name(&error))?;
    Ok(Outputs::later(out, chain))
}
