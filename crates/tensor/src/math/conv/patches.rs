//! Windows of a convolution as the left side of a matrix product, read in place (an implicit im2col).

use std::ops::Range;

use super::ConvPlan;
use crate::math::packed_gemm::Lhs;
use crate::math::window::WindowAxis;

/// Length below which parts are not worth the start of a loop: adjacent taps are one part then.
const SHORT: usize = 24;

/// The windows of one group.
#[derive(Clone, Debug)]
pub(super) struct Patches<'a> {
    plan: &'a ConvPlan,
    input: &'a [f32],
    /// The first channel of the group, and how many it has.
    channels: (usize, usize),
    /// Whether the taps of a row are merged into one part.
    is_joined: bool,
    /// Whether output `i` reads exactly element `i`, in place: a window of one element.
    is_in_place: bool,
    /// Offsets of parts from the window's first element, for windows within the input.
    offsets: Vec<usize>,
}

impl<'a> Patches<'a> {
    pub(super) fn new(plan: &'a ConvPlan, input: &'a [f32], group: usize) -> Self {
        let own = plan.channels / plan.groups;
        let width = plan.windows.0[2];
        let is_joined = own < SHORT
            && plan.groups == 1
            && width.window.extent > 1
            && (width.window.dilation == 1);
        let mut patches = Patches {
            plan,
            input,
            channels: (group * own, own),
            is_joined,
            is_in_place: plan.is_pointwise(),
            offsets: Vec::new(),
        };
        if patches.parts().0 > 0 {
            // Those of windows that lie in the input don't wrap around, and no others are asked for.
            let step = plan.channels.wrapping_mul(width.window.dilation);
            let n_each = if is_joined { 1 } else { width.window.extent };
            let mut offsets = Vec::with_capacity(patches.parts().0);
            patches.taps([0; 3], |_, line| {
                let start = line
                    .wrapping_mul(plan.channels)
                    .wrapping_add(patches.channels.0);
                let offset = |tap: usize| start.wrapping_add(tap.wrapping_mul(step));
                offsets.extend((0..n_each).map(offset));
            });
            patches.offsets = offsets;
        }
        patches
    }

    /// Returns whether a window lies in the input.
    fn is_within(&self, at: [usize; 3]) -> bool {
        let mut dimensions = at.iter().zip(&self.plan.windows.0);
        dimensions.all(|(at, laid)| {
            let last = (laid.window.extent - 1) * laid.window.dilation;
            *at < laid.input && last < laid.input - at
        })
    }

    /// Returns the window of an output.
    fn origin(&self, output: usize) -> WindowOrigin {
        let [depth, height, width] = &self.plan.windows.0;
        let (image, own) = self.plan.image(output);
        let (x, rest) = (own % width.output, own / width.output);
        let (y, z) = (rest % height.output, rest / height.output);
        let begin =
            |laid: &WindowAxis, at: usize| (at * laid.window.stride).wrapping_sub(laid.before);
        let at = [begin(depth, z), begin(height, y), begin(width, x)];
        let n_alike = self.plan.windows.n_alike(own);
        WindowOrigin { at, image, n_alike }
    }

    /// Calls `body` for each row of taps of a window, with its place in all dimensions but the last, and its number
    /// in the image; both wrap around.
    #[inline(always)]
    fn taps(&self, [z, y, _]: [usize; 3], mut body: impl FnMut([usize; 2], usize)) {
        let [depth, height, width] = &self.plan.windows.0;
        for z_tap in 0..depth.window.extent {
            let z = z.wrapping_add(z_tap * depth.window.dilation);
            for y_tap in 0..height.window.extent {
                let y = y.wrapping_add(y_tap * height.window.dilation);
                let row = z.wrapping_mul(height.input).wrapping_add(y);
                body([z, y], row.wrapping_mul(width.input));
            }
        }
    }

    /// Calls `body` for each row of taps of an output, with the row's start in the image, or `None` if the row lies
    /// in the padding.
    #[inline(always)]
    fn lines(&self, at: [usize; 3], mut body: impl FnMut(Option<usize>)) {
        let [depth, height, _] = &self.plan.windows.0;
        self.taps(at, |[z, y], line| {
            body((z < depth.input && y < height.input).then_some(line));
        });
    }

    /// Returns the overlap of an output's merged taps with the input, in the last dimension.
    fn joined(&self, x: usize) -> TapOverlap {
        let width = &self.plan.windows.0[2];
        let end = x.wrapping_add(width.window.extent);
        if x < width.input && end <= width.input {
            return TapOverlap::Within;
        }
        let first = usize::MAX.wrapping_sub(x).wrapping_add(1);
        match x < width.input {
            // Begins within, and ends behind.
            true => TapOverlap::Partly(0..width.input - x),
            // Begins before, and ends within or behind.
            false if first < width.window.extent => {
                TapOverlap::Partly(first..width.window.extent.min(first + width.input))
            }
            false => TapOverlap::Outside,
        }
    }
}

