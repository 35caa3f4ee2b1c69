//! Channel shuffle: the first channel of each group, then the second of each.

use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use crate::DenseHostTensor;
use crate::dense::expect_dtype;
use crate::math::parallel;

/// Shuffles channels of `groups` groups: channel `i` of group `g` becomes channel `i * groups + g`.
///
/// # Shapes
///
/// `x`, `out`: `[.., channels]`, alike.
///
/// # Errors
///
/// `InvalidArgument` if they are not, if elements are no `f32`s, or if the channels can't be divided into as many
/// groups; and those of [`parallel::fill`].
pub fn shuffle_into(
    execution: &ExecutionContext,
    groups: usize,
    x: &DenseHostTensor,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    expect_dtype::<f32>(x.metadata())?;
    super::expect_result(&x.shape().to_dims(), &out.shape().to_dims())?;
    let channels = x.shape().to_dims().last().copied().unwrap_or(0);
    if groups == 0 || !channels.is_multiple_of(groups) {
        let message = format!("{channels} channels can't be divided into {groups} groups");
        return Err(Error::invalid_argument(message));
    }
    let x = x.clone();
    let chunk = parallel::chunk_len(2, channels);
    parallel::fill(execution, out, chunk, move |first, part: &mut [f32]| {
        let reading = x.read()?;
        let x = &reading.elements::<f32>()?[first..][..part.len()];
        for (x, out) in x
            .chunks_exact(channels)
            .zip(part.chunks_exact_mut(channels))
        {
            match groups {
                2 => deal::<2>(x, out),
                3 => deal::<3>(x, out),
                4 => deal::<4>(x, out),
                8 => deal::<8>(x, out),
                _ => {
                    for (group, x) in x.chunks_exact(channels / groups).enumerate() {
                        let out = out[group..].iter_mut().step_by(groups);
                        out.zip(x).for_each(|(out, x)| *out = *x);
                    }
                }
            }
        }
        Ok(())
    })
}

/// Deals out the channels of one pixel, of `GROUPS` groups.
fn deal<const GROUPS: usize>(x: &[f32], out: &mut [f32]) {
    let own = x.len() / GROUPS;
    let groups: [&[f32]; GROUPS] = std::array::from_fn(|group| &x[group * own..][..own]);
    let dealt = out.as_chunks_mut::<GROUPS>().0.iter_mut();
    for (index, out) in dealt.take(own).enumerate() {
        // A loop, since mapping an array calls for each of its elements.
        for (out, group) in out.iter_mut().zip(&groups) {
            *out = group[index];
        }
    }
}
