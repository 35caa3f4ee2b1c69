//! Checks the element types of operands against the signatures of rows, as far as the types are known.
//!
//! A signature says of each operand which types it may have, and which operands have one type: both factors of a product,
//! a tensor of bytes and its zero point. Lowering checks operations that become the kernel of a row of `graph`; this check
//! is for all of a model, before passes fold, fuse and quantize them.

use tfrt_ir::{Diagnostics, Module, OpId};
use tfrt_ops::{OpDef, Table, names};

use super::attrs::OpAttrs;
use super::{GRAPH, graphs, inner_first, is_library, lower};
use crate::graph::operand_types;

/// Adds an error for each operand of a model's operations whose type does not fit.
pub(super) fn check(module: &Module, rows: &Table, diagnostics: &mut Diagnostics) {
    for (_, body) in graphs(module) {
        for block in inner_first(module, body) {
            for &op in module.block(block).operations() {
                if let Some(row) = row_of(module, rows, op) {
                    let errors = operand_types(module, op, &row);
                    errors.into_iter().for_each(|error| diagnostics.push(error));
                }
            }
        }
    }
}

/// Returns the row of an operation, if it has one in the version that the model states.
fn row_of(module: &Module, rows: &Table, op: OpId) -> Option<OpDef> {
    let name = module.op(op).name();
    if let Some(name) = name.strip_prefix("onnx.") {
        // Where no version is stated, it is the newest.
        let version = lower::stated_opset(module, op).unwrap_or(i64::MAX);
        let attributes = OpAttrs { module, op };
        return names::onnx::find(name, version, &attributes).map(|found| *found.op);
    }
    match name.strip_prefix(GRAPH) {
        Some(name) => rows.find(name),
        None if is_library(name) => rows.find(name),
        None => rows.find_added(name),
    }
}
