//! Fourier transforms, window functions, and the mel scale.

use std::f64::consts::PI;

use tfrt_host::Error;
use tfrt_ops::names::onnx;
use tfrt_tensor::math::fourier::{Pair, scratch_bytes, transform};
use tfrt_tensor::math::number::Real;
use tfrt_tensor::{DType, DenseHostTensor};

use super::{NodeCall, Operations, Outputs, with_real};

pub(super) const OPERATIONS: &Operations = &[
    ("onnx.BlackmanWindow", |node| {
        window(node, |turn| {
            0.42 - 0.5 * turn.cos() + 0.08 * (2.0 * turn).cos()
        })
    }),
    ("onnx.DFT", fourier),
    ("onnx.HammingWindow", |node| {
        window(node, |turn| 25.0 / 46.0 - 21.0 / 46.0 * turn.cos())
    }),
    ("onnx.HannWindow", |node| {
        window(node, |turn| 0.5 - 0.5 * turn.cos())
    }),
    ("onnx.MelWeightMatrix", mel),
    ("onnx.STFT", short_time),
];

/// Makes a tensor of numbers, of some type.
fn typed(
    node: &NodeCall<'_>,
    dtype: DType,
    extents: &[usize],
    numbers: &[f64],
) -> Result<DenseHostTensor, Error> {
    with_real!(dtype, T => {
        let narrow: Vec<T> = numbers.iter().map(|one| T::from_f64(*one)).collect();
        node.tensor_of(extents, &narrow)
    }, else Err(node.error(format_args!("there are no numbers of {dtype}"))))
}

fn asked(node: &NodeCall<'_>) -> Result<DType, Error> {
    let number = node.attributes.integer_or("output_datatype", 1)?;
    onnx::dtype(number).ok_or_else(|| {
        node.attributes.error(
            "output_datatype",
            format_args!("is no known type: {number}"),
        )
    })
}

/// Returns an operand that is a size.
fn size(node: &NodeCall<'_>, index: usize) -> Result<usize, Error> {
    let found = node.inputs.integer(index)?;
    let size = usize::try_from(found);
    size.map_err(|_| {
        node.inputs.error(
            index,
            format_args!("is expected to be 0 or more, found {found}"),
        )
    })
}

#[allow(clippy::cast_precision_loss, reason = "lengths are far below 2^53")]
fn float(value: usize) -> f64 {
    value as f64
}

/// Makes a window: a function of the angle from 0 to a full turn.
fn window(node: &NodeCall<'_>, function: fn(f64) -> f64) -> Result<Outputs, Error> {
    let (n, dtype) = (size(node, 0)?, asked(node)?);
    let is_periodic = node.attributes.flag("periodic", true)?;
    let turn = float(if is_periodic { n } else { n.saturating_sub(1) }.max(1));
    // As a tensor first: what is too large for the memory is refused.
    let wide = node.output(DType::F64, &[n])?;
    for (index, out) in wide.write()?.elements_mut::<f64>()?.iter_mut().enumerate() {
        *out = function(2.0 * PI * float(index) / turn);
    }
    node.workspace.reserve(n, size_of::<f64>())?;
    let numbers = super::dispatch::to_f64(&wide)?;
    Ok(typed(node, dtype, &[n], &numbers)?.into())
}

