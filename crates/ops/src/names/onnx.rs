//! The mapping of ONNX: operations of its default domain that are rows of `graph`.
//!
//! The rest of ONNX are library rows under their own names: `onnx.NonMaxSuppression`. The version of an operation is
//! that of the newest form that the pass `onnx-upgrade` makes.

use tfrt_bef::DType;

use super::{Name, NameAttr, RowAttrs, RowMatch};
use crate::attrs::AttrSource;
use crate::def::OpDef;
use NameAttr::{Int, Renamed, Text, Type};

/// The mappings of the default domain, sorted by name.
pub const NAMES: &[Name] = &[
    Name::new("Abs", "abs"),
    Name::new("Acos", "acos"),
    Name::new("Acosh", "acosh"),
    Name::new("Add", "add")
        .since(7)
        .unless(&["axis", "broadcast"]),
    Name::new("And", "and")
        .since(7)
        .unless(&["axis", "broadcast"]),
    Name::new("ArgMax", "arg").attrs(&[
        Text("kind", "max"),
        Renamed("keep", "keepdims"),
        Renamed("last", "select_last_index"),
    ]),
    Name::new("ArgMin", "arg").attrs(&[
        Text("kind", "min"),
        Renamed("keep", "keepdims"),
        Renamed("last", "select_last_index"),
    ]),
    Name::new("Asin", "asin"),
    Name::new("Asinh", "asinh"),
    Name::new("Atan", "atan"),
    Name::new("Atanh", "atanh"),
    Name::new("Attention", "attention").attrs(&[Renamed("scores_mode", "qk_matmul_output_mode")]),
    Name::new("AveragePool", "pool").attrs(&[Text("kind", "mean")]),
    Name::new("BatchNormalization", "norm")
        .attrs(&[Text("kind", "batch"), Renamed("training", "training_mode")])
        .since(9)
        .unless(&["spatial"])
        .same_shapes(),
    Name::new("BitwiseAnd", "bit_and"),
    Name::new("BitwiseNot", "bit_not"),
    Name::new("BitwiseOr", "bit_or"),
    Name::new("BitwiseXor", "bit_xor"),
    Name::new("Cast", "cast").attrs(&[Type("to", "to")]),
    Name::new("Ceil", "ceil"),
    Name::new("Concat", "concat"),
    Name::new("Constant", "constant"),
    Name::new("ConstantOfShape", "fill"),
    Name::new("Conv", "conv").attrs(&[Renamed("groups", "group")]),
    Name::new("ConvTranspose", "conv").attrs(&[Renamed("groups", "group"), Int("transposed", 1)]),
    Name::new("Cos", "cos"),
    Name::new("Cosh", "cosh"),
    Name::new("CumProd", "cumulative").attrs(&[Text("kind", "prod")]),
    Name::new("CumSum", "cumulative").attrs(&[Text("kind", "sum")]),
    Name::new("DequantizeLinear", "dequantize").attrs(&[Type("to", "output_dtype")]),
    Name::new("Div", "div")
        .since(7)
        .unless(&["axis", "broadcast"]),
    Name::new("Elu", "elu"),
    Name::new("Equal", "eq")
        .since(7)
        .unless(&["axis", "broadcast"]),
    Name::new("Erf", "erf"),
    Name::new("Exp", "exp"),
    Name::new("Expand", "broadcast"),
    Name::new("Floor", "floor"),
    Name::new("GRU", "rnn")
        .attrs(&[Text("kind", "gru")])
        .since(7),
    Name::new("Gather", "gather"),
    Name::new("GatherElements", "gather_elements"),
    Name::new("GatherND", "gather_nd"),
    Name::new("Gelu", "gelu"),
    Name::new("GlobalAveragePool", "pool").attrs(&[Text("kind", "mean"), Int("whole", 1)]),
    Name::new("GlobalLpPool", "pool").attrs(&[Text("kind", "lp"), Int("whole", 1)]),
    Name::new("GlobalMaxPool", "pool").attrs(&[Text("kind", "max"), Int("whole", 1)]),
    Name::new("Greater", "gt")
        .since(7)
        .unless(&["axis", "broadcast"]),
    Name::new("GreaterOrEqual", "ge"),
    Name::new("GroupNormalization", "norm")
        .attrs(&[Text("kind", "group"), Renamed("groups", "num_groups")]),
    Name::new("HardSigmoid", "hard_sigmoid"),
    Name::new("Identity", "identity"),
    Name::new("If", "if"),
    Name::new("InstanceNormalization", "norm").attrs(&[Text("kind", "instance")]),
    Name::new("IsInf", "is_inf").attrs(&[
        Renamed("negative", "detect_negative"),
        Renamed("positive", "detect_positive"),
    ]),
    Name::new("IsNaN", "is_nan"),
    Name::new("LRN", "lrn"),
    Name::new("LSTM", "rnn")
        .attrs(&[Text("kind", "lstm")])
        .since(7),
    Name::new("LayerNormalization", "norm").attrs(&[Text("kind", "layer")]),
    Name::new("LeakyRelu", "leaky_relu"),
    Name::new("Less", "lt")
        .since(7)
        .unless(&["axis", "broadcast"]),
    Name::new("LessOrEqual", "le"),
    Name::new("Log", "log"),
    Name::new("LogSoftmax", "softmax")
        .attrs(&[Int("log", 1)])
        .since(13)
        .same_shapes(),
    Name::new("LpPool", "pool").attrs(&[Text("kind", "lp")]),
    Name::new("MatMul", "dot"),
    Name::new("MaxPool", "pool").attrs(&[Text("kind", "max")]),
    Name::new("Mod", "rem").attrs(&[Renamed("truncated", "fmod")]),
    Name::new("Mul", "mul")
        .since(7)
        .unless(&["axis", "broadcast"]),
    Name::new("Neg", "neg"),
    Name::new("NonZero", "nonzero"),
    Name::new("Not", "not"),
    Name::new("OneHot", "one_hot"),
    Name::new("Or", "or")
        .since(7)
        .unless(&["axis", "broadcast"]),
    Name::new("Pad", "pad").since(11),
    Name::new("Pow", "pow")
        .since(7)
        .unless(&["axis", "broadcast"]),
    Name::new("QuantizeLinear", "quantize")
        .attrs(&[Type("to", "output_dtype"), Type("precision", "precision")]),
    Name::new("RMSNormalization", "norm").attrs(&[Text("kind", "rms")]),
    Name::new("RNN", "rnn")
        .attrs(&[Text("kind", "rnn")])
        .since(7),
    Name::new("Range", "iota"),
    Name::new("Reciprocal", "reciprocal"),
    Name::new("ReduceL1", "reduce").attrs(&[
        Text("kind", "l1"),
        Renamed("keep", "keepdims"),
        Renamed("none_if_empty", "noop_with_empty_axes"),
    ]),
    Name::new("ReduceL2", "reduce").attrs(&[
        Text("kind", "l2"),
        Renamed("keep", "keepdims"),
        Renamed("none_if_empty", "noop_with_empty_axes"),
    ]),
    Name::new("ReduceLogSum", "reduce").attrs(&[
        Text("kind", "log_sum"),
        Renamed("keep", "keepdims"),
        Renamed("none_if_empty", "noop_with_empty_axes"),
    ]),
    Name::new("ReduceLogSumExp", "reduce").attrs(&[
        Text("kind", "log_sum_exp"),
        Renamed("keep", "keepdims"),
        Renamed("none_if_empty", "noop_with_empty_axes"),
    ]),
    Name::new("ReduceMax", "reduce").attrs(&[
        Text("kind", "max"),
        Renamed("keep", "keepdims"),
        Renamed("none_if_empty", "noop_with_empty_axes"),
    ]),
    Name::new("ReduceMean", "reduce").attrs(&[
        Text("kind", "mean"),
        Renamed("keep", "keepdims"),
        Renamed("none_if_empty", "noop_with_empty_axes"),
    ]),
    Name::new("ReduceMin", "reduce").attrs(&[
        Text("kind", "min"),
        Renamed("keep", "keepdims"),
        Renamed("none_if_empty", "noop_with_empty_axes"),
    ]),
    Name::new("ReduceProd", "reduce").attrs(&[
        Text("kind", "prod"),
        Renamed("keep", "keepdims"),
        Renamed("none_if_empty", "noop_with_empty_axes"),
    ]),
    Name::new("ReduceSum", "reduce").attrs(&[
        Text("kind", "sum"),
        Renamed("keep", "keepdims"),
        Renamed("none_if_empty", "noop_with_empty_axes"),
    ]),
    Name::new("ReduceSumSquare", "reduce").attrs(&[
        Text("kind", "sum_square"),
        Renamed("keep", "keepdims"),
        Renamed("none_if_empty", "noop_with_empty_axes"),
    ]),
    Name::new("Relu", "relu"),
    Name::new("Reshape", "reshape")
        .attrs(&[Renamed("allow_zero", "allowzero")])
        .since(5),
    Name::new("Resize", "resize")
        .attrs(&[Renamed("coordinates", "coordinate_transformation_mode")])
        .since(11),
    Name::new("Round", "round"),
    Name::new("Scan", "scan")
        .attrs(&[
            Renamed("scanned", "num_scan_inputs"),
            Renamed("input_axes", "scan_input_axes"),
            Renamed("output_axes", "scan_output_axes"),
        ])
        .since(9),
    Name::new("ScatterElements", "scatter"),
    Name::new("ScatterND", "scatter_nd"),
    Name::new("Shape", "shape"),
    Name::new("Sigmoid", "sigmoid"),
    Name::new("Sign", "sign"),
    Name::new("Sin", "sin"),
    Name::new("Sinh", "sinh"),
    Name::new("Slice", "slice").since(10),
    Name::new("Softmax", "softmax").since(13).same_shapes(),
    Name::new("Softplus", "softplus"),
    Name::new("Split", "split").attrs(&[Renamed("n", "num_outputs"), Renamed("sizes", "split")]),
    Name::new("Sqrt", "sqrt"),
    Name::new("Sub", "sub")
        .since(7)
        .unless(&["axis", "broadcast"]),
    Name::new("Tan", "tan"),
    Name::new("Tanh", "tanh"),
    Name::new("Tile", "tile").since(6),
    Name::new("TopK", "top_k").since(10),
    Name::new("Transpose", "transpose"),
    Name::new("Unique", "unique"),
    Name::new("Where", "select"),
    Name::new("Xor", "xor")
        .since(7)
        .unless(&["axis", "broadcast"]),
];

