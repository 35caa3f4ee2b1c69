//! Activations: functions of single elements, with parameters.

use tfrt_host::Error;
use tfrt_tensor::math::pointwise::{BinaryFunction, binary_into, binary_metadata};

use super::elementwise::expect_defined;
use super::{NodeCall, Operations, Outputs};

pub(super) const OPERATIONS: &Operations = &[("onnx.PRelu", prelu)];

/// `PRelu`: elements below 0 times those of a second operand, which broadcasts to the first.
fn prelu(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let function = BinaryFunction::SlopedRelu;
    let (x, slope) = (node.inputs.dense(0)?, node.inputs.dense(1)?);
    expect_defined(node, function.result(x.dtype()))?;
    let metadata = binary_metadata(function, x.metadata(), slope.metadata())
        .map_err(|error| node.with_name(&error))?;
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
