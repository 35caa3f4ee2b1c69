//! Rows of windows over images: convolutions, pools.

use tfrt_host::Error;
use tfrt_ops::KernelQuery;
use tfrt_tensor::op::{DeviceCall, OpCall, OpResults};

use super::{begin, dims, elements, float, queue};
use crate::kernels::windows::{Conv, Pool, Windows};
use crate::kernels::{self, Rows};

/// Spatial dimensions that kernels take.
const MOST_SPATIAL: usize = 3;

/// Returns the attribute that has a number for each spatial dimension, or a default for all.
fn list(call: &DeviceCall<'_>, name: &str, n: usize, default: usize) -> Result<Vec<usize>, Error> {
    let Some(stated) = call.attrs.ints(name).filter(|stated| !stated.is_empty()) else {
        return Ok(vec![default; n]);
    };
    let sizes: Result<Vec<usize>, _> = stated.iter().map(|one| usize::try_from(*one)).collect();
    match sizes {
        Ok(sizes) if sizes.len() == n => Ok(sizes),
        _ => Err(call.error(format_args!(
            "expected {n} {name} of 0 or more, found {stated:?}"
        ))),
    }
}

/// Padding in front of spatial dimensions and behind.
type Padding = Vec<(usize, usize)>;

/// The windows of a call over images of a rank, and their padding behind.
fn windows(
    call: &DeviceCall<'_>,
    from: &[usize],
    to: &[usize],
    window: &[usize],
    is_transposed: bool,
) -> Result<(Windows, [usize; MOST_SPATIAL]), Error> {
    let n = from.len().saturating_sub(2);
    let ends = n == 0 || n > MOST_SPATIAL || to.len() != n + 2 || window.len() != n;
    if ends {
        return Err(call.error(format_args!(
            "expected images of one to {MOST_SPATIAL} spatial dimensions, found {from:?}"
        )));
    }
    let strides = list(call, "strides", n, 1)?;
    let dilations = list(call, "dilations", n, 1)?;
    if strides
        .iter()
        .chain(&dilations)
        .chain(window)
        .any(|one| *one == 0)
    {
        return Err(call.error(format_args!(
            "expected windows, strides and dilations above 0, found {window:?}, {strides:?} and {dilations:?}"
        )));
    }
    let auto = call.attrs.text("auto_pad");
    let has_shape = is_transposed
        && call
            .attrs
            .ints("output_shape")
            .is_some_and(|it| !it.is_empty());
    let cut = |at: usize, is_odd_behind: bool| {
        let covered = (window[at] - 1)
            .saturating_mul(dilations[at])
            .saturating_add(1);
        // Of a transposed window the result is cut; else the image lacks elements.
        let (small, large) = match is_transposed {
            true => (from[at + 2], to[at + 2]),
            false => (to[at + 2], from[at + 2]),
        };
        let all = small
            .saturating_sub(1)
            .saturating_mul(strides[at])
            .saturating_add(covered);
        let all = all.saturating_sub(large);
        match is_odd_behind {
            true => (all / 2, all - all / 2),
            false => (all - all / 2, all / 2),
        }
    };
    let padding: Padding = match auto {
        "SAME_UPPER" => (0..n).map(|at| cut(at, true)).collect(),
        "SAME_LOWER" => (0..n).map(|at| cut(at, false)).collect(),
        _ if has_shape => (0..n).map(|at| cut(at, false)).collect(),
        "VALID" => vec![(0, 0); n],
        _ => {
            let stated = list(call, "pads", 2 * n, 0)?;
            (0..n).map(|at| (stated[at], stated[at + n])).collect()
        }
    };
    let padded = |list: &[usize], filler: usize| {
        let mut all = [filler; MOST_SPATIAL];
        all[MOST_SPATIAL - n..].copy_from_slice(list);
        all
    };
    let (front, behind): (Vec<usize>, Vec<usize>) = padding.into_iter().unzip();
    let windows = Windows {
        image: padded(&from[2..], 1),
        result: padded(&to[2..], 1),
        window: padded(window, 1),
        strides: padded(&strides, 1),
        dilations: padded(&dilations, 1),
        front: padded(&front, 0),
    };
    Ok((windows, padded(&behind, 0)))
}