/// `DFT`: transforms along a dimension; the last one holds real numbers, or real and imaginary parts.
fn fourier(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let x = node.inputs.dense(0)?;
    let (dtype, extents) = (x.dtype(), x.shape().to_dims());
    let parts = extents.last().copied().unwrap_or(0);
    if extents.len() < 2 || !(parts == 1 || parts == 2) {
        let message =
            format_args!("is expected to have 1 or 2 numbers for each element, found {extents:?}");
        return Err(node.inputs.error(0, message));
    }
    let axis = match (node.inputs.has(2), node.opset < 20) {
        (true, _) => node.inputs.integer(2)?,
        (false, true) => node.attributes.integer_or("axis", 1)?,
        (false, false) => node.attributes.integer_or("axis", -2)?,
    };
    let axis = node.axis(axis, extents.len())?;
    if axis + 1 == extents.len() {
        return Err(
            node.error("the last dimension holds the parts of numbers, and is not transformed")
        );
    }
    let is_inverse = node.attributes.flag("inverse", false)?;
    let is_onesided = node.attributes.flag("onesided", false)?;
    let n = extents[axis];
    let len = match (node.inputs.has(1), is_inverse && is_onesided) {
        (true, _) => size(node, 1)?,
        (false, true) => n.saturating_sub(1).saturating_mul(2),
        (false, false) => n,
    };
    let (n_out, parts_out) = match (is_onesided, is_inverse) {
        (true, true) => (len, 1),
        (true, false) => (len / 2 + 1, 2),
        (false, _) => (len, 2),
    };
    let mut output = extents.clone();
    output[axis] = n_out;
    *output
        .last_mut()
        .ok_or_else(|| node.error("there is no dimension"))? = parts_out;
    let out = node.zeros(DType::F64, &output)?;
    let numbers = node.inputs.numbers(0)?;
    let stride = extents[axis + 1..extents.len() - 1]
        .iter()
        .product::<usize>();
    let mut writing = out.write()?;
    let results = writing.elements_mut::<f64>()?;
    let mut row: Vec<Pair> = Vec::new();
    reserve_for_row(node, len, &out)?;
    // A row is as long as the result, which there was memory for.
    for number in 0..results.len().checked_div(n_out * parts_out).unwrap_or(0) {
        if let Some(reason) = node.execution.request().cancellation() {
            return Err(reason.clone());
        }
        let (outer, inner) = (number / stride, number % stride);
        let at = |index: usize| {
            let start = ((outer * n + index) * stride + inner) * parts;
            (
                numbers[start],
                if parts == 2 { numbers[start + 1] } else { 0.0 },
            )
        };
        row.clear();
        row.extend(
            (0..len).map(|index| match is_inverse && is_onesided && index > len / 2 {
                // The other half mirrors the first.
                true if len - index < n => {
                    let (real, imaginary) = at(len - index);
                    (real, -imaginary)
                }
                false if index < n => at(index),
                _ => (0.0, 0.0),
            }),
        );
        transform(&mut row, is_inverse)?;
        for (index, (real, imaginary)) in row.iter().take(n_out).enumerate() {
            let start = ((outer * n_out + index) * stride + inner) * parts_out;
            results[start] = *real;
            if parts_out == 2 {
                results[start + 1] = *imaginary;
            }
        }
    }
    drop(writing);
    node.workspace.reserve(out.n_elements(), size_of::<f64>())?;
    let numbers = super::dispatch::to_f64(&out)?;
    Ok(typed(node, dtype, &output, &numbers)?.into())
}

/// Reserves memory for the transform of a row of so many numbers, if the result has a row.
fn reserve_for_row(node: &NodeCall<'_>, len: usize, out: &DenseHostTensor) -> Result<(), Error> {
    if out.n_elements() == 0 {
        return Ok(());
    }
    node.workspace.reserve(len, size_of::<Pair>())?;
    node.workspace.reserve(scratch_bytes(len), 1)
}

