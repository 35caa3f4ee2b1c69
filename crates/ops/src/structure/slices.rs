//! Inference of slices and parts along axes.

use crate::dim::Dim;
use crate::fact::{Fact, unknown_dims};
use crate::infer::{InferCall, InferError, StaticInts, axis_of};

pub(super) fn slice(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let x = call.input(0).clone();
    let Some(dims) = &x.dims else {
        call.give(0, x.dtype, None);
        return Ok(());
    };
    let [starts, ends] = [1, 2].map(|at| call.input(at).values.clone());
    let list = |at: usize, n: usize, default: fn(usize) -> i64| match call.has(at) {
        true => call.input(at).numbers(),
        false => Some((0..n).map(default).collect()),
    };
    let n = starts.as_ref().or(ends.as_ref()).map_or(0, Vec::len);
    #[expect(clippy::cast_possible_wrap, reason = "tensors have few dimensions")]
    let axes = list(3, n, |at| at as i64);
    let steps = list(4, n, |_| 1);
    let mut sizes = dims.clone();
    let (Some(starts), Some(ends), Some(axes), Some(steps)) = (starts, ends, axes.clone(), steps)
    else {
        // Along which axes may be known nevertheless.
        for (at, size) in sizes.iter_mut().enumerate() {
            let is_cut = axes
                .as_ref()
                .filter(|axes| !axes.is_empty())
                .is_none_or(|axes| {
                    axes.iter()
                        .any(|axis| axis_of(*axis, dims.len()) == Some(at))
                });
            if is_cut {
                *size = Dim::Unknown;
            }
        }
        call.give(0, x.dtype, Some(sizes));
        return Ok(());
    };
    if [ends.len(), axes.len(), steps.len()] != [n; 3] {
        return Err(call.error(format_args!(
            "expected {n} ends, axes and steps, found {}, {} and {}",
            ends.len(),
            axes.len(),
            steps.len()
        )));
    }
    let mut values = x.values.clone();
    for (index, axis) in axes.iter().enumerate() {
        let at = call.axis(*axis, dims.len())?;
        let (start, end, step) = (&starts[index], &ends[index], steps[index]);
        if step == 0 {
            return Err(call.error("expected steps that are not 0, found 0"));
        }
        let numbers = start.value().zip(end.value());
        sizes[at] = sliced(&sizes[at], start, end, step);
        values = values.filter(|_| dims.len() == 1).and_then(|all| {
            let (start, end) = numbers?;
            let places = places(i64::try_from(all.len()).ok()?, start, end, step)?;
            Some(
                places
                    .filter_map(|place| all.get(usize::try_from(place).ok()?).cloned())
                    .collect(),
            )
        });
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

/// Returns the number of elements of a slice along a dimension.
fn sliced(extent: &Dim, start: &Dim, end: &Dim, step: i64) -> Dim {
    if let (Some(size), Some(start), Some(end)) = (extent.value(), start.value(), end.value()) {
        return n_places(size, start, end, step).map_or(Dim::Unknown, Dim::Known);
    }
    // Whole, whatever its size is.
    let is_open = end.value().is_some_and(|end| end >= i64::from(i32::MAX)) || end == extent;
    match (start.value(), step) {
        (Some(0), 1) if is_open => extent.clone(),
        // Counted from the end as far as there are so many: what is smaller than asked for is not known.
        _ => Dim::Unknown,
    }
}

/// Returns the first position of a slice and its number of positions.
fn bounds(size: i64, start: i64, end: i64, step: i64) -> Option<(i64, i64)> {
    if size < 0 {
        return None;
    }
    let from_end = |at: i64| if at < 0 { at.saturating_add(size) } else { at };
    let (first, last) = match step {
        0 => return None,
        1.. => (from_end(start).clamp(0, size), from_end(end).clamp(0, size)),
        // There is nothing to begin with.
        _ if size == 0 => (0, 0),
        _ => (
            from_end(start).clamp(0, size - 1),
            from_end(end).clamp(-1, size - 1),
        ),
    };
    let (distance, stride) = if step > 0 {
        (last - first, step)
    } else {
        (first - last, step.checked_neg()?)
    };
    Some((first, distance.max(0).checked_add(stride - 1)? / stride))
}

fn n_places(size: i64, start: i64, end: i64, step: i64) -> Option<i64> {
    bounds(size, start, end, step).map(|(_, n)| n)
}

/// Returns the positions of a slice.
fn places(size: i64, start: i64, end: i64, step: i64) -> Option<impl Iterator<Item = i64>> {
    let (first, n) = bounds(size, start, end, step)?;
    Some((0..n).map(move |index| first.saturating_add(index.saturating_mul(step))))
}

pub(super) fn split(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let x = call.input(0).clone();
    let n = call.out.len();
    let Some(dims) = &x.dims else {
        (0..n).for_each(|index| call.give(index, x.dtype, None));
        return Ok(());
    };
    let at = call.axis(call.attrs.int("axis").unwrap_or(0), dims.len())?;
    let whole = &dims[at];
    let sizes: Vec<Dim> = match call.ints(1, "sizes") {
        StaticInts::Known(sizes) if sizes.len() == n => sizes.into_iter().map(Dim::Known).collect(),
        StaticInts::Known(sizes) => {
            let found = sizes.len();
            return Err(call.error(format_args!("expected sizes of {n} parts, found {found}")));
        }
        StaticInts::Unknown => vec![Dim::Unknown; n],
        StaticInts::Absent => parts(
            whole,
            call.attrs
                .int("n")
                .and_then(|n| usize::try_from(n).ok())
                .unwrap_or(n),
            n,
        ),
    };
    for (index, size) in sizes.into_iter().enumerate() {
        let mut dims = dims.clone();
        dims[at] = size;
        call.give(index, x.dtype, Some(dims));
    }
    Ok(())
}

/// Returns the extents of `n` parts that are all alike but for the last, which may be smaller.
fn parts(whole: &Dim, all: usize, n: usize) -> Vec<Dim> {
    let count = i64::try_from(all).unwrap_or(i64::MAX).max(1);
    match whole.value() {
        Some(size) if size < 0 => vec![Dim::Unknown; n],
        Some(size) => {
            let part = size.div_euclid(count) + i64::from(size.rem_euclid(count) != 0);
            let of = |index: usize| {
                let before = i64::try_from(index)
                    .unwrap_or(i64::MAX)
                    .saturating_mul(part);
                Dim::Known((size - before).clamp(0, part))
            };
            (0..n).map(of).collect()
        }
        None => vec![whole.exact_div(&Dim::Known(count)); n],
    }
}

pub(super) fn update(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let (x, update, starts) = (call.input(0), call.input(1), call.input(2));
    let rank = x.rank().or(update.rank());
    if let (Some(dims), Some(part)) = (&x.dims, &update.dims) {
        if dims.len() != part.len() {
            let (rank, found) = (dims.len(), part.len());
            return Err(call.error(format_args!(
                "expected an update of {rank} dimensions, found {found}"
            )));
        }
        for (dim, own) in dims.iter().zip(part) {
            if let (Some(most), Some(own)) = (dim.value(), own.value())
                && own > most
            {
                let message = format_args!("expected an update of at most {most}, found {own}");
                return Err(call.error(message));
            }
        }
    }
    if let (Some(rank), Some([Dim::Known(n)])) = (rank, starts.dims.as_deref())
        && usize::try_from(*n) != Ok(rank)
    {
        return Err(call.error(format_args!(
            "expected a start for each of {rank} dimensions, found {n}"
        )));
    }
    let dims = x.dims.clone().or_else(|| rank.map(unknown_dims));
    call.give(0, x.dtype, dims);
    Ok(())
}

/// The room is the cache's, or the total if that is more; extents that the cache does not state are the update's.
pub(super) fn update_cache(call: &mut InferCall<'_>) -> Result<(), InferError> {
    call.expect_rank(0, 4)?;
    call.expect_rank(1, 4)?;
    let (x, update) = (call.input(0).clone(), call.input(1).clone());
    let mut dims = x.dims.clone().unwrap_or_else(|| unknown_dims(4));
    for (at, dim) in dims.iter_mut().enumerate() {
        let updated = update.dim(at);
        match (dim.value(), updated.value()) {
            _ if at == 2 => *dim = Dim::Unknown,
            (Some(own), Some(found)) if own != found => {
                return Err(call.error(format_args!(
                    "expected an update of {own} in dimension {at}, found {found}"
                )));
            }
            (None, Some(_)) => *dim = updated.clone(),
            (None, None) if dim.is_unknown() => *dim = updated.clone(),
            _ => {}
        }
    }
    call.give(0, x.dtype, Some(dims.clone()));
    call.give(1, x.dtype, Some(dims));
    Ok(())
}

pub(super) fn reverse(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let x = call.input(0);
    let axes = call.attrs.ints("axes").unwrap_or_default();
    let mut y = Fact::new(x.dtype, x.dims.clone());
    if let Some(dims) = &x.dims {
        call.axes(&axes, dims.len())?;
        y.values = x.values.clone().filter(|_| dims.len() == 1);
        if !axes.is_empty() {
            y.values.iter_mut().for_each(|values| values.reverse());
        }
    }
    call.set(0, y);
    Ok(())
}
