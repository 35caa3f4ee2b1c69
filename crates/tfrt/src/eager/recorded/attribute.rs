//! Attributes of operations, and tensors, as attributes of programs.

use std::sync::Arc;

use tfrt_corert::{AttrValue, Numbers, OpAttrsRef};
use tfrt_host::{DType, Error};
use tfrt_ir::attributes::{Bytes, DenseAttribute, DenseElements, FloatAttribute, ShapeAttribute};
use tfrt_ir::types::DYNAMIC;
use tfrt_ir::{Attribute, Type, parse_type};
use tfrt_tensor::{DenseHostTensor, TensorMetadata, to_bytes, with_element};

/// Returns the pairs of names and values of `op_attrs` and of `op_func_attrs`.
///
/// # Errors
///
/// `InvalidArgument` for values that programs don't have.
pub(super) fn pairs(attrs: OpAttrsRef<'_>) -> Result<(Attribute, Attribute), Error> {
    let (mut values, mut functions) = (Vec::new(), Vec::new());
    for (name, value) in attrs.iter() {
        let pair = |value| Attribute::array(vec![Attribute::string(name), value]);
        match value {
            AttrValue::Function(function) => {
                functions.push(pair(Attribute::string(function.as_str())))
            }
            value => values.push(pair(attribute(value)?)),
        }
    }
    Ok((Attribute::array(values), Attribute::array(functions)))
}

fn attribute(value: &AttrValue) -> Result<Attribute, Error> {
    Ok(match value {
        AttrValue::Scalar(number) => match numbers(number)?.pop() {
            Some(only) => only,
            None => return Err(Error::internal("a number that is none")),
        },
        AttrValue::List(list) => Attribute::array(numbers(list)?),
        AttrValue::DType(dtype) => Attribute::Type(element_type(*dtype)?),
        AttrValue::Text(text) => Attribute::string(text.as_str()),
        AttrValue::Function(name) => Attribute::string(name.as_str()),
        AttrValue::Shape(shape) => {
            Attribute::Shape(ShapeAttribute(shape.extents().map(|extents| {
                let extent = |extent: Option<u64>| match extent {
                    Some(extent) => i64::try_from(extent).unwrap_or(i64::MAX),
                    None => DYNAMIC,
                };
                extents.map(extent).collect()
            })))
        }
        AttrValue::Dense(tensor) => dense(tensor)?,
        AttrValue::Aggregate(children) => {
            Attribute::array(children.iter().map(attribute).collect::<Result<_, _>>()?)
        }
    })
}

/// Returns numbers as attributes, exactly: floats are their bits.
fn numbers(list: &Numbers) -> Result<Vec<Attribute>, Error> {
    let ty = element_type(list.dtype())?;
    let bits = |size: usize, bytes: &[u8]| -> Vec<u64> {
        let word = |bytes: &[u8]| {
            bytes
                .iter()
                .rev()
                .fold(0, |word, byte| word << 8 | u64::from(*byte))
        };
        bytes.chunks_exact(size).map(word).collect()
    };
    let words = with_element!(list.dtype(), T => {
        bits(size_of::<T>(), to_bytes(list.as_slice::<T>().unwrap_or_default()))
    }, else Vec::new());
    match (&ty, list.integers()) {
        (Type::Float(kind), _) => {
            let float = |bits| Attribute::Float(FloatAttribute { bits, kind: *kind });
            Ok(words.into_iter().map(float).collect())
        }
        (_, Some(all)) => Ok(all
            .into_iter()
            .map(|x| Attribute::integer(x, ty.clone()))
            .collect()),
        (_, None) => match list.dtype() {
            DType::I1 => Ok(words
                .into_iter()
                .map(|word| Attribute::bool(word != 0))
                .collect()),
            DType::Ui64 => {
                let integer = |word| Attribute::integer(i128::from(word), ty.clone());
                Ok(words.into_iter().map(integer).collect())
            }
            dtype => Err(unwritable(&format!("numbers of type {dtype}"))),
        },
    }
}

/// Returns a tensor of numbers as a dense attribute.
///
/// # Errors
///
/// `InvalidArgument` for types of elements that programs don't have.
pub(super) fn dense(dense: &DenseHostTensor) -> Result<Attribute, Error> {
    let ty = tensor_type(dense.metadata())?;
    let bytes = Bytes::copy_from_slice(dense.read()?.bytes());
    Ok(Attribute::Dense(Arc::new(DenseAttribute {
        ty,
        splat: false,
        elements: DenseElements::Bytes(bytes),
    })))
}

/// Returns the type of a tensor of fixed extents.
///
/// # Errors
///
/// `InvalidArgument` for types of elements that programs don't have.
pub(super) fn tensor_type(metadata: &TensorMetadata) -> Result<Type, Error> {
    let mut text = "tensor<".to_owned();
    for extent in metadata.shape.extents() {
        text.push_str(&format!("{extent}x"));
    }
    text.push_str(&format!("{}>", element_type(metadata.dtype)?));
    parse_type(&text).ok_or_else(|| unwritable(&text))
}

fn element_type(dtype: DType) -> Result<Type, Error> {
    let name = match dtype {
        DType::Ui8 => "ui8",
        DType::Ui16 => "ui16",
        DType::Ui32 => "ui32",
        DType::Ui64 => "ui64",
        DType::I1 => "i1",
        DType::I8 => "i8",
        DType::I16 => "i16",
        DType::I32 => "i32",
        DType::I64 => "i64",
        DType::F16 => "f16",
        DType::Bf16 => "bf16",
        DType::F32 => "f32",
        DType::F64 => "f64",
        DType::Complex64 => "complex<f32>",
        DType::Complex128 => "complex<f64>",
        DType::String => "!corert.string",
        DType::Resource => "!corert.resource",
        DType::Variant => "!corert.variant",
        DType::Quint8 => "!corert.quint8",
        DType::Quint16 => "!corert.quint16",
        DType::Qint8 => "!corert.qint8",
        DType::Qint16 => "!corert.qint16",
        DType::Qint32 => "!corert.qint32",
        other => return Err(unwritable(&format!("elements of type {other}"))),
    };
    parse_type(name).ok_or_else(|| unwritable(name))
}

fn unwritable(what: &str) -> Error {
    Error::invalid_argument(format!("{what}: a program can't have this as an attribute"))
}
