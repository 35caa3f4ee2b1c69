//! Rows of TensorFlow's names, whose images have channels last unless `data_format` says otherwise.
//!
//! Kernels take channels first: other images, and filters, are transposed on the way.

use tfrt_host::Error;
use tfrt_host::device::DeviceSlice;
use tfrt_tensor::op::{DeviceCall, OpCall, OpResults};

use super::{
    Collapsed, begin, broadcast_steps, dims, elements, float, queue, rearrange, row_major, scratch,
};
use crate::kernels::windows::{Conv, Pool, Windows};
use crate::kernels::{self, Number};

/// Returns whether channels come behind the batch.
fn has_channels_first(call: &DeviceCall<'_>) -> bool {
    call.attrs.text("data_format").starts_with("NC")
}

/// Returns batch, channels, height and width of images.
fn image_of(call: &DeviceCall<'_>, dims: &[usize]) -> Result<[usize; 4], Error> {
    match (dims, has_channels_first(call)) {
        (&[n, c, h, w], true) | (&[n, h, w, c], false) => Ok([n, c, h, w]),
        _ => Err(call.error(format_args!(
            "expected images of four dimensions, found {dims:?}"
        ))),
    }
}

/// Returns the numbers of an attribute for height and width, 1 if they are left out.
fn of_window(call: &DeviceCall<'_>, name: &str) -> Result<[usize; 2], Error> {
    let stated = call.attrs.ints(name).unwrap_or_default();
    let both = match (stated.len(), has_channels_first(call)) {
        (0, _) => return Ok([1, 1]),
        (1, _) => [stated[0], stated[0]],
        (2, _) => [stated[0], stated[1]],
        (4, true) => [stated[2], stated[3]],
        (4, false) => [stated[1], stated[2]],
        _ => [0, 0],
    };
    let [height, width] = both.map(|one| usize::try_from(one).ok().filter(|one| *one > 0));
    match (height, width) {
        (Some(height), Some(width)) => Ok([height, width]),
        _ => Err(call.error(format_args!(
            "expected {name} above 0 for height and width, found {:?}",
            &stated[..]
        ))),
    }
}

/// Returns the windows of a call, and the padding behind.
fn windows(
    call: &DeviceCall<'_>,
    from: [usize; 4],
    to: [usize; 4],
    window: [usize; 2],
) -> Result<(Windows, [usize; 3]), Error> {
    let strides = of_window(call, "strides")?;
    let dilations = match call.attrs.has("dilations") {
        true => of_window(call, "dilations")?,
        false => [1, 1],
    };
    let explicit = call.attrs.ints("explicit_paddings").unwrap_or_default();
    let (mut front, mut behind) = ([0; 2], [0; 2]);
    for at in 0..2 {
        let covered = (window[at] - 1) * dilations[at] + 1;
        let all =
            (to[at + 2].saturating_sub(1) * strides[at] + covered).saturating_sub(from[at + 2]);
        let padding = call.attrs.text("padding");
        if padding.eq_ignore_ascii_case("same") {
            (front[at], behind[at]) = (all / 2, all - all / 2);
        } else if padding.eq_ignore_ascii_case("explicit") {
            let begin = match (explicit.len(), has_channels_first(call)) {
                (8, true) => 4,
                (8, false) => 2,
                _ => 0,
            };
            let stated = |at: usize| explicit.get(begin + at).copied().unwrap_or(0);
            let sizes = [2 * at, 2 * at + 1].map(|at| usize::try_from(stated(at)).unwrap_or(0));
            [front[at], behind[at]] = sizes;
        }
    }
    let windows = Windows {
        image: [1, from[2], from[3]],
        result: [1, to[2], to[3]],
        window: [1, window[0], window[1]],
        strides: [1, strides[0], strides[1]],
        dilations: [1, dilations[0], dilations[1]],
        front: [0, front[0], front[1]],
    };
    Ok((windows, [0, behind[0], behind[1]]))
}

/// Returns images with channels first: themselves, or a copy.
fn channels_first(
    like: &DeviceSlice,
    x: DeviceSlice,
    [n, c, h, w]: [usize; 4],
    is_first: bool,
) -> Result<DeviceSlice, Error> {
    if is_first {
        return Ok(x);
    }
    let made = scratch(like, n * c * h * w, 4)?;
    rearrange(4, &made, &x, &[n, c, h, w], vec![h * w * c, 1, w * c, c])?;
    Ok(made)
}

/// Has images made with channels first, and writes them in the order that is asked for.
fn in_order(
    y: &DeviceSlice,
    [n, c, h, w]: [usize; 4],
    is_first: bool,
    make: impl FnOnce(&DeviceSlice) -> Result<(), Error>,
) -> Result<(), Error> {
    if is_first {
        return make(y);
    }
    let made = scratch(y, n * c * h * w, 4)?;
    make(&made)?;
    rearrange(4, y, &made, &[n, h, w, c], vec![c * h * w, w, 1, h * w])
}

