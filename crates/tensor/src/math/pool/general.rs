//! Pooling by functions of all elements of a window, with channels first.

use smallvec::SmallVec;
use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use super::channels_first_extents;
use crate::math::number::Real;
use crate::math::window::Window;
use crate::math::{Family, parallel};
use crate::{DenseHostTensor, Element, with_floating, with_real};

/// The function of a window's elements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WindowFunction {
    /// The sum, divided by the number of the window's elements in the image and in the padding that counts.
    Mean,
    /// The norm of this order: the root of the sum of the elements' sizes to that power.
    Norm(f64),
}

impl WindowFunction {
    fn of<T: Real>(self, seen: &WindowElements<'_, T>) -> T {
        let numbers = seen.positions.iter();
        let numbers = numbers.map(|position| seen.elements[*position].to_f64());
        T::from_f64(match self {
            #[allow(clippy::cast_precision_loss, reason = "windows are small")]
            WindowFunction::Mean => numbers.sum::<f64>() / seen.n_counted as f64,
            WindowFunction::Norm(p) => {
                let powers = numbers.map(|number| number.abs().powf(p));
                powers.sum::<f64>().powf(1.0 / p)
            }
        })
    }
}

/// The elements that a window sees.
struct WindowElements<'a, T> {
    /// All elements of the tensor.
    elements: &'a [T],
    /// Positions of the elements that the window sees, in their order.
    positions: &'a [usize],
    /// Start of the window's image, of one channel.
    image: usize,
    /// Number of the window's elements in the image and in the padding that counts.
    n_counted: usize,
}

impl<T: Real> WindowElements<'_, T> {
    /// Returns the position of the largest element, the first of several; NaN is larger than all numbers.
    fn largest(&self) -> usize {
        let mut best: Option<(T, usize)> = None;
        for position in self.positions {
            let x = self.elements[*position];
            match best {
                Some((largest, _)) if !largest.less(x) && x.same(x) => {}
                Some((largest, _)) if !largest.same(largest) => {}
                _ => best = Some((x, *position)),
            }
        }
        best.map_or(self.image, |(_, position)| position)
    }
}

/// Returns the position of an element in the order in which the first of the image's dimensions is the innermost.
fn turned(position: usize, image: usize, extents: &[usize]) -> usize {
    let (mut rest, mut coordinates) = (position - image, Vec::new());
    for extent in extents.iter().rev() {
        coordinates.push(rest % extent);
        rest /= extent;
    }
    let mut turned = 0;
    for (coordinate, extent) in coordinates.iter().zip(extents.iter().rev()) {
        turned = turned * extent + coordinate;
    }
    image + turned
}

/// A window laid over a dimension.
#[derive(Clone, Copy, Debug)]
struct PaddedAxis {
    window: Window,
    input: usize,
    output: usize,
    before: usize,
    /// The image with the padding that counts.
    counted: usize,
}

/// Makes each result by a function of the elements of its window, on the workers of the request's queue if there is
/// much to do.
///
/// Of the padding behind each dimension so much as `behind` says counts for [`WindowFunction::Mean`].
///
/// # Shapes
///
/// `input`: `[batch, channels, spatial..]`, `out`: `[batch, channels, output..]`.
///
/// # Errors
///
/// `InvalidArgument` if the shapes are not that, if a window does not fit, or if the elements are no floats, and those
/// of [`parallel::fill`].
pub fn pool_by_into(
    execution: &ExecutionContext,
    seeing: WindowFunction,
    input: &DenseHostTensor,
    windows: &[Window],
    behind: &[usize],
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let dtype = input.dtype();
    with_floating!(dtype, T => {
        let function = move |seen: &WindowElements<'_, T>| seeing.of(seen);
        pool_by::<T, T>(execution, input, windows, behind, out, function)
    }, else Err(Family::Floats.lacks(dtype)))
}

/// Finds the position of the largest element of each window, on the workers of the request's queue if there is much
/// to do: its number in row-major order, or, `by_columns`, in the order in which the first of an image's dimensions
/// is the innermost.
///
/// # Shapes
///
/// Those of [`pool_by_into`]; `out` is of `i64`s.
///
/// # Errors
///
/// `InvalidArgument` if the shapes are not that, if a window does not fit, or if the elements are no real numbers, and
/// those of [`parallel::fill`].
pub fn largest_positions_into(
    execution: &ExecutionContext,
    by_columns: bool,
    input: &DenseHostTensor,
    windows: &[Window],
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let (dtype, extents) = (input.dtype(), input.shape().to_dims());
    let behind: SmallVec<[usize; 3]> = SmallVec::from_elem(0, windows.len());
    with_real!(dtype, T => {
        let function = move |seen: &WindowElements<'_, T>| {
            let largest = seen.largest();
            let position = match by_columns {
                true => turned(largest, seen.image, &extents[2..]),
                false => largest,
            };
            i64::try_from(position).unwrap_or(i64::MAX)
        };
        pool_by::<T, i64>(execution, input, windows, &behind, out, function)
    }, else Err(Family::Reals.lacks(dtype)))
}

