//! Functions of `kernels.h` that register kernels.

use std::ffi::c_int;
use std::sync::atomic::AtomicI64;

use tfrt_host::Error;

use super::buffer::BufferRef;
use super::status::{Status, finish, set};
use crate::guard::Callback;
use crate::handle::Handle;
use crate::raw::Text;
use crate::registry::{self, KernelDef};
use crate::{dtype, fault};

/// A kernel that is being registered: `TF_KernelBuilder`.
pub struct KernelBuilder(KernelDef);

fn builder(
    op: &Text,
    device: &Text,
    [create, compute, delete]: [Callback; 3],
    is_async: bool,
) -> Handle<KernelBuilder> {
    let (Some(op), Some(device)) = (op.text("op_name"), device.text("device_name")) else {
        return Handle::NULL;
    };
    if compute.is_null() {
        fault::argument("compute_func", "expected a function, found a null pointer");
        return Handle::NULL;
    }
    Handle::new(KernelBuilder(KernelDef {
        name: op.clone(),
        op,
        device,
        constraints: Vec::new(),
        host_memory: Vec::new(),
        priority: 0,
        label: String::new(),
        create,
        compute,
        delete,
        is_async,
        library: String::new(),
        text: String::new(),
        n_left: AtomicI64::new(0),
    }))
}

pub(crate) fn new(
    op: Text,
    device: Text,
    create: Callback,
    compute: Callback,
    delete: Callback,
) -> Handle<KernelBuilder> {
    builder(&op, &device, [create, compute, delete], false)
}

pub(crate) fn new_async(
    op: Text,
    device: Text,
    create: Callback,
    compute: Callback,
    delete: Callback,
) -> Handle<KernelBuilder> {
    builder(&op, &device, [create, compute, delete], true)
}

/// Types that TensorFlow's functions refuse as constraints.
fn is_unexpected(code: i32) -> bool {
    dtype::of_code(code).is_none() || matches!(code, 24..)
}

pub(crate) fn type_constraint(
    builder: Handle<KernelBuilder>,
    attr: Text,
    code: c_int,
    status: Handle<Status>,
) {
    let Some(attr) = attr.text("attr_name") else {
        return;
    };
    if is_unexpected(code) {
        let error = Error::new(
            tfrt_host::ErrorCode::Unimplemented,
            format!("Unexpected type {code}"),
        );
        return set(status, &Err(error));
    }
    builder.with("kernel_builder", |KernelBuilder(kernel)| {
        match kernel.constraints.iter_mut().find(|(own, _)| *own == attr) {
            Some((_, types)) => types.push(code),
            None => kernel.constraints.push((attr, vec![code])),
        }
    });
    set(status, &Ok(()));
}

pub(crate) fn host_memory(builder: Handle<KernelBuilder>, argument: Text) {
    if let Some(name) = argument.text("arg_name") {
        builder.with("kernel_builder", |own| own.0.host_memory.push(name));
    }
}

pub(crate) fn priority(builder: Handle<KernelBuilder>, priority: i32) {
    builder.with("kernel_builder", |own| own.0.priority = priority);
}

pub(crate) fn label(builder: Handle<KernelBuilder>, label: Text) {
    if let Some(label) = label.text("label") {
        builder.with("kernel_builder", |own| own.0.label = label);
    }
}

pub(crate) fn register(name: Text, builder: Handle<KernelBuilder>, status: Handle<Status>) {
    let name = name.text("kernel_name");
    let Some(KernelBuilder(mut kernel)) = builder.take("builder") else {
        let error = Error::invalid_argument("TF_RegisterKernelBuilder: the builder is wrong");
        return set(status, &Err(error));
    };
    if let Some(name) = name {
        kernel.name = name;
    }
    let text = format!("kernel '{}'", kernel.op);
    let registered = registry::register_kernel(kernel);
    if let Err(error) = &registered {
        registry::refuse(format!("{text}: {}", error.message()));
    }
    finish(status, registered);
}

/// The host makes the definition of a kernel from the builder, so that a serialized one is looked at only for being one.
pub(crate) fn register_with_definition(
    definition: Text,
    name: Text,
    builder: Handle<KernelBuilder>,
    status: Handle<Status>,
) {
    let bytes = definition.bytes_or_null();
    // Its first field is the operation's name.
    if bytes.is_some_and(|bytes| !bytes.is_empty() && bytes[0] != 0x0a) {
        builder.take("builder");
        let error = Error::invalid_argument("Error parsing serialized KernelDef.");
        return set(status, &Err(error));
    }
    register(name, builder, status);
}

pub(crate) fn delete(builder: Handle<KernelBuilder>) {
    if !builder.is_null() {
        builder.take("builder");
    }
}

/// Serialized definitions of registered kernels.
pub(crate) fn registered(op: Option<&Text>, status: Handle<Status>) -> BufferRef {
    let op = match op {
        Some(text) => match text.text("name") {
            Some(name) => Some(name),
            None => return BufferRef::default(),
        },
        None => None,
    };
    let bytes = crate::proto::kernel_list(&registry::kernels(op.as_deref()));
    set(status, &Ok(()));
    super::buffer::of_bytes(&bytes)
}

pub(crate) fn registered_for_op(op: Text, status: Handle<Status>) -> BufferRef {
    registered(Some(&op), status)
}

pub(crate) fn all_registered(status: Handle<Status>) -> BufferRef {
    registered(None, status)
}
