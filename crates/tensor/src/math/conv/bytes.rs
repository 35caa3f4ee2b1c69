//! Convolutions of bytes with exact sums of 32 bits: `(x - x_zero) (filter - filter_zero)`.
//!
//! Images have channels last. What the windows of a block of outputs look at is gathered as bytes, a row for each output,
//! and multiplied by the packed filter ([`byte_gemm`]); if each channel is a group of its own (depthwise), channels are
//! multiplied side by side. All instructions give the same bits.

use std::sync::Arc;

use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use super::{ConvPlan, Convolution, channels_first};
use crate::math::byte_gemm::{self, ByteEpilogue, ByteInstructions, LeftRows, PackedBytes};
use crate::math::parallel::{self, Parts};
use crate::math::vectorized;
use crate::{DType, DenseHostTensor, Dims};

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, reason = "a listed module")]
mod channels;
mod gather;
#[cfg(target_arch = "x86_64")]
mod lines;
mod quantized;
mod requantized;

pub use quantized::{Requantize, requantize_into};
pub use requantized::convolve_requantized_into;

/// The least number of outputs, whose channels don't mix, of a part that a thread makes.
const LEAST_OUTPUTS: usize = 16;

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
    /// Of filters with a channel each.
    Depthwise(Depthwise),
}

/// A filter with a channel each.
#[derive(Debug)]
struct Depthwise {
    /// `[taps, channels]`, without zero points.
    factors: Vec<i16>,
    /// The factors as signed bytes, if that is possible and there are instructions for them.
    #[cfg(target_arch = "x86_64")]
    quick: Option<channels::ChannelFilter>,
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
        PackedByteFilter::pack_for(ByteInstructions::best(), filter, zeros, groups)
    }

    /// Packs a filter for instructions, which must be available.
    fn pack_for(
        set: ByteInstructions,
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
                Form::Depthwise(Depthwise {
                    #[cfg(target_arch = "x86_64")]
                    quick: channels::ChannelFilter::new(set, &factors, n_taps),
                    factors,
                })
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
                    PackedBytes::pack_for(set, matrix_extents, filter.dtype(), &matrix, zeros)
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
    let parts = checked.parts(out.n_elements(), 1);
    let x = x.clone();
    parallel::fill_parts(execution, out, parts, move |first, part: &mut [i32]| {
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
    dtype: DType,
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
            dtype: x.dtype(),
        })
    }

    /// Returns the number of sums that are made together, of whole outputs.
    fn block(&self) -> usize {
        self.plan.block_len().saturating_mul(self.plan.filters)
    }

    /// Returns the number of outputs that bytes are made of together: those of a line, if windows are read where they lie.
    fn unit(&self) -> usize {
        #[cfg(target_arch = "x86_64")]
        if self.has_lines() {
            return self.line_outputs();
        }
        1
    }

    /// Returns the parts of `n_elements` of the result that threads make, of as many outputs or a multiple.
    fn parts(&self, n_elements: usize, unit: usize) -> Parts {
        let (n_outputs, filters) = (n_elements / self.plan.filters.max(1), self.plan.filters);
        let (operations, most) = match &self.filter.form {
            Form::Groups(packed) => match packed.first() {
                Some(packed) => (packed.operations(), n_outputs / packed.part_rows()),
                None => (1, 1),
            },
            Form::Depthwise(_) => (self.plan.n_columns() / 8, n_outputs / LEAST_OUTPUTS),
        };
        Parts::even(n_elements, unit * filters, operations, most)
    }

    fn image<'a>(&self, bytes: &'a [u8]) -> Bytes<'a> {
        Bytes {
            bytes,
            around: self.around,
            less: self.less,
            zero: self.zero,
        }
    }

    /// Makes the sums of whole outputs from one on, at most [`block`](Self::block).
    fn sums(&self, bytes: &[u8], output: usize, out: &mut [i32], scratch: &mut Scratch) {
        let (image, plan) = (self.image(bytes), &self.plan);
        match &self.filter.form {
            Form::Groups(packed) => plan.byte_block(&image, packed, output, out, scratch),
            Form::Depthwise(Depthwise { factors, .. }) => {
                plan.byte_channels(&image, factors, output, out, &mut scratch.taps);
            }
        }
    }
}

