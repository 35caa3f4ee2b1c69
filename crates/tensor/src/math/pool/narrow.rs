//! Pooling of `f32` images with fewer channels than a vector has elements.
//!
//! Vectors are read and written as a whole where there is room: what they hold too many of is that of the pixels
//! behind, which are made later.

#![allow(
    clippy::needless_range_loop,
    reason = "loops over registers, whose numbers are known"
)]

use std::ops::Range;

use pulp::{Simd, WithSimd};

use super::functions::{MaxPool, MeanPool, PoolFunction};
use super::{PoolPlan, Pooling};
use crate::math::packed_gemm::vectors::{load, store};
use crate::math::window::{Window, WindowAxis, Windows};

/// Pooling of images with few channels, to be written.
pub(super) struct NarrowImages<'p> {
    pub plan: &'p PoolPlan,
    pub input: &'p [f32],
    pub rows: Range<usize>,
    /// Outputs to write: exactly these rows.
    pub out: &'p mut [f32],
}

impl WithSimd for NarrowImages<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let PoolPlan {
            pooling,
            windows,
            channels,
            ..
        } = *self.plan;
        if self.out.is_empty() {
            return;
        }
        // It wraps around only where no window has two elements of the input.
        let step = windows.0[2].window.dilation.wrapping_mul(channels);
        let (n_outputs, n_inputs) = (windows.n_outputs(), windows.n_inputs());
        let whole = InnerWindows::new(&windows, channels);
        let [depth, height, width] = &windows.0;
        let (mut image, first) = (self.rows.start / n_outputs, self.rows.start % n_outputs);
        let (mut x, rest) = (first % width.output, first / width.output);
        let (mut y, mut z) = (rest % height.output, rest / height.output);
        let mut seen: Vec<usize> = Vec::new();
        let mut pixel = 0;
        while pixel < self.rows.len() {
            let start = image * n_inputs * channels;
            let (first, taps, n_alike) = match whole.first([z, y, x]) {
                Some(place) => {
                    let n_alike = (whole.outputs[2].end - x).min(self.rows.len() - pixel);
                    (start + place * channels, &whole.offsets[..], n_alike)
                }
                None => {
                    seen.clear();
                    let output = (z * height.output + y) * width.output + x;
                    windows.runs(output, |_, place, n_run| {
                        let first = place * channels;
                        seen.extend((0..n_run).map(|index| first + index * step));
                    });
                    (start, &seen[..], 1)
                }
            };
            let made = NeighbourOutputs {
                simd,
                taps,
                strides: [width.window.stride.wrapping_mul(channels), channels],
            };
            let (input, out) = (&self.input[first..], &mut self.out[pixel * channels..]);
            #[allow(clippy::cast_precision_loss, reason = "no more than 64")]
            let n_made = match pooling {
                Pooling::Maximum => made.some(&MaxPool, input, out, n_alike),
                Pooling::Mean => {
                    made.some(&MeanPool(taps.len().max(1) as f32), input, out, n_alike)
                }
                Pooling::MeanWithPadding => {
                    made.some(&MeanPool(windows.n_taps() as f32), input, out, n_alike)
                }
            };
            pixel += n_made;
            x += n_made;
            if x == width.output {
                (x, y) = (0, y + 1);
            }
            if y == height.output {
                (y, z) = (0, z + 1);
            }
            if z == depth.output {
                (z, image) = (0, image + 1);
            }
        }
    }
}

/// Number of outputs that are made together, if there are enough.
const NEIGHBOURS: usize = 4;

/// Neighbouring outputs whose windows have the same offsets.
struct NeighbourOutputs<'p, S> {
    simd: S,
    taps: &'p [usize],
    /// Distances between neighbours in the input, and in the output.
    strides: [usize; 2],
}

