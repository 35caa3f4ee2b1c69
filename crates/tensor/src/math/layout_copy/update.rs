//! Replacement of a part of a tensor.

use tfrt_host::{Error, ExecutionContext};

use super::size_of_elements;
use crate::{DenseHostTensor, Dims};

/// Copies `x` with `update` in place of the elements from `starts` on; by one worker.
///
/// All of `update` is written: a start that leaves too little room for it, or lies before the tensor, is moved as far as
/// necessary.
///
/// # Shapes
///
/// `update` has as many dimensions as `x`, and no more elements in any; there is a start for each.
///
/// # Errors
///
/// `InvalidArgument` if the shapes or types are not that; `FailedPrecondition` if somebody else writes a tensor,
/// `ResourceExhausted` without memory for the result.
pub fn update_slice(
    execution: &ExecutionContext,
    x: &DenseHostTensor,
    update: &DenseHostTensor,
    starts: &[i64],
) -> Result<DenseHostTensor, Error> {
    let (extents, part) = (x.shape().to_dims(), update.shape().to_dims());
    update.metadata().expect_dtype(x.dtype())?;
    let fits = extents.len() == part.len() && part.iter().zip(&extents).all(|(n, of)| n <= of);
    if !fits {
        let (update, x) = (update.shape(), x.shape());
        let message = format!("an update of shape {update} is no part of a tensor of shape {x}");
        return Err(Error::invalid_argument(message));
    }
    if starts.len() != extents.len() {
        let (rank, found) = (extents.len(), starts.len());
        let message = format!("expected a start for each of {rank} dimensions, found {found}");
        return Err(Error::invalid_argument(message));
    }
    let out = x.deep_copy(execution.host().allocator())?;
    if update.n_elements() == 0 {
        return Ok(out);
    }
    let room = extents.iter().zip(&part).map(|(extent, n)| extent - n);
    let starts: Dims = room
        .zip(starts)
        .map(|(room, start)| usize::try_from((*start).max(0)).map_or(room, |start| start.min(room)))
        .collect();
    // What is whole in all dimensions behind lies together.
    let is_whole = |dimension: &usize| part[*dimension] == extents[*dimension];
    let n_behind = (0..part.len()).rev().take_while(is_whole).count();
    let n_outer = (part.len() - n_behind).saturating_sub(1);
    let strides = x.shape().strides();
    let row: usize = part[n_outer..].iter().product::<usize>() * size_of_elements(x);
    let begin: usize = starts
        .iter()
        .zip(&strides)
        .map(|(start, by)| start * by)
        .sum();
    let (reading, mut writing) = (update.read()?, out.write()?);
    let to = writing.bytes_mut();
    for (number, from) in reading.bytes().chunks_exact(row).enumerate() {
        let (mut left, mut place) = (number, begin);
        for dimension in (0..n_outer).rev() {
            place += left % part[dimension] * strides[dimension];
            left /= part[dimension];
        }
        let place = place * size_of_elements(x);
        to[place..place + row].copy_from_slice(from);
    }
    drop(writing);
    Ok(out)
}