impl ByteConvolution {
    /// Makes bytes of the sums of whole outputs from one on, at most [`block`](Self::block).
    fn requantized(
        &self,
        bytes: &[u8],
        output: usize,
        by: &ByteEpilogue,
        out: &mut [u8],
        scratch: &mut Scratch,
    ) {
        let (image, plan) = (self.image(bytes), &self.plan);
        match &self.filter.form {
            Form::Groups(packed) => {
                let n = out.len() / plan.filters;
                for (group, packed) in packed.iter().enumerate() {
                    let rows = plan.rows(&image, group, (output, n), &mut scratch.patches);
                    let first = group * (plan.filters / plan.groups);
                    rows.requantize(n, packed, (by, first), &mut scratch.sums, out);
                }
            }
            #[cfg(target_arch = "x86_64")]
            Form::Depthwise(Depthwise {
                quick: Some(quick), ..
            }) => {
                plan.quick_channels(&image, quick, output, (by, self.dtype), out);
            }
            Form::Depthwise(Depthwise { factors, .. }) => {
                let mut sums = std::mem::take(&mut scratch.sums);
                sums.resize(out.len(), 0);
                plan.byte_channels(&image, factors, output, &mut sums, &mut scratch.taps);
                by.run(0, (&sums, plan.filters), out);
                scratch.sums = sums;
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
        let own_filters = self.filters / self.groups;
        for (group, packed) in packed.iter().enumerate() {
            let rows = self.rows(image, group, (output, n), patches);
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

    /// Returns what `n` outputs from one on read of a group, a row for each: in place, or gathered in `patches`.
    fn rows<'a>(
        &self,
        image: &'a Bytes<'_>,
        group: usize,
        (output, n): (usize, usize),
        patches: &'a mut Vec<u8>,
    ) -> LeftRows<'a> {
        let own_channels = self.channels / self.groups;
        let bytes = if self.is_pointwise() && self.groups == 1 {
            &image.bytes[output * self.channels..]
        } else {
            let channels = group * own_channels..(group + 1) * own_channels;
            self.gather_bytes(image, (output, n), channels, patches);
            &patches[..]
        };
        LeftRows {
            bytes,
            depth: self.n_columns(),
            less: image.less,
            zeros: std::slice::from_ref(&image.zero),
        }
    }

    /// Makes bytes of whole outputs from one on, whose channels don't mix.
    #[cfg(target_arch = "x86_64")]
    fn quick_channels(
        &self,
        image: &Bytes<'_>,
        filter: &channels::ChannelFilter,
        output: usize,
        (by, dtype): (&ByteEpilogue, DType),
        out: &mut [u8],
    ) {
        let (channels, step) = (self.channels, self.step());
        let stride = self.windows.0[2].window.stride * channels;
        let around = vec![image.around; channels];
        let outside = channels::Tap {
            bytes: &around,
            step: 0,
        };
        let mut taps = vec![outside; filter.n_taps()];
        let (mut rest, mut output) = (out, output);
        while !rest.is_empty() {
            let (start, own) = self.image(output);
            let n_alike = self.windows.n_alike(own).min(rest.len() / channels);
            let (out, behind) = rest.split_at_mut(n_alike * channels);
            (rest, output) = (behind, output + n_alike);
            taps.fill(outside);
            self.windows.runs(own, |tap, place, n_run| {
                for (index, tap) in taps[tap..][..n_run].iter_mut().enumerate() {
                    *tap = channels::Tap {
                        bytes: &image.bytes[start + place * channels + index * step..],
                        step: stride,
                    };
                }
            });
            channels::convolve(filter, &taps, (dtype, image.zero), by, out);
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

#[cfg(test)]
mod tests;
