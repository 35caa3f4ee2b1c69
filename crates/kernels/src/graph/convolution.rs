//! Convolutions whose filters are packed when a model is opened.

use std::sync::Arc;

use tfrt_host::codec::{DecodeContext, Decoder, Encoder};
use tfrt_host::kernel::{Attr, AttributeView, Operands};
use tfrt_host::{Error, ExecutionContext};
use tfrt_tensor::math::conv::{
    Convolution, Method, PackedFilter, convolve_concat_extents, convolve_concat_into,
    convolve_depthwise_into, convolve_packed_into,
};
use tfrt_tensor::math::layout_copy::LayoutCopy;
use tfrt_tensor::math::packed_gemm::{InstructionSet, TensorAddend, TensorEpilogue};
use tfrt_tensor::op::PreparedState;
use tfrt_tensor::{DType, DenseHostTensor, TensorMetadata, TensorShape, TensorView, TensorViewMut};

use crate::onnx::{NodeCall, PrepareRow, state};

use super::epilogue::Epilogue;
use super::{TensorResult, WindowAttributes, dense, made, memory, shared, stored};

/// The nodes whose filters are packed, with their biases and normalisations.
pub(super) const PREPARE: [PrepareRow; 2] = [
    PrepareRow {
        op: "fused.conv",
        inputs: &[1, 2, 4, 5, 6, 7],
        types: &[],
        takes_attributes: false,
        make: |node| Ok(Some(Arc::new(pack(node, [1, 2], [4, 5, 6, 7])?))),
        restore: Some(|decoder, context| Ok(Arc::new(Filter::read(decoder, context)?))),
    },
    PrepareRow {
        op: "fused.joined",
        inputs: &[0, 1, 2, 3, 4, 5],
        types: &[],
        takes_attributes: false,
        make: |node| Ok(Some(Arc::new(pack(node, [0, 1], [2, 3, 4, 5])?))),
        restore: Some(|decoder, context| Ok(Arc::new(Filter::read(decoder, context)?))),
    },
];

/// A packed filter, with the summands of its sums.
#[derive(Clone, Debug)]
struct Filter {
    elements: Elements,
    extents: [usize; 4],
    groups: usize,
    shift: Option<DenseHostTensor>,
    epilogue: Epilogue,
}

/// The elements of a filter, in the layout of its convolution.
#[derive(Clone, Debug)]
enum Elements {
    Packed(PackedFilter),
    /// The filters of a depthwise convolution, `[rows, columns, 1, filters]`.
    Depthwise(DenseHostTensor),
}

/// In a file: the layout of the filter, extents and groups, then the elements and the summands.
impl PreparedState for Filter {
    fn encode(&self, encoder: &mut Encoder) -> Option<Result<(), Error>> {
        Some(self.write(encoder))
    }
}

impl Filter {
    fn write(&self, encoder: &mut Encoder) -> Result<(), Error> {
        let (kind, set, elements) = match &self.elements {
            Elements::Packed(packed) => {
                let set = stored::target(encoder, packed.instruction_set())?;
                let elements = packed.elements_for(encoder.allocator(), set)?;
                (packed.method().name(), set, elements)
            }
            Elements::Depthwise(elements) => {
                let set = stored::target(encoder, InstructionSet::best())?;
                (DEPTHWISE, set, elements.clone())
            }
        };
        stored::write_layout(kind, set, encoder);
        for number in self.extents.iter().chain([&self.groups]) {
            encoder.usize(*number);
        }
        stored::write_packed(elements, self.shift.clone(), encoder)?;
        self.epilogue.write(encoder);
        Ok(())
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
            epilogue: Epilogue::read(decoder)?,
        })
    }
}

/// The kind of a depthwise filter in a file.
const DEPTHWISE: &str = "depthwise";

