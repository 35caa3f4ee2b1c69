//! Sampling of pictures at any places: by a grid, and in regions.

use smallvec::SmallVec;
use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use super::cast::load;
use super::number::Real;
use super::parallel;
use super::resize::cubic;
use crate::math::Family;
use crate::{DenseHostTensor, Dims};
use crate::{with_floating, with_real};

/// The interpolation of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampling {
    /// The nearest element, of two as near the even one.
    Nearest,
    /// From two elements along each dimension.
    Linear,
    /// From four elements along each dimension.
    Cubic,
}

/// The value of samples outside the picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PaddingMode {
    /// Zeros.
    Zeros,
    /// The outermost elements.
    Border,
    /// The picture, mirrored.
    Reflection,
}

/// Options of grid sampling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GridSample {
    /// Interpolation.
    pub sampling: Sampling,
    /// Value of samples outside.
    pub outside: PaddingMode,
    /// Whether -1 and 1 are the middles of the outermost elements, not their edges.
    pub align_corners: bool,
}

/// The coefficient of cubic interpolation.
const CUBIC: f64 = -0.75;

/// Samples each picture at the places of a grid.
///
/// # Shapes
///
/// `x`: `[batch, channels, spatial..]`, `grid`: `[batch, output.., dimensions]`, the last spatial dimension first,
/// each from -1 to 1; `out`: `[batch, channels, output..]`.
///
/// # Errors
///
/// `InvalidArgument` if the shapes or types are not that, and those of [`parallel::fill`].
pub fn grid_sample_into(
    execution: &ExecutionContext,
    options: GridSample,
    x: &DenseHostTensor,
    grid: &DenseHostTensor,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let (dtype, of_grid) = (x.dtype(), grid.dtype());
    if !Family::Floats.has(of_grid) {
        return Err(Family::Floats.lacks(of_grid));
    }
    with_real!(dtype, T => grid_of::<T>(execution, options, x, grid, out), else {
        Err(Family::Reals.lacks(dtype))
    })
}

fn grid_of<T: Real>(
    execution: &ExecutionContext,
    options: GridSample,
    x: &DenseHostTensor,
    grid: &DenseHostTensor,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let (extents, places, output) = (
        x.shape().to_dims(),
        grid.shape().to_dims(),
        out.shape().to_dims(),
    );
    let rank = extents.len().saturating_sub(2);
    let fits = rank > 0
        && places.len() == extents.len()
        && output.len() == extents.len()
        && places.first() == extents.first()
        && places.last() == Some(&rank)
        && output[..2] == extents[..2]
        && output[2..] == places[1..=rank];
    if !fits || rank > 8 || (extents[2..].contains(&0) && out.n_elements() > 0) {
        let message = format!("a grid {places:?} does not lead from {extents:?} to {output:?}");
        return Err(Error::invalid_argument(message));
    }
    let spatial = Dims::from_slice(&extents[2..]);
    let (channels, n_inputs) = (extents[1], spatial.iter().product::<usize>());
    let n_places = output[2..]
        .iter()
        .fold(1_usize, |n, extent| n.saturating_mul(*extent))
        .max(1);
    let (x, grid, of_grid) = (x.clone(), grid.clone(), grid.dtype());
    let row = rank * of_grid.size_bytes().unwrap_or(1);
    let chunk = parallel::chunk_len(16_usize.saturating_mul(1 << (2 * rank)), 1);
    parallel::fill(execution, out, chunk, move |first, part: &mut [T]| {
        let (x, grid) = (x.read()?, grid.read()?);
        let elements = x.elements::<T>()?;
        let mut at: SmallVec<[f64; 3]> = SmallVec::from_elem(0.0, rank);
        let mut stated = at.clone();
        for (index, out) in part.iter_mut().enumerate() {
            let (number, place) = ((first + index) / n_places, (first + index) % n_places);
            let image = &elements[number * n_inputs..][..n_inputs];
            let place = &grid.bytes()[(number / channels * n_places + place) * row..][..row];
            load(of_grid, place, &mut stated)?;
            for (dimension, at) in at.iter_mut().enumerate() {
                *at = options.place(stated[rank - 1 - dimension], spatial[dimension]);
            }
            *out = T::from_f64(options.sample(image, &spatial, &at, 0));
        }
        Ok(())
    })
}

#[allow(clippy::cast_precision_loss, reason = "extents of pictures are small")]
fn float(value: usize) -> f64 {
    value as f64
}

impl GridSample {
    /// Returns a place of the grid as a place among elements.
    fn place(&self, from_grid: f64, extent: usize) -> f64 {
        let n = float(extent);
        let x = match self.align_corners {
            true => (from_grid + 1.0) / 2.0 * (n - 1.0),
            false => ((from_grid + 1.0) * n - 1.0) / 2.0,
        };
        let x = if self.sampling == Sampling::Nearest {
            x.round_ties_even()
        } else {
            x
        };
        let (least, largest) = self.borders(extent);
        match self.outside {
            _ if (least..=largest).contains(&x) => x,
            PaddingMode::Zeros => x,
            PaddingMode::Border => x.clamp(0.0, n - 1.0),
            PaddingMode::Reflection => reflected(x, least, largest),
        }
    }

