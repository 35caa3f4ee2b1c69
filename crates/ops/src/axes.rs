//! Operations along axes: reductions, positions of extremes, running sums, normalisations.

use smallvec::SmallVec;
use tfrt_bef::DType;

use crate::def::{AttrDef, Cost, ElementFamily, OpDef, Traits, ValueDef, When};
use crate::infer::{Infer, InferCall, InferError, without};

const X: ValueDef = ValueDef::var("x", "T");

pub(crate) const OPS: &[OpDef] = &[
    OpDef::new("reduce", "The `kind` of all elements along some axes, all if none are stated.")
        .inputs(&[X, ValueDef::set("axes", &[DType::I64]).optional()])
        .results(&[ValueDef::var("y", "T").by_values()])
        .attrs(&[
            AttrDef::kind(&["sum", "prod", "max", "min", "mean", "l1", "l2", "sum_square", "log_sum", "log_sum_exp", "any", "all"]),
            AttrDef::ints("axes"),
            AttrDef::int("keep", 1),
            AttrDef::int("none_if_empty", 0),
        ])
        .infer(Infer::Reduce),
    OpDef::new("arg", "Where the largest or smallest (`kind`) element along `axis` is, the first or last one.")
        .results(&[ValueDef::set("y", &[DType::I64])])
        .attrs(&[
            AttrDef::kind(&["max", "min"]),
            AttrDef::int("axis", 0),
            AttrDef::int("keep", 1),
            AttrDef::int("last", 0),
        ])
        .infer(Infer::By(arg))
        .elements(ElementFamily::Real),
    OpDef::new("cumulative", "For each element the `kind` (sum or prod) of those before it along an axis, itself included.")
        .inputs(&[X, ValueDef::set("axis", &[DType::I32, DType::I64])])
        .attrs(&[
            AttrDef::kind(&["sum", "prod"]),
            AttrDef::int("exclusive", 0),
            AttrDef::int("reverse", 0),
        ]),
    OpDef::new("softmax", "exp(x), divided by its sum along `axis`; the logarithm of that if `log`.")
        .attrs(&[AttrDef::int("axis", -1), AttrDef::int("log", 0)])
        .traits(Traits::IN_PLACE)
        .infer(Infer::By(softmax))
        .elements(ElementFamily::Float)
        .cost(Cost::PerElement(12)),
    OpDef::new("norm", "Elements less their mean, divided by their standard deviation, times `scale`, plus `bias`; over axes from `axis` on (layer, rms), groups of channels (group), each channel (instance), or with given moments (batch).")
        .inputs(&[
            X,
            ValueDef::any("scale").optional(),
            ValueDef::any("bias").optional(),
            ValueDef::any("mean").optional(),
            ValueDef::any("variance").optional(),
        ])
        .results(&[
            // Of RMS normalisation the scale says the type.
            ValueDef::var("y", "V"),
            ValueDef::any("mean").optional(),
            ValueDef::any("variance").optional(),
        ])
        .attrs(&[
            AttrDef::kind(&["layer", "rms", "group", "instance", "batch"]),
            AttrDef::int("axis", -1).only(When::Kind(&["layer", "rms"])),
            AttrDef::float("epsilon", 1e-5),
            AttrDef::int("groups", 1).only(When::Kind(&["group"])),
            AttrDef::float("momentum", 0.9).only(When::Kind(&["batch"])),
            AttrDef::int("training", 0).only(When::Kind(&["batch"])),
            AttrDef::int("stash_type", 1).only(When::Kind(&["layer", "rms", "group"])),
        ])
        .infer(Infer::By(norm))
        .elements(ElementFamily::Float)
        .cost(Cost::PerElement(6)),
];

fn softmax(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let x = call.input(0);
    let axis = call.attrs.int("axis").unwrap_or(-1);
    if let Some(dims) = &x.dims {
        // A number has one axis here; forms of ONNX before version 13 may state the one behind the last.
        let rank = dims.len().max(1);
        if usize::try_from(axis) != Ok(rank) {
            call.axis(axis, rank)?;
        }
    }
    call.give(0, x.dtype, x.dims.clone());
    Ok(())
}

fn arg(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let dims = match &call.input(0).dims {
        Some(dims) => {
            let at = call.axis(call.attrs.int("axis").unwrap_or(0), dims.len())?;
            Some(without(dims, &[at], call.attrs.flag("keep")))
        }
        None => None,
    };
    call.give(0, Some(DType::I64), dims);
    Ok(())
}

/// Expects operands to have the type of the first one.
fn expect_types_of_first(call: &InferCall<'_>, operands: &[usize]) -> Result<(), InferError> {
    for &index in operands {
        if let (Some(own), Some(found)) = (call.input(0).dtype, call.input(index).dtype)
            && own != found
        {
            return Err(call.error(format_args!(
                "operand {index}: expected a tensor of {own}, found one of {found}"
            )));
        }
    }
    Ok(())
}

fn norm(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let x = call.input(0).clone();
    let (dtype, dims) = (x.dtype, x.dims);
    let result = match call.attrs.text("kind") {
        "rms" => call.input(1).dtype.or(dtype),
        _ => dtype,
    };
    call.give(0, result, dims.clone());
    match call.attrs.text("kind") {
        "layer" => {
            expect_types_of_first(call, &[1, 2])?;
            let dims = match &dims {
                Some(dims) => {
                    let from = call.axis(call.attrs.int("axis").unwrap_or(-1), dims.len())?;
                    let axes: SmallVec<[usize; 6]> = (from..dims.len()).collect();
                    Some(without(dims, &axes, true))
                }
                None => None,
            };
            let stash = match call.attrs.int("stash_type") {
                Some(1) => Some(DType::F32),
                _ => dtype,
            };
            call.give(1, stash, dims.clone());
            call.give(2, stash, dims);
        }
        "batch" => {
            (1..5).try_for_each(|index| call.expect_rank(index, 1))?;
            let (mean, variance) = (call.input(3).clone(), call.input(4).clone());
            let channels = || {
                dims.as_ref()
                    .and_then(|dims| Some([dims.get(1)?.clone()].into_iter().collect()))
            };
            call.give(1, mean.dtype, mean.dims.or_else(channels));
            call.give(2, variance.dtype, variance.dims.or_else(channels));
        }
        "group" | "instance" => expect_types_of_first(call, &[1, 2])?,
        _ => {}
    }
    Ok(())
}
