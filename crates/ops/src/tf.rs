//! Library rows of TensorFlow, and of this runtime's eager calls: operations that no other format has in this form.

use smallvec::SmallVec;
use tfrt_bef::DType;

use crate::def::{AttrDef, AttrKind, Cost, OpDef, Traits, ValueDef};
use crate::dim::{Dim, Dims};
use crate::fact::Fact;
use crate::infer::{Infer, InferCall, InferError};
use crate::products::dot_dims;

pub mod arrays;
pub mod blocks;
pub mod detection;
pub mod diagonals;
pub mod images;
pub mod lists;
pub mod numbers;
pub mod optimizers;
pub mod queues;
pub mod search;
pub mod segments;
pub mod shapes;
pub mod strings;
pub mod tables;
pub mod variables;
pub mod volumes;

const X: ValueDef = ValueDef::var("x", "T");
const Y: ValueDef = ValueDef::var("y", "T");
const INDEX: &[DType] = &[DType::I32, DType::I64];

pub(crate) const OPS: &[OpDef] = &[
    OpDef::new("tf.BiasAdd", "A tensor, to whose channels, the last dimension or (`data_format` NCHW) the second one, a vector is added.")
        .inputs(&[X, ValueDef::var("bias", "T")])
        .attrs(&[AttrDef::text("data_format", "NHWC")])
        .traits(Traits::IN_PLACE)
        .infer(Infer::By(bias)),
    OpDef::new("tf.Const", "The value.")
        .inputs(&[ValueDef::any("value")])
        .results(&[ValueDef::any("y")])
        .attrs(&[AttrDef::new("dtype", AttrKind::Type)])
        .traits(Traits::VIEW)
        .infer(Infer::By(constant)),
    OpDef::new("tf.DenseBincount", "How often each number below `size` is among the integers, of each row; with weights the sum of those.")
        .inputs(&[ValueDef::set("x", INDEX), ValueDef::set("size", INDEX), ValueDef::var("weights", "T")])
        .results(&[Y.by_values()])
        .attrs(&[AttrDef::int("binary_output", 0)])
        .infer(Infer::By(bincount)),
    OpDef::new("tf.Fill", "A tensor of given extents whose elements are all the value's only one.")
        .inputs(&[ValueDef::set("shape", INDEX), ValueDef::any("value")])
        .results(&[ValueDef::any("y").by_values()])
        .infer(Infer::By(fill))
        .cost(Cost::PerElement(0)),
    OpDef::new("tf.OneHot", "For each index a list of `depth` elements: `on` at the index, `off` elsewhere. An index below 0 is nowhere.")
        .inputs(&[
            ValueDef::set("indices", INDEX),
            ValueDef::set("depth", INDEX),
            ValueDef::var("on", "T"),
            ValueDef::var("off", "T"),
        ])
        .results(&[Y.by_values()])
        .attrs(&[AttrDef::int("axis", -1)])
        .infer(Infer::By(one_hot)),
    OpDef::new("tf.OnesLike", "A tensor of ones of its operand's type and extents; one number stands for all.").cost(Cost::PerElement(0)),
    OpDef::new("tf.Pack", "Tensors of the same extents one after the other along a new dimension, `axis`.")
        .inputs(&[X.rest(1)])
        .attrs(&[AttrDef::int("axis", 0)])
        .infer(Infer::By(pack)),
    OpDef::new("tf.ReverseV2", "The elements in the opposite order along some axes.")
        .inputs(&[X, ValueDef::set("axes", INDEX)]),
    OpDef::new("tf.StridedSlice", "Every `steps`-th element from `begin` to `end` along each dimension, with masks: bit i is about the i-th entry of the lists.")
        .inputs(&[
            X,
            ValueDef::set("begin", INDEX),
            ValueDef::set("end", INDEX),
            ValueDef::set("steps", INDEX),
        ])
        .results(&[Y.by_values()])
        .attrs(&[
            AttrDef::int("begin_mask", 0),
            AttrDef::int("end_mask", 0),
            AttrDef::int("ellipsis_mask", 0),
            AttrDef::int("new_axis_mask", 0),
            AttrDef::int("shrink_axis_mask", 0),
        ])
        .infer(Infer::By(strided_slice)),
    OpDef::new("tf.Unpack", "The `n` parts of a tensor along `axis`, which goes.")
        .results(&[Y.rest(0)])
        .attrs(&[AttrDef::new("n", AttrKind::Int).required(), AttrDef::int("axis", 0)])
        .infer(Infer::By(unpack)),
    OpDef::new("tf.ZerosLike", "A tensor of zeros of its operand's type and extents; one number stands for all.").cost(Cost::PerElement(0)),
    OpDef::new("tf._FusedMatMul", "The product of two matrices, to each row of which a vector is added, then a function of each element: BiasAdd, or BiasAdd and Relu, Relu6 or Elu.")
        .inputs(&[ValueDef::var("a", "T"), ValueDef::var("b", "T"), ValueDef::var("args", "T").rest(0)])
        .attrs(&[
            AttrDef::int("transpose_a", 0),
            AttrDef::int("transpose_b", 0),
            AttrDef::new("fused_ops", AttrKind::Texts),
            AttrDef::float("epsilon", 1e-4),
        ])
        .infer(Infer::By(fused_product))
        .cost(Cost::Fn(crate::products::dot_cost)),
];

