//! `canonicalize`: the simplifications that the original's pass of this name makes, until nothing changes.
//!
//! Constants are folded, merges of chains simplified and dead operations removed
//! until nothing changes. Folding comes first since it makes dead operations;
//! one more round is needed only where a dead operation kept a chain in use.

use tfrt_ir::{Diagnostics, Module};

use super::{dce, fold, merge_chains};
use crate::pipeline::{Pass, PassFn, Property};

pub(crate) const PASS: Pass = Pass {
    name: "canonicalize",
    summary: "Runs dce, merge-chains and fold until nothing changes",
    needs: &[],
    gives: &[],
    breaks: &[Property::Streams],
    run: PassFn::Plain(run),
};

fn run(module: &mut Module, diagnostics: &mut Diagnostics) {
    dce::run(module, diagnostics);
    fold::run(module, diagnostics);
    while merge_chains::simplify(module) {
        dce::run(module, diagnostics);
    }
    dce::run(module, diagnostics);
}
