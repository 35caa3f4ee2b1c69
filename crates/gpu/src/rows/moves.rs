//! Rows that move elements, choose among them, or change their type. Extents and positions are read on the host.

use tfrt_host::{AnyAsyncValue, Chain, DType, Error, Promise, when_all};
use tfrt_ops::{AttrValue, KernelQuery};
use tfrt_tensor::DeviceTensor;
use tfrt_tensor::op::{DeviceCall, OpCall, OpResults};

use super::{
    Collapsed, axis_of, begin, broadcast_steps, dims, elements, queue, rearrange, row_major,
    size_of,
};
use crate::kernels::moves::{self, Gather, Pad, Places, Triangle};

/// Begins a call whose operands from the second on are read on the host.
fn begin_read<'a>(
    call: &OpCall<'a>,
    on_host: &[usize],
) -> Result<(DeviceCall<'a>, DeviceTensor, Promise<Chain>), Error> {
    let call = DeviceCall::with_host(call, on_host)?;
    let (out, done) = call.output(0)?;
    Ok((call, out, done))
}

/// Gives the elements of the first operand in other extents: nothing is moved.
pub(super) fn view(call: &OpCall<'_>) -> Result<OpResults, Error> {
    let call = DeviceCall::with_host(call, &[1])?;
    let x = call.input(0)?;
    let metadata = call
        .result(0)
        .ok_or_else(|| call.error(format_args!("expected extents that are known, found none")))?;
    let (device, ready) = (x.device().clone(), x.ready().clone());
    let y = DeviceTensor::new(device, metadata, x.elements().clone(), ready)?;
    Ok(call.gives([y]))
}

pub(super) fn broadcast(call: &OpCall<'_>) -> Result<OpResults, Error> {
    let (call, out, done) = begin_read(call, &[1])?;
    let (from, to) = (dims(call.input(0)?), dims(&out));
    let steps = broadcast_steps(&from, &to);
    let (y, x, size) = (elements(&out), elements(call.input(0)?), size_of(&out)?);
    Ok(queue(&call, out, done, move || {
        rearrange(size, &y, &x, &to, steps)
    }))
}

pub(super) fn tile(call: &OpCall<'_>) -> Result<OpResults, Error> {
    let (call, out, done) = begin_read(call, &[1])?;
    let (from, to) = (dims(call.input(0)?), dims(&out));
    let own = row_major(&from);
    // Each dimension is one of repetitions and one of elements.
    let (mut all, mut steps) = (Vec::new(), Vec::new());
    for (at, extent) in from.iter().enumerate() {
        all.extend([to[at].checked_div(*extent).unwrap_or(0), *extent]);
        steps.extend([0, own[at]]);
    }
    let (y, x, size) = (elements(&out), elements(call.input(0)?), size_of(&out)?);
    Ok(queue(&call, out, done, move || {
        rearrange(size, &y, &x, &all, steps)
    }))
}

/// Copies a block of rows: `n_rows` of `n` elements, from rows of one length to rows of another.
#[derive(Clone, Copy)]
struct Block {
    n_rows: usize,
    n: usize,
    /// Where the block begins in rows, and how long these are.
    from: (usize, usize),
    to: (usize, usize),
}

impl Block {
    fn copy(self, y: &DeviceTensor, x: &DeviceTensor) -> Result<(), Error> {
        let places = |(offset, pitch): (usize, usize)| {
            let pitch = isize::try_from(pitch).unwrap_or(isize::MAX);
            Places {
                offset,
                steps: [0, 0, 0, 0, pitch, 1],
            }
        };
        let dims = [1, 1, 1, 1, self.n_rows, self.n];
        let (to, from) = (places(self.to), places(self.from));
        moves::copy((y.elements(), to), (x.elements(), from), size_of(y)?, dims)
    }
}

