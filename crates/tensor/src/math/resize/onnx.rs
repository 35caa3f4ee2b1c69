//! [`OnnxResize`]: resizing with all of ONNX's coordinate modes, by factors that need not be those of the extents,
//! and of parts of a picture.

use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use super::NearestMode;
use super::taps::room_for;
use crate::math::Family;
use crate::math::elementwise::expect_same;
use crate::math::number::Real;
use crate::math::parallel;
use crate::with_real;
use crate::{DenseHostTensor, Dims, TensorShape};

/// ONNX's mapping from a place `x` of the result to the input, by the factor `s`; `n` elements become `s n`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnnxCoordinates {
    /// `(x + 0.5) / s - 0.5`
    HalfPixel,
    /// [`HalfPixel`](Self::HalfPixel), about the middle of the picture.
    HalfPixelSymmetric,
    /// [`HalfPixel`](Self::HalfPixel), but -0.5 where the result has one element.
    PytorchHalfPixel,
    /// `x (n - 1) / (s n - 1)`
    AlignCorners,
    /// `x / s`
    Asymmetric,
    /// `(x + 0.5) / s`
    HalfPixelForNearest,
    /// The part of the picture that `part` gives, from 0 to 1.
    CropAndResize,
}

/// The interpolation kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OnnxResizeKernel {
    /// The nearest one.
    Nearest(NearestMode),
    /// From two elements along each dimension.
    Linear,
    /// From four elements along each dimension, by a cubic polynomial with this coefficient.
    Cubic(f64),
}

/// Options of a resize as ONNX defines it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OnnxResizeOptions {
    /// Interpolation kernel.
    pub blend: OnnxResizeKernel,
    /// Mapping of coordinates.
    pub places: OnnxCoordinates,
    /// Whether the kernel is widened where the picture becomes smaller.
    pub antialias: bool,
    /// Whether elements outside get weight 0, instead of those of the outermost.
    pub exclude_outside: bool,
    /// Value of places outside, where a part of the picture leads there.
    pub extrapolation: f64,
}

impl OnnxResizeOptions {
    /// Returns the bytes of the weights of these dimensions, a list for each place of the result.
    pub fn bytes_of_taps(&self, dimensions: &[OnnxResizeAxis]) -> usize {
        const OF_LIST: usize = size_of::<Vec<(usize, f64)>>() + 16;
        if dimensions.iter().any(|along| along.output == 0) {
            return 0;
        }
        let bytes = dimensions.iter().map(|along| {
            let n_taps = match self.reach() {
                None => 1,
                Some(reach) => n_taps(self.first_tap(reach, along)),
            };
            let of_place = n_taps.saturating_mul(size_of::<(usize, f64)>());
            of_place
                .saturating_add(OF_LIST)
                .saturating_mul(along.output)
        });
        bytes.fold(0, usize::saturating_add)
    }

    /// Returns the radius of the kernel, or `None` for the nearest element.
    fn reach(&self) -> Option<f64> {
        match self.blend {
            OnnxResizeKernel::Nearest(_) => None,
            OnnxResizeKernel::Linear => Some(1.0),
            OnnxResizeKernel::Cubic(_) => Some(2.0),
        }
    }

    /// Returns the factor by which weights are taken from further away, where the picture becomes smaller.
    fn shrunk(&self, along: &OnnxResizeAxis) -> f64 {
        if self.antialias {
            along.scale.min(1.0)
        } else {
            1.0
        }
    }

    /// Returns the first element that is looked at, from the one before the place.
    fn first_tap(&self, reach: f64, along: &OnnxResizeAxis) -> i64 {
        #[allow(
            clippy::cast_possible_truncation,
            reason = "what does not fit is refused where room is made"
        )]
        let before = (-reach / self.shrunk(along)).floor() as i64;
        before.saturating_add(1)
    }
}

/// Returns the number of taps from the first one on: as many lie behind a place as before it.
fn n_taps(first: i64) -> usize {
    usize::try_from(2_i64.saturating_sub(first.saturating_mul(2))).unwrap_or(usize::MAX)
}

/// A dimension that is resized.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OnnxResizeAxis {
    /// The extent of the input.
    pub input: usize,
    /// The extent of the result.
    pub output: usize,
    /// Factor by which the dimension is scaled.
    pub scale: f64,
    /// The first and last place that are shown, of a picture from 0 to 1.
    pub part: (f64, f64),
}

