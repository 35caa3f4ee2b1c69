//! Group and instance norm: channels of each example, group by group, by their own mean and variance.
//!
//! Means and variances are found as those of [`normalize`](super::normalize): in two passes, in the order of
//! [`reduce`](super::reduce).

use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use super::elementwise::{Identity, unary};
use super::number::{Floating, Real};
use super::reduce::{Mean, Reduce, SumOfSquares, block};
use super::{parallel, vectorized};
use crate::math::Family;
use crate::with_floating;
use crate::{DenseHostTensor, TensorView, TensorViewMut};

/// Options of group norm: the channel dimension, the groups, and epsilon.
#[derive(Clone, Copy, Debug)]
pub struct Groups<T> {
    /// The dimension of channels, behind the examples: 1 if channels come first, the last if they come last.
    pub dimension: usize,
    /// Number of groups of neighbouring channels; as many as channels for instance norm.
    pub n_groups: usize,
    /// Added to the variance.
    pub epsilon: T,
}

/// A factor and a summand for each channel; a missing one is left out.
#[derive(Clone, Copy, Debug, Default)]
pub struct ChannelAffine<'a, T> {
    /// Factor of each channel.
    pub scale: Option<&'a [T]>,
    /// Summand of each channel.
    pub shift: Option<&'a [T]>,
}

/// Extents of an example: outer repetitions, channels, and elements of a channel.
#[derive(Clone, Copy, Debug)]
struct GroupPlan {
    before: usize,
    channels: usize,
    behind: usize,
    n_groups: usize,
}

/// Normalises groups of channels: `(x - mean) / sqrt(variance + epsilon) * scale + shift`.
///
/// # Shapes
///
/// `x` and `out`: `[batch, .., channels, ..]`, alike; `scale` and `shift`: `[channels]`.
///
/// # Errors
///
/// `InvalidArgument` if the shapes are not that, or if channels can't be divided in so many groups.
///
/// # Examples
///
/// ```
/// use tfrt_tensor::math::groups::{ChannelAffine, Groups, groups};
/// use tfrt_tensor::{TensorView, TensorViewMut};
///
/// // One example of two channels, each of two elements: instance norm.
/// let x = TensorView::new(&[1.0_f32, 3.0, 10.0, 30.0], &[1, 2, 2])?;
/// let mut out = [0.0; 4];
/// let each = Groups { dimension: 1, n_groups: 2, epsilon: 0.0 };
/// groups(&x, &each, ChannelAffine::default(), &mut TensorViewMut::new(&mut out, &[1, 2, 2])?)?;
/// assert_eq!(out, [-1.0, 1.0, -1.0, 1.0]);
/// # Ok::<(), tfrt_host::Error>(())
/// ```
pub fn groups<T: Floating>(
    x: &TensorView<'_, T>,
    groups: &Groups<T>,
    affine: ChannelAffine<'_, T>,
    out: &mut TensorViewMut<'_, T>,
) -> Result<(), Error> {
    let plan = GroupPlan::new(x.extents(), groups, out.extents())?;
    plan.expect_affine(affine.scale.map(<[T]>::len), affine.shift.map(<[T]>::len))?;
    unary::<Identity, T>(x, out)?;
    plan.run(groups.epsilon, affine, out.as_mut_slice());
    Ok(())
}

/// Applies [`groups()`] to dense tensors, on the workers of the request's queue if there are several examples.
///
/// # Errors
///
/// Those of [`groups()`], if the types differ, and those of [`parallel::fill`].
pub fn groups_into(
    execution: &ExecutionContext,
    x: &DenseHostTensor,
    groups: &Groups<f64>,
    lists: [Option<&DenseHostTensor>; 2],
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let dtype = x.dtype();
    with_floating!(dtype, T => {
        let groups = Groups {
            dimension: groups.dimension,
            n_groups: groups.n_groups,
            epsilon: T::from_f64(groups.epsilon),
        };
        groups_of::<T>(execution, x, &groups, lists, out)
    }, else Err(Family::Floats.lacks(dtype)))
}

