//! Resizing: a tensor with other extents that shows the same picture.
//!
//! Which dimensions are resized is seen from the shapes: it does not matter whether channels come first or last.
//! Coordinates and weights are those of ONNX's operation `Resize`. Elements outside are the outermost ones.

use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use super::layout_copy::LayoutCopy;
use super::number::{Floating, Number, Real};
use super::{parallel, vectorized};
use crate::{DenseHostTensor, Dims, TensorView, TensorViewMut};

mod blend;
mod onnx;
mod pick;
mod taps;
mod walk;

pub(crate) use onnx::cubic;
pub use onnx::{OnnxCoordinates, OnnxResize, OnnxResizeAxis, OnnxResizeKernel, OnnxResizeOptions};
use taps::Taps;

/// The mapping from places of the result to the input (PyTorch's `align_corners` and others).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoordinateMode {
    /// Elements are areas: `(x + 0.5) / scale - 0.5`.
    HalfPixel,
    /// [`HalfPixel`](Self::HalfPixel), but 0 where the result has one element.
    PytorchHalfPixel,
    /// The first and the last elements coincide: `x * (input - 1) / (output - 1)`.
    AlignCorners,
    /// The first elements coincide: `x / scale`.
    Asymmetric,
}

/// The rounding of a place to the nearest element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NearestMode {
    /// The nearer one, of two as near the lower.
    HalfDown,
    /// The nearer one, of two as near the upper.
    HalfUp,
    /// The lower one.
    Floor,
    /// The upper one.
    Ceil,
}

/// The interpolation kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ResizeKernel {
    /// The two nearest along each dimension, by their distance.
    Linear,
    /// The four nearest along each dimension, by a cubic polynomial with this coefficient: -0.75 or -0.5.
    Cubic(f64),
}

/// Options of a resize by interpolation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interpolation {
    /// Interpolation kernel.
    pub kernel: ResizeKernel,
    /// Mapping of coordinates.
    pub coordinates: CoordinateMode,
    /// Whether the kernel is widened where the picture becomes smaller, so that no element is left out.
    pub antialias: bool,
    /// Whether elements outside get weight 0, instead of those of the outermost.
    pub exclude_outside: bool,
}

impl Interpolation {
    /// Returns a linear interpolation, of half pixels.
    pub const LINEAR: Interpolation = Interpolation {
        kernel: ResizeKernel::Linear,
        coordinates: CoordinateMode::HalfPixel,
        antialias: false,
        exclude_outside: false,
    };
    /// Returns a cubic interpolation, of half pixels.
    pub const CUBIC: Interpolation = Interpolation {
        kernel: ResizeKernel::Cubic(-0.75),
        ..Interpolation::LINEAR
    };
}

/// Returns the copy that takes the nearest element for each place of the result, of any type.
///
/// # Errors
///
/// `InvalidArgument` if the shapes don't have as many dimensions, or if something is to be shown of nothing;
/// `ResourceExhausted` if there is no memory for a number for each place along a dimension.
///
/// # Examples
///
/// ```
/// use tfrt_tensor::math::resize::{CoordinateMode, NearestMode, nearest};
/// use tfrt_tensor::{TensorView, TensorViewMut};
///
/// let x = TensorView::new(&[1_u8, 2], &[2])?;
/// let twice = nearest(&[2], &[4], CoordinateMode::HalfPixel, NearestMode::HalfDown)?;
/// let mut out = [0; 4];
/// twice.run(&x, &mut TensorViewMut::new(&mut out, &[4])?)?;
/// assert_eq!(out, [1, 1, 2, 2]);
/// # Ok::<(), tfrt_host::Error>(())
/// ```
pub fn nearest(
    input: &[usize],
    output: &[usize],
    coordinates: CoordinateMode,
    rounding: NearestMode,
) -> Result<LayoutCopy, Error> {
    expect_shapes(input, output)?;
    LayoutCopy::by_lists(input, output, |dimension| {
        let (from, to) = (input[dimension], output[dimension]);
        let mut list = taps::room_for(to)?;
        list.extend((0..to).map(|index| taps::nearest(coordinates, rounding, index, from, to)));
        Ok(list)
    })
}