/// Packs a filter for dilations, strides and groups, with bias and normalisation. `own` are the indices of the filter
/// and its bias, `norm` those of scale, shift, mean and variance, or of operands that are left out.
///
/// # Shapes
///
/// `filter: [filters, channels / groups, rows, columns]`, all others `[filters]`.
fn pack(node: &NodeCall<'_>, own: [usize; 2], norm: [usize; 4]) -> Result<Filter, Error> {
    let filter = node.inputs.dense(own[0])?;
    let shape = filter.shape().to_dims();
    let &[filters, channels, rows, columns] = &shape[..] else {
        let message =
            format_args!("is expected to be [filters, channels, rows, columns], found {shape:?}");
        return Err(node.inputs.error(own[0], message));
    };
    let groups = node.attributes.size_or("groups", 1)?;
    if groups == 0 || filters % groups != 0 {
        return Err(node.error(format_args!(
            "{filters} filters can't be divided into {groups} groups"
        )));
    }
    let (factors, summands) = affine_of(node, own[1], norm, filters)?;
    let own = channels;
    let host = node.execution.host();
    let reading = filter.read()?;
    let from = reading.elements::<f32>()?;
    let extents = [rows, columns, own, filters];
    let allocator = host.allocator();
    let metadata = TensorMetadata::new(DType::F32, TensorShape::new(&extents)?);
    let mut turned = DenseHostTensor::unspecified(allocator, metadata)?;
    let elements = turned.elements_mut::<f32>()?;
    let elements = elements.expect("nobody else has it yet");
    filters_last(from, extents, factors.as_deref(), elements)?;
    let is_depthwise = own == 1 && groups == filters && groups > 1;
    let elements = match is_depthwise {
        true => Elements::Depthwise(turned),
        false => {
            let ones = &[1, 1][..];
            let placement = WindowAttributes {
                dilations: node.attributes.integers("dilations")?.unwrap_or(ones),
                pads: &[],
                strides: node.attributes.integers("strides")?.unwrap_or(ones),
            };
            let mut convolution = Convolution::new(&placement.windows(&[rows, columns])?);
            convolution.groups = groups;
            let packed = PackedFilter::pack_best(
                allocator,
                stored::precision(node)?,
                &convolution,
                &TensorView::new(elements, &extents)?,
            )?;
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
        epilogue: Epilogue::of(node)?,
    })
}

/// Writes the elements of a filter with the filters as last dimension, each multiplied by its filter's factor.
///
/// # Shapes
///
/// `from: [filters, channels / groups, rows, columns]`; `elements` have the extents `[rows, columns, channels / groups,
/// filters]`.
fn filters_last(
    from: &[f32],
    [rows, columns, own, filters]: [usize; 4],
    factors: Option<&[f32]>,
    elements: &mut [f32],
) -> Result<(), Error> {
    let n_taps = rows * columns;
    let (given, wanted) = ([filters, own, n_taps], [n_taps, own, filters]);
    let (from, mut to) = (
        TensorView::new(from, &given)?,
        TensorViewMut::new(elements, &wanted)?,
    );
    LayoutCopy::transpose(&given, &[2, 1, 0])?.run(&from, &mut to)?;
    let Some(factors) = factors else {
        return Ok(());
    };
    for line in elements.chunks_exact_mut(filters.max(1)) {
        for (element, factor) in line.iter_mut().zip(factors) {
            *element *= factor;
        }
    }
    Ok(())
}

type Factors = Option<Vec<f32>>;

/// Returns the factors and the summands of a filter's sums.
fn affine_of(
    node: &NodeCall<'_>,
    bias: usize,
    norm: [usize; 4],
    filters: usize,
) -> Result<(Factors, Factors), Error> {
    let list = |index: usize| -> Result<Option<Vec<f32>>, Error> {
        let Some(tensor) = node.inputs.optional_dense(index)? else {
            return Ok(None);
        };
        let reading = tensor.read()?;
        let found = reading.elements::<f32>()?;
        match found.len() == filters {
            true => Ok(Some(found.to_vec())),
            false => Err(node.inputs.error(
                index,
                format_args!(
                    "is expected to have an element for each of {filters} filters, found {}",
                    found.len()
                ),
            )),
        }
    };
    let bias = list(bias)?;
    let [scale, shift, mean, variance] = norm.map(list);
    let (Some(scale), Some(shift), Some(mean), Some(variance)) = (scale?, shift?, mean?, variance?)
    else {
        return Ok((None, bias));
    };
    let epsilon = node.attributes.float_or("epsilon", 0.0)?;
    let (factors, mut summands) = normalisation([scale, shift, mean, variance], epsilon);
    for ((summand, bias), factor) in summands.iter_mut().zip(bias.iter().flatten()).zip(&factors) {
        *summand += bias * factor;
    }
    Ok((Some(factors), Some(summands)))
}

/// Returns the factors and summands that equal `(x - mean) / sqrt(variance + epsilon) * scale + shift`.
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

