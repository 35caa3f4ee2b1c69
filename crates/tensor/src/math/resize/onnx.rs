//! [`OnnxResize`]: resizing with all of ONNX's coordinate modes, by factors that need not be those of the extents,
//! and of parts of a picture.

use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use super::NearestMode;
use super::blend::{self, Blend};
use super::pick::Pick;
use super::taps::{Taps, make_room};
use super::walk::Walk;
use crate::math::Family;
use crate::math::elementwise::expect_same;
#[cfg(doc)]
use crate::math::parallel;
use crate::with_real;
use crate::{BF16, DType, DenseHostTensor, Dims, F16, TensorShape};

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
    /// Returns the bytes of the weights of these dimensions and of the rows that are kept while sums are made.
    pub fn bytes_aside(&self, dimensions: &[OnnxResizeAxis]) -> usize {
        if dimensions.iter().any(|along| along.output == 0) {
            return 0;
        }
        let is_resized = |along: &&OnnxResizeAxis| !self.keeps(along);
        let bytes = dimensions.iter().filter(is_resized).map(|along| {
            let n_taps = match self.reach() {
                None => 1,
                Some(reach) => n_taps(self.first_tap(reach, along)),
            };
            let of_place = n_taps.saturating_mul(size_of::<(usize, f64)>());
            of_place
                .saturating_add(size_of::<usize>())
                .saturating_mul(along.output)
        });
        let lists = bytes.fold(0, usize::saturating_add);
        let last = dimensions.iter().rposition(|along| !self.keeps(along));
        let row = last.map_or(&[][..], |last| &dimensions[last..]);
        let row_len = row
            .iter()
            .fold(1, |n: usize, along| n.saturating_mul(along.output));
        let of_element = match self.blend {
            OnnxResizeKernel::Nearest(_) if self.is_pick() => size_of::<usize>(),
            _ => blend::BYTES_OF_ELEMENT,
        };
        match last {
            Some(_) => lists.saturating_add(row_len.saturating_mul(of_element)),
            None => 0,
        }
    }

    /// Returns whether the result consists of elements of the input alone.
    fn is_pick(&self) -> bool {
        matches!(self.blend, OnnxResizeKernel::Nearest(_))
            && self.places != OnnxCoordinates::CropAndResize
    }

    /// Returns whether each place along a dimension is its own.
    fn keeps(&self, along: &OnnxResizeAxis) -> bool {
        let is_moved = matches!(
            self.places,
            OnnxCoordinates::CropAndResize | OnnxCoordinates::HalfPixelForNearest
        );
        along.input == along.output && along.scale == 1.0 && !is_moved
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
    /// Elements and weights of each dimension, none of places outside; `None` for dimensions that stay as they are.
    taps: Vec<Option<Taps>>,
    extrapolation: f64,
    is_pick: bool,
}

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
            taps.push(match is_empty || scaling.keeps(along) {
                true => None,
                false => Some(Taps::collect(along.output, |place, list| {
                    append(scaling, along, place, list)
                })?),
            });
        }
        Ok(OnnxResize {
            input: dimensions.iter().map(|along| along.input).collect(),
            output: dimensions.iter().map(|along| along.output).collect(),
            taps,
            extrapolation: scaling.extrapolation,
            is_pick: scaling.is_pick(),
        })
    }

    fn expect(&self, x: &DenseHostTensor, out: &DenseHostTensor) -> Result<(), Error> {
        expect_same(x.shape(), &TensorShape::new(&self.input)?)?;
        expect_same(out.shape(), &TensorShape::new(&self.output)?)
    }

    /// Resizes a tensor, on the workers of the request's queue if there is much to do. Elements may be of any type where
    /// the nearest are picked and none lies outside.
    ///
    /// # Shapes
    ///
    /// `x` and `out` of those that the weights were found for.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if they are not, if the types differ, or if elements that are to be blended are no real
    /// numbers; and those of [`parallel::fill`].
    pub fn run_into(
        self,
        execution: &ExecutionContext,
        x: &DenseHostTensor,
        out: &DenseHostTensor,
    ) -> Result<AsyncValue<Chain>, Error> {
        let dtype = x.dtype();
        out.metadata().expect_dtype(dtype)?;
        self.expect(x, out)?;
        if out.n_elements() == 0 {
            return Ok(AsyncValue::available(Chain));
        }
        let walk = Walk::new(&self.input, &self.output, self.taps);
        if self.is_pick {
            return Pick::new(walk)?.run_into(execution, x, out);
        }
        let value = self.extrapolation;
        if blend::is_narrow(&walk) {
            let blend = |walk| Blend::<f32>::new(walk, value);
            match dtype {
                DType::F32 => return blend(walk)?.run_into::<f32>(execution, x, out),
                DType::F16 => return blend(walk)?.run_into::<F16>(execution, x, out),
                DType::Bf16 => return blend(walk)?.run_into::<BF16>(execution, x, out),
                _ => {}
            }
        }
        with_real!(
            dtype,
            T => Blend::<f64>::new(walk, value)?.run_into::<T>(execution, x, out),
            else Err(Family::Reals.lacks(dtype))
        )
    }
}

