//! Passes on graphs: from operations of the dialect `graph`, and library operations, to a program of kernels.
//!
//! `docs/models.md` specifies what goes in and what comes out.

pub(super) mod attrs;
pub(super) mod bf16;
pub(super) mod calls;
mod constant;
pub(super) mod fold;
pub(super) mod fuse;
mod fused;
pub(super) mod infer;
pub(super) mod layout;
pub(super) mod lower;
mod model;
pub(super) mod node;
pub(super) mod place;
pub(super) mod pointwise;
pub(super) mod prepare;
pub(super) mod quantize;
pub(super) mod rewrite;
pub(super) mod section;
pub(super) mod simplify;
pub(super) mod store;
mod types;

use std::collections::HashSet;

use tfrt_ir::{BlockId, Module, OpId, Type};

use super::scope;

/// The prefix of operations of graphs.
pub(crate) const GRAPH: &str = "graph.";

/// The prefixes of operations that have library rows with kernels on tensors, but for ONNX's.
const LIBRARIES: [&str; 2] = ["tf.", "stablehlo."];

/// Returns whether an operation of this name has a library row, if it has any.
pub(super) fn is_library(name: &str) -> bool {
    LIBRARIES.iter().any(|prefix| name.starts_with(prefix))
}

/// The operation that prepares a kernel's constants once for all calls.
pub(super) const PREPARE: &str = "graph.prepare";

/// Returns the type of prepared constants, which are the last operand of the operation that they are prepared for.
pub(crate) fn prepared() -> Type {
    Type::dialect(PREPARED)
}

/// The name of the type of prepared constants.
pub(crate) const PREPARED: &str = "!graph.prepared";

/// The operation of an operand that is left out.
pub(in crate::passes) const NO_VALUE: &str = "graph.none";

/// The operation of a constant.
pub(super) const CONSTANT: &str = "onnx.Constant";

/// The operation of a constant whose elements stay in a file: only its type is known.
pub(super) const EXTERNAL: &str = "graph.external";

/// The operation that ends a region.
pub(super) const YIELD: &str = "graph.yield";

/// Returns the functions that hold operations of the dialect, or are called by such functions, with their only
/// blocks.
pub(super) fn graphs(module: &Module) -> Vec<(OpId, BlockId)> {
    let functions = scope::functions(module).into_iter();
    let bodies = functions.filter_map(|op| match scope::region_blocks(module, op)[..] {
        [block] => Some((op, block)),
        _ => None,
    });
    let is_ours = |op: &OpId| {
        let name = module.op(*op).name();
        let dialects = ["onnx.", GRAPH, "cpu.fused."];
        dialects.iter().any(|dialect| name.starts_with(dialect)) || is_library(name)
    };
    let called: HashSet<OpId> = calls::Calls::new(module).called().collect();
    let has_ours = |(op, block): &(OpId, BlockId)| {
        module.op(*op).attribute("model.input_names").is_some()
            || called.contains(op)
            || module.block(*block).operations().iter().any(is_ours)
    };
    bodies.filter(has_ours).collect()
}

/// Returns the blocks of all regions in a block, and the block, each behind those inside it: passes may erase operations with
/// regions.
pub(super) fn inner_first(module: &Module, block: BlockId) -> Vec<BlockId> {
    let (mut found, mut open) = (Vec::new(), vec![block]);
    while let Some(block) = open.pop() {
        found.push(block);
        for &op in module.block(block).operations() {
            open.extend(scope::region_blocks(module, op));
        }
    }
    found.reverse();
    found
}

/// Returns whether an attribute of an operation is a note of passes: a finding, or the operation's version.
fn is_note(name: &str) -> bool {
    ["onnx.", "model."]
        .iter()
        .any(|notes| name.starts_with(notes))
}

/// Returns whether an operation ends a function or region of a graph.
fn is_terminator(module: &Module, op: OpId) -> bool {
    let name = module.op(op).name().as_str();
    [YIELD, "tfrt.return", "func.return", "onnx.Return"].contains(&name)
}