/// A resize as ONNX defines it, with its weights.
#[derive(Clone, Debug)]
pub struct OnnxResize {
    input: Dims,
    output: Dims,
    taps: Vec<Taps>,
    extrapolation: f64,
}

/// For each place of a dimension its elements and their weights; none where it lies outside.
type Taps = Vec<Vec<(usize, f64)>>;

impl OnnxResize {
    /// Finds the weights.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if something is to be shown of nothing or a number is not finite; `ResourceExhausted` if
    /// there is no memory for the weights.
    pub fn new(
        scaling: &OnnxResizeOptions,
        dimensions: &[OnnxResizeAxis],
    ) -> Result<OnnxResize, Error> {
        let is_empty = dimensions.iter().any(|along| along.output == 0);
        let mut taps = Vec::with_capacity(dimensions.len());
        for along in dimensions {
            let is_finite =
                along.scale.is_finite() && along.part.0.is_finite() && along.part.1.is_finite();
            if (along.input == 0 && !is_empty) || !is_finite || along.scale <= 0.0 {
                let message = format!(
                    "{} elements can't be resized to {} by {}",
                    along.input, along.output, along.scale
                );
                return Err(Error::invalid_argument(message));
            }
            let mut list = room_for(if is_empty { 0 } else { along.output })?;
            for place in 0..if is_empty { 0 } else { along.output } {
                list.push(of_place(scaling, along, place)?);
            }
            taps.push(list);
        }
        Ok(OnnxResize {
            input: dimensions.iter().map(|along| along.input).collect(),
            output: dimensions.iter().map(|along| along.output).collect(),
            taps,
            extrapolation: scaling.extrapolation,
        })
    }

    fn expect(&self, x: &DenseHostTensor, out: &DenseHostTensor) -> Result<(), Error> {
        expect_same(x.shape(), &TensorShape::new(&self.input)?)?;
        expect_same(out.shape(), &TensorShape::new(&self.output)?)
    }

    /// Resizes a tensor, on the workers of the request's queue if there is much to do.
    ///
    /// # Shapes
    ///
    /// `x` and `out` of those that the weights were found for.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if they are not, or of other types, and those of [`parallel::fill`].
    pub fn run_into(
        self,
        execution: &ExecutionContext,
        x: &DenseHostTensor,
        out: &DenseHostTensor,
    ) -> Result<AsyncValue<Chain>, Error> {
        let dtype = x.dtype();
        with_real!(dtype, T => self.run_of::<T>(execution, x, out), else Err(Family::Reals.lacks(dtype)))
    }

    fn run_of<T: Real>(
        self,
        execution: &ExecutionContext,
        x: &DenseHostTensor,
        out: &DenseHostTensor,
    ) -> Result<AsyncValue<Chain>, Error> {
        x.metadata().expect_dtype(T::DTYPE)?;
        self.expect(x, out)?;
        let most = |taps: &Taps| taps.iter().map(Vec::len).max().unwrap_or(1).max(1);
        let cost = self
            .taps
            .iter()
            .fold(4_usize, |n, taps| n.saturating_mul(most(taps)));
        let x = x.clone();
        parallel::fill(
            execution,
            out,
            parallel::chunk_len(cost, 1),
            move |first, part: &mut [T]| {
                let reading = x.read()?;
                let elements = reading.elements::<T>()?;
                let mut lists = Vec::with_capacity(self.taps.len());
                for (index, out) in part.iter_mut().enumerate() {
                    lists.clear();
                    let mut rest = first + index;
                    for (taps, extent) in self.taps.iter().zip(&self.output).rev() {
                        lists.push(&taps[rest % extent][..]);
                        rest /= extent;
                    }
                    let is_outside = lists.iter().any(|list| list.is_empty());
                    let value = if is_outside {
                        self.extrapolation
                    } else {
                        self.blend(elements, &lists, 0, 1)
                    };
                    *out = T::from_f64(value);
                }
                Ok(())
            },
        )
    }