fn pool_by<T: Real, U: Element>(
    execution: &ExecutionContext,
    input: &DenseHostTensor,
    windows: &[Window],
    behind: &[usize],
    out: &DenseHostTensor,
    function: impl Fn(&WindowElements<'_, T>) -> U + Send + Sync + 'static,
) -> Result<AsyncValue<Chain>, Error> {
    input.metadata().expect_dtype(T::DTYPE)?;
    let extents = input.shape().to_dims();
    let wanted = channels_first_extents(&extents, windows)?;
    if wanted != out.shape().to_dims() || behind.len() != windows.len() {
        let found = out.shape();
        let message = format!("expected a result of shape {wanted:?}, found {found}");
        return Err(Error::invalid_argument(message));
    }
    let mut laid: SmallVec<[PaddedAxis; 3]> = SmallVec::new();
    for ((window, input), behind) in windows.iter().zip(&extents[2..]).zip(behind) {
        let (output, before, all_behind) = window.output(*input)?;
        laid.push(PaddedAxis {
            window: *window,
            input: *input,
            output,
            before,
            counted: before + *input + behind.min(&all_behind),
        });
    }
    let n_inputs: usize = laid.iter().map(|one| one.input).product();
    let n_outputs: usize = laid.iter().map(|one| one.output).product();
    let n_taps = laid
        .iter()
        .fold(1_usize, |n, one| n.saturating_mul(one.window.extent));
    let input = input.clone();
    let chunk = parallel::chunk_len(n_taps.saturating_mul(8), 1);
    parallel::fill(execution, out, chunk, move |first, part: &mut [U]| {
        let reading = input.read()?;
        let elements = reading.elements::<T>()?;
        let mut positions = Vec::new();
        for (index, out) in part.iter_mut().enumerate() {
            let (number, place) = ((first + index) / n_outputs, (first + index) % n_outputs);
            let image = number * n_inputs;
            let n_counted = see(&laid, image, place, &mut positions);
            *out = function(&WindowElements {
                elements,
                positions: &positions,
                image,
                n_counted,
            });
        }
        Ok(())
    })
}

/// Finds the positions that the window at a place sees; returns the number of its elements that count.
fn see(laid: &[PaddedAxis], image: usize, mut place: usize, positions: &mut Vec<usize>) -> usize {
    positions.clear();
    positions.push(image);
    let mut coordinates: SmallVec<[usize; 3]> = SmallVec::new();
    for one in laid.iter().rev() {
        coordinates.push(place % one.output);
        place /= one.output;
    }
    let mut n_counted = 1;
    let mut stride: usize = laid.iter().map(|one| one.input).product();
    let mut seen = Vec::new();
    for (one, coordinate) in laid.iter().zip(coordinates.iter().rev()) {
        stride /= one.input.max(1);
        let begin = coordinate * one.window.stride;
        let taps = (0..one.window.extent).map(|tap| begin + tap * one.window.dilation);
        n_counted *= taps.clone().filter(|place| *place < one.counted).count();
        seen.clear();
        for start in positions.iter() {
            let inside = taps
                .clone()
                .filter_map(|place| place.checked_sub(one.before));
            seen.extend(
                inside
                    .filter(|place| *place < one.input)
                    .map(|place| start + place * stride),
            );
        }
        std::mem::swap(positions, &mut seen);
    }
    n_counted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::window::Padding;

    #[test]
    fn windows_see_what_lies_under_them() {
        let laid = |window: Window, input: usize, behind: usize| {
            let (output, before, _) = window.output(input).unwrap();
            PaddedAxis {
                window,
                input,
                output,
                before,
                counted: before + input + behind,
            }
        };
        // Rows of 4, windows of 2 by 3, of which the last column reaches beyond what counts.
        let rows = laid(Window::new(2, 1, Padding::Valid), 3, 0);
        let columns = laid(Window::new(3, 2, Padding::Explicit(1, 2)), 4, 1);
        let mut positions = Vec::new();
        assert_eq!(see(&[rows, columns], 0, 0, &mut positions), 6);
        assert_eq!(positions, [0, 1, 4, 5]);
        assert_eq!(see(&[rows, columns], 12, 5, &mut positions), 4);
        assert_eq!(positions, [12 + 4 + 3, 12 + 8 + 3]);
    }
}
