//! The kernels of rows on a GPU, beside those of the processor.

use std::slice::from_ref;
use std::sync::Arc;

use tfrt_corert::{CoreRuntime, OpAttrs, TensorHandle};
use tfrt_gpu::driver::Driver;
use tfrt_host::kernel::KernelRegistry;
use tfrt_host::{DType, DeviceRef, Error, HostContext};
use tfrt_tensor::{Bool, Tensor, TensorFormat};

/// A call of an operation on random operands.
struct Case {
    op: &'static str,
    shapes: &'static [&'static [usize]],
    /// The types of those, f32 if there are none.
    types: &'static [DType],
    /// Operands behind those: lists of i64.
    lists: &'static [&'static [i64]],
    attributes: &'static [(&'static str, Value)],
    /// Operands lie between these.
    range: (f32, f32),
    /// The most that a result may differ, as a part of the larger of itself and 1.
    tolerance: f32,
}

#[derive(Clone, Copy, Debug)]
enum Value {
    Int(i64),
    Float(f32),
    Ints(&'static [i64]),
    Text(&'static str),
    Type(DType),
}

const fn case(
    op: &'static str,
    shapes: &'static [&'static [usize]],
    range: (f32, f32),
    tolerance: f32,
) -> Case {
    Case {
        op,
        shapes,
        types: &[],
        lists: &[],
        attributes: &[],
        range,
        tolerance,
    }
}

impl Case {
    const fn with(self, attributes: &'static [(&'static str, Value)]) -> Case {
        Case { attributes, ..self }
    }

    const fn of(self, types: &'static [DType]) -> Case {
        Case { types, ..self }
    }

    const fn lists(self, lists: &'static [&'static [i64]]) -> Case {
        Case { lists, ..self }
    }
}

const ONE: &[&[usize]] = &[&[3, 337]];
const TWO: &[&[usize]] = &[&[3, 337], &[3, 337]];
const TWO_AND_ONE: &[&[usize]] = &[&[3, 4], &[3, 4], &[4]];
const WIDE: (f32, f32) = (-8.0, 8.0);

