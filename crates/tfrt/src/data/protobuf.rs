//! Values in ONNX's files of tensors, sequences and optionals (`.pb`), which the importer reads and
//! writes.

use std::sync::Arc;

use tfrt::import::onnx::data::{Data, Kind};
use tfrt::import::onnx::{ElementType, Tensor as Proto, TensorData};
use tfrt::model::{Datum, ValueType};
use tfrt::tensor::{DType, Map, Optional, Sequence, StringHostTensor, Tensor, TensorShape};
use tfrt::{Error, HostAllocator};

use super::json::some;
use super::numbers;

/// Reads a value of a type.
///
/// # Errors
///
/// A text that says what is wrong with the file, or what else it holds.
pub fn decode(
    bytes: Vec<u8>,
    kind: &ValueType,
    name: &str,
    allocator: &Arc<dyn HostAllocator>,
) -> Result<Datum, String> {
    let wanted = match kind {
        ValueType::Tensor(_) => Kind::Tensor,
        ValueType::Sequence(_) => Kind::Sequence,
        ValueType::Optional(_) => Kind::Optional,
        ValueType::Map(..) => Kind::Map,
    };
    let data = Data::decode(bytes, wanted, name).map_err(|errors| {
        let messages: Vec<&str> = errors.iter().map(|error| error.message()).collect();
        messages.join("; ")
    })?;
    of_data(data, allocator)
}

fn of_data(data: Data, allocator: &Arc<dyn HostAllocator>) -> Result<Datum, String> {
    match data {
        Data::Tensor(tensor) => of_proto(tensor, allocator).map(Datum::Tensor),
        Data::Sequence(items) => {
            let tensor = |item| match item {
                Data::Tensor(tensor) => of_proto(tensor, allocator),
                _ => Err("expected a sequence of tensors, found one of something else".to_owned()),
            };
            super::sequence(items.into_iter().map(tensor), allocator).map(Datum::Sequence)
        }
        Data::Optional(None) => Ok(Optional::Nothing.into()),
        Data::Optional(Some(inner)) => of_data(*inner, allocator).map(some),
        Data::Map(keys, values) => of_map(keys, values, allocator).map(Datum::Map),
    }
}

/// Returns a map whose values are tensors of one element each, or one of all values.
fn of_map(
    keys: Proto,
    values: Vec<Data>,
    allocator: &Arc<dyn HostAllocator>,
) -> Result<Map, String> {
    let dims = vec![values.len()];
    let (mut element, mut bytes, mut strings) = (None, Vec::new(), Vec::new());
    for value in values {
        let Data::Tensor(value) = value else {
            let message = "expected a map to numbers or strings, found one to something else";
            return Err(message.to_owned());
        };
        if *element.get_or_insert(value.element) != value.element {
            return Err("expected a map whose values are of one type".to_owned());
        }
        match value.data {
            TensorData::Bytes(more) => bytes.extend_from_slice(&more),
            TensorData::Strings(mut more) => strings.append(&mut more),
        }
    }
    let element = element.ok_or("expected a map with a key, found none")?;
    let all = Proto {
        name: String::new(),
        element,
        dims,
        data: match element {
            ElementType::String => TensorData::Strings(strings),
            _ => TensorData::Bytes(bytes.into()),
        },
    };
    let (keys, values) = (of_proto(keys, allocator)?, of_proto(all, allocator)?);
    Map::new(keys, values).map_err(|error| error.message().to_owned())
}

fn of_proto(proto: Proto, allocator: &Arc<dyn HostAllocator>) -> Result<Tensor, String> {
    let told = |error: Error| error.message().to_owned();
    let shape = TensorShape::new(&proto.dims).map_err(told)?;
    let element = dtype(proto.element);
    match proto.data {
        TensorData::Strings(strings) => {
            let strings = strings.iter().map(|string| string.to_vec()).collect();
            Ok(StringHostTensor::new(shape, strings).map_err(told)?.into())
        }
        TensorData::Bytes(bytes) => {
            let native = numbers::swapped(&bytes, element);
            numbers::dense(element, shape, &native, allocator)
        }
    }
}

/// Returns a value as the bytes of a file, under a name.
///
/// # Errors
///
/// If ONNX has no such elements, or somebody writes a tensor.
pub fn encode(name: &str, datum: &Datum) -> Result<Vec<u8>, Error> {
    Ok(to_data(name, datum)?.encode())
}

