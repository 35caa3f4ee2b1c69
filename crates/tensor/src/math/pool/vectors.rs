//! Pooling of `f32` images with channels last: the state of a pixel's channels stays in registers.

#![allow(
    clippy::needless_range_loop,
    reason = "loops over registers, whose numbers are known"
)]

use std::ops::Range;

use pulp::{Simd, WithSimd};
use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use super::functions::{MaxPool, MeanPool, PoolFunction};
use super::narrow::NarrowImages;
use super::{PoolPlan, Pooling, pool_into};
use crate::DenseHostTensor;
use crate::math::packed_gemm::{InstructionSet, TensorEpilogue, fill};
use crate::math::row_blocks::RowBlocks;
use crate::math::window::Window;

/// Maximum number of elements whose mean is a sum of `f32`; larger windows are summed in `f64`.
const MOST_ADDED: usize = 64;

/// Applies [`pool_into`] to `f32`; sums of windows of up to 64 elements are rounded to `f32` element by element.
///
/// # Errors
///
/// See [`pool_into`].
pub fn pool_f32_into(
    execution: &ExecutionContext,
    pooling: Pooling,
    input: &DenseHostTensor,
    windows: &[Window],
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    crate::dense::expect_dtype::<f32>(input.metadata())?;
    let plan = PoolPlan::new(pooling, &input.shape().to_dims(), windows)?;
    plan.expect_output(&out.shape().to_dims())?;
    let n_taps = plan.windows.n_taps();
    if pooling != Pooling::Maximum && n_taps > MOST_ADDED {
        return pool_into(execution, pooling, input, windows, out);
    }
    let (input, n, set) = (input.clone(), plan.channels, InstructionSet::best());
    let n_rows = plan.batch.saturating_mul(plan.windows.n_outputs());
    let lines = RowBlocks::new(n_rows, n, n_taps.saturating_mul(n));
    let after = TensorEpilogue::default();
    fill(execution, out, n, lines, after, move |block, _, out, _| {
        let input = input.read()?;
        let (input, rows) = (input.elements()?, block.rows.clone());
        let plan = &plan;
        let processor = set.processor();
        match n < set.n_lanes() {
            true => processor.vectorize(NarrowImages {
                plan,
                input,
                rows,
                out,
            }),
            false => processor.vectorize(Pixels {
                plan,
                input,
                rows,
                out,
            }),
        }
        Ok(())
    })
}

/// Outputs of a pooling, to be written, of as many channels as a vector has elements, or more.
struct Pixels<'p> {
    plan: &'p PoolPlan,
    input: &'p [f32],
    rows: Range<usize>,
    /// Outputs to write, from the first row on.
    out: &'p mut [f32],
}

/// Number of vectors of a pixel at a time, with some neighbouring pixels.
const VECTORS: usize = 2;
const NEIGHBOURS: usize = 4;

impl WithSimd for Pixels<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let PoolPlan {
            pooling,
            windows,
            channels,
            ..
        } = *self.plan;
        // It wraps around only where no window has two elements of the input.
        let step = windows.0[2].window.dilation.wrapping_mul(channels);
        let stride = windows.0[2].window.stride.wrapping_mul(channels);
        let (n_outputs, n_inputs) = (windows.n_outputs(), windows.n_inputs());
        let mut taps: Vec<usize> = Vec::new();
        let (mut output, first) = (self.rows.start, self.rows.start);
        while output < self.rows.end {
            taps.clear();
            let (image, own) = (output / n_outputs * n_inputs * channels, output % n_outputs);
            windows.runs(own, |_, place, n_run| {
                let start = image + place * channels;
                taps.extend((0..n_run).map(|index| start + index * step));
            });
            let n = windows.n_alike(own).min(self.rows.end - output);
            let row = output - first;
            let mut line = Line {
                simd,
                input: self.input,
                taps: &taps,
                stride,
                channels,
                out: &mut self.out[row * channels..][..n * channels],
            };
            #[allow(clippy::cast_precision_loss, reason = "no more than 64")]
            match pooling {
                Pooling::Maximum => line.make(&MaxPool),
                Pooling::Mean => line.make(&MeanPool(taps.len().max(1) as f32)),
                Pooling::MeanWithPadding => line.make(&MeanPool(windows.n_taps() as f32)),
            }
            output += n;
        }
    }
}

/// Neighbouring outputs that read the same elements of their windows.
struct Line<'p, S: Simd> {
    simd: S,
    input: &'p [f32],
    /// Offset of each window element's first channel, for the first output.
    taps: &'p [usize],
    /// Distance in the input between the windows of neighbouring outputs.
    stride: usize,
    // Invariant: as many as a vector has elements, or more.
    channels: usize,
    /// Outputs to write, from the first one on.
    out: &'p mut [f32],
}

impl<S: Simd> Line<'_, S> {
    #[inline(always)]
    fn make(&mut self, by: &impl PoolFunction) {
        let (channels, mut channel) = (self.channels, 0);
        while channel + VECTORS * S::F32_LANES <= channels {
            self.column::<VECTORS>(by, channel);
            channel += VECTORS * S::F32_LANES;
        }
        while channel + S::F32_LANES <= channels {
            self.column::<1>(by, channel);
            channel += S::F32_LANES;
        }
        // Channels that were made are made again with the rest, so that they fill a vector: they become the same.
        if channel < channels {
            self.column::<1>(by, channels - S::F32_LANES);
        }
    }

    /// Makes `N` vectors of channels of all outputs.
    #[inline(always)]
    fn column<const N: usize>(&mut self, by: &impl PoolFunction, channel: usize) {
        let n = self.out.len() / self.channels;
        let mut pixel = 0;
        while pixel + NEIGHBOURS <= n {
            self.whole::<NEIGHBOURS, N>(by, pixel, channel);
            pixel += NEIGHBOURS;
        }
        while pixel < n {
            self.whole::<1, N>(by, pixel, channel);
            pixel += 1;
        }
    }

    /// Makes `N` vectors of channels of `P` outputs.
    #[inline(always)]
    fn whole<const P: usize, const N: usize>(
        &mut self,
        by: &impl PoolFunction,
        pixel: usize,
        channel: usize,
    ) {
        let (simd, n) = (self.simd, N * S::F32_LANES);
        let mut made = [[by.start(simd); N]; P];
        let first = pixel * self.stride + channel;
        for &x in self.taps {
            for pixel in 0..P {
                let (x, _) = S::as_simd_f32s(&self.input[x + first + pixel * self.stride..][..n]);
                for vector in 0..N {
                    made[pixel][vector] = by.with(simd, made[pixel][vector], x[vector]);
                }
            }
        }
        for index in 0..P {
            let start = (pixel + index) * self.channels + channel;
            let (out, _) = S::as_mut_simd_f32s(&mut self.out[start..][..n]);
            for vector in 0..N {
                out[vector] = by.end(simd, made[index][vector]);
            }
        }
    }
}
