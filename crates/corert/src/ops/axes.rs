//! What is made along dimensions: `tf.Sum`, `tf.ArgMax`.

use smallvec::smallvec;
use tfrt_host::{DType, Error};
use tfrt_tensor::math::Family;
use tfrt_tensor::math::cast::{Casting, cast_into};
use tfrt_tensor::math::reduce::{Extremum, Reduction, Ties, positions_into};
use tfrt_tensor::{TensorMetadata, TensorShape};

use super::arithmetic::typed;
use super::elements::Elements;
use super::integers::{Integers, named_axis};
use super::reduction::{left, reduce, reduce_over, reduced_metadata};
use crate::attributes::OpAttrsRef;
use crate::call::Call;
use crate::definition::{
    AttrKind, MetadataCall, OpDefinition, OpRegistry, Outputs, ResultMetadata, expect_family,
};

pub(super) fn register(registry: &mut OpRegistry) {
    registry
        .add(
            typed(OpDefinition::new("tf.Sum", sum))
                .summary(
                    "The sum over some dimensions, which the second input names, or an attribute; integers wrap around.",
                )
                .elements(Elements::Numbers.text())
                .inputs_from(1..=2)
                .attribute(
                    "axes",
                    AttrKind::Integers,
                    "the dimensions if there is no second input, from the last on if negative; all of them",
                )
                .attribute("Tidx", AttrKind::Type, "the type of the second input")
                .attribute(
                    "keep_dims",
                    AttrKind::Bool,
                    "whether the result has these dimensions, too, with extent 1; false",
                )
                .metadata(sum_metadata)
                .pure(),
        )
        .add(
            typed(OpDefinition::new("tf.ArgMax", largest))
            .summary("Where along a dimension, which the second input names, or an attribute, the largest element is, the first of several.")
            .elements(Elements::Reals.text())
            .inputs_from(1..=2)
            .attribute(
                "axis",
                AttrKind::Integer,
                "the dimension if there is no second input, from the last on if negative",
            )
            .attribute("Tidx", AttrKind::Type, "the type of the second input")
            .attribute("dimension", AttrKind::Integer, "the same by its other name")
            .attribute(
                "output_type",
                AttrKind::Type,
                "i32 or i64, which is the default",
            )
            .metadata(positions_metadata)
            .pure(),
        );
}

/// The dimensions that an attribute says are summed up.
fn summed(attrs: OpAttrsRef<'_>, rank: usize) -> Result<Integers, Error> {
    // A tensor has less dimensions than the largest integer.
    let all = || (0..rank as i64).collect();
    Ok(attrs
        .integers("axes")?
        .map_or_else(all, Integers::from_iter))
}

fn sum_metadata(call: &MetadataCall<'_>) -> Result<ResultMetadata, Error> {
    match call.inputs {
        [x] => {
            Elements::Numbers.expect(call.op, x.dtype)?;
            let axes = summed(call.attrs, x.shape.rank())?;
            Ok(smallvec![left(call.op, call.attrs, x, &axes)?.0])
        }
        _ if call.attrs.value("axes").is_some() => Err(Error::invalid_argument(format!(
            "{}: expected dimensions in the second input or in attribute 'axes', found both",
            call.op
        ))),
        _ => reduced_metadata(call, Elements::Numbers),
    }
}

fn sum(call: &mut Call<'_>) -> Result<Outputs, Error> {
    let x = call.dense(0)?;
    let rank = x.shape().rank();
    let by_attribute = match call.n_inputs() {
        1 => Some(summed(call.attrs(), rank)?),
        _ => None,
    };
    match &by_attribute {
        Some(axes) => reduce_over(call, Reduction::Sum, axes),
        None => reduce(call, Reduction::Sum),
    }
}

/// The dimension along which a position is looked for, if an attribute says it and not an input.
fn stated_axis(op: &str, attrs: OpAttrsRef<'_>, by_input: bool) -> Result<Option<i64>, Error> {
    let axis = match attrs.integer("axis")? {
        Some(axis) => Some(axis),
        None => attrs.integer("dimension")?,
    };
    match (axis, by_input) {
        (Some(_), true) => Err(Error::invalid_argument(format!(
            "{op}: expected a dimension in the second input or in attribute 'axis', found both"
        ))),
        (None, false) => Err(crate::attributes::missing(op, "axis")),
        (axis, _) => Ok(axis),
    }
}

/// The type of positions.
fn position_type(op: &str, attrs: OpAttrsRef<'_>) -> Result<DType, Error> {
    match attrs.dtype("output_type")?.unwrap_or(DType::I64) {
        dtype @ (DType::I32 | DType::I64) => Ok(dtype),
        dtype => Err(Error::invalid_argument(format!(
            "{op}: attribute 'output_type': expected i32 or i64, found {dtype}"
        ))),
    }
}

fn positions_metadata(call: &MetadataCall<'_>) -> Result<ResultMetadata, Error> {
    let op = call.op;
    let Some(x) = call.inputs.first() else {
        return Err(Error::invalid_argument(format!("{op} expects an input")));
    };
    Elements::Reals.expect(op, x.dtype)?;
    let dtype = position_type(op, call.attrs)?;
    let axis = match stated_axis(op, call.attrs, call.inputs.len() > 1)? {
        Some(axis) => Some(axis),
        None => call.integer(1, "an axis")?,
    };
    match axis {
        Some(axis) => without(x, named_axis(op, axis, x.shape.rank())?, dtype),
        None => Ok(ResultMetadata::new()),
    }
}

fn largest(call: &mut Call<'_>) -> Result<Outputs, Error> {
    let (op, attrs) = (call.op(), call.attrs());
    let axis = match stated_axis(op, attrs, call.n_inputs() > 1)? {
        Some(axis) => axis,
        None => call.integer(1, "an axis")?,
    };
    let axis = named_axis(op, axis, call.dense(0)?.shape().rank())?;
    positions(call, axis, position_type(op, attrs)?)
}

/// A tensor without a dimension.
pub(super) fn without(
    x: &TensorMetadata,
    axis: usize,
    dtype: DType,
) -> Result<ResultMetadata, Error> {
    let mut extents = x.shape.to_dims();
    extents.remove(axis);
    Ok(smallvec![TensorMetadata::new(
        dtype,
        TensorShape::new(&extents)?
    )])
}

/// Finds where the largest elements along a dimension are.
pub(super) fn positions(call: &mut Call<'_>, axis: usize, dtype: DType) -> Result<Outputs, Error> {
    let x = call.dense(0)?;
    let shape = without(x.metadata(), axis, dtype)?.remove(0).shape;
    let wide = call.allocate(TensorMetadata::new(DType::I64, shape.clone()))?;
    expect_family(call.op(), Family::Reals, x.dtype())?;
    let greatest = Extremum::Greatest;
    let chain = positions_into(call.execution(), greatest, x, axis, Ties::First, &wide)?;
    if dtype == DType::I64 {
        return call.made(wide, chain);
    }
    let out = call.allocate(TensorMetadata::new(dtype, shape))?;
    let (execution, written) = (call.execution().clone(), out.clone());
    let chain = chain.and_then_value(move |_| {
        cast_into(&execution, Casting::default(), &wide, &written)
            .unwrap_or_else(tfrt_host::AsyncValue::from_error)
    });
    call.made(out, chain)
}