/// Writes a type and extents: `f32 [2, 3]`.
pub(crate) fn text(fact: &Fact) -> String {
    let dtype = fact.dtype.map_or("?".to_owned(), |dtype| dtype.to_string());
    match &fact.dims {
        Some(dims) => format!("{dtype} {}", dims_text(dims)),
        None => dtype,
    }
}

/// Writes extents: `[2, 3]`.
pub(crate) fn dims_text(dims: &[Dim]) -> String {
    let dims: Vec<String> = dims.iter().map(Dim::to_string).collect();
    format!("[{}]", dims.join(", "))
}

/// Returns an error if a bias can't be added to a dimension of a tensor.
///
/// # Errors
///
/// If it is no vector, or of another length.
fn expect_bias(
    call: &InferCall<'_>,
    bias: &Fact,
    (what, last): (&str, Option<&Dim>),
) -> Result<(), InferError> {
    let Some(dims) = &bias.dims else {
        return Ok(());
    };
    match (&dims[..], last) {
        ([own], Some(last)) => match (own.value(), last.value()) {
            (Some(own), Some(last)) if own != last => Err(call.error(format_args!(
                "the number of bias elements must match the {what}: found {own} for {last}"
            ))),
            _ => Ok(()),
        },
        _ => Err(call.error(format_args!(
            "expected a bias of one dimension, found {}",
            dims_text(dims)
        ))),
    }
}

fn bias(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let is_first = images::has_channels_first(&call.attrs).map_err(|error| call.error(error))?;
    let (x, bias) = (call.input(0).clone(), call.input(1));
    if let Some(dims) = &x.dims {
        let (least, word) = if is_first { (3, "three") } else { (2, "two") };
        if dims.len() < least {
            return Err(call.error(format_args!(
                "expected {word} dimensions or more, found {}",
                dims_text(dims)
            )));
        }
        let channels = match is_first {
            true => ("second dimension", dims.get(1)),
            false => ("last dimension", dims.last()),
        };
        expect_bias(call, bias, channels)?;
    }
    call.give(0, x.dtype, x.dims);
    Ok(())
}

fn constant(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let value = call.input(0).clone();
    match (call.attrs.dtype("dtype"), value.dtype) {
        (Some(wanted), Some(found)) if wanted != found => Err(call.error(format_args!(
            "dtype mismatch: attribute 'dtype' is {wanted}, attribute 'value' is of {found}"
        ))),
        _ => {
            call.set(0, value);
            Ok(())
        }
    }
}

fn bincount(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let size = call.input(1).number();
    if let Some(size) = size.filter(|size| *size < 0) {
        return Err(call.error(format_args!("expected a size of 0 or more, found {size}")));
    }
    let dims = match call.input(0).dims.as_deref() {
        Some(dims @ ([_] | [_, _])) => {
            let mut dims = Dims::from(dims);
            dims.pop();
            dims.push(size.map_or(Dim::Unknown, Dim::Known));
            Some(dims)
        }
        Some(dims) => {
            let found = dims_text(dims);
            return Err(call.error(format_args!(
                "expected one or two dimensions, found {found}"
            )));
        }
        None => None,
    };
    let dtype = call.input(2).dtype;
    call.give(0, dtype, dims);
    Ok(())
}

