//! Fuses products by constant matrices with operations on their sums, which happen before these leave the registers.

use tfrt_ir::{Attribute, BlockId, Module, OpId, Type, ValueId};

use super::super::rewrite::Rewrite;
use super::super::{fused, node};

/// Packs the constant right-hand sides of products.
pub(super) fn pack(module: &mut Module, block: BlockId) {
    let (mut rewrite, old) = Rewrite::new(module, block);
    for &op in &old {
        let made = match node::name(rewrite.module, op) {
            "dot" => matmul(&mut rewrite, op),
            "onnx.Gemm" => gemm(&mut rewrite, op),
            _ => None,
        };
        if made.is_none() {
            rewrite.keep(op);
        }
    }
    rewrite.finish(&old);
}

/// Returns the extents of a constant matrix of `f32`.
fn matrix(module: &Module, value: ValueId) -> Option<[i64; 2]> {
    let dense = node::constant(module, value)?;
    let shape: [i64; 2] = dense.shape().try_into().ok()?;
    (*dense.element_type() == Type::F32 && shape.iter().all(|n| *n > 0)).then_some(shape)
}

fn matmul(rewrite: &mut Rewrite<'_>, op: OpId) -> Option<()> {
    let module = &*rewrite.module;
    let (left, right) = (node::operand(module, op, 0)?, node::operand(module, op, 1)?);
    matrix(module, right)?;
    let is_turned = |name| node::int(module, op, name, 0) != 0;
    if is_turned("transpose_a") {
        return None;
    }
    let transposed = is_turned("transpose_b");
    // A list on the left would have a dimension less in the result.
    let rank = node::shape(module, left)?.len();
    if rank < 2 || !node::is_f32(module, left) {
        return None;
    }
    product(rewrite, op, [left, right], None, transposed);
    Some(())
}

fn gemm(rewrite: &mut Rewrite<'_>, op: OpId) -> Option<()> {
    let module = &*rewrite.module;
    let (left, right) = (node::operand(module, op, 0)?, node::operand(module, op, 1)?);
    let extents = matrix(module, right)?;
    let transposed = node::int(module, op, "transB", 0) != 0;
    let is_plain = node::int(module, op, "transA", 0) == 0
        && node::float(module, op, "alpha", 1.0) == 1.0
        && node::float(module, op, "beta", 1.0) == 1.0;
    // A packed product would take more dimensions, which the operator does not.
    let is_matrix = node::shape(module, left).is_some_and(|shape| shape.len() == 2);
    if !is_plain || !is_matrix || !node::is_f32(module, left) {
        return None;
    }
    let n = if transposed { extents[0] } else { extents[1] };
    let bias = node::operand(module, op, 2);
    if bias.is_some_and(|bias| !is_bias(module, bias, n)) {
        return None;
    }
    product(rewrite, op, [left, right], bias, transposed);
    Some(())
}

/// Returns whether a constant has an element for each of `n` columns, or one for all.
fn is_bias(module: &Module, value: ValueId, n: i64) -> bool {
    let Some(dense) = node::constant(module, value) else {
        return false;
    };
    let shape = dense.shape();
    let leading = shape.len().saturating_sub(1);
    *dense.element_type() == Type::F32
        && shape.len() <= 2
        && shape[..leading].iter().all(|extent| *extent == 1)
        && shape.last().is_none_or(|last| [1, n].contains(last))
}

fn product(
    rewrite: &mut Rewrite<'_>,
    op: OpId,
    factors: [ValueId; 2],
    bias: Option<ValueId>,
    transposed: bool,
) {
    let factors = factors.map(|factor| rewrite.mapped(factor));
    let bias = bias.map(|bias| rewrite.mapped(bias));
    let state = fused::matmul(rewrite, op, factors, bias, transposed);
    super::replace(rewrite, op, state);
}

/// Fuses biases and residuals with the products and convolutions before them.
pub(super) fn attach(module: &mut Module, block: BlockId) {
    let mut kept: Vec<OpId> = Vec::new();
    for op in module.block(block).operations().to_vec() {
        let done = match node::name(module, op) {
            // Of more or fewer operands it is neither.
            "add" | "onnx.Sum" => {
                bias(module, &mut kept, op).or_else(|| residual(module, &kept, op))
            }
            _ => None,
        };
        match done {
            None => kept.push(op),
            Some(value) => {
                let result = module.op(op).results()[0];
                module.replace_all_uses(result, value);
                module.set_operands(op, &[]);
            }
        }
    }
    module.set_operations(block, kept);
}