/// Every row, in the forms that differ.
const CASES: &[Case] = &[
    case("neg", ONE, WIDE, 0.0),
    case("abs", ONE, WIDE, 0.0),
    case("sign", ONE, WIDE, 0.0),
    case("reciprocal", ONE, WIDE, 0.0),
    case("square", ONE, WIDE, 0.0),
    case("sqrt", ONE, (0.0, 100.0), 0.0),
    case("rsqrt", ONE, (0.01, 100.0), 1e-6),
    case("exp", ONE, WIDE, 1e-6),
    case("expm1", ONE, WIDE, 1e-6),
    case("log", ONE, (0.0, 100.0), 1e-6),
    case("log1p", ONE, (-0.9, 100.0), 1e-6),
    case("tanh", ONE, WIDE, 1e-6),
    case("erf", ONE, WIDE, 1e-6),
    case("floor", ONE, WIDE, 0.0),
    case("ceil", ONE, WIDE, 0.0),
    case("round", ONE, WIDE, 0.0),
    case("trunc", ONE, WIDE, 0.0),
    case("sigmoid", ONE, WIDE, 1e-6),
    case("relu", ONE, WIDE, 0.0),
    case("relu6", ONE, WIDE, 0.0),
    case("gelu", ONE, WIDE, 2e-6),
    case("gelu", ONE, WIDE, 2e-6).with(&[("approximate", Value::Text("tanh"))]),
    case("softplus", ONE, WIDE, 1e-6),
    case("elu", ONE, WIDE, 1e-6).with(&[("alpha", Value::Float(0.5))]),
    case("leaky_relu", ONE, WIDE, 0.0).with(&[("alpha", Value::Float(0.1))]),
    case("hard_sigmoid", ONE, WIDE, 1e-6)
        .with(&[("alpha", Value::Float(0.3)), ("beta", Value::Float(0.4))]),
    case("onnx.HardSwish", ONE, WIDE, 1e-6),
    case("add", TWO, WIDE, 0.0),
    case("add", &[&[4, 5, 6], &[6]], WIDE, 0.0),
    case("add", &[&[4, 1, 6], &[5, 1]], WIDE, 0.0),
    case("add", &[&[], &[7]], WIDE, 0.0),
    case("add", &[&[], &[]], WIDE, 0.0),
    case("add", &[&[0, 3], &[3]], WIDE, 0.0),
    case(
        "mul",
        &[&[2, 1, 2, 1, 2, 1], &[1, 3, 1, 3, 1, 3]],
        WIDE,
        0.0,
    ),
    case("sub", TWO, WIDE, 0.0),
    case("mul", TWO, WIDE, 0.0),
    case("div", TWO, WIDE, 0.0),
    case("pow", TWO, (0.1, 4.0), 1e-5),
    case("min", TWO, WIDE, 0.0),
    case("max", TWO, WIDE, 0.0),
    case("squared_difference", TWO, WIDE, 0.0),
    case("eq", &[&[3, 337], &[1]], (-1.0, 1.0), 0.0),
    case("ne", TWO, WIDE, 0.0),
    case("lt", TWO, WIDE, 0.0),
    case("le", TWO, WIDE, 0.0),
    case("gt", TWO, WIDE, 0.0),
    case("ge", TWO, WIDE, 0.0),
    case("dot", &[&[5, 7], &[7, 3]], WIDE, 1e-5),
    case("dot", &[&[65, 33], &[33, 70]], WIDE, 1e-4),
    case("dot", &[&[130, 20], &[20, 260]], WIDE, 1e-4),
    case("dot", &[&[20, 130], &[260, 20]], WIDE, 1e-4).with(&[
        ("transpose_a", Value::Int(1)),
        ("transpose_b", Value::Int(1)),
    ]),
    case("dot", &[&[7, 65], &[7, 66]], WIDE, 1e-4).with(&[("transpose_a", Value::Int(1))]),
    case("dot", &[&[65, 18], &[70, 18]], WIDE, 1e-4).with(&[("transpose_b", Value::Int(1))]),
    case("dot", &[&[3, 4, 5], &[5, 2]], WIDE, 1e-5),
    case("dot", &[&[2, 3, 4, 5], &[2, 3, 5, 6]], WIDE, 1e-5),
    case("dot", &[&[4, 5], &[3, 5, 6]], WIDE, 1e-5),
    case("dot", &[&[2, 1, 4, 5], &[3, 5, 6]], WIDE, 1e-5),
    case("dot", &[&[5], &[5]], WIDE, 1e-5),
    case("dot", &[&[3, 0], &[0, 2]], WIDE, 0.0),
    case("transpose", &[&[40, 33]], WIDE, 0.0),
    case("transpose", &[&[2, 3, 4, 5]], WIDE, 0.0).with(&[("perm", Value::Ints(&[2, 0, 3, 1]))]),
    case("transpose", &[&[2, 20, 3, 17]], WIDE, 0.0).with(&[("perm", Value::Ints(&[0, 2, 3, 1]))]),
    case("reduce", &[&[3, 700]], WIDE, 1e-5)
        .with(&[("kind", Value::Text("sum")), ("axes", Value::Ints(&[1]))]),
    case("reduce", &[&[3, 5, 7]], WIDE, 1e-5)
        .with(&[("kind", Value::Text("mean")), ("axes", Value::Ints(&[1]))]),
    case("reduce", &[&[3, 5, 7]], WIDE, 1e-5).with(&[
        ("kind", Value::Text("mean")),
        ("axes", Value::Ints(&[0, 2])),
        ("keep", Value::Int(0)),
    ]),
    case("reduce", &[&[3, 5, 7]], WIDE, 0.0).with(&[("kind", Value::Text("max"))]),
    case("reduce", &[&[3, 5, 7]], WIDE, 0.0)
        .with(&[("kind", Value::Text("min")), ("axes", Value::Ints(&[-1]))]),
    case("reduce", &[&[2, 5]], WIDE, 1e-5)
        .with(&[("kind", Value::Text("prod")), ("axes", Value::Ints(&[-1]))]),
    case("reduce", &[&[3, 50]], WIDE, 1e-5)
        .with(&[("kind", Value::Text("l2")), ("axes", Value::Ints(&[-1]))]),
    case("reduce", &[&[3, 50]], WIDE, 1e-5)
        .with(&[("kind", Value::Text("l1")), ("axes", Value::Ints(&[-1]))]),
    case("softmax", &[&[5, 600]], WIDE, 1e-6),
    case("softmax", &[&[3, 5, 7]], WIDE, 1e-6).with(&[("axis", Value::Int(1))]),
    case("softmax", &[&[5, 60]], WIDE, 1e-5).with(&[("log", Value::Int(1))]),
    case("norm", &[&[5, 300], &[300], &[300]], WIDE, 1e-5).with(&[("kind", Value::Text("layer"))]),
    case("norm", &[&[5, 30], &[30]], WIDE, 1e-5).with(&[("kind", Value::Text("rms"))]),
    case("norm", &[&[2, 6, 5], &[6], &[6]], WIDE, 1e-5)
        .with(&[("kind", Value::Text("group")), ("groups", Value::Int(2))]),
    case("norm", &[&[2, 6, 5], &[6], &[6]], WIDE, 1e-5).with(&[("kind", Value::Text("instance"))]),
    case(
        "norm",
        &[&[2, 6, 5], &[6], &[6], &[6], &[6]],
        (0.5, 2.0),
        1e-5,
    )
    .with(&[("kind", Value::Text("batch"))]),
    case("conv", &[&[2, 3, 6, 7], &[4, 3, 3, 3], &[4]], WIDE, 1e-4)
        .with(&[("pads", Value::Ints(&[1, 1, 1, 1]))]),
    case("conv", &[&[1, 4, 9, 8], &[4, 1, 3, 2], &[4]], WIDE, 1e-4).with(&[
        ("groups", Value::Int(4)),
        ("strides", Value::Ints(&[2, 1])),
        ("dilations", Value::Ints(&[1, 2])),
        ("pads", Value::Ints(&[0, 1, 2, 1])),
    ]),
    case("conv", &[&[2, 6, 5, 13], &[34, 3, 3, 3], &[34]], WIDE, 1e-4).with(&[
        ("groups", Value::Int(2)),
        ("strides", Value::Ints(&[1, 2])),
        ("pads", Value::Ints(&[1, 0, 1, 2])),
    ]),
    case("conv", &[&[1, 17, 3, 23], &[65, 17, 1, 1]], WIDE, 1e-4),
    case("conv", &[&[1, 20, 11], &[16, 20, 3], &[16]], WIDE, 1e-4).with(&[
        ("auto_pad", Value::Text("SAME_LOWER")),
        ("strides", Value::Ints(&[2])),
    ]),
    case("conv", &[&[1, 2, 4, 5, 6], &[3, 2, 2, 3, 2]], WIDE, 1e-4)
        .with(&[("auto_pad", Value::Text("SAME_UPPER"))]),
    case("conv", &[&[1, 0, 4, 5], &[3, 0, 2, 3]], WIDE, 0.0),
    case("conv", &[&[2, 4, 5, 4], &[4, 3, 3, 2], &[6]], WIDE, 1e-4).with(&[
        ("transposed", Value::Int(1)),
        ("groups", Value::Int(2)),
        ("strides", Value::Ints(&[2, 3])),
        ("dilations", Value::Ints(&[1, 2])),
        ("pads", Value::Ints(&[1, 0, 0, 1])),
        ("output_padding", Value::Ints(&[1, 0])),
    ]),
    case("conv", &[&[1, 2, 5], &[2, 3, 3]], WIDE, 1e-4).with(&[
        ("transposed", Value::Int(1)),
        ("strides", Value::Ints(&[2])),
        ("output_shape", Value::Ints(&[10])),
    ]),
    case("pool", &[&[2, 3, 7, 8]], WIDE, 0.0).with(&[
        ("kind", Value::Text("max")),
        ("kernel_shape", Value::Ints(&[3, 3])),
        ("strides", Value::Ints(&[2, 2])),
        ("pads", Value::Ints(&[1, 1, 1, 1])),
    ]),
    case("pool", &[&[1, 3, 7, 8]], WIDE, 1e-5).with(&[
        ("kind", Value::Text("mean")),
        ("kernel_shape", Value::Ints(&[3, 2])),
        ("strides", Value::Ints(&[2, 3])),
        ("pads", Value::Ints(&[1, 0, 1, 0])),
        ("ceil_mode", Value::Int(1)),
    ]),
    case("pool", &[&[1, 3, 7, 8]], WIDE, 1e-5).with(&[
        ("kind", Value::Text("mean")),
        ("kernel_shape", Value::Ints(&[3, 3])),
        ("strides", Value::Ints(&[2, 2])),
        ("pads", Value::Ints(&[1, 1, 1, 1])),
        ("ceil_mode", Value::Int(1)),
        ("count_include_pad", Value::Int(1)),
    ]),
    case("pool", &[&[1, 3, 9]], WIDE, 1e-5).with(&[
        ("kind", Value::Text("lp")),
        ("kernel_shape", Value::Ints(&[2])),
        ("p", Value::Int(3)),
    ]),
    case("pool", &[&[2, 3, 5, 6]], WIDE, 1e-5)
        .with(&[("kind", Value::Text("mean")), ("whole", Value::Int(1))]),
    case("pool", &[&[2, 3, 5, 6]], WIDE, 0.0)
        .with(&[("kind", Value::Text("max")), ("whole", Value::Int(1))]),
    case("reshape", &[&[4, 6]], WIDE, 0.0).lists(&[&[2, -1, 3]]),
    case("identity", ONE, WIDE, 0.0),
    case("onnx.Flatten", &[&[2, 3, 4]], WIDE, 0.0).with(&[("axis", Value::Int(2))]),
    case("broadcast", &[&[4, 1, 3]], WIDE, 0.0).lists(&[&[2, 1, 5, 3]]),
    case("tile", &[&[4, 1, 3]], WIDE, 0.0).lists(&[&[2, 3, 1]]),
    case("concat", &[&[2, 3, 4], &[2, 1, 4], &[2, 5, 4]], WIDE, 0.0)
        .with(&[("axis", Value::Int(1))]),
    case("concat", &[&[3, 2], &[0, 2], &[1, 2]], WIDE, 0.0).with(&[("axis", Value::Int(0))]),
    case("split", &[&[2, 5, 3]], WIDE, 0.0)
        .lists(&[&[2, 3]])
        .with(&[("axis", Value::Int(1)), ("n", Value::Int(2))]),
    case("slice", &[&[5, 6, 7]], WIDE, 0.0).lists(&[&[1, -2], &[4, 100], &[0, 2], &[1, 1]]),
    case("slice", &[&[5, 6, 7]], WIDE, 0.0).lists(&[&[-1, 1], &[-100, 6], &[1, 2], &[-2, 3]]),
    case("slice", &[&[5, 6]], WIDE, 0.0).lists(&[&[3], &[3]]),
    case("reverse", &[&[3, 4, 5]], WIDE, 0.0).with(&[("axes", Value::Ints(&[0, 2]))]),
    case("pad", &[&[2, 3, 4]], WIDE, 0.0).lists(&[&[0, 1, 2, 1, 0, -1]]),
    case("pad", &[&[2, 3, 5]], WIDE, 0.0)
        .lists(&[&[0, 2, 3, 0, 1, 2]])
        .with(&[("mode", Value::Text("reflect"))]),
    case("pad", &[&[2, 3, 5]], WIDE, 0.0)
        .lists(&[&[1, 2, 3, 0, 1, 2]])
        .with(&[("mode", Value::Text("edge"))]),
    case("pad", &[&[2, 3, 5]], WIDE, 0.0)
        .lists(&[&[1, 2, 3, 0, 1, 2]])
        .with(&[("mode", Value::Text("wrap"))]),
    case("gather", &[&[5, 6]], WIDE, 0.0).lists(&[&[4, 0, -1, 2]]),
    case("gather", &[&[2, 6, 3]], WIDE, 0.0)
        .lists(&[&[5, 1]])
        .with(&[("axis", Value::Int(1))]),
    case("gather", &[&[5, 6]], WIDE, 0.0)
        .of(&[DType::I64])
        .lists(&[&[4, 0]]),
    case("select", &[&[3, 1], &[3, 4], &[4]], WIDE, 0.0).of(&[DType::I1, DType::F32, DType::F32]),
    case("select", TWO_AND_ONE, WIDE, 0.0).of(&[DType::I1, DType::I1, DType::I1]),
    case("cast", ONE, WIDE, 0.0).with(&[("to", Value::Type(DType::I32))]),
    case("cast", ONE, WIDE, 0.0).with(&[("to", Value::Type(DType::I64))]),
    case("cast", ONE, (-1e10, 1e10), 0.0).with(&[("to", Value::Type(DType::I32))]),
    case("cast", ONE, WIDE, 0.0).with(&[("to", Value::Type(DType::I1))]),
    case("cast", ONE, WIDE, 0.0).with(&[("to", Value::Type(DType::F32))]),
    case("cast", ONE, (-3e9, 3e9), 0.0)
        .of(&[DType::I64])
        .with(&[("to", Value::Type(DType::F32))]),
    case("cast", ONE, (-3e9, 3e9), 0.0)
        .of(&[DType::I64])
        .with(&[("to", Value::Type(DType::I32))]),
    case("cast", ONE, (-3.0, 3.0), 0.0)
        .of(&[DType::I64])
        .with(&[("to", Value::Type(DType::I1))]),
    case("cast", ONE, WIDE, 0.0)
        .of(&[DType::I32])
        .with(&[("to", Value::Type(DType::F32))]),
    case("cast", ONE, WIDE, 0.0)
        .of(&[DType::I32])
        .with(&[("to", Value::Type(DType::I64))]),
    case("cast", ONE, (-2.0, 2.0), 0.0)
        .of(&[DType::I32])
        .with(&[("to", Value::Type(DType::I1))]),
    case("cast", ONE, WIDE, 0.0)
        .of(&[DType::I1])
        .with(&[("to", Value::Type(DType::F32))]),
    case("cast", ONE, WIDE, 0.0)
        .of(&[DType::I1])
        .with(&[("to", Value::Type(DType::I32))]),
    case("cast", ONE, WIDE, 0.0)
        .of(&[DType::I1])
        .with(&[("to", Value::Type(DType::I64))]),
];

