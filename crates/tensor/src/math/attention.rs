//! Fused attention: `softmax(q kᵀ scale + mask) v`, without ever holding all scores.
//!
//! Queries are taken in blocks, and for each of these keys and values in blocks. Of a block the scores are
//! made, of which the largest so far and the sum of all e^(score - largest) are kept for each query; when the
//! largest grows, what was summed up is scaled down. So no more than a block of scores exists at a time, however
//! long the sequences are. Half-precision numbers are calculated with as `f32` throughout, and rounded once. The bits of
//! a query's result don't depend on the others that there are.
//!
//! # Shapes
//!
//! | Tensor | Shape |
//! | --- | --- |
//! | queries | `[batch, heads, n_queries, depth]` |
//! | keys | `[batch, key_heads, n_keys, depth]` |
//! | values | `[batch, key_heads, n_keys, width]` |
//! | mask | broadcasts to `[batch, heads, n_queries, n_keys]` |
//! | output | `[batch, heads, n_queries, width]` |
//!
//! `heads` is a multiple of `key_heads`: as many neighbouring heads look at the same keys and values.

use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use super::number::Floating;
use super::parallel;
use crate::math::Family;
use crate::with_floating;
use crate::{Bool, DenseHostTensor, Dims, GrowableTensor, TensorView, TensorViewMut};

mod block;
mod merged_heads;
mod rows;
mod scores;

use block::{AttentionPlan, Heads};
pub use merged_heads::{attention_merged_heads, attention_merged_heads_into};
pub use scores::{ScoreOptions, ScoreStage, scored_into, scores_into};

/// A type of elements that attention is calculated for; sums are of a wider type.
pub trait AttentionElement: Floating<Wide: Floating<Wide = Self::Wide>> {}

impl<T: Floating<Wide: Floating<Wide = T::Wide>>> AttentionElement for T {}

/// Options of scaled dot-product attention.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Attention {
    /// The factor of scores; 1 / √depth if there is none.
    pub scale: Option<f64>,
    /// Causal attention: query `i` attends to the first `i + 1 + causal` keys, where `causal` is the number of keys
    /// before those of the queries, as in a cache.
    pub causal: Option<usize>,
    /// The number of keys of each batch that are attended to, as of buffers with room; all keys of all without any.
    pub lens: Option<Vec<usize>>,
}

