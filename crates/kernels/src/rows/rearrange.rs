//! Kernels that rearrange elements: in blocks, along axes, around edges.

use smallvec::{SmallVec, smallvec};
use tfrt_host::memory::MemoryReservation;
use tfrt_host::{DType, Error};
use tfrt_ops::tf::blocks::{gathered, mirrored_edge};
use tfrt_ops::tf::images::has_channels_first;
use tfrt_tensor::math::layout_copy::LayoutCopy;
use tfrt_tensor::op::{Formats, Output, Outputs, TensorCall, TensorKernel};
use tfrt_tensor::{
    Bool, DenseHostTensor, Dims, StringHostTensor, Tensor, TensorMetadata, TensorShape,
};

use super::of_call;
use super::tensors::{axis_in, extents, integers, moved, reshaped};

pub(super) const KERNELS: &[TensorKernel] = &[
    TensorKernel::new("tf.BatchToSpaceND", batch_to_space).formats(Formats::STRING),
    TensorKernel::new("tf.DepthToSpace", |call| blocks(call, true)).formats(Formats::STRING),
    TensorKernel::new("tf.GatherV2", gather).formats(Formats::STRING),
    TensorKernel::new("tf.MirrorPad", mirror_pad).formats(Formats::STRING),
    TensorKernel::new("tf.Roll", roll).formats(Formats::STRING),
    TensorKernel::new("tf.Select", select).formats(Formats::STRING),
    TensorKernel::new("tf.SpaceToBatchND", space_to_batch),
    TensorKernel::new("tf.SpaceToDepth", |call| blocks(call, false)).formats(Formats::STRING),
];

/// Returns the product of extents, or the largest integer if it exceeds that, as that of a tensor without elements
/// may.
pub(super) fn product(extents: &[usize]) -> usize {
    let all = extents.iter();
    all.fold(1, |product, extent| product.saturating_mul(*extent))
}

/// Allocates a list of so many elements, empty yet.
pub(super) fn list_of<T>(call: &TensorCall<'_>, n: usize) -> Result<Vec<T>, Error> {
    let mut list = Vec::new();
    // A limit on memory is asked once: it does not count the list while it is there.
    let mut aside = MemoryReservation::new(call.execution.host().allocator());
    let is_allowed = aside.add(n.saturating_mul(size_of::<T>()));
    if !is_allowed || list.try_reserve_exact(n).is_err() {
        let message = format!("{}: there is no memory for {n} places", call.name);
        return Err(Error::resource_exhausted(message));
    }
    Ok(list)
}

/// The source of an element of a result.
pub(super) enum ElementSource {
    /// The element of the first tensor at this position.
    First(usize),
    /// The element of the second tensor at this position.
    Second(usize),
    /// No element: 0, or the empty string.
    Zero,
}

/// Makes a tensor whose elements are copied from two others.
pub(super) fn copied_from(
    call: &TensorCall<'_>,
    [x, y]: [&Tensor; 2],
    extents: &[usize],
    mut place: impl FnMut(&[usize]) -> ElementSource,
) -> Result<Output, Error> {
    let shape = call.named(TensorShape::new(extents))?;
    let too_large = || {
        call.error(format_args!(
            "a result of {shape} exceeds the largest integer"
        ))
    };
    let n = shape.n_elements().ok_or_else(too_large)?;
    let mut coordinates = Dims::from_elem(0, extents.len());
    let mut next = || {
        let found = place(&coordinates);
        for (coordinate, extent) in coordinates.iter_mut().zip(extents).rev() {
            *coordinate += 1;
            if *coordinate < *extent {
                break;
            }
            *coordinate = 0;
        }
        found
    };
    if let (Tensor::String(x), Tensor::String(y)) = (x, y) {
        let strings = (0..n).map(|_| match next() {
            ElementSource::First(at) => x.strings()[at].clone(),
            ElementSource::Second(at) => y.strings()[at].clone(),
            ElementSource::Zero => Vec::new(),
        });
        let allocator = call.execution.host().allocator();
        return Ok(StringHostTensor::collect(allocator, shape.clone(), strings)?.into());
    }
    let (x, y) = (x.as_dense()?, y.as_dense()?);
    let dtype = x.dtype();
    y.metadata().expect_dtype(dtype)?;
    let size = dtype.size_bytes().unwrap_or(1);
    let out = call.allocate(TensorMetadata::new(dtype, shape))?;
    {
        let (x, y, mut out) = (x.read()?, y.read()?, out.write()?);
        let (x, y) = (x.bytes(), y.bytes());
        for to in out.bytes_mut().chunks_exact_mut(size) {
            match next() {
                ElementSource::First(at) => to.copy_from_slice(&x[at * size..][..size]),
                ElementSource::Second(at) => to.copy_from_slice(&y[at * size..][..size]),
                ElementSource::Zero => to.fill(0),
            }
        }
    }
    Ok(out.into())
}