const F16: &[DType] = &[DType::F16; 5];
const BF16: &[DType] = &[DType::Bf16; 5];
const F64: &[DType] = &[DType::F64; 2];
const I32: &[DType] = &[DType::I32; 2];
const I64: &[DType] = &[DType::I64; 2];
/// The distance of neighbours, as a part of the smaller.
const OF_F16: f32 = 1.0 / 1024.0;
const OF_BF16: f32 = 1.0 / 128.0;

/// Rows on elements of other types than `f32`.
const TYPED: &[Case] = &[
    case("tanh", ONE, WIDE, OF_F16).of(F16),
    case("exp", ONE, WIDE, OF_BF16).of(BF16),
    case("elu", ONE, WIDE, OF_F16)
        .of(F16)
        .with(&[("alpha", Value::Float(0.5))]),
    case("add", TWO, WIDE, 0.0).of(F16),
    case("add", &[&[4, 1, 6], &[5, 1]], WIDE, 0.0).of(BF16),
    case("lt", TWO, WIDE, 0.0).of(F16),
    case("dot", &[&[5, 7], &[7, 3]], WIDE, OF_F16).of(F16),
    case("dot", &[&[65, 33], &[33, 70]], WIDE, OF_BF16).of(BF16),
    case("reduce", &[&[3, 70]], WIDE, OF_F16)
        .of(F16)
        .with(&[("kind", Value::Text("sum")), ("axes", Value::Ints(&[1]))]),
    case("softmax", &[&[5, 60]], WIDE, OF_F16).of(F16),
    case("norm", &[&[5, 30], &[30], &[30]], WIDE, OF_F16)
        .of(F16)
        .with(&[("kind", Value::Text("layer"))]),
    case("conv", &[&[2, 3, 6, 7], &[4, 3, 3, 3], &[4]], WIDE, OF_F16)
        .of(F16)
        .with(&[("pads", Value::Ints(&[1, 1, 1, 1]))]),
    case("pool", &[&[2, 3, 7, 8]], WIDE, 0.0).of(BF16).with(&[
        ("kind", Value::Text("max")),
        ("kernel_shape", Value::Ints(&[3, 3])),
    ]),
    case("transpose", &[&[40, 33]], WIDE, 0.0).of(F16),
    case("transpose", &[&[2, 3, 4]], WIDE, 0.0).of(I64),
    case("reshape", &[&[4, 6]], WIDE, 0.0)
        .of(BF16)
        .lists(&[&[2, -1, 3]]),
    case("broadcast", &[&[4, 1, 3]], WIDE, 0.0)
        .of(&[DType::Ui8])
        .lists(&[&[2, 1, 5, 3]]),
    case("concat", &[&[2, 3, 4], &[2, 1, 4]], WIDE, 0.0)
        .of(F64)
        .with(&[("axis", Value::Int(1))]),
    case("slice", &[&[5, 6, 7]], WIDE, 0.0)
        .of(F16)
        .lists(&[&[1, -2], &[4, 100], &[0, 2], &[1, 1]]),
    case("pad", &[&[2, 3]], WIDE, 0.0)
        .of(I64)
        .lists(&[&[1, 2, 1, 2]]),
    case("pad", &[&[2, 3]], WIDE, 0.0)
        .of(F16)
        .lists(&[&[1, 2, 1, 2]]),
    case("gather", &[&[5, 6]], WIDE, 0.0)
        .of(F16)
        .lists(&[&[4, 0, -1, 2]]),
    case("gather", &[&[5, 6]], WIDE, 0.0)
        .of(&[DType::I1])
        .lists(&[&[4, 0, -1, 2]]),
    case("select", &[&[3, 1], &[3, 4], &[4]], WIDE, 0.0).of(&[DType::I1, DType::F64, DType::F64]),
    case("select", TWO_AND_ONE, WIDE, 0.0).of(&[DType::I1, DType::Bf16, DType::Bf16]),
    case("neg", ONE, WIDE, 0.0).of(F64),
    case("neg", ONE, WIDE, 0.0).of(I32),
    case("abs", ONE, WIDE, 0.0).of(F64),
    case("abs", ONE, WIDE, 0.0).of(I64),
    case("sign", ONE, WIDE, 0.0).of(F64),
    case("sign", ONE, WIDE, 0.0).of(I32),
    case("square", ONE, WIDE, 0.0).of(I64),
    case("relu", ONE, WIDE, 0.0).of(F64),
    case("relu", ONE, WIDE, 0.0).of(I32),
    case("reciprocal", ONE, WIDE, 0.0).of(F64),
    case("sqrt", ONE, (0.0, 100.0), 0.0).of(F64),
    case("rsqrt", ONE, (0.01, 100.0), 1e-6).of(F64),
    case("exp", ONE, WIDE, 1e-6).of(F64),
    case("log", ONE, (0.0, 100.0), 1e-6).of(F64),
    case("tanh", ONE, WIDE, 1e-6).of(F64),
    case("sigmoid", ONE, WIDE, 1e-6).of(F64),
    case("floor", ONE, WIDE, 0.0).of(F64),
    case("ceil", ONE, WIDE, 0.0).of(F64),
    case("round", ONE, WIDE, 0.0).of(F64),
    case("trunc", ONE, WIDE, 0.0).of(F64),
    case("add", TWO, WIDE, 0.0).of(F64),
    case("add", &[&[4, 1, 6], &[5, 1]], WIDE, 0.0).of(I32),
    case("sub", TWO, WIDE, 0.0).of(I64),
    case("mul", TWO, WIDE, 0.0).of(I32),
    case("div", TWO, WIDE, 0.0).of(F64),
    case("min", TWO, WIDE, 0.0).of(I64),
    case("max", TWO, WIDE, 0.0).of(F64),
    case("squared_difference", TWO, WIDE, 0.0).of(F64),
    case("eq", TWO, (-1.0, 1.0), 0.0).of(I32),
    case("ne", TWO, (-1.0, 1.0), 0.0).of(I64),
    case("lt", TWO, WIDE, 0.0).of(F64),
    case("le", TWO, WIDE, 0.0).of(I32),
    case("gt", TWO, WIDE, 0.0).of(I64),
    case("ge", TWO, WIDE, 0.0).of(F64),
    case(
        "mul",
        &[&[2, 1, 2, 1, 2, 1], &[1, 3, 1, 3, 1, 3]],
        WIDE,
        0.0,
    )
    .of(F64),
    case("dot", &[&[2, 3, 4, 5], &[2, 3, 5, 6]], WIDE, 1e-6).of(F64),
    case("dot", &[&[17, 33], &[33, 18]], WIDE, 1e-6).of(F64),
    case("dot", &[&[20, 13], &[26, 20]], WIDE, 1e-6)
        .of(F64)
        .with(&[
            ("transpose_a", Value::Int(1)),
            ("transpose_b", Value::Int(1)),
        ]),
    case("cast", ONE, (-1e5, 1e5), 0.0).with(&[("to", Value::Type(DType::F16))]),
    case("cast", ONE, (-1e5, 1e5), 0.0).with(&[("to", Value::Type(DType::Bf16))]),
    case("cast", ONE, WIDE, 0.0).with(&[("to", Value::Type(DType::F64))]),
    case("cast", ONE, (-300.0, 300.0), 0.0).with(&[("to", Value::Type(DType::Ui8))]),
    case("cast", ONE, (-300.0, 300.0), 0.0).with(&[("to", Value::Type(DType::I8))]),
    case("cast", ONE, (-1e5, 1e5), 0.0)
        .of(F64)
        .with(&[("to", Value::Type(DType::F16))]),
    case("cast", ONE, (-1e5, 1e5), 0.0)
        .of(F64)
        .with(&[("to", Value::Type(DType::Bf16))]),
    case("cast", ONE, WIDE, 0.0)
        .of(F16)
        .with(&[("to", Value::Type(DType::F32))]),
    case("cast", ONE, WIDE, 0.0)
        .of(BF16)
        .with(&[("to", Value::Type(DType::F16))]),
    case("cast", ONE, WIDE, 0.0)
        .of(F16)
        .with(&[("to", Value::Type(DType::I32))]),
    case("cast", ONE, (-3e9, 3e9), 0.0)
        .of(I64)
        .with(&[("to", Value::Type(DType::Bf16))]),
    case("cast", ONE, (-300.0, 300.0), 0.0)
        .of(I32)
        .with(&[("to", Value::Type(DType::I8))]),
    case("cast", ONE, (-300.0, 300.0), 0.0)
        .of(&[DType::I8])
        .with(&[("to", Value::Type(DType::F32))]),
];

