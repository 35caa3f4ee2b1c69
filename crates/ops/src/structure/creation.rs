//! Inference of tensors whose extents are stated, counted, or those of another tensor.

use tfrt_bef::DType;

use super::dims_of;
use crate::attrs::AttrValue;
use crate::dim::{Dim, Dims};
use crate::fact::{Fact, MOST_VALUES, product};
use crate::infer::{InferCall, InferError};

pub(super) fn iota(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let one = |at: usize| {
        call.input(at)
            .values
            .as_ref()
            .and_then(|values| values.first().cloned())
            .unwrap_or_default()
    };
    let (start, limit, step) = (one(0), one(1), one(2));
    let distance = &limit - &start;
    let extent = match (distance.value(), step.value()) {
        (_, Some(0)) => return Err(call.error("expected a step that is not 0, found 0")),
        (Some(distance), Some(step)) => {
            let rounded = distance.checked_div(step).and_then(|n| {
                n.checked_add(i64::from(
                    distance.checked_rem(step)? != 0 && (distance < 0) == (step < 0),
                ))
            });
            rounded.map_or(Dim::Unknown, |n| Dim::Known(n.max(0)))
        }
        (None, Some(1)) if distance.is_never_negative() => distance,
        _ => Dim::Unknown,
    };
    let values = start
        .value()
        .zip(step.value())
        .zip(extent.value())
        .and_then(|((start, step), n)| {
            let n = usize::try_from(n).ok().filter(|n| *n <= MOST_VALUES)?;
            let n = i64::try_from(n).ok()?;
            (0..n)
                .map(|index| Some(Dim::Known(start.checked_add(index.checked_mul(step)?)?)))
                .collect()
        });
    let dtype = (0..3).find_map(|at| call.input(at).dtype);
    let dims = [extent].into_iter().collect();
    call.set(
        0,
        Fact {
            values,
            ..Fact::new(dtype, Some(dims))
        },
    );
    Ok(())
}

pub(super) fn fill(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let dims = dims_of(call.input(0));
    let (dtype, value) = match call.attrs.get("value") {
        Some(AttrValue::Tensor(tensor)) => (
            Some(tensor.dtype),
            tensor.ints.filter(|values| values.len() == 1),
        ),
        Some(_) => (None, None),
        None => (Some(DType::F32), None),
    };
    let n = dims.as_deref().and_then(|dims| product(dims).value());
    let n = n
        .and_then(|n| usize::try_from(n).ok())
        .filter(|n| *n <= MOST_VALUES);
    let values = value.zip(n).map(|(value, n)| vec![Dim::Known(value[0]); n]);
    call.set(
        0,
        Fact {
            values,
            ..Fact::new(dtype, dims)
        },
    );
    Ok(())
}

pub(super) fn shape(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let dims = call.input(0).dims.as_ref().map(|dims| {
        let rank = i64::try_from(dims.len()).unwrap_or(i64::MAX);
        let clamped = |at: i64| (if at < 0 { at.saturating_add(rank) } else { at }).clamp(0, rank);
        let place = |at: i64| usize::try_from(clamped(at)).unwrap_or(0);
        let (start, end) = (
            call.attrs.int("start").unwrap_or(0),
            call.attrs.int("end").unwrap_or(rank),
        );
        dims.get(place(start)..place(end)).unwrap_or(&[]).to_vec()
    });
    let n = dims
        .as_ref()
        .map_or(Dim::Unknown, |dims| Dim::from(dims.len()));
    let own = [n].into_iter().collect();
    call.set(
        0,
        Fact {
            values: dims,
            ..Fact::new(Some(DType::I64), Some(own))
        },
    );
    Ok(())
}

pub(super) fn nonzero(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let rank = call.input(0).rank().map_or(Dim::Unknown, Dim::from);
    let dims = [rank, Dim::Unknown].into_iter().collect();
    call.give(0, Some(DType::I64), Some(dims));
    Ok(())
}

pub(super) fn top_k(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let (x, k) = (call.input(0), call.input(1));
    let dtype = x.dtype;
    let count = k
        .values
        .as_ref()
        .and_then(|values| values.first().cloned())
        .unwrap_or_default();
    let dims = match &x.dims {
        Some(dims) => {
            let at = call.axis(call.attrs.int("axis").unwrap_or(-1), dims.len())?;
            let mut dims = dims.clone();
            dims[at] = count;
            Some(dims)
        }
        None => None,
    };
    call.give(0, dtype, dims.clone());
    call.give(1, Some(DType::I64), dims);
    Ok(())
}

pub(super) fn unique(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let x = call.input(0);
    let (dtype, list) = (x.dtype, |dim: Dim| {
        Some([dim].into_iter().collect::<Dims>())
    });
    let (dims, inverse) = match (&x.dims, call.attrs.int("axis")) {
        (_, None) => (list(Dim::Unknown), x.n_elements()),
        (Some(dims), Some(axis)) => {
            let at = call.axis(axis, dims.len())?;
            let mut result = dims.clone();
            result[at] = Dim::Unknown;
            (Some(result), dims[at].clone())
        }
        (None, Some(_)) => (None, Dim::Unknown),
    };
    call.give(0, dtype, dims);
    call.give(1, Some(DType::I64), list(Dim::Unknown));
    call.give(2, Some(DType::I64), list(inverse));
    call.give(3, Some(DType::I64), list(Dim::Unknown));
    Ok(())
}
