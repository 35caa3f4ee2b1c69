//! TensorFlow: operations that are rows, for eager calls and, in time, SavedModels.
//!
//! The names are those of its graphs, without `tf.` in front. What no row of graphs is, such as `StridedSlice` with its
//! masks, is a library row of the name itself, and is here only if its attributes are operands of the row, or are called
//! otherwise.

use tfrt_bef::DType;

use super::{Held, LAST, Name, NameAttr, NameOperand};
use NameAttr::{FloatOr, Int, IntOr, IntWith, Operand, OperandOr, Renamed, Text};
use NameOperand::{At, Attr, Ends, Pairs};

/// Attributes that graphs carry and that say nothing that tensors don't.
pub const UNREAD: &[&str] = &[
    "Index",
    "N",
    "Shape",
    "SrcT",
    "T",
    "TArgs",
    "TI",
    "Taxis",
    "Tdim",
    "Tlen",
    "Tidx",
    "Tindices",
    "Tlabels",
    "Tmultiples",
    "Tpaddings",
    "Tparams",
    "Tperm",
    "Tshape",
    "U",
    "exponential_avg_factor",
    "index_type",
    "leakyrelu_alpha",
    "num_args",
    "num_host_args",
    "use_cudnn_on_gpu",
];

/// Names, sorted.
pub const NAMES: &[Name] = &[
    Name::new("Abs", "abs"),
    Name::new("Acos", "acos"),
    Name::new("Acosh", "acosh"),
    Name::new("Add", "add"),
    Name::new("AddN", "onnx.Sum"),
    Name::new("AddV2", "add"),
    Name::new("All", "reduce").attrs(&[
        // Of truth values.
        Text("kind", "min"),
        IntOr("keep", "keep_dims", 0),
        IntWith("none_if_empty", 1, 1, "axes"),
    ]),
    Name::new("Any", "reduce").attrs(&[
        Text("kind", "max"),
        IntOr("keep", "keep_dims", 0),
        IntWith("none_if_empty", 1, 1, "axes"),
    ]),
    Name::new("ArgMax", "arg")
        .attrs(&[
            Text("kind", "max"),
            Int("keep", 0),
            OperandOr("axis", 1, &["axis", "dimension"]),
        ])
        .result("output_type", DType::I64),
    Name::new("ArgMin", "arg")
        .attrs(&[
            Text("kind", "min"),
            Int("keep", 0),
            OperandOr("axis", 1, &["axis", "dimension"]),
        ])
        .result("output_type", DType::I64),
    Name::new("Asin", "asin"),
    Name::new("Asinh", "asinh"),
    Name::new("Atan", "atan"),
    Name::new("Atan2", "atan2"),
    Name::new("Atanh", "atanh"),
    Name::new("BatchMatMul", "dot").attrs(&[
        Renamed("transpose_a", "adj_x"),
        Renamed("transpose_b", "adj_y"),
    ]),
    Name::new("BatchMatMulV2", "dot").attrs(&[
        Renamed("transpose_a", "adj_x"),
        Renamed("transpose_b", "adj_y"),
    ]),
    Name::new("BatchMatMulV3", "dot").attrs(&[
        Renamed("transpose_a", "adj_x"),
        Renamed("transpose_b", "adj_y"),
    ]),
    Name::new("BitwiseAnd", "bit_and"),
    Name::new("BitwiseOr", "bit_or"),
    Name::new("BitwiseXor", "bit_xor"),
    Name::new("BroadcastTo", "broadcast"),
    Name::new("Cast", "cast")
        .attrs(&[Renamed("to", "DstT")])
        .only(&[("Truncate", 0)]),
    Name::new("Ceil", "ceil"),
    Name::new("ClipByValue", "onnx.Clip"),
    Name::new("Concat", "concat").attrs(&[Operand("axis", 0)]),
    Name::new("ConcatV2", "concat").attrs(&[Operand("axis", LAST)]),
    Name::new("Const", "tf.Const").operands(&[Attr("value", Held::Tensor)]),
    Name::new("Cos", "cos"),
    Name::new("Cosh", "cosh"),
    Name::new("Cumprod", "cumulative").attrs(&[Text("kind", "prod")]),
    Name::new("Cumsum", "cumulative").attrs(&[Text("kind", "sum")]),
    Name::new("Div", "div"),
    Name::new("Einsum", "onnx.Einsum"),
    Name::new("Elu", "elu"),
    Name::new("Equal", "eq").only(&[("incompatible_shape_error", 1)]),
    Name::new("Erf", "erf"),
    Name::new("Erfc", "erfc"),
    Name::new("EuclideanNorm", "reduce").attrs(&[
        Text("kind", "l2"),
        IntOr("keep", "keep_dims", 0),
        IntWith("none_if_empty", 1, 1, "axes"),
    ]),
    Name::new("Exp", "exp"),
    Name::new("ExpandDims", "onnx.Unsqueeze"),
    Name::new("Expm1", "expm1"),
    Name::new("Floor", "floor"),
    Name::new("FloorMod", "rem"),
    Name::new("Gather", "gather"),
    Name::new("GatherNd", "gather_nd"),
    Name::new("GatherV2", "gather")
        .attrs(&[Operand("axis", 2)])
        .only(&[("batch_dims", 0)]),
    Name::new("Greater", "gt"),
    Name::new("GreaterEqual", "ge"),
    Name::new("Identity", "identity"),
    Name::new("Inv", "reciprocal"),
    Name::new("Invert", "bit_not"),
    Name::new("IsInf", "is_inf"),
    Name::new("IsNan", "is_nan"),
    Name::new("LeakyRelu", "leaky_relu").attrs(&[FloatOr("alpha", "alpha", 0.2)]),
    Name::new("LeftShift", "shift_left"),
    Name::new("Less", "lt"),
    Name::new("LessEqual", "le"),
    Name::new("Log", "log"),
    Name::new("Log1p", "log1p"),
    Name::new("LogSoftmax", "softmax").attrs(&[Int("log", 1)]),
    Name::new("LogicalAnd", "and"),
    Name::new("LogicalNot", "not"),
    Name::new("LogicalOr", "or"),
    Name::new("MatMul", "dot").ranks(&[(0, 2), (1, 2)]),
    Name::new("MatrixDeterminant", "onnx.Det"),
    Name::new("Max", "reduce").attrs(&[
        Text("kind", "max"),
        IntOr("keep", "keep_dims", 0),
        IntWith("none_if_empty", 1, 1, "axes"),
    ]),
    Name::new("Maximum", "max"),
    Name::new("Mean", "reduce").attrs(&[
        Text("kind", "mean"),
        IntOr("keep", "keep_dims", 0),
        IntWith("none_if_empty", 1, 1, "axes"),
    ]),
    Name::new("Min", "reduce").attrs(&[
        Text("kind", "min"),
        IntOr("keep", "keep_dims", 0),
        IntWith("none_if_empty", 1, 1, "axes"),
    ]),
    Name::new("Minimum", "min"),
    Name::new("Mod", "rem").attrs(&[Int("truncated", 1)]),
    Name::new("Mul", "mul"),
    Name::new("Neg", "neg"),
    Name::new("NotEqual", "ne").only(&[("incompatible_shape_error", 1)]),
    Name::new("Pad", "pad").operands(&[At(0), Pairs(1)]),
    Name::new("PadV2", "pad").operands(&[At(0), Pairs(1), At(2)]),
    Name::new("Pow", "pow"),
    Name::new("PreventGradient", "identity"),
    Name::new("Prod", "reduce").attrs(&[
        Text("kind", "prod"),
        IntOr("keep", "keep_dims", 0),
        IntWith("none_if_empty", 1, 1, "axes"),
    ]),
    Name::new("Range", "iota"),
    Name::new("RealDiv", "div"),
    Name::new("Reciprocal", "reciprocal"),
    Name::new("Relu", "relu"),
    Name::new("Relu6", "relu6"),
    Name::new("Reshape", "reshape").attrs(&[Int("allow_zero", 1)]),
    Name::new("ReverseSequence", "onnx.ReverseSequence").attrs(&[
        IntOr("batch_axis", "batch_dim", 0),
        Renamed("time_axis", "seq_dim"),
    ]),
    Name::new("RightShift", "shift_right"),
    Name::new("Rint", "round"),
    Name::new("Round", "round"),
    Name::new("Rsqrt", "rsqrt"),
    Name::new("SelectV2", "select"),
    Name::new("Selu", "onnx.Selu"),
    Name::new("Shape", "shape").result("out_type", DType::I32),
    Name::new("Sigmoid", "sigmoid"),
    Name::new("Sign", "sign"),
    Name::new("Sin", "sin"),
    Name::new("Sinh", "sinh"),
    Name::new("Size", "onnx.Size").result("out_type", DType::I32),
    Name::new("Slice", "slice").operands(&[At(0), At(1), Ends(1, 2)]),
    Name::new("Snapshot", "identity"),
    Name::new("Softmax", "softmax"),
    Name::new("Softplus", "softplus"),
    Name::new("Softsign", "onnx.Softsign"),
    Name::new("Split", "split").attrs(&[Operand("axis", 0), Renamed("n", "num_split")]),
    Name::new("SplitV", "split").attrs(&[Operand("axis", 2), Renamed("n", "num_split")]),
    Name::new("Sqrt", "sqrt"),
    Name::new("Square", "square"),
    Name::new("SquaredDifference", "squared_difference"),
    Name::new("Squeeze", "onnx.Squeeze").operands(&[At(0), Attr("squeeze_dims", Held::Ints)]),
    Name::new("StaticRegexFullMatch", "onnx.RegexFullMatch"),
    Name::new("StopGradient", "identity"),
    Name::new("Sub", "sub"),
    Name::new("Sum", "reduce").attrs(&[
        Text("kind", "sum"),
        IntOr("keep", "keep_dims", 0),
        IntWith("none_if_empty", 1, 1, "axes"),
    ]),
    Name::new("Tan", "tan"),
    Name::new("Tanh", "tanh"),
    Name::new("TensorScatterAdd", "scatter_nd").attrs(&[Text("reduction", "add")]),
    Name::new("TensorScatterMax", "scatter_nd").attrs(&[Text("reduction", "max")]),
    Name::new("TensorScatterMin", "scatter_nd").attrs(&[Text("reduction", "min")]),
    Name::new("TensorScatterUpdate", "scatter_nd"),
    Name::new("Tile", "tile"),
    Name::new("Transpose", "transpose").attrs(&[Operand("perm", 1)]),
    Name::new("TruncateDiv", "div"),
    Name::new("TruncateMod", "rem").attrs(&[Int("truncated", 1)]),
    Name::new("Unpack", "tf.Unpack").attrs(&[Renamed("n", "num")]),
];

/// Returns the name of an operation that is a row.
pub fn name(name: &str) -> Option<&'static Name> {
    super::find(NAMES, name)
}