fn groups_of<T: Floating>(
    execution: &ExecutionContext,
    x: &DenseHostTensor,
    groups: &Groups<T>,
    [scale, shift]: [Option<&DenseHostTensor>; 2],
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    for tensor in [Some(x), scale, shift].into_iter().flatten() {
        crate::dense::expect_dtype::<T>(tensor.metadata())?;
    }
    let plan = GroupPlan::new(&x.shape().to_dims(), groups, &out.shape().to_dims())?;
    let len = |tensor: Option<&DenseHostTensor>| tensor.map(DenseHostTensor::n_elements);
    plan.expect_affine(len(scale), len(shift))?;
    let (x, scale, shift, epsilon) = (x.clone(), scale.cloned(), shift.cloned(), groups.epsilon);
    let example = plan
        .channels
        .saturating_mul(plan.before)
        .saturating_mul(plan.behind);
    let chunk = parallel::chunk_len(4, example);
    parallel::fill(execution, out, chunk, move |first, part: &mut [T]| {
        let read = |tensor: &Option<DenseHostTensor>| -> Result<Option<Vec<T>>, Error> {
            match tensor {
                Some(tensor) => Ok(Some(tensor.read()?.elements::<T>()?.to_vec())),
                None => Ok(None),
            }
        };
        let (scale, shift) = (read(&scale)?, read(&shift)?);
        part.copy_from_slice(&x.read()?.elements::<T>()?[first..first + part.len()]);
        let affine = ChannelAffine {
            scale: scale.as_deref(),
            shift: shift.as_deref(),
        };
        plan.run(epsilon, affine, part);
        Ok(())
    })
}

impl GroupPlan {
    fn new<T>(x: &[usize], groups: &Groups<T>, out: &[usize]) -> Result<GroupPlan, Error> {
        let Groups {
            dimension,
            n_groups,
            ..
        } = *groups;
        let channels = x.get(dimension).copied().unwrap_or(0);
        if x != out || dimension == 0 || dimension >= x.len() {
            return Err(Error::invalid_argument(format!(
                "groups of channels in dimension {dimension} of a tensor of shape {x:?}, with a result of shape \
                 {out:?}: expected one shape with examples in front, and channels behind them"
            )));
        }
        if n_groups == 0 || channels % n_groups != 0 {
            let message = format!("{channels} channels can't be divided in {n_groups} groups");
            return Err(Error::invalid_argument(message));
        }
        // Of a tensor without elements the extents may have any product.
        let product = |extents: &[usize]| {
            extents
                .iter()
                .fold(1_usize, |product, extent| product.saturating_mul(*extent))
        };
        Ok(GroupPlan {
            before: product(&x[1..dimension]),
            channels,
            behind: product(&x[dimension + 1..]),
            n_groups,
        })
    }

    fn expect_affine(&self, scale: Option<usize>, shift: Option<usize>) -> Result<(), Error> {
        let wanted = self.channels;
        match [scale, shift]
            .into_iter()
            .flatten()
            .find(|len| *len != wanted)
        {
            None => Ok(()),
            Some(found) => Err(Error::invalid_argument(format!(
                "expected an element for each of {wanted} channels, found {found}"
            ))),
        }
    }

    /// Normalises whole examples, in place.
    fn run<T: Floating>(&self, epsilon: T, affine: ChannelAffine<'_, T>, out: &mut [T]) {
        if out.is_empty() {
            return;
        }
        let own_channels = self.channels / self.n_groups;
        let piece = own_channels * self.behind;
        let row = self.channels * self.behind;
        let mut group = Vec::new();
        for example in out.chunks_exact_mut(self.before * row) {
            for number in 0..self.n_groups {
                let first_channel = number * own_channels;
                let pieces = |start: usize| start * row + number * piece;
                group.clear();
                for start in 0..self.before {
                    group.extend_from_slice(&example[pieces(start)..][..piece]);
                }
                let factor = centre(&mut group, epsilon);
                for (start, from) in group.chunks_exact(piece).enumerate() {
                    let to = &mut example[pieces(start)..][..piece];
                    self.finish(from, factor, first_channel, affine, to);
                }
            }
        }
    }

    /// Scales and shifts a piece: the elements of all channels of a group, once.
    fn finish<T: Floating>(
        &self,
        from: &[T],
        factor: T,
        first_channel: usize,
        affine: ChannelAffine<'_, T>,
        to: &mut [T],
    ) {
        let of = |list: Option<&[T]>, channel: usize, other: T| {
            list.map_or(other, |list| list[first_channel + channel])
        };
        let each = from
            .chunks_exact(self.behind)
            .zip(to.chunks_exact_mut(self.behind));
        for (channel, (from, to)) in each.enumerate() {
            let scale = of(affine.scale, channel, T::ONE);
            let shift = affine.shift.map(|list| list[first_channel + channel]);
            vectorized(
                #[inline(always)]
                || {
                    for (to, x) in to.iter_mut().zip(from) {
                        let scaled = x.times(factor).times(scale);
                        *to = shift.map_or(scaled, |shift| scaled.plus(shift));
                    }
                },
            );
        }
    }
}

