//! Rows on strings: join, cut, count, match, parse numbers; and ragged rows.

use tfrt_bef::DType;

use super::{dims_text, text};
use crate::def::{AttrDef, AttrKind, OpDef, ValueDef};
use crate::dim::{Dim, Dims};
use crate::infer::{Infer, InferCall, InferError, without};

const STRINGS: &[DType] = &[DType::String];
const INDEX: &[DType] = &[DType::I32, DType::I64];
const X: ValueDef = ValueDef::set("x", STRINGS);
const Y: ValueDef = ValueDef::set("y", STRINGS);
const UNIT: AttrDef = AttrDef::text("unit", "BYTE");

pub(crate) const OPS: &[OpDef] = &[
    OpDef::new("tf.RaggedTensorToTensor", "Rows of unlike lengths as a tensor, filled up with a default, or cut off, to `shape`, or to the longest where that is -1. How values lie in rows is said by ROW_SPLITS, or by FIRST_DIM_SIZE and VALUE_ROWIDS, for each dimension.")
        .inputs(&[
            ValueDef::set("shape", INDEX),
            ValueDef::var("values", "T"),
            ValueDef::var("default_value", "T"),
            ValueDef::set("row_partition_tensors", INDEX).rest(1),
        ])
        .results(&[ValueDef::var("y", "T").data_dependent()])
        .attrs(&[AttrDef::new("row_partition_types", AttrKind::Texts).required(), AttrDef::new("num_row_partition_tensors", AttrKind::Int)])
        .infer(Infer::By(unknown)),
    OpDef::new("tf.ReduceJoin", "The strings along some axes, all in turn, joined by a separator.")
        .inputs(&[X, ValueDef::set("axes", INDEX)])
        .results(&[Y.by_values()])
        .attrs(&[AttrDef::int("keep_dims", 0), AttrDef::text("separator", "")])
        .infer(Infer::By(reduced)),
    OpDef::new("tf.RegexFullMatch", "Whether all of each string matches a pattern.")
        .inputs(&[X, ValueDef::set("pattern", STRINGS)])
        .results(&[ValueDef::set("y", &[DType::I1])])
        .infer(Infer::By(matched)),
    OpDef::new("tf.RegexReplace", "Each string with what matches a pattern replaced: all of it, or the first match.")
        .inputs(&[X, ValueDef::set("pattern", STRINGS), ValueDef::set("rewrite", STRINGS)])
        .results(&[Y])
        .attrs(&[AttrDef::int("replace_global", 1)])
        .infer(Infer::By(rewritten)),
    OpDef::new("tf.StaticRegexReplace", "Each string with what matches a pattern replaced: all of it, or the first match.")
        .inputs(&[X])
        .results(&[Y])
        .attrs(&[
            AttrDef::new("pattern", AttrKind::Text).required(),
            AttrDef::new("rewrite", AttrKind::Text).required(),
            AttrDef::int("replace_global", 1),
        ]),
    OpDef::new("tf.StringJoin", "Strings at the same place of all operands, joined by a separator; one string is at every place.")
        .inputs(&[X.rest(1)])
        .results(&[Y])
        .attrs(&[AttrDef::text("separator", "")])
        .infer(Infer::By(string_join)),
    OpDef::new("tf.StringLength", "How long each string is: in bytes, or in letters of UTF-8 (`unit` UTF8_CHAR).")
        .inputs(&[X])
        .results(&[ValueDef::set("y", &[DType::I32])])
        .attrs(&[UNIT])
        .infer(Infer::By(lengths)),
    OpDef::new("tf.StringLower", "Each string in lower case: its ASCII letters, or all if its `encoding` is utf-8.")
        .inputs(&[X])
        .results(&[Y])
        .attrs(&[AttrDef::text("encoding", "")]),
    OpDef::new("tf.StringSplitV2", "The parts of each string between separators, or between blanks if that is empty, at most `maxsplit` cuts: where each part goes in a matrix of a row for each string, the parts, and the extents of that matrix.")
        .inputs(&[X, ValueDef::set("sep", STRINGS)])
        .results(&[
            ValueDef::set("indices", &[DType::I64]).data_dependent(),
            ValueDef::set("values", STRINGS).data_dependent(),
            ValueDef::set("shape", &[DType::I64]),
        ])
        .attrs(&[AttrDef::int("maxsplit", -1)])
        .infer(Infer::By(split)),
    OpDef::new("tf.StringStrip", "Each string without the blanks around it.")
        .inputs(&[X])
        .results(&[Y]),
    OpDef::new("tf.StringToNumber", "The number that each string is in decimal.")
        .inputs(&[X])
        .results(&[ValueDef::any("y")])
        .attrs(&[AttrDef::dtype("out_type", DType::F32)])
        .infer(Infer::By(numbers)),
    OpDef::new("tf.StringUpper", "Each string in upper case: its ASCII letters, or all if its `encoding` is utf-8.")
        .inputs(&[X])
        .results(&[Y])
        .attrs(&[AttrDef::text("encoding", "")]),
    OpDef::new("tf.Substr", "A part of each string: from `pos` on, below 0 counted from the end, `len` bytes or letters (`unit`), or as many as there are.")
        .inputs(&[X, ValueDef::var("pos", "I"), ValueDef::var("len", "I")])
        .results(&[Y])
        .attrs(&[UNIT])
        .infer(Infer::By(part)),
];

