//! Kernels on images: convolutions, pools, normalisation. They calculate with channels last; where channels come
//! first, images are transposed before and after ([`with_channels_last`]).
//!
//! A filter is best laid out for the processor before it is used: that takes as long as reading and writing it, for
//! each call of `tf.Conv2D`. Who calls a convolution often packs its filter once, by `tfrt.pack_conv2d`, and calls
//! `tfrt.conv2d`; for windows of 3x3 the filter is then transformed, too, for fewer multiplications. A packed filter is
//! a tensor like any other: nothing needs to be remembered, or found out to be old, when somebody writes the filter in
//! place.

use smallvec::smallvec;
use tfrt_host::{DType, Error};
use tfrt_ops::tf::images::{self, Bias, FusedOps, per_dimension};
use tfrt_tensor::math::Family;
use tfrt_tensor::math::conv::{
    Convolution, PackedFilter, TensorConvEpilogue, convolve_depthwise_into, convolve_into,
    convolve_packed_into, filter_gradient_into, input_gradient_into,
};
use tfrt_tensor::math::normalize::{ChannelTensors, channels_in_place, channels_into};
use tfrt_tensor::math::packed_gemm::{Activation, InstructionSet, TensorAddend, TensorEpilogue};
use tfrt_tensor::math::pointwise::{BinaryFunction, binary_into};
use tfrt_tensor::math::pool::{Pooling, pool_f32_into, pool_into};
use tfrt_tensor::math::resize::{CoordinateMode, Interpolation, NearestMode, Resize, nearest};
use tfrt_tensor::math::window::{Padding, Window};
use tfrt_tensor::op::{Outputs, TensorCall, TensorKernel, made, unsupported};
use tfrt_tensor::{DenseHostTensor, TensorShape};

use super::of_call;

mod channels_first;

use channels_first::with_channels_last;

pub(super) const KERNELS: &[TensorKernel] = &[
    TensorKernel::new("tf.AvgPool", |call| {
        with_channels_last(call, &[0], true, |call| pool(call, Pooling::Mean))
    })
    .of(Family::Reals),
    TensorKernel::new("tf.Conv2D", |call| {
        with_channels_last(call, &[0], true, convolve)
    })
    .of(Family::Reals),
    TensorKernel::new("tf.Conv2DBackpropFilter", |call| {
        with_channels_last(call, &[0, 2], false, filter_gradient)
    }),
    TensorKernel::new("tf.Conv2DBackpropInput", |call| {
        with_channels_last(call, &[2], true, input_gradient)
    }),
    TensorKernel::new("tf.DepthwiseConv2dNative", |call| {
        with_channels_last(call, &[0], true, convolve_channels)
    })
    .of(Family::Reals),
    TensorKernel::new("tf.FusedBatchNormV3", |call| {
        with_channels_last(call, &[0], true, normalise)
    }),
    TensorKernel::new("tf.MaxPool", |call| {
        with_channels_last(call, &[0], true, |call| pool(call, Pooling::Maximum))
    })
    .of(Family::Reals),
    TensorKernel::new("tf.ResizeBilinear", |call| {
        let (x, out) = (call.dense(0)?, call.output(0)?);
        let interpolation = Interpolation {
            coordinates: coordinates(call),
            ..Interpolation::LINEAR
        };
        let extents = [x, &out].map(|tensor| tensor.shape().to_dims());
        let resize = call.named(Resize::new(interpolation, &extents[0], &extents[1]))?;
        let chain = resize.run_into(call.execution, x, &out);
        Ok(smallvec![made(out, call.named(chain)?)?])
    }),
    TensorKernel::new("tf.ResizeNearestNeighbor", |call| {
        let (x, out) = (call.dense(0)?, call.output(0)?);
        let coordinates = coordinates(call);
        let rounding = match coordinates {
            CoordinateMode::Asymmetric => NearestMode::Floor,
            _ => NearestMode::HalfUp,
        };
        let extents = [x, &out].map(|tensor| tensor.shape().to_dims());
        let movement = call.named(nearest(&extents[0], &extents[1], coordinates, rounding))?;
        let chain = movement.run_into(call.execution, x, &out);
        Ok(smallvec![made(out, call.named(chain)?)?])
    }),
    TensorKernel::new("tf._FusedConv2D", |call| {
        expect_single(call)?;
        let shape = ConvShape::of(call, FilterLayout::Plain)?;
        by_new_filter(call, &shape)
    }),
    TensorKernel::new("tfrt.conv2d", convolve_packed),
    TensorKernel::new("tfrt.fold_batch_norm", fold),
    TensorKernel::new("tfrt.pack_conv2d", pack),
];

