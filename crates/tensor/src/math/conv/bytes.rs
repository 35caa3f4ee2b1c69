//! Convolutions of bytes with exact sums of 32 bits: `(x - x_zero) (filter - filter_zero)`.
//!
//! Images have channels last. What the windows of a block of outputs look at is gathered as bytes, a row for each output,
//! and multiplied by the packed filter ([`byte_gemm`]); if each channel is a group of its own (depthwise), channels are
//! multiplied side by side. All instructions give the same bits.

use std::sync::Arc;

use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use super::{ConvPlan, Convolution, channels_first};
use crate::math::byte_gemm::{self, LeftRows, PackedBytes};
use crate::math::{parallel, vectorized};
use crate::{DType, DenseHostTensor, Dims};

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
    Depthwise(Vec<i32>),
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
                        i32::from(byte.cast_signed()) + less - zero
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
    let less = byte_gemm::bias(x.dtype())?;
    let plan = convolution.plan(&x.shape().to_dims(), &filter.extents)?;
    plan.expect_output(&out.shape().to_dims())?;
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
    let around = u8::try_from(zero - less + 128).map(|byte| byte ^ 0x80 ^ byte_gemm::flip(less));
    let Ok(around) = around else {
        let message = format!("the zero point {zero} is no {}, as images are", x.dtype());
        return Err(Error::invalid_argument(message));
    };
    let block = plan.block_len().saturating_mul(plan.filters);
    let chunk = parallel::chunk_len(plan.n_columns() / 16, block);
    let x = x.clone();
    parallel::fill(execution, out, chunk, move |first, part: &mut [i32]| {
        let reading = x.read()?;
        let image = Bytes {
            bytes: reading.bytes(),
            around,
            less,
            zero,
        };
        let (mut output, mut scratch) = (first / plan.filters, Scratch::default());
        for part in part.chunks_mut(block) {
            match &filter.form {
                Form::Groups(packed) => plan.byte_block(&image, packed, output, part, &mut scratch),
                Form::Depthwise(factors) => plan.byte_channels(&image, factors, output, part),
            }
            output += part.len() / plan.filters;
        }
        Ok(())
    })
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
}

impl ConvPlan {
    /// Makes whole outputs from one on.
    fn byte_block(
        &self,
        image: &Bytes<'_>,
        packed: &[PackedBytes],
        output: usize,
        out: &mut [i32],
        Scratch { patches, sums }: &mut Scratch,
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
    fn byte_channels(&self, image: &Bytes<'_>, factors: &[i32], output: usize, out: &mut [i32]) {
        let (channels, step) = (self.channels, self.step());
        let (flip, zero) = (byte_gemm::flip(image.less), image.zero - image.less);
        for (index, out) in out.chunks_exact_mut(channels).enumerate() {
            let (start, own) = self.image(output + index);
            out.fill(0);
            self.windows.runs(own, |tap, place, n_run| {
                for index in 0..n_run {
                    let x = &image.bytes[start + place * channels + index * step..][..channels];
                    let factors = &factors[(tap + index) * channels..][..channels];
                    vectorized(
                        #[inline(always)]
                        || {
                            for ((out, x), factor) in out.iter_mut().zip(x).zip(factors) {
                                let x = i32::from((x ^ flip).cast_signed()) - zero;
                                *out = out.wrapping_add(x.wrapping_mul(*factor));
                            }
                        },
                    );
                }
            });
        }
    }
}

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
mod tests {
    use proptest::prelude::*;
    use tfrt_host::kernel::KernelRegistry;
    use tfrt_host::{HostContext, RequestContext};

    use super::super::tests::{Case, cases, products};
    use super::*;
    use crate::{Element, TensorMetadata, TensorShape};

    fn tensor(
        host: &HostContext,
        dtype: DType,
        extents: &[usize],
        bytes: &[u8],
    ) -> DenseHostTensor {
        let metadata = TensorMetadata::new(dtype, TensorShape::new(extents).unwrap());
        DenseHostTensor::from_bytes(host.allocator(), metadata, bytes).unwrap()
    }

    fn number(dtype: DType, byte: u8) -> i32 {
        match dtype {
            DType::I8 => i32::from(byte.cast_signed()),
            _ => i32::from(byte),
        }
    }

