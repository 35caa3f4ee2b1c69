//! The mapping of TensorFlow: operations that are rows, for eager calls and, in time, SavedModels.
//!
//! The names are those of its graphs, without `tf.` in front. What no row of graphs is, such as `StridedSlice` with its
//! masks, is a library row of the name itself, and is here only if its attributes are operands of the row, or are called
//! otherwise.

use tfrt_bef::DType;

use super::{AllowedAttr, AttrForm, LAST, Name, NameAttr, NameOperand};
use NameAttr::{FloatOr, Int, IntOr, IntWith, Operand, OperandOr, Renamed, Text};
use NameOperand::{At, Attr, Ends, Pairs};

/// Attributes that are ignored: graphs carry them, but tensors say the same.
pub const UNREAD: &[&str] = &[
    "Index",
    "N",
    "Shape",
    "SrcT",
    "T",
    "TArgs",
    "TI",
    "T_threshold",
    "Taxis",
    "Tblock_shape",
    "Tcomponents",
    "Tcrops",
    "Tdim",
    "Tidx",
    "Tindex",
    "Tindices",
    "Tk",
    "Tlabels",
    "Tlen",
    "Tmultiples",
    "Tnumsegments",
    "Tpaddings",
    "Tparams",
    "Tperm",
    "Tshape",
    "Tshift",
    "U",
    "exponential_avg_factor",
    "grad_a",
    "grad_b",
    "grad_x",
    "grad_y",
    "index_type",
    "leakyrelu_alpha",
    "message",
    "num_args",
    "num_host_args",
    "use_cudnn_on_gpu",
    "validate_indices",
];

/// The attributes that transpose the factors of a product.
const ADJOINT: &[NameAttr] = &[
    Renamed("transpose_a", "adj_x"),
    Renamed("transpose_b", "adj_y"),
];

/// `reduction!("Sum", "sum")` maps a reduction along the axes in operand 1, which may be none.
macro_rules! reduction {
    ($name:literal, $kind:literal) => {
        Name::new($name, "reduce").attrs(&[
            Text("kind", $kind),
            IntOr("keep", "keep_dims", 0),
            IntWith("none_if_empty", 1, 1, "axes"),
        ])
    };
}

/// `place!("ArgMax", "max")` maps a search for the position of an element along an axis, which goes.
macro_rules! place {
    ($name:literal, $kind:literal) => {
        Name::new($name, "arg")
            .attrs(&[
                Text("kind", $kind),
                Int("keep", 0),
                OperandOr("axis", 1, &["axis", "dimension"]),
            ])
            .result("output_type", DType::I64)
    };
}

/// `segments!("SegmentSum", "sum")` maps a reduction of rows by segments that are sorted.
macro_rules! segments {
    ($name:literal, $kind:literal) => {
        Name::new($name, "tfrt.segments").attrs(&[Text("kind", $kind)])
    };
}

/// `unsorted!("UnsortedSegmentSum", "sum")` maps a reduction of rows by segments in any order.
macro_rules! unsorted {
    ($name:literal, $kind:literal) => {
        Name::new($name, "tfrt.unsorted_segments").attrs(&[Text("kind", $kind)])
    };
}

/// `bounds!("UpperBound", 1)` maps a binary search in sorted rows, for the `upper` bound.
macro_rules! bounds {
    ($name:literal, $upper:literal) => {
        Name::new($name, "tfrt.bounds")
            .attrs(&[Int("upper", $upper)])
            .result("out_type", DType::I32)
    };
}

/// The policy that positions outside of the tensor are errors.
const POLICY: &[(&str, AllowedAttr)] = &[(
    "bad_indices_policy",
    AllowedAttr::Texts(&["", "DEFAULT", "ERROR"]),
)];

/// The alignment by which shorter diagonals begin at the left.
const LEFT: &[NameAttr] = &[Text("align", "LEFT_LEFT")];

