//! Recognises layer normalisation that exporters write as many operations: `(x - mean) / √(mean((x - mean)²) + ε) *
//! scale + shift`, over the last dimension.

use tfrt_ir::{Attribute, BlockId, Module, OpId, OpState, Type, ValueId};

use super::super::node;
use super::super::rewrite::Rewrite;

/// Replaces the operations of a layer normalisation by one.
pub(super) fn recognise(module: &mut Module, block: BlockId) {
    let (mut rewrite, old) = Rewrite::new(module, block);
    for &op in &old {
        match layer_norm(rewrite.module, op) {
            None => rewrite.keep(op),
            Some(found) => {
                let mut operands = vec![rewrite.mapped(found.x), rewrite.mapped(found.scale)];
                operands.extend(found.shift.map(|shift| rewrite.mapped(shift)));
                #[allow(
                    clippy::cast_possible_truncation,
                    reason = "it was a number of this type"
                )]
                let epsilon = found.epsilon as f32;
                let state = OpState::new("graph.norm")
                    .operands(operands)
                    .attribute("kind", Attribute::string("layer"))
                    .attribute("axis", Attribute::integer(-1, Type::I64))
                    .attribute("epsilon", Attribute::f32(epsilon));
                super::replace(&mut rewrite, op, state);
            }
        }
    }
    rewrite.finish(&old);
}

/// The operands and parameters of a layer normalisation that was recognised.
struct LayerNormMatch {
    x: ValueId,
    scale: ValueId,
    shift: Option<ValueId>,
    epsilon: f64,
}

/// Matches a layer normalisation at its last operation, which adds the shift, or multiplies by the scale if none is
/// added.
fn layer_norm(module: &Module, op: OpId) -> Option<LayerNormMatch> {
    let result = *module.op(op).results().first()?;
    let width = *node::shape(module, result)?.last()?;
    let per_column = |value: ValueId| {
        let dense = node::constant(module, value)?;
        (*dense.element_type() == Type::F32 && dense.shape() == [width]).then_some(value)
    };
    if !node::is_f32(module, result) || width < 1 {
        return None;
    }
    match node::name(module, op) {
        "add" => node::pairs(module, op)
            .into_iter()
            .flatten()
            .find_map(|(product, shift)| {
                let shift = per_column(shift)?;
                let op = node::single_use_op(module, product, "mul")?;
                let found = scaled(module, op, &per_column)?;
                Some(LayerNormMatch {
                    shift: Some(shift),
                    ..found
                })
            }),
        "mul" => {
            let found = scaled(module, op, &per_column)?;
            let mut users = module.users(result);
            let is_shifted = |user: OpId| {
                let mut operands = module.op(user).operands().iter();
                node::name(module, user) == "add"
                    && operands.any(|value| per_column(*value).is_some())
            };
            let only = users.next().filter(|_| users.next().is_none());
            // The sum takes it all.
            (!only.is_some_and(|user| is_shifted(user.op))).then_some(found)
        }
        _ => None,
    }
}

/// Returns the normalised value before it is multiplied by the scale.
fn scaled(
    module: &Module,
    op: OpId,
    per_column: &dyn Fn(ValueId) -> Option<ValueId>,
) -> Option<LayerNormMatch> {
    node::pairs(module, op)
        .into_iter()
        .flatten()
        .find_map(|(normal, scale)| {
            let scale = per_column(scale)?;
            let (x, epsilon) = normal_of(module, normal)?;
            Some(LayerNormMatch {
                x,
                scale,
                shift: None,
                epsilon,
            })
        })
}

/// Returns x and ε of `(x - mean) / √(variance + ε)`.
fn normal_of(module: &Module, value: ValueId) -> Option<(ValueId, f64)> {
    let quotient = node::single_use_op(module, value, "div")?;
    let &[centred, root] = module.op(quotient).operands() else {
        return None;
    };
    let root = node::single_use_op(module, root, "sqrt")?;
    let sum = node::single_use_op(module, node::operand(module, root, 0)?, "add")?;
    let rank = node::shape(module, value)?.len();
    let (variance, epsilon) =
        node::pairs(module, sum)
            .into_iter()
            .flatten()
            .find_map(|(variance, epsilon)| {
                let epsilon = node::number(module, epsilon, rank)?;
                (epsilon >= 0.0).then_some((variance, epsilon))
            })?;
    let squares = mean_of(module, variance, rank)?;
    let n_users = match (
        node::single_use_op(module, squares, "pow"),
        node::single_use_op(module, squares, "mul"),
    ) {
        (Some(power), _) => {
            let &[base, exponent] = module.op(power).operands() else {
                return None;
            };
            (base == centred && node::number(module, exponent, rank) == Some(2.0)).then_some(2)?
        }
        (_, Some(product)) => (*module.op(product).operands() == [centred; 2]).then_some(3)?,
        _ => return None,
    };
    // Nobody else looks at what is centred.
    if module.users(centred).take(4).count() != n_users {
        return None;
    }
    let difference = module.defining_op(centred)?;
    let &[x, mean] = module.op(difference).operands() else {
        return None;
    };
    let is_centred = node::name(module, difference) == "sub"
        && mean_of(module, mean, rank) == Some(x)
        && node::is_f32(module, x)
        && node::shape(module, x)?.len() == rank;
    is_centred.then_some((x, epsilon))
}

/// Matches a mean over the last dimension, which is kept, with one user; returns the operand.
fn mean_of(module: &Module, value: ValueId, rank: usize) -> Option<ValueId> {
    node::single_use_op(module, value, "reduce")?;
    reduced_mean(module, value, rank)
}

/// Matches a mean over the last dimension, which is kept; returns the operand.
fn reduced_mean(module: &Module, value: ValueId, rank: usize) -> Option<ValueId> {
    let op = module.defining_op(value)?;
    if node::name(module, op) != "reduce" {
        return None;
    }
    let axes = match node::operand(module, op, 1) {
        Some(axes) => node::constant_ints(module, axes)?,
        None => node::ints(module, op, "axes")?,
    };
    let last = i64::try_from(rank).ok()?.checked_sub(1)?;
    let is_last = axes == [-1] || axes == [last];
    let is_mean = node::text(module, op, "kind") == "mean";
    (is_last && is_mean && node::int(module, op, "keep", 1) == 1)
        .then(|| node::operand(module, op, 0))?
}