pub(super) fn conv2d(call: &OpCall<'_>) -> Result<OpResults, Error> {
    let (call, out, done) = begin(call)?;
    let is_first = has_channels_first(&call);
    let from = image_of(&call, &dims(call.input(0)?))?;
    let to = image_of(&call, &dims(&out))?;
    let filter = dims(call.input(1)?);
    let &[height, width, depth, n_filters] = &filter[..] else {
        return Err(call.error(format_args!(
            "expected a filter of four dimensions, found {filter:?}"
        )));
    };
    let (windows, _) = windows(&call, from, to, [height, width])?;
    // A filter for a part of the channels is one of a group.
    let groups = match from[1].checked_div(depth) {
        Some(groups @ 1..) if groups * depth == from[1] => groups,
        _ => 1,
    };
    let conv = Conv {
        n_images: from[0],
        groups,
        c_in: from[1] / groups,
        c_out: to[1] / groups,
        is_transposed: false,
        windows,
    };
    let (y, x, f) = (
        elements(&out),
        elements(call.input(0)?),
        elements(call.input(1)?),
    );
    let work = move || {
        let x = channels_first(&y, x, from, is_first)?;
        let filters = scratch(&y, height * width * depth * n_filters, 4)?;
        let steps = vec![1, n_filters, width * depth * n_filters, depth * n_filters];
        rearrange(4, &filters, &f, &[n_filters, depth, height, width], steps)?;
        in_order(&y, to, is_first, |y| {
            kernels::windows::conv(y, &x, &filters, None, conv)
        })
    };
    Ok(queue(&call, out, done, work))
}

/// Runs `tf.MaxPool` and `tf.AvgPool`.
pub(super) fn pool(call: &OpCall<'_>) -> Result<OpResults, Error> {
    let (call, out, done) = begin(call)?;
    let is_first = has_channels_first(&call);
    let from = image_of(&call, &dims(call.input(0)?))?;
    let to = image_of(&call, &dims(&out))?;
    let window = of_window(&call, "ksize")?;
    let (windows, behind) = windows(&call, from, to, window)?;
    let pool = Pool {
        n_images: from[0] * from[1],
        counts: false,
        behind,
        exponent: 2.0,
        windows,
    };
    let name = match call.name {
        "tf.MaxPool" => "pool_max_f32",
        _ => "pool_mean_f32",
    };
    let (y, x) = (elements(&out), elements(call.input(0)?));
    let work = move || {
        let x = channels_first(&y, x, from, is_first)?;
        in_order(&y, to, is_first, |y| {
            kernels::windows::pool(name, y, &x, pool)
        })
    };
    Ok(queue(&call, out, done, work))
}

/// Adds a number to each channel: those along the last dimension, or, with channels first, along the second.
pub(super) fn bias_add(call: &OpCall<'_>) -> Result<OpResults, Error> {
    let (call, out, done) = begin(call)?;
    let to = dims(&out);
    let channels = dims(call.input(1)?);
    let mut own = vec![1; to.len()];
    let at = match has_channels_first(&call) && to.len() > 2 {
        true => 1,
        false => to.len().saturating_sub(1),
    };
    match (own.get_mut(at), &channels[..]) {
        (Some(extent), [n]) => *extent = *n,
        _ => {
            return Err(call.error(format_args!(
                "expected a bias of one dimension, found {channels:?}"
            )));
        }
    }
    let steps = [row_major(&to), broadcast_steps(&own, &to)];
    let (z, x, y) = (
        elements(&out),
        elements(call.input(0)?),
        elements(call.input(1)?),
    );
    let collapsed = Collapsed::new(&to, &steps);
    let work = move || {
        let operands = collapsed.padded::<4>(0).zip(collapsed.padded::<4>(1));
        let ((dims, x_steps), (_, y_steps)) =
            operands.ok_or_else(|| Error::internal("too many dimensions"))?;
        let operands = [(&x, x_steps), (&y, y_steps)];
        kernels::binary(("add", Number::F32), (&z, 4), operands, dims, None)
    };
    Ok(queue(&call, out, done, work))
}

/// Normalises channels. Behind the result come mean and variance, twice, and a tensor without elements.
pub(super) fn batch_norm(call: &OpCall<'_>) -> Result<OpResults, Error> {
    let n_results = call.n_results;
    let (call, out, done) = begin(call)?;
    let to = dims(&out);
    let n = out.metadata().n_elements()?;
    let product = |dims: &[usize]| dims.iter().product::<usize>();
    let (n_channels, inner) = match has_channels_first(&call) {
        true => (
            to.get(1).copied().unwrap_or(1),
            product(to.get(2..).unwrap_or_default()),
        ),
        false => (to.last().copied().unwrap_or(1), 1),
    };
    let epsilon = float(&call, "epsilon");
    let operand = |index| call.input(index).map(elements);
    let channels = [operand(1)?, operand(2)?, operand(3)?, operand(4)?];
    let moments = [call.input(3)?.clone(), call.input(4)?.clone()];
    let (y, x) = (elements(&out), operand(0)?);
    let work =
        move || kernels::batch_norm(&y, &x, channels.each_ref(), [n, n_channels, inner], epsilon);
    let mut results = queue(&call, out, done, work);
    let [mean, variance] = moments;
    let mut others = vec![mean.clone(), variance.clone(), mean, variance];
    if n_results > 5 {
        let (empty, done) = call.output(5)?;
        done.resolve(tfrt_host::Chain);
        others.push(empty);
    }
    others.truncate(n_results.saturating_sub(1));
    results.extend(call.gives(others));
    Ok(results)
}