pub(super) fn concat(call: &OpCall<'_>) -> Result<OpResults, Error> {
    let (call, out, done) = begin(call)?;
    let to = dims(&out);
    let axis = axis_of(&call, call.attrs.int("axis").unwrap_or(0), to.len())?;
    let n_rows = to[..axis].iter().product();
    let inner: usize = to[axis + 1..].iter().product();
    let pitch = to[axis] * inner;
    let mut blocks = Vec::new();
    let mut offset = 0;
    for part in call.inputs() {
        // Numbers become a list.
        let n = dims(part).get(axis).copied().unwrap_or(1) * inner;
        let block = Block {
            n_rows,
            n,
            from: (0, n),
            to: (offset, pitch),
        };
        blocks.push((block, part.clone()));
        offset += n;
    }
    let y = out.clone();
    let work = move || blocks.iter().try_for_each(|(block, x)| block.copy(&y, x));
    Ok(queue(&call, out, done, work))
}

pub(super) fn split(call: &OpCall<'_>) -> Result<OpResults, Error> {
    let n_results = call.n_results;
    let call = DeviceCall::with_host(call, &[1])?;
    let x = call.input(0)?.clone();
    let from = dims(&x);
    let axis = axis_of(&call, call.attrs.int("axis").unwrap_or(0), from.len())?;
    let n_rows = from[..axis].iter().product();
    let inner: usize = from[axis + 1..].iter().product();
    let pitch = from[axis] * inner;
    let mut offset = 0;
    let mut parts = Vec::new();
    for index in 0..n_results {
        let (out, done) = call.output(index)?;
        let n = dims(&out)[axis] * inner;
        let block = Block {
            n_rows,
            n,
            from: (offset, pitch),
            to: (0, n),
        };
        offset += n;
        if offset > pitch {
            return Err(call.error(format_args!(
                "expected parts of {} elements in all, found more",
                from[axis]
            )));
        }
        parts.push((block, out, done));
    }
    let outs: Vec<DeviceTensor> = parts.iter().map(|(_, out, _)| out.clone()).collect();
    let after: Vec<AnyAsyncValue> = call.after();
    when_all(&after).when_settled(move |all| {
        for (block, out, done) in parts {
            let made = match all.error() {
                Some(error) => Err(error.clone()),
                None => block.copy(&out, &x).map(|()| Chain),
            };
            // Rights to the memory end before readers begin.
            drop(out);
            done.complete(made);
        }
    });
    Ok(call.gives(outs))
}

/// Returns six extents, and offset and steps of the operand, for a result whose dimensions have steps that may be below 0.
fn six(
    call: &DeviceCall<'_>,
    to: &[usize],
    offset: usize,
    steps: &[isize],
) -> Result<([usize; 6], Places, Places), Error> {
    // Neighbours are joined where the operand lies as if they were one.
    let mut all: Vec<(usize, isize)> = Vec::new();
    for (dim, step) in to.iter().zip(steps) {
        if *dim == 1 {
            continue;
        }
        let joined = isize::try_from(*dim)
            .ok()
            .and_then(|dim| step.checked_mul(dim));
        match all.last_mut() {
            Some((outer, outer_step)) if Some(*outer_step) == joined => {
                *outer *= dim;
                *outer_step = *step;
            }
            _ => all.push((*dim, *step)),
        }
    }
    let Some(missing) = 6_usize.checked_sub(all.len()) else {
        return Err(Error::unimplemented(format!(
            "{}: no kernel on GPUs takes more than six dimensions, found {to:?}",
            call.name
        )));
    };
    let (mut dims, mut from) = ([1; 6], Places::default());
    for (at, (dim, step)) in all.into_iter().enumerate() {
        dims[missing + at] = dim;
        from.steps[missing + at] = step;
    }
    from.offset = offset;
    let plain = row_major(&dims);
    let mut own = Places::default();
    for (step, plain) in own.steps.iter_mut().zip(plain) {
        *step = isize::try_from(plain).unwrap_or(isize::MAX);
    }
    Ok((dims, own, from))
}

