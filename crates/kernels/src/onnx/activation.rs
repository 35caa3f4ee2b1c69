//! Activations: functions of one element, with parameters that are the same for all.

use tfrt_host::Error;
use tfrt_tensor::math::pointwise::{
    BinaryFunction, ParametricFunction, UnaryFunction, binary_into, binary_metadata,
};

use super::elementwise::{expect_defined, of_one, with_parameters};
use super::{Node, Operations, Outputs};

/// `parametric!(HardSigmoid, "alpha" 0.2, "beta" 0.5)` is an operation of one operand and two attributes.
macro_rules! parametric {
    ($function:ident $(, $name:literal $default:literal)*) => {
        |node| {
            let attributes: &[(&str, f32)] = &[$(($name, $default)),*];
            by_attributes(node, ParametricFunction::$function, attributes)
        }
    };
}

pub(super) const OPERATIONS: &Operations = &[
    ("Celu", parametric!(Celu, "alpha" 1.0)),
    ("Elu", parametric!(ScaledElu, "alpha" 1.0)),
    ("Gelu", gelu),
    (
        "HardSigmoid",
        parametric!(HardSigmoid, "alpha" 0.2, "beta" 0.5),
    ),
    ("HardSwish", parametric!(HardSwish)),
    ("LeakyRelu", parametric!(LeakyRelu, "alpha" 0.01)),
    ("Mish", parametric!(Mish)),
    ("PRelu", prelu),
    (
        "Selu",
        parametric!(Selu, "alpha" 1.673_263_2, "gamma" 1.050_701),
    ),
    ("Shrink", parametric!(Shrink, "lambd" 0.5, "bias" 0.0)),
    ("Softplus", |node| of_one(node, UnaryFunction::Softplus)),
    ("Softsign", parametric!(Softsign)),
    ("Swish", parametric!(Swish, "alpha" 1.0)),
    ("ThresholdedRelu", parametric!(ThresholdedRelu, "alpha" 1.0)),
];

/// A function whose parameters are attributes, each with a default.
fn by_attributes(
    node: &Node<'_>,
    function: ParametricFunction,
    attributes: &[(&str, f32)],
) -> Result<Outputs, Error> {
    let mut parameters = [0.0; 2];
    for (parameter, (name, default)) in parameters.iter_mut().zip(attributes) {
        *parameter = node.attributes.float_or(name, *default)?.into();
    }
    with_parameters(node, function, parameters)
}

/// `Gelu`: by the error function, or by the formula with the hyperbolic tangent.
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