    fn borders(&self, extent: usize) -> (f64, f64) {
        match self.align_corners {
            true => (0.0, float(extent) - 1.0),
            false => (-0.5, float(extent) - 0.5),
        }
    }

    /// Returns the index of the element at a whole number; `None` if the element is 0.
    fn element(&self, x: f64, extent: usize) -> Option<usize> {
        let x = match self.outside {
            PaddingMode::Zeros => x,
            PaddingMode::Border => x.clamp(0.0, float(extent) - 1.0),
            PaddingMode::Reflection => {
                let (least, largest) = self.borders(extent);
                reflected(x, least, largest)
            }
        };
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is inside"
        )]
        (x >= 0.0 && x < float(extent)).then_some(x as usize)
    }

    /// Returns the sample at a place, the first dimension first.
    fn sample<T: Real>(&self, image: &[T], extents: &[usize], at: &[f64], start: usize) -> f64 {
        let ([extent, extents @ ..], [x, at @ ..]) = (extents, at) else {
            return image[start].to_f64();
        };
        let lower = x.floor();
        let taps = match self.sampling {
            Sampling::Nearest => 0..1,
            Sampling::Linear => 0..2,
            Sampling::Cubic => -1..3,
        };
        let mut sum = 0.0;
        for tap in taps {
            let place = lower + f64::from(tap);
            let distance = (x - place).abs();
            let weight = match self.sampling {
                Sampling::Nearest => 1.0,
                Sampling::Linear => 1.0 - distance,
                Sampling::Cubic => cubic(CUBIC, distance),
            };
            if let Some(element) = self.element(place, *extent) {
                sum += weight * self.sample(image, extents, at, start * extent + element);
            }
        }
        sum
    }
}

/// Returns a place mirrored at both borders until it is within.
fn reflected(x: f64, least: f64, largest: f64) -> f64 {
    let range = largest - least;
    if !x.is_finite() || range <= 0.0 {
        return least.max(0.0);
    }
    let beyond = if x < least {
        least - x
    } else if x > largest {
        x - largest
    } else {
        return x;
    };
    let (times, rest) = ((beyond / range).floor(), beyond % range);
    let is_even = times % 2.0 == 0.0;
    if (x < least) == is_even {
        least + rest
    } else {
        largest - rest
    }
}

/// Options of RoI align.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoiAlign {
    /// Factor from the coordinates of regions to those of pictures.
    pub scale: f64,
    /// Number of samples of a cell along each dimension; 0 for as many as it has elements.
    pub ratio: usize,
    /// Whether the middles of elements lie at half numbers.
    pub half_pixel: bool,
    /// Whether a cell takes its largest sample, not the mean.
    pub takes_largest: bool,
}

/// Pools regions of pictures, cell by cell.
///
/// # Shapes
///
/// `x`: `[batch, channels, height, width]`, `regions`: four numbers for each: left, upper, right, lower; `images`: the
/// number of its picture for each; `out`: `[regions, channels, rows, columns]`.
///
/// # Errors
///
/// `InvalidArgument` if the shapes are not that, if there is no such picture, or a region is no number or far too
/// large, and those of [`parallel::fill`].
pub fn roi_align_into(
    execution: &ExecutionContext,
    options: RoiAlign,
    x: &DenseHostTensor,
    regions: Vec<[f64; 4]>,
    images: Vec<usize>,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let dtype = x.dtype();
    with_floating!(dtype, T => regions_of::<T>(execution, options, x, regions, images, out), else Err(Family::Floats.lacks(dtype)))
}

fn regions_of<T: Real>(
    execution: &ExecutionContext,
    options: RoiAlign,
    x: &DenseHostTensor,
    regions: Vec<[f64; 4]>,
    images: Vec<usize>,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    x.metadata().expect_dtype(T::DTYPE)?;
    let (extents, output) = (x.shape().to_dims(), out.shape().to_dims());
    let (&[batch, channels, height, width], &[n_regions, own, rows, columns]) =
        (&extents[..], &output[..])
    else {
        let message = format!("expected four dimensions, found {extents:?} and {output:?}");
        return Err(Error::invalid_argument(message));
    };
    let fits = own == channels
        && regions.len() == n_regions
        && images.len() == n_regions
        && images.iter().all(|image| *image < batch);
    // No cell has more places than this along a dimension.
    const MOST: f64 = 65_536.0;
    let is_small = regions
        .iter()
        .flatten()
        .all(|one| (one * options.scale).abs() < MOST);
    if !fits || !is_small || options.ratio > 4096 || (height * width == 0 && out.n_elements() > 0) {
        let message = format!("{n_regions} regions of {extents:?} can't be seen as {output:?}");
        return Err(Error::invalid_argument(message));
    }
    let x = x.clone();
    let cost = options
        .ratio
        .max(2)
        .saturating_mul(options.ratio.max(2))
        .saturating_mul(16);
    parallel::fill(
        execution,
        out,
        parallel::chunk_len(cost, 1),
        move |first, part: &mut [T]| {
            let reading = x.read()?;
            let elements = reading.elements::<T>()?;
            for (index, out) in part.iter_mut().enumerate() {
                let at = first + index;
                let (column, row) = (at % columns, at / columns % rows);
                let (channel, region) = (
                    at / columns / rows % channels,
                    at / columns / rows / channels,
                );
                let start = (images[region] * channels + channel) * height * width;
                let image = &elements[start..][..height * width];
                let cell = ([row, column], [rows, columns]);
                *out = T::from_f64(options.cell(image, [height, width], &regions[region], cell));
            }
            Ok(())
        },
    )
}