pub(super) fn conv(call: &OpCall<'_>) -> Result<OpResults, Error> {
    let (call, out, done) = begin(call)?;
    let (from, filter, to) = (dims(call.input(0)?), dims(call.input(1)?), dims(&out));
    let is_transposed = call.attrs.flag("transposed");
    let groups = call.attrs.int("groups").unwrap_or(1);
    let groups = usize::try_from(groups).ok().filter(|groups| *groups > 0);
    let groups = groups.ok_or_else(|| call.error(format_args!("expected groups, found none")))?;
    let (windows, _) = windows(&call, &from, &to, &filter[2..], is_transposed)?;
    let n_seen = if is_transposed {
        filter[0]
    } else {
        filter[1].saturating_mul(groups)
    };
    if n_seen != from[1] || !from[1].is_multiple_of(groups) || !to[1].is_multiple_of(groups) {
        return Err(call.error(format_args!(
            "expected filters of {groups} groups for {} channels, found {filter:?}",
            from[1]
        )));
    }
    let bias = call.input(2).ok();
    if let Some(bias) = bias
        && dims(bias) != [to[1]]
    {
        return Err(call.error(format_args!(
            "expected a bias of {} channels, found {:?}",
            to[1],
            dims(bias)
        )));
    }
    let conv = Conv {
        n_images: from[0],
        groups,
        c_in: from[1] / groups,
        c_out: to[1] / groups,
        is_transposed,
        windows,
    };
    let bias = bias.map(elements);
    let (y, x, f) = (
        elements(&out),
        elements(call.input(0)?),
        elements(call.input(1)?),
    );
    let work = move || kernels::windows::conv(&y, &x, &f, bias.as_ref(), conv);
    Ok(queue(&call, out, done, work))
}

/// Returns whether the first result alone is taken of a pool: no kernel gives the places of maxima.
pub(super) fn takes_pool(query: &KernelQuery<'_>) -> bool {
    query.n_results.is_none_or(|n_results| n_results <= 1)
}

pub(super) fn pool(call: &OpCall<'_>) -> Result<OpResults, Error> {
    let (call, out, done) = begin(call)?;
    let (from, to) = (dims(call.input(0)?), dims(&out));
    let name = match call.attrs.text("kind") {
        "max" => "pool_max_f32",
        "mean" => "pool_mean_f32",
        "lp" => "pool_lp_f32",
        other => {
            return Err(call.error(format_args!("expected max, mean or lp, found {other}")));
        }
    };
    let exponent = match call.attrs.has("p") {
        true => float(&call, "p"),
        false => 2.0,
    };
    let (y, x) = (elements(&out), elements(call.input(0)?));
    if call.attrs.flag("whole") && name != "pool_lp_f32" {
        if from.len() < 3 {
            return Err(call.error(format_args!("expected images, found {from:?}")));
        }
        let n = from[2..].iter().product();
        let rows = Rows {
            n_rows: from[0] * from[1],
            n,
            inner: 1,
        };
        let (name, scale) = match name {
            "pool_max_f32" => ("reduce_max_f32", 1.0),
            _ => ("reduce_sum_f32", 1.0 / n as f32),
        };
        let work = move || kernels::reduce(name, &y, &x, rows, scale);
        return Ok(queue(&call, out, done, work));
    }
    let window: Vec<usize> = match call.attrs.flag("whole") {
        true => from.get(2..).unwrap_or_default().to_vec(),
        false => list(&call, "kernel_shape", from.len().saturating_sub(2), 1)?,
    };
    let (windows, behind) = windows(&call, &from, &to, &window, false)?;
    let pool = Pool {
        n_images: from[0] * from[1],
        counts: call.attrs.flag("count_include_pad"),
        behind,
        exponent,
        windows,
    };
    let work = move || kernels::windows::pool(name, &y, &x, pool);
    Ok(queue(&call, out, done, work))
}
