//! Rows of normalisations that `graph` has in another form.

use tfrt_bef::DType;

use crate::def::{AttrDef, AttrKind, ElementFamily, OpDef, ValueDef};
use crate::dim::Dims;
use crate::infer::{Infer, InferCall, InferError};

pub(crate) const OPS: &[OpDef] = &[
    OpDef::new("onnx.DynamicQuantizeLinear", "Each element as an integer of 8 bits, with the scale and the zero point that fit the tensor.").inputs(&[ValueDef::set("x", &[DType::F32])]).results(&[ValueDef::set("y", &[DType::Ui8]), ValueDef::set("y_scale", &[DType::F32]), ValueDef::set("y_zero_point", &[DType::Ui8])]).infer(Infer::By(dynamic_quantize)),
    OpDef::new("onnx.Hardmax", "1 for the first largest element along `axis`, 0 for the others.").inputs(&[ValueDef::var("input", "T")]).results(&[ValueDef::var("output", "T")]).attrs(&[AttrDef::int("axis", -1)]).elements(ElementFamily::Float),
    OpDef::new("onnx.LpNormalization", "Elements divided by their norm along `axis`.").inputs(&[ValueDef::var("input", "T")]).results(&[ValueDef::var("output", "T")]).attrs(&[AttrDef::int("axis", -1), AttrDef::int("p", 2)]).elements(ElementFamily::Float),
    OpDef::new("onnx.MeanVarianceNormalization", "Elements less their mean, divided by their standard deviation, over `axes`.").inputs(&[ValueDef::var("X", "T")]).results(&[ValueDef::var("Y", "T")]).attrs(&[AttrDef::new("axes", AttrKind::Ints).or_ints(&[0, 2, 3])]),
];

fn dynamic_quantize(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let dims = call.input(0).dims.clone();
    call.give(0, Some(DType::Ui8), dims);
    call.give(1, Some(DType::F32), Some(Dims::new()));
    call.give(2, Some(DType::Ui8), Some(Dims::new()));
    Ok(())
}
