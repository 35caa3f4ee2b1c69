//! `tf_sync`: operations of TensorFlow for functions marked synchronous.
//!
//! Results go to tensors that the program has made, so that who plans memory does so ahead.

use super::kernel;
use super::tfrt_dht::{TENSOR, used_by_others, wrong_type};
use crate::dialect::{
    AttributeKind, OpDef, Traits,
    ValueKind::{I1, I32},
};

const INVALID: &str = "InvalidArgument";

pub(super) fn definitions() -> Vec<OpDef> {
    let mut all = vec![
        constant(),
        fused_product("tf_sync._FusedMatMul.f32"),
        fused_product("tf_sync._FusedMatMul.f64"),
    ];
    all.extend(ADDV2.map(|name| binary(name, "The sum")));
    all.extend(SUB.map(|name| binary(name, "The difference")));
    all.extend(MUL.map(|name| binary(name, "The product")));
    all.extend(REALDIV.map(|name| binary(name, "The quotient")));
    all.extend(LOG.map(|name| unary(name, "The natural logarithm")));
    all.extend(LOG1P.map(|name| unary(name, "The natural logarithm of 1 more")));
    all.extend(RSQRT.map(|name| unary(name, "1 over the square root")));
    all.extend(SIGMOID.map(|name| unary(name, "The logistic function")));
    all.extend(SOFTMAX.map(|name| softmax(name, "The softmax along the last dimension")));
    all.extend(LOG_SOFTMAX.map(|name| {
        softmax(
            name,
            "The logarithm of the softmax along the last dimension",
        )
    }));
    all.extend(CONCAT.map(concat));
    all.extend(TILE.map(tile));
    let synchronous = |definition: OpDef| definition.traits(&[Traits::SYNC]);
    all.into_iter().map(synchronous).collect()
}

const ADDV2: [&str; 10] = [
    "tf_sync.AddV2.ui8",
    "tf_sync.AddV2.ui16",
    "tf_sync.AddV2.ui32",
    "tf_sync.AddV2.ui64",
    "tf_sync.AddV2.i8",
    "tf_sync.AddV2.i16",
    "tf_sync.AddV2.i32",
    "tf_sync.AddV2.i64",
    "tf_sync.AddV2.f32",
    "tf_sync.AddV2.f64",
];
const SUB: [&str; 10] = [
    "tf_sync.Sub.ui8",
    "tf_sync.Sub.ui16",
    "tf_sync.Sub.ui32",
    "tf_sync.Sub.ui64",
    "tf_sync.Sub.i8",
    "tf_sync.Sub.i16",
    "tf_sync.Sub.i32",
    "tf_sync.Sub.i64",
    "tf_sync.Sub.f32",
    "tf_sync.Sub.f64",
];
const MUL: [&str; 10] = [
    "tf_sync.Mul.ui8",
    "tf_sync.Mul.ui16",
    "tf_sync.Mul.ui32",
    "tf_sync.Mul.ui64",
    "tf_sync.Mul.i8",
    "tf_sync.Mul.i16",
    "tf_sync.Mul.i32",
    "tf_sync.Mul.i64",
    "tf_sync.Mul.f32",
    "tf_sync.Mul.f64",
];
const REALDIV: [&str; 10] = [
    "tf_sync.RealDiv.ui8",
    "tf_sync.RealDiv.ui16",
    "tf_sync.RealDiv.ui32",
    "tf_sync.RealDiv.ui64",
    "tf_sync.RealDiv.i8",
    "tf_sync.RealDiv.i16",
    "tf_sync.RealDiv.i32",
    "tf_sync.RealDiv.i64",
    "tf_sync.RealDiv.f32",
    "tf_sync.RealDiv.f64",
];
const LOG: [&str; 2] = ["tf_sync.Log.f32", "tf_sync.Log.f64"];
const LOG1P: [&str; 2] = ["tf_sync.Log1p.f32", "tf_sync.Log1p.f64"];
const RSQRT: [&str; 2] = ["tf_sync.Rsqrt.f32", "tf_sync.Rsqrt.f64"];
const SIGMOID: [&str; 2] = ["tf_sync.Sigmoid.f32", "tf_sync.Sigmoid.f64"];
const SOFTMAX: [&str; 2] = ["tf_sync.Softmax.f32", "tf_sync.Softmax.f64"];
const LOG_SOFTMAX: [&str; 2] = ["tf_sync.LogSoftmax.f32", "tf_sync.LogSoftmax.f64"];
const CONCAT: [&str; 10] = [
    "tf_sync.ConcatV2.ui8",
    "tf_sync.ConcatV2.ui16",
    "tf_sync.ConcatV2.ui32",
    "tf_sync.ConcatV2.ui64",
    "tf_sync.ConcatV2.i8",
    "tf_sync.ConcatV2.i16",
    "tf_sync.ConcatV2.i32",
    "tf_sync.ConcatV2.i64",
    "tf_sync.ConcatV2.f32",
    "tf_sync.ConcatV2.f64",
];
const TILE: [&str; 10] = [
    "tf_sync.Tile.ui8",
    "tf_sync.Tile.ui16",
    "tf_sync.Tile.ui32",
    "tf_sync.Tile.ui64",
    "tf_sync.Tile.i8",
    "tf_sync.Tile.i16",
    "tf_sync.Tile.i32",
    "tf_sync.Tile.i64",
    "tf_sync.Tile.f32",
    "tf_sync.Tile.f64",
];

