//! Kernels on volumes whose channels come last: convolutions and pools.

use smallvec::smallvec;
use tfrt_host::Error;
use tfrt_ops::tf::volumes::{self, per_dimension};
use tfrt_tensor::math::Family;
use tfrt_tensor::math::conv::{Convolution, TensorConvEpilogue, convolve_into};
use tfrt_tensor::math::pool::{Pooling, pool_into};
use tfrt_tensor::math::window::{Padding, Window};
use tfrt_tensor::op::{Outputs, TensorCall, TensorKernel, made};

use super::of_call;

pub(super) const KERNELS: &[TensorKernel] = &[
    TensorKernel::new("tf.AvgPool3D", |call| pool(call, Pooling::Mean)).of(Family::Reals),
    TensorKernel::new("tf.Conv3D", |call| {
        let (x, filter) = (call.dense(0)?, call.dense(1)?);
        let extents = filter.shape().to_dims();
        let &[depth, height, width, _, _] = &extents[..] else {
            return Err(call.error(format_args!(
                "expected a filter of 5 dimensions, found {extents:?}"
            )));
        };
        let convolution = Convolution::new(&windows(call, [depth, height, width])?);
        let out = call.output(0)?;
        let (operands, after) = ([x, filter], TensorConvEpilogue::default());
        let chain = convolve_into(call.execution, &convolution, operands, after, &out);
        Ok(smallvec![made(out, call.named(chain)?)?])
    })
    .of(Family::Reals),
    TensorKernel::new("tf.MaxPool3D", |call| pool(call, Pooling::Maximum)).of(Family::Reals),
];

/// Returns windows of these extents, by the attributes.
fn windows(call: &TensorCall<'_>, extents: [usize; 3]) -> Result<[Window; 3], Error> {
    let laid = volumes::Windows::of(&call.attrs).map_err(of_call(call))?;
    Ok([0, 1, 2].map(|at| Window {
        extent: extents[at],
        stride: laid.strides[at],
        dilation: laid.dilations[at],
        padding: match laid.is_same {
            true => Padding::Same,
            false => Padding::Valid,
        },
    }))
}

fn pool(call: &mut TensorCall<'_>, pooling: Pooling) -> Result<Outputs, Error> {
    let sizes = per_dimension(&call.attrs, "ksize").map_err(of_call(call))?;
    let windows = windows(call, sizes.unwrap_or([1; 3]))?;
    let (x, out) = (call.dense(0)?, call.output(0)?);
    let chain = pool_into(call.execution, pooling, x, &windows, &out);
    Ok(smallvec![made(out, call.named(chain)?)?])
}