/// `STFT`: transforms of windowed frames of a signal
fn short_time(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let x = node.inputs.dense(0)?;
    let (dtype, extents) = (x.dtype(), x.shape().to_dims());
    let (batch, length, parts) = match extents[..] {
        [batch, length] => (batch, length, 1),
        [batch, length, parts @ (1 | 2)] => (batch, length, parts),
        _ => {
            let message =
                format_args!("is expected to be [batch, length, 1 or 2], found {extents:?}");
            return Err(node.inputs.error(0, message));
        }
    };
    let step = size(node, 1)?;
    let window = if node.inputs.has(2) {
        Some(node.inputs.numbers(2)?)
    } else {
        None
    };
    let len = match (&window, node.inputs.has(3)) {
        (_, true) => size(node, 3)?,
        (Some(window), false) => window.len(),
        (None, false) => return Err(node.error("neither a window nor a length of frames is given")),
    };
    if step == 0
        || len == 0
        || len > length
        || window.as_ref().is_some_and(|window| window.len() != len)
    {
        return Err(node.error(format_args!(
            "frames of {len} every {step} don't fit a signal of {length}"
        )));
    }
    let n_frames = (length - len) / step + 1;
    let is_onesided = node.attributes.flag("onesided", true)?;
    let n_out = if is_onesided { len / 2 + 1 } else { len };
    let output = [batch, n_frames, n_out, 2];
    let out = node.zeros(DType::F64, &output)?;
    let numbers = node.inputs.numbers(0)?;
    reserve_for_row(node, len, &out)?;
    let mut writing = out.write()?;
    for (number, out) in writing
        .elements_mut::<f64>()?
        .chunks_mut(n_out * 2)
        .enumerate()
    {
        if let Some(reason) = node.execution.request().cancellation() {
            return Err(reason.clone());
        }
        let start = number / n_frames * length + number % n_frames * step;
        let element = |index: usize| {
            let factor = window.as_ref().map_or(1.0, |window| window[index]);
            let at = (start + index) * parts;
            (
                numbers[at] * factor,
                if parts == 2 {
                    numbers[at + 1] * factor
                } else {
                    0.0
                },
            )
        };
        let mut row: Vec<Pair> = (0..len).map(element).collect();
        transform(&mut row, false)?;
        for (out, (real, imaginary)) in out.chunks_exact_mut(2).zip(row) {
            out.copy_from_slice(&[real, imaginary]);
        }
    }
    drop(writing);
    node.workspace.reserve(out.n_elements(), size_of::<f64>())?;
    let numbers = super::dispatch::to_f64(&out)?;
    Ok(typed(node, dtype, &output, &numbers)?.into())
}

/// `MelWeightMatrix`: the weight of each frequency of a transform in each band of the mel scale, as triangles
fn mel(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let (bands, len, rate) = (size(node, 0)?, size(node, 1)?, size(node, 2)?);
    let (lower, upper) = (node.inputs.number(3)?, node.inputs.number(4)?);
    let dtype = asked(node)?;
    let is_range = lower >= 0.0 && upper >= lower && upper.is_finite();
    if rate == 0 || !is_range {
        return Err(node.error(format_args!(
            "there is no scale from {lower} to {upper} at a rate of {rate}"
        )));
    }
    let n_bins = len / 2 + 1;
    let out = node.zeros(DType::F64, &[n_bins, bands])?;
    let to_mel = |hertz: f64| 2595.0 * (1.0 + hertz / 700.0).log10();
    let step = (to_mel(upper) - to_mel(lower)) / float(bands + 2);
    let bin = |index: usize| {
        let mel = float(index) * step + to_mel(lower);
        let hertz = 700.0 * (10_f64.powf(mel / 2595.0) - 1.0);
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "frequencies are not negative"
        )]
        let bin = (float(len.saturating_add(1)) * hertz / float(rate))
            .floor()
            .max(0.0) as usize;
        bin
    };
    let mut writing = out.write()?;
    let results = writing.elements_mut::<f64>()?;
    for band in 0..bands {
        let [left, middle, right] = [0, 1, 2].map(|more| bin(band + more));
        if right.max(middle) >= n_bins.saturating_add(1) {
            return Err(node.error(format_args!("frequency {right} is none of {n_bins}")));
        }
        let mut set = |bin: usize, share: f64| {
            if let Some(out) = results.get_mut(bin * bands + band) {
                *out = share;
            }
        };
        match middle - left {
            0 => set(middle, 1.0),
            span => (left..=middle).for_each(|bin| set(bin, float(bin - left) / float(span))),
        }
        (middle..right).for_each(|bin| set(bin, float(right - bin) / float(right - middle)));
    }
    drop(writing);
    node.workspace.reserve(out.n_elements(), size_of::<f64>())?;
    let numbers = super::dispatch::to_f64(&out)?;
    Ok(typed(node, dtype, &[n_bins, bands], &numbers)?.into())
}
