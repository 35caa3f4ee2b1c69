//! Recognises a softmax that is written as many operations, as JAX writes it: `e / sum(e)` of `e = exp(x - max(x))`, over the
//! last dimension.

use tfrt_ir::{Attribute, BlockId, Module, OpId, OpState, Type, ValueId};

use super::super::node;
use super::super::rewrite::Rewrite;

/// Replaces the operations of a softmax by one.
pub(super) fn recognise(module: &mut Module, block: BlockId) {
    let (mut rewrite, old) = Rewrite::new(module, block);
    for &op in &old {
        match softmax(rewrite.module, op) {
            None => rewrite.keep(op),
            Some(x) => {
                let state = OpState::new("graph.softmax")
                    .operand(rewrite.mapped(x))
                    .attribute("axis", Attribute::integer(-1, Type::I64));
                super::replace(&mut rewrite, op, state);
            }
        }
    }
    rewrite.finish(&old);
}

/// Matches a softmax at its last operation; returns its operand.
fn softmax(module: &Module, op: OpId) -> Option<ValueId> {
    if node::name(module, op) != "div" {
        return None;
    }
    let result = *module.op(op).results().first()?;
    let shape = node::shape(module, result)?;
    let &[exponentials, sums] = module.op(op).operands() else {
        return None;
    };
    let exp = module.defining_op(exponentials)?;
    // Nobody else looks at the exponentials.
    let is_exp = node::name(module, exp) == "exp"
        && node::is_f32(module, result)
        && module.users(exponentials).take(3).count() == 2
        && of_rows(module, sums, "sum", &shape)? == exponentials;
    let difference = node::single_use_op(module, node::operand(module, exp, 0)?, "sub")?;
    let &[x, largest] = module.op(difference).operands() else {
        return None;
    };
    let is_softmax = is_exp
        && of_rows(module, largest, "max", &shape)? == x
        && node::is_f32(module, x)
        && node::shape(module, x)? == shape;
    is_softmax.then_some(x)
}

/// Matches a reduction over the last dimension of a tensor of this shape, spread over that dimension again or not yet;
/// returns its operand.
fn of_rows(module: &Module, value: ValueId, kind: &str, shape: &[i64]) -> Option<ValueId> {
    let (width, rows) = shape.split_last()?;
    let kept = [rows, &[1]].concat();
    let mut value = value;
    // Numbers of rows without a last dimension would be one for each column.
    let outermost = node::shape(module, value)?;
    if outermost != kept && outermost != shape && !rows.is_empty() {
        return None;
    }
    // A spread, a reshape and a maximum are what there may be.
    for _ in 0..6 {
        let op = module.defining_op(value)?;
        let found = node::shape(module, value)?;
        let inner = match node::name(module, op) {
            "reduce" => {
                let last = i64::try_from(rows.len()).ok()?;
                let axes = match node::operand(module, op, 1) {
                    Some(axes) => node::constant_ints(module, axes)?,
                    None => node::ints(module, op, "axes")?,
                };
                let is_it = (axes == [-1] || axes == [last])
                    && node::text(module, op, "kind") == kind
                    && (found == kept || found == rows);
                return is_it.then(|| node::operand(module, op, 0))?;
            }
            // Along unknown extents there might be more of what is spread than of what it is spread for.
            "broadcast" if found == shape && shape.iter().all(|extent| *extent >= 0) => {
                let inner = node::operand(module, op, 0)?;
                (*width == 1 || node::shape(module, inner)? == kept).then_some(inner)?
            }
            "reshape" if found == kept => node::operand(module, op, 0)?,
            // JAX states the least number once more.
            "max" | "onnx.Max" if kind == "max" => {
                let is_least = |value| {
                    let number = node::number(module, value, found.len());
                    number == Some(f64::NEG_INFINITY)
                };
                let mut pairs = node::pairs(module, op).into_iter().flatten();
                pairs.find_map(|(inner, least)| is_least(least).then_some(inner))?
            }
            _ => return None,
        };
        value = inner;
    }
    None
}
