//! What is made along dimensions: `tf.Sum`, `tf.ArgMax`.

use smallvec::smallvec;
use tfrt_host::{DType, Error};
use tfrt_tensor::math::cast::{Casting, cast_into};
use tfrt_tensor::math::reduce::{Greater, Sum, Ties, positions_into, reduce_into};
use tfrt_tensor::{Dims, TensorMetadata, TensorShape, with_number, with_real};

use super::arithmetic::typed;
use super::elements::Elements;
use super::integers::dimension;
use super::reduction::reduce;
use crate::attributes::OpAttrsRef;
use crate::call::Call;
use crate::definition::{
    AttrKind, MetadataCall, OpDefinition, OpRegistry, Outputs, ResultMetadata, unsupported,
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
            typed(OpDefinition::new("tf.ArgMax", |call| {
                let rank = call.dense(0)?.shape().rank();
                let axis = position_axis(call.op(), call.attrs(), rank)?;
                positions(call, axis)
            }))
            .summary("Where along a dimension the largest element is, the first of several.")
            .elements(Elements::Reals.text())
            .inputs(1)
            .attribute(
                "axis",
                AttrKind::Integer,
                "the dimension, from the last on if negative",
            )
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

/// The dimension that an attribute names.
///
/// # Errors
///
/// `InvalidArgument` if there is none.
fn named(op: &str, axis: i64, rank: usize) -> Result<usize, Error> {
    dimension(axis, rank).ok_or_else(|| {
        Error::invalid_argument(format!("{op}: there is no dimension {axis} of {rank}"))
    })
}

/// The dimensions that are summed up, in order.
fn summed(op: &str, attrs: OpAttrsRef<'_>, rank: usize) -> Result<Dims, Error> {
    let Some(axes) = attrs.integers("axes")? else {
        return Ok((0..rank).collect());
    };
    let mut list: Dims = axes
        .iter()
        .map(|axis| named(op, *axis, rank))
        .collect::<Result<_, _>>()?;
    list.sort_unstable();
    if let Some(twice) = list.windows(2).find(|pair| pair[0] == pair[1]) {
        let twice = twice[0];
        return Err(Error::invalid_argument(format!(
            "{op}: dimension {twice} is named twice"
        )));
    }
    Ok(list)
}

fn sum_metadata(call: &MetadataCall<'_>) -> Result<ResultMetadata, Error> {
    let [x, axes @ ..] = call.inputs else {
        let op = call.op;
        return Err(Error::invalid_argument(format!("{op} expects an input")));
    };
    Elements::Numbers.expect(call.op, x.dtype)?;
    if !axes.is_empty() {
        return match call.attrs.value("axes") {
            None => Ok(ResultMetadata::new()),
            Some(_) => Err(Error::invalid_argument(format!(
                "{}: expected dimensions in the second input or in attribute 'axes', found both",
                call.op
            ))),
        };
    }
    let axes = summed(call.op, call.attrs, x.shape.rank())?;
    let keeps = call.attrs.bool("keep_dims")?.unwrap_or(false);
    let extents = x.shape.extents().enumerate();
    let extents: Dims = extents
        .filter_map(|(index, extent)| match (axes.contains(&index), keeps) {
            (false, _) => Some(extent),
            (true, true) => Some(1),
            (true, false) => None,
        })
        .collect();
    Ok(smallvec![TensorMetadata::new(
        x.dtype,
        TensorShape::new(&extents)?
    )])
}

fn sum(call: &mut Call<'_>) -> Result<Outputs, Error> {
    if call.n_inputs() > 1 {
        let dtype = call.dense(0)?.dtype();
        return with_number!(dtype, T => reduce::<Sum, T>(call), else
            Err(unsupported(call.op(), dtype)));
    }
    let (x, out) = (call.dense(0)?, call.output(0)?);
    let axes = summed(call.op(), call.attrs(), x.shape().rank())?;
    let chain = with_number!(x.dtype(), T =>
        reduce_into::<Sum, T>(call.execution(), x, &axes, &out)?, else
        return Err(unsupported(call.op(), x.dtype())));
    call.made(out, chain)
}

/// The dimension along which a position is looked for.
fn position_axis(op: &str, attrs: OpAttrsRef<'_>, rank: usize) -> Result<usize, Error> {
    let axis = match attrs.integer("axis")? {
        Some(axis) => Some(axis),
        None => attrs.integer("dimension")?,
    };
    match axis {
        Some(axis) => named(op, axis, rank),
        None => Err(crate::attributes::missing(op, "axis")),
    }
}

fn positions_metadata(call: &MetadataCall<'_>) -> Result<ResultMetadata, Error> {
    let [x] = call.inputs else {
        let op = call.op;
        return Err(Error::invalid_argument(format!("{op} expects 1 input")));
    };
    Elements::Reals.expect(call.op, x.dtype)?;
    let axis = position_axis(call.op, call.attrs, x.shape.rank())?;
    let dtype = call.attrs.dtype("output_type")?.unwrap_or(DType::I64);
    if !matches!(dtype, DType::I32 | DType::I64) {
        let op = call.op;
        return Err(Error::invalid_argument(format!(
            "{op}: attribute 'output_type': expected i32 or i64, found {dtype}"
        )));
    }
    without(x, axis, dtype)
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

/// Finds where the largest elements along a dimension are; the result's type is what the metadata function said.
pub(super) fn positions(call: &mut Call<'_>, axis: usize) -> Result<Outputs, Error> {
    let (x, result) = (call.dense(0)?, call.result(0)?);
    let wide = TensorMetadata::new(DType::I64, result.shape.clone());
    let wide = call.allocate(wide)?;
    let chain = with_real!(x.dtype(), T =>
        positions_into::<Greater, T>(call.execution(), x, axis, Ties::First, &wide)?, else
        return Err(unsupported(call.op(), x.dtype())));
    if result.dtype == DType::I64 {
        return call.made(wide, chain);
    }
    let (out, execution) = (call.output(0)?, call.execution().clone());
    let written = out.clone();
    let chain = chain.and_then_value(move |_| {
        cast_into(&execution, Casting::default(), &wide, &written)
            .unwrap_or_else(tfrt_host::AsyncValue::from_error)
    });
    call.made(out, chain)
}
