//! The protobuf messages of TensorFlow's SavedModels, graphs and checkpoints, as far as they are read.
//!
//! Field numbers are those of TensorFlow's public `.proto` files (version 2.18): `saved_model`, `meta_graph`, `saver`,
//! `graph`, `node_def`, `attr_value`, `function`, `op_def`, `tensor`, `tensor_shape` and `tensor_bundle`. Fields that are not
//! here are skipped.

use std::collections::BTreeMap;

use prost::{Message, Oneof, bytes::Bytes};

/// A model, as the message of the file `saved_model.pb`.
#[derive(Clone, PartialEq, Message)]
pub struct SavedModel {
    #[prost(int64, tag = "1")]
    pub saved_model_schema_version: i64,
    #[prost(message, repeated, tag = "2")]
    pub meta_graphs: Vec<MetaGraph>,
}

/// A graph with what is said about it (`MetaGraphDef`).
#[derive(Clone, PartialEq, Message)]
pub struct MetaGraph {
    #[prost(message, optional, boxed, tag = "1")]
    pub meta_info: Option<Box<MetaInfo>>,
    #[prost(message, optional, boxed, tag = "2")]
    pub graph: Option<Box<Graph>>,
    #[prost(message, optional, boxed, tag = "3")]
    pub saver: Option<Box<Saver>>,
    /// Lists of things that graphs of TensorFlow 1 name, such as `saved_model_main_op`.
    #[prost(btree_map = "string, message", tag = "4")]
    pub collections: BTreeMap<String, Collection>,
    #[prost(btree_map = "string, message", tag = "5")]
    pub signatures: BTreeMap<String, SignatureDef>,
    #[prost(message, repeated, tag = "6")]
    pub assets: Vec<Asset>,
}

/// A file beside the model, and the constant that stands for its path (`AssetFileDef`).
#[derive(Clone, PartialEq, Message)]
pub struct Asset {
    #[prost(message, optional, boxed, tag = "1")]
    pub info: Option<Box<TensorInfo>>,
    #[prost(string, tag = "2")]
    pub filename: String,
}

/// The description of a meta graph (`MetaInfoDef`).
#[derive(Clone, PartialEq, Message)]
pub struct MetaInfo {
    #[prost(message, optional, boxed, tag = "2")]
    pub stripped_op_list: Option<Box<OpList>>,
    #[prost(string, repeated, tag = "4")]
    pub tags: Vec<String>,
    #[prost(string, tag = "5")]
    pub tensorflow_version: String,
}

/// The operations that a graph has (`OpList`).
#[derive(Clone, PartialEq, Message)]
pub struct OpList {
    #[prost(message, repeated, tag = "1")]
    pub op: Vec<OpDef>,
}

/// A list of things that a graph of TensorFlow 1 names (`CollectionDef`).
#[derive(Clone, PartialEq, Message)]
pub struct Collection {
    #[prost(message, optional, boxed, tag = "1")]
    pub node_list: Option<Box<NodeList>>,
}

/// A list of names of nodes (`CollectionDef.NodeList`).
#[derive(Clone, PartialEq, Message)]
pub struct NodeList {
    #[prost(string, repeated, tag = "1")]
    pub value: Vec<String>,
}

/// The nodes that save and restore variables (`SaverDef`).
#[derive(Clone, PartialEq, Message)]
pub struct Saver {
    #[prost(string, tag = "3")]
    pub restore_op_name: String,
}

/// A function that a model offers: names of its inputs and outputs (`SignatureDef`).
#[derive(Clone, PartialEq, Message)]
pub struct SignatureDef {
    #[prost(btree_map = "string, message", tag = "1")]
    pub inputs: BTreeMap<String, TensorInfo>,
    #[prost(btree_map = "string, message", tag = "2")]
    pub outputs: BTreeMap<String, TensorInfo>,
}

/// The tensor of a graph that an input or output is (`TensorInfo`).
#[derive(Clone, PartialEq, Message)]
pub struct TensorInfo {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(int32, tag = "2")]
    pub dtype: i32,
    #[prost(message, optional, boxed, tag = "3")]
    pub shape: Option<Box<TensorShape>>,
}

