//! Library rows of StableHLO: operations that no other format has.

use tfrt_bef::DType;

use crate::def::{AttrDef, OpDef, ValueDef};
use crate::infer::{Infer, InferCall, InferError};

const X: ValueDef = ValueDef::var("x", "T");

pub(crate) const OPS: &[OpDef] = &[
    OpDef::new("stablehlo.complex", "Complex numbers of their real and imaginary parts.")
        .inputs(&[ValueDef::set("real", &[DType::F32, DType::F64]), ValueDef::set("imaginary", &[DType::F32, DType::F64])])
        .results(&[ValueDef::any("z")])
        .infer(Infer::By(complex)),
    OpDef::new("stablehlo.imag", "The imaginary parts of complex numbers.")
        .results(&[ValueDef::any("y")])
        .infer(Infer::By(part)),
    OpDef::new("stablehlo.places", "Where the slices of a gather or scatter are: for each of their elements its place in a tensor of extents `extents`. A vector along dimension `vector` of `indices` has where a slice begins along the dimensions `starts`; along the dimensions `batch` that is where the vector is along `index_batch` of `indices`. Slices have the extents `sizes`; their dimensions `window` are those of the result at `offsets`. With `clamp` slices are moved inside; else those that are partly outside have the place behind the last one.")
        .inputs(&[
            ValueDef::set("extents", &[DType::I64]),
            ValueDef::set("indices", &[DType::I64]),
            ValueDef::set("sizes", &[DType::I64]),
        ])
        .results(&[ValueDef::set("places", &[DType::I64]).by_values()])
        .attrs(&[
            AttrDef::int("rank", 0).required(),
            AttrDef::ints("window").required(),
            AttrDef::ints("offsets").required(),
            AttrDef::ints("batch").required(),
            AttrDef::ints("index_batch").required(),
            AttrDef::ints("starts").required(),
            AttrDef::int("vector", 0).required(),
            AttrDef::int("clamp", 0),
        ])
        .infer(Infer::By(places)),
    OpDef::new("stablehlo.real", "The real parts of complex numbers.")
        .results(&[ValueDef::any("y")])
        .infer(Infer::By(part)),
    OpDef::new("stablehlo.triangular_solve", "The matrices X with A X = B of triangular matrices A, of which the other triangle is not read; those of X A = B if not `left`, of A's transpose if `transpose`. With `unit` the diagonal of A is all 1, and not read.")
        .inputs(&[ValueDef::var("a", "T"), ValueDef::var("b", "T")])
        .results(&[ValueDef::var("x", "T")])
        .attrs(&[AttrDef::int("left", 1), AttrDef::int("lower", 1), AttrDef::int("transpose", 0), AttrDef::int("unit", 0)])
        .infer(Infer::By(solved)),
    OpDef::new("stablehlo.lu", "The triangular factors of each matrix with rows exchanged, in one matrix; which row was exchanged with each, from 0; and where each row of the product comes from.")
        .inputs(&[X])
        .results(&[ValueDef::var("lu", "T"), ValueDef::set("pivots", &[DType::I32]), ValueDef::set("permutation", &[DType::I32])])
        .infer(Infer::By(factored)),
];

fn complex(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let both = call.agree(call.input(0), call.input(1))?;
    let dtype = match both.dtype {
        Some(DType::F32) => Some(DType::Complex64),
        Some(DType::F64) => Some(DType::Complex128),
        _ => None,
    };
    call.give(0, dtype, both.dims);
    Ok(())
}

fn part(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let x = call.input(0).clone();
    let dtype = match x.dtype {
        Some(DType::Complex64) => Some(DType::F32),
        Some(DType::Complex128) => Some(DType::F64),
        None => None,
        Some(other) => {
            return Err(call.error(format_args!("expected complex numbers, found {other}")));
        }
    };
    call.give(0, dtype, x.dims);
    Ok(())
}

fn places(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let list = |name| call.attrs.ints(name).unwrap_or_default();
    let (window, offsets) = (list("window"), list("offsets"));
    let rank = call
        .attrs
        .int("rank")
        .and_then(|rank| usize::try_from(rank).ok());
    let vector = call
        .attrs
        .int("vector")
        .and_then(|axis| usize::try_from(axis).ok());
    let (Some(rank), Some(vector)) = (rank.filter(|rank| *rank <= 64), vector) else {
        return Err(call.error(format_args!(
            "expected a rank from 0 to 64, and a dimension"
        )));
    };
    let indices = call.input(1).dims.clone();
    let sizes = call.input(2).values.clone();
    let mut outer = indices.into_iter().flatten().enumerate();
    let mut outer = std::iter::from_fn(|| outer.find(|(axis, _)| *axis != vector));
    let dims = (0..rank).map(|axis| {
        let place = offsets
            .iter()
            .position(|own| usize::try_from(*own) == Ok(axis));
        let Some(place) = place else {
            return outer.next().map_or(crate::Dim::Unknown, |(_, dim)| dim);
        };
        let of = window
            .get(place)
            .and_then(|axis| usize::try_from(*axis).ok());
        let size = of
            .zip(sizes.as_ref())
            .and_then(|(axis, sizes)| sizes.get(axis).cloned());
        size.unwrap_or(crate::Dim::Unknown)
    });
    let dims = dims.collect();
    call.give(0, Some(DType::I64), Some(dims));
    Ok(())
}

fn solved(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let b = call.input(1).clone();
    call.give(0, b.dtype, b.dims);
    Ok(())
}

fn factored(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let x = call.input(0).clone();
    call.give(0, x.dtype, x.dims.clone());
    let lists = |least: bool| {
        x.dims.clone().and_then(|dims| {
            let (columns, rest) = dims.split_last()?;
            let (rows, batch) = rest.split_last()?;
            let n = match (rows.value(), columns.value()) {
                (Some(rows), Some(columns)) if least => crate::Dim::Known(rows.min(columns)),
                _ if least => crate::Dim::Unknown,
                _ => rows.clone(),
            };
            Some(batch.iter().cloned().chain([n]).collect())
        })
    };
    let (pivots, permutation) = (lists(true), lists(false));
    call.give(1, Some(DType::I32), pivots);
    call.give(2, Some(DType::I32), permutation);
    Ok(())
}