/// Makes a tensor whose elements are copied from another.
pub(super) fn copied_from_one(
    call: &TensorCall<'_>,
    x: &Tensor,
    extents: &[usize],
    mut place: impl FnMut(&[usize]) -> Option<usize>,
) -> Result<Outputs, Error> {
    let found = copied_from(call, [x, x], extents, |at| match place(at) {
        Some(at) => ElementSource::First(at),
        None => ElementSource::Zero,
    });
    Ok(smallvec![found?])
}

/// Returns the position of an element by its coordinates.
pub(super) fn position(extents: &[usize], coordinates: impl IntoIterator<Item = usize>) -> usize {
    let all = extents.iter().zip(coordinates);
    all.fold(0, |position, (extent, coordinate)| {
        position * extent + coordinate
    })
}

fn known(call: &TensorCall<'_>, index: usize) -> Result<Dims, Error> {
    Ok(call.result(index)?.shape.to_dims())
}

/// Returns the integers of an operand as sizes.
fn sizes(call: &TensorCall<'_>, index: usize) -> Result<SmallVec<[usize; 8]>, Error> {
    let list = integers(call, index)?;
    let sizes = list.iter().map(|size| {
        usize::try_from(*size).map_err(|_| {
            call.error(format_args!(
                "operand {index}: expected no negative integers, found {size}"
            ))
        })
    });
    sizes.collect()
}

/// Turns channels into blocks of images, or blocks into channels.
fn blocks(call: &mut TensorCall<'_>, to_space: bool) -> Result<Outputs, Error> {
    let x = call.tensor(0)?;
    let (own, result) = (extents(x), known(call, 0)?);
    let is_first = has_channels_first(&call.attrs).map_err(of_call(call))?;
    let size = usize::try_from(call.attrs.int("block_size").unwrap_or(0)).unwrap_or(0);
    // What has less: images or their channels.
    let small = if to_space { &own } else { &result };
    let (seen_as, order): (Dims, [usize; 6]) = match (is_first, to_space) {
        (false, true) => {
            let &[n, height, width, _] = &small[..] else {
                return Err(call.error(format_args!("expected images, found {own:?}")));
            };
            let channels = result[3];
            (
                [n, height, width, size, size, channels]
                    .into_iter()
                    .collect(),
                [0, 1, 3, 2, 4, 5],
            )
        }
        (false, false) => {
            let &[n, height, width, _] = &small[..] else {
                return Err(call.error(format_args!("expected images, found {own:?}")));
            };
            let channels = own[3];
            (
                [n, height, size, width, size, channels]
                    .into_iter()
                    .collect(),
                [0, 1, 3, 2, 4, 5],
            )
        }
        (true, true) => {
            let &[n, _, height, width] = &small[..] else {
                return Err(call.error(format_args!("expected images, found {own:?}")));
            };
            let channels = result[1];
            (
                [n, size, size, channels, height, width]
                    .into_iter()
                    .collect(),
                [0, 3, 4, 1, 5, 2],
            )
        }
        (true, false) => {
            let &[n, _, height, width] = &small[..] else {
                return Err(call.error(format_args!("expected images, found {own:?}")));
            };
            let channels = own[1];
            (
                [n, channels, height, size, width, size]
                    .into_iter()
                    .collect(),
                [0, 3, 5, 1, 2, 4],
            )
        }
    };
    let x = call.named(reshaped(x, &seen_as))?;
    let movement = call.named(LayoutCopy::transpose(&seen_as, &order))?;
    Ok(smallvec![moved(call, &x, &movement, &result)?])
}

