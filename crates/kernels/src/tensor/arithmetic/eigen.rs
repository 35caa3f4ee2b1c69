//! `eigen`: products, convolutions and batch norm, under the names of the original's compatibility layer for Eigen.

use tfrt_host::kernel::{Attr, KernelRegistry};
use tfrt_host::{Chain, Error, ExecutionContext, HostContext};
use tfrt_tensor::math::conv::{self, Convolution, TensorConvEpilogue};
use tfrt_tensor::math::normalize::{self, ChannelTensors, Channels};
use tfrt_tensor::{DType, DenseHostTensor, Tensor, TensorShape};

use super::layers::product;
use super::{WriteResult, both, max_pool, pad_with_zeros, padding, two, windows};

pub(in crate::tensor) fn register(registry: &mut KernelRegistry) {
    registry
        .add("eigen.matmul.f32", product::<f32>)
        .add("eigen.matmul.i32", product::<i32>)
        .add("eigen.conv2d.f32", convolution)
        .add("eigen.conv2d.bias.f32", convolution_with_bias)
        .add(
            "eigen.conv2d.batch_norm.f32",
            convolution_with_batch_norm::<false>,
        )
        .add(
            "eigen.conv2d.batch_norm.relu.f32",
            convolution_with_batch_norm::<true>,
        )
        .add("eigen.conv2d.grad.filter.f32", filter_gradient)
        .add("eigen.conv2d.grad.input.f32", input_gradient)
        .add("eigen.batch_norm.f32", batch_norm)
        .add("eigen.batch_norm.grad.f32", batch_norm_gradient)
        .add("eigen.max_pooling_2d.f32", max_pooling)
        .add("eigen.zero_padding.f32", zero_padding);
}

/// Returns the convolution by a filter of shape `[h, w, channels, filters]`.
fn by_filter(
    filter: &TensorShape,
    padding_name: &str,
    strides: &[i64],
) -> Result<Convolution, Error> {
    let &[h, w, _, _] = &filter.to_dims()[..] else {
        return Err(Error::invalid_argument(format!(
            "Conv2D expects a filter of shape [height, width, channels, filters], found {filter}"
        )));
    };
    let strides = two("Conv2D", "strides", strides)?;
    Ok(Convolution::new(&windows(
        [h, w],
        strides,
        padding("Conv2D", padding_name)?,
    )))
}

/// `%c1 = "eigen.conv2d.f32"(%x, %filter, %y, %c0) {padding = "same", strides = [1 : i64, 1 : i64]}`
///
/// # Shapes
///
/// `x: [n, h, w, c]`, `filter: [kh, kw, c, f]`, `y: [n, oh, ow, f]`.
fn convolution(
    x: &Tensor,
    filter: &Tensor,
    y: &Tensor,
    padding: Attr<&str>,
    strides: Attr<&[i64]>,
    execution: &ExecutionContext,
) -> WriteResult {
    convolve(
        [x, filter, y],
        TensorConvEpilogue::default(),
        &padding,
        &strides,
        execution,
    )
}

/// `%c1 = "eigen.conv2d.bias.f32"(%x, %filter, %bias, %y, %c0) {..}`
fn convolution_with_bias(
    x: &Tensor,
    filter: &Tensor,
    bias: &Tensor,
    y: &Tensor,
    padding: Attr<&str>,
    strides: Attr<&[i64]>,
    execution: &ExecutionContext,
) -> WriteResult {
    let epilogue = TensorConvEpilogue {
        shift: Some(bias.as_dense()?.clone()),
        ..TensorConvEpilogue::default()
    };
    convolve([x, filter, y], epilogue, &padding, &strides, execution)
}

/// `%c1 = "eigen.conv2d.batch_norm.f32"(%x, %filter, %scale, %shift, %mean, %variance, %y, %c0) {epsilon = .., ..}`
#[expect(
    clippy::too_many_arguments,
    reason = "the operation has as many operands"
)]
fn convolution_with_batch_norm<const RELU: bool>(
    x: &Tensor,
    filter: &Tensor,
    scale: &Tensor,
    shift: &Tensor,
    mean: &Tensor,
    variance: &Tensor,
    y: &Tensor,
    epsilon: Attr<f32>,
    padding: Attr<&str>,
    strides: Attr<&[i64]>,
    execution: &ExecutionContext,
) -> WriteResult {
    let channels = channel_tensors(scale, shift, mean, variance)?;
    let (factors, summands) = channels.folded(*epsilon)?;
    let of = |list: &[f32]| {
        DenseHostTensor::from_slice(execution.host().allocator(), &[list.len()], list)
    };
    let epilogue = TensorConvEpilogue {
        scale: Some(of(&factors)?),
        shift: Some(of(&summands)?),
        relu: RELU,
    };
    convolve([x, filter, y], epilogue, &padding, &strides, execution)
}

pub(super) fn channel_tensors<'t>(
    scale: &'t Tensor,
    shift: &'t Tensor,
    mean: &'t Tensor,
    variance: &'t Tensor,
) -> Result<ChannelTensors<'t>, Error> {
    Ok(ChannelTensors {
        mean: mean.as_dense()?,
        variance: variance.as_dense()?,
        scale: scale.as_dense()?,
        shift: shift.as_dense()?,
    })
}

