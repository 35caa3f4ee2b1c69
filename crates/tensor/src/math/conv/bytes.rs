//! Convolutions of bytes with exact sums of 32 bits: `(x - x_zero) (filter - filter_zero)`.
//!
//! Images have channels last. What the windows of a block of outputs look at is gathered as bytes, a row for each output,
//! and multiplied by the packed filter ([`byte_gemm`]); if each channel is a group of its own (depthwise), channels are
//! multiplied side by side. All instructions give the same bits.

use std::num::NonZeroUsize;
use std::sync::Arc;

use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use super::{ConvPlan, Convolution, channels_first};
use crate::math::byte_gemm::{self, LeftRows, PackedBytes};
use crate::math::{parallel, vectorized};
use crate::{DType, DenseHostTensor, Dims};

mod requantized;

pub use requantized::{ByteEpilogue, convolve_requantized_into};

/// A filter of bytes, packed for convolutions in some number of groups.
#[derive(Debug)]
pub struct PackedByteFilter {
    /// `[window.., channels / groups, filters]`.
    extents: Dims,
    form: Form,
}

/// The elements of a packed filter.
#[derive(Debug)]
enum Form {
    /// For each group its matrix, `[taps * channels / groups, filters / groups]`.
    Groups(Vec<PackedBytes>),
    /// Of filters with a channel each, `[taps, channels]` without zero points.
    Depthwise(Vec<i16>),
}

impl PackedByteFilter {
    /// Packs a filter of `u8` or `i8` with no zero point, one, or one for each filter.
    ///
    /// # Shapes
    ///
    /// `filter` as in the table of [`channels_first`].
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the filter is of another type or of less than three dimensions, if its windows have more than
    /// [`MAX_DEPTH`](byte_gemm::MAX_DEPTH) elements, or if zero points or groups don't fit.
    pub fn new(
        filter: &DenseHostTensor,
        zeros: &[i32],
        groups: usize,
    ) -> Result<PackedByteFilter, Error> {
        let given = filter.shape().to_dims();
        let less = byte_gemm::bias(filter.dtype())?;
        let &[n_filters, own_channels, ref window @ ..] = &given[..] else {
            let message = format!("expected a filter of images, found extents {given:?}");
            return Err(Error::invalid_argument(message));
        };
        if groups == 0 || n_filters % groups != 0 || ![0, 1, n_filters].contains(&zeros.len()) {
            let n_zeros = zeros.len();
            let message =
                format!("{n_filters} filters don't fit {groups} groups and {n_zeros} zero points");
            return Err(Error::invalid_argument(message));
        }
        let extents = channels_first::filter_last(&given)?;
        let (n_taps, own_filters) = (window.iter().product::<usize>(), n_filters / groups);
        let reading = filter.read()?;
        let bytes = reading.bytes();
        let place = |filter, channel, tap| (filter * own_channels + channel) * n_taps + tap;
        let form = match (own_channels, own_filters) {
            (1, 1) if byte_gemm::are_bytes(zeros) => {
                let mut factors = Vec::with_capacity(n_taps * n_filters);
                for tap in 0..n_taps {
                    factors.extend((0..n_filters).map(|filter| {
                        let zero = zeros.get(filter).or(zeros.first()).copied().unwrap_or(0);
                        let byte = bytes[place(filter, 0, tap)] ^ byte_gemm::flip(less);
                        #[expect(
                            clippy::cast_possible_truncation,
                            reason = "the difference of two bytes has 9 bits"
                        )]
                        let factor = (i32::from(byte.cast_signed()) + less - zero) as i16;
                        factor
                    }));
                }
                Form::Depthwise(factors)
            }
            _ => {
                let packed = (0..groups).map(|group| {
                    let filters = group * own_filters..(group + 1) * own_filters;
                    let mut matrix = Vec::with_capacity(n_taps * own_channels * own_filters);
                    for tap in 0..n_taps {
                        for channel in 0..own_channels {
                            let of = |filter| bytes[place(filter, channel, tap)];
                            matrix.extend(filters.clone().map(of));
                        }
                    }
                    let zeros = match zeros.len() {
                        0 | 1 => zeros,
                        _ => &zeros[filters],
                    };
                    let matrix_extents = [n_taps * own_channels, own_filters];
                    PackedBytes::of_bytes(matrix_extents, filter.dtype(), &matrix, zeros)
                });
                Form::Groups(packed.collect::<Result<_, _>>()?)
            }
        };
        Ok(PackedByteFilter { extents, form })
    }
}

