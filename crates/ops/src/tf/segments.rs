//! Rows that reduce rows of tensors by segments, or scatter them by indices.

use tfrt_bef::DType;

use super::text;
use crate::def::{AttrDef, OpDef, ValueDef};
use crate::dim::{Dim, Dims};
use crate::infer::{Infer, InferCall, InferError};

const X: ValueDef = ValueDef::var("x", "T");
const Y: ValueDef = ValueDef::var("y", "T");
const INDEX: &[DType] = &[DType::I32, DType::I64];

pub(crate) const OPS: &[OpDef] = &[
    OpDef::new("tf.Bincount", "How often each number below `size` is among the integers; with weights the sum of those.")
        .inputs(&[ValueDef::set("x", INDEX), ValueDef::set("size", INDEX), ValueDef::var("weights", "T")])
        .results(&[Y.by_values()])
        .infer(Infer::By(counts)),
    OpDef::new("tf.ScatterNd", "A tensor of the extents `shape` of zeros, to which slices are added at the positions that the last dimension of `indices` states.")
        .inputs(&[ValueDef::set("indices", INDEX), ValueDef::var("updates", "T"), ValueDef::set("shape", INDEX)])
        .results(&[Y.by_values()])
        .infer(Infer::By(scattered)),
    OpDef::new("tf.TensorScatterSub", "A tensor from which slices are subtracted at the positions that the last dimension of `indices` states.")
        .inputs(&[X, ValueDef::set("indices", INDEX), ValueDef::var("updates", "T")]),
    OpDef::new("tfrt.segments", "Rows of a tensor taken together by their segments, a number for each row, in order: the `kind` of each segment's rows, 0 (of prod 1) of a segment that has none.")
        .inputs(&[X, ValueDef::set("segments", INDEX)])
        .results(&[Y.by_values()])
        .attrs(&[AttrDef::kind(&["sum", "mean", "prod", "max", "min"])])
        .infer(Infer::By(segments)),
    OpDef::new("tfrt.unsorted_segments", "Slices of a tensor taken together by their segments, `n`: the `kind` of each one's slices. A slice whose number is negative is left out; a segment without slices is 0, 1, the lowest or highest number.")
        .inputs(&[X, ValueDef::set("segments", INDEX), ValueDef::set("n", INDEX)])
        .results(&[Y.by_values()])
        .attrs(&[AttrDef::kind(&["sum", "prod", "max", "min"])])
        .infer(Infer::By(unsorted_segments)),
];

/// Returns the number that an operand of one element states.
fn count(call: &InferCall<'_>, index: usize, what: &str) -> Result<Option<i64>, InferError> {
    let own = call.input(index);
    if own.n_elements().value().is_some_and(|n| n != 1) {
        let found = text(own);
        return Err(call.error(format_args!(
            "expected {what} in one element, found {found}"
        )));
    }
    match own.number() {
        Some(found) if found < 0 => {
            Err(call.error(format_args!("expected {what} of 0 or more, found {found}")))
        }
        found => Ok(found),
    }
}

fn counts(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let size = count(call, 1, "a size")?;
    let dims = [size.map_or(Dim::Unknown, Dim::Known)];
    let dtype = call.input(2).dtype;
    call.give(0, dtype, Some(dims.into_iter().collect()));
    Ok(())
}

fn scattered(call: &mut InferCall<'_>) -> Result<(), InferError> {
    call.expect_rank(2, 1)?;
    let dims = crate::structure::dims_of(call.input(2));
    let mut known = dims.iter().flatten().filter_map(Dim::value);
    if let Some(found) = known.find(|extent| *extent < 0) {
        return Err(call.error(format_args!("expected extents of 0 or more, found {found}")));
    }
    let dtype = call.input(1).dtype;
    call.give(0, dtype, dims);
    Ok(())
}

fn segments(call: &mut InferCall<'_>) -> Result<(), InferError> {
    call.expect_rank(1, 1)?;
    let (x, numbers) = (call.input(0).clone(), call.input(1));
    let Some(mut dims) = x.dims else {
        call.give(0, x.dtype, None);
        return Ok(());
    };
    let Some(rows) = dims.first_mut() else {
        return Err(call.error("expected one dimension or more, found []"));
    };
    if let (Some(found), Some(n)) = (numbers.n_elements().value(), rows.value())
        && found != n
    {
        return Err(call.error(format_args!(
            "expected a segment for each of {n} rows, found {found}"
        )));
    }
    *rows = match numbers.numbers() {
        Some(list) => {
            let is_sorted = list.is_sorted() && list.first().is_none_or(|first| *first >= 0);
            let n = list.last().map_or(Some(0), |last| last.checked_add(1));
            let n = n.filter(|_| is_sorted).ok_or_else(|| {
                call.error(format_args!(
                    "expected numbers of segments in order, from 0 on, found {list:?}"
                ))
            })?;
            Dim::Known(n)
        }
        None => Dim::Unknown,
    };
    call.give(0, x.dtype, Some(dims));
    Ok(())
}

fn unsorted_segments(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let n = count(call, 2, "a number of segments")?;
    let (x, numbers) = (call.input(0).clone(), call.input(1));
    let (Some(dims), Some(own)) = (&x.dims, &numbers.dims) else {
        call.give(0, x.dtype, None);
        return Ok(());
    };
    let differs = |(own, other): (&Dim, &Dim)| {
        let both = own.value().zip(other.value());
        both.is_some_and(|(own, other)| own != other)
    };
    if own.len() > dims.len() || own.iter().zip(dims).any(differs) {
        let (found, whole) = (text(numbers), text(&x));
        return Err(call.error(format_args!(
            "expected a segment for each of the first dimensions of {whole}, found {found}"
        )));
    }
    let mut result: Dims = [n.map_or(Dim::Unknown, Dim::Known)].into_iter().collect();
    result.extend(dims[own.len()..].iter().cloned());
    call.give(0, x.dtype, Some(result));
    Ok(())
}
