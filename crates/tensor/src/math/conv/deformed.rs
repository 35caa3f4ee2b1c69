//! Deformable convolutions: each element of a window is moved by its own offset, and read by linear interpolation.
//! Outside an image is 0.
//!
//! # Shapes
//!
//! | Tensor | Shape |
//! | --- | --- |
//! | input | `[batch, channels, spatial..]` |
//! | filter | `[filters, channels / groups, window..]` |
//! | offsets | `[batch, offset groups * elements of a window * dimensions, output..]` |
//! | bias | `[filters]` |
//! | mask | `[batch, offset groups * elements of a window, output..]`: factors |
//! | output | `[batch, filters, output..]` |

use smallvec::SmallVec;
use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use crate::math::Family;
use crate::math::number::Real;
use crate::math::parallel;
use crate::math::window::Window;
use crate::with_floating;
use crate::{DenseHostTensor, Dims};

/// A deformable convolution.
#[derive(Clone, Debug)]
pub struct DeformableConvolution {
    /// A window for each spatial dimension.
    pub windows: Vec<Window>,
    /// Number of groups: the first part of the channels is seen by the first part of the filters, and so on.
    pub groups: usize,
    /// Number of groups of channels that share offsets.
    pub offset_groups: usize,
}

impl DeformableConvolution {
    /// Returns the shape of the output.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if input and filter are not of the shapes that the module's table has, or if a window does
    /// not fit.
    pub fn output_extents(&self, input: &[usize], filter: &[usize]) -> Result<Dims, Error> {
        let rank = self.windows.len();
        let misfit = || {
            let (groups, offset_groups) = (self.groups, self.offset_groups);
            Error::invalid_argument(format!(
                "a deformable convolution in {groups} groups, of offsets in {offset_groups}: expected an input of \
                 shape [batch, channels, spatial..] and a filter of shape [filters, channels / groups, window..], \
                 found {input:?} and {filter:?}"
            ))
        };
        let ([batch, channels, spatial @ ..], [filters, own, extents @ ..]) = (input, filter)
        else {
            return Err(misfit());
        };
        let fits = spatial.len() == rank
            && extents
                .iter()
                .eq(self.windows.iter().map(|window| &window.extent))
            && own.checked_mul(self.groups) == Some(*channels)
            && self.groups > 0
            && filters % self.groups == 0
            && self.offset_groups > 0
            && channels % self.offset_groups == 0;
        if !fits {
            return Err(misfit());
        }
        let mut output = Dims::from_slice(&[*batch, *filters]);
        for (window, extent) in self.windows.iter().zip(spatial) {
            output.push(window.output(*extent)?.0);
        }
        Ok(output)
    }
}

/// Extents of a deformable convolution's tensors.
struct DeformedPlan {
    windows: Vec<Window>,
    /// The padding before each dimension.
    before: Vec<usize>,
    spatial: Dims,
    output: Dims,
    channels: usize,
    filters: usize,
    own_channels: usize,
    groups: usize,
    offset_groups: usize,
    n_taps: usize,
    n_inputs: usize,
    n_outputs: usize,
}

/// The elements of the inputs.
struct Elements<'a, T> {
    input: &'a [T],
    filter: &'a [T],
    offsets: &'a [T],
    bias: Option<&'a [T]>,
    mask: Option<&'a [T]>,
}

/// Calculates a deformable convolution, on the workers of the request's queue if there is much to do.
///
/// # Shapes
///
/// As in the module's table: input, filter, offsets; bias and mask.
///
/// # Errors
///
/// `InvalidArgument` if the shapes are not that, or if types differ, and those of [`parallel::fill`].
pub fn deformed_into(
    execution: &ExecutionContext,
    deformed: &DeformableConvolution,
    operands: [&DenseHostTensor; 3],
    optional: [Option<&DenseHostTensor>; 2],
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let dtype = operands[0].dtype();
    with_floating!(dtype, T => deformed_of::<T>(execution, deformed, operands, optional, out), else Err(Family::Floats.lacks(dtype)))
}

