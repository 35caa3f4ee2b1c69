//! Multi-head attention between products, without transpositions.

use tfrt_host::kernel::{Attr, Operands};
use tfrt_host::{Error, ExecutionContext};
use tfrt_tensor::math::attention::{
    Attention, Replacement, TensorMask, attention_merged_heads_into,
};

use super::{TensorResult, dense, made, memory};

/// `%y = "cpu.fused.attention"(%q, %k, %v, %mask) {heads = 12 : i64, scale = 0.25 : f32}`, or without the mask:
/// softmax(q kᵀ scale + mask) v of each head.
///
/// # Shapes
///
/// `q: [batch, queries, heads * depth]`, `k: [batch, keys, heads * depth]`, `v: [batch, keys, heads * width]`;
/// `mask` broadcasts to `[batch, heads, queries, keys]`; `y: [batch, queries, heads * width]`.
///
/// Behind a mask of truth values stands a number, a tensor of one element: it takes the place of scores where the mask is
/// false. If one more operand, a zero, follows, the weights of these keys are replaced by zero, too.
pub(super) fn attend(
    operands: Operands<'_>,
    heads: Attr<i64>,
    scale: Attr<f32>,
    execution: &ExecutionContext,
) -> TensorResult {
    let inputs = [
        dense(&operands, 0)?,
        dense(&operands, 1)?,
        dense(&operands, 2)?,
    ];
    let mask = match operands.len() {
        3 => TensorMask::None,
        4 => TensorMask::Additive(dense(&operands, 3)?.clone()),
        n => {
            let score = dense(&operands, 4)?
                .read()?
                .elements::<f32>()?
                .first()
                .copied();
            let score = score.ok_or_else(|| {
                Error::invalid_argument("expected a number for masked scores, found no element")
            })?;
            let by = Replacement {
                score: f64::from(score),
                weighs_nothing: n > 5,
            };
            TensorMask::Replaced(dense(&operands, 3)?.clone(), by)
        }
    };
    let heads = usize::try_from(*heads).unwrap_or(0);
    let options = Attention {
        scale: Some(f64::from(*scale)),
        causal: None,
        lens: None,
    };
    let mut extents = inputs[0].shape().to_dims();
    if let (Some(last), Some(hidden)) =
        (extents.last_mut(), inputs[2].shape().extents().next_back())
    {
        *last = hidden;
    }
    let out = memory::output(execution, &extents)?;
    let chain = attention_merged_heads_into(execution, &options, heads, inputs, mask, &out)?;
    Ok(made(out, chain))
}