/// Rows of ONNX and of TensorFlow that are no row of `graph`.
const OTHERS: &[Case] = &[
    case("sin", ONE, (-100.0, 100.0), 1e-6),
    case("sin", ONE, (-1e7, 1e7), 1e-6),
    case("cos", ONE, (-100.0, 100.0), 1e-6),
    case("tan", ONE, (-1.5, 1.5), 1e-5),
    case("asin", ONE, (-1.0, 1.0), 1e-6),
    case("acos", ONE, (-1.0, 1.0), 1e-6),
    case("atan", ONE, WIDE, 1e-6),
    case("sinh", ONE, WIDE, 1e-6),
    case("cosh", ONE, WIDE, 1e-6),
    case("asinh", ONE, WIDE, 1e-6),
    case("acosh", ONE, (1.0, 100.0), 1e-6),
    case("atanh", ONE, (-0.99, 0.99), 2e-6),
    case("onnx.Softsign", ONE, WIDE, 1e-6),
    case("onnx.Mish", ONE, WIDE, 2e-6),
    case("onnx.Selu", ONE, WIDE, 1e-6),
    case("onnx.Celu", ONE, WIDE, 1e-6).with(&[("alpha", Value::Float(1.5))]),
    case("onnx.Swish", ONE, WIDE, 1e-6).with(&[("alpha", Value::Float(1.5))]),
    case("onnx.ThresholdedRelu", ONE, WIDE, 0.0).with(&[("alpha", Value::Float(1.5))]),
    case("onnx.Shrink", ONE, WIDE, 0.0)
        .with(&[("lambd", Value::Float(1.5)), ("bias", Value::Float(0.5))]),
    case("onnx.PRelu", &[&[3, 4, 5], &[4, 1]], WIDE, 0.0),
    case("onnx.Clip", &[&[3, 337], &[], &[]], (-2.0, 2.0), 0.0),
    case("onnx.Max", &[&[3, 4], &[4], &[3, 1]], WIDE, 0.0),
    case("onnx.Min", &[&[3, 4], &[4]], WIDE, 0.0),
    case("onnx.Sum", &[&[3, 4], &[4], &[3, 1]], WIDE, 1e-6),
    case("onnx.Sum", &[&[3, 4]], WIDE, 0.0),
    case("onnx.Mean", &[&[3, 4], &[3, 4], &[1]], WIDE, 1e-6),
    case("onnx.Mean", &[&[3, 4], &[3, 4]], WIDE, OF_F16).of(F16),
    case("onnx.Gemm", &[&[5, 7], &[7, 3]], WIDE, 1e-5),
    case("onnx.Gemm", &[&[5, 7], &[7, 3], &[3]], WIDE, 1e-5)
        .with(&[("alpha", Value::Float(0.5)), ("beta", Value::Float(2.0))]),
    case("onnx.Gemm", &[&[7, 5], &[3, 7], &[5, 1]], WIDE, 1e-5)
        .with(&[("transA", Value::Int(1)), ("transB", Value::Int(1))]),
    case("onnx.Gemm", &[&[5, 7], &[7, 3]], WIDE, 1e-5).with(&[("alpha", Value::Float(0.5))]),
    case("reduce", &[&[3, 50]], WIDE, 1e-6).with(&[
        ("kind", Value::Text("log_sum_exp")),
        ("axes", Value::Ints(&[-1])),
    ]),
    case("reduce", &[&[3, 5, 7]], WIDE, 1e-5)
        .lists(&[&[1]])
        .with(&[("kind", Value::Text("sum"))]),
    case("onnx.Squeeze", &[&[3, 1, 4, 1]], WIDE, 0.0).lists(&[&[1]]),
    case("onnx.Unsqueeze", &[&[3, 4]], WIDE, 0.0).lists(&[&[0, -1]]),
    case("onnx.Trilu", &[&[2, 4, 5]], WIDE, 0.0),
    case("onnx.Trilu", &[&[2, 4, 5]], WIDE, 0.0)
        .of(I64)
        .with(&[("upper", Value::Int(0))]),
    case("onnx.DepthToSpace", &[&[2, 12, 3, 2]], WIDE, 0.0).with(&[("blocksize", Value::Int(2))]),
    case("onnx.DepthToSpace", &[&[2, 12, 3, 2]], WIDE, 0.0)
        .with(&[("blocksize", Value::Int(2)), ("mode", Value::Text("CRD"))]),
    case("onnx.SpaceToDepth", &[&[2, 3, 4, 6]], WIDE, 0.0).with(&[("blocksize", Value::Int(2))]),
    case("not", ONE, WIDE, 0.0).of(&[DType::I1]),
    case("and", TWO, WIDE, 0.0).of(&[DType::I1; 2]),
    case("or", &[&[3, 4], &[4]], WIDE, 0.0).of(&[DType::I1; 2]),
    case("xor", TWO, WIDE, 0.0).of(&[DType::I1; 2]),
    case("eq", TWO, WIDE, 0.0).of(&[DType::I1; 2]),
    case("ne", TWO, WIDE, 0.0).of(&[DType::I1; 2]),
    case("tfrt_test.add", TWO, WIDE, 0.0),
    case("tf.BiasAdd", &[&[2, 3, 4, 5], &[5]], WIDE, 0.0),
    case("tf.BiasAdd", &[&[2, 3, 4, 5], &[3]], WIDE, 0.0)
        .with(&[("data_format", Value::Text("NCHW"))]),
    case("tf.Conv2D", &[&[2, 6, 7, 3], &[3, 3, 3, 4]], WIDE, 1e-4).with(&[
        ("padding", Value::Text("SAME")),
        ("strides", Value::Ints(&[1, 2, 2, 1])),
    ]),
    case("tf.Conv2D", &[&[2, 4, 6, 7], &[3, 2, 2, 4]], WIDE, 1e-4).with(&[
        ("data_format", Value::Text("NCHW")),
        ("padding", Value::Text("EXPLICIT")),
        ("explicit_paddings", Value::Ints(&[0, 0, 0, 0, 1, 2, 0, 1])),
        ("dilations", Value::Ints(&[1, 1, 2, 1])),
    ]),
    case("tf.MaxPool", &[&[2, 6, 7, 3]], WIDE, 0.0).with(&[
        ("ksize", Value::Ints(&[1, 3, 2, 1])),
        ("padding", Value::Text("SAME")),
        ("strides", Value::Ints(&[1, 2, 2, 1])),
    ]),
    case("tf.AvgPool", &[&[2, 6, 7, 3]], WIDE, 1e-6).with(&[
        ("ksize", Value::Ints(&[1, 3, 2, 1])),
        ("padding", Value::Text("SAME")),
        ("strides", Value::Ints(&[1, 2, 2, 1])),
    ]),
    case(
        "tf.FusedBatchNormV3",
        &[&[2, 4, 5, 3], &[3], &[3], &[3], &[3]],
        (0.5, 2.0),
        1e-5,
    ),
];

