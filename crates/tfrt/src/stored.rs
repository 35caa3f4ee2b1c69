//! Conversions of encoded values and tensors to attributes of programs.

use std::sync::Arc;

use tfrt_host::DType;
use tfrt_host::codec::EncodedValue;
use tfrt_host::memory::HostBuffer;
use tfrt_ir::attributes::{Bytes, DenseAttribute, DenseElements};
use tfrt_ir::{Attribute, Name, Type, parse_type};
use tfrt_tensor::{DenseHostTensor, TensorMetadata, TensorShape};

/// Returns the attributes of the kernel [`KERNEL`](tfrt_kernels::graph::stored::KERNEL) that makes a value again;
/// `None` if attributes can't have its bytes.
pub(crate) fn attributes(value: &EncodedValue) -> Option<Vec<(Name, Attribute)>> {
    let head = HostBuffer::from_owner(value.head().to_vec());
    let version = i64::from(value.version());
    let mut attributes = vec![
        ("head".into(), bytes(head)?),
        ("type".into(), Attribute::string(value.type_name())),
        ("version".into(), Attribute::integer(version, Type::I64)),
    ];
    for (index, part) in value.parts().iter().enumerate() {
        attributes.push((format!("part{index:03}").into(), bytes(part.clone())?));
    }
    Some(attributes)
}

fn bytes(buffer: HostBuffer) -> Option<Attribute> {
    let shape = TensorShape::new(&[buffer.len_bytes()]).ok()?;
    let tensor = DenseHostTensor::new(TensorMetadata::new(DType::Ui8, shape), buffer).ok()?;
    Some(Attribute::Dense(Arc::new(constant(&tensor)?)))
}

/// Returns a tensor's elements as an attribute, which shares them with the tensor; `None` if attributes have them in
/// another form.
pub(crate) fn constant(tensor: &DenseHostTensor) -> Option<DenseAttribute> {
    let element = parse_type(tensor.dtype().mlir_name())?;
    let extents = tensor.shape().to_dims();
    let extents = extents.iter().map(|extent| i64::try_from(*extent));
    let ty = Type::tensor(extents.collect::<Result<_, _>>().ok()?, element);
    let reading = tensor.read().ok()?;
    let bytes = reading.bytes();
    let whole = DenseAttribute {
        ty,
        elements: DenseElements::Bytes(Bytes::new()),
        splat: false,
    };
    let size_bytes = whole.element_size_bytes();
    let is_whole = size_bytes > 0
        && tensor.dtype().size_bytes() == Some(size_bytes)
        && tensor.n_elements().checked_mul(size_bytes) == Some(bytes.len());
    if !is_whole {
        return None;
    }
    // As in text, a list whose elements are equal is one element.
    let first = bytes.get(..size_bytes);
    let splat = first.is_some_and(|first| bytes.chunks_exact(size_bytes).all(|one| one == first));
    let kept = match splat {
        true => Bytes::copy_from_slice(&bytes[..size_bytes]),
        false => Bytes::from_owner(tensor.buffer().clone().read_owned().ok()?),
    };
    Some(DenseAttribute {
        elements: DenseElements::Bytes(kept),
        splat,
        ..whole
    })
}
