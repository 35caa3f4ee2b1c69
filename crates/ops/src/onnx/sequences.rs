//! Rows of sequences, optional values, and loops.

use tfrt_bef::DType;

use crate::control::fixed_point;
use crate::def::{AttrDef, AttrKind, OpDef, Traits, ValueDef};
use crate::dim::{Dim, Dims};
use crate::fact::{Fact, Facts};
use crate::infer::{Infer, InferCall, InferError};

pub(crate) const OPS: &[OpDef] = &[
    OpDef::new("onnx.ConcatFromSequence", "The tensors of a sequence, one after the other along `axis`.").inputs(&[ValueDef::object("input_sequence")]).results(&[ValueDef::var("concat_result", "T").data_dependent()]).attrs(&[AttrDef::new("axis", AttrKind::Int).required(), AttrDef::int("new_axis", 0)]).infer(Infer::By(nothing)),
    OpDef::new("onnx.Loop", "Runs its body for a number of turns, or while a condition is true; values go from turn to turn, and what each turn gives is put together.").inputs(&[ValueDef::set("M", &[DType::I64]).optional(), ValueDef::set("cond", &[DType::I1]).optional(), ValueDef::any("v_initial").rest(0)]).results(&[ValueDef::any("v_final_and_scan_outputs").rest(1).data_dependent()]).infer(Infer::By(turns)).regions(&["body"]).traits(Traits::CONTROL),
    OpDef::new("onnx.Optional", "A value that may be there, or not.").inputs(&[ValueDef::object("input").optional()]).results(&[ValueDef::object("output")]).attrs(&[AttrDef::new("type", AttrKind::Type)]).infer(Infer::By(nothing)),
    OpDef::new("onnx.OptionalGetElement", "The value of an optional one.").inputs(&[ValueDef::object("input")]).results(&[ValueDef::object("output").data_dependent()]).infer(Infer::By(nothing)),
    OpDef::new("onnx.OptionalHasElement", "Whether an optional value is there.").inputs(&[ValueDef::object("input").optional()]).results(&[ValueDef::set("output", &[DType::I1])]).infer(Infer::By(is_there)),
    OpDef::new("onnx.SequenceAt", "The tensor at a position of a sequence.").inputs(&[ValueDef::object("input_sequence"), ValueDef::var("position", "I")]).results(&[ValueDef::var("tensor", "T").data_dependent()]).infer(Infer::By(nothing)),
    OpDef::new("onnx.SequenceConstruct", "A sequence of tensors.").inputs(&[ValueDef::var("inputs", "T").rest(1)]).results(&[ValueDef::object("output_sequence")]).infer(Infer::By(nothing)),
    OpDef::new("onnx.SequenceEmpty", "A sequence of no tensors.").inputs(&[]).results(&[ValueDef::object("output")]).attrs(&[AttrDef::new("dtype", AttrKind::Int)]).infer(Infer::By(nothing)),
    OpDef::new("onnx.SequenceErase", "A sequence without one of its tensors.").inputs(&[ValueDef::object("input_sequence"), ValueDef::var("position", "I").optional()]).results(&[ValueDef::object("output_sequence")]).infer(Infer::By(nothing)),
    OpDef::new("onnx.SequenceInsert", "A sequence with a tensor put into it.").inputs(&[ValueDef::object("input_sequence"), ValueDef::var("tensor", "T"), ValueDef::var("position", "I").optional()]).results(&[ValueDef::object("output_sequence")]).infer(Infer::By(nothing)),
    OpDef::new("onnx.SequenceLength", "The number of tensors in a sequence.").inputs(&[ValueDef::object("input_sequence")]).results(&[ValueDef::set("length", &[DType::I64])]).infer(Infer::By(count)),
    OpDef::new("onnx.SequenceMap", "What a body gives for each element of a sequence, as sequences.").inputs(&[ValueDef::object("input_sequence"), ValueDef::object("additional_inputs").rest(0)]).results(&[ValueDef::object("out_sequence").rest(1)]).infer(Infer::By(nothing)).regions(&["body"]).traits(Traits::CONTROL),
    OpDef::new("onnx.SplitToSequence", "Parts of a tensor along `axis`, as a sequence.").inputs(&[ValueDef::var("input", "T"), ValueDef::var("split", "I").optional()]).results(&[ValueDef::object("output_sequence")]).attrs(&[AttrDef::int("axis", 0), AttrDef::int("keepdims", 1)]).infer(Infer::By(nothing)),
];

/// Infers nothing: results are no tensors, or depend on elements that are calculated.
fn nothing(_: &mut InferCall<'_>) -> Result<(), InferError> {
    Ok(())
}

fn count(call: &mut InferCall<'_>) -> Result<(), InferError> {
    call.give(0, Some(DType::I64), Some(Dims::new()));
    Ok(())
}

fn is_there(call: &mut InferCall<'_>) -> Result<(), InferError> {
    call.give(0, Some(DType::I1), Some(Dims::new()));
    Ok(())
}

/// Infers `Loop`. The body takes the number of the turn, the condition and the loop-carried values; it returns a
/// condition, the carried values, and scan outputs, which are stacked.
fn turns(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let first: Facts = call
        .inputs
        .iter()
        .skip(2)
        .map(|input| input.clone().unwrap_or_default())
        .collect();
    let n_states = first.len();
    let one = |dtype: DType| Fact::new(Some(dtype), Some(Dims::new()));
    let regions = &mut call.regions;
    let mut given = Facts::new();
    let states = fixed_point(first, |values| {
        let mut all = Facts::from_iter([one(DType::I64), one(DType::I1)]);
        all.extend(values.iter().cloned());
        given = regions(0, &all).into_iter().skip(1).collect();
        given.clone()
    });
    let parts: Facts = given.into_iter().skip(n_states).collect();
    for (index, fact) in states.into_iter().enumerate() {
        call.set(index, fact);
    }
    for (index, part) in parts.into_iter().enumerate() {
        let dims = part.dims.map(|mut dims| {
            dims.insert(0, Dim::Unknown);
            dims
        });
        call.give(n_states + index, part.dtype, dims);
    }
    Ok(())
}