/// Adds effects and errors of an operation that reads `n_inputs` tensors and writes the one behind
/// them.
fn writes(definition: OpDef, n_inputs: usize) -> OpDef {
    let inputs = 0..n_inputs;
    let definition = inputs.fold(definition, |definition, input| definition.reads(input));
    used_by_others(wrong_type(definition.writes(n_inputs)))
}

fn constant() -> OpDef {
    let definition = kernel("tf_sync.Const")
        .summary("Writes the elements of an attribute")
        .operand("output", TENSOR)
        .attribute("value", AttributeKind::Any, "the elements, a `dense<...>`")
        .fails(
            INVALID,
            "error creating DenseHostTensor: attribute 'value' is no dense elements",
            "it is something else",
        )
        .fails(
            INVALID,
            "a tensor of TYPE SHAPE can't take the elements of one of TYPE SHAPE",
            "the tensor is of another type or shape",
        );
    writes(definition, 0)
}

fn binary(name: &'static str, summary: &'static str) -> OpDef {
    let definition = kernel(name)
        .summary(summary)
        .details("The inputs are broadcast; each may be a tensor whose elements are all the same.")
        .operand("lhs", TENSOR)
        .operand("rhs", TENSOR)
        .operand("output", TENSOR)
        .fails(
            INVALID,
            "tensor shape mismatch: SHAPE vs. SHAPE",
            "the inputs can't be broadcast",
        )
        .fails(
            INVALID,
            "expected a result of shape SHAPE, found SHAPE",
            "the output has another shape than that gives",
        );
    writes(definition, 2)
}

fn of_one(name: &'static str, summary: &'static str) -> OpDef {
    let definition = kernel(name)
        .summary(summary)
        .operand("input", TENSOR)
        .operand("output", TENSOR);
    writes(definition, 1)
}

fn unary(name: &'static str, summary: &'static str) -> OpDef {
    of_one(name, summary).fails(
        INVALID,
        "expected a result of shape SHAPE, found SHAPE",
        "the shapes differ",
    )
}

fn softmax(name: &'static str, summary: &'static str) -> OpDef {
    of_one(name, summary).fails(
        INVALID,
        "softmax of shape SHAPE with a result of shape SHAPE: expected one shape, with at least one dimension",
        "the shapes are not that",
    )
}

fn concat(name: &'static str) -> OpDef {
    let definition = kernel(name)
        .summary("Tensors behind each other along a dimension")
        .details(
            "The last operand is the result. A negative axis counts from the last dimension. Numbers are \
             vectors of one element.",
        )
        .operand("axis", I32)
        .rest_of("tensors", TENSOR)
        .fails(
            INVALID,
            "variadic operand INDEX: expected !t.tensor, found TYPE",
            "an operand is something else",
        )
        .fails(
            INVALID,
            "there is no dimension AXIS in tensors of N dimensions",
            "the axis is not in the tensors",
        )
        .fails(
            INVALID,
            "tensor I to be joined along dimension N has the shape SHAPE: expected one that differs from SHAPE \
             in that dimension alone",
            "the shapes do not fit",
        )
        .outside();
    used_by_others(wrong_type(definition)).generic(format!(
        "\"{name}\"(%axis, %tensors) : (i32, !t.tensor) -> ()"
    ))
}

fn tile(name: &'static str) -> OpDef {
    let definition = kernel(name)
        .summary("A tensor repeated along its dimensions")
        .operand("input", TENSOR)
        .operand("multiples", TENSOR)
        .operand("output", TENSOR)
        .fails(
            INVALID,
            "expected how often to repeat each dimension, found MULTIPLES",
            "one of them is negative",
        )
        .fails(
            INVALID,
            "expected how often to repeat each of N dimensions, found MULTIPLES",
            "there is not a number, an `i32` or `i64`, for each dimension",
        );
    writes(definition, 2)
}

fn fused_product(name: &'static str) -> OpDef {
    let definition = kernel(name)
        .summary("A product of matrices with a bias, and a function of the sums")
        .details("`a: [m, k]`, `b: [k, n]`, `output: [m, n]`, `bias: [n]`.")
        .operand("a", TENSOR)
        .operand("b", TENSOR)
        .operand("output", TENSOR)
        .operand("bias", TENSOR)
        .attribute(
            "fused_ops",
            AttributeKind::Any,
            "`[\"BiasAdd\"]`, or a second one behind it: `Relu`, `Relu6` or `Elu`",
        )
        .attribute(
            "transpose_a",
            AttributeKind::Typed(I1),
            "whether a's rows and columns are exchanged first",
        )
        .attribute(
            "transpose_b",
            AttributeKind::Typed(I1),
            "whether those of b are",
        )
        .fails(
            INVALID,
            "FusedMatMul must specify fused operations",
            "there are none",
        )
        .fails(
            INVALID,
            "Unsupported fusion type: NAMES",
            "they are something else",
        )
        .fails(
            INVALID,
            "Bias tensor must be a vector of N elements, found SHAPE",
            "it is something else",
        )
        .reads(0)
        .reads(1)
        .writes(2)
        .reads(3);
    used_by_others(wrong_type(definition)).generic(format!(
        "\"{name}\"(%a, %b, %output, %bias) {{fused_ops = [\"BiasAdd\"], transpose_a = false, transpose_b = \
         false}} : (!t.tensor, !t.tensor, !t.tensor, !t.tensor) -> ()"
    ))
}