/// The least pixels of results for which a filter is packed that is used once.
const MIN_PIXELS: usize = 256;

/// The layout of a filter.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FilterLayout {
    /// One filter for all channels of a group.
    Plain,
    /// One or more filters for each channel.
    Depthwise,
    /// A packed filter, whose extents are an attribute.
    Packed,
}

/// The shapes of a convolution.
struct ConvShape {
    convolution: Convolution,
    /// The extents of the filter: `[kh, kw, c / groups, f]`.
    filter: [usize; 4],
}

impl ConvShape {
    fn of(call: &TensorCall<'_>, kind: FilterLayout) -> Result<ConvShape, Error> {
        let [_, _, _, channels] = four(call, call.dense(0)?)?;
        let (filter, groups) = match kind {
            FilterLayout::Plain => {
                let filter = four(call, call.dense(1)?)?;
                // A filter for a part of the channels is one of a group.
                let groups = match channels.checked_div(filter[2]) {
                    Some(groups @ 1..) if groups * filter[2] == channels => groups,
                    _ => 1,
                };
                (filter, groups)
            }
            FilterLayout::Depthwise => {
                let [height, width, own, each] = four(call, call.dense(1)?)?;
                let filters = own.checked_mul(each);
                let filters = filters.ok_or_else(|| {
                    call.error(format_args!("the filters exceed the largest integer"))
                })?;
                // Without channels there are no groups to be divided by.
                ([height, width, 1.min(own), filters], own.max(1))
            }
            FilterLayout::Packed => {
                let list = call.attrs.ints("filter").unwrap_or_default();
                let sizes: Vec<usize> = list
                    .iter()
                    .flat_map(|size| usize::try_from(*size))
                    .collect();
                let extents = <[usize; 4]>::try_from(&sizes[..]);
                let extents = extents.map_err(|_| {
                    call.error(format_args!(
                        "expected attribute 'filter' to have 4 extents, found {:?}",
                        &list[..]
                    ))
                })?;
                (extents, groups(call)?)
            }
        };
        let mut convolution = Convolution::new(&windows(call, [filter[0], filter[1]])?);
        convolution.groups = groups;
        // What does not fit together, or any memory.
        let input = call.dense(0)?.shape().to_dims();
        call.named(convolution.output_extents(&input, &filter))?;
        Ok(ConvShape {
            convolution,
            filter,
        })
    }

    /// Returns the number of pixels of the result's images.
    fn n_pixels(&self, call: &TensorCall<'_>) -> Result<usize, Error> {
        let pixels = call.result(0)?.shape.extents().take(3);
        Ok(pixels.fold(1, usize::saturating_mul))
    }

    /// Returns whether each channel has one filter of its own, which needs no packing.
    fn is_depthwise(&self) -> bool {
        is_depthwise(self.filter, self.convolution.groups)
    }
}

fn is_depthwise([_, _, own, filters]: [usize; 4], groups: usize) -> bool {
    own == 1 && groups == filters && groups > 1
}

fn four(call: &TensorCall<'_>, tensor: &DenseHostTensor) -> Result<[usize; 4], Error> {
    let found = tensor.shape();
    <[usize; 4]>::try_from(&found.to_dims()[..])
        .map_err(|_| call.error(format_args!("expected 4 dimensions, found {found}")))
}

