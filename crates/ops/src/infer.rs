//! [`Infer`]: the rules by which facts of results follow from facts of operands; those that many operations share.
//!
//! A rule never says more than holds for every input that a call may have. What does not fit together (extents that
//! are not broadcast, an axis that is not there) is an error only where no call could succeed.

use std::fmt;

use smallvec::SmallVec;
use tfrt_bef::DType;

use crate::attrs::{AttrValue, Attrs};
use crate::def::{AttrDefault, Limit, OpDef};
use crate::dim::{Dim, Dims};
use crate::fact::{Fact, Facts};

/// The rule by which the facts of results follow from those of operands.
#[derive(Clone, Copy)]
pub enum Infer {
    /// The only result has the type and the extents of the first operand.
    SameAsFirst,
    /// The result has the extents to which the operands are broadcast, and the type of the first.
    Broadcast,
    /// The result has the extents to which the operands are broadcast, and holds truth values.
    BroadcastBool,
    /// The result is the first operand without the `axes`, an attribute or operand 1; with extents of 1 there if
    /// `keep`.
    Reduce,
    /// A function.
    By(fn(&mut InferCall<'_>) -> Result<(), InferError>),
}

impl fmt::Debug for Infer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Infer::SameAsFirst => "SameAsFirst",
            Infer::Broadcast => "Broadcast",
            Infer::BroadcastBool => "BroadcastBool",
            Infer::Reduce => "Reduce",
            Infer::By(_) => "By",
        })
    }
}

/// The reason why no call with these operands can succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InferError {
    message: String,
}

impl InferError {
    /// Makes an error. The message says where, what was expected, and what was found.
    pub fn new(message: impl Into<String>) -> InferError {
        InferError {
            message: message.into(),
        }
    }
}

impl fmt::Display for InferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for InferError {}

/// The inference of one operation: its operands and attributes, and the facts of its results as a rule sets them.
pub struct InferCall<'a> {
    /// The operation.
    pub op: &'a OpDef,
    /// The facts of the operands; `None` for one that is left out.
    pub inputs: &'a [Option<Fact>],
    /// The attributes.
    pub attrs: Attrs<'a>,
    /// A function that infers a region: the facts of its results for those of its arguments.
    pub regions: &'a mut dyn FnMut(usize, &[Fact]) -> Facts,
    /// The facts of the results, which are unknown at first; as many as the operation has here.
    pub out: Facts,
}

impl fmt::Debug for InferCall<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InferCall")
            .field("op", &self.op.name)
            .field("inputs", &self.inputs)
            .field("out", &self.out)
            .finish_non_exhaustive()
    }
}

/// Infers the facts of an operation's results. What the row does not say stays unknown.
///
/// # Errors
///
/// If no call with these operands could succeed.
pub fn infer(
    op: &OpDef,
    inputs: &[Option<Fact>],
    attrs: Attrs<'_>,
    n_results: usize,
    regions: &mut dyn FnMut(usize, &[Fact]) -> Facts,
) -> Result<Facts, InferError> {
    let mut call = InferCall {
        op,
        inputs,
        attrs,
        regions,
        out: SmallVec::from_elem(Fact::UNKNOWN, n_results),
    };
    call.expect_choices()?;
    match op.infer {
        Infer::SameAsFirst => {
            let first = call.input(0);
            call.set(0, Fact::new(first.dtype, first.dims.clone()));
        }
        Infer::Broadcast => {
            let dims = call.broadcast()?;
            call.set(0, Fact::new(call.input(0).dtype, dims));
        }
        Infer::BroadcastBool => {
            let dims = call.broadcast()?;
            call.set(0, Fact::new(Some(DType::I1), dims));
        }
        Infer::Reduce => reduce(&mut call)?,
        Infer::By(rule) => rule(&mut call)?,
    }
    call.out.iter_mut().for_each(possible);
    Ok(call.out)
}

/// Removes impossible facts: extents below 0, and elements out of the range of their type, which wrap around.
fn possible(fact: &mut Fact) {
    for dim in fact.dims.iter_mut().flatten() {
        if dim.value().is_some_and(|extent| extent < 0) {
            *dim = Dim::Unknown;
        }
    }
    let range = match fact.dtype {
        Some(DType::I64) => i64::MIN..=i64::MAX,
        Some(DType::I32) => i64::from(i32::MIN)..=i64::from(i32::MAX),
        Some(DType::Ui64) => 0..=i64::MAX,
        Some(DType::Ui32) => 0..=i64::from(u32::MAX),
        Some(DType::I1) => 0..=1,
        // Of narrow integers a model's extents are not made.
        _ => {
            fact.values = None;
            return;
        }
    };
    for value in fact.values.iter_mut().flatten() {
        let is_in = match value {
            Dim::Known(value) => range.contains(value),
            Dim::Symbolic(_) => *range.start() < 0 || value.is_never_negative(),
            Dim::Unknown => true,
        };
        if !is_in {
            *value = Dim::Unknown;
        }
    }
}

