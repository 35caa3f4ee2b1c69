//! Convolutions of one to three dimensions with channels last, their gradients, transposed ones
//! ([`convolve_transposed`]), and those with channels first ([`channels_first`]).
//!
//! # Shapes
//!
//! | Tensor | Shape |
//! | --- | --- |
//! | input | `[batch, spatial.., channels]` |
//! | filter | `[window.., channels / groups, filters]` |
//! | output | `[batch, output.., filters]` |
//!
//! # How
//!
//! Outputs are made in blocks of neighbours. What the windows of a block look at is gathered into a
//! matrix of patches, a row for each output, which is multiplied by the filter as it lies; so no more than a
//! block of patches exists at a time. A window of one element without stride needs no gathering. If each
//! channel is a group of its own (depthwise), channels are multiplied side by side instead.

use smallvec::SmallVec;
use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use super::matmul::{MatmulElement, Matrix, Rows, Scale, multiply_widened};
use super::number::Real;
use super::window::{Window, Windows};
use super::{parallel, vectorized};
use crate::math::Family;
use crate::with_real;
use crate::{DenseHostTensor, Dims, Element, TensorView, TensorViewMut};

mod bytes;
pub mod channels_first;
pub mod deformed;
mod depthwise;
mod gradient;
mod packed;
mod patches;
mod transposed;
mod winograd;

pub use super::byte_gemm::ByteEpilogue;
pub use bytes::convolve_requantized_into;
pub use bytes::{PackedByteFilter, Requantize, convolve_bytes_into, requantize_into};
pub use depthwise::convolve_depthwise_into;
pub use gradient::{filter_gradient, filter_gradient_into, input_gradient, input_gradient_into};
pub use packed::{PackedFilter, convolve_packed, convolve_packed_into};
pub use packed::{convolve_concat_extents, convolve_concat_into};
pub use transposed::{TransposedConvolution, convolve_transposed, convolve_transposed_into};
pub use winograd::Method;

/// Maximum number of outputs that one matrix product makes.
const BLOCK: usize = 96;
/// Maximum number of elements of a matrix of patches, unless one row has more.
const MAX_PATCHES: usize = 1 << 20;

/// A convolution: its windows, and the number of groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Convolution {
    /// A window for each spatial dimension, of the filter's extent.
    pub windows: SmallVec<[Window; 3]>,
    /// Number of groups: the first part of the channels is seen by the first part of the filters, and so on.
    pub groups: usize,
}

/// Epilogue of a convolution, applied to each output: `x * scale + shift`, then relu.
///
/// `scale` and `shift` have an entry for each filter; what is missing is left out.
#[derive(Clone, Copy, Debug, Default)]
pub struct ConvEpilogue<'a, T> {
    /// Factor of each filter.
    pub scale: Option<&'a [T]>,
    /// Summands: the bias.
    pub shift: Option<&'a [T]>,
    /// Whether relu is applied.
    pub relu: bool,
}

/// Extents of a convolution's tensors.
#[derive(Clone, Copy, Debug)]
struct ConvPlan {
    windows: Windows,
    batch: usize,
    channels: usize,
    filters: usize,
    groups: usize,
    rank: usize,
}

impl Convolution {
    /// Returns a convolution without groups.
    pub fn new(windows: &[Window]) -> Convolution {
        Convolution {
            windows: SmallVec::from_slice(windows),
            groups: 1,
        }
    }

    /// Returns the shape of the output.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if input and filter are not of the shapes that the module's table has, if the filter's
    /// extents are not the windows', or if a window does not fit.
    pub fn output_extents(&self, input: &[usize], filter: &[usize]) -> Result<Dims, Error> {
        Ok(self.plan(input, filter)?.output_extents())
    }

    fn plan(&self, input: &[usize], filter: &[usize]) -> Result<ConvPlan, Error> {
        let rank = self.windows.len();
        let ([batch, spatial @ .., channels], [extents @ .., own_channels, filters]) =
            (input, filter)
        else {
            return Err(self.misfit(input, filter));
        };
        let fits = spatial.len() == rank
            && self
                .windows
                .iter()
                .map(|window| window.extent)
                .eq(extents.iter().copied());
        if !fits || self.groups == 0 {
            return Err(self.misfit(input, filter));
        }
        if own_channels.checked_mul(self.groups) != Some(*channels) || filters % self.groups != 0 {
            let groups = self.groups;
            return Err(Error::invalid_argument(format!(
                "Dimensions does not match: input channels is {channels} and kernel depth is {own_channels}, \
                 with {filters} filters in {groups} groups"
            )));
        }
        let windows = Windows::new(&self.windows, spatial)?;
        // As for windows: a filter or an image without elements may be of any size.
        let fits = windows.n_taps().checked_mul(*own_channels).is_some()
            && windows.n_inputs().checked_mul(*channels).is_some()
            && windows.n_outputs().checked_mul(*filters).is_some();
        if !fits {
            let message = "images or filters of a convolution do not fit any memory";
            return Err(Error::resource_exhausted(message));
        }
        Ok(ConvPlan {
            windows,
            batch: *batch,
            channels: *channels,
            filters: *filters,
            groups: self.groups,
            rank,
        })
    }

