//! `nn`: kernels for training that the original lacks.

use tfrt_host::kernel::{Attr, KernelRegistry};
use tfrt_host::{Chain, Error, ExecutionContext, HostContext};
use tfrt_tensor::math::matmul::{self, Scale};
use tfrt_tensor::math::reduce::{Reduction, reduce_into};
use tfrt_tensor::math::training::{self, Momentum};
use tfrt_tensor::{DType, DenseHostTensor, Tensor};

use super::{WriteResult, both};

pub(in crate::tensor) fn register(registry: &mut KernelRegistry) {
    registry
        .add("nn.matmul.f32", product)
        .add("nn.softmax_cross_entropy.f32", cross_entropy)
        .add("nn.bias_gradient.f32", bias_gradient)
        .add("nn.momentum.f32", momentum);
}

/// `%c1 = "nn.matmul.f32"(%alpha, %a, %b, %beta, %c, %c0) {transpose_a = false, transpose_b = true}`
///
/// # Shapes
///
/// `a: [m, k]`, `b: [k, n]`, either the other way round if it is transposed, `c: [m, n]`.
#[expect(
    clippy::too_many_arguments,
    reason = "the operation has as many operands"
)]
fn product(
    alpha: f32,
    a: &Tensor,
    b: &Tensor,
    beta: f32,
    c: &Tensor,
    transpose_a: Attr<bool>,
    transpose_b: Attr<bool>,
    execution: &ExecutionContext,
) -> WriteResult {
    let scale = Scale {
        of_product: alpha.into(),
        of_result: beta.into(),
    };
    let (factors, transpose) = (both(a, b)?, [*transpose_a, *transpose_b]);
    factors[0].metadata().expect_dtype(DType::F32)?;
    matmul::matmul_into(execution, scale, factors, transpose, c.as_dense()?)
}

/// `%loss, %c1 = "nn.softmax_cross_entropy.f32"(%logits, %targets, %gradient, %c0)`
///
/// # Shapes
///
/// `logits`, `targets`, `gradient`: `[.., classes]`, `loss: []`.
fn cross_entropy(
    logits: &Tensor,
    targets: &Tensor,
    gradient: &Tensor,
    host: &HostContext,
) -> Result<(Tensor, Chain), Error> {
    let ([logits, targets], gradient) = (both(logits, targets)?, gradient.as_dense()?);
    let (logits, targets, mut gradient) = (logits.read()?, targets.read()?, gradient.write()?);
    let loss = training::softmax_cross_entropy(
        &logits.view::<f32>()?,
        &targets.view::<f32>()?,
        &mut gradient.view_mut::<f32>()?,
    )?;
    Ok((
        DenseHostTensor::scalar(host.allocator(), loss)?.into(),
        Chain,
    ))
}

/// `%c1 = "nn.bias_gradient.f32"(%gradient, %output, %c0)`
///
/// # Shapes
///
/// `gradient: [.., n]`, `output: [n]`.
fn bias_gradient(gradient: &Tensor, output: &Tensor, execution: &ExecutionContext) -> WriteResult {
    let [gradient, output] = both(gradient, output)?;
    let dimensions: Vec<usize> = (0..gradient.shape().rank().saturating_sub(1)).collect();
    gradient.metadata().expect_dtype(DType::F32)?;
    reduce_into(execution, Reduction::Sum, gradient, &dimensions, output)
}

/// `%c1 = "nn.momentum.f32"(%gradient, %velocity, %weights, %rate, %c0) {decay = 0.0 : f32, momentum = 0.9 : f32, nesterov = true}`
#[expect(
    clippy::too_many_arguments,
    reason = "the operation has as many operands"
)]
fn momentum(
    gradient: &Tensor,
    velocity: &Tensor,
    weights: &Tensor,
    rate: f32,
    decay: Attr<f32>,
    momentum: Attr<f32>,
    nesterov: Attr<bool>,
    execution: &ExecutionContext,
) -> WriteResult {
    let ([gradient, velocity], weights) = (both(gradient, velocity)?, weights.as_dense()?);
    let step = Momentum {
        rate: rate.into(),
        of_velocity: (*momentum).into(),
        decay: (*decay).into(),
        is_nesterov: *nesterov,
    };
    weights.metadata().expect_dtype(DType::F32)?;
    training::momentum_into(execution, step, gradient, velocity, weights)
}
