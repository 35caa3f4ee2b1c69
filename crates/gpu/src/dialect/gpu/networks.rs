//! Pooling and convolutions.

#![expect(
    clippy::too_many_arguments,
    reason = "the operands of the original's operations"
)]

use tfrt_host::kernel::{Attr, KernelRegistry};
use tfrt_host::{Chain, Error};

use super::{
    Buffer, Context, ConvolutionAlgorithm, ConvolutionOf, Dnn, FilterOf, PlanOf, PoolingOf, Stream,
    TensorOf,
};
use crate::dialect::linear::keyword;
use crate::dialect::networks::{self, Convolution, Plan, Pooling, longs};
use crate::driver::library::{ConvolutionPart, Number};

pub(super) fn register(registry: &mut KernelRegistry) {
    let algorithm = |algorithm: Attr<u64>| ConvolutionAlgorithm(*algorithm);
    registry
        .add("tfrt_gpu.dnn.create", |context: &Context| {
            Dnn(context.0.clone())
        })
        .add("tfrt_gpu.dnn.create_tensor_descriptor", tensor)
        .add("tfrt_gpu.dnn.create_filter_descriptor", filter)
        .add("tfrt_gpu.dnn.create_convolution_descriptor", convolution)
        .add("tfrt_gpu.dnn.create_pooling_descriptor", pooling)
        .add("tfrt_gpu.dnn.pooling_forward", pool)
        .add("tfrt_gpu.dnn.pooling_backward", pool_gradient)
        .add("tfrt_gpu.dnn.convolution_forward_algorithm", algorithm)
        .add(
            "tfrt_gpu.dnn.convolution_backward_data_algorithm",
            algorithm,
        )
        .add(
            "tfrt_gpu.dnn.convolution_backward_filter_algorithm",
            algorithm,
        )
        .add("tfrt_gpu.dnn.convolution_forward", forward)
        .add("tfrt_gpu.dnn.convolution_backward_data", image_gradient)
        .add("tfrt_gpu.dnn.convolution_backward_filter", filter_gradient)
        .add("tfrt_gpu.dnn.build_convolution", build)
        .add("tfrt_gpu.dnn.run_convolution", run);
}

fn number(attribute: i32) -> Result<Number, Error> {
    networks::number(i64::from(keyword(attribute)?))
}

/// `%desc = tfrt_gpu.dnn.create_tensor_descriptor CUDNN_DATA_FLOAT, [..], [..]`
fn tensor(
    data_type: Attr<i32>,
    dims: Attr<&[i32]>,
    strides: Attr<&[i32]>,
) -> Result<TensorOf, Error> {
    let (dims, strides) = (longs(&dims), longs(&strides));
    networks::extents(number(*data_type)?, &dims, &strides).map(TensorOf)
}

/// `%desc = tfrt_gpu.dnn.create_filter_descriptor CUDNN_DATA_FLOAT, 0, [..]`
fn filter(data_type: Attr<i32>, dims: Attr<&[i32]>, layout: Attr<i32>) -> Result<FilterOf, Error> {
    networks::filter(number(*data_type)?, *layout, &longs(&dims)).map(FilterOf)
}

/// `%desc = tfrt_gpu.dnn.create_convolution_descriptor CUDNN_DATA_FLOAT, CUDNN_CROSS_CORRELATION, CUDNN_FMA_MATH, [..], ..`
fn convolution(
    compute_type: Attr<i32>,
    mode: Attr<i32>,
    dilations: Attr<&[i32]>,
    steps: Attr<&[i32]>,
    _math: Attr<i32>,
    padding: Attr<&[i32]>,
) -> Result<ConvolutionOf, Error> {
    number(*compute_type)?;
    let (padding, steps, dilations) = (longs(&padding), longs(&steps), longs(&dilations));
    Convolution::new(keyword(*mode)?, &padding, &steps, &dilations).map(ConvolutionOf)
}

/// `%desc = tfrt_gpu.dnn.create_pooling_descriptor %context, %mode, %nan, [..], [..], [..]`
fn pooling(
    _: &Context,
    mode: u32,
    nan: u32,
    paddings: Attr<&[i32]>,
    strides: Attr<&[i32]>,
    window: Attr<&[i32]>,
) -> Result<PoolingOf, Error> {
    let (window, paddings, strides) = (longs(&window), longs(&paddings), longs(&strides));
    Pooling::new(mode, nan, &window, &paddings, &strides).map(PoolingOf)
}

