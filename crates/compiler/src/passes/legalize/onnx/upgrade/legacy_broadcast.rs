//! Expands operations before version 7, whose second operand is broadcast to dimensions of the first by an attribute.
//!
//! | Operation | Its second operand |
//! | --- | --- |
//! | `Add` and others of two operands, with `broadcast` and `axis` | has its first dimension at `axis` |
//! | `PRelu` | is of one element, or has one for each channel, dimension 1 |
//!
//! It gets dimensions of 1 behind its own, as many as the rank of the first operand says when it is known; then it is
//! broadcast as today.

use tfrt_ir::{Attribute, Module, OpId, OpState, ValueId};

use super::expansion::{Expansion, integer};
use super::{dense, lower};
use crate::passes::graph::node;

/// The version from which on operands are broadcast as NumPy does it.
const BROADCASTS: i64 = 7;

/// Operations of two operands that had the attributes `axis` and `broadcast`, under ONNX's names.
pub(super) const ALIGNED: [&str; 11] = [
    "Add", "And", "Div", "Equal", "Greater", "Less", "Mul", "Or", "Pow", "Sub", "Xor",
];

/// Returns whether an operation is of such a version and name.
pub(super) fn is_one(module: &Module, op: OpId) -> bool {
    let name = module.op(op).name();
    let name = name.strip_prefix("onnx.").unwrap_or_default();
    (name == "PRelu" || ALIGNED.contains(&name)) && lower::opset(module, op) < BROADCASTS
}

/// Makes the operations; returns the result, or `None` if it is broadcast as today.
pub(super) fn make(here: &mut Expansion<'_>) -> Option<Vec<ValueId>> {
    let name = here.module.op(here.like).name().clone();
    let x = node::operand(here.module, here.like, 0)?;
    let y = node::operand(here.module, here.like, 1)?;
    let int = |name: &str| {
        let value = here.module.op(here.like).attribute(name);
        value.and_then(Attribute::as_i64)
    };
    let aligned = match (name.as_str(), int("broadcast"), int("axis")) {
        ("onnx.PRelu", ..) => {
            let first = here.integers(&[-1]);
            let rank = rank(here, x);
            let two = here.integers(&[2]);
            let behind = here.add("Sub", &[rank, two], &[]);
            // Of a line all elements are of one channel, and of rows each is one.
            let none = here.integers(&[0]);
            let behind = here.add("Max", &[behind, none], &[]);
            behind_of(here, y, first, behind)
        }
        (_, Some(1), Some(axis @ 0..)) => {
            let own = here.add("Shape", &[y], &[]);
            let (rank, own_rank) = (rank(here, x), rank(here, y));
            let axis = here.integers(&[axis]);
            let behind = here.add("Sub", &[rank, own_rank], &[]);
            let behind = here.add("Sub", &[behind, axis], &[]);
            behind_of(here, y, own, behind)
        }
        _ => return None,
    };
    let state = OpState::new(name)
        .operands([x, aligned])
        .attribute("onnx.opset", integer(BROADCASTS));
    let result = here.module.op(here.like).results().first()?;
    let ty = here.module.value_type(*result).clone();
    Some(here.append_all(state.result(ty)))
}

/// Makes the number of dimensions, as a list of one.
fn rank(here: &mut Expansion<'_>, value: ValueId) -> ValueId {
    let extents = here.add("Shape", &[value], &[]);
    here.add("Shape", &[extents], &[])
}

/// Makes a value with these extents, and so many of 1 behind them.
fn behind_of(here: &mut Expansion<'_>, value: ValueId, own: ValueId, n: ValueId) -> ValueId {
    let ty = tfrt_ir::Type::tensor(vec![1], tfrt_ir::Type::I64);
    let one = dense(ty, vec![1_i64.to_le_bytes().to_vec()]);
    let ones = here.add("ConstantOfShape", &[n], &[("value", one)]);
    let extents = here.list(&[own, ones]);
    here.add("Reshape", &[value, extents], &[])
}