fn fill(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let shape = call.input(0);
    if shape.rank().is_some_and(|rank| rank != 1) {
        let found = text(shape);
        return Err(call.error(format_args!("expected a shape in a vector, found {found}")));
    }
    let (dims, value) = (crate::structure::dims_of(shape), call.input(1));
    if value.n_elements().value().is_some_and(|n| n != 1) {
        let found = text(value);
        return Err(call.error(format_args!(
            "expected a tensor of one element as value, found {found}"
        )));
    }
    if let Some(extent) = dims
        .iter()
        .flatten()
        .find_map(|dim| dim.value().filter(|n| *n < 0))
    {
        return Err(call.error(format_args!(
            "expected extents of 0 or more, found {extent}"
        )));
    }
    let dtype = value.dtype;
    call.give(0, dtype, dims);
    Ok(())
}

fn one_hot(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let depth = call.input(1).number();
    if let Some(depth) = depth.filter(|depth| *depth < 0) {
        return Err(call.error(format_args!("expected a depth of 0 or more, found {depth}")));
    }
    for (index, place) in [(1, "the depth"), (2, "at the index"), (3, "elsewhere")] {
        let found = call.input(index);
        if found.n_elements().value().is_some_and(|n| n != 1) {
            let found = text(found);
            return Err(call.error(format_args!("expected one element {place}, found {found}")));
        }
    }
    let dims = match &call.input(0).dims {
        Some(dims) => {
            let axis = call.attrs.int("axis").unwrap_or(-1);
            let at = call.axis(axis, dims.len() + 1)?;
            let mut dims = dims.clone();
            dims.insert(at, depth.map_or(Dim::Unknown, Dim::Known));
            Some(dims)
        }
        None => None,
    };
    let dtype = call.input(2).dtype.or(call.input(3).dtype);
    call.give(0, dtype, dims);
    Ok(())
}

fn pack(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let first = call.input(0).clone();
    let mut dims = first.dims.clone();
    for (index, part) in call.inputs.iter().flatten().enumerate() {
        let agreed = call.agree(part, &Fact::new(first.dtype, dims.clone()));
        let agreed = agreed.map_err(|_| {
            let (first, part) = (text(&first), text(part));
            call.error(format_args!(
                "expected tensors of {first}, found one of {part} as operand {index}"
            ))
        })?;
        dims = agreed.dims;
    }
    // Of numbers that become a list each is followed.
    let number = |part: &Fact| match part.values.as_deref() {
        Some([one]) => one.clone(),
        _ => Dim::Unknown,
    };
    let is_list = dims.as_ref().is_some_and(|dims| dims.is_empty())
        && call.inputs.len() <= crate::fact::MOST_VALUES
        && first.dtype.is_some_and(|dtype| INDEX.contains(&dtype));
    let values = is_list.then(|| call.inputs.iter().flatten().map(number).collect());
    if let Some(dims) = &mut dims {
        let at = call.axis(call.attrs.int("axis").unwrap_or(0), dims.len() + 1)?;
        dims.insert(at, Dim::from(call.inputs.len()));
    }
    let list = Fact {
        values,
        ..Fact::new(first.dtype, dims)
    };
    call.set(0, list);
    Ok(())
}

fn unpack(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let x = call.input(0).clone();
    let (dims, n) = (x.dims, call.out.len());
    let dims = match dims {
        Some(mut dims) => {
            let at = call.axis(call.attrs.int("axis").unwrap_or(0), dims.len())?;
            if let Some(extent) = dims[at]
                .value()
                .filter(|extent| Dim::Known(*extent) != Dim::from(n))
            {
                return Err(call.error(format_args!(
                    "expected {extent} results, the extent of dimension {at}, found {n}"
                )));
            }
            dims.remove(at);
            Some(dims)
        }
        None => None,
    };
    (0..n).for_each(|index| call.give(index, x.dtype, dims.clone()));
    Ok(())
}

fn fused_product(call: &mut InferCall<'_>) -> Result<(), InferError> {
    fused_function(&call.attrs)?;
    let flips = ["transpose_a", "transpose_b"].map(|name| call.attrs.flag(name));
    (0..2).try_for_each(|index| call.expect_rank(index, 2))?;
    let found = call.inputs.len();
    if found != 3 {
        return Err(call.error(format_args!(
            "expected two matrices and a bias, found {found} inputs"
        )));
    }
    let (a, b, bias) = (call.input(0), call.input(1), call.input(2));
    let dims = dot_dims(call, [a, b], flips)?;
    let last = dims.as_ref().and_then(|dims| dims.last());
    expect_bias(call, bias, ("last dimension", last))?;
    let dtype = a.dtype.or(b.dtype);
    call.give(0, dtype, dims);
    Ok(())
}

