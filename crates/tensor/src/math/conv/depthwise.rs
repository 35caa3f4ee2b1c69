//! Depthwise convolutions of `f32`: the sums of a pixel's channels stay in registers.

#![allow(
    clippy::needless_range_loop,
    reason = "loops over registers, whose numbers are known"
)]

use std::ops::Range;

use pulp::{Simd, WithSimd};
use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use super::{ConvPlan, Convolution};
use crate::DenseHostTensor;
use crate::dense::expect_dtype;
use crate::math::packed_gemm::vectors::{self, load, store};
use crate::math::packed_gemm::{
    BlockEpilogue, InstructionSet, Residual, TensorEpilogue, fill, finish, multiply_add,
};
use crate::math::row_blocks::RowBlocks;

/// Calculates a depthwise convolution, where each channel is a group, on the workers of the request's queue if there
/// is much to do. Each sum is taken tap by tap, and rounded as in
/// [`convolve_packed_into`](super::convolve_packed_into).
///
/// # Shapes
///
/// As in the table of [`conv`](super), with as many filters as channels.
///
/// # Errors
///
/// `InvalidArgument` if the shapes are not that, or elements no `f32`s; the result fails with
/// `FailedPrecondition` if somebody else uses `out`, or with the reason of the request's cancellation.
pub fn convolve_depthwise_into(
    execution: &ExecutionContext,
    convolution: &Convolution,
    [input, filter]: [&DenseHostTensor; 2],
    epilogue: TensorEpilogue,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    expect_dtype::<f32>(input.metadata())?;
    expect_dtype::<f32>(filter.metadata())?;
    let plan = convolution.plan(&input.shape().to_dims(), &filter.shape().to_dims())?;
    plan.expect_output(&out.shape().to_dims())?;
    if plan.groups != plan.channels || plan.filters != plan.channels {
        let (filters, groups) = (plan.filters, plan.groups);
        return Err(Error::invalid_argument(format!(
            "expected a channel and a filter in each of {groups} groups, found {} and {filters} in all",
            plan.channels
        )));
    }
    epilogue.check(plan.filters, out.n_elements())?;
    let (input, filter, n) = (input.clone(), filter.clone(), plan.filters);
    let per_row = plan.windows.n_taps().saturating_mul(n);
    let n_rows = plan.batch.saturating_mul(plan.windows.n_outputs());
    let lines = RowBlocks::new(n_rows, n, per_row);
    fill(
        execution,
        out,
        n,
        lines,
        epilogue,
        move |block, epilogue, out, _| {
            let (input, filter) = (input.read()?, filter.read()?);
            let pixels = Pixels {
                plan: &plan,
                input: input.elements()?,
                filter: filter.elements()?,
                rows: block.rows.clone(),
                block_epilogue: epilogue.for_block(0..n, n),
                out,
            };
            InstructionSet::best().processor().vectorize(pixels);
            Ok(())
        },
    )
}

/// Outputs of a depthwise convolution, to be written.
struct Pixels<'p> {
    plan: &'p ConvPlan,
    input: &'p [f32],
    filter: &'p [f32],
    rows: Range<usize>,
    block_epilogue: BlockEpilogue<'p>,
    /// Outputs to write, from the first row on.
    out: &'p mut [f32],
}

/// Number of vectors of a pixel at a time, with as many neighbouring pixels that their additions hide each other's
/// latency; a factor is loaded once for all of them.
const VECTORS: usize = 4;
const NEIGHBOURS: usize = 4;

impl WithSimd for Pixels<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let ConvPlan {
            windows, channels, ..
        } = *self.plan;
        let step = self.plan.step();
        let stride = windows.0[2].window.stride.wrapping_mul(channels);
        let mut taps: Vec<(usize, usize)> = Vec::new();
        let (mut output, first) = (self.rows.start, self.rows.start);
        while output < self.rows.end {
            taps.clear();
            let (image, own) = self.plan.image(output);
            windows.runs(own, |tap, place, n_run| {
                let start = image + place * channels;
                taps.extend(
                    (0..n_run).map(|index| (start + index * step, (tap + index) * channels)),
                );
            });
            let n = windows.n_alike(own).min(self.rows.end - output);
            let row = output - first;
            let mut line = Line {
                simd,
                block_epilogue: &self.block_epilogue,
                input: self.input,
                filter: self.filter,
                taps: &taps,
                stride,
                row,
                channels,
                out: &mut self.out[row * channels..][..n * channels],
            };
            line.make();
            output += n;
        }
    }
}

