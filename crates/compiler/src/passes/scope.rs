//! The functions and blocks that passes work on.
//!
//! Modules marked `tfrt.compiled` hold text for kernels and are none of our
//! business; regions of several blocks do not become functions.

use tfrt_ir::{BlockId, Module, OpId, ValueId};

/// Returns the functions of a module in order, native ones included.
pub(crate) fn functions(module: &Module) -> Vec<OpId> {
    module
        .children(module.top())
        .filter(|&op| *module.op(op).name() == "func.func")
        .collect()
}

/// Returns the only block of each region of an operation.
pub(crate) fn region_blocks(module: &Module, op: OpId) -> Vec<BlockId> {
    let regions = module.op(op).regions().iter();
    let single = regions.filter_map(|&region| match module.region(region).blocks() {
        &[block] => Some(block),
        _ => None,
    });
    single.collect()
}

/// Returns the blocks of all functions and of the regions in them, each before
/// those inside it.
pub(crate) fn blocks(module: &Module) -> Vec<BlockId> {
    let mut blocks = Vec::new();
    let mut open: Vec<BlockId> = Vec::new();
    for function in functions(module) {
        open.extend(region_blocks(module, function).into_iter().rev());
        while let Some(block) = open.pop() {
            blocks.push(block);
            for &op in module.block(block).operations().iter().rev() {
                let data = module.op(op);
                if !data.regions().is_empty() && *data.name() != "builtin.module" {
                    open.extend(region_blocks(module, op).into_iter().rev());
                }
            }
        }
    }
    blocks
}

/// Returns whether an operation has no effects, and equal operands give equal results; false for one without an
/// entry.
pub(crate) fn is_pure(module: &Module, op: OpId) -> bool {
    let data = module.op(op);
    let definition = tfrt_ir::dialect::describe(data.name());
    definition.is_some_and(|definition| definition.is(tfrt_ir::dialect::Traits::PURE))
        && data.regions().is_empty()
        && data.successors().is_empty()
        && data.attribute("bef.nonstrict").is_none()
}

/// Returns whether nothing uses a result of an operation.
pub(crate) fn is_unused(module: &Module, op: OpId) -> bool {
    let results = module.op(op).results();
    results.iter().all(|&result| module.is_unused(result))
}

/// Replaces the results of an operation by other values.
pub(crate) fn replace(module: &mut Module, op: OpId, values: &[ValueId]) {
    let results = module.op(op).results().to_vec();
    for (&old, &new) in results.iter().zip(values) {
        module.replace_all_uses(old, new);
    }
}

/// Erases operations of a block for which `keep` is false; their results must be unused.
pub(crate) fn retain(module: &mut Module, block: BlockId, keep: impl Fn(OpId) -> bool) {
    let operations = module.block(block).operations().to_vec();
    let (kept, gone): (Vec<OpId>, Vec<OpId>) = operations.into_iter().partition(|&op| keep(op));
    if gone.is_empty() {
        return;
    }
    module.set_operations(block, kept);
    for op in gone {
        module.erase(op);
    }
}