fn space_to_batch(call: &mut TensorCall<'_>) -> Result<Outputs, Error> {
    let x = call.tensor(0)?;
    let (own, result) = (extents(x), known(call, 0)?);
    let (blocks, around) = (sizes(call, 1)?, sizes(call, 2)?);
    copied_from_one(call, x, &result, |at| {
        let mut part = at[0] / own[0];
        let mut inner = SmallVec::<[usize; 6]>::from_slice(at);
        inner[0] = at[0] % own[0];
        for (index, block) in blocks.iter().enumerate().rev() {
            let place = at[index + 1] * block + part % block;
            part /= block;
            let place = place.checked_sub(around[2 * index])?;
            inner[index + 1] = Some(place).filter(|place| *place < own[index + 1])?;
        }
        Some(position(&own, inner))
    })
}

fn batch_to_space(call: &mut TensorCall<'_>) -> Result<Outputs, Error> {
    let x = call.tensor(0)?;
    let (own, result) = (extents(x), known(call, 0)?);
    let (blocks, around) = (sizes(call, 1)?, sizes(call, 2)?);
    copied_from_one(call, x, &result, |at| {
        let mut inner = SmallVec::<[usize; 6]>::from_slice(at);
        let mut part = 0;
        for (index, block) in blocks.iter().enumerate() {
            let place = at[index + 1] + around[2 * index];
            inner[index + 1] = place / block;
            part = part * block + place % block;
        }
        inner[0] = part * result[0] + at[0];
        Some(position(&own, inner))
    })
}

fn mirror_pad(call: &mut TensorCall<'_>) -> Result<Outputs, Error> {
    let x = call.tensor(0)?;
    let (own, result, around) = (extents(x), known(call, 0)?, sizes(call, 1)?);
    let edge = mirrored_edge(&call.attrs).map_err(of_call(call))?;
    let edge = usize::try_from(edge).unwrap_or(0);
    copied_from_one(call, x, &result, |at| {
        let inner = at
            .iter()
            .zip(&own)
            .enumerate()
            .map(|(index, (place, extent))| {
                let before = around[2 * index];
                match place.checked_sub(before) {
                    None => before - place - 1 + edge,
                    Some(inner) if inner < *extent => inner,
                    Some(behind) => 2 * extent - 1 - edge - behind,
                }
            });
        Some(position(&own, inner))
    })
}

fn roll(call: &mut TensorCall<'_>) -> Result<Outputs, Error> {
    let x = call.tensor(0)?;
    let own = extents(x);
    let (shifts, axes) = (integers(call, 1)?, integers(call, 2)?);
    if shifts.len() != axes.len() {
        let (shifts, axes) = (shifts.len(), axes.len());
        return Err(call.error(format_args!(
            "expected a shift for each axis, found {shifts} for {axes}"
        )));
    }
    let mut moved = Dims::from_elem(0, own.len());
    for (shift, axis) in shifts.iter().zip(&axes) {
        let at = axis_in(call, *axis, own.len())?;
        // An extent of a shape fits 63 bits.
        let extent = own[at].max(1) as i64;
        let shift = usize::try_from(shift.rem_euclid(extent)).unwrap_or(0);
        moved[at] = (moved[at] + shift) % own[at].max(1);
    }
    copied_from_one(call, x, &own, |at| {
        let all = at.iter().zip(&own).zip(&moved);
        let inner = all.map(|((place, extent), shift)| (place + extent - shift) % extent);
        Some(position(&own, inner))
    })
}

