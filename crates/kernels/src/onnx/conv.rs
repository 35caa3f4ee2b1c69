//! Convolutions of images whose channels come first: plain, quantised, transposed, deformable. Constant filters are
//! reordered once ([`Filter`]).

use std::sync::Arc;

use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};
use tfrt_tensor::math::Family;
use tfrt_tensor::math::cast::{Casting, cast_into};
use tfrt_tensor::math::conv::channels_first::{
    OrderedFilter, convolve_into, convolve_ordered_into, convolve_transposed_into,
    convolve_transposed_ordered_into, output_extents,
};
use tfrt_tensor::math::conv::{Convolution, TensorConvEpilogue, TransposedConvolution};
use tfrt_tensor::{DType, DenseHostTensor, Dims};

use super::cast::converted;
use super::outputs::IntoValue;
use super::pool::image;
use super::prepare::{PrepareRow, PreparedKernel, erase};
use super::windows::SpatialAttributes;
use super::{NodeCall, Operations, Outputs};

mod bytes;
mod deformable;
mod transposed;

pub(super) const OPERATIONS: &Operations = &[
    ("conv", convolution),
    ("onnx.ConvInteger", bytes::integers),
    ("onnx.DeformConv", deformable::deformed),
    ("onnx.QLinearConv", bytes::quantized),
];

/// The nodes whose constant filters are reordered.
pub(super) const PREPARE: &[PrepareRow] = &[
    PREPARE_CONVOLUTION,
    bytes::PREPARE_INTEGERS,
    bytes::PREPARE_QUANTIZED,
];

const PREPARE_CONVOLUTION: PrepareRow = PrepareRow {
    op: "conv",
    inputs: &[1],
    types: &[],
    takes_attributes: false,
    make: |node| {
        let (filter, host) = (node.inputs.dense(1)?, node.execution.host());
        // What is no filter is told when there is an image.
        if filter.shape().rank() < 3 || !Family::Floats.has(filter.dtype()) {
            return Ok(None);
        }
        let filter = OrderedFilter::new(host.allocator(), filter)?;
        let filter = filter.map_elements(|elements| crate::graph::share(host, elements));
        Ok(Some(erase(filter)))
    },
    restore: None,
};

impl PreparedKernel for OrderedFilter {
    fn run(self: Arc<Self>, node: &NodeCall<'_>) -> Result<Outputs, Error> {
        convolution_by(node, Filter::Ordered(&self))
    }
}

/// The filter of a convolution.
#[derive(Clone, Copy)]
enum Filter<'a> {
    /// A filter that is an operand.
    Operand(&'a DenseHostTensor),
    /// A constant filter that was reordered.
    Ordered(&'a OrderedFilter),
}

impl Filter<'_> {
    /// Returns the extents of the filter, which must be as many as those of the image.
    fn extents(self, node: &NodeCall<'_>, rank: usize) -> Result<Dims, Error> {
        let extents = match self {
            Filter::Operand(_) => return node.inputs.extents(1, rank),
            Filter::Ordered(filter) => filter.extents(),
        };
        match extents.len() == rank {
            true => Ok(Dims::from_slice(extents)),
            false => {
                let message = format_args!("has {rank} dimensions, found extents {extents:?}");
                Err(node.inputs.error(1, message))
            }
        }
    }

    fn dtype(self) -> DType {
        match self {
            Filter::Operand(filter) => filter.dtype(),
            Filter::Ordered(filter) => filter.dtype(),
        }
    }
}

/// A [`Filter`] that is kept until it is used.
enum KeptFilter {
    Operand(DenseHostTensor),
    Ordered(OrderedFilter),
}

impl KeptFilter {
    fn borrowed(&self) -> Filter<'_> {
        match self {
            KeptFilter::Operand(filter) => Filter::Operand(filter),
            KeptFilter::Ordered(filter) => Filter::Ordered(filter),
        }
    }
}

/// A convolution, or a transposed one.
enum Form {
    Plain(Convolution),
    Transposed(TransposedConvolution),
}