fn groups(call: &TensorCall<'_>) -> Result<usize, Error> {
    let groups = call.attrs.int("groups").unwrap_or(1);
    match usize::try_from(groups) {
        Ok(groups @ 1..) => Ok(groups),
        _ => Err(call.error(format_args!(
            "expected attribute 'groups' to be above 0, found {groups}"
        ))),
    }
}

/// Returns windows of these extents, by the attributes.
fn windows(call: &TensorCall<'_>, extents: [usize; 2]) -> Result<[Window; 2], Error> {
    let laid = images::Windows::of(&call.attrs).map_err(of_call(call))?;
    Ok([0, 1].map(|at| Window {
        extent: extents[at],
        stride: laid.strides[at],
        dilation: laid.dilations[at],
        padding: match laid.padding {
            images::Padding::Valid => Padding::Valid,
            images::Padding::Same => Padding::Same,
            images::Padding::Explicit(sizes) => Padding::Explicit(sizes[at][0], sizes[at][1]),
        },
    }))
}

/// Returns the result of a convolution of images by a filter.
fn convolution(
    call: &TensorCall<'_>,
    images: &DenseHostTensor,
    filter: &DenseHostTensor,
) -> Result<Convolution, Error> {
    let ([.., channels], [height, width, own, _]) = (four(call, images)?, four(call, filter)?);
    let mut convolution = Convolution::new(&windows(call, [height, width])?);
    convolution.groups = match channels.checked_div(own) {
        Some(groups @ 1..) if groups * own == channels => groups,
        _ => 1,
    };
    Ok(convolution)
}

/// Returns the coordinates by which images are resized.
fn coordinates(call: &TensorCall<'_>) -> CoordinateMode {
    match ["align_corners", "half_pixel_centers"].map(|name| call.attrs.flag(name)) {
        [true, _] => CoordinateMode::AlignCorners,
        [_, true] => CoordinateMode::HalfPixel,
        _ => CoordinateMode::Asymmetric,
    }
}

fn expect_single(call: &TensorCall<'_>) -> Result<(), Error> {
    for index in 0..call.n_inputs() {
        let dtype = call.dense(index)?.dtype();
        if dtype != DType::F32 {
            return Err(unsupported(call.name, dtype));
        }
    }
    Ok(())
}

/// Returns the epilogue of the sums, and the tensor of the result: the residual, if nobody else holds it.
fn followers(call: &mut TensorCall<'_>) -> Result<(TensorEpilogue, DenseHostTensor), Error> {
    let fused = FusedOps::of(&call.attrs).map_err(of_call(call))?;
    let (scale, shift) = match fused.bias {
        Bias::Nothing => (None, None),
        Bias::Summands => (None, Some(call.dense(2)?.clone())),
        Bias::Normalisation => {
            let (factors, summands) = folded(call, [2, 3, 4, 5])?;
            (Some(factors), Some(summands))
        }
    };
    let mut after = TensorEpilogue {
        scale,
        shift,
        added: TensorAddend::Nothing,
        activation: match fused.function {
            None => Activation::None,
            Some("Relu") => Activation::Relu,
            Some(_) => Activation::Relu6,
        },
        then: None,
    };
    let result = call.result(0)?.clone();
    if !fused.adds {
        return Ok((after, call.allocate(result)?));
    }
    let index = 2 + fused.n_lists();
    if let Some(out) = call.take_like(index, &result) {
        after.added = TensorAddend::Result;
        return Ok((after, out));
    }
    after.added = TensorAddend::Tensor(call.dense(index)?.clone());
    Ok((after, call.allocate(result)?))
}

/// Packs the filter, and convolves.
fn by_new_filter(call: &mut TensorCall<'_>, shape: &ConvShape) -> Result<Outputs, Error> {
    if shape.is_depthwise() {
        return convolve_depthwise(call, shape);
    }
    let allocator = call.execution.host().allocator();
    let filter = call.dense(1)?.read()?;
    let packed = PackedFilter::pack(allocator, &filter.view()?, shape.convolution.groups)?;
    drop(filter);
    by_filter(call, shape, &packed)
}

