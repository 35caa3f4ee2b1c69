//! The messages of KServe's service and of the health service, by the numbers of their fields.

use std::collections::HashMap;

use prost::bytes::Bytes;

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Empty {}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Live {
    #[prost(bool, tag = "1")]
    pub live: bool,
}

/// A model, and its version as text: the newest if there is none.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ModelName {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub version: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ServerMetadata {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub version: String,
    #[prost(string, repeated, tag = "3")]
    pub extensions: Vec<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ModelMetadata {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, repeated, tag = "2")]
    pub versions: Vec<String>,
    #[prost(string, tag = "3")]
    pub platform: String,
    #[prost(message, repeated, tag = "4")]
    pub inputs: Vec<TensorMetadata>,
    #[prost(message, repeated, tag = "5")]
    pub outputs: Vec<TensorMetadata>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct TensorMetadata {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub datatype: String,
    #[prost(int64, repeated, tag = "3")]
    pub shape: Vec<i64>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ModelConfigResponse {
    #[prost(message, optional, tag = "1")]
    pub config: Option<ModelConfig>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ModelConfig {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub platform: String,
    #[prost(int32, tag = "4")]
    pub max_batch_size: i32,
    #[prost(message, repeated, tag = "5")]
    pub input: Vec<InputConfig>,
    #[prost(message, repeated, tag = "6")]
    pub output: Vec<OutputConfig>,
    #[prost(message, optional, tag = "11")]
    pub dynamic_batching: Option<DynamicBatching>,
    #[prost(string, tag = "17")]
    pub backend: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct DynamicBatching {
    #[prost(uint64, tag = "2")]
    pub max_queue_delay_microseconds: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct InputConfig {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(int32, tag = "2")]
    pub data_type: i32,
    #[prost(int64, repeated, tag = "4")]
    pub dims: Vec<i64>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct OutputConfig {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(int32, tag = "2")]
    pub data_type: i32,
    #[prost(int64, repeated, tag = "3")]
    pub dims: Vec<i64>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Parameter {
    #[prost(oneof = "ParameterChoice", tags = "1, 2, 3, 4, 5")]
    pub choice: Option<ParameterChoice>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub(super) enum ParameterChoice {
    #[prost(bool, tag = "1")]
    Bool(bool),
    #[prost(int64, tag = "2")]
    Int64(i64),
    #[prost(string, tag = "3")]
    String(String),
    #[prost(double, tag = "4")]
    Double(f64),
    #[prost(uint64, tag = "5")]
    Uint64(u64),
}

pub(super) type Parameters = HashMap<String, Parameter>;

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct InferRequest {
    #[prost(string, tag = "1")]
    pub model_name: String,
    #[prost(string, tag = "2")]
    pub model_version: String,
    #[prost(string, tag = "3")]
    pub id: String,
    #[prost(map = "string, message", tag = "4")]
    pub parameters: Parameters,
    #[prost(message, repeated, tag = "5")]
    pub inputs: Vec<InferTensor>,
    #[prost(message, repeated, tag = "6")]
    pub outputs: Vec<WantedOutput>,
    #[prost(bytes = "bytes", repeated, tag = "7")]
    pub raw_input_contents: Vec<Bytes>,
}

/// An input or an output, whose elements may lie elsewhere in the message.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct InferTensor {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub datatype: String,
    #[prost(int64, repeated, tag = "3")]
    pub shape: Vec<i64>,
    #[prost(map = "string, message", tag = "4")]
    pub parameters: Parameters,
    #[prost(message, optional, tag = "5")]
    pub contents: Option<Contents>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct WantedOutput {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(map = "string, message", tag = "2")]
    pub parameters: Parameters,
}

/// Elements of one type.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Contents {
    #[prost(bool, repeated, tag = "1")]
    pub bools: Vec<bool>,
    #[prost(int32, repeated, tag = "2")]
    pub ints: Vec<i32>,
    #[prost(int64, repeated, tag = "3")]
    pub int64s: Vec<i64>,
    #[prost(uint32, repeated, tag = "4")]
    pub uints: Vec<u32>,
    #[prost(uint64, repeated, tag = "5")]
    pub uint64s: Vec<u64>,
    #[prost(float, repeated, tag = "6")]
    pub floats: Vec<f32>,
    #[prost(double, repeated, tag = "7")]
    pub doubles: Vec<f64>,
    #[prost(bytes = "vec", repeated, tag = "8")]
    pub strings: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct InferResponse {
    #[prost(string, tag = "1")]
    pub model_name: String,
    #[prost(string, tag = "2")]
    pub model_version: String,
    #[prost(string, tag = "3")]
    pub id: String,
    #[prost(map = "string, message", tag = "4")]
    pub parameters: Parameters,
    #[prost(message, repeated, tag = "5")]
    pub outputs: Vec<InferTensor>,
    #[prost(bytes = "bytes", repeated, tag = "6")]
    pub raw_output_contents: Vec<Bytes>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct StreamInferResponse {
    #[prost(string, tag = "1")]
    pub error_message: String,
    #[prost(message, optional, tag = "2")]
    pub infer_response: Option<InferResponse>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct StatisticsResponse {
    #[prost(message, repeated, tag = "1")]
    pub model_stats: Vec<ModelStatistics>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ModelStatistics {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub version: String,
    #[prost(uint64, tag = "3")]
    pub last_inference: u64,
    #[prost(uint64, tag = "4")]
    pub inference_count: u64,
    #[prost(uint64, tag = "5")]
    pub execution_count: u64,
    #[prost(message, optional, tag = "6")]
    pub inference_stats: Option<InferStatistics>,
    #[prost(message, repeated, tag = "7")]
    pub batch_stats: Vec<BatchStatistics>,
}

/// The batches of one number of rows.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct BatchStatistics {
    #[prost(uint64, tag = "1")]
    pub batch_size: u64,
    #[prost(message, optional, tag = "2")]
    pub compute_input: Option<Duration>,
    #[prost(message, optional, tag = "3")]
    pub compute_infer: Option<Duration>,
    #[prost(message, optional, tag = "4")]
    pub compute_output: Option<Duration>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct InferStatistics {
    #[prost(message, optional, tag = "1")]
    pub success: Option<Duration>,
    #[prost(message, optional, tag = "2")]
    pub fail: Option<Duration>,
    #[prost(message, optional, tag = "3")]
    pub queue: Option<Duration>,
    #[prost(message, optional, tag = "4")]
    pub compute_input: Option<Duration>,
    #[prost(message, optional, tag = "5")]
    pub compute_infer: Option<Duration>,
    #[prost(message, optional, tag = "6")]
    pub compute_output: Option<Duration>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Duration {
    #[prost(uint64, tag = "1")]
    pub count: u64,
    #[prost(uint64, tag = "2")]
    pub ns: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct IndexRequest {
    #[prost(string, tag = "1")]
    pub repository_name: String,
    #[prost(bool, tag = "2")]
    pub ready: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct IndexResponse {
    #[prost(message, repeated, tag = "1")]
    pub models: Vec<IndexEntry>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct IndexEntry {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub version: String,
    #[prost(string, tag = "3")]
    pub state: String,
    #[prost(string, tag = "4")]
    pub reason: String,
}

/// Asks for a model to be loaded, or unloaded.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ChangeRequest {
    #[prost(string, tag = "1")]
    pub repository_name: String,
    #[prost(string, tag = "2")]
    pub model_name: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct HealthRequest {
    #[prost(string, tag = "1")]
    pub service: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct HealthResponse {
    #[prost(enumeration = "Health", tag = "1")]
    pub status: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub(super) enum Health {
    Unknown = 0,
    Serving = 1,
    NotServing = 2,
    ServiceUnknown = 3,
}