/// Cases that take a simulated GPU too long.
const LARGE: &[Case] = &[
    case("add", &[&[3, 1 << 20], &[1 << 20]], WIDE, 0.0),
    case("dot", &[&[1500, 700], &[700, 1501]], (-1.0, 1.0), 1e-4),
    case("dot", &[&[700, 1500], &[1501, 700]], (-1.0, 1.0), 1e-4).with(&[
        ("transpose_a", Value::Int(1)),
        ("transpose_b", Value::Int(1)),
    ]),
    case("softmax", &[&[1000, 3000]], WIDE, 1e-6),
    case("reduce", &[&[1000, 3000]], (-1.0, 1.0), 1e-4)
        .with(&[("kind", Value::Text("sum")), ("axes", Value::Ints(&[0]))]),
    case("transpose", &[&[1000, 3001]], WIDE, 0.0),
    case(
        "conv",
        &[&[8, 64, 56, 56], &[64, 64, 3, 3], &[64]],
        (-1.0, 1.0),
        1e-4,
    )
    .with(&[("pads", Value::Ints(&[1, 1, 1, 1]))]),
    case(
        "conv",
        &[&[4, 256, 14, 14], &[512, 256, 1, 1]],
        (-1.0, 1.0),
        1e-4,
    )
    .with(&[("strides", Value::Ints(&[2, 2]))]),
    case(
        "conv",
        &[&[4, 96, 56, 56], &[96, 1, 3, 3], &[96]],
        (-1.0, 1.0),
        1e-4,
    )
    .with(&[
        ("pads", Value::Ints(&[1, 1, 1, 1])),
        ("groups", Value::Int(96)),
    ]),
    case("gather", &[&[30000, 384]], WIDE, 0.0).lists(&[&[29999, 0, 101, 2054, -1]]),
];

