//! `cpu.fused`: kernels that replace several operations of a model.
//!
//! Weights are laid out for the processor, and programs read, once, when a model is opened (`cpu.graph.prepare`); what
//! comes of that is the last operand of these kernels. They make their own outputs, of whatever shape the inputs ask for;
//! images lie `[batch, height, width, channels]`. All elements are `f32`, but for those of quantised images, and for programs,
//! which take any types.
//!
//! | Kernel | Makes | Prepares |
//! | --- | --- | --- |
//! | `cpu.fused.conv` | a convolution, with a residual and an epilogue | filter, bias, normalisation, epilogue |
//! | `cpu.fused.qconv` | a convolution of quantised images, quantised again | filter, bias, scales and zero points |
//! | `cpu.fused.qadd` | the sum of two quantised tensors, quantised again | |
//! | `cpu.fused.joined` | a convolution by windows of one element of joined images | the same |
//! | `cpu.fused.matmul` | a product, with a residual and an epilogue | the right side, bias, epilogue |
//! | `cpu.fused.elementwise` | a program's result | the program |
//! | `cpu.fused.pool` | the largest of each window, or the mean | |
//! | `cpu.fused.scale` | images joined along their channels, times factors plus summands | |
//! | `cpu.fused.near` | elements divided by those of channels around | |
//! | `cpu.fused.shuffle` | channels of groups, dealt out | |
//! | `cpu.fused.attention` | attention of heads that lie side by side | |
//! | `cpu.stored.value` | what was prepared when a file was compiled | |

use tfrt_host::kernel::KernelRegistry;
use tfrt_host::{AnyAsyncValue, AsyncValue, Chain, Error};
use tfrt_tensor::math::window::{Padding, Window};
use tfrt_tensor::{DenseHostTensor, Tensor};

use crate::onnx::PrepareRow;

mod attention;
mod channels;
mod convolution;
mod elementwise;
mod epilogue;
mod memory;
mod pool;
mod product;
mod quantized;
mod shared;
pub mod stored;

pub(crate) use shared::share;
pub use shared::share_bytes;

/// The constants that these kernels prepare.
pub(crate) const PREPARE: &[PrepareRow] = &[
    convolution::PREPARE[0],
    convolution::PREPARE[1],
    product::PREPARE[0],
    elementwise::PREPARE[0],
    quantized::PREPARE[0],
];

/// Adds the kernels of fused nodes, and of stored values.
pub fn register(registry: &mut KernelRegistry) {
    registry
        .add("cpu.fused.conv", convolution::convolve)
        .add("cpu.fused.qadd", quantized::add)
        .add("cpu.fused.qconv", quantized::convolve)
        .add("cpu.fused.matmul", product::multiply)
        .add("cpu.fused.pool", pool::pool)
        .add("cpu.fused.scale", channels::channel_affine)
        .add("cpu.fused.near", channels::lrn)
        .add("cpu.fused.shuffle", channels::channel_shuffle)
        .add("cpu.fused.joined", convolution::convolve_concat)
        .add("cpu.fused.elementwise", elementwise::run)
        .add("cpu.fused.attention", attention::attend);
    stored::register(registry);
}

/// A tensor result, whose elements may still be calculated.
type TensorResult = Result<AsyncValue<Tensor>, Error>;

/// Returns a tensor as a value that is there when the elements are.
fn made(tensor: DenseHostTensor, chain: AsyncValue<Chain>) -> AsyncValue<Tensor> {
    match chain.get() {
        Some(Ok(_)) => AsyncValue::available(tensor.into()),
        _ => chain.map(move |_| tensor.into()),
    }
}

/// Returns the dense tensor that is the operand at `index`.
fn dense(operands: &[AnyAsyncValue], index: usize) -> Result<&DenseHostTensor, Error> {
    let operand = operands.get(index).ok_or_else(|| {
        let found = operands.len();
        Error::invalid_argument(format!(
            "expected more than {index} operands, found {found}"
        ))
    })?;
    match operand.get::<Tensor>() {
        Some(tensor) => tensor.as_dense(),
        None => {
            let found = operand.type_name().unwrap_or("a value of unknown type");
            let message = format!("operand {index}: expected a tensor, found {found}");
            Err(Error::invalid_argument(message))
        }
    }
}

/// The windows over the spatial dimensions, as attributes state them.
#[derive(Clone, Copy, Debug)]
struct WindowAttributes<'a> {
    dilations: &'a [i64],
    /// Elements of padding in front of all dimensions, then behind all; empty for as many as keep the extent.
    pads: &'a [i64],
    strides: &'a [i64],
}

impl WindowAttributes<'_> {
    /// Returns the windows of these extents.
    fn windows(&self, extents: &[usize]) -> Result<Vec<Window>, Error> {
        let n = extents.len();
        let WindowAttributes {
            dilations,
            pads,
            strides,
        } = *self;
        if dilations.len() != n || strides.len() != n || !(pads.is_empty() || pads.len() == 2 * n) {
            return Err(Error::invalid_argument(format!(
                "expected dilations, strides and paddings of {n} dimensions, found {dilations:?}, {strides:?}, \
                 {pads:?}"
            )));
        }
        let size = |number: i64| {
            usize::try_from(number).map_err(|_| {
                Error::invalid_argument(format!("expected no negative size, found {number}"))
            })
        };
        let window = |at: usize| {
            Ok(Window {
                extent: extents[at],
                stride: size(strides[at])?,
                dilation: size(dilations[at])?,
                padding: match pads.is_empty() {
                    true => Padding::Same,
                    false => Padding::Explicit(size(pads[at])?, size(pads[at + n])?),
                },
            })
        };
        (0..n).map(window).collect()
    }
}
