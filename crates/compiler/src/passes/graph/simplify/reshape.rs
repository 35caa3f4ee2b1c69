//! Changes of shape, moved behind the products and sums before which they stand, and stated by constants.
//!
//! Exporters write a product of a tensor and a matrix as one of two matrices, with a change of shape before and behind it,
//! and calculate extents for that in each call. Heads of attention are split off before biases are added.

use tfrt_ir::attributes::DenseAttribute;
use tfrt_ir::{OpId, OpState, Type, ValueId};
use tfrt_ops::{Dim, Dims, Traits};

use super::super::{node, pointwise};
use super::{ShapeList, Simplify};

/// Rewrites a change of shape, or a pointwise operation on one and a constant.
pub(super) fn moved(simplify: &mut Simplify<'_>, op: OpId) -> Option<ValueId> {
    match node::name(simplify.rewrite.module, op) {
        "reshape" => reshape(simplify, op),
        "add" | "sub" | "mul" | "div" => pointwise_behind(simplify, op),
        _ => None,
    }
}

fn reshape(simplify: &mut Simplify<'_>, op: OpId) -> Option<ValueId> {
    let result = simplify.rewrite.module.op(op).results()[0];
    let to = simplify.dims.get(&result)?.clone();
    let x = simplify.operand(op, 0)?;
    let source = source(simplify, x);
    let from = simplify.dims.get(&source)?.clone();
    let is_known = |dims: &Dims| !dims.iter().any(Dim::is_unknown);
    if from == to && is_known(&to) {
        return Some(source);
    }
    if let Some(product) = product(simplify, x, &to) {
        return Some(product);
    }
    let shape = node::operand(simplify.rewrite.module, op, 1)?;
    let is_constant = node::constant(simplify.rewrite.module, shape).is_some();
    if is_constant && source == x {
        return None;
    }
    let list = ShapeList::new(&from, &to, 0)?;
    simplify.reshape(source, &list, to, op)
}

/// Returns the value of which another one is a view.
fn source(simplify: &Simplify<'_>, mut value: ValueId) -> ValueId {
    let module = &*simplify.rewrite.module;
    while let Some(op) = module.defining_op(value) {
        let is_view = !node::name(module, op).is_empty()
            && module.op(op).results().len() == 1
            && node::row(module, op).is_some_and(|row| row.is(Traits::VIEW));
        match simplify.operand(op, 0) {
            Some(before) if is_view && simplify.dims.contains_key(&before) => value = before,
            _ => break,
        }
    }
    value
}

/// Matches a product of a tensor, made a matrix, and a matrix, whose rows get the tensor's dimensions back; returns the
/// product of the tensor.
fn product(simplify: &mut Simplify<'_>, x: ValueId, to: &Dims) -> Option<ValueId> {
    let dot = simplify.alone(x, "dot")?;
    let module = &*simplify.rewrite.module;
    if node::int(module, dot, "transpose_a", 0) != 0 {
        return None;
    }
    let (left, right) = (simplify.operand(dot, 0)?, simplify.operand(dot, 1)?);
    let tensor = source(simplify, left);
    let [dims, matrix, weights] =
        [tensor, left, right].map(|value| simplify.dims.get(&value).cloned());
    let (dims, matrix, weights) = (dims?, matrix?, weights?);
    let (last, rows) = dims.split_last()?;
    let fits = weights.len() == 2
        && tensor != left
        && !rows.is_empty()
        && !to.iter().any(Dim::is_unknown)
        && !last.is_unknown()
        && matrix.last() == Some(last)
        && to.split_last().is_some_and(|(_, own)| own == rows)
        && to.last() == simplify.dims.get(&x)?.last();
    if !fits {
        return None;
    }
    let element = node::element(module.value_type(x))?;
    let mut state = OpState::new("graph.dot").operands([tensor, right]);
    if let Some(turned) = module.op(dot).attribute("transpose_b") {
        state = state.attribute("transpose_b", turned.clone());
    }
    Some(simplify.add(state, to.clone(), &element, dot))
}

/// Moves a pointwise operation with a constant before the split of the last dimension of a product.
fn pointwise_behind(simplify: &mut Simplify<'_>, op: OpId) -> Option<ValueId> {
    let module = &*simplify.rewrite.module;
    let [a, b] = *module.op(op).operands() else {
        return None;
    };
    let [a, b] = [a, b].map(|value| simplify.rewrite.mapped(value));
    let constants = [a, b].map(|value| node::constant(module, value).is_some());
    let x = match constants {
        [false, true] => a,
        [true, false] => b,
        _ => return None,
    };
    let constant = node::constant(module, if constants[0] { a } else { b })?;
    let split = simplify.alone(x, "reshape")?;
    let y = simplify.operand(split, 0)?;
    let dot = module.defining_op(y)?;
    let is_product = node::name(module, dot) == "dot"
        || pointwise::of_name(node::name(module, dot)).is_some() && is_of_product(simplify, dot);
    let (from, to) = (simplify.dims.get(&y)?, simplify.dims.get(&x)?);
    let (last, rows) = from.split_last()?;
    let parts = to.strip_prefix(rows)?;
    let sizes: Vec<i64> = parts.iter().map(Dim::value).collect::<Option<_>>()?;
    let width = sizes
        .iter()
        .try_fold(1_i64, |n, size| n.checked_mul(*size))?;
    let is_split = is_product
        && !rows.iter().any(Dim::is_unknown)
        && parts.len() > 1
        && last.value() == Some(width)
        && simplify.n_users(y) == 1;
    let shape = constant.shape();
    let n_ones = shape.iter().take_while(|size| **size == 1).count();
    let is_column = shape.len() <= to.len()
        && (shape[n_ones..] == sizes[..] || constant.n_elements() == Some(1));
    if !is_split || !is_column {
        return None;
    }
    let width = if constant.n_elements() == Some(1) {
        1
    } else {
        width
    };
    let element = constant.element_type().clone();
    let dense = DenseAttribute {
        ty: Type::tensor(vec![width], element.clone()),
        ..constant.clone()
    };
    let (from, to) = (from.clone(), to.clone());
    let list = ShapeList::new(&from, &to, 0)?;
    let name = module.op(op).name().clone();
    let column = simplify.rewrite.constant(dense, op);
    let operands = if constants[0] {
        [column, y]
    } else {
        [y, column]
    };
    let made = simplify.add(OpState::new(name).operands(operands), from, &element, op);
    simplify.reshape(made, &list, to, op)
}

/// Returns whether a pointwise operation takes a product, possibly after others.
fn is_of_product(simplify: &Simplify<'_>, op: OpId) -> bool {
    let module = &*simplify.rewrite.module;
    let x = module.op(op).operands().first();
    let maker = x.and_then(|x| module.defining_op(*x));
    maker.is_some_and(|maker| node::name(module, maker) == "dot")
}
