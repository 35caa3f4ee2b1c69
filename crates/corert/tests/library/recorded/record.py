"""Writes tensorflow.txt: calls of TensorFlow's operations, and what TensorFlow makes of them.

    python record.py > tensorflow.txt

A line is a call: `NAME {attributes} | operand | operand -> result | result`, or `-> error` if it fails. What a graph
states of an operation beside what is asked for is stated in the first call of each name.
"""

import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
import numpy as np
import tensorflow as tf
from tensorflow.python.framework import op_def_library, op_def_registry

DTYPES = {
    tf.float32: "f32", tf.float64: "f64", tf.float16: "f16", tf.bfloat16: "bf16", tf.int32: "i32", tf.int64: "i64",
    tf.int8: "i8", tf.int16: "i16", tf.uint8: "u8", tf.uint16: "u16", tf.uint32: "u32", tf.uint64: "u64",
    tf.bool: "i1", tf.string: "str",
}
nan, inf = float("nan"), float("inf")
seen = set()


def f32(x): return np.array(x, np.float32)
def f64(x): return np.array(x, np.float64)
def f16(x): return np.array(x, np.float16)
def i32(x): return np.array(x, np.int32)
def i64(x): return np.array(x, np.int64)
def u8(x): return np.array(x, np.uint8)
def i8(x): return np.array(x, np.int8)
def u32(x): return np.array(x, np.uint32)
def boolean(x): return np.array(x, np.bool_)
def words(x): return np.array(x, object)
def counting(*shape, of=np.float32): return np.arange(int(np.prod(shape)), dtype=of).reshape(shape)
def waves(*shape, of=np.float32): return (np.sin(np.arange(int(np.prod(shape))) * 1.7) * 3).round(3).astype(of).reshape(shape)


def quoted(text):
    if isinstance(text, str):
        text = text.encode()
    return '"' + "".join(chr(b) if 32 < b < 127 and chr(b) not in '"\\|{};' else f"\\x{b:02x}" for b in text) + '"'


def number(x):
    if isinstance(x, (bytes, str)):
        return quoted(x)
    if isinstance(x, (bool, np.bool_)):
        return "1" if x else "0"
    if isinstance(x, (int, np.integer)):
        return str(int(x))
    if np.isnan(x):
        return "nan"
    return np.format_float_scientific(x, trim="-") if np.isfinite(x) and x != 0 else str(float(x))


def tensor(values, dtype=None):
    values = np.asarray(values)
    dtype = dtype or tf.dtypes.as_dtype(values.dtype) if values.dtype != object else tf.string
    flat = values.astype(np.float32) if dtype == tf.bfloat16 else values
    return " ".join([f"{DTYPES[dtype]}[{','.join(map(str, values.shape))}]"] + [number(one) for one in flat.reshape(-1)])


def attribute(value):
    if isinstance(value, tf.DType):
        return "t:" + DTYPES.get(value, "f32")
    if isinstance(value, bool):
        return "b:" + number(value)
    if isinstance(value, int):
        return f"i:{value}"
    if isinstance(value, float):
        return "f:" + number(np.float32(value))
    if isinstance(value, (str, bytes)):
        return "s:" + quoted(value)
    if isinstance(value, tf.TensorShape):
        value = [-1 if extent is None else extent for extent in value.as_list()]
    if isinstance(value, (list, tuple)):
        if value and isinstance(value[0], (str, bytes)):
            return "S:" + " ".join(map(quoted, value))
        if value and isinstance(value[0], float):
            return "F:" + " ".join(number(np.float32(one)) for one in value)
        return "I:" + " ".join(map(str, value))
    raise TypeError(value)


def plain(value):
    """The value of an attribute as Python has it."""
    kind = value.WhichOneof("value")
    if kind == "type":
        return tf.dtypes.as_dtype(value.type)
    if kind == "shape":
        return tf.TensorShape(None if value.shape.unknown_rank else [None if dim.size < 0 else dim.size for dim in value.shape.dim])
    if kind == "list":
        one = value.list
        filled = [x for x in [list(one.s), list(one.i), list(one.f)] if x]
        return tf.dtypes.as_dtype(one.type[0]) if one.type else filled[0] if filled else []
    return getattr(value, kind)


