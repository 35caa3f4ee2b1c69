//! `graph-fuse`: packs constant matrices, fuses products and convolutions with their epilogues, and chains of
//! elementwise functions to one kernel.
//!
//! What is fused is rounded as it is one after the other, but for products whose bias, residual and
//! activation are done while the sums are in registers, or whose columns are multiplied by constants, and for what
//! exporters write out of many operations and has a kernel of its own: an activation, layer normalisation, attention. These
//! are found by what is calculated, not by names; where any part is of another form, or is used by somebody else, nothing
//! is done.

mod attention;
mod cached_attention;
mod channel_affine;
mod concat_conv;
mod elementwise;
mod fold_affine;
mod folded_norm;
mod gelu;
mod layer_norm;
mod product;
mod row_mean;
mod softmax;

use tfrt_ir::{BlockId, Diagnostics, Module, OpId, OpState};

use super::rewrite::Rewrite;
use super::{fused, graphs, inner_first};
use crate::legalize::Context;
use crate::pipeline::{Pass, PassFn};

pub(crate) const PASS: Pass = Pass {
    name: "graph-fuse",
    summary: "Packs matrices, and fuses what follows them, attention, and chains of elementwise functions",
    needs: &[],
    gives: &[],
    breaks: &[],
    run: PassFn::WithContext(run),
};

pub(super) fn run(module: &mut Module, context: &Context<'_>, _: &mut Diagnostics) {
    if !fused::are_available(context) {
        return;
    }
    let rows = &context.dialects.rows;
    let functions = graphs(module).into_iter();
    let blocks: Vec<BlockId> = functions
        .flat_map(|(_, block)| inner_first(module, block))
        .collect();
    for block in blocks {
        softmax::recognise(module, block);
        gelu::recognise(module, block);
        layer_norm::recognise(module, block);
        folded_norm::recognise(module, block);
        // Scores have other users until nothing is left of a softmax of many operations.
        super::rewrite::remove_unused(module, rows, block);
        attention::recognise(module, block);
        cached_attention::recognise(module, block);
        super::rewrite::remove_unused(module, rows, block);
        product::pack(module, block);
        fold_affine::fold(module, block);
        product::attach(module, block);
        channel_affine::fuse(module, block);
        concat_conv::fuse(module, block);
        super::rewrite::remove_unused(module, rows, block);
        elementwise::fuse(module, block, context.evaluator);
        product::absorb(module, block);
        super::rewrite::remove_unused(module, rows, block);
    }
}

/// Appends an operation that replaces another one's only result.
fn replace(rewrite: &mut Rewrite<'_>, op: OpId, state: OpState) {
    let result = rewrite.module.op(op).results()[0];
    let mut state = state.result(rewrite.module.value_type(result).clone());
    if let Some(shapes) = rewrite.module.op(op).attribute("model.shapes") {
        state = state.attribute("model.shapes", shapes.clone());
    }
    let made = rewrite.add(state, op);
    rewrite.values.insert(result, made);
}

#[cfg(test)]
mod tests;