/// A resize, with its weights.
///
/// # Examples
///
/// ```
/// use tfrt_tensor::math::resize::{Interpolation, Resize};
/// use tfrt_tensor::{TensorView, TensorViewMut};
///
/// let x = TensorView::new(&[0.0_f32, 4.0], &[2])?;
/// let twice = Resize::new(Interpolation::LINEAR, &[2], &[4])?;
/// let mut out = [0.0; 4];
/// twice.run(&x, &mut TensorViewMut::new(&mut out, &[4])?)?;
/// assert_eq!(out, [0.0, 1.0, 3.0, 4.0]);
/// # Ok::<(), tfrt_host::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Resize {
    input: Dims,
    output: Dims,
    /// Weights of each dimension; `None` for dimensions that keep their extent.
    taps: Vec<Option<Taps>>,
}

impl Resize {
    /// Finds the weights for a resizing.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the shapes don't have as many dimensions, if something is to be shown of nothing, or
    /// if a cubic's coefficient is not finite; `ResourceExhausted` if there is no memory for the weights.
    pub fn new(
        interpolation: Interpolation,
        input: &[usize],
        output: &[usize],
    ) -> Result<Resize, Error> {
        expect_shapes(input, output)?;
        if let ResizeKernel::Cubic(a) = interpolation.kernel
            && !a.is_finite()
        {
            let message = format!("expected a finite coefficient of a cubic, found {a}");
            return Err(Error::invalid_argument(message));
        }
        let is_empty = output.contains(&0);
        let taps = |(from, to): (&usize, &usize)| match from == to || is_empty {
            // With the same extent every place is its own.
            true => Ok(None),
            false => Taps::new(&interpolation, *from, *to).map(Some),
        };
        let taps: Result<Vec<Option<Taps>>, Error> = input.iter().zip(output).map(taps).collect();
        Ok(Resize {
            taps: taps?,
            input: Dims::from_slice(input),
            output: Dims::from_slice(output),
        })
    }

    /// Resizes a tensor.
    ///
    /// # Shapes
    ///
    /// `x` and `out` of those that the weights were found for.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if they are not.
    pub fn run<T: Floating<Wide: Real>>(
        &self,
        x: &TensorView<'_, T>,
        out: &mut TensorViewMut<'_, T>,
    ) -> Result<(), Error> {
        self.expect(x.extents(), out.extents())?;
        self.part(x.elements(), x.strides(), 0, out.as_mut_slice());
        Ok(())
    }

    /// Resizes a dense tensor, on the workers of the request's queue if there is much to do.
    ///
    /// # Errors
    ///
    /// Those of [`run`](Self::run), if the types differ, and those of [`parallel::fill`].
    pub fn run_into(
        &self,
        execution: &ExecutionContext,
        x: &DenseHostTensor,
        out: &DenseHostTensor,
    ) -> Result<AsyncValue<Chain>, Error> {
        crate::dense::expect_dtype::<f32>(x.metadata())?;
        self.expect(&x.shape().to_dims(), &out.shape().to_dims())?;
        let (this, x, strides) = (self.clone(), x.clone(), x.shape().strides());
        let row = match out.n_elements() {
            0 => 1,
            _ => self.output[self.split()..].iter().product(),
        };
        let chunk = parallel::chunk_len(self.cost(), row);
        parallel::fill(execution, out, chunk, move |first, part: &mut [f32]| {
            this.part(x.read()?.elements()?, &strides, first, part);
            Ok(())
        })
    }

    /// Returns the weights that a result has at most, in all dimensions together.
    fn cost(&self) -> usize {
        let lens = self.taps.iter().flatten().map(Taps::most);
        lens.fold(1_usize, usize::saturating_mul)
    }

    fn expect(&self, x: &[usize], out: &[usize]) -> Result<(), Error> {
        if x == &self.input[..] && out == &self.output[..] {
            return Ok(());
        }
        let (input, output) = (&self.input[..], &self.output[..]);
        Err(Error::invalid_argument(format!(
            "what resizes a tensor of shape {input:?} to {output:?} was given tensors of shapes {x:?} and {out:?}"
        )))
    }

    /// Returns the last resized dimension: rows of the result are made along it and the dimensions behind it.
    fn split(&self) -> usize {
        let last = self.taps.iter().rposition(Option::is_some);
        last.unwrap_or(self.taps.len().saturating_sub(1))
    }