/// Returns the function that follows the bias of a product, by `fused_ops`: none, `Relu`, `Relu6` or `Elu`. The words
/// of errors are the original runtime's.
///
/// # Errors
///
/// If something else is to follow.
pub fn fused_function<'a>(attrs: &crate::Attrs<'a>) -> Result<Option<&'a str>, InferError> {
    let names = texts(attrs, "fused_ops");
    match names[..] {
        ["BiasAdd"] => Ok(None),
        ["BiasAdd", function @ ("Relu" | "Relu6" | "Elu")] => Ok(Some(function)),
        [] => Err(InferError::new("FusedMatMul must specify fused operations")),
        _ => Err(InferError::new(format!(
            "Unsupported fusion type: {}: expected BiasAdd, and BiasAdd followed by Relu, Relu6 or Elu",
            names.join(", ").escape_debug()
        ))),
    }
}

/// Returns the texts of an attribute.
fn texts<'a>(attrs: &crate::Attrs<'a>, name: &str) -> SmallVec<[&'a str; 4]> {
    match attrs.get(name) {
        Some(crate::AttrValue::Strings(list)) => list
            .into_iter()
            .map(|text| std::str::from_utf8(text).unwrap_or(""))
            .collect(),
        _ => SmallVec::new(),
    }
}

/// The part of a `tf.StridedSlice` along one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StridedAxis {
    /// A new dimension of extent 1.
    New,
    /// A slice of the operand's next dimension.
    Slice {
        /// The first element.
        start: i64,
        /// The distance of elements.
        step: i64,
        /// The number of elements.
        n: i64,
        /// Whether the dimension, which has one element, is removed.
        shrinks: bool,
    },
}

/// Returns the parts of a `tf.StridedSlice`, dimension by dimension, for an operand of these extents.
///
/// # Errors
///
/// If lists and masks don't fit each other, or the tensor.
pub fn strided_axes(
    extents: &[i64],
    [begin, end, steps]: [&[i64]; 3],
    attrs: &crate::Attrs<'_>,
) -> Result<SmallVec<[StridedAxis; 6]>, InferError> {
    let n = begin.len();
    if end.len() != n || steps.len() != n || n > 32 {
        return Err(InferError::new(format!(
            "expected as many places to begin and to end and steps, 32 at most, found {n}, {} and {}",
            end.len(),
            steps.len()
        )));
    }
    let mask = |name: &str| attrs.int(name).unwrap_or(0);
    let is_set = |mask: i64, index: usize| (mask >> index) & 1 == 1;
    let (ellipsis, new) = (mask("ellipsis_mask"), mask("new_axis_mask"));
    let (shrink, begins, ends) = (
        mask("shrink_axis_mask"),
        mask("begin_mask"),
        mask("end_mask"),
    );
    let n_ellipses = (0..n).filter(|index| is_set(ellipsis, *index)).count();
    if n_ellipses > 1 {
        return Err(InferError::new("expected one ellipsis at most"));
    }
    let is_own = |index: &usize| !is_set(ellipsis, *index) && !is_set(new, *index);
    let n_own = (0..n).filter(is_own).count();
    let Some(rest) = extents.len().checked_sub(n_own) else {
        let rank = extents.len();
        return Err(InferError::new(format!(
            "expected slices of {rank} dimensions at most, found {n_own}"
        )));
    };
    let whole = |extent: i64| StridedAxis::Slice {
        start: 0,
        step: 1,
        n: extent,
        shrinks: false,
    };
    let mut all = SmallVec::new();
    let mut left = extents.iter().copied();
    for index in 0..n {
        if is_set(ellipsis, index) {
            all.extend(left.by_ref().take(rest).map(whole));
            continue;
        }
        if is_set(new, index) {
            all.push(StridedAxis::New);
            continue;
        }
        let extent = left.next().unwrap_or(0);
        let (start, stop, step) = (begin[index], end[index], steps[index]);
        if step == 0 {
            return Err(InferError::new(format!(
                "expected steps other than 0, found 0 at {index}"
            )));
        }
        let from_start = |place: i64| {
            if place < 0 {
                place.saturating_add(extent)
            } else {
                place
            }
        };
        if is_set(shrink, index) {
            let start = from_start(start);
            if step < 0 || start < 0 || start >= extent {
                return Err(InferError::new(format!(
                    "there is no element {} in a dimension of extent {extent}",
                    begin[index]
                )));
            }
            all.push(StridedAxis::Slice {
                start,
                step: 1,
                n: 1,
                shrinks: true,
            });
            continue;
        }
        let (low, high) = if step > 0 {
            (0, extent)
        } else {
            (-1, extent - 1)
        };
        let (first, last) = if step > 0 { (low, high) } else { (high, low) };
        let clamped = |place: i64| from_start(place).clamp(low, high);
        let start = if is_set(begins, index) {
            first
        } else {
            clamped(start)
        };
        let stop = if is_set(ends, index) {
            last
        } else {
            clamped(stop)
        };
        let distance = if step > 0 { stop - start } else { start - stop };
        let n = u64::try_from(distance)
            .unwrap_or(0)
            .div_ceil(step.unsigned_abs());
        let n = i64::try_from(n).unwrap_or(i64::MAX);
        all.push(StridedAxis::Slice {
            start,
            step,
            n,
            shrinks: false,
        });
    }
    all.extend(left.map(whole));
    Ok(all)
}

