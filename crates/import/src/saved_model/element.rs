//! Types, extents and elements of tensors, by TensorFlow's numbers and messages.

use std::sync::Arc;

use tfrt_ir::attributes::{Bytes, DenseAttribute, DenseElements};
use tfrt_ir::{Attribute, Type};

use super::proto::{TensorProto, TensorShape};
use crate::codes;
use crate::onnx::problem::Problem;
use crate::onnx::{ElementType, Tensor, TensorData, attributes, tensor};

/// The number of the type of references to variables and tables.
pub(super) const RESOURCE: i32 = 20;

/// The number of the type of lists.
pub(super) const VARIANT: i32 = 21;

/// The difference between the number of a type and that of references to values of it, in graphs of TensorFlow 1.
const REFERENCE: i32 = 100;

/// The most bytes that a message may state by a few elements, of which the last is repeated.
const MAX_REPEATED_BYTES: usize = 1 << 28;

/// Returns the type of a number (`DataType`).
pub(super) fn element_type(number: i32) -> Result<ElementType, Problem> {
    use ElementType as E;
    let plain = if number > REFERENCE {
        number - REFERENCE
    } else {
        number
    };
    Ok(match plain {
        1 => E::F32,
        2 => E::F64,
        3 | 13 => E::I32,
        4 | 12 => E::U8,
        5 | 15 => E::I16,
        6 | 11 => E::I8,
        7 => E::String,
        8 => E::C64,
        9 => E::I64,
        10 => E::Bool,
        14 => E::BF16,
        16 | 17 => E::U16,
        18 => E::C128,
        19 => E::F16,
        22 => E::U32,
        23 => E::U64,
        24 => E::F8E5M2,
        25 => E::F8E4M3FN,
        _ => {
            let message = format!("has the element type {number}, which tensors here don't have");
            return Err(Problem::new(codes::MODEL_ELEMENT_TYPE, message));
        }
    })
}

/// Returns the type of elements as an attribute. Of references and lists it is a type of its own.
pub(super) fn type_attribute(number: i32) -> Result<Attribute, Problem> {
    Ok(Attribute::Type(match number {
        RESOURCE => Type::dialect("!tf.resource"),
        VARIANT => Type::dialect("!tf.variant"),
        number => element_type(number)?.ty(),
    }))
}

/// Returns the known extents of a tensor, and the number of its elements.
pub(super) fn extents(
    shape: Option<&TensorShape>,
    element: ElementType,
) -> Result<(Vec<usize>, usize), Problem> {
    if shape.is_some_and(|shape| shape.unknown_rank) {
        let message = "has no rank, expected extents";
        return Err(Problem::new(codes::MODEL_DIMENSION, message));
    }
    let dims = shape.map_or(&[][..], |shape| &shape.dim);
    let dims: Vec<i64> = dims.iter().map(|dim| dim.size).collect();
    tensor::extents(&dims, element)
}

/// Reads a tensor as an attribute. Elements are shared with the file where they have one form.
pub(super) fn dense(proto: &TensorProto) -> Result<Attribute, Problem> {
    let element = element_type(proto.dtype)?;
    let (dims, count) = extents(proto.shape.as_deref(), element)?;
    if element == ElementType::String {
        return strings(proto, &dims, count);
    }
    let size = element.size_bytes();
    let bytes: Vec<u8> = if proto.content.is_empty() {
        typed(proto, element)
    } else {
        proto.content.to_vec()
    };
    let n_given = bytes.len() / size;
    if n_given > count || !bytes.len().is_multiple_of(size) {
        let found = bytes.len();
        let message = format!("has {found} bytes of elements, expected {}", count * size);
        return Err(Problem::new(codes::MODEL_TENSOR, message));
    }
    if !proto.content.is_empty() && n_given != count {
        let message = format!("has {n_given} elements, expected {count}");
        return Err(Problem::new(codes::MODEL_TENSOR, message));
    }
    if n_given <= 1 && count > 0 {
        // One stands for all; nothing for zeros.
        let one = if n_given == 0 { vec![0; size] } else { bytes };
        return Ok(Attribute::Dense(Arc::new(DenseAttribute {
            ty: attributes::tensor_type(&dims, element),
            elements: DenseElements::Bytes(one.into()),
            splat: true,
        })));
    }
    let mut bytes = bytes;
    if n_given < count {
        if count * size > MAX_REPEATED_BYTES {
            let message =
                format!("has {n_given} elements that stand for {count}, more than are read so");
            return Err(Problem::new(codes::MODEL_TENSOR, message));
        }
        let last = bytes[bytes.len() - size..].to_vec();
        for _ in n_given..count {
            bytes.extend_from_slice(&last);
        }
    }
    if element == ElementType::Bool {
        bytes
            .iter_mut()
            .for_each(|byte| *byte = u8::from(*byte != 0));
    }
    Ok(attributes::dense(&Tensor {
        name: String::new(),
        element,
        dims,
        data: TensorData::Bytes(bytes.into()),
    }))
}

