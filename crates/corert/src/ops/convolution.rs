//! Convolutions of images whose channels come last.
//!
//! A filter is best laid out for the processor before it is used: that takes as long as reading and writing it, for
//! each call of `tf.Conv2D`. Who calls a convolution often packs its filter once, by `tfrt.pack_conv2d`, and calls
//! `tfrt.conv2d`; for windows of 3x3 the filter is then transformed, too, for fewer multiplications. A packed filter is
//! a tensor like any other: nothing needs to be remembered, or found out to be old, when somebody writes the filter in
//! place.

use smallvec::smallvec;
use tfrt_host::{DType, Error};
use tfrt_tensor::math::Family;
use tfrt_tensor::math::conv::{
    Convolution, PackedFilter, TensorEpilogue, convolve_depthwise_into, convolve_into,
    convolve_packed_into,
};
use tfrt_tensor::math::panel::InstructionSet;
use tfrt_tensor::math::pointwise::{BinaryFunction, binary_into};
use tfrt_tensor::math::window::{Padding, Window};
use tfrt_tensor::{DenseHostTensor, TensorMetadata, TensorShape};

use super::elements::Elements;
use super::windows::{Attributes, dilated, windowed};
use crate::attributes::missing;
use crate::call::{Call, made};
use crate::definition::{
    AttrKind, MetadataCall, OpDefinition, OpRegistry, Outputs, ResultMetadata, expect_family,
};

mod fused;

use fused::{Bias, Fused, expect_lists, folded};

/// Products and sums that take as long as an addition of long tensors.
const PRODUCTS_OF_AN_ADDITION: u64 = 8;

/// Pixels of results from which on it pays to lay a filter out for them, which is then used once.
const MIN_PIXELS: usize = 256;

pub(super) fn register(registry: &mut OpRegistry) {
    registry
        .add(
            convolving("tf.Conv2D", |call| {
                let shape = Shape::of_call(call, Kind::Plain)?;
                match call.dense(0)?.dtype() == DType::F32 && shape.n_pixels() >= MIN_PIXELS {
                    true => by_new_filter(call, &shape, Fused::default()),
                    false => convolve_numbers(call, &shape),
                }
            })
            .summary(
                "The convolution of images `[n, h, w, c]` by a filter `[kh, kw, c, f]`; one of `[kh, kw, c / g, f]` is \
                 for `g` groups of channels that don't mix.",
            )
            .inputs(2)
            .attribute("use_cudnn_on_gpu", AttrKind::Bool, "not looked at")
            .attribute("T", AttrKind::Type, "the type of the elements")
            .elements(Elements::Reals.text())
            .metadata(|call| convolution_metadata(call, Kind::Plain, Elements::Reals)),
        )
        .add(
            convolving("tf._FusedConv2D", |call| {
                let shape = Shape::of_call(call, Kind::Plain)?;
                by_new_filter(call, &shape, Fused::of(Attributes::from(&*call))?)
            })
            .summary(
                "As `tf.Conv2D`, with what follows it: a bias, or scale, offset, mean and variance of a normalisation, \
                 then a summand of the result's shape, are inputs behind the filter.",
            )
            .inputs_from(3..=7)
            .attribute("fused_ops", AttrKind::Texts, FUSED_OPS)
            .attribute("epsilon", AttrKind::Float, "what is added to variances: 0.0001, if it is not stated")
            .attribute("num_args", AttrKind::Integer, "how many inputs there are behind the filter")
            .attribute("num_host_args", AttrKind::Integer, "not looked at")
            .attribute("leakyrelu_alpha", AttrKind::Float, "not looked at")
            .attribute("use_cudnn_on_gpu", AttrKind::Bool, "not looked at")
            .attribute("T", AttrKind::Type, "the type of the elements")
            .attribute("TArgs", AttrKind::Texts, "the types of the inputs behind the filter")
            .elements(Elements::Single.text())
            .metadata(|call| fused_metadata(call, Kind::Plain)),
        )
        .add(
            convolving("tf.DepthwiseConv2dNative", |call| {
                let shape = Shape::of_call(call, Kind::Depthwise)?;
                match (call.dense(0)?.dtype(), shape.is_depthwise()) {
                    (DType::F32, true) => convolve_depthwise(call, &shape, Fused::default()),
                    _ => convolve_numbers(call, &shape),
                }
            })
            .summary(
                "The convolution of each channel of images `[n, h, w, c]` by its own filters, `[kh, kw, c, m]`; the \
                 result has `c * m` channels.",
            )
            .inputs(2)
            .attribute("T", AttrKind::Type, "the type of the elements")
            .elements(Elements::Reals.text())
            .metadata(|call| convolution_metadata(call, Kind::Depthwise, Elements::Reals)),
        )
        .add(
            convolving("tfrt.conv2d", convolve_packed)
                .summary(
                    "The convolution of images `[n, h, w, c]` by a filter that `tfrt.pack_conv2d` has packed, and \
                     what follows it: a bias, then a summand of the result's shape, are inputs behind the filter.",
                )
                .inputs_from(2..=4)
                .attribute("filter", AttrKind::Integers, FILTER)
                .attribute("groups", AttrKind::Integer, GROUPS)
                .attribute("fused_ops", AttrKind::Texts, FUSED_OPS)
                .elements(Elements::Single.text())
                .metadata(|call| fused_metadata(call, Kind::Packed)),
        )
        .add(
            dilated(OpDefinition::new("tfrt.pack_conv2d", pack))
                .summary(
                    "A filter `[kh, kw, c / groups, f]` as `tfrt.conv2d` takes it, for convolutions with these strides \
                     and dilations, on this processor.",
                )
                .inputs(1)
                .attribute("strides", AttrKind::Integers, "those of the convolutions")
                .attribute("groups", AttrKind::Integer, GROUPS)
                .elements("f32")
                .pure(),
        )
        .add(
            OpDefinition::new("tfrt.fold_batch_norm", fold)
                .summary(
                    "A filter `[.., f]` and a bias `[f]` that take in the normalisation that follows a convolution: of \
                     the filter, scale, offset, mean and variance.",
                )
                .inputs(5)
                .results(2)
                .attribute("epsilon", AttrKind::Float, "what is added to variances: 0.0001, if it is not stated")
                .elements("f32")
                .metadata(fold_metadata)
                .pure(),
        );
}

