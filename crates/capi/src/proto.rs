//! Protocol buffers of the C API, written and read by hand: definitions of nodes, operations and kernels; tensors.

use std::sync::Arc;

use tfrt_tensor::TensorShape;

use crate::attrs::{Attr, Kind};
use crate::dtype;
use crate::functions::construction::Node;
use crate::functions::tensor::allocator;
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
    let extents = tensor.shape.extents();
    let extents: Vec<i64> = extents.map(|extent| extent as i64).collect();
    message.message(2, &shape(Some(&extents)));
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
        Attr::List(_, list) => message.message(1, &values(list)),
    };
}

/// Writes a list: numbers of a kind follow each other in one field.
fn values(list: &[Attr]) -> Message {
    let (mut packed, mut message) = (Message::default(), Message::default());
    for one in list {
        match one {
            Attr::Int(value) => packed.varint(*value as u64),
            Attr::Bool(value) => packed.varint(u64::from(*value)),
            Attr::Type(code) => packed.varint(*code as u64),
            Attr::Float(value) => packed.0.extend_from_slice(&value.to_le_bytes()),
            other => put(&mut message, other, true),
        }
    }
    let field = match list.first() {
        Some(Attr::Int(_)) => 3,
        Some(Attr::Float(_)) => 4,
        Some(Attr::Bool(_)) => 5,
        Some(Attr::Type(_)) => 6,
        _ => return message,
    };
    message.bytes(field, &packed.0);
    message
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
            own.flag(5, true);
            if minimum != 0 {
                own.int(6, minimum);
            }
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
            for code in types {
                let mut constraint = Message::default();
                constraint.text(1, name);
                let allowed = Attr::List(Kind::Type, vec![Attr::Type(*code)]);
                constraint.message(2, &value(&allowed));
                own.message(3, &constraint);
            }
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

/// Reads the fields of a message: number and contents; `None` where the bytes are no message.
fn fields(mut bytes: &[u8]) -> Option<Vec<(u64, Field<'_>)>> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = read_varint(&mut bytes)?;
        let field = match key & 7 {
            0 => Field::Int(read_varint(&mut bytes)?),
            1 => Field::Bytes(bytes.split_off(..8)?),
            2 => {
                let len = usize::try_from(read_varint(&mut bytes)?).ok()?;
                Field::Bytes(bytes.split_off(..len)?)
            }
            5 => Field::Bytes(bytes.split_off(..4)?),
            _ => return None,
        };
        fields.push((key >> 3, field));
    }
    Some(fields)
}

/// Returns whether bytes are a message.
pub fn is_message(bytes: &[u8]) -> bool {
    fields(bytes).is_some()
}

/// The contents of a field.
#[derive(Clone, Copy)]
enum Field<'b> {
    Int(u64),
    Bytes(&'b [u8]),
}

fn read_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.split_off_first()?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// Makes the tensor of a serialized `TensorProto` of numbers; `None` if the bytes are none.
pub fn read_tensor(bytes: &[u8]) -> Option<Tensor> {
    let (mut code, mut extents, mut content) = (0, Vec::new(), None);
    let (mut elements, mut is_packed_ints) = (Vec::new(), false);
    for (number, field) in fields(bytes)? {
        match (number, field) {
            (1, Field::Int(value)) => code = i32::try_from(value).ok()?,
            (2, Field::Bytes(shape)) => {
                for (number, field) in fields(shape)? {
                    match (number, field) {
                        (2, Field::Bytes(dim)) => {
                            let size = fields(dim)?.into_iter().find_map(|field| match field {
                                (1, Field::Int(size)) => Some(size as i64),
                                _ => None,
                            });
                            extents.push(size.unwrap_or(0));
                        }
                        (3, Field::Int(1)) => return None,
                        _ => (),
                    }
                }
            }
            (4, Field::Bytes(all)) => content = Some(all.to_vec()),
            // Floats and doubles lie in the message as in memory.
            (5 | 6, Field::Bytes(all)) => elements.extend_from_slice(all),
            (7 | 10 | 11 | 13 | 16 | 17, Field::Int(value)) => {
                is_packed_ints = true;
                elements.extend(value.to_le_bytes());
            }
            (7 | 10 | 11 | 13 | 16 | 17, Field::Bytes(mut all)) => {
                is_packed_ints = true;
                while !all.is_empty() {
                    elements.extend(read_varint(&mut all)?.to_le_bytes());
                }
            }
            _ => (),
        }
    }
    let shape = TensorShape::from_i64(&extents).ok()?;
    let tensor = Tensor::zeroed(&allocator(), code, shape).ok()?;
    let size = dtype::size_bytes(code);
    let (n, width) = (tensor.n_elements(), if is_packed_ints { 8 } else { size });
    if size > width {
        return None;
    }
    let bytes = match content {
        Some(content) => content,
        None if elements.is_empty() || size == 0 => return Some(tensor),
        // The last element stands for those that are left out; integers are cut to their width.
        None => {
            let all: Vec<&[u8]> = elements.chunks_exact(width).collect();
            let element = |index: usize| all.get(index).or(all.last()).map(|all| &all[..size]);
            let elements: Option<Vec<&[u8]>> = (0..n).map(element).collect();
            elements?.concat()
        }
    };
    if bytes.len() != n * size {
        return None;
    }
    if !bytes.is_empty() {
        tensor.memory().write(0, &bytes, "tensor");
    }
    Some(tensor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensors_are_read_as_they_are_written() {
        let tensor = Tensor::zeroed(&allocator(), 3, TensorShape::new(&[2, 2]).unwrap()).unwrap();
        let bytes = [1_i32, -2, 3, 4].map(i32::to_le_bytes).concat();
        tensor.memory().write(0, &bytes, "tensor");
        let message = super::tensor(&tensor).0;
        let read = read_tensor(&message).unwrap();
        assert_eq!(
            (read.code, read.shape.to_string()),
            (3, "[2, 2]".to_owned())
        );
        assert_eq!(read.memory().bytes(16, "").unwrap(), bytes);
        for len in 0..message.len() {
            let _refused_or_read = read_tensor(&message[..len]);
        }
        // One element for all: `dtype: DT_FLOAT tensor_shape { dim { size: 3 } } float_val: 1.5`.
        let mut message = Message::default();
        let mut dim = Message::default();
        dim.int(1, 3);
        let mut shape = Message::default();
        shape.message(2, &dim);
        message.int(1, 1).message(2, &shape).float(5, 1.5);
        let read = read_tensor(&message.0).unwrap();
        assert_eq!(
            read.memory().bytes(12, "").unwrap(),
            [1.5_f32; 3].map(f32::to_le_bytes).concat()
        );
    }
}
