//! Rows that search: the largest elements, unique ones, those that are true, positions in sorted rows.

use tfrt_bef::DType;

use super::text;
use crate::def::{AttrDef, AttrKind, Cost, OpDef, ValueDef};
use crate::dim::{Dim, Dims};
use crate::infer::{Infer, InferCall, InferError};

const X: ValueDef = ValueDef::var("x", "T");
const Y: ValueDef = ValueDef::var("y", "T");
const INDEX: &[DType] = &[DType::I32, DType::I64];
const AXIS: ValueDef = ValueDef::set("axis", INDEX).optional();
const OUT: AttrDef = AttrDef::dtype("out_idx", DType::I32);

pub(crate) const OPS: &[OpDef] = &[
    OpDef::new("tf.Bucketize", "Between which `boundaries` each element lies: how many are not above it.")
        .inputs(&[X])
        .results(&[ValueDef::set("y", &[DType::I32])])
        .attrs(&[AttrDef::new("boundaries", AttrKind::Floats).required()])
        .infer(Infer::By(buckets)),
    OpDef::new("tf.InTopKV2", "Whether the element of each row that `targets` numbers is finite and among the `k` largest; as large as the k-th is enough.")
        .inputs(&[ValueDef::set("predictions", &[DType::F32]), ValueDef::set("targets", INDEX), ValueDef::set("k", INDEX)])
        .results(&[ValueDef::set("y", &[DType::I1])])
        .infer(Infer::By(in_top)),
    OpDef::new("tf.InvertPermutation", "Where each of the numbers from 0 on is in a list that has each of them once.")
        .inputs(&[ValueDef::set("x", INDEX)])
        .results(&[ValueDef::set("y", INDEX)]),
    OpDef::new("tf.TopKV2", "The `k` largest elements of each row, and where they are; of equal ones the first.")
        .inputs(&[X, ValueDef::set("k", INDEX)])
        .results(&[Y.by_values(), ValueDef::set("indices", INDEX).by_values()])
        .attrs(&[AttrDef::int("sorted", 1), AttrDef::dtype("index_type", DType::I32)])
        .infer(Infer::By(top))
        .cost(Cost::PerElement(8)),
    OpDef::new("tf.UniqueV2", "The elements of a list, or the slices along `axis`, without repetition, in the order in which they come; and which of them each was.")
        .inputs(&[X, AXIS])
        .results(&[Y.data_dependent(), ValueDef::set("idx", INDEX)])
        .attrs(&[OUT])
        .infer(Infer::By(unique))
        .cost(Cost::PerElement(16)),
    OpDef::new("tf.UniqueWithCountsV2", "As `tf.UniqueV2`, and how often each was there.")
        .inputs(&[X, AXIS])
        .results(&[Y.data_dependent(), ValueDef::set("idx", INDEX), ValueDef::set("count", INDEX).data_dependent()])
        .attrs(&[OUT])
        .infer(Infer::By(unique))
        .cost(Cost::PerElement(16)),
    OpDef::new("tf.Where", "The coordinates of elements that are true, or not 0: a row for each.")
        .inputs(&[ValueDef::any("x")])
        .results(&[ValueDef::set("y", &[DType::I64]).data_dependent()])
        .infer(Infer::By(coordinates)),
    OpDef::new("tfrt.bounds", "Where each of some values would go into a sorted row: before elements that are the same, or behind them (`upper`).")
        .inputs(&[ValueDef::var("rows", "T"), ValueDef::var("values", "T")])
        .results(&[ValueDef::set("y", &[DType::I64])])
        .attrs(&[AttrDef::int("upper", 0)])
        .infer(Infer::By(bounds)),
];

fn buckets(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let dims = call.input(0).dims.clone();
    call.give(0, Some(DType::I32), dims);
    Ok(())
}

/// Returns the one integer that an operand states, which must not be negative.
fn k(call: &InferCall<'_>, index: usize) -> Result<Option<i64>, InferError> {
    let own = call.input(index);
    if own.n_elements().value().is_some_and(|n| n != 1) {
        let found = text(own);
        return Err(call.error(format_args!("expected a k in one element, found {found}")));
    }
    Ok(own.number())
}

