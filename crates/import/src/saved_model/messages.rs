//! The messages that the gate knows of SavedModels and graphs: their fields, and the memory that they take.
//!
//! A field of which there are many has `[]` behind its name; an entry of a map is a message of a key and a value.

use super::proto;
use crate::onnx::gate::messages::{AROUND, messages};
use crate::onnx::gate::{
    Field,
    Kind::{Bytes, Fixed32, Fixed64, Message as Nested, Text, Varint},
    Message,
};

/// Declares entries of maps from texts to messages.
///
/// `ATTR_ENTRY: AttrValue => ATTR;` becomes
/// ```ignore
/// static ATTR_ENTRY: Message = Message {
///     size: size_of::<(String, proto::AttrValue)>() + AROUND,
///     fields: &[
///         Field { number: 1, name: "key", kind: Text },
///         Field { number: 2, name: "value", kind: Nested(&ATTR) },
///     ],
/// };
/// ```
macro_rules! entries {
    ($($name:ident: $ty:ident => $value:ident;)*) => {
        $(
            static $name: Message = Message {
                size: size_of::<(String, proto::$ty)>() + AROUND,
                fields: &[
                    Field { number: 1, name: "key", kind: Text },
                    Field { number: 2, name: "value", kind: Nested(&$value) },
                ],
            };
        )*
    };
}

entries! {
    COLLECTION_ENTRY: Collection => COLLECTION;
    SIGNATURE_ENTRY: SignatureDef => SIGNATURE;
    INFO_ENTRY: TensorInfo => INFO;
    ATTR_ENTRY: AttrValue => ATTR;
}

static TEXT_ENTRY: Message = Message {
    size: size_of::<(String, String)>() + AROUND,
    fields: &[
        Field {
            number: 1,
            name: "key",
            kind: Text,
        },
        Field {
            number: 2,
            name: "value",
            kind: Text,
        },
    ],
};

messages! {
    SAVED_MODEL: SavedModel {
        1 "saved_model_schema_version" Varint,
        2 "meta_graphs[]" Nested(&META_GRAPH),
    }
    META_GRAPH: MetaGraph {
        1 "meta_info_def" Nested(&META_INFO),
        2 "graph_def" Nested(&GRAPH),
        3 "saver_def" Nested(&SAVER),
        4 "collection_def[]" Nested(&COLLECTION_ENTRY),
        5 "signature_def[]" Nested(&SIGNATURE_ENTRY),
        6 "asset_file_def[]" Nested(&ASSET),
    }
    ASSET: Asset {
        1 "tensor_info" Nested(&INFO),
        2 "filename" Text,
    }
    META_INFO: MetaInfo {
        2 "stripped_op_list" Nested(&OP_LIST),
        4 "tags[]" Text,
        5 "tensorflow_version" Text,
    }
    OP_LIST: OpList {
        1 "op[]" Nested(&OP_DEF),
    }
    COLLECTION: Collection {
        1 "node_list" Nested(&NODE_LIST),
    }
    NODE_LIST: NodeList {
        1 "value[]" Text,
    }
    SAVER: Saver {
        3 "restore_op_name" Text,
    }
    SIGNATURE: SignatureDef {
        1 "inputs[]" Nested(&INFO_ENTRY),
        2 "outputs[]" Nested(&INFO_ENTRY),
    }
    INFO: TensorInfo {
        1 "name" Text,
        2 "dtype" Varint,
        3 "tensor_shape" Nested(&SHAPE),
    }
    GRAPH: Graph {
        1 "node[]" Nested(&NODE),
        2 "library" Nested(&LIBRARY),
    }
    LIBRARY: Library {
        1 "function[]" Nested(&FUNCTION),
    }
    FUNCTION: Function {
        1 "signature" Nested(&OP_DEF),
        3 "node_def[]" Nested(&NODE),
        4 "ret[]" Nested(&TEXT_ENTRY),
        6 "control_ret[]" Nested(&TEXT_ENTRY),
    }
    OP_DEF: OpDef {
        1 "name" Text,
        2 "input_arg[]" Nested(&ARG_DEF),
        3 "output_arg[]" Nested(&ARG_DEF),
    }
    ARG_DEF: ArgDef {
        1 "name" Text,
        3 "type" Varint,
        5 "number_attr" Text,
        6 "type_list_attr" Text,
    }
    NODE: Node {
        1 "name" Text,
        2 "op" Text,
        3 "input[]" Text,
        5 "attr[]" Nested(&ATTR_ENTRY),
    }
    ATTR: AttrValue {
        1 "list" Nested(&LIST),
        2 "s" Bytes,
        3 "i" Varint,
        4 "f" Fixed32,
        5 "b" Varint,
        6 "type" Varint,
        7 "shape" Nested(&SHAPE),
        8 "tensor" Nested(&TENSOR),
        9 "placeholder" Text,
        10 "func" Nested(&FUNCTION_REF),
    }
    LIST: ListValue {
        2 "s[]" Bytes,
        3 "i[]" Varint,
        4 "f[]" Fixed32,
        5 "b[]" Varint,
        6 "type[]" Varint,
        7 "shape[]" Nested(&SHAPE),
        9 "func[]" Nested(&FUNCTION_REF),
    }
    FUNCTION_REF: FunctionRef {
        1 "name" Text,
    }
    SHAPE: TensorShape {
        2 "dim[]" Nested(&DIM),
        3 "unknown_rank" Varint,
    }
    DIM: Dim {
        1 "size" Varint,
        2 "name" Text,
    }
    TENSOR: TensorProto {
        1 "dtype" Varint,
        2 "tensor_shape" Nested(&SHAPE),
        4 "tensor_content" Bytes,
        5 "float_val[]" Fixed32,
        6 "double_val[]" Fixed64,
        7 "int_val[]" Varint,
        8 "string_val[]" Bytes,
        9 "scomplex_val[]" Fixed32,
        10 "int64_val[]" Varint,
        11 "bool_val[]" Varint,
        12 "dcomplex_val[]" Fixed64,
        13 "half_val[]" Varint,
        16 "uint32_val[]" Varint,
        17 "uint64_val[]" Varint,
    }
    BUNDLE_HEADER: BundleHeader {
        1 "num_shards" Varint,
        2 "endianness" Varint,
    }
    BUNDLE_ENTRY: BundleEntry {
        1 "dtype" Varint,
        2 "shape" Nested(&SHAPE),
        3 "shard_id" Varint,
        4 "offset" Varint,
        5 "size" Varint,
        6 "crc32c" Fixed32,
        7 "slices[]" Nested(&SLICE),
    }
    SLICE: TensorSlice {
        1 "extent[]" Nested(&SLICE_EXTENT),
    }
    SLICE_EXTENT: SliceExtent {
        1 "start" Varint,
        2 "length" Varint,
    }
}
