//! Activations: functions of one element, with parameters that are the same for all.

use tfrt_host::Error;
use tfrt_tensor::math::pointwise::{
    BinaryFunction, ParametricFunction, UnaryFunction, binary_into, binary_metadata,
};

use super::elementwise::{expect_defined, of_one};
use super::{Node, Operations, Outputs};

pub(super) const OPERATIONS: &Operations = &[("gelu", gelu), ("onnx.PRelu", prelu)];

/// Library operations that are a function with parameters, the attributes of the row.
pub(super) const FUNCTIONS: &[(&str, ParametricFunction)] = &[
    ("onnx.Celu", ParametricFunction::Celu),
    ("onnx.HardSwish", ParametricFunction::HardSwish),
    ("onnx.Mish", ParametricFunction::Mish),
    ("onnx.Selu", ParametricFunction::Selu),
    ("onnx.Shrink", ParametricFunction::Shrink),
    ("onnx.Softsign", ParametricFunction::Softsign),
    ("onnx.Swish", ParametricFunction::Swish),
    ("onnx.ThresholdedRelu", ParametricFunction::ThresholdedRelu),
];

/// `gelu`: by the error function, or by the formula with the hyperbolic tangent.
fn gelu(node: &Node<'_>) -> Result<Outputs, Error> {
    match node.attributes.string_or("approximate", "none")? {
        "none" => of_one(node, UnaryFunction::Gelu),
        "tanh" => of_one(node, UnaryFunction::GeluTanh),
        other => {
            let other = other.escape_debug();
            let message = format_args!("is expected to be 'none' or 'tanh', found '{other}'");
            Err(node.attributes.error("approximate", message))
        }
    }
}

/// `PRelu`: elements below 0 times those of a second operand, which broadcasts to the first.
fn prelu(node: &Node<'_>) -> Result<Outputs, Error> {
    let function = BinaryFunction::SlopedRelu;
    let (x, slope) = (node.inputs.dense(0)?, node.inputs.dense(1)?);
    expect_defined(node, function.result(x.dtype()))?;
    let metadata = binary_metadata(function, x.metadata(), slope.metadata())
        .map_err(|error| node.told(&error))?;
    if metadata.shape != *x.shape() {
        let message = format_args!(
            "of shape {} does not broadcast to {}",
            slope.shape(),
            x.shape()
        );
        return Err(node.inputs.error(1, message));
    }
    let out = node.output(x.dtype(), &x.shape().to_dims())?;
    let chain = binary_into(node.execution, function, x, slope, &out)?;
    Ok(Outputs::later(out, chain))
}
