//! Rows of window functions and of transforms of signals.

use tfrt_bef::DType;

use crate::def::{AttrDef, OpDef, ValueDef};
use crate::dim::{Dim, Dims};
use crate::fact::Fact;
use crate::infer::{Infer, InferCall, InferError};
use crate::names::onnx::dtype;

pub(crate) const OPS: &[OpDef] = &[
    OpDef::new(
        "onnx.BlackmanWindow",
        "A Blackman window of so many elements.",
    )
    .inputs(&[ValueDef::set("size", &[DType::I32, DType::I64])])
    .results(&[ValueDef::var("output", "T2").by_values()])
    .attrs(&[
        AttrDef::int("output_datatype", 1),
        AttrDef::int("periodic", 1),
    ])
    .infer(Infer::By(window)),
    OpDef::new("onnx.DFT", "The discrete Fourier transform along an axis.")
        .inputs(&[
            ValueDef::var("input", "T1"),
            ValueDef::var("dft_length", "T2").optional(),
            ValueDef::set("axis", &[DType::I64]).optional(),
        ])
        .results(&[ValueDef::var("output", "T1").by_values()])
        .attrs(&[AttrDef::int("inverse", 0), AttrDef::int("onesided", 0)])
        .infer(Infer::By(dft)),
    OpDef::new(
        "onnx.HammingWindow",
        "A Hamming window of so many elements.",
    )
    .inputs(&[ValueDef::set("size", &[DType::I32, DType::I64])])
    .results(&[ValueDef::var("output", "T2").by_values()])
    .attrs(&[
        AttrDef::int("output_datatype", 1),
        AttrDef::int("periodic", 1),
    ])
    .infer(Infer::By(window)),
    OpDef::new("onnx.HannWindow", "A Hann window of so many elements.")
        .inputs(&[ValueDef::set("size", &[DType::I32, DType::I64])])
        .results(&[ValueDef::var("output", "T2").by_values()])
        .attrs(&[
            AttrDef::int("output_datatype", 1),
            AttrDef::int("periodic", 1),
        ])
        .infer(Infer::By(window)),
    OpDef::new(
        "onnx.MelWeightMatrix",
        "The matrix that makes bands of the mel scale of a spectrum.",
    )
    .inputs(&[
        ValueDef::var("num_mel_bins", "T1"),
        ValueDef::var("dft_length", "T1"),
        ValueDef::var("sample_rate", "T1"),
        ValueDef::var("lower_edge_hertz", "T2"),
        ValueDef::var("upper_edge_hertz", "T2"),
    ])
    .results(&[ValueDef::var("output", "T3").by_values()])
    .attrs(&[AttrDef::int("output_datatype", 1)])
    .infer(Infer::By(mel_weights)),
    OpDef::new("onnx.STFT", "The Fourier transforms of frames of a signal.")
        .inputs(&[
            ValueDef::var("signal", "T1"),
            ValueDef::var("frame_step", "T2"),
            ValueDef::var("window", "T1").optional(),
            ValueDef::var("frame_length", "T2").optional(),
        ])
        .results(&[ValueDef::var("output", "T1").by_values()])
        .attrs(&[AttrDef::int("onesided", 1)])
        .infer(Infer::By(stft)),
];

fn window(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let n = call
        .input(0)
        .values
        .as_ref()
        .and_then(|values| values.first().cloned());
    let dtype = call.attrs.int("output_datatype").and_then(dtype);
    call.give(0, dtype, Some(Dims::from_iter([n.unwrap_or_default()])));
    Ok(())
}

/// Returns how many frequencies a transform of so many elements gives.
fn frequencies(n: &Dim, onesided: bool) -> Dim {
    match onesided {
        true => &n.floor_div(2) + &Dim::Known(1),
        false => n.clone(),
    }
}

fn first(fact: &Fact) -> Dim {
    fact.values
        .as_ref()
        .and_then(|values| values.first().cloned())
        .unwrap_or_default()
}

/// Infers `DFT`. The last dimension holds the real part alone, or both parts.
fn dft(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let x = call.input(0).clone();
    let (onesided, inverse) = (call.attrs.flag("onesided"), call.attrs.flag("inverse"));
    let dims = match x.dims {
        Some(mut dims) if dims.len() > 1 => {
            let rank = dims.len();
            let axis = if call.has(2) {
                call.input(2).number()
            } else {
                Some(-2)
            };
            match axis {
                Some(axis) => {
                    let at = call.axis(axis, rank)?;
                    let n = if call.has(1) {
                        first(call.input(1))
                    } else {
                        dims[at].clone()
                    };
                    dims[at] = match (inverse, onesided) {
                        // From half of the spectrum: as many as are stated.
                        (true, true) if !call.has(1) => Dim::Unknown,
                        (true, _) => n,
                        (false, onesided) => frequencies(&n, onesided),
                    };
                }
                None => dims.iter_mut().for_each(|dim| *dim = Dim::Unknown),
            }
            dims[rank - 1] = Dim::Known(if inverse && onesided { 1 } else { 2 });
            Some(dims)
        }
        Some(dims) => {
            return Err(call.error(format_args!(
                "expected at least 2 dimensions, found {}",
                dims.len()
            )));
        }
        None => None,
    };
    call.give(0, x.dtype, dims);
    Ok(())
}

fn mel_weights(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let (bins, length) = (first(call.input(0)), first(call.input(1)));
    let dtype = call.attrs.int("output_datatype").and_then(dtype);
    call.give(
        0,
        dtype,
        Some(Dims::from_iter([frequencies(&length, true), bins])),
    );
    Ok(())
}

fn stft(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let signal = call.input(0).clone();
    let step = first(call.input(1));
    let length = match (call.has(3), call.has(2)) {
        (true, _) => first(call.input(3)),
        (false, true) => call.input(2).dim(0),
        (false, false) => Dim::Unknown,
    };
    let frames = match step.value() {
        Some(step) => &(&signal.dim(1) - &length).floor_div(step) + &Dim::Known(1),
        None => Dim::Unknown,
    };
    let spectrum = frequencies(&length, call.attrs.flag("onesided"));
    let dims = Dims::from_iter([signal.dim(0), frames, spectrum, Dim::Known(2)]);
    call.give(0, signal.dtype, Some(dims));
    Ok(())
}