/// Neighbouring outputs that read the same elements of their windows.
struct Line<'p, S: Simd> {
    simd: S,
    block_epilogue: &'p BlockEpilogue<'p>,
    input: &'p [f32],
    filter: &'p [f32],
    /// Offsets of each tap's first channel for the first output, in the input and in the filter.
    taps: &'p [(usize, usize)],
    /// Distance in the input between the windows of neighbouring outputs.
    stride: usize,
    /// The number of the first output in the block.
    row: usize,
    channels: usize,
    /// Outputs to write, from the first one on.
    out: &'p mut [f32],
}

impl<S: Simd> Line<'_, S> {
    #[inline(always)]
    fn make(&mut self) {
        let (channels, mut channel) = (self.channels, 0);
        while channel + VECTORS * S::F32_LANES <= channels {
            self.column::<VECTORS>(channel);
            channel += VECTORS * S::F32_LANES;
        }
        if channel + 2 * S::F32_LANES <= channels {
            self.column::<2>(channel);
            channel += 2 * S::F32_LANES;
        }
        if channel + S::F32_LANES <= channels {
            self.column::<1>(channel);
            channel += S::F32_LANES;
        }
        if channel < channels {
            // Channels that were made are made again with the rest where that fills a vector.
            match channel > 0 && self.is_same_again() {
                true => self.column::<1>(channels - S::F32_LANES),
                false => self.part(channel),
            }
        }
    }

    /// Makes `N` vectors of channels of all outputs.
    #[inline(always)]
    fn column<const N: usize>(&mut self, channel: usize) {
        let n = self.out.len() / self.channels;
        let mut pixel = 0;
        while pixel + NEIGHBOURS <= n {
            self.whole::<NEIGHBOURS, N>(pixel, channel);
            pixel += NEIGHBOURS;
        }
        // Of few vectors one output takes as long as some: the sums of its taps wait for each other.
        if N < VECTORS && (1..n).contains(&pixel) && self.is_same_again() {
            return self.whole::<NEIGHBOURS, N>(n - NEIGHBOURS, channel);
        }
        while pixel < n {
            self.whole::<1, N>(pixel, channel);
            pixel += 1;
        }
    }

    /// Returns whether outputs that are made a second time become the same.
    fn is_same_again(&self) -> bool {
        !matches!(self.block_epilogue.residual, Residual::Result(_))
    }

    /// Makes `N` vectors of channels of `P` outputs.
    #[inline(always)]
    fn whole<const P: usize, const N: usize>(&mut self, pixel: usize, channel: usize) {
        let n = N * S::F32_LANES;
        let mut sums = [[self.simd.splat_f32s(0.0); N]; P];
        let first = pixel * self.stride + channel;
        for &(x, factor) in self.taps {
            let (factors, _) = S::as_simd_f32s(&self.filter[factor + channel..][..n]);
            for pixel in 0..P {
                let (x, _) = S::as_simd_f32s(&self.input[x + first + pixel * self.stride..][..n]);
                for vector in 0..N {
                    let sum = sums[pixel][vector];
                    sums[pixel][vector] = multiply_add(self.simd, x[vector], factors[vector], sum);
                }
            }
        }
        let epilogue = self
            .block_epilogue
            .of(self.row + pixel, channel..channel + n);
        let out = &mut self.out[pixel * self.channels + channel..];
        finish(self.simd, sums, epilogue, out, self.channels);
    }

    /// Makes the last channels, which don't fill a vector.
    #[inline(always)]
    fn part(&mut self, channel: usize) {
        let n = self.channels - channel;
        let finish = vectors::VectorEpilogue::new(self.simd, self.block_epilogue);
        let per_column = finish.per_column(channel, n);
        for pixel in 0..self.out.len() / self.channels {
            let first = pixel * self.stride + channel;
            let mut sum = self.simd.splat_f32s(0.0);
            for &(x, factor) in self.taps {
                let x = load(self.simd, &self.input[x + first..][..n]);
                let factors = load(self.simd, &self.filter[factor + channel..][..n]);
                sum = multiply_add(self.simd, x, factors, sum);
            }
            let out = &mut self.out[pixel * self.channels + channel..][..n];
            let value = finish.apply(sum, per_column, (self.row + pixel, channel), out);
            store(self.simd, out, value);
        }
    }
}
