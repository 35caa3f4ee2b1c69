//! Sequences of different lengths in one tensor: reversed, and appended to a cache.

use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use super::{expect_dimension, expect_result, size_of_elements};
use crate::DenseHostTensor;
use crate::math::parallel;

/// Reverses the first `lens[b]` elements along `time`, where `b` is the place along `batch`; the others stay.
///
/// # Shapes
///
/// `x` and `out` of one shape, of two dimensions at least; `lens` as many as the extent of `batch`.
///
/// # Errors
///
/// `InvalidArgument` if the shapes or types are not that, if `batch` and `time` are not the first two dimensions, or if
/// a length is not one of the extent of `time`; and those of [`parallel::fill_bytes`].
pub fn reverse_sequences_into(
    execution: &ExecutionContext,
    x: &DenseHostTensor,
    [batch, time]: [usize; 2],
    lens: &[i64],
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let extents = x.shape().to_dims();
    if extents.len() < 2 || batch == time || batch > 1 || time > 1 {
        return Err(Error::invalid_argument(format!(
            "expected the first two dimensions of a tensor as those of sequences and time, found {batch} and \
             {time} of one of shape {}",
            x.shape()
        )));
    }
    expect_result(&extents, &out.shape().to_dims())?;
    out.metadata().expect_dtype(x.dtype())?;
    if lens.len() != extents[batch] {
        let (found, wanted) = (lens.len(), extents[batch]);
        let message = format!("expected the lengths of {wanted} sequences, found {found}");
        return Err(Error::invalid_argument(message));
    }
    let n_steps = extents[time];
    let lens: Vec<usize> = lens
        .iter()
        .map(|len| match usize::try_from(*len) {
            Ok(len) if len <= n_steps => Ok(len),
            _ => Err(Error::invalid_argument(format!(
                "expected lengths of sequences from 0 to {n_steps}, found {len}"
            ))),
        })
        .collect::<Result<_, _>>()?;
    let size = size_of_elements(x);
    let inner: usize = if x.n_elements() == 0 {
        1
    } else {
        extents[2..].iter().product()
    };
    let n_second = extents[1];
    let x = x.clone();
    let chunk = parallel::chunk_len(1, inner);
    parallel::fill_bytes(execution, out, chunk, move |first, part| {
        let reading = x.read()?;
        for (index, to) in part.chunks_exact_mut(inner * size).enumerate() {
            let place = first / inner + index;
            let mut at = [place / n_second, place % n_second];
            let len = lens[at[batch]];
            if at[time] < len {
                at[time] = len - 1 - at[time];
            }
            let from = (at[0] * n_second + at[1]) * inner * size;
            to.copy_from_slice(&reading.bytes()[from..from + inner * size]);
        }
        Ok(())
    })
}

/// Where [`append_sequences`] writes when it comes to the end of the dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndPolicy {
    /// Nowhere: all has to fit.
    Stop,
    /// At the beginning again.
    Wrap,
}

/// Copies `past`, and writes `update` over it along `dimension` from `starts[b]` on, where `b` is the place along the
/// first dimension; by one worker.
///
/// # Shapes
///
/// `past` of the shape of the result, `update` of that but for `dimension`; `starts` as many as the extent of the
/// first dimension, or none for zeros.
///
/// # Errors
///
/// `InvalidArgument` if the shapes or types are not that, if `dimension` is the first, or if something does not fit;
/// `FailedPrecondition` if somebody else writes a tensor, `ResourceExhausted` without memory for the result.
pub fn append_sequences(
    execution: &ExecutionContext,
    past: &DenseHostTensor,
    update: &DenseHostTensor,
    dimension: usize,
    starts: Option<&[i64]>,
    end: EndPolicy,
) -> Result<DenseHostTensor, Error> {
    let plan = AppendPlan::new(past, update, dimension, starts, end)?;
    let out = past.deep_copy(execution.host().allocator())?;
    plan.write(update, &out)?;
    Ok(out)
}

/// Writes `update` over a tensor as [`append_sequences`] does over a copy of it.
///
/// # Shapes
///
/// Those of [`append_sequences`].
///
/// # Errors
///
/// Those of [`append_sequences`], and `FailedPrecondition` if somebody reads the tensor; nothing is written then.
pub fn write_sequences(
    target: &DenseHostTensor,
    update: &DenseHostTensor,
    dimension: usize,
    starts: Option<&[i64]>,
    end: EndPolicy,
) -> Result<(), Error> {
    AppendPlan::new(target, update, dimension, starts, end)?.write(update, target)
}

