//! Rows on extents and ranks, checks of them, and operations that return their operand.

use tfrt_bef::DType;

use super::{dims_text, text};
use crate::def::{AttrDef, AttrKind, Cost, OpDef, Traits, ValueDef};
use crate::dim::{Dim, Dims};
use crate::fact::Fact;
use crate::infer::{Infer, InferCall, InferError};

const X: ValueDef = ValueDef::var("x", "T");
const INDEX: &[DType] = &[DType::I32, DType::I64];

pub(crate) const OPS: &[OpDef] = &[
    OpDef::new("tf.Bitcast", "The bytes of its operand as elements of another `type`: smaller ones are a new last dimension, larger ones take the last dimension up.")
        .inputs(&[X])
        .results(&[ValueDef::any("y")])
        .attrs(&[AttrDef::new("type", AttrKind::Type).required()])
        .infer(Infer::By(seen_as)),
    OpDef::new(
        "tf.BroadcastArgs",
        "The extents to which tensors of two lists of extents are broadcast.",
    )
    .inputs(&[ValueDef::var("s0", "T"), ValueDef::var("s1", "T")])
    .results(&[ValueDef::var("r", "T")])
    .infer(Infer::By(common)),
    OpDef::new(
        "tf.EnsureShape",
        "Its operand, which has these extents; any where they are -1.",
    )
    .inputs(&[X])
    .attrs(&[AttrDef::ints("shape").required()])
    .traits(Traits::VIEW)
    .infer(Infer::By(ensured)),
    OpDef::new("tf.IdentityN", "Its operands.")
        .inputs(&[ValueDef::any("x").rest(0)])
        .results(&[ValueDef::any("y").rest(0)])
        .infer(Infer::By(same))
        .cost(Cost::PerElement(0)),
    OpDef::new("tf.Rank", "The number of dimensions.")
        .inputs(&[ValueDef::any("x")])
        .results(&[ValueDef::set("y", &[DType::I32])])
        .infer(Infer::By(rank))
        .cost(Cost::PerElement(0)),
    OpDef::new("tf.ShapeN", "The extents of each of its operands.")
        .inputs(&[ValueDef::any("x").rest(0)])
        .results(&[ValueDef::set("y", INDEX).rest(0)])
        .attrs(&[AttrDef::dtype("out_type", DType::I32)])
        .infer(Infer::By(extents))
        .cost(Cost::PerElement(0)),
];

fn seen_as(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let (x, dtype) = (call.input(0).clone(), call.attrs.dtype("type"));
    let (Some(from), Some(to)) = (x.dtype, dtype) else {
        call.give(0, dtype, None);
        return Ok(());
    };
    let (Some(own), Some(wanted)) = (from.size_bytes(), to.size_bytes()) else {
        return Err(call.error(format_args!(
            "expected types of so many bytes, found {from} and {to}"
        )));
    };
    let Some(mut dims) = x.dims else {
        call.give(0, dtype, None);
        return Ok(());
    };
    if own > wanted {
        dims.push(Dim::from(own / wanted));
    } else if own < wanted {
        let n = Dim::from(wanted / own);
        let last = dims.pop();
        if last
            .as_ref()
            .is_none_or(|last| last.value().is_some() && *last != n)
        {
            return Err(call.error(format_args!(
                "expected a last dimension of {n}, as {from} are to be {to}, found {}",
                last.unwrap_or_default()
            )));
        }
    }
    call.give(0, dtype, Some(dims));
    Ok(())
}

fn common(call: &mut InferCall<'_>) -> Result<(), InferError> {
    for index in [0, 1] {
        call.expect_rank(index, 1)?;
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
    let (one, other) = (call.input(0), call.input(1));
    let dtype = one.dtype.or(other.dtype);
    let fact = match (&one.values, &other.values) {
        (Some(own), Some(others)) => {
            let dims = crate::infer::broadcast(&[own, others]);
            let dims = dims.map_err(|error| call.error(error))?;
            let n = Dim::from(dims.len());
            Fact {
                values: Some(dims.into_vec()),
                ..Fact::new(dtype, Some([n].into_iter().collect()))
            }
        }
        _ => {
            let n = match (one.dim(0).value(), other.dim(0).value()) {
                (Some(own), Some(other)) => Dim::Known(own.max(other)),
                _ => Dim::Unknown,
            };
            Fact::new(dtype, Some([n].into_iter().collect()))
        }
    };
    call.set(0, fact);
    Ok(())
}

fn ensured(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let mut x = call.input(0).clone();
    // Without a list of extents any will do.
    let Some(wanted) = call.attrs.ints("shape") else {
        call.set(0, x);
        return Ok(());
    };
    if let Some(found) = wanted.iter().find(|extent| **extent < -1) {
        return Err(call.error(format_args!(
            "expected attribute 'shape' to have extents, or -1, found {found}"
        )));
    }
    let wanted: Dims = wanted
        .iter()
        .map(|extent| {
            if *extent < 0 {
                Dim::Unknown
            } else {
                Dim::Known(*extent)
            }
        })
        .collect();
    let expected = Fact::new(None, Some(wanted.clone()));
    if call.agree(&x, &expected).is_err() {
        let (wanted, found) = (dims_text(&wanted), text(&x));
        return Err(call.error(format_args!("expected a tensor of {wanted}, found {found}")));
    }
    x = x.or(&expected);
    call.set(0, x);
    Ok(())
}

fn same(call: &mut InferCall<'_>) -> Result<(), InferError> {
    for index in 0..call.out.len() {
        let fact = call.input(index).clone();
        call.set(index, fact);
    }
    Ok(())
}

fn rank(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let values = call.input(0).rank().map(|rank| vec![Dim::from(rank)]);
    call.set(
        0,
        Fact {
            values,
            ..Fact::new(Some(DType::I32), Some(Dims::new()))
        },
    );
    Ok(())
}

fn extents(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let dtype = match call.attrs.dtype("out_type") {
        Some(dtype) if !INDEX.contains(&dtype) => {
            return Err(call.error(format_args!(
                "expected attribute 'out_type' to be i32 or i64, found {dtype}"
            )));
        }
        dtype => dtype.unwrap_or(DType::I32),
    };
    for index in 0..call.out.len() {
        let dims = call.input(index).dims.clone();
        let n = dims
            .as_ref()
            .map_or(Dim::Unknown, |dims| Dim::from(dims.len()));
        call.set(
            index,
            Fact {
                values: dims.map(Dims::into_vec),
                ..Fact::new(Some(dtype), Some([n].into_iter().collect()))
            },
        );
    }
    Ok(())
}