    #[cold]
    fn misfit(&self, input: &[usize], filter: &[usize]) -> Error {
        let windows: Vec<usize> = self.windows.iter().map(|window| window.extent).collect();
        let groups = self.groups;
        Error::invalid_argument(format!(
            "a convolution by windows of {windows:?} in {groups} groups: expected an input of shape [batch, \
             spatial.., channels] and a filter of shape [window.., channels / groups, filters], found {input:?} \
             and {filter:?}"
        ))
    }
}

/// Calculates a convolution.
///
/// # Shapes
///
/// As in the module's table.
///
/// # Errors
///
/// `InvalidArgument` if the shapes are not that, or if views do not lie in row-major order.
///
/// # Examples
///
/// ```
/// use tfrt_tensor::math::conv::{Convolution, ConvEpilogue, convolve};
/// use tfrt_tensor::math::window::{Padding, Window};
/// use tfrt_tensor::{TensorView, TensorViewMut};
///
/// // The sum of neighbours.
/// let x = TensorView::new(&[1.0_f32, 2.0, 3.0, 4.0], &[1, 4, 1])?;
/// let filter = TensorView::new(&[1.0, 1.0], &[2, 1, 1])?;
/// let mut out = [0.0; 3];
/// let convolution = Convolution::new(&[Window::new(2, 1, Padding::Valid)]);
/// convolve(&convolution, &x, &filter, ConvEpilogue::default(), &mut TensorViewMut::new(&mut out, &[1, 3, 1])?)?;
/// assert_eq!(out, [3.0, 5.0, 7.0]);
/// # Ok::<(), tfrt_host::Error>(())
/// ```
pub fn convolve<T: MatmulElement + Real>(
    convolution: &Convolution,
    input: &TensorView<'_, T>,
    filter: &TensorView<'_, T>,
    epilogue: ConvEpilogue<'_, T>,
    out: &mut TensorViewMut<'_, T>,
) -> Result<(), Error> {
    let plan = convolution.plan(input.extents(), filter.extents())?;
    plan.expect_output(out.extents())?;
    plan.expect_epilogue(&epilogue)?;
    let (input, filter) = (in_order(input)?, in_order(filter)?);
    let filter = T::widen_rhs(filter.into());
    plan.run(input, &filter, epilogue, 0, out.as_mut_slice());
    Ok(())
}

/// The tensors of an [`ConvEpilogue`].
#[derive(Clone, Debug, Default)]
pub struct TensorConvEpilogue {
    /// Factors: `[filters]`.
    pub scale: Option<DenseHostTensor>,
    /// Summands: `[filters]`.
    pub shift: Option<DenseHostTensor>,
    /// Whether relu is applied.
    pub relu: bool,
}

/// Applies [`convolve`] to dense tensors, on the workers of the request's queue if there is much to do.
///
/// # Errors
///
/// Those of [`convolve`], and those of [`parallel::fill`].
pub fn convolve_into(
    execution: &ExecutionContext,
    convolution: &Convolution,
    operands: [&DenseHostTensor; 2],
    epilogue: TensorConvEpilogue,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let dtype = operands[0].dtype();
    with_real!(dtype, T => convolve_of::<T>(execution, convolution, operands, epilogue, out), else Err(Family::Reals.lacks(dtype)))
}

