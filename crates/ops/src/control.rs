//! Rows of control flow and of constants.

use crate::attrs::AttrValue;
use crate::def::{AttrDef, AttrKind, Cost, OpDef, Traits, ValueDef};
use crate::dim::Dim;
use crate::fact::{Fact, Facts};
use crate::infer::{Infer, InferCall, InferError};

/// The most turns of a loop that inference follows. Values that still change then become unknown.
const MOST_TURNS: usize = 8;

const ALL: ValueDef = ValueDef::any("values").rest(0);

pub(crate) const OPS: &[OpDef] = &[
    OpDef::new("constant", "A tensor that is known.")
        .inputs(&[])
        .results(&[ValueDef::any("y")])
        .attrs(&[AttrDef::new("value", AttrKind::Tensor).required()])
        .infer(Infer::By(constant))
        .cost(Cost::PerElement(0)),
    OpDef::new("if", "What the region gives that the condition chooses: the first if it is true, the second if not.")
        .inputs(&[ValueDef::any("condition"), ALL])
        .results(&[ALL])
        .regions(&["then", "else"])
        .traits(Traits::CONTROL)
        .infer(Infer::By(branches)),
    OpDef::new("while", "Runs its body as long as the condition gives true; the values go from turn to turn.")
        .inputs(&[ALL])
        .results(&[ALL])
        .regions(&["condition", "body"])
        .traits(Traits::CONTROL)
        .infer(Infer::By(turns)),
    OpDef::new("scan", "Runs its body for each slice of some operands; values go from turn to turn, and slices that it gives are put together.")
        .inputs(&[ALL])
        .results(&[ALL])
        .attrs(&[AttrDef::new("scanned", AttrKind::Int).required(), AttrDef::ints("input_axes"), AttrDef::ints("output_axes")])
        .regions(&["body"])
        .traits(Traits::CONTROL)
        .infer(Infer::By(scan)),
    OpDef::new("call", "What a function gives.")
        .inputs(&[ALL])
        .results(&[ALL])
        .attrs(&[AttrDef::new("callee", AttrKind::Function).required()])
        .traits(Traits::CONTROL)
        .infer(Infer::By(called)),
];

fn constant(call: &mut InferCall<'_>) -> Result<(), InferError> {
    if let Some(AttrValue::Tensor(tensor)) = call.attrs.get("value") {
        let extent = |dim: &i64| {
            if *dim < 0 {
                Dim::Unknown
            } else {
                Dim::Known(*dim)
            }
        };
        let dims = tensor.dims.iter().map(extent).collect();
        let values = tensor
            .ints
            .map(|values| values.into_iter().map(Dim::Known).collect());
        let fact = Fact {
            values,
            floats: tensor.floats,
            ..Fact::new(Some(tensor.dtype), Some(dims))
        };
        call.set(0, fact);
    }
    Ok(())
}

/// Sets the results of a choice between regions: the facts that hold for each of them.
pub(crate) fn branches(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let mut joined: Option<Facts> = None;
    for region in 0..call.op.regions.len() {
        let given = (call.regions)(region, &[]);
        joined = Some(match joined {
            None => given,
            Some(others) => others
                .into_iter()
                .zip(&given)
                .map(|(own, other)| own.join(other))
                .collect(),
        });
    }
    for (index, fact) in joined.into_iter().flatten().enumerate() {
        call.set(index, fact);
    }
    Ok(())
}

/// Sets the results of a call: the facts of the called function's results. The function is region 0 here.
fn called(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let given = call.inputs.iter();
    let given: Facts = given
        .map(|input| input.clone().unwrap_or_default())
        .collect();
    for (index, fact) in (call.regions)(0, &given).into_iter().enumerate() {
        call.set(index, fact);
    }
    Ok(())
}

/// Returns facts that hold of a loop's values in every turn: those of the arguments and those of the results are
/// joined until nothing changes. `body` returns the facts of a turn's results.
pub(crate) fn fixed_point(mut values: Facts, mut body: impl FnMut(&Facts) -> Facts) -> Facts {
    for _ in 0..MOST_TURNS {
        let given = body(&values);
        let joined = |(at, own): (usize, &Fact)| match given.get(at) {
            Some(given) => own.clone().join(given),
            None => Fact::UNKNOWN,
        };
        let next: Facts = values.iter().enumerate().map(joined).collect();
        if next == values {
            return values;
        }
        values = next;
    }
    // What still changes could go on so for as many turns as there are values.
    let unknown: Facts = values.iter().map(|_| Fact::UNKNOWN).collect();
    body(&unknown);
    unknown
}

fn turns(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let first = call
        .inputs
        .iter()
        .map(|input| input.clone().unwrap_or_default())
        .collect();
    let regions = &mut call.regions;
    let facts = fixed_point(first, |values| regions(1, values));
    for (index, fact) in facts.into_iter().enumerate() {
        call.set(index, fact);
    }
    Ok(())
}

fn scan(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let n_inputs = call.inputs.len();
    let scanned = call
        .attrs
        .int("scanned")
        .and_then(|n| usize::try_from(n).ok())
        .unwrap_or(0);
    let n_states = n_inputs.checked_sub(scanned).ok_or_else(|| {
        call.error(format_args!(
            "expected at least {scanned} operands, found {n_inputs}"
        ))
    })?;
    let axis = |list: &str, index: usize| {
        call.attrs
            .ints(list)
            .and_then(|axes| axes.get(index).copied())
            .unwrap_or(0)
    };
    let mut length = Dim::Unknown;
    let mut slices = Facts::new();
    for index in 0..scanned {
        let whole = call.input(n_states + index);
        let mut slice = Fact::new(whole.dtype, whole.dims.clone());
        if let Some(dims) = &mut slice.dims {
            let at = call.axis(axis("input_axes", index), dims.len())?;
            let own = dims.remove(at);
            match (length.value(), own.value()) {
                (Some(length), Some(own)) if length != own => {
                    return Err(call.error(format_args!(
                        "expected slices as many as {length}, found {own}"
                    )));
                }
                (None, _) if !own.is_unknown() => length = own,
                _ => {}
            }
        }
        slices.push(slice);
    }
    let output_axes: Vec<i64> = (0..call.out.len())
        .map(|index| axis("output_axes", index))
        .collect();
    let first = (0..n_states).map(|at| call.input(at).clone()).collect();
    let regions = &mut call.regions;
    let mut given = Facts::new();
    let states = fixed_point(first, |values| {
        let mut all = values.clone();
        all.extend(slices.iter().cloned());
        given = regions(0, &all);
        given.clone()
    });
    let parts: Facts = given.into_iter().skip(n_states).collect();
    for (index, fact) in states.into_iter().enumerate() {
        call.set(index, fact);
    }
    for (index, part) in parts.into_iter().enumerate() {
        let mut whole = Fact::new(part.dtype, part.dims);
        if let Some(dims) = &mut whole.dims {
            let axis = output_axes.get(index).copied().unwrap_or(0);
            let at = call.axis(axis, dims.len() + 1)?;
            dims.insert(at, length.clone());
        }
        call.set(n_states + index, whole);
    }
    Ok(())
}