/// Returns the mapping of an operation of the default domain, if it is a row of `graph`.
pub fn name(name: &str) -> Option<&'static Name> {
    super::find(NAMES, name)
}

/// Returns the row of an operation, in any version: `name` without the dialect, `ml.` in front of those of that domain.
pub fn row(name: &str) -> Option<&'static OpDef> {
    match self::name(name) {
        Some(own) => crate::find(own.row),
        None => crate::find(&format!("onnx.{name}")),
    }
}

/// Returns the row and the attributes of an operation, of a `version` of its operator set. `None` for forms that are
/// older than the row's.
pub fn find<'a>(name: &str, version: i64, attrs: &'a dyn AttrSource) -> Option<RowMatch<'a>> {
    let own = self::name(name);
    if own.is_some_and(|own| version < own.shapes_since && !own.is_row(version, attrs)) {
        return None;
    }
    let attrs = RowAttrs {
        source: attrs,
        attrs: own.map_or(&[], |own| own.attrs),
        dtype,
    };
    Some(RowMatch {
        op: row(name)?,
        attrs,
    })
}

/// The newest version of the operator set: rows have the form that operations have there.
pub const NEWEST: i64 = 27;

/// Returns the format's number for a type.
pub fn number(dtype: DType) -> Option<i64> {
    (1..=MOST_TYPES).find(|number| self::dtype(*number) == Some(dtype))
}

const MOST_TYPES: i64 = 26;

/// Returns the type with this number in the format.
pub fn dtype(number: i64) -> Option<DType> {
    Some(match number {
        1 => DType::F32,
        2 => DType::Ui8,
        3 => DType::I8,
        4 => DType::Ui16,
        5 => DType::I16,
        6 => DType::I32,
        7 => DType::I64,
        8 => DType::String,
        9 => DType::I1,
        10 => DType::F16,
        11 => DType::F64,
        12 => DType::Ui32,
        13 => DType::Ui64,
        14 => DType::Complex64,
        15 => DType::Complex128,
        16 => DType::Bf16,
        17 => DType::F8E4M3FN,
        18 => DType::F8E4M3FNUZ,
        19 => DType::F8E5M2,
        20 => DType::F8E5M2FNUZ,
        21 => DType::Ui4,
        22 => DType::I4,
        23 => DType::F4E2M1,
        24 => DType::F8E8M0,
        25 => DType::Ui2,
        26 => DType::I2,
        _ => return None,
    })
}