fn convolve_of<T: MatmulElement + Real>(
    execution: &ExecutionContext,
    convolution: &Convolution,
    [input, filter]: [&DenseHostTensor; 2],
    epilogue: TensorConvEpilogue,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    for tensor in [
        Some(input),
        Some(filter),
        epilogue.scale.as_ref(),
        epilogue.shift.as_ref(),
    ] {
        tensor.map_or(Ok(()), |tensor| {
            crate::dense::expect_dtype::<T>(tensor.metadata())
        })?;
    }
    let plan = convolution.plan(&input.shape().to_dims(), &filter.shape().to_dims())?;
    plan.expect_output(&out.shape().to_dims())?;
    for tensor in [&epilogue.scale, &epilogue.shift].into_iter().flatten() {
        plan.expect_per_filter(tensor.n_elements())?;
    }
    let (input, filter) = (input.clone(), filter.clone());
    parallel::fill(
        execution,
        out,
        plan.chunk_len(),
        move |first, part: &mut [T]| {
            let (input, filter) = (input.read()?, filter.read()?);
            let scale = epilogue
                .scale
                .as_ref()
                .map(DenseHostTensor::read)
                .transpose()?;
            let shift = epilogue
                .shift
                .as_ref()
                .map(DenseHostTensor::read)
                .transpose()?;
            let epilogue = ConvEpilogue {
                scale: scale.as_ref().map(|scale| scale.elements()).transpose()?,
                shift: shift.as_ref().map(|shift| shift.elements()).transpose()?,
                relu: epilogue.relu,
            };
            let filter = T::widen_rhs(filter.elements()?.into());
            plan.run(input.elements()?, &filter, epilogue, first, part);
            Ok(())
        },
    )
}

fn in_order<'a, T: Element>(view: &TensorView<'a, T>) -> Result<&'a [T], Error> {
    view.as_slice().ok_or_else(|| {
        Error::invalid_argument(
            "a convolution's tensors lie in row-major order: copy the view first",
        )
    })
}

impl ConvPlan {
    fn output_extents(&self) -> Dims {
        let mut extents = Dims::from_slice(&[self.batch]);
        extents.extend(self.windows.outputs(self.rank));
        extents.push(self.filters);
        extents
    }

    fn expect_output(&self, found: &[usize]) -> Result<(), Error> {
        let wanted = self.output_extents();
        if wanted[..] == *found {
            return Ok(());
        }
        Err(Error::invalid_argument(format!(
            "Tensor shapes do not match: output tensor shape is {found:?} and computed output shape is \
             {wanted:?}"
        )))
    }

    fn expect_epilogue<T>(&self, epilogue: &ConvEpilogue<'_, T>) -> Result<(), Error> {
        [epilogue.scale, epilogue.shift]
            .into_iter()
            .flatten()
            .try_for_each(|list| self.expect_per_filter(list.len()))
    }

    fn expect_per_filter(&self, found: usize) -> Result<(), Error> {
        if found == self.filters {
            return Ok(());
        }
        let wanted = self.filters;
        Err(Error::invalid_argument(format!(
            "expected an element for each of {wanted} filters, found {found}"
        )))
    }

    fn is_depthwise(&self) -> bool {
        self.groups == self.channels && self.filters == self.channels && self.groups > 1
    }

    /// Returns the columns of the matrix of patches, of one group.
    fn n_columns(&self) -> usize {
        self.windows.n_taps() * (self.channels / self.groups)
    }

    /// Returns the number of outputs that one matrix product makes.
    fn block_len(&self) -> usize {
        (MAX_PATCHES / self.n_columns().max(1)).clamp(1, BLOCK)
    }

    fn chunk_len(&self) -> std::num::NonZeroUsize {
        let multiple = match self.is_depthwise() {
            true => self.filters,
            false => self.block_len().saturating_mul(self.filters),
        };
        parallel::chunk_len(self.n_columns() / 8, multiple)
    }

    /// Makes the outputs from the `first` element on; whole outputs.
    fn run<T: MatmulElement + Real>(
        &self,
        input: &[T],
        filter: &[T::RhsElement],
        epilogue: ConvEpilogue<'_, T>,
        first: usize,
        out: &mut [T],
    ) {
        if out.is_empty() {
            return;
        }
        let mut output = first / self.filters;
        let mut patches = Vec::new();
        for part in out.chunks_mut(self.block_len() * self.filters) {
            let n = part.len() / self.filters;
            match self.is_depthwise() {
                true => self.depthwise(input, filter, output, part),
                false => self.block(input, filter, output, part, &mut patches),
            }
            finish(epilogue, self.filters, part);
            output += n;
        }
    }

    /// Returns the beginning of an output's image in the input, and the output's number in its image.
    fn image(&self, output: usize) -> (usize, usize) {
        let n_outputs = self.windows.n_outputs();
        let start = output / n_outputs * self.windows.n_inputs() * self.channels;
        (start, output % n_outputs)
    }

    /// Returns the distance in the input between neighbours of a run of the last dimension. It wraps around only
    /// where no window has two elements of the input.
    fn step(&self) -> usize {
        let dilation = self.windows.0[2].window.dilation;
        dilation.wrapping_mul(self.channels)
    }

