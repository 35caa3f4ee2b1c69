//! Convolutions of `f32` whose channels don't mix: the sums of a pixel's channels stay in registers.

#![allow(
    clippy::needless_range_loop,
    reason = "loops over registers, whose numbers are known"
)]

use std::ops::Range;

use pulp::{Simd, WithSimd};
use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use super::{Convolution, Plan};
use crate::DenseHostTensor;
use crate::dense::expect_dtype;
use crate::math::lines::Lines;
use crate::math::panel::vectors::{Finish, load, store};
use crate::math::panel::{Finishing, InstructionSet, TensorAfter, fill, multiply_add};

/// Convolves where each channel is a group of its own, on the workers of the request's queue if there is much to
/// do. Each sum is taken tap by tap, and rounded as in [`convolve_packed_into`](super::convolve_packed_into).
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
    after: TensorAfter,
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
    after.check(plan.filters, out.n_elements())?;
    let (input, filter, n) = (input.clone(), filter.clone(), plan.filters);
    let per_row = plan.windows.n_taps().saturating_mul(n);
    let n_rows = plan.batch.saturating_mul(plan.windows.n_outputs());
    let lines = Lines::new(n_rows, n, per_row);
    fill(
        execution,
        out,
        n,
        lines,
        after,
        move |block, after, out, _| {
            let (input, filter) = (input.read()?, filter.read()?);
            let pixels = Pixels {
                plan: &plan,
                input: input.elements()?,
                filter: filter.elements()?,
                rows: block.rows.clone(),
                finishing: after.finishing(0..n, n),
                out,
            };
            InstructionSet::best().processor().vectorize(pixels);
            Ok(())
        },
    )
}

/// Outputs that are to be made.
struct Pixels<'p> {
    plan: &'p Plan,
    input: &'p [f32],
    filter: &'p [f32],
    rows: Range<usize>,
    finishing: Finishing<'p>,
    /// Begins with the first row.
    out: &'p mut [f32],
}

/// Vectors of sums at a time: as many chains of additions as hide how long one takes.
const VECTORS: usize = 4;

impl WithSimd for Pixels<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let channels = self.plan.channels;
        let step = self.plan.step();
        let finish = Finish::new(simd, &self.finishing);
        let mut taps: Vec<(usize, usize)> = Vec::new();
        let rows = self.out.chunks_exact_mut(channels.max(1));
        for (row, (output, out)) in self.rows.zip(rows).enumerate() {
            taps.clear();
            let (image, own) = self.plan.image(output);
            self.plan.windows.runs(own, |tap, place, n_run| {
                let start = image + place * channels;
                taps.extend(
                    (0..n_run).map(|index| (start + index * step, (tap + index) * channels)),
                );
            });
            let mut sides = Sides {
                simd,
                finish,
                input: self.input,
                filter: self.filter,
                taps: &taps,
                row,
                out,
            };
            let mut channel = 0;
            while channel + VECTORS * S::F32_LANES <= channels {
                sides.whole::<VECTORS>(channel);
                channel += VECTORS * S::F32_LANES;
            }
            while channel + S::F32_LANES <= channels {
                sides.whole::<1>(channel);
                channel += S::F32_LANES;
            }
            if channel < channels {
                sides.part(channel);
            }
        }
    }
}

/// An output, and what it is made of.
struct Sides<'p, S: Simd> {
    simd: S,
    finish: Finish<'p, S>,
    input: &'p [f32],
    filter: &'p [f32],
    /// Where the first channel of each tap is, in the input and in the filter.
    taps: &'p [(usize, usize)],
    /// The number of the output in the block.
    row: usize,
    out: &'p mut [f32],
}

impl<S: Simd> Sides<'_, S> {
    /// Makes channels that fill so many vectors.
    #[inline(always)]
    fn whole<const N: usize>(&mut self, channel: usize) {
        let n = N * S::F32_LANES;
        let mut sums = [self.simd.splat_f32s(0.0); N];
        for &(x, factor) in self.taps {
            let (x, _) = S::as_simd_f32s(&self.input[x + channel..][..n]);
            let (factors, _) = S::as_simd_f32s(&self.filter[factor + channel..][..n]);
            for vector in 0..N {
                sums[vector] = multiply_add(self.simd, x[vector], factors[vector], sums[vector]);
            }
        }
        for (vector, sum) in sums.into_iter().enumerate() {
            self.write(channel + vector * S::F32_LANES, S::F32_LANES, sum);
        }
    }

    /// Makes the last channels, which don't fill a vector.
    #[inline(always)]
    fn part(&mut self, channel: usize) {
        let n = self.out.len() - channel;
        let mut sum = self.simd.splat_f32s(0.0);
        for &(x, factor) in self.taps {
            let x = load(self.simd, &self.input[x + channel..][..n]);
            let factors = load(self.simd, &self.filter[factor + channel..][..n]);
            sum = multiply_add(self.simd, x, factors, sum);
        }
        self.write(channel, n, sum);
    }

    #[inline(always)]
    fn write(&mut self, channel: usize, width: usize, sum: S::f32s) {
        let per_column = self.finish.per_column(channel, width);
        let out = &mut self.out[channel..][..width];
        let value = self.finish.apply(sum, per_column, (self.row, channel), out);
        store(self.simd, out, value);
    }
}