/// A host with a GPU.
pub struct Bed {
    pub core: CoreRuntime,
    pub device: DeviceRef,
}

impl Bed {
    /// Adds a driver's first device to a host.
    pub fn new(driver: Arc<dyn Driver>) -> Bed {
        let host = HostContext::builder(KernelRegistry::new()).build();
        let device = tfrt_gpu::add(&host, driver, 0).unwrap();
        let core = CoreRuntime::new(&host);
        core.set_kernels(tfrt_kernels::rows::find);
        core.set_device_kernels(tfrt_gpu::KERNELS.into());
        Bed { core, device }
    }

    pub fn wait(&self, handle: &TensorHandle) -> Result<Tensor, Error> {
        let value = handle.to_async().into_any();
        let _waited = self.core.host().queue().await_all(from_ref(&value));
        let value = value.settled();
        let tensor = value.get::<Tensor>().cloned();
        tensor.ok_or_else(|| value.error().expect("it is settled").clone())
    }

    /// Makes an operand of a type by numbers: truth values say whether these are above 0.
    pub fn operand(
        &self,
        shape: &[usize],
        values: &[f32],
        dtype: DType,
    ) -> Result<TensorHandle, Error> {
        if dtype == DType::I1 {
            let values: Vec<Bool> = values.iter().map(|one| Bool::from(*one > 0.0)).collect();
            return self.core.dense(shape, &values);
        }
        self.cast(&self.core.dense(shape, values)?, dtype)
    }

