//! Pools of images of `f32` with their channels last: what is made of a pixel's channels stays in registers.

#![allow(
    clippy::needless_range_loop,
    reason = "loops over registers, whose numbers are known"
)]

use std::ops::Range;

use pulp::{Simd, WithSimd};
use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use super::narrow::Narrow;
use super::{Plan, Pooling, pool_into};
use crate::DenseHostTensor;
use crate::math::lines::Lines;
use crate::math::panel::vectors::{load, store};
use crate::math::panel::{InstructionSet, TensorAfter, fill};
use crate::math::window::Window;

/// Means of more elements are taken of sums of `f64`.
const MOST_ADDED: usize = 64;

/// As [`pool_into`], of `f32`; means of windows of up to 64 elements are of sums that are rounded to `f32` element by
/// element.
///
/// # Errors
///
/// As of [`pool_into`].
pub fn pool_f32_into(
    execution: &ExecutionContext,
    pooling: Pooling,
    input: &DenseHostTensor,
    windows: &[Window],
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    crate::dense::expect_dtype::<f32>(input.metadata())?;
    let plan = Plan::new(pooling, &input.shape().to_dims(), windows)?;
    plan.expect_output(&out.shape().to_dims())?;
    let n_taps = plan.windows.n_taps();
    if pooling != Pooling::Maximum && n_taps > MOST_ADDED {
        return pool_into::<f32>(execution, pooling, input, windows, out);
    }
    let (input, n, set) = (input.clone(), plan.channels, InstructionSet::best());
    let n_rows = plan.batch.saturating_mul(plan.windows.n_outputs());
    let lines = Lines::new(n_rows, n, n_taps.saturating_mul(n));
    let after = TensorAfter::default();
    fill(execution, out, n, lines, after, move |block, _, out, _| {
        let input = input.read()?;
        let (input, rows) = (input.elements()?, block.rows.clone());
        let plan = &plan;
        let processor = set.processor();
        match n < set.n_lanes() {
            true => processor.vectorize(Narrow {
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

/// Outputs that are to be made.
struct Pixels<'p> {
    plan: &'p Plan,
    input: &'p [f32],
    rows: Range<usize>,
    /// Begins with the first row.
    out: &'p mut [f32],
}

/// Vectors of a pixel at a time.
const VECTORS: usize = 4;

impl WithSimd for Pixels<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Plan {
            pooling,
            windows,
            channels,
            ..
        } = *self.plan;
        // It wraps around only where no window has two elements of the input.
        let step = windows.0[2].window.dilation.wrapping_mul(channels);
        let (n_outputs, n_inputs) = (windows.n_outputs(), windows.n_inputs());
        let mut taps: Vec<usize> = Vec::new();
        for (output, out) in self.rows.zip(self.out.chunks_exact_mut(channels.max(1))) {
            taps.clear();
            let image = output / n_outputs * n_inputs * channels;
            windows.runs(output % n_outputs, |_, place, n_run| {
                let start = image + place * channels;
                taps.extend((0..n_run).map(|index| start + index * step));
            });
            let n = match pooling {
                Pooling::Maximum => None,
                Pooling::Mean => Some(taps.len().max(1)),
                Pooling::MeanWithPadding => Some(windows.n_taps()),
            };
            #[allow(clippy::cast_precision_loss, reason = "no more than 64")]
            let divisor = n.map(|n| n as f32);
            let pixel = Pixel {
                simd,
                input: self.input,
                taps: &taps,
                divisor,
            };
            let mut channel = 0;
            while channel + VECTORS * S::F32_LANES <= channels {
                let end = channel + VECTORS * S::F32_LANES;
                pixel.make::<VECTORS>(channel, &mut out[channel..end]);
                channel = end;
            }
            while channel < channels {
                let end = channels.min(channel + S::F32_LANES);
                pixel.make::<1>(channel, &mut out[channel..end]);
                channel = end;
            }
        }
    }
}

/// What an output is made of.
#[derive(Clone, Copy)]
struct Pixel<'p, S: Simd> {
    simd: S,
    input: &'p [f32],
    /// Where the first channel of each element of the window is.
    taps: &'p [usize],
    /// What a sum is divided by; nothing for the largest element.
    divisor: Option<f32>,
}

impl<S: Simd> Pixel<'_, S> {
    /// Makes so many vectors from a channel on, the last of which may not be full if it is the only one.
    #[inline(always)]
    fn make<const N: usize>(&self, channel: usize, out: &mut [f32]) {
        let simd = self.simd;
        let of = |start: usize, vector: usize| {
            let from = &self.input[start + channel..][..out.len()];
            let end = out.len().min((vector + 1) * S::F32_LANES);
            load(simd, &from[vector * S::F32_LANES..end])
        };
        let mut made = [simd.splat_f32s(match self.divisor {
            None => f32::NEG_INFINITY,
            Some(_) => 0.0,
        }); N];
        for &start in self.taps {
            for vector in 0..N {
                let (x, before) = (of(start, vector), made[vector]);
                made[vector] = match self.divisor {
                    Some(_) => simd.add_f32s(before, x),
                    None => greatest(simd, before, x),
                };
            }
        }
        for (made, out) in made.into_iter().zip(out.chunks_mut(S::F32_LANES)) {
            store(simd, out, made);
            if let Some(divisor) = self.divisor {
                out.iter_mut().for_each(|sum| *sum /= divisor);
            }
        }
    }
}

/// The larger ones; what is no number where one of two is none.
#[inline(always)]
fn greatest<S: Simd>(simd: S, before: S::f32s, x: S::f32s) -> S::f32s {
    let larger = simd.select_f32s(simd.greater_than_f32s(before, x), before, x);
    simd.select_f32s(simd.equal_f32s(before, before), larger, before)
}
