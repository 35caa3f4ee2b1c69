//! The kernel of `stablehlo.places`: where the elements of a gather's or scatter's slices are in a tensor.
//!
//! A place is the sum of where its slice begins and of where it is in the slice. The first is calculated once for each
//! slice; the second by strides, while coordinates of the result are counted up.

use smallvec::smallvec;
use tfrt_host::Error;
use tfrt_tensor::op::{Outputs, TensorCall};

use super::super::rearrange::{list_of, listed, product};
use super::super::tensors::integers;

/// The dimensions that attributes name, each of a tensor of some rank.
fn axes(call: &TensorCall<'_>, name: &str, rank: usize) -> Result<Vec<usize>, Error> {
    let list = call.attrs.ints(name).unwrap_or_default();
    let one = |axis: &i64| {
        let found = usize::try_from(*axis).ok().filter(|axis| *axis < rank);
        found.ok_or_else(|| {
            call.error(format_args!(
                "attribute '{name}': expected dimensions of a tensor of rank {rank}, found {axis}"
            ))
        })
    };
    list.iter().map(one).collect()
}

/// Returns extents that an operand has as elements.
fn sizes(call: &TensorCall<'_>, index: usize) -> Result<Vec<usize>, Error> {
    let one = |size: &i64| {
        usize::try_from(*size)
            .map_err(|_| call.error(format_args!("expected extents of 0 or more, found {size}")))
    };
    integers(call, index)?.iter().map(one).collect()
}

/// Returns how far elements are apart along each dimension.
fn strides(extents: &[usize]) -> Vec<usize> {
    let mut strides = vec![1_usize; extents.len()];
    for axis in (1..extents.len()).rev() {
        strides[axis - 1] = strides[axis].saturating_mul(extents[axis].max(1));
    }
    strides
}

pub(super) fn places(call: &mut TensorCall<'_>) -> Result<Outputs, Error> {
    let (extents, sizes) = (sizes(call, 0)?, sizes(call, 2)?);
    let indices = call.dense(1)?;
    let index_extents = indices.shape().to_dims();
    let (rank, n_indices) = (extents.len(), index_extents.len());
    let attribute = |name: &str| call.attrs.int(name).and_then(|at| usize::try_from(at).ok());
    let vector = attribute("vector").filter(|axis| *axis <= n_indices);
    let result_rank = attribute("rank").unwrap_or(0);
    let offsets = axes(call, "offsets", result_rank)?;
    let window = axes(call, "window", rank)?;
    let batch = axes(call, "batch", rank)?;
    let index_batch = axes(call, "index_batch", n_indices)?;
    let starts = axes(call, "starts", rank)?;
    let Some(vector) = vector else {
        return Err(call.error(format_args!(
            "expected a dimension of the indices as 'vector'"
        )));
    };
    let outer: Vec<usize> = (0..n_indices).filter(|axis| *axis != vector).collect();
    let n_numbers = index_extents.get(vector).copied().unwrap_or(1);
    let fits = sizes.len() == rank
        && offsets.len() == window.len()
        && outer.len() + window.len() == result_rank
        && batch.len() == index_batch.len()
        && !index_batch.contains(&vector)
        && n_numbers == starts.len()
        && sizes
            .iter()
            .zip(&extents)
            .all(|(size, extent)| size <= extent);
    if !fits {
        return Err(call.error(format_args!(
            "expected slices {sizes:?} that fit a tensor of extents {extents:?} by places of {} numbers, found {n_numbers}",
            starts.len()
        )));
    }
    let clamps = call.attrs.flag("clamp");
    let along = strides(&extents);
    let n_all = product(&extents);
    if i64::try_from(n_all).is_err() {
        return Err(call.error(format_args!(
            "a tensor of extents {extents:?} has too many elements"
        )));
    }
    let index_strides = strides(&index_extents);
    let step = index_strides.get(vector).copied().unwrap_or(1);
    // The result, its extents and how far apart: of slices, and within slices.
    let (mut shape, mut by_slice, mut inside) = (
        vec![0; result_rank],
        vec![0; result_rank],
        vec![0; result_rank],
    );
    for (axis, offset) in window.iter().zip(&offsets) {
        (shape[*offset], inside[*offset]) = (sizes[*axis], along[*axis]);
    }
    let slices: Vec<usize> = outer.iter().map(|axis| index_extents[*axis]).collect();
    let slice_strides = strides(&slices);
    let free = (0..result_rank).filter(|axis| !offsets.contains(axis));
    for (index, axis) in free.enumerate() {
        (shape[axis], by_slice[axis]) = (slices[index], slice_strides[index]);
    }
    let reading = indices.read()?;
    let numbers = reading.elements::<i64>()?;
    let n_slices = product(&slices);
    // Where each slice begins; nothing if it is partly outside.
    let mut begins: Vec<Option<usize>> = list_of(call, n_slices)?;
    let mut coordinates = vec![0; n_indices];
    // A tensor without elements has no places.
    let n_begins = if n_all == 0 { 0 } else { n_slices };
    for slice in 0..n_begins {
        let (mut rest, mut first) = (slice, 0);
        for (index, axis) in outer.iter().enumerate() {
            let at = rest / slice_strides[index];
            rest %= slice_strides[index];
            coordinates[*axis] = at;
            first += at * index_strides[*axis];
        }
        let mut begin = Some(0_usize);
        for (number, axis) in starts.iter().enumerate() {
            let most = extents[*axis] - sizes[*axis];
            let found = numbers[first + number * step];
            let at = usize::try_from(found).ok();
            let at = match clamps {
                true if found < 0 => Some(0),
                true => Some(at.unwrap_or(most).min(most)),
                false => at.filter(|at| *at <= most),
            };
            begin = begin.zip(at).map(|(begin, at)| begin + at * along[*axis]);
        }
        for (axis, of_indices) in batch.iter().zip(&index_batch) {
            let at = Some(coordinates[*of_indices]).filter(|at| *at < extents[*axis]);
            begin = begin.zip(at).map(|(begin, at)| begin + at * along[*axis]);
        }
        begins.push(begin);
    }
    begins.resize(n_slices, None);
    let n = product(&shape);
    let outside = i64::try_from(n_all).unwrap_or(i64::MAX);
    let mut all: Vec<i64> = list_of(call, n)?;
    let mut coordinates = vec![0; result_rank];
    let (mut slice, mut place) = (0, 0);
    for _ in 0..n {
        let found = begins[slice].and_then(|begin| i64::try_from(begin + place).ok());
        all.push(found.unwrap_or(outside));
        for axis in (0..result_rank).rev() {
            coordinates[axis] += 1;
            slice += by_slice[axis];
            place += inside[axis];
            if coordinates[axis] < shape[axis] {
                break;
            }
            slice -= shape[axis] * by_slice[axis];
            place -= shape[axis] * inside[axis];
            coordinates[axis] = 0;
        }
    }
    Ok(smallvec![listed(call, &shape, &all)?])
}