fn deformed_of<T: Real>(
    execution: &ExecutionContext,
    deformed: &DeformableConvolution,
    [input, filter, offsets]: [&DenseHostTensor; 3],
    [bias, mask]: [Option<&DenseHostTensor>; 2],
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let (extents, filter_extents) = (input.shape().to_dims(), filter.shape().to_dims());
    let wanted = deformed.output_extents(&extents, &filter_extents)?;
    let rank = deformed.windows.len();
    let n_taps: Option<usize> = filter_extents[2..]
        .iter()
        .try_fold(1_usize, |n, extent| n.checked_mul(*extent));
    let per_group = n_taps.and_then(|n| n.checked_mul(deformed.offset_groups));
    let (Some(n_taps), Some(per_group)) = (n_taps, per_group) else {
        return Err(Error::invalid_argument(
            "a window exceeds the largest integer",
        ));
    };
    let with_channels = |channels: usize| {
        let mut extents = wanted.clone();
        extents[1] = channels;
        extents
    };
    let of_offsets = with_channels(per_group.saturating_mul(rank));
    let shapes = [
        ("offsets", Some(offsets), of_offsets),
        ("bias", bias, Dims::from_slice(&wanted[1..2])),
        ("mask", mask, with_channels(per_group)),
        ("result", Some(out), wanted.clone()),
    ];
    for (name, tensor, wanted) in shapes {
        if let Some(tensor) = tensor
            && tensor.shape().to_dims() != wanted
        {
            let found = tensor.shape();
            let message = format!("expected {name} of shape {wanted:?}, found {found}");
            return Err(Error::invalid_argument(message));
        }
    }
    for tensor in [Some(input), Some(filter), Some(offsets), bias, mask]
        .into_iter()
        .flatten()
    {
        tensor.metadata().expect_dtype(T::DTYPE)?;
    }
    let mut before = Vec::with_capacity(rank);
    for (window, extent) in deformed.windows.iter().zip(&extents[2..]) {
        before.push(window.output(*extent)?.1);
    }
    let plan = DeformedPlan {
        windows: deformed.windows.clone(),
        before,
        n_inputs: extents[2..].iter().product(),
        n_outputs: wanted[2..].iter().product(),
        spatial: Dims::from_slice(&extents[2..]),
        output: Dims::from_slice(&wanted[2..]),
        channels: extents[1],
        filters: wanted[1],
        own_channels: filter_extents[1],
        groups: deformed.groups,
        offset_groups: deformed.offset_groups,
        n_taps,
    };
    let cost = plan
        .own_channels
        .saturating_mul(n_taps)
        .saturating_mul(16 << rank.min(8));
    let [input, filter, offsets] = [input, filter, offsets].map(DenseHostTensor::clone);
    let (bias, mask) = (bias.cloned(), mask.cloned());
    parallel::fill(
        execution,
        out,
        parallel::chunk_len(cost, 1),
        move |first, part: &mut [T]| {
            let readings = (input.read()?, filter.read()?, offsets.read()?);
            let bias = bias.as_ref().map(DenseHostTensor::read).transpose()?;
            let mask = mask.as_ref().map(DenseHostTensor::read).transpose()?;
            let elements = Elements {
                input: readings.0.elements::<T>()?,
                filter: readings.1.elements()?,
                offsets: readings.2.elements()?,
                bias: bias.as_ref().map(|one| one.elements()).transpose()?,
                mask: mask.as_ref().map(|one| one.elements()).transpose()?,
            };
            for (index, out) in part.iter_mut().enumerate() {
                *out = T::from_f64(plan.element(&elements, first + index));
            }
            Ok(())
        },
    )
}