pub(super) fn slice(call: &OpCall<'_>) -> Result<OpResults, Error> {
    let (call, out, done) = begin_read(call, &[1, 2, 3, 4])?;
    let (from, to) = (dims(call.input(0)?), dims(&out));
    let own = row_major(&from);
    let starts = call.numbers(1).unwrap_or_default();
    let mut steps: Vec<isize> = own.iter().map(|step| signed(*step)).collect();
    let mut offset = 0;
    for (index, start) in starts.iter().enumerate() {
        let axis = match call.numbers(3) {
            Some(axes) => axis_of(&call, axes.get(index).copied().unwrap_or(0), from.len())?,
            None => index,
        };
        let step = call.numbers(4).and_then(|steps| steps.get(index));
        let step = step.copied().unwrap_or(1);
        let size = i64::try_from(from[axis]).unwrap_or(i64::MAX);
        let start = if *start < 0 {
            start.saturating_add(size)
        } else {
            *start
        };
        let most = if step < 0 { size - 1 } else { size };
        let first = usize::try_from(start.clamp(0, most.max(0))).unwrap_or(0);
        // An extent of 1 takes no step, however large it is.
        let step = if to[axis] > 1 { step } else { 1 };
        offset += first * own[axis];
        steps[axis] = steps[axis].saturating_mul(isize::try_from(step).unwrap_or(isize::MAX));
    }
    copied(&call, out, done, offset, &steps)
}

fn signed(step: usize) -> isize {
    isize::try_from(step).unwrap_or(isize::MAX)
}

/// Copies elements of the first operand from an offset on by steps.
fn copied(
    call: &DeviceCall<'_>,
    out: DeviceTensor,
    done: Promise<Chain>,
    offset: usize,
    steps: &[isize],
) -> Result<OpResults, Error> {
    let to = dims(&out);
    let (dims, own, from) = six(call, &to, offset, steps)?;
    let (y, x, size) = (elements(&out), elements(call.input(0)?), size_of(&out)?);
    let work = move || moves::copy((&y, own), (&x, from), size, dims);
    Ok(queue(call, out, done, work))
}

pub(super) fn reverse(call: &OpCall<'_>) -> Result<OpResults, Error> {
    let (call, out, done) = begin(call)?;
    let from = dims(&out);
    let mut steps: Vec<isize> = row_major(&from).into_iter().map(signed).collect();
    let mut offset = 0;
    for axis in &*call.attrs.ints("axes").unwrap_or_default() {
        let axis = axis_of(&call, *axis, from.len())?;
        if steps[axis] > 0 {
            offset += steps[axis].unsigned_abs() * from[axis].saturating_sub(1);
            steps[axis] = -steps[axis];
        }
    }
    copied(&call, out, done, offset, &steps)
}

/// Returns how the kernel calls a mode of padding; `None` if it has no such mode.
fn pad_mode(name: &str) -> Option<u32> {
    match name {
        "constant" | "" => Some(0),
        "edge" => Some(1),
        "reflect" => Some(2),
        "wrap" => Some(3),
        _ => None,
    }
}

/// Returns whether there is a kernel for the mode of a padding.
pub(super) fn takes_pad(query: &KernelQuery<'_>) -> bool {
    pad_mode(query.attrs.text("mode")).is_some()
}

pub(super) fn pad(call: &OpCall<'_>) -> Result<OpResults, Error> {
    let (call, out, done) = begin_read(call, &[1, 3])?;
    let stated = call.attrs.text("mode");
    let mode = pad_mode(stated).ok_or_else(|| {
        Error::unimplemented(format!("pad: no kernel on GPUs for the mode {stated}"))
    })?;
    let (from, to) = (dims(call.input(0)?), dims(&out));
    let pads = call.numbers(1).unwrap_or_default();
    let mut front = vec![0; from.len()];
    for (index, pad) in pads[..pads.len() / 2].iter().enumerate() {
        let axis = match call.numbers(3) {
            Some(axes) => axis_of(&call, axes.get(index).copied().unwrap_or(0), from.len())?,
            None => index,
        };
        front[axis] = i32::try_from(*pad)
            .map_err(|_| call.error(format_args!("expected small pads, found {pad}")))?;
    }
    // Inner dimensions that nothing is added to are one with those around them.
    let mut all: Vec<(usize, usize, i32)> = Vec::new();
    for at in 0..from.len() {
        let is_whole = front[at] == 0 && from[at] == to[at];
        match all.last_mut() {
            Some((own, other, 0)) if is_whole && own == other => {
                *own *= from[at];
                *other = *own;
            }
            _ => all.push((from[at], to[at], front[at])),
        }
    }
    let Some(missing) = 6_usize.checked_sub(all.len()) else {
        return Err(Error::unimplemented(format!(
            "{}: no kernel on GPUs takes more than six dimensions, found {from:?}",
            call.name
        )));
    };
    let mut pad = Pad {
        mode,
        from: [1; 6],
        to: [1; 6],
        front: [0; 6],
    };
    for (at, (own, other, front)) in all.into_iter().enumerate() {
        let at = at + missing;
        (pad.from[at], pad.to[at], pad.front[at]) = (own, other, front);
    }
    let value = call.input(2).ok().map(elements);
    let (y, x, size) = (elements(&out), elements(call.input(0)?), size_of(&out)?);
    let work = move || moves::pad(size, &y, &x, value.as_ref(), pad);
    Ok(queue(&call, out, done, work))
}