#[allow(clippy::cast_precision_loss, reason = "extents of pictures are small")]
fn float(value: usize) -> f64 {
    value as f64
}

/// Returns the place in the input of a place of the result; `None` if it lies outside and is extrapolated.
///
/// For the nearest element it is calculated as an `f32`, step by step, as other engines do: which of two neighbours is
/// taken hangs on the last bit where a place is between them, or whole, as 4 / 0.8 is. The cut of a part is as exact as
/// for other kernels.
fn position(scaling: &OnnxResizeOptions, along: &OnnxResizeAxis, place: usize) -> Option<f64> {
    let is_single = matches!(scaling.blend, OnnxResizeKernel::Nearest(_))
        && scaling.places != OnnxCoordinates::CropAndResize;
    // A sum, product or quotient of `f32`s that is rounded to `f64` before is no other `f32`.
    #[allow(clippy::cast_possible_truncation, reason = "it is rounded")]
    let round = |value: f64| match is_single {
        true => f64::from(value as f32),
        false => value,
    };
    let (x, n, s) = (float(place), float(along.input), round(along.scale));
    let wanted = round(s * n);
    let half = |x: f64| round(round(round(x + 0.5) / s) - 0.5);
    Some(match scaling.places {
        OnnxCoordinates::HalfPixel => half(x),
        OnnxCoordinates::HalfPixelSymmetric => {
            let shown = round(float(along.output) / wanted);
            round(round(n / 2.0 * round(1.0 - shown)) + half(x))
        }
        OnnxCoordinates::PytorchHalfPixel if wanted == 1.0 => -0.5,
        OnnxCoordinates::PytorchHalfPixel => half(x),
        OnnxCoordinates::AlignCorners if wanted == 1.0 => 0.0,
        OnnxCoordinates::AlignCorners => round(round(x * (n - 1.0)) / round(wanted - 1.0)),
        OnnxCoordinates::Asymmetric => round(x / s),
        OnnxCoordinates::HalfPixelForNearest => round(round(x + 0.5) / s),
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

/// Appends the elements that a place is made of, and their weights.
fn append(
    scaling: &OnnxResizeOptions,
    along: &OnnxResizeAxis,
    place: usize,
    list: &mut Vec<(usize, f64)>,
) -> Result<(), Error> {
    let Some(x) = position(scaling, along, place) else {
        return Ok(());
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
    if let OnnxResizeKernel::Nearest(rounding) = scaling.blend {
        let is_second = ratio == 1.0
            || match rounding {
                NearestMode::HalfDown => ratio > 0.5,
                NearestMode::HalfUp => ratio >= 0.5,
                NearestMode::Floor => false,
                NearestMode::Ceil => true,
            };
        let nearest = base.saturating_add(i64::from(is_second));
        make_room(list, 1)?;
        list.push((clamped(nearest), 1.0));
        return Ok(());
    }
    let weight = |x: f64| match scaling.blend {
        OnnxResizeKernel::Cubic(a) => cubic(a, x.abs()),
        _ => (1.0 - x.abs()).max(0.0),
    };
    let shrunk = scaling.shrunk(along);
    let start = scaling.first_tap(scaling.reach().unwrap_or(0.0), along);
    make_room(list, n_taps(start))?;
    let first = list.len();
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
    let is_scaled = scaling.antialias || scaling.exclude_outside;
    let mut n = first;
    for index in first..list.len() {
        let (element, weight) = list[index];
        let weight = if is_scaled { weight / total } else { weight };
        if weight != 0.0 {
            list[n] = (element, weight);
            n += 1;
        }
    }
    list.truncate(n);
    if list.len() == first {
        list.push((clamped(base), 0.0));
    }
    Ok(())
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
mod tests;
