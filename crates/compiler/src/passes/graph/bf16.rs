//! `graph-bf16`: has products and convolutions by constant weights calculated with factors of `bf16`.
//!
//! ```mlir
//! %p = "graph.prepare"(%none, %w) {op = "fused.matmul", precision = "bf16", transposed = 0 : i64} : (..) -> !graph.prepared
//! ```
//!
//! What packs the weights rounds them, and its product then rounds the other factors, if the processor has instructions for
//! that; sums, and all other functions, stay `f32`. Nothing else is changed: a model that must not lose bits is compiled
//! without this pass.

use tfrt_ir::{Attribute, Diagnostics, Module};

use super::{PREPARE, graphs, inner_first, place};
use crate::pipeline::{Pass, PassFn};

pub(crate) const PASS: Pass = Pass {
    name: "graph-bf16",
    summary: "Has products and convolutions by constant weights calculated with factors of bf16",
    needs: &[],
    gives: &[],
    breaks: &[],
    run: PassFn::Plain(run),
};

/// The preparations that pack weights which can be rounded.
const ROUNDED: [&str; 3] = ["fused.conv", "fused.joined", "fused.matmul"];

/// The attribute of the precision of factors.
const PRECISION: &str = "precision";

fn run(module: &mut Module, _: &mut Diagnostics) {
    for (_, block) in graphs(module) {
        for block in inner_first(module, block) {
            for op in module.block(block).operations().to_vec() {
                let made = module.op(op);
                let packs = made.attribute("op").and_then(Attribute::as_str);
                let is_rounded = *made.name() == PREPARE
                    && packs.is_some_and(|packs| ROUNDED.contains(&packs))
                    && !place::is_placed(module, op);
                if is_rounded {
                    module.set_attribute(op, PRECISION, Attribute::string("bf16"));
                }
            }
        }
    }
}
