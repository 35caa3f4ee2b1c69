//! The messages that the gate knows: their fields, and the memory that they take.
//!
//! A field of which there are many has `[]` behind its name. A test compares all of this with
//! the messages themselves.

use super::{
    super::proto,
    Field,
    Kind::{Bytes, Fixed32, Fixed64, Message as Nested, Text, Varint},
    Message,
};

/// The bytes that the allocator, and the list that holds a message, add to it.
pub(crate) const AROUND: usize = 32;

/// Declares messages: the type that is decoded, then number, name and kind of each field.
///
/// `MAP: MapType { 1 "key_type" Varint, }` becomes
/// ```ignore
/// pub static MAP: Message = Message {
///     size: size_of::<proto::MapType>() + AROUND,
///     fields: &[Field { number: 1, name: "key_type", kind: Varint }],
/// };
/// ```
macro_rules! messages {
    ($($name:ident: $ty:ident { $($number:literal $field:literal $kind:expr,)* })*) => {
        $(
            pub static $name: Message = Message {
                size: size_of::<proto::$ty>() + AROUND,
                fields: &[$(Field { number: $number, name: $field, kind: $kind }),*],
            };
        )*
    };
}
pub(crate) use messages;

messages! {
    MODEL: Model {
        1 "ir_version" Varint,
        2 "producer_name" Bytes,
        3 "producer_version" Bytes,
        7 "graph" Nested(&GRAPH),
        8 "opset_import[]" Nested(&OPERATOR_SET),
        14 "metadata_props[]" Nested(&PROPERTY),
        25 "functions[]" Nested(&FUNCTION),
    }
    OPERATOR_SET: OperatorSet {
        1 "domain" Text,
        2 "version" Varint,
    }
    PROPERTY: Property {
        1 "key" Bytes,
        2 "value" Bytes,
    }
    ENTRY: Entry {
        1 "key" Text,
        2 "value" Text,
    }
    GRAPH: Graph {
        1 "node[]" Nested(&NODE),
        2 "name" Text,
        5 "initializer[]" Nested(&TENSOR_PROTO),
        15 "sparse_initializer[]" Nested(&SPARSE_TENSOR),
        11 "input[]" Nested(&VALUE_INFO),
        12 "output[]" Nested(&VALUE_INFO),
        13 "value_info[]" Nested(&VALUE_INFO),
    }
    VALUE_INFO: ValueInfo {
        1 "name" Text,
        2 "type" Nested(&TYPE_PROTO),
    }
    NODE: Node {
        1 "input[]" Text,
        2 "output[]" Text,
        3 "name" Text,
        4 "op_type" Text,
        5 "attribute[]" Nested(&ATTRIBUTE_PROTO),
        7 "domain" Text,
        8 "overload" Text,
    }
    ATTRIBUTE_PROTO: AttributeProto {
        1 "name" Text,
        21 "ref_attr_name" Text,
        20 "type" Varint,
        2 "f" Fixed32,
        3 "i" Varint,
        4 "s" Bytes,
        5 "t" Nested(&TENSOR_PROTO),
        6 "g" Nested(&GRAPH),
        22 "sparse_tensor" Nested(&SPARSE_TENSOR),
        14 "tp" Nested(&TYPE_PROTO),
        7 "floats[]" Fixed32,
        8 "ints[]" Varint,
        9 "strings[]" Bytes,
        10 "tensors[]" Nested(&TENSOR_PROTO),
        11 "graphs[]" Nested(&GRAPH),
        23 "sparse_tensors[]" Nested(&SPARSE_TENSOR),
        15 "type_protos[]" Nested(&TYPE_PROTO),
    }
    TENSOR_PROTO: TensorProto {
        1 "dims[]" Varint,
        2 "data_type" Varint,
        3 "segment" Nested(&SEGMENT),
        4 "float_data[]" Fixed32,
        5 "int32_data[]" Varint,
        6 "string_data[]" Bytes,
        7 "int64_data[]" Varint,
        8 "name" Text,
        9 "raw_data" Bytes,
        10 "double_data[]" Fixed64,
        11 "uint64_data[]" Varint,
        13 "external_data[]" Nested(&ENTRY),
        14 "data_location" Varint,
    }
    SEGMENT: Segment {
        1 "begin" Varint,
        2 "end" Varint,
    }
    SPARSE_TENSOR: SparseTensor {
        1 "values" Nested(&TENSOR_PROTO),
        2 "indices" Nested(&TENSOR_PROTO),
        3 "dims[]" Varint,
    }
    SHAPE: TensorShapeProto {
        1 "dim[]" Nested(&DIMENSION),
    }
    DIMENSION: Dimension {
        1 "dim_value" Varint,
        2 "dim_param" Text,
    }
    TYPE_PROTO: TypeProto {
        1 "tensor_type" Nested(&TENSOR_TYPE),
        4 "sequence_type" Nested(&ELEMENT_OF),
        5 "map_type" Nested(&MAP_TYPE),
        8 "sparse_tensor_type" Nested(&TENSOR_TYPE),
        9 "optional_type" Nested(&ELEMENT_OF),
    }
    TENSOR_TYPE: TensorType {
        1 "elem_type" Varint,
        2 "shape" Nested(&SHAPE),
    }
    ELEMENT_OF: ContainerTypeProto {
        1 "elem_type" Nested(&TYPE_PROTO),
    }
    MAP_TYPE: MapType {
        1 "key_type" Varint,
        2 "value_type" Nested(&TYPE_PROTO),
    }
    FUNCTION: Function {
        1 "name" Text,
        4 "input[]" Text,
        5 "output[]" Text,
        6 "attribute[]" Text,
        11 "attribute_proto[]" Nested(&ATTRIBUTE_PROTO),
        7 "node[]" Nested(&NODE),
        9 "opset_import[]" Nested(&OPERATOR_SET),
        10 "domain" Text,
        13 "overload" Text,
        12 "value_info[]" Nested(&VALUE_INFO),
    }
    SEQUENCE_PROTO: SequenceProto {
        1 "name" Text,
        2 "elem_type" Varint,
        3 "tensor_values[]" Nested(&TENSOR_PROTO),
        4 "sparse_tensor_values[]" Nested(&SPARSE_TENSOR),
        5 "sequence_values[]" Nested(&SEQUENCE_PROTO),
        6 "map_values[]" Nested(&MAP_PROTO),
        7 "optional_values[]" Nested(&OPTIONAL_PROTO),
    }
    MAP_PROTO: MapProto {
        1 "name" Text,
        2 "key_type" Varint,
        3 "keys[]" Varint,
        4 "string_keys[]" Bytes,
        5 "values" Nested(&SEQUENCE_PROTO),
    }
    OPTIONAL_PROTO: OptionalProto {
        1 "name" Text,
        2 "elem_type" Varint,
        3 "tensor_value" Nested(&TENSOR_PROTO),
        4 "sparse_tensor_value" Nested(&SPARSE_TENSOR),
        5 "sequence_value" Nested(&SEQUENCE_PROTO),
        6 "map_value" Nested(&MAP_PROTO),
        7 "optional_value" Nested(&OPTIONAL_PROTO),
    }
}
