//! Files of one value: a tensor, a sequence, an optional or a map (`.pb`).
//!
//! Such a file does not say which of them it holds: the type of a model's input or output does.
//!
//! ```
//! use tfrt_import::onnx::data::{Data, Kind};
//! use tfrt_import::onnx::{ElementType, Tensor, TensorData};
//!
//! let tensor = Tensor {
//!     name: "x".to_owned(),
//!     element: ElementType::I16,
//!     dims: vec![2],
//!     data: TensorData::Bytes(vec![1, 0, 0xff, 0xff].into()),
//! };
//! let file = Data::Tensor(tensor).encode();
//! let Data::Tensor(read) = Data::decode(file, Kind::Tensor, "x.pb")? else { panic!() };
//! assert_eq!(read.bytes(), [1, 0, 0xff, 0xff]);
//! # Ok::<(), tfrt_ir::Diagnostics>(())
//! ```

use prost::{Message, bytes::Bytes};
use tfrt_ir::{Diagnostics, Location};

use super::{
    external::{ExternalData, ExternalFiles},
    gate::{self, messages},
    problem::Problem,
    proto::{MapProto, OptionalProto, SequenceProto, TensorProto},
    sparse,
    tensor::{self, Tensor, TensorData},
};
use crate::codes;

/// A value in a file: a tensor, or a container of values.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// A tensor.
    Tensor(Tensor),
    /// Values of one kind, in order.
    Sequence(Vec<Data>),
    /// A value, or none.
    Optional(Option<Box<Data>>),
    /// Keys, a tensor of one dimension, and as many values.
    Map(Tensor, Vec<Data>),
}

/// The kind of message in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `TensorProto`.
    Tensor,
    /// `SparseTensorProto`; becomes a tensor with all its zeros.
    SparseTensor,
    /// `SequenceProto`.
    Sequence,
    /// `OptionalProto`.
    Optional,
    /// `MapProto`.
    Map,
}

/// The numbers of kinds of values in the fields `elem_type` of sequences and optionals.
mod held {
    pub(super) const TENSOR: i32 = 1;
    pub(super) const SPARSE_TENSOR: i32 = 2;
    pub(super) const SEQUENCE: i32 = 3;
    pub(super) const MAP: i32 = 4;
    pub(super) const OPTIONAL: i32 = 5;
}

impl Data {
    /// Decodes the value in a file; `name` is the file's name in errors.
    ///
    /// # Errors
    ///
    /// What is wrong with it. Elements in other files are refused.
    pub fn decode(
        file: impl AsRef<[u8]> + Send + 'static,
        kind: Kind,
        name: &str,
    ) -> Result<Data, Diagnostics> {
        let bytes = Bytes::from_owner(file);
        decode(bytes, kind).map_err(|problem| {
            let (file, line, column) = (name.into(), 0, 0);
            let location = Location::FileLineCol { file, line, column };
            problem.at(location).into()
        })
    }

    /// Encodes the value as a file.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Data::Tensor(tensor) => tensor::encode(tensor).encode_to_vec(),
            Data::Sequence(values) => sequence(values).encode_to_vec(),
            Data::Optional(value) => optional(value.as_deref()).encode_to_vec(),
            Data::Map(keys, values) => map(keys, values).encode_to_vec(),
        }
    }
}

fn decode(bytes: Bytes, kind: Kind) -> Result<Data, Problem> {
    let message = match kind {
        Kind::Tensor => &messages::TENSOR_PROTO,
        Kind::SparseTensor => &messages::SPARSE_TENSOR,
        Kind::Sequence => &messages::SEQUENCE_PROTO,
        Kind::Optional => &messages::OPTIONAL_PROTO,
        Kind::Map => &messages::MAP_PROTO,
    };
    gate::check(&bytes, message)?;
    let cannot = |cause: prost::DecodeError| {
        Problem::new(codes::NOT_A_MODEL, format!("cannot read: {cause}"))
    };
    let files = &mut ExternalFiles::new(&ExternalData::Unknown);
    match kind {
        Kind::Tensor => {
            let proto = TensorProto::decode(bytes).map_err(cannot)?;
            tensor::decode(&proto, files).map(Data::Tensor)
        }
        Kind::SparseTensor => {
            let proto = Message::decode(bytes).map_err(cannot)?;
            let budget = &mut sparse::Budget::default();
            sparse::expand(&proto, files, budget).map(Data::Tensor)
        }
        Kind::Sequence => from_sequence(&Message::decode(bytes).map_err(cannot)?),
        Kind::Optional => from_optional(&Message::decode(bytes).map_err(cannot)?),
        Kind::Map => from_map(&Message::decode(bytes).map_err(cannot)?),
    }
}

