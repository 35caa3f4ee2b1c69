//! Sets of attributes as values, for tests.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tfrt_host::kernel::{Attr, AttributeView, KernelRegistry, ScalarAttr};
use tfrt_host::{Chain, Error, ExecutionContext, Heap, Value};
use tfrt_tensor::Element;

use super::decode::decode;
use crate::attributes::{AttrValue, FrozenOpAttrs, IntoAttr, Numbers, OpAttrs};

pub(super) fn register(registry: &mut KernelRegistry) {
    registry
        .add("corert.create_op_attrs", create)
        .add("tfrt_test.corert.op_attrs_print", print)
        .add("tfrt_test.corert.op_attrs_freeze", freeze)
        .add("tfrt_test.corert.op_attrs_ref_print", print_frozen);
    registry
        .add("corert.op_attrs_set.bool", set_number::<bool>)
        .add("corert.op_attrs_set.i32", set_number::<i32>)
        .add("corert.op_attrs_set.f32", set_number::<f32>)
        .add("corert.op_attrs_set.str", set_text)
        .add("corert.op_attrs_set.dtype", set)
        .add("corert.op_attrs_set.dense", set)
        .add("corert.op_attrs_set.aggregate", set)
        .add("corert.op_attrs_set.shape", set)
        .add("corert.op_attrs_set_array.i32", set_list::<i32>)
        .add("corert.op_attrs_set_array.i64", set_list::<i64>)
        .add("corert.op_attrs_set_array.f32", set_list::<f32>);
}

/// A set that kernels change.
#[derive(Clone, Debug)]
struct Attributes(Arc<Mutex<OpAttrs>>);

impl Attributes {
    /// Adds a value unless the name is taken.
    fn put(&self, name: &str, value: AttrValue) -> Chain {
        let _present = self.lock().set_named(name, value);
        Chain
    }

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
fn set_number<T: ScalarAttr + IntoAttr>(
    attributes: &Attributes,
    _: Chain,
    key: Attr<&str>,
    value: Attr<T>,
) -> Chain {
    attributes.put(*key, value.into_attr())
}

/// `%c1 = "corert.op_attrs_set_array.i32"(%a, %c0) {key = "n", value = [1 : i32]}`
fn set_list<T: ScalarAttr + Element>(
    attributes: &Attributes,
    _: Chain,
    key: Attr<&str>,
    value: Attr<&[T]>,
) -> Chain {
    attributes.put(*key, AttrValue::List(Numbers::new(*value)))
}

/// `%c1 = "corert.op_attrs_set.str"(%a, %c0) {key = "n", value = "text"}`
fn set_text(attributes: &Attributes, _: Chain, key: Attr<&str>, value: Attr<&str>) -> Chain {
    attributes.put(*key, (*value).into_attr())
}

/// `%c1 = "corert.op_attrs_set.shape"(%a, %c0) {key = "n", value = #corert.shape<2x?>}`
fn set(
    attributes: &Attributes,
    _: Chain,
    key: Attr<&str>,
    value: Attr<AttributeView<'_>>,
) -> Result<Chain, Error> {
    let value = decode(*value).ok_or_else(|| {
        let key = key.escape_debug();
        Error::invalid_argument(format!(
            "attribute '{key}': operations have no such attributes"
        ))
    })?;
    Ok(attributes.put(*key, value))
}

/// `%c1 = "tfrt_test.corert.op_attrs_print"(%a, %c0)`
fn print(attributes: &Attributes, _: Chain, execution: &ExecutionContext) -> Chain {
    let text = attributes.lock().as_ref().to_string();
    execution.host().output().print(text);
    Chain
}

/// `%r, %c1 = "tfrt_test.corert.op_attrs_freeze"(%a, %c0)`
fn freeze(attributes: &Attributes, _: Chain) -> (FrozenOpAttrs, Chain) {
    (attributes.lock().freeze(), Chain)
}

/// `%c1 = "tfrt_test.corert.op_attrs_ref_print"(%r, %c0)`
fn print_frozen(attributes: &FrozenOpAttrs, _: Chain, execution: &ExecutionContext) -> Chain {
    let text = attributes.as_ref().to_string();
    execution.host().output().print(text);
    Chain
}
