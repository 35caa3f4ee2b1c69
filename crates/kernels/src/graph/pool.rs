//! Pools of images whose channels come last.

use tfrt_host::kernel::{Attr, Operands};
use tfrt_host::{Error, ExecutionContext};
use tfrt_tensor::math::pool::{Pooling, output_extents, pool_f32_into, pool_into};
use tfrt_tensor::{DType, TensorShape};

use super::{TensorResult, WindowAttributes, dense, made, memory};

/// `%y = "cpu.fused.pool"(%x) {dilations = [1, 1], kernel = [3, 3], kind = "max", pads = [1, 1, 1, 1], strides = [2, 2]}`
///
/// The kind is `max`, `mean`, or `mean_with_padding`; a window of extents 0 is the whole image.
///
/// # Shapes
///
/// `x: [n, h, w, c]`, `y: [n, oh, ow, c]`, of `f32`; of bytes if the kind is `max`.
pub(super) fn pool(
    operands: Operands<'_>,
    dilations: Attr<&[i64]>,
    kernel: Attr<&[i64]>,
    kind: Attr<&str>,
    pads: Attr<&[i64]>,
    strides: Attr<&[i64]>,
    execution: &ExecutionContext,
) -> TensorResult {
    let x = dense(&operands, 0)?;
    let input = x.shape().to_dims();
    let pooling = match *kind {
        "max" => Pooling::Maximum,
        "mean" => Pooling::Mean,
        "mean_with_padding" => Pooling::MeanWithPadding,
        other => {
            let other = other.escape_debug();
            let message =
                format!("expected the pooling max, mean or mean_with_padding, found '{other}'");
            return Err(Error::invalid_argument(message));
        }
    };
    let spatial = input.get(1..input.len().saturating_sub(1)).unwrap_or(&[]);
    let extents: Vec<usize> = match kernel.iter().all(|extent| *extent == 0) {
        true => spatial.to_vec(),
        false => {
            let sizes = kernel.iter().map(|extent| usize::try_from(*extent));
            let sizes: Result<Vec<usize>, _> = sizes.collect();
            sizes.map_err(|_| {
                let kernel = &*kernel;
                Error::invalid_argument(format!("expected no negative extent, found {kernel:?}"))
            })?
        }
    };
    let placement = WindowAttributes {
        dilations: &dilations,
        pads: &pads,
        strides: &strides,
    };
    let windows = placement.windows(&extents)?;
    let extents = output_extents(&input, &windows)?;
    let dtype = x.dtype();
    let out = memory::output_of(execution, dtype, TensorShape::new(&extents)?)?;
    let chain = match (dtype, pooling) {
        (DType::Ui8 | DType::I8, Pooling::Maximum) => {
            pool_into(execution, pooling, x, &windows, &out)?
        }
        _ => pool_f32_into(execution, pooling, x, &windows, &out)?,
    };
    Ok(made(out, chain))
}