/// Convolves images of `u8` or `i8` with a zero point, which is also around the images, into sums of `i32`.
///
/// # Shapes
///
/// `x`: `[batch, spatial.., channels]`; `out`: `[batch, output.., filters]`.
///
/// # Errors
///
/// `InvalidArgument` if extents, groups or types are not those of the filter, and the errors of [`parallel::fill`].
pub fn convolve_bytes_into(
    execution: &ExecutionContext,
    convolution: &Convolution,
    (x, zero): (&DenseHostTensor, i32),
    filter: Arc<PackedByteFilter>,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let checked = ByteConvolution::new(convolution, (x, zero), filter, &out.shape().to_dims())?;
    let (block, n_filters) = (checked.block(), checked.plan.filters);
    let chunk = checked.chunk_len();
    let x = x.clone();
    parallel::fill(execution, out, chunk, move |first, part: &mut [i32]| {
        let reading = x.read()?;
        let (mut output, mut scratch) = (first / n_filters, Scratch::default());
        for part in part.chunks_mut(block) {
            checked.sums(reading.bytes(), output, part, &mut scratch);
            output += part.len() / n_filters;
        }
        Ok(())
    })
}

/// A convolution of images of bytes by a packed filter, which fit together.
struct ByteConvolution {
    plan: ConvPlan,
    filter: Arc<PackedByteFilter>,
    /// The element outside of the images.
    around: u8,
    /// The number that elements are above signed bytes.
    less: i32,
    zero: i32,
}

impl ByteConvolution {
    fn new(
        convolution: &Convolution,
        (x, zero): (&DenseHostTensor, i32),
        filter: Arc<PackedByteFilter>,
        out: &[usize],
    ) -> Result<ByteConvolution, Error> {
        let less = byte_gemm::bias(x.dtype())?;
        let plan = convolution.plan(&x.shape().to_dims(), &filter.extents)?;
        plan.expect_output(out)?;
        let groups = match &filter.form {
            Form::Groups(packed) => packed.len(),
            Form::Depthwise(_) => plan.filters,
        };
        if groups != plan.groups {
            let message = format!(
                "a filter packed for a convolution in {groups} groups does not fit one in {}",
                plan.groups
            );
            return Err(Error::invalid_argument(message));
        }
        // The zero point is also the element around the images.
        let around =
            u8::try_from(zero - less + 128).map(|byte| byte ^ 0x80 ^ byte_gemm::flip(less));
        let Ok(around) = around else {
            let message = format!("the zero point {zero} is no {}, as images are", x.dtype());
            return Err(Error::invalid_argument(message));
        };
        Ok(ByteConvolution {
            plan,
            filter,
            around,
            less,
            zero,
        })
    }

    /// Returns the number of sums that are made together, of whole outputs.
    fn block(&self) -> usize {
        self.plan.block_len().saturating_mul(self.plan.filters)
    }

    fn chunk_len(&self) -> NonZeroUsize {
        parallel::chunk_len(self.plan.n_columns() / 16, self.block())
    }

    /// Makes the sums of whole outputs from one on, at most [`block`](Self::block).
    fn sums(&self, bytes: &[u8], output: usize, out: &mut [i32], scratch: &mut Scratch) {
        let image = Bytes {
            bytes,
            around: self.around,
            less: self.less,
            zero: self.zero,
        };
        let plan = &self.plan;
        match &self.filter.form {
            Form::Groups(packed) => plan.byte_block(&image, packed, output, out, scratch),
            Form::Depthwise(factors) => {
                plan.byte_channels(&image, factors, output, out, &mut scratch.taps);
            }
        }
    }
}

/// Images of bytes.
struct Bytes<'a> {
    bytes: &'a [u8],
    /// The element outside of the images.
    around: u8,
    /// The number that elements are above signed bytes.
    less: i32,
    zero: i32,
}

/// Memory of a block of outputs, kept for the next one.
#[derive(Default)]
struct Scratch {
    patches: Vec<u8>,
    sums: Vec<i32>,
    taps: Vec<Tap>,
}

/// An element that a window looks at: the places of its channels, in the images and in the filter.
struct Tap {
    image: usize,
    filter: usize,
}