impl InferCall<'_> {
    /// Checks that attributes with a list of allowed texts, such as `kind`, have one of them.
    fn expect_choices(&self) -> Result<(), InferError> {
        for def in self.op.attrs {
            let Limit::OneOf(texts) = def.limit else {
                continue;
            };
            let stated = self.attrs.stated(def.name);
            let found = match stated {
                Some(AttrValue::Bytes(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
                None if def.default != AttrDefault::Required => continue,
                _ => String::new(),
            };
            if !texts.contains(&found.as_str()) {
                let (name, choices, found) = (def.name, texts.join(", "), found.escape_debug());
                let message =
                    format_args!("attribute '{name}': expected {choices}, found '{found}'");
                return Err(self.error(message));
            }
        }
        Ok(())
    }

    /// Returns the fact of an operand: unknown if it is left out.
    pub fn input(&self, index: usize) -> &Fact {
        let input = self.inputs.get(index).and_then(Option::as_ref);
        input.unwrap_or(&Fact::UNKNOWN)
    }

    /// Returns whether an operand is not left out.
    pub fn has(&self, index: usize) -> bool {
        self.inputs.get(index).is_some_and(Option::is_some)
    }

    /// Sets the fact of a result, if the operation has that result here.
    pub fn set(&mut self, index: usize, fact: Fact) {
        if let Some(out) = self.out.get_mut(index) {
            *out = fact;
        }
    }

    /// Sets the type and the extents of a result.
    pub fn give(&mut self, index: usize, dtype: Option<DType>, dims: Option<Dims>) {
        self.set(index, Fact::new(dtype, dims));
    }

    /// Makes an error about this operation.
    pub fn error(&self, message: impl fmt::Display) -> InferError {
        InferError::new(format!("{}: {message}", self.op.name))
    }

    /// Returns the index of an axis that may count from the end.
    ///
    /// # Errors
    ///
    /// If there is no such axis.
    pub fn axis(&self, axis: i64, rank: usize) -> Result<usize, InferError> {
        axis_of(axis, rank).ok_or_else(|| {
            self.error(format_args!(
                "expected an axis of {rank} dimensions, found {axis}"
            ))
        })
    }

    /// Returns the indices of axes, each of which may count from the end.
    ///
    /// # Errors
    ///
    /// If there is no such axis, or if one is named twice.
    pub fn axes(&self, axes: &[i64], rank: usize) -> Result<SmallVec<[usize; 6]>, InferError> {
        let mut places = SmallVec::new();
        for axis in axes {
            let place = self.axis(*axis, rank)?;
            if places.contains(&place) {
                return Err(self.error(format_args!("expected each axis once, found {axis} again")));
            }
            places.push(place);
        }
        Ok(places)
    }

    /// Merges two facts of one value.
    ///
    /// # Errors
    ///
    /// If they know different things.
    pub fn agree(&self, one: &Fact, other: &Fact) -> Result<Fact, InferError> {
        if let (Some(own), Some(others)) = (&one.dims, &other.dims) {
            let differs = |(own, other): (&Dim, &Dim)| {
                own.value()
                    .zip(other.value())
                    .is_some_and(|(own, other)| own != other)
            };
            if own.len() != others.len() || own.iter().zip(others).any(differs) {
                let text = |dims: &Dims| {
                    dims.iter()
                        .map(Dim::to_string)
                        .collect::<Vec<_>>()
                        .join(", ")
                };
                let (expected, found) = (text(others), text(own));
                return Err(self.error(format_args!(
                    "expected extents [{expected}], found [{found}]"
                )));
            }
        }
        Ok(one.clone().or(other))
    }

    /// Checks the number of an operand's dimensions.
    ///
    /// # Errors
    ///
    /// If it is known to be another one.
    pub fn expect_rank(&self, index: usize, rank: usize) -> Result<(), InferError> {
        match self.input(index).rank() {
            Some(found) if found != rank => Err(self.error(format_args!(
                "operand {index}: expected {rank} dimensions, found {found}"
            ))),
            _ => Ok(()),
        }
    }

    /// Returns the integers of an operand, if it is a constant; of the attribute, if the operand is left out.
    pub fn ints(&self, operand: usize, attribute: &str) -> StaticInts {
        if self.has(operand) {
            return match self.input(operand).numbers() {
                Some(list) => StaticInts::Known(list),
                None => StaticInts::Unknown,
            };
        }
        match self.attrs.ints(attribute) {
            Some(list) => StaticInts::Known(list.into_owned()),
            None => StaticInts::Absent,
        }
    }

    /// Returns the extents to which all operands are broadcast.
    ///
    /// # Errors
    ///
    /// If two of them don't fit.
    pub fn broadcast(&self) -> Result<Option<Dims>, InferError> {
        let all = self
            .inputs
            .iter()
            .flatten()
            .map(|fact| fact.dims.as_deref());
        let Some(all) = all.collect::<Option<SmallVec<[&[Dim]; 4]>>>() else {
            return Ok(None);
        };
        broadcast(&all).map(Some).map_err(|error| self.error(error))
    }
}

/// Integers that an operation takes as an operand or an attribute, as far as they are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StaticInts {
    /// The integers, which are constant.
    Known(Vec<i64>),
    /// The operand is calculated.
    Unknown,
    /// Neither the operand nor the attribute is there.
    Absent,
}

