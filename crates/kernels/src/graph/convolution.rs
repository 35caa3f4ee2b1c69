//! Convolutions by filters that are packed when a model is opened.

use tfrt_host::codec::{DecodeContext, Decoder, Encoder, ValueCodec, expect};
use tfrt_host::kernel::{Attr, Operands};
use tfrt_host::{AnyAsyncValue, Error, ExecutionContext, Heap, HostContext, Value};
use tfrt_tensor::math::conv::{
    Convolution, Method, PackedFilter, convolve_depthwise_into, convolve_joined_into,
    convolve_packed_into, joined_extents,
};
use tfrt_tensor::math::panel::{AddedTensor, TensorAfter};
use tfrt_tensor::{DType, DenseHostTensor, Tensor};

use super::{Made, Placement, activation, dense, made, memory, shared, stored};

/// A filter, and what is added to each of its sums.
#[derive(Clone, Debug)]
pub(super) struct Filter {
    elements: Elements,
    extents: [usize; 4],
    groups: usize,
    shift: Option<DenseHostTensor>,
}

#[derive(Clone, Debug)]
enum Elements {
    Packed(PackedFilter),
    /// Of a convolution whose channels don't mix, `[rows, columns, 1, filters]`.
    Depthwise(DenseHostTensor),
}

impl Value for Filter {
    const NAME: &'static str = "!cpu.fused.filter";
    type Storage = Heap;
}

/// Filters as files keep them: how they are packed, extents and groups, then the elements and what is added.
pub(super) const CODEC: ValueCodec = ValueCodec {
    type_name: Filter::NAME,
    version: 1,
    encode: |value, encoder| expect::<Filter>(value)?.write(encoder),
    decode: |decoder, context| Ok(AnyAsyncValue::new(Filter::read(decoder, context)?)),
};

impl Filter {
    fn write(&self, encoder: &mut Encoder) -> Result<(), Error> {
        let set = stored::target(encoder)?;
        let (kind, elements) = match &self.elements {
            Elements::Packed(packed) => (
                packed.method().name(),
                packed.elements_for(encoder.allocator(), set)?,
            ),
            Elements::Depthwise(elements) => (DEPTHWISE, elements.clone()),
        };
        stored::write_layout(kind, set, encoder);
        for number in self.extents.iter().chain([&self.groups]) {
            encoder.usize(*number);
        }
        stored::write_packed(elements, self.shift.clone(), encoder)
    }

    fn read(decoder: &mut Decoder<'_>, context: &DecodeContext<'_>) -> Result<Filter, Error> {
        let (kind, sets) = stored::read_layout(decoder, context)?;
        let mut extents = [0; 4];
        for extent in &mut extents {
            *extent = decoder.usize()?;
        }
        let groups = decoder.usize()?;
        let [_, _, own, filters] = extents;
        let (elements, shift) = stored::read_packed(filters, decoder, context)?;
        let elements = if kind == DEPTHWISE {
            let shape = elements.shape().to_dims();
            if elements.dtype() != DType::F32
                || shape[..] != extents
                || own != 1
                || groups != filters
            {
                return Err(decoder.wrong(format_args!(
                    "a filter of shape {extents:?} of channels that don't mix, found {shape:?}"
                )));
            }
            Elements::Depthwise(elements)
        } else {
            let method = Method::from_name(kind).ok_or_else(|| {
                let kind = kind.escape_debug();
                decoder.wrong(format_args!("a kind of filter, found '{kind}'"))
            })?;
            let (allocator, filter) = (context.allocator(), (&extents[..], groups));
            let packed = PackedFilter::restore(allocator, sets, method, filter, elements)?;
            Elements::Packed(packed)
        };
        Ok(Filter {
            elements,
            extents,
            groups,
            shift,
        })
    }
}

/// The kind of a filter of channels that don't mix.
const DEPTHWISE: &str = "depthwise";