impl Form {
    fn run(
        &self,
        execution: &ExecutionContext,
        (x, filter): (&DenseHostTensor, Filter<'_>),
        after: TensorConvEpilogue,
        out: &DenseHostTensor,
    ) -> Result<AsyncValue<Chain>, Error> {
        match (self, filter) {
            (Form::Plain(form), Filter::Operand(filter)) => {
                convolve_into(execution, form, [x, filter], after, out)
            }
            (Form::Plain(form), Filter::Ordered(filter)) => {
                convolve_ordered_into(execution, form, (x, filter), after, out)
            }
            (Form::Transposed(form), Filter::Operand(filter)) => {
                convolve_transposed_into(execution, form, [x, filter], after, out)
            }
            (Form::Transposed(form), Filter::Ordered(filter)) => {
                convolve_transposed_ordered_into(execution, form, (x, filter), after, out)
            }
        }
    }
}

/// Calculates the result of a node, whose operand 2 is the bias.
fn convolved(
    node: &NodeCall<'_>,
    form: Form,
    filter: Filter<'_>,
    extents: &[usize],
) -> Result<Outputs, Error> {
    let x = node.inputs.dense(0)?;
    let shift = node.inputs.optional_dense(2)?;
    node.inputs.expect(0, Family::Floats)?;
    if matches!(x.dtype(), DType::F16 | DType::Bf16) {
        return convolved_halves(node, form, filter, extents);
    }
    let out = node.output(x.dtype(), extents)?;
    let after = TensorConvEpilogue {
        shift: shift.cloned(),
        ..TensorConvEpilogue::default()
    };
    let chain = form
        .run(node.execution, (x, filter), after, &out)
        .map_err(|error| node.with_name(&error))?;
    Ok(Outputs::later(out, chain))
}

/// Calculates the result of halves as `f32`: sums and the bias are rounded together, once.
fn convolved_halves(
    node: &NodeCall<'_>,
    form: Form,
    filter: Filter<'_>,
    extents: &[usize],
) -> Result<Outputs, Error> {
    let x = node.inputs.dense(0)?;
    let shift = node.inputs.optional_dense(2)?;
    let wanted = x.dtype();
    for (index, found) in [
        (1, Some(filter.dtype())),
        (2, shift.map(DenseHostTensor::dtype)),
    ] {
        if let Some(found) = found.filter(|found| *found != wanted) {
            let message = format_args!("is of {found}, operand 0 of {wanted}");
            return Err(node.inputs.error(index, message));
        }
    }
    if let Some(shift) = shift
        && shift.n_elements() != extents[1]
    {
        let (found, filters) = (shift.n_elements(), extents[1]);
        let message =
            format_args!("has {found} elements, expected one for each of {filters} filters");
        return Err(node.inputs.error(2, message));
    }
    let (x, mut ready) = converted(node, x, DType::F32)?;
    let filter = match filter {
        Filter::Operand(filter) => {
            let (filter, chain) = converted(node, filter, DType::F32)?;
            ready = ready.and_then_value(move |_| chain);
            KeptFilter::Operand(filter)
        }
        Filter::Ordered(filter) => KeptFilter::Ordered(filter.for_kept_type()),
    };
    let mut after = TensorConvEpilogue::default();
    if let Some(shift) = shift {
        let (shift, chain) = converted(node, shift, DType::F32)?;
        ready = ready.and_then_value(move |_| chain);
        after.shift = Some(shift);
    }
    let (sums, out) = (
        node.output(DType::F32, extents)?,
        node.output(wanted, extents)?,
    );
    let (execution, written) = (node.execution.clone(), sums.clone());
    let chain = ready.and_then_value(move |_| {
        form.run(&execution, (&x, filter.borrowed()), after, &written)
            .into_value()
    });
    let (execution, rounded) = (node.execution.clone(), out.clone());
    let chain = chain.and_then_value(move |_| {
        cast_into(&execution, Casting::default(), &sums, &rounded).into_value()
    });
    Ok(Outputs::later(out, chain))
}

/// Returns the convolution that the attributes describe, and the extents of its result. `groups` is the name of the
/// attribute with the number of groups of channels.
fn described(
    node: &NodeCall<'_>,
    filter: impl FnOnce(usize) -> Result<Dims, Error>,
    groups: &str,
) -> Result<(Convolution, Dims), Error> {
    let extents = image(node)?;
    let filter = filter(extents.len())?;
    let spatial = SpatialAttributes::of(node, extents.len() - 2, Some(&filter[2..]))?;
    let windows = spatial.windows(node, &extents[2..])?;
    let groups = node.attributes.size_or(groups, 1)?;
    let convolution = Convolution {
        groups,
        ..Convolution::new(&windows)
    };
    let output =
        output_extents(&convolution, &extents, &filter).map_err(|error| node.with_name(&error))?;
    Ok((convolution, output))
}

/// `conv(x, filter, bias)`, attributes `groups`, `transposed` and those of windows.
fn convolution(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    node.inputs.dense(0)?;
    convolution_by(node, Filter::Operand(node.inputs.dense(1)?))
}

fn convolution_by(node: &NodeCall<'_>, filter: Filter<'_>) -> Result<Outputs, Error> {
    if node.attributes.flag("transposed", false)? {
        return transposed::transposed(node, filter);
    }
    let (convolution, output) = described(node, |rank| filter.extents(node, rank), "groups")?;
    convolved(node, Form::Plain(convolution), filter, &output)
}