/// The mappings, sorted by name.
pub const NAMES: &[Name] = &[
    Name::new("Abs", "abs"),
    Name::new("Acos", "acos"),
    Name::new("Acosh", "acosh"),
    Name::new("Add", "add"),
    Name::new("AddN", "onnx.Sum"),
    Name::new("AddV2", "add"),
    // Of truth values.
    reduction!("All", "min"),
    reduction!("Any", "max"),
    place!("ArgMax", "max"),
    place!("ArgMin", "min"),
    Name::new("Asin", "asin"),
    Name::new("Asinh", "asinh"),
    Name::new("Atan", "atan"),
    Name::new("Atan2", "atan2"),
    Name::new("Atanh", "atanh"),
    Name::new("BatchMatMul", "dot").attrs(ADJOINT),
    Name::new("BatchMatMulV2", "dot").attrs(ADJOINT),
    Name::new("BatchMatMulV3", "dot").attrs(ADJOINT).only(&[
        ("Ta", AllowedAttr::TypeOf(0)),
        ("Tb", AllowedAttr::TypeOf(1)),
        ("Tout", AllowedAttr::TypeOf(0)),
    ]),
    Name::new("BitwiseAnd", "bit_and"),
    Name::new("BitwiseOr", "bit_or"),
    Name::new("BitwiseXor", "bit_xor"),
    Name::new("BroadcastTo", "broadcast"),
    Name::new("Cast", "cast")
        .attrs(&[Renamed("to", "DstT")])
        .only(&[("Truncate", AllowedAttr::Int(0))]),
    Name::new("Ceil", "ceil"),
    Name::new("ClipByValue", "onnx.Clip"),
    Name::new("Concat", "concat").attrs(&[Operand("axis", 0)]),
    Name::new("ConcatV2", "concat").attrs(&[Operand("axis", LAST)]),
    Name::new("Const", "tf.Const").operands(&[Attr("value", AttrForm::Tensor)]),
    Name::new("Cos", "cos"),
    Name::new("Cosh", "cosh"),
    Name::new("Cumprod", "cumulative").attrs(&[Text("kind", "prod")]),
    Name::new("Cumsum", "cumulative").attrs(&[Text("kind", "sum")]),
    Name::new("Div", "div"),
    Name::new("DivNoNan", "div_no_nan"),
    Name::new("Einsum", "onnx.Einsum"),
    Name::new("Elu", "elu"),
    Name::new("Equal", "eq").only(&[("incompatible_shape_error", AllowedAttr::Int(1))]),
    Name::new("Erf", "erf"),
    Name::new("Erfc", "erfc"),
    reduction!("EuclideanNorm", "l2"),
    Name::new("Exp", "exp"),
    Name::new("ExpandDims", "onnx.Unsqueeze"),
    Name::new("Expm1", "expm1"),
    Name::new("Floor", "floor"),
    Name::new("FloorDiv", "floor_div"),
    Name::new("FloorMod", "rem"),
    Name::new("Gather", "gather"),
    Name::new("GatherNd", "gather_nd").only(POLICY),
    Name::new("Greater", "gt"),
    Name::new("GreaterEqual", "ge"),
    Name::new("Identity", "identity"),
    Name::new("InTopK", "tf.InTopKV2").operands(&[At(0), At(1), Attr("k", AttrForm::Number)]),
    Name::new("Inv", "reciprocal"),
    Name::new("Invert", "bit_not"),
    Name::new("IsFinite", "is_finite"),
    Name::new("IsInf", "is_inf"),
    Name::new("IsNan", "is_nan"),
    Name::new("LeakyRelu", "leaky_relu").attrs(&[FloatOr("alpha", "alpha", 0.2)]),
    Name::new("LeftShift", "shift_left"),
    Name::new("Less", "lt"),
    Name::new("LessEqual", "le"),
    Name::new("Lgamma", "lgamma"),
    Name::new("Log", "log"),
    Name::new("Log1p", "log1p"),
    Name::new("LogSoftmax", "softmax").attrs(&[Int("log", 1)]),
    Name::new("LogicalAnd", "and"),
    Name::new("LogicalNot", "not"),
    Name::new("LogicalOr", "or"),
    bounds!("LowerBound", 0),
    Name::new("MatMul", "dot").ranks(&[(0, 2), (1, 2)]),
    Name::new("MatrixDeterminant", "onnx.Det"),
    Name::new("MatrixDiag", "tf.MatrixDiagV3").operands(&[At(0)]),
    Name::new("MatrixDiagPart", "tf.MatrixDiagPartV3").operands(&[At(0)]),
    Name::new("MatrixDiagPartV2", "tf.MatrixDiagPartV3").attrs(LEFT),
    Name::new("MatrixDiagV2", "tf.MatrixDiagV3").attrs(LEFT),
    Name::new("MatrixSetDiag", "tf.MatrixSetDiagV3").operands(&[At(0), At(1)]),
    Name::new("MatrixSetDiagV2", "tf.MatrixSetDiagV3").attrs(LEFT),
    reduction!("Max", "max"),
    Name::new("Maximum", "max"),
    reduction!("Mean", "mean"),
    reduction!("Min", "min"),
    Name::new("Minimum", "min"),
    Name::new("Mod", "rem").attrs(&[Int("truncated", 1)]),
    Name::new("Mul", "mul"),
    Name::new("MulNoNan", "mul_no_nan"),
    Name::new("Neg", "neg"),
    Name::new("NonMaxSuppressionV2", "tf.NonMaxSuppressionV3").operands(&[
        At(0),
        At(1),
        At(2),
        At(3),
    ]),
    Name::new("NotEqual", "ne").only(&[("incompatible_shape_error", AllowedAttr::Int(1))]),
    Name::new("Pad", "pad").operands(&[At(0), Pairs(1)]),
    Name::new("PadV2", "pad").operands(&[At(0), Pairs(1), At(2)]),
    Name::new("PlaceholderWithDefault", "tf.EnsureShape")
        .only(&[("dtype", AllowedAttr::TypeOf(0))]),
    Name::new("Pow", "pow"),
    Name::new("PreventGradient", "identity"),
    reduction!("Prod", "prod"),
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
    Name::new("ScatterNd", "tf.ScatterNd").only(POLICY),
    segments!("SegmentMax", "max"),
    segments!("SegmentMean", "mean"),
    segments!("SegmentMin", "min"),
    segments!("SegmentProd", "prod"),
    segments!("SegmentSum", "sum"),
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
    Name::new("Squeeze", "onnx.Squeeze").operands(&[At(0), Attr("squeeze_dims", AttrForm::Ints)]),
    Name::new("StaticRegexFullMatch", "onnx.RegexFullMatch"),
    Name::new("StopGradient", "identity"),
    Name::new("Sub", "sub"),
    reduction!("Sum", "sum"),
    Name::new("Tan", "tan"),
    Name::new("Tanh", "tanh"),
    Name::new("TensorScatterAdd", "scatter_nd")
        .attrs(&[Text("reduction", "add")])
        .only(POLICY),
    Name::new("TensorScatterMax", "scatter_nd")
        .attrs(&[Text("reduction", "max")])
        .only(POLICY),
    Name::new("TensorScatterMin", "scatter_nd")
        .attrs(&[Text("reduction", "min")])
        .only(POLICY),
    Name::new("TensorScatterSub", "tf.TensorScatterSub").only(POLICY),
    Name::new("TensorScatterUpdate", "scatter_nd")
        .attrs(&[Text("reduction", "none")])
        .only(POLICY),
    Name::new("Tile", "tile"),
    Name::new("TopK", "tf.TopKV2").operands(&[At(0), Attr("k", AttrForm::Number)]),
    Name::new("Transpose", "transpose").attrs(&[Operand("perm", 1)]),
    Name::new("TruncateDiv", "div"),
    Name::new("TruncateMod", "rem").attrs(&[Int("truncated", 1)]),
    Name::new("Unique", "tf.UniqueV2").operands(&[At(0)]),
    Name::new("UniqueWithCounts", "tf.UniqueWithCountsV2").operands(&[At(0)]),
    Name::new("Unpack", "tf.Unpack").attrs(&[Renamed("n", "num")]),
    unsorted!("UnsortedSegmentMax", "max"),
    unsorted!("UnsortedSegmentMin", "min"),
    unsorted!("UnsortedSegmentProd", "prod"),
    unsorted!("UnsortedSegmentSum", "sum"),
    bounds!("UpperBound", 1),
    Name::new("Xdivy", "xdivy"),
    Name::new("Xlog1py", "xlog1py"),
    Name::new("Xlogy", "xlogy"),
];

/// Returns the mapping of an operation that is a row.
pub fn name(name: &str) -> Option<&'static Name> {
    super::find(NAMES, name)
}