def case(name, *inputs, **attributes):
    definition = op_def_registry.get(name)
    arguments, rest = dict(attributes), list(inputs)
    with tf.Graph().as_default():
        try:
            for index, arg in enumerate(definition.input_arg):
                n = len(rest) - (len(definition.input_arg) - index - 1) if arg.number_attr or arg.type_list_attr else 1
                given, rest = [tf.constant(x) for x in rest[:n]], rest[n:]
                arguments[arg.name] = given if arg.number_attr or arg.type_list_attr else given[0]
            for attr in definition.attr:
                if attr.HasField("default_value") and attr.name not in arguments:
                    # What follows from operands does not have to be said.
                    inferred = any(attr.name in (arg.type_attr, arg.number_attr) for arg in definition.input_arg)
                    if not inferred:
                        arguments[attr.name] = plain(attr.default_value)
            operation = op_def_library._apply_op_helper(name, **arguments)[2]
            with tf.compat.v1.Session() as session:
                results = session.run(list(operation.outputs))
            made = " | ".join(tensor(x, output.dtype) for x, output in zip(results, operation.outputs))
        except (tf.errors.OpError, ValueError) as error:
            if os.environ.get("WHY"):
                print(name, str(error)[:200], file=sys.stderr)
            made = "error"
    stated = dict(attributes)
    if name not in seen and made != "error":
        seen.add(name)
        found = operation.node_def.attr.items()
        stated = {**{key: plain(value) for key, value in found if not key.startswith("_")}, **stated}
    stated = "; ".join(f"{key}={attribute(value)}" for key, value in sorted(stated.items()))
    operands = "".join(" | " + tensor(x) for x in inputs)
    print(f"{name} {{{stated}}}{operands} -> {made}")


def unary():
    x = f32([-2.5, -1.5, -0.5, -0.0, 0.0, 0.5, 1.5, 2.5, 3.7, nan, inf, -inf])
    small = f32([-0.9, -0.3, 0.0, 0.4, 0.8])
    for name in ["Abs", "Ceil", "Floor", "Rint", "Round", "Sign", "Neg", "Square", "Relu", "Relu6", "IsNan", "IsInf", "IsFinite"]:
        case(name, x)
    for name in ["Abs", "Sign", "Neg", "Square", "Relu"]:
        case(name, i32([-3, 0, 7]))
    for name in ["Asin", "Acos", "Atan", "Atanh", "Sin", "Cos", "Tan", "Sinh", "Cosh", "Tanh", "Asinh", "Exp", "Expm1",
                 "Sigmoid", "Softplus", "Softsign", "Erf", "Erfc", "Elu", "Selu", "LeakyRelu", "Log1p"]:
        case(name, small)
        case(name, small.astype(np.float64))
    for name in ["Log", "Sqrt", "Rsqrt", "Reciprocal", "Inv", "Acosh", "Lgamma"]:
        case(name, f32([1.0, 1.5, 4.0, 30.25]))
        case(name, f64([1.0, 2.5, 4.0]))
    case("Lgamma", f32([-0.5, -1.0, 0.0, inf, nan, 0.5]))
    case("IsFinite", f64([1.0, nan, -inf]))
    case("LeakyRelu", small, alpha=0.5)
    case("Invert", i32([0, -1, 5]))
    case("LogicalNot", boolean([True, False]))
    for name in ["Identity", "StopGradient", "PreventGradient", "Snapshot", "OnesLike", "ZerosLike"]:
        case(name, i64([[1, 2]]))
    case("Cast", f32([1.7, -1.7, 300.0]), DstT=tf.int32)
    case("Cast", i32([0, 2]), DstT=tf.bool)
    case("Bitcast", f32([1.0, -2.0]), type=tf.int32)


def binary():
    pairs = f32([7, -7, 7, -7, 6, 0, -0.0]), f32([2, 2, -2, -2, 3, 5, 1])
    whole = [part[:6].astype(np.int32) for part in pairs]
    for name in ["Add", "AddV2", "Sub", "Mul", "Div", "RealDiv", "FloorDiv", "FloorMod", "Mod", "Maximum", "Minimum",
                 "SquaredDifference", "Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual", "TruncateMod"]:
        case(name, *pairs)
        if name not in ("RealDiv",):
            case(name, *whole)
    case("TruncateDiv", *whole)
    case("FloorDiv", *[part.astype(np.float64) for part in pairs])
    case("FloorDiv", *[part.astype(np.int64) for part in whole])
    case("FloorDiv", u8([7, 200]), u8([2, 3]))
    case("FloorDiv", f32([[1.0], [-1.0]]), f32([0.0, 3.0, inf]))
    case("FloorDiv", i8([-128, -128]), i8([-1, 127]))
    case("FloorDiv", f16([7, -7]), f16([2, 2]))
    case("FloorMod", f32([5.5, -5.5]), f32([-2.0, inf]))
    zeros = f32([0.0, 1.0, -2.0, nan, inf, 0.0, 0.0]), f32([0.0, 0.0, 4.0, 0.0, 0.0, nan, -3.0])
    for name in ["DivNoNan", "MulNoNan", "Xdivy"]:
        case(name, *zeros)
        case(name, *[part.astype(np.float64) for part in zeros])
        case(name, f32([[1.0], [0.0]]), f32([0.0, 2.0]))
    logs = f32([0.0, 1.5, -2.0, 0.0, 3.0]), f32([0.0, 2.0, 4.0, -1.0, 0.0])
    for name in ["Xlogy", "Xlog1py"]:
        case(name, *logs)
        case(name, *[part.astype(np.float64) for part in logs])
    case("DivNoNan", f32([1.0, 2.0]), f32([1.0, 2.0, 3.0]))
    case("Pow", f32([2.0, 9.0]), f32([3.0, 0.5]))
    case("Pow", i32([2, -3]), i32([10, 3]))
    case("Atan2", f32([1.0, -1.0]), f32([-1.0, 0.0]))
    case("BitwiseAnd", i32([6, -1]), i32([3, 9]))
    case("BitwiseOr", i32([6, -1]), i32([3, 9]))
    case("BitwiseXor", i32([6, -1]), i32([3, 9]))
    case("LeftShift", u8([1, 3]), u8([2, 7]))
    case("RightShift", u8([128, 3]), u8([2, 1]))
    case("LogicalAnd", boolean([True, True]), boolean([True, False]))
    case("LogicalOr", boolean([True, False]), boolean([False]))
    case("AddN", f32([1, 2]), f32([3, 4]), f32([5, 6]))
    case("SelectV2", boolean([True, False]), f32([[1.0], [2.0]]), f32(0.0))
    case("Select", boolean([True, False]), f32([[1, 2], [3, 4]]), f32([[5, 6], [7, 8]]))
    case("Select", boolean(True), i32([1, 2]), i32([3, 4]))
    case("Select", boolean([[True, False]]), words([["a", "b"]]), words([["c", "d"]]))
    case("Select", boolean([True]), f32([1, 2]), f32([3, 4]))
    case("Select", boolean([True, False]), f32([1, 2]), f32([[3, 4]]))
    case("ClipByValue", f32([-1, 0.5, 3]), f32(0.0), f32(1.0))