impl ConvPlan {
    /// Makes whole outputs from one on.
    fn byte_block(
        &self,
        image: &Bytes<'_>,
        packed: &[PackedBytes],
        output: usize,
        out: &mut [i32],
        Scratch { patches, sums, .. }: &mut Scratch,
    ) {
        let n = out.len() / self.filters;
        let (own_channels, own_filters) = (self.channels / self.groups, self.filters / self.groups);
        for (group, packed) in packed.iter().enumerate() {
            let bytes = if self.is_pointwise() && self.groups == 1 {
                &image.bytes[output * self.channels..][..n * self.channels]
            } else {
                let channels = group * own_channels..(group + 1) * own_channels;
                self.gather(image.bytes, output, n, channels, image.around, patches);
                &patches[..]
            };
            let rows = LeftRows {
                bytes,
                depth: self.n_columns(),
                less: image.less,
                zeros: &[image.zero],
            };
            if self.groups == 1 {
                rows.multiply(n, packed, 0, out);
                continue;
            }
            sums.resize(n * own_filters, 0);
            rows.multiply(n, packed, 0, sums);
            let own = out
                .chunks_exact_mut(self.filters)
                .zip(sums.chunks_exact(own_filters));
            for (out, sums) in own {
                out[group * own_filters..][..own_filters].copy_from_slice(sums);
            }
        }
    }

    /// Makes whole outputs from one on, whose channels don't mix.
    fn byte_channels(
        &self,
        image: &Bytes<'_>,
        factors: &[i16],
        output: usize,
        out: &mut [i32],
        taps: &mut Vec<Tap>,
    ) {
        let (channels, step) = (self.channels, self.step());
        let stride = self.windows.0[2].window.stride * channels;
        let (flip, zero) = (byte_gemm::flip(image.less), image.zero - image.less);
        #[expect(clippy::cast_possible_truncation, reason = "it has 9 bits")]
        let zero = zero as i16;
        // Factors of 16 bits have instructions of their own.
        let product = |byte: u8, factor: i16| {
            let x = i16::from((byte ^ flip).cast_signed()).wrapping_sub(zero);
            i32::from(x) * i32::from(factor)
        };
        let mut rest = out;
        let mut output = output;
        while !rest.is_empty() {
            let (start, own) = self.image(output);
            let n_alike = self.windows.n_alike(own).min(rest.len() / channels);
            let (out, behind) = rest.split_at_mut(n_alike * channels);
            (rest, output) = (behind, output + n_alike);
            taps.clear();
            self.windows.runs(own, |tap, place, n_run| {
                taps.extend((0..n_run).map(|index| Tap {
                    image: start + place * channels + index * step,
                    filter: (tap + index) * channels,
                }));
            });
            let mut bytes = image.bytes;
            vectorized(
                #[inline(always)]
                || {
                    for out in out.chunks_exact_mut(channels) {
                        let (blocks, rest) = out.as_chunks_mut::<SIDE_BY_SIDE>();
                        let n_whole = channels - rest.len();
                        for (block, out) in blocks.iter_mut().enumerate() {
                            let first = block * SIDE_BY_SIDE;
                            let mut sums = [0_i32; SIDE_BY_SIDE];
                            for tap in &*taps {
                                let x = &bytes[tap.image + first..][..SIDE_BY_SIDE];
                                let factors = &factors[tap.filter + first..][..SIDE_BY_SIDE];
                                for ((sum, x), factor) in sums.iter_mut().zip(x).zip(factors) {
                                    *sum = sum.wrapping_add(product(*x, *factor));
                                }
                            }
                            *out = sums;
                        }
                        rest.fill(0);
                        for tap in &*taps {
                            let x = &bytes[tap.image + n_whole..][..rest.len()];
                            let factors = &factors[tap.filter + n_whole..][..rest.len()];
                            for ((sum, x), factor) in rest.iter_mut().zip(x).zip(factors) {
                                *sum = sum.wrapping_add(product(*x, *factor));
                            }
                        }
                        // The next window lies a stride further.
                        bytes = bytes.get(stride..).unwrap_or_default();
                    }
                },
            );
        }
    }
}

/// Number of channels whose sums are in registers together.
const SIDE_BY_SIDE: usize = 16;

/// The numbers by which sums of a convolution become bytes: `(sum + bias) / scale`, rounded to integers, ties to even,
/// plus `zero`, saturated.
#[derive(Clone, Debug)]
pub struct Requantize {
    /// A scale, or one for each filter.
    pub scales: Vec<f64>,
    /// Nothing, or a summand for each filter, which is an integer of 32 bits.
    pub bias: Vec<f64>,
    /// The zero point of the results.
    pub zero: f64,
}

