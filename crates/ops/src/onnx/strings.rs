//! Rows on strings.

use tfrt_bef::DType;

use crate::def::{AttrDef, AttrKind, OpDef, ValueDef};
use crate::dim::Dim;
use crate::infer::{Infer, InferCall, InferError};

pub(crate) const OPS: &[OpDef] = &[
    OpDef::new(
        "onnx.RegexFullMatch",
        "Whether all of each string matches a regular expression.",
    )
    .inputs(&[ValueDef::set("X", &[DType::String])])
    .results(&[ValueDef::set("Y", &[DType::I1])])
    .attrs(&[AttrDef::new("pattern", AttrKind::Text)])
    .infer(Infer::By(truth)),
    OpDef::new("onnx.StringConcat", "Two strings, one after the other.")
        .inputs(&[
            ValueDef::set("X", &[DType::String]),
            ValueDef::set("Y", &[DType::String]),
        ])
        .results(&[ValueDef::set("Z", &[DType::String])])
        .infer(Infer::Broadcast),
    OpDef::new(
        "onnx.StringNormalizer",
        "The strings without stop words, in upper or lower case.",
    )
    .inputs(&[ValueDef::set("X", &[DType::String])])
    .results(&[ValueDef::set("Y", &[DType::String]).data_dependent()])
    .attrs(&[
        AttrDef::text("case_change_action", "NONE"),
        AttrDef::int("is_case_sensitive", 0),
        AttrDef::new("locale", AttrKind::Text),
        AttrDef::new("stopwords", AttrKind::Texts),
    ])
    .infer(Infer::By(normalizer)),
    OpDef::new(
        "onnx.StringSplit",
        "The parts of each string between delimiters, and how many there are.",
    )
    .inputs(&[ValueDef::set("X", &[DType::String])])
    .results(&[
        ValueDef::set("Y", &[DType::String]).data_dependent(),
        ValueDef::set("Z", &[DType::I64]),
    ])
    .attrs(&[
        AttrDef::new("delimiter", AttrKind::Text),
        AttrDef::new("maxsplit", AttrKind::Int),
    ])
    .infer(Infer::By(string_split)),
    OpDef::new(
        "onnx.TfIdfVectorizer",
        "How often each of some sequences of words or numbers stands in its operand.",
    )
    .inputs(&[ValueDef::var("X", "T")])
    .results(&[ValueDef::set("Y", &[DType::F32])])
    .attrs(&[
        AttrDef::new("max_gram_length", AttrKind::Int).required(),
        AttrDef::new("max_skip_count", AttrKind::Int).required(),
        AttrDef::new("min_gram_length", AttrKind::Int).required(),
        AttrDef::new("mode", AttrKind::Text).required(),
        AttrDef::new("ngram_counts", AttrKind::Ints).required(),
        AttrDef::new("ngram_indexes", AttrKind::Ints).required(),
        AttrDef::new("pool_int64s", AttrKind::Ints),
        AttrDef::new("pool_strings", AttrKind::Texts),
        AttrDef::new("weights", AttrKind::Floats),
    ])
    .infer(Infer::By(n_grams)),
];

fn truth(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let dims = call.input(0).dims.clone();
    call.give(0, Some(DType::I1), dims);
    Ok(())
}

/// Infers `StringNormalizer` of a list of strings, or of one row of them.
fn normalizer(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let dims = call.input(0).dims.clone().map(|mut dims| {
        if let Some(last) = dims.last_mut() {
            *last = Dim::Unknown;
        }
        dims
    });
    call.give(0, Some(DType::String), dims);
    Ok(())
}

fn string_split(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let dims = call.input(0).dims.clone();
    let parts = dims.clone().map(|mut dims| {
        dims.push(Dim::Unknown);
        dims
    });
    call.give(0, Some(DType::String), parts);
    call.give(1, Some(DType::I64), dims);
    Ok(())
}

/// Infers `TfIdfVectorizer`: one number for each index in `ngram_indexes`.
fn n_grams(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let indexes = call.attrs.ints("ngram_indexes");
    let n = indexes.and_then(|list| list.iter().max().and_then(|last| last.checked_add(1)));
    let dims = call.input(0).dims.clone().map(|mut dims| {
        dims.pop();
        dims.push(n.map_or(Dim::Unknown, Dim::Known));
        dims
    });
    call.give(0, Some(DType::F32), dims);
    Ok(())
}
