//! The passes, a file each, and the list of them all.

mod canonicalize;
mod cse;
mod dce;
mod fold;
mod inline;
mod legalize;
mod merge_chains;
mod onnx;
mod scope;
mod sequence;
mod streams;
#[cfg(test)]
mod testing;

use crate::pipeline::Pass;

/// All passes, sorted by name.
pub(crate) const ALL: &[&Pass] = &[
    &streams::ASSIGN,
    &canonicalize::PASS,
    &cse::PASS,
    &dce::PASS,
    &fold::PASS,
    &inline::PASS,
    &legalize::PASS,
    &onnx::lower_graph::PASS,
    &onnx::lower::PASS,
    &merge_chains::PASS,
    &onnx::fold::PASS,
    &onnx::fuse::PASS,
    &onnx::layout::PASS,
    &onnx::names::PASS,
    &onnx::shapes::PASS,
    &onnx::store::PASS,
    &onnx::to_graph::PASS,
    &onnx::upgrade::PASS,
    &streams::PRINT,
    &sequence::PASS,
];
