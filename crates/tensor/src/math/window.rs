//! [`Window`]: elements of an input that one element of an output reads, in one dimension.

use smallvec::SmallVec;
use tfrt_host::Error;

/// Padding around an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Padding {
    /// No padding: windows lie within the input.
    Valid,
    /// So much padding that there is an output for each stride, evenly before and behind; an odd element goes behind.
    Same,
    /// This padding before and behind.
    Explicit(usize, usize),
}

/// A window along one dimension: `extent` elements, `dilation` apart; the next window begins `stride` elements
/// further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Number of elements.
    pub extent: usize,
    /// Distance between windows.
    pub stride: usize,
    /// Distance between elements of a window.
    pub dilation: usize,
    /// Padding around the input.
    pub padding: Padding,
}

/// A window laid over an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WindowAxis {
    pub window: Window,
    pub input: usize,
    pub output: usize,
    /// Number of elements of padding before the input.
    pub before: usize,
}

impl Window {
    /// Returns a window of `extent` neighbours.
    pub fn new(extent: usize, stride: usize, padding: Padding) -> Window {
        Window {
            extent,
            stride,
            dilation: 1,
            padding,
        }
    }

    /// Returns the extent of the output, and the padding before and behind the input.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if extent, stride or dilation is 0, or if the window is larger than the input with
    /// its padding.
    ///
    /// # Examples
    ///
    /// ```
    /// use tfrt_tensor::math::window::{Padding, Window};
    ///
    /// assert_eq!(Window::new(3, 2, Padding::Valid).output(7)?, (3, 0, 0));
    /// assert_eq!(Window::new(3, 2, Padding::Same).output(8)?, (4, 0, 1));
    /// assert_eq!(Window::new(3, 1, Padding::Explicit(1, 1)).output(8)?, (8, 1, 1));
    /// # Ok::<(), tfrt_host::Error>(())
    /// ```
    pub fn output(&self, input: usize) -> Result<(usize, usize, usize), Error> {
        let Window {
            extent,
            stride,
            dilation,
            padding,
        } = *self;
        if extent == 0 || stride == 0 || dilation == 0 {
            return Err(Error::invalid_argument(format!(
                "a window has an extent, a stride and a dilation above 0, found {extent}, {stride} and \
                 {dilation}"
            )));
        }
        let covered = (extent - 1)
            .checked_mul(dilation)
            .and_then(|span| span.checked_add(1))
            .ok_or_else(|| Error::invalid_argument("a window exceeds the largest integer"))?;
        let (before, behind) = match padding {
            Padding::Valid => (0, 0),
            Padding::Explicit(before, behind) => (before, behind),
            Padding::Same => {
                let last = input
                    .div_ceil(stride)
                    .saturating_sub(1)
                    .saturating_mul(stride);
                let missing = last.saturating_add(covered).saturating_sub(input);
                (missing / 2, missing - missing / 2)
            }
        };
        let padded = input
            .checked_add(before)
            .and_then(|sum| sum.checked_add(behind));
        let around = || format!("an input of {input} with {before} and {behind} around it");
        let Some(padded) = padded else {
            let message = format!("{} exceeds the largest integer", around());
            return Err(Error::invalid_argument(message));
        };
        let Some(room) = padded.checked_sub(covered) else {
            let message = format!(
                "a window over {covered} elements is larger than {}",
                around()
            );
            return Err(Error::invalid_argument(message));
        };
        if padding == Padding::Same && input == 0 {
            return Ok((0, 0, 0));
        }
        Ok((room / stride + 1, before, behind))
    }

    pub(crate) fn over(&self, input: usize) -> Result<WindowAxis, Error> {
        let (output, before, _) = self.output(input)?;
        Ok(WindowAxis {
            window: *self,
            input,
            output,
            before,
        })
    }
}

impl WindowAxis {
    /// Returns the part of an output's window that lies in the input: the first element and the end, by their numbers
    /// in the window, and the position of the first in the input.
    #[inline]
    pub(crate) fn seen(&self, output: usize) -> (usize, usize, usize) {
        let Window {
            extent,
            stride,
            dilation,
            ..
        } = self.window;
        let start = output * stride;
        // The first element at or behind the padding, and the first that is behind the input.
        let first = self
            .before
            .saturating_sub(start)
            .div_ceil(dilation)
            .min(extent);
        let end = (self.input + self.before)
            .saturating_sub(start)
            .div_ceil(dilation)
            .min(extent);
        // It wraps around only if all elements lie before the input: then there is no first.
        let position = start
            .wrapping_add(first.wrapping_mul(dilation))
            .saturating_sub(self.before);
        (first, end.max(first), position)
    }
}

/// Windows in three dimensions; missing ones are put in front.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Windows(pub [WindowAxis; 3]);

impl Windows {
    pub(crate) fn new(windows: &[Window], inputs: &[usize]) -> Result<Windows, Error> {
        if windows.len() != inputs.len() || !(1..=3).contains(&windows.len()) {
            let message = format!(
                "expected a window for each of one to three dimensions, found {} for {}",
                windows.len(),
                inputs.len()
            );
            return Err(Error::invalid_argument(message));
        }
        let one = Window::new(1, 1, Padding::Valid).over(1)?;
        let mut laid = [one; 3];
        let missing = 3 - windows.len();
        for ((laid, window), input) in laid[missing..].iter_mut().zip(windows).zip(inputs) {
            *laid = window.over(*input)?;
        }
        // Tensors without elements may have extents of any size, whose products are asked for later.
        let fits = |of: fn(&WindowAxis) -> usize| {
            let product = |product: usize, laid: &WindowAxis| product.checked_mul(of(laid).max(1));
            laid.iter().try_fold(1_usize, product).is_some()
        };
        if !fits(|laid| laid.window.extent) || !fits(|laid| laid.input) || !fits(|laid| laid.output)
        {
            let message = "windows, or what they look at, do not fit any memory";
            return Err(Error::resource_exhausted(message));
        }
        Ok(Windows(laid))
    }