/// `%c1 = tfrt_gpu.dnn.pooling_forward %handle, %stream, %pool, %alpha, %xdesc, %x, %beta, %ydesc, %y, %c0`
fn pool(
    (dnn, stream): (&Dnn, &Stream),
    pooling: &PoolingOf,
    alpha: f32,
    (x_desc, x): (&TensorOf, &Buffer),
    beta: f32,
    (y_desc, y): (&TensorOf, &Buffer),
    _: Chain,
) -> Result<Chain, Error> {
    stream.context.expect("a handle", dnn.inner())?;
    let (x, y) = ((&x_desc.0, &x.0), (&y_desc.0, &y.0));
    pooling.queue(stream, [alpha, beta], x, y, None)
}

/// `%c1 = tfrt_gpu.dnn.pooling_backward %handle, %stream, %pool, %alpha, %ydesc, %y, %dydesc, %dy, %xdesc, %x, ..`
fn pool_gradient(
    (dnn, stream): (&Dnn, &Stream),
    pooling: &PoolingOf,
    alpha: f32,
    (y_desc, y): (&TensorOf, &Buffer),
    (dy_desc, dy): (&TensorOf, &Buffer),
    (x_desc, x): (&TensorOf, &Buffer),
    beta: f32,
    (dx_desc, dx): (&TensorOf, &Buffer),
    _: Chain,
) -> Result<Chain, Error> {
    stream.context.expect("a handle", dnn.inner())?;
    let (x, y) = ((&x_desc.0, &x.0), (&y_desc.0, &y.0));
    let gradients = [(&dy_desc.0, &dy.0), (&dx_desc.0, &dx.0)];
    pooling.queue(stream, [alpha, beta], x, y, Some(gradients))
}

/// A descriptor and its buffer: image, filter, result.
type Described<'a> = (
    (&'a TensorOf, &'a Buffer),
    (&'a FilterOf, &'a Buffer),
    (&'a TensorOf, &'a Buffer),
);

/// Queues a part of a convolution, when the handle's context and the type of factors were looked at.
fn queue(
    dnn: &Dnn,
    stream: &Stream,
    convolution: &ConvolutionOf,
    part: ConvolutionPart,
    ((x_desc, x), (w_desc, w), (y_desc, y)): Described<'_>,
    scale_type: i32,
) -> Result<Chain, Error> {
    stream.context.expect("a handle", dnn.inner())?;
    number(scale_type)?;
    let (x, w, y) = ((&x_desc.0, &x.0), (&w_desc.0, &w.0), (&y_desc.0, &y.0));
    convolution.queue(stream, part, x, w, y)
}

/// `%c1 = tfrt_gpu.dnn.convolution_forward %handle, %stream, .., %xdesc, %x, %wdesc, %w, %conv, %algo, %work, %ydesc, %y, %c0`
fn forward(
    (dnn, stream): (&Dnn, &Stream),
    (x_desc, x): (&TensorOf, &Buffer),
    (w_desc, w): (&FilterOf, &Buffer),
    convolution: &ConvolutionOf,
    _: (&ConvolutionAlgorithm, &Buffer),
    (y_desc, y): (&TensorOf, &Buffer),
    _: Chain,
    scale_type: Attr<i32>,
) -> Result<Chain, Error> {
    let tensors = ((x_desc, x), (w_desc, w), (y_desc, y));
    queue(
        dnn,
        stream,
        convolution,
        ConvolutionPart::Result,
        tensors,
        *scale_type,
    )
}

/// `%c1 = tfrt_gpu.dnn.convolution_backward_data %handle, %stream, .., %wdesc, %w, %dydesc, %dy, .., %dxdesc, %dx, %c0`
fn image_gradient(
    (dnn, stream): (&Dnn, &Stream),
    (w_desc, w): (&FilterOf, &Buffer),
    (y_desc, y): (&TensorOf, &Buffer),
    convolution: &ConvolutionOf,
    _: (&ConvolutionAlgorithm, &Buffer),
    (x_desc, x): (&TensorOf, &Buffer),
    _: Chain,
    scale_type: Attr<i32>,
) -> Result<Chain, Error> {
    let tensors = ((x_desc, x), (w_desc, w), (y_desc, y));
    queue(
        dnn,
        stream,
        convolution,
        ConvolutionPart::Image,
        tensors,
        *scale_type,
    )
}