    /// Returns the sums of a convolution and what its definition says, and both again as quantised images.
    fn made(case: &Case, [x_type, w_type]: [DType; 2], per_filter: bool) -> Option<[Vec<i32>; 4]> {
        let output = case
            .convolution
            .output_extents(&case.input, &case.filter)
            .ok()?;
        let n = |extents: &[usize]| extents.iter().product::<usize>();
        let [n_in, n_filter, n_out] = [n(&case.input), n(&case.filter), n(&output)];
        let is_small = n_in <= 2000 && n_filter <= 1000 && n_out <= 1500;
        if !is_small {
            return None;
        }
        let byte = |index: usize| (case.values[index] * 37 + index as i32 * 11) as u8;
        let x: Vec<u8> = (0..n_in).map(byte).collect();
        let w: Vec<u8> = (0..n_filter).map(|index| byte(n_in + index)).collect();
        let (rank, filters) = (case.convolution.windows.len(), *output.last()?);
        let zero = |dtype, seed: usize| number(dtype, byte(seed));
        let x_zero = zero(x_type, 4000);
        let w_zeros: Vec<i32> = match per_filter {
            true => (0..filters)
                .map(|filter| zero(w_type, 4100 + filter))
                .collect(),
            false => vec![zero(w_type, 4001)],
        };
        let mut wanted = vec![0_i32; n_out];
        for [out, input, filter] in products(case, &output) {
            let w_zero = w_zeros.get(filter % filters).unwrap_or(&w_zeros[0]);
            let x = number(x_type, x[input]) - x_zero;
            wanted[out] += x * (number(w_type, w[filter]) - w_zero);
        }
        let host = HostContext::builder(KernelRegistry::new()).build();
        let execution = ExecutionContext::new(&RequestContext::new(&host));
        let done = |chain: AsyncValue<Chain>| host.queue().await_all(&[chain.into_any()]).unwrap();
        // In ONNX's order.
        let given: Vec<usize> = [filters, case.filter[rank]]
            .into_iter()
            .chain(case.filter[..rank].iter().copied())
            .collect();
        let n_taps: usize = case.filter[..rank].iter().product();
        let mut first = Vec::with_capacity(n_filter);
        for filter in 0..filters {
            for channel in 0..case.filter[rank] {
                let at = |tap| w[(tap * case.filter[rank] + channel) * filters + filter];
                first.extend((0..n_taps).map(at));
            }
        }
        let filter = tensor(&host, w_type, &given, &first);
        let packed = PackedByteFilter::new(&filter, &w_zeros, case.convolution.groups).unwrap();
        let x = tensor(&host, x_type, &case.input, &x);
        let sums = DenseHostTensor::from_slice(host.allocator(), &output, &vec![7_i32; n_out]);
        let sums = sums.unwrap();
        let images = (&x, x_zero);
        let packed = Arc::new(packed);
        let chain = convolve_bytes_into(&execution, &case.convolution, images, packed, &sums);
        done(chain.unwrap());
        let found = sums.read().unwrap().elements::<i32>().unwrap().to_vec();
        let by = Requantize {
            scales: (0..filters).map(|filter| 90.5 + filter as f64).collect(),
            bias: (0..filters)
                .map(|filter| filter as f64 * 100.0 - 50.0)
                .collect(),
            zero: 3.0,
        };
        let extents = channels_first::channels_first(&output);
        let quantised = tensor(&host, x_type, &extents, &vec![9; n_out]);
        let (scales, bias) = (by.scales.clone(), by.bias.clone());
        done(requantize_into(&execution, by, &sums, &quantised).unwrap());
        let reading = quantised.read().unwrap();
        let quantised = reading
            .bytes()
            .iter()
            .map(|byte| number(x_type, *byte))
            .collect();
        let n_places: usize = output[1..=rank].iter().product();
        let (least, largest) = range(x_type).unwrap();
        let of = |index: usize| {
            let (image, filter, place) = (
                index / n_places / filters,
                index / n_places % filters,
                index % n_places,
            );
            let sum = f64::from(wanted[(image * n_places + place) * filters + filter]);
            let quotient = ((sum + bias[filter]) / scales[filter]).round_ties_even() + 3.0;
            quotient.clamp(least, largest) as i32
        };
        let as_wanted = (0..n_out).map(of).collect();
        Some([found, wanted, quantised, as_wanted])
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn sums_are_those_of_the_definition(
            case in cases(), x_signed in any::<bool>(), w_signed in any::<bool>(), per_filter in any::<bool>(),
        ) {
            let of = |is_signed| if is_signed { i8::DTYPE } else { u8::DTYPE };
            let Some([found, wanted, quantised, as_wanted]) = made(&case, [of(x_signed), of(w_signed)], per_filter)
            else { return Ok(()) };
            prop_assert_eq!(found, wanted);
            prop_assert_eq!(quantised, as_wanted);
        }
    }

    #[test]
    fn filters_and_zero_points_that_do_not_fit_are_told() {
        let host = HostContext::builder(KernelRegistry::new()).build();
        let filter = tensor(&host, DType::I8, &[4, 2, 3], &[0; 24]);
        let refused = |zeros: &[i32], groups| {
            let error = PackedByteFilter::new(&filter, zeros, groups).unwrap_err();
            error.message().to_owned()
        };
        assert_eq!(
            refused(&[], 3),
            "4 filters don't fit 3 groups and 0 zero points"
        );
        assert_eq!(
            refused(&[1, 2], 2),
            "4 filters don't fit 2 groups and 2 zero points"
        );
        assert!(refused(&[300], 1).contains("with a zero point for each column"));
        let packed = Arc::new(PackedByteFilter::new(&filter, &[], 1).unwrap());
        let execution = ExecutionContext::new(&RequestContext::new(&host));
        let x = tensor(&host, DType::Ui8, &[1, 5, 2], &[0; 10]);
        let sums = DenseHostTensor::from_slice(host.allocator(), &[1, 3, 4], &[0_i32; 12]).unwrap();
        let window = crate::math::window::Window::new(3, 1, crate::math::window::Padding::Valid);
        let convolution = Convolution::new(&[window]);
        let error = convolve_bytes_into(&execution, &convolution, (&x, -1), packed, &sums);
        let message = "the zero point -1 is no u8, as images are";
        assert_eq!(error.unwrap_err().message(), message);
    }
}
