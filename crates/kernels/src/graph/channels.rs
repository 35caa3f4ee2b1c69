//! Kernels on the channels of images: an affine function of each, local response normalisation, and channel shuffle.

use tfrt_host::kernel::{Attr, Operands};
use tfrt_host::{Error, ExecutionContext};
use tfrt_tensor::DenseHostTensor;
use tfrt_tensor::math::layout_copy::{concat_extents, shuffle_into};
use tfrt_tensor::math::lrn::{Lrn, lrn_channels_last_into};
use tfrt_tensor::math::normalize::concat_affine_into;
use tfrt_tensor::math::packed_gemm::Activation;

use super::{TensorResult, dense, made, memory};

/// `%y = "cpu.fused.scale"(%factors, %summands, %a, %b, ..) {activation = "relu"}`
///
/// The images are joined along their channels, multiplied by the factors, and the summands are added.
///
/// # Shapes
///
/// `factors`, `summands`: `[channels]`; images `[.., own]`, alike but for that; `y: [.., channels]`.
pub(super) fn channel_affine(
    operands: Operands<'_>,
    name: Attr<&str>,
    execution: &ExecutionContext,
) -> TensorResult {
    let lists = [dense(&operands, 0)?, dense(&operands, 1)?];
    let parts = (2..operands.len()).map(|index| dense(&operands, index));
    let parts: Vec<&DenseHostTensor> = parts.collect::<Result<_, _>>()?;
    let shapes: Vec<_> = parts.iter().map(|part| part.shape().to_dims()).collect();
    let shapes: Vec<&[usize]> = shapes.iter().map(|shape| &shape[..]).collect();
    let rank = shapes.first().map_or(0, |shape| shape.len());
    let out = memory::output(execution, &concat_extents(&shapes, rank.saturating_sub(1))?)?;
    let chain = concat_affine_into(execution, &parts, lists, activation(&name)?, &out)?;
    Ok(made(out, chain))
}

fn activation(name: &str) -> Result<Activation, Error> {
    match name {
        "none" => Ok(Activation::None),
        "relu" => Ok(Activation::Relu),
        _ => {
            let name = name.escape_debug();
            let message = format!("expected the activation none or relu, found '{name}'");
            Err(Error::invalid_argument(message))
        }
    }
}

/// `%y = "cpu.fused.near"(%x) {alpha = 1.0e-4 : f32, beta = 7.5e-1 : f32, bias = 1.0 : f32, size = 5 : i64}`
///
/// Each element is divided by `(bias + alpha / size * sum of the squares of size channels around) ^ beta`.
///
/// # Shapes
///
/// `x`, `y`: `[.., channels]`.
pub(super) fn lrn(
    operands: Operands<'_>,
    alpha: Attr<f32>,
    beta: Attr<f32>,
    bias: Attr<f32>,
    size: Attr<i64>,
    execution: &ExecutionContext,
) -> TensorResult {
    let x = dense(&operands, 0)?;
    let size = usize::try_from(*size).unwrap_or(0);
    if size == 0 {
        let message = "expected a number of channels above 0 to divide by";
        return Err(Error::invalid_argument(message));
    }
    let neighbours = Lrn {
        size,
        alpha: f64::from(*alpha),
        beta: f64::from(*beta),
        bias: f64::from(*bias),
    };
    let out = memory::output(execution, &x.shape().to_dims())?;
    let chain = lrn_channels_last_into(execution, neighbours, x, &out)?;
    Ok(made(out, chain))
}

/// `%y = "cpu.fused.shuffle"(%x) {groups = 4 : i64}`
///
/// What was channel `i` of group `g` becomes channel `i * groups + g`.
///
/// # Shapes
///
/// `x`, `y`: `[.., channels]`.
pub(super) fn channel_shuffle(
    operands: Operands<'_>,
    groups: Attr<i64>,
    execution: &ExecutionContext,
) -> TensorResult {
    let x = dense(&operands, 0)?;
    let groups = usize::try_from(*groups).unwrap_or(0);
    let out = memory::output(execution, &x.shape().to_dims())?;
    let chain = shuffle_into(execution, groups, x, &out)?;
    Ok(made(out, chain))
}
