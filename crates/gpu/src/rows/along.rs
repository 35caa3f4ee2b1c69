//! Rows along axes: reductions, softmax, normalisation.

use tfrt_host::Error;
use tfrt_host::device::DeviceSlice;
use tfrt_ops::KernelQuery;
use tfrt_tensor::op::{DeviceCall, OpCall, OpResults};

use super::{axis_of, begin, dims, elements, float, queue, rearrange, row_major, scratch};
use crate::kernels::{self, Norm, Number, Rows};

/// A reduction: what is done with each element first, how they are joined, and what is done with the sum.
struct Reduction {
    before: Option<&'static str>,
    join: &'static str,
    after: Option<&'static str>,
    is_mean: bool,
}

/// Returns whether there is a kernel for the kind of a reduction.
pub(super) fn takes_reduce(query: &KernelQuery<'_>) -> bool {
    reduction(query.attrs.text("kind")).is_some()
}

/// Returns whether a normalisation is one of inference, of which the first result alone is taken.
pub(super) fn takes_norm(query: &KernelQuery<'_>) -> bool {
    query.n_results.is_none_or(|n_results| n_results <= 1) && !query.attrs.flag("training")
}

/// Returns how elements are reduced; `None` if there is no kernel for the kind.
fn reduction(kind: &str) -> Option<Reduction> {
    let of = |before, join, after| Reduction {
        before,
        join,
        after,
        is_mean: false,
    };
    Some(match kind {
        "sum" => of(None, "reduce_sum_f32", None),
        "mean" => Reduction {
            is_mean: true,
            ..of(None, "reduce_sum_f32", None)
        },
        "prod" => of(None, "reduce_prod_f32", None),
        "max" => of(None, "reduce_max_f32", None),
        "min" => of(None, "reduce_min_f32", None),
        "l1" => of(Some("abs"), "reduce_sum_f32", None),
        "l2" => of(Some("square"), "reduce_sum_f32", Some("sqrt")),
        "sum_square" => of(Some("square"), "reduce_sum_f32", None),
        "log_sum" => of(None, "reduce_sum_f32", Some("log")),
        "log_sum_exp" => of(None, "reduce_log_sum_exp_f32", None),
        _ => return None,
    })
}

/// Makes the error that a kernel was called for a kind that it does not accept.
#[cold]
fn unexpected(call: &DeviceCall<'_>, kind: &str) -> Error {
    Error::unimplemented(format!(
        "{}: no kernel on GPUs for the kind {kind}",
        call.name
    ))
}

pub(super) fn reduce(call: &OpCall<'_>) -> Result<OpResults, Error> {
    let call = DeviceCall::with_host(call, &[1])?;
    let (out, done) = call.output(0)?;
    let kind = call.attrs.text("kind");
    let how = reduction(kind).ok_or_else(|| unexpected(&call, kind))?;
    let from = dims(call.input(0)?);
    let stated = match call.numbers(1) {
        Some(axes) => axes.to_vec(),
        None => call.attrs.ints("axes").unwrap_or_default().to_vec(),
    };
    let mut is_reduced = vec![stated.is_empty() && !call.attrs.flag("none_if_empty"); from.len()];
    for axis in &stated {
        is_reduced[axis_of(&call, *axis, from.len())?] = true;
    }
    let n: usize = (0..from.len())
        .filter(|at| is_reduced[*at])
        .map(|at| from[at])
        .product();
    let n_rows = out.metadata().n_elements()?;
    let (y, x) = (elements(&out), elements(call.input(0)?));
    let work = move || {
        let (x, inner) = together(&y, x, &from, &is_reduced)?;
        let x = match how.before {
            None => x,
            Some(before) => {
                let made = scratch(&y, n * n_rows, 4)?;
                kernels::unary((before, Number::F32), &made, &x, n * n_rows, None)?;
                made
            }
        };
        let scale = if how.is_mean { 1.0 / n as f32 } else { 1.0 };
        let rows = Rows { n_rows, n, inner };
        let Some(after) = how.after else {
            return kernels::reduce(how.join, &y, &x, rows, scale);
        };
        let sums = scratch(&y, n_rows, 4)?;
        kernels::reduce(how.join, &sums, &x, rows, scale)?;
        kernels::unary((after, Number::F32), &y, &sums, n_rows, None)
    };
    Ok(queue(&call, out, done, work))
}

