//! Rows that draw random numbers.

use tfrt_bef::DType;

use crate::def::{AttrDef, AttrKind, OpDef, Traits, ValueDef};
use crate::dim::{Dim, Dims};
use crate::infer::{Infer, InferCall, InferError};
use crate::names::onnx::dtype;

pub(crate) const OPS: &[OpDef] = &[
    OpDef::new(
        "onnx.Bernoulli",
        "1 with the probability that each element is, else 0.",
    )
    .inputs(&[ValueDef::var("input", "T1")])
    .results(&[ValueDef::var("output", "T2")])
    .attrs(&[
        AttrDef::new("dtype", AttrKind::Int),
        AttrDef::new("seed", AttrKind::Float),
    ])
    .infer(Infer::By(like_with_dtype))
    .impure()
    .traits(Traits::RANDOM),
    OpDef::new(
        "onnx.Multinomial",
        "Positions, drawn with probabilities whose logarithms are given.",
    )
    .inputs(&[ValueDef::var("input", "T1")])
    .results(&[ValueDef::var("output", "T2")])
    .attrs(&[
        AttrDef::int("dtype", 6),
        AttrDef::int("sample_size", 1),
        AttrDef::new("seed", AttrKind::Float),
    ])
    .infer(Infer::By(multinomial))
    .impure()
    .traits(Traits::RANDOM),
    OpDef::new("onnx.RandomNormal", "Numbers from a normal distribution.")
        .inputs(&[])
        .results(&[ValueDef::var("output", "T")])
        .attrs(&[
            AttrDef::int("dtype", 1),
            AttrDef::float("mean", 0.0),
            AttrDef::float("scale", 1.0),
            AttrDef::new("seed", AttrKind::Float),
            AttrDef::new("shape", AttrKind::Ints).required(),
        ])
        .infer(Infer::By(of_shape))
        .impure()
        .traits(Traits::RANDOM),
    OpDef::new(
        "onnx.RandomNormalLike",
        "Numbers from a normal distribution, in the extents of its operand.",
    )
    .inputs(&[ValueDef::var("input", "T1")])
    .results(&[ValueDef::var("output", "T2")])
    .attrs(&[
        AttrDef::new("dtype", AttrKind::Int),
        AttrDef::float("mean", 0.0),
        AttrDef::float("scale", 1.0),
        AttrDef::new("seed", AttrKind::Float),
    ])
    .infer(Infer::By(like_with_dtype))
    .impure()
    .traits(Traits::RANDOM),
    OpDef::new("onnx.RandomUniform", "Numbers from a uniform distribution.")
        .inputs(&[])
        .results(&[ValueDef::var("output", "T")])
        .attrs(&[
            AttrDef::int("dtype", 1),
            AttrDef::float("high", 1.0),
            AttrDef::float("low", 0.0),
            AttrDef::new("seed", AttrKind::Float),
            AttrDef::new("shape", AttrKind::Ints).required(),
        ])
        .infer(Infer::By(of_shape))
        .impure()
        .traits(Traits::RANDOM),
    OpDef::new(
        "onnx.RandomUniformLike",
        "Numbers from a uniform distribution, in the extents of its operand.",
    )
    .inputs(&[ValueDef::var("input", "T1")])
    .results(&[ValueDef::var("output", "T2")])
    .attrs(&[
        AttrDef::new("dtype", AttrKind::Int),
        AttrDef::float("high", 1.0),
        AttrDef::float("low", 0.0),
        AttrDef::new("seed", AttrKind::Float),
    ])
    .infer(Infer::By(like_with_dtype))
    .impure()
    .traits(Traits::RANDOM),
];

fn stated(call: &InferCall<'_>) -> Option<DType> {
    call.attrs.int("dtype").and_then(dtype)
}

fn like_with_dtype(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let dtype = match call.attrs.has("dtype") {
        true => stated(call),
        false => call.input(0).dtype,
    };
    let dims = call.input(0).dims.clone();
    call.give(0, dtype, dims);
    Ok(())
}

fn multinomial(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let n = call.attrs.int("sample_size").unwrap_or(1);
    let dims = Dims::from_iter([call.input(0).dim(0), Dim::Known(n)]);
    let dtype = stated(call);
    call.give(0, dtype, Some(dims));
    Ok(())
}

fn of_shape(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let dims = call
        .attrs
        .ints("shape")
        .map(|shape| shape.iter().map(|extent| Dim::Known(*extent)).collect());
    let dtype = stated(call);
    call.give(0, dtype, dims);
    Ok(())
}
