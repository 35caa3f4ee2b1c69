//! Sets of attributes as values, for tests.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tfrt_host::kernel::{Attr, AttributeView, KernelRegistry};
use tfrt_host::{Chain, Error, ExecutionContext, Heap, Value};

use super::decode::decode;
use crate::attributes::{FrozenOpAttrs, OpAttrs};

pub(super) fn register(registry: &mut KernelRegistry) {
    registry
        .add("corert.create_op_attrs", create)
        .add("tfrt_test.corert.op_attrs_print", print)
        .add("tfrt_test.corert.op_attrs_freeze", freeze)
        .add("tfrt_test.corert.op_attrs_ref_print", print_frozen);
    for kind in [
        "bool",
        "i32",
        "f32",
        "dtype",
        "dense",
        "aggregate",
        "shape",
        "str",
    ] {
        registry.add(&format!("corert.op_attrs_set.{kind}"), set);
    }
    for kind in ["i32", "i64", "f32"] {
        registry.add(&format!("corert.op_attrs_set_array.{kind}"), set);
    }
}

/// A set that kernels change.
#[derive(Clone, Debug)]
struct Attributes(Arc<Mutex<OpAttrs>>);

impl Attributes {
    fn lock(&self) -> MutexGuard<'_, OpAttrs> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Value for Attributes {
    const NAME: &'static str = "!corert.opattrs";
    type Storage = Heap;
}

impl Value for FrozenOpAttrs {
    const NAME: &'static str = "!corert.opattrs_ref";
    type Storage = Heap;
}

/// `%a = "corert.create_op_attrs"()`
fn create() -> Attributes {
    Attributes(Arc::default())
}

/// `%c1 = "corert.op_attrs_set.i32"(%a, %c0) {key = "n", value = 1 : i32}`: a name that is there keeps its value.
fn set(
    attributes: &Attributes,
    _: Chain,
    key: Attr<&str>,
    value: Attr<AttributeView<'_>>,
) -> Result<Chain, Error> {
    let decoded = decode(*value);
    let value = decoded.ok_or_else(|| {
        let key = key.escape_debug();
        Error::invalid_argument(format!(
            "attribute '{key}': operations have no such attributes"
        ))
    })?;
    let _present = attributes.lock().set_named(*key, value);
    Ok(Chain)
}

/// `%c1 = "tfrt_test.corert.op_attrs_print"(%a, %c0)`
fn print(attributes: &Attributes, _: Chain, execution: &ExecutionContext) -> Chain {
    let text = attributes.lock().as_ref().to_string();
    execution.host().output().print(format_args!("{text}\n"));
    Chain
}

/// `%r, %c1 = "tfrt_test.corert.op_attrs_freeze"(%a, %c0)`
fn freeze(attributes: &Attributes, _: Chain) -> (FrozenOpAttrs, Chain) {
    (attributes.lock().freeze(), Chain)
}

/// `%c1 = "tfrt_test.corert.op_attrs_ref_print"(%r, %c0)`
fn print_frozen(attributes: &FrozenOpAttrs, _: Chain, execution: &ExecutionContext) -> Chain {
    let text = attributes.as_ref().to_string();
    execution.host().output().print(format_args!("{text}\n"));
    Chain
}
