//! Tensors from `tensorflow.TensorProto`, and back.

use bytes::Bytes;
use tfrt_tensor::{Bool, DType, Element, Tensor, TensorMetadata, to_bytes as bytes_of};

use super::messages::{Shape, ShapeDim, TensorProto};
use crate::refusal::Refusal;
use crate::v1::types;
use crate::v2::data::{allocator, dense};
use crate::v2::tensors::{check_shape, extents_of, from_bytes, strings_of, to_bytes};

/// Makes the tensor of an input, which must be of this type, and have so many bytes at most: a list that is shorter than
/// the shape says is filled up by its last element, so that a few bytes can ask for a lot of memory.
pub(super) fn read(
    name: &str,
    expected: DType,
    proto: TensorProto,
    max_bytes: usize,
) -> Result<Tensor, Refusal> {
    let about = |reason: String| Refusal::invalid(format!("input '{name}': {reason}"));
    match types::of_number(proto.dtype) {
        Some(dtype) if dtype == expected => {}
        Some(dtype) => {
            let (expected, found) = (types::name_of(expected), types::name_of(dtype));
            return Err(about(format!("expected {expected}, found {found}")));
        }
        None => {
            let number = proto.dtype;
            return Err(about(format!("there is no type of the number {number}")));
        }
    }
    let shape = proto.tensor_shape.unwrap_or_default();
    if shape.unknown_rank {
        return Err(about(
            "expected a shape, found one of unknown rank".to_owned(),
        ));
    }
    let extents: Vec<i64> = shape.dim.iter().map(|dim| dim.size).collect();
    let (metadata, n_elements) = check_shape(name, expected, &extents)?;
    let size = expected.size_bytes().unwrap_or(size_of::<Vec<u8>>());
    if n_elements.saturating_mul(size) > max_bytes {
        return Err(about(format!(
            "a shape of {extents:?} is more than the {max_bytes} bytes that a request may have"
        )));
    }
    if !proto.tensor_content.is_empty() {
        if expected == DType::String {
            return Err(about("expected strings in `string_val`".to_owned()));
        }
        return from_bytes(name, expected, &extents, proto.tensor_content, allocator());
    }
    let list = List {
        name,
        metadata,
        n_elements,
    };
    match expected {
        DType::F32 => list.dense(proto.float_val, Some),
        DType::F64 => list.dense(proto.double_val, Some),
        DType::I64 => list.dense(proto.int64_val, Some),
        DType::Ui32 => list.dense(proto.uint32_val, Some),
        DType::Ui64 => list.dense(proto.uint64_val, Some),
        DType::I1 => list.dense(proto.bool_val, |value| Some(Bool::from(value))),
        DType::I32 => list.dense(proto.int_val, Some),
        DType::I16 => list.dense(proto.int_val, |value| i16::try_from(value).ok()),
        DType::I8 => list.dense(proto.int_val, |value| i8::try_from(value).ok()),
        DType::Ui16 => list.dense(proto.int_val, |value| u16::try_from(value).ok()),
        DType::Ui8 => list.dense(proto.int_val, |value| u8::try_from(value).ok()),
        DType::F16 | DType::Bf16 => {
            let bits = list.filled(proto.half_val)?;
            let bits: Result<Vec<u16>, _> = bits.into_iter().map(u16::try_from).collect();
            let bits = bits.map_err(|_| about("`half_val` has more than 16 bits".to_owned()))?;
            let bytes = Bytes::copy_from_slice(bytes_of(&bits));
            from_bytes(name, expected, &extents, bytes, allocator())
        }
        DType::String => {
            let strings = list.filled(proto.string_val)?;
            strings_of(list.metadata, strings)
        }
        other => Err(about(format!(
            "elements of {} are sent as `tensor_content`",
            types::name_of(other)
        ))),
    }
}

/// The elements of an input in the list of their type.
struct List<'n> {
    name: &'n str,
    metadata: TensorMetadata,
    n_elements: usize,
}

impl List<'_> {
    /// Returns as many elements as the shape has: the last one again and again, or what is 0 if there is none.
    fn filled<T: Clone + Default>(&self, mut elements: Vec<T>) -> Result<Vec<T>, Refusal> {
        let n_elements = self.n_elements;
        if elements.len() > n_elements {
            return Err(Refusal::invalid(format!(
                "input '{}': expected {n_elements} elements by its shape, found {}",
                self.name,
                elements.len()
            )));
        }
        let last = elements.last().cloned().unwrap_or_default();
        elements.resize(n_elements, last);
        Ok(elements)
    }

    fn dense<W, T>(
        &self,
        elements: Vec<W>,
        convert: impl Fn(W) -> Option<T>,
    ) -> Result<Tensor, Refusal>
    where
        W: Copy + Default + std::fmt::Display,
        T: Element,
    {
        let elements = self.filled(elements)?;
        let narrow = |(index, element): (usize, W)| {
            convert(element).ok_or_else(|| {
                Refusal::invalid(format!(
                    "input '{}': element {index}: expected {}, found {element}",
                    self.name,
                    types::name_of(self.metadata.dtype)
                ))
            })
        };
        let elements = elements.into_iter().enumerate().map(narrow);
        let elements = elements.collect::<Result<Vec<T>, Refusal>>()?;
        dense(self.metadata.clone(), elements)
    }
}

/// Writes a tensor, its elements in the list of their type, as clients look for them.
pub(super) fn write(name: &str, tensor: &Tensor) -> Result<TensorProto, Refusal> {
    let dtype = tensor.metadata().dtype;
    let mut proto = TensorProto {
        dtype: types::number_of(dtype),
        tensor_shape: Some(Shape {
            dim: extents_of(tensor).into_iter().map(ShapeDim::of).collect(),
            unknown_rank: false,
        }),
        ..TensorProto::default()
    };
    if let Tensor::String(strings) = tensor {
        proto.string_val = strings.strings().to_vec();
        return Ok(proto);
    }
    match dtype {
        DType::F32 => proto.float_val = elements(tensor)?,
        DType::F64 => proto.double_val = elements(tensor)?,
        DType::I64 => proto.int64_val = elements(tensor)?,
        DType::Ui32 => proto.uint32_val = elements(tensor)?,
        DType::Ui64 => proto.uint64_val = elements(tensor)?,
        DType::I32 => proto.int_val = elements(tensor)?,
        DType::I16 => proto.int_val = widened::<i16>(tensor)?,
        DType::I8 => proto.int_val = widened::<i8>(tensor)?,
        DType::Ui16 => proto.int_val = widened::<u16>(tensor)?,
        DType::Ui8 => proto.int_val = widened::<u8>(tensor)?,
        DType::I1 => {
            let bools = elements::<Bool>(tensor)?;
            proto.bool_val = bools.into_iter().map(bool::from).collect();
        }
        DType::F16 | DType::Bf16 => {
            let bytes = to_bytes(name, tensor)?;
            let bits = bytes.as_chunks::<2>().0.iter();
            proto.half_val = bits.map(|two| u16::from_le_bytes(*two).into()).collect();
        }
        _ => proto.tensor_content = to_bytes(name, tensor)?,
    }
    Ok(proto)
}

fn elements<T: Element>(tensor: &Tensor) -> Result<Vec<T>, Refusal> {
    let reading = tensor.as_dense()?.read()?;
    Ok(reading.elements::<T>()?.to_vec())
}

fn widened<T: Element + Into<i32>>(tensor: &Tensor) -> Result<Vec<i32>, Refusal> {
    let elements = elements::<T>(tensor)?;
    Ok(elements.into_iter().map(Into::into).collect())
}
