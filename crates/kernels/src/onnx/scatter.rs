//! Elements written where a tensor of positions names.

use tfrt_host::{AsyncValue, Chain, Error};
use tfrt_tensor::DenseHostTensor;
use tfrt_tensor::math::Family;
use tfrt_tensor::math::layout_copy::{Combine, scatter_elements_into, scatter_nd_into};

use super::carried::Carried;
use super::{Node, Operations, Outputs};

pub(super) const OPERATIONS: &Operations = &[
    ("onnx.Scatter", scatter_elements),
    ("scatter", scatter_elements),
    ("scatter_nd", scatter_nd),
];

/// How an element goes together with its update.
fn combined(node: &Node<'_>) -> Result<Combine, Error> {
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
fn scatter_elements(node: &Node<'_>) -> Result<Outputs, Error> {
    let positions = node.positions(1)?;
    let rank = node.inputs.tensor(0)?.metadata().shape.rank();
    let axis = node.axis(node.attributes.integer_or("axis", 0)?, rank)?;
    let combine = combined(node)?;
    scattered(node, combine, |[x, updates], out| {
        scatter_elements_into(node.execution, combine, x, axis, &positions, updates, out)
    })
}

/// `ScatterND(x, positions, updates)`, attribute `reduction`.
fn scatter_nd(node: &Node<'_>) -> Result<Outputs, Error> {
    let positions = node.positions(1)?;
    let combine = combined(node)?;
    scattered(node, combine, |[x, updates], out| {
        scatter_nd_into(node.execution, combine, x, &positions, updates, out)
    })
}

/// Makes the result of the first and third operand: elements of any type may be replaced, real numbers combined.
fn scattered(
    node: &Node<'_>,
    combine: Combine,
    scatter: impl FnOnce([&DenseHostTensor; 2], &DenseHostTensor) -> Result<AsyncValue<Chain>, Error>,
) -> Result<Outputs, Error> {
    if combine == Combine::Replace {
        let (x, updates) = (node.inputs.tensor(0)?, node.inputs.tensor(2)?);
        let carried = Carried::new(node, &[x, updates])?;
        let out = carried.output(node, &x.metadata().shape.to_dims())?;
        let [x, updates] = &carried.tensors[..] else {
            unreachable!("there are as many as were given");
        };
        let chain = scatter([x, updates], &out)?;
        return carried.outputs(out, chain);
    }
    let (x, updates) = (node.inputs.dense(0)?, node.inputs.dense(2)?);
    node.inputs.expect(0, Family::Reals)?;
    let out = node.output(x.dtype(), &x.shape().to_dims())?;
    let chain = scatter([x, updates], &out)?;
    Ok(Outputs::later(out, chain))
}