/// `%f = "cpu.pack.conv"(%filter, ..) {dilations = [1, 1], epsilon = 1.0e-5 : f32, groups = 1 : i64, strides = [1, 1]}`
///
/// Dilations and strides are those of all convolutions by it: they decide how it is packed.
///
/// Behind the filter come a bias or none, then scale, shift, mean and variance of a normalisation that
/// follows, or none of these four.
///
/// # Shapes
///
/// `filter: [filters, channels / groups, rows, columns]`, all others `[filters]`.
pub(super) fn pack(
    operands: Operands<'_>,
    dilations: Attr<&[i64]>,
    epsilon: Attr<f32>,
    groups: Attr<i64>,
    strides: Attr<&[i64]>,
    host: &HostContext,
) -> Result<Filter, Error> {
    let filter = dense(&operands, 0)?;
    let shape = filter.shape().to_dims();
    let &[filters, own, rows, columns] = &shape[..] else {
        let message =
            format!("expected a filter [filters, channels, rows, columns], found {shape:?}");
        return Err(Error::invalid_argument(message));
    };
    let groups = usize::try_from(*groups).unwrap_or(0);
    if groups == 0 || filters % groups != 0 {
        let message = format!("{filters} filters can't be divided into {groups} groups");
        return Err(Error::invalid_argument(message));
    }
    let (factors, summands) = after(&operands, filters, *epsilon)?;
    let reading = filter.read()?;
    let from = reading.elements::<f32>()?;
    let extents = [rows, columns, own, filters];
    let mut elements = vec![0.0_f32; from.len()];
    let n_taps = rows * columns;
    for (index, out) in elements.iter_mut().enumerate() {
        // The last dimension is that of the filters.
        let (rest, f) = (index / filters, index % filters);
        let (tap, channel) = (rest / own, rest % own);
        *out = from[(f * own + channel) * n_taps + tap];
        if let Some(factors) = &factors {
            *out *= factors[f];
        }
    }
    let allocator = host.allocator();
    let ordered = DenseHostTensor::from_slice(allocator, &extents, &elements)?;
    let is_depthwise = own == 1 && groups == filters && groups > 1;
    let elements = match is_depthwise {
        true => Elements::Depthwise(ordered),
        false => {
            let reading = ordered.read()?;
            let placement = Placement {
                dilations: &dilations,
                pads: &[],
                strides: &strides,
            };
            let mut convolution = Convolution::new(&placement.windows(&[rows, columns])?);
            convolution.groups = groups;
            let packed = PackedFilter::pack_best(allocator, &convolution, &reading.view()?)?;
            Elements::Packed(packed.map_elements(|elements| shared::share(host, elements)))
        }
    };
    let shift = match summands {
        Some(list) => Some(DenseHostTensor::from_slice(allocator, &[filters], &list)?),
        None => None,
    };
    Ok(Filter {
        elements,
        extents,
        groups,
        shift,
    })
}

type Factors = Option<Vec<f32>>;

/// What sums are multiplied by, and what is added to them.
fn after(
    operands: &[AnyAsyncValue],
    filters: usize,
    epsilon: f32,
) -> Result<(Factors, Factors), Error> {
    let list = |index: usize| -> Result<Vec<f32>, Error> {
        let tensor = dense(operands, index)?;
        let reading = tensor.read()?;
        let found = reading.elements::<f32>()?;
        match found.len() == filters {
            true => Ok(found.to_vec()),
            false => Err(Error::invalid_argument(format!(
                "expected an element for each of {filters} filters, found {}",
                found.len()
            ))),
        }
    };
    match operands.len() {
        1 => Ok((None, None)),
        2 => Ok((None, Some(list(1)?))),
        5 | 6 => {
            let first = operands.len() - 4;
            let bias = if first == 2 { Some(list(1)?) } else { None };
            let statistics = [0, 1, 2, 3].map(|index| list(first + index));
            let [scale, shift, mean, variance] = statistics;
            let (factors, mut summands) =
                normalisation([scale?, shift?, mean?, variance?], epsilon);
            if let Some(bias) = bias {
                for ((summand, bias), factor) in summands.iter_mut().zip(bias).zip(&factors) {
                    *summand += bias * factor;
                }
            }
            Ok((Some(factors), Some(summands)))
        }
        found => Err(Error::invalid_argument(format!(
            "expected a filter with 0, 1, 4 or 5 lists behind it, found {found} operands"
        ))),
    }
}

/// Factors and summands that are `(x - mean) / sqrt(variance + epsilon) * scale + shift`.
fn normalisation(
    [scale, shift, mean, variance]: [Vec<f32>; 4],
    epsilon: f32,
) -> (Vec<f32>, Vec<f32>) {
    let factors = scale.iter().zip(&variance);
    let factors: Vec<f32> = factors
        .map(|(scale, variance)| scale / (variance + epsilon).sqrt())
        .collect();
    let summands = shift.iter().zip(&mean).zip(&factors);
    let summands = summands.map(|((shift, mean), factor)| shift - mean * factor);
    let summands = summands.collect();
    (factors, summands)
}

