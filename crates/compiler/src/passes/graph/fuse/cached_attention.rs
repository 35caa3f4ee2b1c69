//! Recognises attention to keys and values of a cache, which a decoder appends to in each step.
//!
//! ```text
//! k, v: [batch, heads, keys, width], of a `concat` along the keys  --Unsqueeze, Expand, Reshape--> more heads, or not
//! softmax((q kᵀ) * scale + mask) v
//! ```
//!
//! Where scores are replaced by the least number before a mask is added, as causal models do, the mask is replaced instead.
//! A mask whose extents are not known is taken for one that fits scores; one that would make them more fails the call.
//!
//! This becomes the row `attention`, which reads a cache where it lies, and each head of it for all heads that share it. What
//! the operations would do instead is to write the whole cache once more, twice over, in each step.

use tfrt_ir::{Attribute, BlockId, Module, OpId, OpState, Type, ValueId};

use super::super::node;
use super::super::rewrite::Rewrite;
use super::attention::{factors, operand_of, product, softmax, unscaled};

/// Replaces the operations of an attention to a cache by the row.
pub(super) fn recognise(module: &mut Module, block: BlockId) {
    let (mut rewrite, old) = Rewrite::new(module, block);
    for &op in &old {
        let Some(found) = attention(rewrite.module, op) else {
            rewrite.keep(op);
            continue;
        };
        let inputs = found.inputs.iter().chain(&found.mask);
        let mut inputs: Vec<ValueId> = inputs.map(|value| rewrite.mapped(*value)).collect();
        if let Some([seen, least]) = found.seen {
            let seen = rewrite.mapped(seen);
            let mask = found.mask.and_then(|_| inputs.pop());
            inputs.push(match mask {
                None => seen,
                Some(mask) => {
                    let operands = [seen, mask, rewrite.mapped(least)];
                    let state = OpState::new("graph.select").operands(operands);
                    let scores = Type::tensor(vec![-1; 4], Type::F32);
                    rewrite.add(state.result(scores), op)
                }
            });
        }
        #[allow(
            clippy::cast_possible_truncation,
            reason = "it was a product of numbers of this type"
        )]
        let scale = Attribute::f32(found.scale as f32);
        let state = OpState::new("graph.attention").operands(inputs);
        super::replace(&mut rewrite, op, state.attribute("scale", scale));
    }
    rewrite.finish(&old);
}

/// The operands and parameters of an attention that was recognised.
struct CachedAttention {
    inputs: [ValueId; 3],
    mask: Option<ValueId>,
    /// Whether a key is seen, and the number that takes the place of its score if not.
    seen: Option<[ValueId; 2]>,
    scale: f64,
}

/// The scores of an attention, before softmax.
struct Scores {
    product: ValueId,
    scale: f64,
    mask: Option<ValueId>,
    seen: Option<[ValueId; 2]>,
}

/// The number that is as good as minus infinity where it takes the place of a score: it swallows all that is added.
const LEAST: f64 = -1e30;

/// Matches a product of weights and values.
fn attention(module: &Module, op: OpId) -> Option<CachedAttention> {
    let [weights, values] = factors(module, op)?;
    let softmax = softmax(module, weights)?;
    let masked = node::operand(module, softmax, 0)?;
    let scores = scores(module, masked)?;
    let [queries, keys] = factors(module, module.defining_op(scores.product)?)?;
    let (queries, q_scale) = unscaled(module, queries);
    let (keys, k_scale) = unscaled(module, keys);
    let keys = operand_of(module, keys, &[0, 1, 3, 2])?;
    let (keys, inner_scale) = unscaled(module, keys);
    let (keys, values) = (shared(module, keys), shared(module, values));
    let scale = scores.scale * q_scale * k_scale * inner_scale;
    let heads = |value| {
        let shape = node::shape(module, value).filter(|shape| shape.len() == 4)?;
        Some(shape[1]).filter(|heads| *heads > 0)
    };
    let (own, of_keys, of_values) = (heads(queries)?, heads(keys)?, heads(values)?);
    let fits = of_keys == of_values && own % of_keys == 0;
    let is_cached = is_cache(module, keys) && is_cache(module, values);
    (fits && is_cached && scale.is_finite()).then_some(CachedAttention {
        inputs: [queries, keys, values],
        mask: scores.mask,
        seen: scores.seen,
        scale,
    })
}