const FILTER: &str = "the extents of the filter before it was packed, `[kh, kw, c / groups, f]`";
const GROUPS: &str = "how many groups of channels there are that don't mix: 1, if it is not stated";
const FUSED_OPS: &str =
    "`BiasAdd` or `FusedBatchNorm`, then `Add`, then `Relu` or `Relu6`, as far as there are such";

fn convolving(
    name: &'static str,
    dispatch: impl Fn(&mut Call<'_>) -> Result<Outputs, Error> + Send + Sync + 'static,
) -> OpDefinition {
    dilated(windowed(OpDefinition::new(name, dispatch)))
        .cost(|inputs, results| {
            let n = |metadata: &TensorMetadata| {
                metadata.shape.n_elements().unwrap_or(usize::MAX) as u64
            };
            let (Some(filter), Some(result)) = (inputs.get(1), results.first()) else {
                return u64::MAX;
            };
            // A filter has its elements for each of its results at a place.
            let filters = result.shape.extents().last().unwrap_or(1).max(1) as u64;
            (n(filter) / filters).saturating_mul(n(result)) / PRODUCTS_OF_AN_ADDITION
        })
        .pure()
}

/// How a filter is given.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// As it is.
    Plain,
    /// A filter or more for each channel.
    Depthwise,
    /// Packed; its extents are an attribute.
    Packed,
}

/// Shapes of a convolution.
struct Shape {
    convolution: Convolution,
    /// `[kh, kw, c / groups, f]`
    filter: [usize; 4],
    /// `[n, oh, ow, f]`
    output: TensorShape,
}

impl Shape {
    fn of_call(call: &Call<'_>, kind: Kind) -> Result<Shape, Error> {
        let (x, filter) = (call.dense(0)?.metadata(), call.dense(1)?.metadata());
        Shape::new(Attributes::from(call), x, filter, kind)
    }

    fn new(
        attributes: Attributes<'_>,
        x: &TensorMetadata,
        filter: &TensorMetadata,
        kind: Kind,
    ) -> Result<Shape, Error> {
        let input = attributes.four(x, "images [batch, height, width, channels]")?;
        let (filter, groups) = match kind {
            Kind::Plain => {
                let what = "a filter [height, width, channels, filters]";
                let filter = attributes.four(filter, what)?;
                // A filter for a part of the channels is one of a group.
                let groups = match input[3].checked_div(filter[2]) {
                    Some(groups @ 1..) if groups * filter[2] == input[3] => groups,
                    _ => 1,
                };
                (filter, groups)
            }
            Kind::Depthwise => {
                let what = "a filter [height, width, channels, filters of each]";
                let [height, width, channels, each] = attributes.four(filter, what)?;
                if channels != input[3] {
                    let found = input[3];
                    return Err(attributes.error(format_args!(
                        "Dimensions does not match: input channels is {found} and kernel depth is {channels}"
                    )));
                }
                let filters = channels.checked_mul(each).ok_or_else(|| {
                    attributes.error(format_args!("the filters exceed the largest integer"))
                })?;
                // Without channels there are no groups to be divided by.
                ([height, width, 1.min(channels), filters], channels.max(1))
            }
            Kind::Packed => packed_shape(attributes)?,
        };
        let mut convolution = Convolution::new(&attributes.windows([filter[0], filter[1]])?);
        convolution.groups = groups;
        let output = attributes.named(convolution.output_extents(&input, &filter))?;
        let output = TensorShape::new(&output)?;
        Ok(Shape {
            convolution,
            filter,
            output,
        })
    }