fn to_data(name: &str, datum: &Datum) -> Result<Data, Error> {
    let sequence = |sequence: &Sequence| {
        let tensors = sequence.tensors().iter();
        let tensors = tensors.map(|tensor| to_proto("", tensor).map(Data::Tensor));
        Ok(Data::Sequence(tensors.collect::<Result<_, Error>>()?))
    };
    match datum {
        Datum::Tensor(tensor) => to_proto(name, tensor).map(Data::Tensor),
        Datum::Sequence(tensors) => sequence(tensors),
        Datum::Optional(optional) => Ok(Data::Optional(match optional {
            Optional::Nothing => None,
            Optional::Tensor(tensor) => Some(Box::new(Data::Tensor(to_proto(name, tensor)?))),
            Optional::Sequence(tensors) => Some(Box::new(sequence(tensors)?)),
        })),
        Datum::Map(map) => {
            let keys = to_proto("", map.keys())?;
            let values = to_proto("", map.values())?;
            Ok(Data::Map(keys, singles(&values, 0, map.len())))
        }
        Datum::Maps(maps) => {
            let keys = to_proto("", maps.keys())?;
            let values = to_proto("", maps.values())?;
            let n_keys = keys.dims.iter().product();
            let map = |index| Data::Map(keys.clone(), singles(&values, index * n_keys, n_keys));
            Ok(Data::Sequence((0..maps.len()).map(map).collect()))
        }
    }
}

/// Elements of a tensor as tensors without dimensions.
fn singles(all: &Proto, first: usize, n: usize) -> Vec<Data> {
    let size = dtype(all.element).size_bytes().unwrap_or(1);
    let single = |index: usize| {
        Data::Tensor(Proto {
            name: String::new(),
            element: all.element,
            dims: Vec::new(),
            data: match &all.data {
                TensorData::Strings(list) => TensorData::Strings(list[index..=index].into()),
                TensorData::Bytes(bytes) => {
                    TensorData::Bytes(bytes[index * size..][..size].to_vec().into())
                }
            },
        })
    };
    (first..first + n).map(single).collect()
}

fn to_proto(name: &str, tensor: &Tensor) -> Result<Proto, Error> {
    let metadata = tensor.metadata();
    let mut elements = ElementType::ALL.iter().copied();
    let element = elements.find(|element| dtype(*element) == metadata.dtype);
    let element = element.ok_or_else(|| {
        let message = format!("ONNX has no tensors of {}", metadata.dtype);
        Error::invalid_argument(message)
    })?;
    let data = match tensor {
        Tensor::String(strings) => {
            let strings = strings.strings().iter();
            TensorData::Strings(strings.map(|string| string.as_slice().into()).collect())
        }
        tensor => {
            let dense = tensor.as_dense()?;
            let reading = dense.read()?;
            TensorData::Bytes(
                numbers::swapped(reading.bytes(), metadata.dtype)
                    .into_owned()
                    .into(),
            )
        }
    };
    Ok(Proto {
        name: name.to_owned(),
        element,
        dims: metadata.shape.to_dims().to_vec(),
        data,
    })
}

fn dtype(element: ElementType) -> DType {
    match element {
        ElementType::F32 => DType::F32,
        ElementType::U8 => DType::Ui8,
        ElementType::I8 => DType::I8,
        ElementType::U16 => DType::Ui16,
        ElementType::I16 => DType::I16,
        ElementType::I32 => DType::I32,
        ElementType::I64 => DType::I64,
        ElementType::String => DType::String,
        ElementType::Bool => DType::I1,
        ElementType::F16 => DType::F16,
        ElementType::F64 => DType::F64,
        ElementType::U32 => DType::Ui32,
        ElementType::U64 => DType::Ui64,
        ElementType::C64 => DType::Complex64,
        ElementType::C128 => DType::Complex128,
        ElementType::BF16 => DType::Bf16,
        ElementType::F8E4M3FN => DType::F8E4M3FN,
        ElementType::F8E4M3FNUZ => DType::F8E4M3FNUZ,
        ElementType::F8E5M2 => DType::F8E5M2,
        ElementType::F8E5M2FNUZ => DType::F8E5M2FNUZ,
        ElementType::U4 => DType::Ui4,
        ElementType::I4 => DType::I4,
        ElementType::F4E2M1 => DType::F4E2M1,
        ElementType::F8E8M0 => DType::F8E8M0,
        ElementType::U2 => DType::Ui2,
        ElementType::I2 => DType::I2,
    }
}
