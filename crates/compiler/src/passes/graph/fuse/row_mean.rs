//! Means over the last dimension, as formats write them.
//!
//! A mean is a `reduce` of its kind, or a sum divided by the extent; the last dimension is kept, or put back behind it by a
//! change of shape, as JAX does.

use tfrt_ir::{Module, OpId, ValueId};

use super::super::node;

/// Matches a mean over the last dimension of a value of this rank and width, which is 1 in the mean's shape; returns the
/// operand.
pub(super) fn of_rows(module: &Module, value: ValueId, rank: usize, width: i64) -> Option<ValueId> {
    let shape = node::shape(module, value)?;
    let is_kept = shape.len() == rank && shape.last() == Some(&1);
    is_kept.then(|| mean(module, bare(module, value), rank, width))?
}

/// Matches `max(0, mean(x²) - mean(x)²)`, whose last dimension is kept or not, with what was calculated of it put back; returns
/// x.
pub(super) fn fast_variance(
    module: &Module,
    value: ValueId,
    rank: usize,
    width: i64,
) -> Option<ValueId> {
    let shape = node::shape(module, value)?;
    if shape.len() != rank || shape.last() != Some(&1) {
        return None;
    }
    let value = bare(module, value);
    let shape = node::shape(module, value)?;
    let is_alike = |value| node::shape(module, value).as_ref() == Some(&shape);
    let maximum = module.defining_op(value)?;
    if node::name(module, maximum) != "max" {
        return None;
    }
    let mut pairs = node::pairs(module, maximum).into_iter().flatten();
    let difference = pairs.find_map(|(zero, difference)| {
        (node::number(module, zero, rank) == Some(0.0)).then_some(difference)
    })?;
    let op = node::single_use_op(module, difference, "sub")?;
    let &[of_squares, square] = module.op(op).operands() else {
        return None;
    };
    // Numbers of rows that have no last dimension would be spread along another one.
    if ![difference, of_squares, square].into_iter().all(is_alike) {
        return None;
    }
    let of_mean = squared(module, square, rank)?;
    let x = mean(module, of_mean, rank, width)?;
    let is_variance = is_alike(of_mean)
        && squared(module, mean(module, of_squares, rank, width)?, rank) == Some(x);
    is_variance.then_some(x)
}

/// Returns the value whose square another one is.
pub(super) fn squared(module: &Module, value: ValueId, rank: usize) -> Option<ValueId> {
    let op = module.defining_op(value)?;
    match (node::name(module, op), module.op(op).operands()) {
        ("square", [x]) => Some(*x),
        ("mul", [a, b]) if a == b => Some(*a),
        ("pow", [x, exponent]) => {
            (node::number(module, *exponent, rank) == Some(2.0)).then_some(*x)
        }
        _ => None,
    }
}

/// Returns a value before a change of shape that adds a last dimension of 1.
fn bare(module: &Module, value: ValueId) -> ValueId {
    let of = || {
        let op = module.defining_op(value)?;
        if node::name(module, op) != "reshape" {
            return None;
        }
        let inner = node::operand(module, op, 0)?;
        let (kept, rows) = (node::shape(module, value)?, node::shape(module, inner)?);
        // At most one extent is unknown: then it is the same one.
        let is_known = rows.iter().filter(|size| **size < 1).count() <= 1;
        let is_added = kept
            .split_last()
            .is_some_and(|(last, rest)| *last == 1 && rest == rows);
        (is_known && is_added).then_some(inner)
    };
    of().unwrap_or(value)
}

/// Matches a mean over the last dimension of a value of this rank and width, kept or not; returns the operand.
fn mean(module: &Module, value: ValueId, rank: usize, width: i64) -> Option<ValueId> {
    let op = module.defining_op(value)?;
    let x = match node::name(module, op) {
        "reduce" => reduced(module, op, "mean", rank)?,
        "div" => {
            let &[sum, number] = module.op(op).operands() else {
                return None;
            };
            #[allow(
                clippy::cast_precision_loss,
                reason = "it is compared, and no width is that large"
            )]
            let is_width = node::number(module, number, rank - 1) == Some(width as f64);
            let sum_op = module.defining_op(bare(module, sum))?;
            let is_sum = is_width && node::name(module, sum_op) == "reduce";
            is_sum.then(|| reduced(module, sum_op, "sum", rank))??
        }
        _ => return None,
    };
    let shape = node::shape(module, x)?;
    (shape.len() == rank && shape.last() == Some(&width)).then_some(x)
}

/// Returns the operand of a reduction of a kind over the last of so many dimensions.
fn reduced(module: &Module, op: OpId, kind: &str, rank: usize) -> Option<ValueId> {
    let axes = match node::operand(module, op, 1) {
        Some(axes) => node::constant_ints(module, axes)?,
        None => node::ints(module, op, "axes")?,
    };
    let last = i64::try_from(rank).ok()?.checked_sub(1)?;
    let is_last = axes == [-1] || axes == [last];
    (is_last && node::text(module, op, "kind") == kind).then(|| node::operand(module, op, 0))?
}