/// A graph with the functions that it calls (`GraphDef`).
#[derive(Clone, PartialEq, Message)]
pub struct Graph {
    #[prost(message, repeated, tag = "1")]
    pub node: Vec<Node>,
    #[prost(message, optional, boxed, tag = "2")]
    pub library: Option<Box<Library>>,
}

/// The functions of a graph (`FunctionDefLibrary`).
#[derive(Clone, PartialEq, Message)]
pub struct Library {
    #[prost(message, repeated, tag = "1")]
    pub function: Vec<Function>,
}

/// A function (`FunctionDef`).
#[derive(Clone, PartialEq, Message)]
pub struct Function {
    #[prost(message, optional, boxed, tag = "1")]
    pub signature: Option<Box<OpDef>>,
    #[prost(message, repeated, tag = "3")]
    pub node: Vec<Node>,
    /// The value of each output.
    #[prost(btree_map = "string, string", tag = "4")]
    pub ret: BTreeMap<String, String>,
    /// Nodes that run whether or not an output needs them.
    #[prost(btree_map = "string, string", tag = "6")]
    pub control_ret: BTreeMap<String, String>,
}

/// The definition of an operation, or the signature of a function (`OpDef`).
#[derive(Clone, PartialEq, Message)]
pub struct OpDef {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(message, repeated, tag = "2")]
    pub input: Vec<ArgDef>,
    #[prost(message, repeated, tag = "3")]
    pub output: Vec<ArgDef>,
}

/// An input or an output of an operation (`OpDef.ArgDef`).
#[derive(Clone, PartialEq, Message)]
pub struct ArgDef {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(int32, tag = "3")]
    pub dtype: i32,
    /// The attribute that says how many values of one type it stands for.
    #[prost(string, tag = "5")]
    pub number_attr: String,
    /// The attribute that lists the types of the values that it stands for.
    #[prost(string, tag = "6")]
    pub type_list_attr: String,
}

/// A node of a graph (`NodeDef`).
#[derive(Clone, PartialEq, Message)]
pub struct Node {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub op: String,
    #[prost(string, repeated, tag = "3")]
    pub input: Vec<String>,
    #[prost(btree_map = "string, message", tag = "5")]
    pub attr: BTreeMap<String, AttrValue>,
}

/// The value of an attribute (`AttrValue`).
#[derive(Clone, PartialEq, Message)]
pub struct AttrValue {
    #[prost(oneof = "Value", tags = "1, 2, 3, 4, 5, 6, 7, 8, 9, 10")]
    pub value: Option<Value>,
}

/// A value of one of the kinds that attributes have.
#[derive(Clone, PartialEq, Oneof)]
pub enum Value {
    #[prost(message, boxed, tag = "1")]
    List(Box<ListValue>),
    #[prost(bytes = "bytes", tag = "2")]
    Text(Bytes),
    #[prost(int64, tag = "3")]
    Int(i64),
    #[prost(float, tag = "4")]
    Float(f32),
    #[prost(bool, tag = "5")]
    Bool(bool),
    #[prost(int32, tag = "6")]
    Type(i32),
    #[prost(message, boxed, tag = "7")]
    Shape(Box<TensorShape>),
    #[prost(message, boxed, tag = "8")]
    Tensor(Box<TensorProto>),
    #[prost(string, tag = "9")]
    Placeholder(String),
    #[prost(message, boxed, tag = "10")]
    Func(Box<FunctionRef>),
}

/// Values of one kind (`AttrValue.ListValue`).
#[derive(Clone, PartialEq, Message)]
pub struct ListValue {
    #[prost(bytes = "bytes", repeated, tag = "2")]
    pub s: Vec<Bytes>,
    #[prost(int64, repeated, tag = "3")]
    pub i: Vec<i64>,
    #[prost(float, repeated, tag = "4")]
    pub f: Vec<f32>,
    #[prost(bool, repeated, tag = "5")]
    pub b: Vec<bool>,
    #[prost(int32, repeated, tag = "6")]
    pub ty: Vec<i32>,
    #[prost(message, repeated, tag = "7")]
    pub shape: Vec<TensorShape>,
    #[prost(message, repeated, tag = "9")]
    pub func: Vec<FunctionRef>,
}