fn strided_slice(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let x = call.input(0).clone();
    let lists = [1, 2, 3].map(|index| call.input(index).numbers());
    let extents = x
        .dims
        .as_ref()
        .map(|dims| dims.iter().map(Dim::value).collect());
    let (Some(Some(extents)), [Some(begin), Some(end), Some(steps)]) = (extents, lists) else {
        let steps = call.input(3).numbers();
        let dims = x.dims.as_deref().zip(steps);
        let dims = dims.and_then(|(dims, steps)| unread_slices(dims, &steps, &call.attrs));
        call.give(0, x.dtype, dims);
        return Ok(());
    };
    let extents: SmallVec<[i64; 6]> = extents;
    let axes = strided_axes(&extents, [&begin, &end, &steps], &call.attrs)
        .map_err(|error| call.error(error))?;
    let mut sizes = Dims::new();
    // Of a list its integers are followed.
    let mut values = x.values.clone().filter(|_| extents.len() == 1);
    for axis in &axes {
        match axis {
            StridedAxis::New => sizes.push(Dim::Known(1)),
            StridedAxis::Slice {
                start,
                step,
                n,
                shrinks,
            } => {
                if !shrinks {
                    sizes.push(Dim::Known(*n));
                }
                values = values.and_then(|list| {
                    let place = |index: i64| {
                        let at = start.checked_add(index.checked_mul(*step)?)?;
                        list.get(usize::try_from(at).ok()?).cloned()
                    };
                    (0..*n).map(place).collect()
                });
            }
        }
    }
    call.set(
        0,
        Fact {
            values,
            ..Fact::new(x.dtype, Some(sizes))
        },
    );
    Ok(())
}

/// Returns the extents of a `tf.StridedSlice` as far as they don't hang on extents that are unknown: what is taken whole,
/// removed or new. Nothing is checked.
fn unread_slices(dims: &[Dim], steps: &[i64], attrs: &crate::Attrs<'_>) -> Option<Dims> {
    let is_set = |name: &str, index: usize| (attrs.int(name).unwrap_or(0) >> index) & 1 == 1;
    let is_own =
        |index: &usize| !is_set("ellipsis_mask", *index) && !is_set("new_axis_mask", *index);
    let n = Some(steps.len()).filter(|n| *n <= 32)?;
    let rest = dims.len().checked_sub((0..n).filter(is_own).count())?;
    let (mut left, mut all) = (dims.iter().cloned(), Dims::new());
    for (index, step) in steps.iter().enumerate() {
        if is_set("ellipsis_mask", index) {
            all.extend(left.by_ref().take(rest));
        } else if is_set("new_axis_mask", index) {
            all.push(Dim::Known(1));
        } else {
            let dim = left.next()?;
            let is_whole = *step == 1 && is_set("begin_mask", index) && is_set("end_mask", index);
            if !is_set("shrink_axis_mask", index) {
                all.push(if is_whole { dim } else { Dim::Unknown });
            }
        }
    }
    all.extend(left);
    Some(all)
}