    /// How many pixels the result's images have.
    fn n_pixels(&self) -> usize {
        let pixels = self.output.extents().take(3);
        pixels.fold(1, usize::saturating_mul)
    }

    /// Whether each channel has one filter of its own, which needs no packing.
    fn is_depthwise(&self) -> bool {
        is_depthwise(self.filter, self.convolution.groups)
    }
}

fn is_depthwise([_, _, own, filters]: [usize; 4], groups: usize) -> bool {
    own == 1 && groups == filters && groups > 1
}

/// The extents of a packed filter, and its groups.
fn packed_shape(attributes: Attributes<'_>) -> Result<([usize; 4], usize), Error> {
    let list = attributes.attrs.integers("filter")?;
    let list = list.ok_or_else(|| missing(attributes.op, "filter"))?;
    let sizes = list.iter().map(|size| usize::try_from(*size).ok());
    match sizes.collect::<Option<Vec<usize>>>().as_deref() {
        Some(&[height, width, own, filters]) => {
            Ok(([height, width, own, filters], groups(attributes)?))
        }
        _ => Err(attributes.error(format_args!(
            "expected attribute 'filter' to have 4 extents, found {:?}",
            &list[..]
        ))),
    }
}

fn groups(attributes: Attributes<'_>) -> Result<usize, Error> {
    let groups = attributes.attrs.integer("groups")?.unwrap_or(1);
    match usize::try_from(groups) {
        Ok(groups @ 1..) => Ok(groups),
        _ => Err(attributes.error(format_args!(
            "expected attribute 'groups' to be above 0, found {groups}"
        ))),
    }
}

fn convolution_metadata(
    call: &MetadataCall<'_>,
    kind: Kind,
    elements: Elements,
) -> Result<ResultMetadata, Error> {
    let attributes = Attributes::from(call);
    let [x, filter, ..] = call.inputs else {
        return Err(attributes.error(format_args!("expected images and a filter")));
    };
    if x.dtype != filter.dtype {
        return Err(attributes.error(format_args!(
            "expected images and a filter of one type, found {x} and {filter}"
        )));
    }
    elements.expect(call.op, x.dtype)?;
    let shape = Shape::new(attributes, x, filter, kind)?;
    Ok(smallvec![TensorMetadata::new(x.dtype, shape.output)])
}

/// The same of a convolution and what follows it.
fn fused_metadata(call: &MetadataCall<'_>, kind: Kind) -> Result<ResultMetadata, Error> {
    let attributes = Attributes::from(call);
    let results = convolution_metadata(call, kind, Elements::Single)?;
    let fused = Fused::of(attributes)?;
    if kind == Kind::Packed && fused.bias == Bias::Normalisation {
        return Err(attributes.error(format_args!(
            "Unsupported fusion type: a normalisation is folded into the filter by tfrt.fold_batch_norm before that is \
             packed"
        )));
    }
    fused.expect_inputs(attributes, call.inputs, &results[0])?;
    Ok(results)
}

/// Packs the filter, and convolves.
fn by_new_filter(call: &mut Call<'_>, shape: &Shape, fused: Fused) -> Result<Outputs, Error> {
    if shape.is_depthwise() {
        return convolve_depthwise(call, shape, fused);
    }
    let allocator = call.execution().host().allocator();
    let filter = call.dense(1)?.read()?;
    let packed = PackedFilter::pack(allocator, &filter.view()?, shape.convolution.groups)?;
    drop(filter);
    by_filter(call, shape, &packed, fused)
}

fn by_filter(
    call: &mut Call<'_>,
    shape: &Shape,
    packed: &PackedFilter,
    fused: Fused,
) -> Result<Outputs, Error> {
    let (after, out) = fused.take(call)?;
    let (x, execution) = (call.dense(0)?, call.execution());
    let chain = convolve_packed_into(execution, &shape.convolution, x, packed, after, &out);
    call.made(out, Attributes::from(&*call).named(chain)?)
}

