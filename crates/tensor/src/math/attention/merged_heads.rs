//! Attention of heads that lie side by side, as projections make them: nothing is transposed before or after.
//!
//! # Shapes
//!
//! | Tensor | Shape |
//! | --- | --- |
//! | queries | `[batch, n_queries, heads * depth]` |
//! | keys | `[batch, n_keys, heads * depth]` |
//! | values | `[batch, n_keys, heads * width]` |
//! | mask | broadcasts to `[batch, heads, n_queries, n_keys]` |
//! | output | `[batch, n_queries, heads * width]` |

use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use super::block::{AttentionPlan, Heads};
use super::{Attention, AttentionElement, Mask, TensorMask, dims};
use crate::math::parallel;
use crate::{DenseHostTensor, Dims, TensorView, TensorViewMut};

/// Calculates [`attention()`](super::attention()) of `heads` that lie side by side in rows.
///
/// # Shapes
///
/// As in the module's table.
///
/// # Errors
///
/// `InvalidArgument` if the shapes are not that, or if rows can't be cut into so many heads.
///
/// # Examples
///
/// ```
/// use tfrt_tensor::math::attention::{Attention, Mask, attention_merged_heads};
/// use tfrt_tensor::{TensorView, TensorViewMut};
///
/// // Two heads of one number each, and two keys.
/// let q = TensorView::new(&[9.0_f32, -9.0], &[1, 1, 2])?;
/// let k = TensorView::new(&[0.0, 0.0, 9.0, 9.0], &[1, 2, 2])?;
/// let v = TensorView::new(&[1.0, 2.0, 3.0, 4.0], &[1, 2, 2])?;
/// let mut out = [0.0; 2];
/// let mut view = TensorViewMut::new(&mut out, &[1, 1, 2])?;
/// attention_merged_heads(&Attention::default(), 2, [&q, &k, &v], &Mask::None, &mut view)?;
/// assert!((out[0] - 3.0).abs() < 1e-6 && (out[1] - 2.0).abs() < 1e-6);
/// # Ok::<(), tfrt_host::Error>(())
/// ```
pub fn attention_merged_heads<T: AttentionElement>(
    options: &Attention,
    heads: usize,
    inputs: [&TensorView<'_, T>; 3],
    mask: &Mask<'_, T>,
    out: &mut TensorViewMut<'_, T>,
) -> Result<(), Error> {
    let seen = inputs.map(|view| (dims(view.extents()), dims(view.strides())));
    let plan = plan(options, heads, seen, out.extents())?;
    let elements = inputs.map(|view| Heads::Slice(view.elements()));
    plan.run_merged_heads(elements, &plan.broadcast(mask)?, 0, out.as_mut_slice())
}

/// Applies [`attention_merged_heads`] to dense tensors, on the workers of the request's queue if there is much to do.
///
/// # Errors
///
/// Those of [`attention_merged_heads`], if the types differ, and those of [`parallel::fill`].
pub fn attention_merged_heads_into(
    execution: &ExecutionContext,
    options: &Attention,
    heads: usize,
    inputs: [&DenseHostTensor; 3],
    mask: TensorMask,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    for tensor in inputs {
        crate::dense::expect_dtype::<f32>(tensor.metadata())?;
    }
    let seen = inputs.map(|tensor| (tensor.shape().to_dims(), tensor.shape().strides()));
    let plan = plan(options, heads, seen, &out.shape().to_dims())?;
    mask.check::<f32>(&plan)?;
    let [queries, keys, values] = inputs.map(DenseHostTensor::clone);
    let chunk = plan.chunk_len_merged_heads();
    parallel::fill(execution, out, chunk, move |first, part: &mut [f32]| {
        let (queries, keys, values) = (queries.read()?, keys.read()?, values.read()?);
        let elements = [queries.elements()?, keys.elements()?, values.elements()?];
        let elements = elements.map(Heads::Slice);
        mask.lend(|mask| plan.run_merged_heads(elements, &plan.broadcast(mask)?, first, part))
    })
}

/// Returns the plan for heads seen as the second dimension.
fn plan(
    options: &Attention,
    heads: usize,
    inputs: [(Dims, Dims); 3],
    out: &[usize],
) -> Result<AttentionPlan, Error> {
    let apart = |extents: &[usize]| -> Result<[usize; 4], Error> {
        match *extents {
            [batch, rows, hidden] if heads > 0 && hidden.is_multiple_of(heads) => {
                Ok([batch, heads, rows, hidden / heads])
            }
            _ => Err(Error::invalid_argument(format!(
                "expected rows of {heads} heads side by side, [batch, rows, heads * width], found shape {extents:?}"
            ))),
        }
    };
    let mut seen = inputs;
    for (extents, strides) in &mut seen {
        let parted = apart(extents)?;
        let [batch, row, column] = strides[..] else {
            return Err(Error::invalid_argument("expected three dimensions"));
        };
        *extents = dims(&parted);
        *strides = dims(&[batch, parted[3].saturating_mul(column), row, column]);
    }
    AttentionPlan::new(options, seen, &apart(out)?)
}