    /// Returns whether the windows look at one element each, and every element has one.
    fn is_pointwise(&self) -> bool {
        self.windows.n_taps() == 1 && self.windows.n_outputs() == self.windows.n_inputs() && {
            let untouched =
                |laid: &super::window::WindowAxis| laid.before == 0 && laid.window.stride == 1;
            self.windows.0.iter().all(untouched)
        }
    }

    fn block<T: MatmulElement + Real>(
        &self,
        input: &[T],
        filter: &[T::RhsElement],
        output: usize,
        out: &mut [T],
        patches: &mut Vec<T>,
    ) {
        let n = out.len() / self.filters;
        let (own_channels, own_filters) = (self.channels / self.groups, self.filters / self.groups);
        let n_columns = self.n_columns();
        for group in 0..self.groups {
            let a = match self.is_pointwise() {
                true => {
                    let start = output * self.channels + group * own_channels;
                    Matrix::new(input, start, [n, n_columns], [self.channels, 1])
                }
                false => {
                    let columns = group * own_channels..(group + 1) * own_channels;
                    self.gather(input, output, n, columns, T::ZERO, patches);
                    Matrix::new(patches, 0, [n, n_columns], [n_columns, 1])
                }
            };
            let b_start = group * own_filters;
            let b = Matrix::new(filter, b_start, [n_columns, own_filters], [self.filters, 1]);
            let out = Rows::new(
                &mut out[group * own_filters..],
                [n, own_filters],
                self.filters,
            );
            multiply_widened(Scale::default(), a, b, out);
        }
    }

    /// Gathers the elements that `n` outputs from `output` on read, of some channels, into a row for each (im2col), with
    /// `around` in place of those that lie outside of the image.
    fn gather<T: Element>(
        &self,
        input: &[T],
        output: usize,
        n: usize,
        channels: std::ops::Range<usize>,
        around: T,
        patches: &mut Vec<T>,
    ) {
        let n_own = channels.len();
        let row_len = self.windows.n_taps() * n_own;
        patches.clear();
        patches.resize(n * row_len, around);
        let step = self.step();
        for index in 0..n {
            let row = &mut patches[index * row_len..][..row_len];
            let (image, own) = self.image(output + index);
            self.windows.runs(own, |tap, place, n_run| {
                let from = image + place * self.channels + channels.start;
                let to = &mut row[tap * n_own..][..n_run * n_own];
                if step == n_own {
                    // The whole run lies in one piece.
                    to.copy_from_slice(&input[from..from + n_run * n_own]);
                    return;
                }
                for (index, to) in to.chunks_exact_mut(n_own).enumerate() {
                    to.copy_from_slice(&input[from + index * step..][..n_own]);
                }
            });
        }
    }

    /// Makes outputs whose channels don't mix.
    fn depthwise<T: MatmulElement>(
        &self,
        input: &[T],
        filter: &[T::RhsElement],
        output: usize,
        out: &mut [T],
    ) {
        let (channels, step) = (self.channels, self.step());
        for (index, out) in out.chunks_exact_mut(channels).enumerate() {
            let (image, own) = self.image(output + index);
            out.fill(T::ZERO);
            self.windows.runs(own, |tap, place, n_run| {
                for index in 0..n_run {
                    let x = &input[image + place * channels + index * step..][..channels];
                    let factors = &filter[(tap + index) * channels..][..channels];
                    vectorized(
                        #[inline(always)]
                        || {
                            for ((out, x), factor) in out.iter_mut().zip(x).zip(factors) {
                                *out = out.plus(x.times_widened(*factor));
                            }
                        },
                    );
                }
            });
        }
    }
}

/// Applies the epilogue of a convolution to rows of `n` filters.
fn finish<T: Real>(epilogue: ConvEpilogue<'_, T>, n: usize, out: &mut [T]) {
    let ConvEpilogue { scale, shift, relu } = epilogue;
    if scale.is_none() && shift.is_none() && !relu {
        return;
    }
    for row in out.chunks_exact_mut(n) {
        vectorized(
            #[inline(always)]
            || {
                if let Some(scale) = scale {
                    row.iter_mut()
                        .zip(scale)
                        .for_each(|(x, factor)| *x = x.times(*factor));
                }
                if let Some(shift) = shift {
                    row.iter_mut()
                        .zip(shift)
                        .for_each(|(x, summand)| *x = x.plus(*summand));
                }
                if relu {
                    row.iter_mut().for_each(|x| *x = T::ZERO.greatest(*x));
                }
            },
        );
    }
}

#[cfg(test)]
mod tests;