fn by_filter(
    call: &mut TensorCall<'_>,
    shape: &ConvShape,
    packed: &PackedFilter,
) -> Result<Outputs, Error> {
    let (after, out) = followers(call)?;
    let x = call.dense(0)?;
    let chain = convolve_packed_into(call.execution, &shape.convolution, x, packed, after, &out);
    Ok(smallvec![made(out, call.named(chain)?)?])
}

/// Convolves each channel by its only filter.
fn convolve_depthwise(call: &mut TensorCall<'_>, shape: &ConvShape) -> Result<Outputs, Error> {
    let (after, out) = followers(call)?;
    let filter = call.dense(1)?.reshape(TensorShape::new(&shape.filter)?);
    let (x, filter) = (call.dense(0)?, call.named(filter)?);
    let operands = [x, &filter];
    let chain = convolve_depthwise_into(call.execution, &shape.convolution, operands, after, &out);
    Ok(smallvec![made(out, call.named(chain)?)?])
}

/// Convolves tensors of any real numbers.
fn convolve_numbers(call: &TensorCall<'_>, shape: &ConvShape) -> Result<Outputs, Error> {
    let x = call.dense(0)?;
    let filter = call.dense(1)?.reshape(TensorShape::new(&shape.filter)?)?;
    let (out, after) = (call.output(0)?, TensorConvEpilogue::default());
    let chain = convolve_into(
        call.execution,
        &shape.convolution,
        [x, &filter],
        after,
        &out,
    );
    Ok(smallvec![made(out, call.named(chain)?)?])
}

fn convolve_packed(call: &mut TensorCall<'_>) -> Result<Outputs, Error> {
    expect_single(call)?;
    let shape = ConvShape::of(call, FilterLayout::Packed)?;
    if shape.is_depthwise() {
        return convolve_depthwise(call, &shape);
    }
    let (elements, groups) = (call.dense(1)?.clone(), shape.convolution.groups);
    let set = InstructionSet::best();
    let packed = PackedFilter::from_elements(set, &shape.filter, groups, elements);
    let packed = call.named(packed)?;
    by_filter(call, &shape, &packed)
}

fn pack(call: &mut TensorCall<'_>) -> Result<Outputs, Error> {
    expect_single(call)?;
    let filter = call.dense(0)?;
    let (extents, groups) = (four(call, filter)?, groups(call)?);
    if is_depthwise(extents, groups) {
        return Ok(smallvec![filter.flatten().into()]);
    }
    let list = |name: &str| {
        let list = per_dimension(&call.attrs, name).map_err(of_call(call))?;
        Ok::<_, Error>(list.unwrap_or([1, 1]))
    };
    let (strides, dilations) = (list("strides")?, list("dilations")?);
    let windows = [0, 1].map(|at| Window {
        extent: extents[at],
        stride: strides[at],
        dilation: dilations[at],
        padding: Padding::Valid,
    });
    let mut convolution = Convolution::new(&windows);
    convolution.groups = groups;
    let allocator = call.execution.host().allocator();
    let reading = filter.read()?;
    let packed = PackedFilter::pack_best(
        allocator,
        InstructionSet::best(),
        &convolution,
        &reading.view()?,
    );
    Ok(smallvec![call.named(packed)?.elements().flatten().into()])
}

/// Returns the factors and summands that equal the normalisation in these operands: scale, offset, mean and variance.
fn folded(
    call: &TensorCall<'_>,
    [scale, offset, mean, variance]: [usize; 4],
) -> Result<(DenseHostTensor, DenseHostTensor), Error> {
    let channels = ChannelTensors {
        mean: call.dense(mean)?,
        variance: call.dense(variance)?,
        scale: call.dense(scale)?,
        shift: call.dense(offset)?,
    };
    let (factors, summands) = call.named(channels.folded(epsilon(call)))?;
    let allocator = call.execution.host().allocator();
    let of = |list: &[f32]| DenseHostTensor::from_slice(allocator, &[list.len()], list);
    Ok((of(&factors)?, of(&summands)?))
}

