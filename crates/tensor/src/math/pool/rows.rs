//! Pooling of images of one channel: rows of results at once, a tap of their windows after the other.

use std::ops::Range;

use super::{PoolPlan, Pooling};
use crate::Element;
use crate::math::number::{Number, Real};
use crate::math::vectorized;
use crate::math::window::WindowAxis;

/// Makes the outputs of a plan with one channel, from the `first` on.
pub(super) fn run<T: Real>(plan: &PoolPlan, input: &[T], first: usize, out: &mut [T]) {
    let [depth, height, width] = plan.windows.0;
    let mut scratch = Scratch::default();
    let (mut done, n_outputs) = (0, out.len());
    while done < n_outputs {
        let (row, start) = ((first + done) / width.output, (first + done) % width.output);
        let end = width.output.min(start + n_outputs - done);
        let (rest, y) = (row / height.output, row % height.output);
        let (image, z) = (rest / depth.output, rest % depth.output);
        let image = image * depth.input;
        let lines = seen(&depth, z).flat_map(|z| {
            seen(&height, y).map(move |y| ((image + z) * height.input + y) * width.input)
        });
        scratch.lines.clear();
        scratch
            .lines
            .extend(lines.map(|start| start..start + width.input));
        let part = &mut out[done..done + end - start];
        vectorized(
            #[inline(always)]
            || match plan.pooling {
                Pooling::Maximum => scratch.greatest(input, &width, start, part),
                Pooling::Mean => scratch.mean(input, &width, start, part, None),
                Pooling::MeanWithPadding => {
                    scratch.mean(input, &width, start, part, Some(plan.windows.n_taps()));
                }
            },
        );
        done += end - start;
    }
}

/// Returns the positions in the input that the window of an output sees.
fn seen(axis: &WindowAxis, output: usize) -> impl Iterator<Item = usize> + use<> {
    let (first, end, start) = axis.seen(output);
    let dilation = axis.window.dilation;
    (0..end - first).map(move |index| start + index * dilation)
}

/// Lists that are made for one row of results, and used again for the next.
struct Scratch<T: Real> {
    /// The lines of the input that the windows see.
    lines: Vec<Range<usize>>,
    /// The greatest of those lines, element by element.
    column: Vec<T>,
    sums: Vec<T::Wide>,
}

impl<T: Real> Default for Scratch<T> {
    fn default() -> Self {
        Scratch {
            lines: Vec::new(),
            column: Vec::new(),
            sums: Vec::new(),
        }
    }
}

impl<T: Real> Scratch<T> {
    /// Finds the greatest element of the windows from the one of number `start` on: first of the lines, then along them.
    #[inline(always)]
    fn greatest(&mut self, input: &[T], width: &WindowAxis, start: usize, out: &mut [T]) {
        out.fill(T::LOWEST);
        let Some((line, others)) = self.lines.split_first() else {
            return;
        };
        self.column.clear();
        self.column.extend_from_slice(&input[line.clone()]);
        for line in others {
            let pairs = self.column.iter_mut().zip(&input[line.clone()]);
            pairs.for_each(|(own, x)| *own = own.greatest(*x));
        }
        for tap in 0..width.window.extent {
            let (outputs, from) = under(width, tap, start, out.len());
            let out = &mut out[outputs];
            each(
                out,
                &self.column[from.min(width.input)..],
                width,
                |out, x| *out = out.greatest(x),
            );
        }
    }

    /// Finds the mean of the windows from the one of number `start` on: of the elements that they see, or of this number.
    #[inline(always)]
    fn mean(
        &mut self,
        input: &[T],
        width: &WindowAxis,
        start: usize,
        out: &mut [T],
        n: Option<usize>,
    ) {
        self.sums.clear();
        self.sums.resize(out.len(), <T::Wide as Element>::ZERO);
        for line in &self.lines {
            let line = &input[line.clone()];
            for tap in 0..width.window.extent {
                let (outputs, from) = under(width, tap, start, out.len());
                let sums = &mut self.sums[outputs];
                each(sums, &line[from.min(width.input)..], width, |sum, x: T| {
                    *sum = sum.plus(x.widened());
                });
            }
        }
        let results = out.iter_mut().zip(&self.sums);
        for (index, (out, sum)) in results.enumerate() {
            let n_seen = || {
                let (first, end, _) = width.seen(start + index);
                ((end - first) * self.lines.len()).max(1)
            };
            *out = T::mean(*sum, n.unwrap_or_else(n_seen));
        }
    }
}

/// Returns which of `len` outputs from `start` on see an element under a tap of their windows, and the position of the first of
/// these elements in its line; the others are a stride apart.
#[inline(always)]
fn under(width: &WindowAxis, tap: usize, start: usize, len: usize) -> (Range<usize>, usize) {
    let (stride, offset) = (width.window.stride, tap * width.window.dilation);
    let first = width.before.saturating_sub(offset).div_ceil(stride);
    let end = (width.before + width.input)
        .saturating_sub(offset)
        .div_ceil(stride);
    let first = first.clamp(start, start + len);
    let end = end.clamp(first, start + len);
    let from = (first * stride + offset).saturating_sub(width.before);
    (first - start..end - start, from)
}

/// Calls `with` with each of some places, and the elements that belong to them, a stride apart.
#[inline(always)]
fn each<T: Copy, U>(places: &mut [U], line: &[T], width: &WindowAxis, with: impl Fn(&mut U, T)) {
    match width.window.stride {
        1 => {
            let pairs = places.iter_mut().zip(line);
            pairs.for_each(|(place, x)| with(place, *x));
        }
        2 => {
            // The last one may have nothing behind it.
            let (pairs, last) = line.as_chunks::<2>();
            let n = places.len().min(pairs.len());
            let (some, rest) = places.split_at_mut(n);
            some.iter_mut()
                .zip(pairs)
                .for_each(|(place, [x, _])| with(place, *x));
            rest.iter_mut()
                .zip(last)
                .for_each(|(place, x)| with(place, *x));
        }
        stride => {
            let pairs = places.iter_mut().zip(line.iter().step_by(stride));
            pairs.for_each(|(place, x)| with(place, *x));
        }
    }
}
