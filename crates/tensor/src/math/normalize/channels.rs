//! Batch norm of dense tensors.

use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use super::{Channels, expect_channels, scale_and_shift};
use crate::DenseHostTensor;
use crate::math::Family;
use crate::math::number::{Floating, Real};
use crate::math::parallel;
use crate::with_floating;

/// The tensors of [`Channels`], each `[channels]`.
#[derive(Clone, Debug)]
pub struct ChannelTensors<'t> {
    /// Mean of each channel.
    pub mean: &'t DenseHostTensor,
    /// Variance of each channel.
    pub variance: &'t DenseHostTensor,
    /// Factor of each channel.
    pub scale: &'t DenseHostTensor,
    /// Summand of each channel.
    pub shift: &'t DenseHostTensor,
}

impl ChannelTensors<'_> {
    /// Takes all together as a factor and a summand for each channel.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the tensors are not of one size or of another type, `FailedPrecondition` if
    /// somebody is writing one.
    pub fn folded<T: Floating>(&self, epsilon: T) -> Result<(Vec<T>, Vec<T>), Error> {
        let readings =
            [self.mean, self.variance, self.scale, self.shift].map(DenseHostTensor::read);
        let [mean, variance, scale, shift] = readings;
        let (mean, variance, scale, shift) = (mean?, variance?, scale?, shift?);
        let channels = Channels {
            mean: mean.elements()?,
            variance: variance.elements()?,
            scale: scale.elements()?,
            shift: shift.elements()?,
            epsilon,
        };
        channels.folded()
    }
}

/// Applies [`channels`](super::channels) to a dense tensor in place, on the workers of the request's queue if it is
/// large.
///
/// # Errors
///
/// Those of [`channels`](super::channels), and those of [`parallel::fill`].
pub fn channels_in_place(
    execution: &ExecutionContext,
    x: &DenseHostTensor,
    channels: &ChannelTensors<'_>,
    epsilon: f64,
) -> Result<AsyncValue<Chain>, Error> {
    let dtype = x.dtype();
    with_floating!(dtype, T => scaled_in_place::<T>(execution, x, channels, T::from_f64(epsilon)), else Err(Family::Floats.lacks(dtype)))
}

fn scaled_in_place<T: Floating>(
    execution: &ExecutionContext,
    x: &DenseHostTensor,
    channels: &ChannelTensors<'_>,
    epsilon: T,
) -> Result<AsyncValue<Chain>, Error> {
    let (factors, summands) = channels.folded(epsilon)?;
    expect_channels(&x.shape().to_dims(), factors.len())?;
    let chunk = parallel::chunk_len(2, factors.len());
    parallel::fill(execution, x, chunk, move |_, part: &mut [T]| {
        scale_and_shift(part, &factors, &summands);
        Ok(())
    })
}

/// Applies [`channels_in_place`] to a dense tensor, with the result in another.
///
/// # Errors
///
/// Those of [`channels_in_place`], and if `out` is of another shape or type.
pub fn channels_into(
    execution: &ExecutionContext,
    x: &DenseHostTensor,
    channels: &ChannelTensors<'_>,
    epsilon: f64,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let dtype = x.dtype();
    with_floating!(dtype, T => scaled_of::<T>(execution, x, channels, T::from_f64(epsilon), out), else Err(Family::Floats.lacks(dtype)))
}

fn scaled_of<T: Floating>(
    execution: &ExecutionContext,
    x: &DenseHostTensor,
    channels: &ChannelTensors<'_>,
    epsilon: T,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    crate::dense::expect_dtype::<T>(x.metadata())?;
    crate::math::elementwise::expect_same(x.shape(), out.shape())?;
    let (factors, summands) = channels.folded(epsilon)?;
    expect_channels(&x.shape().to_dims(), factors.len())?;
    let (x, chunk) = (x.clone(), parallel::chunk_len(2, factors.len()));
    parallel::fill(execution, out, chunk, move |first, part: &mut [T]| {
        part.copy_from_slice(&x.read()?.elements::<T>()?[first..first + part.len()]);
        // The first cache has the part now.
        scale_and_shift(part, &factors, &summands);
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tfrt_host::kernel::KernelRegistry;
    use tfrt_host::{HostContext, RequestContext};

    proptest! {
        #[test]
        fn what_is_written_elsewhere_is_what_is_written_in_place(
            (n, n_channels) in (0..2000_usize, 0..9_usize),
            seed in 0.1..2.0_f32,
        ) {
            let host = HostContext::builder(KernelRegistry::new()).build();
            let execution = ExecutionContext::new(&RequestContext::new(&host));
            let allocator = execution.host().allocator();
            let list = |n: usize, start: f32| {
                let elements: Vec<f32> = (0..n).map(|index| start + seed * index as f32).collect();
                elements
            };
            let of = |extents: &[usize], list: &[f32]| {
                DenseHostTensor::from_slice(allocator, extents, list).unwrap()
            };
            let [mean, variance, scale, shift] =
                [-1.0, 0.5, 2.0, 3.0].map(|start| of(&[n_channels], &list(n_channels, start)));
            let channels = ChannelTensors { mean: &mean, variance: &variance, scale: &scale, shift: &shift };
            let values = list(n * n_channels, -5.0);
            let (x, out) = (of(&[n, n_channels], &values), of(&[n, n_channels], &values));
            channels_into(&execution, &x, &channels, f64::from(1e-3_f32), &out).unwrap();
            let (factors, summands) = channels.folded(1e-3_f32).unwrap();
            let wanted = values.iter().enumerate().map(|(index, value)| {
                value * factors[index % n_channels] + summands[index % n_channels]
            });
            let wanted: Vec<f32> = wanted.collect();
            let elements = |tensor: &DenseHostTensor| tensor.read().unwrap().elements::<f32>().unwrap().to_vec();
            prop_assert_eq!(elements(&out), &wanted[..]);
            channels_in_place(&execution, &x, &channels, f64::from(1e-3_f32)).unwrap();
            prop_assert_eq!(elements(&x), &wanted[..]);
        }
    }
}