impl<S: Simd> NeighbourOutputs<'_, S> {
    /// Makes some of `n` outputs, from the beginning of `input` and `out` on; returns their number.
    #[inline(always)]
    fn some(&self, by: &impl PoolFunction, input: &[f32], out: &mut [f32], n: usize) -> usize {
        // Taps come in order.
        let end = self.taps.last().map_or(0, |tap| tap + S::F32_LANES);
        let [apart, channels] = self.strides;
        let has_room = |last: usize| {
            last * apart + end <= input.len() && last * channels + S::F32_LANES <= out.len()
        };
        if n >= NEIGHBOURS && has_room(NEIGHBOURS - 1) {
            self.whole(by, input, out);
            return NEIGHBOURS;
        }
        let n_written = match has_room(0) {
            true => S::F32_LANES,
            false => channels,
        };
        make(self.simd, by, input, self.taps, &mut out[..n_written]);
        1
    }

    /// Makes neighbours by whole vectors.
    #[inline(always)]
    fn whole(&self, by: &impl PoolFunction, input: &[f32], out: &mut [f32]) {
        let (simd, [apart, channels]) = (self.simd, self.strides);
        let mut made = [by.start(simd); NEIGHBOURS];
        for &tap in self.taps {
            for index in 0..NEIGHBOURS {
                let elements = &input[tap + index * apart..][..S::F32_LANES];
                made[index] = by.with(simd, made[index], S::as_simd_f32s(elements).0[0]);
            }
        }
        for (index, made) in made.into_iter().enumerate() {
            let out = &mut out[index * channels..][..S::F32_LANES];
            store(simd, out, by.end(simd, made));
        }
    }
}

/// Makes an output of the elements at `taps`.
#[inline(always)]
fn make<S: Simd>(simd: S, by: &impl PoolFunction, input: &[f32], taps: &[usize], out: &mut [f32]) {
    let mut made = by.start(simd);
    for &tap in taps {
        made = by.with(simd, made, load(simd, &input[tap..][..out.len()]));
    }
    store(simd, out, by.end(simd, made));
}

/// Windows that lie within the input.
struct InnerWindows {
    windows: Windows,
    /// Range of outputs in each dimension whose windows lie within the input.
    outputs: [Range<usize>; 3],
    /// Offsets of a window's elements from its first; empty if there are no such windows.
    offsets: Vec<usize>,
}

impl InnerWindows {
    fn new(windows: &Windows, channels: usize) -> InnerWindows {
        let outputs = windows.0.map(|laid| {
            let Window {
                extent,
                stride,
                dilation,
                ..
            } = laid.window;
            let covered = (extent - 1).saturating_mul(dilation).saturating_add(1);
            let first = laid.before.div_ceil(stride);
            let end = match (laid.input + laid.before).checked_sub(covered) {
                Some(room) => (room / stride + 1).min(laid.output),
                None => 0,
            };
            first..end.max(first)
        });
        let mut offsets = Vec::new();
        if outputs.iter().all(|outputs| !outputs.is_empty()) {
            // They lie in the input, so there are no more of them than it has elements.
            let [depth, height, width] = &windows.0;
            let taps = |laid: &WindowAxis| {
                let Window {
                    extent, dilation, ..
                } = laid.window;
                (0..extent).map(move |tap| tap * dilation)
            };
            for z in taps(depth) {
                for y in taps(height) {
                    let line = (z * height.input + y) * width.input;
                    offsets.extend(taps(width).map(|x| (line + x) * channels));
                }
            }
        }
        InnerWindows {
            windows: *windows,
            outputs,
            offsets,
        }
    }

    /// Returns the offset of the first element of an output's window, if the window lies within the input.
    #[inline(always)]
    fn first(&self, output: [usize; 3]) -> Option<usize> {
        let [depth, height, width] = &self.windows.0;
        let mut dimensions = self.outputs.iter().zip(output);
        if !dimensions.all(|(outputs, at)| outputs.contains(&at)) {
            return None;
        }
        let place = |laid: &WindowAxis, at: usize| at * laid.window.stride - laid.before;
        let [z, y, x] = output;
        let (z, y, x) = (place(depth, z), place(height, y), place(width, x));
        Some((z * height.input + y) * width.input + x)
    }
}
