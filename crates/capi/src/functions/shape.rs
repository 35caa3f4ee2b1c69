//! Functions of `ops.h` by which a plugin infers shapes of results from those of inputs.

use std::ffi::c_int;

use tfrt_host::Error;

use super::status::{Status, finish};
use crate::attrs::{Attr, NodeAttrs};
use crate::handle::Handle;
use crate::raw::{Out, Text};

/// A shape: extents, -1 for an unknown one; `None` if not even their number is known.
pub type Shape = Option<Vec<i64>>;

/// An inference of shapes: `TF_ShapeInferenceContext`.
#[derive(Debug)]
pub struct ShapeContext {
    /// Shapes of the inputs.
    pub inputs: Vec<Shape>,
    /// Shapes of the results, unknown at first.
    pub outputs: Vec<Shape>,
    /// The attributes.
    pub attrs: NodeAttrs,
}

/// A box for a shape: `TF_ShapeHandle`.
#[derive(Default)]
pub struct ShapeBox(Shape);

/// A box for an extent, `TF_DimensionHandle`: unset, unknown (-1) or a number.
#[derive(Default)]
pub struct DimensionBox(Option<i64>);

type Ctx = Handle<ShapeContext>;
type Result<T> = std::result::Result<T, Error>;

fn shape_of(handle: Handle<ShapeBox>) -> Result<Shape> {
    let shape = handle.with("handle", |own| own.0.clone());
    shape.ok_or_else(|| Error::invalid_argument("the shape handle is wrong"))
}

fn put(handle: Handle<ShapeBox>, shape: Shape) {
    handle.with("result", |own| own.0 = shape);
}

fn with<R>(ctx: Ctx, use_it: impl FnOnce(&mut ShapeContext) -> Result<R>) -> Result<R> {
    let result = ctx.with("ctx", use_it);
    result.unwrap_or_else(|| Err(Error::invalid_argument("the context is wrong")))
}

pub(crate) fn num_inputs(ctx: Ctx) -> i64 {
    ctx.with("ctx", |own| own.inputs.len() as i64).unwrap_or(0)
}

pub(crate) fn new_shape() -> Handle<ShapeBox> {
    Handle::new(ShapeBox::default())
}

pub(crate) fn delete_shape(handle: Handle<ShapeBox>) {
    if !handle.is_null() {
        handle.take("handle");
    }
}

pub(crate) fn new_dimension() -> Handle<DimensionBox> {
    Handle::new(DimensionBox::default())
}

pub(crate) fn delete_dimension(handle: Handle<DimensionBox>) {
    if !handle.is_null() {
        handle.take("handle");
    }
}

pub(crate) fn get_input(ctx: Ctx, index: c_int, handle: Handle<ShapeBox>, status: Handle<Status>) {
    let found = with(ctx, |own| {
        let at = usize::try_from(index).ok();
        let shape = at.and_then(|at| own.inputs.get(at).cloned());
        shape.ok_or_else(|| Error::invalid_argument("input index out of range"))
    });
    finish(status, found.map(|shape| put(handle, shape)));
}

pub(crate) fn set_output(ctx: Ctx, index: c_int, handle: Handle<ShapeBox>, status: Handle<Status>) {
    let outcome = shape_of(handle).and_then(|shape| {
        with(ctx, |own| {
            let at = usize::try_from(index).ok();
            match at.and_then(|at| own.outputs.get_mut(at)) {
                Some(output) => {
                    *output = shape;
                    Ok(())
                }
                None => Err(Error::invalid_argument("output index out of range")),
            }
        })
    });
    finish(status, outcome);
}

pub(crate) fn set_unknown(ctx: Ctx, status: Handle<Status>) {
    let outcome = with(ctx, |own| {
        own.outputs.fill(None);
        Ok(())
    });
    finish(status, outcome);
}

pub(crate) fn scalar(ctx: Ctx) -> Handle<ShapeBox> {
    ctx.with("ctx", |_| ());
    Handle::new(ShapeBox(Some(Vec::new())))
}

pub(crate) fn vector(ctx: Ctx, size: usize) -> Handle<ShapeBox> {
    ctx.with("ctx", |_| ());
    let size = i64::try_from(size).unwrap_or(-1);
    Handle::new(ShapeBox(Some(vec![size])))
}

pub(crate) fn get_type(ctx: Ctx, name: Text, value: Out<c_int>, status: Handle<Status>) {
    let Some(name) = name.text("attr_name") else {
        return;
    };
    let found = with(ctx, |own| match own.attrs.get(&name) {
        Some(Attr::Type(code)) => Ok(*code),
        Some(other) => {
            let found = other.kind_name();
            Err(Error::invalid_argument(format!(
                "AttrValue had value with type '{found}' when 'type' expected"
            )))
        }
        None => Err(Error::not_found(format!("No attr named '{name}'"))),
    });
    let outcome = found.map(|code| {
        value.set(code, "val");
    });
    finish(status, outcome);
}

pub(crate) fn rank(ctx: Ctx, handle: Handle<ShapeBox>) -> i64 {
    ctx.with("ctx", |_| ());
    let shape = shape_of(handle).ok().flatten();
    shape.map_or(-1, |extents| extents.len() as i64)
}