    /// Returns the number of elements of a window.
    pub(crate) fn n_taps(&self) -> usize {
        self.0.iter().map(|laid| laid.window.extent).product()
    }

    /// Returns the number of outputs.
    pub(crate) fn n_outputs(&self) -> usize {
        self.0.iter().map(|laid| laid.output).product()
    }

    /// Returns the number of elements of the input.
    pub(crate) fn n_inputs(&self) -> usize {
        self.0.iter().map(|laid| laid.input).product()
    }

    /// Returns the extents of the output, in as many dimensions as were given.
    pub(crate) fn outputs(&self, rank: usize) -> SmallVec<[usize; 3]> {
        self.0[3 - rank..].iter().map(|laid| laid.output).collect()
    }

    /// Returns the number of outputs, from one on in its row, whose windows have the same elements within the input,
    /// each a stride further in the last dimension.
    #[inline]
    pub(crate) fn n_alike(&self, output: usize) -> usize {
        let WindowAxis {
            window,
            input,
            before,
            ..
        } = self.0[2];
        let x = output % self.0[2].output;
        // Where the last window that lies in the input begins, as seen from the padding.
        let last = (input + before).checked_sub((window.extent - 1) * window.dilation + 1);
        match last {
            Some(last) if x * window.stride >= before => {
                let end = (last / window.stride + 1).min(self.0[2].output);
                end.saturating_sub(x).max(1)
            }
            _ => 1,
        }
    }

    /// Calls `body` for each run of elements that an output reads: number of the first in the window, number in the
    /// input, and length; elements are `dilation` of the last dimension apart.
    #[inline(always)]
    pub(crate) fn runs(&self, output: usize, mut body: impl FnMut(usize, usize, usize)) {
        let [depth, height, width] = &self.0;
        let x = output % width.output;
        let rest = output / width.output;
        let (y, z) = (rest % height.output, rest / height.output);
        let (z_first, z_end, z_start) = depth.seen(z);
        let (y_first, y_end, y_start) = height.seen(y);
        let (x_first, x_end, x_start) = width.seen(x);
        if x_first == x_end {
            return;
        }
        for z_tap in z_first..z_end {
            let z_input = z_start + (z_tap - z_first) * depth.window.dilation;
            for y_tap in y_first..y_end {
                let y_input = y_start + (y_tap - y_first) * height.window.dilation;
                let tap = (z_tap * height.window.extent + y_tap) * width.window.extent + x_first;
                let input = (z_input * height.input + y_input) * width.input + x_start;
                body(tap, input, x_end - x_first);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_seen_is_what_the_definition_says(
            input in 0..12_usize, extent in 1..4_usize, stride in 1..4_usize, dilation in 1..4_usize,
            before in 0..4_usize, behind in 0..4_usize, kind in 0..3,
        ) {
            let padding = match kind {
                0 => Padding::Valid,
                1 => Padding::Same,
                _ => Padding::Explicit(before, behind),
            };
            let window = Window { extent, stride, dilation, padding };
            let Ok(laid) = window.over(input) else { return Ok(()) };
            if padding == Padding::Same {
                prop_assert_eq!(laid.output, input.div_ceil(stride));
            }
            for output in 0..laid.output {
                let place = |tap: usize| (output * stride + tap * dilation).checked_sub(laid.before);
                let wanted: Vec<(usize, usize)> = (0..extent)
                    .filter_map(|tap| Some((tap, place(tap).filter(|place| *place < input)?)))
                    .collect();
                let (first, end, start) = laid.seen(output);
                let windows = Windows::new(&[window], &[input]).unwrap();
                for next in output..output + windows.n_alike(output) {
                    let (_, next_end, next_start) = laid.seen(next);
                    prop_assert_eq!((next_end, next_start), (end, start + (next - output) * stride));
                }
                let found: Vec<(usize, usize)> =
                    (first..end).map(|tap| (tap, start + (tap - first) * dilation)).collect();
                prop_assert_eq!(found, wanted);
            }
        }
    }

    #[test]
    fn elements_may_be_as_far_apart_as_can_be() {
        let window = Window {
            extent: 1,
            stride: 1,
            dilation: usize::MAX,
            padding: Padding::Explicit(10, 0),
        };
        let laid = window.over(3).unwrap();
        for output in 0..laid.output {
            let (first, end, position) = laid.seen(output);
            assert_eq!(end - first, usize::from(output >= 10));
            assert!(first == end || position == output - 10);
        }
    }

    #[test]
    fn windows_that_do_not_fit_are_told() {
        assert!(Window::new(3, 1, Padding::Valid).output(2).is_err());
        assert!(Window::new(0, 1, Padding::Valid).output(2).is_err());
        assert!(Window::new(1, 0, Padding::Same).output(2).is_err());
        let huge = Window::new(3, 1, Padding::Explicit(usize::MAX, 2)).output(2);
        let error = huge.unwrap_err();
        assert!(
            error.message().ends_with("exceeds the largest integer"),
            "{error}"
        );
        assert!(Windows::new(&[], &[]).is_err());
    }
}