/// Returns whether the indices of a gather are integers.
pub(super) fn takes_gather(query: &KernelQuery<'_>) -> bool {
    let indices = query.types.get(1).copied().flatten();
    indices.is_none_or(|dtype| matches!(dtype, DType::I32 | DType::I64))
}

/// Gathers slices; where there is none of an index, elements are 0.
pub(super) fn gather(call: &OpCall<'_>) -> Result<OpResults, Error> {
    let (call, out, done) = begin(call)?;
    let from = dims(call.input(0)?);
    let axis = axis_of(&call, call.attrs.int("axis").unwrap_or(0), from.len())?;
    let indices = call.input(1)?;
    let gather = Gather {
        outer: from[..axis].iter().product(),
        size: from[axis],
        inner: from[axis + 1..].iter().product(),
        n_picked: indices.metadata().n_elements()?,
        bytes: [size_of(&out)?, size_of(indices)?],
    };
    let (y, x, k) = (elements(&out), elements(call.input(0)?), elements(indices));
    let work = move || moves::gather(&y, &x, &k, gather);
    Ok(queue(&call, out, done, work))
}

/// Returns whether elements are chosen by truth values.
pub(super) fn takes_select(query: &KernelQuery<'_>) -> bool {
    let condition = query.types.first().copied().flatten();
    condition.is_none_or(|dtype| dtype == DType::I1)
}

pub(super) fn select(call: &OpCall<'_>) -> Result<OpResults, Error> {
    let (call, out, done) = begin(call)?;
    let to = dims(&out);
    let size = size_of(&out)?;
    let of = |index| call.input(index).map(|it| broadcast_steps(&dims(it), &to));
    let steps = [of(0)?, of(1)?, of(2)?];
    let [c, x, y] = [0, 1, 2].map(|index| call.input(index).map(elements));
    let (c, x, y, z) = (c?, x?, y?, elements(&out));
    let collapsed = Collapsed::new(&to, &steps);
    let [c_own, x_own, y_own] = [0, 1, 2].map(|at| collapsed.padded::<6>(at));
    let (Some((dims, c_own)), Some((_, x_own)), Some((_, y_own))) = (c_own, x_own, y_own) else {
        return Err(Error::unimplemented(format!(
            "{}: no kernel on GPUs takes more than six dimensions, found {to:?}",
            call.name
        )));
    };
    let work = move || moves::select((&z, size), [&c, &x, &y], dims, [c_own, x_own, y_own]);
    Ok(queue(&call, out, done, work))
}

/// Keeps a triangle of each matrix.
pub(super) fn triangle(call: &OpCall<'_>) -> Result<OpResults, Error> {
    let (call, out, done) = begin_read(call, &[1])?;
    let to = dims(&out);
    let &[.., n_rows, n_columns] = &to[..] else {
        return Err(call.error(format_args!("expected matrices, found {to:?}")));
    };
    let diagonal = call.numbers(1).and_then(|list| list.first().copied());
    let triangle = Triangle {
        n: out.metadata().n_elements()?,
        n_rows,
        n_columns,
        diagonal: diagonal.unwrap_or(0),
        is_upper: call.attrs.flag("upper"),
    };
    let (y, x, size) = (elements(&out), elements(call.input(0)?), size_of(&out)?);
    let work = move || moves::triangle(size, &y, &x, triangle);
    Ok(queue(&call, out, done, work))
}

