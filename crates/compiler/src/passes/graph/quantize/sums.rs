//! `graph-quantize-sums`: makes one kernel of the sum of two quantised tensors, `quantize(dequantize(a) + dequantize(b))`,
//! with the same bits.
//!
//! It runs behind `graph-layout`, which moves channels past sums of floats.

use tfrt_ir::{Attribute, BlockId, Diagnostics, Module, OpId, OpState, ValueId};

use super::super::rewrite::{self, Rewrite, list};
use super::super::{fused, graphs, inner_first, node};
use super::{Scaled, below_activations};
use crate::legalize::Context;
use crate::pipeline::{Pass, PassFn};

pub(crate) const PASS: Pass = Pass {
    name: "graph-quantize-sums",
    summary: "Adds quantised tensors as integers, in one kernel",
    needs: &[],
    gives: &[],
    breaks: &[],
    run: PassFn::WithContext(run),
};

fn run(module: &mut Module, context: &Context<'_>, _: &mut Diagnostics) {
    if !fused::are_available(context) {
        return;
    }
    for (_, body) in graphs(module) {
        for block in inner_first(module, body) {
            self::block(module, block);
            rewrite::remove_unused(module, &context.dialects.rows, block);
        }
    }
}

/// Replaces the sums of a block.
fn block(module: &mut Module, block: BlockId) {
    let (mut rewrite, old) = Rewrite::new(module, block);
    for &op in &old {
        let Some(Sum { operands, by }) = sum(rewrite.module, op) else {
            rewrite.keep(op);
            continue;
        };
        let operands = operands.map(|value| rewrite.mapped(value));
        let mut state = OpState::new(fused::QADD).operands(operands);
        for (name, (scale, _)) in ["scale_a", "scale_b", "scale_y"].into_iter().zip(by) {
            #[expect(clippy::cast_possible_truncation, reason = "they were `f32`")]
            let scale = scale as f32;
            state = state.attribute(name, Attribute::f32(scale));
        }
        let state = state.attribute("zeros", list(&by.map(|(_, zero)| zero)));
        super::replace(&mut rewrite, op, state);
    }
    rewrite.finish(&old);
}

/// A sum of two tensors of bytes.
struct Sum {
    operands: [ValueId; 2],
    /// Scales and zero points of both, and of the result.
    by: [(f64, i64); 3],
}

/// Matches a sum at the operation that quantises it.
fn sum(module: &Module, op: OpId) -> Option<Sum> {
    if node::name(module, op) != "quantize" {
        return None;
    }
    let to = Scaled::of(module, op, module.op(op).results()[0])?;
    let add = below_activations(module, node::operand(module, op, 0)?, &to)?;
    if node::name(module, add) != "add" {
        return None;
    }
    let &[a, b] = module.op(add).operands() else {
        return None;
    };
    let is_alike = node::extents(module, a)? == node::extents(module, b)?;
    let [a, b] = [a, b].map(|value| Scaled::read(module, value));
    let (a, b) = (a?, b?);
    let fits = is_alike && a.dtype == to.dtype && b.dtype == to.dtype;
    fits.then_some(Sum {
        operands: [a.bytes, b.bytes],
        by: [a.numbers, b.numbers, to.numbers],
    })
}
