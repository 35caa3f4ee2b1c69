//! What the windows of a convolution look at, as the left side of a product: read in place.

use std::ops::Range;

use super::Plan;
use crate::math::panel::{ALIASING, Left, SKEW};
use crate::math::window::Laid;

/// A part of fewer elements is not worth the start of a loop: taps that lie side by side are one part then.
const SHORT: usize = 24;

/// The windows of one group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patches<'a> {
    plan: &'a Plan,
    input: &'a [f32],
    /// The first channel of the group, and how many it has.
    channels: (usize, usize),
    /// Whether the taps of a row are one part.
    is_joined: bool,
    /// Whether the parts are copied, for how they lie.
    is_copied: bool,
    /// Whether each output looks at the element of the same number, and that is read in place.
    is_in_place: bool,
}

impl<'a> Patches<'a> {
    pub(super) fn new(plan: &'a Plan, input: &'a [f32], group: usize) -> Self {
        let own = plan.channels / plan.groups;
        let width = plan.windows.0[2];
        let is_joined = own < SHORT
            && plan.groups == 1
            && width.window.extent > 1
            && (width.window.dilation == 1);
        let is_copied = plan.windows.n_taps() == 1
            && (plan.channels * width.window.stride).is_multiple_of(ALIASING);
        Patches {
            plan,
            input,
            channels: (group * own, own),
            is_joined,
            is_copied,
            is_in_place: !is_copied && plan.is_pointwise(),
        }
    }

    /// The windows of some outputs, in order.
    fn windows(&self, outputs: Range<usize>) -> impl Iterator<Item = Origin> {
        let [depth, height, width] = self.plan.windows.0;
        let n_inputs = self.plan.windows.n_inputs() * self.plan.channels;
        let (mut image, output) = self.plan.image(outputs.start);
        let (mut x, rest) = (output % width.output, output / width.output);
        let (mut y, mut z) = (rest % height.output, rest / height.output);
        let begin = |laid: &Laid, at: usize| (at * laid.window.stride).wrapping_sub(laid.before);
        outputs.map(move |_| {
            let at = [begin(&depth, z), begin(&height, y), begin(&width, x)];
            let origin = Origin { at, image };
            x += 1;
            if x == width.output {
                (x, y) = (0, y + 1);
            }
            if y == height.output {
                (y, z) = (0, z + 1);
            }
            if z == depth.output {
                (z, image) = (0, image + n_inputs);
            }
            origin
        })
    }

    /// For each row of taps that an output looks at: where it begins in the image, if it is in the
    /// input but for the last dimension.
    #[inline(always)]
    fn lines(&self, [z, y, _]: [usize; 3], mut body: impl FnMut(Option<usize>)) {
        let [depth, height, width] = &self.plan.windows.0;
        for z_tap in 0..depth.window.extent {
            let z = z.wrapping_add(z_tap * depth.window.dilation);
            for y_tap in 0..height.window.extent {
                let y = y.wrapping_add(y_tap * height.window.dilation);
                let is_within = z < depth.input && y < height.input;
                body(is_within.then(|| (z * height.input + y) * width.input));
            }
        }
    }

    /// Whether the joined taps of an output lie in the input, in the last dimension: wholly, or partly.
    fn joined(&self, x: usize) -> Joined {
        let width = &self.plan.windows.0[2];
        let end = x.wrapping_add(width.window.extent);
        if x < width.input && end <= width.input {
            return Joined::Within;
        }
        let first = usize::MAX.wrapping_sub(x).wrapping_add(1);
        match x < width.input {
            // Begins within, and ends behind.
            true => Joined::Partly(0..width.input - x),
            // Begins before, and ends within or behind.
            false if first < width.window.extent => {
                Joined::Partly(first..width.window.extent.min(first + width.input))
            }
            false => Joined::Outside,
        }
    }
}

/// Where a window begins.
#[derive(Clone, Copy, Debug)]
struct Origin {
    /// In each dimension, wrapped around if it begins before the input.
    at: [usize; 3],
    /// Where its image begins in the input.
    image: usize,
}

/// How taps lie to the input, in the last dimension.
enum Joined {
    Within,
    /// These taps are within.
    Partly(Range<usize>),
    Outside,
}

impl Left for Patches<'_> {
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

    fn copy(&self, rows: Range<usize>, copies: &mut Vec<f32>) {
        // Zeros, for what lies in the padding.
        let (_, len) = self.parts();
        copies.resize(len, 0.0);
        let channels = self.plan.channels;
        if !self.is_copied && !self.is_joined {
            return;
        }
        for Origin { at, image } in self.windows(rows) {
            let x = at[2];
            if self.is_copied {
                self.lines(at, |line| {
                    if let (Some(line), true) = (line, x < self.plan.windows.0[2].input) {
                        let start = image + (line + x) * channels + self.channels.0;
                        copies.extend_from_slice(&self.input[start..start + len]);
                        copies.extend_from_slice(&[0.0; SKEW]);
                    }
                });
            }
            if !self.is_joined {
                continue;
            }
            if let Joined::Partly(taps) = self.joined(x) {
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
        let width = self.plan.windows.0[2];
        for (row, Origin { at, image }) in self.windows(rows).enumerate() {
            let x = at[2];
            let mut index = row;
            let mut copied = |skew: usize| {
                let part = &copies[*next..*next + len];
                *next += len + skew;
                part
            };
            if self.is_joined {
                let joined = self.joined(x);
                self.lines(at, |line| {
                    match (line, &joined) {
                        (Some(line), Joined::Within) => {
                            let start = image + (line + x) * channels;
                            parts[index] = &self.input[start..start + len];
                        }
                        (Some(_), Joined::Partly(_)) => parts[index] = copied(0),
                        _ => {}
                    }
                    index += n_rows;
                });
                continue;
            }
            let taps = width.window.extent;
            self.lines(at, |line| {
                let Some(line) = line else {
                    index += n_rows * taps;
                    return;
                };
                let mut x = x;
                for _ in 0..taps {
                    if x < width.input {
                        parts[index] = match self.is_copied {
                            true => copied(SKEW),
                            false => {
                                let start = image + (line + x) * channels + self.channels.0;
                                &self.input[start..start + len]
                            }
                        };
                    }
                    x = x.wrapping_add(width.window.dilation);
                    index += n_rows;
                }
            });
        }
    }
}