/// The name of a function (`NameAttrList`).
#[derive(Clone, PartialEq, Message)]
pub struct FunctionRef {
    #[prost(string, tag = "1")]
    pub name: String,
}

/// The extents of a tensor (`TensorShapeProto`).
#[derive(Clone, PartialEq, Message)]
pub struct TensorShape {
    #[prost(message, repeated, tag = "2")]
    pub dim: Vec<Dim>,
    #[prost(bool, tag = "3")]
    pub unknown_rank: bool,
}

/// An extent; -1 is unknown (`TensorShapeProto.Dim`).
#[derive(Clone, PartialEq, Message)]
pub struct Dim {
    #[prost(int64, tag = "1")]
    pub size: i64,
    #[prost(string, tag = "2")]
    pub name: String,
}

/// A tensor (`TensorProto`).
#[derive(Clone, PartialEq, Message)]
pub struct TensorProto {
    #[prost(int32, tag = "1")]
    pub dtype: i32,
    #[prost(message, optional, boxed, tag = "2")]
    pub shape: Option<Box<TensorShape>>,
    #[prost(bytes = "bytes", tag = "4")]
    pub content: Bytes,
    #[prost(float, repeated, tag = "5")]
    pub float_val: Vec<f32>,
    #[prost(double, repeated, tag = "6")]
    pub double_val: Vec<f64>,
    #[prost(int32, repeated, tag = "7")]
    pub int_val: Vec<i32>,
    #[prost(bytes = "bytes", repeated, tag = "8")]
    pub string_val: Vec<Bytes>,
    #[prost(float, repeated, tag = "9")]
    pub scomplex_val: Vec<f32>,
    #[prost(int64, repeated, tag = "10")]
    pub int64_val: Vec<i64>,
    #[prost(bool, repeated, tag = "11")]
    pub bool_val: Vec<bool>,
    #[prost(double, repeated, tag = "12")]
    pub dcomplex_val: Vec<f64>,
    #[prost(int32, repeated, tag = "13")]
    pub half_val: Vec<i32>,
    #[prost(uint32, repeated, tag = "16")]
    pub uint32_val: Vec<u32>,
    #[prost(uint64, repeated, tag = "17")]
    pub uint64_val: Vec<u64>,
}

/// The first entry of a checkpoint's index (`BundleHeaderProto`).
#[derive(Clone, PartialEq, Message)]
pub struct BundleHeader {
    #[prost(int32, tag = "1")]
    pub num_shards: i32,
    /// 0 for little-endian elements, 1 for big-endian ones.
    #[prost(int32, tag = "2")]
    pub endianness: i32,
}

/// The place of a tensor in a checkpoint (`BundleEntryProto`).
#[derive(Clone, PartialEq, Message)]
pub struct BundleEntry {
    #[prost(int32, tag = "1")]
    pub dtype: i32,
    #[prost(message, optional, boxed, tag = "2")]
    pub shape: Option<Box<TensorShape>>,
    #[prost(int32, tag = "3")]
    pub shard_id: i32,
    #[prost(int64, tag = "4")]
    pub offset: i64,
    #[prost(int64, tag = "5")]
    pub size: i64,
    #[prost(fixed32, tag = "6")]
    pub crc32c: u32,
    #[prost(message, repeated, tag = "7")]
    pub slices: Vec<TensorSlice>,
}

/// A part of a tensor that is stored in several (`TensorSliceProto`).
#[derive(Clone, PartialEq, Message)]
pub struct TensorSlice {
    #[prost(message, repeated, tag = "1")]
    pub extent: Vec<SliceExtent>,
}

/// The part along a dimension: all of it, if no length is stated (`TensorSliceProto.Extent`).
#[derive(Clone, PartialEq, Message)]
pub struct SliceExtent {
    #[prost(int64, tag = "1")]
    pub start: i64,
    #[prost(int64, optional, tag = "2")]
    pub length: Option<i64>,
}