def reductions():
    x = f32([[1, 2, 3], [4, 5, 6.5]])
    for name in ["Sum", "Mean", "Max", "Min", "Prod", "EuclideanNorm"]:
        case(name, x, i32([1]))
        case(name, x, i32([-2]), keep_dims=True)
        case(name, x, i32([0, 1]))
        case(name, x, i32([]))
        case(name, x, i32(2))
    case("Mean", i32([1, 2, 4]), i32(0))
    case("Sum", i64([1, 2, 4]), i64(0))
    for name in ["All", "Any"]:
        case(name, boolean([[True, False], [True, True]]), i32(1))
    for name in ["ArgMax", "ArgMin"]:
        case(name, f32([[1, 5, 5], [2, 0, 0]]), i32(1))
        case(name, f32([[1, 5, 5], [2, 0, 0]]), i64(-2), output_type=tf.int32)
    for name in ["Cumsum", "Cumprod"]:
        case(name, f32([[1, 2, 3], [4, 5, 6]]), i32(1))
        case(name, f32([[1, 2, 3], [4, 5, 6]]), i32(-2), exclusive=True, reverse=True)
    for name in ["Softmax", "LogSoftmax"]:
        case(name, f32([[1, 2, 3], [0, 0, -1]]))


def products():
    a, b = waves(2, 3), waves(3, 2)
    case("MatMul", a, b)
    case("MatMul", a, a, transpose_b=True)
    case("BatchMatMul", waves(2, 2, 3), waves(2, 3, 2))
    case("BatchMatMulV2", waves(2, 2, 3), waves(2, 3), adj_y=True)
    case("BatchMatMulV3", waves(2, 3, 2), waves(2, 3, 2), adj_x=True, Tout=tf.float32)
    case("Einsum", a, b, equation="ij,jk->ki")
    case("MatrixDeterminant", f32([[2, 1], [1, 3]]))
    case("MatrixInverse", f32([[2, 1], [1, 3]]))
    case("MatrixInverse", f64([[[2, 1], [0, 4]], [[0, 2], [1, 0]]]), adjoint=True)
    case("MatrixInverse", f32([[1, 2], [2, 4]]))
    case("MatrixInverse", f32([[1, 2, 3], [2, 4, 5]]))
    case("MatrixInverse", f32([]).reshape(0, 0))
    case("Cholesky", f32([[4, 9], [2, 3]]))
    case("Cholesky", f64([[[4, 2, 0], [2, 5, 1], [0, 1, 3]]]))
    case("Cross", f32([1, 2, 3]), f32([4, 5, 6]))
    case("Cross", i32([[1, 0, 0], [0, 1, 0]]), i32([[0, 1, 0], [5, 0, 1]]))
    case("Cross", f32([1, 2]), f32([3, 4]))
    case("L2Loss", f32([[1, 2], [3, 4]]))
    case("L2Loss", f64([0.5, -1.5]))
    case("LinSpace", f32(0.0), f32(1.0), i32(5))
    case("LinSpace", f64(10.0), f64(-1.0), i64(4))
    case("LinSpace", f32(3.0), f32(4.0), i32(1))
    case("LinSpace", f32(3.0), f32(4.0), i32(0))
    case("Range", i32(1), i32(10), i32(3))
    case("CheckNumerics", f32([1.0, 2.0]), message="here")
    case("CheckNumerics", f32([1.0, nan]), message="here")
    case("CheckNumerics", f32([inf, 0.0]), message="here")


