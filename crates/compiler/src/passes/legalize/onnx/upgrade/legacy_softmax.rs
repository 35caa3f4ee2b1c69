//! Expands `Softmax` and `LogSoftmax` before version 13, which take the dimensions from `axis` on as one.
//!
//! Its operand becomes a matrix, whose rows are what is normalised, and gets its extents back. Of the last dimension both
//! forms say the same.

use tfrt_ir::{Attribute, Module, OpId, ValueId};

use super::expansion::{Expansion, integer};
use super::lower;
use crate::passes::graph::node;

/// The version from which on one dimension is taken.
const ONE_DIMENSION: i64 = 13;

/// Returns whether an operation is of such a version and name.
pub(super) fn is_one(module: &Module, op: OpId) -> bool {
    let name = module.op(op).name().as_str();
    ["onnx.Softmax", "onnx.LogSoftmax"].contains(&name) && lower::opset(module, op) < ONE_DIMENSION
}

/// Makes the operations; returns the result.
pub(super) fn make(here: &mut Expansion<'_>) -> Option<Vec<ValueId>> {
    let name = here.module.op(here.like).name().clone();
    let name = name.strip_prefix("onnx.")?;
    let x = node::operand(here.module, here.like, 0)?;
    let axis = here.module.op(here.like).attribute("axis");
    let axis = axis.and_then(Attribute::as_i64).unwrap_or(1);
    let rank = node::shape(here.module, x).and_then(|shape| i64::try_from(shape.len()).ok());
    let last = [("axis", integer(-1))];
    let is_last = axis == -1 || rank.is_some_and(|rank| axis == rank - 1);
    let made = if is_last {
        here.add(name, &[x], &last)
    } else {
        let extents = here.add("Shape", &[x], &[]);
        let rows = here.add("Flatten", &[x], &[("axis", integer(axis))]);
        let made = here.add(name, &[rows], &last);
        here.add("Reshape", &[made, extents], &[])
    };
    here.state_type(made, 0);
    Some(vec![made])
}