impl DeformedPlan {
    fn element<T: Real>(&self, elements: &Elements<'_, T>, index: usize) -> f64 {
        let (rest, place) = (index / self.n_outputs, index % self.n_outputs);
        let (image, filter) = (rest / self.filters, rest % self.filters);
        let group = filter / (self.filters / self.groups);
        let per_offset_group = self.channels / self.offset_groups;
        let coordinates = coordinates(place, &self.output);
        let rank = self.windows.len();
        let mut sum = elements.bias.map_or(0.0, |bias| bias[filter].to_f64());
        let mut at: SmallVec<[f64; 3]> = SmallVec::from_elem(0.0, rank);
        for own in 0..self.own_channels {
            let channel = group * self.own_channels + own;
            let offset_group = channel / per_offset_group;
            let start = (image * self.channels + channel) * self.n_inputs;
            let input = &elements.input[start..start + self.n_inputs];
            for tap in 0..self.n_taps {
                let weight = elements.filter
                    [(filter * self.own_channels + own) * self.n_taps + tap]
                    .to_f64();
                let number = (image * self.offset_groups + offset_group) * self.n_taps + tap;
                let mut rest = tap;
                for dimension in (0..rank).rev() {
                    let window = &self.windows[dimension];
                    let step = rest % window.extent;
                    rest /= window.extent;
                    let offset = elements.offsets
                        [(number * rank + dimension) * self.n_outputs + place]
                        .to_f64();
                    let plain = coordinates[dimension] * window.stride + step * window.dilation;
                    #[allow(clippy::cast_precision_loss, reason = "extents of images are small")]
                    let plain = plain as f64 - self.before[dimension] as f64;
                    at[dimension] = plain + offset;
                }
                let factor = elements
                    .mask
                    .map_or(1.0, |mask| mask[number * self.n_outputs + place].to_f64());
                sum += weight * factor * interpolated(input, &self.spatial, &at);
            }
        }
        sum
    }
}

/// Returns the coordinates of an element by its number.
fn coordinates(mut place: usize, extents: &[usize]) -> SmallVec<[usize; 3]> {
    let mut list = SmallVec::from_elem(0, extents.len());
    for dimension in (0..extents.len()).rev() {
        list[dimension] = place % extents[dimension];
        place /= extents[dimension];
    }
    list
}

/// Returns the value at a fractional place, interpolated linearly from its neighbours; outside is 0.
pub(crate) fn interpolated<T: Real>(image: &[T], extents: &[usize], at: &[f64]) -> f64 {
    let mut sum = 0.0;
    'corners: for corner in 0..1_usize << at.len() {
        let (mut weight, mut position) = (1.0, 0);
        for (dimension, (extent, at)) in extents.iter().zip(at).enumerate() {
            let lower = at.floor();
            let fraction = at - lower;
            let is_upper = corner >> dimension & 1 == 1;
            let place = if is_upper { lower + 1.0 } else { lower };
            weight *= if is_upper { fraction } else { 1.0 - fraction };
            #[allow(clippy::cast_precision_loss, reason = "extents of images are small")]
            let is_inside = place >= 0.0 && place < *extent as f64;
            if !is_inside || weight == 0.0 {
                continue 'corners;
            }
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "it is inside"
            )]
            let place = place as usize;
            position = position * extent + place;
        }
        sum += weight * image[position].to_f64();
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn between_elements_is_interpolated() {
        let image = [1.0_f32, 2.0, 3.0, 5.0];
        let at = |y, x| interpolated(&image, &[2, 2], &[y, x]);
        assert_eq!(at(0.0, 1.0), 2.0);
        assert_eq!(at(0.5, 0.5), 2.75);
        assert_eq!(at(1.0, 1.5), 2.5);
        assert_eq!(at(-0.5, 0.0), 0.5);
        assert_eq!(at(-1.0, 0.0), 0.0);
        assert_eq!(at(f64::NAN, 0.0), 0.0);
    }
}