def structure():
    x = counting(2, 3)
    case("Reshape", x, i32([3, -1]))
    case("ExpandDims", x, i32(-1))
    case("Squeeze", counting(1, 3, 1))
    case("Squeeze", counting(1, 3, 1), squeeze_dims=[0])
    case("Transpose", x, i32([1, 0]))
    case("ConcatV2", x, x, i32(-1))
    case("Pack", x, x, axis=1)
    case("Unpack", x, num=3, axis=-1)
    case("Split", i32(1), x, num_split=3)
    case("SplitV", x, i32([1, 2]), i32(1), num_split=2)
    case("Tile", x, i32([1, 2]))
    case("Pad", x, i32([[1, 0], [0, 1]]))
    case("PadV2", x, i32([[0, 1], [1, 0]]), f32(9.0))
    case("Slice", x, i32([0, 1]), i32([-1, 2]))
    case("StridedSlice", x, i32([0, 2]), i32([2, 0]), i32([1, -1]))
    case("ReverseV2", x, i32([-1]))
    case("ReverseSequence", x, i64([2, 3]), seq_dim=1)
    case("OneHot", i32([0, 2, -1, 3]), i32(3), f32(1.0), f32(0.0))
    case("Fill", i32([2, 2]), i64(7))
    case("BroadcastTo", f32([1, 2]), i32([2, 2]))
    case("Shape", x)
    case("Shape", x, out_type=tf.int64)
    case("Size", x)
    case("Rank", x)
    case("Rank", f32(1.0))
    case("Rank", words([["a"]]))
    case("ShapeN", x, f32(1.0), f32([1, 2]))
    case("ShapeN", x, x, out_type=tf.int64)
    case("IdentityN", x, i32([1]), words(["a"]))
    case("EnsureShape", x, shape=tf.TensorShape([2, None]))
    case("EnsureShape", x, shape=tf.TensorShape([3, None]))
    case("EnsureShape", x, shape=tf.TensorShape([None]))
    case("PlaceholderWithDefault", x, shape=tf.TensorShape([None, 3]))
    case("BroadcastArgs", i32([2, 1]), i32([3]))
    case("BroadcastArgs", i64([]), i64([3, 1]))
    case("BroadcastArgs", i32([2]), i32([3]))
    case("InvertPermutation", i32([2, 0, 1]))
    case("InvertPermutation", i64([]))
    case("InvertPermutation", i32([0, 0]))
    case("InvertPermutation", i32([0, 2]))
    y = counting(2, 3, 2)
    case("GatherV2", y, i32([2, 0]), i32(1))
    case("GatherV2", y, i32([[2, 0], [1, 1]]), i32(1), batch_dims=1)
    case("GatherV2", counting(2, 2, 3), i64([[2], [0]]), i32(-1), batch_dims=-1)
    case("GatherV2", counting(2, 2, 2, 2), i32([[1], [0]]), i32(2), batch_dims=1)
    case("GatherV2", counting(2, 3), i32([2, 0]), i32(1), batch_dims=1)
    case("GatherV2", counting(2, 2), i32([[1], [0]]), i32(0), batch_dims=1)
    case("GatherV2", counting(2, 2), i32([[1], [0], [1]]), i32(1), batch_dims=1)
    case("GatherV2", counting(2, 2), i32([[2], [0]]), i32(1), batch_dims=1)
    case("GatherV2", f32([1, 2]), i32([-1]), i32(0))
    case("GatherV2", f32([1, 2]), i32([2]), i32(0))
    case("GatherV2", words([["a", "b"], ["c", "d"]]), i32([[1, 0], [0, 0]]), i32(1), batch_dims=1)
    case("GatherNd", y, i32([[1, 2], [0, 0]]))
    case("Gather", x, i32([1]))
    case("TensorScatterUpdate", x, i32([[1]]), f32([[7, 8, 9]]))
    case("TensorScatterAdd", x, i32([[1], [1]]), f32([[7, 8, 9], [1, 1, 1]]))
    case("TensorScatterMax", x, i32([[0]]), f32([[1, 1, 1]]))
    case("TensorScatterMin", x, i32([[0]]), f32([[1, 1, 1]]))
    case("TensorScatterSub", x, i32([[1], [1]]), f32([[7, 8, 9], [1, 1, 1]]))
    case("TensorScatterSub", i32([1, 2, 3]), i64([[2], [0]]), i32([5, 6]))
    case("TensorScatterSub", u8([1, 2]), i32([[0]]), u8([5]))
    case("TensorScatterSub", x, i32([[2]]), f32([[1, 1, 1]]))
    case("ScatterNd", i32([[1], [3], [1]]), f32([9, 10, 11]), i32([5]))
    case("ScatterNd", i64([[0, 1]]), i32([5]), i64([2, 2]))
    case("ScatterNd", i32([[2]]), f32([[1, 2]]), i32([3, 2]))
    case("ScatterNd", i32([[5]]), f32([1]), i32([5]))
    case("ScatterNd", i32([[-1]]), f32([1]), i32([5]))
    case("ScatterNd", i32([[0]]), f32([1, 2]), i32([5]))


