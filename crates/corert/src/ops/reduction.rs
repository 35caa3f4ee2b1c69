//! Reductions over the dimensions that an input names: `tf.Mean`, `tf.Max`.

use smallvec::SmallVec;
use tfrt_host::Error;
use tfrt_tensor::math::reduce::{Maximum, Mean, Reduction, reduce_into};
use tfrt_tensor::{Dims, Element, TensorMetadata, TensorShape, with_real};

use super::integers::dimension;
use crate::call::Call;
use crate::definition::{AttrKind, OpDefinition, OpRegistry, Outputs, unsupported};

/// `reduction!("tf.Max", Maximum)` defines an operation for all real numbers.
macro_rules! reduction {
    ($name:literal, $reduction:ty) => {
        OpDefinition::new($name, |call| {
            let dtype = call.dense(0)?.dtype();
            with_real!(dtype, T => reduce::<$reduction, T>(call), else Err(unsupported(call.op(), dtype)))
        })
        .inputs(2)
        .attribute(
            "keep_dims",
            AttrKind::Bool,
            "whether the dimensions stay, with an extent of 1",
        )
        .attribute("T", AttrKind::Type, "the type of the elements")
        .attribute("Tidx", AttrKind::Type, "the type of the dimensions")
        .elements("real numbers")
        .pure()
    };
}

pub(super) fn register(registry: &mut OpRegistry) {
    registry
        .add(reduction!("tf.Mean", Mean).summary(
            "The mean over the dimensions in the second input; of integers, rounded towards 0.",
        ))
        .add(reduction!("tf.Max", Maximum).summary(
            "The largest element over the dimensions in the second input; no number, if one is none.",
        ));
}

/// Reduces the first input over the dimensions in the second.
pub(super) fn reduce<R: Reduction<T, Output = T>, T: Element>(
    call: &mut Call<'_>,
) -> Result<Outputs, Error> {
    let x = call.dense(0)?;
    let extents = x.shape().to_dims();
    let dimensions = reduced(call, extents.len())?;
    let keeps = call.attrs().bool("keep_dims")?.unwrap_or(false);
    let left = extents.iter().enumerate().filter_map(|(index, extent)| {
        match (dimensions.contains(&index), keeps) {
            (false, _) => Some(*extent),
            (true, true) => Some(1),
            (true, false) => None,
        }
    });
    let shape = TensorShape::new(&left.collect::<Dims>())?;
    let out = call.allocate(TensorMetadata::new(x.dtype(), shape))?;
    let chain = reduce_into::<R, T>(call.execution(), x, &dimensions, &out)
        .map_err(|error| call.error(format_args!("{}", error.message())))?;
    call.made(out, chain)
}

/// The dimensions that go.
fn reduced(call: &Call<'_>, rank: usize) -> Result<Dims, Error> {
    let op = call.op();
    let shape = call.dense(1)?.shape();
    if shape.rank() > 1 {
        return Err(call.error(format_args!(
            "expected reduction indices in a vector, found {shape}"
        )));
    }
    let indices = call.integers(1, "reduction indices")?;
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
                "{op} reduction indices must be unique: found {:?}",
                &indices[..]
            )));
        }
    }
    Ok(dimensions)
}
