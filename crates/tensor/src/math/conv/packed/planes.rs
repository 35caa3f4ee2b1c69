//! Deinterleaved images of few channels: elements of neighbouring outputs that a tap reads lie side by side, so that
//! sums read one address instead of short parts.
//!
//! Some lines of the input at a time are copied, with their padding: of each line the channels one by one, and of
//! each channel first what stands at multiples of the stride, then what stands one further, and so on.

use crate::math::conv::ConvPlan;
use crate::math::packed_gemm::{Block, BlockEpilogue, Line, Panels, RhsBlock};
use crate::math::scratch;
use crate::math::window::{Window, WindowAxis};

/// Length from which on parts of rows are long enough to be read in place.
const LONG: usize = 24;
/// Outputs that a line has at least.
const LEAST_OUTPUTS: usize = 4;
/// Number of elements that are copied at a time, unless the lines of one output are more: they stay in the first
/// cache.
const MAX_COPIED: usize = 1 << 13;
/// Maximum number of elements of the lines of one output.
const MAX_LINES: usize = 1 << 16;

/// Plan of deinterleaving the lines of one group's channels.
#[derive(Clone, Debug)]
pub(super) struct Planes<'p> {
    plan: &'p ConvPlan,
    /// The first channel, and how many there are.
    channels: (usize, usize),
    height: WindowAxis,
    width: WindowAxis,
    /// Number of elements of a channel that are a stride apart.
    run_len: usize,
    /// Number of elements of a line.
    line_len: usize,
    /// Offset of each window element from the output's element.
    offsets: Vec<usize>,
}

impl<'p> Planes<'p> {
    /// Returns the plan, if deinterleaving pays for these windows.
    pub(super) fn new(plan: &'p ConvPlan, group: usize) -> Option<Planes<'p>> {
        let [depth, height, width] = plan.windows.0;
        let own = plan.channels / plan.groups;
        let is_flat = depth.input == 1 && depth.window.extent == 1 && depth.before == 0;
        let is_dense = |window: Window| {
            (window.dilation == 1 || window.extent == 1) && window.stride <= window.extent
        };
        let pays = own > 0
            && own.saturating_mul(width.window.extent) < LONG
            && width.output >= LEAST_OUTPUTS
            && plan.windows.n_taps() > 1;
        if !(is_flat && is_dense(height.window) && is_dense(width.window) && pays) {
            return None;
        }
        let (extent, stride) = (width.window.extent, width.window.stride);
        let run_len = width.output.checked_add((extent - 1) / stride)?;
        let line_len = run_len.checked_mul(stride)?.checked_mul(own)?;
        if line_len.checked_mul(height.window.extent)? > MAX_LINES {
            return None;
        }
        let lines = (0..height.window.extent).map(|y| y * line_len);
        let taps = lines.flat_map(|line| (0..extent).map(move |x| (line, x)));
        let offsets = taps.flat_map(|(line, x)| {
            let first = line + x % stride * run_len + x / stride;
            (0..own).map(move |channel| first + channel * stride * run_len)
        });
        Some(Planes {
            plan,
            channels: (group * own, own),
            height,
            width,
            run_len,
            line_len,
            offsets: offsets.collect(),
        })
    }

    /// Makes a block of the group; `out` begins with the first of its columns, in the block's first row.
    pub(super) fn multiply(
        &self,
        input: &[f32],
        right: Panels<'_>,
        block: &Block,
        block_epilogue: &BlockEpilogue<'_>,
        out: &mut [f32],
        stride: usize,
    ) {
        let (n_columns, n_lines) = (self.width.output, self.height.output);
        // Of so many output lines those of the input are copied at once.
        let room = (MAX_COPIED / self.line_len).saturating_sub(self.height.window.extent);
        let at_once = 1 + room / self.height.window.stride;
        let copied = self.n_copied(at_once.min(n_lines));
        let right = RhsBlock::new(right, block.panels.clone());
        scratch::with(copied * self.line_len, |lines| {
            let mut next = block.rows.start;
            while next < block.rows.end {
                let (image, output) = self.plan.image(next);
                let (y, x) = (output / n_columns, output % n_columns);
                let wanted = (x + block.rows.end - next).div_ceil(n_columns);
                let n = wanted.min(at_once).min(n_lines - y);
                for (index, line) in lines
                    .chunks_exact_mut(self.line_len)
                    .take(self.n_copied(n))
                    .enumerate()
                {
                    self.copy(&input[image..], y * self.height.window.stride + index, line);
                }
                for index in 0..n {
                    let x = if index == 0 { x } else { 0 };
                    let end = block.rows.end.min(next + n_columns - x);
                    let first = index * self.height.window.stride * self.line_len + x;
                    let line = Line {
                        elements: &lines[first..],
                        offsets: &self.offsets,
                        rows: next - block.rows.start..end - block.rows.start,
                    };
                    right.multiply_line(&line, block_epilogue, out, stride);
                    next = end;
                }
            }
        });
    }

    /// Returns the number of input lines that `n_lines` neighbouring lines of the output read.
    fn n_copied(&self, n_lines: usize) -> usize {
        let Window { extent, stride, .. } = self.height.window;
        n_lines.saturating_sub(1) * stride + extent
    }

    /// Deinterleaves a line of an image, counted from the first of the padding.
    fn copy(&self, image: &[f32], line: usize, to: &mut [f32]) {
        let WindowAxis { input, before, .. } = self.width;
        let line = line.checked_sub(self.height.before);
        let Some(line) = line.filter(|line| *line < self.height.input) else {
            return to.fill(0.0);
        };
        let (n_all, stride) = (self.plan.channels, self.width.window.stride);
        let from = &image[line * input * n_all..][..input * n_all];
        for (index, run) in to.chunks_exact_mut(self.run_len).enumerate() {
            let (channel, phase) = (self.channels.0 + index / stride, index % stride);
            // The first that is in the input, and the first behind it.
            let first = before.saturating_sub(phase).div_ceil(stride);
            let first = first.min(run.len());
            let end = (input + before).saturating_sub(phase).div_ceil(stride);
            let end = end.clamp(first, run.len());
            run[..first].fill(0.0);
            run[end..].fill(0.0);
            if first == end {
                continue;
            }
            let start = (first * stride + phase - before) * n_all + channel;
            let run = &mut run[first..end];
            match stride * n_all {
                1 => run.copy_from_slice(&from[start..start + run.len()]),
                apart => {
                    let elements = from[start..].iter().step_by(apart);
                    run.iter_mut().zip(elements).for_each(|(to, x)| *to = *x);
                }
            }
        }
    }
}