def places():
    images = counting(1, 2, 2, 4)
    case("DepthToSpace", images, block_size=2)
    case("DepthToSpace", i32(counting(2, 1, 2, 8)), block_size=2)
    case("DepthToSpace", images, block_size=3)
    case("DepthToSpace", images, block_size=1)
    case("SpaceToDepth", counting(1, 4, 2, 2), block_size=2)
    case("SpaceToDepth", counting(1, 3, 3, 1), block_size=3)
    case("SpaceToDepth", counting(1, 3, 2, 1), block_size=2)
    case("SpaceToBatchND", counting(1, 2, 2, 1), i32([2, 2]), i32([[0, 0], [0, 0]]))
    case("SpaceToBatchND", counting(2, 3, 2), i32([2]), i64([[1, 2]]))
    case("SpaceToBatchND", counting(1, 3, 4, 2), i32([2, 3]), i32([[1, 0], [1, 1]]))
    case("SpaceToBatchND", counting(1, 3, 2), i32([2]), i32([[0, 0]]))
    case("SpaceToBatchND", counting(1, 3, 2), i32([0]), i32([[0, 0]]))
    case("BatchToSpaceND", counting(4, 1, 1, 1), i32([2, 2]), i32([[0, 0], [0, 0]]))
    case("BatchToSpaceND", counting(4, 3, 2), i32([2]), i32([[1, 2]]))
    case("BatchToSpaceND", counting(6, 2, 2, 1), i64([2, 3]), i64([[1, 0], [0, 2]]))
    case("BatchToSpaceND", counting(3, 3, 2), i32([2]), i32([[0, 0]]))
    case("BatchToSpaceND", counting(4, 1, 2), i32([2]), i32([[2, 1]]))
    x = counting(2, 3)
    for mode in ["REFLECT", "SYMMETRIC"]:
        case("MirrorPad", x, i32([[1, 1], [2, 2]]), mode=mode)
        case("MirrorPad", words(["a", "b", "c"]), i64([[2, 1]]), mode=mode) if mode == "REFLECT" else None
        case("MirrorPad", x, i32([[2, 0], [0, 0]]), mode=mode)
        case("MirrorPad", x, i32([[3, 0], [0, 0]]), mode=mode)
        case("MirrorPad", x, i32([[0, 0], [-1, 0]]), mode=mode)
    case("Roll", x, i32(1), i32(1))
    case("Roll", x, i32([-4, 1]), i64([-1, 0]))
    case("Roll", i64([0, 1, 2, 3]), i32([1, 2]), i32([0, 0]))
    case("Roll", words(["a", "b", "c"]), i64(2), i32(0))
    case("Roll", x, i32([1, 2]), i32([0]))
    case("Roll", x, i32(1), i32(2))
    square = counting(2, 3, 4) + 1
    case("MatrixBandPart", square, i32(1), i32(0))
    case("MatrixBandPart", square, i64(-1), i64(1))
    case("MatrixBandPart", i32([[1, 2], [3, 4]]), i32(0), i32(-1))
    case("MatrixBandPart", f32([1, 2]), i32(0), i32(0))
    case("MatrixBandPart", square, i32(4), i32(0))
    case("MatrixDiag", x)
    case("MatrixDiagPart", square)
    case("MatrixSetDiag", square, f32([[9, 8, 7], [6, 5, 4]]))
    case("MatrixSetDiag", square, f32([[9, 8], [6, 5]]))
    case("Diag", f32([1, 2]))
    case("Diag", i32([[1, 2, 3]]))
    case("Diag", f32(1.0))
    case("DiagPart", counting(2, 3, 2, 3))
    case("DiagPart", counting(2, 3))
    for align in ["RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT"]:
        case("MatrixDiagPartV3", square, i32([-1, 2]), f32(0.5), align=align)
        case("MatrixDiagV3", counting(2, 3, 3) + 1, i32([-1, 1]), i32(-1), i32(-1), f32(0.5), align=align)
        case("MatrixSetDiagV3", square, counting(2, 3, 3) + 40, i32([-1, 1]), align=align)
    case("MatrixDiagPartV3", square, i32(3), f32(0.0))
    case("MatrixDiagPartV3", square, i32([-2, -1]), f32(7.0))
    case("MatrixDiagPartV3", square, i32(4), f32(0.0))
    case("MatrixDiagPartV3", square, i32([1, 0]), f32(0.0))
    case("MatrixDiagPartV2", square, i32([0, 1]), f32(0.0))
    case("MatrixDiagV3", f32([1, 2]), i32(1), i32(-1), i32(-1), f32(0.0))
    case("MatrixDiagV3", f32([1, 2]), i32(-1), i32(3), i32(4), f32(9.0))
    case("MatrixDiagV3", f32([1, 2]), i32(0), i32(2), i32(4), f32(9.0))
    case("MatrixDiagV3", f32([1, 2]), i32(0), i32(3), i32(4), f32(9.0))
    case("MatrixDiagV3", i32([[1, 2], [3, 0]]), i32([0, 1]), i32(-1), i32(3), i32(0))
    case("MatrixDiagV3", i32([[1, 2], [3, 0]]), i32([0, 2]), i32(-1), i32(-1), i32(0))
    case("MatrixDiagV3", i64([[[-2], [-3]]]), i32([0, 1]), i32(-1), i32(-1), i64(2))
    case("MatrixDiagV2", i32([[1, 2], [3, 0]]), i32([0, 1]), i32(2), i32(-1), i32(5))
    case("MatrixSetDiagV3", square, f32([[9, 8, 7], [6, 5, 4]]), i32(1))
    case("MatrixSetDiagV3", square, f32([[9, 8], [6, 5]]), i32(-1))
    case("MatrixSetDiagV3", square, f32([[9, 8, 7], [6, 5, 4]]), i32(-1))
    case("MatrixSetDiagV2", square, counting(2, 2, 3) + 40, i32([0, 1]))


