//! `assign-streams` and `print-streams`: make the stream analysis visible.
//!
//! Compilation finds streams by itself, unless the operation around a block states
//! them; then it takes those. So `assign-streams` fixes what analysis finds now:
//! later changes of costs or thresholds do not matter any more.

use std::sync::Arc;

use tfrt_ir::{
    Attribute, BlockId, Diagnostic, Diagnostics, Module, OpId, Type,
    attributes::DenseArrayAttribute,
};

use super::scope;
use crate::{
    codes,
    pipeline::{Pass, PassFn, Property},
    streams::{Stream, StreamAnalysis},
};

/// The attribute that states the streams of an operation's regions, which compilation reads.
const STREAMS: &str = "_tfrt_streams";

pub(crate) const ASSIGN: Pass = Pass {
    name: "assign-streams",
    summary: "States the streams that analysis finds as attributes, which compilation takes",
    needs: &[Property::Sequenced],
    gives: &[Property::Streams],
    breaks: &[],
    run: PassFn::Plain(assign),
};

pub(crate) const PRINT: Pass = Pass {
    name: "print-streams",
    summary: "Remarks on the stream of each function and operation",
    needs: &[Property::Sequenced],
    gives: &[],
    breaks: &[],
    run: PassFn::Plain(print),
};

fn assign(module: &mut Module, _: &mut Diagnostics) {
    for function in scope::functions(module) {
        let mut owners = Vec::new();
        module.walk_pre_order(function, &mut |op| owners.push(op));
        for owner in owners {
            let blocks = scope::region_blocks(module, owner);
            if blocks.is_empty() || blocks.len() != module.op(owner).regions().len() {
                continue;
            }
            let lists = blocks.iter().map(|&block| ids(module, block)).collect();
            module.set_attribute(owner, STREAMS, Attribute::array(lists));
        }
    }
}

/// Returns the stream of a block's entry, then that of each operation but the
/// last, the return.
fn ids(module: &Module, block: BlockId) -> Attribute {
    let streams = StreamAnalysis::new(module, block);
    let operations = module.block(block).operations().iter().enumerate();
    let kernels = operations.filter(|(_, op)| *module.op(**op).name() != "tfrt.return");
    let ids = std::iter::once(streams.root().id)
        .chain(kernels.map(|(position, _)| streams.stream(position).id));
    let bytes: Vec<u8> = ids.flat_map(|id| i64::from(id).to_le_bytes()).collect();
    Attribute::DenseArray(Arc::new(DenseArrayAttribute {
        element: Type::I64,
        bytes: bytes.into(),
    }))
}

fn print(module: &mut Module, diagnostics: &mut Diagnostics) {
    for function in scope::functions(module) {
        for block in scope::region_blocks(module, function) {
            let streams = StreamAnalysis::new(module, block);
            diagnostics.push(remark(module, function, streams.root()));
            for (position, &op) in module.block(block).operations().iter().enumerate() {
                diagnostics.push(remark(module, op, streams.stream(position)));
            }
        }
    }
}

fn remark(module: &Module, op: OpId, stream: Stream) -> Diagnostic {
    let Stream { id, cost, parent } = stream;
    let parent = parent.map_or(-1, i64::from);
    let message = format!("stream id: {id}, stream cost: {cost}, parent stream: {parent}");
    module.place(Diagnostic::remark(codes::STREAM, message), op)
}
