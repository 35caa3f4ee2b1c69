//! `tfrt_test`: operations that stall, count, fail, measure and print for tests.
//!
//! Most are those of the original's tests, and many of those have no syntax of
//! their own.

mod asynchrony;
mod atomics;
mod benchmarks;
mod core_runtime;
mod errors;
mod faults;
mod images;
mod inspection;
pub(super) mod networks;
mod resources;
mod strings;
mod synchronous;
mod tensors;

use crate::dialect::OpDef;

pub(super) fn definitions() -> Vec<OpDef> {
    let mut all = Vec::new();
    all.extend(asynchrony::definitions());
    all.extend(atomics::definitions());
    all.extend(benchmarks::definitions());
    all.extend(core_runtime::definitions());
    all.extend(errors::definitions());
    all.extend(faults::definitions());
    all.extend(images::definitions());
    all.extend(inspection::definitions());
    all.extend(networks::definitions());
    all.extend(resources::definitions());
    all.extend(strings::definitions());
    all.extend(synchronous::definitions());
    all.extend(tensors::definitions());
    all
}

/// Returns the entries of `tfrt_test_sync`.
pub(super) fn synchronous_definitions() -> Vec<OpDef> {
    networks::synchronous_definitions()
}