/// `%s, %t = "cpu.pack.norm"(%scale, %shift, %mean, %variance) {epsilon = 1.0e-5 : f32}`
///
/// # Shapes
///
/// All `[channels]`.
pub(super) fn pack_norm(
    operands: Operands<'_>,
    epsilon: Attr<f32>,
    host: &HostContext,
) -> Result<(Tensor, Tensor), Error> {
    let n = dense(&operands, 0)?.n_elements();
    let list = |index: usize| -> Result<Vec<f32>, Error> {
        let tensor = dense(&operands, index)?;
        let reading = tensor.read()?;
        let found = reading.elements::<f32>()?;
        match found.len() == n {
            true => Ok(found.to_vec()),
            false => Err(Error::invalid_argument(format!(
                "expected an element for each of {n} channels, found {}",
                found.len()
            ))),
        }
    };
    let (factors, summands) = normalisation([list(0)?, list(1)?, list(2)?, list(3)?], *epsilon);
    let of = |list: &[f32]| DenseHostTensor::from_slice(host.allocator(), &[n], list);
    Ok((of(&factors)?.into(), of(&summands)?.into()))
}

/// `%y = "cpu.fused.conv"(%x, %f, ..) {activation = "relu", dilations = [1, 1], pads = [1, 1, 1, 1], strides = [1, 1]}`
///
/// A third operand is added to the sums before the activation.
///
/// # Shapes
///
/// `x: [n, h, w, c]`, `y: [n, oh, ow, f]`, what is added as `y`.
pub(super) fn convolve(
    operands: Operands<'_>,
    name: Attr<&str>,
    dilations: Attr<&[i64]>,
    pads: Attr<&[i64]>,
    strides: Attr<&[i64]>,
    execution: &ExecutionContext,
) -> Made {
    let x = dense(&operands, 0)?;
    let filter = operands.get(1).and_then(|value| value.get::<Filter>());
    let filter = filter.ok_or_else(|| Error::invalid_argument("operand 1: expected a filter"))?;
    let activation = activation(&name)?;
    let placement = Placement {
        dilations: &dilations,
        pads: &pads,
        strides: &strides,
    };
    let mut convolution = Convolution::new(&placement.windows(&filter.extents[..2])?);
    convolution.groups = filter.groups;
    let extents = convolution.output_extents(&x.shape().to_dims(), &filter.extents)?;
    let out = memory::output(execution, &extents)?;
    let added = match operands.len() {
        2 => AddedTensor::Nothing,
        _ => AddedTensor::Tensor(dense(&operands, 2)?.clone()),
    };
    let after = TensorAfter {
        scale: None,
        shift: filter.shift.clone(),
        added,
        activation,
    };
    let chain = match &filter.elements {
        Elements::Packed(packed) => {
            convolve_packed_into(execution, &convolution, x, packed, after, &out)?
        }
        Elements::Depthwise(elements) => {
            convolve_depthwise_into(execution, &convolution, [x, elements], after, &out)?
        }
    };
    Ok(made(out, chain))
}

/// `%y = "cpu.fused.joined"(%f, %a, %b, ..) {activation = "relu"}`
///
/// A convolution by windows of one element and stride 1 of images that are joined along their channels.
///
/// # Shapes
///
/// Images `[n, h, w, own]`, alike; `y: [n, h, w, f]`.
pub(super) fn convolve_joined(
    operands: Operands<'_>,
    name: Attr<&str>,
    execution: &ExecutionContext,
) -> Made {
    let filter = operands.first().and_then(|value| value.get::<Filter>());
    let filter = filter.ok_or_else(|| Error::invalid_argument("operand 0: expected a filter"))?;
    let Elements::Packed(packed) = &filter.elements else {
        let message = "expected a filter of channels that mix, found one of channels that don't";
        return Err(Error::invalid_argument(message));
    };
    let parts = (1..operands.len()).map(|index| dense(&operands, index));
    let parts: Vec<&DenseHostTensor> = parts.collect::<Result<_, _>>()?;
    let shapes: Vec<_> = parts.iter().map(|part| part.shape().to_dims()).collect();
    let shapes: Vec<&[usize]> = shapes.iter().map(|shape| &shape[..]).collect();
    let out = memory::output(execution, &joined_extents(&shapes, packed)?)?;
    let after = TensorAfter {
        scale: None,
        shift: filter.shift.clone(),
        added: AddedTensor::Nothing,
        activation: activation(&name)?,
    };
    let chain = convolve_joined_into(execution, &parts, packed, after, &out)?;
    Ok(made(out, chain))
}