def search():
    x = f32([[1, 5, 3], [2, 2, 9]])
    case("TopKV2", x, i32(2))
    case("TopKV2", i32([3, 1, 3, 2]), i32(4))
    case("TopKV2", x, i32(0))
    case("TopKV2", x, i32(4))
    case("TopKV2", x, i32(-1))
    case("TopKV2", f32(1.0), i32(1))
    case("InTopKV2", x, i32([1, 0]), i32(1))
    case("InTopKV2", x, i64([2, 1]), i64(2))
    case("InTopKV2", f32([[1, nan, 3], [1, inf, 0]]), i32([0, 0]), i32(2))
    case("InTopKV2", x, i32([7, -1]), i32(2))
    case("InTopKV2", x, i32([1]), i32(2))
    case("InTopK", x, i32([2, 0]), k=2)
    case("Where", boolean([[True, False], [False, True]]))
    case("Where", f32([0.0, 2.0, -0.0, nan]))
    case("Where", i32([[[1, 0], [0, 3]]]))
    case("Where", boolean([]))
    case("Where", boolean(True))
    case("Unique", i32([3, 1, 3, 2, 1]))
    case("Unique", words(["b", "a", "b"]), out_idx=tf.int64)
    case("Unique", f32([]))
    case("Unique", i32([[1]]))
    case("UniqueV2", i32([[1, 0], [1, 0], [2, 0]]), i32([0]))
    case("UniqueV2", i32([[1, 1, 2], [0, 0, 0]]), i64([-1]), out_idx=tf.int64)
    case("UniqueV2", f32([2.0, -0.0, 0.0, 2.0]), i64([]))
    case("UniqueV2", f32([2.0, 1.0]), i64([1]))
    case("UniqueWithCounts", i64([3, 1, 3, 2, 1]))
    case("UniqueWithCountsV2", boolean([[True], [False], [True]]), i32([0]))
    for name in ["LowerBound", "UpperBound"]:
        case(name, f32([[1, 2, 2, 5], [0, 1, 1, 1]]), f32([[2, 9], [1, -1]]))
        case(name, i32([[1, 3]]), i32([[0, 1, 2, 3, 4]]), out_type=tf.int64)
        case(name, f64([[]]), f64([[1.0]]))
        case(name, f32([[1, 2]]), f32([[1], [2]]))
        case(name, f32([1, 2]), f32([1]))
    case("Bucketize", f32([-1.0, 0.0, 0.5, 10.0, 99.0, inf]), boundaries=[0.0, 10.0])
    case("Bucketize", i64([[5, -3]]), boundaries=[0.0, 5.0, 7.5])
    case("Bucketize", f64([0.1]), boundaries=[0.1])
    case("Bucketize", i32([1]), boundaries=[])
    case("Bucketize", i32([1]), boundaries=[2.0, 1.0])


def segments():
    x = f32([[1, 2], [3, 5], [-7, 8]])
    for name in ["Sum", "Mean", "Prod", "Max", "Min"]:
        case("Segment" + name, x, i32([0, 0, 1]))
        case("Segment" + name, i32([1, 2, 4, 9]), i64([0, 2, 2, 3])) if name != "Mean" else None
        case("Segment" + name, x, i32([1, 0, 1]))
        case("Segment" + name, x, i32([0, 1]))
        case("Segment" + name, f64([[1], [2]]), i32([1, 3]))
    for name in ["Sum", "Prod", "Max", "Min"]:
        case("UnsortedSegment" + name, x, i32([2, 0, 2]), i32(4))
        case("UnsortedSegment" + name, i32([[1, 2], [3, 4]]), i64([[0, -1], [1, 0]]), i64(2))
        case("UnsortedSegment" + name, f64([1, 2]), i32([-1, -1]), i32(1))
        case("UnsortedSegment" + name, x, i32([0, 1]), i32(2))
        case("UnsortedSegment" + name, x, i32([0, 1, 2]), i32(2))
        case("UnsortedSegment" + name, i32([]), i32([]), i32(1))
    case("UnsortedSegmentMax", f16([1, 2]), i32([0, 0]), i32(2))
    case("UnsortedSegmentMin", u8([1, 2]), i32([0, 0]), i32(2))
    case("Bincount", i32([1, 1, 5, 0, 2]), i32(4), f32([]))
    case("Bincount", i32([[1, 1], [0, 2]]), i32(3), f64([[0.5, 1], [2, 3]]))
    case("Bincount", i32([-1]), i32(3), f32([]))
    case("Bincount", i32([1]), i32(-3), f32([]))
    case("Bincount", i32([1, 2]), i32(3), f32([1]))
    case("DenseBincount", i64([1, 1, 5, 0]), i64(3), i32([]))
    case("DenseBincount", i32([[1, 1], [0, 2]]), i32(3), f32([]), binary_output=True)
    case("DenseBincount", i32([1, 2]), i32(3), f32([0.5, 2.0]))