    /// Changes the type of elements on the processor.
    pub fn cast(&self, handle: &TensorHandle, to: DType) -> Result<TensorHandle, Error> {
        let mut attributes = OpAttrs::new();
        attributes.set("to", to)?;
        let cast = self.core.op("cast", &self.core.cpu())?;
        cast.call_one(&self.core.context(), [handle], &attributes)
    }

    fn run(&self, case: &Case, seed: u32, is_on_gpu: bool) -> Result<(DType, Vec<f32>), Error> {
        let handler = match is_on_gpu {
            true => self.core.on(&self.device)?,
            false => self.core.cpu(),
        };
        let mut random = seed.wrapping_mul(2_654_435_761) | 1;
        let mut draw = || {
            random ^= random << 13;
            random ^= random >> 17;
            random ^= random << 5;
            case.range.0 + (case.range.1 - case.range.0) * (random >> 8) as f32 / (1 << 24) as f32
        };
        let mut operands: Vec<TensorHandle> = Vec::new();
        for (index, shape) in case.shapes.iter().enumerate() {
            let values: Vec<f32> = (0..shape.iter().product()).map(|_| draw()).collect();
            let dtype = case.types.get(index).copied().unwrap_or(DType::F32);
            operands.push(self.operand(shape, &values, dtype)?);
        }
        for list in case.lists {
            operands.push(self.core.dense(&[list.len()], list)?);
        }
        let mut attributes = OpAttrs::new();
        for (name, value) in case.attributes {
            match *value {
                Value::Int(value) => attributes.set(name, value)?,
                Value::Float(value) => attributes.set(name, value)?,
                Value::Text(value) => attributes.set(name, value)?,
                Value::Ints(value) => attributes.set(name, value)?,
                Value::Type(value) => attributes.set(name, value)?,
            };
        }
        let context = self.core.context();
        let made = self
            .core
            .op(case.op, &handler)?
            .call(&context, &operands, &attributes)?;
        let back = context.transfer(&made[0], &self.core.device(), TensorFormat::DenseHost)?;
        let dtype = self.wait(&back)?.metadata().dtype;
        let tensor = self.wait(&self.cast(&back, DType::F32)?)?;
        let values = tensor.as_dense()?.read()?.elements::<f32>()?.to_vec();
        Ok((dtype, values))
    }
}