fn from_sequence(proto: &SequenceProto) -> Result<Data, Problem> {
    let files = &mut ExternalFiles::new(&ExternalData::Unknown);
    let budget = &mut sparse::Budget::default();
    let counts = [
        (held::TENSOR, proto.tensor_values.len()),
        (held::SPARSE_TENSOR, proto.sparse_tensor_values.len()),
        (held::SEQUENCE, proto.sequence_values.len()),
        (held::MAP, proto.map_values.len()),
        (held::OPTIONAL, proto.optional_values.len()),
    ];
    let kind = one_kind(proto.elem_type, &counts)?;
    let values: Result<Vec<Data>, Problem> = match kind {
        held::TENSOR => {
            let values = proto.tensor_values.iter();
            values
                .map(|value| tensor::decode(value, files).map(Data::Tensor))
                .collect()
        }
        held::SPARSE_TENSOR => {
            let values = proto.sparse_tensor_values.iter();
            values
                .map(|value| sparse::expand(value, files, budget).map(Data::Tensor))
                .collect()
        }
        held::SEQUENCE => proto.sequence_values.iter().map(from_sequence).collect(),
        held::MAP => proto.map_values.iter().map(from_map).collect(),
        held::OPTIONAL => proto.optional_values.iter().map(from_optional).collect(),
        _ => Ok(Vec::new()),
    };
    values.map(Data::Sequence)
}

fn from_optional(proto: &OptionalProto) -> Result<Data, Problem> {
    let files = &mut ExternalFiles::new(&ExternalData::Unknown);
    let counts = [
        (held::TENSOR, usize::from(proto.tensor_value.is_some())),
        (
            held::SPARSE_TENSOR,
            usize::from(proto.sparse_tensor_value.is_some()),
        ),
        (held::SEQUENCE, usize::from(proto.sequence_value.is_some())),
        (held::MAP, usize::from(proto.map_value.is_some())),
        (held::OPTIONAL, usize::from(proto.optional_value.is_some())),
    ];
    one_kind(proto.elem_type, &counts)?;
    let value = if let Some(value) = &proto.tensor_value {
        Some(Data::Tensor(tensor::decode(value, files)?))
    } else if let Some(value) = &proto.sparse_tensor_value {
        let budget = &mut sparse::Budget::default();
        Some(Data::Tensor(sparse::expand(value, files, budget)?))
    } else if let Some(value) = &proto.sequence_value {
        Some(from_sequence(value)?)
    } else if let Some(value) = &proto.map_value {
        Some(from_map(value)?)
    } else if let Some(value) = &proto.optional_value {
        Some(from_optional(value)?)
    } else {
        None
    };
    Ok(Data::Optional(value.map(Box::new)))
}

/// Returns the kind of value that a container holds, 0 if it holds none; refuses several.
fn one_kind(stated: Option<i32>, counts: &[(i32, usize)]) -> Result<i32, Problem> {
    let mut kinds = counts.iter().filter(|(_, count)| *count > 0);
    let found = kinds.next().map_or(0, |&(kind, _)| kind);
    let stated = stated.unwrap_or(0);
    let fits = found == 0 || stated == 0 || stated == found;
    if kinds.next().is_none() && fits && (0..=held::OPTIONAL).contains(&stated) {
        return Ok(found);
    }
    let message = format!("has the kind {stated} of values, expected values of one kind");
    Err(Problem::new(codes::MODEL_TYPE, message))
}

