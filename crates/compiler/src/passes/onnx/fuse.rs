//! `onnx-fuse`: products by packed matrices, what follows products and convolutions done with them, and
//! chains of elementwise functions as one kernel.
//!
//! What is fused is rounded as it is one after the other, but for products whose bias, residual and
//! activation are done while the sums are in registers.

mod elementwise;
mod product;

use tfrt_ir::{Diagnostics, Module};

use super::graphs;
use crate::pipeline::Pass;

pub(crate) const PASS: Pass = Pass {
    name: "onnx-fuse",
    summary: "Packs matrices, and fuses what follows them and chains of elementwise functions",
    needs: &[],
    gives: &[],
    breaks: &[],
    run,
};

pub(super) fn run(module: &mut Module, _: &mut Diagnostics) {
    for (_, block) in graphs(module) {
        product::pack(module, block);
        product::attach(module, block);
        super::rewrite::remove_unused(module, block);
        elementwise::fuse(module, block);
        super::rewrite::remove_unused(module, block);
    }
}

#[cfg(test)]
mod tests;