def strings():
    case("StringJoin", words(["a", "b"]), words(["c", "d"]), separator="-")
    case("StringJoin", words("x"), words([["c"], ["d"]]))
    case("StringJoin", words("x"), words("y"))
    case("StringJoin", words(["a"]), words(["b", "c"]))
    case("StringLength", words(["", "abc", "häß"]))
    case("StringLength", words(["", "abc", "häß"]), unit="UTF8_CHAR")
    case("StringStrip", words([" a b\t\n", "", "\v\f x\r", "y"]))
    case("StringLower", words(["ÄB", "cD"]))
    case("StringUpper", words(["äb", "cD"]), encoding="utf-8")
    case("StringSplitV2", words(["a b", "", " c  d e "]), words(""))
    case("StringSplitV2", words(["a,b", "", ",c,,"]), words(","))
    case("StringSplitV2", words(["a<>b<>c", "<>"]), words("<>"), maxsplit=1)
    case("StringSplitV2", words(["a b c", "d ", " e"]), words(""), maxsplit=1)
    case("StringSplitV2", words(["a b"]), words(""), maxsplit=0)
    case("StringSplitV2", words([["a b"]]), words(""))
    case("StringSplitV2", words(["a b"]), words(["", ""]))
    case("RegexReplace", words(["a1b22", "x"]), words("[0-9]+"), words("<\\0>"))
    case("RegexReplace", words(["a1b22"]), words("([0-9])"), words("(\\1)"), replace_global=False)
    case("RegexReplace", words(["a1b22"]), words("["), words("x"))
    case("RegexReplace", words(["häß"]), words(" *"), words("<\\0>"))
    case("RegexReplace", words(["ab"]), words("(a)"), words("\\2"))
    case("StaticRegexReplace", words(["a1b22", "x"]), pattern="[0-9]+", rewrite="#")
    case("RegexFullMatch", words([["abc", "abcd"]]), words("ab?c"))
    case("RegexFullMatch", words(["a", "b"]), words("a|ab"))
    case("RegexFullMatch", words(["a"]), words("("))
    case("StaticRegexFullMatch", words(["abc", "abcd"]), pattern="a.c")
    grid = words([["a", "b"], ["c", "d"]])
    case("ReduceJoin", grid, i32(0), separator="-")
    case("ReduceJoin", grid, i32([-1]), keep_dims=True)
    case("ReduceJoin", grid, i32([0, 1]))
    case("ReduceJoin", grid, i32([1, 0]), separator=",")
    case("ReduceJoin", grid, i32(2))
    case("ReduceJoin", grid, i32([0, 0]))
    case("Substr", words(["abcdef", "xy"]), i32(1), i32(2))
    case("Substr", words(["abcdef", "xyz"]), i64([-2, 3]), i64([9, 1]))
    case("Substr", words("häß"), i32([0, 1, 2]), i32([1, 1, 9]), unit="UTF8_CHAR")
    case("Substr", words("häß"), i32(1), i32(1))
    case("Substr", words(["abc"]), i32(4), i32(1))
    case("Substr", words(["abc"]), i32(-4), i32(1))
    case("Substr", words(["abc"]), i32([1, 2]), i32(1))
    case("StringToNumber", words(["1.5", "-2e3", " 7 ", "inf"]))
    case("StringToNumber", words(["15", "-3"]), out_type=tf.int64)
    case("StringToNumber", words(["3000000000"]), out_type=tf.int32)
    case("StringToNumber", words(["0.1"]), out_type=tf.float64)
    case("StringToNumber", words(["x"]))
    def ragged(shape, values, default, *partitions, types):
        case("RaggedTensorToTensor", shape, values, default, *partitions, row_partition_types=types)
    ragged(i64(-1), i32([1, 2, 3, 4]), i32(0), i64([0, 2, 2, 4]), types=["ROW_SPLITS"])
    ragged(i64([4, 1]), words(["a", "b", "c"]), words("-"), i64([0, 2, 3]), types=["ROW_SPLITS"])
    ragged(i64([-1, 3]), f32([1, 2, 3]), f32(0.5), i64(3), i64([0, 0, 2]), types=["FIRST_DIM_SIZE", "VALUE_ROWIDS"])
    ragged(i64(-1), f32([[1, 2], [3, 4]]), f32([8, 9]), i64([0, 1, 1, 2]), types=["ROW_SPLITS"])
    ragged(i64(-1), i32([1, 2, 3, 4, 5]), i32(0), i64([0, 2, 3]), i64([0, 1, 3, 5]), types=["ROW_SPLITS", "ROW_SPLITS"])
    ragged(i64([2, -1, 1]), i32([1, 2, 3, 4, 5]), i32(0), i64(2), i64([0, 0, 1]), i64([0, 1, 1, 2, 2]), types=["FIRST_DIM_SIZE", "VALUE_ROWIDS", "VALUE_ROWIDS"])
    ragged(i64([-1, -1, -1]), i32([1, 2]), i32(0), i64([0, 2]), types=["ROW_SPLITS"])


