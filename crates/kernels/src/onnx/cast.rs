//! `cast` and `CastLike`: conversion of any type to any other, strings included.

use tfrt_host::{AsyncValue, Chain, Error};
use tfrt_tensor::math::cast::{Casting, PowerRounding, cast_into};
use tfrt_tensor::math::number::Real;
use tfrt_tensor::subbyte::Overflow;
use tfrt_tensor::{DType, DenseHostTensor, StringHostTensor, Tensor};

use super::dispatch::{to_f64, with_integer};
use super::{NodeCall, Operations, Outputs, with_floating};

pub(super) const OPERATIONS: &Operations = &[("cast", cast), ("onnx.CastLike", cast_like)];

/// `cast`: converts to the type that the attribute `to` names.
fn cast(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let to = node.attributes.dtype("to")?;
    convert(node, to.ok_or_else(|| node.attributes.missing("to"))?)
}

/// `CastLike`: converts to the type of the second operand.
fn cast_like(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    convert(node, node.inputs.tensor(1)?.metadata().dtype)
}

fn convert(node: &NodeCall<'_>, to: DType) -> Result<Outputs, Error> {
    let x = node.inputs.tensor(0)?;
    if x.metadata().dtype == to {
        return Ok(x.clone().into());
    }
    match (x, to) {
        (Tensor::String(strings), _) => from_strings(node, strings, to),
        (_, DType::String) => to_strings(node, node.inputs.dense(0)?),
        _ => {
            let x = node.inputs.dense(0)?;
            let out = node.output(to, &x.shape().to_dims())?;
            let chain = cast_into(node.execution, casting(node)?, x, &out)
                .map_err(|error| node.with_name(&error))?;
            Ok(Outputs::later(out, chain))
        }
    }
}

/// Converts numbers to another type; the elements are there when the chain is.
pub(super) fn converted(
    node: &NodeCall<'_>,
    x: &DenseHostTensor,
    dtype: DType,
) -> Result<(DenseHostTensor, AsyncValue<Chain>), Error> {
    if x.dtype() == dtype {
        return Ok((x.clone(), AsyncValue::available(Chain)));
    }
    let out = node.output(dtype, &x.shape().to_dims())?;
    let chain = cast_into(node.execution, Casting::default(), x, &out)
        .map_err(|error| node.with_name(&error))?;
    Ok((out, chain))
}

pub(super) fn casting(node: &NodeCall<'_>) -> Result<Casting, Error> {
    let saturates = node.attributes.flag("saturate", true)?;
    let powers = match node.attributes.string_or("round_mode", "up")? {
        "up" => PowerRounding::Up,
        "down" => PowerRounding::Down,
        "nearest" => PowerRounding::Nearest,
        other => {
            let other = other.escape_debug();
            let message =
                format_args!("is expected to be 'up', 'down' or 'nearest', found '{other}'");
            return Err(node.attributes.error("round_mode", message));
        }
    };
    let overflow = if saturates {
        Overflow::Saturate
    } else {
        Overflow::Escape
    };
    Ok(Casting { overflow, powers })
}

/// Parses numbers: `1.5`, `-3`, `1e-3`, `INF`, `NaN`, in any case.
fn from_strings(node: &NodeCall<'_>, x: &StringHostTensor, to: DType) -> Result<Outputs, Error> {
    let extents = x.metadata().shape.to_dims();
    let texts = x.strings().iter().map(|bytes| {
        let text = std::str::from_utf8(bytes).ok().map(str::trim);
        text.ok_or_else(|| node.inputs.error(0, "has a string that is no text"))
    });
    let texts: Vec<&str> = texts.collect::<Result<_, _>>()?;
    let wrong = |text: &str| {
        node.inputs.error(
            0,
            format_args!("has a string that is no number: '{}'", text.escape_debug()),
        )
    };
    let whole = |text: &str| {
        let whole = text.parse::<i128>().ok();
        #[allow(
            clippy::cast_possible_truncation,
            reason = "towards 0, as floats are converted"
        )]
        let float = || Some(text.parse::<f64>().ok().filter(|value| value.is_finite())? as i128);
        whole.or_else(float).ok_or_else(|| wrong(text))
    };
    if to.is_integer() {
        return with_integer!(to, T => {
            let numbers = texts.iter().map(|text| {
                let whole = whole(text)?;
                T::try_from(whole).map_err(|_| wrong(text))
            });
            let numbers: Vec<T> = numbers.collect::<Result<_, Error>>()?;
            Ok(node.tensor_of(&extents, &numbers)?.into())
        }, else Err(node.inputs.unsupported(0, to)));
    }
    let numbers = texts
        .iter()
        .map(|text| text.parse::<f64>().map_err(|_| wrong(text)));
    let numbers: Vec<f64> = numbers.collect::<Result<_, Error>>()?;
    let numbers = node.tensor_of(&extents, &numbers)?;
    let out = node.output(to, &extents)?;
    let chain = cast_into(node.execution, casting(node)?, &numbers, &out)
        .map_err(|error| node.with_name(&error))?;
    Ok(Outputs::later(out, chain))
}

/// Writes numbers with as few digits as tell them apart.
fn to_strings(node: &NodeCall<'_>, x: &DenseHostTensor) -> Result<Outputs, Error> {
    let dtype = x.dtype();
    let reading = x.read()?;
    let shape = x.shape().clone();
    let written = with_floating!(dtype, T => {
        let texts = reading.elements::<T>()?.iter().map(|one| float_text(*one).into_bytes());
        node.strings_of(shape, texts)
    }, else with_integer!(dtype, T => {
        let texts = reading.elements::<T>()?.iter().map(|one| one.to_string().into_bytes());
        node.strings_of(shape, texts)
    }, else {
        node.workspace.reserve(x.n_elements(), size_of::<f64>())?;
        let numbers = to_f64(x).map_err(|_| node.inputs.unsupported(0, dtype))?;
        let is_truth = dtype == DType::I1;
        let text = |one: f64| match is_truth {
            true if one == 0.0 => "False".to_owned(),
            true => "True".to_owned(),
            false => number_text(one, one.to_string()),
        };
        node.strings_of(shape, numbers.into_iter().map(|one| text(one).into_bytes()))
    }));
    Ok(written?.into())
}

fn float_text<T: Real>(value: T) -> String {
    let wide = value.to_f64();
    #[allow(
        clippy::cast_possible_truncation,
        reason = "no float but `f64` has more"
    )]
    let digits = match T::DTYPE {
        DType::F64 => format!("{wide:?}"),
        _ => format!("{:?}", wide as f32),
    };
    number_text(wide, digits)
}

/// Writes a number as `1.5`, `1e-07`, `NaN` or `INF`.
fn number_text(value: f64, digits: String) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "INF" } else { "-INF" }.to_owned();
    }
    digits
}
