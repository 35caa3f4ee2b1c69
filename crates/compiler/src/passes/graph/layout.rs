//! `graph-layout`: moves the channels of images to the last dimension, for convolutions and pools.
//!
//! A convolution by constant weights becomes a kernel that has them packed; it takes and gives images
//! `[batch, height, width, channels]`. What is made so stays so: operations that don't care how dimensions
//! lie, or can be told, take it as it is, and only where one does care is it transposed back. So a network
//! of convolutions is transposed where images come in, and where they end.

mod affine;
pub(in crate::passes) mod images;
mod quantized;
mod rules;

pub(super) use affine::{known_statistics, statistics};

use tfrt_ir::{Diagnostics, Module};

use super::{fused, graphs, inner_first};
use crate::legalize::Context;
use crate::pipeline::{Pass, PassFn};

pub(crate) const PASS: Pass = Pass {
    name: "graph-layout",
    summary: "Packs filters, and lets images lie with their channels last",
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
    for (_, block) in graphs(module) {
        for block in inner_first(module, block) {
            rules::block(module, block);
            super::rewrite::remove_unused(module, rows, block);
        }
    }
}

#[cfg(test)]
mod tests;