/// Matches scores: a product, scaled, some of them replaced, and a mask that is added.
fn scores(module: &Module, value: ValueId) -> Option<Scores> {
    let Some(op) = node::single_use_op(module, value, "add") else {
        return unmasked(module, value);
    };
    let mut pairs = node::pairs(module, op).into_iter().flatten();
    pairs.find_map(|(scaled, mask)| {
        let scores = unmasked(module, scaled)?;
        let fits = node::is_f32(module, mask) && is_no_larger(module, mask, scores.product);
        fits.then_some(Scores {
            mask: Some(mask),
            ..scores
        })
    })
}

fn unmasked(module: &Module, value: ValueId) -> Option<Scores> {
    let (scaled, seen) = match node::single_use_op(module, value, "select") {
        None => (value, None),
        Some(op) => {
            let &[seen, scaled, least] = module.op(op).operands() else {
                return None;
            };
            let is_least = node::number(module, least, 4).is_some_and(|least| least <= LEAST);
            if !is_least || !node::is_f32(module, least) {
                return None;
            }
            (scaled, Some([seen, least]))
        }
    };
    let (found, scale) = unscaled(module, scaled);
    product(module, found)?;
    let is_fit = seen.is_none_or(|[seen, _]| is_no_larger(module, seen, found));
    is_fit.then_some(Scores {
        product: found,
        scale,
        mask: None,
        seen,
    })
}

/// Returns whether a value has no extent that is known to make scores more than they are.
pub(super) fn is_no_larger(module: &Module, value: ValueId, scores: ValueId) -> bool {
    let shapes = [value, scores].map(|value| node::shape(module, value));
    let [Some(own), Some(most)] = shapes else {
        return false;
    };
    let is_none_more = |(own, most): (&i64, &i64)| *own <= 1 || *most < 0 || own == most;
    let mut pairs = own.iter().rev().zip(most.iter().rev());
    own.len() <= most.len() && pairs.all(is_none_more)
}

/// Returns whether a value is made of another one by appending to its third dimension of four.
fn is_cache(module: &Module, value: ValueId) -> bool {
    let Some(op) = module.defining_op(value) else {
        return false;
    };
    let axis = node::int(module, op, "axis", 0);
    node::name(module, op) == "concat" && [2, -2].contains(&axis)
}

/// Returns the value whose heads are repeated, each as often as the others, or the value itself.
fn shared(module: &Module, value: ValueId) -> ValueId {
    repeated(module, value).unwrap_or(value)
}

fn repeated(module: &Module, value: ValueId) -> Option<ValueId> {
    let made_by = |value, names: &[&str]| {
        let op = module.defining_op(value)?;
        let is_it = names.contains(&node::name(module, op));
        is_it.then(|| node::operand(module, op, 0))?
    };
    let repeated = made_by(value, &["reshape"])?;
    let column = made_by(repeated, &["broadcast"])?;
    let heads = made_by(column, &["onnx.Unsqueeze", "reshape"])?;
    let shape = |value| node::shape(module, value);
    let (&[_, n_heads, _, width], &[_, n_all, _, all_width]) =
        (&shape(heads)?[..], &shape(value)?[..])
    else {
        return None;
    };
    let (&[_, own, one, _, own_width], &[_, more, times, _, more_width]) =
        (&shape(column)?[..], &shape(repeated)?[..])
    else {
        return None;
    };
    let is_known = n_heads > 0 && times > 0 && width > 0;
    let is_repeated = one == 1
        && [own, more] == [n_heads; 2]
        && n_heads.checked_mul(times) == Some(n_all)
        && [own_width, more_width, all_width] == [width; 3];
    // The other dimensions are what they were.
    let extents = |value| node::extents(module, value);
    let (before, after) = (extents(heads)?, extents(value)?);
    let is_alike = before[0] == after[0] && before[2] == after[2];
    (is_known && is_repeated && is_alike).then_some(heads)
}
