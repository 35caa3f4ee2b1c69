//! Operations that scatter elements to the positions in a tensor.

use tfrt_host::{AsyncValue, Chain, Error};
use tfrt_tensor::DenseHostTensor;
use tfrt_tensor::math::Family;
use tfrt_tensor::math::layout_copy::{Combine, scatter_elements_into, scatter_nd_into};

use super::opaque::OpaqueTensors;
use super::{NodeCall, Operations, Outputs};

pub(super) const OPERATIONS: &Operations = &[
    ("onnx.Scatter", scatter_elements),
    ("scatter", scatter_elements),
    ("scatter_nd", scatter_nd),
];

/// Returns the way in which an element and its update are combined.
fn combined(node: &NodeCall<'_>) -> Result<Combine, Error> {
    match node.attributes.string_or("reduction", "none")? {
        "none" => Ok(Combine::Replace),
        "add" => Ok(Combine::Add),
        "mul" => Ok(Combine::Multiply),
        "max" => Ok(Combine::Greatest),
        "min" => Ok(Combine::Least),
        other => {
            let message =
                format_args!("is expected to be none, add, mul, max or min, found '{other}'");
            Err(node.attributes.error("reduction", message))
        }
    }
}

/// `ScatterElements(x, positions, updates)`, attributes `axis`, `reduction`.
fn scatter_elements(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let positions = node.positions(1)?;
    let rank = node.inputs.tensor(0)?.metadata().shape.rank();
    let axis = node.axis(node.attributes.integer_or("axis", 0)?, rank)?;
    let combine = combined(node)?;
    scattered(node, combine, |[x, updates], out| {
        scatter_elements_into(node.execution, combine, x, axis, &positions, updates, out)
    })
}

/// `ScatterND(x, positions, updates)`, attribute `reduction`.
fn scatter_nd(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let positions = node.positions(1)?;
    let combine = combined(node)?;
    scattered(node, combine, |[x, updates], out| {
        scatter_nd_into(node.execution, combine, x, &positions, updates, out)
    })
}

/// Scatters the third operand into the first: elements of any type may be replaced, real numbers combined.
fn scattered(
    node: &NodeCall<'_>,
    combine: Combine,
    scatter: impl FnOnce([&DenseHostTensor; 2], &DenseHostTensor) -> Result<AsyncValue<Chain>, Error>,
) -> Result<Outputs, Error> {
    if combine == Combine::Replace {
        let (x, updates) = (node.inputs.tensor(0)?, node.inputs.tensor(2)?);
        let opaque = OpaqueTensors::new(node, &[x, updates])?;
        let out = opaque.output(node, &x.metadata().shape.to_dims())?;
        let [x, updates] = &opaque.tensors[..] else {
            unreachable!("there are as many as were given");
        };
        let chain = scatter([x, updates], &out)?;
        return opaque.outputs(out, chain);
    }
    let (x, updates) = (node.inputs.dense(0)?, node.inputs.dense(2)?);
    node.inputs.expect(0, Family::Reals)?;
    let out = node.output(x.dtype(), &x.shape().to_dims())?;
    let chain = scatter([x, updates], &out)?;
    Ok(Outputs::later(out, chain))
}