/// Returns the product or convolution that makes a value, if that has one user, and nothing is fused with it yet.
fn open_product(module: &Module, value: ValueId) -> Option<OpId> {
    fused::fusable_producer(module, value).filter(|op| fused::has_no_epilogue(module, *op))
}

fn bias(module: &mut Module, kept: &mut [OpId], op: OpId) -> Option<ValueId> {
    let &[left, right] = module.op(op).operands() else {
        return None;
    };
    for (product, bias) in [(left, right), (right, left)] {
        let Some(made) = open_product(module, product) else {
            continue;
        };
        let is_open = |place| node::operand(module, made, place).is_none();
        let is_plain = is_open(fused::BIAS) && is_open(fused::ADDED);
        if !fused::is(module, made, fused::MATMUL) || !is_plain {
            continue;
        }
        let n = *node::shape(module, product)?.last()?;
        let [own, rank] = [bias, product].map(|value| node::shape(module, value));
        if own?.len() > rank?.len() || !is_bias(module, bias, n) || n < 1 {
            continue;
        }
        module.set_operand(made, fused::BIAS, bias);
        // The constant may stand behind the product, which takes it now.
        let position = |op: OpId| kept.iter().rposition(|other| *other == op);
        let constant = module.defining_op(bias).and_then(position);
        if let (Some(from), Some(to)) = (constant, position(made))
            && from > to
        {
            kept[to..=from].rotate_right(1);
        }
        return Some(product);
    }
    None
}

/// Fuses an addition of two values that certainly have one shape.
fn residual(module: &mut Module, kept: &[OpId], op: OpId) -> Option<ValueId> {
    let &[left, right] = module.op(op).operands() else {
        return None;
    };
    if left == right || !same_shape(module, left, right) {
        return None;
    }
    // The later one gets the sum: what it adds is there by then.
    let position = |value: ValueId| {
        let op = module.defining_op(value)?;
        kept.iter().rposition(|other| *other == op)
    };
    let mut pairs = [(left, right), (right, left)];
    pairs.sort_by_key(|(product, _)| std::cmp::Reverse(position(*product)));
    for (product, other) in pairs {
        let Some(made) = open_product(module, product) else {
            continue;
        };
        let is_plain = node::operand(module, made, fused::ADDED).is_none();
        if !is_plain || position(other) > position(product) || !node::is_f32(module, other) {
            continue;
        }
        module.set_operand(made, fused::ADDED, other);
        return Some(product);
    }
    None
}

/// Returns whether two values have the same shape in every call.
fn same_shape(module: &Module, left: ValueId, right: ValueId) -> bool {
    let extents = [left, right].map(|value| node::extents(module, value));
    matches!(extents, [Some(a), Some(b)] if a == b)
}

/// Fuses programs of one input with the products and convolutions before them, as their epilogues.
pub(super) fn absorb(module: &mut Module, block: BlockId) {
    let mut kept: Vec<OpId> = Vec::new();
    for op in module.block(block).operations().to_vec() {
        match epilogue(module, op) {
            None => kept.push(op),
            Some((made, steps)) => {
                let [value, result] = [made, op].map(|op| module.op(op).results()[0]);
                module.set_attribute(made, fused::EPILOGUE, steps);
                module.replace_all_uses(result, value);
                module.set_operands(op, &[]);
            }
        }
    }
    module.set_operations(block, kept);
}

/// Returns the product or convolution before a program, and the program's steps.
fn epilogue(module: &Module, op: OpId) -> Option<(OpId, Attribute)> {
    let &[value] = module.op(op).operands() else {
        return None;
    };
    let made =
        fused::fusable_producer(module, value).filter(|op| fused::has_no_epilogue(module, *op))?;
    let &[result] = module.op(op).results() else {
        return None;
    };
    let fits = fused::is(module, op, fused::ELEMENTWISE)
        && node::is_f32(module, value)
        && node::is_f32(module, result);
    module
        .op(op)
        .attribute("steps")
        .filter(|_| fits)
        .map(|steps| (made, steps.clone()))
}
