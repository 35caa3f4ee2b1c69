//! Pointwise convolutions of images that are concatenated along their channels, and read in place.

use std::ops::Range;

use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use super::{Method, PackedFilter};
use crate::dense::expect_dtype;
use crate::math::layout_copy::concat_extents;
use crate::math::packed_gemm::{BlockGrid, Lhs, Panels, TensorEpilogue, fill, multiply};
use crate::{DenseHostTensor, Dims};

/// Returns the shape of the result of [`convolve_concat_into`].
///
/// # Errors
///
/// `InvalidArgument` if the shapes are not those that it takes.
pub fn convolve_concat_extents(parts: &[&[usize]], filter: &PackedFilter) -> Result<Dims, Error> {
    let rank = parts.first().map_or(0, |part| part.len());
    let mut extents = concat_extents(parts, rank.saturating_sub(1))?;
    let is_alike = parts.windows(2).all(|pair| pair[0] == pair[1]);
    let (taps, depth, filters) = match filter.extents() {
        [taps @ .., depth, filters] => (taps, *depth, *filters),
        _ => (&[][..], 0, 0),
    };
    let fits = is_alike
        && filter.groups == 1
        && filter.method() == Method::Direct
        && taps.iter().all(|extent| *extent == 1)
        && taps.len() + 2 == rank
        && extents.last() == Some(&depth);
    if !fits {
        return Err(Error::invalid_argument(format!(
            "expected images that are alike, and a filter of one element of all their channels, found {parts:?} and \
             {:?}",
            filter.extents()
        )));
    }
    if let Some(last) = extents.last_mut() {
        *last = filters;
    }
    Ok(extents)
}

/// Convolves a concatenation of images along their channels by windows of one element and stride 1, on the workers of
/// the request's queue if there is much to do. The result has the bits of [`convolve_packed_into`] of the
/// concatenated image.
///
/// [`convolve_packed_into`]: super::convolve_packed_into
///
/// # Shapes
///
/// `parts: [batch, spatial.., own]`, alike; `filter: [1.., channels, filters]`, where channels are those of all
/// parts; `out: [batch, spatial.., filters]`.
///
/// # Errors
///
/// `InvalidArgument` if the shapes are not that, or elements no `f32`s; the result fails with `FailedPrecondition` if
/// somebody else uses `out`, or with the reason of the request's cancellation.
pub fn convolve_concat_into(
    execution: &ExecutionContext,
    parts: &[&DenseHostTensor],
    filter: &PackedFilter,
    epilogue: TensorEpilogue,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let shapes: Vec<Dims> = parts.iter().map(|part| part.shape().to_dims()).collect();
    let shapes: Vec<&[usize]> = shapes.iter().map(|shape| &shape[..]).collect();
    let (wanted, found) = (
        convolve_concat_extents(&shapes, filter)?,
        out.shape().to_dims(),
    );
    if wanted != found {
        let message = format!("expected a result of shape {wanted:?}, found {found:?}");
        return Err(Error::invalid_argument(message));
    }
    for part in parts {
        expect_dtype::<f32>(part.metadata())?;
    }
    let n = filter.layout.n_columns;
    epilogue.check(n, out.n_elements())?;
    let n_rows = out.n_elements() / n.max(1);
    let grid = BlockGrid::new(n_rows, filter.layout, filter.layout.depth);
    let len = filter.layout.depth / parts.len();
    let parts: Vec<DenseHostTensor> = parts.iter().map(|part| (*part).clone()).collect();
    let filter = filter.clone();
    fill(
        execution,
        out,
        n,
        grid,
        epilogue,
        move |block, epilogue, out, stride| {
            let readings = parts.iter().map(DenseHostTensor::read);
            let readings = readings.collect::<Result<Vec<_>, _>>()?;
            let elements = readings.iter().map(|reading| reading.elements::<f32>());
            let parts = elements.collect::<Result<Vec<_>, _>>()?;
            let packed = filter.elements.read()?;
            let panels = Panels {
                layout: filter.layout,
                elements: packed.elements()?,
            };
            let left = ConcatRows { parts, len };
            multiply(
                &left,
                panels,
                block,
                &epilogue.for_block(0..n, n),
                out,
                stride,
            );
            Ok(())
        },
    )
}

/// Left rows, each part of which lies in an image of its own.
struct ConcatRows<'a> {
    parts: Vec<&'a [f32]>,
    /// Number of elements of a part.
    len: usize,
}

impl Lhs for ConcatRows<'_> {
    fn parts(&self) -> (usize, usize) {
        match self.len {
            0 => (0, 0),
            len => (self.parts.len(), len),
        }
    }

    fn row_stride(&self) -> usize {
        self.len
    }

    fn copy(&self, _: Range<usize>, _: &mut Vec<f32>) {}

    fn lay<'s>(
        &'s self,
        rows: Range<usize>,
        _: &'s [f32],
        _: &mut usize,
        parts: &mut Vec<&'s [f32]>,
    ) {
        if self.len == 0 {
            return;
        }
        for part in &self.parts {
            let own = part.chunks_exact(self.len);
            parts.extend(own.skip(rows.start).take(rows.len()));
        }
    }
}
