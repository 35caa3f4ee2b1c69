//! Rows that move elements, or make tensors of given extents.

mod creation;
mod gather;
mod slices;

use smallvec::SmallVec;
use tfrt_bef::DType;

use crate::def::{AttrDef, AttrKind, Cost, OpDef, Traits, ValueDef};
use crate::dim::{Dim, Dims};
use crate::fact::{Fact, MOST_VALUES, product, unknown_dims};
use crate::infer::{Infer, InferCall, InferError};

/// Makes the row of an operation that moves elements of `x`, with a rule of inference.
const fn moves(
    name: &'static str,
    summary: &'static str,
    rule: fn(&mut InferCall<'_>) -> Result<(), InferError>,
) -> OpDef {
    OpDef::new(name, summary).infer(Infer::By(rule))
}

const X: ValueDef = ValueDef::var("x", "T");
const Y: ValueDef = ValueDef::var("y", "T");
const INDEX: &[DType] = &[DType::I32, DType::I64];

pub(crate) const OPS: &[OpDef] = &[
    moves("reshape", "The same elements in other extents; one of them may be -1, for what is left.", reshape)
        .inputs(&[X, ValueDef::set("shape", &[DType::I64])])
        .results(&[Y.by_values()])
        .attrs(&[AttrDef::int("allow_zero", 0)])
        .traits(Traits::VIEW),
    moves("transpose", "The same elements with the dimensions in another order, reversed if none is stated.", transpose)
        .attrs(&[AttrDef::ints("perm")]),
    moves("broadcast", "Elements repeated along dimensions of 1, to extents with which the operand is broadcast.", expand)
        .inputs(&[X, ValueDef::set("shape", &[DType::I64])])
        .results(&[Y.by_values()]),
    moves("concat", "Tensors one after the other along `axis`; numbers become a list.", concat)
        .inputs(&[X.rest(1)])
        .attrs(&[AttrDef::int("axis", 0).required()]),
    moves("slice", "Every `steps`-th element from `starts` to `ends` along some axes, the first ones if none are stated. What is below 0 counts from the end; what is outside is the outermost.", slices::slice)
        .inputs(&[
            X,
            ValueDef::set("starts", INDEX),
            ValueDef::set("ends", INDEX),
            ValueDef::set("axes", INDEX).optional(),
            ValueDef::set("steps", INDEX).optional(),
        ])
        .results(&[Y.by_values()]),
    moves("update_slice", "Its operand with `update` in place of the elements from `starts` on; a start that leaves too little room, or is below 0, is moved so that all of it fits.", slices::update)
        .inputs(&[X, ValueDef::var("update", "T"), ValueDef::set("starts", INDEX)])
        .traits(Traits::IN_PLACE),
    moves("update_cache", "A cache of keys or values, with room in dimension 2, and `update` written into it from `starts` of each batch on; and the first `total` elements of that dimension.", slices::update_cache)
        .inputs(&[
            X,
            ValueDef::var("update", "T"),
            ValueDef::set("starts", INDEX),
            ValueDef::set("total", INDEX),
        ])
        .results(&[Y, ValueDef::var("seen", "T")])
        .traits(Traits::IN_PLACE),
    moves("pad", "Its operand with elements added before and behind along some axes; fewer where `pads` are negative.", pad)
        .inputs(&[
            X,
            ValueDef::set("pads", &[DType::I64]),
            ValueDef::var("value", "T").optional(),
            ValueDef::set("axes", INDEX).optional(),
        ])
        .results(&[Y.by_values()])
        .attrs(&[AttrDef::text("mode", "constant")]),
    moves("tile", "Its operand, repeated along each dimension.", tile)
        .inputs(&[X, ValueDef::set("repeats", &[DType::I64])])
        .results(&[Y.by_values()]),
    moves("reverse", "The elements in the opposite order along `axes`.", slices::reverse)
        .attrs(&[AttrDef::ints("axes").required()]),
    moves("split", "Parts of its operand along `axis`, of the sizes `sizes`, or all alike.", slices::split)
        .inputs(&[X, ValueDef::set("sizes", &[DType::I64]).optional()])
        .results(&[Y.by_values().rest(1)])
        .attrs(&[AttrDef::int("axis", 0), AttrDef::new("n", AttrKind::Int).result_count(), AttrDef::ints("sizes")]),
    moves("gather", "The slices of its operand along `axis` that `indices` number.", gather::gather)
        .inputs(&[X, ValueDef::set("indices", INDEX)])
        .attrs(&[AttrDef::int("axis", 0)]),
    moves("gather_nd", "The slices of its operand at the positions that the last dimension of `indices` states.", gather::gather_nd)
        .inputs(&[X, ValueDef::set("indices", &[DType::I64])])
        .results(&[Y.by_values()])
        .attrs(&[AttrDef::int("batch_dims", 0)]),
    moves("gather_elements", "For each index an element of its operand: of the same position but along `axis`.", gather::gather_elements)
        .inputs(&[X, ValueDef::set("indices", INDEX)])
        .attrs(&[AttrDef::int("axis", 0)]),
    OpDef::new("scatter", "Its operand with elements replaced: those that `gather_elements` would read.")
        .inputs(&[X, ValueDef::set("indices", INDEX), ValueDef::var("updates", "T")])
        .attrs(&[AttrDef::int("axis", 0), AttrDef::text("reduction", "none")])
        .traits(Traits::IN_PLACE),
    OpDef::new("scatter_nd", "Its operand with slices replaced: those that `gather_nd` would read.")
        .inputs(&[X, ValueDef::set("indices", &[DType::I64]), ValueDef::var("updates", "T")])
        .attrs(&[AttrDef::text("reduction", "none")])
        .traits(Traits::IN_PLACE),
    moves("one_hot", "For each index a list of `depth` elements: the second of `values` at the index, the first elsewhere.", gather::one_hot)
        .inputs(&[ValueDef::any("indices"), ValueDef::any("depth"), ValueDef::var("values", "T")])
        .results(&[Y.by_values()])
        .attrs(&[AttrDef::int("axis", -1)]),
    moves("iota", "Numbers from `start` on and below `limit`, each by `step` more than the one before.", creation::iota)
        .inputs(&[ValueDef::var("start", "T"), ValueDef::var("limit", "T"), ValueDef::var("step", "T")])
        .results(&[Y.by_values()]),
    moves("fill", "A tensor of given extents whose elements are all `value`, 0 of f32 if that is not stated.", creation::fill)
        .inputs(&[ValueDef::set("shape", &[DType::I64])])
        .results(&[ValueDef::any("y").by_values()])
        .attrs(&[AttrDef::new("value", AttrKind::Tensor)]),
    moves("shape", "The extents of its operand, or of its dimensions from `start` to `end`.", creation::shape)
        .inputs(&[ValueDef::any("x")])
        .results(&[ValueDef::set("y", &[DType::I64])])
        .attrs(&[AttrDef::int("start", 0), AttrDef::new("end", AttrKind::Int)])
        .cost(Cost::PerElement(0)),
    moves("nonzero", "The positions of elements that are not 0: a row for each dimension.", creation::nonzero)
        .results(&[ValueDef::set("y", &[DType::I64]).data_dependent()]),
    moves("top_k", "The `k` largest or smallest elements along `axis`, and where they are.", creation::top_k)
        .inputs(&[X, ValueDef::set("k", &[DType::I64])])
        .results(&[ValueDef::var("values", "T").by_values(), ValueDef::set("indices", &[DType::I64]).by_values()])
        .attrs(&[AttrDef::int("axis", -1), AttrDef::int("largest", 1), AttrDef::int("sorted", 1)])
        .cost(Cost::PerElement(8)),
    moves("unique", "The elements, or slices along `axis`, without repetition; where they are, what each became, how many there were.", creation::unique)
        .results(&[
            Y.data_dependent(),
            ValueDef::set("indices", &[DType::I64]).optional().data_dependent(),
            ValueDef::set("inverse", &[DType::I64]).optional(),
            ValueDef::set("counts", &[DType::I64]).optional().data_dependent(),
        ])
        .attrs(&[AttrDef::new("axis", AttrKind::Int), AttrDef::int("sorted", 1)])
        .cost(Cost::PerElement(16)),
    moves("sort", "The elements, real numbers or truth values, in order along `axis`. Equal ones stay as they were, -0 and 0 too; what is no number counts as the largest: it is last, or first in descending order.", sort)
        .attrs(&[AttrDef::int("axis", -1), AttrDef::int("descending", 0)])
        .cost(Cost::PerElement(16)),
    OpDef::new("copy", "Its operand, in the memory of a device (`device`, its name).")
        .attrs(&[AttrDef::new("device", AttrKind::Text).required()])
        .infer(Infer::SameAsFirst),
];

/// Returns whether a tensor of these extents is small enough for its elements to be followed one by one.
fn is_followed(dims: &[Dim]) -> bool {
    product(dims)
        .value()
        .is_some_and(|n| usize::try_from(n).is_ok_and(|n| n <= MOST_VALUES))
}

/// Returns the extents that an operand of integers states, or as many unknown ones as it has elements.
pub(crate) fn dims_of(fact: &Fact) -> Option<Dims> {
    if let Some(values) = &fact.values {
        return Some(values.iter().cloned().collect());
    }
    match fact.dims.as_deref()? {
        [Dim::Known(n @ 0..=64)] => usize::try_from(*n).ok().map(unknown_dims),
        _ => None,
    }
}

fn reshape(call: &mut InferCall<'_>) -> Result<(), InferError> {
    call.expect_rank(1, 1)?;
    let (x, wanted) = (call.input(0), call.input(1));
    let Some(values) = &wanted.values else {
        let dims = dims_of(wanted);
        let dtype = x.dtype;
        call.give(0, dtype, dims);
        return Ok(());
    };
    let zero_is_own = !call.attrs.flag("allow_zero");
    let (mut dims, mut rest) = (Dims::with_capacity(values.len()), None);
    for (at, value) in values.iter().enumerate() {
        dims.push(match value.value() {
            Some(0) if zero_is_own => x.dim(at),
            Some(-1) if rest.is_none() => {
                rest = Some(at);
                Dim::Unknown
            }
            Some(extent) if extent < 0 => {
                return Err(call.error(format_args!(
                    "expected extents of which at most one is -1, found {extent}"
                )));
            }
            // A symbol could be -1 in a call only if somebody asked for a negative size.
            _ => value.clone(),
        });
    }
    let all = x.n_elements();
    if let Some(at) = rest {
        let others: Dims = dims
            .iter()
            .enumerate()
            .filter(|(own, _)| *own != at)
            .map(|(_, dim)| dim.clone())
            .collect();
        let others = product(&others);
        dims[at] = all.exact_div(&others);
        if let (Dim::Unknown, Some(n), Some(by)) = (&dims[at], all.value(), others.value())
            && by != 0
        {
            return Err(call.error(format_args!(
                "expected extents that {n} elements fill, found a multiple of {by}"
            )));
        }
    } else if let (Some(n), Some(wanted)) = (all.value(), product(&dims).value())
        && n != wanted
    {
        return Err(call.error(format_args!(
            "expected extents of {n} elements, found {wanted}"
        )));
    }
    let values = x.values.clone().filter(|_| is_followed(&dims));
    let y = Fact {
        values,
        ..Fact::new(x.dtype, Some(dims))
    };
    call.set(0, y);
    Ok(())
}

fn transpose(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let x = call.input(0);
    let perm = call.attrs.ints("perm");
    let dims = match (&x.dims, &perm) {
        (Some(dims), None) => Some(dims.iter().rev().cloned().collect()),
        (Some(dims), Some(perm)) => {
            if perm.len() != dims.len() {
                let (rank, n) = (dims.len(), perm.len());
                return Err(call.error(format_args!(
                    "expected an order of {rank} dimensions, found {n}"
                )));
            }
            let order = call.axes(perm, dims.len())?;
            Some(order.iter().map(|at| dims[*at].clone()).collect())
        }
        (None, Some(perm)) => Some(unknown_dims(perm.len())),
        (None, None) => None,
    };
    let (dtype, flat) = (
        x.dtype,
        x.values
            .clone()
            .filter(|_| dims.as_ref().is_some_and(|dims| dims.len() < 2)),
    );
    call.set(
        0,
        Fact {
            values: flat,
            ..Fact::new(dtype, dims)
        },
    );
    Ok(())
}

fn expand(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let (x, wanted) = (call.input(0), call.input(1));
    let dims = match (&x.dims, dims_of(wanted)) {
        (Some(own), Some(wanted)) => {
            let dims = crate::infer::broadcast(&[own, &wanted]);
            Some(dims.map_err(|error| call.error(error))?)
        }
        _ => None,
    };
    let values = match (x.values.as_deref(), dims.as_deref()) {
        (Some([one]), Some([Dim::Known(n)])) => {
            let n = usize::try_from(*n).ok().filter(|n| *n <= MOST_VALUES);
            n.map(|n| vec![one.clone(); n])
        }
        (Some(all), Some(dims)) if dims.len() < 2 && product(dims) == Dim::from(all.len()) => {
            Some(all.to_vec())
        }
        _ => None,
    };
    let y = Fact {
        values,
        ..Fact::new(x.dtype, dims)
    };
    call.set(0, y);
    Ok(())
}

fn concat(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let given = || call.inputs.iter().flatten();
    let dtype = given().find_map(|part| part.dtype);
    let axis = call.attrs.int("axis").unwrap_or(0);
    // Numbers become a list.
    let lists: Vec<Fact> = given().map(as_list).collect();
    let parts: SmallVec<[&Fact; 8]> = lists.iter().collect();
    let y = concatenated(call, &parts, dtype, axis)?;
    call.set(0, y);
    Ok(())
}

/// Returns the fact of a tensor as a list: a number becomes a list of one.
fn as_list(fact: &Fact) -> Fact {
    let mut list = fact.clone();
    if let Some(dims) = list.dims.as_mut().filter(|dims| dims.is_empty()) {
        dims.push(Dim::Known(1));
    }
    list
}

/// Returns the fact of a concatenation.
pub(crate) fn concatenated(
    call: &InferCall<'_>,
    parts: &[&Fact],
    dtype: Option<DType>,
    axis: i64,
) -> Result<Fact, InferError> {
    let known = parts.iter().find_map(|part| part.dims.as_ref());
    let Some(known) = known else {
        return Ok(Fact::new(dtype, None));
    };
    let (rank, mut sum) = (known.len(), Dim::Known(0));
    let at = call.axis(axis, rank)?;
    let mut dims = unknown_dims(rank);
    for part in parts {
        let Some(own) = &part.dims else {
            sum = Dim::Unknown;
            continue;
        };
        if own.len() != rank {
            let other = own.len();
            return Err(call.error(format_args!(
                "expected operands of {rank} dimensions, found {other}"
            )));
        }
        sum = &sum + &own[at];
        for (place, (dim, own)) in dims.iter_mut().zip(own).enumerate() {
            if let (Some(known), Some(own)) = (dim.value(), own.value())
                && place != at
                && known != own
            {
                let message = format_args!("expected extents that agree, found {known} and {own}");
                return Err(call.error(message));
            }
            if dim.is_unknown() || own.value().is_some() {
                dim.clone_from(own);
            }
        }
    }
    dims[at] = sum;
    let values = parts
        .iter()
        .map(|part| part.values.clone())
        .collect::<Option<Vec<_>>>();
    let values = values.map(|values| values.concat());
    let values = values.filter(|values| rank == 1 && values.len() <= MOST_VALUES);
    Ok(Fact {
        values,
        ..Fact::new(dtype, Some(dims))
    })
}

fn pad(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let x = call.input(0);
    let (dtype, rank) = (x.dtype, x.rank());
    let dims = match (&x.dims, &call.input(1).values) {
        (Some(dims), Some(pads)) => {
            let axes: Option<SmallVec<[usize; 6]>> = match (call.has(3), call.input(3).numbers()) {
                (false, _) => Some((0..dims.len()).collect()),
                (true, None) => None,
                (true, Some(axes)) => Some(
                    axes.iter()
                        .map(|axis| call.axis(*axis, dims.len()))
                        .collect::<Result<_, _>>()?,
                ),
            };
            match axes {
                None => Some(unknown_dims(dims.len())),
                Some(axes) => {
                    let n = axes.len();
                    if pads.len() != 2 * n {
                        return Err(call.error(format_args!(
                            "expected {} pads, found {}",
                            2 * n,
                            pads.len()
                        )));
                    }
                    let mut padded = dims.clone();
                    for (index, at) in axes.into_iter().enumerate() {
                        padded[at] = &(&padded[at] + &pads[index]) + &pads[index + n];
                    }
                    Some(padded)
                }
            }
        }
        _ => rank.map(unknown_dims),
    };
    call.give(0, dtype, dims);
    Ok(())
}

fn sort(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let x = call.input(0);
    let (dtype, dims) = (x.dtype, x.dims.clone());
    if let Some(dims) = &dims {
        call.axis(call.attrs.int("axis").unwrap_or(-1), dims.len())?;
    }
    call.give(0, dtype, dims);
    Ok(())
}

fn tile(call: &mut InferCall<'_>) -> Result<(), InferError> {
    call.expect_rank(1, 1)?;
    let (x, repeats) = (call.input(0), dims_of(call.input(1)));
    let mut known = repeats.iter().flatten().filter_map(Dim::value);
    if let Some(found) = known.find(|n| *n < 0) {
        return Err(call.error(format_args!("expected no negative repeats, found {found}")));
    }
    let dims = match (&x.dims, repeats) {
        (Some(dims), Some(repeats)) if repeats.len() != dims.len() => {
            let (rank, n) = (dims.len(), repeats.len());
            return Err(call.error(format_args!("expected {rank} repeats, found {n}")));
        }
        (Some(dims), Some(repeats)) => {
            Some(dims.iter().zip(&repeats).map(|(dim, n)| dim * n).collect())
        }
        (Some(dims), None) => Some(unknown_dims(dims.len())),
        (None, repeats) => repeats.map(|repeats| unknown_dims(repeats.len())),
    };
    let dtype = x.dtype;
    call.give(0, dtype, dims);
    Ok(())
}
