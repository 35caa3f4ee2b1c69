//! Chains: values that only order effects.

use tfrt_host::kernel::{Awaited, KernelRegistry};
use tfrt_host::{AnyAsyncValue, Chain};

pub(super) fn register(registry: &mut KernelRegistry) {
    registry
        .add("tfrt.new.chain", || Chain)
        .add("tfrt.merge.chains", merge)
        .add("tfrt.alias.value", alias);
}

/// `%c = tfrt.merge.chains %c0, %v : !tfrt.chain, i32`: waits for all operands.
fn merge(_: Awaited) -> Chain {
    Chain
}

/// `%y = "tfrt.alias.value"(%c, %x)`: the operand, once the chain is there.
fn alias(_: Chain, value: AnyAsyncValue) -> AnyAsyncValue {
    value
}