fn select(call: &mut TensorCall<'_>) -> Result<Outputs, Error> {
    let (condition, x, y) = (call.dense(0)?, call.tensor(1)?, call.tensor(2)?);
    let own = extents(x);
    let n_each = match condition.n_elements() {
        1 if condition.shape().rank() == 0 => usize::MAX,
        n if condition.shape().rank() == own.len() => product(&own) / n.max(1),
        _ => product(&own[1..]),
    };
    let reading = condition.read()?;
    let conditions = reading.elements::<Bool>()?;
    let mut index = 0;
    let found = copied_from(call, [x, y], &own, |_| {
        let at = index;
        index += 1;
        match conditions.get(at / n_each.max(1)) {
            Some(condition) if bool::from(*condition) => ElementSource::First(at),
            _ => ElementSource::Second(at),
        }
    })?;
    Ok(smallvec![found])
}

/// Gathers slices along an axis by indices, in batches.
fn gather(call: &mut TensorCall<'_>) -> Result<Outputs, Error> {
    let (x, indices) = (call.tensor(0)?, call.dense(1)?);
    let (own, places) = (extents(x), indices.shape().to_dims());
    let axis = match integers(call, 2)?[..] {
        [axis] => axis,
        _ => return Err(call.error(format_args!("expected one axis"))),
    };
    let [at, n_batch] =
        gathered(&call.attrs, axis, own.len(), places.len()).map_err(of_call(call))?;
    if own[..n_batch] != places[..n_batch] {
        return Err(call.error(format_args!(
            "expected batches that agree, found {own:?} and {places:?}"
        )));
    }
    let mut result = Dims::from_slice(&own[..at]);
    result.extend_from_slice(&places[n_batch..]);
    result.extend_from_slice(&own[at + 1..]);
    let indices = indices.read()?;
    let list = integers(call, 1)?;
    let extent = own[at];
    let is_inside = |index: &&i64| usize::try_from(**index).is_ok_and(|at| at < extent);
    if let Some(index) = list.iter().find(|index| !is_inside(index)) {
        return Err(call.error(format_args!(
            "there is no element {index} in a dimension of extent {extent}"
        )));
    }
    // Without elements there is nothing to number, however long the batches are.
    if result.contains(&0) {
        return Ok(smallvec![copied_from(call, [x, x], &result, |_| {
            ElementSource::Zero
        })?]);
    }
    if n_batch == 0 {
        let movement = match call.dense(1)?.dtype() {
            DType::I32 => LayoutCopy::gather(&own, at, &indices.view::<i32>()?),
            _ => LayoutCopy::gather(&own, at, &indices.view::<i64>()?),
        };
        return Ok(smallvec![moved(call, x, &call.named(movement)?, &result)?]);
    }
    // One table of all batches, each of whose rows has a number.
    let (n_batches, n_outer, n_each) = (
        product(&own[..n_batch]),
        product(&own[n_batch..at]),
        product(&places[n_batch..]),
    );
    let mut rows = Vec::new();
    for batch in 0..n_batches {
        for outer in 0..n_outer {
            for index in &list[batch * n_each..][..n_each] {
                let place = usize::try_from(*index).unwrap_or(0);
                // The number of a row is less than that of elements, which lie in memory.
                rows.push(((batch * n_outer + outer) * extent + place) as i64);
            }
        }
    }
    let table = [n_batches * n_outer * extent, product(&own[at + 1..])];
    let x = call.named(reshaped(x, &table))?;
    let rows = tfrt_tensor::TensorView::new(&rows, &[rows.len()])?;
    let movement = call.named(LayoutCopy::gather(&table, 0, &rows))?;
    Ok(smallvec![moved(call, &x, &movement, &result)?])
}

/// Makes a tensor of a list, of this type and these extents.
pub(super) fn listed<T: tfrt_tensor::Element>(
    call: &TensorCall<'_>,
    extents: &[usize],
    list: &[T],
) -> Result<Output, Error> {
    let allocator = call.execution.host().allocator();
    Ok(DenseHostTensor::from_slice(allocator, extents, list)?.into())
}