fn unknown(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let dtype = call.input(1).dtype.or(call.input(2).dtype);
    call.give(0, dtype, None);
    Ok(())
}

fn reduced(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let (x, axes) = (call.input(0).clone(), call.input(1).numbers());
    let keep = call.attrs.flag("keep_dims");
    let dims = match (&x.dims, axes) {
        (Some(dims), Some(axes)) => {
            let places = call.axes(&axes, dims.len())?;
            Some(without(dims, &places, keep))
        }
        _ => None,
    };
    call.give(0, Some(DType::String), dims);
    Ok(())
}

/// Returns an error if an operand is not one string.
fn expect_one(call: &InferCall<'_>, index: usize) -> Result<(), InferError> {
    let found = call.input(index);
    match found.n_elements().value() {
        Some(n) if n != 1 => {
            let found = text(found);
            Err(call.error(format_args!(
                "operand {index}: expected one string, found {found}"
            )))
        }
        _ => Ok(()),
    }
}

fn matched(call: &mut InferCall<'_>) -> Result<(), InferError> {
    expect_one(call, 1)?;
    let dims = call.input(0).dims.clone();
    call.give(0, Some(DType::I1), dims);
    Ok(())
}

fn rewritten(call: &mut InferCall<'_>) -> Result<(), InferError> {
    expect_one(call, 1)?;
    expect_one(call, 2)?;
    let dims = call.input(0).dims.clone();
    call.give(0, Some(DType::String), dims);
    Ok(())
}

fn string_join(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let (mut dims, mut is_known) = (None::<Dims>, true);
    for fact in call.inputs.iter().flatten() {
        let Some(own) = &fact.dims else {
            is_known = false;
            continue;
        };
        if own.is_empty() {
            continue;
        }
        dims = match dims {
            None => Some(own.clone()),
            Some(dims) => {
                let other = crate::fact::Fact::new(None, Some(dims));
                call.agree(fact, &other)?.dims
            }
        };
    }
    let dims = match dims {
        None => is_known.then(Dims::new),
        dims => dims,
    };
    call.give(0, Some(DType::String), dims);
    Ok(())
}

/// Returns an error if letters are counted in something else than bytes or UTF-8.
fn expect_unit(call: &InferCall<'_>) -> Result<(), InferError> {
    match call.attrs.text("unit") {
        "" | "BYTE" | "UTF8_CHAR" => Ok(()),
        found => Err(call.error(format_args!(
            "expected attribute 'unit' to be BYTE or UTF8_CHAR, found '{}'",
            found.escape_debug()
        ))),
    }
}

fn lengths(call: &mut InferCall<'_>) -> Result<(), InferError> {
    expect_unit(call)?;
    let dims = call.input(0).dims.clone();
    call.give(0, Some(DType::I32), dims);
    Ok(())
}

fn split(call: &mut InferCall<'_>) -> Result<(), InferError> {
    call.expect_rank(0, 1)?;
    expect_one(call, 1)?;
    let list = |dims: &[Dim]| Some(dims.iter().cloned().collect());
    call.give(0, Some(DType::I64), list(&[Dim::Unknown, Dim::Known(2)]));
    call.give(1, Some(DType::String), list(&[Dim::Unknown]));
    call.give(2, Some(DType::I64), list(&[Dim::Known(2)]));
    Ok(())
}

fn numbers(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let dtype = call.attrs.dtype("out_type").unwrap_or(DType::F32);
    if !matches!(
        dtype,
        DType::F32 | DType::F64 | DType::I32 | DType::I64 | DType::Ui32 | DType::Ui64
    ) {
        return Err(call.error(format_args!(
            "expected attribute 'out_type' to be a number of 32 or 64 bits, found {dtype}"
        )));
    }
    let dims = call.input(0).dims.clone();
    call.give(0, Some(dtype), dims);
    Ok(())
}

fn part(call: &mut InferCall<'_>) -> Result<(), InferError> {
    expect_unit(call)?;
    for index in [1, 2] {
        if let Some(dtype) = call
            .input(index)
            .dtype
            .filter(|dtype| !INDEX.contains(dtype))
        {
            return Err(call.error(format_args!(
                "operand {index}: expected integers of 32 or 64 bits, found {dtype}"
            )));
        }
    }
    let (pos, len) = (call.input(1), call.input(2));
    if let (Some(own), Some(other)) = (&pos.dims, &len.dims) {
        call.agree(pos, len).map_err(|_| {
            let (own, other) = (dims_text(own), dims_text(other));
            call.error(format_args!(
                "expected a pos and a len of the same extents, found {own} and {other}"
            ))
        })?;
    }
    let dims = call.broadcast()?;
    call.give(0, Some(DType::String), dims);
    Ok(())
}
