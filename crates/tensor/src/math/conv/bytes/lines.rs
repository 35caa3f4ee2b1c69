//! Convolutions of bytes whose windows are read where they lie, in lines of images with what is around them.
//!
//! Outputs of a line read windows that begin a pixel apart, and so do those of the next line if lines of the image lie one
//! behind the other: all are rows of one product, whose blocks of the depth are channels of taps. Windows that begin too near
//! the end of a line are multiplied with the others, and left out.

use super::{ByteConvolution, ConvPlan, Form, Scratch};
use crate::math::byte_gemm::{self, BEHIND, ByteEpilogue, LeftLines, flip};

/// Number of bytes of images that are copied at a time, about: they stay in a processor's first cache or near.
const COPIED: usize = 1 << 16;

impl ByteConvolution {
    /// Returns whether outputs can be made so, and are worth it.
    pub(super) fn has_lines(&self) -> bool {
        let ConvPlan { windows, .. } = &self.plan;
        let [depth, height, width] = &windows.0;
        let Form::Groups(packed) = &self.filter.form else {
            return false;
        };
        let own_channels = self.plan.channels / self.plan.groups;
        let is_dense = height.window.stride == 1 && width.window.stride == 1;
        depth.window.extent == 1
            && depth.input == 1
            && depth.output == 1
            && is_dense
            && windows.n_taps() > 1
            && own_channels > 0
            && own_channels.is_multiple_of(BEHIND)
            && self.line().1 > 1
            // No more than a fifth of all windows is left out.
            && 5 * self.line().1 >= 4 * self.line().0
            && packed.iter().all(LeftLines::can_meet)
    }

    /// Returns the number of pixels of a line with what is around it, and that of its outputs.
    fn line(&self) -> (usize, usize) {
        let width = &self.plan.windows.0[2];
        let last = (width.window.extent - 1) * width.window.dilation;
        (width.output + last, width.output)
    }

    /// Returns the number of outputs of a line.
    pub(super) fn line_outputs(&self) -> usize {
        self.line().1
    }

    /// Makes bytes of whole lines of outputs from an output on, which begins a line.
    pub(super) fn requantized_lines(
        &self,
        bytes: &[u8],
        output: usize,
        by: &ByteEpilogue,
        out: &mut [u8],
        scratch: &mut Scratch,
    ) {
        let ConvPlan {
            windows,
            channels,
            filters,
            groups,
            ..
        } = &self.plan;
        let Form::Groups(packed) = &self.filter.form else {
            return;
        };
        let [_, height, width] = &windows.0;
        let (of_line, wanted) = self.line();
        let (line_len, own_channels) = (of_line * channels, channels / groups);
        let mut offsets = Vec::with_capacity(windows.n_taps() * own_channels / BEHIND);
        for y in 0..height.window.extent {
            for x in 0..width.window.extent {
                let tap = y * height.window.dilation * of_line + x * width.window.dilation;
                let blocks = (0..own_channels).step_by(BEHIND);
                offsets.extend(blocks.map(|channel| tap * channels + channel));
            }
        }
        let more_lines = (height.window.extent - 1) * height.window.dilation;
        let most = (COPIED / line_len).saturating_sub(more_lines).max(4);
        let (mut line, mut rest) = (output / wanted, out);
        while !rest.is_empty() {
            let (image, y) = (line / height.output, line % height.output);
            let n_left = rest.len() / (wanted * filters);
            let n_lines = most.min(height.output - y).min(n_left);
            let (out, behind) = rest.split_at_mut(n_lines * wanted * filters);
            (rest, line) = (behind, line + n_lines);
            let image = &bytes[image * windows.n_inputs() * channels..];
            self.copy_lines(image, y, n_lines + more_lines, &mut scratch.patches);
            for (group, packed) in packed.iter().enumerate() {
                let left = LeftLines {
                    bytes: &scratch.patches[group * own_channels..],
                    pixel: *channels,
                    offsets: &offsets,
                    n_rows: (n_lines - 1) * of_line + wanted,
                    of_line: (of_line, wanted),
                    zero: self.zero - self.less + 128,
                };
                left.requantize(packed, (by, group * (filters / groups)), out);
            }
        }
    }

    /// Copies lines of an image from the first one that outputs of line `y` see, with what is around them, as unsigned
    /// bytes.
    fn copy_lines(&self, image: &[u8], y: usize, n_lines: usize, lines: &mut Vec<u8>) {
        let channels = self.plan.channels;
        let [_, height, width] = &self.plan.windows.0;
        let line_len = self.line().0 * channels;
        let flip = flip(self.less) ^ 0x80;
        let around = self.around ^ flip;
        lines.resize(n_lines * line_len, 0);
        let before = (width.before * channels).min(line_len);
        let len = (width.input * channels).min(line_len - before);
        for (index, line) in lines.chunks_exact_mut(line_len).enumerate() {
            let given = (y + index).checked_sub(height.before);
            let Some(given) = given.filter(|given| *given < height.input) else {
                line.fill(around);
                continue;
            };
            let given = &image[given * width.input * channels..][..len];
            line[..before].fill(around);
            line[before + len..].fill(around);
            let line = &mut line[before..][..len];
            byte_gemm::flip_into(given, flip, line);
        }
    }
}