/// Moves blocks of places to channels, or back.
pub(super) fn blocks(call: &OpCall<'_>) -> Result<OpResults, Error> {
    let (call, out, done) = begin(call)?;
    let block = call.attrs.int("blocksize").unwrap_or(1);
    let block = usize::try_from(block).ok().filter(|block| *block > 0);
    let block = block.ok_or_else(|| call.error(format_args!("expected a blocksize above 0")))?;
    let (from, to) = (dims(call.input(0)?), dims(&out));
    let (&[n, c, h, w], &[_, to_c, to_h, to_w]) = (&from[..], &to[..]) else {
        return Err(call.error(format_args!(
            "expected images of four dimensions, found {from:?}"
        )));
    };
    let own = row_major(&from);
    let (all, steps) = if call.name == "onnx.SpaceToDepth" {
        // The result is [n, block, block, c, h / block, w / block].
        let steps = vec![own[0], w, 1, own[1], block * w, block];
        (vec![n, block, block, c, to_h, to_w], steps)
    } else {
        // The result is [n, c / block / block, h, block, w, block].
        let (down, right, each) = match call.attrs.text("mode") {
            "CRD" => (block * own[1], own[1], block * block * own[1]),
            _ => (block * to_c * own[1], to_c * own[1], own[1]),
        };
        let steps = vec![own[0], each, own[2], down, 1, right];
        (vec![n, to_c, h, block, w, block], steps)
    };
    if all.iter().product::<usize>() != to_c * to_h * to_w * n {
        return Err(call.error(format_args!(
            "{from:?} are not blocks of {block} by {block}"
        )));
    }
    let (y, x, size) = (elements(&out), elements(call.input(0)?), size_of(&out)?);
    let work = move || rearrange(size, &y, &x, &all, steps);
    Ok(queue(&call, out, done, work))
}

/// Types that are cast, and their names in kernels.
const CASTS: [(DType, &str); 9] = [
    (DType::F16, "f16"),
    (DType::Bf16, "bf16"),
    (DType::F32, "f32"),
    (DType::F64, "f64"),
    (DType::I1, "i1"),
    (DType::Ui8, "u8"),
    (DType::I8, "i8"),
    (DType::I32, "i32"),
    (DType::I64, "i64"),
];

/// Returns the name of the kernel that casts elements, which is empty where they stay as they are; `None` if there is no
/// kernel.
fn cast_name(from: DType, to: DType) -> Option<String> {
    if from == to {
        return Some(String::new());
    }
    let name = |dtype| CASTS.iter().find(|(own, _)| *own == dtype);
    let ((_, from), (_, to)) = (name(from)?, name(to)?);
    Some(format!("cast_{from}_{to}"))
}

/// Returns whether there is a kernel that casts from the operand's type to the one that is stated.
pub(super) fn takes_cast(query: &KernelQuery<'_>) -> bool {
    let Some(AttrValue::Type(to)) = query.attrs.get("to") else {
        return false;
    };
    let from = query.types.first().copied().flatten();
    from.is_none_or(|from| cast_name(from, to).is_some())
}

pub(super) fn cast(call: &OpCall<'_>) -> Result<OpResults, Error> {
    let operand = DeviceCall::new(call)?;
    let from = operand.input(0)?.metadata().dtype;
    let to = match call.attrs.get("to") {
        Some(AttrValue::Type(to)) => to,
        _ => return Err(operand.error(format_args!("expected a type as the attribute 'to'"))),
    };
    if from == to {
        return view(call);
    }
    let (call, out, done) = begin(call)?;
    let x = call.input(0)?.clone();
    let made = out.clone();
    Ok(queue(&call, out, done, move || cast_elements(&made, &x)))
}

/// Queues the change of a tensor's elements to the type of another of its shape.
pub(super) fn cast_elements(y: &DeviceTensor, x: &DeviceTensor) -> Result<(), Error> {
    let (from, to) = (x.metadata().dtype, y.metadata().dtype);
    let name = cast_name(from, to).ok_or_else(|| {
        Error::unimplemented(format!("cast: no kernel on GPUs from {from} to {to}"))
    })?;
    let n = y.metadata().n_elements()?;
    let sizes = [size_of(y)?, size_of(x)?];
    moves::cast(&name, y.elements(), x.elements(), n, sizes)
}