/// Returns the index of an axis that may count from the end, if there is such an axis.
pub fn axis_of(axis: i64, rank: usize) -> Option<usize> {
    let rank = i64::try_from(rank).ok()?;
    let at = if axis < 0 {
        axis.checked_add(rank)?
    } else {
        axis
    };
    usize::try_from(at).ok().filter(|_| at < rank)
}

/// Returns the extents to which some are broadcast, aligned at the last dimension.
///
/// # Errors
///
/// If two numbers differ, and neither is 1.
pub fn broadcast(all: &[&[Dim]]) -> Result<Dims, InferError> {
    let rank = all.iter().map(|dims| dims.len()).max().unwrap_or(0);
    let mut result = Dims::with_capacity(rank);
    for at in 0..rank {
        let own = all
            .iter()
            .filter_map(|dims| dims.get((at + dims.len()).checked_sub(rank)?));
        result.push(common(own)?);
    }
    Ok(result)
}

/// Returns the extent to which some are broadcast.
fn common<'a>(dims: impl Iterator<Item = &'a Dim>) -> Result<Dim, InferError> {
    let (mut symbol, mut number): (Option<&Dim>, Option<i64>) = (None, None);
    let mut is_sure = true;
    for dim in dims {
        match dim {
            Dim::Known(1) => {}
            Dim::Known(value) if number.is_some_and(|other| other != *value) => {
                let other = number.unwrap_or_default();
                let message =
                    format!("expected extents that are broadcast, found {other} and {value}");
                return Err(InferError::new(message));
            }
            Dim::Known(value) => number = Some(*value),
            Dim::Symbolic(_) => {
                is_sure &= symbol.is_none_or(|other| other == dim);
                symbol = Some(dim);
            }
            Dim::Unknown => is_sure = false,
        }
    }
    // What is no 1 wins, whatever the others are.
    Ok(match (number, symbol) {
        (Some(value), _) => Dim::Known(value),
        _ if !is_sure => Dim::Unknown,
        (None, Some(symbol)) => symbol.clone(),
        (None, None) => Dim::Known(1),
    })
}

/// Returns the extents that are left without some axes, or with extents of 1 in their place.
pub fn without(dims: &Dims, axes: &[usize], keep: bool) -> Dims {
    let dims = dims.iter().enumerate();
    match keep {
        true => dims
            .map(|(at, dim)| {
                if axes.contains(&at) {
                    Dim::Known(1)
                } else {
                    dim.clone()
                }
            })
            .collect(),
        false => dims
            .filter(|(at, _)| !axes.contains(at))
            .map(|(_, dim)| dim.clone())
            .collect(),
    }
}

/// Infers a reduction: `axes` by operand 1 or the attribute, all if there are none; `keep`; `none_if_empty`: no axes
/// are none, not all.
fn reduce(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let keep = call.attrs.flag("keep");
    if let Some(rank) = call.input(1).rank().filter(|rank| *rank > 1) {
        return Err(call.error(format_args!(
            "expected a list of axes, found {rank} dimensions"
        )));
    }
    let x = call.input(0);
    let dims = match (&x.dims, call.ints(1, "axes")) {
        (None, _) => None,
        (Some(dims), StaticInts::Unknown) => match (keep, call.input(1).dims.as_deref()) {
            (true, _) => Some(crate::fact::unknown_dims(dims.len())),
            // A list of so many axes, if they differ, as they must. No axes may be all.
            (false, Some([Dim::Known(n)])) if *n > 0 => {
                let left = usize::try_from(*n)
                    .ok()
                    .and_then(|n| dims.len().checked_sub(n));
                left.map(crate::fact::unknown_dims)
            }
            _ => None,
        },
        (Some(dims), stated) => {
            let axes = match stated {
                StaticInts::Known(list) if !list.is_empty() => list,
                _ if call.attrs.flag("none_if_empty") => Vec::new(),
                _ => (0..).take(dims.len()).collect(),
            };
            let axes = call.axes(&axes, dims.len())?;
            Some(without(dims, &axes, keep))
        }
    };
    call.give(0, x.dtype, dims);
    Ok(())
}