impl Requantize {
    /// Checks that sums can become a result, as [`requantize_into`] does.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if extents or types, or the numbers of scales or summands, don't fit.
    pub fn check(&self, sums: &DenseHostTensor, out: &DenseHostTensor) -> Result<(), Error> {
        let (from, to) = (sums.shape().to_dims(), out.shape().to_dims());
        crate::dense::expect_dtype::<i32>(sums.metadata())?;
        range(out.dtype())?;
        let n_filters = from.last().copied().unwrap_or(0);
        let fits = from.len() > 1
            && channels_first::channels_first(&from) == to
            && [1, n_filters].contains(&self.scales.len())
            && [0, n_filters].contains(&self.bias.len());
        if fits {
            return Ok(());
        }
        let (n_scales, n_summands) = (self.scales.len(), self.bias.len());
        Err(Error::invalid_argument(format!(
            "sums of extents {from:?} with {n_scales} scales and {n_summands} summands don't fit a result of extents \
             {to:?}"
        )))
    }
}

/// Returns the least and the largest number of a type that sums are quantised to.
fn range(dtype: DType) -> Result<(f64, f64), Error> {
    match dtype {
        DType::Ui8 => Ok((0.0, 255.0)),
        DType::I8 => Ok((-128.0, 127.0)),
        dtype => {
            let message = format!("sums can't be quantised to {dtype}: expected ui8 or i8");
            Err(Error::invalid_argument(message))
        }
    }
}

/// Quantises sums of convolutions with channels last to images with channels first.
///
/// # Shapes
///
/// `sums`: `[batch, output.., filters]`, of `i32`; `out`: `[batch, filters, output..]`, of `u8` or `i8`.
///
/// # Errors
///
/// Those of [`Requantize::check`] and of [`parallel::fill_bytes`].
pub fn requantize_into(
    execution: &ExecutionContext,
    by: Requantize,
    sums: &DenseHostTensor,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    by.check(sums, out)?;
    let from = sums.shape().to_dims();
    let n_filters = from[from.len() - 1];
    let (least, largest) = range(out.dtype())?;
    let n_places: usize = from[1..from.len() - 1].iter().product();
    let sums = sums.clone();
    let chunk = parallel::chunk_len(4, n_places.saturating_mul(TOGETHER));
    parallel::fill_bytes(execution, out, chunk, move |first, part| {
        let reading = sums.read()?;
        let sums = reading.elements::<i32>()?;
        let mut row = first / n_places;
        let mut rest = part;
        while !rest.is_empty() {
            let (image, filter) = (row / n_filters, row % n_filters);
            let n = TOGETHER.min(n_filters - filter).min(rest.len() / n_places);
            let (rows, behind) = rest.split_at_mut(n * n_places);
            let one = |index: usize| {
                let filter = filter + index.min(n - 1);
                let scale = by.scales.get(filter).or(by.scales.first());
                let bias = by.bias.get(filter).copied().unwrap_or(0.0);
                (scale.copied().unwrap_or(1.0), bias)
            };
            let filters: [(f64, f64); TOGETHER] = std::array::from_fn(one);
            let (scales, biases) = (filters.map(|one| one.0), filters.map(|one| one.1));
            let start = image * n_places * n_filters + filter;
            vectorized(
                #[inline(always)]
                || {
                    for place in 0..n_places {
                        let sums = &sums[start + place * n_filters..][..n];
                        let mut wide = [0.0; TOGETHER];
                        for (wide, sum) in wide.iter_mut().zip(sums) {
                            *wide = f64::from(*sum);
                        }
                        for ((wide, scale), bias) in wide.iter_mut().zip(scales).zip(biases) {
                            let quotient = (*wide + bias) / scale;
                            *wide = (quotient.round_ties_even() + by.zero).clamp(least, largest);
                        }
                        for (index, wide) in wide.iter().enumerate().take(n) {
                            rows[index * n_places + place] = byte(*wide);
                        }
                    }
                },
            );
            row += n;
            rest = behind;
        }
        Ok(())
    })
}

/// Number of filters whose sums, neighbours in memory, are quantised together.
const TOGETHER: usize = 16;

/// Returns the byte of a number of the range of `u8` or of `i8`; 0 for what is no number.
#[inline(always)]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the lowest bits of a number in the range of either type are the byte"
)]
fn byte(value: f64) -> u8 {
    value as i32 as u8
}

#[cfg(test)]
mod tests;