fn convolve(
    [x, filter, y]: [&Tensor; 3],
    epilogue: TensorConvEpilogue,
    padding: &str,
    strides: &[i64],
    execution: &ExecutionContext,
) -> WriteResult {
    let ([x, filter], y) = (both(x, filter)?, y.as_dense()?);
    let convolution = by_filter(filter.shape(), padding, strides)?;
    x.metadata().expect_dtype(DType::F32)?;
    conv::convolve_into(execution, &convolution, [x, filter], epilogue, y)
}

/// `%c1 = "eigen.conv2d.grad.filter.f32"(%dy, %x, %dfilter, %c0) {..}`
fn filter_gradient(
    dy: &Tensor,
    x: &Tensor,
    filter: &Tensor,
    padding: Attr<&str>,
    strides: Attr<&[i64]>,
    execution: &ExecutionContext,
) -> WriteResult {
    let ([dy, x], filter) = (both(dy, x)?, filter.as_dense()?);
    let convolution = by_filter(filter.shape(), &padding, &strides)?;
    conv::filter_gradient_into(execution, &convolution, x, dy, filter)
}

/// `%c1 = "eigen.conv2d.grad.input.f32"(%dy, %filter, %dx, %c0) {..}`
fn input_gradient(
    dy: &Tensor,
    filter: &Tensor,
    dx: &Tensor,
    padding: Attr<&str>,
    strides: Attr<&[i64]>,
    execution: &ExecutionContext,
) -> WriteResult {
    let ([dy, filter], dx) = (both(dy, filter)?, dx.as_dense()?);
    let convolution = by_filter(filter.shape(), &padding, &strides)?;
    conv::input_gradient_into(execution, &convolution, dy, filter, dx)
}

/// `%c1 = "eigen.batch_norm.f32"(%x, %scale, %shift, %mean, %variance, %c0) {epsilon = 0.1 : f32}`, in place
///
/// # Shapes
///
/// `x: [.., channels]`, all others `[channels]`.
fn batch_norm(
    x: &Tensor,
    scale: &Tensor,
    shift: &Tensor,
    mean: &Tensor,
    variance: &Tensor,
    epsilon: Attr<f32>,
    execution: &ExecutionContext,
) -> WriteResult {
    let channels = channel_tensors(scale, shift, mean, variance)?;
    normalize::channels_in_place(execution, x.as_dense()?, &channels, (*epsilon).into())
}

/// `%c1, %c2, %c3 = "eigen.batch_norm.grad.f32"(%dy, %x, %scale, %mean, %variance, %c0, %dx, %dscale, %dshift) {..}`
#[expect(
    clippy::too_many_arguments,
    reason = "the operation has as many operands"
)]
fn batch_norm_gradient(
    dy: &Tensor,
    x: &Tensor,
    scale: &Tensor,
    mean: &Tensor,
    variance: &Tensor,
    _: Chain,
    dx: &Tensor,
    dscale: &Tensor,
    dshift: &Tensor,
    epsilon: Attr<f32>,
    host: &HostContext,
) -> Result<(Chain, Chain, Chain), Error> {
    let ([dy, x], [mean, variance], scale) =
        (both(dy, x)?, both(mean, variance)?, scale.as_dense()?);
    let (dy, x, dx) = (dy.read()?, x.read()?, dx.as_dense()?);
    let (scale_reading, mean, variance) = (scale.read()?, mean.read()?, variance.read()?);
    let scale_elements = scale_reading.elements::<f32>()?;
    let channels = Channels {
        mean: mean.elements()?,
        variance: variance.elements()?,
        scale: scale_elements,
        // What is added does not matter for gradients.
        shift: scale_elements,
        epsilon: *epsilon,
    };
    let gradients = {
        let mut writing = dx.write()?;
        let mut out = writing.view_mut::<f32>()?;
        normalize::channels_gradient(&dy.view::<f32>()?, &x.view::<f32>()?, &channels, &mut out)?
    };
    for (tensor, elements) in [(dscale, &gradients.scale), (dshift, &gradients.shift)] {
        let found = DenseHostTensor::from_slice(host.allocator(), &[elements.len()], elements)?;
        tensor.as_dense()?.copy_from(&found)?;
    }
    Ok((Chain, Chain, Chain))
}

/// `%c1 = "eigen.max_pooling_2d.f32"(%x, %y, %c0) {padding = "valid", pool_size = [2 : i64, 2 : i64], strides = ..}`
fn max_pooling(
    x: &Tensor,
    y: &Tensor,
    padding_name: Attr<&str>,
    pool_size: Attr<&[i64]>,
    strides: Attr<&[i64]>,
    execution: &ExecutionContext,
) -> WriteResult {
    let size = two("MaxPool2D", "pool_size", &pool_size)?;
    let strides = two("MaxPool2D", "strides", &strides)?;
    let windows = windows(size, strides, padding("MaxPool2D", &padding_name)?);
    let [x, y] = both(x, y)?;
    max_pool(execution, x, y, windows)
}

/// `%c1 = "eigen.zero_padding.f32"(%x, %y, %c0) {padding = [1 : i64, 1 : i64]}`
fn zero_padding(
    x: &Tensor,
    y: &Tensor,
    padding: Attr<&[i64]>,
    execution: &ExecutionContext,
) -> WriteResult {
    let around = two("ZeroPadding", "padding", &padding)?;
    let [x, y] = both(x, y)?;
    pad_with_zeros::<f32>(execution, x, y, around)
}
