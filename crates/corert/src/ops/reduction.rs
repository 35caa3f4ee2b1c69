//! Reductions over the dimensions that an input names: `tf.Mean`, `tf.Max`.

use smallvec::{SmallVec, smallvec};
use tfrt_host::Error;
use tfrt_tensor::math::reduce::{Reduction, reduce_into};
use tfrt_tensor::{Dims, TensorMetadata, TensorShape};

use super::elements::Elements;
use super::integers::dimension;
use crate::attributes::OpAttrsRef;
use crate::call::Call;
use crate::definition::{
    AttrKind, MetadataCall, OpDefinition, OpRegistry, Outputs, ResultMetadata, expect_family,
};

/// An operation that reduces all real numbers.
fn reduction(name: &'static str, reduction: Reduction) -> OpDefinition {
    OpDefinition::new(name, move |call| reduce(call, reduction))
        .inputs(2)
        .attribute(
            "keep_dims",
            AttrKind::Bool,
            "whether the dimensions stay, with an extent of 1",
        )
        .attribute("T", AttrKind::Type, "the type of the elements")
        .attribute("Tidx", AttrKind::Type, "the type of the dimensions")
        .elements(Elements::Reals.text())
        .metadata(|call| {
            let results = reduced_metadata(call, Elements::Reals)?;
            expect_elements(call, &results)?;
            Ok(results)
        })
        .pure()
}

pub(super) fn register(registry: &mut OpRegistry) {
    registry
        .add(reduction("tf.Mean", Reduction::Mean).summary(
            "The mean over the dimensions in the second input; of integers, rounded towards 0. Of no elements there is none: an error, where \
             TensorFlow gives NaN.",
        ))
        .add(reduction("tf.Max", Reduction::Maximum).summary(
            "The largest element over the dimensions in the second input; no number, if one is none. Of no elements there is none: an \
             error, where TensorFlow gives -inf.",
        ));
}

/// Type and shape of the first input without the dimensions in the second, if these are there.
pub(super) fn reduced_metadata(
    call: &MetadataCall<'_>,
    elements: Elements,
) -> Result<ResultMetadata, Error> {
    let [x, indices] = call.inputs else {
        let op = call.op;
        return Err(Error::invalid_argument(format!("{op} expects 2 inputs")));
    };
    elements.expect(call.op, x.dtype)?;
    expect_indices(call.op, &indices.shape)?;
    match call.integers(1, WHAT)? {
        Some(indices) => Ok(smallvec![left(call.op, call.attrs, x, &indices)?.0]),
        None => Ok(ResultMetadata::new()),
    }
}

/// Tells whether there are elements to reduce, if there are results that need them.
fn expect_elements(call: &MetadataCall<'_>, results: &[TensorMetadata]) -> Result<(), Error> {
    let is_empty = |metadata: &TensorMetadata| metadata.shape.n_elements() == Some(0);
    let lacks = call.inputs.first().is_some_and(|x| is_empty(x));
    match lacks && results.iter().any(|result| !is_empty(result)) {
        true => Err(Error::invalid_argument(format!(
            "{}: there is nothing to reduce, and no result for that",
            call.op
        ))),
        false => Ok(()),
    }
}

/// Reduces the first input over the dimensions in the second.
pub(super) fn reduce(call: &mut Call<'_>, reduction: Reduction) -> Result<Outputs, Error> {
    expect_family(call.op(), reduction.family(), call.dense(0)?.dtype())?;
    expect_indices(call.op(), call.dense(1)?.shape())?;
    let indices = call.integers(1, WHAT)?;
    reduce_over(call, reduction, &indices)
}

/// Reduces the first input over dimensions.
pub(super) fn reduce_over(
    call: &Call<'_>,
    reduction: Reduction,
    indices: &[i64],
) -> Result<Outputs, Error> {
    let x = call.dense(0)?;
    expect_family(call.op(), reduction.family(), x.dtype())?;
    let (metadata, dimensions) = left(call.op(), call.attrs(), x.metadata(), indices)?;
    let out = call.allocate(metadata)?;
    let chain = reduce_into(call.execution(), reduction, x, &dimensions, &out)
        .map_err(|error| call.error(format_args!("{}", error.message())))?;
    call.made(out, chain)
}

const WHAT: &str = "reduction indices";

fn expect_indices(op: &str, shape: &TensorShape) -> Result<(), Error> {
    match shape.rank() {
        0 | 1 => Ok(()),
        _ => Err(Error::invalid_argument(format!(
            "{op}: expected {WHAT} in a vector, found {shape}"
        ))),
    }
}

/// What is left of a tensor, and the dimensions that go.
///
/// # Errors
///
/// `InvalidArgument` if there is no such dimension, or if one is named twice.
pub(super) fn left(
    op: &str,
    attrs: OpAttrsRef<'_>,
    x: &TensorMetadata,
    indices: &[i64],
) -> Result<(TensorMetadata, Dims), Error> {
    let dimensions = reduced(op, indices, x.shape.rank())?;
    let keeps = attrs.bool("keep_dims")?.unwrap_or(false);
    let left = x.shape.extents().enumerate().filter_map(|(index, extent)| {
        match (dimensions.contains(&index), keeps) {
            (false, _) => Some(extent),
            (true, true) => Some(1),
            (true, false) => None,
        }
    });
    let shape = TensorShape::new(&left.collect::<Dims>())?;
    Ok((TensorMetadata::new(x.dtype, shape), dimensions))
}

/// The dimensions that go.
fn reduced(op: &str, indices: &[i64], rank: usize) -> Result<Dims, Error> {
    let dimensions = indices.iter().map(|index| {
        dimension(*index, rank).ok_or_else(|| {
            Error::invalid_argument(format!(
                "{op} reduction index must be in [-input_rank, input_rank) range: found {index} for rank {rank}"
            ))
        })
    });
    let dimensions: Dims = dimensions.collect::<Result<_, _>>()?;
    let mut seen: SmallVec<[bool; 8]> = SmallVec::from_elem(false, rank);
    for dimension in &dimensions {
        if std::mem::replace(&mut seen[*dimension], true) {
            return Err(Error::invalid_argument(format!(
                "{op} reduction indices must be unique: found {indices:?}"
            )));
        }
    }
    Ok(dimensions)
}
