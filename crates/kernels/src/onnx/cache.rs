//! Caches of keys and values, which are written in place where nobody else sees it.
//!
//! A cache that grows ([`GrowableTensor`]) is appended to, whoever holds it. A buffer whose extent is its room is written
//! over if nobody else holds it ([`NodeCall::own_target`]), else copied.

use tfrt_host::{AsyncValue, Chain, Error};
use tfrt_tensor::math::layout_copy::{EndPolicy, append_sequences, write_sequences};
use tfrt_tensor::{DenseHostTensor, GrowableTensor, Tensor};

use super::opaque::{OpaqueTensors, extents};
use super::{NodeCall, Operations, Outputs};

pub(super) const OPERATIONS: &Operations = &[
    ("onnx.TensorScatter", tensor_scatter),
    ("update_cache", update_cache),
];

/// Appends tensors to one that grows.
///
/// # Errors
///
/// Those of [`GrowableTensor::appended`].
pub(super) fn appended(
    node: &NodeCall<'_>,
    first: &GrowableTensor,
    more: &[&Tensor],
) -> Result<Tensor, Error> {
    let more = more.iter().map(|tensor| tensor.as_dense());
    let more: Vec<&DenseHostTensor> = more.collect::<Result<_, _>>()?;
    let allocator = node.execution.host().allocator();
    let grown = first.appended(allocator, &more);
    grown
        .map(Tensor::from)
        .map_err(|error| node.with_name(&error))
}

/// `TensorScatter(past, update, starts)`, attributes `axis`, `mode`: writes an update to a cache.
fn tensor_scatter(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let (past, update) = (node.inputs.tensor(0)?, node.inputs.tensor(1)?);
    let starts = node.inputs.optional_integers(2)?;
    let axis = node.axis(node.attributes.integer_or("axis", -2)?, extents(past).len())?;
    let end = match node.attributes.string_or("mode", "linear")? {
        "linear" => EndPolicy::Stop,
        "circular" => EndPolicy::Wrap,
        other => {
            let message = format_args!("is expected to be linear or circular, found '{other}'");
            return Err(node.attributes.error("mode", message));
        }
    };
    if let Some(target) = node.own_target {
        write_sequences(target, update.as_dense()?, axis, starts.as_deref(), end)?;
        return Ok(target.clone().into());
    }
    let opaque = OpaqueTensors::new(node, &[past, update])?;
    let [past, update] = &opaque.tensors[..] else {
        unreachable!("there are as many as were given");
    };
    let out = append_sequences(node.execution, past, update, axis, starts.as_deref(), end)?;
    opaque.outputs(out, AsyncValue::available(Chain))
}

/// `update_cache(past, update, starts, total)`: the cache with the update in it, `[batch, heads, room, width]`, and of
/// that the first `total` elements of dimension 2. The room is that of the cache before, or `total` if that is more.
fn update_cache(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let (past, update) = (node.inputs.tensor(0)?, node.inputs.dense(1)?);
    let starts = node.inputs.integers(2)?;
    let total = node.inputs.integer(3)?;
    let (found, new) = (extents(past), update.shape().to_dims());
    let (&[_, _, room, _], &[_, _, n_new, _]) = (&found[..], &new[..]) else {
        return Err(node.error(format_args!(
            "expected a cache and an update of 4 dimensions, found {found:?} and {new:?}"
        )));
    };
    let Ok(total) = usize::try_from(total) else {
        let message = format_args!("is expected to be 0 or more, found {total}");
        return Err(node.inputs.error(3, message));
    };
    let allocator = node.execution.host().allocator();
    if let Tensor::Growable(cache) = past
        && cache.axis() == 2
    {
        let is_next = |start: &i64| usize::try_from(*start) == Ok(room);
        if room.checked_add(n_new) == Some(total) && starts.iter().all(is_next) {
            let grown = appended(node, cache, &[node.inputs.tensor(1)?])?;
            return Ok(Outputs::from(grown.clone()).and_tensor(grown));
        }
    }
    let write = |target: &DenseHostTensor| {
        write_sequences(target, update, 2, Some(&starts), EndPolicy::Stop)
            .map_err(|error| node.with_name(&error))
    };
    let present = match node.own_target {
        Some(target) if total <= room => {
            write(target)?;
            target.clone()
        }
        _ if total <= room => {
            let copy = past.as_dense()?.deep_copy(allocator)?;
            write(&copy)?;
            copy
        }
        _ => {
            let mut wider = found;
            wider[2] = total;
            let copy = node.zeros(past.metadata().dtype, &wider)?;
            GrowableTensor::first_of(allocator, &copy, 2, total)?.write(0, past.as_dense()?)?;
            write(&copy)?;
            copy
        }
    };
    let seen: Tensor = match total == present.shape().extent(2).unwrap_or(0) {
        true => present.clone().into(),
        false => GrowableTensor::first_of(allocator, &present, 2, total)?.into(),
    };
    Ok(Outputs::from(present).and_tensor(seen))
}