/// Subtracts the mean from all elements, and returns the factor that normalizes their variance.
fn centre<T: Floating>(group: &mut [T], epsilon: T) -> T {
    let mean = <Mean as Reduce<T>>::finish(block::<Mean, T>(group), group.len());
    vectorized(
        #[inline(always)]
        || group.iter_mut().for_each(|x| *x = x.minus(mean)),
    );
    let variance = T::mean(block::<SumOfSquares, T>(group), group.len());
    T::ONE.over(variance.plus(epsilon).map(f32::sqrt, f64::sqrt))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::testing::{coordinates, layout_of};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn groups_are_normalised_by_their_moments(
            (layout, dimension, n_groups) in (prop::collection::vec(0..4_usize, 1..4), 1..4_usize, 1..4_usize)
                .prop_flat_map(|(mut extents, dimension, n_groups)| {
                    let dimension = dimension.min(extents.len());
                    let each = extents.get(dimension).copied().unwrap_or(1);
                    extents.insert(dimension, n_groups * each);
                    (layout_of(extents), Just(dimension), Just(n_groups))
                }),
            values in prop::collection::vec(-10.0..10.0_f64, 1024),
            (has_scale, has_shift) in (any::<bool>(), any::<bool>()),
        ) {
            prop_assume!(layout.len <= values.len());
            let x = layout.view(&values);
            let channels = x.extents()[dimension];
            let list = &values[500..500 + channels];
            let affine = ChannelAffine {
                scale: has_scale.then_some(list),
                shift: has_shift.then_some(list),
            };
            let own = Groups { dimension, n_groups, epsilon: 0.01 };
            let mut out = vec![0.0; x.n_elements()];
            groups(&x, &own, affine, &mut TensorViewMut::new(&mut out, x.extents()).unwrap()).unwrap();
            let group_of = |place: &[usize]| (place[0], place[dimension] / (channels / n_groups));
            let places: Vec<Vec<usize>> = (0..out.len()).map(|index| coordinates(index, x.extents())).collect();
            for (found, place) in out.iter().zip(&places) {
                let own: Vec<f64> = places.iter().filter(|other| group_of(other) == group_of(place))
                    .map(|place| x.get(place).unwrap()).collect();
                let n = own.len() as f64;
                let mean = own.iter().sum::<f64>() / n;
                let variance = own.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
                let mut exact = (x.get(place).unwrap() - mean) / (variance + 0.01).sqrt();
                if has_scale {
                    exact *= list[place[dimension]];
                }
                if has_shift {
                    exact += list[place[dimension]];
                }
                prop_assert!((found - exact).abs() < 1e-9, "{} {}", found, exact);
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_told() {
        let x = TensorView::new(&[1.0_f32, 2.0, 3.0, 4.0], &[1, 4]).unwrap();
        let mut out = [0.0; 4];
        let mut out = TensorViewMut::new(&mut out, &[1, 4]).unwrap();
        let mut of = |dimension, n_groups, affine| {
            let own = Groups {
                dimension,
                n_groups,
                epsilon: 0.0,
            };
            groups(&x, &own, affine, &mut out)
        };
        assert!(of(1, 2, ChannelAffine::default()).is_ok());
        assert!(of(1, 3, ChannelAffine::default()).is_err());
        assert!(of(1, 0, ChannelAffine::default()).is_err());
        assert!(of(0, 1, ChannelAffine::default()).is_err());
        assert!(of(2, 1, ChannelAffine::default()).is_err());
        let short = ChannelAffine {
            scale: Some(&[1.0_f32][..]),
            shift: None,
        };
        assert!(of(1, 2, short).is_err());
        let large = [0, 1 << 40, 1 << 40];
        let x = TensorView::<f32>::new(&[], &large).unwrap();
        let own = Groups {
            dimension: 1,
            n_groups: 2,
            epsilon: 0.0,
        };
        let mut out = TensorViewMut::new(&mut [], &large).unwrap();
        groups(&x, &own, ChannelAffine::default(), &mut out).unwrap();
    }
}