    /// Returns the sum over the dimensions of the lists, of which the last dimension is first.
    fn blend<T: Real>(
        &self,
        elements: &[T],
        lists: &[&[(usize, f64)]],
        start: usize,
        stride: usize,
    ) -> f64 {
        let Some((list, rest)) = lists.split_first() else {
            return elements[start].to_f64();
        };
        let extent = self.input[rest.len()];
        let of_tap = |&(place, weight): &(usize, f64)| {
            weight * self.blend(elements, rest, start + place * stride, stride * extent)
        };
        list.iter().map(of_tap).sum()
    }

    /// Resizes elements of any type by picking the nearest, on the workers of the request's queue if there is much to
    /// do.
    ///
    /// # Errors
    ///
    /// See [`run_into`](Self::run_into).
    pub fn pick_into(
        self,
        execution: &ExecutionContext,
        x: &DenseHostTensor,
        out: &DenseHostTensor,
    ) -> Result<AsyncValue<Chain>, Error> {
        out.metadata().expect_dtype(x.dtype())?;
        self.expect(x, out)?;
        if self.taps.iter().flatten().any(|list| list.len() != 1) {
            let message = "elements that are no numbers can't be blended, nor lie outside";
            return Err(Error::invalid_argument(message));
        }
        let size = x.dtype().size_bytes().unwrap_or(1);
        let strides = x.shape().strides();
        let x = x.clone();
        parallel::fill_bytes(
            execution,
            out,
            parallel::chunk_len(8, 1),
            move |first, part| {
                let reading = x.read()?;
                for (index, out) in part.chunks_exact_mut(size).enumerate() {
                    let (mut rest, mut position) = (first + index, 0);
                    for dimension in (0..self.output.len()).rev() {
                        position += self.taps[dimension][rest % self.output[dimension]][0].0
                            * strides[dimension];
                        rest /= self.output[dimension];
                    }
                    out.copy_from_slice(&reading.bytes()[position * size..][..size]);
                }
                Ok(())
            },
        )
    }
}

#[allow(clippy::cast_precision_loss, reason = "extents of pictures are small")]
fn float(value: usize) -> f64 {
    value as f64
}

/// Returns the place in the input of a place of the result; `None` if it lies outside and is extrapolated.
fn position(places: OnnxCoordinates, along: &OnnxResizeAxis, place: usize) -> Option<f64> {
    let (x, n, s) = (float(place), float(along.input), along.scale);
    let wanted = s * n;
    let half = |x: f64| (x + 0.5) / s - 0.5;
    Some(match places {
        OnnxCoordinates::HalfPixel => half(x),
        OnnxCoordinates::HalfPixelSymmetric => {
            n / 2.0 * (1.0 - float(along.output) / wanted) + half(x)
        }
        OnnxCoordinates::PytorchHalfPixel if wanted == 1.0 => -0.5,
        OnnxCoordinates::PytorchHalfPixel => half(x),
        OnnxCoordinates::AlignCorners if wanted == 1.0 => 0.0,
        OnnxCoordinates::AlignCorners => x * (n - 1.0) / (wanted - 1.0),
        OnnxCoordinates::Asymmetric => x / s,
        OnnxCoordinates::HalfPixelForNearest => (x + 0.5) / s,
        OnnxCoordinates::CropAndResize => {
            let (start, end) = along.part;
            let span = (end - start) * (n - 1.0);
            let inner = if wanted == 1.0 {
                span / 2.0
            } else {
                x * span / (wanted - 1.0)
            };
            let position = inner + start * (n - 1.0);
            return (0.0..=n - 1.0).contains(&position).then_some(position);
        }
    })
}