/// Convolves each channel by its only filter.
fn convolve_depthwise(call: &mut Call<'_>, shape: &Shape, fused: Fused) -> Result<Outputs, Error> {
    let (after, out) = fused.take(call)?;
    let filter = call.dense(1)?.reshape(TensorShape::new(&shape.filter)?);
    let (x, filter) = (call.dense(0)?, filter?);
    let execution = call.execution();
    let chain = convolve_depthwise_into(execution, &shape.convolution, [x, &filter], after, &out);
    call.made(out, Attributes::from(&*call).named(chain)?)
}

/// Convolves tensors of any real numbers.
fn convolve_numbers(call: &Call<'_>, shape: &Shape) -> Result<Outputs, Error> {
    let x = call.dense(0)?;
    let filter = call.dense(1)?.reshape(TensorShape::new(&shape.filter)?)?;
    let (execution, out) = (call.execution(), call.output(0)?);
    let (convolution, after) = (&shape.convolution, TensorEpilogue::default());
    expect_family(call.op(), Family::Reals, x.dtype())?;
    let chain = convolve_into(execution, convolution, [x, &filter], after, &out)?;
    call.made(out, chain)
}

fn convolve_packed(call: &mut Call<'_>) -> Result<Outputs, Error> {
    let attributes = Attributes::from(&*call);
    let fused = Fused::of(attributes)?;
    let shape = Shape::of_call(call, Kind::Packed)?;
    if shape.is_depthwise() {
        return convolve_depthwise(call, &shape, fused);
    }
    let (elements, groups) = (call.dense(1)?.clone(), shape.convolution.groups);
    let set = InstructionSet::best();
    let packed = PackedFilter::from_elements(set, &shape.filter, groups, elements);
    let packed = attributes.named(packed)?;
    by_filter(call, &shape, &packed, fused)
}

fn pack(call: &mut Call<'_>) -> Result<Outputs, Error> {
    let attributes = Attributes::from(&*call);
    let filter = call.dense(0)?;
    let extents = attributes.four(
        filter.metadata(),
        "a filter [height, width, channels, filters]",
    )?;
    let groups = groups(attributes)?;
    if is_depthwise(extents, groups) {
        return Ok(smallvec![filter.flatten().into()]);
    }
    let strides = attributes.per_dimension("strides")?.unwrap_or([1, 1]);
    let dilations = attributes.per_dimension("dilations")?.unwrap_or([1, 1]);
    let window = |index: usize| Window {
        extent: extents[index],
        stride: strides[index],
        dilation: dilations[index],
        padding: Padding::Valid,
    };
    let mut convolution = Convolution::new(&[window(0), window(1)]);
    convolution.groups = groups;
    let allocator = call.execution().host().allocator();
    let reading = filter.read()?;
    let packed = PackedFilter::pack_best(allocator, &convolution, &reading.view()?);
    Ok(smallvec![
        attributes.named(packed)?.elements().flatten().into()
    ])
}

fn fold_metadata(call: &MetadataCall<'_>) -> Result<ResultMetadata, Error> {
    let attributes = Attributes::from(call);
    let [filter, lists @ ..] = call.inputs else {
        return Err(attributes.error(format_args!("expected a filter and a normalisation")));
    };
    let filters = filter.shape.extents().last();
    if filters.is_none() || filter.dtype != DType::F32 {
        return Err(attributes.error(format_args!(
            "expected a filter of f32 of one dimension or more, found {filter}"
        )));
    }
    expect_lists(attributes, lists, filters)?;
    attributes.epsilon()?;
    let bias = TensorShape::new(&[filters.unwrap_or(0)])?;
    Ok(smallvec![
        TensorMetadata::clone(filter),
        TensorMetadata::new(DType::F32, bias)
    ])
}

fn fold(call: &mut Call<'_>) -> Result<Outputs, Error> {
    let (factors, summands) = folded(call, [1, 2, 3, 4])?;
    let (execution, filter, out) = (call.execution(), call.dense(0)?, call.output(0)?);
    let allocator = execution.host().allocator();
    let of = |list: &[f32]| DenseHostTensor::from_slice(allocator, &[list.len()], list);
    let chain = binary_into(
        execution,
        BinaryFunction::Multiply,
        filter,
        &of(&factors)?,
        &out,
    )?;
    Ok(smallvec![made(out, chain)?, of(&summands)?.into()])
}