/// Returns the number that is added to variances before their roots are taken.
fn epsilon(call: &TensorCall<'_>) -> f32 {
    match call.attrs.get("epsilon") {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "graphs have numbers of this type"
        )]
        Some(tfrt_ops::AttrValue::Float(epsilon)) => epsilon as f32,
        _ => 1e-4,
    }
}

fn fold(call: &mut TensorCall<'_>) -> Result<Outputs, Error> {
    expect_single(call)?;
    let (factors, summands) = folded(call, [1, 2, 3, 4])?;
    let (filter, out) = (call.dense(0)?, call.output(0)?);
    let multiply = BinaryFunction::Multiply;
    let chain = binary_into(call.execution, multiply, filter, &factors, &out)?;
    Ok(smallvec![made(out, chain)?, summands.into()])
}

fn pool(call: &mut TensorCall<'_>, pooling: Pooling) -> Result<Outputs, Error> {
    let sizes = per_dimension(&call.attrs, "ksize").map_err(of_call(call))?;
    let windows = windows(call, sizes.unwrap_or([1, 1]))?;
    let (x, out) = (call.dense(0)?, call.output(0)?);
    let chain = match x.dtype() {
        DType::F32 => pool_f32_into(call.execution, pooling, x, &windows, &out),
        _ => pool_into(call.execution, pooling, x, &windows, &out),
    };
    Ok(smallvec![made(out, call.named(chain)?)?])
}

fn normalise(call: &mut TensorCall<'_>) -> Result<Outputs, Error> {
    let epsilon = f64::from(epsilon(call));
    let dtype = call.dense(0)?.dtype();
    if !matches!(dtype, DType::F32 | DType::F64) {
        return Err(unsupported(call.name, dtype));
    }
    let sole = call.operands.take_sole(0);
    let (mean, variance) = (call.dense(3)?, call.dense(4)?);
    let channels = ChannelTensors {
        mean,
        variance,
        scale: call.dense(1)?,
        shift: call.dense(2)?,
    };
    let y = match sole {
        Some(y) => {
            let chain = channels_in_place(call.execution, &y, &channels, epsilon)?;
            made(y, chain)?
        }
        None => {
            let y = call.output(0)?;
            let chain = channels_into(call.execution, call.dense(0)?, &channels, epsilon, &y)?;
            made(y, chain)?
        }
    };
    let [mean, variance] = [mean, variance].map(|tensor| tensor.clone());
    Ok(smallvec![
        y,
        mean.clone().into(),
        variance.clone().into(),
        mean.into(),
        variance.into(),
        call.zeros(5)?.into()
    ])
}

fn convolve(call: &mut TensorCall<'_>) -> Result<Outputs, Error> {
    let shape = ConvShape::of(call, FilterLayout::Plain)?;
    match call.dense(0)?.dtype() == DType::F32 && shape.n_pixels(call)? >= MIN_PIXELS {
        true => by_new_filter(call, &shape),
        false => convolve_numbers(call, &shape),
    }
}

fn filter_gradient(call: &mut TensorCall<'_>) -> Result<Outputs, Error> {
    let (x, gradient, out) = (call.dense(0)?, call.dense(2)?, call.output(0)?);
    let convolution = convolution(call, x, &out)?;
    let chain = filter_gradient_into(call.execution, &convolution, x, gradient, &out);
    Ok(smallvec![made(out, call.named(chain)?)?])
}

fn input_gradient(call: &mut TensorCall<'_>) -> Result<Outputs, Error> {
    let (filter, gradient, out) = (call.dense(1)?, call.dense(2)?, call.output(0)?);
    let convolution = convolution(call, &out, filter)?;
    let chain = input_gradient_into(call.execution, &convolution, gradient, filter, &out);
    Ok(smallvec![made(out, call.named(chain)?)?])
}

fn convolve_channels(call: &mut TensorCall<'_>) -> Result<Outputs, Error> {
    let shape = ConvShape::of(call, FilterLayout::Depthwise)?;
    match (call.dense(0)?.dtype(), shape.is_depthwise()) {
        (DType::F32, true) => convolve_depthwise(call, &shape),
        _ => convolve_numbers(call, &shape),
    }
}