/// Position of a window.
#[derive(Clone, Copy, Debug)]
struct WindowOrigin {
    /// First element in each dimension, wrapped around if it lies before the input.
    at: [usize; 3],
    /// Start of the window's image in the input.
    image: usize,
    /// Number of outputs from this one on that read the same taps, each a stride further.
    n_alike: usize,
}

/// Overlap of merged taps with the input, in the last dimension.
enum TapOverlap {
    Within,
    /// Only these taps lie within.
    Partly(Range<usize>),
    Outside,
}

impl Lhs for Patches<'_> {
    fn parts(&self) -> (usize, usize) {
        let (n_taps, own) = (self.plan.windows.n_taps(), self.channels.1);
        if own == 0 {
            return (0, 0);
        }
        match self.is_joined {
            true => {
                let extent = self.plan.windows.0[2].window.extent;
                (n_taps / extent, extent * own)
            }
            false => (n_taps, own),
        }
    }

    fn row_stride(&self) -> usize {
        self.plan
            .channels
            .saturating_mul(self.plan.windows.0[2].window.stride)
    }

    fn copy(&self, rows: Range<usize>, copies: &mut Vec<f32>) {
        // Zeros, for what lies in the padding.
        let (n_parts, len) = self.parts();
        copies.resize(len, 0.0);
        let channels = self.plan.channels;
        // Without channels there is nothing to lay, however many taps there are.
        if !self.is_joined || n_parts == 0 {
            return;
        }
        let mut output = rows.start;
        while output < rows.end {
            let WindowOrigin { at, image, n_alike } = self.origin(output);
            output += n_alike;
            let x = at[2];
            if let TapOverlap::Partly(taps) = self.joined(x) {
                self.lines(at, |line| {
                    let Some(line) = line else { return };
                    let before = copies.len();
                    copies.resize(before + taps.start * channels, 0.0);
                    let start = image + (line + x.wrapping_add(taps.start)) * channels;
                    copies.extend_from_slice(&self.input[start..start + taps.len() * channels]);
                    copies.resize(before + len, 0.0);
                });
            }
        }
    }

    fn lay<'s>(
        &'s self,
        rows: Range<usize>,
        copies: &'s [f32],
        next: &mut usize,
        parts: &mut Vec<&'s [f32]>,
    ) {
        let (n_parts, len) = self.parts();
        if n_parts == 0 {
            return;
        }
        let (zeros, n_rows) = (&copies[..len], rows.len());
        if *next == 0 {
            *next = len;
        }
        let first = parts.len();
        parts.resize(first + n_parts * n_rows, zeros);
        let parts = &mut parts[first..];
        let (in_place, channels) = (self.is_in_place, self.plan.channels);
        if in_place {
            for (output, part) in rows.zip(parts) {
                *part = &self.input[output * channels + self.channels.0..][..len];
            }
            return;
        }
        let mut row = 0;
        while row < n_rows {
            let origin = self.origin(rows.start + row);
            let n = origin.n_alike.min(n_rows - row);
            if self.is_within(origin.at) {
                let [_, height, width] = &self.plan.windows.0;
                let [z, y, x] = origin.at;
                let place = (z * height.input + y) * width.input + x;
                let input = &self.input[origin.image + place * channels..];
                // It wraps around only where no window but one has an element of the input.
                let step = width.window.stride.wrapping_mul(channels);
                for (parts, offset) in parts.chunks_exact_mut(n_rows).zip(&self.offsets) {
                    for (index, part) in parts[row..row + n].iter_mut().enumerate() {
                        *part = &input[*offset + index * step..][..len];
                    }
                }
                row += n;
                continue;
            }
            for _ in 0..n {
                let origin = self.origin(rows.start + row);
                self.lay_around(
                    origin,
                    copies,
                    next,
                    parts[row..].iter_mut().step_by(n_rows),
                );
                row += 1;
            }
        }
    }
}

impl Patches<'_> {
    /// Lays the parts of an output whose window overlaps padding.
    fn lay_around<'s: 'p, 'p>(
        &'s self,
        WindowOrigin { at, image, .. }: WindowOrigin,
        copies: &'s [f32],
        next: &mut usize,
        mut parts: impl Iterator<Item = &'p mut &'s [f32]>,
    ) {
        let ((_, len), channels, x) = (self.parts(), self.plan.channels, at[2]);
        if self.is_joined {
            let joined = self.joined(x);
            self.lines(at, |line| {
                let Some(part) = parts.next() else { return };
                match (line, &joined) {
                    (Some(line), TapOverlap::Within) => {
                        let start = image + (line + x) * channels;
                        *part = &self.input[start..start + len];
                    }
                    (Some(_), TapOverlap::Partly(_)) => {
                        *part = &copies[*next..*next + len];
                        *next += len;
                    }
                    _ => {}
                }
            });
            return;
        }
        let width = self.plan.windows.0[2];
        self.lines(at, |line| {
            let mut x = x;
            for _ in 0..width.window.extent {
                let Some(part) = parts.next() else { return };
                if let Some(line) = line
                    && x < width.input
                {
                    let start = image + (line + x) * channels + self.channels.0;
                    *part = &self.input[start..start + len];
                }
                x = x.wrapping_add(width.window.dilation);
            }
        });
    }
}
