//! Folding (col2im): columns of patches are laid back over a picture, and added where patches overlap.

use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use super::number::Number;
use super::parallel;
use crate::math::Family;
use crate::with_number;
use crate::{DenseHostTensor, Dims};

/// Patches along one dimension of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PatchAxis {
    /// The extent of the picture.
    pub picture: usize,
    /// Number of elements of a patch along this dimension.
    pub taps: usize,
    /// Distance between elements of a patch.
    pub dilation: usize,
    /// Distance between patches.
    pub stride: usize,
    /// Padding before and behind the picture.
    pub pads: (usize, usize),
}

impl PatchAxis {
    /// Returns the number of patches.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if not one fits, or if a number is too large, or 0 where there is nothing of size 0.
    pub fn n_patches(&self) -> Result<usize, Error> {
        let count = || {
            let padded = self
                .picture
                .checked_add(self.pads.0)?
                .checked_add(self.pads.1)?;
            let reach = self
                .taps
                .checked_sub(1)?
                .checked_mul(self.dilation)?
                .checked_add(1)?;
            Some(padded.checked_sub(reach)?.checked_div(self.stride)? + 1)
        };
        count().ok_or_else(|| {
            Error::invalid_argument(format!(
                "a patch of {} elements, {} apart, does not lie in {} with {:?} around, in steps of {}",
                self.taps, self.dilation, self.picture, self.pads, self.stride
            ))
        })
    }
}

/// Adds patches to a picture of zeros, on the workers of the request's queue if there is much to do; pictures are
/// made in parallel.
///
/// # Shapes
///
/// `x: [n, channels * taps, patches]`, where `taps` and `patches` are the products over the dimensions;
/// `out: [n, channels, picture..]`.
///
/// # Errors
///
/// `InvalidArgument` if the shapes or types are not that, and those of [`parallel::fill`].
pub fn fold_into(
    execution: &ExecutionContext,
    x: &DenseHostTensor,
    patches: &[PatchAxis],
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let dtype = x.dtype();
    with_number!(dtype, T => fold_of::<T>(execution, x, patches, out), else Err(Family::Numbers.lacks(dtype)))
}

fn fold_of<T: Number>(
    execution: &ExecutionContext,
    x: &DenseHostTensor,
    patches: &[PatchAxis],
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    crate::dense::expect_dtype::<T>(x.metadata())?;
    let counts: Dims = patches
        .iter()
        .map(PatchAxis::n_patches)
        .collect::<Result<_, _>>()?;
    let product = |numbers: Dims| {
        numbers
            .into_iter()
            .try_fold(1_usize, usize::checked_mul)
            .ok_or_else(|| {
                Error::invalid_argument("the patches have more elements than the largest integer")
            })
    };
    let n_taps = product(patches.iter().map(|patches| patches.taps).collect())?;
    let n_patches = product(counts.clone())?;
    let extents = out.shape().to_dims();
    let wanted: Dims = patches.iter().map(|patches| patches.picture).collect();
    let found = x.shape().to_dims();
    let is_right = extents.len() >= 2
        && extents[2..] == wanted[..]
        && extents[1]
            .checked_mul(n_taps)
            .is_some_and(|rows| found[..] == [extents[0], rows, n_patches]);
    if !is_right {
        return Err(Error::invalid_argument(format!(
            "expected patches of shape [{}, {} * {n_taps}, {n_patches}] for a result of shape {}, found {}",
            extents.first().unwrap_or(&0),
            extents.get(1).unwrap_or(&0),
            out.shape(),
            x.shape()
        )));
    }
    let picture_len = wanted
        .iter()
        .fold(1_usize, |len, extent| len.saturating_mul(*extent))
        .max(1);
    let (x, patches) = (x.clone(), patches.to_vec());
    let chunk = parallel::chunk_len(2, picture_len);
    parallel::fill(execution, out, chunk, move |first, part: &mut [T]| {
        let reading = x.read()?;
        let columns = n_taps * n_patches;
        let pictures = part.chunks_exact_mut(picture_len).enumerate();
        for (index, picture) in pictures {
            picture.fill(T::ZERO);
            let start = (first / picture_len + index) * columns;
            add(
                &reading.elements::<T>()?[start..start + columns],
                &patches,
                &counts,
                picture,
            );
        }
        Ok(())
    })
}

/// Adds the rows of columns, one for each tap, to the picture.
fn add<T: Number>(columns: &[T], patches: &[PatchAxis], counts: &[usize], picture: &mut [T]) {
    let n_patches: usize = counts.iter().product();
    for (tap, row) in columns.chunks_exact(n_patches.max(1)).enumerate() {
        for (patch, value) in row.iter().enumerate() {
            if let Some(place) = place(tap, patch, patches, counts) {
                picture[place] = picture[place].plus(*value);
            }
        }
    }
}

/// Returns the place of an element in the picture, unless it lies in the padding.
fn place(
    mut tap: usize,
    mut patch: usize,
    patches: &[PatchAxis],
    counts: &[usize],
) -> Option<usize> {
    let (mut place, mut stride) = (0, 1);
    for (patches, count) in patches.iter().zip(counts).rev() {
        let at = (patch % count) * patches.stride + (tap % patches.taps) * patches.dilation;
        let at = at
            .checked_sub(patches.pads.0)
            .filter(|at| *at < patches.picture)?;
        place += at * stride;
        stride *= patches.picture;
        (tap, patch) = (tap / patches.taps, patch / count);
    }
    Some(place)
}
