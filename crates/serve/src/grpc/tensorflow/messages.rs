//! The messages of TensorFlow Serving's services, by the numbers of their fields, and those of TensorFlow within them.

use std::collections::{BTreeMap, HashMap};

use prost::bytes::Bytes;

/// A model: by its newest version, unless one is named.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ModelSpec {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(message, optional, tag = "2")]
    pub version: Option<Int64>,
    #[prost(string, tag = "3")]
    pub signature_name: String,
    #[prost(string, tag = "4")]
    pub version_label: String,
}

/// `google.protobuf.Int64Value`
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Int64 {
    #[prost(int64, tag = "1")]
    pub value: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct PredictRequest {
    #[prost(message, optional, tag = "1")]
    pub model_spec: Option<ModelSpec>,
    #[prost(map = "string, message", tag = "2")]
    pub inputs: HashMap<String, TensorProto>,
    #[prost(string, repeated, tag = "3")]
    pub output_filter: Vec<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct PredictResponse {
    #[prost(btree_map = "string, message", tag = "1")]
    pub outputs: BTreeMap<String, TensorProto>,
    #[prost(message, optional, tag = "2")]
    pub model_spec: Option<ModelSpec>,
}

/// `tensorflow.TensorProto`: elements as bytes, or in the list of their type.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct TensorProto {
    #[prost(int32, tag = "1")]
    pub dtype: i32,
    #[prost(message, optional, tag = "2")]
    pub tensor_shape: Option<Shape>,
    #[prost(bytes = "bytes", tag = "4")]
    pub tensor_content: Bytes,
    #[prost(float, repeated, tag = "5")]
    pub float_val: Vec<f32>,
    #[prost(double, repeated, tag = "6")]
    pub double_val: Vec<f64>,
    /// All types of integers up to 32 bits but `uint32`.
    #[prost(int32, repeated, tag = "7")]
    pub int_val: Vec<i32>,
    #[prost(bytes = "vec", repeated, tag = "8")]
    pub string_val: Vec<Vec<u8>>,
    #[prost(int64, repeated, tag = "10")]
    pub int64_val: Vec<i64>,
    #[prost(bool, repeated, tag = "11")]
    pub bool_val: Vec<bool>,
    /// The bits of both types of half precision.
    #[prost(int32, repeated, tag = "13")]
    pub half_val: Vec<i32>,
    #[prost(uint32, repeated, tag = "16")]
    pub uint32_val: Vec<u32>,
    #[prost(uint64, repeated, tag = "17")]
    pub uint64_val: Vec<u64>,
}

/// `tensorflow.TensorShapeProto`: -1 for an extent that is not known.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Shape {
    #[prost(message, repeated, tag = "2")]
    pub dim: Vec<ShapeDim>,
    #[prost(bool, tag = "3")]
    pub unknown_rank: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ShapeDim {
    #[prost(int64, tag = "1")]
    pub size: i64,
    #[prost(string, tag = "2")]
    pub name: String,
}

impl ShapeDim {
    /// Makes a dimension without a name.
    pub fn of(size: i64) -> ShapeDim {
        ShapeDim {
            size,
            name: String::new(),
        }
    }
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct MetadataRequest {
    #[prost(message, optional, tag = "1")]
    pub model_spec: Option<ModelSpec>,
    #[prost(string, repeated, tag = "2")]
    pub metadata_field: Vec<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct MetadataResponse {
    #[prost(message, optional, tag = "1")]
    pub model_spec: Option<ModelSpec>,
    #[prost(btree_map = "string, message", tag = "2")]
    pub metadata: BTreeMap<String, Any>,
}

/// `google.protobuf.Any`: a message, and which it is.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Any {
    #[prost(string, tag = "1")]
    pub type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    pub value: Vec<u8>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Signatures {
    #[prost(btree_map = "string, message", tag = "1")]
    pub signature_def: BTreeMap<String, Signature>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Signature {
    #[prost(btree_map = "string, message", tag = "1")]
    pub inputs: BTreeMap<String, TensorInfo>,
    #[prost(btree_map = "string, message", tag = "2")]
    pub outputs: BTreeMap<String, TensorInfo>,
    #[prost(string, tag = "3")]
    pub method_name: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct TensorInfo {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(int32, tag = "2")]
    pub dtype: i32,
    #[prost(message, optional, tag = "3")]
    pub tensor_shape: Option<Shape>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct StatusRequest {
    #[prost(message, optional, tag = "1")]
    pub model_spec: Option<ModelSpec>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct StatusResponse {
    #[prost(message, repeated, tag = "1")]
    pub model_version_status: Vec<VersionStatus>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct VersionStatus {
    #[prost(int64, tag = "1")]
    pub version: i64,
    #[prost(enumeration = "State", tag = "2")]
    pub state: i32,
    #[prost(message, optional, tag = "3")]
    pub status: Option<StatusProto>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub(super) enum State {
    Unknown = 0,
    Available = 30,
    End = 50,
}

/// A code as gRPC has it, and a message.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct StatusProto {
    #[prost(int32, tag = "1")]
    pub error_code: i32,
    #[prost(string, tag = "2")]
    pub error_message: String,
}
