//! Reductions over dimensions, and positions of extrema.

use tfrt_host::Error;
use tfrt_tensor::math::Family;
use tfrt_tensor::math::number::Real;
use tfrt_tensor::math::reduce::{Extremum, Reduction, Ties, positions_into, reduce_into};
use tfrt_tensor::{DType, DenseHostTensor, Dims, TensorMetadata};

use super::cast::converted;
use super::outputs::IntoValue;
use super::{Node, Operations, Outputs, with_real};

pub(super) const OPERATIONS: &Operations = &[
    ("ArgMax", |node| position(node, true)),
    ("ArgMin", |node| position(node, false)),
    ("ReduceL1", |node| {
        of_dimensions(node, Reduction::SumOfSizes)
    }),
    ("ReduceL2", |node| through_f64(node, Reduction::Norm)),
    ("ReduceLogSum", |node| through_f64(node, Reduction::LogSum)),
    ("ReduceLogSumExp", |node| {
        through_f64(node, Reduction::LogSumExp)
    }),
    ("ReduceMax", |node| extremum::<true>(node)),
    ("ReduceMean", |node| of_dimensions(node, Reduction::Mean)),
    ("ReduceMin", |node| extremum::<false>(node)),
    ("ReduceProd", |node| of_dimensions(node, Reduction::Product)),
    ("ReduceSum", |node| of_dimensions(node, Reduction::Sum)),
    ("ReduceSumSquare", |node| {
        of_dimensions(node, Reduction::SumOfSquares)
    }),
];

/// Which dimensions go, and what is left.
struct Shape {
    dimensions: Dims,
    /// With the dimensions that go, of extent 1, or without.
    output: Dims,
    /// How many elements become one.
    n_reduced: usize,
}

impl Shape {
    /// Dimensions are an operand, or before that an attribute; without them all go, or with
    /// `noop_with_empty_axes` none.
    fn of(node: &Node<'_>, extents: &[usize]) -> Result<Shape, Error> {
        let axes = match node.attributes.integers("axes")? {
            Some(axes) => axes.to_vec(),
            None => node.inputs.optional_integers(1)?.unwrap_or_default(),
        };
        let mut dimensions = Dims::new();
        for axis in axes {
            let dimension = node.axis(axis, extents.len())?;
            if !dimensions.contains(&dimension) {
                dimensions.push(dimension);
            }
        }
        if dimensions.is_empty() && !node.attributes.flag("noop_with_empty_axes", false)? {
            dimensions.extend(0..extents.len());
        }
        let keeps = node.attributes.flag("keepdims", true)?;
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
        Ok(Shape {
            dimensions,
            output,
            n_reduced,
        })
    }
}

/// A reduction of the numbers that it is defined for.
fn of_dimensions(node: &Node<'_>, reduction: Reduction) -> Result<Outputs, Error> {
    let dtype = node.inputs.expect(0, Family::Reals)?;
    let x = node.inputs.dense(0)?;
    let shape = Shape::of(node, &x.shape().to_dims())?;
    let out = node.output(dtype, &shape.output)?;
    let chain = reduce_into(node.execution, reduction, x, &shape.dimensions, &out)
        .map_err(|error| node.told(&error))?;
    Ok(Outputs::later(out, chain))
}

/// A reduction of floats, for which integers are converted on the way.
fn through_f64(node: &Node<'_>, reduction: Reduction) -> Result<Outputs, Error> {
    let x = node.inputs.dense(0)?;
    match x.dtype().is_integer() {
        true => of_integers(node, reduction, x),
        false => of_dimensions(node, reduction),
    }
}

/// Reduces integers as `f64`, and converts back.
fn of_integers(
    node: &Node<'_>,
    reduction: Reduction,
    x: &DenseHostTensor,
) -> Result<Outputs, Error> {
    let dtype = x.dtype();
    let shape = Shape::of(node, &x.shape().to_dims())?;
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

/// The largest or smallest elements; of nothing the lowest or highest number. Truth values are numbers here.
fn extremum<const LARGEST: bool>(node: &Node<'_>) -> Result<Outputs, Error> {
    let x = node.inputs.dense(0)?;
    let shape = Shape::of(node, &x.shape().to_dims())?;
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

/// The same bytes as elements of another type of that size.
fn seen_as(x: &DenseHostTensor, dtype: DType) -> Result<DenseHostTensor, Error> {
    DenseHostTensor::new(
        TensorMetadata::new(dtype, x.shape().clone()),
        x.buffer().clone(),
    )
}

/// `ArgMax` and `ArgMin`
fn position(node: &Node<'_>, is_largest: bool) -> Result<Outputs, Error> {
    let x = node.inputs.dense(0)?;
    let extents = x.shape().to_dims();
    if extents.is_empty() {
        // A number is the largest of itself.
        return Ok(node.tensor_of(&[], &[0_i64])?.into());
    }
    let dimension = node.axis(node.attributes.integer_or("axis", 0)?, extents.len())?;
    let keeps = node.attributes.flag("keepdims", true)?;
    let takes_last = node.attributes.flag("select_last_index", false)?;
    let ties = if takes_last { Ties::Last } else { Ties::First };
    let mut output = extents;
    match keeps {
        true => output[dimension] = 1,
        false => drop(output.remove(dimension)),
    }
    let out = node.output(DType::I64, &output)?;
    node.inputs.expect(0, Family::Reals)?;
    let extremum = match is_largest {
        true => Extremum::Greatest,
        false => Extremum::Least,
    };
    let chain = positions_into(node.execution, extremum, x, dimension, ties, &out);
    let chain = chain.map_err(|error| node.told(&error))?;
    Ok(Outputs::later(out, chain))
}
