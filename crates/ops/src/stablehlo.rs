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