/// A mask on scores, applied before softmax.
#[derive(Clone, Debug, Default)]
pub enum Mask<'a, T> {
    /// No mask.
    #[default]
    None,
    /// Numbers are added.
    Additive(TensorView<'a, T>),
    /// Only keys for which there is true are looked at.
    Boolean(TensorView<'a, Bool>),
    /// Where there is false, a number takes the place of the score.
    Replaced(TensorView<'a, Bool>, Replacement),
}

/// The number that takes the place of scores that a mask leaves out, as programs write masks that know no masked attention:
/// unlike keys that are not looked at, these count. If there are no others, all have the same weight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Replacement {
    /// The number, rounded to the type of scores.
    pub score: f64,
    /// Whether the weights of these keys are zero, though they count in the sum that weights are divided by.
    pub weighs_nothing: bool,
}

/// A [`Mask`] of dense tensors.
#[derive(Clone, Debug, Default)]
pub enum TensorMask {
    /// No mask.
    #[default]
    None,
    /// Numbers are added.
    Additive(DenseHostTensor),
    /// Only keys for which there is true are looked at.
    Boolean(DenseHostTensor),
    /// Where there is false, a number takes the place of the score.
    Replaced(DenseHostTensor, Replacement),
}

/// Calculates attention.
///
/// A query that looks at no key gives zeros. The values of keys that it does not look at are multiplied by 0, as
/// in a product of matrices: they are finite, or the result is no number.
///
/// # Shapes
///
/// As in the module's table.
///
/// # Errors
///
/// `InvalidArgument` if the shapes are not that.
///
/// # Examples
///
/// ```
/// use tfrt_tensor::math::attention::{Attention, Mask, attention};
/// use tfrt_tensor::{TensorView, TensorViewMut};
///
/// // A query that is like the second key gets most of the second value.
/// let q = TensorView::new(&[0.0_f32, 9.0], &[1, 1, 1, 2])?;
/// let k = TensorView::new(&[9.0, 0.0, 0.0, 9.0], &[1, 1, 2, 2])?;
/// let v = TensorView::new(&[1.0, 2.0], &[1, 1, 2, 1])?;
/// let mut out = [0.0];
/// let mut view = TensorViewMut::new(&mut out, &[1, 1, 1, 1])?;
/// attention(&Attention::default(), [&q, &k, &v], &Mask::None, &mut view)?;
/// assert!((out[0] - 2.0).abs() < 1e-6);
/// # Ok::<(), tfrt_host::Error>(())
/// ```
pub fn attention<T: AttentionElement>(
    options: &Attention,
    [queries, keys, values]: [&TensorView<'_, T>; 3],
    mask: &Mask<'_, T>,
    out: &mut TensorViewMut<'_, T>,
) -> Result<(), Error> {
    let seen = |view: &TensorView<'_, T>| (dims(view.extents()), dims(view.strides()));
    let inputs = [seen(queries), seen(keys), seen(values)];
    let plan = AttentionPlan::new(options, inputs, out.extents())?;
    let mask = plan.broadcast(mask)?;
    let elements = [queries.elements(), keys.elements(), values.elements()];
    plan.run(elements.map(Heads::Slice), &mask, 0, out.as_mut_slice())
}

/// Applies [`attention()`] to dense tensors, on the workers of the request's queue if there is much to do.
///
/// # Errors
///
/// Those of [`attention()`], if the types differ, and those of [`parallel::fill`].
pub fn attention_into(
    execution: &ExecutionContext,
    options: &Attention,
    inputs: [&DenseHostTensor; 3],
    mask: TensorMask,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let dtype = inputs[0].dtype();
    with_floating!(dtype, T => attention_of::<T>(execution, options, inputs, mask, out), else Err(Family::Floats.lacks(dtype)))
}

fn attention_of<T: AttentionElement>(
    execution: &ExecutionContext,
    options: &Attention,
    [queries, keys, values]: [&DenseHostTensor; 3],
    mask: TensorMask,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    for tensor in [queries, keys, values] {
        crate::dense::expect_dtype::<T>(tensor.metadata())?;
    }
    let seen = |tensor: &DenseHostTensor| (tensor.shape().to_dims(), tensor.shape().strides());
    let inputs = [seen(queries), seen(keys), seen(values)];
    let plan = AttentionPlan::new(options, inputs, &out.shape().to_dims())?;
    mask.check::<T>(&plan)?;
    let [queries, keys, values] = [queries, keys, values].map(DenseHostTensor::clone);
    let chunk = plan.chunk_len();
    parallel::fill(execution, out, chunk, move |first, part: &mut [T]| {
        let (queries, keys, values) = (queries.read()?, keys.read()?, values.read()?);
        let elements = [queries.elements()?, keys.elements()?, values.elements()?];
        let elements = elements.map(Heads::Slice);
        mask.lend(|mask| plan.run(elements, &plan.broadcast(mask)?, first, part))
    })
}

/// Applies [`attention()`] to queries, and to keys and values that grow along their third dimension, which are read
/// where they lie; on the workers of the request's queue if there is much to do.
///
/// # Errors
///
/// `InvalidArgument` if keys or values grow along another dimension, and those of [`attention_into`].
pub fn attention_over_cache_into(
    execution: &ExecutionContext,
    options: &Attention,
    queries: &DenseHostTensor,
    cache: [&GrowableTensor; 2],
    mask: TensorMask,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let dtype = queries.dtype();
    with_floating!(dtype, T => over_cache::<T>(execution, options, queries, cache, mask, out), else Err(Family::Floats.lacks(dtype)))
}

fn over_cache<T: AttentionElement>(
    execution: &ExecutionContext,
    options: &Attention,
    queries: &DenseHostTensor,
    cache: [&GrowableTensor; 2],
    mask: TensorMask,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    crate::dense::expect_dtype::<T>(queries.metadata())?;
    for tensor in cache {
        crate::dense::expect_dtype::<T>(tensor.metadata())?;
        if (tensor.axis(), tensor.metadata().shape.rank()) != (2, 4) {
            return Err(Error::invalid_argument(format!(
                "expected keys and values that grow along the third dimension of four, found {tensor:?}"
            )));
        }
    }
    // A head is a block, found by its number.
    let in_block = |tensor: &GrowableTensor| {
        let shape = &tensor.metadata().shape;
        let row = shape.extent(3).unwrap_or(0);
        (shape.to_dims(), dims(&[0, 0, row, 1]))
    };
    let [keys, values] = cache.map(in_block);
    let own = (queries.shape().to_dims(), queries.shape().strides());
    let plan = AttentionPlan::new(options, [own, keys, values], &out.shape().to_dims())?;
    mask.check::<T>(&plan)?;
    let (queries, [keys, values]) = (queries.clone(), cache.map(GrowableTensor::clone));
    let chunk = plan.chunk_len();
    parallel::fill(execution, out, chunk, move |first, part: &mut [T]| {
        let queries = queries.read()?;
        let elements = [
            Heads::Slice(queries.elements()?),
            Heads::Blocks(&keys),
            Heads::Blocks(&values),
        ];
        mask.lend(|mask| plan.run(elements, &plan.broadcast(mask)?, first, part))
    })
}

impl TensorMask {
    /// Checks that the mask broadcasts to all scores.
    fn check<T: AttentionElement>(&self, plan: &AttentionPlan) -> Result<(), Error> {
        self.lend(|mask: &Mask<'_, T>| plan.broadcast(mask).map(drop))
    }

    /// Locks the mask for reading, and returns its elements.
    fn lend<T: AttentionElement>(
        &self,
        body: impl FnOnce(&Mask<'_, T>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        match self {
            TensorMask::None => body(&Mask::None),
            TensorMask::Additive(tensor) => body(&Mask::Additive(tensor.read()?.view()?)),
            TensorMask::Boolean(tensor) => body(&Mask::Boolean(tensor.read()?.view()?)),
            TensorMask::Replaced(tensor, by) => body(&Mask::Replaced(tensor.read()?.view()?, *by)),
        }
    }
}

fn dims(list: &[usize]) -> Dims {
    Dims::from_slice(list)
}

#[cfg(test)]
mod tests;