/// Returns the elements that a place is made of, and their weights.
fn of_place(
    scaling: &OnnxResizeOptions,
    along: &OnnxResizeAxis,
    place: usize,
) -> Result<Vec<(usize, f64)>, Error> {
    let Some(x) = position(scaling.places, along, place) else {
        return Ok(Vec::new());
    };
    // A whole number is the second of two neighbours.
    let (base, ratio) = if x == x.floor() {
        (x - 1.0, 1.0)
    } else {
        (x.floor(), x - x.floor())
    };
    #[allow(
        clippy::cast_possible_truncation,
        reason = "near to the picture, or clamped"
    )]
    let base = base as i64;
    let last = i64::try_from(along.input).unwrap_or(i64::MAX) - 1;
    let clamped = |position: i64| usize::try_from(position.clamp(0, last)).unwrap_or(0);
    let weight: Box<dyn Fn(f64) -> f64> = match scaling.blend {
        OnnxResizeKernel::Nearest(rounding) => {
            let is_second = ratio == 1.0
                || match rounding {
                    NearestMode::HalfDown => ratio > 0.5,
                    NearestMode::HalfUp => ratio >= 0.5,
                    NearestMode::Floor => false,
                    NearestMode::Ceil => true,
                };
            return Ok(vec![(
                clamped(base.saturating_add(i64::from(is_second))),
                1.0,
            )]);
        }
        OnnxResizeKernel::Linear => Box::new(|x: f64| (1.0 - x.abs()).max(0.0)),
        OnnxResizeKernel::Cubic(a) => Box::new(move |x: f64| cubic(a, x.abs())),
    };
    let shrunk = scaling.shrunk(along);
    let start = scaling.first_tap(scaling.reach().unwrap_or(0.0), along);
    let mut list: Vec<(usize, f64)> = room_for(n_taps(start))?;
    let mut total = 0.0;
    for tap in start..2 - start {
        #[allow(clippy::cast_precision_loss, reason = "it was a float just now")]
        let mut weight = weight((tap as f64 - ratio) * shrunk);
        let position = base.saturating_add(tap);
        if scaling.exclude_outside && !(0..=last).contains(&position) {
            weight = 0.0;
        }
        total += weight;
        list.push((clamped(position), weight));
    }
    if scaling.antialias || scaling.exclude_outside {
        list.iter_mut().for_each(|(_, weight)| *weight /= total);
    }
    list.retain(|(_, weight)| *weight != 0.0);
    if list.is_empty() {
        list.push((clamped(base), 0.0));
    }
    Ok(list)
}

/// Returns the weight of Keys' cubic convolution (1981) at a distance that is not negative.
pub(crate) fn cubic(a: f64, x: f64) -> f64 {
    match x {
        x if x <= 1.0 => ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0,
        x if x < 2.0 => ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a,
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINEAR: OnnxResizeOptions = OnnxResizeOptions {
        blend: OnnxResizeKernel::Linear,
        places: OnnxCoordinates::HalfPixel,
        antialias: false,
        exclude_outside: false,
        extrapolation: 0.0,
    };

    fn along(input: usize, output: usize, scale: f64) -> OnnxResizeAxis {
        OnnxResizeAxis {
            input,
            output,
            scale,
            part: (0.0, 1.0),
        }
    }

    #[test]
    fn places_are_made_of_their_neighbours() {
        let of = |scaling: &OnnxResizeOptions, place| {
            of_place(scaling, &along(4, 8, 2.0), place).unwrap()
        };
        assert_eq!(of(&LINEAR, 0), [(0, 0.25), (0, 0.75)]);
        assert_eq!(of(&LINEAR, 1), [(0, 0.75), (1, 0.25)]);
        let nearest = OnnxResizeOptions {
            blend: OnnxResizeKernel::Nearest(NearestMode::Floor),
            places: OnnxCoordinates::Asymmetric,
            ..LINEAR
        };
        assert_eq!(of(&nearest, 3), [(1, 1.0)]);
        assert_eq!(of(&nearest, 4), [(2, 1.0)]);
        let crop = OnnxResizeOptions {
            places: OnnxCoordinates::CropAndResize,
            ..LINEAR
        };
        let part = OnnxResizeAxis {
            part: (0.5, 1.5),
            ..along(3, 3, 1.0)
        };
        assert_eq!(of_place(&crop, &part, 0).unwrap(), [(1, 1.0)]);
        assert!(of_place(&crop, &part, 2).unwrap().is_empty());
        assert!(OnnxResize::new(&LINEAR, &[along(0, 2, 1.0)]).is_err());
        assert!(OnnxResize::new(&LINEAR, &[along(2, 2, f64::NAN)]).is_err());
    }

    #[test]
    fn what_becomes_smaller_is_made_of_more() {
        let smooth = OnnxResizeOptions {
            antialias: true,
            ..LINEAR
        };
        let list = of_place(&smooth, &along(8, 2, 0.25), 0).unwrap();
        let total: f64 = list.iter().map(|(_, weight)| weight).sum();
        assert!(list.len() > 4 && (total - 1.0).abs() < 1e-12);
    }
}
