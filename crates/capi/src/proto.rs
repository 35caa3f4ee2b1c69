//! Protocol buffers that the C API hands out, written by hand: definitions of nodes, operations and kernels.

use std::sync::Arc;

use crate::attrs::{Attr, Kind};
use crate::functions::construction::Node;
use crate::registry::KernelDef;
use crate::spec::{ArgSpec, ArgTypes, OpSpec};
use crate::value::Tensor;

/// A message that is written.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn int(&mut self, field: u64, value: i64) -> &mut Self {
        self.varint(field << 3);
        self.varint(value as u64);
        self
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) -> &mut Self {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    fn text(&mut self, field: u64, text: &str) -> &mut Self {
        match text.is_empty() {
            true => self,
            false => self.bytes(field, text.as_bytes()),
        }
    }

    fn flag(&mut self, field: u64, flag: bool) -> &mut Self {
        match flag {
            true => self.int(field, 1),
            false => self,
        }
    }

    fn message(&mut self, field: u64, message: &Message) -> &mut Self {
        self.bytes(field, &message.0)
    }

    fn float(&mut self, field: u64, value: f32) -> &mut Self {
        self.varint(field << 3 | 5);
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }
}

fn shape(extents: Option<&[i64]>) -> Message {
    let mut message = Message::default();
    match extents {
        None => drop(message.flag(3, true)),
        Some(extents) => {
            for extent in extents {
                let mut dim = Message::default();
                dim.int(1, *extent);
                message.message(2, &dim);
            }
        }
    }
    message
}

fn tensor(tensor: &Tensor) -> Message {
    let mut message = Message::default();
    message.int(1, i64::from(tensor.code));
    message.message(2, &shape(Some(&tensor.extents)));
    let memory = tensor.memory();
    let bytes = memory.bytes(tensor.len_bytes(), "tensor");
    message.bytes(4, bytes.unwrap_or_default());
    message
}

fn name_and_attrs(name: &str) -> Message {
    let mut message = Message::default();
    message.text(1, name);
    message
}

/// Writes a value at the field that its kind has in a list; outside of a list they are the same, but for functions.
fn put(message: &mut Message, attr: &Attr, is_listed: bool) {
    match attr {
        Attr::Bytes(bytes) => message.bytes(2, bytes),
        Attr::Int(value) => message.int(3, *value),
        Attr::Float(value) => message.float(4, *value),
        Attr::Bool(value) => message.int(5, i64::from(*value)),
        Attr::Type(code) => message.int(6, i64::from(*code)),
        Attr::Shape(extents) => message.message(7, &shape(extents.as_deref())),
        Attr::Tensor(value) => message.message(8, &tensor(value)),
        Attr::Function(name) => {
            let field = if is_listed { 9 } else { 10 };
            message.message(field, &name_and_attrs(name))
        }
        Attr::List(_, list) => {
            let mut values = Message::default();
            for one in list {
                put(&mut values, one, true);
            }
            message.message(1, &values)
        }
    };
}

fn value(attr: &Attr) -> Message {
    let mut message = Message::default();
    put(&mut message, attr, false);
    message
}

/// Writes the name of a function as `NameAttrList`.
pub fn function(name: &str) -> Vec<u8> {
    name_and_attrs(name).0
}

/// Writes a node as `NodeDef`.
pub fn node(node: &Node) -> Vec<u8> {
    let mut message = Message::default();
    message.text(1, &node.name).text(2, &node.op);
    for (name, attr) in &node.attrs {
        let mut entry = Message::default();
        entry.text(1, name).message(2, &value(attr));
        message.message(5, &entry);
    }
    message.0
}

fn arg(arg: &ArgSpec) -> Message {
    let mut message = Message::default();
    message.text(1, &arg.name);
    match &arg.types {
        ArgTypes::Fixed(code) => message.int(3, i64::from(*code)),
        ArgTypes::Attr(name) => message.text(4, name),
        ArgTypes::List(name) => message.text(6, name),
    };
    if let Some(count) = &arg.count {
        message.text(5, count);
    }
    message.flag(16, arg.is_reference);
    message
}

fn op(spec: &OpSpec) -> Message {
    let mut message = Message::default();
    message.text(1, &spec.name);
    for input in &spec.inputs {
        message.message(2, &arg(input));
    }
    for output in &spec.outputs {
        message.message(3, &arg(output));
    }
    for attr in &spec.attrs {
        let mut own = Message::default();
        own.text(1, &attr.name).text(2, &attr.kind_name());
        if let Some(default) = &attr.default {
            own.message(3, &value(default));
        }
        if let Some(minimum) = attr.minimum {
            own.flag(5, true).int(6, minimum);
        }
        let types = attr.allowed_types.iter().map(|code| Attr::Type(*code));
        let texts = attr.allowed_texts.iter();
        let texts = texts.map(|text| Attr::Bytes(text.clone().into_bytes()));
        let allowed: Vec<Attr> = types.chain(texts).collect();
        if !allowed.is_empty() {
            own.message(7, &value(&Attr::List(Kind::Type, allowed)));
        }
        message.message(4, &own);
    }
    if let Some((version, why)) = &spec.deprecated {
        let mut own = Message::default();
        own.int(1, i64::from(*version)).text(2, why);
        message.message(8, &own);
    }
    message
        .flag(16, spec.is_aggregate)
        .flag(17, spec.is_stateful)
        .flag(18, spec.is_commutative)
        .flag(19, spec.allows_uninitialized);
    message
}

/// Writes definitions of operations as `OpList`.
pub fn op_list(specs: &[Arc<OpSpec>]) -> Vec<u8> {
    let mut message = Message::default();
    for spec in specs {
        message.message(1, &op(spec));
    }
    message.0
}

/// Writes definitions of kernels as `KernelList`.
pub fn kernel_list(kernels: &[Arc<KernelDef>]) -> Vec<u8> {
    let mut message = Message::default();
    for kernel in kernels {
        let mut own = Message::default();
        own.text(1, &kernel.op).text(2, &kernel.device);
        for (name, types) in &kernel.constraints {
            let types = types.iter().map(|code| Attr::Type(*code)).collect();
            let mut constraint = Message::default();
            constraint.text(1, name);
            constraint.message(2, &value(&Attr::List(Kind::Type, types)));
            own.message(3, &constraint);
        }
        for name in &kernel.host_memory {
            own.text(4, name);
        }
        own.text(5, &kernel.label);
        if kernel.priority != 0 {
            own.int(6, i64::from(kernel.priority));
        }
        message.message(1, &own);
    }
    message.0
}