pub(crate) fn rank_known(ctx: Ctx, handle: Handle<ShapeBox>) -> c_int {
    ctx.with("ctx", |_| ());
    c_int::from(shape_of(handle).is_ok_and(|shape| shape.is_some()))
}

/// Gives a shape whose rank fits a bound; an unknown one may become one of that rank.
fn bounded(
    ctx: Ctx,
    handle: Handle<ShapeBox>,
    rank: i64,
    result: Handle<ShapeBox>,
    status: Handle<Status>,
    (what, fits): (&str, fn(i64, i64) -> bool),
) {
    ctx.with("ctx", |_| ());
    let found = shape_of(handle).and_then(|shape| match shape {
        Some(extents) if !fits(extents.len() as i64, rank) => {
            let found = extents.len();
            Err(Error::invalid_argument(format!(
                "Shape must be {what}rank {rank} but is rank {found}"
            )))
        }
        None if what.is_empty() => match usize::try_from(rank) {
            Ok(rank) if rank <= tfrt_tensor::MAX_RANK => Ok(Some(vec![-1; rank])),
            _ => Err(Error::invalid_argument(format!(
                "a shape has no rank {rank}"
            ))),
        },
        shape => Ok(shape),
    });
    finish(status, found.map(|shape| put(result, shape)));
}

pub(crate) fn with_rank(
    ctx: Ctx,
    handle: Handle<ShapeBox>,
    rank: i64,
    result: Handle<ShapeBox>,
    status: Handle<Status>,
) {
    bounded(
        ctx,
        handle,
        rank,
        result,
        status,
        ("", |found, rank| found == rank),
    );
}

pub(crate) fn with_rank_at_least(
    ctx: Ctx,
    handle: Handle<ShapeBox>,
    rank: i64,
    result: Handle<ShapeBox>,
    status: Handle<Status>,
) {
    let bound: (&str, fn(i64, i64) -> bool) = ("at least ", |found, rank| found >= rank);
    bounded(ctx, handle, rank, result, status, bound);
}

pub(crate) fn with_rank_at_most(
    ctx: Ctx,
    handle: Handle<ShapeBox>,
    rank: i64,
    result: Handle<ShapeBox>,
    status: Handle<Status>,
) {
    let bound: (&str, fn(i64, i64) -> bool) = ("at most ", |found, rank| found <= rank);
    bounded(ctx, handle, rank, result, status, bound);
}

pub(crate) fn dim(ctx: Ctx, handle: Handle<ShapeBox>, index: i64, result: Handle<DimensionBox>) {
    ctx.with("ctx", |_| ());
    let Ok(shape) = shape_of(handle) else {
        return;
    };
    let found = match shape {
        None => Some(-1),
        Some(extents) => {
            let from = if index < 0 { extents.len() as i64 } else { 0 };
            let at = index.checked_add(from);
            let at = at.and_then(|at| usize::try_from(at).ok());
            at.and_then(|at| extents.get(at).copied())
        }
    };
    result.with("result", |own| own.0 = found);
}

pub(crate) fn dimension_known(handle: Handle<DimensionBox>) -> c_int {
    let known = handle.with("dim", |own| own.0.is_some_and(|extent| extent >= 0));
    c_int::from(known.unwrap_or(false))
}

pub(crate) fn dimension_value(handle: Handle<DimensionBox>) -> i64 {
    handle.with("dim", |own| own.0.unwrap_or(0)).unwrap_or(0)
}

pub(crate) fn subshape(
    ctx: Ctx,
    handle: Handle<ShapeBox>,
    start: i64,
    end: i64,
    result: Handle<ShapeBox>,
    status: Handle<Status>,
) {
    ctx.with("ctx", |_| ());
    let found = shape_of(handle).and_then(|shape| {
        let Some(extents) = shape else {
            return Ok(None);
        };
        let rank = extents.len() as i64;
        let place = |what: &str, given: i64| {
            let at = given.min(rank);
            let at = if at < 0 { at.saturating_add(rank) } else { at };
            usize::try_from(at).map_err(|_| {
                Error::invalid_argument(format!(
                    "Subshape {what} out of bounds: {given}, for shape with rank {rank}"
                ))
            })
        };
        match (place("start", start)?, place("end", end)?) {
            (from, to) if from <= to => Ok(Some(extents[from..to].to_vec())),
            (from, to) => Err(Error::invalid_argument(format!(
                "Subshape must have computed start <= end, but is {from} and {to} (computed from start {start} and \
                 end {end} over shape with rank {rank})"
            ))),
        }
    });
    finish(status, found.map(|shape| put(result, shape)));
}

pub(crate) fn concatenate(
    ctx: Ctx,
    first: Handle<ShapeBox>,
    second: Handle<ShapeBox>,
    result: Handle<ShapeBox>,
    status: Handle<Status>,
) {
    ctx.with("ctx", |_| ());
    let found = shape_of(first).and_then(|first| {
        Ok(match (first, shape_of(second)?) {
            (Some(first), Some(second)) => Some([first, second].concat()),
            _ => None,
        })
    });
    finish(status, found.map(|shape| put(result, shape)));
}