fn in_top(call: &mut InferCall<'_>) -> Result<(), InferError> {
    call.expect_rank(0, 2)?;
    call.expect_rank(1, 1)?;
    k(call, 2)?;
    let (rows, targets) = (call.input(0).dim(0), call.input(1).dim(0));
    if let (Some(rows), Some(found)) = (rows.value(), targets.value())
        && rows != found
    {
        return Err(call.error(format_args!(
            "expected a target for each of {rows} rows, found {found}"
        )));
    }
    let n = if rows.value().is_some() {
        rows
    } else {
        targets
    };
    call.give(0, Some(DType::I1), Some([n].into_iter().collect()));
    Ok(())
}

fn index_type(call: &InferCall<'_>, name: &str) -> Result<DType, InferError> {
    match call.attrs.dtype(name) {
        Some(dtype) if !INDEX.contains(&dtype) => Err(call.error(format_args!(
            "expected attribute '{name}' to be i32 or i64, found {dtype}"
        ))),
        dtype => Ok(dtype.unwrap_or(DType::I32)),
    }
}

fn top(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let (x, k) = (call.input(0).clone(), k(call, 1)?);
    let index = index_type(call, "index_type")?;
    let dims = match x.dims {
        Some(mut dims) => {
            let Some(last) = dims.last_mut() else {
                return Err(call.error("expected one dimension or more, found []"));
            };
            let most = last.value().unwrap_or(i64::MAX);
            if let Some(k) = k.filter(|k| !(0..=most).contains(k)) {
                return Err(call.error(format_args!("expected a k from 0 to {most}, found {k}")));
            }
            *last = k.map_or(Dim::Unknown, Dim::Known);
            Some(dims)
        }
        None => None,
    };
    call.give(0, x.dtype, dims.clone());
    call.give(1, Some(index), dims);
    Ok(())
}

fn unique(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let x = call.input(0).clone();
    let index = index_type(call, "out_idx")?;
    let axis = match call.has(1) {
        false => Some(None),
        true => match call.input(1).numbers().as_deref() {
            Some([]) => Some(None),
            Some([axis]) => Some(Some(*axis)),
            Some(found) => {
                return Err(call.error(format_args!("expected one axis or none, found {found:?}")));
            }
            None => None,
        },
    };
    let (dims, n) = match (&x.dims, axis) {
        (Some(dims), Some(None)) => {
            if dims.len() != 1 {
                let found = text(&x);
                return Err(call.error(format_args!("expected a list, found {found}")));
            }
            (
                Some([Dim::Unknown].into_iter().collect::<Dims>()),
                dims[0].clone(),
            )
        }
        (Some(dims), Some(Some(axis))) => {
            let at = call.axis(axis, dims.len())?;
            let mut result = dims.clone();
            let n = std::mem::take(&mut result[at]);
            (Some(result), n)
        }
        (Some(dims), None) => (Some(crate::fact::unknown_dims(dims.len())), Dim::Unknown),
        (None, Some(None)) => (Some([Dim::Unknown].into_iter().collect()), Dim::Unknown),
        (None, _) => (None, Dim::Unknown),
    };
    let list = |n: Dim| Some([n].into_iter().collect());
    call.give(0, x.dtype, dims);
    call.give(1, Some(index), list(n));
    call.give(2, Some(index), list(Dim::Unknown));
    Ok(())
}

fn coordinates(call: &mut InferCall<'_>) -> Result<(), InferError> {
    if call.input(0).rank() == Some(0) {
        return Err(call.error("expected one dimension or more, found []"));
    }
    let rank = call.input(0).rank().map_or(Dim::Unknown, Dim::from);
    call.give(
        0,
        Some(DType::I64),
        Some([Dim::Unknown, rank].into_iter().collect()),
    );
    Ok(())
}

fn bounds(call: &mut InferCall<'_>) -> Result<(), InferError> {
    call.expect_rank(0, 2)?;
    call.expect_rank(1, 2)?;
    let (rows, values) = (call.input(0).dim(0), call.input(1).clone());
    if let (Some(rows), Some(found)) = (rows.value(), values.dim(0).value())
        && rows != found
    {
        return Err(call.error(format_args!(
            "expected values for each of {rows} rows, found those of {found}"
        )));
    }
    let n = if rows.value().is_some() {
        rows
    } else {
        values.dim(0)
    };
    let dims = [n, values.dim(1)].into_iter().collect();
    call.give(0, Some(DType::I64), Some(dims));
    Ok(())
}
