//! Pooling by any function of a window, of tensors whose channels come first.

use smallvec::SmallVec;
use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use super::channels_first_extents;
use crate::math::number::Real;
use crate::math::parallel;
use crate::math::window::Window;
use crate::{DenseHostTensor, Element};

/// What a window sees.
#[derive(Debug)]
pub struct Seen<'a, T> {
    /// All elements of the tensor.
    pub elements: &'a [T],
    /// The positions of those that the window sees, in their order.
    pub positions: &'a [usize],
    /// Where the window's image begins, of one channel.
    pub image: usize,
    /// How many elements the window has in the image and in the padding that counts.
    pub n_counted: usize,
}

/// A window laid over a dimension.
#[derive(Clone, Copy, Debug)]
struct Laid {
    window: Window,
    input: usize,
    output: usize,
    before: usize,
    /// The image with the padding that counts.
    counted: usize,
}

/// Makes each result by a function of what its window sees, on the workers of the request's queue if there is much
/// to do.
///
/// Of the padding behind each dimension so much as `behind` says counts for [`Seen::n_counted`].
///
/// # Shapes
///
/// `input`: `[batch, channels, spatial..]`, `out`: `[batch, channels, output..]`.
///
/// # Errors
///
/// `InvalidArgument` if the shapes are not that, or if a window does not fit, and those of [`parallel::fill`].
pub fn pool_by_into<T: Real, U: Element>(
    execution: &ExecutionContext,
    input: &DenseHostTensor,
    windows: &[Window],
    behind: &[usize],
    out: &DenseHostTensor,
    function: impl Fn(Seen<'_, T>) -> U + Send + Sync + 'static,
) -> Result<AsyncValue<Chain>, Error> {
    input.metadata().expect_dtype(T::DTYPE)?;
    let extents = input.shape().to_dims();
    let wanted = channels_first_extents(&extents, windows)?;
    if wanted != out.shape().to_dims() || behind.len() != windows.len() {
        let found = out.shape();
        let message = format!("expected a result of shape {wanted:?}, found {found}");
        return Err(Error::invalid_argument(message));
    }
    let mut laid: SmallVec<[Laid; 3]> = SmallVec::new();
    for ((window, input), behind) in windows.iter().zip(&extents[2..]).zip(behind) {
        let (output, before, all_behind) = window.output(*input)?;
        laid.push(Laid {
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
            *out = function(Seen {
                elements,
                positions: &positions,
                image,
                n_counted,
            });
        }
        Ok(())
    })
}

/// Finds the positions that the window at a place sees, and how many elements of it count.
fn see(laid: &[Laid], image: usize, mut place: usize, positions: &mut Vec<usize>) -> usize {
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
            Laid {
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