/// `%y = "cpu.fused.conv"(%x, %added, %p) {dilations = [1, 1], epilogue = ["relu a0"], epsilon = 0.0 : f32, groups =
/// 1 : i64, pads = [1, 1, 1, 1], strides = [1, 1]}`, or without the residual, which is added to the sums before the
/// epilogue.
///
/// # Shapes
///
/// `x: [n, h, w, c]`, `y: [n, oh, ow, f]`, what is added as `y`.
#[expect(clippy::too_many_arguments, reason = "attributes are parameters")]
pub(super) fn convolve(
    operands: Operands<'_>,
    dilations: Attr<&[i64]>,
    _epilogue: Attr<AttributeView<'_>>,
    _epsilon: Attr<f32>,
    _groups: Attr<i64>,
    pads: Attr<&[i64]>,
    strides: Attr<&[i64]>,
    execution: &ExecutionContext,
) -> TensorResult {
    let (filter, operands) = state::<Filter>(&operands)?;
    let x = dense(operands, 0)?;
    let placement = WindowAttributes {
        dilations: &dilations,
        pads: &pads,
        strides: &strides,
    };
    let mut convolution = Convolution::new(&placement.windows(&filter.extents[..2])?);
    convolution.groups = filter.groups;
    let extents = convolution.output_extents(&x.shape().to_dims(), &filter.extents)?;
    let out = memory::output(execution, &extents)?;
    let added = match operands.len() {
        1 => TensorAddend::Nothing,
        _ => TensorAddend::Tensor(dense(operands, 1)?.clone()),
    };
    let after = TensorEpilogue {
        scale: None,
        shift: filter.shift.clone(),
        added,
        activation: filter.epilogue.activation,
        then: filter.epilogue.then.clone(),
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

/// `%y = "cpu.fused.joined"(%a, %b, .., %p) {dilations = [1, 1], epilogue = ["relu a0"], epsilon = 0.0 : f32, groups = 1 :
/// i64, strides = [1, 1]}`
///
/// A convolution by windows of one element and stride 1 of images that are joined along their channels.
///
/// # Shapes
///
/// Images `[n, h, w, own]`, alike; `y: [n, h, w, f]`.
pub(super) fn convolve_concat(
    operands: Operands<'_>,
    _dilations: Attr<&[i64]>,
    _epilogue: Attr<AttributeView<'_>>,
    _epsilon: Attr<f32>,
    _groups: Attr<i64>,
    _strides: Attr<&[i64]>,
    execution: &ExecutionContext,
) -> TensorResult {
    let (filter, operands) = state::<Filter>(&operands)?;
    let Elements::Packed(packed) = &filter.elements else {
        let message = "expected a filter of channels that mix, found one of channels that don't";
        return Err(Error::invalid_argument(message));
    };
    let parts = (0..operands.len()).map(|index| dense(operands, index));
    let parts: Vec<&DenseHostTensor> = parts.collect::<Result<_, _>>()?;
    let shapes: Vec<_> = parts.iter().map(|part| part.shape().to_dims()).collect();
    let shapes: Vec<&[usize]> = shapes.iter().map(|shape| &shape[..]).collect();
    let out = memory::output(execution, &convolve_concat_extents(&shapes, packed)?)?;
    let after = TensorEpilogue {
        scale: None,
        shift: filter.shift.clone(),
        added: TensorAddend::Nothing,
        activation: filter.epilogue.activation,
        then: filter.epilogue.then.clone(),
    };
    let chain = convolve_concat_into(execution, &parts, packed, after, &out)?;
    Ok(made(out, chain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_become_the_last_dimension() {
        for extents in [
            [1, 1, 1, 1],
            [3, 3, 5, 17],
            [1, 1, 40, 33],
            [2, 7, 16, 16],
            [3, 1, 0, 4],
        ] {
            let [rows, columns, own, filters] = extents;
            let n_taps = rows * columns;
            let from: Vec<f32> = (0..n_taps * own * filters)
                .map(|index| index as f32)
                .collect();
            let factors: Vec<f32> = (0..filters).map(|filter| filter as f32 - 2.5).collect();
            for factors in [None, Some(&factors[..])] {
                let mut found = vec![0.0; from.len()];
                filters_last(&from, extents, factors, &mut found).unwrap();
                let wanted = (0..from.len()).map(|index| {
                    let (rest, filter) = (index / filters, index % filters);
                    let (tap, channel) = (rest / own, rest % own);
                    let element = from[(filter * own + channel) * n_taps + tap];
                    factors.map_or(element, |factors| element * factors[filter])
                });
                assert!(found.iter().copied().eq(wanted), "{extents:?}");
            }
        }
    }
}