def windows():
    x, filters = waves(2, 4, 5, 2), waves(3, 2, 2, 3)
    case("Conv2D", x, filters, strides=[1, 1, 1, 1], padding="VALID")
    case("Conv2D", x, filters, strides=[1, 2, 1, 1], padding="SAME")
    case("DepthwiseConv2dNative", x, waves(2, 2, 2, 2), strides=[1, 1, 1, 1], padding="SAME")
    case("Conv2DBackpropInput", i32([1, 3, 3, 1]), waves(2, 2, 1, 1), waves(1, 2, 2, 1), strides=[1, 1, 1, 1], padding="VALID")
    case("Conv2DBackpropFilter", waves(1, 3, 3, 1), i32([2, 2, 1, 1]), waves(1, 2, 2, 1), strides=[1, 1, 1, 1], padding="VALID")
    case("MaxPool", x, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")
    case("AvgPool", x, ksize=[1, 2, 3, 1], strides=[1, 1, 2, 1], padding="SAME")
    case("BiasAdd", x, f32([0.5, -1]))
    case("BiasAdd", counting(1, 2, 2), f32([0.5, -1]), data_format="NCHW")
    case("BiasAdd", counting(1, 2, 2, 1), f32([0.5, -1]), data_format="NCHW")
    case("BiasAdd", counting(2, 2), f32([0.5, -1]), data_format="NCHW")
    case("BiasAdd", counting(1, 3, 2), f32([0.5, -1]), data_format="NCHW")
    y = waves(1, 3, 4, 3, 2)
    case("Conv3D", y, waves(2, 2, 1, 2, 2), strides=[1, 1, 2, 1, 1], padding="VALID")
    case("Conv3D", y, waves(2, 3, 2, 2, 1), strides=[1, 2, 1, 1, 1], padding="SAME")
    case("Conv3D", y, waves(2, 2, 1, 3, 2), strides=[1, 1, 1, 1, 1], padding="VALID")
    for name in ["MaxPool3D", "AvgPool3D"]:
        case(name, y, ksize=[1, 2, 2, 1, 1], strides=[1, 1, 2, 1, 1], padding="VALID")
        case(name, y, ksize=[1, 2, 3, 2, 1], strides=[1, 2, 2, 1, 1], padding="SAME")
    boxes = f32([[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, -0.1, 1, 0.9], [0, 10, 1, 11], [1, 1, 0, 0], [0, 10.1, 1, 11.1]])
    scores = f32([0.9, 0.75, 0.6, 0.95, 0.5, 0.3])
    case("NonMaxSuppressionV2", boxes, scores, i32(3), f32(0.5))
    case("NonMaxSuppressionV3", boxes, scores, i32(10), f32(0.5), f32(0.4))
    case("NonMaxSuppressionV3", boxes, f32([1, 1, 1, 0, 1, 2]), i32(4), f32(0.95), f32(0.0))
    case("NonMaxSuppressionV3", boxes, f32([1]), i32(4), f32(0.5), f32(0.0))
    case("NonMaxSuppressionV3", boxes, scores, i32(4), f32(1.5), f32(0.0))
    case("NonMaxSuppressionV4", boxes, scores, i32(5), f32(0.5), f32(0.0))
    case("NonMaxSuppressionV4", boxes, scores, i32(5), f32(0.5), f32(0.0), pad_to_max_output_size=True)
    images = waves(2, 3, 4, 2)
    parts = f32([[0, 0, 1, 1], [0.2, 0.1, 0.9, 0.6], [1.1, 0, -0.2, 1]])
    case("CropAndResize", images, parts, i32([0, 1, 0]), i32([2, 3]))
    case("CropAndResize", images, parts, i32([0, 1, 1]), i32([1, 4]), method="nearest", extrapolation_value=9.0)
    case("CropAndResize", u8(abs(images) * 9), parts, i32([0, 1, 0]), i32([3, 2]))
    case("CropAndResize", images, parts, i32([0, 2, 0]), i32([2, 3]))
    case("ResizeBilinear", waves(1, 2, 3, 1), i32([3, 4]))
    case("ResizeBilinear", waves(1, 2, 3, 1), i32([3, 4]), half_pixel_centers=True)
    case("ResizeNearestNeighbor", waves(1, 2, 3, 1), i32([3, 4]), align_corners=True)
    case("LRN", waves(1, 1, 2, 4))
    case("LRN", waves(1, 1, 2, 5), depth_radius=1, bias=2.0, alpha=0.5, beta=0.75)
    case("LRN", waves(1, 2, 4), depth_radius=1)


for part in [unary, binary, reductions, products, structure, places, search, segments, strings, windows]:
    part()
