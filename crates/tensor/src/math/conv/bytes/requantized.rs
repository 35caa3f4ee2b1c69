//! Convolutions of bytes whose sums become bytes while they are near: images in, images out, channels last.
//!
//! The exact sum of a window, with a bias, is rounded to an `f32`, multiplied by the factor of its filter, and rounded to an
//! integer, ties to even; the zero point is added, and the result saturated. All instructions give the same bits.

use std::sync::Arc;

use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use super::super::Convolution;
use super::{ByteConvolution, PackedByteFilter, Scratch};
use crate::DenseHostTensor;
use crate::math::byte_gemm::ByteEpilogue;
use crate::math::parallel;

/// Convolves images of `u8` or `i8` with a zero point, which is also around the images, into images of bytes.
///
/// # Shapes
///
/// `x`: `[batch, spatial.., channels]`; `out`: `[batch, output.., filters]`, of the epilogue's type.
///
/// # Errors
///
/// `InvalidArgument` if extents, groups or types are not those of the filter or of the epilogue, and the errors of
/// [`parallel::fill_bytes`].
pub fn convolve_requantized_into(
    execution: &ExecutionContext,
    convolution: &Convolution,
    images: (&DenseHostTensor, i32),
    filter: Arc<PackedByteFilter>,
    by: Arc<ByteEpilogue>,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let checked = ByteConvolution::new(convolution, images, filter, &out.shape().to_dims())?;
    let n_filters = checked.plan.filters;
    if by.n_columns() != n_filters || by.dtype() != out.dtype() {
        let (n, dtype) = (by.n_columns(), by.dtype());
        return Err(Error::invalid_argument(format!(
            "{n} factors to {dtype} don't fit {n_filters} filters and a result of {}",
            out.dtype()
        )));
    }
    let block = checked.block();
    let unit = checked.unit();
    let parts = checked.parts(out.n_elements(), unit);
    let x = images.0.clone();
    parallel::fill_bytes_parts(execution, out, parts, move |first, part| {
        let reading = x.read()?;
        let mut scratch = Scratch::default();
        let mut output = first / n_filters;
        #[cfg(target_arch = "x86_64")]
        if unit > 1 {
            checked.requantized_lines(reading.bytes(), output, &by, part, &mut scratch);
            return Ok(());
        }
        for part in part.chunks_mut(block) {
            checked.requantized(reading.bytes(), output, &by, part, &mut scratch);
            output += part.len() / n_filters;
        }
        Ok(())
    })
}