/// Runs each case, on a real GPU large ones too, on the GPU and on the processor; returns a line for each, and whether it passed.
pub fn compare(driver: &Arc<dyn Driver>, seed: u32, is_real: bool) -> Vec<(bool, String)> {
    let bed = Bed::new(driver.clone());
    let compare_one = |case: &Case| {
        let what = format!(
            "{} {:?} {:?} {:?}",
            case.op, case.shapes, case.types, case.attributes
        );
        let (gpu, cpu) = match (bed.run(case, seed, true), bed.run(case, seed, false)) {
            (Ok(gpu), Ok(cpu)) => (gpu, cpu),
            (gpu, cpu) => {
                let (gpu, cpu) = (
                    gpu.err().map(|error| error.to_string()),
                    cpu.err().map(|error| error.to_string()),
                );
                return (false, format!("{what}: GPU {gpu:?}, processor {cpu:?}"));
            }
        };
        if gpu.0 != cpu.0 || gpu.1.len() != cpu.1.len() {
            return (
                false,
                format!(
                    "{what}: {} {} and {} {}",
                    gpu.0,
                    gpu.1.len(),
                    cpu.0,
                    cpu.1.len()
                ),
            );
        }
        let difference = |(gpu, cpu): (&f32, &f32)| match gpu.to_bits() == cpu.to_bits() {
            true => 0.0,
            // What is no number is never near.
            false => ((gpu - cpu).abs() / cpu.abs().max(1.0)).max(f32::MIN_POSITIVE),
        };
        let worst = gpu
            .1
            .iter()
            .zip(&cpu.1)
            .map(difference)
            .fold(0.0, |worst: f32, one| {
                if one > worst || one.is_nan() {
                    one
                } else {
                    worst
                }
            });
        (
            worst <= case.tolerance,
            format!("{what}: {worst:e} of {:e}", case.tolerance),
        )
    };
    let large = if is_real { LARGE } else { &[] };
    CASES
        .iter()
        .chain(TYPED)
        .chain(OTHERS)
        .chain(large)
        .map(compare_one)
        .collect()
}

#[cfg(test)]
mod tests {
    use tfrt_gpu::driver::sim::{Policy, Sim, SimOptions};

    use super::*;

    #[test]
    fn kernels_give_what_those_of_the_processor_give() {
        for (policy, seed) in [(Policy::Eager, 1), (Policy::Lazy, 2), (Policy::Random, 3)] {
            let sim = Sim::new(SimOptions {
                policy,
                seed,
                ..SimOptions::default()
            });
            let driver: Arc<dyn Driver> = Arc::new(sim.clone());
            let lines = compare(&driver, seed as u32, false);
            let failed: Vec<_> = lines.iter().filter(|(passed, _)| !passed).collect();
            assert!(failed.is_empty(), "{policy:?}: {failed:#?}");
            assert_eq!(sim.findings(), []);
        }
    }

    #[test]
    fn each_kernel_has_a_case() {
        for kernel in tfrt_gpu::KERNELS {
            let mut cases = CASES.iter().chain(OTHERS);
            // Programs are compared by tests of their own.
            let has_case = kernel.op == "pointwise" || cases.any(|case| case.op == kernel.op);
            assert!(has_case, "{}", kernel.op);
        }
    }
}
