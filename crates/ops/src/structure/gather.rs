//! Inference of elements and slices that indices choose.

use crate::dim::{Dim, Dims};
use crate::fact::Fact;
use crate::infer::{InferCall, InferError, axis_of};

pub(super) fn gather(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let (x, indices) = (call.input(0), call.input(1));
    let axis = call.attrs.int("axis").unwrap_or(0);
    let dims = match (&x.dims, &indices.dims) {
        (Some(dims), Some(places)) => {
            let at = call.axis(axis, dims.len())?;
            let mut result = Dims::from(&dims[..at]);
            result.extend(places.iter().cloned());
            result.extend(dims[at + 1..].iter().cloned());
            Some(result)
        }
        _ => None,
    };
    let values = x
        .values
        .as_ref()
        .filter(|_| x.rank() == Some(1))
        .and_then(|values| {
            let pick = |place: &Dim| {
                let at = axis_of(place.value()?, values.len())?;
                values.get(at).cloned()
            };
            let picked = indices
                .values
                .as_ref()?
                .iter()
                .map(|place| pick(place).unwrap_or_default());
            Some(picked.collect())
        });
    let y = Fact {
        values,
        ..Fact::new(x.dtype, dims)
    };
    call.set(0, y);
    Ok(())
}

pub(super) fn gather_nd(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let (x, indices) = (call.input(0), call.input(1));
    let batch = usize::try_from(call.attrs.int("batch_dims").unwrap_or(0)).unwrap_or(0);
    let dims = match (&x.dims, indices.dims.as_deref()) {
        (Some(dims), Some([outer @ .., last])) => last.value().and_then(|depth| {
            let depth = usize::try_from(depth).ok()?;
            let rest = dims.get(batch.checked_add(depth)?..)?;
            Some(outer.iter().chain(rest).cloned().collect())
        }),
        _ => None,
    };
    let dtype = x.dtype;
    call.give(0, dtype, dims);
    Ok(())
}

pub(super) fn gather_elements(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let (dtype, dims) = (call.input(0).dtype, call.input(1).dims.clone());
    call.give(0, dtype, dims);
    Ok(())
}

pub(super) fn one_hot(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let (indices, depth) = (call.input(0), call.input(1));
    let axis = call.attrs.int("axis").unwrap_or(-1);
    let depth = depth
        .values
        .as_ref()
        .and_then(|values| values.first().cloned());
    let dims = match &indices.dims {
        Some(dims) => {
            let at = call.axis(axis, dims.len() + 1)?;
            let mut dims = dims.clone();
            dims.insert(at, depth.unwrap_or_default());
            Some(dims)
        }
        None => None,
    };
    let dtype = call.input(2).dtype;
    call.give(0, dtype, dims);
    Ok(())
}