    /// Makes the results from the `first` on: whole rows.
    fn part<T: Floating<Wide: Real>>(
        &self,
        x: &[T],
        strides: &[usize],
        first: usize,
        out: &mut [T],
    ) {
        if out.is_empty() {
            return;
        }
        let Some((split, block_extents)) = self
            .output
            .get(self.split()..)
            .and_then(|rest| Some((self.split(), rest.split_first()?.1)))
        else {
            out[0] = x[0];
            return;
        };
        let block: Vec<usize> =
            crate::view::Offsets::new(block_extents, &strides[split + 1..]).collect();
        let is_dense = block
            .iter()
            .enumerate()
            .all(|(index, offset)| index == *offset);
        let row_len = self.output[split] * block.len();
        let row = Row {
            taps: self.taps[split].as_ref(),
            stride: strides[split],
            block: &block,
            is_dense,
        };
        let mut sums = vec![<T::Wide as crate::Element>::ZERO; row_len];
        let mut starts = Vec::new();
        for (number, out) in out.chunks_exact_mut(row_len).enumerate() {
            self.rows(first / row_len + number, split, strides, &mut starts);
            sums.fill(<T::Wide as crate::Element>::ZERO);
            vectorized(
                #[inline(always)]
                || {
                    for (start, factor) in &starts {
                        row.add(&x[*start..], *factor, &mut sums);
                    }
                    let each = out.iter_mut().zip(&sums);
                    each.for_each(|(out, sum)| *out = T::narrowed(*sum));
                },
            );
        }
    }

    /// Calls `body` with the elements that a place of a dimension is made of, and their weights.
    fn taps_of(&self, dimension: usize, place: usize, mut body: impl FnMut(usize, f64)) {
        match &self.taps[dimension] {
            Some(taps) => taps
                .of(place)
                .for_each(|(index, weight)| body(index, weight)),
            None => body(place, 1.0),
        }
    }

    /// Finds the input rows of a result's row, in the dimensions before the last resized one, with their beginnings
    /// and weights.
    fn rows(&self, number: usize, split: usize, strides: &[usize], rows: &mut Vec<(usize, f64)>) {
        rows.clear();
        rows.push((0, 1.0));
        let (mut rest, mut before) = (number, Vec::new());
        for dimension in (0..split).rev() {
            let place = rest % self.output[dimension];
            rest /= self.output[dimension];
            std::mem::swap(rows, &mut before);
            rows.clear();
            self.taps_of(dimension, place, |index, weight| {
                let offset = index * strides[dimension];
                rows.extend(
                    before
                        .iter()
                        .map(|(start, own)| (start + offset, own * weight)),
                );
            });
        }
    }
}

/// Interpolation of a row along the last resized dimension.
struct Row<'a> {
    taps: Option<&'a Taps>,
    stride: usize,
    /// Offsets of the elements behind each place.
    block: &'a [usize],
    /// Whether these elements are contiguous.
    is_dense: bool,
}

impl Row<'_> {
    /// Adds a row of the input, times a factor and resized, to the sums.
    #[inline(always)]
    fn add<T: Floating<Wide: Real>>(&self, x: &[T], factor: f64, sums: &mut [T::Wide]) {
        for (place, sums) in sums.chunks_exact_mut(self.block.len()).enumerate() {
            match self.taps {
                Some(taps) => {
                    for (index, weight) in taps.of(place) {
                        self.tap(&x[index * self.stride..], weight * factor, sums);
                    }
                }
                None => self.tap(&x[place * self.stride..], factor, sums),
            }
        }
    }

    #[inline(always)]
    fn tap<T: Floating<Wide: Real>>(&self, x: &[T], factor: f64, sums: &mut [T::Wide]) {
        let factor = T::Wide::from_f64(factor);
        match (sums, self.is_dense) {
            ([sum], _) => *sum = sum.plus(x[0].widened().times(factor)),
            (sums, true) => {
                for (sum, x) in sums.iter_mut().zip(x) {
                    *sum = sum.plus(x.widened().times(factor));
                }
            }
            (sums, false) => {
                for (sum, offset) in sums.iter_mut().zip(self.block) {
                    *sum = sum.plus(x[*offset].widened().times(factor));
                }
            }
        }
    }
}

fn expect_shapes(input: &[usize], output: &[usize]) -> Result<(), Error> {
    let shows_nothing = input.contains(&0) && !output.contains(&0);
    if input.len() == output.len() && !shows_nothing {
        return Ok(());
    }
    Err(Error::invalid_argument(format!(
        "a tensor of shape {input:?} can't be resized to {output:?}: expected as many dimensions, and an element \
         to begin with"
    )))
}

#[cfg(test)]
mod tests;