impl RoiAlign {
    fn cell<T: Real>(
        &self,
        image: &[T],
        extents: [usize; 2],
        region: &[f64; 4],
        (place, cells): ([usize; 2], [usize; 2]),
    ) -> f64 {
        let offset = if self.half_pixel { 0.5 } else { 0.0 };
        let [left, upper, right, lower] = region.map(|one| one * self.scale - offset);
        let mut lists: [Vec<f64>; 2] = [Vec::new(), Vec::new()];
        for (dimension, (start, end)) in [(upper, lower), (left, right)].into_iter().enumerate() {
            let span = if self.half_pixel {
                end - start
            } else {
                (end - start).max(1.0)
            };
            let size = span / float(cells[dimension]);
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "regions are small"
            )]
            let n = if self.ratio > 0 {
                self.ratio
            } else {
                size.ceil().max(0.0) as usize
            };
            let first = start + float(place[dimension]) * size;
            lists[dimension]
                .extend((0..n).map(|step| first + (float(step) + 0.5) * size / float(n)));
        }
        let (mut sum, mut largest) = (0.0, f64::NEG_INFINITY);
        for y in &lists[0] {
            for x in &lists[1] {
                let parts = bilinear(image, extents, *y, *x);
                sum += parts.iter().sum::<f64>();
                largest = parts.iter().copied().fold(largest, f64::max);
            }
        }
        let n = lists[0].len() * lists[1].len();
        match self.takes_largest {
            true if n == 0 => 0.0,
            true => largest,
            false => sum / float(n.max(1)),
        }
    }
}

/// Returns the four elements around a place times their weights; zeros far outside.
fn bilinear<T: Real>(image: &[T], [height, width]: [usize; 2], y: f64, x: f64) -> [f64; 4] {
    if !(-1.0..=float(height)).contains(&y) || !(-1.0..=float(width)).contains(&x) {
        return [0.0; 4];
    }
    let around = |at: f64, extent: usize| {
        let at = at.max(0.0);
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is inside"
        )]
        let lower = at as usize;
        match lower + 1 >= extent {
            true => (extent - 1, extent - 1, 0.0),
            false => (lower, lower + 1, at - at.floor()),
        }
    };
    let ((upper, lower, down), (left, right, along)) = (around(y, height), around(x, width));
    let of = |row: usize, column: usize, weight: f64| image[row * width + column].to_f64() * weight;
    [
        of(upper, left, (1.0 - down) * (1.0 - along)),
        of(upper, right, (1.0 - down) * along),
        of(lower, left, down * (1.0 - along)),
        of(lower, right, down * along),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_outside_is_mirrored() {
        assert_eq!(reflected(-1.0, -0.5, 3.5), 0.0);
        assert_eq!(reflected(4.0, -0.5, 3.5), 3.0);
        assert_eq!(reflected(9.0, 0.0, 3.0), 3.0);
        assert_eq!(reflected(1.5, 0.0, 3.0), 1.5);
        assert_eq!(reflected(f64::INFINITY, 0.0, 3.0), 0.0);
        assert_eq!(reflected(7.0, 0.0, 0.0), 0.0);
    }

    #[test]
    fn samples_are_interpolated() {
        let image = [1.0_f32, 2.0, 3.0, 4.0];
        let grid = GridSample {
            sampling: Sampling::Linear,
            outside: PaddingMode::Zeros,
            align_corners: true,
        };
        let at = |grid: &GridSample, y, x| {
            grid.sample(&image, &[2, 2], &[grid.place(y, 2), grid.place(x, 2)], 0)
        };
        assert_eq!(at(&grid, 0.0, 0.0), 2.5);
        assert_eq!(at(&grid, -1.0, 1.0), 2.0);
        assert_eq!(at(&grid, -1.0, 3.0), 0.0);
        let border = GridSample {
            outside: PaddingMode::Border,
            ..grid
        };
        assert_eq!(at(&border, -1.0, 3.0), 2.0);
        let cubic = GridSample {
            sampling: Sampling::Cubic,
            ..border
        };
        assert_eq!(at(&cubic, 1.0, 1.0), 4.0);
    }
}