/// Returns elements in an order in which the axes that are reduced lie side by side, and how far apart elements along them
/// are.
fn together(
    like: &DeviceSlice,
    x: DeviceSlice,
    from: &[usize],
    is_reduced: &[bool],
) -> Result<(DeviceSlice, usize), Error> {
    let real = |at: &usize| from[*at] != 1;
    let reduced: Vec<usize> = (0..from.len())
        .filter(|at| is_reduced[*at])
        .filter(real)
        .collect();
    let kept: Vec<usize> = (0..from.len())
        .filter(|at| !is_reduced[*at])
        .filter(real)
        .collect();
    let (first, last) = match (reduced.first(), reduced.last()) {
        (Some(first), Some(last)) => (*first, *last),
        _ => return Ok((x, 1)),
    };
    if !kept.iter().any(|at| (first..last).contains(at)) {
        let inner = kept
            .iter()
            .filter(|at| **at > last)
            .map(|at| from[*at])
            .product();
        return Ok((x, inner));
    }
    let own = row_major(from);
    let order: Vec<usize> = kept.iter().chain(&reduced).copied().collect();
    let to: Vec<usize> = order.iter().map(|at| from[*at]).collect();
    let moved = scratch(like, to.iter().product(), 4)?;
    let steps = order.iter().map(|at| own[*at]).collect();
    rearrange(4, &moved, &x, &to, steps)?;
    Ok((moved, 1))
}

pub(super) fn softmax(call: &OpCall<'_>) -> Result<OpResults, Error> {
    let (call, out, done) = begin(call)?;
    let mut from = dims(&out);
    if from.is_empty() {
        from.push(1);
    }
    let axis = call.attrs.int("axis").unwrap_or(-1);
    // Forms of ONNX before version 13 may state the axis behind the last.
    let is_behind = usize::try_from(axis) == Ok(from.len());
    let axis = if is_behind {
        None
    } else {
        Some(axis_of(&call, axis, from.len())?)
    };
    let n = axis.map_or(1, |axis| from[axis]);
    let inner = axis.map_or(1, |axis| from[axis + 1..].iter().product());
    let n_rows = from.iter().product::<usize>().checked_div(n).unwrap_or(0);
    let is_log = call.attrs.flag("log");
    let (y, x) = (elements(&out), elements(call.input(0)?));
    let work = move || kernels::softmax(&y, &x, Rows { n_rows, n, inner }, is_log);
    Ok(queue(&call, out, done, work))
}

pub(super) fn norm(call: &OpCall<'_>) -> Result<OpResults, Error> {
    let (call, out, done) = begin(call)?;
    let from = dims(&out);
    let kind = call.attrs.text("kind").to_owned();
    let epsilon = float(&call, "epsilon");
    let n_all = out.metadata().n_elements()?;
    let product = |dims: &[usize]| dims.iter().product::<usize>();
    let operand = |index: usize| call.input(index).ok().map(elements);
    let (y, x) = (elements(&out), elements(call.input(0)?));
    let (n_channels, inner) = match from.len() {
        0 | 1 => (1, 1),
        _ => (from[1], product(&from[2..])),
    };
    let groups = |n_groups: usize| {
        if n_groups == 0 || !n_channels.is_multiple_of(n_groups) {
            return Err(call.error(format_args!(
                "{n_channels} channels are not {n_groups} groups"
            )));
        }
        let each = n_channels / n_groups;
        let n_rows = from.first().copied().unwrap_or(1) * n_groups;
        Ok(Norm {
            n_rows,
            n: each * inner,
            n_groups,
            each,
            inner,
            is_centred: true,
            epsilon,
        })
    };
    let norm = match &*kind {
        "layer" | "rms" => {
            let axis = axis_of(&call, call.attrs.int("axis").unwrap_or(-1), from.len())?;
            let n = product(&from[axis..]);
            let n_rows = product(&from[..axis]);
            Norm {
                n_rows,
                n,
                n_groups: 1,
                each: n,
                inner: 1,
                is_centred: kind == "layer",
                epsilon,
            }
        }
        "group" => groups(usize::try_from(call.attrs.int("groups").unwrap_or(1)).unwrap_or(0))?,
        "instance" => groups(n_channels)?,
        "batch" => {
            let channels = [
                call.input(1)?,
                call.input(2)?,
                call.input(3)?,
                call.input(4)?,
            ]
            .map(elements);
            let work = move || {
                kernels::batch_norm(
                    &y,
                    &x,
                    channels.each_ref(),
                    [n_all, n_channels, inner],
                    epsilon,
                )
            };
            return Ok(queue(&call, out, done, work));
        }
        other => return Err(call.error(format_args!("unknown kind {other}"))),
    };
    let (scale, bias) = (operand(1), operand(2));
    let expected = 4 * norm.n_groups * norm.each;
    for slice in [&scale, &bias].into_iter().flatten() {
        if slice.len_bytes() != expected {
            let found = slice.len_bytes() / 4;
            return Err(Error::unimplemented(format!(
                "norm: no kernel on GPUs takes {found} numbers for {} channels",
                expected / 4
            )));
        }
    }
    let work = move || kernels::norm(&y, &x, [scale.as_ref(), bias.as_ref()], norm);
    Ok(queue(&call, out, done, work))
}