fn from_map(proto: &MapProto) -> Result<Data, Problem> {
    let element = tensor::element_type(proto.key_type)?;
    let values = match &proto.values {
        None => Vec::new(),
        Some(values) => match from_sequence(values)? {
            Data::Sequence(values) => values,
            other => vec![other],
        },
    };
    let (n_keys, n_texts) = (proto.keys.len(), proto.string_keys.len());
    if n_keys + n_texts != values.len() {
        let message = format!("has {} keys, expected {}", n_keys + n_texts, values.len());
        return Err(Problem::new(codes::MODEL_TENSOR, message));
    }
    let count = i64::try_from(values.len()).unwrap_or(i64::MAX);
    let mut keys = TensorProto {
        dims: vec![count],
        data_type: proto.key_type,
        string_data: proto.string_keys.clone(),
        ..TensorProto::default()
    };
    // Keys of all integer types share a field.
    match element {
        super::ElementType::I64 => keys.int64_data = proto.keys.clone(),
        super::ElementType::U32 | super::ElementType::U64 => {
            let bits = proto.keys.iter().map(|key| key.cast_unsigned());
            keys.uint64_data = bits.collect();
        }
        _ => {
            let narrow = |&key| {
                i32::try_from(key).map_err(|_| {
                    let message =
                        format!("has the key {key}, expected one of type {}", element.name());
                    Problem::new(codes::MODEL_TENSOR, message)
                })
            };
            keys.int32_data = proto.keys.iter().map(narrow).collect::<Result<_, _>>()?;
        }
    }
    let keys = tensor::decode(&keys, &mut ExternalFiles::new(&ExternalData::Unknown))?;
    Ok(Data::Map(keys, values))
}

fn sequence(values: &[Data]) -> SequenceProto {
    let mut proto = SequenceProto::default();
    for value in values {
        let kind = match value {
            Data::Tensor(value) => {
                proto.tensor_values.push(tensor::encode(value));
                held::TENSOR
            }
            Data::Sequence(values) => {
                proto.sequence_values.push(sequence(values));
                held::SEQUENCE
            }
            Data::Map(keys, values) => {
                proto.map_values.push(map(keys, values));
                held::MAP
            }
            Data::Optional(value) => {
                proto.optional_values.push(optional(value.as_deref()));
                held::OPTIONAL
            }
        };
        proto.elem_type = Some(kind);
    }
    proto
}

fn optional(value: Option<&Data>) -> OptionalProto {
    let mut proto = OptionalProto::default();
    let kind = match value {
        None => return proto,
        Some(Data::Tensor(value)) => {
            proto.tensor_value = Some(Box::new(tensor::encode(value)));
            held::TENSOR
        }
        Some(Data::Sequence(values)) => {
            proto.sequence_value = Some(Box::new(sequence(values)));
            held::SEQUENCE
        }
        Some(Data::Map(keys, values)) => {
            proto.map_value = Some(Box::new(map(keys, values)));
            held::MAP
        }
        Some(Data::Optional(value)) => {
            proto.optional_value = Some(Box::new(optional(value.as_deref())));
            held::OPTIONAL
        }
    };
    proto.elem_type = Some(kind);
    proto
}

fn map(keys: &Tensor, values: &[Data]) -> MapProto {
    let mut proto = MapProto {
        key_type: Some(keys.element.number()),
        values: Some(Box::new(sequence(values))),
        ..MapProto::default()
    };
    match &keys.data {
        TensorData::Strings(texts) => {
            let copy = |text: &std::sync::Arc<[u8]>| Bytes::copy_from_slice(text);
            proto.string_keys = texts.iter().map(copy).collect();
        }
        TensorData::Bytes(bytes) => {
            let size = keys.element.size_bytes().clamp(1, size_of::<i64>());
            let is_signed = matches!(
                keys.element,
                super::ElementType::I8 | super::ElementType::I16 | super::ElementType::I32
            );
            proto.keys = bytes
                .chunks_exact(size)
                .map(|key| widen(key, is_signed))
                .collect();
        }
    }
    proto
}

/// Reads a little-endian integer.
fn widen(bytes: &[u8], is_signed: bool) -> i64 {
    let is_negative = is_signed && bytes.last().is_some_and(|&byte| byte >= 0x80);
    let mut wide = [if is_negative { 0xff } else { 0 }; size_of::<i64>()];
    wide[..bytes.len()].copy_from_slice(bytes);
    i64::from_le_bytes(wide)
}
