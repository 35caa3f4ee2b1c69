//! The passes, one file each, and the list of them all.

mod canonicalize;
mod cse;
mod dce;
mod fold;
mod graph;
mod inline;
mod legalize;
mod merge_chains;
mod scope;
mod sequence;
mod streams;
#[cfg(test)]
mod testing;

use crate::pipeline::Pass;

pub(crate) use graph::attrs::OpAttrs;
pub(crate) use graph::attrs::dtype;
pub(crate) use graph::node::element;
pub(crate) use graph::{GRAPH, PREPARED, prepared};
pub(crate) use legalize::tf;

/// All passes, sorted by name.
pub(crate) const ALL: &[&Pass] = &[
    &streams::ASSIGN,
    &canonicalize::PASS,
    &cse::PASS,
    &dce::PASS,
    &fold::PASS,
    &graph::bf16::PASS,
    &graph::fold::PASS,
    &graph::fuse::PASS,
    &graph::infer::PASS,
    &graph::layout::PASS,
    &graph::lower::PASS,
    &graph::place::PASS,
    &graph::prepare::PASS,
    &graph::quantize::PASS,
    &graph::quantize::sums::PASS,
    &graph::section::PASS,
    &graph::simplify::PASS,
    &graph::store::PASS,
    &inline::PASS,
    &legalize::PASS,
    &merge_chains::PASS,
    &legalize::onnx::to_graph::PASS,
    &legalize::onnx::upgrade::PASS,
    &streams::PRINT,
    &sequence::PASS,
    &legalize::tf::to_graph::PASS,
];