/// The places of an update, which were checked.
struct AppendPlan {
    /// The beginning of each batch.
    starts: Vec<usize>,
    /// The extents along the dimension: of the whole, and of what is new.
    extent: usize,
    n_new: usize,
    /// The number of slices of a batch, and the bytes of one element along the dimension.
    n_middle: usize,
    inner: usize,
}

impl AppendPlan {
    fn new(
        past: &DenseHostTensor,
        update: &DenseHostTensor,
        dimension: usize,
        starts: Option<&[i64]>,
        end: EndPolicy,
    ) -> Result<AppendPlan, Error> {
        let (extents, new) = (past.shape().to_dims(), update.shape().to_dims());
        expect_dimension(&extents, dimension)?;
        update.metadata().expect_dtype(past.dtype())?;
        let mut wanted = new.clone();
        if let Some(extent) = wanted.get_mut(dimension) {
            *extent = extents[dimension];
        }
        if dimension == 0 || wanted != extents {
            return Err(Error::invalid_argument(format!(
                "a tensor of shape {} can't be written along dimension {dimension} of one of shape {}",
                update.shape(),
                past.shape()
            )));
        }
        let (n_batch, n_new) = (extents[0], new[dimension]);
        let starts = places(starts, n_batch, n_new, extents[dimension], end)?;
        let (n_middle, inner) = match update.n_elements() {
            0 => (0, 0),
            _ => (
                new[1..dimension].iter().product(),
                new[dimension + 1..].iter().product::<usize>() * size_of_elements(past),
            ),
        };
        Ok(AppendPlan {
            starts,
            extent: extents[dimension],
            n_new,
            n_middle,
            inner,
        })
    }

    fn write(&self, update: &DenseHostTensor, out: &DenseHostTensor) -> Result<(), Error> {
        if self.inner == 0 {
            return Ok(());
        }
        let (reading, mut writing) = (update.read()?, out.write()?);
        let to = writing.bytes_mut();
        for (row, from) in reading.bytes().chunks_exact(self.inner).enumerate() {
            let (outer, step) = (row / self.n_new, row % self.n_new);
            let place = (self.starts[outer / self.n_middle] + step) % self.extent;
            let start = (outer * self.extent + place) * self.inner;
            to[start..start + self.inner].copy_from_slice(from);
        }
        Ok(())
    }
}

/// Returns the beginning of each batch, if all updates fit.
fn places(
    starts: Option<&[i64]>,
    n_batch: usize,
    n_new: usize,
    extent: usize,
    end: EndPolicy,
) -> Result<Vec<usize>, Error> {
    let Some(starts) = starts else {
        return places(Some(&vec![0; n_batch]), n_batch, n_new, extent, end);
    };
    if starts.len() != n_batch {
        let found = starts.len();
        let message =
            format!("expected where to write in each of {n_batch} batches, found {found} places");
        return Err(Error::invalid_argument(message));
    }
    let place = |start: &i64| {
        let place = usize::try_from(*start).ok().filter(|place| match end {
            EndPolicy::Stop => place.checked_add(n_new).is_some_and(|end| end <= extent),
            EndPolicy::Wrap => n_new <= extent,
        });
        place
            .map(|place| if extent > 0 { place % extent } else { 0 })
            .ok_or_else(|| {
                Error::invalid_argument(format!(
                    "{n_new} elements from {start} on do not fit a dimension of extent {extent}"
                ))
            })
    };
    starts.iter().map(place).collect()
}

/// Cuts or pads the given dimensions evenly at both ends: the first and last positions that stay, or how many are
/// put before and behind, for [`LayoutCopy::pad`](super::LayoutCopy::pad).
///
/// Of an odd number the larger half is at the end where something is added, and so is what is left of a cut.
pub fn centered(extent: usize, wanted: usize) -> (i64, i64) {
    let to_i64 = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
    if wanted >= extent {
        let n_added = wanted - extent;
        return (to_i64(n_added / 2), to_i64(n_added - n_added / 2));
    }
    let n_cut = extent - wanted;
    (-to_i64(n_cut / 2), -to_i64(n_cut - n_cut / 2))
}