/// `%c1 = tfrt_gpu.dnn.convolution_backward_filter %handle, %stream, .., %xdesc, %x, %dydesc, %dy, .., %dwdesc, %dw, %c0`
fn filter_gradient(
    (dnn, stream): (&Dnn, &Stream),
    (x_desc, x): (&TensorOf, &Buffer),
    (y_desc, y): (&TensorOf, &Buffer),
    convolution: &ConvolutionOf,
    _: (&ConvolutionAlgorithm, &Buffer),
    (w_desc, w): (&FilterOf, &Buffer),
    _: Chain,
    scale_type: Attr<i32>,
) -> Result<Chain, Error> {
    let tensors = ((x_desc, x), (w_desc, w), (y_desc, y));
    queue(
        dnn,
        stream,
        convolution,
        ConvolutionPart::Filter,
        tensors,
        *scale_type,
    )
}

/// Dimensions and strides of a tensor, and its type, in the order of the attributes' names.
type Tensors<'a> = (Attr<&'a [i64]>, Attr<&'a [i64]>, Attr<i32>);

/// `%plan = tfrt_gpu.dnn.build_convolution %handle, CUDNN_DATA_FLOAT, .., [..], .., 10, 0, [], []`
fn build(
    _: &Dnn,
    backend: Attr<i32>,
    dilations: Attr<&[i64]>,
    (n_dims, mode): (Attr<i32>, Attr<i32>),
    (padding, steps): (Attr<&[i64]>, Attr<&[i64]>),
    _engine: Attr<i32>,
    (filter_dims, filter_strides): (Attr<&[i64]>, Attr<&[i64]>),
    (input_dims, input_strides, input_type): Tensors<'_>,
    (output_dims, output_strides, output_type): Tensors<'_>,
    (knobs, values): (Attr<&[i64]>, Attr<&[i64]>),
) -> Result<PlanOf, Error> {
    let part = match *backend {
        10 => ConvolutionPart::Result,
        11 => ConvolutionPart::Filter,
        12 => ConvolutionPart::Image,
        other => {
            let message = format!("expected a plan of kind 10, 11 or 12, found {other}");
            return Err(Error::invalid_argument(message));
        }
    };
    if knobs.len() != values.len() {
        let (n, n_values) = (knobs.len(), values.len());
        let message = format!("expected a value for each of {n} tuning knobs, found {n_values}");
        return Err(Error::invalid_argument(message));
    }
    if usize::try_from(*n_dims).ok() != Some(padding.len()) {
        let (n, found) = (*n_dims, padding.len());
        let message = format!("expected a padding for each of {n} dimensions, found {found}");
        return Err(Error::invalid_argument(message));
    }
    let (input, output) = (number(*input_type)?, number(*output_type)?);
    Ok(PlanOf(Plan {
        convolution: Convolution::new(keyword(*mode)?, &padding, &steps, &dilations)?,
        part,
        x: networks::extents(input, &input_dims, &input_strides)?,
        w: networks::extents(input, &filter_dims, &filter_strides)?,
        y: networks::extents(output, &output_dims, &output_strides)?,
    }))
}

/// `%c1 = tfrt_gpu.dnn.run_convolution %handle, %stream, %plan, %input, %output, %filter, %workspace, %c0`
fn run(
    (dnn, stream): (&Dnn, &Stream),
    plan: &PlanOf,
    x: &Buffer,
    y: &Buffer,
    w: &Buffer,
    _: &Buffer,
    _: Chain,
) -> Result<Chain, Error> {
    stream.context.expect("a handle", dnn.inner())?;
    let (x, w, y) = ((&plan.x, &x.0), (&plan.w, &w.0), (&plan.y, &y.0));
    plan.convolution.queue(stream, plan.part, x, w, y)
}