fn strings(proto: &TensorProto, dims: &[usize], count: usize) -> Result<Attribute, Problem> {
    let found = proto.string_val.len();
    if found > count || (found > 1 && found != count) {
        let message = format!("has {found} strings, expected {count}");
        return Err(Problem::new(codes::MODEL_TENSOR, message));
    }
    let shared = |text: &prost::bytes::Bytes| -> Arc<[u8]> { Arc::from(&text[..]) };
    let all: Vec<Arc<[u8]>> = proto.string_val.iter().map(shared).collect();
    let is_splat = count > 0 && found <= 1;
    let all = match all.is_empty() && is_splat {
        true => vec![Arc::from(&[][..])],
        false => all,
    };
    let elements = match count {
        0 => DenseElements::Bytes(Bytes::new()),
        _ => DenseElements::Strings(all.into()),
    };
    Ok(Attribute::Dense(Arc::new(DenseAttribute {
        ty: attributes::tensor_type(dims, ElementType::String),
        elements,
        splat: is_splat,
    })))
}

/// Returns the bytes of elements that have a field of their own.
fn typed(proto: &TensorProto, element: ElementType) -> Vec<u8> {
    use ElementType as E;
    /// Returns the bytes of numbers, of which the lowest `size` are those of elements.
    fn low<const N: usize>(all: impl Iterator<Item = [u8; N]>, size: usize) -> Vec<u8> {
        all.flat_map(|bytes| bytes.into_iter().take(size)).collect()
    }
    let size = element.size_bytes();
    match element {
        E::F32 => low(proto.float_val.iter().map(|x| x.to_le_bytes()), 4),
        E::F64 => low(proto.double_val.iter().map(|x| x.to_le_bytes()), 8),
        E::C64 => low(proto.scomplex_val.iter().map(|x| x.to_le_bytes()), 4),
        E::C128 => low(proto.dcomplex_val.iter().map(|x| x.to_le_bytes()), 8),
        E::I64 => low(proto.int64_val.iter().map(|x| x.to_le_bytes()), 8),
        E::U32 => low(proto.uint32_val.iter().map(|x| x.to_le_bytes()), 4),
        E::U64 => low(proto.uint64_val.iter().map(|x| x.to_le_bytes()), 8),
        E::Bool => proto.bool_val.iter().map(|x| u8::from(*x)).collect(),
        E::F16 | E::BF16 => low(proto.half_val.iter().map(|x| x.to_le_bytes()), 2),
        _ => low(proto.int_val.iter().map(|x| x.to_le_bytes()), size),
    }
}

/// Returns the number of the type that a node states for its result.
pub(super) fn stated_type(node: &super::proto::Node) -> i32 {
    use super::proto::Value;
    let stated = ["dtype", "T"].iter().find_map(|name| node.attr.get(*name));
    match stated.and_then(|attr| attr.value.as_ref()) {
        Some(Value::Type(number)) => *number,
        _ => 0,
    }
}

/// Returns the extents that a node states for its result.
pub(super) fn stated_shape(node: &super::proto::Node) -> Option<Box<TensorShape>> {
    use super::proto::Value;
    match node.attr.get("shape").and_then(|attr| attr.value.as_ref()) {
        Some(Value::Shape(shape)) => Some(shape.clone()),
        _ => None,
    }
}
